#include "core/slot_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

namespace tenure::core {
namespace {

std::uint64_t draw(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return state >> 33;
}

TEST(SlotTable, EqualsAMapThroughAnyInsertAndErase) {
  for (const std::uint64_t keys : {5ULL, 40ULL, 3000ULL}) {
    SlotTable table;
    std::map<std::uint64_t, std::uint32_t> model;
    std::uint64_t state = keys;
    for (int n = 0; n < 200'000; ++n) {
      // Clusters of neighbours, so that probing runs into other keys and around the end.
      const std::uint64_t key = draw(state) % keys * (n % 2 == 0 ? 1 : 0x9e3779b97f4a7c15ULL);
      if (draw(state) % 2 == 0) {
        const auto slot = static_cast<std::uint32_t>(draw(state) % 1000);
        table.put(key, slot);
        model[key] = slot;
      } else {
        EXPECT_EQ(table.erase(key), model.erase(key) == 1);
      }
      ASSERT_EQ(table.size(), model.size());
      const std::uint64_t other = draw(state) % keys;
      const auto found = model.find(other);
      ASSERT_EQ(table.find(other), found == model.end() ? SlotTable::none : found->second);
    }
    for (const auto& [key, slot] : model) ASSERT_EQ(table.find(key), slot);
  }
}

TEST(SlotTable, DoesNotGrowWithTheKeysItHasSeen) {
  SlotTable table;
  for (std::uint64_t key = 0; key < 1'000'000; ++key) {
    table.put(key, 1);
    if (key >= 100) {
      EXPECT_TRUE(table.erase(key - 100));
    }
  }
  EXPECT_EQ(table.size(), 100U);
  EXPECT_LE(table.capacity(), 512U);
}

TEST(SlotTable, ClearForgetsAllKeysAndKeepsItsMemory) {
  SlotTable table;
  EXPECT_EQ(table.find(1), SlotTable::none);
  EXPECT_FALSE(table.erase(1));
  for (std::uint32_t key = 0; key < 100; ++key) table.put(key, key);
  const std::size_t capacity = table.capacity();
  table.clear();
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.capacity(), capacity);
  EXPECT_EQ(table.find(5), SlotTable::none);
}

}  // namespace
}  // namespace tenure::core
