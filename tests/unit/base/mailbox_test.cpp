#include "base/mailbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tenure {
namespace {

struct Node {
  Node* next = nullptr;
  int writer = 0;
  int number = 0;
};
using Box = Mailbox<Node, int>;
constexpr std::chrono::seconds long_time(30);

TEST(Mailbox, NodesOfOneWriterComeOutInTheOrderTheyWerePut) {
  Box box;
  Node nodes[3];
  for (int i = 0; i < 3; ++i) {
    nodes[i].number = i;
    box.put(&nodes[i], false);
  }
  int expected = 0;
  for (Node* node = box.take_nodes(); node != nullptr; node = node->next) {
    EXPECT_EQ(node->number, expected++);
  }
  EXPECT_EQ(expected, 3);
  EXPECT_EQ(box.take_nodes(), nullptr);
}

TEST(Mailbox, ANodePutBeforeTheReaderParksEndsThatSleep) {
  Box box;
  Node node;
  box.begin_turn();
  box.put(&node, false);
  const auto began = std::chrono::steady_clock::now();
  box.sleep(long_time, Box::Sleep::park);
  EXPECT_LT(std::chrono::steady_clock::now() - began, long_time / 2);
}

TEST(Mailbox, AWakeBetweenTurnAndSleepIsNotLost) {
  Box box;
  box.begin_turn();
  box.wake();
  const auto began = std::chrono::steady_clock::now();
  box.sleep(long_time, Box::Sleep::park);
  EXPECT_LT(std::chrono::steady_clock::now() - began, long_time / 2);
}

TEST(Mailbox, ADozingReaderSleepsOverNodesThatAreNotUrgent) {
  Box box;
  Node node;
  box.begin_turn();
  box.put(&node, false);
  const auto began = std::chrono::steady_clock::now();
  box.sleep(std::chrono::milliseconds(20), Box::Sleep::doze);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(20));
  EXPECT_EQ(box.take_nodes(), &node);
}

TEST(Mailbox, AnUrgentNodeEndsADoze) {
  Box box;
  Node node;
  box.begin_turn();
  std::thread writer([&] { box.put(&node, true); });
  const auto began = std::chrono::steady_clock::now();
  box.sleep(long_time, Box::Sleep::doze);
  EXPECT_LT(std::chrono::steady_clock::now() - began, long_time / 2);
  writer.join();
  EXPECT_EQ(box.take_nodes(), &node);
}

TEST(Mailbox, MessagesArriveInOrderAndEndTheSleep) {
  Box box;
  box.begin_turn();
  std::thread writer([&] {
    box.post(1);
    box.post(2);
  });
  std::vector<int> taken;
  while (taken.size() < 2) {
    box.sleep(long_time, Box::Sleep::park);
    box.begin_turn();
    box.take_messages(taken);
  }
  writer.join();
  EXPECT_EQ(taken, (std::vector<int>{1, 2}));
}

// A lost wake-up would leave the reader asleep for longer than the test may take.
TEST(Mailbox, NothingIsLostOrSleptOverBetweenManyWriters) {
  constexpr int writers = 4;
  constexpr int each = 20'000;
  Box box;
  std::vector<Node> nodes(writers * each);
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < each; ++i) {
        Node& node = nodes[static_cast<std::size_t>(w * each + i)];
        node.writer = w;
        node.number = i;
        box.put(&node, i % 64 == 0);
      }
    });
  }
  int next[writers] = {};
  int taken = 0;
  while (taken < writers * each) {
    box.begin_turn();
    Node* node = box.take_nodes();
    if (node == nullptr) {
      box.sleep(long_time, Box::Sleep::park);
      continue;
    }
    for (; node != nullptr; node = node->next) {
      EXPECT_EQ(node->number, next[node->writer]++);
      ++taken;
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenure
