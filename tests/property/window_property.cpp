// Random lives of a window beside a naive model (support/window_model.hpp), for every order.
// A failing case is shrunk by RapidCheck and printed with the seed that repeats it.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/window_model.hpp"

namespace tenure::test {
namespace {

/// One step, drawn blindly; what it means depends on the state it meets, so that a shrunk list of
/// steps still is a valid life.
struct Step {
  unsigned kind = 0;
  unsigned a = 0;
  unsigned b = 0;
};

void showValue(const Step& step, std::ostream& out) {
  out << "{" << step.kind << "," << step.a << "," << step.b << "}";
}

rc::Gen<Step> any_step() {
  return rc::gen::build<Step>(rc::gen::set(&Step::kind, rc::gen::inRange(0U, 100U)),
                              rc::gen::set(&Step::a, rc::gen::inRange(0U, 1U << 20)),
                              rc::gen::set(&Step::b, rc::gen::inRange(0U, 1U << 20)));
}

struct Life {
  Window::Options options;
  std::vector<LaneProgress> progress;
  std::uint64_t keys = 4;
  bool undecodable = false;
  bool big = false;  ///< admissions that cross segments
  std::vector<Step> steps;
};

class Driver {
 public:
  explicit Driver(const Life& life)
      : life_(life), pair_(life.options, Offset(100), life.progress) {}

  void run() {
    for (const Step& step : life_.steps) apply(step);
    settle_all();
  }

 private:
  void apply(const Step& step) {
    if (step.kind < 25) {
      admit(step);
    } else if (step.kind < 50) {
      pair_.take(step.a % 5 == 0 ? step.b % 8 : 1 + step.b % 600);
    } else if (step.kind < 75) {
      if (!pair_.lent.empty()) settle(step);
    } else if (step.kind < 85) {
      const std::vector<Ordinal> held = pair_.held();
      if (held.empty()) return;
      const Ordinal ordinal = held[step.a % held.size()];
      const bool decodable = pair_.model.records_.at(ordinal).message != nullptr;
      if (decodable && step.b % 3 != 0) {
        pair_.release(ordinal, step.b % 2 == 0);
      } else {
        pair_.finish(ordinal);
      }
    } else if (step.kind < 88) {
      pair_.reach(Offset(pair_.model.position_.value() + step.a % 5 - 2));
    } else if (step.kind < 90) {
      pair_.skip_to(Offset(pair_.model.position_.value() + step.a % 50));
    } else if (step.kind < 96) {
      pair_.pass(std::chrono::milliseconds(step.a % 4));
      reserve(step);
    } else if (step.kind == 96) {
      if (step.a % 4 == 0) pair_.drop();
    } else if (step.kind == 97 && pair_.model.dropped_) {
      // A dead letter that was under way is reported (R2).
      if (pair_.held_when_dropped.empty()) return;
      pair_.finish(pair_.held_when_dropped.back());
      pair_.held_when_dropped.pop_back();
    }
  }

  void admit(const Step& step) {
    std::vector<WindowPair::Input> inputs;
    const unsigned count = life_.big && step.a % 8 == 0 ? step.b % 600 : step.b % 6;
    std::int64_t offset = pair_.model.position_.value() + step.a % 3 - 1;
    std::uint64_t random = step.a * 7919ULL + step.b;
    for (unsigned n = 0; n < count; ++n) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto draw = static_cast<unsigned>(random >> 33);
      if (draw % 7 == 0) offset += draw % 11;  // markers, compaction
      if (draw % 23 == 0) offset -= 1;         // handed over twice
      if (draw % 29 == 0) ++epoch_;
      const std::uint64_t hash = draw / 64 % life_.keys * 0x9e3779b97f4a7c15ULL;
      const bool bad = life_.undecodable && draw % 31 == 0;
      inputs.push_back({offset++, bad ? WindowPair::undecodable_hash : hash, draw % 1000, epoch_});
    }
    pair_.admit(inputs);
  }

  void settle(const Step& step) {
    const std::size_t index = step.a % pair_.lent.size();
    const Run& run = pair_.lent[index];
    std::vector<RecordResult> results(run.records.size(), RecordResult::done);
    std::uint64_t random = step.b;
    if (step.b % 3 == 0) {
      for (RecordResult& result : results) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        result = static_cast<RecordResult>((random >> 33) % 8);
      }
    } else if (step.b % 3 == 1) {
      // The usual failure: done up to one that is not, nothing behind it was started.
      const std::size_t bad = step.a / 64 % results.size();
      std::fill(results.begin() + static_cast<std::ptrdiff_t>(bad), results.end(),
                RecordResult::unstarted);
      results[bad] = static_cast<RecordResult>(step.b / 3 % 8);
    }
    std::optional<Offset> reached;
    if (life_.options.store_lanes != 0 && step.a % 2 == 0) {
      reached = run.records[step.a / 2 % run.records.size()].offset.next();
    }
    pair_.settle(index, results, reached);
  }

  void reserve(const Step& step) {
    if (life_.options.store_lanes == 0) return;
    const auto lane = static_cast<std::uint16_t>(step.b % life_.options.store_lanes);
    if (pair_.model.reserved_.count(lane) != 0) {
      pair_.advanced(lane,
                     step.a % 2 == 0 ? pair_.model.lane_stand(lane) : pair_.model.stored_[lane]);
    } else if (pair_.window.lane_idle(lane)) {
      pair_.reserve(lane);
    }
  }

  // Whatever happened, a window whose records are all done has nothing left.
  void settle_all() {
    pair_.pass(std::chrono::hours(1));
    for (std::uint16_t lane = 0; lane < life_.options.store_lanes; ++lane) {
      if (pair_.model.reserved_.count(lane) != 0) pair_.advanced(lane, Offset(0));
    }
    do {
      for (const Ordinal ordinal : pair_.held()) pair_.finish(ordinal);
      while (!pair_.lent.empty()) {
        pair_.settle(0,
                     std::vector<RecordResult>(pair_.lent[0].records.size(), RecordResult::done));
      }
    } while (pair_.take(1000));
    if (pair_.model.dropped_) return;
    RC_ASSERT(pair_.window.frontier() == pair_.window.position());
    RC_ASSERT(pair_.window.bytes() == 0U);
    RC_ASSERT(pair_.window.segments_in_use() <= 1U);
  }

  Life life_;
  WindowPair pair_;
  std::int32_t epoch_ = 3;
};

void live(Order order, std::uint16_t store_lanes) {
  Life life;
  life.options.order = order;
  life.options.store_lanes = store_lanes;
  life.options.run_records_max = *rc::gen::element(1U, 2U, 3U, 100U, 1024U);
  life.options.run_wait = std::chrono::milliseconds(*rc::gen::element(0, 0, 0, 2, 5));
  life.keys = *rc::gen::element<std::uint64_t>(1, 2, 5, 300);
  life.undecodable = *rc::gen::element(0, 0, 1) == 1;
  life.big = *rc::gen::element(0, 1) == 1;
  for (std::uint16_t lane = 0; lane < store_lanes; ++lane) {
    life.progress.push_back(
        {lane, Offset(100 + *rc::gen::element(0, 0, 1, 3, 40)), LeaderEpoch(1)});
  }
  life.steps = *rc::gen::scale(3.0, rc::gen::container<std::vector<Step>>(any_step()));
  Driver(life).run();
}

RC_GTEST_PROP(WindowProperty, OrderNoneEqualsTheModel, ()) {
  live(Order::none, 0);
}
RC_GTEST_PROP(WindowProperty, OrderPartitionEqualsTheModel, ()) {
  live(Order::partition, 0);
}
RC_GTEST_PROP(WindowProperty, OrderKeyEqualsTheModel, ()) {
  live(Order::key, 0);
}
RC_GTEST_PROP(WindowProperty, OrderPartitionWithAStoreLaneEqualsTheModel, ()) {
  live(Order::partition, 1);
}
RC_GTEST_PROP(WindowProperty, OneStoreLaneEqualsTheModel, ()) {
  live(Order::key, 1);
}
RC_GTEST_PROP(WindowProperty, StoreLanesByKeyEqualTheModel, ()) {
  live(Order::key, 4);
}
RC_GTEST_PROP(WindowProperty, StoreLanesWithOrderNoneEqualTheModel, ()) {
  live(Order::none, 3);
}

}  // namespace
}  // namespace tenure::test
