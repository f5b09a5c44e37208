#include "handler/exec_pool.hpp"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/json_text.hpp"

namespace tenure::handler {
namespace {

CancelCause cause_of(const Attempt& attempt, bool shutdown) {
  if (const auto reason = attempt.owner.retired_reason(); reason) {
    switch (*reason) {
      case RetiredReason::revoked:
        return CancelCause::revoked;
      case RetiredReason::shutdown:
        return CancelCause::shutdown;
      case RetiredReason::lost:
      case RetiredReason::fatal:
      case RetiredReason::superseded:
        return CancelCause::lost;
    }
  }
  return shutdown ? CancelCause::shutdown : CancelCause::revoked;
}

Outcome owner_is_ending() {
  return retry({}, "not handed to the handler: the owner is ending", "no_outcome");
}

}  // namespace

// What is left is answered by its Completion (class no_outcome).
ExecPool::~ExecPool() = default;

void ExecPool::take(std::unique_ptr<Attempt> attempt) {
  const AttemptId id = attempt->id;
  Attempt& taken = *attempt;
  attempts_.emplace(id, std::move(attempt));
  queue_.push_back(id);
  // Fires at once, into the inbox, when the token has fired already.
  taken.on_stop.emplace(taken.owner.stop_token(), StopSignal{&inbox_, id});
}

void ExecPool::stopped(AttemptId id, bool shutdown) {
  Attempt* attempt = find(id);
  if (attempt == nullptr) return;
  if (attempt->slot) {
    cancel_running(*attempt, cause_of(*attempt, shutdown));
  } else {
    finish(id, owner_is_ending());
  }
}

void ExecPool::begin_close(Time now) {
  if (closing_) return;
  closing_ = true;
  while (const Attempt* attempt = front()) {
    finish(attempt->id, retry({}, "not handed to the handler: shutting down", "no_outcome"));
  }
  close_processes(now);
}

Attempt* ExecPool::front() {
  while (!queue_.empty()) {
    Attempt* attempt = find(queue_.front());
    const bool waits = attempt != nullptr && !attempt->slot;
    // The news may still be in the inbox; work that starts now could hardly end in time.
    const bool ending = waits && attempt->owner.stop_token().stop_requested();
    if (waits && !ending) return attempt;
    if (ending) finish(attempt->id, owner_is_ending());
    queue_.pop_front();
  }
  return nullptr;
}

void ExecPool::pop_front(std::size_t slot) {
  front()->slot = slot;
  queue_.pop_front();
}

Attempt* ExecPool::find(AttemptId id) {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : found->second.get();
}

void ExecPool::finish(AttemptId id, Outcome outcome) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return;
  const std::unique_ptr<Attempt> attempt = std::move(found->second);
  attempts_.erase(found);
  attempt->on_stop.reset();
  static_cast<void>(std::move(attempt->completion).complete(std::move(outcome)));
}

void ExecPool::emit(EventName name, std::int64_t pid, std::string cause, std::string error) const {
  if (events_) events_(HandlerEvent{name, pid, std::move(cause), std::move(error)});
}

void ExecPool::log_lines(LineReader& lines, std::int64_t pid) {
  std::string_view line;
  while (lines.next_piece(line)) log_line(line, pid);
}

void ExecPool::log_rest(LineReader& lines, std::int64_t pid) {
  if (!lines.rest().empty()) log_line(lines.rest(), pid);
  lines.clear();
}

void ExecPool::log_line(std::string_view line, std::int64_t pid) {
  if (!logger_.enabled(Level::info)) return;
  logger_.write(Level::info, "handler", fmt::format("[{}] {}", pid, to_utf8(line)));
}

ExecPool::Read ExecPool::read_once(int descriptor, std::span<char> buffer, std::size_t& size) {
  while (true) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got > 0) {
      size = static_cast<std::size_t>(got);
      return Read::bytes;
    }
    if (got == 0) return Read::ended;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Read::blocked : Read::ended;
  }
}

}  // namespace tenure::handler
