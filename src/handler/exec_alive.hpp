// Mode `alive`: programs that stay and speak protocol version 1.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "handler/exec_pool.hpp"

namespace tenure::handler {

/// Owns: `processes` slots, each waiting for its next start or holding one process.
/// Promises: a process gets no record before its hello; an attempt that a process has is
///   answered by that process's outcome line or after it is gone, never earlier; each slot
///   starts again after restart_min, doubling to restart_max until a process has been of use.
class ExecAlive final : public ExecPool {
 public:
  ExecAlive(const ExecOptions& options, const ProgramImage& image, Logger& logger,
            const HandlerEventSink& events, ExecInbox& inbox);

  Time advance(Time now) override;
  void watch(std::vector<pollfd>& descriptors) override;
  void ready(std::span<const pollfd> descriptors, Time now) override;
  void kill_all() override;
  [[nodiscard]] bool empty() const override;

 protected:
  void close_processes(Time now) override;
  void cancel_running(Attempt& attempt, CancelCause cause) override;

 private:
  enum class State {
    waiting,   ///< no process; starts at `due`
    starting,  ///< hello sent; must answer by `due`
    ready,
    closing,  ///< bye sent; SIGTERM at `due`, then SIGKILL at `kill_at`
    ending,   ///< will take no more records; killed at `due` unless gone by itself
    closed,   ///< no process, for good
  };

  struct Slot {
    State state = State::waiting;
    Time due{};
    Time kill_at{};
    Time started{};
    ChildProcess child;
    LineReader lines;
    LineReader errors;
    std::string output;        ///< to be written to its stdin
    std::size_t written = 0;   ///< of `output`
    bool close_input = false;  ///< once `output` is written
    bool deaf = false;         ///< broke the protocol: nothing it says counts any more
    bool useful = false;       ///< has answered a record
    std::set<AttemptId> ids;   ///< attempts it has
    std::size_t overdue = 0;   ///< of these, past their timeout
    std::chrono::milliseconds backoff{};
    std::string cause;  ///< why it was killed; empty: it ended by itself
    std::string error;

    Slot() : lines(0), errors(log_line_bytes_max) {}
  };

  struct Expiry {
    Time at;
    AttemptId id;
  };

  enum class Stream { output, errors, input, exit };

  void expire(Time now);
  void act(std::size_t index, Time now);
  void start(Slot& slot, Time now);
  void dispatch(Time now);
  Slot* most_idle();
  void flush(Slot& slot, Time now);
  void read_output(Slot& slot, Time now);
  void take_lines(Slot& slot, Time now);
  void take_line(Slot& slot, std::string_view line, Time now);
  void take_outcome(Slot& slot, OutcomeLine line);
  void break_protocol(Slot& slot, const std::string& reason);
  /// A pipe was closed by the other side; a process that is ending does that.
  void lost_pipe(Slot& slot, std::string_view which, Time now);
  void kill(Slot& slot, std::string cause, std::string error);
  void ended(Slot& slot, Time now);
  void wait_for_start(Slot& slot, Time now);
  [[nodiscard]] std::size_t index_of(const Slot& slot) const;

  std::vector<Slot> slots_;
  std::deque<Expiry> timeouts_;  ///< ascending; answered ones are skipped
  std::deque<Expiry> graces_;    ///< ascending; answered ones are skipped
  std::vector<std::pair<std::size_t, Stream>> watched_;
};

}  // namespace tenure::handler
