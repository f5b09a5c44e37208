#include "handler/exec_attempt.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace tenure::handler {

void StopSignal::operator()() const noexcept {
  inbox->stop(id);
}

bool ExecInbox::open() {
  wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return wake_.open();
}

std::unique_ptr<Attempt> ExecInbox::put(std::unique_ptr<Attempt> attempt) {
  const Lock lock(mutex_);
  if (content_.close) return attempt;
  attempt->id = ++last_id_;
  content_.attempts.push_back(std::move(attempt));
  wake();
  return nullptr;
}

void ExecInbox::stop(AttemptId id) {
  const Lock lock(mutex_);
  content_.stopped.push_back(id);
  wake();
}

void ExecInbox::set_shutdown() {
  const Lock lock(mutex_);
  content_.shutdown = true;
  wake();
}

void ExecInbox::set_close() {
  const Lock lock(mutex_);
  content_.close = true;
  wake();
}

void ExecInbox::set_kill() {
  const Lock lock(mutex_);
  content_.close = true;
  content_.kill = true;
  wake();
}

ExecInbox::Content ExecInbox::take() {
  const Lock lock(mutex_);
  if (signalled_) {
    std::uint64_t count = 0;
    static_cast<void>(::read(wake_.get(), &count, sizeof count));
    signalled_ = false;
  }
  Content taken;
  taken.attempts.swap(content_.attempts);
  taken.stopped.swap(content_.stopped);
  taken.shutdown = content_.shutdown;
  taken.close = content_.close;
  taken.kill = content_.kill;
  return taken;
}

void ExecInbox::wake() {
  if (signalled_) return;
  const std::uint64_t one = 1;
  signalled_ = ::write(wake_.get(), &one, sizeof one) == static_cast<ssize_t>(sizeof one);
}

}  // namespace tenure::handler
