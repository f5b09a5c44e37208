#include <gtest/gtest.h>

#include <string>

#include "base/interval_set.hpp"
#include "base/xxh64.hpp"

namespace tenure {
namespace {

// A stored offset means other records under another hash: these values never change.
TEST(LaneHash, IsXxh64WithSeedZero) {
  EXPECT_EQ(xxh64({}), 0xEF46DB3751D8E999ULL);
  EXPECT_EQ(xxh64(std::string("a")), 0xD24EC4F1A98C6E5BULL);
  EXPECT_EQ(xxh64(std::string("abc")), 0x44BC2CF5AD770999ULL);
}

TEST(LaneHash, OfAnOffsetTakesEightBytesLittleEndian) {
  const std::string bytes("\x04\x03\x02\x01\x00\x00\x00\x00", 8);
  EXPECT_EQ(xxh64_of_offset(0x01020304), xxh64(bytes));
  EXPECT_NE(xxh64_of_offset(0), xxh64_of_offset(1));
}

TEST(IntervalSet, HoldsWhatWasInsertedAndNothingElse) {
  IntervalSet set;
  for (const std::uint64_t number : {5U, 7U, 6U, 1U, 9U, 5U, 6U, 2U}) set.insert(number);
  for (const std::uint64_t number : {1U, 2U, 5U, 6U, 7U, 9U}) EXPECT_TRUE(set.contains(number));
  for (const std::uint64_t number : {0U, 3U, 4U, 8U, 10U}) EXPECT_FALSE(set.contains(number));
  EXPECT_EQ(set.intervals(), 3U);
}

TEST(IntervalSet, GrowsWithGapsNotWithMembers) {
  IntervalSet set;
  for (std::uint64_t number = 10000; number > 0; --number) set.insert(number);
  EXPECT_EQ(set.intervals(), 1U);
  EXPECT_FALSE(set.contains(0));
  EXPECT_FALSE(set.contains(10001));
}

}  // namespace
}  // namespace tenure
