// A slow and obvious Window to compare the real one with: every record in a std::map for ever,
// every answer found by looking at all of them.
//
// Use WindowPair: it does each step on both and compares all that can be seen. Failures are
// reported through std::runtime_error, so that GoogleTest and RapidCheck can both use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/window.hpp"

namespace tenure::test {

using core::Ordinal;
using core::RecordResult;
using core::Run;
using core::Window;

struct ModelRecord {
  enum class State { ready, lent, held, done, dropped };
  Offset offset;
  std::uint64_t hash = 0;
  std::uint32_t bytes = 0;
  LeaderEpoch epoch;
  MessageHandle message = nullptr;  ///< null: undecodable
  Instant admitted;
  State state = State::ready;
  bool was_lent = false;
  std::uint16_t attempt = 1;
};

class WindowModel {
 public:
  using State = ModelRecord::State;

  WindowModel(const Window::Options& options, Offset start,
              const std::vector<LaneProgress>& progress)
      : options_(options), position_(start), stored_(options.store_lanes, start) {
    for (const LaneProgress& lane : progress) {
      if (lane.next_offset) stored_[lane.lane] = *lane.next_offset;
    }
  }

  [[nodiscard]] bool scattered() const {
    return options_.order == Order::none && options_.store_lanes == 0;
  }
  [[nodiscard]] std::uint64_t queue_of(const ModelRecord& record) const {
    if (options_.order == Order::partition) return 0;
    return options_.store_lanes != 0 ? record.hash % options_.store_lanes : record.hash;
  }
  static bool undecodable(const ModelRecord& record) { return record.message == nullptr; }

  /// Calls `see(ordinal, record)` for the records from the frontier on, oldest first.
  template <class See>
  void each(See see) const {
    for (auto it = records_.lower_bound(below_); it != records_.end(); ++it) {
      see(it->first, it->second);
    }
  }
  /// Done is final, so what lies below the first incomplete record need not be looked at again.
  void skip_done() {
    auto it = records_.lower_bound(below_);
    while (it != records_.end() && it->second.state == State::done) ++it;
    below_ = it == records_.end() ? records_.size() : it->first;
  }

  /// By queue, the records that a run could have, oldest first; no entry when there are none.
  [[nodiscard]] std::map<std::uint64_t, std::vector<Ordinal>> open() const {
    std::map<std::uint64_t, std::vector<Ordinal>> open;
    if (dropped_ || scattered()) return open;
    std::set<std::uint64_t> blocked = reserved_;
    each([&](Ordinal, const ModelRecord& record) {
      if (record.state == State::lent) blocked.insert(queue_of(record));
    });
    bool all_blocked = false;
    each([&](Ordinal ordinal, const ModelRecord& record) {
      if (record.state == State::done) return;
      all_blocked = all_blocked || undecodable(record);
      if (all_blocked) return;
      const std::uint64_t queue = queue_of(record);
      if (record.state == State::held) blocked.insert(queue);
      if (blocked.count(queue) == 0) open[queue].push_back(ordinal);
    });
    return open;
  }
  [[nodiscard]] std::vector<Ordinal> open(std::uint64_t queue) const {
    const auto all = open();
    const auto found = all.find(queue);
    return found == all.end() ? std::vector<Ordinal>{} : found->second;
  }

  /// Scattered: ready records, those that were lent before or the others.
  [[nodiscard]] std::vector<Ordinal> ready(bool was_lent) const {
    std::vector<Ordinal> ready;
    each([&](Ordinal ordinal, const ModelRecord& record) {
      if (record.state == State::ready && record.was_lent == was_lent) ready.push_back(ordinal);
    });
    return ready;
  }

  [[nodiscard]] std::size_t ready_count() const {
    if (scattered()) return dropped_ ? 0 : ready(false).size() + ready(true).size();
    std::size_t ready = 0;
    for (const auto& [queue, records] : open()) ready += records.size();
    return ready;
  }

  [[nodiscard]] Instant due(const std::vector<Ordinal>& open) const {
    if (open.size() >= options_.run_records_max || options_.run_wait == Duration::zero()) {
      return now_;
    }
    return after(records_.at(open.front()).admitted, options_.run_wait);
  }

  [[nodiscard]] Ordinal frontier_ordinal() const {
    Ordinal first = records_.size();
    each([&](Ordinal ordinal, const ModelRecord& record) {
      if (record.state != State::done) first = std::min(first, ordinal);
    });
    return first;
  }
  [[nodiscard]] Offset frontier() const {
    const Ordinal first = frontier_ordinal();
    return first == records_.size() ? position_ : records_.at(first).offset;
  }
  [[nodiscard]] Offset lane_stand(std::uint16_t lane) const {
    for (auto it = records_.lower_bound(below_); it != records_.end(); ++it) {
      const ModelRecord& record = it->second;
      if (record.state == State::done) continue;
      if (undecodable(record) || queue_of(record) == lane) return record.offset;
    }
    return position_;
  }
  [[nodiscard]] std::uint64_t count(State state) const {
    std::uint64_t n = state == State::done ? below_ : 0;
    each([&](Ordinal, const ModelRecord& record) { n += record.state == state ? 1 : 0; });
    return n;
  }
  /// Literally: would anything rise if all that is lent became done?
  [[nodiscard]] bool can_still_advance() const {
    const std::size_t stands = std::max<std::size_t>(options_.store_lanes, 1);
    std::vector<bool> seen(stands), seen_not_lent(stands);
    bool rises = false;
    each([&](Ordinal, const ModelRecord& record) {
      if (record.state == State::done) return;
      for (std::size_t stand = 0; stand < stands; ++stand) {
        if (options_.store_lanes != 0 && !undecodable(record) && queue_of(record) != stand)
          continue;
        if (record.state != State::lent) seen_not_lent[stand] = true;
        // The first incomplete record of this stand is lent: done, it would let it rise.
        rises = rises || (!seen[stand] && !seen_not_lent[stand]);
        seen[stand] = true;
      }
    });
    return rises;
  }

  const Window::Options options_;
  std::map<Ordinal, ModelRecord> records_;
  Ordinal below_ = 0;  ///< everything below is done
  Offset position_;
  std::vector<Offset> stored_;
  std::set<std::uint64_t> reserved_;
  std::vector<std::uint64_t> order_;  ///< queues in the order in which they became ready
  Instant now_{};
  bool dropped_ = false;
};

/// A window and its model, driven together.
class WindowPair {
 public:
  using State = ModelRecord::State;

  explicit WindowPair(const Window::Options& options, Offset start = Offset(0),
                      std::vector<LaneProgress> progress = {})
      : model(options, start, fill(options, progress)), window(options, start, progress) {
    compare();
  }

  /// Messages get numbers of their own; a hash of `undecodable_hash` makes an undecodable record.
  static constexpr std::uint64_t undecodable_hash = ~std::uint64_t{0};

  struct Input {
    std::int64_t offset = 0;
    std::uint64_t hash = 0;
    std::uint32_t bytes = 1;
    std::int32_t epoch = 0;
  };

  Window::Admitted admit(const std::vector<Input>& inputs) {
    std::vector<Delivered> records;
    Window::Admitted expected;
    std::vector<MessageHandle> freed_expected;
    std::vector<Ordinal> held_expected;
    for (const Input& input : inputs) {
      const bool undecodable = input.hash == undecodable_hash;
      MessageHandle message = nullptr;
      if (!undecodable) {
        messages_.push_back(0);
        message = &messages_.back();
      }
      records.push_back({message, Offset(input.offset), undecodable ? 0 : input.hash,
                         undecodable ? 0 : input.bytes, LeaderEpoch(input.epoch)});
      const Delivered& record = records.back();
      const bool below = record.offset < model.position_;
      const bool behind_undecodable =
          !model.records_.empty() && model.records_.rbegin()->second.message == nullptr;
      if (below && (!undecodable || behind_undecodable)) {
        ++expected.below_position;
        if (message != nullptr) freed_expected.push_back(message);
        continue;
      }
      ++expected.records;
      const Offset offset = below ? model.position_ : record.offset;
      if (!below) model.position_ = record.offset.next();
      ModelRecord copy{offset, record.hash, record.bytes, record.leader_epoch, message, model.now_};
      const Ordinal ordinal = model.records_.size();
      if (undecodable) {
        copy.state = model.dropped_ ? State::dropped : State::held;
        if (!model.dropped_) held_expected.push_back(ordinal);
      } else if (!model.stored_.empty() &&
                 record.offset < model.stored_[record.hash % model.stored_.size()]) {
        copy.state = State::done;
        if (expected.already_stored++ == 0) expected.stored_first = record.offset;
        expected.stored_last = record.offset;
        freed_expected.push_back(message);
      } else if (model.dropped_) {
        copy.state = State::dropped;
        freed_expected.push_back(message);
      }
      model.records_.emplace(ordinal, copy);
    }
    std::vector<Window::Held> held;
    std::vector<MessageHandle> freed;
    const Window::Admitted got = window.admit(records, model.now_, held, freed);
    check(got.records == expected.records, "admitted.records");
    check(got.below_position == expected.below_position, "admitted.below_position");
    check(got.already_stored == expected.already_stored, "admitted.already_stored");
    check(got.stored_first == expected.stored_first, "admitted.stored_first");
    check(got.stored_last == expected.stored_last, "admitted.stored_last");
    check(held.size() == held_expected.size(), "held by admission");
    for (std::size_t n = 0; n < held.size(); ++n) {
      check(held[n].ordinal == held_expected[n], "held ordinal");
      check(held[n].result == RecordResult::park, "undecodable is parked");
      check(held[n].offset == model.records_.at(held[n].ordinal).offset, "held offset");
    }
    compare_freed(freed, freed_expected);
    compare();
    return got;
  }

  /// False when nothing could be taken. The run is kept in `lent`.
  bool take(std::uint32_t records_max) {
    Run run;
    // Left over from an earlier use: take() clears it.
    run.owner = {7, GrantId(7)};
    run.fence = Fence{};
    run.failures.push_back({});
    run.store_error = StoreError::moved;
    run.store_message = "x";
    run.lane_reached = Offset(3);
    run.took = Duration(3);
    run.again = AgainCauseLeftOver;
    const bool got = window.take(run, records_max, model.now_);
    const std::uint32_t limit = std::min(records_max, model.options_.run_records_max);
    std::vector<Ordinal> expected;
    if (limit != 0) expected = expected_run(run, got);
    check(got == !expected.empty(), "take() yields a run exactly when one is ready and due");
    if (!got) {
      compare();
      return false;
    }
    if (expected.size() > limit) expected.resize(limit);
    check(run.records.size() == expected.size(), "records in the run");
    for (std::size_t n = 0; n < expected.size(); ++n) {
      const core::RunRecord& out = run.records[n];
      ModelRecord& record = model.records_.at(expected[n]);
      check(out.ordinal == expected[n], "run ordinal");
      check(out.offset == record.offset, "run offset");
      check(out.message == record.message, "run message");
      check(out.bytes == record.bytes, "run bytes");
      check(out.leader_epoch == record.epoch, "run leader epoch");
      check(out.attempt == record.attempt, "run attempt");
      check(out.result == RecordResult::unstarted, "run result");
      check(record.state == State::ready, "only ready records are lent");
      record.state = State::lent;
      record.was_lent = true;
    }
    check(run.owner == OwnerRef{} && !run.fence && run.failures.empty() &&
              run.store_error == StoreError::none && run.store_message.empty() &&
              !run.lane_reached && run.took == Duration{} &&
              run.again == core::AgainCause::contention,
          "take() clears the rest of the run");
    if (!model.stored_.empty()) {
      check(run.lane == model.queue_of(model.records_.at(expected.front())), "run lane");
      check(run.lane_from == model.stored_[run.lane], "run lane_from");
    } else {
      check(run.lane == 0 && run.lane_from == Offset(), "run lane");
    }
    lent.push_back(std::move(run));
    compare();
    return true;
  }

  /// Settles lent[index] with these results (as many as it has records).
  std::vector<Window::Held> settle(std::size_t index, const std::vector<RecordResult>& results,
                                   std::optional<Offset> reached = {}) {
    Run run = std::move(lent.at(index));
    lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(index));
    run.lane_reached = reached;
    std::vector<MessageHandle> freed_expected;
    std::vector<Window::Held> held_expected;
    bool behind_held = false;
    for (std::size_t n = 0; n < run.records.size(); ++n) {
      const RecordResult result = results.at(n);
      run.records[n].result = result;
      ModelRecord& record = model.records_.at(run.records[n].ordinal);
      if (result == RecordResult::done || result == RecordResult::replayed) {
        record.state = State::done;
        freed_expected.push_back(record.message);
      } else if (model.dropped_) {
        record.state = State::dropped;
        freed_expected.push_back(record.message);
      } else if (result == RecordResult::unstarted || (behind_held && !model.scattered())) {
        record.state = State::ready;
      } else {
        record.state = State::held;
        behind_held = true;
        held_expected.push_back({run.records[n].ordinal, record.offset,
                                 static_cast<std::uint32_t>(n), result, record.attempt});
      }
    }
    if (!model.stored_.empty() && reached) {
      model.stored_[run.lane] = std::max(model.stored_[run.lane], *reached);
    }
    std::vector<Window::Held> held;
    std::vector<MessageHandle> freed;
    window.settle(run, model.now_, held, freed);
    check(held.size() == held_expected.size(), "held by settling");
    for (std::size_t n = 0; n < held.size(); ++n) {
      check(held[n].ordinal == held_expected[n].ordinal, "held ordinal");
      check(held[n].offset == held_expected[n].offset, "held offset");
      check(held[n].index == held_expected[n].index, "held index");
      check(held[n].result == held_expected[n].result, "held result");
      check(held[n].attempt == held_expected[n].attempt, "held attempt");
    }
    compare_freed(freed, freed_expected);
    compare();
    return held;
  }

  void release(Ordinal ordinal, bool counts) {
    ModelRecord& record = model.records_.at(ordinal);
    if (!model.dropped_) {
      record.state = State::ready;
      if (counts) ++record.attempt;
    }
    window.release(ordinal, counts, model.now_);
    compare();
  }

  void finish(Ordinal ordinal) {
    ModelRecord& record = model.records_.at(ordinal);
    std::vector<MessageHandle> freed_expected;
    if (record.message != nullptr && record.state == State::held) {
      freed_expected.push_back(record.message);
    }
    record.state = State::done;
    std::vector<MessageHandle> freed;
    window.finish(ordinal, freed);
    compare_freed(freed, freed_expected);
    compare();
  }

  void drop() {
    std::vector<MessageHandle> freed_expected;
    for (auto& [ordinal, record] : model.records_) {
      if (record.state != State::ready && record.state != State::held) continue;
      if (record.state == State::held) held_when_dropped.push_back(ordinal);
      record.state = State::dropped;
      if (record.message != nullptr) freed_expected.push_back(record.message);
    }
    model.dropped_ = true;
    std::vector<MessageHandle> freed;
    window.drop_unstarted(freed);
    compare_freed(freed, freed_expected);
    compare();
  }

  void reach(Offset offset) {
    model.position_ = std::max(model.position_, offset);
    window.reach(offset);
    compare();
  }
  void skip_to(Offset offset) {
    model.position_ = std::max(model.position_, offset);
    window.skip_to(offset);
    compare();
  }
  void reserve(std::uint16_t lane) {
    model.reserved_.insert(lane);
    window.reserve_lane(lane);
    compare();
  }
  void advanced(std::uint16_t lane, Offset stored) {
    model.reserved_.erase(lane);
    model.stored_[lane] = std::max(model.stored_[lane], stored);
    window.lane_advanced(lane, stored, model.now_);
    compare();
  }
  void pass(Duration time) { model.now_ += time; }

  [[nodiscard]] std::vector<Ordinal> held() const {
    std::vector<Ordinal> held;
    for (const auto& [ordinal, record] : model.records_) {
      if (record.state == State::held) held.push_back(ordinal);
    }
    return held;
  }

  /// Everything that can be asked, on both sides.
  void compare() {
    model.skip_done();
    const Offset frontier = model.frontier();
    check(frontier >= frontier_before_, "F2 the model itself goes back");
    frontier_before_ = frontier;
    const Ordinal first = model.frontier_ordinal();
    const std::uint64_t done = model.count(State::done);
    const std::uint64_t all = model.records_.size();
    check(window.frontier() == frontier, "F2 frontier");
    check(window.position() == model.position_, "position");
    check(window.frontier_leader_epoch() ==
              (first == 0 ? no_leader_epoch : model.records_.at(first - 1).epoch),
          "frontier leader epoch");
    check(window.records() == all - first, "records");
    check(window.unfinished() == all - done, "unfinished");
    check(window.completed_above() == done - first, "completed above");
    check(window.lent() == model.count(State::lent), "lent");
    check(window.held() == model.count(State::held), "held");
    check(window.ready() == model.ready_count(), "ready");
    check(window.can_still_advance() == model.can_still_advance(), "R2 can still advance");
    check(window.oldest_incomplete_since() ==
              (first == all ? never : model.records_.at(first).admitted),
          "oldest incomplete since");
    std::uint64_t bytes = 0;
    std::set<std::uint64_t> lent_queues;
    model.each([&](Ordinal, const ModelRecord& record) {
      if (record.state != State::done && record.state != State::dropped) bytes += record.bytes;
      if (record.state == State::lent) lent_queues.insert(model.queue_of(record));
    });
    check(window.bytes() == bytes, "bytes");
    const std::map<std::uint64_t, std::vector<Ordinal>> open = model.open();
    for (std::uint16_t lane = 0; lane < model.options_.store_lanes; ++lane) {
      const bool is_lent = lent_queues.count(lane) != 0;
      check(window.lane_stand(lane) == model.lane_stand(lane), "lane stand");
      check(window.lane_stored(lane) == model.stored_[lane], "lane stored");
      check(window.lane_lent(lane) == is_lent, "lane lent");
      check(window.lane_idle(lane) ==
                (!is_lent && model.reserved_.count(lane) == 0 && open.count(lane) == 0),
            "lane idle");
    }
    if (model.options_.store_lanes != 0) {
      check(
          window.stored_minimum() == *std::min_element(model.stored_.begin(), model.stored_.end()),
          "stored minimum");
    }
    compare_ready_order();
  }

  WindowModel model;
  Window window;
  std::vector<Run> lent;
  std::vector<Ordinal> held_when_dropped;

 private:
  static constexpr core::AgainCause AgainCauseLeftOver = core::AgainCause::store_down;

  static std::vector<LaneProgress> fill(const Window::Options& options,
                                        std::vector<LaneProgress>& progress) {
    for (auto lane = static_cast<std::uint16_t>(progress.size()); lane < options.store_lanes;
         ++lane) {
      progress.push_back({lane, {}, no_leader_epoch});
    }
    return progress;
  }

  // Without run_wait the order of queues is exact; with it, any queue that is due will do.
  std::vector<Ordinal> expected_run(const Run& run, bool got) {
    if (model.dropped_) return {};
    if (model.scattered()) {
      std::vector<Ordinal> from = model.ready(true);
      if (from.empty()) {
        from = model.ready(false);
        if (from.empty() || model.due(from) > model.now_) return {};
      }
      std::size_t end = 1;
      while (end < from.size() && from[end] == from[0] + end) ++end;
      from.resize(end);
      return from;
    }
    if (model.options_.run_wait == Duration::zero()) {
      if (model.order_.empty()) return {};
      const std::vector<Ordinal> open = model.open(model.order_.front());
      model.order_.erase(model.order_.begin());
      return open;
    }
    if (got) {
      const std::uint64_t queue = model.queue_of(model.records_.at(run.records.at(0).ordinal));
      const std::vector<Ordinal> open = model.open(queue);
      check(!open.empty() && model.due(open) <= model.now_, "the taken queue is due");
      return open;
    }
    for (const auto& [queue, open] : model.open()) {
      if (model.due(open) <= model.now_) return open;
    }
    return {};
  }

  // Queues that became ready by the last step stand behind the others, oldest first record first.
  void compare_ready_order() {
    if (model.scattered()) {
      const std::vector<Ordinal> fresh = model.ready(false);
      compare_ready_at(model.dropped_               ? never
                       : !model.ready(true).empty() ? model.now_
                       : fresh.empty()              ? never
                                                    : model.due(fresh));
      return;
    }
    std::map<Ordinal, std::uint64_t> ready;
    Instant at = never;
    for (const auto& [queue, open] : model.open()) {
      ready.emplace(open.front(), queue);
      at = std::min(at, model.due(open));
    }
    std::vector<std::uint64_t> order;
    for (const std::uint64_t queue : model.order_) {
      const auto same = [queue](const auto& entry) { return entry.second == queue; };
      const auto found = std::find_if(ready.begin(), ready.end(), same);
      if (found == ready.end()) continue;
      order.push_back(queue);
      ready.erase(found);
    }
    for (const auto& [ordinal, queue] : ready) order.push_back(queue);
    model.order_ = order;
    compare_ready_at(at);
  }

  void compare_ready_at(Instant at) {
    if (at <= model.now_) {
      check(window.ready_at() <= model.now_, "ready at once");
    } else {
      check(window.ready_at() == at, "ready at");
    }
  }

  void compare_freed(std::vector<MessageHandle> freed, std::vector<MessageHandle> expected) {
    for (const MessageHandle message : freed) {
      check(message != nullptr, "nothing is freed that is not there");
      check(++*static_cast<int*>(message) == 1, "a message is freed once");
    }
    std::sort(freed.begin(), freed.end());
    std::sort(expected.begin(), expected.end());
    check(freed == expected, "messages freed");
  }

  void check(bool condition, const char* what) const {
    if (condition) return;
    std::ostringstream text;
    text << "window and model differ: " << what << "; window: frontier "
         << window.frontier().value() << " position " << window.position().value() << " records "
         << window.records() << " unfinished " << window.unfinished() << " ready " << window.ready()
         << " lent " << window.lent() << " held " << window.held() << "; model: frontier "
         << model.frontier().value() << " position " << model.position_.value() << " ready "
         << model.ready_count();
    throw std::runtime_error(text.str());
  }

  std::deque<int> messages_;  // how often each was freed
  Offset frontier_before_;
};

}  // namespace tenure::test
