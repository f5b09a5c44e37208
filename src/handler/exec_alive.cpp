#include "handler/exec_alive.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace tenure::handler {
namespace {

/// Beyond this much unread input a process gets no further record: it would only cost memory.
constexpr std::size_t output_bytes_max = 65536;
/// From a closed pipe to the kill; a process that exits needs far less.
constexpr std::chrono::milliseconds pipe_grace{1000};
/// How often a process is asked for where the kernel has no pidfd.
constexpr std::chrono::milliseconds exit_check{20};

}  // namespace

ExecAlive::ExecAlive(const ExecOptions& options, const ProgramImage& image, Logger& logger,
                     const HandlerEventSink& events, ExecInbox& inbox)
    : ExecPool(options, image, logger, events, inbox), slots_(options.processes) {
  for (Slot& slot : slots_) slot.lines = LineReader(options.line_bytes);
}

Time ExecAlive::advance(Time now) {
  expire(now);
  for (std::size_t i = 0; i < slots_.size(); ++i) act(i, now);
  dispatch(now);
  for (Slot& slot : slots_) flush(slot, now);

  Time wake = Time::max();
  for (const Slot& slot : slots_) {
    const bool timed = slot.state != State::ready && slot.state != State::closed;
    if (timed) wake = std::min(wake, slot.due);
    if (!slot.child.empty() && slot.child.exit_fd() < 0) wake = std::min(wake, now + exit_check);
  }
  if (!timeouts_.empty()) wake = std::min(wake, timeouts_.front().at);
  if (!graces_.empty()) wake = std::min(wake, graces_.front().at);
  return wake;
}

void ExecAlive::expire(Time now) {
  while (!timeouts_.empty() &&
         (timeouts_.front().at <= now || find(timeouts_.front().id) == nullptr)) {
    const AttemptId id = timeouts_.front().id;
    timeouts_.pop_front();
    Attempt* attempt = find(id);
    if (attempt == nullptr) continue;
    Slot& slot = slots_[*attempt->slot];
    attempt->timed_out = true;
    ++slot.overdue;
    append_cancel(slot.output, id, CancelCause::timeout);
    graces_.push_back(Expiry{now + options().cancel_grace, id});
  }
  while (!graces_.empty() && (graces_.front().at <= now || find(graces_.front().id) == nullptr)) {
    const AttemptId id = graces_.front().id;
    graces_.pop_front();
    Attempt* attempt = find(id);
    if (attempt == nullptr) continue;
    kill(slots_[*attempt->slot], "timeout",
         fmt::format("no answer to record \"{}\" within {} ms, nor in {} ms after the cancel", id,
                     options().timeout.count(), options().cancel_grace.count()));
  }
}

void ExecAlive::act(std::size_t index, Time now) {
  Slot& slot = slots_[index];
  if (slot.state == State::waiting && slot.due <= now) start(slot, now);
  if (!slot.child.empty() && slot.child.exit_fd() < 0 && slot.child.gone()) ended(slot, now);
  if (slot.child.empty() || slot.due > now) return;
  switch (slot.state) {
    case State::starting:
      emit(EventName::handler_protocol_error, slot.child.pid(), "timeout",
           fmt::format("no hello within {} ms", options().start_limit.count()));
      kill(slot, "timeout", fmt::format("no hello within {} ms", options().start_limit.count()));
      break;
    case State::closing:
      if (now < slot.kill_at) {
        slot.child.signal(SIGTERM);
        slot.due = slot.kill_at;
      } else {
        kill(slot, "shutdown", "did not end after bye and SIGTERM");
      }
      break;
    case State::ending:
      // Only lost_pipe() gives an ending process a due time.
      break_protocol(slot, slot.error);
      break;
    case State::waiting:
    case State::ready:
    case State::closed:
      break;
  }
}

void ExecAlive::start(Slot& slot, Time now) {
  ChildProcess::StartError error;
  if (!ChildProcess::spawn(image(), {}, slot.child, error)) {
    wait_for_start(slot, now);
    emit(EventName::handler_exited, 0, "start",
         fmt::format("{}; next try in {} ms", error.text, slot.backoff.count()));
    return;
  }
  slot.state = State::starting;
  slot.started = now;
  slot.due = now + options().start_limit;
  append_hello(slot.output, options());
  emit(EventName::handler_started, slot.child.pid(), {}, {});
}

void ExecAlive::dispatch(Time now) {
  while (const Attempt* attempt = front()) {
    Slot* slot = most_idle();
    if (slot == nullptr) return;
    const AttemptId id = attempt->id;
    append_record(slot->output, id, attempt->record, attempt->owner, options().timeout);
    slot->ids.insert(id);
    pop_front(index_of(*slot));
    timeouts_.push_back(Expiry{now + options().timeout, id});
    if (slot->output.size() - slot->written > output_bytes_max) flush(*slot, now);
  }
}

ExecAlive::Slot* ExecAlive::most_idle() {
  Slot* best = nullptr;
  for (Slot& slot : slots_) {
    // A process that is late with one record may be killed soon: spare others its end.
    const bool takes = slot.state == State::ready && slot.overdue == 0 &&
                       slot.ids.size() < options().in_flight &&
                       slot.output.size() - slot.written <= output_bytes_max;
    if (takes && (best == nullptr || slot.ids.size() < best->ids.size())) best = &slot;
  }
  return best;
}

void ExecAlive::flush(Slot& slot, Time now) {
  while (slot.child.in.open() && slot.written < slot.output.size()) {
    const ssize_t put = ::write(slot.child.in.get(), slot.output.data() + slot.written,
                                slot.output.size() - slot.written);
    if (put >= 0) {
      slot.written += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      slot.child.in.close();
      lost_pipe(slot, "stdin", now);
    }
  }
  slot.output.clear();
  slot.written = 0;
  if (slot.close_input) slot.child.in.close();
}

void ExecAlive::watch(std::vector<pollfd>& descriptors) {
  watched_.clear();
  const auto add = [&](std::size_t slot, Stream stream, int descriptor, short events) {
    if (descriptor < 0) return;
    descriptors.push_back(pollfd{descriptor, events, 0});
    watched_.emplace_back(slot, stream);
  };
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.child.empty()) continue;
    add(i, Stream::output, slot.child.out.get(), POLLIN);
    add(i, Stream::errors, slot.child.err.get(), POLLIN);
    // Without a wish poll still tells when the other side has closed it.
    const bool waits = slot.written < slot.output.size();
    add(i, Stream::input, slot.child.in.get(), waits ? POLLOUT : static_cast<short>(0));
    add(i, Stream::exit, slot.child.exit_fd(), POLLIN);
  }
}

void ExecAlive::ready(std::span<const pollfd> descriptors, Time now) {
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i].revents == 0) continue;
    Slot& slot = slots_[watched_[i].first];
    switch (watched_[i].second) {
      case Stream::output:
        read_output(slot, now);
        break;
      case Stream::errors:
        if (!log_output(slot.child.err.get(), slot.errors, slot.child.pid(),
                        [](std::string_view) {})) {
          slot.child.err.close();
        }
        break;
      case Stream::input:
        if ((descriptors[i].revents & POLLERR) != 0) {
          slot.child.in.close();
          lost_pipe(slot, "stdin", now);
        } else {
          flush(slot, now);
        }
        break;
      case Stream::exit:
        if (slot.child.gone()) ended(slot, now);
        break;
    }
  }
}

void ExecAlive::read_output(Slot& slot, Time now) {
  const bool open = read_some(slot.child.out.get(), [&](std::string_view bytes) {
    if (slot.deaf) return true;
    slot.lines.append(bytes);
    take_lines(slot, now);
    return true;
  });
  if (open) return;
  slot.child.out.close();
  lost_pipe(slot, "stdout", now);
}

void ExecAlive::take_lines(Slot& slot, Time now) {
  std::string_view line;
  while (!slot.deaf && slot.lines.next(line)) take_line(slot, line, now);
  if (!slot.deaf && slot.lines.too_long()) {
    break_protocol(slot,
                   fmt::format("a line is longer than line_bytes ({})", options().line_bytes));
  }
}

void ExecAlive::take_line(Slot& slot, std::string_view text, Time now) {
  auto line = read_line(text);
  if (auto* bad = std::get_if<BadLine>(&line); bad != nullptr) {
    Attempt* attempt = bad->id ? find(*bad->id) : nullptr;
    if (attempt != nullptr && slot.ids.contains(*bad->id)) attempt->malformed = bad->reason;
    break_protocol(slot, bad->reason);
  } else if (auto* outcome = std::get_if<OutcomeLine>(&line); outcome != nullptr) {
    take_outcome(slot, std::move(*outcome));
  } else if (slot.state == State::starting) {
    slot.state = State::ready;
    slot.due = now;
  } else if (!(slot.state == State::closing && !slot.useful && slot.ids.empty())) {
    // Closing before the hello was answered: the answer crosses our bye.
    break_protocol(slot, "a second hello");
  }
}

void ExecAlive::take_outcome(Slot& slot, OutcomeLine line) {
  if (slot.ids.erase(line.id) == 0) {
    break_protocol(slot, fmt::format("unknown or repeated id \"{}\"", line.id));
    return;
  }
  slot.useful = true;
  if (find(line.id)->timed_out) --slot.overdue;
  finish(line.id, std::move(line.outcome));
}

void ExecAlive::break_protocol(Slot& slot, const std::string& reason) {
  slot.deaf = true;
  emit(EventName::handler_protocol_error, slot.child.pid(), "protocol", reason);
  kill(slot, "protocol", reason);
}

void ExecAlive::lost_pipe(Slot& slot, std::string_view which, Time now) {
  if (slot.state != State::starting && slot.state != State::ready) return;
  slot.state = State::ending;
  slot.due = now + pipe_grace;
  slot.error = fmt::format("closed its {} and went on running", which);
}

void ExecAlive::kill(Slot& slot, std::string cause, std::string error) {
  if (slot.child.empty()) return;
  slot.child.signal(SIGKILL);
  if (slot.cause.empty()) {
    slot.cause = std::move(cause);
    slot.error = std::move(error);
  }
  slot.state = State::ending;
  slot.due = Time::max();
}

void ExecAlive::ended(Slot& slot, Time now) {
  // What it said before it went still counts.
  if (slot.child.out.open()) read_output(slot, now);
  if (slot.child.err.open()) {
    log_output(slot.child.err.get(), slot.errors, slot.child.pid(), [](std::string_view) {});
  }
  log_rest(slot.errors, slot.child.pid());

  const std::string how = slot.child.how_it_ended();
  const bool was_closing = slot.state == State::closing;
  std::string cause = slot.cause;
  std::string error = how;
  if (cause.empty()) {
    cause = was_closing ? "shutdown" : slot.child.term_signal() != 0 ? "signal" : "exit";
  } else {
    error = fmt::format("{}; {}", slot.error, how);
  }
  for (const AttemptId id : std::exchange(slot.ids, {})) {
    const Attempt& attempt = *find(id);
    if (!attempt.malformed.empty()) {
      finish(id, retry({}, attempt.malformed, "protocol"));
    } else if (attempt.timed_out) {
      finish(id, retry({}, fmt::format("no answer within {} ms", options().timeout.count()),
                       "timeout"));
    } else {
      finish(id, retry({}, "the handler's process ended: " + error, "handler_exit"));
    }
  }
  emit(EventName::handler_exited, slot.child.pid(), std::move(cause), std::move(error));

  slot.child = ChildProcess();
  slot.lines.clear();
  slot.output.clear();
  slot.written = 0;
  slot.close_input = false;
  slot.deaf = false;
  slot.overdue = 0;
  slot.cause.clear();
  slot.error.clear();
  const bool lived_long = now - slot.started >= options().restart_max;
  if (slot.useful || lived_long) slot.backoff = {};
  slot.useful = false;
  wait_for_start(slot, now);
}

void ExecAlive::wait_for_start(Slot& slot, Time now) {
  if (closing()) {
    slot.state = State::closed;
    return;
  }
  slot.backoff = slot.backoff.count() == 0 ? options().restart_min
                                           : std::min(slot.backoff * 2, options().restart_max);
  slot.state = State::waiting;
  slot.due = now + slot.backoff;
}

void ExecAlive::close_processes(Time now) {
  for (Slot& slot : slots_) {
    if (slot.child.empty()) {
      slot.state = State::closed;
    } else if (slot.state == State::starting || slot.state == State::ready) {
      append_bye(slot.output);
      slot.close_input = true;
      slot.state = State::closing;
      slot.due = now + options().close_term;
      slot.kill_at = now + options().close_kill;
    }
  }
}

void ExecAlive::cancel_running(Attempt& attempt, CancelCause cause) {
  append_cancel(slots_[*attempt.slot].output, attempt.id, cause);
}

void ExecAlive::kill_all() {
  for (Slot& slot : slots_) kill(slot, "shutdown", "the budget for the shutdown ended");
}

bool ExecAlive::empty() const {
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.child.empty(); });
}

std::size_t ExecAlive::index_of(const Slot& slot) const {
  return static_cast<std::size_t>(&slot - slots_.data());
}

}  // namespace tenure::handler
