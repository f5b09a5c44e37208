// The one vocabulary of events for log, history, page and demo (design/6-interface, section 7).
// Emitted on the loop thread through the Observer port. Values; views end with the call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "tenure/ids.hpp"
#include "tenure/time.hpp"

namespace tenure {

enum class Level : std::uint8_t { error, warn, info, debug };
std::string_view name(Level level);

enum class EventName : std::uint8_t {
  app_starting, app_ready, app_draining, app_stopped,
  config_loaded, config_rejected, health_changed, client_log, client_fatal,
  group_joining, group_joined, group_rebalancing, group_left, group_fenced,
  owner_granted, owner_acquired, owner_revoked, owner_draining, owner_drained, owner_frozen,
  owner_retired, owner_released, owner_lost, owner_suspect,
  owner_blocked, owner_unblocked, owner_paused, owner_resumed, answer_superseded,
  record_dispatched, record_outcome, record_late, record_retry, record_parked, record_replayed,
  record_dead_lettered, record_skipped, frontier_advanced,
  commit_sent, commit_accepted, commit_rejected, commit_unresolved, commit_late, commit_rewound,
  effect_refused, effect_conflict, effect_in_doubt,
  claim_unknown, store_unavailable, store_recovered,
  handler_started, handler_exited, handler_protocol_error,
};

/// A row of the vocabulary.
struct EventTraits {
  std::string_view name;  ///< dotted, as written in logs and histories: "owner.granted"
  Level level;            ///< default level
  bool history;           ///< always in histories
};
const EventTraits& traits(EventName name);
inline constexpr std::size_t event_names =
    static_cast<std::size_t>(EventName::handler_protocol_error) + 1;

using FieldValue = std::variant<std::int64_t, double, bool, std::string_view>;
struct Field {
  std::string_view key;
  FieldValue value;
};

/// One thing that happened. Lifetime of every view: the observer's call.
struct Event {
  EventName name;
  Level level;
  Instant at;
  std::uint64_t seq = 0;  ///< increasing in this process
  std::string_view group;
  std::string_view member;
  Epoch epoch;
  bool has_owner = false;
  std::string_view topic;
  Partition partition;
  GrantId grant;
  std::span<const Field> fields;
};

}  // namespace tenure
