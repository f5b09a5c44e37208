#include <gtest/gtest.h>

#include "tenure/completion.hpp"
#include "tenure/ids.hpp"
#include "tenure/outcome.hpp"
#include "tenure/owner.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"

namespace tenure {
namespace {

TEST(Names, AreTheWordsOfTheInterface) {
  EXPECT_EQ(name(OutcomeKind::done), "done");
  EXPECT_EQ(name(OwnerState::draining), "draining");
  EXPECT_EQ(name(RetiredReason::superseded), "superseded");
  EXPECT_EQ(name(StartSource::reset_policy), "reset_policy");
  EXPECT_EQ(name(CommitOutcome::unresolved), "unresolved");
  EXPECT_EQ(name(Protocol::consumer), "consumer");
  EXPECT_EQ(name(Order::none), "none");
  EXPECT_EQ(name(Verdict::late), "late");
  EXPECT_EQ(name(BrokerError::illegal_generation), "illegal_generation");
  EXPECT_EQ(name(StoreError::in_doubt), "in_doubt");
}

TEST(Names, AUuidIsWrittenIn8And4And4And4And12Digits) {
  Uuid uuid;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(i * 17);
  }
  EXPECT_EQ(uuid.text(), "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_TRUE(Uuid{}.zero());
}

}  // namespace
}  // namespace tenure
