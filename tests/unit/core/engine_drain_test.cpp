// How owners end: R1-R11, R5b, F6, and shutdown.
#include <gtest/gtest.h>

#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

TEST(EngineDrain, R1_UnstartedRecordsAreDroppedNotCompleted) {
  EngineOptions options = Rig::defaults();
  options.order = Order::partition;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.start_all();
  rig.deliver(owner, 3, 10);  // ready behind the running run, never started
  rig.revoke({0});
  rig.deliver(owner, 10, 12);  // came late: no admission while draining
  rig.finish_all();
  EXPECT_EQ(rig.sent(0), Offset(3));
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_EQ(rig.freed.size(), rig.messages_made());
}

TEST(EngineDrain, R1_QueuedRunsComeBackUnstartedAndDoNotCount) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 40);
  ASSERT_GT(rig.out.size(), 1u);
  rig.started.insert(rig.out.front());
  const auto first = static_cast<std::int64_t>(rig.out.front()->records.size());
  rig.revoke({0});
  EXPECT_EQ(rig.out.size(), 1u) << "the others were reclaimed";
  rig.finish_all();
  EXPECT_EQ(rig.sent(0), Offset(first));
}

TEST(EngineDrain, R1_TheStopTokenFiresAtHalfTheBudgetAndTheDeadlineShowsAtOnce) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  const Instant revoked_at = rig.now();
  rig.revoke({0});
  EXPECT_EQ(rig.shown(owner).drain_deadline, revoked_at + seconds(5));
  rig.advance(milliseconds(2400));
  EXPECT_TRUE(rig.stopped.empty());
  rig.advance(milliseconds(200));
  EXPECT_TRUE(rig.stopped.contains(owner.grant));
}

TEST(EngineDrain, R2_KeptPartitionsGoOnBeingDispatchedAndCommitted) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 1);
  rig.start_all();
  rig.revoke({0});
  rig.deliver(owners[1], 0, 5);
  EXPECT_NE(rig.run_with(4), nullptr);
  while (rig.run_with(4) != nullptr) rig.give_back(rig.run_with(4), RecordResult::done);
  rig.advance(milliseconds(1500));
  EXPECT_EQ(rig.state(owners[0]), OwnerState::draining);
  EXPECT_TRUE(rig.revokes.empty());
}

TEST(EngineDrain, R2_TheDrainEndsEarlyWhenNothingStillToComeCouldBeKept) {
  EngineOptions options = Rig::defaults();
  options.order = Order::key;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2, 100, 2);  // two keys, two runs
  ASSERT_EQ(rig.out.size(), 2u);
  rig.start_all();
  rig.give_back(rig.run_with(0), RecordResult::park);  // the frontier is held at 0 for good
  const Instant before = rig.now();
  rig.revoke({0});
  EXPECT_EQ(rig.revokes.size(), 1u) << "record 1 cannot be kept, so nobody waits for it";
  EXPECT_EQ(rig.now(), before);
  EXPECT_EQ(Rig::text(*rig.last(EventName::owner_drained), "result"), "early");
}

TEST(EngineDrain, R2_EarlyEndLosesNoResultThatCouldBeKept) {
  EngineOptions options = Rig::defaults();
  options.order = Order::key;
  Rig rig(options);
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3, 100, 3);
  rig.start_all();
  rig.give_back(rig.run_with(2), RecordResult::park);
  rig.revoke({0});
  EXPECT_TRUE(rig.revokes.empty()) << "0 and 1 can still be kept";
  rig.give_back(rig.run_with(1), RecordResult::done);
  EXPECT_TRUE(rig.revokes.empty());
  rig.give_back(rig.run_with(0), RecordResult::done);
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_EQ(rig.sent(0), Offset(2));
}

TEST(EngineDrain, R2_WithLanesARunBehindAParkedRecordIsStillWaitedFor) {
  Rig rig(Rig::transactional(2));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2, 100, 2);
  rig.start_all();
  rig.give_back(rig.run_with(0), RecordResult::park);
  rig.revoke({0});
  EXPECT_TRUE(rig.revokes.empty()) << "record 1 is kept by its lane";
  rig.give_back(rig.run_with(1), RecordResult::done);
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_EQ(rig.store[rig.domain(0)].lanes[1].next, Offset(2));
}

TEST(EngineDrain, R3_TheFrontierIsFinalOnceFrozen) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.deliver(owner, 1, 2);
  rig.start_all();
  rig.give_back(rig.run_with(0), RecordResult::done);
  rig.hold_commits = true;
  rig.revoke({0});
  rig.advance(milliseconds(5100));  // budget over, commit of the frontier outstanding
  EXPECT_EQ(rig.state(owner), OwnerState::frozen);
  EXPECT_EQ(rig.sent(0), Offset(1));
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(1));
  EXPECT_EQ(rig.engine().totals().late, 1u);
  rig.answer_commit();
  EXPECT_EQ(rig.revokes.size(), 1u);
}

TEST(EngineDrain, R4_ACommitStillOutstandingIsWaitedForInsideTheSlice) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.advance(seconds(2));
  ASSERT_EQ(rig.open_commits.size(), 1u);
  rig.deliver(owner, 5, 9);
  rig.finish_all();
  rig.revoke({0});
  EXPECT_EQ(rig.state(owner), OwnerState::frozen);
  rig.answer_commit();
  ASSERT_EQ(rig.open_commits.size(), 1u);
  EXPECT_EQ(rig.sent(0), Offset(9));
  rig.answer_commit();
  EXPECT_EQ(rig.revokes.size(), 1u);
}

TEST(EngineDrain, R4_WithoutASlotInItsSliceTheCommitIsUnresolvedNotSent) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.hold_commits = true;
  rig.deliver(owner, 0, 5);
  rig.finish_all();
  rig.advance(seconds(2));
  rig.deliver(owner, 5, 9);
  rig.finish_all();
  rig.revoke({0});
  rig.advance(milliseconds(2100));
  EXPECT_EQ(rig.revokes.size(), 1u);
  std::vector<std::string> reasons;
  for (const Report& report : rig.reports) {
    if (report.name == EventName::commit_unresolved) reasons.push_back(Rig::text(report, "reason"));
  }
  const std::vector<std::string> expected{"not_sent", "revoked"};
  EXPECT_EQ(reasons, expected) << "the last commit, and the one whose answer nobody waits for";
  EXPECT_EQ(rig.sent(0), Offset(5));
}

TEST(EngineDrain, R4_ANonAnswerIsUnresolvedAndTheReleaseGoesOn) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 5);
  rig.start_all();
  rig.hold_commits = true;
  rig.revoke({0});
  rig.finish_all();
  rig.advance(milliseconds(2100));
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_EQ(rig.engine().totals().commits_unresolved, 1u);
  rig.answer_commit();  // late
  EXPECT_EQ(rig.count(EventName::commit_late), 1u);
  EXPECT_EQ(rig.engine().totals().commits_accepted, 1u) << "the start's own commit only";
  (void)owner;
}

TEST(EngineDrain, C3_ALateAnswerMakesTheNextOwnerHereCommitItsFrontierAgain) {
  Rig rig;
  const OwnerRef first = rig.assign(0);
  rig.deliver(first, 0, 5);
  rig.start_all();
  rig.hold_commits = true;
  rig.revoke({0});
  rig.finish_all();
  rig.advance(milliseconds(2100));
  ASSERT_EQ(rig.revokes.size(), 1u);
  const SendCommit late = rig.open_commits.front();
  rig.open_commits.clear();
  rig.advance(Rig::session + Rig::socket_timeout);
  rig.hold_commits = false;
  const OwnerRef second = rig.assign(0);
  rig.advance(seconds(1));
  const std::size_t before = rig.commits.size();
  rig.step(CommitAnswer{late.id, {{late.lines[0].owner, BrokerError::none}}});
  rig.advance(seconds(2));
  ASSERT_GT(rig.commits.size(), before);
  EXPECT_EQ(rig.commits.back().lines[0].owner, second);
}

TEST(EngineDrain, R5_EveryRebalanceIsAnsweredExactlyOnceAlsoEmptyOnes) {
  Rig rig;
  rig.assign(std::vector<int>{});
  EXPECT_EQ(rig.assigns.size(), 1u);
  rig.revoke({});
  EXPECT_EQ(rig.revokes.size(), 1u);
  rig.assign({0, 1, 2});
  rig.revoke({1});
  rig.assign({5});
  rig.revoke({0, 2, 5});
  EXPECT_EQ(rig.assigns.size(), 3u);
  EXPECT_EQ(rig.revokes.size(), 3u);
}

TEST(EngineDrain, R5_ARevokeThatOverlapsADrainIsAnsweredByItself) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 1);
  rig.deliver(owners[1], 0, 1);
  rig.start_all();
  const RebalanceId first = rig.revoke({0});
  const RebalanceId second = rig.revoke({1});
  rig.advance(seconds(8));
  ASSERT_EQ(rig.revokes.size(), 2u);
  EXPECT_EQ(rig.revokes[0].id, first);
  EXPECT_EQ(rig.revokes[1].id, second);
}

TEST(EngineDrain, R5b_AChangedMemberIdMeansLostWhateverTheFlagSays) {
  for (const Member& now : {Member{"m-2", Epoch(2), ""}, Member{"", Epoch(2), ""},
                            Member{"m-1", Epoch(-1), ""}, Member{"m-1", Epoch(4), ""}}) {
    Rig rig;
    rig.member.epoch = Epoch(5);
    const auto owners = rig.assign({0, 1});
    rig.deliver(owners[0], 0, 3);
    rig.finish_all();
    rig.commits.clear();
    rig.member = now;
    rig.revoke({0});
    EXPECT_EQ(rig.state(owners[0]), OwnerState::retired);
    EXPECT_EQ(rig.state(owners[1]), OwnerState::retired) << "everything owned before is lost";
    EXPECT_TRUE(rig.commits.empty()) << "nothing may be committed";
    EXPECT_EQ(rig.revokes.size(), 1u) << "answered all the same";
    EXPECT_EQ(rig.closes, 1) << "this client is closed";
    rig.step(Closed{});
    rig.advance(seconds(1));
    EXPECT_EQ(rig.opens, 2) << "and a new one joins";
  }
}

TEST(EngineDrain, R5b_AHigherEpochAloneIsNormal) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.finish_all();
  rig.member.epoch = Epoch(9);
  rig.revoke({0});
  EXPECT_EQ(rig.sent(0), Offset(3));
  EXPECT_EQ(rig.closes, 0);
}

TEST(EngineDrain, R5b_IsReadAgainAfterTheDrainBeforeTheLastCommit) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.start_all();
  rig.revoke({0});
  rig.commits.clear();
  rig.member.id = "m-2";  // expelled while it drained; the client swallowed it
  rig.finish_all();
  EXPECT_TRUE(rig.commits.empty());
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_EQ(rig.closes, 1);
}

TEST(EngineDrain, R6_LostCancelsRetiresAndReleasesAtTheEventWithoutACommit) {
  Rig rig(Rig::transactional());
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 3);
  rig.start_all();
  rig.commits.clear();
  rig.revoke({0, 1}, true);
  EXPECT_EQ(rig.state(owners[0]), OwnerState::retired);
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_TRUE(rig.commits.empty());
  EXPECT_TRUE(rig.stopped.contains(owners[0].grant)) << "lost: the stop token fires at once";
  EXPECT_TRUE(rig.cancelled.contains(owners[0].grant)) << "T6";
  rig.finish_all();
  EXPECT_EQ(rig.engine().totals().late, 3u);
  rig.advance(seconds(30));
  EXPECT_TRUE(rig.commits.empty());
}

TEST(EngineDrain, R6_IllegalGenerationWithAValidEpochIsARunningRebalance) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.finish_all();
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::illegal_generation};
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  rig.advance(seconds(2));
  EXPECT_EQ(rig.shown(owner).committed, Offset(3));
}

TEST(EngineDrain, R6_IllegalGenerationWithANegativeEpochIsLost) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.finish_all();
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::illegal_generation};
  rig.member.epoch = Epoch(-1);
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
}

TEST(EngineDrain, R6_ACommitSayingUnknownMemberLosesAllAndAClientThatStaysSilentIsReplaced) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.finish_all();
  rig.commit_errors[{"t", Partition(0)}] = {BrokerError::unknown_member_id};
  rig.advance(milliseconds(1100));
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_EQ(rig.closes, 0);
  rig.advance(Rig::session + seconds(1));
  EXPECT_EQ(rig.closes, 1);
}

TEST(EngineDrain, R7_TheBudgetIsBoundedByThePollLimitMinusMarginAndCommitSlice) {
  Rig rig;
  rig.step(TimesKnown{Rig::session, seconds(3), seconds(8), Rig::socket_timeout});
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  rig.revoke({0});
  // 8 s - max(1 s margin, 3 s heartbeat) - 2 s slice = 3 s, below the configured 5 s
  EXPECT_EQ(*rig.shown(owner).drain_deadline - rig.now(), seconds(3));
}

TEST(EngineDrain, R9_AHandlerThatIgnoresItsStopTokenIsAbandonedAndThePartitionMoves) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  const Instant revoked = rig.now();
  rig.revoke({0});
  rig.advance(milliseconds(4900));
  EXPECT_EQ(rig.state(owner), OwnerState::draining);
  rig.advance(milliseconds(200));
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_LE(rig.now() - revoked, milliseconds(5500)) << "frozen within the budget + 0.5 s";
  EXPECT_EQ(rig.revokes.size(), 1u);
  EXPECT_TRUE(rig.abandoned.contains(owner.grant));
  rig.commits.clear();
  rig.finish_all();  // late
  EXPECT_EQ(rig.engine().totals().late, 1u);
  rig.advance(seconds(5));
  EXPECT_TRUE(rig.commits.empty());
  EXPECT_TRUE(rig.dropped.contains(owner.grant)) << "O5 its last holder has let go";
}

TEST(EngineDrain, R9_AsManyAbandonedAsConcurrencyShutsDownWithExit75) {
  EngineOptions options = Rig::defaults();
  options.concurrency = 2;
  Rig rig(options);
  for (int i = 0; i < 2; ++i) {
    const OwnerRef owner = rig.assign(i);
    rig.deliver(owner, 0, 1);
    rig.start_all();
    rig.revoke({i});
    rig.advance(seconds(8));
  }
  rig.advance(seconds(30));
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::cut_short);
}

TEST(EngineDrain, R10_ARebalanceDuringShutdownIsServedWithinItsOwnBudget) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 1);
  rig.deliver(owners[1], 0, 1);
  rig.start_all();
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(20)});
  rig.advance(seconds(1));
  rig.revoke({0});
  rig.advance(seconds(8));
  EXPECT_EQ(rig.revokes.size(), 1u) << "not only at the end of the shutdown budget";
  EXPECT_EQ(rig.state(owners[1]), OwnerState::draining);
  rig.assign({2});  // while stopping: answered, never started
  EXPECT_EQ(rig.assigns.size(), 2u);
  rig.finish_all();
  EXPECT_EQ(rig.closes, 1);
  EXPECT_EQ(rig.sent(1), Offset(1));
}

TEST(EngineDrain, R10_ShutdownEndsInItsBudgetWhateverTheHandlerDoes) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  const Instant asked = rig.now();
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(4)});
  rig.advance(seconds(10));
  EXPECT_EQ(rig.closes, 1);
  ASSERT_EQ(rig.finished.size(), 1u) << "the close watchdog ends it";
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::cut_short);
  EXPECT_LE(rig.now() - asked, seconds(10));
}

TEST(EngineDrain, R10_ShutdownWhileJoiningClosesAtOnce) {
  Rig rig;
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(20)});
  EXPECT_EQ(rig.closes, 1);
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::drained);
}

TEST(EngineDrain, R10_ASecondRequestAbandonsEverythingAtOnce) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 1);
  rig.start_all();
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(20)});
  rig.step(AbandonRequested{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::cut_short);
}

TEST(EngineDrain, R5c_TheClientIsClosedOnlyWhenNothingIsInProgress) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 2);
  rig.start_all();
  rig.hold_commits = true;
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(20)});
  EXPECT_EQ(rig.closes, 0);
  rig.finish_all();
  EXPECT_EQ(rig.closes, 0) << "the last commit is outstanding";
  rig.answer_commit();
  EXPECT_EQ(rig.closes, 1);
  rig.revoke({0});
  EXPECT_EQ(rig.revokes.size(), 1u) << "answered at once during the close";
}

TEST(EngineDrain, R11_AFatalClientErrorLosesEveryOwnerAndEnds) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.step(ClientError{BrokerError::other, true, false, "boom"});
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::fatal);
}

TEST(EngineDrain, R11_AFencedInstanceIdEndsWithExit76) {
  Rig rig;
  rig.assign(0);
  rig.step(ClientError{BrokerError::fenced_instance_id, true, false, "fenced"});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::fenced);
}

TEST(EngineDrain, R11_AnUnreleasedInstanceIdIsWaitedOutForTwoSessionTimeoutsAtMost) {
  Rig rig;
  for (int i = 0; i < 5; ++i) {
    rig.step(ClientError{BrokerError::unreleased_instance_id, true, false, "in use"});
    rig.advance(seconds(2));
    rig.step(TimesKnown{Rig::session, Rig::heartbeat, Rig::poll_limit, Rig::socket_timeout});
  }
  EXPECT_TRUE(rig.finished.empty());
  EXPECT_EQ(rig.opens, 6);
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.state(owner), OwnerState::active);
}

TEST(EngineDrain, R11_AnInstanceIdThatStaysInUseEndsWithExit76) {
  Rig rig;
  for (int i = 0; i < 30 && rig.finished.empty(); ++i) {
    rig.step(ClientError{BrokerError::unreleased_instance_id, true, false, "in use"});
    rig.advance(seconds(2));
    rig.step(TimesKnown{Rig::session, Rig::heartbeat, Rig::poll_limit, Rig::socket_timeout});
  }
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::fenced);
}

TEST(EngineDrain, F6_ARefusedEffectRetiresTheOwnerAndIsNoOutcome) {
  Rig rig(Rig::transactional(1));
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 3);
  rig.give_back(rig.out.at(0), RecordResult::done, [](RecordRun& run) {
    run.store_error = StoreError::superseded;
    run.lane_reached.reset();
  });
  EXPECT_EQ(rig.state(owner), OwnerState::retired);
  EXPECT_EQ(rig.engine().totals().handled, 0u);
  EXPECT_TRUE(rig.dropped.contains(owner.grant));
}

TEST(EngineDrain, AStopOutcomeDrainsAllAndEndsWithExit3) {
  Rig rig;
  const auto owners = rig.assign({0, 1});
  rig.deliver(owners[0], 0, 1);
  rig.deliver(owners[1], 0, 1);
  rig.start_all();
  rig.give_back(rig.out.front(), RecordResult::stop);
  rig.finish_all();
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::outcome_stop);
}

TEST(EngineDrain, UntilEndStopsWhenTheEndsReadAtTheJoinArePassed) {
  EngineOptions options = Rig::defaults();
  options.until_end = true;
  Rig rig(options);
  rig.log(0).end = Offset(5);
  rig.log(1).end = Offset(0);
  const auto owners = rig.assign({0, 1});
  rig.advance(seconds(2));
  EXPECT_EQ(rig.closes, 0);
  rig.deliver(owners[0], 0, 5);
  rig.finish_all();
  EXPECT_EQ(rig.closes, 1);
  EXPECT_EQ(rig.sent(0), Offset(5));
}

TEST(EngineDrain, R10_ACloseThatHangsIsGivenUpByTheWatchdog) {
  Rig rig;
  rig.assign(0);
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(20)});
  EXPECT_EQ(rig.closes, 1);
  rig.advance(milliseconds(3100));
  EXPECT_EQ(rig.abandons, 1);
  ASSERT_EQ(rig.finished.size(), 1u);
}

}  // namespace
}  // namespace tenure::core
