#include "handler/exec_per_record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "base/json_text.hpp"

namespace tenure::handler {
namespace {

constexpr std::chrono::milliseconds exit_check{20};
// sysexits.h: EX_DATAERR, EX_TEMPFAIL, EX_CONFIG.
constexpr int exit_reject = 65;
constexpr int exit_retry = 75;
constexpr int exit_stop = 78;

/// As it may be kept and shown: UTF-8, no line ends around it, at most reason_bytes_max.
std::string as_reason(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const std::string reason = to_utf8(text);
  return std::string(cut_utf8(reason, reason_bytes_max));
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool unreserved = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
      continue;
    }
    const auto value = static_cast<unsigned char>(c);
    out += '%';
    out += digits[value >> 4];
    out += digits[value & 0x0F];
  }
  return out;
}

std::vector<std::string> record_environment(const Record& record, const Owner& owner) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view name, const auto& value) {
    lines.push_back(fmt::format("TENURE_RECORD_{}={}", name, value));
  };
  add("SCOPE", record.origin().scope);
  add("TOPIC", record.topic());
  add("TOPIC_ID", record.origin().topic_id.text());
  add("PARTITION", record.partition());
  add("OFFSET", record.offset());
  if (!record.key().null()) add("KEY", percent_encoded(record.key().text()));
  add("IDENTITY", record.identity());
  add("ATTEMPT", record.attempt());
  add("EPOCH", owner.epoch().value());
  if (const std::optional<Fence> fence = owner.fence(); fence) {
    add("FENCE_TOKEN", fence->token.value());
    add("FENCE_OWNER", fence->owner.text());
  }
  add("TOMBSTONE", record.value().null() ? 1 : 0);
  return lines;
}

Outcome outcome_of_exit(int exit_code, bool timed_out, const ExecOptions& options,
                        std::string_view ending, std::string_view errors) {
  std::string reason = as_reason(errors);
  if (reason.empty()) reason = ending;
  switch (exit_code) {
    case 0:
      return done();
    case exit_reject:
      return reject(std::move(reason));
    case exit_retry:
      return retry({}, std::move(reason));
    case exit_stop:
      return stop(std::move(reason));
    default:
      break;
  }
  if (timed_out) {
    return retry({}, fmt::format("no end within {} ms", options.timeout.count()), "timeout");
  }
  if (exit_code < 0) return retry({}, std::move(reason), "handler_exit");
  return {options.on_error, std::move(reason), "handler_exit", {}};
}

ExecPerRecord::ExecPerRecord(const ExecOptions& options, const ProgramImage& image, Logger& logger,
                             const HandlerEventSink& events, ExecInbox& inbox)
    : ExecPool(options, image, logger, events, inbox), slots_(options.processes) {}

Time ExecPerRecord::advance(Time now) {
  for (Slot& slot : slots_) {
    if (slot.child.empty()) continue;
    if (slot.child.exit_fd() < 0 && slot.child.gone()) {
      ended(slot);
    } else if (slot.due <= now) {
      expire(slot, now);
    }
  }
  for (std::size_t i = 0; i < slots_.size() && front() != nullptr && start_at_ <= now;) {
    if (slots_[i].child.empty()) start(i, now);
    // A start may have answered its record and left the slot free.
    if (!slots_[i].child.empty()) ++i;
  }

  Time wake = front() == nullptr || start_at_ <= now ? Time::max() : start_at_;
  for (const Slot& slot : slots_) {
    if (slot.child.empty()) continue;
    wake = std::min(wake, slot.due);
    if (slot.child.exit_fd() < 0) wake = std::min(wake, now + exit_check);
  }
  return wake;
}

void ExecPerRecord::start(std::size_t index, Time now) {
  Slot& slot = slots_[index];
  const Attempt& attempt = *front();
  ChildProcess::StartError error;
  if (ChildProcess::spawn(image(), record_environment(attempt.record, attempt.owner), slot.child,
                          error)) {
    backoff_ = {};
    slot.id = attempt.id;
    slot.input = attempt.record.value().text();
    slot.due = now + options().timeout;
    pop_front(index);
    write_input(slot);
    return;
  }
  if (error.number == E2BIG && !attempt.record.key().null()) {
    // No later start would succeed: one line of an environment holds 128 KiB.
    finish(attempt.id, reject(fmt::format("a key of {} bytes does not fit into the environment",
                                          attempt.record.key().size()),
                              "data"));
    return;
  }
  backoff_ =
      backoff_.count() == 0 ? options().restart_min : std::min(backoff_ * 2, options().restart_max);
  start_at_ = now + backoff_;
  emit(EventName::handler_exited, 0, "start",
       fmt::format("{}; next try in {} ms", error.text, backoff_.count()));
}

void ExecPerRecord::expire(Slot& slot, Time now) {
  if (slot.closing) {
    const bool last = now >= kill_at_;
    slot.child.signal(last ? SIGKILL : SIGTERM);
    slot.due = last ? Time::max() : kill_at_;
  } else if (!slot.timed_out) {
    slot.timed_out = true;
    slot.child.signal(SIGTERM);
    slot.due = now + options().cancel_grace;
  } else {
    slot.child.signal(SIGKILL);
    slot.due = Time::max();
  }
}

void ExecPerRecord::write_input(Slot& slot) {
  while (!slot.input.empty()) {
    const ssize_t put = ::write(slot.child.in.get(), slot.input.data(), slot.input.size());
    if (put >= 0) {
      slot.input.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      // EPIPE: a handler need not read its input to the end.
      slot.input = {};
    }
  }
  slot.child.in.close();
}

void ExecPerRecord::watch(std::vector<pollfd>& descriptors) {
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
    add(i, Stream::input, slot.child.in.get(), POLLOUT);
    add(i, Stream::exit, slot.child.exit_fd(), POLLIN);
  }
}

void ExecPerRecord::ready(std::span<const pollfd> descriptors, Time) {
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i].revents == 0) continue;
    Slot& slot = slots_[watched_[i].first];
    switch (watched_[i].second) {
      case Stream::output:
        read_output(slot);
        break;
      case Stream::errors:
        read_errors(slot);
        break;
      case Stream::input:
        write_input(slot);
        break;
      case Stream::exit:
        if (slot.child.gone()) ended(slot);
        break;
    }
  }
}

void ExecPerRecord::read_output(Slot& slot) {
  if (!log_output(slot.child.out.get(), slot.output, slot.child.pid(), [](std::string_view) {})) {
    slot.child.out.close();
  }
}

void ExecPerRecord::read_errors(Slot& slot) {
  const bool open =
      log_output(slot.child.err.get(), slot.errors, slot.child.pid(), [&](std::string_view bytes) {
        const std::size_t room = reason_bytes_max - std::min(reason_bytes_max, slot.reason.size());
        slot.reason.append(bytes.substr(0, room));
      });
  if (!open) slot.child.err.close();
}

void ExecPerRecord::ended(Slot& slot) {
  if (slot.child.out.open()) read_output(slot);
  if (slot.child.err.open()) read_errors(slot);
  log_rest(slot.output, slot.child.pid());
  log_rest(slot.errors, slot.child.pid());
  const std::string how = slot.child.how_it_ended();
  if (slot.timed_out || slot.child.exit_code() < 0) {
    emit(EventName::handler_exited, slot.child.pid(),
         slot.timed_out ? "timeout"
         : slot.closing ? "shutdown"
                        : "signal",
         how);
  }
  const AttemptId id = slot.id;
  Outcome outcome =
      outcome_of_exit(slot.child.exit_code(), slot.timed_out, options(), how, slot.reason);
  slot = Slot();
  finish(id, std::move(outcome));
}

void ExecPerRecord::close_processes(Time now) {
  kill_at_ = now + options().close_kill;
  for (Slot& slot : slots_) {
    slot.closing = true;
    slot.due = now + options().close_term;
  }
}

void ExecPerRecord::cancel_running(Attempt&, CancelCause) {}

void ExecPerRecord::kill_all() {
  for (Slot& slot : slots_) slot.child.signal(SIGKILL);
}

bool ExecPerRecord::empty() const {
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.child.empty(); });
}

}  // namespace tenure::handler
