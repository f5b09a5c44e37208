// A member process as its parent holds it.
//
// Role: starts this program again as `demo-member`, reads what it says, sends signals.
// Owns: the process (killed and waited for by the destructor) and the pipe ends.
// Threads: the one that started it, which must be the main thread: the process dies with the
//   thread that made it (PR_SET_PDEATHSIG), and so with us, however we end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "demo/member_line.hpp"
#include "demo/world.hpp"
#include "tenure/result.hpp"

namespace tenure::demo {

class Child {
 public:
  /// `log`: file that gets its stderr.
  static Result<Child> start(const MemberSettings& settings, const std::string& log);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// To be polled for reading; -1 when it has said its last.
  [[nodiscard]] int output() const { return output_; }

  /// What has come over the pipe; never waits.
  std::vector<MemberEvent> read();
  void tell(const std::string& command);
  void signal(int number) const;
  /// What the operating system says of it since the last call; never waits.
  std::vector<Observation> changes();

 private:
  Child(std::string name, pid_t pid, int input, int output)
      : name_(std::move(name)), pid_(pid), input_(input), output_(output) {}
  void close_all();

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string pending_;
};

}  // namespace tenure::demo
