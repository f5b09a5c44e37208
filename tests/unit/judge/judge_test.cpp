// Each violation is planted into a run that passes without it, and found with its place.
#include "judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tenure::judge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two partitions, two owners of partition 0 (token 1, then 2); two keys in each partition.
Evidence good_run() {
  Evidence run;
  std::int64_t pos = 0;
  const auto fence = [&](std::int32_t partition, std::int64_t token) {
    for (int lane = 0; lane < 2; ++lane) run.fences.push_back({++pos, partition, token});
  };
  const auto record = [&](std::int32_t partition, std::int64_t offset, const std::string& key,
                          std::int64_t amount, std::int64_t token) {
    run.input.push_back({{partition, offset}, key, amount});
    run.effects.push_back({++pos, {partition, offset}, key, token});
    run.balances[key] += amount;
  };
  fence(0, 1);
  fence(1, 1);
  record(0, 0, "a", 5, 1);
  record(0, 1, "b", 7, 1);
  record(1, 0, "c", 1, 1);
  fence(0, 2);
  record(0, 2, "a", -2, 2);
  record(0, 3, "b", 4, 2);
  record(1, 1, "c", 9, 1);
  run.ends = {{0, 4, 4}, {1, 2, 2}};
  return run;
}

EffectRow& effect_at(Evidence& run, Place at) {
  return *std::find_if(run.effects.begin(), run.effects.end(),
                       [&](const EffectRow& effect) { return effect.at == at; });
}

std::vector<Violation> violations_of(const Judgement& judgement) {
  std::vector<Violation> out;
  for (const Finding& finding : judgement.findings) out.push_back(finding.violation);
  return out;
}

TEST(Judge, PassesARunInWhichEveryWitnessAgrees) {
  const Judgement judgement = judge(good_run(), {});
  EXPECT_EQ(judgement.verdict, Verdict::pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_THAT(judgement.missing, IsEmpty());
  EXPECT_THAT(judgement.compared, ElementsAre(6U, 3U, 6U, 2U, 3U));
  EXPECT_EQ(judgement.records, 6U);
  EXPECT_EQ(judgement.effects, 6U);
}

TEST(Judge, J1_FindsALostRecord) {
  Evidence run = good_run();
  std::erase_if(run.effects, [](const EffectRow& e) { return e.at == Place{1, 1}; });
  run.balances["c"] = 1;
  const Judgement judgement = judge(run, {});
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  EXPECT_THAT(violations_of(judgement), ElementsAre(Violation::lost, Violation::balance));
  EXPECT_THAT(judgement.find(Violation::lost)->counterexample,
              HasSubstr("partition 1 offset 1 key c"));
}

TEST(Judge, J1_FindsADuplicateEffectWithBothItsRows) {
  Evidence run = good_run();
  run.effects.push_back({100, {0, 3}, "b", 2});
  run.balances["b"] += 4;
  const Judgement judgement = judge(run, {});
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  ASSERT_THAT(violations_of(judgement),
              ElementsAre(Violation::duplicate_effect, Violation::balance));
  EXPECT_EQ(judgement.count(Violation::duplicate_effect), 1U);
  EXPECT_THAT(judgement.find(Violation::duplicate_effect)->counterexample,
              HasSubstr("partition 0 offset 3 key b: row 11 under token 2 and row 100 under "
                        "token 2"));
}

TEST(Judge, J1_FindsAnEffectOfNoRecord) {
  Evidence run = good_run();
  run.effects.push_back({100, {0, 4}, "b", 2});
  const Judgement judgement = judge(run, {});
  EXPECT_THAT(violations_of(judgement), ElementsAre(Violation::ghost));
}

TEST(Judge, J2_FindsAKeyWhoseEffectsDoNotAscend) {
  Evidence run = good_run();
  std::swap(effect_at(run, {1, 0}).pos, effect_at(run, {1, 1}).pos);
  const Judgement judgement = judge(run, {});
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  ASSERT_THAT(violations_of(judgement), ElementsAre(Violation::key_reorder));
  EXPECT_THAT(judgement.find(Violation::key_reorder)->counterexample,
              HasSubstr("key c in partition 1: offset 0"));
}

TEST(Judge, J2_ComparesKeysInsideOnePartitionOnly) {
  Evidence run = good_run();
  for (InputRecord& record : run.input) record.key = "one";
  for (EffectRow& effect : run.effects) effect.key = "one";
  run.balances = {{"one", 24}};
  EXPECT_EQ(judge(run, {}).verdict, Verdict::pass);
}

TEST(Judge, J3_FindsAnEffectUnderATokenAfterANewerActivation) {
  Evidence run = good_run();
  effect_at(run, {0, 3}).token = 1;
  const Judgement judgement = judge(run, {});
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  ASSERT_THAT(violations_of(judgement), ElementsAre(Violation::stale_effect));
  EXPECT_THAT(judgement.find(Violation::stale_effect)->counterexample,
              HasSubstr("under token 1, after token 2 was activated in row 8"));
}

TEST(Judge, J3_FindsAnEffectUnderATokenThatWasNeverActivated) {
  Evidence run = good_run();
  effect_at(run, {0, 3}).token = 3;
  const Judgement judgement = judge(run, {});
  ASSERT_THAT(violations_of(judgement), ElementsAre(Violation::stale_effect));
  EXPECT_THAT(judgement.find(Violation::stale_effect)->counterexample,
              HasSubstr("not activated before it"));
}

TEST(Judge, J3_AnOlderActivationAfterANewerOneDoesNotLowerTheFence) {
  Evidence run = good_run();
  run.fences.push_back({9, 0, 1});
  EXPECT_EQ(judge(run, {}).verdict, Verdict::pass);
}

TEST(Judge, J4_FindsACommitBelowTheEndOneAboveItAndNone) {
  for (const std::optional<std::int64_t> committed :
       {std::optional<std::int64_t>(1), std::optional<std::int64_t>(3),
        std::optional<std::int64_t>()}) {
    Evidence run = good_run();
    run.ends[1].committed = committed;
    const Judgement judgement = judge(run, {});
    EXPECT_EQ(judgement.verdict, Verdict::fail);
    ASSERT_THAT(violations_of(judgement), ElementsAre(Violation::committed_not_end));
    EXPECT_THAT(judgement.find(Violation::committed_not_end)->counterexample,
                HasSubstr("partition 1: committed"));
  }
}

TEST(Judge, J4_AnEmptyPartitionNeedsNoCommittedOffset) {
  Evidence run = good_run();
  run.ends.push_back({2, 0, {}});
  EXPECT_EQ(judge(run, {}).verdict, Verdict::pass);
}

TEST(Judge, J5_FindsABalanceThatNoSequentialRunWouldLeave) {
  Evidence wrong = good_run();
  wrong.balances["a"] += 1;
  EXPECT_THAT(violations_of(judge(wrong, {})), ElementsAre(Violation::balance));
  EXPECT_THAT(judge(wrong, {}).find(Violation::balance)->counterexample,
              HasSubstr("key a: balance 4, expected 3"));
  Evidence absent = good_run();
  absent.balances.erase("a");
  EXPECT_THAT(violations_of(judge(absent, {})), ElementsAre(Violation::balance));
  Evidence foreign = good_run();
  foreign.balances["z"] = 0;
  EXPECT_THAT(violations_of(judge(foreign, {})), ElementsAre(Violation::balance));
}

TEST(Judge, CountsEveryPlaceAndShowsTheSmallest) {
  Evidence run = good_run();
  run.effects.clear();
  const Judgement judgement = judge(run, {});
  EXPECT_EQ(judgement.count(Violation::lost), 6U);
  EXPECT_THAT(judgement.find(Violation::lost)->counterexample, HasSubstr("partition 0 offset 0"));
}

TEST(Judge, ARunThatComparedNothingIsNeverAPass) {
  const Judgement judgement = judge({}, {});
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_EQ(judgement.missing.size(), 5U);
}

TEST(Judge, EachWitnessAloneIsMissedWhenItComparedNothing) {
  Evidence no_tokens = good_run();
  for (EffectRow& effect : no_tokens.effects) effect.token.reset();
  EXPECT_THAT(judge(no_tokens, {}).missing, ElementsAre(HasSubstr("J3 compared nothing")));
  EXPECT_EQ(judge(no_tokens, {}).verdict, Verdict::inconclusive);

  Evidence no_ends = good_run();
  no_ends.ends.clear();
  EXPECT_THAT(judge(no_ends, {}).missing, ElementsAre(HasSubstr("J4 compared nothing")));

  Evidence no_neighbours = good_run();
  for (std::size_t i = 0; i < no_neighbours.input.size(); ++i) {
    no_neighbours.input[i].key = no_neighbours.effects[i].key = "k" + std::to_string(i);
  }
  no_neighbours.balances.clear();
  for (const InputRecord& record : no_neighbours.input) {
    no_neighbours.balances[record.key] = record.amount;
  }
  EXPECT_THAT(judge(no_neighbours, {}).missing, ElementsAre(HasSubstr("J2 compared nothing")));
}

TEST(Judge, WhatHadToBeSeenAndWasNotMakesItInconclusive) {
  const std::vector<Sight> sights = {{"a drain", true}, {"a late effect refused", false}};
  const Judgement judgement = judge(good_run(), sights);
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_THAT(judgement.missing, ElementsAre("not seen: a late effect refused"));
}

TEST(Judge, AViolationWinsOverWhatWasNotSeen) {
  Evidence run = good_run();
  run.balances["a"] = 0;
  const std::vector<Sight> sights = {{"a late effect refused", false}};
  EXPECT_EQ(judge(run, sights).verdict, Verdict::fail);
}

TEST(Judge, ReadsRowsInDatabaseOrderHoweverTheyAreHandedOver) {
  Evidence run = good_run();
  std::reverse(run.effects.begin(), run.effects.end());
  std::reverse(run.fences.begin(), run.fences.end());
  EXPECT_EQ(judge(run, {}).verdict, Verdict::pass);
}

}  // namespace
}  // namespace tenure::judge
