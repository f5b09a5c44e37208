// The record path takes nothing from the heap once the window has been as full as it gets.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <new>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/window.hpp"
#include "support/allocation_count.hpp"
#include "support/counting_new.hpp"

namespace tenure::core {
namespace {

struct Mode {
  const char* name;
  Order order;
  std::uint16_t lanes;
  friend std::ostream& operator<<(std::ostream& out, const Mode& mode) { return out << mode.name; }
};

class WindowAllocation : public testing::TestWithParam<Mode> {
 protected:
  WindowAllocation() : window_(options(), Offset(0), progress()) {}

  static Window::Options options() {
    Window::Options options;
    options.order = GetParam().order;
    options.store_lanes = GetParam().lanes;
    options.run_records_max = 64;
    return options;
  }
  static std::vector<LaneProgress> progress() {
    std::vector<LaneProgress> lanes;
    for (std::uint16_t lane = 0; lane < GetParam().lanes; ++lane) {
      lanes.push_back({lane, Offset(0), LeaderEpoch(0)});
    }
    return lanes;
  }

  void admit(std::uint64_t count, std::uint64_t keys) {
    records_.resize(count);
    for (Delivered& record : records_) {
      const std::uint64_t number = offset_++;
      const std::uint64_t key = number * 7919 % keys + (number / 10'000 * keys);
      record = {&message_, Offset(static_cast<std::int64_t>(number)), key * 0x9e3779b97f4a7c15ULL,
                100, LeaderEpoch(1)};
    }
    ++now_;
    window_.admit(records_, Instant(Duration(now_)), held_, freed_);
  }

  /// Takes all there is into the pool of runs and settles it, a few records of it after a retry.
  void work(bool fail) {
    for (;;) {
      std::size_t runs = 0;
      for (; runs < runs_.size() && window_.take(runs_[runs], 64, Instant(Duration(now_)));
           ++runs) {
      }
      if (runs == 0) break;
      for (std::size_t n = 0; n < runs; ++n) {
        for (RunRecord& record : runs_[n].records) record.result = RecordResult::done;
        if (fail && n % 16 == 3) {
          for (RunRecord& record : runs_[n].records) record.result = RecordResult::unstarted;
          runs_[n].records.front().result = RecordResult::retry;
        }
        window_.settle(runs_[n], Instant(Duration(now_)), held_, freed_);
      }
      for (const Window::Held& held : held_) {
        window_.release(held.ordinal, true, Instant(Duration(now_)));
      }
      held_.clear();
      freed_.clear();
      fail = false;
    }
  }

  Window window_;
  char message_ = 0;
  std::uint64_t offset_ = 0;
  std::int64_t now_ = 0;
  std::vector<Delivered> records_;
  std::vector<Window::Held> held_;
  std::vector<MessageHandle> freed_;
  std::vector<core::Run> runs_ = std::vector<core::Run>(300);
};

TEST_P(WindowAllocation, NothingIsAllocatedInSteadyState) {
  const auto round = [this] {
    admit(1000, 200);
    work(false);
    admit(1, 200);
    work(false);
    admit(700, 200);
    work(true);
  };
  for (int n = 0; n < 200; ++n) round();
  const std::uint64_t before = test::allocations();
  for (int n = 0; n < 500; ++n) round();
  EXPECT_EQ(test::allocations(), before) << "in 850 000 records";
  EXPECT_EQ(window_.frontier(), window_.position());
}

// With order partition nothing passes a stuck record.
class WindowAllocationBehindAStuckRecord : public WindowAllocation {};

TEST_P(WindowAllocationBehindAStuckRecord, NothingIsAllocatedPerRecord) {
  admit(1, 1);
  core::Run stuck;
  ASSERT_TRUE(window_.take(stuck, 1, Instant(Duration(now_))));
  offset_ = 200 * 1000 + 1;  // from here on other keys
  for (int n = 0; n < 40; ++n) {
    admit(1000, 200);
    work(false);
  }
  const std::uint64_t before = test::allocations();
  for (int n = 0; n < 1000; ++n) {
    admit(1000, 200);
    work(false);
  }
  // The ring of folded segments doubles now and then. In a store lane other records wait behind
  // the stuck one, so that no segment folds.
  const std::uint64_t segments = GetParam().lanes == 0 ? 0 : 1'000'000 / 256;
  EXPECT_LE(test::allocations() - before, segments + 16) << "in a million records";
  for (RunRecord& record : stuck.records) record.result = RecordResult::done;
  window_.settle(stuck, Instant(Duration(now_)), held_, freed_);
  work(false);
  EXPECT_EQ(window_.frontier(), window_.position());
}

constexpr Mode order_none{"OrderNone", Order::none, 0};
constexpr Mode order_key{"OrderKey", Order::key, 0};
constexpr Mode order_partition{"OrderPartition", Order::partition, 0};
constexpr Mode lanes_by_key{"StoreLanesByKey", Order::key, 8};
constexpr Mode lanes_without_order{"StoreLanesWithOrderNone", Order::none, 8};

const auto mode_name = [](const auto& test) { return std::string(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Modes, WindowAllocation,
                         testing::Values(order_none, order_key, order_partition, lanes_by_key,
                                         lanes_without_order),
                         mode_name);
INSTANTIATE_TEST_SUITE_P(Modes, WindowAllocationBehindAStuckRecord,
                         testing::Values(order_none, order_key, lanes_by_key, lanes_without_order),
                         mode_name);

// A wait that ends early because the run is full leaves nothing behind until its time.
TEST(WindowAllocationOfWaits, EndedEarlyTheyAllocateNothing) {
  Window::Options options;
  options.run_records_max = 3;
  options.run_wait = std::chrono::hours(1);
  Window window(options, Offset(0), {});
  char message = 0;
  std::int64_t offset = 0;
  core::Run run;
  std::vector<Window::Held> held;
  std::vector<MessageHandle> freed;
  // Another queue waits in front of it all the time.
  const Delivered other{&message, Offset(offset++), 8, 1, LeaderEpoch(1)};
  window.admit(std::span(&other, 1), Instant{}, held, freed);
  const auto round = [&] {
    const Instant now{Duration(offset)};
    for (int n = 0; n < 3; ++n, ++offset) {
      const Delivered record{&message, Offset(offset), 7, 1, LeaderEpoch(1)};
      ASSERT_FALSE(window.take(run, 3, now));
      window.admit(std::span(&record, 1), now, held, freed);
    }
    ASSERT_TRUE(window.take(run, 3, now));
    for (RunRecord& record : run.records) record.result = RecordResult::done;
    window.settle(run, now, held, freed);
    freed.clear();
  };
  // The other queue's record holds the frontier. Between these rounds the ring of folded segments
  // (256 records each) does not double, but a list with an entry a round would.
  for (int n = 0; n < 50'000; ++n) round();
  const std::uint64_t before = test::allocations();
  for (int n = 0; n < 30'000; ++n) round();
  EXPECT_EQ(test::allocations(), before);
}

// What is remembered of a record that failed goes when the record is terminal.
TEST(WindowAllocationOfRetries, FailedRecordsAreForgottenWhenTheyAreDoneOrFinished) {
  Window window({}, Offset(0), {});
  char message = 0;
  std::int64_t offset = 0;
  core::Run run;
  std::vector<Window::Held> held;
  std::vector<MessageHandle> freed;
  const auto attempt = [&](RecordResult result) {
    ASSERT_TRUE(window.take(run, 1, Instant{}));
    run.records[0].result = result;
    held.clear();
    window.settle(run, Instant{}, held, freed);
  };
  const auto round = [&] {
    for (const bool finished : {false, true}) {
      const Delivered record{&message, Offset(offset++), 7, 1, LeaderEpoch(1)};
      window.admit(std::span(&record, 1), Instant{}, held, freed);
      attempt(RecordResult::retry);
      window.release(held.at(0).ordinal, true, Instant{});
      attempt(finished ? RecordResult::reject : RecordResult::done);
      if (finished) window.finish(held.at(0).ordinal, freed);
      freed.clear();
    }
  };
  for (int n = 0; n < 1000; ++n) round();
  const std::uint64_t before = test::allocations();
  for (int n = 0; n < 10'000; ++n) round();
  EXPECT_EQ(test::allocations(), before);
  EXPECT_EQ(window.frontier(), Offset(offset));
}

// By direct calls, since a compiler may leave out a new expression.
TEST(AllocationCount, CountsEveryFormOfNew) {
  const std::uint64_t before = test::allocations();
  const std::align_val_t wide{128};
  ::operator delete(::operator new(1));
  ::operator delete[](::operator new[](100));
  ::operator delete(::operator new(128, wide), wide);
  ::operator delete[](::operator new[](128, wide), wide);
  ::operator delete(::operator new(1, std::nothrow));
  EXPECT_EQ(test::allocations() - before, 5U);
}

}  // namespace
}  // namespace tenure::core
