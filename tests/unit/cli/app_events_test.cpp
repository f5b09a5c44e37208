#include "app/app_events.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tenure::app {
namespace {

class Notes final : public Observer {
 public:
  void on_event(const Event& event) override {
    EXPECT_FALSE(std::exchange(inside_, true)) << "two calls at once";
    seqs.push_back(event.seq);
    groups.emplace_back(event.group);
    members.emplace_back(event.member);
    levels.push_back(event.level);
    inside_ = false;
  }
  [[nodiscard]] bool wants_records() const override { return wants; }

  bool wants = false;
  std::vector<std::uint64_t> seqs;
  std::vector<std::string> groups;
  std::vector<std::string> members;
  std::vector<Level> levels;

 private:
  bool inside_ = false;
};

Event loop_event() {
  Event event{};
  event.name = EventName::owner_granted;
  event.level = Level::info;
  event.seq = 7;
  event.group = "g";
  event.member = "m";
  event.epoch = Epoch(3);
  return event;
}

TEST(EventStream, NumbersEventsOfTheLoopAndOfTheProgramInOneSequence) {
  EventStream stream;
  const auto notes = std::make_shared<Notes>();
  stream.add(notes);
  stream.group("g");
  stream.say(EventName::app_starting, {});
  stream.on_event(loop_event());
  stream.say(EventName::handler_started, {{"pid", std::int64_t{1}}});
  EXPECT_EQ(notes->seqs, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(notes->groups, (std::vector<std::string>{"g", "g", "g"}));
  EXPECT_EQ(notes->members, (std::vector<std::string>{"", "m", "m"})) << "as last heard of";
}

TEST(EventStream, AnEventHasItsOwnLevelUnlessItIsGivenOne) {
  EventStream stream;
  const auto notes = std::make_shared<Notes>();
  stream.add(notes);
  stream.say(EventName::config_rejected, {});
  stream.say(EventName::health_changed, {}, Level::info);
  EXPECT_EQ(notes->levels, (std::vector<Level>{Level::error, Level::info}));
}

TEST(EventStream, WantsRecordsWhenOneObserverDoes) {
  EventStream stream;
  EXPECT_FALSE(stream.wants_records());
  const auto notes = std::make_shared<Notes>();
  notes->wants = true;
  stream.add(std::make_shared<Notes>());
  stream.add(notes);
  EXPECT_TRUE(stream.wants_records());
}

TEST(EventStream, CallsAnObserverOnceAtATimeFromManyThreads) {
  EventStream stream;
  const auto notes = std::make_shared<Notes>();
  stream.add(notes);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 500; ++j) {
        if (j % 2 == 0) {
          stream.say(EventName::handler_exited, {});
        } else {
          stream.on_event(loop_event());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(notes->seqs.size(), 2000U);
  for (std::size_t i = 0; i < notes->seqs.size(); ++i) EXPECT_EQ(notes->seqs[i], i + 1);
}

}  // namespace
}  // namespace tenure::app
