// Records between delivery and outcome: O5-O7, F1-F3, F7, F8, retries, parking, bounds.
#include <gtest/gtest.h>

#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

TEST(EngineRecords, O3_ARetiredOwnerChangesNothingAndCounts) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  rig.revoke({0}, true);
  const auto freed = rig.freed.size();
  rig.deliver(owner, 1, 4);
  EXPECT_EQ(rig.freed.size(), freed + 3);
  rig.step(Reached{owner, Offset(99)});
  rig.step(RecordError{owner, BrokerError::offset_out_of_range, Offset(1), ""});
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_GE(rig.engine().totals().retired_calls, 1u);
}

TEST(EngineRecords, O6_ADeliveredOffsetBelowTheExpectedOneIsDroppedAndCounted) {
  Rig rig;
  rig.log(0).committed = Offset(10);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 7, 12);
  EXPECT_EQ(rig.engine().totals().dropped, 3u);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(12));
}

TEST(EngineRecords, F1_AnOffsetHandedOverTwiceIsDroppedAndCounted) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.deliver(owner, 4, 8);
  EXPECT_EQ(rig.engine().totals().dropped, 1u);
  rig.finish_all();
  EXPECT_EQ(rig.engine().totals().handled, 8u);
}

TEST(EngineRecords, F1_AnUndecodableRecordIsParkedAndHoldsTheFrontier) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, {{rig.message(), Offset(0), 0, 1, no_leader_epoch},
                      {nullptr, Offset(1), 0, 0, no_leader_epoch},
                      {rig.message(), Offset(4), 0, 1, no_leader_epoch}});
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(1));
  EXPECT_EQ(Rig::text(*rig.last(EventName::record_parked), "reason"), "undecodable");
}

TEST(EngineRecords, O7_ARecordLargerThanTheWindowGoesThroughAlone) {
  EngineOptions options = Rig::defaults();
  options.window_bytes = 65536;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, {{rig.message(), Offset(0), 0, 1u << 20, no_leader_epoch},
                      {rig.message(), Offset(1), 1, 100, no_leader_epoch},
                      {rig.message(), Offset(2), 2, 100, no_leader_epoch}});
  ASSERT_EQ(rig.out.size(), 1u);
  EXPECT_EQ(rig.out[0]->records.size(), 1u) << "alone";
  EXPECT_FALSE(rig.flow[owner.grant]) << "this partition stands still";
  rig.give_back(rig.out[0], RecordResult::done);
  EXPECT_FALSE(rig.out.empty());
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(3));
  EXPECT_TRUE(rig.flow[owner.grant]);
}

TEST(EngineRecords, O7_AFullWindowStopsThisPartitionAlone) {
  EngineOptions options = Rig::defaults();
  options.window_records = 10;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 15);
  EXPECT_FALSE(rig.flow[owners[0].grant]);
  EXPECT_EQ(rig.flow.count(owners[1].grant), 0u) << "still open from its start";
  rig.deliver(owners[1], 0, 3);
  EXPECT_NE(rig.run_with(2), nullptr);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owners[0]).frontier, Offset(15)) << "nothing was lost";
  EXPECT_TRUE(rig.flow[owners[0].grant]);
}

TEST(EngineRecords, O7_HundredPartitionsWithOneParkedRecordEachGoOn) {
  EngineOptions options = Rig::defaults();
  options.order = Order::key;
  options.window_records = 50;
  options.window_records_total = 400;
  Rig rig(options);
  std::vector<int> partitions;
  for (int i = 0; i < 100; ++i) partitions.push_back(i);
  const auto owners = rig.assign(partitions);
  for (const OwnerRef owner : owners) {
    rig.deliver(owner, 0, 1);
    rig.finish_all(RecordResult::park);
  }
  for (const OwnerRef owner : owners) {
    rig.deliver(owner, 1, 30, 100, 29);
    rig.finish_all();
    EXPECT_EQ(rig.shown(owner).completed_above, 28u + (29 % 29 == 0 ? 0u : 0u));
    EXPECT_EQ(rig.shown(owner).cause, "parked");
  }
}

TEST(EngineRecords, O7_AParkedRecordWithAFullWindowStopsItsPartitionAloneVisibly) {
  EngineOptions options = Rig::defaults();
  options.window_records = 10;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 1);
  rig.finish_all(RecordResult::park);
  rig.deliver(owners[0], 1, 20);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owners[0]).window_records, 20u);
  EXPECT_EQ(rig.shown(owners[0]).cause, "blocked");
  EXPECT_EQ(rig.count(EventName::owner_blocked), 1u);
  rig.deliver(owners[1], 0, 5);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owners[1]).frontier, Offset(5));
}

TEST(EngineRecords, TheReadyBacklogIsBoundedApartFromTheWindow) {
  EngineOptions options = Rig::defaults();
  options.window_records = 100000;
  options.order = Order::partition;
  options.ready_max = 100;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  EXPECT_EQ(rig.engine().room(), 100u);
  rig.deliver(owners[0], 0, 1);
  rig.start_all();
  rig.deliver(owners[0], 1, 5000);
  EXPECT_EQ(rig.engine().room(), 100u) << "records behind a busy queue are not ready";
  rig.give_back(rig.out.at(0), RecordResult::retry);
  EXPECT_EQ(rig.engine().room(), 100u) << "nor behind a held one";
}

TEST(EngineRecords, RetriesAreBoundedWithBackoffAndCountedPerGrant) {
  EngineOptions options = Rig::defaults();
  options.attempts = 3;
  options.jitter = 0;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.give_back(rig.out.at(0), RecordResult::retry);
  EXPECT_TRUE(rig.out.empty());
  rig.advance(milliseconds(190));
  EXPECT_TRUE(rig.out.empty());
  rig.advance(milliseconds(20));
  ASSERT_EQ(rig.out.size(), 1u);
  EXPECT_EQ(rig.out[0]->records[0].attempt, 2);
  rig.give_back(rig.out.at(0), RecordResult::retry);
  rig.advance(milliseconds(410));
  ASSERT_EQ(rig.out.size(), 1u);
  EXPECT_EQ(rig.out[0]->records[0].attempt, 3);
  rig.give_back(rig.out.at(0), RecordResult::retry);
  EXPECT_EQ(rig.count(EventName::record_parked), 1u) << "exhausted: reject, which parks for now";
  rig.advance(seconds(60));
  EXPECT_TRUE(rig.out.empty());
  EXPECT_EQ(rig.shown(owner).frontier, Offset(0));
}

TEST(EngineRecords, AHandlersOwnWaitIsKept) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.give_back(rig.out.at(0), RecordResult::retry,
                [](RecordRun& run) { run.failures.push_back({0, "later", "busy", seconds(7)}); });
  rig.advance(milliseconds(6900));
  EXPECT_TRUE(rig.out.empty());
  rig.advance(milliseconds(200));
  EXPECT_EQ(rig.out.size(), 1u);
}

TEST(EngineRecords, ContentionAndAStoreThatIsAwayAreNoAttempts) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(rig.out.size(), 1u);
    EXPECT_EQ(rig.out[0]->records[0].attempt, 1);
    rig.give_back(rig.out[0], RecordResult::again,
                  [](RecordRun& run) { run.again = AgainCause::store_down; });
    EXPECT_EQ(rig.shown(owner).cause, "store_down");
    rig.advance(seconds(31));
  }
  EXPECT_EQ(rig.count(EventName::store_unavailable), 1u);
  rig.finish_all();
  EXPECT_EQ(rig.count(EventName::store_recovered), 1u);
  EXPECT_EQ(rig.shown(owner).frontier, Offset(1));
}

TEST(EngineRecords, BackoffIsNotStartedWorkAndIsDroppedAtTheRevocation) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2);
  rig.finish_all(RecordResult::retry);
  rig.revoke({0});
  EXPECT_EQ(rig.revokes.size(), 1u) << "nobody waits for a backoff";
  rig.advance(seconds(60));
  EXPECT_TRUE(rig.out.empty());
}

TEST(EngineRecords, F7_RetentionPassingAnActiveOwnerGoesOnAtTheLogStart) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.log(0).start = Offset(200);
  rig.step(RecordError{owner, BrokerError::offset_out_of_range, Offset(10), "out of range"});
  ASSERT_EQ(rig.starts.size(), 2u);
  EXPECT_EQ(rig.starts[1].start.offset, Offset(200));
  EXPECT_EQ(rig.count(EventName::record_skipped), 1u);
  EXPECT_EQ(rig.shown(owner).frontier, Offset(200));
  rig.deliver(owner, 200, 205);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(205));
}

TEST(EngineRecords, F8_ALogThatWentBackUnderAnActiveOwnerStopsItLoudly) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.log(0).end = Offset(4);
  rig.step(RecordError{owner, BrokerError::log_truncated, Offset(10), "truncated"});
  EXPECT_EQ(rig.shown(owner).cause, "log_went_back");
  EXPECT_TRUE(rig.forgotten.contains(owner.grant));
  const auto commits = rig.commits.size();
  rig.advance(seconds(60));
  EXPECT_EQ(rig.commits.size(), commits) << "no commit";
  rig.deliver(owner, 4, 6);
  EXPECT_TRUE(rig.out.empty()) << "no admission";
}

TEST(EngineRecords, TotalsBoundEveryPartitionButAnEmptyWindowAlwaysAdmitsOne) {
  EngineOptions options = Rig::defaults();
  options.window_records_total = 8;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 20);
  std::size_t records = 0;
  for (const RecordRun* run : rig.out) records += run->records.size();
  EXPECT_LE(records, 8u);
  rig.deliver(owners[1], 0, 3);
  EXPECT_EQ(rig.shown(owners[1]).in_flight, 1u) << "one, whatever the totals";
  rig.finish_all();
  EXPECT_EQ(rig.shown(owners[0]).frontier, Offset(20));
  EXPECT_EQ(rig.shown(owners[1]).frontier, Offset(3));
}

TEST(EngineRecords, KeyOrderNeverHasTwoRunsOfOneKeyOut) {
  EngineOptions options = Rig::defaults();
  options.order = Order::key;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 50, 100, 5);
  std::map<std::uint64_t, int> keys;
  for (const RecordRun* run : rig.out)
    ++keys[static_cast<std::uint64_t>(run->records[0].offset.value()) % 5];
  for (const auto& [key, count] : keys) EXPECT_EQ(count, 1) << key;
  EXPECT_EQ(keys.size(), 5u);
}

TEST(EngineRecords, AsyncHandlersGetOneRecordARunAndNoMoreThanTheCredits) {
  EngineOptions options = Rig::defaults();
  options.async = true;
  options.concurrency = 4;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 20);
  ASSERT_EQ(rig.out.size(), 4u);
  for (const RecordRun* run : rig.out) EXPECT_EQ(run->records.size(), 1u);
  rig.give_back(rig.out[2], RecordResult::done);
  EXPECT_EQ(rig.out.size(), 4u);
}

}  // namespace
}  // namespace tenure::core
