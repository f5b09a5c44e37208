// The logs of a simulated topic, and the witness of what was done with their records.
//
// Offsets have gaps (markers, compaction) also at the tail; the start may jump (retention), the
// end may go back and grow over (truncation). The witness counts effects a record, checks their
// order, and knows the first record that must not be committed over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "property/world_time.hpp"
#include "tenure/ids.hpp"

namespace tenure::test {

struct LogRecord {
  std::int64_t offset = 0;
  std::uint64_t hash = 0;   ///< of the key
  std::uint32_t index = 0;  ///< names the record, whatever becomes of its offset
  std::uint32_t bytes = 0;
  std::int32_t epoch = 1;
};

struct Committed {
  std::int64_t offset = 0;
  LeaderEpoch leader_epoch = no_leader_epoch;
  std::string metadata;
};

class PartitionLog {
 public:
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int32_t epoch = 1;
  bool truncated = false;  ///< an operator's case from here on (F8): nothing is promised
  std::optional<Committed> committed;

  [[nodiscard]] const std::vector<LogRecord>& records() const { return records_; }

  void append(Draw& draw, std::uint64_t keys, std::uint32_t bytes_max) {
    if (draw.chance(15)) end += draw.between(1, 4);
    records_.push_back({end, hash_of(draw.below(keys)), last_index_++,
                        static_cast<std::uint32_t>(draw.between(1, bytes_max)), epoch});
    effects_.push_back(0);
    ++end;
    if (draw.chance(10)) end += draw.between(1, 3);  // markers at the tail
  }

  /// Retention: records below `to` are gone; what was not done by now never need be.
  void retain_from(std::int64_t to) { start = std::max(start, std::min(to, end)); }

  void truncate(std::int64_t to) {
    to = std::max(to, start);
    std::erase_if(records_, [&](const LogRecord& record) { return record.offset >= to; });
    epoch_ends_[epoch] = to;
    end = to;
    ++epoch;
    truncated = true;
    first_undone_ = std::min(first_undone_, records_.size());
  }

  /// Where records written under `leader_epoch` end now; a position beyond is of another log.
  [[nodiscard]] std::int64_t epoch_end(std::int32_t leader_epoch) const {
    std::int64_t least = end;
    for (const auto& [ended, at] : epoch_ends_) {
      if (ended >= leader_epoch) least = std::min(least, at);
    }
    return leader_epoch == epoch ? end : least;
  }

  [[nodiscard]] std::vector<LogRecord>::const_iterator from(std::int64_t offset) const {
    return std::lower_bound(
        records_.begin(), records_.end(), offset,
        [](const LogRecord& record, std::int64_t wanted) { return record.offset < wanted; });
  }

  // ---- witness ----------------------------------------------------------------------------------

  /// An effect became visible in the store or outside.
  void effect(const LogRecord& record, bool once, bool keys_in_order, std::uint16_t lane) {
    std::uint32_t& count = effects_[record.index];
    ++count;
    if (!once) return;
    if (count > 1) broken("DUPLICATE EFFECT of offset " + std::to_string(record.offset));
    if (truncated) return;
    const auto rises = [&](std::map<std::uint64_t, std::int64_t>& last, std::uint64_t of) {
      const auto [found, first] = last.try_emplace(of, -1);
      if (record.offset <= found->second) {
        broken("ORDER: effect of offset " + std::to_string(record.offset) + " after " +
               std::to_string(found->second));
      }
      found->second = record.offset;
    };
    rises(last_of_lane_, lane);
    if (keys_in_order) rises(last_of_key_, record.hash);
  }

  [[nodiscard]] std::uint32_t effects(std::uint32_t index) const { return effects_[index]; }

  /// A new start by the reset policy or retention: nobody asked for what is below it.
  void excuse_below(std::int64_t offset) { excused_ = std::max(excused_, offset); }

  /// First record without an effect that somebody still has to see.
  [[nodiscard]] std::optional<std::int64_t> first_undone() {
    while (first_undone_ < records_.size()) {
      const LogRecord& record = records_[first_undone_];
      if (effects_[record.index] == 0 && record.offset >= start && record.offset >= excused_) {
        return record.offset;
      }
      ++first_undone_;
    }
    return {};
  }

 private:
  static std::uint64_t hash_of(std::uint64_t key) { return core::Random(key + 1).next(); }

  std::vector<LogRecord> records_;
  std::vector<std::uint32_t> effects_;  // by index
  std::map<std::int32_t, std::int64_t> epoch_ends_;
  std::map<std::uint64_t, std::int64_t> last_of_key_, last_of_lane_;
  std::int64_t excused_ = 0;
  std::size_t first_undone_ = 0;
  std::uint32_t last_index_ = 0;
};

}  // namespace tenure::test
