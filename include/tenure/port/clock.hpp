// The runtime's only source of time.
#pragma once

#include "tenure/time.hpp"

namespace tenure {

/// Any thread; outlives the Runtime.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Never goes back; goes on while the machine is suspended (CLOCK_BOOTTIME).
  [[nodiscard]] virtual Instant now() const = 0;
};

}  // namespace tenure
