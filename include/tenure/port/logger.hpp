// Lines for people that are no events: client library logs, handler stderr.
#pragma once

#include <string_view>

#include "tenure/event.hpp"

namespace tenure {

/// Any thread; outlives the Runtime. Never passed a payload or a secret.
class Logger {
 public:
  virtual ~Logger() = default;
  [[nodiscard]] virtual bool enabled(Level level) const = 0;
  virtual void write(Level level, std::string_view facility, std::string_view text) = 0;
};

}  // namespace tenure
