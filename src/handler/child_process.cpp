#include "handler/child_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace tenure::handler {
namespace {

/// Both ends close-on-exec and above stderr, so that moving them to 0, 1, 2 in the child never
/// overwrites one that is still needed.
bool make_pipe(Descriptor& read_end, Descriptor& write_end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(end);
    end = moved;
    errno = error;
  }
  read_end = Descriptor(ends[0]);
  write_end = Descriptor(ends[1]);
  return read_end.open() && write_end.open();
}

bool make_non_blocking(const Descriptor& descriptor) {
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  return flags >= 0 && ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) == 0;
}

struct ChildSide {
  int in, out, err, report;
  pid_t parent;
  const char* path;
  char* const* argv;
  char* const* envp;
  int descriptors_max;
};

/// Between vfork and exec: async-signal-safe calls only; of our memory errno alone is written.
[[noreturn]] void become(const ChildSide& side) {
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &plain, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl: then no signal will come.
  if (::getppid() != side.parent) ::_exit(127);
  bool good = ::dup2(side.in, STDIN_FILENO) >= 0 && ::dup2(side.out, STDOUT_FILENO) >= 0 &&
              ::dup2(side.err, STDERR_FILENO) >= 0;
  if (good) {
    // Descriptors that other libraries of this process opened without close-on-exec.
    constexpr unsigned int close_range_cloexec = 1U << 2;
    if (::syscall(SYS_close_range, 3U, ~0U, close_range_cloexec) != 0) {
      for (int fd = 3; fd < side.descriptors_max; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    ::execve(side.path, side.argv, side.envp);
  }
  const int error = errno;
  const ssize_t ignored = ::write(side.report, &error, sizeof error);
  ::_exit(ignored > 0 ? 127 : 126);
}

/// Memory is shared until the exec, so that a start costs the same however much of it we have (a
/// fork copies page tables: tens of milliseconds at some hundred MiB). All signals are blocked
/// from before it: no handler of ours may run in the child.
[[gnu::noinline]] pid_t start_child(const ChildSide& side) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(side);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

bool is_executable_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string explain(const std::string& command, const std::string& path, int error) {
  std::string_view fix;
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  switch (error) {
    case ENOENT:
      if (exists) {
        fix = "; the file is there, so the interpreter in its #! line is missing";
      } else if (command.find('/') == std::string::npos) {
        fix = "; not found in PATH";
      } else {
        fix = "; relative paths start at the working folder";
      }
      break;
    case EACCES:
      fix = exists && !S_ISDIR(status.st_mode) ? "; make it executable: chmod +x"
                                               : "; not a file that may be executed";
      break;
    case ENOEXEC:
      fix = "; a script needs a #! line; no shell is used";
      break;
    default:
      break;
  }
  return fmt::format("cannot start \"{}\": {} (errno {}){}", command,
                     std::strerror(error),  // NOLINT(concurrency-mt-unsafe): glibc's is
                     error, fix);
}

}  // namespace

void Descriptor::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

ProgramImage::ProgramImage(std::vector<std::string> arguments, std::vector<std::string> environment)
    : arguments_(std::move(arguments)), environment_(std::move(environment)) {}

std::string ProgramImage::find() const {
  if (command().find('/') != std::string::npos) return command();
  constexpr std::string_view name = "PATH=";
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& line : environment_) {
    if (line.starts_with(name)) path = std::string_view(line).substr(name.size());
  }
  while (true) {
    const std::size_t end = path.find(':');
    const std::string_view folder = path.substr(0, end);
    std::string candidate = folder.empty() ? "." : std::string(folder);
    candidate += '/';
    candidate += command();
    if (is_executable_file(candidate)) return candidate;
    if (end == std::string_view::npos) return command();
    path.remove_prefix(end + 1);
  }
}

std::vector<char*> ProgramImage::argv() const {
  std::vector<char*> pointers;
  pointers.reserve(arguments_.size() + 1);
  for (const std::string& text : arguments_) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<char*> ProgramImage::envp(const std::vector<std::string>& more) const {
  std::vector<char*> pointers;
  pointers.reserve(environment_.size() + more.size() + 1);
  for (const std::string& text : environment_) pointers.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : more) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : in(std::move(other.in)),
      out(std::move(other.out)),
      err(std::move(other.err)),
      pid_(std::exchange(other.pid_, 0)),
      pidfd_(std::move(other.pidfd_)),
      gone_(std::exchange(other.gone_, false)),
      exit_code_(other.exit_code_),
      term_signal_(other.term_signal_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    in = std::move(other.in);
    out = std::move(other.out);
    err = std::move(other.err);
    pid_ = std::exchange(other.pid_, 0);
    pidfd_ = std::move(other.pidfd_);
    gone_ = std::exchange(other.gone_, false);
    exit_code_ = other.exit_code_;
    term_signal_ = other.term_signal_;
  }
  return *this;
}

ChildProcess::~ChildProcess() {
  end();
}

void ChildProcess::end() noexcept {
  if (pid_ == 0 || gone_) return;
  signal(SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::spawn(const ProgramImage& image,
                         const std::vector<std::string>& more_environment, ChildProcess& child,
                         StartError& error) {
  const std::string path = image.find();
  const auto refused = [&](int number) {
    error = StartError{number, explain(image.command(), path, number)};
    return false;
  };
  Descriptor in_read, in_write, out_read, out_write, err_read, err_write, report_read, report_write;
  if (!make_pipe(in_read, in_write) || !make_pipe(out_read, out_write) ||
      !make_pipe(err_read, err_write) || !make_pipe(report_read, report_write) ||
      !make_non_blocking(in_write) || !make_non_blocking(out_read) ||
      !make_non_blocking(err_read)) {
    return refused(errno);
  }
  const std::vector<char*> argv = image.argv();
  const std::vector<char*> envp = image.envp(more_environment);
  const long limit = ::sysconf(_SC_OPEN_MAX);
  const ChildSide side{in_read.get(),
                       out_write.get(),
                       err_write.get(),
                       report_write.get(),
                       ::getpid(),
                       path.c_str(),
                       argv.data(),
                       envp.data(),
                       limit > 0 && limit < 65536 ? static_cast<int>(limit) : 65536};

  const pid_t pid = start_child(side);
  if (pid < 0) return refused(errno);

  // Both sides do it: whoever comes first, the group exists before anybody signals it.
  ::setpgid(pid, pid);
  report_write.close();
  int exec_error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_read.get(), &exec_error, sizeof exec_error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof exec_error)) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return refused(exec_error);
  }
  child.in = std::move(in_write);
  child.out = std::move(out_read);
  child.err = std::move(err_read);
  child.pid_ = pid;
  child.pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  child.gone_ = false;
  return true;
}

void ChildProcess::signal(int number) const {
  if (pid_ != 0 && !gone_) ::kill(-pid_, number);
}

bool ChildProcess::gone() {
  if (pid_ == 0 || gone_) return gone_;
  siginfo_t info{};
  // Looked at, not reaped: while the leader is a zombie its group id cannot be anybody else's.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (info.si_pid == 0) return false;
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) exit_code_ = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) term_signal_ = WTERMSIG(status);
  } else if (errno != ECHILD) {
    return false;
  }
  // ECHILD: somebody ignores SIGCHLD or waits for any child; the process is gone all the same.
  gone_ = true;
  return true;
}

std::string ChildProcess::how_it_ended() const {
  if (exit_code_ >= 0) return fmt::format("exit code {}", exit_code_);
  if (term_signal_ > 0) {
    const char* name = ::sigabbrev_np(term_signal_);
    return fmt::format("signal {} (SIG{})", term_signal_, name == nullptr ? "?" : name);
  }
  return "ended, status unknown";
}

}  // namespace tenure::handler
