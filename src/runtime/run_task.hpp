// One run on its way from the engine through an executor and back.
//
// Role: what the executor has to know about a run beside the run itself, and how far it has come:
//   the state that survives an asynchronous commit or handler.
// Owns: the open effect unit; for an async record its view. The run stays the engine's.
// Threads: one holder at a time; passing on is a happens-before edge (queue, mailbox, `arrivals`).
//   References of an async task are counted, since its Completion may be anywhere.
// Lifecycle: pooled (RunTaskPool); lent at dispatch, back in the pool when the engine has its run
//   and no Completion is left.
// Promises: the run is returned exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/run.hpp"
#include "ports/owner_cell.hpp"
#include "tenure/completion.hpp"
#include "tenure/handler.hpp"
#include "tenure/owner.hpp"
#include "tenure/port/clock.hpp"
#include "tenure/port/effect_store.hpp"
#include "tenure/record.hpp"

namespace tenure::runtime {

class RunTask;
class RunTaskPool;

/// Where a run goes when nobody works on it. Any thread.
class RunReturn {
 public:
  virtual ~RunReturn() = default;
  /// To the engine. The caller must not touch the task any more.
  virtual void returned(RunTask& task) noexcept = 0;
  /// To a worker again: what the end of a transaction has left to do. As above.
  virtual void resumed(RunTask& task) noexcept = 0;
};

/// An owner as the runtime holds it, from its activation until its last run is back.
struct OwnerEntry {
  std::shared_ptr<detail::OwnerCell> cell;
  Owner owner;
  const Handler* handler = nullptr;
};

class RunTask final : public detail::CompletionTarget {
 public:
  RunTask* next = nullptr;  ///< of the list it is in: mailbox or pool

  core::Run* run = nullptr;
  const OwnerEntry* entry = nullptr;
  RunReturn* back = nullptr;
  /// Set when the task may be held by threads that the runtime does not join (async handlers,
  /// asynchronous commits): keeps alive what `back`, `run` and `entry` point to.
  std::shared_ptr<RunReturn> keep;
  std::shared_ptr<const OwnerEntry> keep_entry;

  // Progress through the run, in record indices: [0, begin) is settled, [begin, limit) is the
  // unit or batch being tried, something before suspect_end has failed in a larger one.
  std::uint32_t begin = 0;
  std::uint32_t limit = 0;
  std::uint32_t suspect_end = 0;
  /// Verdict of the handler on record `limit`, to be kept if what precedes it is committed.
  std::optional<Outcome> held;
  std::unique_ptr<EffectUnit> unit;
  UnitResult commit_result;
  std::atomic<std::uint32_t> arrivals{0};  ///< of committer and callback; the second goes on

  const Clock* clock = nullptr;
  Instant started;               ///< of the handler's time not yet counted in Run::took
  std::optional<Record> record;  ///< of an async run

  /// Calls the handler with a Completion. Worker's thread.
  void start_async();

  // CompletionTarget.
  Verdict complete(Outcome outcome) noexcept override;
  void release() noexcept override;

 private:
  friend class RunTaskPool;
  RunTaskPool* pool_ = nullptr;
  std::atomic<bool> completed_{false};
  std::atomic<std::uint32_t> references_{0};
  /// Given while the handler was unwinding; counts unless it throws.
  std::optional<Outcome> unwinding_;
};

/// Writes what a handler said of record `index` into the run: class checked ([a-z0-9_]{1,32}),
/// reason cut to 512 bytes, `after` limited to 24 h.
void settle(core::Run& run, std::uint32_t index, const Outcome& outcome);

/// Tasks for reuse. take() and give() are the loop thread's; tasks with a Completion come back
/// from any thread. Lives in the object that RunTask::keep holds.
class RunTaskPool {
 public:
  RunTaskPool() = default;
  RunTaskPool(const RunTaskPool&) = delete;
  RunTaskPool& operator=(const RunTaskPool&) = delete;

  /// A task for one run of `entry`. `shared`: the task outlives the caller's knowledge of its
  /// holders; `completion`: it will carry a Completion.
  RunTask& take(core::Run& run, const std::shared_ptr<const OwnerEntry>& entry,
                const std::shared_ptr<RunReturn>& back, const Clock& clock, bool shared,
                bool completion);
  /// The engine has its run back.
  void give(RunTask& task) noexcept;

 private:
  friend class RunTask;
  void free(RunTask& task) noexcept;

  std::vector<std::unique_ptr<RunTask>> all_;
  RunTask* spare_ = nullptr;
  /// Freed by whoever let go last. Pushed to with release, taken whole with acquire.
  std::atomic<RunTask*> freed_{nullptr};
};

}  // namespace tenure::runtime
