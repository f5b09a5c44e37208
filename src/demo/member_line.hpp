// What parent and members of a demo say to each other: JSON objects, one a line.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "demo/world.hpp"
#include "tenure/event.hpp"

namespace tenure::demo {

/// The first line a member reads.
struct MemberSettings {
  std::string name;
  std::string database;
  std::string topic;
  std::string group;
  std::map<std::string, std::string> kafka;  ///< client properties
  bool plain = false;
  std::uint64_t seed = 1;
  std::int64_t work_ms = 20;  ///< what a handler takes
  std::int64_t slow_ms = 20'000;
};

std::string to_line(const MemberSettings& settings);
std::optional<MemberSettings> settings_of(std::string_view line);

std::string to_line(const MemberEvent& event);
/// Empty: no event.
std::optional<MemberEvent> event_of(std::string_view line);

/// An event of the runtime, as far as the demo looks at it; empty: it does not.
std::optional<MemberEvent> member_event(const Event& event);

}  // namespace tenure::demo
