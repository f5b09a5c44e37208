#include "memory/fence.hpp"

#include <algorithm>

namespace tenure::memory {
namespace {

std::vector<LaneProgress> progress_of(const DomainRows& rows) {
  std::vector<LaneProgress> out;
  for (std::size_t lane = 0; lane < rows.lanes.size(); ++lane) {
    out.push_back({static_cast<std::uint16_t>(lane), rows.lanes[lane].next_offset,
                   rows.lanes[lane].leader_epoch});
  }
  return out;
}

bool keeps_progress(const DomainRows& rows) {
  return std::any_of(rows.lanes.begin(), rows.lanes.end(),
                     [](const LaneRow& row) { return row.next_offset.has_value(); });
}

std::string rule_message(const LaneRule& stored, const LaneRule& wanted) {
  return "stored with " + std::to_string(stored.lanes) + " lanes, order " +
         std::string(name(stored.order)) + "; configured are " + std::to_string(wanted.lanes) +
         " lanes, order " + std::string(name(wanted.order)) +
         ": its stored offsets would mean other records. Configure `lanes` and `order` as stored";
}

const LaneRow* find_lane(const Database::Image& database, const Domain& domain,
                         std::uint16_t lane) {
  const auto found = database.domains.find(domain);
  if (found == database.domains.end() || lane >= found->second.lanes.size()) return nullptr;
  return &found->second.lanes[lane];
}

bool mine(const LaneRow& row, const Fence& fence) {
  return row.token == fence.token && row.owner == fence.owner;
}

}  // namespace

Reserved::Item reserve(Database::Image& database, const Reserve::Item& item) {
  Reserved::Item answer;
  answer.owner = item.owner;
  auto [found, created] = database.domains.try_emplace(item.domain);
  DomainRows& rows = found->second;
  if (created) rows.rule = item.rule;
  if (rows.rule != item.rule && keeps_progress(rows)) {
    answer.error = StoreError::rule;
    answer.message = rule_message(rows.rule, item.rule);
    return answer;
  }
  rows.next = Token(rows.next.value() + 1);
  answer.token = rows.next;
  answer.lanes = progress_of(rows);
  return answer;
}

Activated::Item activate(Database::Image& database, const Activate::Item& item) {
  Activated::Item answer;
  answer.owner = item.owner;
  DomainRows& rows = database.domains[item.domain];
  Token highest;
  bool refused = false;
  for (const LaneRow& row : rows.lanes) {
    highest = std::max(highest, row.token);
    refused = refused || !(row.token < item.fence.token || mine(row, item.fence));
  }
  if (refused) {
    answer.error = StoreError::superseded;
    answer.stored_token = highest;
    answer.message = "token " + std::to_string(highest.value()) + " is active, mine is " +
                     std::to_string(item.fence.token.value());
    return answer;
  }
  if (rows.rule != item.rule && keeps_progress(rows)) {
    answer.error = StoreError::rule;
    answer.message = rule_message(rows.rule, item.rule);
    return answer;
  }
  rows.rule = item.rule;
  rows.next = std::max(rows.next, item.fence.token);
  rows.lanes.resize(item.rule.lanes);
  for (LaneRow& row : rows.lanes) {
    row.token = item.fence.token;
    row.owner = item.fence.owner;
    row.note = item.note;
    if (item.progress && !row.next_offset) {
      row.next_offset = item.first;
      row.leader_epoch = item.leader_epoch;
    }
  }
  answer.lanes = progress_of(rows);
  return answer;
}

UnitResult check_lane(const Database::Image& database, const Domain& domain, const Fence& fence,
                      std::uint16_t lane, Offset from, Offset to) {
  const LaneRow* row = find_lane(database, domain, lane);
  if (row == nullptr || !mine(*row, fence)) {
    return {UnitVerdict::superseded,
            "token " + std::to_string(fence.token.value()) + " superseded by " +
                (row == nullptr ? "nothing" : std::to_string(row->token.value()))};
  }
  if (row->next_offset && *row->next_offset >= to) {
    return {UnitVerdict::already_applied,
            "the lane stands at " + std::to_string(row->next_offset->value()) + " already"};
  }
  if (row->next_offset != from) {
    return {UnitVerdict::moved,
            "lane " + std::to_string(lane) + " stands at " +
                (row->next_offset ? std::to_string(row->next_offset->value()) : "nothing") +
                ", expected " + std::to_string(from.value())};
  }
  return {UnitVerdict::applied, {}};
}

void move_lane(Database::Image& database, const Domain& domain, std::uint16_t lane, Offset to,
               LeaderEpoch leader_epoch) {
  LaneRow& row = database.domains[domain].lanes[lane];
  row.next_offset = to;
  row.leader_epoch = leader_epoch;
}

IdleAdvanced advance_idle(Database::Image& database, const AdvanceIdle& request) {
  IdleAdvanced answer;
  answer.id = request.id;
  answer.owner = request.owner;
  std::vector<const AdvanceIdle::Step*> steps;
  for (const AdvanceIdle::Step& step : request.steps) {
    const UnitResult result =
        check_lane(database, request.domain, request.fence, step.lane, step.from, step.to);
    if (result.verdict == UnitVerdict::applied) steps.push_back(&step);
    // This request once more, after a lost reply.
    if (result.verdict == UnitVerdict::applied || result.verdict == UnitVerdict::already_applied) {
      continue;
    }
    answer.error =
        result.verdict == UnitVerdict::moved ? StoreError::moved : StoreError::superseded;
    answer.message = result.message;
    return answer;
  }
  for (const AdvanceIdle::Step* step : steps) {
    move_lane(database, request.domain, step->lane, step->to, step->leader_epoch);
  }
  return answer;
}

LookedUp look_up(const Database::Image& database, const Lookup& request) {
  LookedUp answer;
  answer.id = request.id;
  answer.owner = request.owner;
  answer.lane = request.lane;
  const LaneRow* row = find_lane(database, request.domain, request.lane);
  if (row == nullptr || !mine(*row, request.fence)) {
    answer.error = StoreError::superseded;
    answer.message = "token " + std::to_string(request.fence.token.value()) + " superseded";
    return answer;
  }
  answer.next_offset = row->next_offset;
  return answer;
}

}  // namespace tenure::memory
