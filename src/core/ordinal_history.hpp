// A value that changes now and then along the ordinals of one owner: leader epoch, time of
// admission. Kept as the places where it changes, so a record costs nothing.
//
// Owns: one entry a change that may still be asked for. Threads: none.
// Promises: at(ordinal) is the value recorded last at or before `ordinal`.
#pragma once

#include <cstddef>

#include "core/run.hpp"
#include "core/sliding_vector.hpp"

namespace tenure::core {

template <class T>
class OrdinalHistory {
 public:
  /// The value before the first change.
  explicit OrdinalHistory(const T& initial) { changes_.push_back({0, initial}); }

  /// Changes kept, the oldest value too; >= 1.
  [[nodiscard]] std::size_t size() const { return changes_.size(); }

  /// From `ordinal` on the value is `value`. Ordinals ascend.
  void record(Ordinal ordinal, const T& value) {
    if (changes_.back().value == value) return;
    changes_.push_back({ordinal, value});
  }

  [[nodiscard]] const T& at(Ordinal ordinal) const {
    std::size_t low = 0;
    std::size_t high = changes_.size();
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (changes_[middle].from <= ordinal ? low : high) = middle;
    }
    return changes_[low].value;
  }

  [[nodiscard]] const T& newest() const { return changes_.back().value; }

  /// at() will not be asked for anything below `ordinal` again.
  void forget_below(Ordinal ordinal) {
    while (changes_.size() > 1 && changes_[1].from <= ordinal) changes_.pop_front();
  }

  /// Halves the entries: every second one takes the value of the one before. What is left is
  /// finer towards the end, since the end has been thinned less often.
  void thin() {
    changes_.retain([](std::size_t index, const Change&) { return index % 2 == 0; });
  }

 private:
  struct Change {
    Ordinal from = 0;
    T value{};
  };
  SlidingVector<Change> changes_;
};

}  // namespace tenure::core
