// Between two commits a record that goes well takes nothing from the heap, from its delivery to
// the frontier that has passed it.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "support/allocation_count.hpp"
#include "unit/core/engine_rig.hpp"

namespace tenure::core {
namespace {

struct Case {
  const char* name;
  Order order;
  bool transaction;
  bool async;
  std::uint64_t window_records;
  friend std::ostream& operator<<(std::ostream& out, const Case& shown) {
    return out << shown.name;
  }
};

class EngineAllocation : public testing::TestWithParam<Case> {
 protected:
  static EngineOptions options() {
    EngineOptions options = GetParam().transaction ? Rig::transactional(8) : Rig::defaults();
    options.order = GetParam().order;
    if (options.order == Order::partition) options.lanes = 1;
    options.async = GetParam().async;
    options.concurrency = 16;
    options.window_records = GetParam().window_records;
    options.until_end = true;  // asks after each step whether all is done
    return options;
  }

  EngineAllocation() : rig_(options()), engine_(rig_.engine()), owners_(join()) {
    commands_.commands.reserve(4096);  // the runtime's, reused by it; not what is measured here
    commands_.dispatched.reserve(4096);
    commands_.freed.reserve(4096);
    out_.reserve(4096);
    records_.resize(256);
  }

  std::vector<OwnerRef> join() {
    for (const int p : {0, 1}) rig_.log(p).end = Offset(1'000'000'000);
    return rig_.assign({0, 1});
  }

  void take_in() {
    freed_ += commands_.freed.size();
    for (const Command& command : commands_.commands) {
      if (const auto* flow = std::get_if<SetFlow>(&command)) {
        flow_[flow->owner == owners_[1] ? 1 : 0] = flow->open;
      }
      if (std::holds_alternative<SendCommit>(command)) ++commits_;
    }
    out_.insert(out_.end(), commands_.dispatched.begin(), commands_.dispatched.end());
    commands_.clear();
    static_cast<void>(engine_.touched());
  }

  void deliver(std::size_t owner) {
    if (!flow_[owner]) return;
    for (Delivered& record : records_) {
      const std::int64_t offset = next_[owner]++;
      record = {&message_, Offset(offset),
                static_cast<std::uint64_t>(offset * 7919 % 1000) * 0x9e3779b97f4a7c15ULL, 100,
                LeaderEpoch(3)};
    }
    delivered_ += records_.size();
    now_ += Duration(500);
    engine_.step(RecordsDelivered{owners_[owner], records_}, now_, commands_);
    take_in();
  }

  void finish_some(std::size_t leave) {
    while (out_.size() > leave) {
      RecordRun* const run = out_.back();
      out_.pop_back();
      for (RunRecord& record : run->records) record.result = RecordResult::done;
      run->took = std::chrono::microseconds(20);
      if (GetParam().transaction) run->lane_reached = run->records.back().offset.next();
      now_ += Duration(100);
      engine_.step(RunReturned{run}, now_, commands_);
      take_in();
    }
  }

  /// Less than a commit interval of it altogether.
  void work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      deliver(0);
      deliver(1);
      finish_some(static_cast<std::size_t>(round % 3) * 4);
    }
    finish_some(0);
  }

  Rig rig_;
  Engine& engine_;
  const std::vector<OwnerRef> owners_;
  Instant now_ = rig_.now();
  Commands commands_;
  std::vector<RecordRun*> out_;
  std::vector<Delivered> records_;
  std::int64_t next_[2] = {0, 0};
  bool flow_[2] = {true, true};
  int message_ = 0;
  std::uint64_t delivered_ = 0, freed_ = 0, commits_ = 0;
};

TEST_P(EngineAllocation, TheRecordPathTakesNothingFromTheHeap) {
  work(60);
  const std::uint64_t records = delivered_;
  const std::uint64_t before = test::allocations();
  work(200);
  EXPECT_EQ(test::allocations() - before, 0u) << "for " << delivered_ - records << " records";
  EXPECT_GE(delivered_ - records, 20'000u);
  EXPECT_EQ(freed_, delivered_);
  EXPECT_EQ(commits_, 0u) << "a commit a second may allocate; this is what is between them";
  for (std::size_t owner = 0; owner < 2; ++owner) {
    EXPECT_EQ(engine_.snapshot(owners_[owner])->frontier, Offset(next_[owner]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Orders, EngineAllocation,
    testing::Values(Case{"OrderNone", Order::none, false, false, 1024},
                    Case{"OrderKey", Order::key, false, false, 1024},
                    Case{"OrderPartition", Order::partition, false, false, 1024},
                    Case{"AsyncOrderNone", Order::none, false, true, 1024},
                    Case{"TransactionByKey", Order::key, true, false, 1024},
                    Case{"TransactionByPartition", Order::partition, true, false, 1024},
                    Case{"AWindowThatIsAlwaysFull", Order::key, false, false, 100}),
    [](const auto& shown) { return shown.param.name; });

}  // namespace
}  // namespace tenure::core
