// The whole runtime on the world of the testing kit: real threads, no broker, a clock that moves
// when the test says so.
#include "tenure/runtime.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tenure/memory/store.hpp"
#include "tenure/options.hpp"
#include "tenure/testing/world.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using testing::Message;
using testing::World;

/// What happened, by name, with what a test looks at.
class Seen final : public Observer {
 public:
  void on_event(const Event& event) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_[event.name];
    if (event.seq <= last_seq_) ascending_ = false;
    last_seq_ = event.seq;
    if (!event.member.empty()) member_ = event.member;
    group_ = event.group;
  }
  [[nodiscard]] bool wants_records() const override { return records; }
  int count(EventName name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_[name];
  }
  bool ascending() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ascending_;
  }
  std::string member() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return group_ + "/" + member_;
  }
  bool records = false;

 private:
  std::mutex mutex_;
  std::map<EventName, int> counts_;
  std::uint64_t last_seq_ = 0;
  bool ascending_ = true;
  std::string member_, group_;
};

/// A Runtime whose loop has a thread of its own.
class Running {
 public:
  Running(const Builder& build, Ports ports) : runtime_(make(build, std::move(ports))) {
    thread_ = std::thread([this] { report_ = runtime_->run(stop_.get_token()); });
  }
  ~Running() {
    runtime_->abandon();
    if (thread_.joinable()) thread_.join();
  }
  Runtime& operator*() { return *runtime_; }
  Runtime* operator->() { return &*runtime_; }
  void ask_to_stop() { stop_.request_stop(); }
  StopReport join() {
    thread_.join();
    return report_;
  }

 private:
  static Result<Runtime> make(const Builder& build, Ports ports) {
    Result<Runtime> made = Runtime::create(build, std::move(ports));
    EXPECT_TRUE(made) << made.error().message;
    return made;
  }
  Result<Runtime> runtime_;
  std::stop_source stop_;
  StopReport report_;
  std::thread thread_;
};

class RuntimeOnWorld : public ::testing::Test {
 protected:
  RuntimeOnWorld() {
    build.group("billing");
    build.options().seed = 1;
    ports.source = world.member("A");
    ports.clock = world.clock();
    ports.observers.push_back(seen);
  }
  void produce(int partition, int count, const std::string& key = "k") {
    for (int i = 0; i < count; ++i) {
      world.produce("orders", partition, {.key = key, .value = std::to_string(i), .headers = {}});
    }
  }
  /// Lets commits that wait for their interval go out.
  bool eventually(const std::function<bool()>& done) {
    return world.wait_until([&] {
      if (done()) return true;
      world.advance(50ms);
      return false;
    });
  }
  bool committed(int partition, std::int64_t offset) {
    return eventually(
        [&, partition, offset] { return world.committed("orders", partition) == Offset(offset); });
  }

  World world;
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  Builder build;
  Ports ports;
};

/// A place where handlers stop until the test lets them go on.
class Door {
 public:
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await(int handlers) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= handlers; });
  }
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

TEST_F(RuntimeOnWorld, HandlesEveryRecordInKeyOrderAndCommitsTheEnd) {
  world.create_topic("orders", 3);
  for (int p = 0; p < 3; ++p) {
    for (int i = 0; i < 500; ++i) {
      world.produce(
          "orders", p,
          {.key = "k" + std::to_string(i % 7), .value = std::to_string(i), .headers = {}});
    }
  }
  std::mutex mutex;
  std::map<std::pair<int, std::string>, std::int64_t> last;
  std::atomic<int> handled{0};
  bool ordered = true;
  build.on("orders", [&](const Record& record, const Owner&) -> Outcome {
    const std::lock_guard<std::mutex> lock(mutex);
    auto [at, first] = last.emplace(
        std::make_pair(record.partition(), std::string(record.key().text())), record.offset());
    if (!first && at->second >= record.offset()) ordered = false;
    at->second = record.offset();
    ++handled;
    return done();
  });
  Running running(build, ports);
  for (int p = 0; p < 3; ++p) EXPECT_TRUE(committed(p, 500));
  EXPECT_EQ(handled, 1500);
  EXPECT_TRUE(ordered);
  const StopReport report = running->stop(1s);
  EXPECT_EQ(report.reason, StopReport::Reason::drained) << report.message;
  EXPECT_EQ(world.messages_out(), 0U);
  EXPECT_FALSE(world.joined("A"));
  EXPECT_TRUE(seen->ascending());
  EXPECT_EQ(seen->member(), "billing/A-1");
  EXPECT_EQ(seen->count(EventName::record_outcome), 0) << "nobody asked for single records";
}

TEST_F(RuntimeOnWorld, AGapAtTheTailIsPassed) {
  world.create_topic("orders", 1);
  produce(0, 3);
  world.skip("orders", 0, 2);
  build.on("orders", [](const Record&, const Owner&) { return done(); });
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 5));
}

TEST_F(RuntimeOnWorld, AsyncHandlersCompleteFromAnyThread) {
  world.create_topic("orders", 2);
  produce(0, 300, "a");
  produce(1, 300, "b");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Completion> waiting;
  build
      .on("orders",
          [&](const Record&, const Owner&, Completion completion) {
            const std::lock_guard<std::mutex> lock(mutex);
            waiting.push_back(std::move(completion));
            changed.notify_one();
          })
      .order(Order::none);
  std::jthread completer([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::vector<Completion> now;
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait_for(lock, 5ms);
        now.swap(waiting);
      }
      for (Completion& completion : now) static_cast<void>(std::move(completion).complete(done()));
    }
  });
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 300));
  EXPECT_TRUE(committed(1, 300));
  EXPECT_EQ(running->stop(1s).reason, StopReport::Reason::drained);
}

TEST_F(RuntimeOnWorld, BatchHandlersGetSeveralRecordsOfOneLane) {
  world.create_topic("orders", 1);
  produce(0, 100);
  std::atomic<std::size_t> most{0};
  build
      .on("orders",
          [&](Batch batch, const Owner&) -> Outcome {
            if (batch.size() > most) most = batch.size();
            return done();
          })
      .batch({.records_max = 10, .wait_max = 1ms});
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 100));
  EXPECT_GT(most, 1U);
  EXPECT_LE(most, 10U);
}

TEST_F(RuntimeOnWorld, Answer1AHandlerThatThrowsIsCalledAgainAfterBackoff) {
  world.create_topic("orders", 1);
  produce(0, 1);
  std::vector<int> attempts;
  build.on("orders", [&](const Record& record, const Owner&) -> Outcome {
    attempts.push_back(record.attempt());
    if (attempts.size() < 3) throw std::runtime_error("not yet");
    return done();
  });
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 1));
  EXPECT_EQ(running->stop(1s).reason, StopReport::Reason::drained);
  EXPECT_EQ(attempts, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(seen->count(EventName::record_retry), 2);
}

TEST_F(RuntimeOnWorld, Answer2FinishedInTheDrainBudgetCountsAndIsCommittedBeforeTheRelease) {
  world.create_topic("orders", 1);
  produce(0, 1);
  Door door;
  std::mutex mutex;
  std::optional<Owner> owner;
  build.on("orders", [&](const Record&, const Owner& mine) -> Outcome {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      owner = mine;
    }
    door.pass();
    return done();
  });
  build.options().drain.budget = 4s;
  Running running(build, ports);
  door.await(1);
  const Owner mine = *owner;
  EXPECT_FALSE(mine.drain_deadline());
  world.revoke("A", {{"orders", Partition(0)}});
  EXPECT_TRUE(world.wait_until([&] { return mine.drain_deadline().has_value(); }));
  EXPECT_EQ(mine.state(), OwnerState::draining);
  EXPECT_FALSE(mine.stop_token().stop_requested());
  world.advance(2s);
  EXPECT_TRUE(world.wait_until([&] { return mine.stop_token().stop_requested(); }));
  EXPECT_EQ(world.unanswered("A"), 1U) << "not released while it drains";
  door.open();
  EXPECT_TRUE(eventually([&] { return world.unanswered("A") == 0; }));
  EXPECT_EQ(world.committed("orders", 0), Offset(1));
  EXPECT_TRUE(world.wait_until([&] { return mine.state() == OwnerState::retired; }));
  EXPECT_EQ(mine.retired_reason(), RetiredReason::revoked);
  EXPECT_EQ(mine.committed(), Offset(1));
}

TEST_F(RuntimeOnWorld, Answer2FinishedAfterTheBudgetIsLateAndChangesNothing) {
  world.create_topic("orders", 1);
  produce(0, 1);
  std::mutex mutex;
  std::optional<Completion> kept;
  std::optional<Owner> owner;
  build
      .on("orders",
          [&](const Record&, const Owner& mine, Completion completion) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (!kept) {
              kept = std::move(completion);
              owner = mine;
            } else {
              static_cast<void>(std::move(completion).complete(done()));
            }
          })
      .effect(Effect::idempotent);
  Running running(build, ports);
  EXPECT_TRUE(world.wait_until([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return kept.has_value();
  }));
  world.revoke("A", {{"orders", Partition(0)}});
  EXPECT_TRUE(eventually([&] { return world.unanswered("A") == 0; }));
  const std::optional<Offset> before = world.committed("orders", 0);
  EXPECT_EQ(owner->state(), OwnerState::retired);
  EXPECT_EQ(std::move(*kept).complete(done()), Verdict::late);
  EXPECT_TRUE(eventually([&] { return seen->count(EventName::record_late) == 1; }));
  EXPECT_EQ(world.committed("orders", 0), before);
}

TEST_F(RuntimeOnWorld, R1ARunInProgressStopsBetweenTwoRecords) {
  world.create_topic("orders", 1);
  produce(0, 32);
  Door door;
  std::atomic<int> handled{0};
  build
      .on("orders",
          [&](const Record&, const Owner& owner) -> Outcome {
            // The world gives the partition back at once; only the first grant counts.
            if (owner.grant_id() != GrantId(1)) return done();
            ++handled;
            door.pass();
            return done();
          })
      .order(Order::partition)
      .concurrency(1);
  Running running(build, ports);
  door.await(1);
  world.revoke("A", {{"orders", Partition(0)}});
  EXPECT_TRUE(world.wait_until([&] { return seen->count(EventName::owner_draining) == 1; }));
  EXPECT_TRUE(world.wait_until([&] { return running->status().owners[0].in_flight > 1; }))
      << "several records in one run, or the test shows nothing";
  door.open();
  EXPECT_TRUE(eventually([&] { return world.unanswered("A") == 0; }));
  EXPECT_EQ(handled, 1);
}

TEST_F(RuntimeOnWorld, Answer3LostIsRetiredAtOnceWithoutACommit) {
  world.create_topic("orders", 1);
  produce(0, 5);
  Door door;
  std::mutex mutex;
  std::optional<Owner> owner;
  build.on("orders", [&](const Record& record, const Owner& mine) -> Outcome {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!owner) owner = mine;
    }
    if (record.offset() == 2 && mine.grant_id() == owner->grant_id()) door.pass();
    return done();
  });
  Running running(build, ports);
  door.await(1);
  EXPECT_TRUE(eventually([&] { return world.committed("orders", 0).has_value(); }));
  const std::size_t commits = world.commits().size();
  world.lose("A");
  EXPECT_TRUE(world.wait_until([&] { return owner->state() == OwnerState::retired; }));
  EXPECT_EQ(owner->retired_reason(), RetiredReason::lost);
  EXPECT_TRUE(world.wait_until([&] { return owner->stop_token().stop_requested(); }));
  for (std::size_t i = commits; i < world.commits().size(); ++i) {
    EXPECT_EQ(world.commits()[i].answer, BrokerError::none) << "only the next grant commits";
  }
  door.open();
  EXPECT_TRUE(committed(0, 5)) << "by the member's next grant";
}

TEST_F(RuntimeOnWorld, TransactionsOfAStoreAreResumedFromTheStore) {
  auto database = std::make_shared<memory::Database>();
  world.create_topic("orders", 1);
  produce(0, 50);
  build.on("orders", [](const Record& record, const Owner&, memory::Transaction& tx) -> Outcome {
    tx.put(std::to_string(record.offset()), std::string(record.value().text()));
    return done();
  });
  ports.store = std::make_shared<memory::Store>(database);
  {
    Running running(build, ports);
    EXPECT_TRUE(committed(0, 50));
    EXPECT_EQ(running->stop(1s).reason, StopReport::Reason::drained);
  }
  EXPECT_EQ(database->entries().size(), 50U);
  // The group's offset goes back; the store knows better.
  world.set_committed("orders", 0, Offset(10));
  produce(0, 1);
  std::atomic<int> calls{0};
  Builder again;
  again.group("billing");
  again.on("orders", [&](const Record&, const Owner&, memory::Transaction&) -> Outcome {
    ++calls;
    return done();
  });
  ports.store = std::make_shared<memory::Store>(database);
  Running running(again, ports);
  EXPECT_TRUE(committed(0, 51));
  EXPECT_EQ(calls, 1);
}

/// A memory store that can say that it is no longer there.
class Movable final : public EffectStore {
 public:
  explicit Movable(std::shared_ptr<memory::Database> database) : store_(std::move(database)) {}
  [[nodiscard]] std::string_view name() const override { return store_.name(); }
  [[nodiscard]] TransactionKind transaction_kind() const override {
    return store_.transaction_kind();
  }
  Result<void> open(StoreSink& sink) override { return store_.open(sink); }
  void submit(Reserve request) override { store_.submit(std::move(request)); }
  void submit(Activate request) override { store_.submit(std::move(request)); }
  void submit(AdvanceIdle request) override { store_.submit(std::move(request)); }
  void submit(Lookup request) override { store_.submit(std::move(request)); }
  std::unique_ptr<EffectUnit> open_unit(UnitKey key) override {
    return store_.open_unit(std::move(key));
  }
  void cancel(OwnerRef owner) override { store_.cancel(owner); }
  Result<void> still_there() override {
    if (there) return {};
    return fail(Code::unavailable, "the file was moved");
  }
  void close(Duration limit) override { store_.close(limit); }

  std::atomic<bool> there{true};

 private:
  memory::Store store_;
};

TEST_F(RuntimeOnWorld, NothingIsCommittedWhileTheStoreIsNotWhereItWas) {
  auto database = std::make_shared<memory::Database>();
  auto store = std::make_shared<Movable>(database);
  world.create_topic("orders", 1);
  build.on("orders", [](const Record& record, const Owner&, memory::Transaction& tx) -> Outcome {
    tx.put(std::to_string(record.offset()), "x");
    return done();
  });
  ports.store = store;
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 0));
  store->there = false;
  produce(0, 5);
  EXPECT_TRUE(eventually([&] { return seen->count(EventName::store_unavailable) > 0; }));
  EXPECT_EQ(world.committed("orders", 0), Offset(0));
  store->there = true;
  EXPECT_TRUE(committed(0, 5));
}

TEST_F(RuntimeOnWorld, UntilEndStopsWhenTheEndsOfTheFirstJoinArePassed) {
  world.create_topic("orders", 2);
  produce(0, 20);
  std::atomic<int> handled{0};
  build.on("orders", [&](const Record&, const Owner&) -> Outcome {
    ++handled;
    return done();
  });
  build.options().until_end = true;
  Running running(build, ports);
  EXPECT_TRUE(eventually([&] { return handled == 20 && !world.joined("A"); }));
  EXPECT_EQ(running.join().reason, StopReport::Reason::drained);
  EXPECT_EQ(world.committed("orders", 0), Offset(20));
}

TEST_F(RuntimeOnWorld, AHandlersStopDrainsAndEndsTheRun) {
  world.create_topic("orders", 1);
  produce(0, 3);
  build.on("orders", [](const Record& record, const Owner&) -> Outcome {
    return record.offset() == 1 ? stop("enough") : done();
  });
  Running running(build, ports);
  const StopReport report = running.join();
  EXPECT_EQ(report.reason, StopReport::Reason::outcome_stop) << report.message;
  EXPECT_EQ(world.committed("orders", 0), Offset(1));
}

TEST_F(RuntimeOnWorld, R10AStopTokenDrainsWithinTheShutdownBudget) {
  world.create_topic("orders", 1);
  produce(0, 1);
  Door door;
  build.on("orders", [&](const Record&, const Owner&) -> Outcome {
    door.pass();
    return done();
  });
  Running running(build, ports);
  door.await(1);
  running.ask_to_stop();
  EXPECT_TRUE(eventually([&] { return seen->count(EventName::app_draining) == 1; }));
  door.open();
  const StopReport report = running.join();
  EXPECT_EQ(report.reason, StopReport::Reason::drained) << report.message;
  EXPECT_EQ(report.drained, 1U);
  EXPECT_EQ(world.committed("orders", 0), Offset(1));
}

TEST_F(RuntimeOnWorld, R9AHungHandlerDelaysNeitherTheEndNorTheDestruction) {
  world.create_topic("orders", 1);
  produce(0, 1);
  auto door = std::make_shared<Door>();
  std::atomic<bool> left{false};
  {
    build.on("orders", [&left, door](const Record& record, const Owner& owner) -> Outcome {
      door->pass();
      // Late, and yet everything it was given is still there.
      EXPECT_EQ(record.value().text(), "0");
      EXPECT_EQ(owner.state(), OwnerState::retired);
      left = true;
      return done();
    });
    Running running(build, ports);
    door->await(1);
    running.ask_to_stop();
    StopReport report;
    std::thread end([&] { report = running.join(); });
    std::atomic<bool> ended{false};
    std::thread time([&] {
      while (!ended) {
        world.advance(100ms);
        std::this_thread::yield();
      }
    });
    end.join();
    ended = true;
    time.join();
    EXPECT_EQ(report.reason, StopReport::Reason::cut_short) << report.message;
    EXPECT_EQ(report.abandoned, 1U);
  }
  EXPECT_EQ(world.messages_out(), 1U);
  door->open();
  EXPECT_TRUE(world.wait_until([&] { return left && world.messages_out() == 0; }));
}

TEST_F(RuntimeOnWorld, ACompletionMayOutliveTheRuntime) {
  world.create_topic("orders", 1);
  produce(0, 1);
  std::mutex mutex;
  std::optional<Completion> kept;
  {
    build.on("orders", [&](const Record&, const Owner&, Completion completion) {
      const std::lock_guard<std::mutex> lock(mutex);
      kept = std::move(completion);
    });
    Running running(build, ports);
    EXPECT_TRUE(world.wait_until([&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return kept.has_value();
    }));
    running->abandon();
    running.join();
  }
  ports = {};
  EXPECT_EQ(std::move(*kept).complete(done()), Verdict::late);
  EXPECT_TRUE(world.wait_until([&] { return world.messages_out() == 0; }));
}

TEST_F(RuntimeOnWorld, AStopCallbackThatHangsDoesNotStopTheLoop) {
  world.create_topic("orders", 2);
  produce(0, 1);
  Door handler_door;
  auto callback_door = std::make_shared<Door>();
  build.on("orders", [&, callback_door](const Record& record, const Owner& owner) -> Outcome {
    if (record.partition() == 0) {
      const std::stop_callback hangs(owner.stop_token(),
                                     [callback_door] { callback_door->pass(); });
      handler_door.pass();
    }
    return done();
  });
  Running running(build, ports);
  handler_door.await(1);
  world.revoke("A", {{"orders", Partition(0)}});
  EXPECT_TRUE(eventually([&] { return seen->count(EventName::owner_draining) == 1; }));
  world.advance(3s);
  callback_door->await(1);
  produce(1, 5);
  EXPECT_TRUE(committed(1, 5)) << "a kept partition goes on";
  callback_door->open();
  handler_door.open();
}

TEST_F(RuntimeOnWorld, StatusShowsTheOwners) {
  world.create_topic("orders", 2);
  produce(0, 3);
  build.on("orders", [](const Record& record, const Owner&) -> Outcome {
    return record.offset() == 1 ? park("look") : done();
  });
  Running running(build, ports);
  EXPECT_TRUE(eventually([&] { return running->status().parked == 1; }));
  const Status status = running->status();
  EXPECT_TRUE(status.running);
  EXPECT_EQ(status.member.id, "A-1");
  ASSERT_EQ(status.owners.size(), 2U);
  EXPECT_EQ(status.owners[0].topic, "orders");
  EXPECT_EQ(status.owners[0].frontier, Offset(1));
  EXPECT_EQ(status.owners[0].cause, "parked");
  EXPECT_EQ(status.owners[1].state, OwnerState::active);
  running->stop(1s);
  EXPECT_FALSE(running->status().running);
}

TEST_F(RuntimeOnWorld, RecordEventsReachOnlyObserversThatWantThem) {
  world.create_topic("orders", 1);
  produce(0, 10);
  auto all = std::make_shared<Seen>();
  all->records = true;
  ports.observers.push_back(all);
  build.on("orders", [](const Record&, const Owner&) { return done(); });
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 10));
  running->stop(1s);
  EXPECT_EQ(all->count(EventName::record_outcome), 10);
  EXPECT_EQ(seen->count(EventName::record_outcome), 0);
}

TEST_F(RuntimeOnWorld, AClientThatCannotBeMadeIsTriedAgain) {
  world.create_topic("orders", 1);
  produce(0, 1);
  world.fail_next_open(Error{Code::unavailable, true, false, "no broker", "start one"});
  build.on("orders", [](const Record&, const Owner&) { return done(); });
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 1));
}

TEST_F(RuntimeOnWorld, SeveralTopicsMayHaveTheirOwnHandlers) {
  world.create_topic("orders", 1);
  world.create_topic("refunds-eu", 1);
  produce(0, 5);
  world.produce("refunds-eu", 0, {.key = {}, .value = "x", .headers = {}});
  std::atomic<int> orders{0};
  std::atomic<int> refunds{0};
  build.on("orders", [&](const Record&, const Owner&) -> Outcome {
    ++orders;
    return done();
  });
  build.on("^refunds-.*", [&](const Record& record, const Owner&) -> Outcome {
    EXPECT_TRUE(record.key().null());
    ++refunds;
    return done();
  });
  Running running(build, ports);
  EXPECT_TRUE(committed(0, 5));
  EXPECT_TRUE(eventually([&] { return world.committed("refunds-eu", 0) == Offset(1); }));
  EXPECT_EQ(orders, 5);
  EXPECT_EQ(refunds, 1);
}

TEST_F(RuntimeOnWorld, TwoMembersShareThePartitionsAndHandEachRecordOverOnce) {
  world.create_topic("orders", 4);
  for (int p = 0; p < 4; ++p) produce(p, 50);
  std::mutex mutex;
  std::multiset<std::pair<int, std::int64_t>> handled;
  build.on("orders", [&](const Record& record, const Owner&) -> Outcome {
    const std::lock_guard<std::mutex> lock(mutex);
    handled.emplace(record.partition(), record.offset());
    return done();
  });
  Running a(build, ports);
  for (int p = 0; p < 4; ++p) EXPECT_TRUE(committed(p, 50));
  Ports other = ports;
  other.source = world.member("B");
  other.observers.clear();
  Running b(build, other);
  EXPECT_TRUE(eventually(
      [&] { return world.joined("A") && world.joined("B") && world.assigned("B").size() == 2; }));
  for (int p = 0; p < 4; ++p) produce(p, 50);
  for (int p = 0; p < 4; ++p) EXPECT_TRUE(committed(p, 100));
  const std::lock_guard<std::mutex> lock(mutex);
  EXPECT_EQ(handled.size(), 400U);
  EXPECT_EQ(std::set(handled.begin(), handled.end()).size(), 400U);
}

TEST_F(RuntimeOnWorld, RunTwiceAndStopBeforeRunAreHarmless) {
  world.create_topic("orders", 1);
  build.on("orders", [](const Record&, const Owner&) { return done(); });
  Result<Runtime> runtime = Runtime::create(build, ports);
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->stop(1s).reason, StopReport::Reason::drained);
  EXPECT_EQ(runtime->run().reason, StopReport::Reason::drained);
  EXPECT_FALSE(world.joined("A"));
  EXPECT_EQ(runtime->run().reason, StopReport::Reason::fatal);
}

TEST_F(RuntimeOnWorld, CreateListsEverythingThatIsWrong) {
  Builder wrong;
  wrong.options().retry.attempts = 0;
  wrong.options().lanes = 5000;
  wrong.on("orders", [](const Record&, const Owner&, memory::Transaction&) { return done(); })
      .order(Order::key)
      .effect(Effect::idempotent);
  wrong.on("orders", [](const Record&, const Owner&, Completion) {}).order(Order::none);
  const Result<Runtime> runtime = Runtime::create(wrong, {});
  ASSERT_FALSE(runtime);
  EXPECT_EQ(runtime.error().code, Code::invalid);
  for (const char* part :
       {"[kafka.group.id]", "0 is outside of 1 .. 1000 [retry.attempts]", "[lanes]",
        "topic \"orders\" has two handlers", "set to different values"}) {
    EXPECT_NE(runtime.error().message.find(part), std::string::npos) << part << " in\n"
                                                                     << runtime.error().message;
  }
  Builder mixed;
  mixed.group("g");
  mixed.on("orders", [](const Record&, const Owner&, memory::Transaction&) { return done(); });
  mixed.on("^(", [](const Record&, const Owner&, Completion) {});
  const Result<Runtime> other = Runtime::create(mixed, {});
  ASSERT_FALSE(other);
  for (const char* part : {"there is no source", "takes a transaction, but there is no store",
                           "must be the same for all", "is no regular expression"}) {
    EXPECT_NE(other.error().message.find(part), std::string::npos) << part << " in\n"
                                                                   << other.error().message;
  }
}

}  // namespace
}  // namespace tenure
