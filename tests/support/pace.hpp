// Lets time pass where time itself is what a test is about: the pace of a load, or of looks at a
// condition that only another process can tell. Never a substitute for the condition.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tenure::testing {

inline void pace_until(std::chrono::steady_clock::time_point next) {
  std::mutex mutex;
  std::condition_variable nobody;
  std::unique_lock lock(mutex);
  while (std::chrono::steady_clock::now() < next) nobody.wait_until(lock, next);
}

}  // namespace tenure::testing
