// Backoff of held records, and their order.
#include "core/retry_schedule.hpp"

#include <gtest/gtest.h>

namespace tenure::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RetrySchedule::Policy policy(double jitter) {
  return {milliseconds(200), seconds(3), jitter};
}

OwnerRef owner(std::uint64_t grant) {
  return {0, GrantId(grant)};
}

TEST(RetrySchedule, TheWaitDoublesUpToItsCap) {
  const RetrySchedule schedule(policy(0));
  Random random(1);
  const Duration expected[] = {milliseconds(200),  milliseconds(400),  milliseconds(800),
                               milliseconds(1600), milliseconds(3000), milliseconds(3000)};
  for (std::uint32_t tries = 1; tries <= 6; ++tries) {
    EXPECT_EQ(schedule.backoff(tries, random), expected[tries - 1]) << tries;
  }
  EXPECT_EQ(schedule.backoff(4'000'000'000U, random), seconds(3));
}

TEST(RetrySchedule, JitterTakesAtMostItsShareAndSpreads) {
  const RetrySchedule schedule(policy(0.25));
  Random random(7);
  Duration least = seconds(9), most{};
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = schedule.backoff(1, random);
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, milliseconds(150));
  EXPECT_LT(least, milliseconds(155));
  EXPECT_LE(most, milliseconds(200));
  EXPECT_GT(most, milliseconds(195));
}

TEST(RetrySchedule, EntriesComeOutInOrderOfTheirTimeAndNotBefore) {
  RetrySchedule schedule(policy(0));
  const Instant start(seconds(10));
  schedule.add({start + seconds(2), owner(1), 5, true});
  schedule.add({start + seconds(1), owner(2), 9, false});
  schedule.add({start + seconds(1), owner(1), 8, true});
  schedule.add({start + seconds(1), owner(1), 3, true});
  EXPECT_EQ(schedule.next(), start + seconds(1));
  RetrySchedule::Entry entry;
  EXPECT_FALSE(schedule.pop(start, entry));
  const Ordinal expected[] = {3, 8, 9};
  for (const Ordinal ordinal : expected) {
    ASSERT_TRUE(schedule.pop(start + seconds(1), entry));
    EXPECT_EQ(entry.ordinal, ordinal);
  }
  EXPECT_FALSE(entry.counts);
  EXPECT_FALSE(schedule.pop(start + seconds(1), entry));
  EXPECT_EQ(schedule.size(), 1u);
}

TEST(RetrySchedule, R1_DropForgetsOneOwnerOnly) {
  RetrySchedule schedule(policy(0));
  const Instant start(seconds(10));
  for (Ordinal i = 0; i < 20; ++i) {
    schedule.add({start + milliseconds(20 - static_cast<int>(i)), owner(1 + i % 2), i, true});
  }
  schedule.drop(owner(1));
  EXPECT_EQ(schedule.size(), 10u);
  RetrySchedule::Entry entry;
  Ordinal expected = 19;
  while (schedule.pop(start + seconds(1), entry)) {
    EXPECT_EQ(entry.ordinal, expected);
    expected -= 2;
  }
  EXPECT_EQ(schedule.next(), never);
}

}  // namespace
}  // namespace tenure::core
