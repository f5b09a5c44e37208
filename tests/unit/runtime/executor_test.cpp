#include "runtime/executor.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "unit/runtime/run_bench.hpp"

namespace tenure::runtime {
namespace {

using core::AgainCause;

std::string text(const Record& record) {
  return std::string(record.value().text());
}

/// Says what the record's value asks for.
Outcome obey(const std::string& word) {
  if (word.starts_with("retry")) return retry(std::chrono::seconds(5), "busy", "mine");
  if (word.starts_with("reject")) return reject("bad", "");
  if (word.starts_with("park")) return park("look at it");
  if (word.starts_with("stop")) return stop("enough");
  if (word.starts_with("throw")) throw std::runtime_error("boom");
  if (word.starts_with("refused")) throw FenceRefused{};
  return done();
}

// ---- single, no unit
// -----------------------------------------------------------------------------

const Executor plain_ordered({nullptr, false, false, true});
const Executor plain_unordered({nullptr, false, false, false});

TEST(ExecutorSingle, EveryRecordIsHandledOnceAndInOrder) {
  std::vector<std::string> seen;
  Bench bench(make_handler([&](const Record& record, const Owner& owner) -> Outcome {
    seen.push_back(text(record));
    EXPECT_EQ(owner.grant_id(), GrantId(7));
    EXPECT_EQ(record.identity(),
              "c/00000000-0000-0000-0000-000000000000/3/" + std::to_string(record.offset()));
    return done();
  }));
  core::Run& run = bench.make_run({"a", "b", "c"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(results(run), "done done done");
  EXPECT_FALSE(run.lane_reached);
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(ExecutorSingle, MoreRecordsThanAreLookedAtAtOnceAreAllHandled) {
  int seen = 0;
  Bench bench(make_handler([&](const Record& record, const Owner&) -> Outcome {
    EXPECT_EQ(record.offset(), 100 + 10 * seen);
    ++seen;
    return tenure::done();
  }));
  core::Run& run = bench.make_run(std::vector<std::string>(1000, "x"));
  bench.execute(plain_ordered, run);
  EXPECT_EQ(seen, 1000);
}

TEST(ExecutorSingle, InOrderTheFirstRecordThatIsNotDoneEndsTheRun) {
  Bench bench(make_handler(
      [](const Record& record, const Owner&) -> Outcome { return obey(text(record)); }));
  core::Run& run = bench.make_run({"a", "retry", "c"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(results(run), "done retry unstarted");
  ASSERT_EQ(run.failures.size(), 1U);
  EXPECT_EQ(run.failures[0].index, 1U);
  EXPECT_EQ(run.failures[0].failure_class, "mine");
  EXPECT_EQ(run.failures[0].reason, "busy");
  EXPECT_EQ(run.failures[0].after, Duration(std::chrono::seconds(5)));
}

TEST(ExecutorSingle, WithoutOrderAFailureStopsNoOtherRecord) {
  Bench bench(make_handler(
      [](const Record& record, const Owner&) -> Outcome { return obey(text(record)); }));
  core::Run& run = bench.make_run({"reject", "a", "park", "b", "stop"});
  bench.execute(plain_unordered, run);
  EXPECT_EQ(results(run), "reject done park done stop");
  EXPECT_EQ(run.failures.size(), 3U);
}

TEST(ExecutorSingle, Answer1AThrownExceptionIsRetryOfClassException) {
  Bench bench(make_handler([](const Record& record, const Owner&) -> Outcome {
    if (text(record) == "other") throw 42;
    return obey(text(record));
  }));
  core::Run& run = bench.make_run({"throw", "other"});
  bench.execute(plain_unordered, run);
  EXPECT_EQ(results(run), "retry retry");
  EXPECT_EQ(run.failures[0].failure_class, "exception");
  EXPECT_EQ(run.failures[0].reason, "boom");
  EXPECT_EQ(run.failures[1].failure_class, "exception");
}

TEST(ExecutorSingle, F6AFenceRefusedIsNoOutcomeButSupersedes) {
  const Executor own_fence({nullptr, false, true, true});
  Bench bench(make_handler(
      [](const Record& record, const Owner&) -> Outcome { return obey(text(record)); }));
  core::Run& run = bench.make_run({"a", "refused", "c"});
  bench.execute(own_fence, run);
  EXPECT_EQ(results(run), "done unstarted unstarted");
  EXPECT_EQ(run.store_error, StoreError::superseded);
}

TEST(ExecutorSingle, ATransactionOfTheUsersMovesTheLaneRecordByRecord) {
  const Executor own_fence({nullptr, false, true, true});
  std::vector<Offset> from;
  Bench bench(make_handler([&](const Record& record, const Owner&) -> Outcome {
    from.push_back(record.lane_from());
    EXPECT_EQ(record.lane(), 2);
    return obey(text(record));
  }));
  core::Run& run = bench.make_run({"a", "b", "park"});
  bench.execute(own_fence, run);
  EXPECT_EQ(from, (std::vector<Offset>{Offset(100), Offset(101), Offset(111)}));
  EXPECT_EQ(run.lane_reached, Offset(111));
}

TEST(ExecutorSingle, R1AClosedGateEndsTheRunBetweenTwoRecords) {
  Bench* here = nullptr;
  Bench bench(make_handler([&](const Record& record, const Owner&) -> Outcome {
    if (text(record) == "b") here->close();
    return tenure::done();
  }));
  here = &bench;
  core::Run& run = bench.make_run({"a", "b", "c", "d"});
  bench.execute(plain_unordered, run);
  EXPECT_EQ(results(run), "done done unstarted unstarted");
  core::Run& next = bench.make_run({"e"});
  bench.execute(plain_unordered, next);
  EXPECT_EQ(results(next), "unstarted");
}

TEST(ExecutorSingle, ReasonsAreCutAtATextBoundaryAndClassesChecked) {
  Bench bench(make_handler([](const Record& record, const Owner&) -> Outcome {
    if (text(record) == "long") return retry({}, std::string(511, 'x') + "\xC3\xA4", "ok_1");
    if (text(record) == "class") return reject("why", "Not Valid");
    return retry(std::chrono::hours(1000), "", std::string(33, 'a'));
  }));
  core::Run& run = bench.make_run({"long", "class", "later"});
  bench.execute(plain_unordered, run);
  ASSERT_EQ(run.failures.size(), 3U);
  EXPECT_EQ(run.failures[0].reason, std::string(511, 'x'));
  EXPECT_EQ(run.failures[0].failure_class, "ok_1");
  EXPECT_EQ(run.failures[1].failure_class, "reject");
  EXPECT_NE(run.failures[1].reason.find("Not Valid"), std::string::npos);
  EXPECT_NE(run.failures[1].reason.find("why"), std::string::npos);
  EXPECT_EQ(run.failures[2].failure_class, "retry");
  EXPECT_EQ(run.failures[2].after, Duration(std::chrono::hours(24)));
}

TEST(ExecutorSingle, TheLastHeaderOfANameCounts) {
  Bench bench(make_handler([](const Record& record, const Owner&) -> Outcome {
    EXPECT_EQ(record.header("a").text(), "2");
    EXPECT_TRUE(record.header("b").null());
    EXPECT_TRUE(record.header("none").null());
    return tenure::done();
  }));
  core::Run& run = bench.make_run({"x"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(results(run), "done");
}

// ---- batch, no unit
// ------------------------------------------------------------------------------

struct Calls {
  std::vector<std::vector<std::string>> made;
  Handler handler(std::string culprit, Outcome says, bool throws = false) {
    return make_handler([this, culprit, says, throws](Batch batch, const Owner&) -> Outcome {
      made.emplace_back();
      bool found = false;
      for (const Record& record : batch) {
        made.back().push_back(text(record));
        found = found || text(record) == culprit;
      }
      if (!found) return done();
      if (throws) throw std::runtime_error("boom");
      return says;
    });
  }
};

TEST(ExecutorBatch, OneOutcomeHoldsForAll) {
  Calls calls;
  Bench bench(calls.handler("none", done()));
  core::Run& run = bench.make_run({"a", "b", "c"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(calls.made.size(), 1U);
  EXPECT_EQ(results(run), "done done done");
}

TEST(ExecutorBatch, RejectBisectsDownToTheRecordItIsAbout) {
  Calls calls;
  Bench bench(calls.handler("f", reject("no")));
  core::Run& run = bench.make_run({"a", "b", "c", "d", "e", "f", "g", "h"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(results(run), "done done done done done reject unstarted unstarted");
  EXPECT_EQ(calls.made.front().size(), 8U);
  EXPECT_EQ(calls.made.back(), std::vector<std::string>{"f"});
  ASSERT_EQ(run.failures.size(), 1U);
  EXPECT_EQ(run.failures[0].index, 5U);
}

TEST(ExecutorBatch, AThrowBisectsToo) {
  Calls calls;
  Bench bench(calls.handler("a", done(), true));
  core::Run& run = bench.make_run({"a", "b", "c"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(results(run), "retry unstarted unstarted");
  EXPECT_EQ(run.failures[0].failure_class, "exception");
}

TEST(ExecutorBatch, RetryRepeatsTheWholeBatchAndStopIsNotBisected) {
  Calls calls;
  Bench bench(calls.handler("b", retry({}, "later")));
  core::Run& run = bench.make_run({"a", "b", "c"});
  bench.execute(plain_ordered, run);
  EXPECT_EQ(calls.made.size(), 1U);
  EXPECT_EQ(results(run), "retry unstarted unstarted");

  core::Run& loose = bench.make_run({"a", "b", "c"});
  bench.execute(plain_unordered, loose);
  EXPECT_EQ(results(loose), "retry retry retry");

  Calls stops;
  Bench other(stops.handler("b", stop("enough")));
  core::Run& ended = other.make_run({"a", "b", "c"});
  other.execute(plain_ordered, ended);
  EXPECT_EQ(stops.made.size(), 1U);
  EXPECT_EQ(results(ended), "stop unstarted unstarted");
}

// ---- single with unit
// ----------------------------------------------------------------------------

class ExecutorUnit : public ::testing::TestWithParam<bool> {
 protected:
  ExecutorUnit()
      : bench(make_handler([this](const Record& record, const Owner&, FakeTransaction& tx) {
          called.push_back(text(record));
          tx.execute(text(record));
          if (text(record) == "turns" && ++turns > 1) return park("changed my mind");
          return obey(text(record));
        })) {
    store.later = GetParam();
  }

  core::Run& execute(std::vector<std::string> values) {
    core::Run& run = bench.make_run(std::move(values));
    RunTask* task = &bench.lend(run);
    while (task != nullptr) {
      executor.execute(*task, bench.scratch);
      while (!store.pending.empty()) store.answer_next();
      task = bench.returns->take_resumed();
    }
    EXPECT_EQ(bench.returns->count(), 1U) << "every run comes back exactly once";
    return run;
  }

  FakeStore store;
  std::vector<std::string> called;
  int turns = 0;
  Bench bench;
  Executor executor{{&store, true, true, true}};
};

INSTANTIATE_TEST_SUITE_P(CommitAnswered, ExecutorUnit, ::testing::Values(false, true),
                         [](const auto& tested) { return tested.param ? "Later" : "AtOnce"; });

using Written = std::vector<std::vector<std::string>>;

TEST_P(ExecutorUnit, ARunIsOneTransactionThatMovesTheLanePastItsLastRecord) {
  core::Run& run = execute({"a", "b", "c"});
  EXPECT_EQ(results(run), "done done done");
  EXPECT_EQ(store.committed, (Written{{"a", "b", "c"}}));
  ASSERT_EQ(store.moves.size(), 1U);
  EXPECT_EQ(store.moves[0], std::make_pair(Offset(100), Offset(121)));
  EXPECT_EQ(run.lane_reached, Offset(121));
  EXPECT_EQ(run.store_error, StoreError::none);
}

TEST_P(ExecutorUnit, WhatPrecedesAnUnfinishedRecordIsRunAgainAndCommitted) {
  core::Run& run = execute({"a", "b", "retry", "d"});
  EXPECT_EQ(called, (std::vector<std::string>{"a", "b", "retry", "a", "b"}));
  EXPECT_EQ(store.committed, (Written{{"a", "b"}}));
  EXPECT_EQ(results(run), "done done retry unstarted");
  EXPECT_EQ(run.lane_reached, Offset(111));
  ASSERT_EQ(run.failures.size(), 1U);
  EXPECT_EQ(run.failures[0].index, 2U);
  EXPECT_EQ(run.failures[0].failure_class, "mine");
}

TEST_P(ExecutorUnit, NothingIsStoredWhenTheFirstRecordIsNotDone) {
  core::Run& run = execute({"park", "b"});
  EXPECT_EQ(called, (std::vector<std::string>{"park"}));
  EXPECT_TRUE(store.committed.empty());
  EXPECT_EQ(store.rolled_back, 1);
  EXPECT_EQ(results(run), "park unstarted");
  EXPECT_FALSE(run.lane_reached);
}

TEST_P(ExecutorUnit, AVerdictIsForgottenWhenWhatPrecedesItFailsInTheSecondPass) {
  core::Run& run = execute({"turns", "retry", "c"});
  EXPECT_EQ(called, (std::vector<std::string>{"turns", "retry", "turns"}));
  EXPECT_EQ(results(run), "park unstarted unstarted");
  EXPECT_EQ(run.failures.size(), 1U);
  EXPECT_TRUE(store.committed.empty());
}

TEST_P(ExecutorUnit, Answer1AThrowRollsBackAndIsRetryOfClassException) {
  core::Run& run = execute({"throw"});
  EXPECT_EQ(results(run), "retry");
  EXPECT_EQ(run.failures[0].failure_class, "exception");
  EXPECT_EQ(store.rolled_back, 1);
  EXPECT_TRUE(store.committed.empty());
}

TEST_P(ExecutorUnit, F6FenceRefusedRollsBackAndSupersedes) {
  core::Run& run = execute({"a", "refused"});
  EXPECT_EQ(run.store_error, StoreError::superseded);
  EXPECT_EQ(results(run), "unstarted unstarted");
  EXPECT_TRUE(store.committed.empty());
}

TEST_P(ExecutorUnit, AFailedStatementDecidesWhateverTheHandlerSays) {
  store.fail_on = {"bad", {UnitVerdict::constraint, "duplicate"}};
  core::Run& run = execute({"bad"});
  EXPECT_EQ(results(run), "reject");
  EXPECT_EQ(run.failures[0].failure_class, "constraint");
  EXPECT_EQ(run.failures[0].reason, "duplicate");
}

TEST_P(ExecutorUnit, AStatementThatFailsInABatchIsTriedAloneBeforeItCounts) {
  store.fail_on = {"bad", {UnitVerdict::data, "out of range"}};
  core::Run& run = execute({"a", "b", "bad", "d"});
  EXPECT_EQ(called, (std::vector<std::string>{"a", "b", "bad", "a", "b", "bad"}));
  EXPECT_EQ(store.committed, (Written{{"a", "b"}}));
  EXPECT_EQ(results(run), "done done reject unstarted");
  EXPECT_EQ(run.failures[0].failure_class, "data");
  EXPECT_EQ(run.failures.size(), 1U);
}

TEST_P(ExecutorUnit, ARecordTriedAloneIsAUnitOfItsOwn) {
  bench.handler = make_handler([this](const Record& record, const Owner&, FakeTransaction& tx) {
    tx.execute(text(record));
    store.fail_on.reset();  // from the next unit on
    return done();
  });
  store.fail_on = {"slow", {UnitVerdict::timeout, "statement timeout"}};
  core::Run& run = execute({"a", "slow", "c"});
  EXPECT_EQ(store.committed, (Written{{"a"}, {"slow"}, {"c"}}));
  EXPECT_EQ(results(run), "done done done");
  EXPECT_TRUE(run.failures.empty()) << "the first try did not count";
}

TEST_P(ExecutorUnit, AVerdictIsForgottenWhenTheCommitBeforeItFails) {
  store.answers = {{UnitVerdict::sql, "deferred"}};
  core::Run& run = execute({"a", "b", "park"});
  EXPECT_EQ(store.committed, (Written{{"a"}, {"b"}}));
  EXPECT_EQ(results(run), "done done park");
  EXPECT_EQ(run.failures.size(), 1U);
}

TEST_P(ExecutorUnit, ACommitThatFailsForSomeRecordFindsItByHalves) {
  // All, then the first half, then the second half's first record, which is the one.
  store.answers = {
      {UnitVerdict::sql, "deferred"}, {UnitVerdict::applied, ""}, {UnitVerdict::sql, "deferred"}};
  core::Run& run = execute({"a", "b", "c", "d"});
  EXPECT_EQ(store.committed, (Written{{"a", "b"}}));
  EXPECT_EQ(results(run), "done done retry unstarted");
  EXPECT_EQ(run.failures[0].failure_class, "sql");
  EXPECT_EQ(run.lane_reached, Offset(111));
}

TEST_P(ExecutorUnit, E3AlreadyAppliedIsReplayed) {
  store.answers = {{UnitVerdict::already_applied, ""}};
  core::Run& run = execute({"a", "b"});
  EXPECT_EQ(results(run), "replayed replayed");
  EXPECT_EQ(run.lane_reached, Offset(111));
}

struct Ended {
  UnitVerdict verdict;
  StoreError error;
  std::string_view first;
  AgainCause cause;
};

TEST_P(ExecutorUnit, VerdictsThatAreNobodysFaultEndTheRunUncounted) {
  const Ended cases[] = {
      {UnitVerdict::superseded, StoreError::superseded, "unstarted", AgainCause::contention},
      {UnitVerdict::moved, StoreError::moved, "unstarted", AgainCause::contention},
      {UnitVerdict::in_doubt, StoreError::in_doubt, "unstarted", AgainCause::contention},
      {UnitVerdict::retired, StoreError::retired, "unstarted", AgainCause::contention},
      {UnitVerdict::contention, StoreError::contention, "again", AgainCause::contention},
      {UnitVerdict::unavailable, StoreError::unavailable, "again", AgainCause::store_down},
      {UnitVerdict::handler_down, StoreError::none, "again", AgainCause::handler_down},
  };
  for (const Ended& ended : cases) {
    SCOPED_TRACE(name(ended.verdict));
    for (const bool at_commit : {false, true}) {
      static_cast<void>(bench.returns->take_returned());
      store.fail_on.reset();
      if (at_commit) {
        store.answers = {{ended.verdict, "why"}};
      } else {
        store.fail_on = {"b", {ended.verdict, "why"}};
      }
      core::Run& run = execute({"a", "b", "c"});
      EXPECT_EQ(run.store_error, ended.error);
      EXPECT_EQ(run.store_message, "why");
      EXPECT_EQ(results(run), std::string(ended.first) + " unstarted unstarted");
      EXPECT_EQ(run.again, ended.cause);
      EXPECT_TRUE(run.failures.empty());
      EXPECT_FALSE(run.lane_reached);
    }
  }
  EXPECT_TRUE(store.committed.empty());
}

TEST_P(ExecutorUnit, VerdictsAboutTheRecordAreItsOutcome) {
  struct About {
    UnitVerdict verdict;
    std::string_view result;
    std::string_view failure_class;
  };
  const About cases[] = {
      {UnitVerdict::timeout, "retry", "timeout"},
      {UnitVerdict::data, "reject", "data"},
      {UnitVerdict::constraint, "reject", "constraint"},
      {UnitVerdict::sql, "retry", "sql"},
      {UnitVerdict::misuse, "stop", "stop"},
  };
  for (const About& about : cases) {
    SCOPED_TRACE(name(about.verdict));
    for (const bool at_commit : {false, true}) {
      static_cast<void>(bench.returns->take_returned());
      store.fail_on.reset();
      if (at_commit) {
        store.answers = {{about.verdict, "why"}};
      } else {
        store.fail_on = {"x", {about.verdict, "why"}};
      }
      core::Run& run = execute({"x"});
      EXPECT_EQ(results(run), about.result);
      ASSERT_EQ(run.failures.size(), 1U);
      EXPECT_EQ(run.failures[0].failure_class, about.failure_class);
      EXPECT_EQ(run.store_error, StoreError::none);
    }
  }
}

TEST_P(ExecutorUnit, R1WhatHasRunWhenTheGateClosesIsStartedWorkAndIsCommitted) {
  bench.handler = make_handler([this](const Record& record, const Owner&, FakeTransaction& tx) {
    tx.execute(text(record));
    if (text(record) == "b") bench.close();
    return done();
  });
  core::Run& run = execute({"a", "b", "c"});
  EXPECT_EQ(store.committed, (Written{{"a", "b"}}));
  EXPECT_EQ(results(run), "done done unstarted");
  EXPECT_EQ(run.lane_reached, Offset(111));
}

TEST_P(ExecutorUnit, ABatchHandlersRejectFindsItsRecordAndStoresTheOthersBefore) {
  bench.handler = make_handler([](Batch batch, const Owner&, FakeTransaction& tx) -> Outcome {
    for (const Record& record : batch) tx.execute(text(record));
    for (const Record& record : batch) {
      if (text(record) == "bad") return reject("no");
    }
    return done();
  });
  core::Run& run = execute({"a", "b", "c", "bad", "e"});
  EXPECT_EQ(results(run), "done done done reject unstarted");
  std::vector<std::string> stored;
  for (const auto& unit : store.committed) stored.insert(stored.end(), unit.begin(), unit.end());
  EXPECT_EQ(stored, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ExecutorUnitLater, TheWorkerIsFreeWhileTheCommitIsOut) {
  FakeStore store;
  store.later = true;
  Bench bench(make_handler([](const Record&, const Owner&, FakeTransaction&) { return done(); }));
  const Executor executor({&store, true, true, true});
  core::Run& run = bench.make_run({"a"});
  executor.execute(bench.lend(run), bench.scratch);
  EXPECT_EQ(bench.returns->count(), 0U);
  EXPECT_EQ(results(run), "unstarted");
  store.answer_next();
  EXPECT_EQ(bench.returns->count(), 1U);
  EXPECT_EQ(results(run), "done");
}

TEST(ExecutorUnitLater, NoHandlerRunsOnTheStoresThread) {
  FakeStore store;
  store.later = true;
  int calls = 0;
  store.fail_on = {"bad", {UnitVerdict::data, ""}};
  Bench bench(make_handler([&](const Record& record, const Owner&, FakeTransaction& tx) {
    ++calls;
    tx.execute(text(record));
    return done();
  }));
  const Executor executor({&store, true, true, true});
  core::Run& run = bench.make_run({"a", "bad"});
  executor.execute(bench.lend(run), bench.scratch);
  const int before = calls;
  store.answer_next();
  EXPECT_EQ(calls, before);
  RunTask* task = bench.returns->take_resumed();
  ASSERT_NE(task, nullptr) << "the failed record is tried alone by a worker";
  executor.execute(*task, bench.scratch);
  EXPECT_EQ(calls, before + 1);
  EXPECT_EQ(results(run), "done reject");
}

}  // namespace
}  // namespace tenure::runtime
