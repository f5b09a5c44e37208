// memory::Transaction, memory::Database and the fault hooks; the fence itself is judged by the
// conformance suite.
#include <gtest/gtest.h>

#include <atomic>

#include "contract/store/store_process.hpp"
#include "tenure/memory/store.hpp"

namespace tenure::memory {
namespace {

using testing::Holder;
using testing::StoreProcess;

constexpr LaneRule rule{4, Order::key};

class MemoryStore : public ::testing::Test, public testing::StoreWorld {
 protected:
  MemoryStore() : process(*this), holder(process.acquire(domain, rule, Offset(0))) {}

  std::unique_ptr<EffectStore> make_store(std::chrono::milliseconds) override {
    return std::make_unique<Store>(database);
  }
  void write(EffectUnit&, const testing::StoredEffect&) override {}
  std::vector<testing::StoredEffect> effects() override { return {}; }

  static Transaction& transaction(EffectUnit& unit) {
    return *static_cast<Transaction*>(unit.transaction());
  }
  std::unique_ptr<EffectUnit> unit(std::uint16_t lane = 0) {
    return process.open_unit(holder, lane, Offset(0));
  }
  Store& store() { return static_cast<Store&>(process.store()); }

  const std::shared_ptr<Database> database = std::make_shared<Database>();
  const Domain domain{"billing", "cluster-1", Uuid{}, Partition(0)};
  StoreProcess process;
  Holder holder;
};

TEST_F(MemoryStore, ATransactionSeesItsOwnWritesAndOthersDoNot) {
  database->put("a", "1");
  database->put("b", "2");
  const auto one = unit();
  Transaction& tx = transaction(*one);
  EXPECT_EQ(*tx.get("a"), "1");
  tx.put("a", "9");
  tx.erase("b");
  tx.put("c", std::string("\0binary", 7));
  EXPECT_EQ(*tx.get("a"), "9");
  EXPECT_EQ(*tx.get("b"), std::nullopt);
  EXPECT_EQ(*tx.get("none"), std::nullopt);
  EXPECT_EQ(database->get("a"), "1");
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
  EXPECT_EQ(database->entries(),
            (std::map<std::string, std::string>{{"a", "9"}, {"c", std::string("\0binary", 7)}}));
  EXPECT_EQ(database->lanes(domain).at(0).next_offset, Offset(1));
}

TEST_F(MemoryStore, AReadThatChangedIsContentionAndKeepsNothing) {
  database->put("balance", "10");
  const auto one = unit(0);
  const auto two = unit(1);
  for (EffectUnit* each : {one.get(), two.get()}) {
    Transaction& tx = transaction(*each);
    tx.put("balance", **tx.get("balance") + "+1");
  }
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
  EXPECT_EQ(StoreProcess::commit(*two, Offset(1)).verdict, UnitVerdict::contention);
  EXPECT_EQ(database->get("balance"), "10+1");
  EXPECT_EQ(database->lanes(domain).at(1).next_offset, Offset(0));
}

TEST_F(MemoryStore, AnAbsenceThatEndedIsContentionToo) {
  const auto one = unit();
  EXPECT_EQ(*transaction(*one).get("new"), std::nullopt);
  transaction(*one).put("other", "x");
  database->put("new", "1");
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::contention);
}

TEST_F(MemoryStore, T6_AnEndedHandleAnswersRetired) {
  const auto one = unit();
  process.store().cancel(holder.owner);
  const auto answer = transaction(*one).get("a");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::retired);
  transaction(*one).put("a", "1");
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::retired);
  EXPECT_TRUE(database->entries().empty());
}

TEST_F(MemoryStore, AFaultStrikesTheNextRequestOrCommitOnce) {
  store().fail_next(StoreError::unavailable);
  EXPECT_EQ(process.reserve(holder).error, StoreError::unavailable);
  EXPECT_EQ(process.reserve(holder).error, StoreError::none);
  store().fail_next(StoreError::contention);
  EXPECT_EQ(process.apply(holder, 0, Offset(0), Offset(1)).verdict, UnitVerdict::contention);
  store().fail_next(StoreError::unavailable);
  EXPECT_EQ(process.look_up(holder, 0).error, StoreError::unavailable);
  store().fail_next(StoreError::in_doubt);
  EXPECT_EQ(process.activate(holder, Offset(0)).error, StoreError::in_doubt);
  store().fail_next(StoreError::contention);
  EXPECT_EQ(process.advance_idle(holder, {{1, Offset(0), Offset(1)}}).error,
            StoreError::contention);
}

TEST_F(MemoryStore, E3_ALostReplyIsInDoubtAppliedOrNot) {
  for (const bool applied : {false, true}) {
    store().lose_next_commit_reply(applied);
    const auto one = unit();
    transaction(*one).put("a", "1");
    EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::in_doubt);
    EXPECT_EQ(database->get("a").has_value(), applied);
    EXPECT_EQ(process.look_up(holder, 0).next_offset, applied ? Offset(1) : Offset(0));
  }
}

TEST_F(MemoryStore, AStalledStoreAnswersAfterResume) {
  store().stall();
  std::atomic<int> answers{0};
  const auto one = unit();
  transaction(*one).put("a", "1");
  one->commit(Offset(1), no_leader_epoch, [&](UnitResult result) {
    EXPECT_EQ(result.verdict, UnitVerdict::applied);
    ++answers;
  });
  EXPECT_EQ(answers, 0);
  EXPECT_TRUE(database->entries().empty());
  store().resume();
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(database->get("a"), "1");
}

TEST_F(MemoryStore, T6_ACommitThatWasTakenButNotDoneCanStillBeCancelled) {
  store().stall();
  std::atomic<int> answers{0};
  const auto one = unit();
  transaction(*one).put("a", "1");
  one->commit(Offset(1), no_leader_epoch, [&](UnitResult result) {
    EXPECT_EQ(result.verdict, UnitVerdict::retired);
    ++answers;
  });
  store().cancel(holder.owner);
  store().resume();
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(database->entries().empty());
}

TEST_F(MemoryStore, AnImageBringsBackEntriesTicketsAndLanes) {
  database->put("a", "1");
  const auto image = database->image();
  EXPECT_EQ(process.apply(holder, 0, Offset(0), Offset(5)).verdict, UnitVerdict::applied);
  database->put("a", "2");
  const auto reader = unit(1);
  EXPECT_EQ(*transaction(*reader).get("a"), "2");
  database->restore(*image);
  EXPECT_EQ(database->get("a"), "1");
  EXPECT_EQ(database->lanes(domain).at(0).next_offset, Offset(0));
  // As many changes as the image has lost: what was read has changed all the same.
  database->put("a", "3");
  database->put("a", "4");
  EXPECT_EQ(StoreProcess::commit(*reader, Offset(1)).verdict, UnitVerdict::contention);
}

}  // namespace
}  // namespace tenure::memory
