#include "core/window.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/assert.hpp"

namespace tenure::core {
namespace {

// Beyond so many, times of admission are thinned.
constexpr std::size_t admission_times_max = 1024;

constexpr std::uint32_t no_queue = 0;

bool terminal(RecordResult result) {
  return result == RecordResult::done || result == RecordResult::replayed;
}

}  // namespace

Window::Window(const Options& options, Offset start, std::span<const LaneProgress> progress)
    : options_(options),
      shape_(options.store_lanes == 1 || options.order == Order::partition ? Shape::single
             : options.store_lanes == 0 && options.order == Order::none    ? Shape::scattered
                                                                           : Shape::queued),
      position_(start),
      floor_(start),
      queues_(shape_ == Shape::queued ? options.store_lanes : std::uint16_t{0},
              options.run_records_max, options.run_wait, segments_, admitted_at_),
      stored_(options.store_lanes, start),
      stored_ceiling_(start) {
  TENURE_ASSERT(options.run_records_max != 0, "a run has room for a record");
  TENURE_ASSERT(options.order != Order::partition || options.store_lanes <= 1,
                "order partition has one lane");
  TENURE_ASSERT(progress.size() == options.store_lanes, "T3 every lane row is activated");
  for (const LaneProgress& lane : progress) {
    TENURE_ASSERT(lane.lane < options.store_lanes, "T3 only rows of the lane rule are activated");
    if (!lane.next_offset) continue;
    stored_[lane.lane] = *lane.next_offset;
    stored_ceiling_ = std::max(stored_ceiling_, *lane.next_offset);
  }
}

// Admission.

Window::Admitted Window::admit(std::span<const Delivered> records, Instant now,
                               std::vector<Held>& held, std::vector<MessageHandle>& freed) {
  now_ = std::max(now_, now);
  Admitted admitted;
  const Ordinal first = next_;
  const Delivered* record = records.data();
  const Delivered* const end = record + records.size();
  while (record != end) {
    record = admit_plain(record, end);
    if (record != end) admit_one(*record++, admitted, held, freed);
  }
  admitted.records = static_cast<std::uint32_t>(next_ - first);
  if (admitted_at_.size() > admission_times_max) thin_admission_times();
  if (admitted.already_stored != 0) advance();
  return admitted;
}

// Behind a record that is stuck for long, times of admission are kept to 2 % of their age: some
// hundred of them whatever the time.
void Window::thin_admission_times() {
  admitted_at_.thin([this](Instant before, Instant following) {
    return (following - before) * 50 <= now_ - following;
  });
}

// Takes records that are simply ready, as nearly all are; answers the first that is not.
const Delivered* Window::admit_plain(const Delivered* record, const Delivered* end) {
  if (dropped_ || position_ < stored_ceiling_) return record;
  const LeaderEpoch epoch = epochs_.newest();
  Offset position = position_;
  const auto plain = [&position, epoch](const Delivered& one) {
    return one.offset >= position && one.message != nullptr && one.leader_epoch == epoch;
  };
  while (record != end && plain(*record)) {
    const Ordinal first = next_;
    Segment& segment = segments_.writable(first);
    Segment::Slot* slot = &segment.at(first);
    const Delivered* const begin = record;
    const Delivered* const full =
        begin + std::min<std::ptrdiff_t>(end - begin, Segment::records - Segment::index(first));
    std::uint64_t bytes = 0;
    for (; record != full && plain(*record); ++record, ++slot) {
      const MessageHandle message = record->message;
      const Offset offset = record->offset;
      slot->message = message;
      slot->offset = offset;
      slot->bytes = record->bytes;
      bytes += record->bytes;
      position = offset.next();
    }
    const auto count = static_cast<std::uint64_t>(record - begin);
    note_admission(first);
    behind_undecodable_ = false;
    next_ += count;
    position_ = position;
    bytes_ += bytes;
    unfinished_ += count;
    if (shape_ == Shape::scattered) {
      fresh_ready_ += count;
    } else if (shape_ == Shape::queued) {
      enqueue(std::span(begin, record), first);
    }
  }
  return record;
}

void Window::admit_one(const Delivered& record, Admitted& admitted, std::vector<Held>& held,
                       std::vector<MessageHandle>& freed) {
  const bool undecodable = record.message == nullptr;
  const bool below = record.offset < position_;
  // The client names a batch that it cannot decode by its first offset, even when the part that
  // is wanted begins inside: then all from the position on may be in it. Named again with nothing
  // delivered in between, it is the same one.
  if (below && (!undecodable || behind_undecodable_)) {
    ++admitted.below_position;
    if (!undecodable) freed.push_back(record.message);
    return;
  }
  const Offset offset = below ? position_ : record.offset;
  if (!below) position_ = offset.next();
  behind_undecodable_ = undecodable;
  const Ordinal ordinal = next_++;
  Segment& segment = segments_.writable(ordinal);
  const std::uint32_t at = Segment::index(ordinal);
  segment.slot[at] = {record.message, offset, 0, 0};
  if (record.leader_epoch != epochs_.newest()) {
    epochs_.record(ordinal, record.leader_epoch);
    forget_at_ = std::min(forget_at_, ordinal);
  }
  note_admission(ordinal);
  if (undecodable) {
    // What it holds is unknown, so is its lane: it holds them all (queues, deferred_).
    ++unfinished_;
    if (shape_ == Shape::queued) undecodable_.push_back(ordinal);
    if (dropped_) return;
    Segment::set(segment.held, at);
    held_.put(ordinal, no_queue);
    held.push_back({ordinal, offset, 0, RecordResult::park, 1});
    return;
  }
  if (!stored_.empty() && record.offset < stored_[record.hash % stored_.size()]) {
    if (admitted.already_stored++ == 0) admitted.stored_first = record.offset;
    admitted.stored_last = record.offset;
    freed.push_back(record.message);
    Segment::set(segment.done, at);
    if (++segment.terminal == Segment::records) segments_.fold(ordinal);
    return;
  }
  ++unfinished_;
  segment.slot[at].bytes = record.bytes;
  bytes_ += record.bytes;
  if (dropped_) {
    free_message(segment, ordinal, freed);
  } else if (shape_ == Shape::scattered) {
    ++fresh_ready_;
  }
  // Dropped ones too: their lane stands at them.
  if (shape_ == Shape::queued) enqueue(std::span(&record, 1), ordinal);
}

inline void Window::note_admission(Ordinal ordinal) {
  if (admitted_at_.newest() == now_) return;
  admitted_at_.record(ordinal, now_);
  forget_at_ = std::min(forget_at_, ordinal);
}

void Window::enqueue(std::span<const Delivered> records, Ordinal first) {
  if (undecodable_.empty()) [[likely]] {
    for (const Delivered& record : records) queues_.append(record.hash, first++, now_);
  } else {
    for (const Delivered& record : records) deferred_.push_back({first++, record.hash});
  }
}

void Window::enqueue_deferred() {
  while (!deferred_.empty() &&
         (undecodable_.empty() || deferred_.front().ordinal < undecodable_.front())) {
    queues_.append(deferred_.front().hash, deferred_.front().ordinal, now_);
    deferred_.pop_front();
  }
}

void Window::reach(Offset offset) {
  position_ = std::max(position_, offset);
}

void Window::skip_to(Offset offset) {
  reach(offset);
}

// Dispatch.

bool Window::take(Run& run, std::uint32_t records_max, Instant now) {
  now_ = std::max(now_, now);
  const std::uint32_t limit = std::min(records_max, options_.run_records_max);
  if (limit == 0) return false;
  run.key_slot = 0;
  std::size_t taken = 0;
  switch (shape_) {
    case Shape::scattered:
      taken = returned_.empty() ? take_fresh(run, limit) : take_returned(run, limit);
      break;
    case Shape::single:
      taken = take_single(run, limit);
      break;
    case Shape::queued:
      taken = take_queue(run, limit);
      break;
  }
  if (taken == 0) return false;
  lent_ += taken;
  if (run.records.size() != taken) run.records.resize(taken);
  // What is the same for all records, but for a while after a change of leader or a retry.
  if (epochs_.size() != 1) [[unlikely]] {
    for (RunRecord& record : run.records) record.leader_epoch = epochs_.at(record.ordinal);
  }
  if (!attempts_.empty()) [[unlikely]] {
    for (RunRecord& record : run.records) record.attempt = attempt_of(record.ordinal);
  }
  run.owner = {};
  run.lane = 0;
  run.lane_from = {};
  if (!stored_.empty()) {
    run.lane = static_cast<std::uint16_t>(run.key_slot);
    run.lane_from = stored_[run.key_slot];
  }
  run.fence.reset();
  run.failures.clear();
  run.again = AgainCause::contention;
  run.store_error = StoreError::none;
  run.store_message.clear();
  run.lane_reached.reset();
  run.took = {};
  return true;
}

// Records that came back go first, since they are older; consecutive ones together.
std::size_t Window::take_returned(Run& run, std::uint32_t limit) {
  std::size_t taken = 0;
  while (taken < limit && !returned_.empty()) {
    const Ordinal ordinal = returned_.front();
    if (taken != 0 && ordinal != run.records[taken - 1].ordinal + 1) break;
    std::pop_heap(returned_.begin(), returned_.end(), std::greater<>());
    returned_.pop_back();
    lend_span(segments_.at(ordinal), ordinal, 1, run, taken++);
  }
  return taken;
}

std::size_t Window::take_fresh(Run& run, std::uint32_t limit) {
  if (fresh_ready_ == 0) return 0;
  const Ordinal first = first_fresh();
  if (due(fresh_ready_, first) > now_) return 0;
  Ordinal at = first;
  while (at < next_ && at - first < limit) {
    Segment* const segment = segments_.find(at);
    if (segment == nullptr) break;
    const std::uint32_t from = Segment::index(at);
    const std::uint64_t most = std::min(limit - (at - first), next_ - at);
    const auto to =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(Segment::records, from + most));
    const std::uint32_t end = segment->first_not_ready(from, to);
    if (end == from) break;
    lend_span(*segment, at, end - from, run, static_cast<std::size_t>(at - first));
    at += end - from;
    if (end < Segment::records) break;
  }
  cursor_ = at;
  fresh_ready_ -= at - first;
  return static_cast<std::size_t>(at - first);
}

std::size_t Window::take_single(Run& run, std::uint32_t limit) {
  if (dropped_ || single_lent_ || single_reserved_) return 0;
  Ordinal at = first_incomplete(std::max(cursor_, first_));
  cursor_ = at;
  if (at == next_ || segments_.at(at).is_held(Segment::index(at))) return 0;
  if (options_.run_wait > Duration::zero() && due(ready_single(), at) > now_) return 0;
  std::size_t taken = 0;
  while (at < next_ && taken < limit) {
    Segment& segment = segments_.at(at);
    const std::uint32_t from = Segment::index(at);
    const std::uint64_t most = std::min<std::uint64_t>(limit - taken, next_ - at);
    const auto to =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(Segment::records, from + most));
    const std::uint32_t end = segment.first_not_ready(from, to);
    if (end == from) break;  // held: what is behind it stays behind it
    lend_span(segment, at, end - from, run, taken);
    taken += end - from;
    at = first_incomplete(at + (end - from));
  }
  cursor_ = at;
  single_lent_ = true;
  return taken;
}

inline std::size_t Window::take_queue(Run& run, std::uint32_t limit) {
  const std::uint32_t slot = queues_.next(now_);
  if (slot == LaneQueues::none) return 0;
  const LaneQueues::Queue& queue = queues_[slot];
  const std::uint32_t count = std::min(limit, queue.open);
  if (run.records.size() < count) run.records.resize(count);
  run.key_slot = slot;
  RunRecord* out = run.records.data();
  const LeaderEpoch epoch = epochs_.newest();
  Ordinal ordinal = queue.head;
  for (std::uint32_t n = count; n != 0; --n, ++out) {
    Segment& segment = segments_.at(ordinal);
    lend(segment.at(ordinal), ordinal, epoch, *out);
    Segment::set(segment.lent, Segment::index(ordinal));
    ordinal = LaneQueues::following(segment, ordinal);
  }
  queues_.lend(slot, count, ordinal);
  return count;
}

void Window::lend_span(Segment& segment, Ordinal from, std::uint32_t count, Run& run,
                       std::size_t at) {
  if (run.records.size() < at + count) run.records.resize(at + count);
  RunRecord* out = run.records.data() + at;
  const Segment::Slot* slot = &segment.at(from);
  const LeaderEpoch epoch = epochs_.newest();
  for (Ordinal ordinal = from; ordinal != from + count; ++ordinal) {
    lend(*slot++, ordinal, epoch, *out++);
  }
  segment.lend(Segment::index(from), Segment::index(from) + count);
}

inline void Window::lend(const Segment::Slot& slot, Ordinal ordinal, LeaderEpoch epoch,
                         RunRecord& out) {
  const MessageHandle message = slot.message;
  const Offset offset = slot.offset;
  const std::uint32_t bytes = slot.bytes;
  out.message = message;
  out.offset = offset;
  out.ordinal = ordinal;
  out.bytes = bytes;
  out.leader_epoch = epoch;
  out.attempt = 1;
  out.result = RecordResult::unstarted;
}

// When a queue with that many ready records from `first` on may be taken from.
Instant Window::due(std::uint64_t ready, Ordinal first) const {
  if (options_.run_wait <= Duration::zero() || ready >= options_.run_records_max) return now_;
  return after(admitted_at_.at(first), options_.run_wait);
}

Instant Window::ready_at() const {
  if (dropped_) return never;
  switch (shape_) {
    case Shape::scattered:
      if (!returned_.empty()) return now_;
      return fresh_ready_ == 0 ? never : std::max(now_, due(fresh_ready_, first_fresh()));
    case Shape::single: {
      const std::uint64_t ready = ready_single();
      if (ready == 0) return never;
      return std::max(now_, due(ready, first_incomplete(std::max(cursor_, first_))));
    }
    case Shape::queued:
      break;
  }
  return queues_.ready_at(now_);
}

std::uint64_t Window::ready() const {
  if (dropped_) return 0;
  switch (shape_) {
    case Shape::scattered:
      return fresh_ready_ + returned_.size();
    case Shape::single:
      return ready_single();
    case Shape::queued:
      break;
  }
  return queues_.ready();
}

// Outcomes.

void Window::settle(Run& run, Instant now, std::vector<Held>& held,
                    std::vector<MessageHandle>& freed) {
  now_ = std::max(now_, now);
  const std::span<const RunRecord> records = run.records;
  TENURE_ASSERT(!records.empty() && records.size() <= lent_, "O5 a run is settled once");
  const std::size_t done =
      shape_ == Shape::queued ? settle_chain(records, freed) : settle_spans(records, freed);
  lent_ -= records.size();
  unfinished_ -= done;
  if (!attempts_.empty()) [[unlikely]] {
    for (const RunRecord& record : records.first(done)) attempts_.erase(record.ordinal);
  }
  if (done < records.size()) settle_from(done, run, held, freed);
  switch (shape_) {
    case Shape::scattered:
      break;
    case Shape::single:
      TENURE_ASSERT(single_lent_, "O5 a run is settled once");
      single_lent_ = false;
      break;
    case Shape::queued:
      queues_.give_back(run.key_slot, now_);
      break;
  }
  if (!stored_.empty() && run.lane_reached) {
    stored_[run.lane] = std::max(stored_[run.lane], *run.lane_reached);
  }
  advance();
}

// The terminal records in front: with luck, all. Answers how many. Without queues a run is one
// stretch of ordinals, or a few.
inline std::size_t Window::settle_spans(std::span<const RunRecord> records,
                                        std::vector<MessageHandle>& freed) {
  std::uint64_t bytes = 0;
  const RunRecord* const begin = records.data();
  const RunRecord* const end = begin + records.size();
  const RunRecord* record = begin;
  for (; record != end && terminal(record->result); ++record) {
    freed.push_back(record->message);
    bytes += record->bytes;
  }
  bytes_ -= bytes;
  const auto done = static_cast<std::size_t>(record - begin);
  for (std::size_t from = 0; from < done;) {
    std::size_t to = done;
    const Ordinal first = records[from].ordinal;
    if (records[to - 1].ordinal - first != to - 1 - from) {
      to = from + 1;
      while (records[to].ordinal - first == to - from) ++to;
    }
    finish_lent(first, to - from);
    from = to;
  }
  return done;
}

inline std::size_t Window::settle_chain(std::span<const RunRecord> records,
                                        std::vector<MessageHandle>& freed) {
  std::uint64_t bytes = 0;
  const RunRecord* const begin = records.data();
  const RunRecord* const end = begin + records.size();
  const RunRecord* record = begin;
  for (; record != end && terminal(record->result); ++record) {
    freed.push_back(record->message);
    bytes += record->bytes;
    finish_lent(record->ordinal);
  }
  bytes_ -= bytes;
  return static_cast<std::size_t>(record - begin);
}

// The records from the first on that did not become terminal.
void Window::settle_from(std::size_t at, Run& run, std::vector<Held>& held,
                         std::vector<MessageHandle>& freed) {
  const bool in_order = shape_ != Shape::scattered;
  bool behind_held = false;
  cursor_ = in_order ? std::min(cursor_, run.records[at].ordinal) : cursor_;
  for (std::size_t n = at; n < run.records.size(); ++n) {
    const RunRecord& record = run.records[n];
    if (terminal(record.result)) {
      freed.push_back(record.message);
      bytes_ -= record.bytes;
      --unfinished_;
      finish_lent(record.ordinal);
      attempts_.erase(record.ordinal);
      continue;
    }
    Segment& segment = unfinished_segment(record.ordinal);
    const std::uint32_t place = Segment::index(record.ordinal);
    TENURE_ASSERT(segment.is_lent(place), "O5 a run is settled once");
    Segment::clear(segment.lent, place);
    if (dropped_) {
      free_message(segment, record.ordinal, freed);
    } else if (record.result == RecordResult::unstarted || (in_order && behind_held)) {
      if (!in_order) {
        returned_.push_back(record.ordinal);
        std::push_heap(returned_.begin(), returned_.end(), std::greater<>());
      }
    } else {
      Segment::set(segment.held, place);
      held_.put(record.ordinal, run.key_slot);
      held.push_back({record.ordinal, record.offset, static_cast<std::uint32_t>(n), record.result,
                      attempt_of(record.ordinal)});
      behind_held = true;
    }
  }
  if (shape_ != Shape::queued) return;
  for (std::size_t n = run.records.size(); n-- > at;) {
    if (!terminal(run.records[n].result)) queues_.put_back(run.key_slot, run.records[n].ordinal);
  }
}

// Lent records become terminal.
inline void Window::finish_lent(Ordinal ordinal) {
  Segment& segment = unfinished_segment(ordinal);
  const bool was_lent = segment.finish_lent(Segment::index(ordinal));
  TENURE_ASSERT(was_lent, "O5 a run is settled once");
  if (segment.terminal == Segment::records) segments_.fold(ordinal);
}

void Window::finish_lent(Ordinal from, std::uint64_t count) {
  while (count != 0) {
    Segment& segment = unfinished_segment(from);
    const std::uint32_t begin = Segment::index(from);
    const auto end =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(Segment::records, begin + count));
    const bool were_lent = segment.finish_lent(begin, end);
    TENURE_ASSERT(were_lent, "O5 a run is settled once");
    if (segment.terminal == Segment::records) segments_.fold(from);
    from += end - begin;
    count -= end - begin;
  }
}

void Window::release(Ordinal held, bool counts, Instant now) {
  if (dropped_) return;
  now_ = std::max(now_, now);
  TENURE_ASSERT(unfinished_segment(held).at(held).message != nullptr,
                "F1 of an undecodable record there is nothing to try");
  const std::uint32_t slot = unhold(held);
  if (counts) {
    const std::uint32_t attempt = std::min<std::uint32_t>(attempt_of(held) + 1U, UINT16_MAX);
    attempts_.put(held, attempt);
  }
  switch (shape_) {
    case Shape::scattered:
      returned_.push_back(held);
      std::push_heap(returned_.begin(), returned_.end(), std::greater<>());
      break;
    case Shape::single:
      break;
    case Shape::queued:
      queues_.unhold(slot, now_);
      break;
  }
}

void Window::finish(Ordinal held, std::vector<MessageHandle>& freed) {
  Segment& segment = unfinished_segment(held);
  const std::uint32_t at = Segment::index(held);
  const std::uint32_t slot = unhold(held);
  attempts_.erase(held);
  if (shape_ == Shape::queued) {
    const std::size_t barriers = undecodable_.size();
    undecodable_.retain([held](std::size_t, Ordinal ordinal) { return ordinal != held; });
    if (undecodable_.size() == barriers) {
      queues_.remove_held(slot, held, now_);
    } else {
      enqueue_deferred();
    }
  }
  free_message(segment, held, freed);
  --unfinished_;
  Segment::set(segment.done, at);
  if (++segment.terminal == Segment::records) segments_.fold(held);
  advance();
}

void Window::drop_unstarted(std::vector<MessageHandle>& freed) {
  if (dropped_) return;
  dropped_ = true;
  for (Ordinal ordinal = first_; ordinal < next_; ++ordinal) {
    Segment* const segment = segments_.find(ordinal);
    const std::uint32_t at = Segment::index(ordinal);
    if (segment == nullptr) {
      ordinal += Segment::records - 1 - at;
    } else if (!segment->is_done(at) && !segment->is_lent(at)) {
      free_message(*segment, ordinal, freed);
    }
  }
  fresh_ready_ = 0;
  returned_.clear();
  queues_.close();
}

bool Window::can_still_advance() const {
  if (lent_ == 0) return false;
  // A run is always taken from the front of its lane, so nothing incomplete is before it there.
  if (!stored_.empty()) return true;
  return segments_.at(first_).is_lent(Segment::index(first_));
}

// What is known.

LeaderEpoch Window::frontier_leader_epoch() const {
  return first_ == 0 ? no_leader_epoch : epochs_.at(first_ - 1);
}

Instant Window::oldest_incomplete_since() const {
  return first_ == next_ ? never : admitted_at_.at(first_);
}

Offset Window::lane_stand(std::uint16_t lane) const {
  TENURE_ASSERT(lane < stored_.size(), "no such store lane");
  if (shape_ == Shape::single) return frontier();
  const LaneQueues::Queue& queue = queues_[lane];
  if (queue.state == LaneQueues::Queue::State::lent) return offset_of(queue.lent_first);
  if (queue.records != 0) return offset_of(queue.head);
  return undecodable_.empty() ? position_ : offset_of(undecodable_.front());
}

Offset Window::lane_stored(std::uint16_t lane) const {
  TENURE_ASSERT(lane < stored_.size(), "no such store lane");
  return stored_[lane];
}

bool Window::lane_lent(std::uint16_t lane) const {
  TENURE_ASSERT(lane < stored_.size(), "no such store lane");
  if (shape_ == Shape::single) return single_lent_;
  return queues_[lane].state == LaneQueues::Queue::State::lent;
}

bool Window::lane_idle(std::uint16_t lane) const {
  TENURE_ASSERT(lane < stored_.size(), "no such store lane");
  if (shape_ == Shape::single) return !single_lent_ && !single_reserved_ && ready() == 0;
  return queues_[lane].state == LaneQueues::Queue::State::idle;
}

void Window::reserve_lane(std::uint16_t lane) {
  TENURE_ASSERT(lane_idle(lane), "T4 a lane has one store transaction outstanding at most");
  if (shape_ == Shape::single) {
    single_reserved_ = true;
  } else {
    queues_.reserve(lane);
  }
}

void Window::lane_advanced(std::uint16_t lane, Offset stored, Instant now) {
  TENURE_ASSERT(lane < stored_.size(), "no such store lane");
  now_ = std::max(now_, now);
  stored_[lane] = std::max(stored_[lane], stored);
  if (shape_ == Shape::single) {
    TENURE_ASSERT(single_reserved_, "only a reserved lane is given back");
    single_reserved_ = false;
  } else {
    queues_.unreserve(lane, now_);
  }
}

Offset Window::stored_minimum() const {
  TENURE_ASSERT(!stored_.empty(), "no store lanes");
  return *std::min_element(stored_.begin(), stored_.end());
}

// Inside.

std::uint32_t Window::unhold(Ordinal ordinal) {
  Segment& segment = unfinished_segment(ordinal);
  const std::uint32_t at = Segment::index(ordinal);
  TENURE_ASSERT(segment.is_held(at), "O7 only a held record is released or finished");
  Segment::clear(segment.held, at);
  const std::uint32_t slot = held_.find(ordinal);
  held_.erase(ordinal);
  return slot;
}

void Window::free_message(Segment& segment, Ordinal ordinal, std::vector<MessageHandle>& freed) {
  Segment::Slot& slot = segment.at(ordinal);
  if (slot.message == nullptr) return;
  freed.push_back(slot.message);
  slot.message = nullptr;
  bytes_ -= slot.bytes;
}

void Window::forget_passed() {
  epochs_.forget_below(first_ - 1);
  admitted_at_.forget_below(first_);
  forget_at_ = std::min(epochs_.next_change(), admitted_at_.next_change());
}

void Window::pass_done() {
  first_ = first_incomplete(first_);
  segments_.release_below(first_);
  passed();
}

Ordinal Window::first_incomplete(Ordinal from) const {
  while (from < next_) {
    const std::uint32_t at = Segment::index(from);
    const Segment* const segment = segments_.find(from);
    const std::uint32_t found =
        segment == nullptr ? Segment::records : segment->first_not_done(at, Segment::records);
    from += found - at;
    if (found < Segment::records) break;
  }
  return from;
}

// Scattered: the first ready record that was never lent. There must be one.
Ordinal Window::first_fresh() const {
  Ordinal from = std::max(cursor_, first_);
  for (;;) {
    const std::uint32_t at = Segment::index(from);
    const Segment* const segment = segments_.find(from);
    const std::uint32_t found =
        segment == nullptr ? Segment::records : segment->first_ready(at, Segment::records);
    from += found - at;
    if (found < Segment::records) return from;
  }
}

// The one queue, up to its first held record.
std::uint64_t Window::ready_single() const {
  if (single_lent_ || single_reserved_) return 0;
  if (held_.empty()) return unfinished_;
  std::uint64_t ready = 0;
  for (Ordinal at = first_incomplete(std::max(cursor_, first_)); at < next_;
       at = first_incomplete(at + 1)) {
    if (segments_.at(at).is_held(Segment::index(at))) break;
    ++ready;
  }
  return ready;
}

std::uint16_t Window::attempt_of(Ordinal ordinal) const {
  const std::uint32_t attempt = attempts_.find(ordinal);
  return attempt == SlotTable::none ? std::uint16_t{1} : static_cast<std::uint16_t>(attempt);
}

}  // namespace tenure::core
