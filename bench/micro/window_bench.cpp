// What the window costs the loop thread: admission, dispatch, settling, frontier; no handler, no
// threads. Counters: ns a record, and bytes a record where memory is the question.
//
//   bench_window_bench --benchmark_filter=Record
//
// Instructions: run one case under `valgrind --tool=callgrind`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/segment.hpp"
#include "core/window.hpp"

namespace tenure::core {
namespace {

class Load {
 public:
  Load(Order order, std::uint16_t lanes, std::uint64_t keys, std::size_t batch)
      : keys_(keys), batch_(batch), window_(options(order, lanes), Offset(0), progress(lanes)) {}

  void admit() {
    for (Delivered& record : batch_) {
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      record = {&message_, Offset(offset_++), (random_ >> 33) % keys_ * 0x9e3779b97f4a7c15ULL, 100,
                LeaderEpoch(1)};
    }
    now_ += Duration(1000);
    window_.admit(batch_, now_, held_, freed_);
  }
  /// One run, done at once; false when there is none.
  bool run_one(std::uint32_t records_max) {
    if (!window_.take(run_, records_max, now_)) return false;
    for (RunRecord& record : run_.records) record.result = RecordResult::done;
    window_.settle(run_, now_, held_, freed_);
    return true;
  }
  void free() { freed_.clear(); }
  Window& window() { return window_; }
  [[nodiscard]] Instant now() const { return now_; }
  void settle_late(Run& run) {
    for (RunRecord& record : run.records) record.result = RecordResult::done;
    window_.settle(run, now_, held_, freed_);
  }

 private:
  static Window::Options options(Order order, std::uint16_t lanes) {
    Window::Options options;
    options.order = order;
    options.store_lanes = lanes;
    return options;
  }
  static std::vector<LaneProgress> progress(std::uint16_t lanes) {
    std::vector<LaneProgress> rows;
    for (std::uint16_t lane = 0; lane < lanes; ++lane) rows.push_back({lane, {}, no_leader_epoch});
    return rows;
  }

  std::uint64_t keys_;
  std::vector<Delivered> batch_;
  Window window_;
  char message_ = 0;
  std::int64_t offset_ = 0;
  std::uint64_t random_ = 1;
  Instant now_{};
  Run run_;
  std::vector<Window::Held> held_;
  std::vector<MessageHandle> freed_;
};

void per_record(benchmark::State& state, std::uint64_t records) {
  state.counters["record"] = benchmark::Counter(
      static_cast<double>(records), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Arguments: order, store lanes, records of a batch, most records of a run. 1000 keys.
void Record(benchmark::State& state) {
  Load load(static_cast<Order>(state.range(0)), static_cast<std::uint16_t>(state.range(1)), 1000,
            static_cast<std::size_t>(state.range(2)));
  std::uint64_t records = 0;
  for (auto step : state) {
    load.admit();
    while (load.run_one(static_cast<std::uint32_t>(state.range(3)))) {
    }
    load.free();
    benchmark::DoNotOptimize(load.window().frontier());
    records += static_cast<std::uint64_t>(state.range(2));
  }
  per_record(state, records);
}
BENCHMARK(Record)
    ->ArgNames({"order", "lanes", "batch", "run"})
    ->Args({static_cast<int>(Order::none), 0, 1000, 1024})
    ->Args({static_cast<int>(Order::none), 0, 1000, 1})
    ->Args({static_cast<int>(Order::partition), 0, 1000, 1024})
    ->Args({static_cast<int>(Order::key), 0, 1000, 1024})
    ->Args({static_cast<int>(Order::key), 0, 4000, 1024})
    ->Args({static_cast<int>(Order::key), 0, 16'000, 1024})
    ->Args({static_cast<int>(Order::key), 8, 1000, 1024})
    ->Args({static_cast<int>(Order::none), 8, 1000, 1024});

// Q11: one record stuck, `gap` done behind it. Flat in time and memory.
void BehindAStuckRecord(benchmark::State& state) {
  const auto gap = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t records = 0;
  std::size_t segments = 0;
  for (auto step : state) {
    Load load(Order::none, 0, 1, 500);
    load.admit();
    Run stuck;
    load.window().take(stuck, 1, load.now());
    for (std::uint64_t done = 0; done < gap; done += 500) {
      load.admit();
      while (load.run_one(1024)) {
      }
      load.free();
      segments = std::max(segments, load.window().segments_in_use());
    }
    load.settle_late(stuck);
    benchmark::DoNotOptimize(load.window().frontier());
    records += gap;
  }
  per_record(state, records);
  state.counters["segment_bytes_per_record"] =
      static_cast<double>(segments * sizeof(Segment)) / static_cast<double>(gap);
}
BENCHMARK(BehindAStuckRecord)->ArgName("gap")->Arg(1000)->Arg(100'000)->Arg(1'000'000);

// The worst case of Q11: one record of every segment stuck, so that none folds.
void OneStuckInEverySegment(benchmark::State& state) {
  const auto gap = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t records = 0;
  std::size_t segments = 0;
  for (auto step : state) {
    Load load(Order::none, 0, 1, Segment::records);
    std::vector<Run> stuck(gap / Segment::records);
    for (Run& run : stuck) {
      load.admit();
      load.window().take(run, 1, load.now());
      while (load.run_one(1024)) {
      }
      load.free();
    }
    segments = load.window().segments_in_use();
    for (Run& run : stuck) load.settle_late(run);
    benchmark::DoNotOptimize(load.window().frontier());
    records += gap;
  }
  per_record(state, records);
  state.counters["segment_bytes_per_record"] =
      static_cast<double>(segments * sizeof(Segment)) / static_cast<double>(gap);
}
BENCHMARK(OneStuckInEverySegment)->ArgName("gap")->Arg(1000)->Arg(1'000'000);

}  // namespace
}  // namespace tenure::core

BENCHMARK_MAIN();
