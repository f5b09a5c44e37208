// The records of one owner between delivery and the frontier: what is ready, what runs, what is
// held, and how far everything is done.
//
// Role: admission, lanes (order), dispatch order, completion, frontier of ONE owner. Pure.
// Owns: the messages of records it holds, except those lent out in a Run; it hands them back
//   through the `freed` vectors, for the loop thread to free a run at a time.
// Threads: none. Lifecycle: one owner, one window (O1, O4).
// Shape: dense ordinals in segments of 256 that fold when all in them is terminal; a bit per
//   ordinal for completion; the frontier steps over folded segments, so sparse offsets cost
//   nothing and a stuck record costs bytes a segment (Q11). No allocation per record in steady
//   state: segments, queues and the table of live keys are recycled.
// Promises: F1 only delivered offsets are tracked, gaps between delivered offsets are complete;
//   F2 frontier() never goes back and never passes an incomplete record; O5 dropping never
//   completes; two records of one lane are never out at the same time.
// Does not promise: any bound. The engine asks records() and bytes() and stops admitting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "core/lane_queues.hpp"
#include "core/ordinal_history.hpp"
#include "core/run.hpp"
#include "core/segments.hpp"
#include "core/sliding_vector.hpp"
#include "core/slot_table.hpp"
#include "tenure/ids.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

class Window {
 public:
  struct Options {
    Order order = Order::key;
    /// Lanes kept at the store (kind transaction), 1 .. 1024: lane = hash mod lanes. 0 = no
    /// progress is kept: order key uses a queue a live key (equal hashes share one), order
    /// partition one queue, order none no queues at all (every record by itself).
    std::uint16_t store_lanes = 0;
    std::uint32_t run_records_max = 1024;  ///< most records of one run, >= 1
    /// A queue with fewer than run_records_max ready records waits this long for more, counted
    /// from the admission of the first of them. 0 = never waits. Where there are no queues, the
    /// records that were never lent wait like one queue; those that came back do not.
    Duration run_wait{};
  };

  /// A record that holds the frontier (and its queue, where there are queues) until released.
  struct Held {
    Ordinal ordinal = 0;
    Offset offset;
    std::uint32_t index = 0;                    ///< into the settled run's records
    RecordResult result = RecordResult::retry;  ///< retry, again, park, reject or stop
    std::uint16_t attempt = 1;                  ///< the one that just ended
  };

  struct Admitted {
    std::uint32_t records = 0;         ///< now in the window
    std::uint32_t below_position = 0;  ///< dropped: offset below the expected one (F1, O6)
    std::uint32_t already_stored = 0;  ///< of `records`: terminal at once, the store has them
    Offset stored_first, stored_last;  ///< range of already_stored, when it is > 0
  };

  /// `start` = first offset wanted. `progress` = lanes as activated (store_lanes entries, any
  /// order), empty when store_lanes is 0.
  Window(const Options& options, Offset start, std::span<const LaneProgress> progress);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Takes over the messages. Offsets must ascend inside the span; those below position() are
  /// freed and counted. A record with a null message is tracked as incomplete and held at once
  /// (undecodable): it appears in `held` with result park. Below position() it is tracked at
  /// position() (a batch is named by its first offset), unless it follows on another undecodable
  /// one. Its lane or key is not known, so where there are queues nothing behind it is ready
  /// before it is finished. After drop_unstarted() records are tracked as incomplete and freed
  /// at once.
  Admitted admit(std::span<const Delivered> records, Instant now, std::vector<Held>& held,
                 std::vector<MessageHandle>& freed);

  /// F3: the fetch has passed everything below `offset`. Ignored when not above position().
  void reach(Offset offset);

  /// F1: the log skips to `offset` (retention, reset): what was not delivered below it is gone.
  void skip_to(Offset offset);

  /// Fills `run` (records, lane, lane_from, key_slot; clears the rest) with the next ready run of
  /// at most min(records_max, Options::run_records_max) records; false when none is ready at
  /// `now`. Oldest ready queue first.
  bool take(Run& run, std::uint32_t records_max, Instant now);

  /// When take() may next succeed without any other call: now or earlier, a run_wait that ends,
  /// or never.
  [[nodiscard]] Instant ready_at() const;

  /// Takes back a run with its results. done and replayed become terminal and their messages are
  /// freed. unstarted goes back to the front of its queue. The others are held: appended to
  /// `held`; in a queue, everything behind the first held record of the run is treated as
  /// unstarted whatever its result (order), unless it is terminal.
  /// With store lanes: lane_reached, when set, becomes the lane's stored progress, unless it is
  /// lower.
  void settle(Run& run, Instant now, std::vector<Held>& held, std::vector<MessageHandle>& freed);

  /// A held record may be tried again; `counts`: its attempt number goes up by one.
  void release(Ordinal held, bool counts, Instant now);

  /// A held record is terminal after all (dead letter reported; undecodable record skipped by
  /// the failure policy).
  void finish(Ordinal held, std::vector<MessageHandle>& freed);

  /// R1: drops what is ready (and held, not lent out) without completing it; take() yields
  /// nothing from here on. Messages are freed. Lent runs may still be settled and raise the
  /// frontier; what of them comes back unstarted or held is dropped too.
  void drop_unstarted(std::vector<MessageHandle>& freed);

  /// Whether the frontier (or, with store lanes, a lane) could still rise by results of lent
  /// runs, given that nothing else will be dispatched (R2).
  [[nodiscard]] bool can_still_advance() const;

  /// Next offset to commit.
  [[nodiscard]] Offset frontier() const { return first_ == next_ ? position_ : offset_of(first_); }
  /// Of the last record below the frontier; no_leader_epoch before the first.
  [[nodiscard]] LeaderEpoch frontier_leader_epoch() const;
  /// Next offset expected from the client.
  [[nodiscard]] Offset position() const { return position_; }
  /// Admitted and not below the frontier.
  [[nodiscard]] std::uint64_t records() const { return next_ - first_; }
  /// Of payloads still held, lent ones too.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Admitted and not terminal; dropped ones too.
  [[nodiscard]] std::uint64_t unfinished() const { return unfinished_; }
  /// Terminal beyond the frontier (the gap).
  [[nodiscard]] std::uint64_t completed_above() const { return records() - unfinished_; }
  /// Records that take() could yield one after the other, now or when run_wait ends: not those
  /// behind a lent run or a held record of their queue.
  [[nodiscard]] std::uint64_t ready() const;
  /// Records out in runs.
  [[nodiscard]] std::uint64_t lent() const { return lent_; }
  /// Records held; 0 once dropped.
  [[nodiscard]] std::uint64_t held() const { return dropped_ ? 0 : held_.size(); }
  /// When the record at the frontier was admitted; never when none is incomplete. Exact while
  /// fewer than 1024 admissions are behind it, then early by at most 2 % of its age.
  [[nodiscard]] Instant oldest_incomplete_since() const;
  /// Memory, for tests: segments that hold records; queues there is room for.
  [[nodiscard]] std::size_t segments_in_use() const { return segments_.live(); }
  [[nodiscard]] std::size_t queue_slots() const { return queues_.slots(); }

  // Store lanes.
  /// First incomplete offset of the lane or, without one, position().
  [[nodiscard]] Offset lane_stand(std::uint16_t lane) const;
  [[nodiscard]] Offset lane_stored(std::uint16_t lane) const;
  [[nodiscard]] bool lane_lent(std::uint16_t lane) const;
  /// Nothing of the lane is lent, ready or reserved: its row may be moved (idle advance).
  [[nodiscard]] bool lane_idle(std::uint16_t lane) const;
  /// The lane's row is being moved: take() yields nothing of it until lane_advanced(), so that
  /// one store transaction is out at most. Requires lane_idle().
  void reserve_lane(std::uint16_t lane);
  /// Ends reserve_lane(); `stored` is the lane's progress at the store now.
  void lane_advanced(std::uint16_t lane, Offset stored, Instant now);
  /// Minimum of lane_stored over all lanes: what a commit of kind transaction may say.
  [[nodiscard]] Offset stored_minimum() const;

 private:
  // How records are ordered decides how those that are ready are kept.
  enum class Shape : std::uint8_t {
    scattered,  // order none without store lanes: every record by itself
    single,     // order partition, or one store lane: one queue, which is the log itself
    queued,     // a queue a store lane or live key
  };
  struct Deferred {
    Ordinal ordinal = 0;
    std::uint64_t hash = 0;
  };

  const Delivered* admit_plain(const Delivered* record, const Delivered* end);
  void admit_one(const Delivered& record, Admitted& admitted, std::vector<Held>& held,
                 std::vector<MessageHandle>& freed);
  void thin_admission_times();
  void note_admission(Ordinal ordinal);
  void enqueue(std::span<const Delivered> records, Ordinal first);
  void enqueue_deferred();

  std::size_t take_returned(Run& run, std::uint32_t limit);
  std::size_t take_fresh(Run& run, std::uint32_t limit);
  std::size_t take_single(Run& run, std::uint32_t limit);
  std::size_t take_queue(Run& run, std::uint32_t limit);
  void lend_span(Segment& segment, Ordinal from, std::uint32_t count, Run& run, std::size_t at);
  static void lend(const Segment::Slot& slot, Ordinal ordinal, LeaderEpoch epoch, RunRecord& out);
  [[nodiscard]] Instant due(std::uint64_t ready, Ordinal first) const;

  void settle_from(std::size_t at, Run& run, std::vector<Held>& held,
                   std::vector<MessageHandle>& freed);
  std::size_t settle_spans(std::span<const RunRecord> records, std::vector<MessageHandle>& freed);
  std::size_t settle_chain(std::span<const RunRecord> records, std::vector<MessageHandle>& freed);
  void finish_lent(Ordinal ordinal);
  void finish_lent(Ordinal from, std::uint64_t count);
  [[nodiscard]] Segment& unfinished_segment(Ordinal ordinal) const {
    Segment* const segment =
        ordinal >= first_ && ordinal < next_ ? segments_.find(ordinal) : nullptr;
    TENURE_ASSERT(segment != nullptr, "O5 a record that is terminal stays so");
    return *segment;
  }
  std::uint32_t unhold(Ordinal ordinal);
  void free_message(Segment& segment, Ordinal ordinal, std::vector<MessageHandle>& freed);
  // Moves the frontier over what is done.
  void advance() {
    if (first_ == next_) return;
    const Segment* const segment = segments_.find(first_);
    const std::uint32_t at = Segment::index(first_);
    const std::uint32_t done = segment == nullptr ? 64 : segment->done_from(at);
    if (done == 0) return;
    if (at % 64 + done < 64) {
      first_ += done;
      passed();
    } else {
      pass_done();
    }
  }
  void passed() {
    if (first_ >= forget_at_) forget_passed();
    const Offset reached = frontier();
    TENURE_ASSERT(reached >= floor_, "F2 the frontier never goes back");
    floor_ = reached;
  }
  void forget_passed();
  void pass_done();

  [[nodiscard]] Ordinal first_incomplete(Ordinal from) const;
  [[nodiscard]] Ordinal first_fresh() const;
  [[nodiscard]] std::uint64_t ready_single() const;
  [[nodiscard]] std::uint16_t attempt_of(Ordinal ordinal) const;
  [[nodiscard]] Offset offset_of(Ordinal ordinal) const {
    return segments_.at(ordinal).at(ordinal).offset;
  }

  const Options options_;
  const Shape shape_;

  // The log as delivered. Ordinals [first_, next_) are in the window.
  Ordinal first_ = 0;  // the first incomplete record, or next_
  Ordinal next_ = 0;   // of the next record to be admitted
  Offset position_;
  bool behind_undecodable_ = false;  // the last record admitted was undecodable
  Offset floor_;                     // the frontier when it last rose (F2)
  Segments segments_;
  OrdinalHistory<LeaderEpoch> epochs_{no_leader_epoch};
  OrdinalHistory<Instant> admitted_at_{Instant{}};
  Ordinal forget_at_ = ~Ordinal{0};  // first_ from which on one of the two may forget
  Instant now_{};                    // latest time seen

  std::uint64_t unfinished_ = 0;
  std::uint64_t lent_ = 0;
  std::uint64_t bytes_ = 0;
  bool dropped_ = false;

  SlotTable held_;      // ordinal -> slot of its queue, 0 where there is none
  SlotTable attempts_;  // ordinal -> attempt, of unfinished records beyond their first

  // Scattered and single: everything from cursor_ on that is ready was never lent.
  Ordinal cursor_ = 0;
  std::uint64_t fresh_ready_ = 0;  // scattered: ready from cursor_ on
  std::vector<Ordinal> returned_;  // scattered: ready below cursor_; a heap, lowest on top
  bool single_lent_ = false;
  bool single_reserved_ = false;

  // Queued. Behind an undecodable record, whose lane nobody knows, nothing is queued.
  LaneQueues queues_;
  SlidingVector<Ordinal> undecodable_;  // unfinished ones
  SlidingVector<Deferred> deferred_;    // behind the first of them

  std::vector<Offset> stored_;  // progress by store lane
  Offset stored_ceiling_;       // no record from here on was stored by an earlier owner
};

}  // namespace tenure::core
