#include "demo/plan.hpp"

#include <algorithm>

namespace tenure::demo {

std::string_view name(Scenario scenario) {
  switch (scenario) {
    case Scenario::tour: return "tour";
    case Scenario::zombie: return "zombie";
    case Scenario::kill: return "kill";
    case Scenario::reclaim: return "reclaim";
    case Scenario::slow_key: return "slow-key";
    case Scenario::store_down: return "store-down";
  }
  return "unknown";
}

std::string_view summary(Scenario scenario) {
  switch (scenario) {
    case Scenario::tour: return "B joins and takes half; then as zombie";
    case Scenario::zombie: return "A freezes, B takes over, A wakes: its late effect is refused";
    case Scenario::kill: return "A is killed between effect and offset commit";
    case Scenario::reclaim: return "a partition leaves A with work in flight and comes back";
    case Scenario::slow_key: return "one key takes 20 s; the other keys go on";
    case Scenario::store_down: return "the database is locked for 10 s";
  }
  return "";
}

std::optional<Scenario> scenario_named(std::string_view name) {
  const auto found = std::find_if(scenarios.begin(), scenarios.end(), [&](Scenario scenario) {
    return demo::name(scenario) == name;
  });
  return found == scenarios.end() ? std::nullopt : std::optional<Scenario>(*found);
}

bool has_plain(Scenario scenario) {
  return scenario == Scenario::tour || scenario == Scenario::zombie ||
         scenario == Scenario::kill || scenario == Scenario::reclaim;
}

std::string member_name(int index) { return std::string(1, static_cast<char>('A' + index)); }

}  // namespace tenure::demo
