// A first-in first-out sequence in one block of memory that slides down instead of growing.
//
// Owns: its items. Threads: none. Promises: amortised constant time at both ends, and no
// allocation while its size stays below half of what it once was (std::deque gives back and asks
// for a block every few hundred items for ever). Does not promise: stable addresses.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tenure::core {

template <class T>
class SlidingVector {
 public:
  [[nodiscard]] bool empty() const { return items_.size() == head_; }
  [[nodiscard]] std::size_t size() const { return items_.size() - head_; }
  [[nodiscard]] T& operator[](std::size_t index) { return items_[head_ + index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const { return items_[head_ + index]; }
  [[nodiscard]] T& front() { return items_[head_]; }
  [[nodiscard]] const T& front() const { return items_[head_]; }
  [[nodiscard]] T& back() { return items_.back(); }
  [[nodiscard]] const T& back() const { return items_.back(); }

  void push_back(T item) {
    if (items_.size() == items_.capacity() && head_ != 0 && head_ >= items_.size() / 2) {
      drop_front();
    }
    items_.push_back(std::move(item));
  }

  void pop_front() {
    if (++head_ == items_.size()) clear();
  }

  /// Keeps only the items for which `keep(index, item)` is true, in their order. `keep` sees the
  /// items behind `index` as they were.
  template <class Keep>
  void retain(Keep keep) {
    std::size_t out = head_;
    for (std::size_t in = head_; in < items_.size(); ++in) {
      if (!keep(in - head_, std::as_const(items_[in]))) continue;
      if (out != in) items_[out] = std::move(items_[in]);
      ++out;
    }
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(out), items_.end());
    if (empty()) clear();
  }

  void clear() {
    items_.clear();
    head_ = 0;
  }

 private:
  void drop_front() {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }

  std::vector<T> items_;
  std::size_t head_ = 0;  // items before it are gone
};

}  // namespace tenure::core
