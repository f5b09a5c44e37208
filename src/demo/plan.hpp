// What a demo run is asked to be. Values.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tenure/ids.hpp"

namespace tenure::demo {

enum class Scenario : std::uint8_t { tour, zombie, kill, reclaim, slow_key, store_down };
inline constexpr std::array<Scenario, 6> scenarios = {Scenario::tour,    Scenario::zombie,
                                                      Scenario::kill,    Scenario::reclaim,
                                                      Scenario::slow_key, Scenario::store_down};
/// "slow-key".
std::string_view name(Scenario scenario);
std::string_view summary(Scenario scenario);
std::optional<Scenario> scenario_named(std::string_view name);
/// Whether a run without progress and fence goes wrong in it.
bool has_plain(Scenario scenario);

struct Plan {
  Scenario scenario = Scenario::tour;
  int members = 2;
  int partitions = 8;
  int rate = 200;  ///< records/s
  int keys = 64;
  std::uint64_t seed = 1;
  Protocol protocol = Protocol::cooperative;
  bool plain = false;    ///< no progress, no fence: must go wrong
  std::string brokers;   ///< empty: the client's mock cluster
  std::string keep;      ///< folder that stays; empty: a temporary one

  // The two things that last as long as they are said to; tests shorten them.
  std::chrono::milliseconds slow{20'000};
  std::chrono::milliseconds locked{10'000};
};

/// "A", "B" ..
std::string member_name(int index);

}  // namespace tenure::demo
