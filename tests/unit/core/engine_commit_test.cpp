// The commit slot and the lease: C1-C10, R8, F2, F3, E3.
#include <gtest/gtest.h>

#include "core/commit_metadata.hpp"
#include "core/commit_outcome.hpp"
#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

TEST(EngineCommit, C1_OneRequestIsOutstandingAndTheNextCoalesces) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.deliver(owner, 10, 30);
  rig.finish_all();
  rig.advance(seconds(5));
  EXPECT_EQ(rig.open_commits.size(), 1u);
  rig.answer_commit();
  rig.advance(seconds(2));
  EXPECT_EQ(rig.sent(0), Offset(30));
}

TEST(EngineCommit, C1_TheSlotIsFreedAsUnresolvedAfterSessionPlusSocketTimeout) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.advance(seconds(2));
  const auto unanswered = rig.open_commits.front();
  rig.open_commits.clear();
  rig.advance(Rig::session + Rig::socket_timeout - seconds(2));
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 0u);
  rig.advance(seconds(3));
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 1u);
  EXPECT_EQ(rig.shown(owner).committed, Offset(0)) << "unresolved is neither success nor failure";
  ASSERT_EQ(rig.open_commits.size(), 1u) << "C3: again, the same or a higher value";
  EXPECT_GE(rig.sent(0), Offset(10));
  // The late answer is counted and ignored.
  const auto resent = rig.open_commits.front();
  rig.step(CommitAnswer{unanswered.id, {{unanswered.lines[0].owner, BrokerError::none}}});
  EXPECT_EQ(rig.count(EventName::commit_late), 1u);
  EXPECT_EQ(rig.shown(owner).committed, Offset(0));
  (void)resent;
  rig.answer_commit();
  EXPECT_EQ(rig.shown(owner).committed, Offset(10));
}

TEST(EngineCommit, C2_OnlyAcceptedMovesTheCommittedFrontierPartitionByPartition) {
  Rig rig;
  const auto owners = rig.assign({0, 1, 2});
  for (const OwnerRef owner : owners) rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.commit_errors[{"t", Partition(1)}] = {BrokerError::rebalance_in_progress};
  rig.commit_errors[{"t", Partition(2)}] = {BrokerError::timed_out};
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.shown(owners[0]).committed, Offset(5));
  EXPECT_EQ(rig.shown(owners[1]).committed, Offset(0));
  EXPECT_EQ(rig.shown(owners[1]).last_commit, CommitOutcome::rejected);
  EXPECT_EQ(rig.shown(owners[2]).committed, Offset(0));
  EXPECT_EQ(rig.shown(owners[2]).last_commit, CommitOutcome::unresolved);
  rig.advance(seconds(2));
  EXPECT_EQ(rig.shown(owners[1]).committed, Offset(5));
  EXPECT_EQ(rig.shown(owners[2]).committed, Offset(5));
}

TEST(EngineCommit, C2_EveryErrorHasOneClass) {
  EXPECT_EQ(classify(BrokerError::none).outcome, CommitOutcome::accepted);
  for (const BrokerError error :
       {BrokerError::unknown_member_id, BrokerError::illegal_generation,
        BrokerError::rebalance_in_progress, BrokerError::stale_member_epoch,
        BrokerError::fenced_member_epoch, BrokerError::fenced_instance_id,
        BrokerError::coordinator_loading, BrokerError::metadata_too_large,
        BrokerError::unknown_topic_or_partition, BrokerError::not_authorized,
        BrokerError::assignment_lost, BrokerError::kept_back}) {
    EXPECT_EQ(classify(error).outcome, CommitOutcome::rejected) << name(error);
  }
  for (const BrokerError error :
       {BrokerError::not_coordinator, BrokerError::timed_out, BrokerError::transport,
        BrokerError::closing, BrokerError::not_sent, BrokerError::other}) {
    EXPECT_EQ(classify(error).outcome, CommitOutcome::unresolved) << name(error);
  }
}

TEST(EngineCommit, C5_LinesCarryLeaderEpochAndMetadata) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.advance(seconds(2));
  const CommitLine& line = rig.commits.back().lines.at(0);
  EXPECT_EQ(line.leader_epoch, LeaderEpoch(3));
  const auto metadata = decode(line.metadata);
  ASSERT_TRUE(metadata.has_value());
  EXPECT_EQ(metadata->cluster, "cluster-1");
  EXPECT_EQ(metadata->topic_id, rig.facts("t").id.text());
  EXPECT_EQ(metadata->at, Offset(5));
}

TEST(EngineCommit, C7_OversizedMetadataIsCommittedAgainAtOnceWithoutIt) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::metadata_too_large};
  rig.advance(milliseconds(1050));
  EXPECT_EQ(rig.shown(owner).committed, Offset(5));
  EXPECT_TRUE(rig.commits.back().lines.at(0).metadata.empty());
}

TEST(EngineCommit, C9_AnUnchangedFrontierIsCommittedAgainDaily) {
  EngineOptions options = Rig::defaults();
  Rig rig(options);
  rig.assign(0);
  rig.step(TimesKnown{std::chrono::hours(100), seconds(1), seconds(300), seconds(60)});
  rig.commits.clear();
  rig.advance(std::chrono::hours(25));
  EXPECT_EQ(rig.commits.size(), 1u);
}

TEST(EngineCommit, C5_ARetiredOwnerIsNeverInACommit) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 5);
  rig.deliver(owners[1], 0, 5);
  rig.start_all();
  rig.revoke({0});
  rig.advance(seconds(8));  // the drain ends with everything running
  EXPECT_EQ(rig.state(owners[0]), OwnerState::retired);
  rig.commits.clear();
  rig.finish_all();
  rig.advance(seconds(30));
  for (const SendCommit& commit : rig.commits) {
    for (const CommitLine& line : commit.lines) EXPECT_EQ(line.owner, owners[1]);
  }
}

TEST(EngineCommit, R8_AFrozenMemberIsSuspectUntilACommitSentSinceIsAccepted) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 20);
  rig.finish_all();
  rig.advance(seconds(2));
  rig.hold_commits = true;
  rig.freeze(seconds(11));  // longer than the session
  rig.deliver(owner, 20, 30);
  EXPECT_TRUE(rig.out.empty()) << "no dispatch on an old lease";
  EXPECT_TRUE(rig.shown(owner).suspect);
  EXPECT_EQ(rig.count(EventName::owner_suspect), 1u);
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.answer_commit();
  EXPECT_FALSE(rig.shown(owner).suspect);
  EXPECT_FALSE(rig.out.empty());
}

TEST(EngineCommit, R8_ASuspectOwnerWithNothingToCommitBecomesActiveAgain) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.freeze(seconds(11));
  rig.step(Tick{});
  EXPECT_FALSE(rig.shown(owner).suspect) << "the unchanged frontier was committed and accepted";
  EXPECT_EQ(rig.sent(0), Offset(0));
}

TEST(EngineCommit, R8_ACommitSentBeforeTheFreezeProvesNothing) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.freeze(seconds(11));
  rig.step(Tick{});
  EXPECT_TRUE(rig.shown(owner).suspect);
  rig.answer_commit();
  EXPECT_TRUE(rig.shown(owner).suspect);
  rig.answer_commit();  // of the one sent since
  EXPECT_FALSE(rig.shown(owner).suspect);
}

TEST(EngineCommit, R8_AtHalfTheLeaseTheUnchangedFrontierIsCommitted) {
  Rig rig;
  rig.assign(0);
  rig.commits.clear();
  rig.advance(seconds(4));
  EXPECT_TRUE(rig.commits.empty());
  rig.advance(seconds(2));
  EXPECT_EQ(rig.commits.size(), 1u);
  rig.advance(seconds(60));
  EXPECT_EQ(rig.count(EventName::owner_suspect), 0u) << "quiet is not dead";
}

TEST(EngineCommit, R8_ASilentCoordinatorMakesEveryOwnerSuspect) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  rig.hold_commits = true;
  rig.advance(seconds(11));
  EXPECT_TRUE(rig.shown(owners[0]).suspect);
  EXPECT_TRUE(rig.shown(owners[1]).suspect);
  rig.deliver(owners[1], 0, 3);
  EXPECT_TRUE(rig.out.empty());
}

TEST(EngineCommit, F3_AtTheTailTheFrontierRisesToThePosition) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.step(Reached{owner, Offset(9)});  // markers behind the last record
  EXPECT_EQ(rig.shown(owner).frontier, Offset(0)) << "not while a record is in flight";
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(9));
  rig.advance(seconds(2));
  EXPECT_EQ(rig.sent(0), Offset(9));
}

TEST(EngineCommit, ALaneWithoutKeysNeverHoldsTheCommitBack) {
  Rig rig(Rig::transactional(8));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 50, 100, 1);  // one key: seven lanes are idle
  rig.finish_all();
  rig.step(Reached{owner, Offset(51)});
  rig.advance(seconds(3));
  EXPECT_EQ(rig.sent(0), Offset(51));
  for (const auto& lane : rig.store[rig.domain(0)].lanes) EXPECT_EQ(lane.next, Offset(51));
}

TEST(EngineCommit, ACommitOfKindTransactionSaysTheStoredMinimumOnly) {
  Rig rig(Rig::transactional(2));
  const OwnerRef owner = rig.assign(0);
  rig.advance_error = StoreError::unavailable;
  rig.deliver(owner, 0, 10, 100, 1);
  rig.finish_all();
  rig.advance(seconds(3));
  EXPECT_EQ(rig.shown(owner).frontier, Offset(10));
  EXPECT_EQ(rig.sent(0), Offset(0)) << "the idle lane's row could not be moved";
  rig.advance_error = StoreError::none;
  rig.advance(seconds(5));
  EXPECT_EQ(rig.sent(0), Offset(10));
}

TEST(EngineCommit, NoUnitOfALaneIsStartedWhileItsRowIsBeingMoved) {
  Rig rig(Rig::transactional(2));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10, 100, 1);  // lane 0 only
  rig.finish_all();
  rig.hold_advance = true;
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_advances.size(), 1u);
  rig.deliver(owner, {{rig.message(), Offset(11), 1, 10, no_leader_epoch}});  // lane 1
  EXPECT_TRUE(rig.out.empty());
  rig.answer(rig.open_advances.front());
  ASSERT_EQ(rig.out.size(), 1u);
  EXPECT_EQ(rig.out[0]->lane_from, Offset(10));
}

TEST(EngineCommit, E3_AnUnknownCommitIsLookedUpBeforeAnythingElse) {
  for (const bool had_committed : {true, false}) {
    Rig rig(Rig::transactional(1));
    const OwnerRef owner = rig.assign(0);
    rig.deliver(owner, 0, 3);
    RecordRun* const run = rig.out.at(0);
    rig.hold_lookup = true;
    if (had_committed) rig.store_run(*run);
    rig.give_back(run, RecordResult::unstarted, [](RecordRun& r) {
      r.store_error = StoreError::in_doubt;
      r.lane_reached.reset();
    });
    ASSERT_EQ(rig.open_lookups.size(), 1u);
    EXPECT_TRUE(rig.out.empty()) << "the lane waits";
    EXPECT_EQ(rig.shown(owner).frontier, Offset(0));
    rig.answer(rig.open_lookups.front());
    if (had_committed) {
      EXPECT_EQ(rig.shown(owner).frontier, Offset(3));
      EXPECT_TRUE(rig.out.empty());
      EXPECT_EQ(rig.engine().totals().replayed, 3u);
    } else {
      ASSERT_EQ(rig.out.size(), 1u) << "absent: again";
      EXPECT_EQ(rig.out[0]->records.front().attempt, 1) << "not an attempt";
    }
  }
}

TEST(EngineCommit, E3_WhileTheStoreIsAwayTheLaneWaits) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.lookup_error = StoreError::unavailable;
  rig.give_back(rig.out.at(0), RecordResult::unstarted,
                [](RecordRun& r) { r.store_error = StoreError::in_doubt; });
  rig.advance(seconds(5));
  EXPECT_TRUE(rig.out.empty());
  EXPECT_EQ(rig.shown(owner).frontier, Offset(0));
  rig.lookup_error = StoreError::none;
  rig.advance(seconds(2));
  EXPECT_EQ(rig.out.size(), 1u);
}

TEST(EngineCommit, T4_MineButElsewhereStopsTheLaneLoudly) {
  Rig rig(Rig::transactional(2));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 4, 100, 2);
  RecordRun* const run = rig.out.at(0);
  const auto lane = run->lane;
  rig.give_back(run, RecordResult::unstarted,
                [](RecordRun& r) { r.store_error = StoreError::moved; });
  EXPECT_EQ(rig.count(EventName::record_parked), 1u);
  EXPECT_EQ(rig.count(EventName::effect_refused), 1u);
  rig.deliver(owner, 4, 8, 100, 2);
  for (const RecordRun* other : rig.out) EXPECT_NE(other->lane, lane) << "the lane stops";
  EXPECT_EQ(rig.state(owner), OwnerState::active);
}

TEST(CommitMetadata, IsPrintableAndRoundTrips) {
  const CommitMetadata metadata{"lkc-1", "6f5902ac-2370-4e8f-a1c7-3d0d6e1f9a11", Offset(5113), 41,
                                37};
  const std::string text = encode(metadata);
  EXPECT_EQ(text.rfind("tenure/1 log=lkc-1/6f5902ac-2370-4e8f-a1c7-3d0d6e1f9a11 at=5113 epoch=41 "
                       "gap=37 crc=",
                       0),
            0u);
  const auto back = decode(text);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->cluster, "lkc-1");
  EXPECT_EQ(back->at, Offset(5113));
  EXPECT_EQ(back->epoch, 41);
  EXPECT_EQ(back->gap, 37u);
}

TEST(CommitMetadata, ForeignTextABadCrcAndAnotherVersionAreIgnored) {
  const std::string good = encode({"c", "t", Offset(1), 1, 0});
  std::string bad = good;
  bad.back() = bad.back() == '0' ? '1' : '0';
  for (const std::string& text : {std::string(), std::string("x"), bad, "tenure/2" + good.substr(8),
                                  good.substr(0, good.size() - 1), good + " "}) {
    EXPECT_FALSE(decode(text).has_value()) << text;
  }
}

TEST(CommitMetadata, Crc32cIsTheCastagnoliOne) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

}  // namespace
}  // namespace tenure::core
