// Time as the runtime sees it: one clock that never goes back and that counts suspends.
#pragma once

#include <chrono>
#include <cstdint>

namespace tenure {

using Duration = std::chrono::nanoseconds;

/// Tag of the runtime's only clock (CLOCK_BOOTTIME in production: steady, and it counts the
/// time a machine was suspended, which the lease of R8 needs). No now(): time is passed in.
struct BootClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};

using Instant = BootClock::time_point;
/// A point in time by which something ends.
using Deadline = Instant;

inline constexpr Instant never = Instant::max();

/// `at + wait`, saturating at `never`.
constexpr Instant after(Instant at, Duration wait) {
  return wait > never - at ? never : at + wait;
}

}  // namespace tenure
