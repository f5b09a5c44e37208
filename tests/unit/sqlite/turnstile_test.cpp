#include "sqlite/turnstile.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tenure::sqlite {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto soon = std::chrono::seconds(20);

TEST(Turnstile, GivesTheTurnInTheOrderOfArrival) {
  Turnstile turnstile;
  Turnstile::Waiter holder;
  ASSERT_EQ(turnstile.enter(holder, Clock::now()), Turnstile::Entry::taken);
  std::vector<int> order;  // written by holders only
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      Turnstile::Waiter waiter;
      EXPECT_EQ(turnstile.enter(waiter, Clock::now() + soon), Turnstile::Entry::taken);
      order.push_back(i);
      turnstile.leave(waiter);
    });
    while (turnstile.waiting() != static_cast<std::size_t>(i) + 1) std::this_thread::yield();
  }
  turnstile.leave(holder);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Turnstile, AWaiterThatIsTooLateLeavesTheQueue) {
  Turnstile turnstile;
  Turnstile::Waiter holder;
  Turnstile::Waiter late;
  ASSERT_EQ(turnstile.enter(holder, Clock::now()), Turnstile::Entry::taken);
  EXPECT_EQ(turnstile.enter(late, Clock::now() + std::chrono::milliseconds(5)),
            Turnstile::Entry::too_late);
  EXPECT_EQ(turnstile.waiting(), 0U);
  turnstile.leave(late);  // not the holder: nothing happens
  EXPECT_EQ(turnstile.enter(late, Clock::now()), Turnstile::Entry::too_late);
  turnstile.leave(holder);
  EXPECT_EQ(turnstile.enter(late, Clock::now()), Turnstile::Entry::taken);
}

TEST(Turnstile, CancelEndsAWaitAndEveryLaterOne) {
  Turnstile turnstile;
  Turnstile::Waiter holder;
  Turnstile::Waiter cancelled;
  ASSERT_EQ(turnstile.enter(holder, Clock::now()), Turnstile::Entry::taken);
  std::thread thread([&] {
    EXPECT_EQ(turnstile.enter(cancelled, Clock::now() + soon), Turnstile::Entry::cancelled);
  });
  while (turnstile.waiting() != 1) std::this_thread::yield();
  turnstile.cancel(cancelled);
  thread.join();
  turnstile.leave(holder);
  EXPECT_EQ(turnstile.enter(cancelled, Clock::now() + soon), Turnstile::Entry::cancelled);
  Turnstile::Waiter next;
  EXPECT_EQ(turnstile.enter(next, Clock::now()), Turnstile::Entry::taken);
}

TEST(Turnstile, CloseEndsAllWaitingButNotTheHolder) {
  Turnstile turnstile;
  Turnstile::Waiter holder;
  Turnstile::Waiter waiter;
  ASSERT_EQ(turnstile.enter(holder, Clock::now()), Turnstile::Entry::taken);
  std::thread thread([&] {
    EXPECT_EQ(turnstile.enter(waiter, Clock::now() + soon), Turnstile::Entry::cancelled);
  });
  while (turnstile.waiting() != 1) std::this_thread::yield();
  turnstile.close();
  thread.join();
  bool called = false;
  EXPECT_TRUE(turnstile.while_held_by(holder, [&] { called = true; }));
  EXPECT_TRUE(called);
  EXPECT_FALSE(turnstile.while_held_by(waiter, [] { FAIL(); }));
}

}  // namespace
}  // namespace tenure::sqlite
