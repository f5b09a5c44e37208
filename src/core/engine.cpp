#include "core/engine.hpp"

#include <algorithm>
#include <utility>

#include "core/engine_impl.hpp"

namespace tenure::core {

namespace {

// A run should not keep other records of its owner waiting longer than this.
constexpr Duration run_time_budget = std::chrono::milliseconds(1);
// Below this cost a record is cheaper than handing it over singly.
constexpr double cheap_record_ns = 10'000;
constexpr std::uint32_t slow_run_records_max = 16;

constexpr Duration contention_backoff_min = std::chrono::milliseconds(5);
constexpr Duration contention_told_after = std::chrono::seconds(1);
constexpr Duration retry_after_max = std::chrono::hours(24);

std::string_view word(AgainCause cause) {
  switch (cause) {
    case AgainCause::contention: return "contention";
    case AgainCause::store_down: return "store_down";
    case AgainCause::handler_down: return "handler_down";
  }
  return "";
}

std::string_view word(RecordResult result) {
  switch (result) {
    case RecordResult::unstarted: return "unstarted";
    case RecordResult::done: return "done";
    case RecordResult::replayed: return "replayed";
    case RecordResult::retry: return "retry";
    case RecordResult::reject: return "reject";
    case RecordResult::park: return "park";
    case RecordResult::stop: return "stop";
    case RecordResult::again: return "again";
  }
  return "";
}

const RunFailure* failure_of(const Run& run, std::uint32_t index) {
  for (const RunFailure& failure : run.failures) {
    if (failure.index == index) return &failure;
  }
  return nullptr;
}

}  // namespace

Engine::Impl::Impl(EngineOptions given)
    : options(std::move(given)),
      random(options.seed),
      retries({options.backoff_min, options.backoff_max, options.jitter}) {}

Engine::Engine(EngineOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;

void Engine::start(Instant now, Commands& out) {
  impl_->now = now;
  impl_->out = &out;
  impl_->report(EventName::group_joining);
  out.commands.emplace_back(OpenSource{});
  impl_->out = nullptr;
}

void Engine::step(const Input& input, Instant now, Commands& out) {
  TENURE_ASSERT(now >= impl_->now, "R7 time does not go back");
  impl_->now = now;
  impl_->out = &out;
  impl_->step(input);
  impl_->out = nullptr;
}

Instant Engine::next_wake() const { return impl_->next_wake(); }

std::size_t Engine::room() const {
  const Impl& impl = *impl_;
  if (impl.ready_total >= impl.options.ready_max) return 0;
  if (impl.retries.size() >= impl.options.retry_waiting_max) return 0;
  return static_cast<std::size_t>(impl.options.ready_max - impl.ready_total);
}

const std::vector<OwnerRef>& Engine::touched() {
  impl_->touched_shown.clear();
  impl_->touched_shown.swap(impl_->touched);
  for (const OwnerRef ref : impl_->touched_shown) {
    if (PartitionOwner* owner = impl_->find(ref)) owner->touched = false;
  }
  return impl_->touched_shown;
}

const EngineTotals& Engine::totals() const { return impl_->totals; }

std::optional<OwnerSnapshot> Engine::snapshot(OwnerRef ref) const {
  const PartitionOwner* owner = std::as_const(*impl_).find(ref);
  if (owner == nullptr) return {};
  OwnerSnapshot shown;
  shown.owner = ref;
  shown.state = owner->state;
  shown.suspect = impl_->suspect && owner->live();
  shown.drain_deadline = owner->drain_deadline;
  shown.committed = owner->committed;
  shown.last_commit = owner->last_commit;
  shown.retired_reason = owner->retired_reason;
  shown.frontier = owner->start;
  if (owner->window) {
    shown.frontier = owner->window->frontier();
    shown.completed_above = owner->window->completed_above();
    shown.window_records = owner->window->records() + owner->waiting();
    shown.window_bytes = owner->window->bytes();
    shown.in_flight = owner->window->lent();
  }
  if (owner->retired_reason) {
    shown.cause = name(*owner->retired_reason);
  } else if (owner->log_went_back) {
    shown.cause = "log_went_back";
  } else if (owner->state == OwnerState::draining || owner->state == OwnerState::frozen) {
    shown.cause = impl_->stopping ? "shutdown" : "revoked";
  } else if (shown.suspect) {
    shown.cause = "suspect";
  } else if (owner->again_cause && *owner->again_cause != AgainCause::contention) {
    shown.cause = word(*owner->again_cause);
  } else if (owner->blocked) {
    shown.cause = "blocked";
  } else if (owner->parked > 0) {
    shown.cause = "parked";
  } else if (owner->retrying > 0) {
    shown.cause = "retrying";
  } else if (owner->state == OwnerState::acquiring) {
    shown.cause = "acquiring";
  }
  return shown;
}

// ---- step ------------------------------------------------------------------------------------

void Engine::Impl::step(const Input& input) {
  // Frozen or suspended: nothing may be dispatched on the strength of an old lease (R8), so this
  // comes before the input is looked at.
  check_lease();
  std::visit([this](const auto& value) { on(value); }, input);
  pump();
}

void Engine::Impl::pump() {
  do {
    pump_again = false;
    if (phase == Phase::finished) return;
    expire_slot();
    pump_drains();
    pump_stop();
    pump_acquire();
    pump_retries();
    pump_doubt();
    pump_starved();
    pump_commits();
    pump_dispatch();
    pump_ended();
  } while (pump_again);
}

Instant Engine::Impl::next_wake() const {
  if (phase == Phase::finished) return never;
  Instant wake = std::min({open_at, close_deadline, retries.next()});
  for (const Drain& drain : drains) {
    if (drain.phase == Drain::Phase::running) {
      wake = std::min({wake, drain.deadline, drain.stop_fired ? never : drain.stop_at});
    } else if (drain.phase != Drain::Phase::done) {
      wake = std::min(wake, drain.commit_deadline);
      for (const Instant next : {drain.advance_deadline, drain.commit_not_before}) {
        if (!drain.commit && next > now) wake = std::min(wake, next);
      }
    }
  }
  for (const OwnerRef ref : acquiring) {
    const PartitionOwner* owner = find(ref);
    if (owner != nullptr && owner->acquisition.wait_until > now) {
      wake = std::min(wake, owner->acquisition.wait_until);
    }
  }
  for (const OwnerRef ref : doubtful) {
    if (const PartitionOwner* owner = find(ref)) wake = std::min(wake, owner->doubt_at);
  }
  for (const PendingRead& read : reads) wake = std::min(wake, read.expires);
  for (const Reacquire& next : reacquire) wake = std::min(wake, next.at);
  for (const OwnerRef ref : ended) {
    if (const PartitionOwner* owner = find(ref)) wake = std::min(wake, owner->abandon_at);
  }
  for (const OwnerRef ref : ready_list) {
    const PartitionOwner* owner = find(ref);
    if (owner == nullptr || owner->window == nullptr) continue;
    const Instant ready = owner->window->ready_at();
    if (ready > now) wake = std::min(wake, ready);
  }
  if (slot) {
    wake = std::min(wake, slot->expires);
  } else if (advancing) {
    wake = std::min(wake, advance_deadline);
  } else if (phase == Phase::member) {
    // Periodic commits: when the first is due, but never before commit_at, since nothing would be
    // sent then.
    Instant due = never;
    for (const auto& [partition, ref] : live) {
      const PartitionOwner* owner = find(ref);
      if (owner->state != OwnerState::active || owner->log_went_back || owner->relocating) continue;
      due = std::min({due, wants_commit(*owner) ? now : never,
                      wants_advance(*owner) ? owner->advance_not_before : never,
                      lease_at ? after(*lease_at, times.session / 2) : never,
                      after(owner->committed_at, unchanged_commit_interval)});
    }
    if (due != never) wake = std::min(wake, std::max(due, commit_at));
  }
  if (phase == Phase::member) {
    if (orphaned_since != never) wake = std::min(wake, after(orphaned_since, times.session));
    if (waits_for_partitions()) {
      wake = std::min(wake, after(no_partition_since, 3 * times.heartbeat));
    }
  }
  return wake;
}

bool Engine::Impl::waits_for_partitions() const {
  return options.until_end && !stopping && no_partition_since != never && live.empty() &&
         reacquire.empty() && drains.empty();
}

// ---- shared small parts ----------------------------------------------------------------------

PartitionOwner* Engine::Impl::find(OwnerRef ref) {
  return const_cast<PartitionOwner*>(std::as_const(*this).find(ref));
}

const PartitionOwner* Engine::Impl::find(OwnerRef ref) const {
  if (ref.slot >= slots.size()) return nullptr;
  const PartitionOwner* owner = slots[ref.slot].get();
  return owner != nullptr && owner->ref == ref ? owner : nullptr;
}

PartitionOwner* Engine::Impl::find_live(const TopicPartition& partition) {
  const auto found = live.find(partition);
  return found == live.end() ? nullptr : find(found->second);
}

PartitionOwner& Engine::Impl::create(const TopicPartition& partition, Protocol protocol,
                                     const Member& member, std::uint32_t superseded_before) {
  TENURE_ASSERT(!live.contains(partition), "O4 the former owner has retired");
  std::uint32_t index = 0;
  if (free_slots.empty()) {
    index = static_cast<std::uint32_t>(slots.size());
    slots.emplace_back();
  } else {
    index = free_slots.back();
    free_slots.pop_back();
  }
  slots[index] = std::make_unique<PartitionOwner>();
  PartitionOwner& owner = *slots[index];
  owner.ref = {index, GrantId(++last_grant)};
  owner.partition = partition;
  owner.protocol = protocol;
  owner.member = member;
  owner.granted_at = now;
  owner.committed_at = now;
  owner.superseded_before = superseded_before;
  live.emplace(partition, owner.ref);
  acquiring.push_back(owner.ref);
  ++totals.grants;
  touch(owner);
  return owner;
}

void Engine::Impl::touch(PartitionOwner& owner) {
  if (owner.touched) return;
  owner.touched = true;
  touched.push_back(owner.ref);
}

void Engine::Impl::report(EventName name, std::vector<Report::Item> fields) {
  Report event;
  event.name = name;
  event.fields = std::move(fields);
  emit(std::move(event));
}

void Engine::Impl::report(EventName name, const PartitionOwner& owner,
                          std::vector<Report::Item> fields) {
  Report event;
  event.name = name;
  event.owner = owner.ref;
  event.topic = owner.partition.topic;
  event.partition = owner.partition.partition;
  event.fields = std::move(fields);
  emit(std::move(event));
}

void Engine::Impl::warn(const PartitionOwner& owner, std::string_view cause, std::string text) {
  report(EventName::health_changed, owner,
         {{"check", "partition." + owner.partition.topic + "/" +
                        std::to_string(owner.partition.partition.value())},
          {"status", std::string("warn")},
          {"cause", std::string(cause)},
          {"text", std::move(text)}});
}

std::vector<PartitionOwner*> Engine::Impl::live_owners() {
  std::vector<PartitionOwner*> owners;
  owners.reserve(live.size());
  for (const auto& [partition, ref] : live) owners.push_back(find(ref));
  return owners;
}

// ---- records ---------------------------------------------------------------------------------

void Engine::Impl::on(const TimesKnown& known) {
  times = known;
  // They may also change later, while this client is being closed.
  if (phase == Phase::opening) phase = Phase::member;
}

void Engine::Impl::on(const RecordsDelivered& delivered) {
  PartitionOwner* owner = find(delivered.owner);
  totals.received += delivered.records.size();
  if (owner == nullptr || owner->state != OwnerState::active || owner->log_went_back) {
    // O6, R1: nothing is admitted for an owner that is not active. Not completed, only dropped.
    for (const Delivered& record : delivered.records) {
      if (record.message != nullptr) out->freed.push_back(record.message);
    }
    totals.dropped += delivered.records.size();
    if (owner != nullptr && !owner->live()) ++totals.retired_calls;
    return;
  }
  owner->overflow.insert(owner->overflow.end(), delivered.records.begin(),
                         delivered.records.end());
  admit(*owner);
  update_flow(*owner);
}

void Engine::Impl::admit(PartitionOwner& owner) {
  // O7: an empty window always admits one record, of any size, whatever the totals.
  while (owner.waiting() > 0 && owner.state == OwnerState::active) {
    const std::span<const Delivered> waiting(owner.overflow.data() + owner.overflow_next,
                                             owner.waiting());
    const Window& window = *owner.window;
    std::uint64_t records = window.records();
    std::uint64_t bytes = window.bytes();
    std::uint64_t unfinished = unfinished_total;
    std::uint64_t all_bytes = bytes_total;
    std::size_t fits = 0;
    while (fits < waiting.size()) {
      const std::uint64_t size = waiting[fits].bytes;
      const bool within = records < options.window_records &&
                          bytes + size <= options.window_bytes &&
                          unfinished < options.window_records_total &&
                          all_bytes + size <= options.window_bytes_total;
      if (records > 0 && !within) break;
      ++records;
      ++unfinished;
      bytes += size;
      all_bytes += size;
      ++fits;
    }
    if (fits == 0) break;

    std::vector<Window::Held> undecodable;
    const Window::Admitted admitted = with_window(owner, [&](Window& w) {
      return w.admit(waiting.first(fits), now, undecodable, out->freed);
    });
    owner.highest_admitted = waiting[fits - 1].offset;
    owner.overflow_next += fits;
    totals.dropped += admitted.below_position;
    if (admitted.already_stored > 0) {
      totals.skipped_by_store += admitted.already_stored;
      report(EventName::record_skipped, owner,
             {{"from", admitted.stored_first.value()},
              {"to", admitted.stored_last.value()},
              {"count", static_cast<std::int64_t>(admitted.already_stored)},
              {"by", std::string("store")}});
    }
    for (const Window::Held& held : undecodable) park(owner, held.offset, "undecodable");
  }
  if (owner.waiting() == 0) {
    owner.overflow.clear();
    owner.overflow_next = 0;
    if (owner.reached) {
      const Offset reached = *owner.reached;
      owner.reached.reset();
      with_window(owner, [&](Window& w) { w.reach(reached); return 0; });
    }
  }
}

void Engine::Impl::on(const Reached& reached) {
  PartitionOwner* owner = find(reached.owner);
  if (owner == nullptr || owner->state != OwnerState::active || owner->log_went_back) return;
  owner->reached = std::max(owner->reached.value_or(reached.offset), reached.offset);
  admit(*owner);
}

void Engine::Impl::on(const RecordError& error) {
  PartitionOwner* owner = find(error.owner);
  if (owner == nullptr || !owner->live()) return;
  switch (error.error) {
    case BrokerError::offset_out_of_range:
    case BrokerError::log_truncated:
    case BrokerError::unknown_topic_or_partition:
      // F7, F8: which end of the log did it fall off? Asked, never guessed.
      if (owner->state != OwnerState::active) break;
      owner->truncated = owner->truncated || error.error == BrokerError::log_truncated;
      if (!owner->relocating) {
        owner->relocating = true;
        owner->acquisition = Acquisition{};
        acquiring.push_back(owner->ref);
        warn(*owner, name(error.error), error.message);
      }
      break;
    case BrokerError::bad_record: {
      // F1: the client skips it, which is no gap: incomplete until the failure policy has it.
      warn(*owner, name(error.error), error.message);
      const Delivered undecodable{nullptr, error.offset, 0, 0, no_leader_epoch};
      on(RecordsDelivered{error.owner, {&undecodable, 1}});
      break;
    }
    default:
      warn(*owner, name(error.error), error.message);
      break;
  }
}

void Engine::Impl::update_flow(PartitionOwner& owner) {
  if (owner.state != OwnerState::active || owner.log_went_back) return;
  const Window& window = *owner.window;
  const bool empty = window.records() == 0 && owner.waiting() == 0;
  const bool was_full = totals_full;
  // Reopened at three quarters, so that a partition at its limit does not flap.
  const std::uint64_t part = was_full ? 3 : 4;
  totals_full = unfinished_total >= options.window_records_total * part / 4 ||
                bytes_total >= options.window_bytes_total * part / 4;
  bool open = owner.flow_open;
  if (owner.waiting() > 0 || window.records() >= options.window_records ||
      window.bytes() >= options.window_bytes || (totals_full && !empty)) {
    open = false;
  } else if (empty || (window.records() <= options.window_records / 4 * 3 &&
                       window.bytes() <= options.window_bytes / 4 * 3 && !totals_full)) {
    open = true;
  }
  if (open != owner.flow_open) {
    owner.flow_open = open;
    emit(SetFlow{owner.ref, open});
  }
  const bool blocked = !open && window.held() > 0 && window.ready() == 0 && window.lent() == 0;
  if (blocked != owner.blocked) {
    owner.blocked = blocked;
    report(blocked ? EventName::owner_blocked : EventName::owner_unblocked, owner,
           {{"cause", std::string("held record, window full")},
            {"offset", window.frontier().value()},
            {"above", static_cast<std::int64_t>(window.completed_above())}});
  }
  const bool starves = !open && window.records() < options.window_records &&
                       window.bytes() < options.window_bytes;
  if (starves && !owner.starved) {
    owner.starved = true;
    starved.push_back(owner.ref);
    starved_at_unfinished = std::max(starved_at_unfinished, unfinished_total);
    starved_at_bytes = std::max(starved_at_bytes, bytes_total);
  }
}

/// O7: whoever stands still because of the totals goes on when any other owner, also one that
/// ends, has given some back.
void Engine::Impl::pump_starved() {
  if (starved.empty() ||
      (unfinished_total >= starved_at_unfinished && bytes_total >= starved_at_bytes)) {
    return;
  }
  starved_at_unfinished = unfinished_total;
  starved_at_bytes = bytes_total;
  starved_before.swap(starved);
  for (const OwnerRef ref : starved_before) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr) continue;
    owner->starved = false;
    if (owner->state != OwnerState::active) continue;
    admit(*owner);
    update_flow(*owner);
  }
  starved_before.clear();
}

void Engine::Impl::park(PartitionOwner& owner, Offset offset, std::string_view reason) {
  ++owner.parked;
  ++totals.parked;
  report(EventName::record_parked, owner,
         {{"offset", offset.value()}, {"reason", std::string(reason)}});
}

void Engine::Impl::on(const RunReturned& returned) {
  Run* run = returned.run;
  PartitionOwner* owner = find(run->owner);
  TENURE_ASSERT(owner != nullptr && owner->runs_out > 0, "O5 a run in flight holds its owner");
  --owner->runs_out;
  --runs_out;
  records_out -= run->records.size();
  if (owner->runs_abandoned) --abandoned_out;

  const bool started = std::any_of(
      run->records.begin(), run->records.end(),
      [](const RunRecord& record) { return record.result != RecordResult::unstarted; });

  if (owner->state == OwnerState::retired || owner->state == OwnerState::frozen) {
    // O3, R3: from the freeze on the frontier is final; whatever comes is late.
    for (const RunRecord& record : run->records) {
      if (record.message != nullptr) out->freed.push_back(record.message);
      if (record.result == RecordResult::unstarted && run->store_error == StoreError::none) {
        continue;
      }
      ++totals.late;
      report(EventName::record_late, *owner,
             {{"offset", record.offset.value()}, {"outcome", std::string(word(record.result))}});
    }
    if (run->store_error == StoreError::superseded) {
      ++totals.refused;
      report(EventName::effect_refused, *owner,
             {{"step", std::string("effect")},
              {"token", owner->fence ? owner->fence->token.value() : 0},
              {"offset", run->records.front().offset.value()},
              {"reason", run->store_message}});
    }
    if (started && owner->state == OwnerState::retired) ++totals.retired_calls;
    const bool refused = run->store_error == StoreError::superseded;
    recycle(run);
    // F6: whoever is refused has nothing to commit any more (R4: only while entitled).
    if (refused && owner->live()) supersede(*owner, "effect");
    return;
  }

  if (started && run->took.count() > 0) {
    const double cost =
        static_cast<double>(run->took.count()) / static_cast<double>(run->records.size());
    handler_cost_ns = handler_cost_ns == 0 ? cost : handler_cost_ns * 0.9 + cost * 0.1;
  }

  switch (run->store_error) {
    case StoreError::superseded:
      ++totals.refused;
      report(EventName::effect_refused, *owner,
             {{"step", std::string("effect")},
              {"token", owner->fence ? owner->fence->token.value() : 0},
              {"offset", run->records.front().offset.value()},
              {"reason", run->store_message}});
      for (const RunRecord& record : run->records) {
        if (record.message != nullptr) out->freed.push_back(record.message);
      }
      supersede(*owner, "effect");
      recycle(run);
      return;
    case StoreError::in_doubt:
      doubt(*owner, *run);
      return;
    case StoreError::moved: {
      // E3: after a look-up that found nothing the old session may have committed all the same,
      // and the next run need not end where that one did.
      if (std::erase(owner->doubted_lanes, run->lane) > 0) {
        doubt(*owner, *run);
        return;
      }
      // T4: my token, the lane is neither where I left it nor past my target. Nobody may guess.
      const auto open = std::find_if(
          run->records.begin(), run->records.end(), [](const RunRecord& record) {
            return record.result != RecordResult::done && record.result != RecordResult::replayed;
          });
      if (open == run->records.end()) break;
      RunRecord& first = *open;
      first.result = RecordResult::park;
      run->failures.push_back({static_cast<std::uint32_t>(open - run->records.begin()),
                               "the lane's stored progress is not where this owner left it: " +
                                   run->store_message,
                               "moved", {}});
      report(EventName::effect_refused, *owner,
             {{"step", std::string("moved")},
              {"token", owner->fence ? owner->fence->token.value() : 0},
              {"offset", first.offset.value()},
              {"reason", run->store_message}});
      break;
    }
    default:
      // A compare-and-set that matched says where the lane stands; one that found the work done
      // already does not say how much.
      if (std::any_of(run->records.begin(), run->records.end(), [](const RunRecord& record) {
            return record.result == RecordResult::done;
          })) {
        std::erase(owner->doubted_lanes, run->lane);
      }
      break;
  }
  finish_run(*owner, *run);
  recycle(run);
}

/// Still out as far as the window is concerned: the lane waits.
void Engine::Impl::doubt(PartitionOwner& owner, Run& run) {
  owner.in_doubt.push_back(&run);
  ++owner.runs_out;
  ++runs_out;
  records_out += run.records.size();
  look_up(owner, run);
}

void Engine::Impl::finish_run(PartitionOwner& owner, Run& run) {
  std::vector<Window::Held> held;
  std::uint64_t finished = 0;
  std::uint64_t replayed = 0;
  for (const RunRecord& record : run.records) {
    if (record.result == RecordResult::done) ++finished;
    if (record.result == RecordResult::replayed) ++replayed;
    if (options.record_events && record.result != RecordResult::unstarted) {
      report(EventName::record_outcome, owner,
             {{"offset", record.offset.value()},
              {"outcome", std::string(word(record.result))},
              {"attempt", static_cast<std::int64_t>(record.attempt)},
              {"took_ms", static_cast<double>(run.took.count()) / 1e6}});
    }
  }
  totals.handled += finished + replayed;
  totals.replayed += replayed;
  if (finished + replayed > 0) {
    owner.again_streak = 0;
    owner.again_cause.reset();
    if (options.fence && run.lane_reached) note_store(true, {});
  }
  if (finished > 0) ++owner.effects;
  if (replayed > 0) {
    report(EventName::record_replayed, owner,
           {{"from", run.records.front().offset.value()},
            {"to", run.records.back().offset.value()}});
  }
  const Offset before = owner.window->frontier();
  with_window(owner, [&](Window& w) { w.settle(run, now, held, out->freed); return 0; });
  if (options.record_events && owner.window->frontier() != before) {
    report(EventName::frontier_advanced, owner,
           {{"from", before.value()}, {"to", owner.window->frontier().value()}});
  }
  if (!held.empty()) hold(owner, run, held);
  if (!owner.live()) return;
  admit(owner);
  update_flow(owner);
}

void Engine::Impl::hold(PartitionOwner& owner, const Run& run,
                        const std::vector<Window::Held>& held) {
  for (const Window::Held& record : held) {
    const RunFailure* failure = failure_of(run, record.index);
    const std::string reason = failure != nullptr ? failure->reason : std::string();
    const std::string failure_class =
        failure != nullptr && !failure->failure_class.empty() ? failure->failure_class
                                                              : std::string(word(record.result));
    RecordResult result = record.result;
    if (result == RecordResult::retry && record.attempt >= options.attempts) {
      switch (options.exhausted) {
        case OutcomeKind::stop: result = RecordResult::stop; break;
        case OutcomeKind::park: result = RecordResult::park; break;
        default: result = RecordResult::reject; break;
      }
    }
    switch (result) {
      case RecordResult::retry: {
        Duration wait = retries.backoff(record.attempt, random);
        if (failure != nullptr && failure->after) wait = std::min(*failure->after, retry_after_max);
        retries.add({after(now, wait), owner.ref, record.ordinal, true});
        ++owner.retrying;
        ++totals.retries;
        report(EventName::record_retry, owner,
               {{"offset", record.offset.value()},
                {"attempt", static_cast<std::int64_t>(record.attempt)},
                {"class", failure_class},
                {"reason", reason},
                {"after_ms", static_cast<double>(wait.count()) / 1e6}});
        break;
      }
      case RecordResult::again: {
        ++owner.again_streak;
        owner.again_cause = run.again;
        Duration wait = retries.backoff(owner.again_streak, random);
        if (run.again == AgainCause::contention) {
          wait = std::min(wait, contention_backoff_min * owner.again_streak);
        }
        if (run.again == AgainCause::store_down) note_store(false, run.store_message);
        if (run.again == AgainCause::contention) note_contention(run.store_message);
        if (run.again == AgainCause::handler_down && owner.again_streak == 1) {
          warn(owner, word(run.again), reason.empty() ? run.store_message : reason);
        }
        retries.add({after(now, wait), owner.ref, record.ordinal, false});
        ++owner.retrying;
        break;
      }
      case RecordResult::stop:
        park(owner, record.offset, reason.empty() ? "outcome stop" : reason);
        if (!stopping) {
          stop_cause = StopRequested::Cause::outcome_stop;
          begin_stop();
        }
        break;
      default:
        park(owner, record.offset, reason.empty() ? failure_class : reason);
        break;
    }
    if (!owner.live()) return;
  }
}

void Engine::Impl::recycle(Run* run) { free_runs.push_back(run); }

void Engine::Impl::look_up(PartitionOwner& owner, Run& run) {
  Lookup lookup;
  lookup.id = StoreRequestId(++last_store_id);
  lookup.owner = owner.ref;
  lookup.domain = {options.scope, owner.cluster, owner.topic_id, owner.partition.partition};
  lookup.fence = *owner.fence;
  lookup.lane = run.lane;
  emit(std::move(lookup));
}

void Engine::Impl::on(const LookedUp& found) {
  PartitionOwner* owner = find(found.owner);
  if (owner == nullptr) return;
  const auto position = std::find_if(owner->in_doubt.begin(), owner->in_doubt.end(),
                                     [&](const Run* run) { return run->lane == found.lane; });
  if (position == owner->in_doubt.end()) return;
  Run* run = *position;
  if (owner->state != OwnerState::active && owner->state != OwnerState::draining) {
    // Retired meanwhile: the successor reads the store itself.
    owner->in_doubt.erase(position);
    run->store_error = StoreError::none;
    on(RunReturned{run});
    return;
  }
  if (found.error == StoreError::superseded) {
    owner->in_doubt.erase(position);
    run->store_error = StoreError::superseded;
    run->store_message = found.message;
    on(RunReturned{run});
    return;
  }
  if (found.error != StoreError::none) {
    note_store(false, found.message);
    if (owner->doubt_at == never) doubtful.push_back(owner->ref);
    owner->doubt_at = after(now, options.backoff_min);
    return;
  }
  // E3: found = done; not found proves nothing yet, but the next attempt's compare-and-set waits
  // for the old session and decides.
  note_store(true, {});
  owner->in_doubt.erase(position);
  run->store_error = StoreError::none;
  const std::uint16_t lane = run->lane;
  const Offset certain = run->lane_reached.value_or(run->lane_from);
  const bool stored = found.next_offset && *found.next_offset > certain;
  for (RunRecord& record : run->records) {
    if (record.result == RecordResult::done || record.result == RecordResult::replayed) continue;
    const bool below = stored && record.offset < *found.next_offset;
    record.result = below ? RecordResult::replayed : RecordResult::unstarted;
  }
  if (stored) {
    run->lane_reached = found.next_offset;
    ++owner->effects;
    std::erase(owner->doubted_lanes, lane);
  }
  report(EventName::effect_in_doubt, *owner,
         {{"offset", run->records.front().offset.value()}, {"found", stored}});
  on(RunReturned{run});
  if (!stored && owner->live()) owner->doubted_lanes.push_back(lane);
}

void Engine::Impl::pump_doubt() {
  for (std::size_t i = 0; i < doubtful.size();) {
    PartitionOwner* owner = find(doubtful[i]);
    if (owner != nullptr && owner->doubt_at > now) {
      ++i;
      continue;
    }
    if (owner != nullptr) {
      owner->doubt_at = never;
      for (Run* run : owner->in_doubt) look_up(*owner, *run);
    }
    doubtful[i] = doubtful.back();
    doubtful.pop_back();
  }
}

void Engine::Impl::note_contention(std::string_view error) {
  if (!contended_since) contended_since = now;
  if (now - *contended_since >= contention_told_after) note_store(false, error);
}

void Engine::Impl::note_store(bool up, std::string_view error) {
  if (up) contended_since.reset();
  if (up == !store_down) return;
  store_down = !up;
  if (up) {
    report(EventName::store_recovered,
           {{"took_ms", static_cast<double>((now - store_down_since).count()) / 1e6}});
  } else {
    store_down_since = now;
    report(EventName::store_unavailable, {{"error", std::string(error)}});
  }
}

void Engine::Impl::pump_retries() {
  RetrySchedule::Entry entry;
  while (retries.pop(now, entry)) {
    PartitionOwner* owner = find(entry.owner);
    if (owner == nullptr || owner->state != OwnerState::active) continue;
    --owner->retrying;
    with_window(*owner, [&](Window& w) { w.release(entry.ordinal, entry.counts, now); return 0; });
  }
}

void Engine::Impl::pump_dispatch() {
  if (suspect || phase != Phase::member) return;
  const auto may_dispatch = [this] {
    // R9: the slots of abandoned runs have been taken by others.
    if (options.async) return runs_out - abandoned_out < options.concurrency;
    return records_out < options.ready_max || runs_out - abandoned_out < options.concurrency;
  };
  std::size_t visited = 0;
  while (visited < ready_list.size() && may_dispatch()) {
    if (ready_turn >= ready_list.size()) ready_turn = 0;
    PartitionOwner* owner = find(ready_list[ready_turn]);
    const bool usable = owner != nullptr && owner->state == OwnerState::active &&
                        !owner->log_went_back && owner->window->ready() > 0;
    if (!usable) {
      if (owner != nullptr) owner->in_ready_list = false;
      ready_list[ready_turn] = ready_list.back();
      ready_list.pop_back();
      continue;
    }
    std::uint32_t most = 1;
    if (options.progress) {
      most = options.batch_records;
    } else if (!options.async) {
      const double cost = std::max(handler_cost_ns, 1.0);
      const double by_time = static_cast<double>(run_time_budget.count()) / cost;
      const std::uint64_t share =
          std::max<std::uint64_t>(1, ready_total / (2ull * options.concurrency));
      most = by_time >= 1024 ? 1024u : std::max(1u, static_cast<std::uint32_t>(by_time));
      // Splitting a queue's run gains nothing where order makes it one after the other anyway.
      if (options.order == Order::none && (cost >= cheap_record_ns || handler_cost_ns == 0)) {
        most = std::min({most, slow_run_records_max, static_cast<std::uint32_t>(share)});
      }
      if (options.batch_records > 1) most = options.batch_records;
    }
    Run* run = nullptr;
    if (free_runs.empty()) {
      runs.push_back(std::make_unique<Run>());
      run = runs.back().get();
    } else {
      run = free_runs.back();
      free_runs.pop_back();
    }
    const bool taken =
        with_window(*owner, [&](Window& w) { return w.take(*run, most, now); });
    if (!taken) {
      recycle(run);
      ++visited;
      ++ready_turn;
      continue;
    }
    TENURE_ASSERT(!run->records.empty(), "O5 a run has records");
    run->owner = owner->ref;
    run->fence = owner->fence;
    ++owner->runs_out;
    ++runs_out;
    records_out += run->records.size();
    out->dispatched.push_back(run);
    if (options.record_events) {
      for (const RunRecord& record : run->records) {
        report(EventName::record_dispatched, *owner,
               {{"offset", record.offset.value()},
                {"attempt", static_cast<std::int64_t>(record.attempt)}});
      }
    }
    visited = 0;
    ++ready_turn;
  }
}

}  // namespace tenure::core
