// Everything the engine can ask for. The runtime carries commands out in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/run.hpp"
#include "tenure/event.hpp"
#include "tenure/ids.hpp"
#include "tenure/owner.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

// Source.
struct OpenSource {};     ///< a (new) client; failure comes back as OpenFailed
struct CloseSource {};    ///< leave the group; ends with Closed
struct AbandonSource {};  ///< give the client up without waiting
struct AnswerAssign { RebalanceId id; std::vector<GrantedPartition> granted; };
struct AnswerRevoke { RebalanceId id; std::vector<TopicPartition> revoked; };
struct StartFetch { StartAt start; };
struct SetFlow { OwnerRef owner; bool open = false; };
struct ForgetOwner { OwnerRef owner; };  ///< Source::forget
struct SendCommit { CommitId id; std::vector<CommitLine> lines; };
struct ReadCommitted { ReadId id; std::vector<TopicPartition> partitions; };
struct ReadTopics { ReadId id; std::vector<std::string> topics; };
struct ReadLogEnds { ReadId id; std::vector<TopicPartition> partitions; };
struct ReadMember {};     ///< answered in the same turn by MemberRead

// Store: Reserve, Activate, AdvanceIdle, Lookup of store_types.hpp are commands as they are.
struct CancelUnits { OwnerRef owner; };  ///< T6

// Owners and handlers.
/// Facts of a new owner, fixed from here on (O2). Emitted when it becomes active, before its
/// first dispatch.
struct OwnerActivated {
  OwnerRef owner;
  TopicPartition partition;
  Uuid topic_id;
  std::string cluster;
  Member member;
  Protocol protocol = Protocol::cooperative;
  Offset start_offset;
  StartSource start_source = StartSource::committed;
  std::optional<Fence> fence;
};
/// R1: nothing of this owner is started any more: queued runs come back unstarted at once, runs
/// in progress stop between two records.
struct CloseDispatch { OwnerRef owner; };
/// The stop token fires.
struct FireStop { OwnerRef owner; };
/// R9: its runs still out are given up: a fresh worker takes the slot of each.
struct AbandonRuns { OwnerRef owner; };
/// The owner has retired and its last run has come back.
struct DropOwner { OwnerRef owner; };

/// The program ends (or Runtime::run returns).
struct Finished {
  enum class Reason : std::uint8_t {
    drained,      ///< exit 0
    outcome_stop, ///< exit 3
    cut_short,    ///< drain cut short or last commit unresolved: exit 75
    fenced,       ///< exit 76
    fatal,        ///< exit 70
    config,       ///< the domain is stored under another lane rule: exit 78
  } reason = Reason::drained;
  std::string message;
};

/// An event for observers. Strings are owned here; the runtime adds seq, group, member.
struct Report {
  struct Item {
    std::string_view key;  ///< literal
    std::variant<std::int64_t, double, bool, std::string> value;
  };
  EventName name;
  std::optional<OwnerRef> owner;
  std::string topic;      ///< with `owner`
  Partition partition;    ///< with `owner`
  std::vector<Item> fields;
  std::optional<Level> level;  ///< other than the event's own
};

using Command =
    std::variant<OpenSource, CloseSource, AbandonSource, AnswerAssign, AnswerRevoke, StartFetch,
                 SetFlow, ForgetOwner, SendCommit, ReadCommitted, ReadTopics, ReadLogEnds,
                 ReadMember, Reserve, Activate, AdvanceIdle, Lookup, CancelUnits, OwnerActivated,
                 CloseDispatch, FireStop, AbandonRuns, DropOwner, Finished, Report>;

/// Output of one or several steps; cleared and reused by the runtime.
/// Order of execution: `commands` in order, then `dispatched`, then `freed`.
struct Commands {
  std::vector<Command> commands;
  std::vector<Run*> dispatched;       ///< to the workers, in order
  std::vector<MessageHandle> freed;   ///< Source::release
  void clear() {
    commands.clear();
    dispatched.clear();
    freed.clear();
  }
  [[nodiscard]] bool empty() const {
    return commands.empty() && dispatched.empty() && freed.empty();
  }
};

}  // namespace tenure::core
