// Values exchanged between an effect store and the engine (T1-T6, lanes). No behaviour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// What a fence is about: one partition's effects under one scope.
struct Domain {
  std::string scope;    ///< name of the effect, by default the group id
  std::string cluster;  ///< cluster id
  Uuid topic_id;        ///< a recreated topic is a new domain
  Partition partition;
  friend auto operator<=>(const Domain&, const Domain&) = default;
};

/// How records are spread over lanes. Stored with the domain: under another rule a stored
/// offset means other records.
struct LaneRule {
  std::uint16_t lanes = 1;  ///< 1 .. 1024
  Order order = Order::key;
  friend bool operator==(const LaneRule&, const LaneRule&) = default;
};
/// Name of the only lane hash there is: XXH64 with seed 0.
inline constexpr std::string_view lane_hash_name = "xxh64";

/// The token and nonce that effects compare with. Nonce, since a store that failed over may
/// hand out a token twice.
struct Fence {
  Token token;
  Uuid owner;
  friend bool operator==(const Fence&, const Fence&) = default;
};

/// A lane's stored progress. Empty offset: the kind keeps none (T3).
struct LaneProgress {
  std::uint16_t lane = 0;
  std::optional<Offset> next_offset;
  LeaderEpoch leader_epoch = no_leader_epoch;
};

/// Names one request to a store; increasing.
using StoreRequestId = Strong<struct StoreRequestIdTag, std::uint64_t>;

/// Why a store could not do a thing.
enum class StoreError : std::uint8_t {
  none,
  contention,   ///< locked, busy, deadlock, serialisation: again soon, not an attempt
  unavailable,  ///< away, full, read-only, moved, corrupt: again with backoff, loud
  schema,       ///< tables missing or of another version: `tenure store init`
  rule,         ///< the domain is stored under another lane rule (78)
  superseded,   ///< a later ticket was activated (T3, T4)
  moved,        ///< my token, but the lane is not where it was expected: the lane stops, loud
  in_doubt,     ///< the reply to a COMMIT was lost (E3)
  retired,      ///< cancelled because the owner has ended
};
std::string_view name(StoreError error);

/// T1: draw a ticket for each domain; one transaction a domain.
struct Reserve {
  struct Item {
    OwnerRef owner;
    Domain domain;
    LaneRule rule;
  };
  StoreRequestId id;
  std::vector<Item> items;
};
struct Reserved {
  struct Item {
    OwnerRef owner;
    StoreError error = StoreError::none;
    std::string message;             ///< for people, when `error` is set
    Token token;                     ///< drawn
    std::vector<LaneProgress> lanes; ///< as stored now; empty: the domain has no rows yet
  };
  StoreRequestId id;
  std::vector<Item> items;
};

/// T3: make the token the active one where the stored token is smaller (or is mine, for a
/// retry). All rows of the domain or none; rows are created at `first` when there are none.
struct Activate {
  struct Item {
    OwnerRef owner;
    Domain domain;
    LaneRule rule;
    Fence fence;
    bool progress = true;          ///< the kind keeps lane progress (transaction)
    Offset first;                  ///< what T2 committed
    LeaderEpoch leader_epoch = no_leader_epoch;
    std::string note;              ///< member id, epoch, client: for people only (T5)
  };
  StoreRequestId id;
  std::vector<Item> items;
};
struct Activated {
  struct Item {
    OwnerRef owner;
    StoreError error = StoreError::none;  ///< superseded: no row was changed
    std::string message;
    Token stored_token;              ///< on `superseded`: the active one
    std::vector<LaneProgress> lanes; ///< the start is this, not T1's
  };
  StoreRequestId id;
  std::vector<Item> items;
};

/// Moves rows of idle lanes of one domain, in one transaction, under the fence.
struct AdvanceIdle {
  struct Step {
    std::uint16_t lane = 0;
    Offset from;
    Offset to;
    LeaderEpoch leader_epoch = no_leader_epoch;
  };
  StoreRequestId id;
  OwnerRef owner;
  Domain domain;
  Fence fence;
  std::vector<Step> steps;
};
struct IdleAdvanced {
  StoreRequestId id;
  OwnerRef owner;
  StoreError error = StoreError::none;
  std::string message;
};

/// E3: read one lane on a new connection.
struct Lookup {
  StoreRequestId id;
  OwnerRef owner;
  Domain domain;
  Fence fence;
  std::uint16_t lane = 0;
};
struct LookedUp {
  StoreRequestId id;
  OwnerRef owner;
  std::uint16_t lane = 0;
  StoreError error = StoreError::none;  ///< superseded when the stored fence is not mine
  std::string message;
  std::optional<Offset> next_offset;
};

}  // namespace tenure
