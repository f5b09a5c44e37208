// From the grant to the first record: O1-O6, F4, F7, F8, C8, C10, T1-T3, T8.
#include <gtest/gtest.h>

#include "core/commit_metadata.hpp"
#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

TEST(EngineAcquire, O6_AnAssignIsAnsweredBeforeAnyRoundTripAndNothingIsStartedBeforeActive) {
  Rig rig;
  rig.hold_topics = true;
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.assigns.size(), 1u);
  EXPECT_TRUE(rig.starts.empty());
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  rig.deliver(owner, 0, 3);
  EXPECT_TRUE(rig.out.empty()) << "nothing is admitted before the owner is active";
  EXPECT_EQ(rig.freed.size(), 3u);
  rig.answer(rig.open_topics.front());
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  ASSERT_EQ(rig.starts.size(), 1u);
}

TEST(EngineAcquire, O1_EachGrantHasItsOwnOwnerWithAnIncreasingGrantId) {
  Rig rig;
  const auto owners = rig.assign({0, 1, 2});
  EXPECT_LT(owners[0].grant, owners[1].grant);
  EXPECT_LT(owners[1].grant, owners[2].grant);
}

TEST(EngineAcquire, O2_AnActiveOwnerShowsWhereItsStartCameFrom) {
  Rig rig;
  rig.log(0).committed = Offset(41);
  rig.assign(0);
  ASSERT_EQ(rig.activated.size(), 1u);
  EXPECT_EQ(rig.activated[0].start_offset, Offset(41));
  EXPECT_EQ(rig.activated[0].start_source, StartSource::committed);
  EXPECT_EQ(rig.activated[0].cluster, "cluster-1");
  EXPECT_EQ(rig.activated[0].topic_id, rig.facts("t").id);
  EXPECT_EQ(rig.activated[0].member.id, "m-1");
}

TEST(EngineAcquire, O4_TheSamePartitionInsideOneRebalanceIsANewGrant) {
  Rig rig;
  const OwnerRef first = rig.assign(0);
  rig.deliver(first, 0, 3);
  rig.start_all();
  const OwnerRef second = rig.assign(0);
  EXPECT_NE(first.grant, second.grant);
  EXPECT_EQ(rig.state(first), OwnerState::retired);
  rig.finish_all();  // completions of the first grant
  EXPECT_EQ(rig.shown(second).frontier, Offset(0)) << "old completions cannot reach it";
  EXPECT_EQ(rig.engine().totals().late, 3u);
}

TEST(EngineAcquire, O3_RevokedWhileAcquiringEndsWithoutDrainOrCommit) {
  for (const bool fence : {false, true}) {
    Rig rig(fence ? Rig::transactional() : Rig::defaults());
    rig.hold_committed = true;
    const OwnerRef owner = rig.assign(0);
    rig.trace.clear();
    rig.revoke({0});
    EXPECT_EQ(rig.state(owner), OwnerState::retired);
    EXPECT_EQ(rig.revokes.size(), 1u);
    EXPECT_TRUE(rig.commits.empty());
    rig.answer(rig.open_committed.front());  // too late for anything
    rig.advance(seconds(5));
    EXPECT_TRUE(rig.starts.empty());
    EXPECT_TRUE(rig.commits.empty());
  }
}

TEST(EngineAcquire, F4_AnErrorWhenReadingTheCommittedOffsetKeepsTheOwnerAcquiring) {
  Rig rig;
  rig.log(0).committed = Offset(7);
  rig.log(0).read_error = BrokerError::not_coordinator;
  const OwnerRef owner = rig.assign(0);
  rig.advance(seconds(20));
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  EXPECT_TRUE(rig.starts.empty()) << "the reset policy answers no errors";
  rig.log(0).read_error = BrokerError::none;
  rig.advance(seconds(5));
  ASSERT_EQ(rig.starts.size(), 1u);
  EXPECT_EQ(rig.starts[0].start.offset, Offset(7));
}

TEST(EngineAcquire, F4_CommittedOffsetsAreNotReadWhileACommitIsOutstanding) {
  Rig rig;
  const OwnerRef kept = rig.assign(0);
  rig.deliver(kept, 0, 5);
  rig.hold_commits = true;
  rig.finish_all();
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.hold_committed = true;
  rig.assign(1);
  EXPECT_TRUE(rig.open_committed.empty());
  rig.answer_commit();
  EXPECT_EQ(rig.open_committed.size(), 1u);
}

TEST(EngineAcquire, F7_TheResetPolicyAnswersNoCommittedOffsetOnly) {
  EngineOptions options = Rig::defaults();
  options.reset = ResetPolicy::latest;
  Rig rig(options);
  rig.log(0).start = Offset(10);
  rig.log(0).end = Offset(500);
  rig.assign(0);
  ASSERT_EQ(rig.starts.size(), 1u);
  EXPECT_EQ(rig.starts[0].start.offset, Offset(500));
  EXPECT_EQ(rig.activated[0].start_source, StartSource::reset_policy);
}

TEST(EngineAcquire, F7_UnderLatestAPartitionFoundLaterStartsAtItsLogStart) {
  EngineOptions options = Rig::defaults();
  options.reset = ResetPolicy::latest;
  Rig rig(options);
  rig.log(3).committed = Offset(5);  // the group knows the topic id
  rig.log(0).start = Offset(10);
  rig.log(0).end = Offset(500);
  rig.assign(0);
  EXPECT_EQ(rig.starts.at(0).start.offset, Offset(10));
  EXPECT_EQ(rig.activated.at(0).start_source, StartSource::log_start);
}

TEST(EngineAcquire, F7_AKnownPositionBelowTheLogStartGoesOnAtTheLogStartAlsoUnderLatest) {
  EngineOptions options = Rig::defaults();
  options.reset = ResetPolicy::latest;
  Rig rig(options);
  rig.log(0).committed = Offset(100);
  rig.log(0).start = Offset(500);
  rig.log(0).end = Offset(900);
  rig.assign(0);
  EXPECT_EQ(rig.starts.at(0).start.offset, Offset(500));
  ASSERT_EQ(rig.count(EventName::record_skipped), 1u);
  const Report& skipped = *rig.last(EventName::record_skipped);
  EXPECT_EQ(Rig::integer(skipped, "from"), 100);
  EXPECT_EQ(Rig::integer(skipped, "to"), 499);
  EXPECT_EQ(Rig::text(skipped, "by"), "broker");
}

TEST(EngineAcquire, F7_ResetPolicyErrorWaitsForAnOperator) {
  EngineOptions options = Rig::defaults();
  options.reset = ResetPolicy::error;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.advance(seconds(10));
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  EXPECT_GE(rig.count(EventName::health_changed), 1u);
  rig.log(0).committed = Offset(12);
  rig.advance(seconds(60));
  EXPECT_EQ(rig.state(owner), OwnerState::active);
}

TEST(EngineAcquire, F8_AKnownPositionAboveTheLogEndIsLoudAndNothingIsAdmittedOrCommitted) {
  Rig rig(Rig::transactional());
  rig.log(0).committed = Offset(5000);
  rig.log(0).end = Offset(1000);
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  EXPECT_EQ(rig.shown(owner).cause, "log_went_back");
  EXPECT_EQ(rig.count(EventName::owner_blocked), 1u);
  EXPECT_TRUE(rig.commits.empty());
  EXPECT_TRUE(rig.starts.empty());
  rig.advance(seconds(120));
  EXPECT_TRUE(rig.commits.empty());
  EXPECT_EQ(rig.count(EventName::owner_blocked), 1u) << "said once";
}

TEST(EngineAcquire, F8_ALaneAboveTheLogEndIsLoudToo) {
  Rig rig(Rig::transactional(2));
  auto& stored = rig.store[rig.domain(0)];
  stored.lanes.resize(2);
  stored.lanes[0].next = Offset(2000);
  stored.lanes[1].next = Offset(2000);
  rig.log(0).end = Offset(1000);
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.shown(owner).cause, "log_went_back");
  EXPECT_TRUE(rig.commits.empty());
}

TEST(EngineAcquire, C8_APartitionWithoutACommittedOffsetCommitsItsStartAtOnce) {
  Rig rig;
  rig.assign(0);
  rig.commits.clear();
  rig.log(1).start = Offset(20);
  rig.hold_commits = true;
  const OwnerRef owner = rig.assign(1);
  ASSERT_EQ(rig.open_commits.size(), 1u);
  EXPECT_EQ(rig.sent(1), Offset(20));
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  rig.answer_commit();
  EXPECT_EQ(rig.state(owner), OwnerState::active);
}

TEST(EngineAcquire, C8_WithTheLeaseFreshACommittedOffsetIsNotCommittedAgain) {
  Rig rig;
  rig.assign(0);
  rig.commits.clear();
  rig.log(1).committed = Offset(3);
  const OwnerRef owner = rig.assign(1);
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  EXPECT_FALSE(rig.sent(1).has_value());
}

TEST(EngineAcquire, R8_ANewMembersLeaseBeginsWithACommitOfTheStartAsReadItsMetadataKept) {
  Rig rig;
  rig.log(0).committed = Offset(44);
  rig.log(0).metadata = "somebody else's words";
  rig.assign(0);
  ASSERT_EQ(rig.commits.size(), 1u);
  EXPECT_EQ(rig.commits[0].lines[0].offset, Offset(44));
  EXPECT_EQ(rig.commits[0].lines[0].metadata, "somebody else's words");
}

TEST(EngineAcquire, C10_ACommitOfAnotherTopicIdIsNoCommittedOffset) {
  Rig rig;
  rig.log(0).committed = Offset(700);
  rig.log(0).metadata = encode({"cluster-1", "0e000000-0000-0000-0000-000000000000", Offset(700),
                                4, 0});
  rig.assign(0);
  EXPECT_EQ(rig.starts.at(0).start.offset, Offset(0)) << "the reset policy";
  EXPECT_GE(rig.count(EventName::health_changed), 1u) << "loud";
}

TEST(EngineAcquire, C10_MetadataOfAnotherClusterOrOffsetKeepsTheOffset) {
  for (const std::string& metadata :
       {encode({"cluster-2", "0e000000-0000-0000-0000-000000000000", Offset(700), 4, 0}),
        encode({"cluster-1", "0e000000-0000-0000-0000-000000000000", Offset(699), 4, 0}),
        std::string("tenure/9 future"), std::string("{\"json\":true}")}) {
    Rig rig;
    rig.log(0).committed = Offset(700);
    rig.log(0).metadata = metadata;
    rig.assign(0);
    EXPECT_EQ(rig.starts.at(0).start.offset, Offset(700)) << metadata;
  }
}

TEST(EngineAcquire, T1_TheTicketIsDrawnAfterTheGrantIsKnown) {
  Rig rig(Rig::transactional());
  EXPECT_TRUE(rig.store.empty());
  rig.hold_reserve = true;
  rig.assign(0);
  ASSERT_EQ(rig.open_reserves.size(), 1u);
  EXPECT_EQ(rig.open_reserves[0].items[0].domain, rig.domain(0));
  EXPECT_EQ(rig.open_reserves[0].items[0].rule.lanes, 4);
}

TEST(EngineAcquire, T2_CommitsTheMinimumOverLanesAsStored) {
  Rig rig(Rig::transactional(2));
  auto& stored = rig.store[rig.domain(0)];
  stored.lanes.resize(2);
  stored.lanes[0].next = Offset(60);
  stored.lanes[1].next = Offset(55);
  rig.log(0).committed = Offset(50);
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.commits.at(0).lines.at(0).offset, Offset(55));
  EXPECT_EQ(rig.starts.at(0).start.offset, Offset(55));
  EXPECT_EQ(rig.activated.at(0).start_source, StartSource::store);
  // Below their lane's progress records are skipped, from the store.
  rig.deliver(owner, 55, 70, 100, 2);
  EXPECT_GT(rig.engine().totals().skipped_by_store, 0u);
  for (RecordRun* const run : rig.out) {
    for (const RunRecord& record : run->records) {
      EXPECT_GE(record.offset, run->lane == 0 ? Offset(60) : Offset(55));
    }
  }
}

TEST(EngineAcquire, T2_RetriableAndUnresolvedAnswersAreTriedAgainWithTheSameToken) {
  Rig rig(Rig::transactional());
  rig.commit_errors[{"t", Partition(0)}] = {
      BrokerError::rebalance_in_progress, BrokerError::stale_member_epoch,
      BrokerError::illegal_generation, BrokerError::timed_out};
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  rig.advance(seconds(4));
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  EXPECT_EQ(rig.commits.size(), 5u);
  EXPECT_EQ(rig.store[rig.domain(0)].ticket, 1) << "the same token";
}

TEST(EngineAcquire, T2_AnAcceptedCommitUnderAnotherMemberIdDoesNotValidate) {
  Rig rig(Rig::transactional());
  rig.hold_commits = true;
  const OwnerRef owner = rig.assign(0);
  rig.member.id = "m-2";
  rig.answer_commit();
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  EXPECT_TRUE(rig.activated.empty());
}

TEST(EngineAcquire, T2_AnAcceptedCommitWithoutAnEpochDoesNotValidate) {
  for (const int epoch : {0, -1}) {
    Rig rig(Rig::transactional());
    rig.hold_commits = true;
    const OwnerRef owner = rig.assign(0);
    rig.member.epoch = Epoch(epoch);
    rig.answer_commit();
    EXPECT_EQ(rig.state(owner), OwnerState::acquiring) << epoch;
  }
}

TEST(EngineAcquire, T2_UnknownMemberLosesEverything) {
  Rig rig(Rig::transactional());
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::unknown_member_id};
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_EQ(rig.store[rig.domain(0)].lanes.size(), 0u) << "nothing was activated";
}

TEST(EngineAcquire, T3_TheStartIsWhatActivationReturnedNotWhatTheTicketSaw) {
  Rig rig(Rig::transactional(1));
  auto& stored = rig.store[rig.domain(0)];
  stored.lanes.resize(1);
  stored.lanes[0].next = Offset(10);
  rig.hold_activate = true;
  const OwnerRef owner = rig.assign(0);
  stored.lanes[0].next = Offset(17);  // an effect of the old owner in between
  rig.answer(rig.open_activates.front());
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  EXPECT_EQ(rig.starts.at(0).start.offset, Offset(17));
}

TEST(EngineAcquire, T3_FirstUseCreatesTheRowsAtWhatWasCommitted) {
  Rig rig(Rig::transactional(3));
  rig.log(0).committed = Offset(33);
  rig.assign(0);
  const auto& lanes = rig.store[rig.domain(0)].lanes;
  ASSERT_EQ(lanes.size(), 3u);
  for (const auto& lane : lanes) EXPECT_EQ(lane.next, Offset(33));
}

TEST(EngineAcquire, T8_SupersededWhileStillAssignedIsAcquiredAnewAndTheSecondTimeExit76) {
  Rig rig(Rig::transactional(1));
  const OwnerRef first = rig.assign(0);
  auto& stored = rig.store[rig.domain(0)];
  const auto steal = [&] {
    stored.lanes[0].token = Token(++stored.ticket);
    stored.lanes[0].owner.bytes[0] = 99;
  };
  const auto refuse = [&](RecordRun& run) {
    run.store_error = StoreError::superseded;
    run.store_message = "token 2 is active";
  };
  rig.deliver(first, 0, 1);
  steal();
  rig.give_back(rig.out.at(0), RecordResult::unstarted, refuse);
  EXPECT_EQ(rig.state(first), OwnerState::retired);
  EXPECT_EQ(rig.count(EventName::effect_refused), 1u);
  EXPECT_EQ(rig.engine().totals().refused, 1u);
  rig.advance(seconds(2));
  ASSERT_EQ(rig.activated.size(), 2u);
  const OwnerRef second = rig.activated[1].owner;
  EXPECT_GT(second.grant, first.grant);
  EXPECT_TRUE(rig.finished.empty());

  rig.deliver(second, 0, 1);
  steal();
  rig.give_back(rig.out.at(0), RecordResult::unstarted, refuse);
  rig.advance(seconds(1));
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::fenced);
}

TEST(EngineAcquire, T8_AnEffectInBetweenStartsTheCountAnew) {
  Rig rig(Rig::transactional(1));
  OwnerRef owner = rig.assign(0);
  auto& stored = rig.store[rig.domain(0)];
  for (int round = 0; round < 4; ++round) {
    const std::int64_t at = stored.lanes[0].next->value();
    rig.deliver(owner, at, at + 1);
    rig.finish_all();  // an effect went through
    rig.deliver(owner, at + 1, at + 2);
    stored.lanes[0].token = Token(++stored.ticket);
    stored.lanes[0].owner.bytes[0] = 99;
    rig.give_back(rig.out.at(0), RecordResult::unstarted, [](RecordRun& run) {
      run.store_error = StoreError::superseded;
    });
    rig.advance(seconds(2));
    owner = rig.activated.back().owner;
  }
  EXPECT_EQ(rig.activated.size(), 5u);
  EXPECT_TRUE(rig.finished.empty());
}

TEST(EngineAcquire, T8_AnAssignmentThatEndsMeanwhileGetsNoNewOwner) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.give_back(rig.out.at(0), RecordResult::unstarted,
                [](RecordRun& run) { run.store_error = StoreError::superseded; });
  rig.revoke({0});
  EXPECT_EQ(rig.revokes.size(), 1u);
  rig.advance(seconds(5));
  EXPECT_EQ(rig.activated.size(), 1u);
}

TEST(EngineAcquire, F8_ARecreatedTopicIsAnotherDomain) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  const Domain before = rig.domain(0);
  rig.facts("t").id.bytes[5] = 77;
  rig.log(0).committed.reset();
  rig.step(RecordError{owner, BrokerError::unknown_topic_or_partition, Offset(0), "gone"});
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  rig.advance(seconds(2));
  ASSERT_EQ(rig.activated.size(), 2u);
  EXPECT_NE(rig.activated[1].topic_id, before.topic_id);
  EXPECT_EQ(rig.store.size(), 2u);
}

TEST(EngineAcquire, AnotherLaneRuleAtTheStoreEndsWithTheConfigurationError) {
  Rig rig(Rig::transactional());
  rig.reserve_error = StoreError::rule;
  rig.assign(0);
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::config);
}

TEST(EngineAcquire, AStoreThatIsAwayKeepsTheOwnerAcquiringAndIsSaidOnce) {
  Rig rig(Rig::transactional());
  rig.reserve_error = StoreError::unavailable;
  const OwnerRef owner = rig.assign(0);
  rig.advance(seconds(10));
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  EXPECT_EQ(rig.count(EventName::store_unavailable), 1u);
  rig.reserve_error = StoreError::none;
  rig.advance(seconds(5));
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  EXPECT_EQ(rig.count(EventName::store_recovered), 1u);
}

}  // namespace
}  // namespace tenure::core
