// Fires stop tokens away from the loop thread, since what users registered with them
// (std::stop_callback) runs inside request_stop().
//
// Owns: its thread, made at the first use. Threads: fire() and stop() on the loop thread.
// Promises: fire() does not wait; a callback that hangs blocks neither the loop nor stop() (its
//   thread is then detached).
// Does not promise: a hanging callback delays the tokens of other owners behind it.
#pragma once

#include <memory>
#include <thread>

#include "ports/owner_cell.hpp"

namespace tenure::runtime {

class StopNotifier {
 public:
  StopNotifier();
  ~StopNotifier();
  StopNotifier(const StopNotifier&) = delete;
  StopNotifier& operator=(const StopNotifier&) = delete;

  void fire(std::shared_ptr<detail::OwnerCell> cell);
  void stop();

 private:
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace tenure::runtime
