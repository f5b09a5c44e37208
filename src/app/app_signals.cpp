#include "app/app_signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "base/assert.hpp"

namespace tenure::app {
namespace {

sigset_t taken() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

void Signals::block() {
  const sigset_t set = taken();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
}

Signals::Signals(std::function<void(int)> on_signal) {
  const sigset_t set = taken();
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  TENURE_ASSERT(signals_ >= 0 && wake_ >= 0, "a process has two descriptors for its signals");
  thread_ = std::thread([this, handle = std::move(on_signal)] {
    std::array<pollfd, 2> polled = {{{signals_, POLLIN, 0}, {wake_, POLLIN, 0}}};
    while (true) {
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;
      if (polled[1].revents != 0) return;
      signalfd_siginfo info = {};
      while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        handle(static_cast<int>(info.ssi_signo));
      }
    }
  });
}

Signals::~Signals() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof one));
  thread_.join();
  ::close(signals_);
  ::close(wake_);
}

}  // namespace tenure::app
