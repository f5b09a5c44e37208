#include "sqlite/fence.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tenure::sqlite {
namespace {

#define TENURE_DOMAIN "scope = ?1 AND cluster = ?2 AND topic_id = ?3 AND partition = ?4"

constexpr std::string_view begin_sql = "BEGIN IMMEDIATE";
constexpr std::string_view commit_sql = "COMMIT";

constexpr std::string_view version_sql = "SELECT version FROM tenure_schema";

constexpr std::string_view rule_sql =
    "SELECT lanes, hash, lane_order FROM tenure_ticket WHERE " TENURE_DOMAIN;

constexpr std::string_view draw_sql =
    "INSERT INTO tenure_ticket(scope, cluster, topic_id, partition, next, lanes, hash, lane_order)"
    " VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7)"
    " ON CONFLICT DO UPDATE SET next = next + 1 RETURNING next";

constexpr std::string_view lanes_sql =
    "SELECT lane, token, owner, next_offset, leader_epoch FROM tenure_lane WHERE " TENURE_DOMAIN
    " ORDER BY lane";

constexpr std::string_view keep_ticket_sql =
    "INSERT INTO tenure_ticket(scope, cluster, topic_id, partition, next, lanes, hash, lane_order)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    " ON CONFLICT DO UPDATE SET next = max(next, excluded.next), lanes = excluded.lanes,"
    " hash = excluded.hash, lane_order = excluded.lane_order";

constexpr std::string_view drop_lanes_sql = "DELETE FROM tenure_lane WHERE " TENURE_DOMAIN;

constexpr std::string_view add_lane_sql =
    "INSERT INTO tenure_lane(scope, cluster, topic_id, partition, lane, token, owner, next_offset,"
    " leader_epoch, note) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

constexpr std::string_view activate_sql =
    "UPDATE tenure_lane SET token = ?5, owner = ?6, note = ?7 WHERE " TENURE_DOMAIN
    " AND (token < ?5 OR (token = ?5 AND owner = ?6))";

constexpr std::string_view first_progress_sql =
    "UPDATE tenure_lane SET next_offset = ?5, leader_epoch = ?6 WHERE " TENURE_DOMAIN
    " AND next_offset IS NULL";

constexpr std::string_view advance_sql =
    "UPDATE tenure_lane SET next_offset = ?9, leader_epoch = ?10 WHERE " TENURE_DOMAIN
    " AND lane = ?5 AND token = ?6 AND owner = ?7 AND next_offset = ?8";

constexpr std::string_view lane_sql =
    "SELECT token, owner, next_offset FROM tenure_lane WHERE " TENURE_DOMAIN " AND lane = ?5";

constexpr std::string_view advance_by_user_sql =
    "INSERT INTO tenure_advance(scope, cluster, topic_id, partition, lane, token, owner,"
    " from_offset, to_offset, leader_epoch) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

#undef TENURE_DOMAIN

struct StoredLane {
  LaneProgress progress;
  Token token;
  std::string owner;
};

std::optional<Offset> offset_of(const Cell& cell) {
  const auto number = cell.integer();
  return number ? std::optional<Offset>(Offset(*number)) : std::nullopt;
}

LeaderEpoch epoch_of(const Cell& cell) {
  return LeaderEpoch(static_cast<std::int32_t>(cell.integer().value_or(-1)));
}

/// Texts of a domain, kept alive while they are bound.
struct DomainKey {
  explicit DomainKey(const Domain& domain)
      : scope(domain.scope),
        cluster(domain.cluster),
        topic_id(domain.topic_id.text()),
        partition(domain.partition.value()) {}
  const std::string& scope;
  const std::string& cluster;
  std::string topic_id;
  std::int32_t partition;
};

bool read_lanes(Connection& connection, const DomainKey& key, std::vector<StoredLane>& lanes) {
  Rows rows;
  if (!connection.run_own(lanes_sql, {key.scope, key.cluster, key.topic_id, key.partition},
                          &rows)) {
    return false;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    StoredLane lane;
    lane.progress.lane = static_cast<std::uint16_t>(rows.at(i, 0).integer().value_or(0));
    lane.token = Token(rows.at(i, 1).integer().value_or(0));
    lane.owner = rows.at(i, 2).text();
    lane.progress.next_offset = offset_of(rows.at(i, 3));
    lane.progress.leader_epoch = epoch_of(rows.at(i, 4));
    lanes.push_back(std::move(lane));
  }
  return true;
}

std::vector<LaneProgress> progress_of(const std::vector<StoredLane>& lanes) {
  std::vector<LaneProgress> out;
  for (const StoredLane& lane : lanes) out.push_back(lane.progress);
  return out;
}

std::string rule_text(std::int64_t lanes, std::string_view hash, std::string_view order) {
  return std::to_string(lanes) + " lanes, hash " + std::string(hash) + ", order " +
         std::string(order);
}

/// The order's word in the file. Stored: never changes.
std::string_view order_word(Order order) {
  switch (order) {
    case Order::none:
      return "none";
    case Order::key:
      return "key";
    case Order::partition:
      return "partition";
  }
  return "key";
}

enum class RuleCheck : std::uint8_t { same, other, failed };

/// Compares the stored lane rule; `text` becomes the stored one when it is another.
RuleCheck check_rule(Connection& connection, const DomainKey& key, const LaneRule& rule,
                     std::string& text) {
  Rows rows;
  if (!connection.run_own(rule_sql, {key.scope, key.cluster, key.topic_id, key.partition}, &rows)) {
    return RuleCheck::failed;
  }
  if (rows.empty()) return RuleCheck::same;
  const std::int64_t lanes = rows.at(0, 0).integer().value_or(0);
  const std::string_view hash = rows.at(0, 1).text();
  const std::string_view order = rows.at(0, 2).text();
  if (lanes == rule.lanes && hash == lane_hash_name && order == order_word(rule.order)) {
    return RuleCheck::same;
  }
  text = rule_text(lanes, hash, order);
  return RuleCheck::other;
}

/// Without stored progress a rule says nothing about any record, so it may change.
bool keeps_progress(const std::vector<StoredLane>& lanes) {
  for (const StoredLane& lane : lanes) {
    if (lane.progress.next_offset) return true;
  }
  return false;
}

std::string rule_message(const Domain& domain, const LaneRule& rule, const std::string& stored) {
  return "partition " + std::to_string(domain.partition.value()) + " of topic id " +
         domain.topic_id.text() + " is stored with " + stored + ", but configured are " +
         rule_text(rule.lanes, lane_hash_name, order_word(rule.order)) +
         ": its stored offsets would mean other records. Configure `lanes` and `order` as stored";
}

bool current_schema(Connection& connection, std::string& message) {
  Rows rows;
  if (!connection.run_own(version_sql, {}, &rows)) return false;
  if (rows.size() == 1 && rows.at(0, 0).integer() == schema_version) return true;
  message = connection.path() +
            ": the tables were changed to another version while in use; "
            "restart with a Tenure release of that version";
  return true;
}

/// Rolls back and fills in what went wrong with the last statement.
template <class Item>
void fail_item(Connection& connection, Item& item) {
  const Problem problem = connection.problem();
  connection.roll_back();
  item.error = store_error(problem);
  item.message = problem.message;
}

template <class Item>
void refuse_item(Connection& connection, Item& item, StoreError error, std::string message) {
  connection.roll_back();
  item.error = error;
  item.message = std::move(message);
}

template <class Item>
bool commit_item(Connection& connection, Item& item) {
  switch (commit(connection)) {
    case CommitEnd::committed:
      return true;
    case CommitEnd::rolled_back:
      fail_item(connection, item);
      return false;
    case CommitEnd::in_doubt:
      break;
  }
  item.error = StoreError::in_doubt;
  item.message = connection.problem().message;
  return false;
}

}  // namespace

std::string statements() {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> all = {{
      {"begin every transaction", begin_sql},
      {"T1, T3: the tables are of this version", version_sql},
      {"T1, T3: the lane rule is the stored one", rule_sql},
      {"T1: draw a ticket", draw_sql},
      {"T1, T3: read progress", lanes_sql},
      {"T3: keep the rule; tickets never go below an active token", keep_ticket_sql},
      {"T3: a rule without progress is replaced", drop_lanes_sql},
      {"T3: first use creates the lanes", add_lane_sql},
      {"T3: set token and owner", activate_sql},
      {"T3: first kind that keeps progress", first_progress_sql},
      {"T4: move a lane under the fence, last in the transaction", advance_sql},
      {"T4 refused: why", lane_sql},
      {"E3: read a lane on a new connection", lane_sql},
      {"sqlite::advance()", advance_by_user_sql},
      {"end every transaction", commit_sql},
  }};
  std::string out;
  for (const auto& [when, sql] : all) {
    out += "-- ";
    out += when;
    out += "\n";
    out += sql;
    out += ";\n";
  }
  return out;
}

CommitEnd commit(Connection& connection) {
  if (connection.run_own(commit_sql)) return CommitEnd::committed;
  const int code = connection.problem().code & 0xFF;
  // Still open: COMMIT did nothing. Full: a frame of the log could not be written, so it is not
  // whole. Any other failure came at a point where the log may hold all of it.
  if (connection.in_transaction() || code == SQLITE_FULL || code == SQLITE_CONSTRAINT) {
    return CommitEnd::rolled_back;
  }
  return CommitEnd::in_doubt;
}

StoreError store_error(const Problem& problem) {
  switch (problem.verdict) {
    case UnitVerdict::contention:
      return StoreError::contention;
    case UnitVerdict::handler_down:
      return StoreError::schema;
    default:
      return StoreError::unavailable;
  }
}

Reserved::Item reserve(Connection& connection, const Reserve::Item& item) {
  Reserved::Item answer;
  answer.owner = item.owner;
  const DomainKey key(item.domain);
  std::string text;
  std::vector<StoredLane> lanes;
  if (!connection.run_own(begin_sql) || !current_schema(connection, text)) {
    fail_item(connection, answer);
    return answer;
  }
  if (!text.empty()) {
    refuse_item(connection, answer, StoreError::schema, text);
    return answer;
  }
  const RuleCheck rule = check_rule(connection, key, item.rule, text);
  Rows drawn;
  if (rule == RuleCheck::failed || !read_lanes(connection, key, lanes)) {
    fail_item(connection, answer);
    return answer;
  }
  if (rule == RuleCheck::other && keeps_progress(lanes)) {
    refuse_item(connection, answer, StoreError::rule, rule_message(item.domain, item.rule, text));
    return answer;
  }
  if (!connection.run_own(draw_sql,
                          {key.scope, key.cluster, key.topic_id, key.partition, item.rule.lanes,
                           lane_hash_name, order_word(item.rule.order)},
                          &drawn)) {
    fail_item(connection, answer);
    return answer;
  }
  if (!commit_item(connection, answer)) return answer;
  answer.token = Token(drawn.at(0, 0).integer().value_or(0));
  answer.lanes = progress_of(lanes);
  return answer;
}

Activated::Item activate(Connection& connection, const Activate::Item& item) {
  Activated::Item answer;
  answer.owner = item.owner;
  const DomainKey key(item.domain);
  const std::string owner = item.fence.owner.text();
  const std::int64_t token = item.fence.token.value();
  std::string text;
  std::vector<StoredLane> lanes;
  if (!connection.run_own(begin_sql) || !current_schema(connection, text)) {
    fail_item(connection, answer);
    return answer;
  }
  if (!text.empty()) {
    refuse_item(connection, answer, StoreError::schema, text);
    return answer;
  }
  const RuleCheck rule = check_rule(connection, key, item.rule, text);
  if (rule == RuleCheck::failed || !read_lanes(connection, key, lanes)) {
    fail_item(connection, answer);
    return answer;
  }
  Rows taken;
  if (!connection.run_own(
          activate_sql,
          {key.scope, key.cluster, key.topic_id, key.partition, token, owner, item.note}, &taken)) {
    fail_item(connection, answer);
    return answer;
  }
  if (taken.changed() != static_cast<std::int64_t>(lanes.size())) {
    for (const StoredLane& lane : lanes) {
      answer.stored_token = std::max(answer.stored_token, lane.token);
    }
    refuse_item(connection, answer, StoreError::superseded,
                "token " + std::to_string(answer.stored_token.value()) + " is active, mine is " +
                    std::to_string(token));
    return answer;
  }
  if (rule == RuleCheck::other && keeps_progress(lanes)) {
    refuse_item(connection, answer, StoreError::rule, rule_message(item.domain, item.rule, text));
    return answer;
  }
  bool good = true;
  if (lanes.size() != item.rule.lanes) {
    if (keeps_progress(lanes)) {
      refuse_item(connection, answer, StoreError::unavailable,
                  connection.path() + ": " + std::to_string(lanes.size()) + " of " +
                      std::to_string(item.rule.lanes) +
                      " lane rows are left; rows were deleted by hand, restore them");
      return answer;
    }
    good =
        connection.run_own(drop_lanes_sql, {key.scope, key.cluster, key.topic_id, key.partition});
    const Value first = item.progress ? Value(item.first.value()) : Value(nullptr);
    const std::int32_t epoch = item.progress ? item.leader_epoch.value() : no_leader_epoch.value();
    for (std::uint16_t lane = 0; good && lane < item.rule.lanes; ++lane) {
      good = connection.run_own(add_lane_sql, {key.scope, key.cluster, key.topic_id, key.partition,
                                               lane, token, owner, first, epoch, item.note});
    }
  } else if (item.progress) {
    good =
        connection.run_own(first_progress_sql, {key.scope, key.cluster, key.topic_id, key.partition,
                                                item.first.value(), item.leader_epoch.value()});
  }
  good = good && connection.run_own(keep_ticket_sql,
                                    {key.scope, key.cluster, key.topic_id, key.partition, token,
                                     item.rule.lanes, lane_hash_name, order_word(item.rule.order)});
  lanes.clear();
  if (!good || !read_lanes(connection, key, lanes)) {
    fail_item(connection, answer);
    return answer;
  }
  if (!commit_item(connection, answer)) return answer;
  answer.lanes = progress_of(lanes);
  return answer;
}

UnitResult advance_lane(Connection& connection, const Domain& domain, const Fence& fence,
                        std::uint16_t lane, Offset from, Offset to, LeaderEpoch leader_epoch) {
  const DomainKey key(domain);
  const std::string owner = fence.owner.text();
  Rows changed;
  if (!connection.run_own(
          advance_sql,
          {key.scope, key.cluster, key.topic_id, key.partition, lane, fence.token.value(), owner,
           from.value(), to.value(), leader_epoch.value()},
          &changed)) {
    return {connection.problem().verdict, connection.problem().message};
  }
  if (changed.changed() == 1) return {UnitVerdict::applied, {}};
  Rows rows;
  if (!connection.run_own(lane_sql, {key.scope, key.cluster, key.topic_id, key.partition, lane},
                          &rows)) {
    return {connection.problem().verdict, connection.problem().message};
  }
  if (rows.empty()) {
    return {UnitVerdict::superseded,
            connection.path() + ": lane " + std::to_string(lane) + " has no row"};
  }
  const Token token(rows.at(0, 0).integer().value_or(0));
  if (token != fence.token || rows.at(0, 1).text() != owner) {
    return {UnitVerdict::superseded, "token " + std::to_string(fence.token.value()) +
                                         " superseded by " + std::to_string(token.value())};
  }
  const std::optional<Offset> stored = offset_of(rows.at(0, 2));
  if (stored && *stored >= to) {
    return {UnitVerdict::already_applied,
            "the lane stands at " + std::to_string(stored->value()) + " already"};
  }
  return {UnitVerdict::moved, "lane " + std::to_string(lane) + " stands at " +
                                  (stored ? std::to_string(stored->value()) : "nothing") +
                                  ", expected " + std::to_string(from.value())};
}

IdleAdvanced advance_idle(Connection& connection, const AdvanceIdle& request) {
  IdleAdvanced answer;
  answer.id = request.id;
  answer.owner = request.owner;
  if (!connection.run_own(begin_sql)) {
    fail_item(connection, answer);
    return answer;
  }
  for (const AdvanceIdle::Step& step : request.steps) {
    const UnitResult result = advance_lane(connection, request.domain, request.fence, step.lane,
                                           step.from, step.to, step.leader_epoch);
    switch (result.verdict) {
      case UnitVerdict::applied:
      case UnitVerdict::already_applied:  // this request once more, after a lost reply
        continue;
      case UnitVerdict::superseded:
        refuse_item(connection, answer, StoreError::superseded, result.message);
        return answer;
      case UnitVerdict::moved:
        refuse_item(connection, answer, StoreError::moved, result.message);
        return answer;
      default:
        fail_item(connection, answer);
        return answer;
    }
  }
  commit_item(connection, answer);
  return answer;
}

LookedUp look_up(Connection& connection, const Lookup& request) {
  LookedUp answer;
  answer.id = request.id;
  answer.owner = request.owner;
  answer.lane = request.lane;
  const DomainKey key(request.domain);
  Rows rows;
  if (!connection.run_own(
          lane_sql, {key.scope, key.cluster, key.topic_id, key.partition, request.lane}, &rows)) {
    fail_item(connection, answer);
    return answer;
  }
  if (rows.empty() || Token(rows.at(0, 0).integer().value_or(0)) != request.fence.token ||
      rows.at(0, 1).text() != request.fence.owner.text()) {
    answer.error = StoreError::superseded;
    answer.message = rows.empty() ? "the lane has no row"
                                  : "token " + std::to_string(request.fence.token.value()) +
                                        " superseded by " +
                                        std::to_string(rows.at(0, 0).integer().value_or(0));
    return answer;
  }
  answer.next_offset = offset_of(rows.at(0, 2));
  return answer;
}

Advance advance(const Domain& domain, Fence fence, std::uint16_t lane, Offset from, Offset to,
                LeaderEpoch leader_epoch) {
  return {advance_by_user_sql,
          {domain.scope, domain.cluster, domain.topic_id.text(),
           std::int64_t{domain.partition.value()}, std::int64_t{lane}, fence.token.value(),
           fence.owner.text(), from.value(), to.value(), std::int64_t{leader_epoch.value()}}};
}

}  // namespace tenure::sqlite
