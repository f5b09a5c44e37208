// Schedules without processes: what is done follows from what is seen, in any scenario.
#include "demo/script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace tenure::demo {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::Not;

/// A run as its parent would play it; members do what the test says.
class Stage {
 public:
  explicit Stage(Plan plan) : plan_(std::move(plan)), script_(plan_) { done(script_.look(now_)); }

  void see(const Observation& observation) { done(script_.observe(observation, ++now_)); }
  void told(const std::string& member, MemberEvent event) { see(Told{member, std::move(event)}); }
  void owns(const std::string& member, std::vector<std::int32_t> partitions, std::int64_t grant,
            std::int64_t token = 1) {
    for (const std::int32_t partition : partitions) {
      MemberEvent event = at("owner.acquired", partition, 0);
      event.grant = grant;
      event.token = token;
      told(member, event);
    }
  }
  void retires(const std::string& member, std::vector<std::int32_t> partitions, std::int64_t grant,
               const std::string& reason, std::int64_t frontier = -1, std::int64_t committed = -2) {
    for (const std::int32_t partition : partitions) {
      MemberEvent event = at("owner.retired", partition, frontier);
      event.grant = grant;
      event.text = reason;
      event.count = committed;
      told(member, event);
    }
  }
  void applies(const std::string& member, std::int32_t partition, std::int64_t first, int count) {
    for (int i = 0; i < count; ++i) told(member, at("applied", partition, first + i));
  }
  static MemberEvent at(const std::string& name, std::int32_t partition, std::int64_t offset) {
    MemberEvent event;
    event.name = name;
    event.partition = partition;
    event.offset = offset;
    return event;
  }
  void wait(milliseconds time) {
    now_ += time;
    done(script_.look(now_));
  }
  /// Produced everything, committed everything, members end when told to.
  void wind_up() {
    ASSERT_THAT(acts_, Contains("stop producing"));
    see(CaughtUp{});
    for (const std::string& act : std::vector<std::string>(acts_)) {
      if (act.starts_with("terminate ")) see(Exited{act.substr(10), 0, false});
    }
    EXPECT_TRUE(script_.finished());
    EXPECT_FALSE(script_.stuck().has_value()) << *script_.stuck();
  }

  [[nodiscard]] bool seen_all() const {
    const std::vector<judge::Sight> sights = script_.sights();
    return std::all_of(sights.begin(), sights.end(),
                       [](const judge::Sight& sight) { return sight.seen; });
  }
  [[nodiscard]] const std::vector<std::string>& acts() const { return acts_; }
  void forget() { acts_.clear(); }
  Script& script() { return script_; }

 private:
  void done(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* a = std::get_if<StartMember>(&action)) acts_.push_back("start " + a->member);
      if (const auto* a = std::get_if<TellMember>(&action)) {
        acts_.push_back("tell " + a->member + " " + a->command);
      }
      if (const auto* a = std::get_if<Continue>(&action)) acts_.push_back("continue " + a->member);
      if (const auto* a = std::get_if<Kill>(&action)) acts_.push_back("kill " + a->member);
      if (const auto* a = std::get_if<Terminate>(&action)) {
        acts_.push_back("terminate " + a->member);
      }
      if (std::holds_alternative<ProbeLock>(action)) acts_.push_back("probe");
      if (std::holds_alternative<LockStore>(action)) acts_.push_back("lock");
      if (std::holds_alternative<StopProducing>(action)) acts_.push_back("stop producing");
    }
  }

  const Plan plan_;
  Script script_;
  milliseconds now_{0};
  std::vector<std::string> acts_;
};

Plan plan_of(Scenario scenario, bool plain = false) {
  Plan plan;
  plan.scenario = scenario;
  plan.partitions = 4;
  plan.plain = plain;
  return plan;
}

/// A and B at work, two partitions each, grants 1.
void two_at_work(Stage& stage) {
  stage.owns("A", {0, 1}, 1);
  stage.owns("B", {2, 3}, 1);
  stage.applies("A", 0, 0, 10);
  stage.applies("B", 2, 0, 10);
}

void freeze(Stage& stage) {
  stage.told("A", Stage::at("freezing", 1, 7));
  stage.see(Stopped{"A"});
}

TEST(Script, ZombieGoesOnlyAsFarAsItHasSeen) {
  Stage stage(plan_of(Scenario::zombie));
  EXPECT_EQ(stage.acts(), (std::vector<std::string>{"start A", "start B"}));
  stage.forget();
  two_at_work(stage);
  EXPECT_EQ(stage.acts(), std::vector<std::string>{"tell A freeze"});
  stage.forget();
  freeze(stage);
  EXPECT_EQ(stage.acts(), std::vector<std::string>{"probe"});
  stage.forget();
  stage.see(LockProbed{true});
  EXPECT_TRUE(stage.acts().empty());
  stage.owns("B", {0, 1}, 2, 2);
  EXPECT_TRUE(stage.acts().empty()) << "B has not written the frozen record";
  stage.applies("B", 1, 7, 1);
  EXPECT_EQ(stage.acts(), std::vector<std::string>{"continue A"});
  stage.forget();
  stage.told("A", Stage::at("refused", 1, 7));
  stage.retires("A", {0, 1}, 1, "lost");
  EXPECT_TRUE(stage.acts().empty()) << "A has to go on with new grants";
  stage.retires("B", {0, 1}, 2, "revoked");
  stage.owns("A", {0, 1}, 5, 3);
  EXPECT_EQ(stage.acts(), std::vector<std::string>{"stop producing"});
  stage.wind_up();
  EXPECT_TRUE(stage.seen_all());
}

TEST(Script, ZombieThatFrozeInsideAWriteIsThawedAndFrozenOnceMore) {
  Stage stage(plan_of(Scenario::zombie));
  two_at_work(stage);
  freeze(stage);
  stage.forget();
  stage.see(LockProbed{false});
  EXPECT_EQ(stage.acts(), (std::vector<std::string>{"continue A", "tell A freeze"}));
  stage.forget();
  stage.see(Stopped{"A"});
  EXPECT_TRUE(stage.acts().empty()) << "the second freeze has not been told yet";
  stage.told("A", Stage::at("freezing", 0, 12));
  EXPECT_EQ(stage.acts(), std::vector<std::string>{"probe"});
}

TEST(Script, PlainZombieEndsWithTheLateEffectWrittenAndNothingRefused) {
  Stage stage(plan_of(Scenario::zombie, true));
  two_at_work(stage);
  freeze(stage);
  stage.see(LockProbed{true});
  stage.owns("B", {0, 1}, 2, 0);
  stage.applies("B", 1, 7, 1);
  MemberEvent late = Stage::at("applied", 1, 7);
  late.late = true;
  stage.told("A", late);
  stage.retires("A", {0, 1}, 1, "lost");
  stage.owns("A", {0, 1}, 5, 0);
  stage.wind_up();
  EXPECT_FALSE(stage.seen_all());
  EXPECT_EQ(stage.script().world().late_written, 1U);
}

TEST(Script, TourShowsADrainWhoseFrontierWasCommitted) {
  Stage stage(plan_of(Scenario::tour));
  EXPECT_EQ(stage.acts(), std::vector<std::string>{"start A"});
  stage.owns("A", {0, 1, 2, 3}, 1);
  stage.applies("A", 0, 0, 10);
  EXPECT_THAT(stage.acts(), Contains("start B"));
  stage.retires("A", {2, 3}, 1, "revoked", 30, 30);
  stage.owns("B", {2, 3}, 1);
  stage.applies("B", 2, 30, 10);
  EXPECT_THAT(stage.acts(), Contains("tell A freeze"));
  EXPECT_EQ(stage.script().world().member("A").drains_committed, 2U);
}

TEST(Script, TourWithoutAnAcceptedCommitHasNotShownADrain) {
  Stage stage(plan_of(Scenario::tour));
  stage.owns("A", {0, 1, 2, 3}, 1);
  stage.applies("A", 0, 0, 10);
  stage.retires("A", {2, 3}, 1, "revoked", 30, 29);
  EXPECT_FALSE(stage.seen_all());
  EXPECT_EQ(stage.script().world().member("A").drains_committed, 0U);
}

TEST(Script, KillWaitsForTwoUnreportedEffectsInOnePartition) {
  Stage stage(plan_of(Scenario::kill));
  two_at_work(stage);
  EXPECT_THAT(stage.acts(), Contains("tell A hold_after"));
  stage.told("A", Stage::at("held", 0, 11));
  stage.told("A", Stage::at("held", 1, 4));
  EXPECT_THAT(stage.acts(), Not(Contains("kill A")));
  stage.told("A", Stage::at("held", 0, 13));
  EXPECT_THAT(stage.acts(), Contains("kill A"));
  stage.see(Exited{"A", 137, true});
  stage.owns("B", {0, 1}, 2, 2);
  EXPECT_THAT(stage.acts(), Not(Contains("stop producing")));
  MemberEvent skipped = Stage::at("record.skipped", 0, -1);
  skipped.text = "store";
  skipped.count = 2;
  stage.told("B", skipped);
  EXPECT_EQ(std::count(stage.acts().begin(), stage.acts().end(), "start A"), 2);
  stage.owns("A", {0, 1}, 1, 3);
  stage.wind_up();
  EXPECT_TRUE(stage.seen_all());
  EXPECT_EQ(stage.script().world().skipped, 2U);
}

TEST(Script, SkippedByTheBrokerIsNoRecordSkippedFromTheStore) {
  Stage stage(plan_of(Scenario::kill));
  MemberEvent skipped = Stage::at("record.skipped", 0, -1);
  skipped.text = "broker";
  stage.told("B", skipped);
  EXPECT_EQ(stage.script().world().skipped, 0U);
}

TEST(Script, ReclaimNeedsTwoGrantsAndLateCompletionsOfTheFirst) {
  Stage stage(plan_of(Scenario::reclaim));
  stage.owns("A", {0, 1, 2, 3}, 1);
  stage.applies("A", 0, 0, 10);
  EXPECT_THAT(stage.acts(), Contains("tell A hold_before"));
  for (std::int32_t partition = 0; partition < 4; ++partition) {
    stage.told("A", Stage::at("held", partition, 20));
  }
  EXPECT_THAT(stage.acts(), Contains("start B"));
  stage.retires("A", {2, 3}, 1, "revoked", 20, 20);
  EXPECT_THAT(stage.acts(), Contains("terminate B"));
  stage.see(Exited{"B", 0, false});
  stage.owns("A", {2, 3}, 9, 2);
  EXPECT_THAT(stage.acts(), Not(Contains("tell A release")));
  stage.applies("A", 3, 20, 1);
  EXPECT_THAT(stage.acts(), Contains("tell A release"));
  EXPECT_THAT(stage.acts(), Not(Contains("stop producing")));
  stage.told("A", Stage::at("refused", 3, 20));
  stage.told("A", Stage::at("record.late", 3, 20));
  stage.wind_up();
  EXPECT_TRUE(stage.seen_all());
}

TEST(Script, SlowKeyWaitsUntilOtherKeysAreFarAboveIt) {
  Stage stage(plan_of(Scenario::slow_key));
  two_at_work(stage);
  EXPECT_THAT(stage.acts(), Contains("tell A slow"));
  EXPECT_THAT(stage.acts(), Not(Contains("tell B slow"))) << "one key, not two";
  stage.told("A", Stage::at("held", 1, 5));
  MemberEvent gap = Stage::at("gap", 1, -1);
  gap.count = 30;
  stage.told("A", gap);
  stage.applies("A", 1, 6, 20);
  EXPECT_THAT(stage.acts(), Not(Contains("stop producing")));
  stage.applies("A", 1, 5, 1);
  gap.count = 0;
  stage.told("A", gap);
  stage.wind_up();
  EXPECT_TRUE(stage.seen_all());
}

TEST(Script, StoreDownNeedsBothEvents) {
  Stage stage(plan_of(Scenario::store_down));
  two_at_work(stage);
  EXPECT_THAT(stage.acts(), Contains("lock"));
  stage.see(LockTaken{});
  stage.told("A", Stage::at("store.recovered", -1, -1));
  EXPECT_FALSE(stage.seen_all()) << "recovered from nothing";
  stage.told("A", Stage::at("store.unavailable", -1, -1));
  stage.see(LockGiven{});
  EXPECT_THAT(stage.acts(), Not(Contains("stop producing")));
  stage.told("A", Stage::at("store.recovered", -1, -1));
  stage.wind_up();
  EXPECT_TRUE(stage.seen_all());
}

TEST(Script, WhenPatienceEndsMembersComeToTheirEndAndTheRunProvesNothing) {
  Stage stage(plan_of(Scenario::zombie));
  two_at_work(stage);
  freeze(stage);
  stage.forget();
  stage.wait(milliseconds(21'000));
  ASSERT_TRUE(stage.script().stuck().has_value());
  EXPECT_EQ(*stage.script().stuck(), "the write lock after the freeze");
  EXPECT_THAT(stage.acts(), Contains("continue A"));
  stage.wait(milliseconds(1));
  EXPECT_THAT(stage.acts(), Contains("stop producing"));
  stage.wait(milliseconds(31'000));
  stage.wait(milliseconds(31'000));
  stage.wait(milliseconds(31'000));
  EXPECT_TRUE(stage.script().finished());
  EXPECT_EQ(*stage.script().stuck(), "the write lock after the freeze") << "the first of all";
  EXPECT_FALSE(stage.seen_all());
}

TEST(Script, EverySightIsUnseenAtTheStart) {
  for (const Scenario scenario : scenarios) {
    const Script script(plan_of(scenario));
    const std::vector<judge::Sight> sights = script.sights();
    EXPECT_FALSE(sights.empty()) << name(scenario);
    for (const judge::Sight& sight : sights) EXPECT_FALSE(sight.seen) << sight.what;
  }
}

TEST(Ranges, AreWrittenShort) {
  EXPECT_EQ(ranges({{0, 1}, {1, 1}, {2, 1}, {5, 1}, {7, 1}, {8, 1}}), "0-2,5,7-8");
  EXPECT_EQ(ranges({}), "nothing");
}

}  // namespace
}  // namespace tenure::demo
