#include "runtime/executor.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace tenure::runtime {
namespace {

using core::AgainCause;
using core::RecordResult;
using core::Run;

// Views are read this many at a time: few calls, and payloads not long before they are used.
constexpr std::uint32_t look_ahead = 64;

std::uint32_t size_of(const Run& run) {
  return static_cast<std::uint32_t>(run.records.size());
}

/// What the handler says; empty when it was refused at the fence (F6).
std::optional<Outcome> call(const RunTask& task, Batch records, void* transaction) {
  try {
    return task.entry->handler->blocking(records, task.entry->owner, transaction);
  } catch (const FenceRefused&) {
    return std::nullopt;
  } catch (const std::exception& error) {
    return retry({}, error.what(), "exception");
  } catch (...) {
    return retry({}, "an exception that is no std::exception", "exception");
  }
}

/// Handler time up to now into the run; waiting for a commit is none.
void count_time(RunTask& task) {
  const Instant now = task.clock->now();
  task.run->took += now - task.started;
  task.started = now;
}

bool open(const RunTask& task) {
  return task.entry->cell->dispatch_open();
}

/// A batch that threw is bisected; one that asks for a retry is repeated whole.
bool bisects(const Outcome& outcome) {
  switch (outcome.kind()) {
    case OutcomeKind::reject:
    case OutcomeKind::park:
      return true;
    case OutcomeKind::retry:
      return outcome.failure_class() == "exception";
    default:
      return false;
  }
}

void halve(RunTask& task) {
  task.suspect_end = task.limit;
  task.limit = task.begin + (task.limit - task.begin) / 2;
}

}  // namespace

void Executor::execute(RunTask& task, Scratch& scratch) const {
  if (task.entry->handler->shape == Handler::Shape::async) {
    if (!open(task)) {
      // Its two references that no Completion will ever hold.
      task.release();
      RunReturn& back = *task.back;
      const std::shared_ptr<RunReturn> keep = task.keep;
      task.release();
      back.returned(task);
      return;
    }
    task.start_async();
    return;
  }
  task.started = scratch.mark ? *scratch.mark : task.clock->now();
  scratch.mark.reset();
  if (options_.units || task.entry->handler->shape == Handler::Shape::batch) {
    Next next = Next::more;
    while (next == Next::more) {
      task.unit.reset();
      if (!open(task)) {
        next = Next::finished;
      } else {
        next = options_.units ? try_unit(task, scratch) : try_batch(task, scratch);
      }
    }
    if (next == Next::away) return;
  } else {
    each_alone(task, scratch);
  }
  count_time(task);
  scratch.mark = task.started;
  task.back->returned(task);
}

void Executor::look(const RunTask& task, std::uint32_t from, std::uint32_t to,
                    Scratch& scratch) const {
  const Run& run = *task.run;
  const RecordOrigin& origin = task.entry->cell->facts().origin;
  const std::size_t count = to - from;
  scratch.messages.resize(count);
  scratch.views.resize(count);
  for (std::uint32_t i = from; i < to; ++i) scratch.messages[i - from] = run.records[i].message;
  origin.reader->view(scratch.messages, scratch.views);
  scratch.records.clear();
  const Offset first_from = run.lane_reached.value_or(run.lane_from);
  for (std::uint32_t i = from; i < to; ++i) {
    const core::RunRecord& record = run.records[i];
    const Offset lane_from =
        i == task.begin || i == 0 ? first_from : run.records[i - 1].offset.next();
    scratch.records.emplace_back(origin, record.message, scratch.views[i - from], record.offset,
                                 record.leader_epoch, record.attempt, run.lane, lane_from);
  }
}

void Executor::each_alone(RunTask& task, Scratch& scratch) const {
  Run& run = *task.run;
  const std::uint32_t size = size_of(run);
  const detail::OwnerCell& cell = *task.entry->cell;
  for (std::uint32_t from = 0; from < size; from += look_ahead) {
    const std::uint32_t to = std::min(size, from + look_ahead);
    task.begin = from;
    look(task, from, to, scratch);
    for (std::uint32_t i = from; i < to; ++i) {
      if (!cell.dispatch_open()) return;
      const std::optional<Outcome> outcome = call(task, {&scratch.records[i - from], 1}, nullptr);
      if (!outcome) {
        refused(task);
        return;
      }
      if (outcome->kind() == OutcomeKind::done) {
        run.records[i].result = RecordResult::done;
        // The user's own transaction has moved the lane (advance()).
        if (options_.progress) run.lane_reached = run.records[i].offset.next();
        continue;
      }
      settle(run, i, *outcome);
      if (options_.ordered) return;
    }
  }
}

Executor::Next Executor::try_unit(RunTask& task, Scratch& scratch) const {
  Run& run = *task.run;
  const detail::OwnerCell::Facts& facts = task.entry->cell->facts();
  UnitKey key;
  key.owner = run.owner;
  key.domain = {facts.origin.scope, facts.origin.cluster, facts.origin.topic_id,
                facts.origin.partition};
  TENURE_ASSERT(run.fence.has_value(), "T4 an effect has a fence");
  key.fence = *run.fence;
  key.lane = run.lane;
  key.from = run.lane_reached.value_or(run.lane_from);
  task.unit = options_.store->open_unit(std::move(key));
  EffectUnit& unit = *task.unit;

  look(task, task.begin, task.limit, scratch);
  const bool batch = task.entry->handler->shape == Handler::Shape::batch;
  if (batch) {
    std::optional<Outcome> outcome = call(task, scratch.records, unit.transaction());
    if (const UnitResult* failure = unit.failure()) {
      const UnitResult result = *failure;
      unit.roll_back();
      return failed(task, task.begin, result, task.limit - task.begin == 1);
    }
    if (outcome && outcome->kind() == OutcomeKind::done) return commit(task);
    unit.roll_back();
    if (!outcome) {
      refused(task);
      return Next::finished;
    }
    return not_done(task, task.begin, std::move(*outcome));
  }

  for (std::uint32_t i = task.begin; i < task.limit; ++i) {
    if (i > task.begin && !open(task)) {
      // R1: what has run is started work and is kept; the rest comes back unstarted.
      task.limit = i;
      task.held.reset();
      break;
    }
    std::optional<Outcome> outcome =
        call(task, {&scratch.records[i - task.begin], 1}, unit.transaction());
    if (const UnitResult* failure = unit.failure()) {
      const UnitResult result = *failure;
      unit.roll_back();
      return failed(task, i, result, i == task.begin);
    }
    if (outcome && outcome->kind() == OutcomeKind::done) continue;
    unit.roll_back();
    if (!outcome) {
      refused(task);
      return Next::finished;
    }
    if (i == task.begin) {
      settle(run, i, *outcome);
      return Next::finished;
    }
    task.held = std::move(outcome);
    task.limit = i;
    return Next::more;
  }
  return commit(task);
}

Executor::Next Executor::try_batch(RunTask& task, Scratch& scratch) const {
  look(task, task.begin, task.limit, scratch);
  std::optional<Outcome> outcome = call(task, scratch.records, nullptr);
  if (!outcome) {
    refused(task);
    return Next::finished;
  }
  if (outcome->kind() == OutcomeKind::done) return passed(task, RecordResult::done);
  return not_done(task, task.begin, std::move(*outcome));
}

/// A batch [begin, limit) was not done and nothing of it is stored.
Executor::Next Executor::not_done(RunTask& task, std::uint32_t index, Outcome outcome) const {
  Run& run = *task.run;
  if (task.limit - task.begin > 1 && bisects(outcome)) {
    halve(task);
    return Next::more;
  }
  settle(run, index, outcome);
  if (!options_.ordered && outcome.kind() == OutcomeKind::retry) {
    // Nothing else keeps the records of the batch together.
    for (std::uint32_t i = index + 1; i < task.limit; ++i) settle(run, i, outcome);
  }
  return Next::finished;
}

/// [begin, limit) is terminal.
Executor::Next Executor::passed(RunTask& task, RecordResult result) const {
  Run& run = *task.run;
  for (std::uint32_t i = task.begin; i < task.limit; ++i) run.records[i].result = result;
  if (options_.progress) run.lane_reached = run.records[task.limit - 1].offset.next();
  task.begin = task.limit;
  if (task.held) {
    const Outcome outcome = std::move(*task.held);
    task.held.reset();
    settle(run, task.begin, outcome);
    return Next::finished;
  }
  const std::uint32_t size = size_of(run);
  if (task.begin == size || !open(task)) return Next::finished;
  task.limit = task.suspect_end > task.begin
                   ? task.begin + std::max<std::uint32_t>(1, (task.suspect_end - task.begin) / 2)
                   : size;
  return Next::more;
}

Executor::Next Executor::commit(RunTask& task) const {
  const core::RunRecord& last = task.run->records[task.limit - 1];
  count_time(task);
  task.arrivals.store(0, std::memory_order_relaxed);
  task.unit->commit(last.offset.next(), last.leader_epoch, [this, &task](UnitResult result) {
    task.commit_result = std::move(result);
    // Both arrivals are acq_rel: the second sees everything the first has written.
    if (task.arrivals.fetch_add(1, std::memory_order_acq_rel) == 0) return;
    // The worker has gone on to other work. No handler runs on the store's thread.
    const std::shared_ptr<RunReturn> keep = task.keep;
    RunReturn& back = *task.back;
    if (committed(task) == Next::finished) {
      back.returned(task);
    } else {
      back.resumed(task);
    }
  });
  if (task.arrivals.fetch_add(1, std::memory_order_acq_rel) == 0) return Next::away;
  task.started = task.clock->now();
  return committed(task);
}

Executor::Next Executor::committed(RunTask& task) const {
  const UnitResult result = std::move(task.commit_result);
  task.commit_result = {};
  switch (result.verdict) {
    case UnitVerdict::applied:
      return passed(task, RecordResult::done);
    case UnitVerdict::already_applied:
      return passed(task, RecordResult::replayed);
    default:
      return failed(task, task.begin, result, task.limit - task.begin == 1);
  }
}

/// The unit is rolled back. `certain`: record `index` alone can be the reason.
Executor::Next Executor::failed(RunTask& task, std::uint32_t index, const UnitResult& result,
                                bool certain) const {
  Run& run = *task.run;
  task.held.reset();
  const auto stands = [&](const Outcome& outcome) {
    if (certain) {
      settle(run, index, outcome);
      return Next::finished;
    }
    if (index > task.begin) {
      // What precedes it first, then this one alone.
      task.suspect_end = index + 1;
      task.limit = index;
    } else {
      halve(task);
    }
    return Next::more;
  };
  const auto again = [&](AgainCause cause, StoreError error) {
    run.records[task.begin].result = RecordResult::again;
    run.again = cause;
    run.store_error = error;
    run.store_message = result.message;
    return Next::finished;
  };
  const auto ended = [&](StoreError error) {
    run.store_error = error;
    run.store_message = result.message;
    return Next::finished;
  };
  switch (result.verdict) {
    case UnitVerdict::applied:
    case UnitVerdict::already_applied:
      TENURE_ASSERT(false, "T4 a unit that failed was not applied");
      return Next::finished;
    case UnitVerdict::superseded:
      return ended(StoreError::superseded);
    case UnitVerdict::moved:
      // After a stored part of the same run: the next run meets it again at its first record.
      return task.begin == 0 ? ended(StoreError::moved) : Next::finished;
    case UnitVerdict::in_doubt:
      return ended(StoreError::in_doubt);
    case UnitVerdict::retired:
      return ended(StoreError::retired);
    case UnitVerdict::contention:
      return again(AgainCause::contention, StoreError::contention);
    case UnitVerdict::unavailable:
      return again(AgainCause::store_down, StoreError::unavailable);
    case UnitVerdict::handler_down:
      return again(AgainCause::handler_down, StoreError::none);
    case UnitVerdict::timeout:
      return stands(retry({}, result.message, "timeout"));
    case UnitVerdict::data:
      return stands(reject(result.message, "data"));
    case UnitVerdict::constraint:
      return stands(reject(result.message, "constraint"));
    case UnitVerdict::sql:
      return stands(retry({}, result.message, "sql"));
    case UnitVerdict::misuse:
      settle(run, index, stop(result.message));
      return Next::finished;
  }
  return Next::finished;
}

void Executor::refused(RunTask& task) const {
  task.run->store_error = StoreError::superseded;
  task.run->store_message = FenceRefused{}.what();
}

}  // namespace tenure::runtime
