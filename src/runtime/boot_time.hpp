// The production clock: CLOCK_BOOTTIME, steady, and running on while the machine is suspended
// (R8). No state; any thread.
#pragma once

#include "tenure/port/clock.hpp"

namespace tenure::runtime {

class BootTime final : public Clock {
 public:
  [[nodiscard]] Instant now() const override;
};

}  // namespace tenure::runtime
