#include "demo/world.hpp"

#include <algorithm>

namespace tenure::demo {

namespace {
template <class... F>
struct Each : F... {
  using F::operator()...;
};
template <class... F>
Each(F...) -> Each<F...>;
}  // namespace

void World::take(const Observation& observation) {
  std::visit(Each{
                 [&](const Told& o) { told(o.member, o.event); },
                 [&](const Stopped& o) { members[o.member].stopped = true; },
                 [&](const Exited& o) {
                   MemberState& member = members[o.member];
                   member.running = false;
                   member.stopped = false;
                   member.exit_code = o.code;
                   member.killed = o.killed;
                   if (o.killed) ++killed;
                   member.owned.clear();
                   member.held.clear();
                   member.freezing.reset();
                 },
                 [&](const LockProbed& o) { lock_free = o.free; },
                 [&](const LockTaken&) { lock_taken = true; },
                 [&](const LockGiven&) { lock_given = true; },
                 [&](const CaughtUp&) { caught_up = true; },
             },
             observation);
}

void World::told(const std::string& name, const MemberEvent& event) {
  MemberState& member = members[name];
  const Spot spot{event.partition, event.offset};
  if (event.name == "owner.acquired") {
    member.owned[event.partition] = event.grant;
    member.newest_grant = std::max(member.newest_grant, event.grant);
    member.grants[event.partition].insert(event.grant);
    token[event.partition] = std::max(token[event.partition], event.token);
  } else if (event.name == "owner.retired") {
    const auto found = member.owned.find(event.partition);
    if (found != member.owned.end() && found->second == event.grant) member.owned.erase(found);
    member.gap.erase(event.partition);
    if (event.text == "revoked" && event.offset >= 0 && event.offset == event.count) {
      ++member.drains_committed;
    }
  } else if (event.name == "owner.drained") {
    if (event.text == "complete") ++member.drains;
  } else if (event.name == "applied" || event.name == "again") {
    ++member.applied;
    auto& writers = applied[spot];
    const bool twice = event.name == "again" || !writers.empty();
    if (twice) ++again;
    if (twice && event.late && event.name == "applied") ++late_written;
    ++writers[name];
    auto [highest, first] = highest_applied.try_emplace(event.partition, event.offset);
    highest->second = std::max(highest->second, event.offset);
  } else if (event.name == "freezing") {
    member.freezing = spot;
    member.newest_grant_at_freeze = member.newest_grant;
  } else if (event.name == "held") {
    member.held.push_back(spot);
  } else if (event.name == "refused") {
    ++refused;
  } else if (event.name == "record.late") {
    ++member.late;
  } else if (event.name == "record.skipped") {
    if (event.text == "store") {
      skipped += static_cast<std::uint64_t>(std::max<std::int64_t>(event.count, 1));
    }
  } else if (event.name == "store.unavailable") {
    store_unavailable = true;
  } else if (event.name == "store.recovered") {
    store_recovered = store_unavailable;
  } else if (event.name == "gap") {
    member.gap[event.partition] = event.count;
    gap_max = std::max(gap_max, event.count);
  }
}

const MemberState& World::member(const std::string& name) const {
  static const MemberState none;
  const auto found = members.find(name);
  return found == members.end() ? none : found->second;
}

std::size_t World::owned_except(std::string_view name) const {
  std::set<std::int32_t> owned;
  for (const auto& [other, member] : members) {
    if (other == name || !member.running) continue;
    for (const auto& [partition, grant] : member.owned) owned.insert(partition);
  }
  return owned.size();
}

std::uint64_t World::drains() const {
  std::uint64_t sum = 0;
  for (const auto& [name, member] : members) sum += member.drains;
  return sum;
}

std::uint64_t World::drains_committed() const {
  std::uint64_t sum = 0;
  for (const auto& [name, member] : members) sum += member.drains_committed;
  return sum;
}

bool World::granted_since_freeze(const std::string& name) const {
  const MemberState& frozen = member(name);
  return std::any_of(frozen.owned.begin(), frozen.owned.end(), [&](const auto& owned) {
    return owned.second > frozen.newest_grant_at_freeze;
  });
}

bool World::applied_by_other(Spot spot, std::string_view name) const {
  const auto found = applied.find(spot);
  return found != applied.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const auto& writer) { return writer.first != name; });
}

}  // namespace tenure::demo
