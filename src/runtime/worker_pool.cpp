#include "runtime/worker_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/mutex.hpp"

namespace tenure::runtime {
namespace {

// Most runs a worker takes at once, and how long they may keep it busy by its own experience: a
// hand-over costs more than a run of a handler that does nothing.
constexpr std::size_t runs_at_once_max = 64;
constexpr double at_once_ns = 500'000;
// At the end: for a worker that is just coming out of its handler.
constexpr std::chrono::milliseconds stop_patience(20);
constexpr std::chrono::nanoseconds growth_look = std::chrono::milliseconds(1);

}  // namespace

struct WorkerPool::Shared {
  explicit Shared(Execute given, std::uint32_t workers_max)
      : execute(std::move(given)), low_mark(std::max(1u, workers_max / 4)) {}

  const Execute execute;
  const std::size_t low_mark;

  Mutex mutex;
  Condition arrived;  ///< runs, or the end
  std::deque<RunTask*> queue TENURE_GUARDED_BY(mutex);
  std::uint64_t popped TENURE_GUARDED_BY(mutex) = 0;
  std::size_t idle TENURE_GUARDED_BY(mutex) = 0;
  std::size_t workers TENURE_GUARDED_BY(mutex) = 0;  ///< not abandoned, not ended
  bool stopping TENURE_GUARDED_BY(mutex) = false;
  Condition ended;
  /// Queue length for hungry(); relaxed: a hint.
  std::atomic<std::size_t> queued{0};
};

/// A worker's place. `taken` and `running` are read by the loop thread while the worker goes on.
struct WorkerPool::Place {
  std::thread thread;
  /// Runs taken and not begun. Whoever exchanges a run out of it has it: the worker to run it,
  /// the loop thread to reclaim it.
  std::array<std::atomic<RunTask*>, runs_at_once_max> taken{};
  /// Set while inside execute(). The loop thread reads the run's owner through it: a run and its
  /// task stay in place until the loop thread itself has taken them back.
  std::atomic<RunTask*> running{nullptr};
  std::atomic<bool> abandoned{false};
  bool ended = false;  ///< under Shared::mutex
};

WorkerPool::WorkerPool(std::uint32_t workers_max, Execute execute)
    : shared_(std::make_shared<Shared>(std::move(execute), workers_max)),
      workers_max_(workers_max) {}

WorkerPool::~WorkerPool() {
  std::vector<RunTask*> queued;
  stop(queued);
}

bool WorkerPool::hungry() const {
  return shared_->queued.load(std::memory_order_relaxed) < shared_->low_mark;
}

std::size_t WorkerPool::workers() const {
  Lock lock(shared_->mutex);
  return shared_->workers;
}

std::size_t WorkerPool::abandoned() const {
  return abandoned_;
}

void WorkerPool::push(std::span<RunTask* const> tasks, const std::shared_ptr<void>& keep) {
  if (tasks.empty()) return;
  std::size_t to_wake = 0;
  bool first = false;
  {
    Lock lock(shared_->mutex);
    TENURE_ASSERT(!shared_->stopping, "R10 nothing is dispatched after the end");
    shared_->queue.insert(shared_->queue.end(), tasks.begin(), tasks.end());
    shared_->queued.store(shared_->queue.size(), std::memory_order_relaxed);
    to_wake = std::min(tasks.size(), shared_->idle);
    first = shared_->workers == 0;
  }
  for (std::size_t i = 0; i < to_wake; ++i) shared_->arrived.notify_one();
  if (first) add_workers(1, keep);
}

bool WorkerPool::push_front(RunTask& task) {
  bool idle = false;
  {
    Lock lock(shared_->mutex);
    shared_->queue.push_front(&task);
    shared_->queued.store(shared_->queue.size(), std::memory_order_relaxed);
    idle = shared_->idle > 0;
  }
  shared_->arrived.notify_one();
  return idle;
}

void WorkerPool::reclaim(OwnerRef owner, std::vector<RunTask*>& out) {
  {
    Lock lock(shared_->mutex);
    auto& queue = shared_->queue;
    auto kept = queue.begin();
    for (RunTask* task : queue) {
      if (task->run->owner == owner) {
        out.push_back(task);
      } else {
        *kept++ = task;
      }
    }
    queue.erase(kept, queue.end());
    shared_->queued.store(queue.size(), std::memory_order_relaxed);
  }
  // What a worker takes between the two steps finds the owner's gate closed.
  for (const std::shared_ptr<Place>& place : places_) {
    for (std::atomic<RunTask*>& slot : place->taken) {
      RunTask* task = slot.load(std::memory_order_acquire);
      if (task == nullptr || task->run->owner != owner) continue;
      if (slot.compare_exchange_strong(task, nullptr, std::memory_order_acq_rel)) {
        out.push_back(task);
      }
    }
  }
}

void WorkerPool::abandon(OwnerRef owner) {
  std::vector<RunTask*> freed;
  std::size_t lost = 0;
  for (const std::shared_ptr<Place>& place : places_) {
    RunTask* running = place->running.load(std::memory_order_acquire);
    if (running == nullptr || running->run->owner != owner) continue;
    place->abandoned.store(true, std::memory_order_release);
    ++lost;
    for (std::atomic<RunTask*>& slot : place->taken) {
      if (RunTask* task = slot.exchange(nullptr, std::memory_order_acq_rel)) {
        freed.push_back(task);
      }
    }
    place->thread.detach();
  }
  if (lost == 0) return;
  abandoned_ += lost;
  std::erase_if(places_, [](const std::shared_ptr<Place>& place) {
    return place->abandoned.load(std::memory_order_relaxed);
  });
  Lock lock(shared_->mutex);
  shared_->workers -= lost;
  shared_->queue.insert(shared_->queue.begin(), freed.begin(), freed.end());
  shared_->queued.store(shared_->queue.size(), std::memory_order_relaxed);
  shared_->arrived.notify_all();
}

bool WorkerPool::grow(const std::shared_ptr<void>& keep) {
  const auto now = std::chrono::steady_clock::now();
  std::size_t add = 0;
  bool again = false;
  {
    Lock lock(shared_->mutex);
    const bool waiting = !shared_->queue.empty() && shared_->idle == 0;
    if (!waiting || shared_->workers >= workers_max_) {
      waiting_then_ = false;
      return false;
    }
    again = true;
    const std::size_t room = workers_max_ - shared_->workers;
    if (shared_->workers == 0) {
      add = 1;
    } else if (!waiting_then_) {
      waiting_then_ = true;
      looked_at_ = now;
      popped_then_ = shared_->popped + shared_->queue.size();
    } else if (now - looked_at_ >= growth_look) {
      // All that waited then has been taken since: the workers there are suffice.
      if (shared_->popped < popped_then_) {
        add = std::min({room, shared_->queue.size(), shared_->workers});
      }
      looked_at_ = now;
      popped_then_ = shared_->popped + shared_->queue.size();
    }
  }
  add_workers(add, keep);
  return again;
}

void WorkerPool::add_workers(std::size_t count, const std::shared_ptr<void>& keep) {
  for (std::size_t i = 0; i < count; ++i) {
    auto place = std::make_shared<Place>();
    {
      Lock lock(shared_->mutex);
      ++shared_->workers;
    }
    place->thread = std::thread(&WorkerPool::work, shared_, place, keep);
    places_.push_back(std::move(place));
  }
}

void WorkerPool::work(std::shared_ptr<Shared> shared, std::shared_ptr<Place> place,
                      std::shared_ptr<void> keep) {
  static_cast<void>(keep);
  Executor::Scratch scratch;
  double run_ns = at_once_ns;  // until it is known, one run at a time
  while (true) {
    std::size_t count = 0;
    {
      Lock lock(shared->mutex);
      while (shared->queue.empty() && !shared->stopping &&
             !place->abandoned.load(std::memory_order_acquire)) {
        ++shared->idle;
        shared->arrived.wait(shared->mutex);
        --shared->idle;
      }
      if (shared->queue.empty() || place->abandoned.load(std::memory_order_acquire)) break;
      const std::size_t share = std::max<std::size_t>(
          1, shared->queue.size() / (2 * std::max<std::size_t>(1, shared->workers)));
      const auto by_time = static_cast<std::size_t>(at_once_ns / std::max(run_ns, 1.0));
      count = std::min({share, runs_at_once_max, std::max<std::size_t>(1, by_time)});
      for (std::size_t i = 0; i < count; ++i) {
        place->taken[i].store(shared->queue.front(), std::memory_order_release);
        shared->queue.pop_front();
      }
      shared->popped += count;
      shared->queued.store(shared->queue.size(), std::memory_order_relaxed);
    }
    scratch.mark.reset();
    const auto began = std::chrono::steady_clock::now();
    std::size_t ran = 0;
    for (std::size_t i = 0; i < count; ++i) {
      RunTask* task = place->taken[i].exchange(nullptr, std::memory_order_acq_rel);
      if (task == nullptr) continue;
      place->running.store(task, std::memory_order_release);
      shared->execute(*task, scratch);
      place->running.store(nullptr, std::memory_order_release);
      ++ran;
    }
    if (ran > 0) {
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - began;
      const double each = spent.count() / static_cast<double>(ran);
      // Slower counts at once, faster little by little.
      run_ns = each > run_ns ? each : run_ns * 0.8 + each * 0.2;
    }
  }
  Lock lock(shared->mutex);
  if (!place->abandoned.load(std::memory_order_acquire)) --shared->workers;
  place->ended = true;
  shared->ended.notify_all();
}

void WorkerPool::stop(std::vector<RunTask*>& queued) {
  if (stopped_) return;
  stopped_ = true;
  {
    Lock lock(shared_->mutex);
    shared_->stopping = true;
    queued.insert(queued.end(), shared_->queue.begin(), shared_->queue.end());
    shared_->queue.clear();
    shared_->queued.store(0, std::memory_order_relaxed);
    shared_->arrived.notify_all();
  }
  const auto patience_ends = std::chrono::steady_clock::now() + stop_patience;
  for (const std::shared_ptr<Place>& place : places_) {
    bool inside = false;
    {
      Lock lock(shared_->mutex);
      while (!place->ended) {
        // A worker outside of a handler ends without waiting for anything.
        const auto now = std::chrono::steady_clock::now();
        inside = now >= patience_ends && place->running.load(std::memory_order_acquire) != nullptr;
        if (inside) break;
        static_cast<void>(
            shared_->ended.wait_until(shared_->mutex, now + std::chrono::milliseconds(1)));
      }
    }
    if (inside) {
      for (std::atomic<RunTask*>& slot : place->taken) {
        if (RunTask* task = slot.exchange(nullptr, std::memory_order_acq_rel)) {
          queued.push_back(task);
        }
      }
      place->thread.detach();
    } else {
      place->thread.join();
    }
  }
  places_.clear();
}

}  // namespace tenure::runtime
