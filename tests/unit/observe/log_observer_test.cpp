#include "observe/log_observer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenure::observe {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const WallTime noon = WallTime(std::chrono::milliseconds(1796126671007));

Event event_of(EventName name, std::uint64_t grant = 0) {
  Event event;
  event.name = name;
  event.level = traits(name).level;
  event.at = Instant(Duration(1s));
  event.seq = 17;
  event.group = "billing";
  event.member = "m-1";
  event.epoch = Epoch(42);
  if (grant > 0) {
    event.has_owner = true;
    event.topic = "orders";
    event.partition = Partition(5);
    event.grant = GrantId(grant);
  }
  return event;
}

struct Log {
  explicit Log(LogOptions options)
      : observer(
            options,
            [this](Level level, std::string_view line) {
              levels.push_back(level);
              lines.emplace_back(line);
            },
            [] { return noon; }) {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  std::string line(const Event& event) {
    const std::size_t before = lines.size();
    observer.on_event(event);
    return lines.size() == before ? "" : lines.back();
  }
  std::vector<std::string> lines;
  std::vector<Level> levels;
  LogObserver observer;
};

const LogOptions text_log{LogFormat::text, Level::info, false};
const LogOptions json_log{LogFormat::json, Level::debug, false};

TEST(LogObserver, TextIsTimeEventPlaceAndFields) {
  Log log(text_log);
  Event event = event_of(EventName::owner_released, 7);
  const std::vector<Field> fields = {{"took_ms", std::int64_t{700}},
                                     {"result", std::string_view("complete")},
                                     {"share", 0.5},
                                     {"acked", true}};
  event.fields = fields;
  EXPECT_EQ(log.line(event),
            "12:04:31 owner.released  orders 5  took_ms 700  result complete  share 0.5  "
            "acked true  epoch 42");
  EXPECT_EQ(log.line(event_of(EventName::group_joined)), "12:04:31 group.joined");
}

TEST(LogObserver, TextSaysWhatMattersInWordsOrColor) {
  Log plain(text_log);
  EXPECT_EQ(plain.line(event_of(EventName::owner_lost, 7)),
            "12:04:31 owner.lost  orders 5  epoch 42  level warn");
  Log colored(LogOptions{LogFormat::text, Level::info, true});
  EXPECT_EQ(colored.line(event_of(EventName::client_fatal)),
            "12:04:31 \x1b[31mclient.fatal\x1b[0m");
  EXPECT_EQ(colored.line(event_of(EventName::group_joined)), "12:04:31 group.joined");
}

TEST(LogObserver, ForeignTextCannotForgeALineOrSteerATerminal) {
  Log log(text_log);
  Event event = event_of(EventName::client_fatal);
  const std::vector<Field> fields = {{"error", std::string_view("two words\nfake\x1b[2J\xFF")}};
  event.fields = fields;
  EXPECT_EQ(log.line(event),
            "12:04:31 client.fatal  error \"two words\\nfake\\u001b[2J\uFFFD\"  level error");
}

TEST(LogObserver, JsonHasTheFixedKeysInOrder) {
  Log log(json_log);
  Event event = event_of(EventName::record_outcome, 7);
  const std::vector<Field> fields = {{"offset", std::int64_t{5120}},
                                     {"outcome", std::string_view("done")},
                                     {"ratio", std::numeric_limits<double>::quiet_NaN()}};
  event.fields = fields;
  EXPECT_EQ(log.line(event),
            R"({"ts":"2026-12-01T12:04:31.007Z","level":"debug","event":"record.outcome",)"
            R"("seq":17,"group":"billing","member":"m-1","epoch":42,)"
            R"("topic":"orders","partition":5,"grant":7,)"
            R"("offset":5120,"outcome":"done","ratio":null})");
}

TEST(LogObserver, JsonSaysNullForWhatIsUnknown) {
  Log log(json_log);
  Event event;
  event.name = EventName::app_starting;
  event.level = Level::info;
  EXPECT_EQ(log.line(event),
            R"({"ts":"2026-12-01T12:04:31.007Z","level":"info","event":"app.starting",)"
            R"("seq":null,"group":null,"member":null,"epoch":null})");
}

TEST(LogObserver, EveryEventOfTheVocabularyIsValidJson) {
  Log log(json_log);
  for (std::size_t i = 0; i < event_names; ++i) {
    const Event event = event_of(static_cast<EventName>(i), 7);
    EXPECT_EQ(json::parse(log.line(event))["event"], traits(event.name).name);
  }
}

TEST(LogObserver, LinesAreBounded) {
  Log log(json_log);
  Event event = event_of(EventName::client_fatal);
  const std::string big(100000, '\x01');
  const std::vector<Field> fields(20, Field{"error", std::string_view(big)});
  event.fields = fields;
  const std::string line = log.line(event);
  EXPECT_LE(line.size(), 33000U);
  EXPECT_EQ(json::parse(line)["cut"], true);
  Log text(text_log);
  EXPECT_LE(text.line(event).size(), 70000U);
}

TEST(LogObserver, TheLevelFiltersAndMayChange) {
  Log log(text_log);
  EXPECT_FALSE(log.observer.wants_records());
  EXPECT_EQ(log.line(event_of(EventName::commit_accepted, 1)), "");
  log.observer.set_level(Level::debug);
  EXPECT_NE(log.line(event_of(EventName::commit_accepted, 1)), "");
  log.observer.set_level(Level::error);
  EXPECT_EQ(log.line(event_of(EventName::owner_lost, 1)), "");
  EXPECT_NE(log.line(event_of(EventName::client_fatal)), "");
  EXPECT_EQ(log.levels, (std::vector<Level>{Level::debug, Level::error}));
}

TEST(LogObserver, RepeatsComeEveryTenSecondsAndAreCounted) {
  Log log(text_log);
  Event event = event_of(EventName::record_late, 7);
  const auto at = [&](Duration when) {
    event.at = Instant(when);
    return log.line(event);
  };
  EXPECT_EQ(at(0s), "12:04:31 record.late  orders 5  epoch 42  level warn");
  EXPECT_EQ(at(1s), "");
  EXPECT_EQ(at(9999ms), "");
  EXPECT_EQ(at(10s), "12:04:31 record.late  orders 5  epoch 42  level warn  suppressed 2");
  EXPECT_EQ(at(15s), "");
  EXPECT_EQ(at(20s), "12:04:31 record.late  orders 5  epoch 42  level warn  suppressed 1");
  EXPECT_EQ(at(30s), "12:04:31 record.late  orders 5  epoch 42  level warn");
}

TEST(LogObserver, AnotherEventOrAnotherGrantIsNoRepeat) {
  Log log(text_log);
  EXPECT_NE(log.line(event_of(EventName::owner_granted, 7)), "");
  EXPECT_NE(log.line(event_of(EventName::owner_acquired, 7)), "");
  EXPECT_NE(log.line(event_of(EventName::owner_granted, 8)), "");
  EXPECT_EQ(log.line(event_of(EventName::owner_granted, 8)), "");
}

TEST(LogObserver, WhatWasNeverToldIsToldAtTheEnd) {
  Log log(json_log);
  for (int i = 0; i < 5; ++i) log.line(event_of(EventName::record_late, 7));
  for (int i = 0; i < 3; ++i) log.line(event_of(EventName::handler_exited));
  EXPECT_EQ(json::parse(log.line(event_of(EventName::app_stopped)))["suppressed"], 6);
}

TEST(LogObserver, OldPlacesAreForgottenNotTheirCounts) {
  Log log(json_log);
  for (std::uint64_t grant = 1; grant <= 10000; ++grant) {
    Event event = event_of(EventName::owner_lost, grant);
    event.at = Instant(Duration(10ms) * grant);
    log.line(event);
    EXPECT_EQ(log.line(event), "");
  }
  EXPECT_EQ(json::parse(log.line(event_of(EventName::app_stopped)))["suppressed"], 10000);
}

TEST(LineLogger, WritesLinesOfTheClientAndHandlers) {
  std::vector<std::string> lines;
  const auto sink = [&](Level, std::string_view line) { lines.emplace_back(line); };
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  LineLogger text(text_log, sink, [] { return noon; });
  text.write(Level::warn, "handler", "[7] it is \"bad\"\x1b\n");
  text.write(Level::debug, "handler", "hidden");
  EXPECT_FALSE(text.enabled(Level::debug));
  text.set_level(Level::debug);
  EXPECT_TRUE(text.enabled(Level::debug));
  LineLogger object(json_log, sink, [] { return noon; });
  object.write(Level::error, "FAIL", "broker \xFF gone");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "12:04:31 client.log  handler  [7] it is \\\"bad\\\"\\u001b\\n  level warn");
  EXPECT_EQ(lines[1],
            "{\"ts\":\"2026-12-01T12:04:31.007Z\",\"level\":\"error\",\"event\":\"client.log\","
            "\"facility\":\"FAIL\",\"text\":\"broker \uFFFD gone\"}");
}

}  // namespace
}  // namespace tenure::observe
