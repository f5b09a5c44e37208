#include "demo/member_line.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tenure::demo {
namespace {

TEST(MemberLine, SettingsSurviveThePipe) {
  MemberSettings settings;
  settings.name = "A";
  settings.database = "/x/\"quoted\".db";
  settings.topic = "orders";
  settings.group = "g";
  settings.kafka = {{"bootstrap.servers", "127.0.0.1:1"}, {"client.id", "a"}};
  settings.plain = true;
  settings.seed = ~std::uint64_t{0};
  settings.work_ms = 7;
  settings.slow_ms = 9;
  const auto read = settings_of(to_line(settings));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->name, "A");
  EXPECT_EQ(read->database, settings.database);
  EXPECT_EQ(read->kafka, settings.kafka);
  EXPECT_TRUE(read->plain);
  EXPECT_EQ(read->seed, settings.seed);
  EXPECT_EQ(read->work_ms, 7);
  EXPECT_EQ(read->slow_ms, 9);
}

TEST(MemberLine, EventsSurviveThePipe) {
  MemberEvent event;
  event.name = "owner.retired";
  event.partition = 0;
  event.offset = 0;
  event.grant = 3;
  event.token = 4;
  event.count = -1;
  event.number = 1.5;
  event.text = "revoked";
  event.late = true;
  const auto read = event_of(to_line(event));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->name, "owner.retired");
  EXPECT_EQ(read->partition, 0);
  EXPECT_EQ(read->offset, 0);
  EXPECT_EQ(read->grant, 3);
  EXPECT_EQ(read->token, 4);
  EXPECT_EQ(read->count, -1);
  EXPECT_DOUBLE_EQ(read->number, 1.5);
  EXPECT_EQ(read->text, "revoked");
  EXPECT_TRUE(read->late);
}

TEST(MemberLine, WhatIsNoLineIsNoEvent) {
  for (const char* line : {"", "{", "[]", "{}", "{\"name\":7}",
                           "{\"name\":\"x\",\"token\":\"y\"}"}) {
    EXPECT_FALSE(event_of(line).has_value()) << line;
    EXPECT_FALSE(settings_of(line).has_value()) << line;
  }
}

TEST(MemberLine, F4_ARetiredOwnerThatCommittedNothingDidNotCommitZero) {
  const std::vector<Field> fields = {{"reason", std::string_view("revoked")},
                                     {"frontier", std::int64_t{0}}};
  Event event{};
  event.name = EventName::owner_retired;
  event.has_owner = true;
  event.fields = fields;
  const auto told = member_event(event);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->offset, 0);
  EXPECT_NE(told->count, told->offset);
}

TEST(MemberLine, EventsOfSingleRecordsStayInTheMember) {
  Event event{};
  for (const EventName name : {EventName::record_dispatched, EventName::record_outcome,
                               EventName::frontier_advanced, EventName::commit_sent}) {
    event.name = name;
    EXPECT_FALSE(member_event(event).has_value());
  }
}

}  // namespace
}  // namespace tenure::demo
