// Runs a body once for every combination of the choices it makes.
//
//   Exhaustive all;
//   do { if (all.choose(2) == 0) ...; } while (all.next());
//
// The body must make the same choices again when all earlier choices were the same. (The idea is
// TigerBeetle's exhaustigen.)
#pragma once

#include <cstddef>
#include <vector>

namespace tenure::test {

class Exhaustive {
 public:
  /// A number below `bound`, which must not be 0.
  std::size_t choose(std::size_t bound) {
    if (at_ == choices_.size()) choices_.push_back({0, bound});
    return choices_[at_++].value;
  }
  /// Makes the next combination; false when there is none.
  bool next() {
    ++runs_;
    choices_.resize(at_);
    at_ = 0;
    while (!choices_.empty() && ++choices_.back().value == choices_.back().bound) {
      choices_.pop_back();
    }
    return !choices_.empty();
  }
  /// Combinations done.
  [[nodiscard]] std::size_t runs() const { return runs_; }

 private:
  struct Choice {
    std::size_t value;
    std::size_t bound;
  };
  std::vector<Choice> choices_;
  std::size_t at_ = 0;
  std::size_t runs_ = 0;
};

}  // namespace tenure::test
