// The store conformance suite on every store, and on one that must fail it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "contract/store/store_process.hpp"
#include "contract/store/worlds.hpp"

namespace tenure::testing {
namespace {

struct WorldKind {
  const char* name;
  std::unique_ptr<StoreWorld> (*make)();
};
constexpr WorldKind worlds[] = {
    {"memory", memory_world}, {"sqlite", sqlite_world}, {"sqlite_normal", sqlite_normal_world}};

Report run_case(StoreWorld& world, const StoreCase& one) {
  Report report;
  try {
    one.run(world, report);
  } catch (const NoAnswer& error) {
    report.expect(false, error.what());
  }
  return report;
}

std::uint64_t seed() {
  const char* given = std::getenv("TENURE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

class StoreConformance : public ::testing::TestWithParam<std::tuple<WorldKind, StoreCase>> {};

TEST_P(StoreConformance, Holds) {
  const auto& [kind, one] = GetParam();
  const auto world = kind.make();
  const Report report = run_case(*world, one);
  for (const std::string& failure : report.failures()) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance,
                         ::testing::Combine(::testing::ValuesIn(worlds),
                                            ::testing::ValuesIn(store_cases().begin(),
                                                                store_cases().end())),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param).name) + "_" +
                                  std::string(std::get<1>(parameter.param).name);
                         });

class StoreTakeovers : public ::testing::TestWithParam<WorldKind> {};

TEST_P(StoreTakeovers, E4_RandomTakeoversConvergeToOneResult) {
  TakeoverFuzz fuzz;
  fuzz.seed = seed();
  fuzz.duration = std::chrono::seconds(4);
  SCOPED_TRACE("TENURE_TEST_SEED=" + std::to_string(fuzz.seed));
  const auto world = GetParam().make();
  Report report;
  const TakeoverCounts counts = fuzz_takeovers(*world, fuzz, report);
  RecordProperty("takeovers", static_cast<int>(counts.takeovers));
  std::printf("takeovers %llu, applied %llu, refused %llu, in doubt %llu\n",
              static_cast<unsigned long long>(counts.takeovers),
              static_cast<unsigned long long>(counts.applied),
              static_cast<unsigned long long>(counts.refused),
              static_cast<unsigned long long>(counts.in_doubt));
  for (const std::string& failure : report.failures()) ADD_FAILURE() << failure;
  EXPECT_GT(counts.refused, 0U) << "no unit was ever refused: nothing was fought over";
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreTakeovers, ::testing::ValuesIn(worlds),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(MutantStore, T4_AnUnlockedCheckBeforeTheTransactionFailsTheTakeovers) {
  TakeoverFuzz fuzz;
  fuzz.seed = seed();
  const auto world = mutant_world();
  Report report;
  fuzz_takeovers(*world, fuzz, report);
  EXPECT_FALSE(report.failures().empty()) << "the suite does not see a store without a fence";
}

TEST(MutantStore, T4_AnUnlockedCheckBeforeTheTransactionFailsTheSuite) {
  int failed = 0;
  for (const StoreCase& one : store_cases()) {
    const auto world = mutant_world();
    if (!run_case(*world, one).failures().empty()) ++failed;
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace tenure::testing
