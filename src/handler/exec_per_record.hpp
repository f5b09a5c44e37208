// Mode `per_record`: the program is started once for each attempt.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handler/exec_pool.hpp"

namespace tenure::handler {

/// `text` with every byte but RFC 3986's unreserved ones as %XX.
std::string percent_encoded(std::string_view text);

/// TENURE_RECORD_* of one attempt, as NAME=value.
std::vector<std::string> record_environment(const Record& record, const Owner& owner);

/// What the end of a process means (6-interface, section 4). `exit_code` -1: ended by a signal;
/// `ending` tells how, for people; `errors` are the first bytes of its stderr.
Outcome outcome_of_exit(int exit_code, bool timed_out, const ExecOptions& options,
                        std::string_view ending, std::string_view errors);

/// Owns: up to `processes` processes at once. Promises: an attempt is answered after its process
///   is gone; a program that cannot be started costs no attempt, its records wait.
/// Does not promise: to end a process when its owner ends; only the timeout does (and close).
class ExecPerRecord final : public ExecPool {
 public:
  ExecPerRecord(const ExecOptions& options, const ProgramImage& image, Logger& logger,
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
  struct Slot {
    ChildProcess child;
    AttemptId id = 0;
    std::string_view input;  ///< of the record's value, still to be written
    LineReader output;
    LineReader errors;
    std::string reason;  ///< first bytes of its stderr
    Time due{};          ///< timeout, then SIGKILL
    bool timed_out = false;
    bool closing = false;  ///< `due` is close_term's, then close_kill's

    Slot() : output(log_line_bytes_max), errors(log_line_bytes_max) {}
  };

  enum class Stream { output, errors, input, exit };

  void start(std::size_t index, Time now);
  void expire(Slot& slot, Time now);
  void write_input(Slot& slot);
  void read_output(Slot& slot);
  void read_errors(Slot& slot);
  void ended(Slot& slot);

  std::vector<Slot> slots_;
  Time start_at_{};                      ///< after a start that failed
  Time kill_at_ = Time::max();           ///< closing
  std::chrono::milliseconds backoff_{};  ///< of starts that fail
  std::vector<std::pair<std::size_t, Stream>> watched_;
};

}  // namespace tenure::handler
