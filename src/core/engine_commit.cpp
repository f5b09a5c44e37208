// The commit slot (C1), what goes into it, what its answer means, and the lease it renews (R8).
#include <algorithm>
#include <utility>

#include "core/commit_metadata.hpp"
#include "core/engine_impl.hpp"

namespace tenure::core {

namespace {

constexpr Duration suspect_commit_interval = std::chrono::milliseconds(500);
constexpr Duration advance_wait_max = std::chrono::milliseconds(500);

}  // namespace

// ---- lease -----------------------------------------------------------------------------------

bool Engine::Impl::lease_fresh() const {
  return lease_at && now - *lease_at <= times.session / 2;
}

void Engine::Impl::check_lease() {
  if (suspect || !lease_at || now - *lease_at <= times.session) return;
  bool any = false;
  for (PartitionOwner* owner : live_owners()) {
    if (owner->state == OwnerState::acquiring) continue;
    any = true;
    report(EventName::owner_suspect, *owner,
           {{"gap_ms", static_cast<double>((now - *lease_at).count()) / 1e6}});
    touch(*owner);
  }
  if (!any) return;
  suspect = true;
  suspect_since = now;
  commit_at = now;
}

// ---- what a commit may say -------------------------------------------------------------------

Offset Engine::Impl::committable(const PartitionOwner& owner) const {
  const Offset frontier = owner.window->frontier();
  return options.progress ? std::min(frontier, owner.window->stored_minimum()) : frontier;
}

bool Engine::Impl::wants_commit(const PartitionOwner& owner) const {
  if (owner.log_went_back || owner.relocating) return false;
  const Offset value = committable(owner);
  return value > owner.committed.value_or(owner.start) || owner.recommit || suspect ||
         (lease_at && now - *lease_at >= times.session / 2) ||
         now - owner.committed_at >= unchanged_commit_interval;
}

bool Engine::Impl::wants_advance(const PartitionOwner& owner) const {
  if (!options.progress || owner.log_went_back || owner.advance_asked) return false;
  return !owner.advance_steps.empty() || owner.window->frontier() > owner.window->stored_minimum();
}

CommitLine Engine::Impl::line_for(const PartitionOwner& owner, Offset offset) {
  CommitLine line{owner.ref, owner.partition, offset, no_leader_epoch, {}};
  if (offset == owner.window->frontier()) {
    line.leader_epoch = owner.window->frontier_leader_epoch();
  }
  if (!owner.plain_metadata) {
    line.metadata = encode({owner.cluster, owner.topic_id.text(), offset,
                            owner.member.epoch.value(), owner.window->completed_above()});
  }
  return line;
}

bool Engine::Impl::ask_advance(PartitionOwner& owner) {
  if (!options.progress || owner.advance_asked || owner.advance_not_before > now) return false;
  // E3: in doubt, the very same again: done already, or done now.
  AdvanceIdle request;
  request.steps = owner.advance_steps;
  Window& window = *owner.window;
  for (std::uint16_t lane = 0; owner.advance_steps.empty() && lane < options.lanes; ++lane) {
    if (!window.lane_idle(lane)) continue;  // its next unit moves it
    const Offset stored = window.lane_stored(lane);
    const Offset stand = window.lane_stand(lane);
    if (stand <= stored) continue;
    request.steps.push_back({lane, stored, stand, window.frontier_leader_epoch()});
    // No unit of this lane may be started meanwhile: one store transaction a lane.
    with_window(owner, [&](Window& w) { w.reserve_lane(lane); return 0; });
  }
  if (request.steps.empty()) return false;
  request.id = StoreRequestId(++last_store_id);
  request.owner = owner.ref;
  request.domain = {options.scope, owner.cluster, owner.topic_id, owner.partition.partition};
  request.fence = *owner.fence;
  owner.advance_asked = true;
  owner.advance_steps = request.steps;
  emit(std::move(request));
  return true;
}

void Engine::Impl::on(const IdleAdvanced& answer) {
  PartitionOwner* owner = find(answer.owner);
  if (owner == nullptr || !owner->live() || !owner->advance_asked) return;
  owner->advance_asked = false;
  const bool stored = answer.error == StoreError::none;
  const bool refused = answer.error == StoreError::superseded || answer.error == StoreError::moved;
  owner->advance_in_doubt =
      !stored && !refused && (owner->advance_in_doubt || answer.error == StoreError::in_doubt);
  if (owner->advance_in_doubt) {
    // The lanes stay reserved: where they stand is known when the same request has been answered.
    if (answer.error != StoreError::contention) note_store(false, answer.message);
    owner->advance_not_before = after(now, options.backoff_min);
    return;
  }
  for (const AdvanceIdle::Step& step : owner->advance_steps) {
    with_window(*owner, [&](Window& w) {
      w.lane_advanced(step.lane, stored ? step.to : step.from, now);
      return 0;
    });
  }
  owner->advance_steps.clear();
  switch (answer.error) {
    case StoreError::none:
      note_store(true, {});
      break;
    case StoreError::superseded:
      ++totals.refused;
      report(EventName::effect_refused, *owner,
             {{"step", std::string("advance")},
              {"token", owner->fence->token.value()},
              {"reason", answer.message}});
      supersede(*owner, "advance");
      break;
    case StoreError::moved:
      warn(*owner, "moved", "idle lanes are not where this owner left them: " + answer.message);
      owner->advance_not_before = after(now, options.backoff_max);
      break;
    default:
      if (answer.error == StoreError::contention) {
        note_contention(answer.message);
      } else {
        note_store(false, answer.message);
      }
      owner->advance_not_before = after(now, options.backoff_min);
      break;
  }
}

// ---- sending ---------------------------------------------------------------------------------

void Engine::Impl::send(std::vector<CommitLine> lines, std::vector<SlotLine> slot_lines) {
  TENURE_ASSERT(!slot, "C1 at most one commit request is outstanding");
  for (const CommitLine& line : lines) {
    PartitionOwner* owner = find(line.owner);
    TENURE_ASSERT(owner != nullptr && owner->live(), "C5 never for a retired owner");
    owner->recommit = false;
    report(EventName::commit_sent, *owner, {{"offset", line.offset.value()}});
  }
  slot = Slot{CommitId(++last_commit_id), now, after(now, times.session + times.socket_timeout),
              std::move(slot_lines)};
  emit(SendCommit{slot->id, std::move(lines)});
}

void Engine::Impl::pump_commits() {
  if (phase != Phase::member || slot || commit_answer) return;
  std::vector<CommitLine> lines;
  std::vector<SlotLine> slot_lines;

  // T2, at once.
  for (const OwnerRef ref : acquiring) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || owner->state != OwnerState::acquiring) continue;
    Acquisition& a = owner->acquisition;
    if (!a.resolved || !a.must_validate || a.validated || a.wait_until > now) continue;
    CommitLine line{ref, owner->partition, a.validated_offset, a.validated_leader_epoch, {}};
    if (a.committed && *a.committed == a.validated_offset) {
      line.metadata = a.committed_metadata;
    } else if (!owner->plain_metadata) {
      line.metadata = encode({owner->cluster, owner->topic_id.text(), a.validated_offset,
                              owner->member.epoch.value(), 0});
    }
    if (owner->plain_metadata) line.metadata.clear();
    a.validating = true;
    slot_lines.push_back({ref, owner->partition, line.offset, line.leader_epoch, true});
    lines.push_back(std::move(line));
  }

  bool periodic = now >= commit_at;
  if (periodic && !advancing && options.progress) {
    for (PartitionOwner* owner : live_owners()) {
      if (owner->state != OwnerState::active) continue;
      if (wants_advance(*owner)) advancing = ask_advance(*owner) || advancing;
    }
    if (advancing) {
      advance_deadline = after(now, std::min(advance_wait_max, options.commit_interval));
    }
  }
  if (advancing) {
    bool out_there = false;
    for (const auto& [partition, ref] : live) out_there = out_there || find(ref)->advance_asked;
    if (out_there && now < advance_deadline) {
      periodic = false;
    } else {
      advancing = false;
    }
  }
  if (periodic) {
    for (PartitionOwner* owner : live_owners()) {
      if (owner->state != OwnerState::active || !wants_commit(*owner)) continue;
      const Offset value = committable(*owner);
      slot_lines.push_back({owner->ref, owner->partition, value, no_leader_epoch, false});
      lines.push_back(line_for(*owner, value));
    }
    commit_at = after(now, suspect ? std::min(options.commit_interval, suspect_commit_interval)
                                   : options.commit_interval);
  }
  if (!lines.empty()) send(std::move(lines), std::move(slot_lines));
}

void Engine::Impl::expire_slot() {
  // An answer that came with the end of a freeze is an answer.
  if (!slot || commit_answer || slot->expires > now) return;
  const Slot gone = std::move(*slot);
  slot.reset();
  for (const SlotLine& line : gone.lines) {
    PartitionOwner* owner = find(line.owner);
    if (!line.counted) count(owner, line, CommitOutcome::unresolved, "timeout");
    if (owner == nullptr || !owner->live()) continue;
    if (line.validates) {
      owner->acquisition.validating = false;
      stumble(*owner);
    } else {
      owner->recommit = true;
    }
  }
}

// ---- the answer ------------------------------------------------------------------------------

void Engine::Impl::on(const CommitAnswer& given) {
  if (!slot || given.id != slot->id) {
    // C3: counted and ignored; whoever owns the partition here now commits again, since the
    // late one may have rewound it.
    for (const CommitAnswer::Line& line : given.lines) {
      if (const PartitionOwner* owner = find(line.owner)) {
        report(EventName::commit_late, *owner, {{"reason", std::string(name(line.error))}});
      } else {
        report(EventName::commit_late, {{"reason", std::string(name(line.error))}});
      }
    }
    for (PartitionOwner* owner : live_owners()) {
      if (owner->state == OwnerState::active) owner->recommit = true;
    }
    return;
  }
  TENURE_ASSERT(given.lines.size() == slot->lines.size(), "C2 an answer has every line");
  // What it means depends on who the group says we are now (T2, R6).
  commit_answer = given;
  member_asked = true;
  emit(ReadMember{});
}

void Engine::Impl::on(const MemberRead& read) {
  if (!member_asked) return;
  member_asked = false;
  if (commit_answer) settle_answer(read.member);
  for (Drain& drain : drains) {
    if (drain.phase != Drain::Phase::checking || drain.commit) continue;
    if (membership_broken(read.member)) {
      // R5b: lost, whatever the flag says; what the client still lists may be another's.
      lose_all("member", RetiredReason::lost);
      rejoin("the member id or epoch changed while a revocation was being drained");
      return;
    }
    last_member = read.member;
    drain.phase = Drain::Phase::committing;
  }
}

void Engine::Impl::count(PartitionOwner* owner, const SlotLine& line, CommitOutcome outcome,
                         std::string_view reason) {
  EventName event = EventName::commit_accepted;
  switch (outcome) {
    case CommitOutcome::accepted: ++totals.commits_accepted; break;
    case CommitOutcome::rejected:
      ++totals.commits_rejected;
      event = EventName::commit_rejected;
      break;
    case CommitOutcome::unresolved:
      ++totals.commits_unresolved;
      event = EventName::commit_unresolved;
      break;
  }
  std::vector<Report::Item> fields{{"offset", line.offset.value()}};
  if (!reason.empty()) fields.push_back({"reason", std::string(reason)});
  if (slot) {
    fields.push_back({"took_ms", static_cast<double>((now - slot->sent).count()) / 1e6});
  }
  if (owner == nullptr) {
    report(event, std::move(fields));
    return;
  }
  owner->last_commit = outcome;
  touch(*owner);
  report(event, *owner, std::move(fields));
}

void Engine::Impl::settle_answer(const Member& member) {
  const CommitAnswer given = std::move(*commit_answer);
  commit_answer.reset();
  const Slot done = *slot;
  bool lost = false;
  bool fenced = false;
  bool accepted = false;
  for (std::size_t i = 0; i < done.lines.size(); ++i) {
    const SlotLine& line = done.lines[i];
    const BrokerError error = given.lines[i].error;
    const CommitVerdict verdict = classify(error);
    PartitionOwner* owner = find(line.owner);
    if (owner == nullptr || !owner->live()) {
      // Its drain gave up waiting and has said `unresolved`.
      std::vector<Report::Item> fields{{"offset", line.offset.value()},
                                       {"reason", std::string(name(error))}};
      if (owner != nullptr) {
        report(EventName::commit_late, *owner, std::move(fields));
      } else {
        report(EventName::commit_late, std::move(fields));
      }
    } else {
      count(owner, line, verdict.outcome,
            verdict.outcome == CommitOutcome::accepted ? std::string_view{} : name(error));
    }
    accepted = accepted || verdict.outcome == CommitOutcome::accepted;
    switch (verdict.then) {
      case CommitVerdict::Then::lost: lost = true; break;
      case CommitVerdict::Then::fenced: fenced = true; break;
      case CommitVerdict::Then::lost_if_no_epoch:
        // With a valid epoch a rebalance is running (R6).
        lost = lost || member.epoch.value() < 0 || member.id.empty();
        break;
      case CommitVerdict::Then::without_metadata:
        if (owner != nullptr) owner->plain_metadata = true;
        commit_at = now;
        break;
      default: break;
    }
    if (owner == nullptr || !owner->live()) continue;
    if (verdict.outcome == CommitOutcome::accepted && !line.validates) {
      owner->committed = line.offset;
      owner->committed_at = now;
    } else if (!line.validates) {
      owner->recommit = true;
    }
    if (verdict.then == CommitVerdict::Then::read_topic && owner->state == OwnerState::active &&
        !owner->relocating) {
      on(RecordError{owner->ref, BrokerError::unknown_topic_or_partition, line.offset,
                     "commit refused: unknown topic or partition"});
    }
    if (!line.validates || owner->state != OwnerState::acquiring) continue;
    Acquisition& a = owner->acquisition;
    a.validating = false;
    // T2: the member id must be that of the grant and the epoch above 0, still.
    if (verdict.outcome == CommitOutcome::accepted && !member.id.empty() &&
        member.id == owner->member.id && member.epoch.value() > 0) {
      a.validated = true;
      a.failures = 0;
      owner->validated_by_broker = true;
    } else if (verdict.then == CommitVerdict::Then::read_topic) {
      // F8: the topic may be another one by now, and so the domain.
      const std::uint32_t failures = a.failures;
      a = Acquisition{};
      a.failures = failures;
      stumble(*owner);
    } else {
      stumble(*owner);  // the same token again, for those still live
    }
  }
  // Drains look at the outcome of their own commit before the slot is free again.
  for (Drain& drain : drains) {
    if (drain.commit != done.id) continue;
    for (const CommitAnswer::Line& line : given.lines) {
      if (classify(line.error).outcome != CommitOutcome::accepted) drain.resolved = false;
    }
    const bool stale = std::any_of(given.lines.begin(), given.lines.end(), [](const auto& line) {
      return line.error == BrokerError::stale_member_epoch ||
             line.error == BrokerError::coordinator_loading ||
             line.error == BrokerError::metadata_too_large;
    });
    if (stale && now < drain.commit_deadline) {
      // Not applied, and a moment later it may be: still inside the slice.
      drain.commit.reset();
      drain.resolved = true;
      drain.commit_not_before = after(now, std::chrono::milliseconds(50));
      drain.phase = Drain::Phase::advancing;
    } else {
      drain.phase = Drain::Phase::done;
    }
  }
  slot.reset();
  // What it says is about a member that is no more.
  if (done.of_former_member) return;
  // R8, R5b: accepted from a client that has lost its membership, it says nothing about the member
  // that owns these partitions.
  if (accepted && !membership_broken(member)) {
    lease_at = lease_at ? std::max(*lease_at, done.sent) : done.sent;
    // An answer that took longer than the session proves a past that is over.
    if (suspect && done.sent >= suspect_since && now - *lease_at <= times.session) {
      suspect = false;
      for (PartitionOwner* owner : live_owners()) {
        if (owner->state == OwnerState::acquiring) continue;
        report(EventName::owner_resumed, *owner, {{"cause", std::string("suspect")}});
        touch(*owner);
      }
    }
  }
  if (fenced) {
    lose_all("fenced", RetiredReason::lost);
    report(EventName::group_fenced, {{"cause", std::string("group.instance.id in use elsewhere")}});
    end({Finished::Reason::fenced, "another process uses the same group.instance.id"});
  } else if (lost) {
    lose_all("commit", RetiredReason::lost);
    orphaned_since = now;
  }
}

}  // namespace tenure::core
