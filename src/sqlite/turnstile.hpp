// Hands the one writing connection from holder to holder, first come first served.
//
// Owns: the queue of those who wait. Threads: any. Promises: one holder at a time; a waiter that
// is cancelled or too late leaves the queue at once. Does not promise: anything about how long a
// holder takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>

#include "base/mutex.hpp"

namespace tenure::sqlite {

class Turnstile {
 public:
  enum class Entry { taken, too_late, cancelled };

  /// One who may wait or hold. Outlives its enter() and leave().
  class Waiter {
   private:
    friend class Turnstile;
    Condition wake_;
    bool cancelled_ = false;
  };

  Entry enter(Waiter& waiter, std::chrono::steady_clock::time_point deadline)
      TENURE_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (closed_ || waiter.cancelled_) return Entry::cancelled;
    if (holder_ == nullptr && queue_.empty()) {
      holder_ = &waiter;
      return Entry::taken;
    }
    queue_.push_back(&waiter);
    bool in_time = true;
    while (holder_ != &waiter) {
      if (!in_time || closed_ || waiter.cancelled_) {
        std::erase(queue_, &waiter);
        return closed_ || waiter.cancelled_ ? Entry::cancelled : Entry::too_late;
      }
      in_time = waiter.wake_.wait_until(mutex_, deadline);
    }
    return Entry::taken;
  }

  void leave(Waiter& waiter) TENURE_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (holder_ != &waiter) return;
    holder_ = nullptr;
    if (queue_.empty()) return;
    holder_ = queue_.front();
    queue_.pop_front();
    holder_->wake_.notify_one();
  }

  /// Ends the waiting of `waiter`, now and for ever; a holder stays one.
  void cancel(Waiter& waiter) TENURE_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    waiter.cancelled_ = true;
    waiter.wake_.notify_one();
  }

  /// Ends all waiting, for ever.
  void close() TENURE_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    closed_ = true;
    for (Waiter* waiter : queue_) waiter->wake_.notify_one();
  }

  [[nodiscard]] std::size_t waiting() TENURE_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return queue_.size();
  }

  /// Runs `call` while `waiter` is sure to hold; false when it does not.
  bool while_held_by(const Waiter& waiter, const std::function<void()>& call)
      TENURE_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (holder_ != &waiter) return false;
    call();
    return true;
  }

 private:
  Mutex mutex_;
  Waiter* holder_ TENURE_GUARDED_BY(mutex_) = nullptr;
  std::deque<Waiter*> queue_ TENURE_GUARDED_BY(mutex_);
  bool closed_ TENURE_GUARDED_BY(mutex_) = false;
};

}  // namespace tenure::sqlite
