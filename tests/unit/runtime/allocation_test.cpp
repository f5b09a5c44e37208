#include <gtest/gtest.h>

#include "support/allocation_count.hpp"
#include "support/counting_new.hpp"
#include "unit/runtime/run_bench.hpp"

namespace tenure::runtime {
namespace {

TEST(Allocation, ABlockingHandlersRunCostsNoneInSteadyState) {
  Bench bench(make_handler([](const Record&, const Owner&) { return done(); }));
  const Executor executor({nullptr, false, false, true});
  core::Run& run = bench.make_run(std::vector<std::string>(1000, "x"));
  RunTask* task = &bench.lend(run);
  executor.execute(*task, bench.scratch);
  for (RunTask* back : bench.returns->take_returned()) bench.tasks.give(*back);

  const std::uint64_t before = test::allocations();
  task = &bench.lend(run);
  executor.execute(*task, bench.scratch);
  const std::uint64_t after = test::allocations();
  // One: the list of the test's own Returns.
  EXPECT_LE(after - before, 1U);
  EXPECT_EQ(bench.returns->count(), 1U);
}

TEST(Allocation, AnAsyncRecordCostsNoneInSteadyState) {
  Bench bench(make_handler([](const Record&, const Owner&, Completion completion) {
    static_cast<void>(std::move(completion).complete(done()));
  }));
  const Executor executor({nullptr, false, false, true});
  core::Run& run = bench.make_run({"x"});
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t before = test::allocations();
    executor.execute(bench.lend(run, true, true), bench.scratch);
    last = test::allocations() - before;
    for (RunTask* back : bench.returns->take_returned()) bench.tasks.give(*back);
  }
  EXPECT_LE(last, 1U);
}

}  // namespace
}  // namespace tenure::runtime
