#include "demo/script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tenure::demo {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

// Records a member must have written before the scenario begins: it is at work.
constexpr std::uint64_t at_work = 10;

constexpr milliseconds usual_patience{20'000};

const std::string a = "A";

bool always(const World&) { return true; }

void start(World& world, const std::string& member, Actions& out) {
  world.members[member] = {};
  world.members[member].running = true;
  out.emplace_back(StartMember{member});
}

/// Partition in which two records are held, and those records; empty when there is none.
std::vector<Spot> two_held(const World& world) {
  std::map<std::int32_t, std::vector<Spot>> by_partition;
  for (const Spot spot : world.member(a).held) by_partition[spot.partition].push_back(spot);
  for (auto& [partition, spots] : by_partition) {
    if (spots.size() >= 2) return spots;
  }
  return {};
}

/// Held records of A whose partition has another grant by now.
std::vector<Spot> held_and_back(const World& world) {
  std::vector<Spot> spots;
  const MemberState& member = world.member(a);
  for (const Spot spot : member.held) {
    const auto grants = member.grants.find(spot.partition);
    if (grants != member.grants.end() && grants->second.size() >= 2 &&
        member.owned.contains(spot.partition)) {
      spots.push_back(spot);
    }
  }
  return spots;
}

class Steps {
 public:
  explicit Steps(const Plan& plan) : plan_(plan) {}

  std::vector<Step> build(std::size_t& end_of_scenario) {
    switch (plan_.scenario) {
      case Scenario::tour: tour(); break;
      case Scenario::zombie: all_start(); zombie(); break;
      case Scenario::kill: all_start(); kill(); break;
      case Scenario::reclaim: reclaim(); break;
      case Scenario::slow_key: all_start(); slow_key(); break;
      case Scenario::store_down: all_start(); store_down(); break;
    }
    end_of_scenario = steps_.size();
    end();
    return std::move(steps_);
  }

 private:
  void add(std::string what, std::function<bool(const World&)> when,
           std::function<void(World&, Actions&)> act, milliseconds patience = usual_patience) {
    steps_.push_back({std::move(what), std::move(when),
                      [act = std::move(act)](World& world, Actions& out) {
                        act(world, out);
                        return std::size_t{0};
                      },
                      patience});
  }

  void members_at_work(int members) {
    add(fmt::format("{} members at work on all partitions", members),
        [members](const World& world) {
          for (int i = 0; i < members; ++i) {
            const MemberState& member = world.member(member_name(i));
            if (member.owned.empty() || member.applied < at_work) return false;
          }
          return world.all_owned();
        },
        [](World&, Actions&) {}, membership_patience());
  }

  void all_start() {
    const int members = plan_.members;
    add("the start", always, [members](World& world, Actions& out) {
      for (int i = 0; i < members; ++i) start(world, member_name(i), out);
    });
    members_at_work(members);
  }

  void tour() {
    add("the start", always, [](World& world, Actions& out) { start(world, a, out); });
    members_at_work(1);
    const int members = plan_.members;
    add("A at work", always, [members](World& world, Actions& out) {
      for (int i = 1; i < members; ++i) {
        start(world, member_name(i), out);
        out.emplace_back(Say{member_name(i), "joins"});
      }
    });
    members_at_work(members);
    zombie();
  }

  void zombie() {
    add("A at work", always,
        [](World&, Actions& out) { out.emplace_back(TellMember{a, "freeze"}); });
    add("A frozen",
        [](const World& world) {
          return world.member(a).stopped && world.member(a).freezing.has_value();
        },
        [](World& world, Actions& out) {
          world.lock_free.reset();
          out.emplace_back(ProbeLock{});
        });
    // Its store's own thread may have been in a write: nobody could take over from that.
    steps_.push_back(
        {"the write lock after the freeze",
         [](const World& world) { return world.lock_free.has_value(); },
         [](World& world, Actions& out) -> std::size_t {
           MemberState& member = world.members[a];
           const Spot spot = *member.freezing;
           if (*world.lock_free) {
             out.emplace_back(
                 Say{a, fmt::format("frozen      in the handler of partition {} offset {}; A still "
                                    "believes it owns {}",
                                    spot.partition, spot.offset, ranges(member.owned))});
             return 0;
           }
           out.emplace_back(Say{a, "was frozen inside a write: thawed, and once more"});
           out.emplace_back(Continue{a});
           member.stopped = false;
           member.freezing.reset();
           out.emplace_back(TellMember{a, "freeze"});
           return 1;
         },
         usual_patience});
    add("others own all partitions and have written the frozen record",
        [](const World& world) {
          const std::optional<Spot> spot = world.member(a).freezing;
          return spot && world.owned_except(a) == static_cast<std::size_t>(world.partitions) &&
                 world.applied_by_other(*spot, a);
        },
        [](World& world, Actions& out) {
          out.emplace_back(Say{a, "wakes"});
          world.members[a].stopped = false;
          out.emplace_back(Continue{a});
        },
        membership_patience());
    add("A's late effect has met the database",
        [](const World& world) { return world.refused + world.late_written > 0; },
        [](World&, Actions&) {});
    add("A goes on with new grants",
        [](const World& world) { return world.granted_since_freeze(a) && world.all_owned(); },
        [](World&, Actions&) {}, membership_patience());
  }

  void kill() {
    add("A at work", always,
        [](World&, Actions& out) { out.emplace_back(TellMember{a, "hold_after"}); });
    add("two effects of A in one partition, written and not yet reported",
        [](const World& world) { return two_held(world).size() >= 2; },
        [](World& world, Actions& out) {
          const std::vector<Spot> spots = two_held(world);
          std::string offsets;
          for (const Spot spot : spots) {
            offsets += (offsets.empty() ? "" : ", ") + std::to_string(spot.offset);
          }
          out.emplace_back(Kill{a});
          out.emplace_back(Say{a, fmt::format("killed      partition {}: the effects of offsets {} "
                                              "are in the database, no offset commit was sent",
                                              spots.front().partition, offsets)});
        });
    add("others own all partitions and have met a record again",
        [](const World& world) {
          return !world.member(a).running && world.all_owned() &&
                 world.skipped + world.again > 0;
        },
        [](World& world, Actions& out) {
          out.emplace_back(Say{a, "starts again"});
          start(world, a, out);
        },
        membership_patience());
    add("A owns partitions again",
        [](const World& world) { return !world.member(a).owned.empty() && world.all_owned(); },
        [](World&, Actions&) {}, membership_patience());
  }

  void reclaim() {
    add("the start", always, [](World& world, Actions& out) { start(world, a, out); });
    members_at_work(1);
    add("A at work", always,
        [](World&, Actions& out) { out.emplace_back(TellMember{a, "hold_before"}); });
    add("one handler of each partition held back",
        [](const World& world) {
          return world.member(a).held.size() >= static_cast<std::size_t>(world.partitions);
        },
        [](World& world, Actions& out) {
          out.emplace_back(Say{a, "holds a record of each partition in its handler"});
          out.emplace_back(Say{"B", "joins"});
          start(world, "B", out);
        });
    add("partitions have left A with work in flight",
        [](const World& world) {
          return world.member(a).owned.size() < static_cast<std::size_t>(world.partitions);
        },
        [](World&, Actions& out) {
          out.emplace_back(Say{"B", "leaves at once"});
          out.emplace_back(Terminate{"B"});
        },
        membership_patience());
    add("a partition is back at A, which has written the held record under its second grant",
        [](const World& world) {
          const std::vector<Spot> back = held_and_back(world);
          return world.member(a).owned.size() == static_cast<std::size_t>(world.partitions) &&
                 std::any_of(back.begin(), back.end(),
                             [&](Spot spot) { return world.applied.contains(spot); });
        },
        [](World&, Actions& out) {
          out.emplace_back(Say{a, "finishes what it held, late"});
          out.emplace_back(TellMember{a, "release"});
        },
        membership_patience());
    add("late completions at A",
        [](const World& world) {
          return world.member(a).late > 0 && world.refused + world.late_written > 0;
        },
        [](World&, Actions&) {});
  }

  void slow_key() {
    add("members at work", always,
        [](World&, Actions& out) { out.emplace_back(TellMember{a, "slow"}); });
    add("a slow record, and other keys of its partition far above it",
        [](const World& world) {
          for (const auto& [name, member] : world.members) {
            for (const Spot spot : member.held) {
              const auto highest = world.highest_applied.find(spot.partition);
              if (highest != world.highest_applied.end() && world.gap_max > 0 &&
                  highest->second > spot.offset + 10) {
                return true;
              }
            }
          }
          return false;
        },
        [](World& world, Actions& out) {
          out.emplace_back(Say{"", fmt::format("one key is slow; other keys go on: {} records are "
                                               "complete above the frontier",
                                               world.gap_max)});
        });
    add("the slow record is written",
        [](const World& world) {
          for (const auto& [name, member] : world.members) {
            for (const Spot spot : member.held) {
              if (world.applied.contains(spot)) return true;
            }
          }
          return false;
        },
        [](World&, Actions&) {}, plan_.slow + milliseconds(10'000));
    add("no gap is left",
        [](const World& world) {
          for (const auto& [name, member] : world.members) {
            for (const auto& [partition, gap] : member.gap) {
              if (gap > 50) return false;
            }
          }
          return true;
        },
        [](World&, Actions&) {});
  }

  void store_down() {
    const milliseconds locked = plan_.locked;
    add("members at work", always, [](World&, Actions& out) { out.emplace_back(LockStore{}); });
    add("the database is locked", [](const World& world) { return world.lock_taken; },
        [locked](World&, Actions& out) {
          out.emplace_back(Say{"", fmt::format("the database is locked for {} s by another process",
                                               locked.count() / 1000)});
        });
    add("the lock is given back", [](const World& world) { return world.lock_given; },
        [](World&, Actions& out) { out.emplace_back(Say{"", "the database is free again"}); },
        locked + milliseconds(5'000));
    add("members have noticed both",
        [](const World& world) { return world.store_unavailable && world.store_recovered; },
        [](World&, Actions&) {});
  }

  void end() {
    add("everything shown", always,
        [](World&, Actions& out) { out.emplace_back(StopProducing{}); });
    add("committed = log end on every partition",
        [](const World& world) { return world.caught_up; },
        [](World& world, Actions& out) {
          for (const auto& [name, member] : world.members) {
            if (member.running) out.emplace_back(Terminate{name});
          }
        },
        milliseconds(30'000));
    add("all members gone",
        [](const World& world) {
          return std::none_of(world.members.begin(), world.members.end(),
                              [](const auto& each) { return each.second.running; });
        },
        [](World&, Actions&) {});
  }

  /// A session that has to end, two rebalances, on a slow machine.
  [[nodiscard]] milliseconds membership_patience() const {
    const bool broker_session = !plan_.brokers.empty() && plan_.protocol == Protocol::consumer;
    return milliseconds(broker_session ? 90'000 : 30'000);
  }

  const Plan& plan_;
  std::vector<Step> steps_;
};

}  // namespace

std::string ranges(const std::map<std::int32_t, std::int64_t>& owned) {
  std::string out;
  for (auto it = owned.begin(); it != owned.end();) {
    const std::int32_t first = it->first;
    std::int32_t last = first;
    for (++it; it != owned.end() && it->first == last + 1; ++it) last = it->first;
    out += (out.empty() ? "" : ",") + std::to_string(first);
    if (last > first) out += "-" + std::to_string(last);
  }
  return out.empty() ? "nothing" : out;
}

Script::Script(const Plan& plan) : plan_(plan), steps_(Steps(plan).build(end_)) {
  world_.partitions = plan.partitions;
}

std::vector<Action> Script::observe(const Observation& observation, Time now) {
  world_.take(observation);
  return look(now);
}

std::vector<Action> Script::look(Time now) {
  std::vector<Action> out;
  while (!finished() && steps_[next_].when(world_)) {
    const std::size_t back = steps_[next_].act(world_, out);
    next_ = back == 0 ? next_ + 1 : next_ - back;
    since_ = now;
  }
  if (!finished() && now - since_ > steps_[next_].patience) give_up(now, out);
  return out;
}

void Script::give_up(Time now, std::vector<Action>& out) {
  if (!stuck_) stuck_ = steps_[next_].what;
  out.emplace_back(Say{"", "waited in vain for: " + steps_[next_].what});
  next_ = next_ < end_ ? end_ : next_ + 1;
  since_ = now;
  for (auto& [name, member] : world_.members) {
    if (!member.running) continue;
    out.emplace_back(TellMember{name, "release"});
    if (member.stopped) out.emplace_back(Continue{name});
    member.stopped = false;
  }
}

std::vector<judge::Sight> Script::sights() const {
  const MemberState& member = world_.member(a);
  const judge::Sight refused{"a late effect refused by the database", world_.refused > 0};
  std::vector<judge::Sight> sights;
  switch (plan_.scenario) {
    case Scenario::tour:
      if (plan_.protocol == Protocol::eager && plan_.brokers.empty()) {
        // The mock refuses commits while a classic group rebalances, which a broker takes.
        sights.push_back({"a complete drain", world_.drains() > 0});
      } else {
        sights.push_back({"a complete drain with its commit accepted",
                          world_.drains_committed() > 0});
      }
      sights.push_back(refused);
      break;
    case Scenario::zombie:
      sights.push_back(refused);
      break;
    case Scenario::kill:
      sights.push_back({"a killed member", world_.killed > 0});
      sights.push_back({"a record skipped, from the store", world_.skipped > 0});
      break;
    case Scenario::reclaim:
      sights.push_back({"two grants of one partition at A",
                        std::any_of(member.grants.begin(), member.grants.end(),
                                    [](const auto& each) { return each.second.size() >= 2; })});
      sights.push_back({"late completions", member.late > 0});
      break;
    case Scenario::slow_key:
      sights.push_back({"records complete above a frontier", world_.gap_max > 0});
      break;
    case Scenario::store_down:
      sights.push_back({"store.unavailable", world_.store_unavailable});
      sights.push_back({"store.recovered", world_.store_recovered});
      break;
  }
  if (stuck_) sights.push_back({*stuck_, false});
  return sights;
}

}  // namespace tenure::demo
