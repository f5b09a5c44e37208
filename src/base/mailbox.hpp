// What other threads have for one reader, and the one place where that reader parks.
//
// Role: nodes (runs coming back: many, cheap) through a lock-free list that is taken whole;
//   messages (store answers, requests: few) through a locked list; wake() for news that lie
//   elsewhere.
// Owns: messages. Nodes stay the writer's object and are lent by pointer; `Node* next` is theirs
//   for the list while they are in it.
// Threads: put(), post(), wake(): any. The rest: the reader's only.
// Lifecycle: must outlive every call of a writer; writers hold a reference to whatever holds the
//   mailbox.
// Promises: nothing put or posted before the reader's wait() is slept over, except nodes put
//   without `urgent` while the reader dozes: these are seen when the doze ends.
// Does not promise: an order between nodes and messages, or between threads.
#pragma once

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "base/mutex.hpp"

namespace tenure {

template <class Node, class Message>
class Mailbox {
 public:
  enum class Sleep : std::uint8_t {
    park,  ///< anything ends it
    doze,  ///< nodes end it only when they are urgent
  };

  /// Wait-free but for a retry on contention; no allocation; no lock unless the reader sleeps.
  void put(Node* node, bool urgent) noexcept {
    Node* head = nodes_.load(std::memory_order_relaxed);
    do {
      node->next = head;
      // Pairs with the exchange in take_nodes(): what the writer did to the node is visible.
      // seq_cst, like listener_ below: either the reader sees the node before it sleeps, or this
      // thread sees that it sleeps.
    } while (!nodes_.compare_exchange_weak(head, node, std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
    if (urgent && !news_.load(std::memory_order_seq_cst)) {
      news_.store(true, std::memory_order_seq_cst);
    }
    const Listener listener = listener_.load(std::memory_order_seq_cst);
    if (listener == Listener::parked || (listener == Listener::dozing && urgent)) ring();
  }

  void post(Message message) {
    {
      Lock lock(mutex_);
      messages_.push_back(std::move(message));
    }
    wake();
  }

  /// Ends the reader's sleep, or the next one if it is awake. Signals only.
  void wake() noexcept {
    news_.store(true, std::memory_order_seq_cst);
    if (listener_.load(std::memory_order_seq_cst) != Listener::awake) ring();
  }

  /// Before the reader looks at anything: what comes from here on ends the next sleep.
  void begin_turn() noexcept { news_.store(false, std::memory_order_seq_cst); }

  /// All nodes, the first one put first, linked by `next`.
  Node* take_nodes() noexcept {
    Node* taken = nodes_.exchange(nullptr, std::memory_order_seq_cst);
    Node* ordered = nullptr;
    while (taken != nullptr) {
      Node* next = taken->next;
      taken->next = ordered;
      ordered = taken;
      taken = next;
    }
    return ordered;
  }

  /// Appends all messages, the first one posted first.
  void take_messages(std::vector<Message>& out) {
    Lock lock(mutex_);
    for (Message& message : messages_) out.push_back(std::move(message));
    messages_.clear();
  }

  void sleep(std::chrono::nanoseconds longest, Sleep how) {
    const auto until = std::chrono::steady_clock::now() + longest;
    listener_.store(how == Sleep::park ? Listener::parked : Listener::dozing,
                    std::memory_order_seq_cst);
    const bool awaited = news_.load(std::memory_order_seq_cst) ||
                         (how == Sleep::park && nodes_.load(std::memory_order_seq_cst) != nullptr);
    if (!awaited) {
      Lock lock(mutex_);
      while (!rung_ && bell_.wait_until(mutex_, until)) {
      }
    }
    listener_.store(Listener::awake, std::memory_order_seq_cst);
    Lock lock(mutex_);
    rung_ = false;
  }

 private:
  enum class Listener : std::uint8_t { awake, parked, dozing };

  void ring() noexcept {
    Lock lock(mutex_);
    rung_ = true;
    bell_.notify_one();
  }

  std::atomic<Node*> nodes_{nullptr};
  std::atomic<bool> news_{false};
  std::atomic<Listener> listener_{Listener::awake};
  Mutex mutex_;
  Condition bell_;
  bool rung_ TENURE_GUARDED_BY(mutex_) = false;
  std::vector<Message> messages_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure
