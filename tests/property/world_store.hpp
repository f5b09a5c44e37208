// The effect store of a simulated world: rows and the fence (T1, T3, T4), nothing of time or
// failure, which the world adds around it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "property/world_time.hpp"
#include "tenure/store_types.hpp"

namespace tenure::test {

class StoreRows {
 public:
  struct Lane {
    Token token{0};
    Uuid owner{};
    std::optional<Offset> next;
    Instant locked_until = Instant::min();  ///< by a session that has not ended yet
  };
  struct Rows {
    Token ticket{0};
    std::vector<Lane> lanes;
  };
  enum class Check : std::uint8_t { apply, already, superseded, moved };

  Rows& rows(const Domain& domain) { return rows_[domain]; }

  static std::vector<LaneProgress> progress(const Rows& rows) {
    std::vector<LaneProgress> lanes;
    for (std::size_t i = 0; i < rows.lanes.size(); ++i) {
      lanes.push_back({static_cast<std::uint16_t>(i), rows.lanes[i].next, LeaderEpoch(1)});
    }
    return lanes;
  }

  static Instant locked_until(const Rows& rows) {
    Instant latest = Instant::min();
    for (const Lane& lane : rows.lanes) latest = std::max(latest, lane.locked_until);
    return latest;
  }

  Reserved::Item reserve(const Reserve::Item& item) {
    Rows& stored = rows_[item.domain];
    stored.ticket = Token(stored.ticket.value() + 1);
    return {item.owner, StoreError::none, {}, stored.ticket, progress(stored)};
  }

  Activated::Item activate(const Activate::Item& item) {
    Rows& stored = rows_[item.domain];
    Activated::Item answer;
    answer.owner = item.owner;
    for (const Lane& lane : stored.lanes) {
      if (lane.token >= item.fence.token && lane.owner != item.fence.owner) {
        answer.error = StoreError::superseded;
        answer.stored_token = lane.token;
        return answer;
      }
    }
    stored.lanes.resize(item.rule.lanes);
    for (Lane& lane : stored.lanes) {
      lane.token = item.fence.token;
      lane.owner = item.fence.owner;
      if (item.progress && !lane.next) lane.next = item.first;
    }
    answer.lanes = progress(stored);
    return answer;
  }

  Check check(const Domain& domain, const Fence& fence, std::uint16_t lane, Offset from,
              Offset to) {
    const Rows& stored = rows_[domain];
    if (lane >= stored.lanes.size()) return Check::superseded;
    const Lane& row = stored.lanes[lane];
    if (row.token != fence.token || row.owner != fence.owner) return Check::superseded;
    if (row.next && *row.next >= to) return Check::already;
    return row.next == from ? Check::apply : Check::moved;
  }

  StoreError advance(const AdvanceIdle& request) {
    std::vector<AdvanceIdle::Step> steps;
    for (const AdvanceIdle::Step& step : request.steps) {
      switch (check(request.domain, request.fence, step.lane, step.from, step.to)) {
        case Check::apply:
          steps.push_back(step);
          break;
        case Check::already:
          break;
        case Check::superseded:
          return StoreError::superseded;
        case Check::moved:
          return StoreError::moved;
      }
    }
    for (const AdvanceIdle::Step& step : steps)
      rows_[request.domain].lanes[step.lane].next = step.to;
    return StoreError::none;
  }

  LookedUp look_up(const Lookup& request) {
    LookedUp answer{request.id, request.owner, request.lane, StoreError::none, {}, {}};
    const Rows& stored = rows_[request.domain];
    if (request.lane >= stored.lanes.size() ||
        stored.lanes[request.lane].owner != request.fence.owner) {
      answer.error = StoreError::superseded;
    } else {
      answer.next_offset = stored.lanes[request.lane].next;
    }
    return answer;
  }

 private:
  std::map<Domain, Rows> rows_;
};

}  // namespace tenure::test
