// The object that holds a grant: one grant, one owner, never reused (O1).
//
// Role: all state of one partition from the grant to the last holder's letting go.
// Owns: its window and the records that did not fit into it.
// Threads: none; the engine's. Lifecycle: made at the grant; `retired` is terminal (O3);
//   destroyed when it has retired and no run of it is out any more (O5).
// Promises: nothing here is keyed by topic and partition; what ends with the grant dies here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/window.hpp"
#include "tenure/ids.hpp"
#include "tenure/owner.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

/// What an acquiring owner still has to learn, step by step: facts -> (position, log ends,
/// ticket) -> start resolved -> validated (T2) -> activated (T3).
struct Acquisition {
  bool facts = false, facts_asked = false;
  bool committed_known = false, committed_asked = false;
  bool ends_known = false, ends_asked = false;
  bool ticket_drawn = false, ticket_asked = false;
  bool resolved = false;
  bool validated = false, validating = false;
  bool activate_asked = false;

  std::optional<Offset> committed;  ///< what the group had (F4: empty is a value)
  LeaderEpoch committed_leader_epoch = no_leader_epoch;
  std::string committed_metadata;
  bool group_knows_topic = false;  ///< some partition of this topic id has a commit (F7)
  Offset log_start, log_end;
  std::vector<LaneProgress> lanes;  ///< of T1, then of T3
  Token token;
  bool must_validate = false;
  Offset validated_offset;  ///< what T2 commits
  LeaderEpoch validated_leader_epoch = no_leader_epoch;

  std::uint32_t failures = 0;
  Instant wait_until = Instant::min();  ///< backoff of whatever failed last
};

struct PartitionOwner {
  // O2, fixed at the grant or when the start is known.
  OwnerRef ref;
  TopicPartition partition;
  Protocol protocol = Protocol::cooperative;
  Member member;
  Instant granted_at;
  Uuid topic_id;
  std::string cluster;
  std::int32_t topic_partitions = 0;
  Offset start;
  LeaderEpoch start_leader_epoch = no_leader_epoch;
  StartSource start_source = StartSource::committed;
  std::optional<Fence> fence;

  OwnerState state = OwnerState::acquiring;
  std::optional<RetiredReason> retired_reason;
  bool log_went_back = false;  ///< F8: no admission, commit or advance
  bool relocating = false;     ///< the log's ends are being read again (F7, F8)
  bool truncated = false;      ///< the client saw its position cut off, whatever grew there since
  Acquisition acquisition;

  // Records.
  std::unique_ptr<Window> window;      ///< from `active` on
  std::vector<Delivered> overflow;     ///< delivered, not admitted: the window is full (O7)
  std::size_t overflow_next = 0;
  std::optional<Offset> reached;       ///< F3, waits for the overflow to be admitted
  bool flow_open = false;
  bool in_ready_list = false;
  bool starved = false;                ///< stopped by the totals of all owners, not by its window
  std::uint32_t runs_out = 0;          ///< lent and not come back
  bool runs_abandoned = false;         ///< R9
  std::vector<Run*> in_doubt;          ///< E3: neither done nor failed
  Instant doubt_at = never;            ///< when to look them up again
  std::vector<std::uint16_t> doubted_lanes;  ///< looked up too early: a commit may still come (E3)
  std::uint32_t again_streak = 0;      ///< attempts in a row that did not count
  std::optional<AgainCause> again_cause;
  std::uint64_t parked = 0;
  std::uint64_t retrying = 0;
  bool blocked = false;                ///< reported as blocked
  std::uint64_t effects = 0;           ///< runs of this owner that stored something (T8)
  std::uint32_t superseded_before = 0; ///< T8: in a row, without an effect in between
  bool validated_by_broker = false;    ///< T2 was accepted for this owner
  Offset highest_admitted;

  // Commits.
  std::optional<Offset> committed;     ///< accepted, by this owner
  Instant committed_at;                ///< C9
  std::optional<CommitOutcome> last_commit;
  bool recommit = false;               ///< C3: the same or a higher value
  bool plain_metadata = false;         ///< C7: without it, since it was too large
  bool advance_asked = false;          ///< an idle advance is at the store
  bool advance_in_doubt = false;       ///< an idle advance may have been stored (E3)
  Instant advance_not_before = Instant::min();
  std::vector<AdvanceIdle::Step> advance_steps;  ///< of lanes reserved for it

  // The end.
  std::optional<Deadline> drain_deadline;
  Instant abandon_at = never;          ///< retired with runs out: R9
  std::optional<Offset> end_target;    ///< until_end

  bool touched = false;

  [[nodiscard]] bool live() const { return state != OwnerState::retired; }
  [[nodiscard]] std::uint64_t waiting() const { return overflow.size() - overflow_next; }
};

}  // namespace tenure::core
