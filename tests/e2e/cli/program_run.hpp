// Runs the program `tenure`, or another one, as a user would, and looks at what it says.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenure::e2e {

/// A folder of a test's own.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenure-e2e-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text, bool program = false) const {
    std::ofstream(file(name)) << text;
    if (program) std::filesystem::permissions(file(name), std::filesystem::perms(0755));
    return file(name);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

/// Role: one process with both outputs on pipes. It dies with the test that started it.
class ProgramRun {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  explicit ProgramRun(std::vector<std::string> arguments,
                      std::map<std::string, std::string> environment = {},
                      std::string program = TENURE_PROGRAM)
      : began_(Clock::now()) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) return;
    std::vector<char*> argv = {program.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      const int nothing = ::open("/dev/null", O_RDONLY);
      ::dup2(nothing, STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      ::execv(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(err[1]);
    for (const int descriptor : {out[0], err[0]}) ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    descriptors_ = {out[0], err[0]};
  }
  ~ProgramRun() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const int descriptor : descriptors_) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  [[nodiscard]] const std::string& out() const { return texts_[0]; }
  [[nodiscard]] const std::string& err() const { return texts_[1]; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  /// Whether the program takes this signal itself by now, instead of dying of it.
  [[nodiscard]] bool blocks(int number) const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1U) != 0;
    }
    return false;
  }

  /// Waits until `seen` is true of what was said, or the process ends, or time is up.
  bool until(const std::function<bool()>& seen, Milliseconds limit = Milliseconds(30'000)) {
    const auto deadline = Clock::now() + limit;
    while (!seen()) {
      if (Clock::now() > deadline || !read_some()) return seen();
    }
    return true;
  }
  bool says(const std::string& text, Milliseconds limit = Milliseconds(30'000)) {
    return until(
        [&] {
          return err().find(text) != std::string::npos || out().find(text) != std::string::npos;
        },
        limit);
  }
  /// Exit code, 128 + signal, or -1 when it did not end in time.
  int ends(Milliseconds limit = Milliseconds(30'000)) {
    const auto deadline = Clock::now() + limit;
    while (Clock::now() < deadline) {
      const bool more = read_some();
      int status = 0;
      if (::waitpid(pid_, &status, more ? WNOHANG : 0) == pid_) {
        while (read_some()) {
        }
        pid_ = -1;
        took_ = std::chrono::duration_cast<Milliseconds>(Clock::now() - began_);
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
    }
    return -1;
  }
  [[nodiscard]] Milliseconds took() const { return took_; }

 private:
  /// Waits 50 ms at most. False: both outputs are closed.
  bool read_some() {
    std::array<pollfd, 2> polled = {{{descriptors_[0], POLLIN, 0}, {descriptors_[1], POLLIN, 0}}};
    if (descriptors_[0] < 0 && descriptors_[1] < 0) return false;
    ::poll(polled.data(), polled.size(), 50);
    for (std::size_t i = 0; i < 2; ++i) {
      if (descriptors_[i] < 0 || polled[i].revents == 0) continue;
      std::array<char, 8192> buffer{};
      const ssize_t got = ::read(descriptors_[i], buffer.data(), buffer.size());
      if (got > 0) {
        texts_[i].append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EAGAIN) {
        ::close(descriptors_[i]);
        descriptors_[i] = -1;
      }
    }
    return true;
  }

  const Clock::time_point began_;
  pid_t pid_ = -1;
  std::array<int, 2> descriptors_ = {-1, -1};
  std::array<std::string, 2> texts_;
  Milliseconds took_{};
};

}  // namespace tenure::e2e
