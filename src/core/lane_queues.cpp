#include "core/lane_queues.hpp"

#include <algorithm>

namespace tenure::core {

LaneQueues::LaneQueues(std::uint16_t lanes, std::uint32_t run_records_max, Duration run_wait,
                       const Segments& segments, const OrdinalHistory<Instant>& admitted_at)
    : lanes_(lanes),
      run_records_max_(run_records_max),
      run_wait_(run_wait),
      segments_(segments),
      admitted_at_(admitted_at),
      queues_(lanes) {}

std::uint32_t LaneQueues::new_key(std::uint64_t hash) {
  if (free_slot_ == none && queues_.size() == keys_max_) forget_idle_keys();
  std::uint32_t slot = free_slot_;
  if (slot == none) {
    slot = static_cast<std::uint32_t>(queues_.size());
    queues_.emplace_back();
  } else {
    free_slot_ = std::exchange(queues_[slot].next_ready, none);
  }
  queues_[slot].hash = hash;
  keys_.put(hash, slot);
  return slot;
}

// A key that comes again soon, as most do, finds its queue; one that does not is forgotten here,
// at a cost that its own insertion has paid for.
void LaneQueues::forget_idle_keys() {
  keys_.clear();
  std::size_t live = 0;
  for (std::uint32_t slot = 0; slot < queues_.size(); ++slot) {
    Queue& queue = queues_[slot];
    if (queue.state == State::idle && queue.records == 0) {
      queue.next_ready = std::exchange(free_slot_, slot);
    } else {
      keys_.put(queue.hash, slot);
      ++live;
    }
  }
  if (live > keys_max_ / 4) keys_max_ *= 2;
}

void LaneQueues::put_back(std::uint32_t slot, Ordinal ordinal) {
  Queue& queue = queues_[slot];
  if (queue.records == 0) {
    queue.tail = ordinal;
  } else {
    link(ordinal, queue.head);
  }
  queue.head = ordinal;
  ++queue.records;
  if (segments_.at(ordinal).is_held(Segment::index(ordinal))) ++queue.held;
}

void LaneQueues::reserve(std::uint32_t slot) {
  TENURE_ASSERT(queues_[slot].state == State::idle, "a queue in use cannot be reserved");
  queues_[slot].state = State::reserved;
}

void LaneQueues::unreserve(std::uint32_t slot, Instant now) {
  Queue& queue = queues_[slot];
  TENURE_ASSERT(queue.state == State::reserved, "only a reserved queue is given back");
  queue.state = State::idle;
  count_open(queue);
  offer(slot, now);
}

void LaneQueues::unhold(std::uint32_t slot, Instant now) {
  --queues_[slot].held;
  reopen(slot, now);
}

void LaneQueues::remove_held(std::uint32_t slot, Ordinal ordinal, Instant now) {
  Queue& queue = queues_[slot];
  if (queue.head == ordinal) {
    if (queue.records > 1) queue.head = following(ordinal);
  } else {
    Ordinal before = queue.head;
    while (following(before) != ordinal) before = following(before);
    if (queue.tail == ordinal) {
      queue.tail = before;
    } else {
      link(before, following(ordinal));
    }
  }
  --queue.records;
  --queue.held;
  reopen(slot, now);
}

void LaneQueues::close() {
  closed_ = true;
  ready_ = 0;
  while (first_ready_ != none) {
    Queue& queue = queues_[first_ready_];
    queue.state = State::idle;
    first_ready_ = std::exchange(queue.next_ready, none);
  }
  last_ready_ = none;
  for (const Waiting& waiting : waiting_) {
    Queue& queue = queues_[waiting.slot];
    queue.in_waiting = false;
    if (queue.state == State::waiting) queue.state = State::idle;
  }
  waiting_.clear();
}

Instant LaneQueues::ready_at(Instant now) const {
  if (first_ready_ != none) return now;
  return waiting_.empty() ? never : waiting_.front().due;
}

// In all but odd cases (an unstarted record before it) the held record is the first.
void LaneQueues::count_open_to_held(Queue& queue) const {
  queue.open = 0;
  for (Ordinal ordinal = queue.head; !segments_.at(ordinal).is_held(Segment::index(ordinal));
       ordinal = following(ordinal)) {
    ++queue.open;
  }
}

// What was held at or behind the end of the open part is not held any more.
void LaneQueues::reopen(std::uint32_t slot, Instant now) {
  Queue& queue = queues_[slot];
  const bool listed = queue.state == State::ready || queue.state == State::waiting;
  if (listed) ready_ -= queue.open;
  count_open(queue);
  if (listed) {
    ready_ += queue.open;
    if (queue.state == State::waiting && queue.open >= run_records_max_) push_ready(slot);
  } else if (queue.state == State::idle) {
    offer(slot, now);
  }
}

// False when the first record has waited long enough already.
bool LaneQueues::wait(std::uint32_t slot, Instant now) {
  Queue& queue = queues_[slot];
  const Instant due = after(admitted_at_.at(queue.head), run_wait_);
  if (due <= now) return false;
  queue.state = State::waiting;
  queue.due = due;
  if (!queue.in_waiting) push_waiting(slot);
  correct_first_wait();
  return true;
}

void LaneQueues::end_waits(Instant now) {
  while (!waiting_.empty() && waiting_.front().due <= now) push_ready(pop_waiting());
}

void LaneQueues::push_waiting(std::uint32_t slot) {
  queues_[slot].in_waiting = true;
  waiting_.push_back({queues_[slot].due, slot});
  std::push_heap(waiting_.begin(), waiting_.end());
}

std::uint32_t LaneQueues::pop_waiting() {
  const std::uint32_t slot = waiting_.front().slot;
  std::pop_heap(waiting_.begin(), waiting_.end());
  waiting_.pop_back();
  queues_[slot].in_waiting = false;
  return slot;
}

void LaneQueues::correct_first_wait() {
  while (!waiting_.empty()) {
    const Queue& queue = queues_[waiting_.front().slot];
    if (queue.state == State::waiting && queue.due <= waiting_.front().due) return;
    const std::uint32_t slot = pop_waiting();
    if (queue.state == State::waiting) push_waiting(slot);
  }
}

}  // namespace tenure::core
