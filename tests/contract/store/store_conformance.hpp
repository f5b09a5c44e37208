// What every effect store must hold to, as cases that know no test framework.
//
// A StoreWorld is one database and the way to reach it; each store made from it stands for one
// process. A case drives the port only, so the same cases judge every store, and a store that
// must fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenure/port/effect_store.hpp"
#include "tenure/store_types.hpp"

namespace tenure::testing {

/// One business effect as the cases write it. Writing it twice leaves two of them.
struct StoredEffect {
  std::int32_t partition = 0;
  std::uint16_t lane = 0;
  std::int64_t offset = 0;
  std::int64_t token = 0;  ///< of the owner that wrote it
};

/// Threads: any. Lifetime: outlives every store made from it.
class StoreWorld {
 public:
  virtual ~StoreWorld() = default;
  /// Another process on the same database, not opened. `unit_timeout`: longest open transaction.
  virtual std::unique_ptr<EffectStore> make_store(std::chrono::milliseconds unit_timeout) = 0;
  /// Through the unit's transaction.
  virtual void write(EffectUnit& unit, const StoredEffect& effect) = 0;
  /// All committed ones, as a stranger sees them.
  virtual std::vector<StoredEffect> effects() = 0;
  /// A statement that must fail. False: such a thing does not exist here.
  virtual bool fail_statement(EffectUnit&) { return false; }
  /// Tries to commit behind the store's back. False: there is no way to try.
  virtual bool commit_by_hand(EffectUnit&) { return false; }
  /// The reply to this unit's COMMIT gets lost. False: cannot be arranged.
  virtual bool lose_commit_reply(EffectStore&, EffectUnit&, bool /*applied*/) { return false; }
  /// Remembers the database; the result puts it back. No store is open at either time. Empty:
  /// cannot be arranged.
  virtual std::function<void()> remember() { return {}; }
};

/// What a case found.
class Report {
 public:
  void expect(bool held, std::string what) {
    ++checks_;
    if (!held) failures_.push_back(std::move(what));
  }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  [[nodiscard]] std::uint64_t checks() const { return checks_; }

 private:
  std::vector<std::string> failures_;
  std::uint64_t checks_ = 0;
};

/// `name` starts with the rule it is about.
struct StoreCase {
  std::string_view name;
  void (*run)(StoreWorld& world, Report& report);
};
std::span<const StoreCase> store_cases();

/// Takeovers at random from several processes at once; every effect once, none missing, none by
/// an older owner after a newer one.
struct TakeoverFuzz {
  std::uint64_t seed = 1;
  std::chrono::milliseconds duration{2000};
  int processes = 3;
  int workers_per_process = 2;
  int partitions = 2;
  std::uint16_t lanes = 4;
};
struct TakeoverCounts {
  std::uint64_t takeovers = 0, applied = 0, refused = 0, in_doubt = 0;
};
TakeoverCounts fuzz_takeovers(StoreWorld& world, const TakeoverFuzz& fuzz, Report& report);

}  // namespace tenure::testing
