// The queues of one owner's window: one a store lane or, without store lanes, one a live key.
//
// Role: order. A queue chains its records, oldest first, through the segments; it is lent as a
//   whole, one run at a time, and stops at a held record.
// Owns: the queues, the table of live keys, the list of queues that can be taken from. It only
//   refers to the segments and admission times of its window.
// Threads: none. Lifecycle: the window's.
// Promises: a queue is in use by one run at most; queues are offered in the order in which they
//   became ready; keys without records are forgotten whenever the table would grow, so there are
//   at most eight times as many slots as keys were ever live at once; no allocation in steady
//   state.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "core/ordinal_history.hpp"
#include "core/run.hpp"
#include "core/segments.hpp"
#include "core/slot_table.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

class LaneQueues {
 public:
  static constexpr std::uint32_t none = SlotTable::none;

  struct Queue {
    enum class State : std::uint8_t {
      idle,     ///< nothing to take: empty, or a held record is first, or closed
      ready,    ///< in the list of those to take from
      waiting,  ///< for more records, until `due`
      lent,
      reserved,  ///< not to be lent for a while
    };
    std::uint32_t next_ready = none;  ///< list of ready queues, or of free slots
    State state = State::idle;
    bool in_waiting = false;    // has an entry in waiting_
    std::uint32_t records = 0;  ///< chained; without those lent
    std::uint32_t open = 0;     ///< of these, before the first held one
    std::uint32_t held = 0;     ///< of these, held
    Ordinal head = 0;           ///< chain, when `records` is not 0
    Ordinal tail = 0;
    Ordinal lent_first = 0;  ///< first record of the run, when lent
    std::uint64_t hash = 0;  ///< live key
    Instant due{};           ///< when waiting
  };

  /// `lanes` = 0: a queue a live key.
  LaneQueues(std::uint16_t lanes, std::uint32_t run_records_max, Duration run_wait,
             const Segments& segments, const OrdinalHistory<Instant>& admitted_at);

  /// Chains an admitted record behind the others of its lane or key.
  void append(std::uint64_t hash, Ordinal ordinal, Instant now) {
    const std::uint32_t slot = slot_of(hash);
    Queue& queue = queues_[slot];
    if (queue.records++ == 0) {
      queue.head = ordinal;
    } else {
      link(queue.tail, ordinal);
    }
    queue.tail = ordinal;
    if (queue.held != 0) return;
    ++queue.open;
    if (queue.state == State::ready) {
      ++ready_;
    } else if (queue.state == State::idle) {
      offer(slot, now);
    } else if (queue.state == State::waiting) {
      ++ready_;
      if (queue.open >= run_records_max_) push_ready(slot);
    }
  }

  /// The next queue to take from, or none. The caller must lend it.
  std::uint32_t next(Instant now) {
    if (!waiting_.empty()) end_waits(now);
    return first_ready_;
  }

  /// Lends the queue of next() and unchains its first `records` records, at most `open`. `rest` is
  /// the record behind them (any value when there is none): the caller has walked the chain.
  void lend(std::uint32_t slot, std::uint32_t records, Ordinal rest) {
    Queue& queue = queues_[slot];
    first_ready_ = std::exchange(queue.next_ready, none);
    if (first_ready_ == none) last_ready_ = none;
    ready_ -= queue.open;
    queue.state = State::lent;
    queue.lent_first = std::exchange(queue.head, rest);
    queue.records -= records;
    queue.open -= records;
  }

  /// Puts a record that came back not terminal in front; last one first. Only while lent.
  void put_back(std::uint32_t slot, Ordinal ordinal);

  /// The run has been settled.
  void give_back(std::uint32_t slot, Instant now) {
    Queue& queue = queues_[slot];
    TENURE_ASSERT(queue.state == State::lent, "O5 a run is settled once");
    queue.state = State::idle;
    count_open(queue);
    offer(slot, now);
  }

  /// Nothing of an idle queue is offered until unreserve().
  void reserve(std::uint32_t slot);
  void unreserve(std::uint32_t slot, Instant now);

  /// A held record of this queue is no longer held (its bit is cleared already).
  void unhold(std::uint32_t slot, Instant now);

  /// A held record of this queue is terminal after all (its bit is cleared already).
  void remove_held(std::uint32_t slot, Ordinal ordinal, Instant now);

  /// R1: no queue is offered any more. Chains stay, since lanes stand at their first record.
  void close();

  [[nodiscard]] const Queue& operator[](std::uint32_t slot) const { return queues_[slot]; }
  /// The record chained behind `ordinal`, which must not be the last of its queue.
  static Ordinal following(const Segment& segment, Ordinal ordinal) {
    return ordinal + (segment.at(ordinal).next - static_cast<std::uint32_t>(ordinal));
  }
  /// Records in ready and waiting queues.
  [[nodiscard]] std::uint64_t ready() const { return ready_; }
  /// `now` when a queue is ready, else when the first waiting one is; never.
  [[nodiscard]] Instant ready_at(Instant now) const;
  /// Queues there is memory for (tests).
  [[nodiscard]] std::size_t slots() const { return queues_.size(); }

 private:
  using State = Queue::State;
  struct Waiting {
    Instant due;
    std::uint32_t slot = none;
    // Earliest on top of the heap; equal times by slot, so that order depends on input alone.
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return a.due != b.due ? a.due > b.due : a.slot > b.slot;
    }
  };

  [[nodiscard]] std::uint32_t slot_of(std::uint64_t hash) {
    if (lanes_ != 0) return static_cast<std::uint32_t>(hash % lanes_);
    const std::uint32_t slot = keys_.find(hash);
    return slot != none ? slot : new_key(hash);
  }
  std::uint32_t new_key(std::uint64_t hash);
  void forget_idle_keys();
  [[nodiscard]] Ordinal following(Ordinal ordinal) const {
    return following(segments_.at(ordinal), ordinal);
  }
  void link(Ordinal from, Ordinal to) {
    segments_.at(from).at(from).next = static_cast<std::uint32_t>(to);
  }
  void count_open(Queue& queue) const {
    queue.open = queue.records;
    if (queue.held != 0) count_open_to_held(queue);
  }
  void count_open_to_held(Queue& queue) const;
  void reopen(std::uint32_t slot, Instant now);
  void offer(std::uint32_t slot, Instant now) {
    const Queue& queue = queues_[slot];
    if (closed_ || queue.open == 0) return;
    ready_ += queue.open;
    if (run_wait_ > Duration::zero() && queue.open < run_records_max_ && wait(slot, now)) return;
    push_ready(slot);
  }
  void push_ready(std::uint32_t slot) {
    queues_[slot].state = State::ready;
    (last_ready_ == none ? first_ready_ : queues_[last_ready_].next_ready) = slot;
    last_ready_ = slot;
    if (!waiting_.empty()) correct_first_wait();
  }
  bool wait(std::uint32_t slot, Instant now);
  void end_waits(Instant now);
  void push_waiting(std::uint32_t slot);
  std::uint32_t pop_waiting();
  void correct_first_wait();

  const std::uint16_t lanes_;
  const std::uint32_t run_records_max_;
  const Duration run_wait_;
  const Segments& segments_;
  const OrdinalHistory<Instant>& admitted_at_;

  std::vector<Queue> queues_;       // lanes, or slots of keys
  SlotTable keys_;                  // hash -> slot; keys without records stay for a while
  std::size_t keys_max_ = 64;       // how many slots there may be before they are forgotten
  std::uint32_t free_slot_ = none;  // chained by next_ready
  std::uint32_t first_ready_ = none;
  std::uint32_t last_ready_ = none;
  // A heap with one entry a queue at most, whose time may be too early once the queue has been lent
  // in between; only the first entry is always right.
  std::vector<Waiting> waiting_;
  std::uint64_t ready_ = 0;
  bool closed_ = false;
};

}  // namespace tenure::core
