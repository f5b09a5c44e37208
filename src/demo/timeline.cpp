#include "demo/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <variant>

#include "demo/script.hpp"

namespace tenure::demo {
namespace {

// Events of one cause come within this.
constexpr std::chrono::milliseconds quiet{300};
constexpr std::chrono::milliseconds longest{2'000};

std::string list(const std::set<std::int32_t>& partitions) {
  std::map<std::int32_t, std::int64_t> owned;
  for (const std::int32_t partition : partitions) owned[partition] = 0;
  return ranges(owned);
}

}  // namespace

void Timeline::line(Time at, const std::string& who, const std::string& head,
                    const std::string& tail) {
  const std::string left = who.empty() ? head : who + " " + head;
  print_(tail.empty()
             ? fmt::format("{:.1f}s  {}", static_cast<double>(at.count()) / 1e3, left)
             : fmt::format("{:.1f}s  {:<20} {}", static_cast<double>(at.count()) / 1e3, left,
                           tail));
}

void Timeline::say(Time now, const std::string& who, const std::string& text) {
  flush();
  line(now, who, text, {});
}

void Timeline::observe(const Observation& observation, const World& world, Time now) {
  if (const auto* exited = std::get_if<Exited>(&observation)) {
    if (exited->killed || exited->code != 0) {
      say(now, exited->member,
          exited->killed ? fmt::format("is dead (signal {})", exited->code - 128)
                         : fmt::format("ended with code {}", exited->code));
    }
    return;
  }
  const auto* told = std::get_if<Told>(&observation);
  if (told == nullptr) return;
  const MemberEvent& event = told->event;
  const auto group = [&](Kind kind) -> Group& {
    Group& found = groups_[{told->member, kind}];
    if (found.count++ == 0) found.first = now;
    found.last = now;
    if (event.partition >= 0) found.partitions.insert(event.partition);
    return found;
  };
  if (event.name == "owner.acquired") {
    group(Kind::owns);
  } else if (event.name == "record.skipped" && event.text == "store") {
    const std::int64_t count = std::max<std::int64_t>(event.count, 1);
    const auto found = groups_.find({told->member, Kind::owns});
    if (found != groups_.end()) {
      found->second.skipped += count;
    } else {
      group(Kind::skipped).skipped += count;
    }
  } else if (event.name == "owner.draining") {
    group(Kind::drains).in_flight += event.count;
  } else if (event.name == "owner.drained") {
    Group& drain = group(Kind::drains);
    drain.left += event.count;
    drain.took_ms = std::max(drain.took_ms, event.number);
  } else if (event.name == "owner.retired" && event.text == "revoked") {
    const auto found = groups_.find({told->member, Kind::drains});
    if (found != groups_.end()) {
      found->second.last = now;
      ++found->second.revoked;
      if (event.offset == event.count) ++found->second.committed;
    }
  } else if (event.name == "owner.lost") {
    group(Kind::lost);
  } else if (event.name == "refused") {
    Group& refused = group(Kind::refused);
    if (refused.example.empty()) {
      const auto newest = world.token.find(event.partition);
      refused.example = fmt::format(
          "partition {} offset {} finished late: REFUSED, token {} superseded by {}",
          event.partition, event.offset, event.token,
          newest == world.token.end() ? std::int64_t{0} : newest->second);
    }
  } else if (event.name == "applied" && event.late) {
    const auto writers = world.applied.find({event.partition, event.offset});
    const bool twice = writers != world.applied.end() &&
                       (writers->second.size() > 1 || writers->second.begin()->second > 1);
    Group& late = group(Kind::late);
    if (late.example.empty() && twice) {
      late.example = fmt::format("partition {} offset {} finished late: WRITTEN A SECOND TIME",
                                 event.partition, event.offset);
    }
  } else if (event.name == "store.unavailable") {
    say(now, told->member, "store.unavailable  " + event.text);
  } else if (event.name == "store.recovered") {
    say(now, told->member, "store.recovered");
  } else if (event.name == "owner.suspect") {
    // Each owner of a frozen member says so; the wake-up is in the story already.
  } else if (event.name == "client.fatal" || event.name == "group.fenced") {
    say(now, told->member, event.name + "  " + event.text);
  }
}

void Timeline::look(Time now) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    const Group& group = it->second;
    if (now - group.last < quiet && now - group.first < longest) {
      ++it;
      continue;
    }
    print(it->first, group);
    it = groups_.erase(it);
  }
}

void Timeline::flush() {
  std::vector<std::pair<std::pair<std::string, Kind>, Group>> all(groups_.begin(), groups_.end());
  groups_.clear();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.first, a.first) < std::tie(b.second.first, b.first);
  });
  for (const auto& [key, group] : all) print(key, group);
}

void Timeline::print(const std::pair<std::string, Kind>& key, const Group& group) {
  const auto& [who, kind] = key;
  const std::string partitions = list(group.partitions);
  switch (kind) {
    case Kind::owns:
      line(group.last, who, "owns " + partitions,
           group.skipped == 0 ? ""
                              : fmt::format("{} already applied, skipped from the store",
                                            group.skipped));
      break;
    case Kind::drains:
      if (group.revoked == 0) break;  // its end, not a handing over
      line(group.last, who, "drains " + partitions,
           fmt::format("{} in flight, {} left, {:.1f}s, commit {}", group.in_flight, group.left,
                       group.took_ms / 1e3,
                       group.committed == group.partitions.size()
                           ? "accepted"
                           : fmt::format("accepted for {} of {}", group.committed,
                                         group.partitions.size())));
      break;
    case Kind::lost:
      line(group.last, who, "lost " + partitions, "no commit sent");
      break;
    case Kind::skipped:
      line(group.last, who, "skips",
           fmt::format("{} records of {}: the store has them already", group.skipped, partitions));
      break;
    case Kind::refused:
      line(group.first, who, "", group.example);
      if (group.count > 1) {
        line(group.last, who, "", fmt::format("{} late effects refused in all", group.count));
      }
      break;
    case Kind::late:
      // Of a partition that it has kept, a late effect is its own.
      if (!group.example.empty()) line(group.first, who, "", group.example);
      break;
  }
}

}  // namespace tenure::demo
