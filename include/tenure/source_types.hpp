// Values exchanged between a source of records (a client library) and the engine. No behaviour.
// Views end with the call that passes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// The client's own message object. Owned by whoever the comment says; freed by Source::release
/// on the loop thread only.
using MessageHandle = void*;

/// One record as the client hands it over.
struct Delivered {
  MessageHandle message = nullptr;  ///< null: a record the client could not decode (F1)
  Offset offset;
  std::uint64_t hash = 0;   ///< XXH64 (seed 0) of the key or, see Source::Hash, of the offset
  std::uint32_t bytes = 0;  ///< key + value + headers as the client counts them
  LeaderEpoch leader_epoch = no_leader_epoch;
};

/// Names one rebalance event; increasing. An answer names the event it answers (R5).
using RebalanceId = Strong<struct RebalanceIdTag, std::uint64_t>;

/// The client wants to know what to do with an assignment that grew or shrank.
struct Rebalance {
  enum class Kind : std::uint8_t { assign, revoke };
  RebalanceId id;
  Kind kind = Kind::assign;
  bool lost = false;  ///< the client's own flag, meaningful for a revoke only
  Protocol protocol = Protocol::cooperative;
  std::vector<TopicPartition> partitions;  ///< may be empty; must be answered all the same
  Member member;                           ///< read when the event was taken (R5b)
};

/// One partition of the answer to an assign.
struct GrantedPartition {
  TopicPartition partition;
  OwnerRef owner;  ///< records of this partition are delivered under this reference from now on
};

/// Where an owner's first record is to come from.
struct StartAt {
  OwnerRef owner;
  TopicPartition partition;
  Offset offset;
  LeaderEpoch leader_epoch = no_leader_epoch;  ///< lets the client see a truncation (F8)
};

/// Names one commit request; increasing.
using CommitId = Strong<struct CommitIdTag, std::uint64_t>;

/// One line of an explicit commit list (C5). Copied at decision time.
struct CommitLine {
  OwnerRef owner;
  TopicPartition partition;
  Offset offset;  ///< next offset to process
  LeaderEpoch leader_epoch = no_leader_epoch;
  std::string metadata;  ///< printable, <= 4096 bytes
};

/// Error of the client or broker, reduced to what the engine decides on. The adapter keeps the
/// table from the client's codes (bugs.md, last section); `none` = success.
enum class BrokerError : std::uint8_t {
  none,
  // commits and group membership
  unknown_member_id, illegal_generation, rebalance_in_progress, stale_member_epoch,
  fenced_member_epoch, fenced_instance_id, unreleased_instance_id, group_id_not_found,
  not_coordinator,          ///< NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, wait for coordinator
  coordinator_loading,
  metadata_too_large,       ///< OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE
  unknown_topic_or_partition,
  not_authorized,
  timed_out,                ///< broker or local timeout: may have been applied
  transport,                ///< connection lost: may have been applied
  assignment_lost,          ///< local: nothing was sent
  no_offset,                ///< local: there was nothing to commit
  closing,                  ///< the client is being destroyed or is fatal: unknown
  kept_back,                ///< ours: not sent, the store said that it is no longer there
  not_sent,                 ///< ours: no slot or no time was left for it (C1)
  // records
  offset_out_of_range,
  log_truncated,
  bad_record,               ///< BAD_MSG, BAD_COMPRESSION, NOT_IMPLEMENTED, ...: skipped by client
  other,
};
std::string_view name(BrokerError error);

/// Answer to one commit request, line by line (C2).
struct CommitAnswer {
  struct Line {
    OwnerRef owner;
    BrokerError error = BrokerError::none;
  };
  CommitId id;
  std::vector<Line> lines;  ///< in the order of the request; all of them
};

/// What the group has committed for one partition.
struct CommittedOffset {
  TopicPartition partition;
  BrokerError error = BrokerError::none;  ///< not none: nothing below is known (F4)
  std::optional<Offset> offset;           ///< empty: no committed offset (F4)
  LeaderEpoch leader_epoch = no_leader_epoch;
  std::string metadata;
};

/// Name, id and size of a topic. `error` not none: nothing else is known.
struct TopicFacts {
  std::string topic;
  BrokerError error = BrokerError::none;
  Uuid id;
  std::int32_t partitions = 0;
};

/// Both ends of a partition's log at the reader's isolation level.
struct LogEnds {
  TopicPartition partition;
  BrokerError error = BrokerError::none;
  Offset start;
  Offset end;  ///< next offset to be written (read_committed: last stable offset)
};

/// Names one read request of the engine; increasing over all kinds of reads.
using ReadId = Strong<struct ReadIdTag, std::uint64_t>;

struct CommittedRead { ReadId id; std::vector<CommittedOffset> offsets; };
struct TopicsRead { ReadId id; std::string cluster; std::vector<TopicFacts> topics; };
struct LogEndsRead { ReadId id; std::vector<LogEnds> ends; };

/// The fetch of this partition has passed everything below `offset`; what was visible there has
/// been delivered (F3).
struct Reached { OwnerRef owner; Offset offset; };

/// The client met an error at a place of the log.
struct RecordError {
  OwnerRef owner;
  BrokerError error = BrokerError::other;
  Offset offset;  ///< first offset it concerns
  std::string message;
};

/// The client itself has trouble.
struct ClientError {
  BrokerError error = BrokerError::other;
  bool fatal = false;        ///< the instance is dead (R11)
  bool all_brokers_down = false;
  std::string message;
};

/// The client has left the group and will deliver nothing more.
struct Closed {};

}  // namespace tenure
