// Faults of the engine that review and the simulated worlds of tests/property/engine_world.hpp
// have found, each as the shortest sequence that shows it. `seed` names the world it came from.
#include <gtest/gtest.h>

#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

void superseded(RecordRun& run) {
  run.store_error = StoreError::superseded;
}
void moved(RecordRun& run) {
  run.store_error = StoreError::moved;
}
void in_doubt(RecordRun& run) {
  run.store_error = StoreError::in_doubt;
  run.lane_reached.reset();
}

std::size_t with_reason(const Rig& rig, EventName name, const std::string& reason) {
  std::size_t found = 0;
  for (const Report& report : rig.reports) {
    if (report.name == name && Rig::text(report, "reason") == reason) ++found;
  }
  return found;
}

// ---- membership and lease ----------------------------------------------------------------------

TEST(EngineRegression, R8_TheLeaseOfAFormerMemberDoesNotCountForTheNext) {
  Rig rig;
  rig.assign(0);
  rig.revoke({0});  // nothing is owned when the member id changes
  rig.member.id = "m-2";
  rig.log(1).committed = Offset(3);
  rig.hold_commits = true;
  const OwnerRef owner = rig.assign(1);
  EXPECT_EQ(rig.sent(1), Offset(3)) << "one commit of the start begins the new lease";
  EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
}

TEST(EngineRegression, R8_TheLeaseOfAFormerClientDoesNotCountForTheNext) {
  Rig rig;
  rig.assign(0);
  rig.revoke({0});
  rig.step(Closed{});
  rig.advance(milliseconds(500));
  rig.step(TimesKnown{Rig::session, Rig::heartbeat, Rig::poll_limit, Rig::socket_timeout});
  rig.log(1).committed = Offset(3);
  rig.assign(1);
  EXPECT_EQ(rig.sent(1), Offset(3));
}

TEST(EngineRegression, R8_ALateAcceptedCommitOfTheFormerMemberRenewsNothing) {
  Rig rig;
  const OwnerRef first = rig.assign(0);
  rig.deliver(first, 0, 5);
  rig.finish_all();
  rig.hold_commits = true;
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.revoke({0}, true);
  rig.member.id = "m-2";
  const OwnerRef second = rig.assign(0);
  rig.answer_commit();  // applied before the group expelled m-1
  ASSERT_EQ(rig.open_commits.size(), 1u) << "the start as read, by m-2";
  EXPECT_EQ(rig.open_commits.front().lines.at(0).owner, second);
  EXPECT_EQ(rig.state(second), OwnerState::acquiring);
}

TEST(EngineRegression, R6_Seed22638_ARefusalOfTheFormerMembersCommitLosesNothing) {
  Rig rig;
  const OwnerRef first = rig.assign(0);
  rig.deliver(first, 0, 5);
  rig.finish_all();
  rig.hold_commits = true;
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.revoke({0}, true);
  rig.member.id = "m-2";
  const OwnerRef second = rig.assign(0);
  rig.answer_commit({BrokerError::unknown_member_id});
  EXPECT_NE(rig.state(second), OwnerState::retired);
  rig.answer_commit();
  EXPECT_EQ(rig.state(second), OwnerState::active);
}

TEST(EngineRegression, R5b_AfterALossByACommitAnEventThatKeepsSilentAboutItMeansANewClient) {
  for (const bool eager : {false, true}) {
    Rig rig;
    const Protocol protocol = eager ? Protocol::eager : Protocol::cooperative;
    const auto owners = rig.assign({0, 1}, protocol);
    rig.deliver(owners[0], 0, 3);
    rig.finish_all();
    rig.commit_errors[{"t", Partition(0)}] = {BrokerError::unknown_member_id};
    rig.advance(milliseconds(1100));
    ASSERT_EQ(rig.state(owners[1]), OwnerState::retired);
    rig.member.id = "m-2";
    rig.revoke({0}, false, protocol);
    EXPECT_EQ(rig.revokes.size(), 1u);
    EXPECT_EQ(rig.closes, eager ? 0 : 1) << "partition 1 is listed still, and has no owner";
  }
}

TEST(EngineRegression, R8_ACommitAcceptedFromAClientWithoutMembershipRenewsNoLease) {
  for (const Member& now : {Member{"", Epoch(-1), ""}, Member{"m-2", Epoch(2), ""}}) {
    Rig rig;
    const OwnerRef owner = rig.assign(0);
    rig.hold_commits = true;
    rig.freeze(seconds(11));
    rig.step(Tick{});
    ASSERT_TRUE(rig.shown(owner).suspect);
    rig.member = now;  // swallowed; an empty group accepts a commit of nobody
    rig.answer_commit();
    EXPECT_TRUE(rig.shown(owner).suspect);
    rig.deliver(owner, 0, 3);
    EXPECT_TRUE(rig.out.empty());
  }
}

TEST(EngineRegression, R8_Seed964_AnAnswerThatTookLongerThanTheSessionLeavesOwnersSuspect) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.freeze(seconds(11));
  rig.step(Tick{});
  rig.deliver(owner, 0, 3);
  rig.advance(seconds(12));
  rig.answer_commit();
  EXPECT_TRUE(rig.shown(owner).suspect);
  EXPECT_TRUE(rig.out.empty()) << "no dispatch on an old lease";
  rig.answer_commit();
  EXPECT_FALSE(rig.shown(owner).suspect);
  EXPECT_FALSE(rig.out.empty());
}

TEST(EngineRegression, R8_ACommitSentBeforeTheSuspicionDoesNotEndItHoweverFresh) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.advance(milliseconds(10500));  // sent at half the lease, 5 s
  ASSERT_EQ(rig.open_commits.size(), 1u);
  ASSERT_TRUE(rig.shown(owner).suspect);
  rig.answer_commit();
  EXPECT_TRUE(rig.shown(owner).suspect);
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.answer_commit();
  EXPECT_FALSE(rig.shown(owner).suspect);
}

TEST(EngineRegression, T2_ACommitOfNobodyValidatesNothing) {
  for (const bool fence : {false, true}) {
    Rig rig(fence ? Rig::transactional() : Rig::defaults());
    rig.member = Member{"", Epoch(1), ""};
    const OwnerRef owner = rig.assign(0);
    rig.advance(seconds(1));
    EXPECT_FALSE(rig.commits.empty());
    EXPECT_EQ(rig.state(owner), OwnerState::acquiring);
  }
}

TEST(EngineRegression, R8_WithoutACommittedOffsetTheQuietLeaseIsRenewedToo) {
  EngineOptions options = Rig::defaults();
  options.start_position = false;
  Rig rig(options);
  rig.assign(0);
  rig.assign(1);  // the lease is fresh, so nothing is committed for it
  EXPECT_FALSE(rig.sent(1).has_value());
  rig.revoke({0});
  rig.advance(seconds(60));
  EXPECT_EQ(rig.count(EventName::owner_suspect), 0u);
}

TEST(EngineRegression, R5b_TheMemberOfAGrantThatFollowsNothingIsRemembered) {
  Rig rig;
  rig.assign(0);
  rig.revoke({0});
  rig.member.id = "m-2";
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.finish_all();
  rig.commits.clear();
  rig.member.id = "m-3";
  rig.revoke({0});
  EXPECT_TRUE(rig.commits.empty()) << "m-3 commits nothing of what m-2 owned";
  EXPECT_EQ(rig.closes, 1);
}

TEST(EngineRegression, O4_Seed6761_AnEagerAssignIsAllThereIs) {
  Rig rig(Rig::transactional(1));
  const auto before = rig.assign({0, 1, 2}, Protocol::eager);
  rig.deliver(before[2], 0, 1);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, superseded);
  const auto after = rig.assign({0}, Protocol::eager);
  EXPECT_EQ(rig.state(before[0]), OwnerState::retired);
  EXPECT_EQ(rig.state(before[1]), OwnerState::retired);
  EXPECT_EQ(rig.state(after[0]), OwnerState::active);
  rig.advance(seconds(5));
  EXPECT_EQ(rig.activated.size(), 4u) << "the superseded one is not acquired anew either";
}

TEST(EngineRegression, T8_AnAssignmentThatIsLostMeanwhileGetsNoNewOwner) {
  for (const bool told : {true, false}) {
    Rig rig(Rig::transactional(1));
    const OwnerRef owner = rig.assign(0);
    rig.deliver(owner, 0, 1);
    rig.give_back(rig.out.at(0), RecordResult::unstarted, superseded);
    if (told) {
      rig.revoke({0}, true);
    } else {
      rig.member.id = "m-2";
      rig.revoke({});
    }
    rig.advance(seconds(5));
    EXPECT_EQ(rig.activated.size(), 1u) << told;
    EXPECT_EQ(rig.engine().totals().grants, 1u) << told;
  }
}

TEST(EngineRegression, T3_ALaterTicketAtActivationStartsAgainAtT1) {
  Rig rig(Rig::transactional(1));
  rig.hold_activate = true;
  const OwnerRef first = rig.assign(0);
  ASSERT_EQ(rig.open_activates.size(), 1u);
  auto& stored = rig.store[rig.domain(0)];
  stored.lanes.resize(1);
  stored.lanes[0].token = Token(++stored.ticket);
  stored.lanes[0].owner.bytes[0] = 99;
  stored.lanes[0].next = Offset(0);
  rig.hold_activate = false;
  rig.answer(rig.open_activates.front());
  EXPECT_EQ(rig.state(first), OwnerState::retired);
  EXPECT_EQ(rig.count(EventName::effect_refused), 1u);
  rig.advance(seconds(2));
  ASSERT_EQ(rig.activated.size(), 1u);
  EXPECT_GT(rig.activated[0].owner.grant, first.grant);
  EXPECT_EQ(rig.activated[0].fence->token, Token(3));
}

TEST(EngineRegression, ATopicThatIsRecreatedBeforeT2IsReadAgain) {
  Rig rig(Rig::transactional(1));
  rig.hold_commits = true;
  rig.assign(0);
  rig.facts("t").id.bytes[5] = 77;
  rig.answer_commit({BrokerError::unknown_topic_or_partition});
  rig.hold_commits = false;
  rig.advance(seconds(2));
  while (!rig.open_commits.empty()) rig.answer_commit();
  ASSERT_EQ(rig.activated.size(), 1u);
  EXPECT_EQ(rig.activated[0].topic_id, rig.facts("t").id) << "F8";
}

// ---- commits -----------------------------------------------------------------------------------

TEST(EngineRegression, C1_AnAnswerThatComesAtTheEndOfALongFreezeIsTheAnswer) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.advance(seconds(2));
  rig.freeze(Rig::session + Rig::socket_timeout + seconds(5));
  rig.answer_commit();  // the first thing the thawed process sees
  EXPECT_EQ(rig.shown(owner).committed, Offset(10));
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 0u);
}

TEST(EngineRegression, C3_ACommitAgainThatIsRejectedIsSentOnceMore) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.advance(seconds(2));
  rig.commits.clear();
  rig.step(CommitAnswer{CommitId(999), {}});  // a late one, which may have rewound ours
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::coordinator_loading};
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.commits.size(), 1u);
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.commits.size(), 2u);
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.commits.size(), 2u) << "accepted";
}

TEST(EngineRegression, C3_AnUnresolvedLastCommitIsCountedOnce) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.start_all();
  rig.hold_commits = true;
  rig.revoke({0});
  rig.finish_all();
  rig.advance(seconds(3));
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 1u);
  rig.advance(Rig::session + Rig::socket_timeout);
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 1u);
}

TEST(EngineRegression, C3_ACommitOnItsWayWhenAllIsLostIsUnresolvedThenLate) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.hold_commits = true;
  rig.advance(seconds(2));
  rig.revoke({0}, true);
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 1u);
  rig.answer_commit();
  EXPECT_EQ(rig.count(EventName::commit_late), 1u);
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 1u);
  EXPECT_EQ(rig.engine().totals().commits_accepted, 1u) << "the start's own only";
}

TEST(EngineRegression, C1_OfTwoDrainsThatFreezeTogetherTheOneWithoutASlotSaysNotSent) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  for (const OwnerRef owner : owners) rig.deliver(owner, 0, 1);
  rig.finish_all();
  for (const OwnerRef owner : owners) rig.deliver(owner, 1, 2);
  rig.start_all();
  rig.hold_commits = true;
  rig.revoke({0});
  rig.revoke({1});
  rig.advance(milliseconds(7200));
  EXPECT_EQ(rig.revokes.size(), 2u);
  EXPECT_EQ(rig.commits.back().lines.at(0).owner, owners[0]);
  EXPECT_EQ(with_reason(rig, EventName::commit_unresolved, "not_sent"), 1u);
}

TEST(EngineRegression, R4_AHungIdleAdvanceLeavesHalfTheSliceToTheCommit) {
  Rig rig(Rig::transactional(2));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10, 100, 2);
  rig.finish_all();
  rig.step(Reached{owner, Offset(12)});
  rig.hold_advance = true;
  rig.revoke({0});
  EXPECT_EQ(rig.sent(0), Offset(0));
  EXPECT_EQ(rig.engine().next_wake(), rig.now() + seconds(1)) << "half of it";
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.sent(0), Offset(9)) << "what the lanes have stored";
  EXPECT_EQ(rig.revokes.size(), 1u);
}

// ---- the end of owners -------------------------------------------------------------------------

TEST(EngineRegression, R5_ASecondSignalAnswersWhatWaitsForItsDrain) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  rig.revoke({0});
  rig.step(AbandonRequested{});
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_EQ(rig.finished.size(), 1u);
}

TEST(EngineRegression, R10_ARevokeCutShortAndThenLostDoesNotSpoilALaterExit) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.finish_all();
  rig.deliver(owner, 1, 2);
  rig.start_all();
  rig.hold_commits = true;
  rig.revoke({0});
  rig.advance(milliseconds(5500));
  ASSERT_EQ(rig.state(owner), OwnerState::frozen);
  rig.revoke({0}, true);
  rig.finish_all();
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(5)});
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::drained);
}

TEST(EngineRegression, R10_AnOwnerFrozenByTheShutdownDoesNotWaitForTheBudgetOfALaterRevoke) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.finish_all();
  rig.deliver(owner, 1, 2);
  rig.start_all();
  rig.hold_commits = true;
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(1)});
  rig.advance(milliseconds(1100));
  ASSERT_EQ(rig.state(owner), OwnerState::frozen);
  rig.revoke({0});
  rig.advance(milliseconds(2100));
  EXPECT_EQ(rig.revokes.size(), 1u) << "its frontier was final";
}

TEST(EngineRegression, C2_Seed21237_ACommitOfADrainThatLostItsOwnersToAnotherIsCountedOnce) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.finish_all();
  rig.hold_commits = true;
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(5)});
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.advance(milliseconds(500));
  rig.revoke({0});
  rig.advance(milliseconds(1600));  // the slice of the shutdown is over
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 0u);
  rig.answer_commit();
  EXPECT_EQ(rig.engine().totals().commits_accepted, 2u) << "with the start's own";
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 0u);
  EXPECT_EQ(rig.revokes.size(), 1u);
}

TEST(EngineRegression, R11_AFatalClientEndsTheProgramOnce) {
  Rig rig;
  rig.assign(0);
  rig.step(ClientError{BrokerError::other, true, false, "boom"});
  rig.step(ClientError{BrokerError::other, true, false, "boom again"});
  EXPECT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.abandons, 1);
}

TEST(EngineRegression, R11_AGroupThatStaysAwayIsJoinedWithBackoff) {
  Rig rig;
  for (int i = 0; i < 200; ++i) {
    const int opens = rig.opens;
    rig.step(ClientError{BrokerError::group_id_not_found, true, false, "gone"});
    while (rig.opens == opens) rig.advance(milliseconds(100));
    rig.step(TimesKnown{Rig::session, Rig::heartbeat, Rig::poll_limit, Rig::socket_timeout});
    if (rig.now() > Instant(std::chrono::hours(1)) + seconds(60)) break;
  }
  EXPECT_LE(rig.opens, 15) << "in a minute";
  EXPECT_TRUE(rig.finished.empty());
}

TEST(EngineRegression, TimesThatChangeWhileClosingDoNotOpenTheMemberAgain) {
  Rig rig;
  rig.assign(0);
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(20)});
  ASSERT_EQ(rig.closes, 1);
  rig.step(TimesKnown{Rig::session, seconds(2), Rig::poll_limit, Rig::socket_timeout});
  EXPECT_EQ(rig.closes, 1);
  const OwnerRef owner = rig.assign(std::vector<int>{4}).front();
  EXPECT_EQ(owner.grant, GrantId()) << "nothing is granted while it closes";
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::drained);
}

TEST(EngineRegression, F6_AFrozenOwnerThatIsRefusedCommitsNothing) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 1);
  rig.finish_all();
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.deliver(owner, 1, 2);
  rig.finish_all();
  rig.deliver(owner, 2, 3);
  rig.start_all();
  rig.revoke({0});
  rig.advance(milliseconds(5100));
  ASSERT_EQ(rig.state(owner), OwnerState::frozen);
  const std::size_t commits = rig.commits.size();
  rig.give_back(rig.out.at(0), RecordResult::unstarted, superseded);
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_EQ(rig.revokes.size(), 1u);
  rig.answer_commit();
  rig.advance(seconds(3));
  EXPECT_EQ(rig.commits.size(), commits) << "R4: only while entitled";
}

TEST(EngineRegression, R9_Seed53473_AnEarlyDrainLeavesItsHandlersTheBudget) {
  EngineOptions options = Rig::defaults();
  options.order = Order::key;
  options.concurrency = 1;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2, 100, 2);
  rig.start_all();
  rig.give_back(rig.run_with(0), RecordResult::park);
  rig.revoke({0});
  ASSERT_EQ(rig.revokes.size(), 1u) << "R2: 1 cannot be kept";
  EXPECT_TRUE(rig.stopped.contains(owner.grant));
  rig.advance(milliseconds(4900));
  EXPECT_TRUE(rig.abandoned.empty());
  EXPECT_EQ(rig.closes, 0) << "a parked record and a rebalance end no program";
  rig.advance(milliseconds(200));
  EXPECT_TRUE(rig.abandoned.contains(owner.grant));
}

TEST(EngineRegression, R9_TheSlotsOfAbandonedAsyncRunsAreTakenByOthers) {
  EngineOptions options = Rig::defaults();
  options.async = true;
  options.concurrency = 2;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 1);
  rig.start_all();
  rig.revoke({0});
  rig.advance(seconds(8));
  ASSERT_TRUE(rig.abandoned.contains(owners[0].grant));
  rig.deliver(owners[1], 0, 5);
  EXPECT_EQ(rig.out.size(), 3u) << "two beside the one that was given up";
}

// ---- records -----------------------------------------------------------------------------------

TEST(EngineRegression, F1_WhatWaitsForRoomIsNotSkippedWhenTheLogStartJumps) {
  EngineOptions options = Rig::defaults();
  options.window_records = 2;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 6);
  rig.log(0).start = Offset(200);
  rig.step(RecordError{owner, BrokerError::offset_out_of_range, Offset(6), "out of range"});
  ASSERT_EQ(rig.starts.size(), 2u);
  EXPECT_EQ(rig.starts[1].start.offset, Offset(200));
  EXPECT_EQ(Rig::integer(*rig.last(EventName::record_skipped), "from"), 6);
  rig.finish_all();
  EXPECT_EQ(rig.engine().totals().handled, 6u);
  EXPECT_EQ(rig.engine().totals().dropped, 0u);
  EXPECT_EQ(rig.shown(owner).frontier, Offset(200));
}

TEST(EngineRegression, F1_ARestartedFetchGoesOnBehindWhatWaitsForRoom) {
  EngineOptions options = Rig::defaults();
  options.window_records = 2;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 6);
  rig.step(RecordError{owner, BrokerError::unknown_topic_or_partition, Offset(6), ""});
  ASSERT_EQ(rig.starts.size(), 2u);
  EXPECT_EQ(rig.starts[1].start.offset, Offset(6));
  EXPECT_FALSE(rig.flow[owner.grant]) << "and stands still while the window is full";
}

TEST(EngineRegression, F3_WhatTheFetchHasPassedBehindTheWaitingRecordsIsKept) {
  EngineOptions options = Rig::defaults();
  options.window_records = 2;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 6);
  rig.step(Reached{owner, Offset(9)});
  rig.step(Reached{owner, Offset(7)});  // an older one
  rig.log(0).start = Offset(8);
  rig.step(RecordError{owner, BrokerError::unknown_topic_or_partition, Offset(9), ""});
  ASSERT_EQ(rig.starts.size(), 2u);
  EXPECT_EQ(rig.starts[1].start.offset, Offset(9));
  EXPECT_EQ(rig.count(EventName::record_skipped), 0u) << "all below 9 was seen";
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(9));
}

TEST(EngineRegression, F8_ARestartedFetchCarriesTheLeaderEpochOfTheFrontier) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::unknown_topic_or_partition};
  rig.advance(seconds(2));
  ASSERT_EQ(rig.starts.size(), 2u);
  EXPECT_EQ(rig.starts[1].start.offset, Offset(5));
  EXPECT_EQ(rig.starts[1].start.leader_epoch, LeaderEpoch(3)) << "so that a truncation shows";
}

TEST(EngineRegression, F1_ABatchTheClientSkipsIsNoGap) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.step(RecordError{owner, BrokerError::bad_record, Offset(5), "bad CRC"});
  rig.deliver(owner, 9, 12);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(5));
  EXPECT_EQ(Rig::text(*rig.last(EventName::record_parked), "reason"), "undecodable");
  rig.advance(seconds(2));
  EXPECT_EQ(rig.sent(0), Offset(5));
}

TEST(EngineRegression, F8_ATruncationThatHasGrownOverAgainIsLoud) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.step(RecordError{owner, BrokerError::log_truncated, Offset(10), "truncated"});
  EXPECT_EQ(rig.shown(owner).cause, "log_went_back") << "the end is above the position again";
  EXPECT_EQ(rig.starts.size(), 1u);
}

TEST(EngineRegression, F8_APositionAboveTheEndIsLoudAlsoWithoutALeaderEpoch) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.log(0).end = Offset(4);
  rig.step(RecordError{owner, BrokerError::offset_out_of_range, Offset(10), "out of range"});
  EXPECT_EQ(rig.shown(owner).cause, "log_went_back");
  EXPECT_EQ(rig.starts.size(), 1u);
  rig.deliver(owner, 10, 14);  // was on its way
  EXPECT_EQ(rig.shown(owner).window_records, 0u) << "no admission";
  EXPECT_EQ(rig.freed.size(), rig.messages_made());
}

TEST(EngineRegression, F8_ATruncatedPositionIsNotCommittedBeforeTheEndsAreKnown) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  rig.hold_topics = true;
  rig.step(RecordError{owner, BrokerError::log_truncated, Offset(10), "truncated"});
  rig.commits.clear();
  rig.revoke({0});
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_TRUE(rig.commits.empty());
}

TEST(EngineRegression, F8_ALogThatWentBackTakesNoRoomFromOthers) {
  EngineOptions options = Rig::defaults();
  options.ready_max = 10;
  options.concurrency = 1;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 40);
  rig.start_all();
  ASSERT_EQ(rig.engine().room(), 0u);
  rig.log(0).end = Offset(4);
  rig.step(RecordError{owners[0], BrokerError::log_truncated, Offset(40), "truncated"});
  EXPECT_EQ(rig.engine().room(), 10u);
  rig.finish_all();
  EXPECT_EQ(rig.freed.size(), rig.messages_made());
}

TEST(EngineRegression, R1_RetriesOfAnOwnerThatEndsTakeNoRoomFromOthers) {
  EngineOptions options = Rig::defaults();
  options.retry_waiting_max = 2;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2);
  while (!rig.out.empty()) {
    rig.give_back(rig.out.front(), RecordResult::retry, [](RecordRun& run) {
      for (std::uint32_t i = 0; i < run.records.size(); ++i) {
        run.failures.push_back({i, "later", "busy", std::chrono::hours(1)});
      }
    });
  }
  EXPECT_EQ(rig.engine().room(), 0u);
  rig.revoke({0});
  EXPECT_GT(rig.engine().room(), 0u);
  EXPECT_GT(rig.engine().next_wake(), rig.now() + std::chrono::hours(2));
}

TEST(EngineRegression, O7_WhatTheTotalsStoppedGoesOnWhenAnotherOwnerEnds) {
  EngineOptions options = Rig::defaults();
  options.window_records_total = 8;
  Rig rig(options);
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[1], 0, 1);
  rig.finish_all(RecordResult::park);
  rig.deliver(owners[0], 0, 7);
  rig.start_all();
  rig.deliver(owners[1], 1, 4);
  ASSERT_EQ(rig.run_with(7), nullptr);
  rig.revoke({0});
  while (!rig.out.empty() && rig.out.front()->owner == owners[0]) {
    rig.give_back(rig.out.front(), RecordResult::done);
  }
  EXPECT_EQ(rig.shown(owners[1]).in_flight, 3u) << "nothing else would ever wake it";
}

// ---- store -------------------------------------------------------------------------------------

TEST(EngineRegression, T4_ALaneThatMovedParksTheFirstRecordThatIsNotDone) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 4);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, [](RecordRun& run) {
    run.records[0].result = run.records[1].result = RecordResult::done;
    run.lane_reached = Offset(2);
    run.store_error = StoreError::moved;
  });
  ASSERT_EQ(rig.count(EventName::record_parked), 1u);
  EXPECT_EQ(Rig::integer(*rig.last(EventName::record_parked), "offset"), 2);
  EXPECT_EQ(rig.shown(owner).frontier, Offset(2));
}

TEST(EngineRegression, E3_Seed57_ACommitThatComesAfterTheLookUpDoesNotStopTheLane) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, in_doubt);  // not found yet
  rig.store[rig.domain(0)].lanes[0].next = Offset(2);               // the old session commits
  rig.deliver(owner, 2, 4);
  // The unit of 0 and 1 has been dispatched again; the next run would be longer than it.
  ASSERT_EQ(rig.out.size(), 1u);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, moved);
  EXPECT_EQ(rig.count(EventName::record_parked), 0u);
  EXPECT_EQ(rig.shown(owner).frontier, Offset(2)) << "looked up again, and found";
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(4));
  EXPECT_EQ(rig.engine().totals().replayed, 2u);
}

TEST(EngineRegression, E3_Seed281_WorkFoundDoneDoesNotSayWhereTheLaneStands) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, in_doubt);
  rig.store[rig.domain(0)].lanes[0].next = Offset(3);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, [](RecordRun& run) {
    run.records[0].result = RecordResult::replayed;  // it was handled alone this time
    run.records[1].result = RecordResult::retry;
    run.lane_reached = Offset(1);
  });
  rig.deliver(owner, 3, 5);
  rig.advance(seconds(1));
  ASSERT_EQ(rig.out.size(), 1u);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, moved);
  EXPECT_EQ(rig.count(EventName::record_parked), 0u);
  EXPECT_EQ(rig.shown(owner).frontier, Offset(3));
}

TEST(EngineRegression, T4_ALaneThatMovesWithoutADoubtStillStops) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, in_doubt);
  rig.finish_all();  // the compare-and-set has decided
  rig.deliver(owner, 2, 3);
  rig.give_back(rig.out.at(0), RecordResult::unstarted, moved);
  EXPECT_EQ(rig.count(EventName::record_parked), 1u);
}

TEST(EngineRegression, E3_AWorkFoundAtTheStoreIsAnEffectOfItsOwner) {
  Rig rig(Rig::transactional(1));
  OwnerRef owner = rig.assign(0);
  auto& stored = rig.store[rig.domain(0)];
  for (int round = 0; round < 3; ++round) {
    const std::int64_t at = stored.lanes[0].next->value();
    rig.deliver(owner, at, at + 1);
    rig.store_run(*rig.out.at(0));
    rig.give_back(rig.out.at(0), RecordResult::unstarted, in_doubt);
    rig.deliver(owner, at + 1, at + 2);
    stored.lanes[0].token = Token(++stored.ticket);
    stored.lanes[0].owner.bytes[0] = 99;
    rig.give_back(rig.out.at(0), RecordResult::unstarted, superseded);
    rig.advance(seconds(2));
    ASSERT_EQ(rig.activated.size(), static_cast<std::size_t>(round) + 2) << "T8";
    owner = rig.activated.back().owner;
  }
}

TEST(EngineRegression, E3_Seed146_AnIdleAdvanceInDoubtIsRepeatedAsItWas) {
  Rig rig(Rig::transactional(2));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10, 100, 1);
  rig.finish_all();
  rig.hold_advance = true;
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_advances.size(), 1u);
  const auto first = rig.open_advances.front();
  ASSERT_EQ(first.steps.size(), 1u);
  rig.step(IdleAdvanced{first.id, owner, StoreError::in_doubt, "lost"});
  rig.step(Reached{owner, Offset(15)});
  for (const StoreError then : {StoreError::contention, StoreError::unavailable}) {
    rig.open_advances.clear();
    rig.advance(seconds(2));
    ASSERT_EQ(rig.open_advances.size(), 1u);
    const auto again = rig.open_advances.front();
    ASSERT_EQ(again.steps.size(), 1u);
    EXPECT_EQ(again.steps[0].from, first.steps[0].from);
    EXPECT_EQ(again.steps[0].to, first.steps[0].to) << "what was stored, if it was";
    rig.step(IdleAdvanced{again.id, owner, then, "again"});
    rig.deliver(owner, {{rig.message(), Offset(20), 1, 10, no_leader_epoch}});
    EXPECT_TRUE(rig.out.empty()) << "nobody knows where the lane stands";
  }
  rig.open_advances.clear();
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_advances.size(), 1u);
  rig.step(IdleAdvanced{rig.open_advances.front().id, owner, StoreError::none, {}});
  ASSERT_EQ(rig.out.size(), 1u);
  EXPECT_EQ(rig.out[0]->lane_from, first.steps[0].to);
}

// ---- time --------------------------------------------------------------------------------------

TEST(EngineRegression, R8_NoBusyLoopBetweenTheHalfLeaseAndTheNextCommit) {
  EngineOptions options = Rig::defaults();
  options.commit_interval = seconds(8);
  Rig rig(options);
  rig.assign(0);
  rig.advance(seconds(2));
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::coordinator_loading};
  rig.freeze(milliseconds(4500));  // beyond half the lease
  rig.step(Tick{});
  EXPECT_GT(rig.engine().next_wake(), rig.now());
}

TEST(EngineRegression, R2_NoBusyLoopWhileEveryOwnerDrains) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  rig.advance(seconds(4));
  rig.revoke({0});
  rig.advance(milliseconds(2600));  // half the lease and half the budget are over
  EXPECT_GT(rig.engine().next_wake(), rig.now());
}

TEST(EngineRegression, NoBusyLoopWhileAMemberWithoutPartitionsCloses) {
  EngineOptions options = Rig::defaults();
  options.until_end = true;
  Rig rig(options);
  rig.assign(std::vector<int>{});
  rig.advance(seconds(4));
  ASSERT_EQ(rig.closes, 1);
  EXPECT_GT(rig.engine().next_wake(), rig.now());
}

}  // namespace
}  // namespace tenure::core
