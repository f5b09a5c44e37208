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

  /// The second lowest ordinal with a change; beyond all when there is one change only.
  [[nodiscard]] Ordinal next_change() const {
    return changes_.size() > 1 ? changes_[1].from : ~Ordinal{0};
  }

  /// Drops a change when the value before it will do for its ordinals too: `will_do(value,
  /// following value)`. The first and the last change stay.
  template <class WillDo>
  void thin(WillDo will_do) {
    T kept = changes_.front().value;
    changes_.retain([&](std::size_t index, const Change& change) {
      const bool inner = index != 0 && index + 1 < changes_.size();
      if (inner && will_do(kept, changes_[index + 1].value)) return false;
      kept = change.value;
      return true;
    });
  }

 private:
  struct Change {
    Ordinal from = 0;
    T value{};
  };
  SlidingVector<Change> changes_;
};

}  // namespace tenure::core
