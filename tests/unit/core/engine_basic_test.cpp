#include <gtest/gtest.h>

#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

TEST(Engine, AGrantIsAnsweredAtOnceAndBecomesActiveWithoutAStore) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  ASSERT_EQ(rig.starts.size(), 1u);
  EXPECT_EQ(rig.starts[0].start.offset, Offset(0));
  // C8: the start position was committed, which also began the lease.
  EXPECT_EQ(rig.sent(0), Offset(0));
}

TEST(Engine, FinishedRecordsAreCommittedThroughTheContiguousFrontier) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 10);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(10));
  rig.advance(seconds(2));
  EXPECT_EQ(rig.sent(0), Offset(10));
}

TEST(Engine, ATransactionalOwnerGoesThroughTicketValidationAndActivation) {
  Rig rig(Rig::transactional());
  const OwnerRef owner = rig.assign(0);
  EXPECT_EQ(rig.state(owner), OwnerState::active);
  rig.deliver(owner, 0, 100);
  rig.finish_all();
  EXPECT_EQ(rig.shown(owner).frontier, Offset(100));
  rig.advance(seconds(3));
  EXPECT_EQ(rig.sent(0), Offset(100));
}

TEST(Engine, ARevokedOwnerDrainsCommitsRetiresAndThenReleases) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 4);
  ASSERT_FALSE(rig.out.empty());
  rig.start_all();
  rig.trace.clear();
  rig.revoke({0});
  EXPECT_EQ(rig.state(owner), OwnerState::draining);
  EXPECT_TRUE(rig.revokes.empty());
  rig.finish_all();
  EXPECT_EQ(rig.sent(0), Offset(4));
  ASSERT_EQ(rig.revokes.size(), 1u);
  const std::vector<std::string> expected{"commit", "forget", "answer_revoke"};
  EXPECT_EQ(rig.trace, expected);
  EXPECT_EQ(rig.freed.size(), rig.messages_made());
}

TEST(Engine, ShutdownDrainsCommitsClosesAndFinishes) {
  Rig rig;
  const OwnerRef owner = rig.assign(0);
  rig.deliver(owner, 0, 4);
  rig.start_all();
  rig.step(StopRequested{StopRequested::Cause::asked, seconds(5)});
  rig.finish_all();
  EXPECT_EQ(rig.sent(0), Offset(4));
  EXPECT_EQ(rig.closes, 1);
  rig.step(Closed{});
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].reason, Finished::Reason::drained);
}

}  // namespace
}  // namespace tenure::core
