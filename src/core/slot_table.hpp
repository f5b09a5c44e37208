// A map from 64-bit numbers (key hashes, ordinals) to 32-bit slots, by open addressing.
//
// Owns: one flat array of entries. Threads: none.
// Promises: linear probing at most half full; erasing moves later entries back, so that there are
//   no tombstones and a table that has seen a billion keys is as fast and as small as one that
//   has seen only those it holds. Nothing depends on addresses or on a random seed.
// Does not promise: any order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenure::core {

class SlotTable {
 public:
  /// Not a slot; what find() answers when the key is absent.
  static constexpr std::uint32_t none = 0xffffffffU;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return entries_.size(); }

  [[nodiscard]] std::uint32_t find(std::uint64_t key) const {
    if (entries_.empty()) return none;
    for (std::size_t at = home(key);; at = following(at)) {
      if (entries_[at].slot == none || entries_[at].key == key) return entries_[at].slot;
    }
  }

  void put(std::uint64_t key, std::uint32_t slot) {
    if (size_ * 2 >= entries_.size()) grow();
    for (std::size_t at = home(key);; at = following(at)) {
      Entry& entry = entries_[at];
      if (entry.slot != none && entry.key != key) continue;
      if (entry.slot == none) ++size_;
      entry = {key, slot};
      return;
    }
  }

  /// Keeps its memory.
  void clear() {
    std::fill(entries_.begin(), entries_.end(), Entry{});
    size_ = 0;
  }

  /// False when the key was absent.
  bool erase(std::uint64_t key) {
    if (size_ == 0) return false;
    std::size_t hole = home(key);
    for (;; hole = following(hole)) {
      if (entries_[hole].slot == none) return false;
      if (entries_[hole].key == key) break;
    }
    // An entry may fill the hole when its home is not cyclically behind it.
    for (std::size_t at = following(hole); entries_[at].slot != none; at = following(at)) {
      const std::size_t distance = (at - home(entries_[at].key)) & mask();
      if (distance >= ((at - hole) & mask())) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].slot = none;
    --size_;
    return true;
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t slot = none;
  };

  [[nodiscard]] std::size_t mask() const { return entries_.size() - 1; }
  [[nodiscard]] std::size_t following(std::size_t at) const { return (at + 1) & mask(); }
  // Ordinals are dense and hashes may be poor: spread by the golden ratio, use the high bits.
  [[nodiscard]] std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_);
  }

  [[gnu::noinline]] void grow() {
    std::vector<Entry> old(entries_.empty() ? 16 : entries_.size() * 2);
    old.swap(entries_);
    shift_ = 64 - std::countr_zero(entries_.size());
    size_ = 0;
    for (const Entry& entry : old) {
      if (entry.slot != none) put(entry.key, entry.slot);
    }
  }

  std::vector<Entry> entries_;  // a power of two
  std::size_t size_ = 0;
  int shift_ = 64;
};

}  // namespace tenure::core
