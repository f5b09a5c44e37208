// The `exec` handler: records to a program in any language, over pipes.
//
// Role: makes a tenure::Handler (async) of a program that is not ours.
// Owns: the I/O thread, which owns the processes and the attempts they have.
// Threads: what handler() returns, begin_shutdown(), begin_close(): any; start(), close() one.
// Lifecycle: constructed -> start() -> records -> begin_close()/close(). The destructor closes
//   without waiting. Outlives every Runtime that uses its handler(); the logger, the event sink
//   and the records' source outlive it.
// Promises: each record gets exactly one outcome; no outcome is given while a process may still
//   work on the attempt, so a retry never overlaps it; while the program cannot be started
//   records wait and no attempt is counted; processes die with us, however we die; SIGPIPE is
//   never raised outside the I/O thread, where it is blocked.
// Does not promise: to stop a handler that goes on after a cancel; only its timeout ends it.
//   It takes any number of records; `concurrency` is the bound.
#pragma once

#include <chrono>
#include <memory>

#include "handler/exec_options.hpp"
#include "handler/handler_event.hpp"
#include "tenure/handler.hpp"
#include "tenure/port/logger.hpp"
#include "tenure/result.hpp"

namespace tenure::handler {

class ExecHandler {
 public:
  /// Takes a copy of the process environment for its programs.
  ExecHandler(ExecOptions options, Logger& logger, HandlerEventSink events);
  ~ExecHandler();
  ExecHandler(const ExecHandler&) = delete;
  ExecHandler& operator=(const ExecHandler&) = delete;

  /// Starts the I/O thread and with it the programs. Fails when the command is empty or the
  /// process has no descriptor or thread left; never because the program does not start: that is
  /// an event, and tried again.
  Result<void> start();

  /// Refers to this object.
  [[nodiscard]] Handler handler();

  /// The process is shutting down: cancels say so from now on.
  void begin_shutdown();
  /// Sends bye; nothing new is taken. Does not wait.
  void begin_close();
  /// begin_close(), then waits for the processes; those that are left after `limit` are killed.
  /// Records still in flight then are answered `retry`, class `handler_exit`. Call it when
  /// handlers are no longer called.
  void close(std::chrono::milliseconds limit);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace tenure::handler
