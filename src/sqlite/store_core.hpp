// The store's threads and everything they share.
//
// Role: answers the engine's requests on one thread, ends overdue and cancelled units on another.
// Owns: the file, the writer, both threads.
// Threads: as EffectStore says. Lock order: registry_ and requests_ are never held together, nor
//   while a call into a unit or SQLite may wait.
// Lifecycle: open() once, close() once; shared by its threads and its units, so that a unit that
//   an abandoned worker still holds stays valid.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/interval_set.hpp"
#include "base/mutex.hpp"
#include "sqlite/database_file.hpp"
#include "sqlite/unit_core.hpp"
#include "sqlite/writer.hpp"
#include "tenure/port/effect_store.hpp"

namespace tenure::sqlite {

class StoreCore : public std::enable_shared_from_this<StoreCore> {
 public:
  using Request = std::variant<Reserve, Activate, AdvanceIdle, Lookup>;

  explicit StoreCore(Options options) : options_(std::move(options)) {}

  Result<void> open(StoreSink& sink);
  void submit(Request request);
  [[nodiscard]] std::shared_ptr<UnitCore> open_unit(UnitKey key);
  /// `retired` or, when the stored fence is another's by now, `superseded` (a new connection).
  [[nodiscard]] UnitResult why_ended(const UnitKey& key, UnitResult retired) const;
  /// The worker has let go of it.
  void forget(const UnitCore& unit);
  void cancel(OwnerRef owner);
  [[nodiscard]] Result<void> still_there() const;
  void close(Duration limit);

 private:
  struct Turn;

  void serve();
  void answer(Request request);
  Reserved answer_reserve(const Reserve& request);
  Activated answer_activate(const Activate& request);
  IdleAdvanced answer_advance(const AdvanceIdle& request);
  LookedUp answer_lookup(const Lookup& request);
  [[nodiscard]] bool cancelled(OwnerRef owner);

  void watch();
  void unit_opened();
  std::vector<std::shared_ptr<UnitCore>> take_ended(SteadyTime now, SteadyTime& next)
      TENURE_REQUIRES(registry_);

  const Options options_;
  std::unique_ptr<DatabaseFile> file_;  ///< set by open(), before the threads
  std::unique_ptr<Writer> writer_;
  std::atomic<bool> closing_{false};

  Mutex requests_mutex_;
  Condition requests_wake_;
  std::deque<Request> requests_ TENURE_GUARDED_BY(requests_mutex_);
  bool serving_ TENURE_GUARDED_BY(requests_mutex_) = false;

  Mutex sink_mutex_;
  StoreSink* sink_ TENURE_GUARDED_BY(sink_mutex_) = nullptr;

  Mutex registry_;
  Condition registry_wake_;
  std::unordered_map<const UnitCore*, std::shared_ptr<UnitCore>> units_
      TENURE_GUARDED_BY(registry_);
  IntervalSet cancelled_grants_ TENURE_GUARDED_BY(registry_);
  bool look_again_ TENURE_GUARDED_BY(registry_) = false;
  bool watching_ TENURE_GUARDED_BY(registry_) = false;
  /// The watch thread sleeps without a deadline. Set by it under registry_, read by whoever opens
  /// a unit: at worst one wake-up too many.
  std::atomic<bool> watch_idle_{false};

  std::thread server_;
  std::thread watcher_;
};

}  // namespace tenure::sqlite
