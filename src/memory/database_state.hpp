// What a memory::Database holds. Guarded by its mutex, which is held for whole transactions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "tenure/memory/store.hpp"

namespace tenure::memory {

struct Entry {
  std::optional<std::string> value;  ///< empty: erased; the version stays
  std::uint64_t version = 0;         ///< of its last change
};

struct DomainRows {
  Token next;  ///< last ticket drawn
  LaneRule rule;
  std::vector<LaneRow> lanes;  ///< empty: never activated
};

class Database::Image {
 public:
  std::map<std::string, Entry, std::less<>> entries;
  std::map<Domain, DomainRows> domains;
  std::uint64_t version = 0;  ///< of the last commit
};

struct Database::State {
  mutable Mutex mutex;
  Image now TENURE_GUARDED_BY(mutex);
};

}  // namespace tenure::memory
