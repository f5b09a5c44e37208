#include "runtime/boot_time.hpp"

#include <ctime>

#include "base/assert.hpp"

namespace tenure::runtime {

Instant BootTime::now() const {
  timespec time{};
  const int failed = clock_gettime(CLOCK_BOOTTIME, &time);
  TENURE_ASSERT(failed == 0, "R8 Linux has CLOCK_BOOTTIME");
  return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace tenure::runtime
