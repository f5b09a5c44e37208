// The window rule by rule: ordinary lives, one fact a test. Random lives are compared with a model
// in tests/property/window_property.cpp, all short ones in window_exhaustive_test.cpp.
#include "core/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace tenure::core {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using R = RecordResult;

/// A window whose messages are small numbers: message n + 1 belongs to offset n.
class Desk {
 public:
  explicit Desk(Order order, std::uint16_t lanes = 0, std::int64_t start = 0,
                std::vector<std::int64_t> stored = {}, Window::Options options = {}) {
    options.order = order;
    options.store_lanes = lanes;
    std::vector<LaneProgress> progress;
    for (std::uint16_t lane = 0; lane < lanes; ++lane) {
      progress.push_back({lane, {}, LeaderEpoch(0)});
      if (lane < stored.size()) progress.back().next_offset = Offset(stored[lane]);
    }
    window_ = std::make_unique<Window>(options, Offset(start), progress);
  }
  Window& operator*() { return *window_; }
  Window* operator->() { return window_.get(); }

  static MessageHandle message(std::int64_t offset) {
    return reinterpret_cast<MessageHandle>(static_cast<std::uintptr_t>(offset + 1));
  }
  static Delivered record(std::int64_t offset, std::uint64_t hash = 0, std::uint32_t bytes = 10,
                          std::int32_t epoch = 1) {
    return {message(offset), Offset(offset), hash, bytes, LeaderEpoch(epoch)};
  }
  static Delivered undecodable(std::int64_t offset) {
    return {nullptr, Offset(offset), 0, 0, LeaderEpoch(1)};
  }

  Window::Admitted admit(std::vector<Delivered> records) {
    return window_->admit(records, now, held, freed);
  }
  /// Offsets of the run now lent; empty when there was none.
  std::vector<std::int64_t> take(std::uint32_t most = 1024) {
    Run run;
    if (!window_->take(run, most, now)) return {};
    std::vector<std::int64_t> offsets;
    for (const RunRecord& one : run.records) offsets.push_back(one.offset.value());
    runs.push_back(std::move(run));
    return offsets;
  }
  /// Settles runs[index]; results in its order, the last one for all that are left.
  void settle(std::size_t index, std::vector<R> results) {
    Run run = std::move(runs[index]);
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(index));
    for (std::size_t n = 0; n < run.records.size(); ++n) {
      run.records[n].result = results[std::min(n, results.size() - 1)];
    }
    held.clear();
    window_->settle(run, now, held, freed);
  }
  std::int64_t frontier() { return window_->frontier().value(); }
  std::int64_t stand(std::uint16_t lane) { return window_->lane_stand(lane).value(); }

  Instant now{};
  std::vector<Window::Held> held;
  std::vector<MessageHandle> freed;
  std::vector<Run> runs;

 private:
  std::unique_ptr<Window> window_;
};

std::vector<Delivered> range(std::int64_t from, std::int64_t to, std::uint64_t keys = 1) {
  std::vector<Delivered> records;
  for (std::int64_t offset = from; offset < to; ++offset) {
    records.push_back(Desk::record(offset, static_cast<std::uint64_t>(offset) % keys));
  }
  return records;
}

// ---- frontier ----

TEST(Window, F1_AGapBetweenDeliveredOffsetsIsComplete) {
  Desk desk(Order::none);
  desk.admit({Desk::record(3), Desk::record(10), Desk::record(1'000'000'000'000)});
  EXPECT_EQ(desk.frontier(), 3);
  desk.take();
  desk.settle(0, {R::done, R::done, R::unstarted});
  EXPECT_EQ(desk.frontier(), 1'000'000'000'000);
  desk.take();
  desk.settle(0, {R::done});
  EXPECT_EQ(desk.frontier(), 1'000'000'000'001);
}

TEST(Window, F1_AnOffsetHandedOverTwiceIsDroppedFreedAndCounted) {
  Desk desk(Order::none);
  EXPECT_EQ(desk.admit({Desk::record(0), Desk::record(0), Desk::record(1)}).below_position, 1U);
  EXPECT_EQ(desk.admit({Desk::record(1), Desk::record(0), Desk::record(2)}).below_position, 2U);
  EXPECT_THAT(desk.freed, ElementsAre(Desk::message(0), Desk::message(1), Desk::message(0)));
  EXPECT_EQ(desk->records(), 3U);
  EXPECT_THAT(desk.take(), ElementsAre(0, 1, 2));
}

TEST(Window, O6_AnOffsetBelowTheStartIsDroppedFreedAndCounted) {
  Desk desk(Order::key, 0, 100);
  const Window::Admitted admitted =
      desk.admit({Desk::record(98), Desk::record(99), Desk::record(100)});
  EXPECT_EQ(admitted.below_position, 2U);
  EXPECT_EQ(admitted.records, 1U);
  EXPECT_EQ(desk.frontier(), 100);
  EXPECT_THAT(desk.freed, ElementsAre(Desk::message(98), Desk::message(99)));
}

TEST(Window, F1_AnUndecodableRecordIsIncompleteUpToTheNextDeliveredOffset) {
  Desk desk(Order::none);
  desk.admit({Desk::record(0), Desk::undecodable(1), Desk::record(50)});
  ASSERT_EQ(desk.held.size(), 1U);
  const Window::Held held = desk.held[0];
  EXPECT_EQ(held.offset, Offset(1));
  EXPECT_EQ(held.result, R::park);
  EXPECT_THAT(desk.take(), ElementsAre(0));
  EXPECT_THAT(desk.take(), ElementsAre(50)) << "order none goes on behind it";
  desk.settle(0, {R::done});
  desk.settle(0, {R::done});
  EXPECT_EQ(desk.frontier(), 1);
  desk->finish(held.ordinal, desk.freed);
  EXPECT_EQ(desk.frontier(), 51);
}

TEST(Window, F1_AnUndecodableRecordAtTheTailIsPassedToThePositionOnceFinished) {
  Desk desk(Order::none);
  desk.admit({Desk::undecodable(7)});
  desk->reach(Offset(20));
  EXPECT_EQ(desk.frontier(), 7);
  desk->finish(desk.held[0].ordinal, desk.freed);
  EXPECT_EQ(desk.frontier(), 20);
  EXPECT_THAT(desk.freed, IsEmpty());
}

// The client names a batch by its first offset, which is below the start of an owner that begins
// inside the batch: dropping the error as an old offset would lose the rest of the batch.
TEST(Window, F1_AnUndecodableBatchThatBeginsBelowThePositionHoldsThePosition) {
  Desk desk(Order::key, 0, 100);
  const Window::Admitted admitted = desk.admit({Desk::undecodable(90), Desk::record(110)});
  EXPECT_EQ(admitted.below_position, 0U);
  ASSERT_EQ(desk.held.size(), 1U);
  EXPECT_EQ(desk.held[0].offset, Offset(100));
  EXPECT_EQ(desk.frontier(), 100);
  desk->finish(desk.held[0].ordinal, desk.freed);
  EXPECT_EQ(desk.frontier(), 110);
}

TEST(Window, F1_AnUndecodableBatchThatIsReportedAgainIsDroppedAndCounted) {
  Desk desk(Order::none);
  EXPECT_EQ(desk.admit({Desk::undecodable(0)}).below_position, 0U);
  EXPECT_EQ(desk.admit({Desk::undecodable(0)}).below_position, 1U);
  desk->finish(desk.held[0].ordinal, desk.freed);
  EXPECT_EQ(desk.admit({Desk::undecodable(0)}).below_position, 1U);
  EXPECT_EQ(desk.admit({Desk::record(1)}).records, 1U) << "the batch may have held one record";
  EXPECT_EQ(desk.frontier(), 1);
  EXPECT_EQ(desk.admit({Desk::undecodable(1)}).records, 1U) << "another: record 1 could be decoded";
}

// What it holds is not known, so it may hold records of any key: none may overtake it, least of
// all a lane at the store, whose progress would say "done" of what is inside.
TEST(Window, F1_NothingBehindAnUndecodableRecordIsReadyWhereThereIsOrder) {
  for (const auto& [order, lanes] : std::vector<std::pair<Order, std::uint16_t>>{
           {Order::key, 0}, {Order::partition, 0}, {Order::key, 4}, {Order::none, 4}}) {
    Desk desk(order, lanes);
    desk.admit({Desk::record(0, 1), Desk::undecodable(1), Desk::record(5, 2), Desk::record(6, 3)});
    EXPECT_EQ(desk->ready(), 1U);
    EXPECT_THAT(desk.take(), ElementsAre(0));
    EXPECT_THAT(desk.take(), IsEmpty());
    if (lanes != 0) {
      for (const auto lane : std::initializer_list<std::uint16_t>{0, 2, 3})
        EXPECT_EQ(desk.stand(lane), 1);
    }
    desk->finish(desk.held[0].ordinal, desk.freed);
    desk.settle(0, {R::done});
    EXPECT_EQ(desk->ready(), 2U);
    if (lanes != 0) {
      EXPECT_EQ(desk.stand(0), 7);
      EXPECT_EQ(desk.stand(2), 5);
    }
    EXPECT_EQ(desk.take().size() + desk.take().size(), 2U);
  }
}

TEST(Window, F1_UndecodableRecordsMayBeFinishedInAnyOrder) {
  Desk desk(Order::key);
  desk.admit({Desk::undecodable(0), Desk::record(1, 1), Desk::undecodable(2), Desk::record(3, 1)});
  const std::vector<Window::Held> held = desk.held;
  ASSERT_EQ(held.size(), 2U);
  desk->finish(held[1].ordinal, desk.freed);
  EXPECT_EQ(desk->ready(), 0U);
  desk->finish(held[0].ordinal, desk.freed);
  EXPECT_THAT(desk.take(), ElementsAre(1, 3));
}

TEST(Window, F1_ASkipOfTheBrokerIsNotWaitedFor) {
  Desk desk(Order::none);
  desk.admit({Desk::record(0)});
  desk->skip_to(Offset(500));
  EXPECT_EQ(desk.frontier(), 0);
  EXPECT_EQ(desk->position(), Offset(500));
  desk.take();
  desk.settle(0, {R::done});
  EXPECT_EQ(desk.frontier(), 500);
  desk->skip_to(Offset(400));
  EXPECT_EQ(desk.frontier(), 500);
  EXPECT_EQ(desk.admit({Desk::record(499)}).below_position, 1U);
}

TEST(Window, F2_TheFrontierStandsAtTheFirstIncompleteRecordWhateverIsDoneBehindIt) {
  Desk desk(Order::none);
  desk.admit(range(0, 6));
  for (int n = 0; n < 6; ++n) desk.take(1);
  for (const std::size_t index : {5U, 3U, 1U}) desk.settle(index, {R::done});
  EXPECT_EQ(desk.frontier(), 0);
  EXPECT_EQ(desk->completed_above(), 3U);
  desk.settle(0, {R::done});  // record 0
  EXPECT_EQ(desk.frontier(), 2);
  EXPECT_EQ(desk->completed_above(), 2U);
  desk.settle(1, {R::done});  // record 4
  EXPECT_EQ(desk.frontier(), 2);
  desk.settle(0, {R::done});  // record 2
  EXPECT_EQ(desk.frontier(), 6);
  EXPECT_EQ(desk->completed_above(), 0U);
  EXPECT_EQ(desk->records(), 0U);
}

TEST(Window, F3_AtTheTailTheFrontierRisesToThePositionButNotPastWhatIsIncomplete) {
  Desk desk(Order::none);
  desk.admit({Desk::record(0)});
  desk->reach(Offset(9));
  EXPECT_EQ(desk.frontier(), 0) << "in the queue";
  desk.take();
  desk->reach(Offset(10));
  EXPECT_EQ(desk.frontier(), 0) << "in flight";
  desk.settle(0, {R::done});
  EXPECT_EQ(desk.frontier(), 10);
  desk->reach(Offset(4));
  EXPECT_EQ(desk.frontier(), 10);
  desk->reach(Offset(12));
  EXPECT_EQ(desk.frontier(), 12);
}

TEST(Window, C5_TheLeaderEpochOfTheFrontierIsThatOfTheRecordBelowIt) {
  Desk desk(Order::none);
  EXPECT_EQ(desk->frontier_leader_epoch(), no_leader_epoch);
  desk.admit({Desk::record(0, 0, 1, 4), Desk::record(1, 0, 1, 4), Desk::record(2, 0, 1, 6)});
  EXPECT_EQ(desk->frontier_leader_epoch(), no_leader_epoch);
  desk.take();
  EXPECT_EQ(desk.runs[0].records[1].leader_epoch, LeaderEpoch(4));
  EXPECT_EQ(desk.runs[0].records[2].leader_epoch, LeaderEpoch(6));
  desk.settle(0, {R::done, R::done, R::unstarted});
  EXPECT_EQ(desk->frontier_leader_epoch(), LeaderEpoch(4));
  desk.take();
  desk.settle(0, {R::done});
  EXPECT_EQ(desk->frontier_leader_epoch(), LeaderEpoch(6));
}

TEST(Window, TheOldestIncompleteRecordTellsWhenItWasAdmitted) {
  Desk desk(Order::none);
  EXPECT_EQ(desk->oldest_incomplete_since(), never);
  desk.now = Instant(milliseconds(5));
  desk.admit({Desk::record(0), Desk::record(1)});
  desk.now = Instant(milliseconds(9));
  desk.admit({Desk::record(2)});
  desk.take();
  EXPECT_EQ(desk->oldest_incomplete_since(), Instant(milliseconds(5)));
  desk.settle(0, {R::done, R::done, R::unstarted});
  EXPECT_EQ(desk->oldest_incomplete_since(), Instant(milliseconds(9)));
  desk.take();
  desk.settle(0, {R::done});
  EXPECT_EQ(desk->oldest_incomplete_since(), never);
}

// One record stuck, a hundred thousand admissions behind it: times are thinned, not lost.
TEST(Window, TimesOfAdmissionAreEarlyByTwoPerCentAtMostBehindAVeryOldRecord) {
  const int admissions = 100'000;
  Desk desk(Order::none);
  for (int n = 0; n < admissions; ++n) {
    desk.now = Instant(milliseconds(n));
    desk.admit({Desk::record(n)});
  }
  EXPECT_EQ(desk->oldest_incomplete_since(), Instant{});
  for (int stuck = 0; stuck < admissions; stuck += stuck < 99'000 ? 97 : 1) {
    while (desk.frontier() < stuck) {
      desk.take(static_cast<std::uint32_t>(stuck - desk.frontier()));
      desk.settle(0, {R::done});
    }
    const Duration since = desk->oldest_incomplete_since().time_since_epoch();
    const Duration age = desk.now.time_since_epoch() - milliseconds(stuck);
    ASSERT_LE(since, milliseconds(stuck));
    ASSERT_LE(milliseconds(stuck) - since, age / 50) << stuck;
  }
}

// ---- outcomes, holding ----

TEST(Window, O5_ARecordIsIncompleteFromAdmissionToItsTerminalOutcome) {
  Desk desk(Order::none);
  desk.admit({Desk::record(0)});
  EXPECT_EQ(desk->unfinished(), 1U);
  desk.take();
  EXPECT_EQ(desk->unfinished(), 1U);
  EXPECT_EQ(desk->lent(), 1U);
  for (const R result : {R::retry, R::again, R::park, R::reject, R::stop}) {
    desk.settle(0, {result});
    ASSERT_EQ(desk.held.size(), 1U);
    EXPECT_EQ(desk.held[0].result, result);
    EXPECT_EQ(desk->held(), 1U);
    EXPECT_EQ(desk->ready(), 0U);
    EXPECT_EQ(desk.frontier(), 0);
    EXPECT_EQ(desk->unfinished(), 1U);
    desk->release(desk.held[0].ordinal, false, desk.now);
    EXPECT_THAT(desk.take(), ElementsAre(0));
  }
  desk.settle(0, {R::replayed});
  EXPECT_EQ(desk->unfinished(), 0U);
  EXPECT_EQ(desk.frontier(), 1) << "a duplicate at the store is done (F6)";
  EXPECT_THAT(desk.freed, ElementsAre(Desk::message(0)));
}

TEST(WindowDeathTest, O5_ARunIsSettledOnce) {
  for (const Order order : {Order::none, Order::key}) {
    for (const R first : {R::done, R::unstarted, R::park}) {
      for (const R second : {R::done, R::retry}) {
        Desk desk(order);
        desk.admit(range(0, 3, 3));
        for (int n = 0; n < 3; ++n) desk.take(1);
        core::Run copy = desk.runs[1];  // above the frontier, and others are still out
        copy.records[0].result = second;
        desk.settle(1, {first});
        EXPECT_DEATH(desk->settle(copy, desk.now, desk.held, desk.freed),
                     "O5 a run is settled once");
      }
    }
  }
}

TEST(WindowDeathTest, O5_ARunIsNotSettledInPlaceOfTheNextOneOfItsKey) {
  for (const R second : {R::done, R::retry}) {
    Desk desk(Order::key);
    desk.admit({Desk::record(0, 1), Desk::record(1, 2), Desk::record(2, 2)});
    desk.take(1);
    desk.take(1);
    core::Run copy = desk.runs[1];
    copy.records[0].result = second;
    desk.settle(1, {R::done});
    ASSERT_THAT(desk.take(1), ElementsAre(2));
    EXPECT_DEATH(desk->settle(copy, desk.now, desk.held, desk.freed), "O5 a run is settled once");
  }
}

TEST(WindowDeathTest, O5_ARunOfOrderPartitionIsSettledOnce) {
  for (const R second : {R::done, R::unstarted}) {
    Desk desk(Order::partition);
    desk.admit(range(0, 3));
    desk.take(1);
    core::Run copy = desk.runs[0];
    copy.records[0].result = second;
    desk.settle(0, {R::unstarted});
    EXPECT_DEATH(desk->settle(copy, desk.now, desk.held, desk.freed), "O5 a run is settled once");
    desk.take(1);
    desk.settle(0, {R::done});
    desk.take(1);
    EXPECT_DEATH(desk->settle(copy, desk.now, desk.held, desk.freed),
                 "O5 a record that is terminal");
  }
}

TEST(WindowDeathTest, O7_OnlyAHeldRecordIsReleasedOrFinished) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0), Desk::undecodable(1)});
  EXPECT_DEATH(desk->release(0, true, desk.now), "O7 ");
  EXPECT_DEATH(desk->finish(0, desk.freed), "O7 ");
  EXPECT_DEATH(desk->finish(2, desk.freed), "O5 ");
  EXPECT_DEATH(desk->release(1, true, desk.now), "F1 ");
}

TEST(Window, O7_AttemptsAreCountedWhenAReleaseSaysSo) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0), Desk::record(1)});
  desk.take();
  desk.settle(0, {R::retry, R::unstarted});
  EXPECT_EQ(desk.held[0].attempt, 1);
  desk->release(desk.held[0].ordinal, true, desk.now);
  desk.take();
  EXPECT_EQ(desk.runs[0].records[0].attempt, 2);
  EXPECT_EQ(desk.runs[0].records[1].attempt, 1) << "it was not tried";
  desk.settle(0, {R::again, R::unstarted});
  EXPECT_EQ(desk.held[0].attempt, 2);
  desk->release(desk.held[0].ordinal, false, desk.now);
  desk.take();
  EXPECT_EQ(desk.runs[0].records[0].attempt, 2) << "contention is no attempt";
}

TEST(Window, O7_TheAttemptNumberStopsAtItsLargest) {
  Desk desk(Order::none);
  desk.admit({Desk::record(0)});
  for (int n = 0; n < 65'540; ++n) {
    desk.take();
    desk.settle(0, {R::retry});
    desk->release(desk.held[0].ordinal, true, desk.now);
  }
  desk.take();
  EXPECT_EQ(desk.runs[0].records[0].attempt, 65'535);
}

TEST(Window, O7_BytesAreThoseOfPayloadsStillHeld) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 1, 100), Desk::record(1, 2, 1'000'000), Desk::record(2, 3, 7)});
  EXPECT_EQ(desk->bytes(), 1'000'107U);
  desk.take();
  EXPECT_EQ(desk->bytes(), 1'000'107U) << "lent payloads are still here";
  desk.settle(0, {R::park});
  EXPECT_EQ(desk->bytes(), 1'000'107U) << "so are held ones";
  desk.take();
  desk.settle(0, {R::done});
  EXPECT_EQ(desk->bytes(), 107U) << "above the frontier, but freed";
  EXPECT_EQ(desk->records(), 3U);
  EXPECT_EQ(desk->unfinished(), 2U);
}

TEST(Window, O7_AHeldRecordIsFinishedByItsReport) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 1), Desk::record(1, 1)});
  desk.take();
  desk.settle(0, {R::reject, R::unstarted});
  desk->finish(desk.held[0].ordinal, desk.freed);
  EXPECT_EQ(desk.frontier(), 1);
  EXPECT_EQ(desk->held(), 0U);
  EXPECT_THAT(desk.freed, ElementsAre(Desk::message(0)));
  EXPECT_THAT(desk.take(), ElementsAre(1));
}

// ---- order ----

TEST(Window, OrderNoneLendsContiguousSpansToAnyNumberOfRuns) {
  Desk desk(Order::none);
  desk.admit(range(0, 10));
  EXPECT_THAT(desk.take(4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(desk.take(4), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(desk.take(4), ElementsAre(8, 9));
  EXPECT_THAT(desk.take(4), IsEmpty());
  EXPECT_EQ(desk->lent(), 10U);
}

TEST(Window, OrderNoneLendsWhatCameBackFirstOldestFirst) {
  Desk desk(Order::none);
  desk.admit(range(0, 9));
  desk.take(8);
  desk.settle(
      0, {R::done, R::unstarted, R::unstarted, R::done, R::retry, R::unstarted, R::retry, R::done});
  ASSERT_EQ(desk.held.size(), 2U) << "without queues nothing is behind another";
  EXPECT_EQ(desk->ready(), 4U);
  desk->release(desk.held[0].ordinal, true, desk.now);
  EXPECT_THAT(desk.take(), ElementsAre(1, 2));
  EXPECT_THAT(desk.take(), ElementsAre(4, 5));
  EXPECT_THAT(desk.take(), ElementsAre(8));
  EXPECT_THAT(desk.take(), IsEmpty());
}

TEST(Window, OrderNoneCrossesSegments) {
  Desk desk(Order::none);
  desk.admit(range(0, 1000));
  EXPECT_EQ(desk.take(300).size(), 300U);
  EXPECT_EQ(desk.take(700).size(), 700U);
  desk.settle(1, {R::done});
  EXPECT_EQ(desk.frontier(), 0);
  desk.settle(0, {R::done});
  EXPECT_EQ(desk.frontier(), 1000);
}

TEST(Window, OrderKeyNeverLendsTwoRecordsOfOneKeyAtOnce) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 7), Desk::record(1, 8), Desk::record(2, 7), Desk::record(3, 7)});
  EXPECT_THAT(desk.take(2), ElementsAre(0, 2));
  EXPECT_EQ(desk->ready(), 1U) << "record 3 is behind the run";
  EXPECT_THAT(desk.take(2), ElementsAre(1));
  EXPECT_THAT(desk.take(2), IsEmpty());
  desk.settle(0, {R::done});
  EXPECT_THAT(desk.take(2), ElementsAre(3));
}

TEST(Window, OrderKeyHoldsOneKeyAndLetsTheOthersGoOn) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 7), Desk::record(1, 8), Desk::record(2, 7), Desk::record(3, 8)});
  desk.take();
  desk.settle(0, {R::park, R::unstarted});
  EXPECT_THAT(desk.take(), ElementsAre(1, 3));
  desk.settle(0, {R::done});
  desk.admit({Desk::record(4, 7), Desk::record(5, 9)});
  EXPECT_THAT(desk.take(), ElementsAre(5));
  EXPECT_THAT(desk.take(), IsEmpty());
  EXPECT_EQ(desk.frontier(), 0);
}

TEST(Window, BehindTheFirstHeldRecordOfARunNothingIsHeldOfItsOwn) {
  for (const Order order : {Order::key, Order::partition}) {
    Desk desk(order);
    desk.admit(range(0, 5));
    desk.take();
    desk.settle(0, {R::done, R::retry, R::park, R::done, R::stop});
    ASSERT_EQ(desk.held.size(), 1U);
    EXPECT_EQ(desk.held[0].offset, Offset(1));
    EXPECT_EQ(desk.held[0].index, 1U);
    EXPECT_EQ(desk.frontier(), 1);
    EXPECT_THAT(desk.take(), IsEmpty());
    desk->release(desk.held[0].ordinal, true, desk.now);
    EXPECT_THAT(desk.take(), ElementsAre(1, 2, 4)) << "record 3 is terminal and stays so";
    desk.settle(0, {R::done});
    EXPECT_EQ(desk.frontier(), 5);
  }
}

TEST(Window, AnUnstartedRecordBeforeAHeldOneIsLentAloneUntilTheRelease) {
  for (const Order order : {Order::key, Order::partition}) {
    Desk desk(order);
    desk.admit(range(0, 3));
    desk.take();
    desk.settle(0, {R::unstarted, R::retry, R::unstarted});
    EXPECT_EQ(desk->ready(), 1U);
    EXPECT_THAT(desk.take(), ElementsAre(0));
    desk->release(desk.held[0].ordinal, true, desk.now);
    desk.settle(0, {R::unstarted});
    EXPECT_THAT(desk.take(), ElementsAre(0, 1, 2));
  }
}

TEST(Window, ARecordFinishedBehindAnUnstartedOneLeavesItsQueueWhole) {
  for (const Order order : {Order::key, Order::partition}) {
    for (const bool last : {false, true}) {
      Desk desk(order);
      desk.admit(range(0, last ? 2 : 3));
      desk.take();
      desk.settle(0, {R::unstarted, R::park, R::unstarted});
      desk->finish(desk.held[0].ordinal, desk.freed);
      desk.admit({Desk::record(5)});
      const auto left = last ? std::vector<std::int64_t>{0, 5} : std::vector<std::int64_t>{0, 2, 5};
      EXPECT_EQ(desk.take(), left);
      desk.settle(0, {R::done});
      EXPECT_EQ(desk.frontier(), 6);
    }
  }
}

TEST(Window, AKeyThatIsHeldOrLentIsNotForgottenForAnyNumberOfOtherKeys) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 1), Desk::record(1, 2)});
  desk.take(1);
  desk.take(1);
  desk.settle(0, {R::park});
  const Ordinal held = desk.held[0].ordinal;
  for (std::int64_t offset = 2; offset < 2000; ++offset) {
    desk.admit({Desk::record(offset, static_cast<std::uint64_t>(offset) + 10)});
    ASSERT_THAT(desk.take(), ElementsAre(offset));
    desk.settle(1, {R::done});
  }
  desk.admit({Desk::record(2000, 1), Desk::record(2001, 2)});
  EXPECT_THAT(desk.take(), IsEmpty());
  desk.settle(0, {R::done});
  EXPECT_THAT(desk.take(), ElementsAre(2001));
  desk->release(held, false, desk.now);
  EXPECT_THAT(desk.take(), ElementsAre(0, 2000));
}

TEST(Window, OrderPartitionIsOneQueue) {
  Desk desk(Order::partition);
  desk.admit(range(0, 6, 3));
  EXPECT_THAT(desk.take(4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(desk.take(4), IsEmpty());
  EXPECT_EQ(desk->ready(), 0U);
  desk.settle(0, {R::done, R::done, R::unstarted});
  EXPECT_EQ(desk->ready(), 4U);
  EXPECT_THAT(desk.take(4), ElementsAre(2, 3, 4, 5));
}

TEST(Window, QueuesAreLentInTheOrderInWhichTheyBecameReady) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 1), Desk::record(1, 2), Desk::record(2, 3), Desk::record(3, 1)});
  EXPECT_THAT(desk.take(1), ElementsAre(0));
  EXPECT_THAT(desk.take(1), ElementsAre(1));
  desk.settle(0, {R::done});  // key 1 is ready again, behind key 3
  EXPECT_THAT(desk.take(1), ElementsAre(2));
  EXPECT_THAT(desk.take(1), ElementsAre(3));
}

TEST(Window, ARunIsNoLongerThanTheOptionSays) {
  Window::Options options;
  options.run_records_max = 3;
  for (const Order order : {Order::none, Order::key, Order::partition}) {
    Desk desk(order, 0, 0, {}, options);
    desk.admit(range(0, 10));
    EXPECT_THAT(desk.take(1000), ElementsAre(0, 1, 2));
    EXPECT_THAT(desk.take(0), IsEmpty());
  }
}

TEST(Window, ARunWaitsForMoreRecordsUntilItIsFullOrItsTimeIsUp) {
  Window::Options options;
  options.run_records_max = 3;
  options.run_wait = milliseconds(10);
  for (const auto& [order, lanes] : std::vector<std::pair<Order, std::uint16_t>>{
           {Order::none, 0}, {Order::key, 0}, {Order::partition, 0}, {Order::key, 2}}) {
    Desk desk(order, lanes, 0, {}, options);
    EXPECT_EQ(desk->ready_at(), never);
    desk.admit({Desk::record(0)});
    EXPECT_EQ(desk->ready(), 1U);
    EXPECT_EQ(desk->ready_at(), Instant(milliseconds(10)));
    desk.now = Instant(milliseconds(9));
    EXPECT_THAT(desk.take(), IsEmpty());
    desk.admit({Desk::record(1)});
    EXPECT_EQ(desk->ready_at(), Instant(milliseconds(10))) << "counted from the first";
    desk.now = Instant(milliseconds(10));
    EXPECT_THAT(desk.take(), ElementsAre(0, 1));
    desk.settle(0, {R::done});
    desk.admit({Desk::record(2), Desk::record(3), Desk::record(4)});
    EXPECT_LE(desk->ready_at(), desk.now) << "full";
    EXPECT_THAT(desk.take(), ElementsAre(2, 3, 4));
  }
}

TEST(Window, WhatWaitedBehindARunIsNotMadeToWaitAgain) {
  Window::Options options;
  options.run_records_max = 3;
  options.run_wait = milliseconds(10);
  Desk desk(Order::key, 0, 0, {}, options);
  desk.admit(range(0, 3));
  desk.take();
  desk.admit({Desk::record(3)});
  desk.now = Instant(milliseconds(7));
  desk.settle(0, {R::done});
  EXPECT_EQ(desk->ready_at(), Instant(milliseconds(10)));
  desk.now = Instant(milliseconds(10));
  EXPECT_THAT(desk.take(), ElementsAre(3));
}

TEST(Window, WhatIsDueWhenItsRunComesBackIsReadyAtOnce) {
  Window::Options options;
  options.run_records_max = 3;
  options.run_wait = milliseconds(10);
  for (const Order order : {Order::key, Order::partition}) {
    Desk desk(order, 0, 0, {}, options);
    desk.admit(range(0, 3));
    desk.take();
    desk.admit({Desk::record(3)});
    desk.now = Instant(milliseconds(11));
    desk.settle(0, {R::done});
    EXPECT_LE(desk->ready_at(), desk.now);
    EXPECT_THAT(desk.take(), ElementsAre(3));
  }
}

TEST(Window, AWaitThatEndedEarlyIsNotTakenForALaterOne) {
  Window::Options options;
  options.run_records_max = 2;
  options.run_wait = milliseconds(10);
  for (const Order order : {Order::key, Order::partition}) {
    Desk desk(order, 0, 0, {}, options);
    desk.admit({Desk::record(0)});
    desk.admit({Desk::record(1)});
    EXPECT_THAT(desk.take(), ElementsAre(0, 1)) << "full before its time";
    desk.now = Instant(milliseconds(5));
    desk.admit({Desk::record(2)});
    EXPECT_EQ(desk->ready_at(), never) << "behind the run";
    desk.settle(0, {R::done});
    EXPECT_EQ(desk->ready_at(), Instant(milliseconds(15)));
    desk.now = Instant(milliseconds(14));
    EXPECT_THAT(desk.take(), IsEmpty());
    desk.now = Instant(milliseconds(15));
    EXPECT_THAT(desk.take(), ElementsAre(2));
  }
}

TEST(Window, EveryQueueWaitsForItself) {
  Window::Options options;
  options.run_records_max = 2;
  options.run_wait = milliseconds(10);
  Desk desk(Order::key, 0, 0, {}, options);
  desk.admit({Desk::record(0, 1)});
  desk.now = Instant(milliseconds(2));
  desk.admit({Desk::record(1, 2)});  // until 12
  desk.now = Instant(milliseconds(4));
  desk.admit({Desk::record(2, 2)});  // full
  EXPECT_THAT(desk.take(), ElementsAre(1, 2));
  desk.admit({Desk::record(3, 2)});  // until 14, once the run is back
  EXPECT_EQ(desk->ready_at(), Instant(milliseconds(10)));
  desk.now = Instant(milliseconds(10));
  EXPECT_THAT(desk.take(), ElementsAre(0));
  EXPECT_EQ(desk->ready_at(), never);
  desk.settle(0, {R::done});
  EXPECT_EQ(desk->ready_at(), Instant(milliseconds(14)));
  desk.now = Instant(milliseconds(13));
  EXPECT_THAT(desk.take(), IsEmpty());
  desk.now = Instant(milliseconds(14));
  EXPECT_THAT(desk.take(), ElementsAre(3));
}

TEST(Window, AWaitIsNotForgottenBehindOneThatEndedEarly) {
  Window::Options options;
  options.run_records_max = 2;
  options.run_wait = milliseconds(10);
  Desk desk(Order::key, 0, 0, {}, options);
  desk.admit({Desk::record(0, 1)});  // until 10
  desk.now = Instant(milliseconds(2));
  desk.admit({Desk::record(1, 2)});  // until 12
  desk.admit({Desk::record(2, 2)});  // full
  EXPECT_THAT(desk.take(), ElementsAre(1, 2));
  desk.settle(0, {R::done});
  desk.now = Instant(milliseconds(6));
  desk.admit({Desk::record(3, 2)});  // until 16
  desk.now = Instant(milliseconds(10));
  EXPECT_THAT(desk.take(), ElementsAre(0));
  EXPECT_EQ(desk->ready_at(), Instant(milliseconds(16)));
  desk.now = Instant(milliseconds(12));
  EXPECT_THAT(desk.take(), IsEmpty());
  desk.now = Instant(milliseconds(16));
  EXPECT_THAT(desk.take(), ElementsAre(3));
}

// ---- revocation ----

TEST(Window, R1_DroppingFreesWhatIsNotLentAndCompletesNothing) {
  for (const Order order : {Order::none, Order::key, Order::partition}) {
    Desk desk(order);
    desk.admit(range(0, 6, 3));
    desk.take(1);
    desk.settle(0, {R::park});
    desk.take(1);  // order partition: nothing
    const std::uint64_t lent = desk->lent();
    desk->drop_unstarted(desk.freed);
    EXPECT_EQ(desk.freed.size(), 6U - lent);
    EXPECT_EQ(desk->bytes(), 10U * lent);
    EXPECT_EQ(desk->unfinished(), 6U);
    EXPECT_EQ(desk->held(), 0U);
    EXPECT_EQ(desk->ready(), 0U);
    EXPECT_EQ(desk->ready_at(), never);
    EXPECT_THAT(desk.take(), IsEmpty());
    if (lent != 0) desk.settle(0, {R::done});
    EXPECT_EQ(desk.frontier(), 0) << "O5";
    EXPECT_THAT(desk.take(), IsEmpty());
    desk->drop_unstarted(desk.freed);
    EXPECT_EQ(desk.freed.size(), 6U);
    EXPECT_EQ(desk->bytes(), 0U);
  }
}

TEST(Window, R1_WhatIsLentMayStillRaiseTheFrontierAndWhatComesBackIsDropped) {
  for (const Order order : {Order::none, Order::key, Order::partition}) {
    Desk desk(order);
    desk.admit(range(0, 5));
    desk.take(4);
    desk->drop_unstarted(desk.freed);
    desk.settle(0, {R::done, R::done, R::retry, R::unstarted});
    EXPECT_EQ(desk.frontier(), 2);
    EXPECT_THAT(desk.held, IsEmpty());
    EXPECT_EQ(desk->held(), 0U);
    EXPECT_EQ(desk->lent(), 0U);
    EXPECT_EQ(desk->bytes(), 0U);
    EXPECT_EQ(desk.freed.size(), 5U);
    EXPECT_FALSE(desk->can_still_advance());
  }
}

TEST(Window, R1_ARetryThatIsDueAfterTheDropChangesNothing) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0)});
  desk.take();
  desk.settle(0, {R::retry});
  desk->drop_unstarted(desk.freed);
  desk->release(desk.held[0].ordinal, true, desk.now);
  EXPECT_THAT(desk.take(), IsEmpty());
  EXPECT_EQ(desk.frontier(), 0);
}

TEST(Window, R2_ADeadLettersReportAfterTheDropStillCounts) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0), Desk::record(1)});
  desk.take(1);
  desk.settle(0, {R::reject});
  desk->drop_unstarted(desk.freed);
  EXPECT_EQ(desk.freed.size(), 2U);
  desk->finish(desk.held[0].ordinal, desk.freed);
  EXPECT_EQ(desk.freed.size(), 2U);
  EXPECT_EQ(desk.frontier(), 1);
}

TEST(Window, R1_WhatIsDeliveredAfterTheDropIsIncompleteWhateverIsReached) {
  for (const auto lanes : std::initializer_list<std::uint16_t>{0, 2}) {
    Desk desk(Order::key, lanes);
    desk.admit({Desk::record(0)});
    desk.take();
    desk->drop_unstarted(desk.freed);
    EXPECT_EQ(desk.admit({Desk::record(1), Desk::undecodable(2)}).records, 2U);
    EXPECT_THAT(desk.freed, ElementsAre(Desk::message(1)));
    EXPECT_THAT(desk.held, IsEmpty());
    desk->reach(Offset(10));
    desk.settle(0, {R::done});
    EXPECT_EQ(desk.frontier(), 1);
    EXPECT_THAT(desk.take(), IsEmpty());
    if (lanes != 0) {
      EXPECT_EQ(desk.stand(0), 1);
      EXPECT_EQ(desk.stand(1), 2) << "the undecodable one may hold its records";
    }
  }
}

TEST(Window, R2_WithoutProgressOnlyTheRecordAtTheFrontierIsWorthWaitingFor) {
  Desk desk(Order::key);
  desk.admit({Desk::record(0, 1), Desk::record(1, 2)});
  EXPECT_FALSE(desk->can_still_advance()) << "nothing is lent";
  desk.take(1);
  desk.take(1);
  EXPECT_TRUE(desk->can_still_advance());
  desk.settle(0, {R::retry});
  EXPECT_FALSE(desk->can_still_advance()) << "record 0 is held, record 1 is behind it";
  desk->release(0, true, desk.now);
  EXPECT_FALSE(desk->can_still_advance()) << "nothing else will be dispatched";
  desk.take();
  EXPECT_TRUE(desk->can_still_advance());
  desk.settle(1, {R::done});
  desk.settle(0, {R::done});
  EXPECT_FALSE(desk->can_still_advance());
}

TEST(Window, R2_WithProgressAtTheStoreEveryLentLaneIsWorthWaitingFor) {
  Desk desk(Order::key, 4);
  desk.admit({Desk::record(0, 1), Desk::record(1, 2), Desk::record(2, 2)});
  desk.take(1);
  desk.take(1);
  desk.settle(0, {R::park});
  EXPECT_TRUE(desk->can_still_advance()) << "record 1 is kept by its lane";
  desk.settle(0, {R::retry});
  EXPECT_FALSE(desk->can_still_advance());
}

// ---- store lanes ----

TEST(Window, RecordsBelowTheStoredProgressOfTheirLaneAreTerminalAtOnce) {
  for (const Order order : {Order::key, Order::none}) {
    Desk desk(order, 2, 10, {14, 10});
    const Window::Admitted admitted = desk.admit(range(10, 16, 2));
    EXPECT_EQ(admitted.records, 6U);
    EXPECT_EQ(admitted.already_stored, 2U);
    EXPECT_EQ(admitted.stored_first, Offset(10));
    EXPECT_EQ(admitted.stored_last, Offset(12));
    EXPECT_THAT(desk.freed, ElementsAre(Desk::message(10), Desk::message(12)));
    EXPECT_EQ(desk.frontier(), 11);
    EXPECT_EQ(desk->completed_above(), 1U);
    EXPECT_THAT(desk.take(), ElementsAre(11, 13, 15));
    EXPECT_EQ(desk.runs[0].lane, 1);
    EXPECT_EQ(desk.runs[0].lane_from, Offset(10));
    EXPECT_THAT(desk.take(), ElementsAre(14));
    EXPECT_EQ(desk.runs[1].lane_from, Offset(14));
  }
}

TEST(Window, AWholeSegmentThatTheStoreHasIsPassedAtOnce) {
  for (const auto lanes : std::initializer_list<std::uint16_t>{1, 2}) {
    Desk desk(Order::key, lanes, 0, {2000, 2000});
    EXPECT_EQ(desk.admit(range(0, 1500, 2)).already_stored, 1500U);
    EXPECT_EQ(desk.frontier(), 1500);
    EXPECT_LE(desk->segments_in_use(), 1U);
    EXPECT_EQ(desk->ready(), 0U);
    desk.admit(range(1500, 2002, 2));
    EXPECT_EQ(desk.frontier(), 2000);
    EXPECT_EQ(desk->ready(), 2U);
  }
}

TEST(Window, ALaneStandsAtItsFirstIncompleteRecordOrElseAtThePosition) {
  Desk desk(Order::key, 3);
  for (const auto lane : std::initializer_list<std::uint16_t>{0, 1, 2})
    EXPECT_EQ(desk.stand(lane), 0);
  desk.admit({Desk::record(0, 0), Desk::record(1, 1), Desk::record(4, 0)});
  EXPECT_EQ(desk.stand(0), 0);
  EXPECT_EQ(desk.stand(1), 1);
  EXPECT_EQ(desk.stand(2), 5);
  desk.take(1);
  EXPECT_EQ(desk.stand(0), 0) << "lent";
  EXPECT_TRUE(desk->lane_lent(0));
  EXPECT_FALSE(desk->lane_lent(1));
  desk.settle(0, {R::done});
  EXPECT_EQ(desk.stand(0), 4);
  desk.take();
  desk.settle(0, {R::park});
  EXPECT_EQ(desk.stand(1), 1) << "held";
  desk->reach(Offset(9));
  EXPECT_EQ(desk.stand(2), 9);
  desk->drop_unstarted(desk.freed);
  EXPECT_EQ(desk.stand(0), 4) << "dropped is not done";
  EXPECT_EQ(desk.stand(1), 1);
}

TEST(Window, TheStoredProgressOfALaneIsWhatItsLastUnitReached) {
  for (const auto lanes : std::initializer_list<std::uint16_t>{1, 2}) {
    Desk desk(Order::key, lanes);
    desk.admit(range(0, 4, lanes));
    EXPECT_EQ(desk->stored_minimum(), Offset(0));
    desk.take();
    desk.runs[0].lane_reached = Offset(3);
    desk.settle(0, {R::done});
    EXPECT_EQ(desk->lane_stored(0), Offset(3));
    EXPECT_EQ(desk->stored_minimum(), lanes == 1 ? Offset(3) : Offset(0));
    desk.admit(range(4, 8, lanes));
    desk.take();
    desk.runs[0].lane_reached = Offset(2);
    desk.settle(0, {R::done});
    EXPECT_EQ(desk->lane_stored(0), Offset(3)) << "never back";
  }
}

TEST(Window, T4_AReservedLaneIsNotLentUntilItsAdvanceIsOver) {
  for (const auto lanes : std::initializer_list<std::uint16_t>{1, 2}) {
    Desk desk(Order::key, lanes);
    EXPECT_TRUE(desk->lane_idle(0));
    desk->reach(Offset(5));
    desk->reserve_lane(0);
    EXPECT_FALSE(desk->lane_idle(0));
    desk.admit({Desk::record(5, 0), Desk::record(6, 0)});
    EXPECT_EQ(desk->ready(), 0U);
    EXPECT_EQ(desk->ready_at(), never);
    EXPECT_THAT(desk.take(), IsEmpty());
    desk->lane_advanced(0, Offset(5), desk.now);
    EXPECT_EQ(desk->lane_stored(0), Offset(5));
    EXPECT_EQ(desk->ready(), 2U);
    EXPECT_THAT(desk.take(), ElementsAre(5, 6));
    EXPECT_EQ(desk.runs[0].lane_from, Offset(5));
    EXPECT_FALSE(desk->lane_idle(0));
  }
}

TEST(WindowDeathTest, T4_ALaneWithWorkIsNotReserved) {
  for (const auto lanes : std::initializer_list<std::uint16_t>{1, 2}) {
    Desk desk(Order::key, lanes);
    desk.admit({Desk::record(0, 0)});
    EXPECT_DEATH(desk->reserve_lane(0), "T4 ");
    desk.take();
    EXPECT_DEATH(desk->reserve_lane(0), "T4 ");
    desk.settle(0, {R::park});
    EXPECT_TRUE(desk->lane_idle(0)) << "held: its row may be moved up to the record";
    EXPECT_EQ(desk.stand(0), 0);
  }
}

TEST(WindowDeathTest, T3_EveryLaneIsActivated) {
  const std::vector<LaneProgress> one{{0, Offset(0), LeaderEpoch(1)}};
  Window::Options options;
  options.store_lanes = 2;
  EXPECT_DEATH(Window(options, Offset(0), one), "T3 ");
}

// ---- memory ----

TEST(Window, Q11_AMillionDoneRecordsBehindAStuckOneNeedAFewSegments) {
  for (const auto& [order, lanes] : std::vector<std::pair<Order, std::uint16_t>>{
           {Order::none, 0}, {Order::key, 0}, {Order::key, 8}}) {
    Desk desk(order, lanes);
    desk.admit({Desk::record(0, 0)});
    desk.take(1);
    const core::Run stuck = std::move(desk.runs[0]);
    desk.runs.clear();
    std::size_t segments = 0;
    std::int64_t offset = 1;
    while (offset < 1'000'000) {
      std::vector<Delivered> records;
      for (int n = 0; n < 500; ++n, offset += 3) {
        records.push_back(Desk::record(offset, 1 + static_cast<std::uint64_t>(offset) % 7));
      }
      desk.admit(records);
      while (!desk.take().empty()) {
      }
      while (!desk.runs.empty()) desk.settle(0, {R::done});
      desk.freed.clear();
      segments = std::max(segments, desk->segments_in_use());
    }
    EXPECT_EQ(desk.frontier(), 0);
    EXPECT_GT(desk->completed_above(), 333'000U);
    EXPECT_LE(segments, 4U);
    desk.runs.push_back(stuck);
    desk.settle(0, {R::done});
    EXPECT_EQ(desk.frontier(), desk->position().value());
    EXPECT_LE(desk->segments_in_use(), 1U);
  }
}

TEST(Window, AMillionDifferentKeysDoNotStay) {
  Desk desk(Order::key);
  std::int64_t offset = 0;
  while (offset < 1'000'000) {
    std::vector<Delivered> records;
    for (int n = 0; n < 100; ++n, ++offset) {
      records.push_back(Desk::record(offset, static_cast<std::uint64_t>(offset)));
    }
    desk.admit(records);
    while (!desk.take().empty()) desk.settle(0, {R::done});
    desk.freed.clear();
  }
  EXPECT_LE(desk->queue_slots(), 800U) << "eight times as many as were ever live";
}

TEST(Window, AnOwnerWithoutRecordsHasNoSegment) {
  Desk desk(Order::key);
  EXPECT_EQ(desk->segments_in_use(), 0U);
  desk->reach(Offset(100));
  desk.admit({Desk::record(5)});
  EXPECT_EQ(desk->segments_in_use(), 0U) << "it was below the position";
}

}  // namespace
}  // namespace tenure::core
