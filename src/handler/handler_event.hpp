// What happened to a handler's process: handler.started, handler.exited, handler.protocol_error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tenure/event.hpp"

namespace tenure::handler {

/// A value. `cause`: exit, signal, timeout, protocol, start (never ran) or shutdown; empty for
/// handler.started.
struct HandlerEvent {
  EventName name = EventName::handler_started;
  std::int64_t pid = 0;  ///< 0: no process was made
  std::string cause;
  std::string error;  ///< for people; no payload
};

/// Any thread; must not block or throw. Whoever wires it passes the event on to the loop thread.
using HandlerEventSink = std::function<void(HandlerEvent)>;

}  // namespace tenure::handler
