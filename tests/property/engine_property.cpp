// Many small worlds around the real engine (engine_world.hpp). TENURE_ENGINE_SEEDS=n runs the
// seeds 1 .. n, TENURE_ENGINE_SEED=s only one, with its events.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include "property/engine_world.hpp"

namespace tenure::test {
namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(EngineWorld, EveryRuleHoldsInEveryWorldAndAllIsConsumedWhenItHeals) {
  const std::uint64_t only = number("TENURE_ENGINE_SEED", 0);
  const std::uint64_t first = only != 0 ? only : number("TENURE_ENGINE_FIRST", 1);
  const std::uint64_t last = only != 0 ? only : first + number("TENURE_ENGINE_SEEDS", 600) - 1;
  std::uint64_t steps = 0;
  int failures = 0;
  std::map<std::string_view, std::uint64_t> seen;
  for (std::uint64_t seed = first; seed <= last && failures < 20; ++seed) {
    const EngineWorld::Report report = EngineWorld(seed, only != 0).run();
    steps += report.steps;
    for (const auto& [what, times] : report.seen) seen[what] += times;
    if (!report.broken.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << report.broken << "\n  " << report.parameters;
      continue;
    }
    const EngineWorld::Report again = EngineWorld(seed).run();
    EXPECT_EQ(report.hash, again.hash)
        << "seed " << seed << " did not repeat: " << report.parameters;
  }
  // A world in which nothing goes wrong proves nothing.
  if (last - first >= 299) {
    for (const std::string_view what :
         {"owner.suspect", "owner.resumed", "owner.lost", "owner.drained", "owner.blocked",
          "commit.unresolved", "commit.rejected", "commit.late", "effect.in_doubt",
          "effect.refused", "record.replayed", "record.late", "record.parked", "record.retry",
          "record.skipped", "store.unavailable", "store.recovered", "app.draining"}) {
      EXPECT_GT(seen[what], 0u) << what << " never happened";
    }
  }
  RecordProperty("steps", std::to_string(steps));
  if (std::getenv("TENURE_ENGINE_SHOW") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::cout << steps << " steps\n";
    for (const auto& [what, times] : seen) std::cout << "  " << what << " " << times << "\n";
  }
}

}  // namespace
}  // namespace tenure::test
