// How owners end: revocation (R1-R5), loss (R6, R5b), superseding (T8), client failure (R11),
// shutdown (R10). Rebalances are answered here, each exactly once.
#include <algorithm>
#include <utility>

#include "core/engine_impl.hpp"

namespace tenure::core {

namespace {

constexpr Duration reacquire_wait = std::chrono::milliseconds(500);
constexpr Duration reopen_min = std::chrono::milliseconds(200);
constexpr Duration reopen_max = std::chrono::seconds(10);
constexpr std::uint32_t superseded_in_a_row_max = 2;  // T8

double milliseconds_of(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace

// ---- rebalances ------------------------------------------------------------------------------

bool Engine::Impl::membership_broken(const Member& member) const {
  if (member.id.empty() || member.epoch.value() < 0) return true;
  if (!last_member) return false;
  return member.id != last_member->id || member.epoch.value() < last_member->epoch.value();
}

Duration Engine::Impl::drain_budget() const {
  const Duration margin = std::max(options.drain_margin, times.heartbeat);
  const Duration left = times.poll_limit - margin - options.commit_slice;
  return std::max(Duration::zero(), std::min(options.drain_budget, left));
}

void Engine::Impl::on(const Rebalance& rebalance) {
  const bool orphaned = orphaned_since != never;
  orphaned_since = never;
  unreleased_since = never;
  open_failures = 0;
  const bool broken = membership_broken(rebalance.member);
  const bool owned_before = !live.empty() || !reacquire.empty();
  report(EventName::group_rebalancing,
         {{"protocol", std::string(name(rebalance.protocol))},
          {"cause", std::string(rebalance.lost ? "lost"
                                : rebalance.kind == Rebalance::Kind::assign ? "assign"
                                                                             : "revoke")},
          {"partitions", static_cast<std::int64_t>(rebalance.partitions.size())}});
  if (rebalance.lost || broken) {
    lose_all(rebalance.lost ? "session" : "member", RetiredReason::lost);
  }
  // A client that lost its membership without saying so may list partitions of somebody else, and
  // brings no event for those it still has (R5b). An eager revoke names them all.
  const bool names_all =
      rebalance.kind == Rebalance::Kind::revoke && rebalance.protocol == Protocol::eager;
  const bool unsafe =
      !rebalance.lost && ((broken && owned_before) || (orphaned && !names_all));

  if (rebalance.kind == Rebalance::Kind::assign) {
    if (unsafe || phase != Phase::member) {
      AnswerAssign answer{rebalance.id, {}};
      for (const TopicPartition& partition : rebalance.partitions) {
        answer.granted.push_back({partition, OwnerRef{}});
      }
      emit(std::move(answer));
    } else {
      grant(rebalance);
    }
  } else if (rebalance.lost || unsafe || phase != Phase::member) {
    emit(AnswerRevoke{rebalance.id, rebalance.partitions});
  } else {
    Drain drain;
    drain.answers = rebalance.id;
    drain.partitions = rebalance.partitions;
    drain.began = now;
    const Duration budget = drain_budget();
    drain.deadline = after(now, budget);
    drain.stop_at = after(now, budget / 2);
    for (const TopicPartition& partition : rebalance.partitions) {
      std::erase_if(reacquire, [&](const Reacquire& next) { return next.partition == partition; });
      PartitionOwner* owner = find_live(partition);
      if (owner == nullptr) continue;
      report(EventName::owner_revoked, *owner,
             {{"in_flight",
               static_cast<std::int64_t>(owner->window ? owner->window->lent() : 0)},
              {"queued",
               static_cast<std::int64_t>(owner->window ? owner->window->ready() + owner->waiting()
                                                       : 0)}});
      if (owner->state == OwnerState::acquiring) {
        retire(*owner, RetiredReason::revoked);  // O3: no drain, no commit
        continue;
      }
      if (owner->state == OwnerState::active) {
        begin_drain(*owner, drain.deadline);
      } else {
        // Draining for a shutdown: it is released with this answer now.
        for (Drain& other : drains) std::erase(other.owners, owner->ref);
        owner->drain_deadline = drain.deadline;
      }
      drain.owners.push_back(owner->ref);
    }
    drains.push_back(std::move(drain));
  }

  // The member of the next comparison: also one that is new because nothing was owned before.
  if (rebalance.lost || unsafe || rebalance.member.id.empty() ||
      rebalance.member.epoch.value() < 0) {
    last_member.reset();
  } else {
    last_member = rebalance.member;
  }
  if (unsafe) rejoin("the group had expelled this member without telling it");
}

// ---- drain -----------------------------------------------------------------------------------

void Engine::Impl::begin_drain(PartitionOwner& owner, Deadline deadline) {
  const std::uint64_t in_flight = owner.window->lent();
  owner.state = OwnerState::draining;
  owner.drain_deadline = deadline;
  owner.relocating = false;
  emit(CloseDispatch{owner.ref});
  drop_queued(owner);
  report(EventName::owner_draining, owner,
         {{"in_flight", static_cast<std::int64_t>(in_flight)},
          {"budget_ms", milliseconds_of(deadline - now)}});
}

/// O5: nothing of it counts as completed.
void Engine::Impl::drop_queued(PartitionOwner& owner) {
  if (owner.window) {
    with_window(owner, [&](Window& w) { w.drop_unstarted(out->freed); return 0; });
  }
  for (std::size_t i = owner.overflow_next; i < owner.overflow.size(); ++i) {
    if (owner.overflow[i].message != nullptr) out->freed.push_back(owner.overflow[i].message);
  }
  owner.overflow.clear();
  owner.overflow_next = 0;
  owner.reached.reset();
  owner.retrying = 0;
  retries.drop(owner.ref);
}

std::optional<Offset> Engine::Impl::last_commit(const PartitionOwner& owner) const {
  if (owner.log_went_back || owner.truncated) return {};
  const Offset value = committable(owner);
  if (value > owner.committed.value_or(owner.start) || owner.recommit) return value;
  return {};
}

/// C1: the slice ended without a slot.
void Engine::Impl::not_sent(const Drain& drain) {
  for (const OwnerRef ref : drain.owners) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || !owner->live()) continue;
    if (const auto value = last_commit(*owner)) {
      count(owner, {ref, owner->partition, *value, no_leader_epoch}, CommitOutcome::unresolved,
            name(BrokerError::not_sent));
    }
  }
}

void Engine::Impl::pump_drains() {
  for (Drain& drain : drains) {
    if (drain.phase == Drain::Phase::running) {
      bool working = false;
      for (const OwnerRef ref : drain.owners) {
        PartitionOwner* owner = find(ref);
        if (owner == nullptr || !owner->live()) continue;
        // R2: until nothing runs, or nothing still to come could be kept. One that was frozen
        // before it came into this drain has its final frontier.
        working = working || (owner->state == OwnerState::draining && owner->window->lent() > 0 &&
                              owner->window->can_still_advance());
      }
      if (working && now < drain.deadline) {
        if (!drain.stop_fired && now >= drain.stop_at) {
          drain.stop_fired = true;
          for (const OwnerRef ref : drain.owners) emit(FireStop{ref});
        }
        continue;
      }
      drain.cut = working;
      freeze(drain);
    }

    if (drain.phase == Drain::Phase::advancing) {
      bool waiting = false;
      bool to_commit = false;
      for (const OwnerRef ref : drain.owners) {
        PartitionOwner* owner = find(ref);
        if (owner == nullptr || !owner->live() || owner->log_went_back) continue;
        if (options.progress && !owner->advance_asked) ask_advance(*owner);
        waiting = waiting || owner->advance_asked;
        to_commit = to_commit || last_commit(*owner).has_value();
      }
      // Half the slice is kept for the commit itself.
      if (waiting && now < drain.advance_deadline) continue;
      if (!to_commit) {
        drain.phase = Drain::Phase::done;
      } else if (now >= drain.commit_deadline) {
        drain.resolved = false;
        not_sent(drain);
        drain.phase = Drain::Phase::done;
      } else if (slot || commit_answer || now < drain.commit_not_before) {
        continue;  // R4: first the commit that is still outstanding
      } else {
        drain.phase = Drain::Phase::checking;
        member_asked = true;
        emit(ReadMember{});  // R5b: before the commit of R4, after the drain
        continue;
      }
    }

    if (drain.phase == Drain::Phase::committing) {
      if (!drain.commit && !slot) {
        std::vector<CommitLine> lines;
        std::vector<SlotLine> slot_lines;
        for (const OwnerRef ref : drain.owners) {
          PartitionOwner* owner = find(ref);
          if (owner == nullptr || !owner->live()) continue;
          const auto value = last_commit(*owner);
          if (!value) continue;
          slot_lines.push_back({ref, owner->partition, *value, no_leader_epoch});
          lines.push_back(line_for(*owner, *value));
        }
        if (lines.empty()) {
          drain.phase = Drain::Phase::done;
        } else {
          send(std::move(lines), std::move(slot_lines));
          drain.commit = slot->id;
        }
      }
      if (drain.phase == Drain::Phase::committing && now >= drain.commit_deadline) {
        drain.resolved = false;
        if (!drain.commit) {
          not_sent(drain);
        } else if (slot && drain.commit == slot->id) {
          for (SlotLine& line : slot->lines) {
            // One that went over to a later drain waits on there.
            const bool mine = std::find(drain.owners.begin(), drain.owners.end(), line.owner) !=
                              drain.owners.end();
            if (line.counted || !mine) continue;
            line.counted = true;
            count(find(line.owner), line, CommitOutcome::unresolved, "no answer in the slice");
          }
        }
        drain.phase = Drain::Phase::done;
      }
    }
    if (drain.phase == Drain::Phase::done) finish_drain(drain);
  }
  std::erase_if(drains, [](const Drain& drain) { return drain.phase == Drain::Phase::done; });
}

void Engine::Impl::freeze(Drain& drain) {
  for (const OwnerRef ref : drain.owners) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || !owner->live()) continue;
    const Window& window = *owner->window;
    owner->state = OwnerState::frozen;
    const std::uint64_t left = window.lent();
    report(EventName::owner_drained, *owner,
           {{"result", std::string(left == 0                  ? "complete"
                                   : window.can_still_advance() ? "deadline"
                                                                : "early")},
            {"left", static_cast<std::int64_t>(left)},
            {"took_ms", milliseconds_of(now - drain.began)}});
    report(EventName::owner_frozen, *owner,
           {{"frontier", window.frontier().value()},
            {"above", static_cast<std::int64_t>(window.completed_above())}});
    touch(*owner);
  }
  drain.commit_deadline = after(now, options.commit_slice);
  drain.advance_deadline = after(now, options.commit_slice / 2);
  drain.phase = Drain::Phase::advancing;
}

void Engine::Impl::finish_drain(Drain& drain) {
  drain.phase = Drain::Phase::done;
  if (drain.reason == RetiredReason::shutdown && (drain.cut || !drain.resolved)) cut_short = true;
  std::vector<OwnerRef> released;
  for (const OwnerRef ref : drain.owners) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || !owner->live()) continue;
    retire(*owner, drain.reason);
    released.push_back(ref);
  }
  // R5: retired first, then the answer.
  if (drain.answers) {
    emit(AnswerRevoke{*drain.answers, std::move(drain.partitions)});
    drain.answers.reset();
  }
  for (const OwnerRef ref : released) {
    report(EventName::owner_released, *find(ref),
           {{"took_ms", milliseconds_of(now - drain.began)}});
  }
}

// ---- the end of an owner ---------------------------------------------------------------------

void Engine::Impl::retire(PartitionOwner& owner, RetiredReason reason) {
  TENURE_ASSERT(owner.live(), "O3 retired is terminal");
  const bool was_active = owner.state == OwnerState::active;
  const bool frozen = owner.state == OwnerState::frozen;
  owner.state = OwnerState::retired;
  owner.retired_reason = reason;
  live.erase(owner.partition);
  std::erase(acquiring, owner.ref);
  owner.relocating = false;
  emit(ForgetOwner{owner.ref});
  if (was_active) emit(CloseDispatch{owner.ref});
  if (owner.runs_out > 0) {
    emit(FireStop{owner.ref});
    if (options.fence) emit(CancelUnits{owner.ref});
  }
  std::int64_t frontier = owner.start.value();
  drop_queued(owner);
  if (owner.window) {
    frontier = owner.window->frontier().value();
    unfinished_total -= owner.window->unfinished();
    bytes_total -= owner.window->bytes();
  }
  // C3: nobody waits for the answer of its commit any more.
  for (std::size_t i = 0; slot && i < slot->lines.size(); ++i) {
    SlotLine& line = slot->lines[i];
    if (line.owner != owner.ref || line.counted) continue;
    line.counted = true;
    count(&owner, line, CommitOutcome::unresolved, name(reason));
  }
  std::vector<Report::Item> fields{{"reason", std::string(name(reason))}, {"frontier", frontier}};
  if (owner.committed) fields.push_back({"committed", owner.committed->value()});
  fields.push_back({"age_ms", milliseconds_of(now - owner.granted_at)});
  report(EventName::owner_retired, owner, std::move(fields));

  // R9: whoever has had the drain budget already is not waited for. A drain that ended early (R2)
  // has left some of it.
  owner.abandon_at = never;
  if (owner.runs_out > 0) {
    owner.abandon_at = frozen ? std::max(now, *owner.drain_deadline) : after(now, drain_budget());
  }
  ended.push_back(owner.ref);
  touch(owner);
  std::vector<Run*> doubtful_runs;
  doubtful_runs.swap(owner.in_doubt);
  for (Run* run : doubtful_runs) {
    run->store_error = StoreError::none;
    on(RunReturned{run});
  }
}

void Engine::Impl::pump_ended() {
  for (std::size_t i = 0; i < ended.size();) {
    PartitionOwner* owner = find(ended[i]);
    if (owner->runs_out == 0) {
      emit(DropOwner{owner->ref});
      std::erase(ready_list, owner->ref);
      const std::uint32_t index = owner->ref.slot;
      std::erase(touched, owner->ref);
      slots[index].reset();
      free_slots.push_back(index);
      ended[i] = ended.back();
      ended.pop_back();
      continue;
    }
    if (now >= owner->abandon_at) {
      owner->abandon_at = never;
      owner->runs_abandoned = true;
      abandoned_out += owner->runs_out;
      totals.abandoned += owner->runs_out;
      emit(AbandonRuns{owner->ref});
      if (abandoned_out >= options.concurrency && !stopping) {
        warn(*owner, "handlers_stuck",
             "as many handlers ignore their stop token as concurrency allows: shutting down");
        end({Finished::Reason::cut_short, "every handler slot is held by an abandoned handler"});
      }
    }
    ++i;
  }
}

void Engine::Impl::lose_all(std::string_view cause, RetiredReason reason) {
  for (PartitionOwner* owner : live_owners()) {
    report(EventName::owner_lost, *owner, {{"cause", std::string(cause)}});
    ++totals.lost;
    retire(*owner, reason);
  }
  reacquire.clear();
  reads.clear();
  for (Drain& drain : drains) {
    if (drain.phase == Drain::Phase::done) continue;
    if (drain.answers) {
      emit(AnswerRevoke{*drain.answers, std::move(drain.partitions)});
      drain.answers.reset();
    } else if (!drain.owners.empty()) {
      cut_short = true;
    }
    drain.phase = Drain::Phase::done;
  }
  forget_member();
}

/// R8, R5b: nothing that was proven about the former member counts for the next.
void Engine::Impl::forget_member() {
  suspect = false;
  lease_at.reset();
  last_member.reset();
  if (slot) slot->of_former_member = true;
}

void Engine::Impl::supersede(PartitionOwner& owner, std::string_view step) {
  const TopicPartition partition = owner.partition;
  const Protocol protocol = owner.protocol;
  const bool assigned = owner.state == OwnerState::active || owner.state == OwnerState::acquiring;
  std::uint32_t in_a_row = 1;
  if (step == "topic_id") {
    in_a_row = 0;
  } else if (owner.effects == 0 && owner.validated_by_broker) {
    in_a_row = owner.superseded_before + 1;
  }
  retire(owner, RetiredReason::superseded);
  if (in_a_row >= superseded_in_a_row_max) {
    report(EventName::group_fenced,
           {{"cause", std::string("superseded twice while the broker says that we own it")}});
    end({Finished::Reason::fenced,
         "partition " + partition.topic + "/" + std::to_string(partition.partition.value()) +
             " was superseded twice at the store although the broker accepts this member"});
    return;
  }
  // T8: the assignment stands; after a backoff a new owner starts at T1, and T2 tells a zombie
  // from the living.
  if (assigned && !stopping) {
    reacquire.push_back({partition, protocol, after(now, reacquire_wait), in_a_row});
  }
}

// ---- the client ------------------------------------------------------------------------------

void Engine::Impl::rejoin(std::string_view why) {
  report(EventName::group_rebalancing, {{"cause", "rejoining: " + std::string(why)}});
  phase = Phase::rejoining;
  emit(CloseSource{});
  close_deadline = after(now, options.close_limit);
}

void Engine::Impl::open_again(Duration wait) {
  phase = Phase::opening;
  close_deadline = never;
  orphaned_since = never;
  forget_member();
  reacquire.clear();
  slot.reset();  // its client is gone: no answer will come
  commit_answer.reset();
  member_asked = false;
  advancing = false;
  open_at = after(now, wait);
}

void Engine::Impl::on(const ClientError& error) {
  if (phase == Phase::finished) return;
  if (!error.fatal) {
    report(EventName::health_changed,
           {{"check", std::string("broker")},
            {"status", std::string("warn")},
            {"cause", std::string(name(error.error))},
            {"text", error.message}});
    return;
  }
  report(EventName::client_fatal, {{"error", std::string(name(error.error))},
                                   {"text", error.message}});
  lose_all("fatal", RetiredReason::fatal);
  const bool unreleased = error.error == BrokerError::unreleased_instance_id;
  if (unreleased && unreleased_since == never) unreleased_since = now;
  const bool waited_out = unreleased && now - unreleased_since > 2 * times.session;
  if ((unreleased && !waited_out) || error.error == BrokerError::group_id_not_found) {
    // R11: the crashed holder of our static name has not expired yet, or the group is gone.
    emit(AbandonSource{});
    Duration wait = reopen_min;
    for (std::uint32_t i = 0; i < open_failures && wait < reopen_max; ++i) wait *= 2;
    ++open_failures;
    open_again(std::min(wait, unreleased ? std::chrono::seconds(1) : reopen_max));
    return;
  }
  emit(AbandonSource{});
  const bool fenced = unreleased || error.error == BrokerError::fenced_instance_id;
  if (fenced) report(EventName::group_fenced, {{"error", error.message}});
  phase = Phase::finished;
  emit(Finished{fenced ? Finished::Reason::fenced : Finished::Reason::fatal, error.message});
}

void Engine::Impl::on(const OpenFailed& failed) {
  if (phase != Phase::opening) return;
  report(EventName::client_fatal, {{"text", failed.message}});
  if (!failed.retriable) {
    phase = Phase::finished;
    emit(Finished{Finished::Reason::fatal, failed.message});
    return;
  }
  Duration wait = reopen_min;
  for (std::uint32_t i = 0; i < open_failures && wait < reopen_max; ++i) wait *= 2;
  ++open_failures;
  open_again(std::min(wait, reopen_max));
}

void Engine::Impl::on(const Closed&) {
  if (phase == Phase::finished || phase == Phase::opening) return;
  if (!live.empty()) lose_all("closed", RetiredReason::lost);
  report(EventName::group_left);
  close_deadline = never;
  if (phase != Phase::closing) {
    open_again(reopen_min);
    return;
  }
  phase = Phase::finished;
  if (finish_with) {
    emit(std::move(*finish_with));
  } else if (stop_cause == StopRequested::Cause::outcome_stop) {
    emit(Finished{Finished::Reason::outcome_stop, "a handler answered stop"});
  } else if (cut_short) {
    emit(Finished{Finished::Reason::cut_short,
                  "drain cut short or last commit unresolved; a restart is safe"});
  } else {
    emit(Finished{Finished::Reason::drained, {}});
  }
}

// ---- shutdown --------------------------------------------------------------------------------

void Engine::Impl::on(const StopRequested& request) {
  if (stopping || phase == Phase::finished) return;
  options.shutdown_budget = request.budget;
  stop_cause = request.cause;
  begin_stop();
}

void Engine::Impl::begin_stop() {
  stopping = true;
  pump_again = true;
  reacquire.clear();
  std::int64_t in_flight = 0;
  for (const PartitionOwner* owner : live_owners()) {
    if (owner->window) in_flight += static_cast<std::int64_t>(owner->window->lent());
  }
  std::string cause = "asked";
  if (stop_cause == StopRequested::Cause::outcome_stop) cause = "outcome stop";
  if (stop_cause == StopRequested::Cause::until_end) cause = "end of the log reached";
  if (finish_with) cause = finish_with->message;
  report(EventName::app_draining, {{"cause", std::move(cause)},
                                   {"in_flight", in_flight},
                                   {"budget_ms", milliseconds_of(options.shutdown_budget)}});
  Drain drain;
  drain.reason = RetiredReason::shutdown;
  drain.began = now;
  drain.deadline = after(now, options.shutdown_budget);
  drain.stop_at = after(now, options.shutdown_budget / 2);
  for (PartitionOwner* owner : live_owners()) {
    if (owner->state == OwnerState::acquiring) {
      retire(*owner, RetiredReason::shutdown);
    } else if (owner->state == OwnerState::active) {
      begin_drain(*owner, drain.deadline);
      drain.owners.push_back(owner->ref);
    }
  }
  drains.push_back(std::move(drain));
}

void Engine::Impl::pump_stop() {
  if (phase == Phase::opening) {
    if (stopping) {
      emit(AbandonSource{});
      phase = Phase::closing;
      on(Closed{});
      return;
    }
    if (open_at <= now) {
      open_at = never;
      report(EventName::group_joining);
      emit(OpenSource{});
    }
    return;
  }
  if (close_deadline <= now) {
    emit(AbandonSource{});
    on(Closed{});
    return;
  }
  if (phase == Phase::rejoining && stopping) {
    phase = Phase::closing;
    return;
  }
  if (phase != Phase::member) return;
  if (orphaned_since != never && now - orphaned_since > times.session) {
    orphaned_since = never;
    rejoin("a commit said that the group does not know this member, and no event followed");
    return;
  }
  if (stopping) {
    if (!drains.empty() || !live.empty()) return;
    phase = Phase::closing;
    emit(CloseSource{});
    close_deadline = after(now, options.close_limit);
    return;
  }
  if (options.until_end && joined) {
    bool all = true;
    for (const auto& [partition, ref] : live) {
      const PartitionOwner* owner = find(ref);
      all = all && owner->state == OwnerState::active && owner->end_target &&
            owner->window->frontier() >= *owner->end_target;
    }
    // An empty assignment may only be the first of two (cooperative): wait some heartbeats.
    if (live.empty()) {
      all = waits_for_partitions() && now - no_partition_since >= 3 * times.heartbeat;
    }
    if (all && drains.empty()) {
      stop_cause = StopRequested::Cause::until_end;
      begin_stop();
    }
  }
}

void Engine::Impl::on(const AbandonRequested&) {
  if (phase == Phase::finished) return;
  for (PartitionOwner* owner : live_owners()) retire(*owner, RetiredReason::shutdown);
  for (Drain& drain : drains) {  // R5: on every path
    if (drain.answers) emit(AnswerRevoke{*drain.answers, std::move(drain.partitions)});
  }
  drains.clear();
  stopping = true;
  emit(AbandonSource{});
  phase = Phase::finished;
  emit(Finished{Finished::Reason::cut_short, "abandoned on request"});
}

void Engine::Impl::end(Finished finished) {
  if (stopping) return;
  finish_with = std::move(finished);
  begin_stop();
}

}  // namespace tenure::core
