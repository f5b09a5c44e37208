// What the window knows of a stretch of consecutive ordinals: message, offset, size, link and
// three bits a record.
//
// Owns: nothing (the window owns the messages). Threads: none. Lifecycle: recycled by Segments.
// A record is ready (no bit), lent, held or done (terminal); `done` is final.
// 256 records: large enough that a folded segment costs 0.03 bytes a record behind a stuck one,
// small enough that a partition with a trickle of records stays near 6 KB.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "core/run.hpp"
#include "tenure/ids.hpp"
#include "tenure/source_types.hpp"

namespace tenure::core {

struct Segment {
  static constexpr std::uint32_t shift = 8;
  static constexpr std::uint32_t records = 1U << shift;
  using Bits = std::array<std::uint64_t, records / 64>;

  // In the order of Delivered and RunRecord, so that copying takes few moves.
  struct Slot {
    MessageHandle message = nullptr;  ///< null: undecodable, or freed by a drop
    Offset offset;
    std::uint32_t bytes = 0;
    std::uint32_t next = 0;  ///< low half of the next ordinal in its queue
  };

  static constexpr std::uint32_t index(Ordinal ordinal) {
    return static_cast<std::uint32_t>(ordinal) & (records - 1);
  }
  static constexpr std::uint64_t number(Ordinal ordinal) { return ordinal >> shift; }

  [[nodiscard]] static bool test(const Bits& bits, std::uint32_t at) {
    return (bits[at / 64] >> (at % 64) & 1) != 0;
  }
  [[nodiscard]] Slot& at(Ordinal ordinal) { return slot[index(ordinal)]; }
  [[nodiscard]] const Slot& at(Ordinal ordinal) const { return slot[index(ordinal)]; }

  static void set(Bits& bits, std::uint32_t at) { bits[at / 64] |= mask(at); }
  static void clear(Bits& bits, std::uint32_t at) { bits[at / 64] &= ~mask(at); }

  [[nodiscard]] bool is_done(std::uint32_t at) const { return test(done, at); }
  [[nodiscard]] bool is_held(std::uint32_t at) const { return test(held, at); }
  [[nodiscard]] bool is_lent(std::uint32_t at) const { return test(lent, at); }

  void lend(std::uint32_t from, std::uint32_t to) {
    each_word(from, to, [this](std::uint32_t word, std::uint64_t bits) { lent[word] |= bits; });
  }

  /// Lent records become terminal. False when not all of them were lent.
  [[nodiscard]] bool finish_lent(std::uint32_t at) {
    const std::uint64_t bit = mask(at);
    const bool was_lent = (lent[at / 64] & bit) != 0;
    lent[at / 64] &= ~bit;
    done[at / 64] |= bit;
    ++terminal;
    return was_lent;
  }
  [[nodiscard]] bool finish_lent(std::uint32_t from, std::uint32_t to) {
    std::uint64_t missing = 0;
    each_word(from, to, [this, &missing](std::uint32_t word, std::uint64_t bits) {
      missing |= bits & ~lent[word];
      lent[word] &= ~bits;
      done[word] |= bits;
    });
    terminal += to - from;
    return missing == 0;
  }

  /// How many records from `at` on are done, as far as one word tells; all 64 is more.
  [[nodiscard]] std::uint32_t done_from(std::uint32_t at) const {
    return static_cast<std::uint32_t>(std::countr_one(done[at / 64] >> (at % 64)));
  }

  /// First place in [from, to) that is not done / ready / not ready; `to` when there is none.
  [[nodiscard]] std::uint32_t first_not_done(std::uint32_t from, std::uint32_t to) const {
    return first(from, to, [this](std::uint32_t word) { return ~done[word]; });
  }
  [[nodiscard]] std::uint32_t first_ready(std::uint32_t from, std::uint32_t to) const {
    return first(from, to, [this](std::uint32_t word) { return ~taken(word); });
  }
  [[nodiscard]] std::uint32_t first_not_ready(std::uint32_t from, std::uint32_t to) const {
    return first(from, to, [this](std::uint32_t word) { return taken(word); });
  }

  void reset() {
    done = {};
    held = {};
    lent = {};
    terminal = 0;
  }

  Bits done{}, held{}, lent{};
  std::uint32_t terminal = 0;  ///< bits set in `done`; the segment folds at `records`
  std::array<Slot, records> slot;

 private:
  static constexpr std::uint64_t mask(std::uint32_t at) { return std::uint64_t{1} << (at % 64); }

  [[nodiscard]] std::uint64_t taken(std::uint32_t word) const {
    return done[word] | held[word] | lent[word];
  }

  template <class Do>
  static void each_word(std::uint32_t from, std::uint32_t to, Do do_word) {
    while (from < to) {
      const std::uint32_t end = std::min(to, (from / 64 + 1) * 64);
      do_word(from / 64, (~std::uint64_t{0} >> (64 - (end - from))) << (from % 64));
      from = end;
    }
  }

  template <class BitsOf>
  static std::uint32_t first(std::uint32_t from, std::uint32_t to, BitsOf bits_of) {
    while (from < to) {
      const std::uint64_t bits = bits_of(from / 64) >> (from % 64);
      if (bits != 0) return std::min(to, from + static_cast<std::uint32_t>(std::countr_zero(bits)));
      from = (from / 64 + 1) * 64;
    }
    return to;
  }
};

}  // namespace tenure::core
