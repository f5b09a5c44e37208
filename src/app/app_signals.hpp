// Signals of a long-running program, taken by one thread of ours.
//
// Role: turns TERM, INT, HUP and USR1 into calls.
// Owns: its thread and descriptors. Threads: `on_signal` is called on that thread.
// Lifecycle: block() before any other thread is made, so that all inherit the mask; then one
//   object; the destructor waits for a call in progress.
// Promises: no handler runs in signal context; SIGPIPE is ignored.
#pragma once

#include <functional>
#include <thread>

namespace tenure::app {

class Signals {
 public:
  /// Blocks what the object will take. Main thread, first of all.
  static void block();

  explicit Signals(std::function<void(int)> on_signal);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  int signals_ = -1;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace tenure::app
