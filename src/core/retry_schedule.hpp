// When held records are to be tried again.
//
// Owns: one entry a waiting record. Threads: none. Promises: entries come out in order of their
// time; an entry of an owner that has ended is the caller's to ignore.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "core/run.hpp"
#include "tenure/ids.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

class RetrySchedule {
 public:
  struct Policy {
    Duration backoff_min{};
    Duration backoff_max{};
    double jitter = 0;  ///< 0 .. 1: share of the wait that is random
  };
  struct Entry {
    Instant due;
    OwnerRef owner;
    Ordinal ordinal = 0;
    bool counts = true;  ///< the next try is another attempt
  };

  explicit RetrySchedule(const Policy& policy) : policy_(policy) {}

  /// Exponential in `tries` (1 = first wait), capped, with jitter.
  [[nodiscard]] Duration backoff(std::uint32_t tries, Random& random) const;

  void add(const Entry& entry);
  /// Takes the first entry that is due; false when none is.
  bool pop(Instant now, Entry& entry);
  [[nodiscard]] Instant next() const { return heap_.empty() ? never : heap_.front().due; }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// Forgets all entries of an owner (R1: backoff is not started work).
  void drop(OwnerRef owner);

 private:
  Policy policy_;
  std::vector<Entry> heap_;
};

}  // namespace tenure::core
