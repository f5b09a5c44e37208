// From the grant to the first record: facts, position, log ends, ticket (T1), validation (T2),
// activation (T3), start.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/commit_metadata.hpp"
#include "core/engine_impl.hpp"

namespace tenure::core {

namespace {

constexpr Duration stumble_min = std::chrono::milliseconds(50);
constexpr Duration stumble_max = std::chrono::seconds(2);
// A log that went back is looked at again: a recreated topic is a new domain.
constexpr Duration went_back_retry = std::chrono::seconds(30);

/// Least stored progress; empty when the kind kept none (T3: NULL).
std::optional<LaneProgress> least(const std::vector<LaneProgress>& lanes) {
  std::optional<LaneProgress> minimum;
  for (const LaneProgress& lane : lanes) {
    if (!lane.next_offset) return {};
    if (!minimum || *lane.next_offset < *minimum->next_offset) minimum = lane;
  }
  return minimum;
}

}  // namespace

void Engine::Impl::grant(const Rebalance& rebalance) {
  AnswerAssign answer{rebalance.id, {}};
  if (rebalance.protocol == Protocol::eager) {
    // An eager assign is all there is: what it does not name is another member's now.
    for (PartitionOwner* former : live_owners()) retire(*former, RetiredReason::revoked);
    reacquire.clear();
  }
  for (const TopicPartition& partition : rebalance.partitions) {
    if (PartitionOwner* former = find_live(partition)) {
      // O4: even inside one rebalance a grant is a new one.
      retire(*former, RetiredReason::revoked);
    }
    std::erase_if(reacquire, [&](const Reacquire& next) { return next.partition == partition; });
    PartitionOwner& owner = create(partition, rebalance.protocol, rebalance.member, 0);
    report(EventName::owner_granted, owner, {{"protocol", std::string(name(rebalance.protocol))}});
    answer.granted.push_back({partition, owner.ref});
    if (stopping) retire(owner, RetiredReason::shutdown);
  }
  emit(std::move(answer));
  if (!joined) {
    joined = true;
    report(EventName::group_joined, {{"protocol", std::string(name(rebalance.protocol))}});
  }
  no_partition_since = options.until_end && live.empty() ? now : never;
}

void Engine::Impl::stumble(PartitionOwner& owner) {
  Acquisition& acquisition = owner.acquisition;
  Duration wait = stumble_min;
  for (std::uint32_t i = 0; i < acquisition.failures && wait < stumble_max; ++i) wait *= 2;
  ++acquisition.failures;
  acquisition.wait_until = after(now, std::min(wait, stumble_max));
}

void Engine::Impl::pump_acquire() {
  if (acquiring.empty()) reads.clear();  // nobody waits for them any more
  if (phase != Phase::member) return;
  for (std::size_t i = 0; i < reacquire.size();) {
    if (reacquire[i].at > now || stopping) {
      ++i;
      continue;
    }
    const Reacquire next = reacquire[i];
    reacquire.erase(reacquire.begin() + static_cast<std::ptrdiff_t>(i));
    PartitionOwner& owner =
        create(next.partition, next.protocol, last_member.value_or(Member{}),
               next.superseded_before);
    report(EventName::owner_granted, owner,
           {{"protocol", std::string(name(next.protocol))},
            {"cause", std::string("superseded")}});
  }
  if (acquiring.empty()) return;

  // Reads that were never answered.
  for (std::size_t i = 0; i < reads.size();) {
    if (reads[i].expires > now) {
      ++i;
      continue;
    }
    const PendingRead lost = reads[i];
    reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(i));
    for (const OwnerRef ref : lost.owners) {
      PartitionOwner* owner = find(ref);
      if (owner == nullptr) continue;
      switch (lost.kind) {
        case PendingRead::Kind::topics: owner->acquisition.facts_asked = false; break;
        case PendingRead::Kind::committed: owner->acquisition.committed_asked = false; break;
        case PendingRead::Kind::ends: owner->acquisition.ends_asked = false; break;
      }
      stumble(*owner);
    }
  }

  std::vector<std::string> topics;
  std::vector<OwnerRef> topics_for, committed_for, ends_for;
  std::vector<TopicPartition> committed, ends;
  Reserve reserve;
  Activate activations;
  // Copied: activate() and resolve() change the list.
  const std::vector<OwnerRef> all = acquiring;
  std::erase_if(acquiring, [this](OwnerRef ref) {
    const PartitionOwner* owner = find(ref);
    return owner == nullptr || !(owner->state == OwnerState::acquiring || owner->relocating);
  });
  for (const OwnerRef ref : all) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || !(owner->state == OwnerState::acquiring || owner->relocating)) continue;
    Acquisition& a = owner->acquisition;
    if (a.wait_until > now) continue;
    if (!a.facts) {
      if (!a.facts_asked) {
        a.facts_asked = true;
        topics_for.push_back(ref);
        if (std::find(topics.begin(), topics.end(), owner->partition.topic) == topics.end()) {
          topics.push_back(owner->partition.topic);
        }
      }
      continue;
    }
    if (!a.ends_known && !a.ends_asked) {
      a.ends_asked = true;
      ends.push_back(owner->partition);
      ends_for.push_back(ref);
    }
    if (owner->relocating) continue;
    // F4: not read while a commit is outstanding, which it might overtake.
    if (!a.committed_known && !a.committed_asked && !slot) {
      a.committed_asked = true;
      committed.push_back(owner->partition);
      committed_for.push_back(ref);
    }
    const Domain domain{options.scope, owner->cluster, owner->topic_id,
                        owner->partition.partition};
    const LaneRule rule{options.progress ? options.lanes : std::uint16_t{1},
                        options.progress ? options.order : Order::partition};
    if (options.fence && !a.ticket_drawn && !a.ticket_asked) {
      a.ticket_asked = true;
      reserve.items.push_back({ref, domain, rule});
    }
    if (!a.resolved && a.committed_known && a.ends_known && (!options.fence || a.ticket_drawn)) {
      resolve(*owner);
    }
    if (!a.resolved || owner->state != OwnerState::acquiring) continue;
    if (a.must_validate && !a.validated) continue;  // the commit planner sends T2
    if (!options.fence) {
      activate(*owner);
    } else if (!a.activate_asked) {
      a.activate_asked = true;
      activations.items.push_back({ref, domain, rule, *owner->fence, options.progress,
                                   a.validated_offset, a.validated_leader_epoch,
                                   "member " + owner->member.id + " epoch " +
                                       std::to_string(owner->member.epoch.value())});
    }
  }

  const Deadline expires = after(now, times.socket_timeout);
  if (!topics.empty()) {
    const ReadId id(++last_read_id);
    reads.push_back({id, PendingRead::Kind::topics, expires, std::move(topics_for)});
    emit(ReadTopics{id, std::move(topics)});
  }
  if (!committed.empty()) {
    const ReadId id(++last_read_id);
    // F7: under `latest` it matters whether the group knows the topic at all.
    if (options.reset == ResetPolicy::latest) {
      std::vector<TopicPartition> wider;
      for (const OwnerRef ref : committed_for) {
        const PartitionOwner* owner = find(ref);
        for (std::int32_t p = 0; p < owner->topic_partitions; ++p) {
          wider.push_back({owner->partition.topic, Partition(p)});
        }
      }
      std::sort(wider.begin(), wider.end());
      wider.erase(std::unique(wider.begin(), wider.end()), wider.end());
      for (const TopicPartition& partition : committed) {
        if (!std::binary_search(wider.begin(), wider.end(), partition)) wider.push_back(partition);
      }
      committed = std::move(wider);
    }
    reads.push_back({id, PendingRead::Kind::committed, expires, std::move(committed_for)});
    emit(ReadCommitted{id, std::move(committed)});
  }
  if (!ends.empty()) {
    const ReadId id(++last_read_id);
    reads.push_back({id, PendingRead::Kind::ends, expires, std::move(ends_for)});
    emit(ReadLogEnds{id, std::move(ends)});
  }
  if (!reserve.items.empty()) {
    reserve.id = StoreRequestId(++last_store_id);
    emit(std::move(reserve));
  }
  if (!activations.items.empty()) {
    activations.id = StoreRequestId(++last_store_id);
    emit(std::move(activations));
  }
}

std::optional<Engine::Impl::PendingRead> Engine::Impl::take_read(ReadId id) {
  const auto found = std::find_if(reads.begin(), reads.end(),
                                  [&](const PendingRead& read) { return read.id == id; });
  if (found == reads.end()) return {};  // expired, or of a client that is gone
  PendingRead read = std::move(*found);
  reads.erase(found);
  return read;
}

void Engine::Impl::on(const TopicsRead& read) {
  const auto asked = take_read(read.id);
  if (!asked) return;
  for (const OwnerRef ref : asked->owners) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || !(owner->state == OwnerState::acquiring || owner->relocating)) continue;
    Acquisition& a = owner->acquisition;
    a.facts_asked = false;
    const auto facts = std::find_if(read.topics.begin(), read.topics.end(), [&](const auto& topic) {
      return topic.topic == owner->partition.topic;
    });
    if (facts == read.topics.end() || facts->error != BrokerError::none || read.cluster.empty()) {
      stumble(*owner);
      continue;
    }
    if (owner->relocating && facts->id != owner->topic_id) {
      // F8: another topic under the same name: another domain.
      warn(*owner, "log_went_back",
           "the topic was recreated: id " + owner->topic_id.text() + " is now " + facts->id.text());
      owner->relocating = false;
      supersede(*owner, "topic_id");
      continue;
    }
    a.facts = true;
    owner->topic_id = facts->id;
    owner->cluster = read.cluster;
    owner->topic_partitions = facts->partitions;
  }
}

void Engine::Impl::on(const CommittedRead& read) {
  const auto asked = take_read(read.id);
  if (!asked) return;
  for (const OwnerRef ref : asked->owners) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || owner->state != OwnerState::acquiring) continue;
    Acquisition& a = owner->acquisition;
    a.committed_asked = false;
    const std::string topic_id = owner->topic_id.text();
    bool read_well = false;
    bool all_well = true;
    for (const CommittedOffset& line : read.offsets) {
      if (line.partition.topic != owner->partition.topic) continue;
      const bool mine = line.partition.partition == owner->partition.partition;
      if (line.error != BrokerError::none) {
        all_well = false;  // F4: "could not read" is not "none"
        continue;
      }
      bool counts = line.offset.has_value();
      if (counts) {
        // C10: a commit goes by name into a recreated topic.
        const auto metadata = decode(line.metadata);
        if (metadata && metadata->cluster == owner->cluster && metadata->topic_id != topic_id &&
            metadata->at == *line.offset) {
          counts = false;
          if (mine) {
            warn(*owner, "another_topic_id",
                 "committed offset " + std::to_string(line.offset->value()) +
                     " belongs to topic id " + metadata->topic_id + ", the topic is " + topic_id +
                     " now: ignored");
          }
        }
      }
      a.group_knows_topic = a.group_knows_topic || counts;
      if (mine) {
        read_well = true;
        if (counts) {
          a.committed = line.offset;
          a.committed_leader_epoch = line.leader_epoch;
          a.committed_metadata = line.metadata;
        } else {
          a.committed.reset();
        }
      }
    }
    if (!read_well || (!a.committed && !all_well)) {
      stumble(*owner);
      continue;
    }
    a.committed_known = true;
  }
}

void Engine::Impl::on(const LogEndsRead& read) {
  const auto asked = take_read(read.id);
  if (!asked) return;
  for (const OwnerRef ref : asked->owners) {
    PartitionOwner* owner = find(ref);
    if (owner == nullptr || !(owner->state == OwnerState::acquiring || owner->relocating)) continue;
    Acquisition& a = owner->acquisition;
    a.ends_asked = false;
    const auto ends = std::find_if(read.ends.begin(), read.ends.end(), [&](const LogEnds& line) {
      return line.partition == owner->partition;
    });
    if (ends == read.ends.end() || ends->error != BrokerError::none) {
      stumble(*owner);
      continue;
    }
    if (owner->relocating) {
      relocated(*owner, *ends);
      continue;
    }
    a.ends_known = true;
    a.log_start = ends->start;
    a.log_end = ends->end;
    if (options.until_end && !owner->end_target) owner->end_target = ends->end;
  }
}

void Engine::Impl::relocated(PartitionOwner& owner, const LogEnds& ends) {
  owner.relocating = false;
  // Behind what was handed over and only waits for room.
  Offset wanted = owner.window->position();
  if (owner.waiting() > 0) wanted = std::max(wanted, owner.overflow.back().offset.next());
  if (owner.reached) wanted = std::max(wanted, *owner.reached);
  if (owner.truncated || wanted > ends.end) {
    went_back(owner, wanted, ends.end);
    return;
  }
  Offset start = wanted;
  LeaderEpoch epoch = no_leader_epoch;
  if (wanted < ends.start) {
    report(EventName::record_skipped, owner,
           {{"from", wanted.value()},
            {"to", ends.start.value() - 1},
            {"by", std::string("broker")}});
    start = ends.start;
    owner.reached = start;
    admit(owner);
  } else if (wanted == owner.window->frontier()) {
    epoch = owner.window->frontier_leader_epoch();
  }
  owner.flow_open = true;
  emit(StartFetch{{owner.ref, owner.partition, start, epoch}});
  update_flow(owner);
}

void Engine::Impl::went_back(PartitionOwner& owner, Offset wanted, Offset end) {
  owner.log_went_back = true;
  emit(ForgetOwner{owner.ref});
  // What is queued must not hold the room of others (F8 stops this partition alone).
  if (owner.window) drop_queued(owner);
  owner.blocked = true;
  report(EventName::owner_blocked, owner,
         {{"cause", std::string("log_went_back")},
          {"offset", wanted.value()},
          {"end", end.value()}});
  touch(owner);
}

void Engine::Impl::resolve(PartitionOwner& owner) {
  Acquisition& a = owner.acquisition;
  const std::optional<LaneProgress> stored = options.progress ? least(a.lanes) : std::nullopt;
  std::optional<Offset> known;
  if (stored) {
    known = stored->next_offset;
    owner.start_leader_epoch = stored->leader_epoch;
    owner.start_source = StartSource::store;
    if (a.committed && *a.committed > *known) {
      // The store is the authority in this kind; a commit above it is news, no more.
      report(EventName::commit_rewound, owner,
             {{"from", a.committed->value()}, {"to", known->value()}});
      ++totals.rewinds;
    }
  } else if (a.committed) {
    known = a.committed;
    owner.start_leader_epoch = a.committed_leader_epoch;
    owner.start_source = StartSource::committed;
  }

  if (known && *known > a.log_end) {
    if (!owner.log_went_back) went_back(owner, *known, a.log_end);
    // Nothing is committed or admitted; the facts are read again, since a recreated topic is
    // another domain.
    Acquisition again;
    again.wait_until = after(now, went_back_retry);
    a = again;
    return;
  }
  if (owner.log_went_back) {
    owner.log_went_back = false;
    owner.blocked = false;
    report(EventName::owner_unblocked, owner, {{"cause", std::string("log_went_back")}});
  }

  if (known) {
    owner.start = *known;
    if (*known < a.log_start) {
      owner.start = a.log_start;
      owner.start_leader_epoch = no_leader_epoch;
      owner.start_source = StartSource::log_start;
      report(EventName::record_skipped, owner,
             {{"from", known->value()},
              {"to", a.log_start.value() - 1},
              {"by", std::string("broker")}});
    }
  } else {
    owner.start_leader_epoch = no_leader_epoch;
    switch (options.reset) {
      case ResetPolicy::earliest:
        owner.start = a.log_start;
        owner.start_source = StartSource::reset_policy;
        break;
      case ResetPolicy::latest:
        // F7: a partition found later starts at its log start.
        owner.start = a.group_knows_topic ? a.log_start : a.log_end;
        owner.start_source =
            a.group_knows_topic ? StartSource::log_start : StartSource::reset_policy;
        break;
      case ResetPolicy::error:
        warn(owner, "no_committed_offset",
             "the group has no committed offset and auto.offset.reset is error; commit one for "
             "this partition or set auto.offset.reset to earliest or latest");
        Acquisition again;
        again.wait_until = after(now, went_back_retry);
        a = again;
        return;
    }
  }
  a.resolved = true;
  a.validated_offset = known.value_or(owner.start);
  a.validated_leader_epoch = owner.start_leader_epoch;
  a.must_validate = options.fence || !lease_fresh() ||
                    (!a.committed && options.start_position);
  if (options.fence) owner.fence = Fence{a.token, random.uuid()};
}

void Engine::Impl::on(const Reserved& answer) {
  for (const Reserved::Item& item : answer.items) {
    PartitionOwner* owner = find(item.owner);
    if (owner == nullptr || owner->state != OwnerState::acquiring) continue;
    Acquisition& a = owner->acquisition;
    a.ticket_asked = false;
    if (item.error == StoreError::rule) {
      end({Finished::Reason::config, item.message});
      return;
    }
    if (item.error != StoreError::none) {
      note_store(false, item.message);
      stumble(*owner);
      continue;
    }
    note_store(true, {});
    a.ticket_drawn = true;
    a.token = item.token;
    a.lanes = item.lanes;
  }
}

void Engine::Impl::on(const Activated& answer) {
  for (const Activated::Item& item : answer.items) {
    PartitionOwner* owner = find(item.owner);
    if (owner == nullptr || owner->state != OwnerState::acquiring) continue;
    Acquisition& a = owner->acquisition;
    a.activate_asked = false;
    switch (item.error) {
      case StoreError::none:
        note_store(true, {});
        a.lanes = item.lanes;
        activate(*owner);
        break;
      case StoreError::superseded:
        // T3: someone with a later ticket was validated after us.
        ++totals.refused;
        report(EventName::effect_refused, *owner,
               {{"step", std::string("activate")},
                {"token", owner->fence->token.value()},
                {"reason", "stored token " + std::to_string(item.stored_token.value())}});
        supersede(*owner, "activate");
        break;
      case StoreError::rule:
        end({Finished::Reason::config, item.message});
        return;
      default:
        if (item.error == StoreError::contention) {
          note_contention(item.message);
        } else {
          note_store(false, item.message);
        }
        stumble(*owner);
        break;
    }
  }
}

void Engine::Impl::activate(PartitionOwner& owner) {
  Acquisition& a = owner.acquisition;
  std::vector<LaneProgress> lanes;
  if (options.progress) {
    // T3 returned what was committed up to now; this, not T1's, is the start.
    lanes = a.lanes;
    const std::optional<LaneProgress> stored = least(lanes);
    TENURE_ASSERT(stored && lanes.size() == options.lanes, "T3 activation returns every lane");
    if (*stored->next_offset > a.validated_offset) {
      owner.start = std::max(*stored->next_offset, a.log_start);
      owner.start_leader_epoch = stored->leader_epoch;
      owner.start_source = StartSource::store;
    }
  }
  const Window::Options window{
      options.order, options.progress ? options.lanes : std::uint16_t{0},
      options.progress || options.batch_records > 1 ? options.batch_records : 1024u,
      options.batch_wait};
  owner.window = std::make_unique<Window>(window, owner.start, lanes);
  owner.highest_admitted = owner.start;
  owner.state = OwnerState::active;
  owner.committed = a.validated ? std::optional<Offset>(a.validated_offset) : a.committed;
  owner.committed_at = now;
  owner.flow_open = true;
  owner.recommit = false;
  std::erase(acquiring, owner.ref);
  report(EventName::owner_acquired, owner,
         {{"token", owner.fence ? owner.fence->token.value() : std::int64_t{0}},
          {"progress", owner.start.value()},
          {"start_source", std::string(name(owner.start_source))},
          {"took_ms", static_cast<double>((now - owner.granted_at).count()) / 1e6}});
  emit(OwnerActivated{owner.ref, owner.partition, owner.topic_id, owner.cluster, owner.member,
                      owner.protocol, owner.start, owner.start_source, owner.fence});
  emit(StartFetch{{owner.ref, owner.partition, owner.start, owner.start_leader_epoch}});
  a = Acquisition{};
  touch(owner);
}

}  // namespace tenure::core
