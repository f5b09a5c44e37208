// The table of design 6-interface, section 7. Marks there: d = debug, h = always in histories;
// the other levels are ours: error = a person must act, warn = a person should know.
#include "tenure/event.hpp"

#include <array>

#include "base/assert.hpp"

namespace tenure {
namespace {

struct Row {
  EventName name;
  EventTraits traits;
};

constexpr std::array<Row, event_names> table = {{
    {EventName::app_starting, {"app.starting", Level::info, false}},
    {EventName::app_ready, {"app.ready", Level::info, false}},
    {EventName::app_draining, {"app.draining", Level::info, false}},
    {EventName::app_stopped, {"app.stopped", Level::info, false}},
    {EventName::config_loaded, {"config.loaded", Level::info, false}},
    {EventName::config_rejected, {"config.rejected", Level::error, false}},
    {EventName::health_changed, {"health.changed", Level::warn, false}},
    {EventName::client_log, {"client.log", Level::info, false}},
    {EventName::client_fatal, {"client.fatal", Level::error, false}},
    {EventName::group_joining, {"group.joining", Level::info, false}},
    {EventName::group_joined, {"group.joined", Level::info, false}},
    {EventName::group_rebalancing, {"group.rebalancing", Level::info, false}},
    {EventName::group_left, {"group.left", Level::info, false}},
    {EventName::group_fenced, {"group.fenced", Level::error, false}},
    {EventName::owner_granted, {"owner.granted", Level::info, true}},
    {EventName::owner_acquired, {"owner.acquired", Level::info, true}},
    {EventName::owner_revoked, {"owner.revoked", Level::info, true}},
    {EventName::owner_draining, {"owner.draining", Level::info, true}},
    {EventName::owner_drained, {"owner.drained", Level::info, true}},
    {EventName::owner_frozen, {"owner.frozen", Level::info, true}},
    {EventName::owner_retired, {"owner.retired", Level::info, true}},
    {EventName::owner_released, {"owner.released", Level::info, true}},
    {EventName::owner_lost, {"owner.lost", Level::warn, true}},
    {EventName::owner_suspect, {"owner.suspect", Level::warn, true}},
    {EventName::owner_blocked, {"owner.blocked", Level::warn, false}},
    {EventName::owner_unblocked, {"owner.unblocked", Level::info, false}},
    {EventName::owner_paused, {"owner.paused", Level::info, false}},
    {EventName::owner_resumed, {"owner.resumed", Level::info, false}},
    {EventName::answer_superseded, {"answer.superseded", Level::warn, true}},
    {EventName::record_dispatched, {"record.dispatched", Level::debug, true}},
    {EventName::record_outcome, {"record.outcome", Level::debug, true}},
    {EventName::record_late, {"record.late", Level::warn, true}},
    {EventName::record_retry, {"record.retry", Level::debug, false}},
    {EventName::record_parked, {"record.parked", Level::warn, false}},
    {EventName::record_replayed, {"record.replayed", Level::info, true}},
    {EventName::record_dead_lettered, {"record.dead_lettered", Level::warn, true}},
    {EventName::record_skipped, {"record.skipped", Level::info, true}},
    {EventName::frontier_advanced, {"frontier.advanced", Level::debug, true}},
    {EventName::commit_sent, {"commit.sent", Level::debug, true}},
    {EventName::commit_accepted, {"commit.accepted", Level::debug, true}},
    {EventName::commit_rejected, {"commit.rejected", Level::warn, true}},
    {EventName::commit_unresolved, {"commit.unresolved", Level::warn, true}},
    {EventName::commit_late, {"commit.late", Level::warn, true}},
    {EventName::commit_rewound, {"commit.rewound", Level::warn, true}},
    {EventName::effect_refused, {"effect.refused", Level::warn, true}},
    {EventName::effect_conflict, {"effect.conflict", Level::error, true}},
    {EventName::effect_in_doubt, {"effect.in_doubt", Level::warn, true}},
    {EventName::claim_unknown, {"claim.unknown", Level::warn, false}},
    {EventName::store_unavailable, {"store.unavailable", Level::warn, false}},
    {EventName::store_recovered, {"store.recovered", Level::info, false}},
    {EventName::handler_started, {"handler.started", Level::info, false}},
    {EventName::handler_exited, {"handler.exited", Level::warn, false}},
    {EventName::handler_protocol_error, {"handler.protocol_error", Level::error, false}},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].name) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the table follows the order of EventName");

}  // namespace

const EventTraits& traits(EventName name) {
  const auto index = static_cast<std::size_t>(name);
  TENURE_ASSERT(index < table.size(), "an event has a row in the vocabulary");
  return table[index].traits;
}

}  // namespace tenure
