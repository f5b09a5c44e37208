#include "tenure/event.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tenure {
namespace {

TEST(EventTable, EveryNameIsDottedAndThereOnce) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < event_names; ++i) {
    const EventTraits& row = traits(static_cast<EventName>(i));
    EXPECT_NE(row.name.find('.'), std::string_view::npos) << row.name;
    EXPECT_TRUE(seen.insert(row.name).second) << row.name;
  }
}

TEST(EventTable, MarksAreThoseOfTheInterface) {
  EXPECT_EQ(traits(EventName::owner_granted).name, "owner.granted");
  EXPECT_TRUE(traits(EventName::owner_granted).history);
  EXPECT_EQ(traits(EventName::record_dispatched).level, Level::debug);
  EXPECT_TRUE(traits(EventName::record_dispatched).history);
  EXPECT_EQ(traits(EventName::record_retry).level, Level::debug);
  EXPECT_FALSE(traits(EventName::record_retry).history);
  EXPECT_EQ(traits(EventName::commit_accepted).level, Level::debug);
  EXPECT_TRUE(traits(EventName::commit_accepted).history);
  EXPECT_TRUE(traits(EventName::commit_rejected).history);
  EXPECT_NE(traits(EventName::commit_rejected).level, Level::debug);
  EXPECT_EQ(traits(EventName::handler_protocol_error).name, "handler.protocol_error");
  EXPECT_EQ(traits(EventName::record_dead_lettered).name, "record.dead_lettered");
  EXPECT_EQ(traits(EventName::effect_in_doubt).name, "effect.in_doubt");
}

}  // namespace
}  // namespace tenure
