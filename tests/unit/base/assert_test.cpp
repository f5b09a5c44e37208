#include "base/assert.hpp"

#include <gtest/gtest.h>

namespace tenure {
namespace {

TEST(Assert, ATrueConditionIsEvaluatedOnceAndHasNoEffect) {
  int evaluated = 0;
  TENURE_ASSERT(++evaluated == 1, "never printed");
  EXPECT_EQ(evaluated, 1);
}

TEST(AssertDeathTest, ABrokenInvariantPrintsPlaceConditionAndRuleAndAborts) {
  EXPECT_DEATH(TENURE_ASSERT(1 + 1 == 3, "F2 the frontier never goes back"),
               "assert_test\\.cpp:[0-9]+: assertion failed: 1 \\+ 1 == 3\n  F2 the frontier never "
               "goes back");
}

TEST(AssertDeathTest, ASlowCheckIsEvaluatedOnlyWhereSlowChecksAreOn) {
  [[maybe_unused]] const auto broken = [] { TENURE_ASSERT_SLOW(false, "O5 slow"); };
#if TENURE_SLOW_CHECKS
  EXPECT_DEATH(broken(), "O5 slow");
#else
  broken();
#endif
}

}  // namespace
}  // namespace tenure
