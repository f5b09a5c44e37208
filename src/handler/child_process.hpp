// One process of a handler program and the three pipes to it.
//
// Role: starts it so that it cannot outlive us or hold what is ours, and knows when it is gone.
// Owns: pid, pidfd, our pipe ends. Threads: one, and it must live as long as the child: the
//   kernel sends the parent-death signal when the *thread* that made it ends.
// Lifecycle: spawn -> gone() turns true -> destroyed. Destroying a living one kills it.
// Promises: own process group; SIGKILL for the child when we die; no descriptor but 0, 1, 2;
//   default signal dispositions; our pipe ends are non-blocking; the whole group is killed
//   before the leader's pid is given back, so nothing of a gone child goes on.
// Does not promise: that grandchildren in a session of their own end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenure::handler {

/// A file descriptor; closed once. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

/// argv and environment in the form execve takes; prepared before the child exists.
class ProgramImage {
 public:
  /// `environment`: NAME=value.
  ProgramImage(std::vector<std::string> arguments, std::vector<std::string> environment);

  [[nodiscard]] const std::string& command() const { return arguments_.front(); }
  /// The file to execute: command() itself, or what the environment's PATH makes of it now.
  [[nodiscard]] std::string find() const;
  [[nodiscard]] std::vector<char*> argv() const;
  /// With further NAME=value lines behind those given.
  [[nodiscard]] std::vector<char*> envp(const std::vector<std::string>& more) const;

 private:
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
};

class ChildProcess {
 public:
  /// Why it did not start.
  struct StartError {
    int number = 0;    ///< errno
    std::string text;  ///< names command, errno and, where known, the fix
  };

  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  /// Waits until the program has been executed or refused. `child` must be empty.
  static bool spawn(const ProgramImage& image, const std::vector<std::string>& more_environment,
                    ChildProcess& child, StartError& error);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool empty() const { return pid_ == 0; }
  /// Readable once the process has ended; -1 where the kernel has none: ask gone() now and then.
  [[nodiscard]] int exit_fd() const { return pidfd_.get(); }

  /// To the whole group. Nothing once gone.
  void signal(int number) const;
  /// True from the moment the process has ended and its group was killed and it was reaped.
  bool gone();
  /// After gone(): -1 when it ended by a signal (or the status was taken from us).
  [[nodiscard]] int exit_code() const { return exit_code_; }
  [[nodiscard]] int term_signal() const { return term_signal_; }
  /// "exit code 3", "signal 9 (SIGKILL)".
  [[nodiscard]] std::string how_it_ended() const;

  Descriptor in;   ///< its stdin
  Descriptor out;  ///< its stdout
  Descriptor err;  ///< its stderr

 private:
  void end() noexcept;

  pid_t pid_ = 0;
  Descriptor pidfd_;
  bool gone_ = false;
  int exit_code_ = -1;
  int term_signal_ = 0;
};

}  // namespace tenure::handler
