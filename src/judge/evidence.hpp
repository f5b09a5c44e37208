// What the judge looks at: witnesses outside every member. Values.
//
// A witness is what a fresh client reads from the topic, rows that the database itself wrote in
// its own commit order, and the offsets that the group has committed. Nothing here comes from a
// member's log.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenure::judge {

/// Place of a record in the one topic that is judged.
struct Place {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// A record as a fresh client reads it.
struct InputRecord {
  Place at;
  std::string key;
  std::int64_t amount = 0;  ///< what the record does to the balance of its key
};

/// An effect as the database recorded it.
struct EffectRow {
  std::int64_t pos = 0;  ///< ascends in database commit order, one sequence with FenceRow::pos
  Place at;
  std::string key;
  std::optional<std::int64_t> token;  ///< under which it was written; empty = without a fence
};

/// An activation (T3) as the database recorded it; one row a lane.
struct FenceRow {
  std::int64_t pos = 0;
  std::int32_t partition = 0;
  std::int64_t token = 0;
};

struct PartitionEnd {
  std::int32_t partition = 0;
  std::int64_t end = 0;                   ///< next offset to be written
  std::optional<std::int64_t> committed;  ///< empty = no committed offset (F4)
};

struct Evidence {
  std::vector<InputRecord> input;
  std::vector<EffectRow> effects;
  std::vector<FenceRow> fences;
  std::vector<PartitionEnd> ends;
  std::map<std::string, std::int64_t> balances;  ///< by key, as they stand at the end
};

}  // namespace tenure::judge
