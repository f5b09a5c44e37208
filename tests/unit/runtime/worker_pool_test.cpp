#include "runtime/worker_pool.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "unit/runtime/run_bench.hpp"

namespace tenure::runtime {
namespace {

/// Handlers that wait at a door until the test opens it.
class Door {
 public:
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await(int handlers) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= handlers; });
  }
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

class Pool : public ::testing::Test {
 protected:
  Pool()
      : bench(make_handler([this](const Record& record, const Owner&) -> Outcome {
          if (record.value().text() == "wait") door->pass();
          return done();
        })) {}

  RunTask& push(WorkerPool& pool, const std::string& value) {
    RunTask& task = bench.lend(bench.make_run({value}));
    RunTask* const tasks[] = {&task};
    pool.push(tasks, keep);
    return task;
  }
  WorkerPool make_pool(std::uint32_t workers_max) {
    return WorkerPool(workers_max, [this](RunTask& task, Executor::Scratch& scratch) {
      executor.execute(task, scratch);
    });
  }
  void await_returned(std::size_t count) {
    while (bench.returns->count() < count) std::this_thread::yield();
  }
  void grow_to(WorkerPool& pool, std::size_t workers) {
    while (pool.workers() < workers) {
      pool.grow(keep);
      std::this_thread::yield();
    }
  }
  void stop(WorkerPool& pool) {
    std::vector<RunTask*> queued;
    pool.stop(queued);
  }

  std::shared_ptr<Door> door = std::make_shared<Door>();
  Bench bench;
  Executor executor{{nullptr, false, false, true}};
  std::shared_ptr<void> keep;
};

TEST_F(Pool, StartsNoThreadBeforeThereIsARun) {
  WorkerPool pool = make_pool(64);
  EXPECT_EQ(pool.workers(), 0U);
  push(pool, "x");
  await_returned(1);
  EXPECT_EQ(pool.workers(), 1U);
}

TEST_F(Pool, DoesNotGrowWhileTheWorkersKeepUp) {
  WorkerPool pool = make_pool(64);
  for (std::size_t i = 1; i <= 50; ++i) {
    push(pool, "x");
    await_returned(i);
    pool.grow(keep);
  }
  EXPECT_EQ(pool.workers(), 1U);
}

TEST_F(Pool, GrowsToItsLimitWhileRunsWait) {
  WorkerPool pool = make_pool(3);
  for (int i = 0; i < 6; ++i) push(pool, "wait");
  grow_to(pool, 3);
  door->await(3);
  EXPECT_FALSE(pool.grow(keep)) << "nothing to grow to";
  door->open();
  await_returned(6);
  EXPECT_EQ(pool.workers(), 3U);
}

TEST_F(Pool, R1QueuedRunsOfAnOwnerComeBackAtOnceAndUnstarted) {
  WorkerPool pool = make_pool(1);
  push(pool, "wait");
  door->await(1);
  push(pool, "x");
  push(pool, "y");
  std::vector<RunTask*> back;
  pool.reclaim(OwnerRef{0, GrantId(6)}, back);
  EXPECT_TRUE(back.empty()) << "another grant";
  pool.reclaim(bench.entry->cell->facts().owner, back);
  ASSERT_EQ(back.size(), 2U);
  for (const RunTask* task : back) EXPECT_EQ(results(*task->run), "unstarted");
  door->open();
  await_returned(1);
  stop(pool);
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST_F(Pool, R1RunsAWorkerHasTakenButNotBegunAreReclaimedToo) {
  // A worker whose runs are short takes several at once; then one of them turns out slow.
  WorkerPool pool = make_pool(1);
  for (std::size_t i = 1; i <= 200; ++i) push(pool, "x");
  await_returned(200);
  std::vector<RunTask*> tasks;
  for (const char* value : {"wait", "x", "x", "x", "x", "x", "x", "x"}) {
    tasks.push_back(&bench.lend(bench.make_run({value})));
  }
  pool.push(tasks, keep);
  door->await(1);
  std::vector<RunTask*> back;
  pool.reclaim(bench.entry->cell->facts().owner, back);
  EXPECT_EQ(back.size(), 7U);
  door->open();
  await_returned(201);
}

TEST_F(Pool, R9AFreshWorkerTakesThePlaceOfAHungOneAndTheLateRunStillComesBack) {
  WorkerPool pool = make_pool(1);
  push(pool, "wait");
  door->await(1);
  RunTask& next = push(pool, "x");
  EXPECT_FALSE(pool.grow(keep)) << "the only place is taken";
  pool.abandon(bench.entry->cell->facts().owner);
  EXPECT_EQ(pool.abandoned(), 1U);
  EXPECT_EQ(pool.workers(), 0U);
  pool.grow(keep);
  await_returned(1);
  EXPECT_EQ(results(*next.run), "done");
  door->open();
  await_returned(2);
  stop(pool);
}

TEST_F(Pool, StopDoesNotWaitForAHungHandler) {
  std::promise<void> left;
  std::future<void> gone = left.get_future();
  {
    WorkerPool pool = make_pool(2);
    keep = std::shared_ptr<void>(
        &left, [](void* promise) { static_cast<std::promise<void>*>(promise)->set_value(); });
    push(pool, "wait");
    keep.reset();
    door->await(1);
    push(pool, "x");
    std::vector<RunTask*> queued;
    pool.stop(queued);
    EXPECT_EQ(queued.size() + bench.returns->count(), 1U);
  }
  // What the hung thread holds lives until it leaves.
  EXPECT_EQ(gone.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  door->open();
  gone.wait();
}

TEST_F(Pool, StopJoinsIdleWorkersAndGivesBackWhatWasQueued) {
  WorkerPool pool = make_pool(4);
  for (int i = 0; i < 4; ++i) push(pool, "wait");
  grow_to(pool, 4);
  door->await(4);
  push(pool, "x");
  std::thread opener([&] { door->open(); });
  await_returned(4);
  opener.join();
  stop(pool);
  EXPECT_EQ(pool.workers(), 0U);
}

TEST_F(Pool, EveryRunIsDoneOnceUnderLoad) {
  constexpr std::size_t count = 20'000;
  WorkerPool pool = make_pool(4);
  std::vector<RunTask*> tasks;
  std::size_t back = 0;
  for (std::size_t i = 0; i < count; ++i) {
    tasks.push_back(&bench.lend(bench.make_run({"x"})));
    if (tasks.size() == 100) {
      pool.push(tasks, keep);
      tasks.clear();
      pool.grow(keep);
      for (RunTask* task : bench.returns->take_returned()) {
        EXPECT_EQ(results(*task->run), "done");
        bench.tasks.give(*task);
        ++back;
      }
    }
  }
  while (back < count) {
    for (RunTask* task : bench.returns->take_returned()) {
      bench.tasks.give(*task);
      ++back;
    }
    std::this_thread::yield();
  }
  stop(pool);
  EXPECT_EQ(back, count);
}

}  // namespace
}  // namespace tenure::runtime
