// A mutex, its lock and a condition with clang's thread-safety annotations (-Wthread-safety).
// Target of the project: no thread ever holds two of them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TENURE_ANNOTATE(x) __attribute__((x))
#else
#define TENURE_ANNOTATE(x)
#endif
/// Member `x` is read and written with mutex `m` held.
#define TENURE_GUARDED_BY(m) TENURE_ANNOTATE(guarded_by(m))
/// The function is called with mutex `m` held.
#define TENURE_REQUIRES(...) TENURE_ANNOTATE(requires_capability(__VA_ARGS__))
/// The function is called without mutex `m`.
#define TENURE_EXCLUDES(...) TENURE_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace tenure {

class TENURE_ANNOTATE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() TENURE_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() TENURE_ANNOTATE(release_capability()) { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() TENURE_ANNOTATE(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds a Mutex from its construction to its destruction.
class TENURE_ANNOTATE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) TENURE_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() TENURE_ANNOTATE(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits may end early without a reason: callers loop on their own condition.
class Condition {
 public:
  void wait(Mutex& mutex) TENURE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    static_cast<void>(held.release());
  }
  /// False when `until` has passed.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point until)
      TENURE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(held, until) == std::cv_status::no_timeout;
    static_cast<void>(held.release());
    return in_time;
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace tenure
