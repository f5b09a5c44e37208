// All short lives of a window, each step compared with the model (support/window_model.hpp), which
// checks F2, O5, O7, R1, R2 and the order of every mode by definition.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "support/exhaustive.hpp"
#include "support/window_model.hpp"

namespace tenure::test {
namespace {

using R = RecordResult;

struct Mode {
  const char* name;
  Order order;
  std::uint16_t lanes;
  friend std::ostream& operator<<(std::ostream& out, const Mode& mode) { return out << mode.name; }
};

class WindowExhaustive : public testing::TestWithParam<Mode> {
 protected:
  static Window::Options options(std::uint32_t run_records_max) {
    Window::Options options;
    options.order = GetParam().order;
    options.store_lanes = GetParam().lanes;
    options.run_records_max = run_records_max;
    return options;
  }
  static bool keyed() { return GetParam().order == Order::key || GetParam().lanes > 1; }

  /// Offsets 10, 11, 13, 14, 16 ... and every way (up to renaming) to give `count` records at most
  /// `keys` keys.
  static std::vector<WindowPair::Input> records(Exhaustive& all, std::size_t count,
                                                std::size_t keys) {
    std::vector<WindowPair::Input> inputs;
    std::size_t used = 0;
    for (std::size_t n = 0; n < count; ++n) {
      std::size_t key = 0;
      if (keyed()) key = all.choose(std::min(used + 1, keys));
      used = std::max(used, key + 1);
      inputs.push_back({static_cast<std::int64_t>(10 + n + n / 2), key, 1, 0});
    }
    return inputs;
  }

  static void settle(WindowPair& pair, std::size_t index, R result) {
    pair.settle(index, std::vector<R>(pair.lent[index].records.size(), result));
  }
};

// Every order in which runs of one record can complete: for each key of its own, for two keys in
// every pattern, and for five records in every pattern of keys.
TEST_P(WindowExhaustive, F2_AllCompletionOrdersOfSevenRecords) {
  const std::uint16_t most = 7;
  Window::Options options = this->options(1);
  if (options.store_lanes > 1) options.store_lanes = most;
  Exhaustive all;
  do {
    WindowPair pair(options, Offset(10));
    switch (all.choose(3)) {
      case 0: {
        std::vector<WindowPair::Input> inputs;
        for (std::uint16_t n = 0; n < most; ++n) inputs.push_back({10 + n + n / 2, n, 1, 0});
        pair.admit(inputs);
        break;
      }
      case 1:
        pair.admit(records(all, most, 2));
        break;
      default:
        pair.admit(records(all, 5, 5));
        break;
    }
    while (pair.window.unfinished() != 0) {
      while (pair.take(1)) {
      }
      settle(pair, all.choose(pair.lent.size()), R::done);
    }
    ASSERT_EQ(pair.window.frontier(), pair.window.position());
  } while (all.next());
  const bool one_queue = GetParam().order == Order::partition || GetParam().lanes == 1;
  ASSERT_GE(all.runs(), one_queue ? 3U : 5040U);
}

// Every way to cut the records into runs, every order of these, whatever the handler says of
// the first record that is not done, and a revocation before any of the steps.
TEST_P(WindowExhaustive, O5_AllRunLengthsOutcomesAndRevocationsOfFourRecords) {
  const std::size_t count = 4;
  const std::size_t steps_max = 5;
  Exhaustive all;
  do {
    WindowPair pair(options(3), Offset(10));
    pair.admit(records(all, count, 2));
    for (std::size_t step = 0; step < steps_max && pair.window.unfinished() != 0; ++step) {
      std::vector<int> possible;
      if (pair.window.ready() != 0) possible.insert(possible.end(), {0, 1});
      if (!pair.lent.empty()) possible.insert(possible.end(), {2, 3, 4});
      if (!pair.held().empty()) possible.insert(possible.end(), {5, 6});
      if (!pair.model.dropped_) possible.push_back(7);
      if (possible.empty()) break;
      switch (possible[all.choose(possible.size())]) {
        case 0:
          pair.take(1);
          break;
        case 1:
          pair.take(3);
          break;
        case 2:
          settle(pair, all.choose(pair.lent.size()), R::done);
          break;
        case 3: {  // done up to a record that failed, the others not started
          const std::size_t index = all.choose(pair.lent.size());
          std::vector<R> results(pair.lent[index].records.size(), R::unstarted);
          const std::size_t bad = all.choose(results.size());
          std::fill(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(bad), R::done);
          results[bad] = R::retry;
          pair.settle(index, results);
          break;
        }
        case 4: {  // rolled back, or a batch that is run again record by record
          const std::size_t index = all.choose(pair.lent.size());
          std::vector<R> results(pair.lent[index].records.size(), R::unstarted);
          if (results.size() > 1)
            results[results.size() - 1] = all.choose(2) == 0 ? R::done : R::park;
          pair.settle(index, results);
          break;
        }
        case 5:
          pair.release(pair.held()[all.choose(pair.held().size())], true);
          break;
        case 6:
          pair.finish(pair.held()[all.choose(pair.held().size())]);
          break;
        case 7:
          pair.drop();
          break;
        default:
          break;
      }
    }
    // What is left comes back; if nothing was dropped, all can still be done.
    while (pair.window.unfinished() != 0) {
      for (const Ordinal ordinal : pair.held()) pair.release(ordinal, false);
      while (pair.take(3)) {
      }
      if (pair.lent.empty()) break;
      while (!pair.lent.empty()) settle(pair, pair.lent.size() - 1, R::done);
    }
    if (!pair.model.dropped_) {
      ASSERT_EQ(pair.window.frontier(), pair.window.position());
    }
  } while (all.next());
  ASSERT_GE(all.runs(), 300U) << "lives";
}

// Any of four records undecodable, finished at any moment between the others' completions.
TEST_P(WindowExhaustive, F1_AllPlacesAndMomentsOfUndecodableRecords) {
  const std::size_t count = 4;
  Exhaustive all;
  do {
    WindowPair pair(options(1), Offset(10));
    std::vector<WindowPair::Input> inputs = records(all, count, 2);
    for (WindowPair::Input& input : inputs) {
      if (all.choose(2) == 1) input.hash = WindowPair::undecodable_hash;
    }
    pair.admit(inputs);
    while (pair.window.unfinished() != 0) {
      while (pair.take(1)) {
      }
      const std::vector<Ordinal> held = pair.held();
      const std::size_t choice = all.choose(held.size() + pair.lent.size());
      if (choice < held.size()) {
        pair.finish(held[choice]);
      } else {
        settle(pair, choice - held.size(), R::done);
      }
    }
    ASSERT_EQ(pair.window.frontier(), pair.window.position());
  } while (all.next());
  ASSERT_GE(all.runs(), 16U);
}

INSTANTIATE_TEST_SUITE_P(Modes, WindowExhaustive,
                         testing::Values(Mode{"OrderNone", Order::none, 0},
                                         Mode{"OrderKey", Order::key, 0},
                                         Mode{"OrderPartition", Order::partition, 0},
                                         Mode{"OrderPartitionAtTheStore", Order::partition, 1},
                                         Mode{"OneStoreLane", Order::key, 1},
                                         Mode{"StoreLanesByKey", Order::key, 2},
                                         Mode{"StoreLanesWithOrderNone", Order::none, 2}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tenure::test
