#include "runtime/run_task.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/assert.hpp"

namespace tenure::runtime {
namespace {

constexpr std::size_t reason_bytes_max = 512;
constexpr std::size_t class_bytes_max = 32;
constexpr std::chrono::milliseconds after_max = std::chrono::hours(24);

bool valid_class(std::string_view text) {
  if (text.empty() || text.size() > class_bytes_max) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// At a boundary of UTF-8, so that a cut text is still text.
void cut(std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
}

core::RecordResult result_of(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::done:
      return core::RecordResult::done;
    case OutcomeKind::retry:
      return core::RecordResult::retry;
    case OutcomeKind::reject:
      return core::RecordResult::reject;
    case OutcomeKind::park:
      return core::RecordResult::park;
    case OutcomeKind::stop:
      return core::RecordResult::stop;
  }
  return core::RecordResult::stop;
}

/// The task whose async handler this thread is calling now.
thread_local RunTask* calling = nullptr;
thread_local int uncaught_at_call = 0;

}  // namespace

void settle(core::Run& run, std::uint32_t index, const Outcome& outcome) {
  core::RunRecord& record = run.records[index];
  record.result = result_of(outcome.kind());
  if (outcome.kind() == OutcomeKind::done) return;
  core::RunFailure failure;
  failure.index = index;
  failure.reason = outcome.reason();
  failure.failure_class = outcome.failure_class();
  if (!failure.failure_class.empty() && !valid_class(failure.failure_class)) {
    cut(failure.failure_class, class_bytes_max);
    failure.reason = "[class \"" + failure.failure_class +
                     "\" is not [a-z0-9_]{1,32} and was dropped] " + failure.reason;
    failure.failure_class.clear();
  }
  if (failure.failure_class.empty()) failure.failure_class = name(outcome.kind());
  cut(failure.reason, reason_bytes_max);
  if (outcome.after()) {
    failure.after = std::clamp(*outcome.after(), std::chrono::milliseconds(0), after_max);
  }
  run.failures.push_back(std::move(failure));
}

void RunTask::start_async() {
  const core::RunRecord& first = run->records.front();
  MessageView view;
  const RecordOrigin& origin = entry->cell->facts().origin;
  origin.reader->view({&first.message, 1}, {&view, 1});
  record.emplace(origin, first.message, view, first.offset, first.leader_epoch, first.attempt,
                 run->lane, run->lane_from);
  started = clock->now();
  std::optional<Outcome> thrown;
  bool refused = false;
  calling = this;
  uncaught_at_call = std::uncaught_exceptions();
  try {
    entry->handler->async(*record, entry->owner, Completion(this));
  } catch (const FenceRefused&) {
    refused = true;
  } catch (const std::exception& error) {
    thrown = retry({}, error.what(), "exception");
  } catch (...) {
    thrown = retry({}, "an exception that is no std::exception", "exception");
  }
  calling = nullptr;
  // A handler that throws may still have given its Completion away: the first word counts.
  if (refused && !completed_.exchange(true, std::memory_order_acq_rel)) {
    run->store_error = StoreError::superseded;
    run->store_message = FenceRefused{}.what();
    run->took = clock->now() - started;
    back->returned(*this);
  } else if (thrown) {
    static_cast<void>(complete(std::move(*thrown)));
  } else if (unwinding_) {
    static_cast<void>(complete(std::move(*unwinding_)));
  }
  release();
}

Verdict RunTask::complete(Outcome outcome) noexcept {
  // The handler may be throwing and take its Completion down with it: then the exception is the
  // outcome, and start_async() knows it.
  if (calling == this && std::uncaught_exceptions() > uncaught_at_call) {
    unwinding_ = std::move(outcome);
    return Verdict::accepted;
  }
  if (completed_.exchange(true, std::memory_order_acq_rel)) return Verdict::late;
  const bool late = entry->cell->state() == OwnerState::retired;
  settle(*run, 0, outcome);
  run->took = clock->now() - started;
  // The reference of the caller keeps the task, and the task what it points to.
  back->returned(*this);
  return late ? Verdict::late : Verdict::accepted;
}

void RunTask::release() noexcept {
  // Release: what this holder did with the task; acquire: what the others did.
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) pool_->free(*this);
}

RunTask& RunTaskPool::take(core::Run& run, const std::shared_ptr<const OwnerEntry>& entry,
                           const std::shared_ptr<RunReturn>& back, const Clock& clock, bool shared,
                           bool completion) {
  if (spare_ == nullptr) spare_ = freed_.exchange(nullptr, std::memory_order_acquire);
  if (spare_ == nullptr) {
    all_.push_back(std::make_unique<RunTask>());
    spare_ = all_.back().get();
    spare_->pool_ = this;
    spare_->next = nullptr;
  }
  RunTask& task = *spare_;
  spare_ = task.next;
  task.next = nullptr;
  task.run = &run;
  task.entry = entry.get();
  task.back = back.get();
  task.clock = &clock;
  task.begin = 0;
  task.limit = static_cast<std::uint32_t>(run.records.size());
  task.suspect_end = 0;
  if (shared) {
    task.keep = back;
    task.keep_entry = entry;
  }
  if (completion) {
    task.completed_.store(false, std::memory_order_relaxed);
    // The engine's, the worker's while it calls the handler, the Completion's.
    task.references_.store(3, std::memory_order_relaxed);
  }
  return task;
}

void RunTaskPool::give(RunTask& task) noexcept {
  if (task.references_.load(std::memory_order_relaxed) > 0) {
    task.release();
    return;
  }
  task.unit.reset();
  task.held.reset();
  task.keep_entry.reset();
  task.keep.reset();
  task.next = spare_;
  spare_ = &task;
}

void RunTaskPool::free(RunTask& task) noexcept {
  task.record.reset();
  task.unwinding_.reset();
  task.keep_entry.reset();
  // This may be the last thing that keeps the pool itself.
  const std::shared_ptr<RunReturn> keep = std::move(task.keep);
  RunTask* head = freed_.load(std::memory_order_relaxed);
  do {
    task.next = head;
  } while (!freed_.compare_exchange_weak(head, &task, std::memory_order_release,
                                         std::memory_order_relaxed));
}

}  // namespace tenure::runtime
