// Names of things: partitions, offsets, epochs, grants, tokens. Values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "tenure/strong.hpp"

namespace tenure {

/// Partition number, >= 0.
using Partition = Strong<struct PartitionTag, std::int32_t>;

/// A place in a partition's log, >= 0. "No committed offset" is an empty optional, never a
/// number (F4).
class Offset : public Strong<struct OffsetTag, std::int64_t> {
 public:
  using Strong::Strong;
  [[nodiscard]] constexpr Offset next() const { return Offset(value() + 1); }
};

/// Epoch of a partition's leader as carried by a record or a commit; -1 = not known.
using LeaderEpoch = Strong<struct LeaderEpochTag, std::int32_t>;
inline constexpr LeaderEpoch no_leader_epoch{-1};

/// Classic generation or KIP-848 member epoch. Equality only: two epochs have no order that
/// proves anything (T5).
class Epoch {
 public:
  constexpr Epoch() = default;
  constexpr explicit Epoch(std::int32_t value) : value_(value) {}
  [[nodiscard]] constexpr std::int32_t value() const { return value_; }
  friend constexpr bool operator==(Epoch, Epoch) = default;

 private:
  std::int32_t value_ = -1;
};

/// Process-unique, increasing; one grant, one owner, never reused (O2). 0 = none.
using GrantId = Strong<struct GrantIdTag, std::uint64_t>;

/// Fence token drawn at the store after a grant (T1), > 0.
using Token = Strong<struct TokenTag, std::int64_t>;

/// 128-bit id. Prints as 8-4-4-4-12 hexadecimal digits.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool zero() const { return *this == Uuid{}; }
};

/// Names one owner inside this process. `slot` is dense and reused, `grant` never is: a stale
/// reference is recognised by its grant (O4).
struct OwnerRef {
  std::uint32_t slot = 0;
  GrantId grant;
  friend constexpr bool operator==(const OwnerRef&, const OwnerRef&) = default;
};

/// Topic by name, and partition.
struct TopicPartition {
  std::string topic;
  Partition partition;
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

/// The member as the client library sees it now. An empty id or a negative epoch means that
/// the group does not know us (R5b).
struct Member {
  std::string id;
  Epoch epoch;
  std::string instance_id;  ///< empty = dynamic
  friend bool operator==(const Member&, const Member&) = default;
};

/// How rebalances are done. eager = classic range or roundrobin; consumer = KIP-848.
enum class Protocol : std::uint8_t { eager, cooperative, consumer };
std::string_view name(Protocol protocol);

/// Order of records inside a partition.
enum class Order : std::uint8_t { none, key, partition };
std::string_view name(Order order);

}  // namespace tenure
