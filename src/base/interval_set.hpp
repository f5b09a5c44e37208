// A set of numbers that are mostly contiguous, such as the grants that have ended.
//
// Owns: its intervals. Threads: none; the caller guards it. Promises: size grows with the number
// of gaps, not with the number of members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace tenure {

class IntervalSet {
 public:
  void insert(std::uint64_t number) {
    auto above = intervals_.upper_bound(number);
    auto grown = intervals_.end();
    if (above != intervals_.begin()) {
      auto below = std::prev(above);
      if (number <= below->second) return;
      if (below->second + 1 == number) {
        below->second = number;
        grown = below;
      }
    }
    if (grown == intervals_.end()) grown = intervals_.emplace(number, number).first;
    if (above != intervals_.end() && above->first == number + 1) {
      grown->second = above->second;
      intervals_.erase(above);
    }
  }

  [[nodiscard]] bool contains(std::uint64_t number) const {
    auto above = intervals_.upper_bound(number);
    return above != intervals_.begin() && number <= std::prev(above)->second;
  }

  [[nodiscard]] std::size_t intervals() const { return intervals_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> intervals_;  ///< first -> last, never adjacent
};

}  // namespace tenure
