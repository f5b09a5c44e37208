// The segments of one owner, by ordinal.
//
// Owns: live segments, a ring of pointers to them, and a list of free ones. Threads: none.
// Shape: a segment whose records are all terminal is folded: it is given back at once and only
//   its place in the ring stays, until the frontier has passed it.
// Promises: no allocation while no more segments are live than once were, up to `spare_max`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "core/run.hpp"
#include "core/segment.hpp"

namespace tenure::core {

class Segments {
 public:
  /// Free segments kept for use; what a window of 65 536 records needs.
  static constexpr std::size_t spare_max = 65536 / Segment::records;

  /// Segments that hold records.
  [[nodiscard]] std::size_t live() const { return live_; }

  /// The ordinal's segment must be live.
  [[nodiscard]] Segment& at(Ordinal ordinal) const {
    return *ring_[place(Segment::number(ordinal))];
  }

  /// Null when folded. The ordinal must not be below release_below() or beyond the last segment.
  [[nodiscard]] Segment* find(Ordinal ordinal) const {
    return ring_[place(Segment::number(ordinal))].get();
  }

  /// The segment `ordinal` is to be written to: the last one, or a new one right behind it.
  [[nodiscard]] Segment& writable(Ordinal ordinal) {
    if (Segment::number(ordinal) == end_) append();
    return at(ordinal);
  }

  /// All records of the ordinal's segment are terminal.
  [[gnu::noinline]] void fold(Ordinal ordinal) {
    std::unique_ptr<Segment>& segment = ring_[place(Segment::number(ordinal))];
    TENURE_ASSERT(segment != nullptr && segment->terminal == Segment::records,
                  "F2 only a segment without incomplete records folds");
    if (spare_.size() < spare_max) spare_.push_back(std::move(segment));
    segment.reset();
    --live_;
  }

  /// Forgets the (folded) segments wholly below `ordinal`.
  void release_below(Ordinal ordinal) {
    for (; begin_ < Segment::number(ordinal); ++begin_) {
      TENURE_ASSERT(ring_[place(begin_)] == nullptr, "F2 only folded segments are left behind");
    }
  }

 private:
  [[nodiscard]] std::size_t place(std::uint64_t number) const {
    return static_cast<std::size_t>(number) & mask_;
  }

  [[gnu::noinline]] void append() {
    if (end_ - begin_ == ring_.size()) {
      std::vector<std::unique_ptr<Segment>> old(ring_.empty() ? 4 : ring_.size() * 2);
      old.swap(ring_);
      mask_ = ring_.size() - 1;
      for (std::uint64_t number = begin_; number < end_; ++number) {
        ring_[place(number)] = std::move(old[static_cast<std::size_t>(number) & (old.size() - 1)]);
      }
    }
    std::unique_ptr<Segment>& segment = ring_[place(end_)];
    if (spare_.empty()) {
      segment = std::make_unique<Segment>();
    } else {
      segment = std::move(spare_.back());
      spare_.pop_back();
      segment->reset();
    }
    ++end_;
    ++live_;
  }

  std::vector<std::unique_ptr<Segment>> ring_;  // by number, a power of two; null = folded
  std::size_t mask_ = 0;                        // ring_.size() - 1
  std::uint64_t begin_ = 0;                     // segment numbers [begin_, end_) are in the ring
  std::uint64_t end_ = 0;
  std::size_t live_ = 0;
  std::vector<std::unique_ptr<Segment>> spare_;  // most recently used last
};

}  // namespace tenure::core
