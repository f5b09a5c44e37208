#include "demo/child.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace tenure::demo {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

bool make(Pipe& pipe) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  pipe = {ends[0], ends[1]};
  return true;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // it has gone; its exit says so
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Result<Child> Child::start(const MemberSettings& settings, const std::string& log) {
  const auto failed = [&](const char* what) {
    return fail(Code::unavailable,
                "cannot start member " + settings.name + ": " + what + ": " + ::strerror(errno));
  };
  Pipe in;
  Pipe out;
  if (!make(in) || !make(out)) return failed("pipe");
  const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_file < 0) return failed(log.c_str());
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failed("fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(in.read, STDIN_FILENO);
    ::dup2(out.write, STDOUT_FILENO);
    ::dup2(log_file, STDERR_FILENO);
    // A terminal's Ctrl-C is for the parent, which ends its members in order.
    ::setpgid(0, 0);
    ::execl("/proc/self/exe", "tenure", "demo-member", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(in.read);
  ::close(out.write);
  ::close(log_file);
  ::fcntl(out.read, F_SETFL, O_NONBLOCK);
  Child child(settings.name, pid, in.write, out.read);
  write_all(child.input_, to_line(settings));
  return child;
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)), output_(std::exchange(other.output_, -1)),
      pending_(std::move(other.pending_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    close_all();
    name_ = std::move(other.name_);
    pid_ = std::exchange(other.pid_, -1);
    input_ = std::exchange(other.input_, -1);
    output_ = std::exchange(other.output_, -1);
    pending_ = std::move(other.pending_);
  }
  return *this;
}

Child::~Child() { close_all(); }

void Child::close_all() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  for (int* descriptor : {&input_, &output_}) {
    if (*descriptor >= 0) ::close(*descriptor);
    *descriptor = -1;
  }
}

std::vector<MemberEvent> Child::read() {
  std::vector<MemberEvent> events;
  std::array<char, 16384> buffer{};
  while (output_ >= 0) {
    const ssize_t got = ::read(output_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      ::close(output_);
      output_ = -1;
      break;
    }
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    if (auto event = event_of(std::string_view(pending_).substr(begin, end - begin))) {
      events.push_back(std::move(*event));
    }
  }
  pending_.erase(0, begin);
  return events;
}

void Child::tell(const std::string& command) {
  if (input_ >= 0) write_all(input_, command + "\n");
}

void Child::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::vector<Observation> Child::changes() {
  std::vector<Observation> out;
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_) {
    if (WIFSTOPPED(status)) {
      out.emplace_back(Stopped{name_});
      continue;
    }
    pid_ = -1;
    // What it said last comes first.
    for (MemberEvent& event : read()) out.emplace_back(Told{name_, std::move(event)});
    Exited exited;
    exited.member = name_;
    exited.killed = WIFSIGNALED(status);
    exited.code = exited.killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    out.emplace_back(exited);
  }
  return out;
}

}  // namespace tenure::demo
