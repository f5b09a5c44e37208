// One attempt of one record on its way through an exec handler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "handler/child_process.hpp"
#include "handler/exec_protocol.hpp"
#include "tenure/completion.hpp"
#include "tenure/owner.hpp"
#include "tenure/record.hpp"

namespace tenure::handler {

class ExecInbox;

/// Tells the inbox that an attempt's stop token fired.
struct StopSignal {
  ExecInbox* inbox;
  AttemptId id;
  void operator()() const noexcept;
};

/// Made by submit(), then the I/O thread's. The record's view is good until `completion` is used.
struct Attempt {
  Attempt(const Record& of, Owner its_owner, Completion to)
      : record(of), owner(std::move(its_owner)), completion(std::move(to)) {}

  AttemptId id = 0;
  Record record;
  Owner owner;
  Completion completion;
  /// Its destructor waits for a running StopSignal: never destroy it under the inbox's lock.
  std::optional<std::stop_callback<StopSignal>> on_stop;

  std::optional<std::size_t> slot;  ///< of the process that has it; empty: waiting
  bool timed_out = false;
  std::string malformed;  ///< what was wrong with its outcome line
};

/// What other threads hand to the I/O thread.
///
/// Threads: put() and stop() any; take() the I/O thread. Promises: an entry wakes the I/O thread
/// through descriptor(); nothing put before refuse() is lost.
class ExecInbox {
 public:
  struct Content {
    std::vector<std::unique_ptr<Attempt>> attempts;
    std::vector<AttemptId> stopped;
    bool shutdown = false;  ///< cancels say so from now on
    bool close = false;
    bool kill = false;
  };

  /// False: no descriptor is left.
  [[nodiscard]] bool open();
  [[nodiscard]] int descriptor() const { return wake_.get(); }

  /// Takes the attempt and gives it its id; hands it back when nothing is taken any more.
  std::unique_ptr<Attempt> put(std::unique_ptr<Attempt> attempt);
  void stop(AttemptId id);
  void set_shutdown();
  void set_close();
  void set_kill();

  /// Everything since the last call; the flags stay set.
  Content take();

 private:
  void wake() TENURE_REQUIRES(mutex_);

  Descriptor wake_;
  Mutex mutex_;
  Content content_ TENURE_GUARDED_BY(mutex_);
  AttemptId last_id_ TENURE_GUARDED_BY(mutex_) = 0;
  bool signalled_ TENURE_GUARDED_BY(mutex_) = false;
};

}  // namespace tenure::handler
