// The lines of a history, version 1 (6-interface, section 7). Values. Unknown numbers and texts
// that a line may lack are empty optionals or empty texts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenure::observe {

inline constexpr std::int64_t history_version = 1;
/// Longest line, its '\n' included.
inline constexpr std::size_t history_line_max = 65536;

struct HistoryTopic {
  std::string name;
  std::string id;
  std::int32_t partitions = 0;
};

/// {"t":"start"}
struct HistoryStart {
  std::string run;
  std::string tool;
  std::optional<std::int64_t> seed;
  std::string plan = "{}";  ///< a JSON object
  std::string cluster;
  std::string group;
  std::string kind;  ///< of the effect: transaction, idempotent ...
  std::vector<HistoryTopic> topics;
  std::vector<std::string> witnesses;  ///< input commit fence effect owner
};

struct HistoryPlace {
  std::string topic;  ///< id
  std::int32_t partition = 0;
};

/// {"t":"input"}: a record of the log.
struct HistoryInput {
  HistoryPlace place;
  std::int64_t offset = 0;
  std::string key_hash;
  std::string fingerprint;
  bool acked = true;
};
/// {"t":"owner"}: who owned it, from the offsets log.
struct HistoryOwner {
  std::int64_t pos = 0;
  HistoryPlace place;
  std::string member;
  std::int32_t epoch = -1;
};
/// {"t":"commit"}
struct HistoryCommit {
  std::int64_t pos = 0;
  HistoryPlace place;
  std::int64_t offset = 0;
  std::string metadata;
  bool final = false;  ///< only read back at the end
};
/// {"t":"fence"}: an activation, in database commit order.
struct HistoryFence {
  std::int64_t pos = 0;
  HistoryPlace place;
  std::int64_t token = 0;
  std::string owner;
};
/// {"t":"effect"}
struct HistoryEffect {
  std::int64_t pos = 0;
  HistoryPlace place;
  std::int64_t offset = 0;
  std::string identity;
  std::string fingerprint;
  std::int64_t token = 0;
  std::string outcome;  ///< done reject
};
/// {"t":"fault"}
struct HistoryFault {
  std::string inc;
  std::int64_t mono_ns = 0;
  std::string kind;
  bool begin = true;
};

/// {"t":"event"} as read: a member's claim, checked, never trusted.
struct HistoryEvent {
  using Value = std::variant<std::nullptr_t, std::int64_t, double, bool, std::string>;
  std::string inc;
  std::int64_t mono_ns = 0;
  std::int64_t seq = 0;
  std::string event;
  std::map<std::string, Value, std::less<>> keys;  ///< all the others
};

/// {"t":"end"}: how many lines of each other kind there are.
struct HistoryEnd {
  std::map<std::string, std::int64_t, std::less<>> counts;
};

/// A `t` this version does not know.
struct HistoryUnknown {
  std::string t;
};

using HistoryLine =
    std::variant<HistoryStart, HistoryEvent, HistoryInput, HistoryOwner, HistoryCommit,
                 HistoryFence, HistoryEffect, HistoryFault, HistoryEnd, HistoryUnknown>;

}  // namespace tenure::observe
