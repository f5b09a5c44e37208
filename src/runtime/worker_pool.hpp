// The threads that run blocking handlers and start async ones.
//
// Role: a queue of runs and workers that pull from it; grows from one worker to `workers_max`
//   only as fast as runs have to wait; gives queued runs back; replaces hung workers (R9).
// Owns: queue and threads.
// Threads: push(), reclaim(), abandon(), grow(), stop(): the loop thread. push_front(): any.
// Lifecycle: threads are made on demand and joined by stop(), except those whose handler does not
//   return: these are detached and end on their own when it does. Each thread holds the pool's
//   shared part and, through `keep`, whatever its runs need, so a late handler meets no dead
//   object of ours.
// Promises: a worker parks only when the queue is empty; a reclaimed run has not been started by
//   this pool; nothing here waits for a handler.
// Does not promise: fairness between owners; the engine dispatches in the order it wants.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/executor.hpp"
#include "runtime/run_task.hpp"
#include "tenure/ids.hpp"

namespace tenure::runtime {

class WorkerPool {
 public:
  /// `execute` takes a run over, on a worker.
  using Execute = std::function<void(RunTask& task, Executor::Scratch& scratch)>;

  WorkerPool(std::uint32_t workers_max, Execute execute);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// `keep` is held by every thread.
  void push(std::span<RunTask* const> tasks, const std::shared_ptr<void>& keep);
  /// A run that has already begun. False: no worker is idle; somebody must call grow() soon.
  bool push_front(RunTask& task);

  /// Takes the owner's queued runs out (R1).
  void reclaim(OwnerRef owner, std::vector<RunTask*>& out);
  /// Workers that are running the owner's runs lose their places to fresh ones (R9).
  void abandon(OwnerRef owner);

  /// Adds workers when a run has waited since a call at least a millisecond ago. True: runs are
  /// waiting and there is room to grow, so call again in a millisecond.
  bool grow(const std::shared_ptr<void>& keep);

  /// Few runs are queued: a worker that comes back will soon have nothing to do. Any thread.
  [[nodiscard]] bool hungry() const;
  /// No more runs; joins the workers that are not inside a handler, detaches the others. Gives
  /// back what was queued.
  void stop(std::vector<RunTask*>& queued);

  [[nodiscard]] std::size_t workers() const;    ///< not abandoned
  [[nodiscard]] std::size_t abandoned() const;  ///< so far

 private:
  struct Shared;
  struct Place;
  static void work(std::shared_ptr<Shared> shared, std::shared_ptr<Place> place,
                   std::shared_ptr<void> keep);
  void add_workers(std::size_t count, const std::shared_ptr<void>& keep);

  std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Place>> places_;  ///< loop thread
  std::uint32_t workers_max_;
  std::size_t abandoned_ = 0;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point looked_at_;
  std::uint64_t popped_then_ = 0;
  bool waiting_then_ = false;
};

}  // namespace tenure::runtime
