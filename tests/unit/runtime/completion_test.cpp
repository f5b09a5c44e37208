#include "tenure/completion.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "unit/runtime/run_bench.hpp"

namespace tenure::runtime {
namespace {

const Executor executor({nullptr, false, false, true});

/// An async handler that puts its Completions aside.
struct Kept {
  std::vector<Completion> completions;
  Handler handler() {
    return make_handler([this](const Record&, const Owner&, Completion completion) {
      completions.push_back(std::move(completion));
    });
  }
};

core::Run& start(Bench& bench, bool keep = true) {
  core::Run& run = bench.make_run({"x"});
  executor.execute(bench.lend(run, keep, true), bench.scratch);
  return run;
}

TEST(Completion, TheRunComesBackWhenTheOutcomeIsGivenAndNotBefore) {
  Kept kept;
  Bench bench(kept.handler());
  core::Run& run = start(bench);
  EXPECT_EQ(bench.returns->count(), 0U);
  EXPECT_EQ(std::move(kept.completions[0]).complete(done()), Verdict::accepted);
  EXPECT_EQ(bench.returns->count(), 1U);
  EXPECT_EQ(results(run), "done");
}

TEST(Completion, MayBeGivenInsideTheHandler) {
  Bench bench(make_handler([](const Record&, const Owner&, Completion completion) {
    EXPECT_EQ(std::move(completion).complete(park("p")), Verdict::accepted);
  }));
  core::Run& run = start(bench);
  EXPECT_EQ(results(run), "park");
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, DroppedIsRetryOfClassNoOutcome) {
  Kept kept;
  Bench bench(kept.handler());
  core::Run& run = start(bench);
  kept.completions.clear();
  EXPECT_EQ(results(run), "retry");
  ASSERT_EQ(run.failures.size(), 1U);
  EXPECT_EQ(run.failures[0].failure_class, "no_outcome");
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, AfterTheOwnerHasRetiredIsLateAndStillBringsTheRunBackOnce) {
  Kept kept;
  Bench bench(kept.handler());
  start(bench);
  bench.retire();
  EXPECT_EQ(std::move(kept.completions[0]).complete(done()), Verdict::late);
  EXPECT_EQ(bench.returns->count(), 1U);
  kept.completions.clear();
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, Answer1AHandlerThatThrowsWithItsCompletionIsClassException) {
  Bench bench(make_handler([](const Record&, const Owner&, Completion completion) {
    const Completion mine = std::move(completion);
    throw std::runtime_error("boom");
  }));
  core::Run& run = start(bench);
  EXPECT_EQ(results(run), "retry");
  ASSERT_EQ(run.failures.size(), 1U);
  EXPECT_EQ(run.failures[0].failure_class, "exception");
  EXPECT_EQ(run.failures[0].reason, "boom");
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, AHandlerThatThrowsAfterItHasGivenItAwayHasOneOutcome) {
  std::vector<Completion> away;
  Bench bench(make_handler([&](const Record&, const Owner&, Completion completion) {
    away.push_back(std::move(completion));
    throw std::runtime_error("boom");
  }));
  core::Run& run = start(bench);
  EXPECT_EQ(bench.returns->count(), 1U);
  EXPECT_EQ(results(run), "retry");
  EXPECT_EQ(std::move(away[0]).complete(done()), Verdict::late);
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, GivenWhileAnExceptionOfTheHandlersOwnPassesStillCounts) {
  Bench bench(make_handler([](const Record&, const Owner&, Completion completion) {
    struct Guard {
      Completion completion;
      ~Guard() { static_cast<void>(std::move(completion).complete(done())); }
    };
    try {
      const Guard guard{std::move(completion)};
      throw std::runtime_error("caught below");
    } catch (const std::runtime_error&) {
    }
  }));
  core::Run& run = start(bench);
  EXPECT_EQ(results(run), "done");
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, F6FenceRefusedInAnAsyncHandlerSupersedes) {
  Bench bench(make_handler([](const Record&, const Owner&, Completion completion) {
    const Completion mine = std::move(completion);
    throw FenceRefused{};
  }));
  core::Run& run = start(bench);
  EXPECT_EQ(run.store_error, StoreError::superseded);
  EXPECT_EQ(results(run), "unstarted");
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, R1AClosedGateReturnsTheRunUnstarted) {
  Kept kept;
  Bench bench(kept.handler());
  bench.close();
  core::Run& run = start(bench);
  EXPECT_EQ(results(run), "unstarted");
  EXPECT_TRUE(kept.completions.empty());
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Completion, TasksAreReusedOnceRunAndCompletionAreBack) {
  Kept kept;
  Bench bench(kept.handler());
  std::vector<RunTask*> used;
  for (int i = 0; i < 3; ++i) {
    core::Run& run = bench.make_run({"x"});
    RunTask& task = bench.lend(run, true, true);
    used.push_back(&task);
    executor.execute(task, bench.scratch);
    static_cast<void>(std::move(kept.completions.back()).complete(done()));
    kept.completions.pop_back();
    for (RunTask* back : bench.returns->take_returned()) bench.tasks.give(*back);
  }
  EXPECT_EQ(used[0], used[1]);
  EXPECT_EQ(used[1], used[2]);
}

TEST(Completion, MayOutliveWhateverMadeIt) {
  std::vector<Completion> kept;
  std::weak_ptr<Returns> returns;
  {
    Bench bench(make_handler([&](const Record&, const Owner&, Completion completion) {
      kept.push_back(std::move(completion));
    }));
    // As the loop does: tasks, runs and owners live in what the task keeps.
    struct Everything final : RunReturn {
      RunTaskPool tasks;
      core::Run run;
      int returns = 0;
      void returned(RunTask& task) noexcept override {
        ++returns;
        tasks.give(task);
      }
      void resumed(RunTask&) noexcept override {}
    };
    auto all = std::make_shared<Everything>();
    all->run = bench.make_run({"x"});
    RunTask& task = all->tasks.take(all->run, bench.entry, all, bench.clock, true, true);
    task.start_async();
    // Its clock and handler are the bench's and end here; only `late` is asked for below.
    bench.retire();
    all.reset();
    EXPECT_EQ(std::move(kept[0]).complete(done()), Verdict::late);
  }
}

TEST(Completion, ManyThreadsMayCompleteAtOnce) {
  constexpr int threads_count = 4;
  constexpr int each = 500;
  Kept kept;
  Bench bench(kept.handler());
  for (int i = 0; i < threads_count * each; ++i) start(bench);
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        Completion mine = std::move(kept.completions[static_cast<std::size_t>(t * each + i)]);
        if (i % 3 == 0) continue;  // dropped
        static_cast<void>(std::move(mine).complete(done()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<RunTask*> back = bench.returns->take_returned();
  EXPECT_EQ(back.size(), static_cast<std::size_t>(threads_count * each));
  for (RunTask* task : back) bench.tasks.give(*task);
}

}  // namespace
}  // namespace tenure::runtime
