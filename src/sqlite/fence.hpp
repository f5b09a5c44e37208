// The statements of T1, T3 and T4, each in one transaction of the connection they are given.
//
// Threads: the one that holds the connection. Promises: whatever the answer says did not happen
// has been rolled back; after `in_doubt` the connection must be replaced.
#pragma once

#include <string>
#include <string_view>

#include "sqlite/connection.hpp"
#include "tenure/store_types.hpp"

namespace tenure::sqlite {

enum class CommitEnd : std::uint8_t { committed, rolled_back, in_doubt };

/// COMMIT. On rolled_back, problem() says why.
CommitEnd commit(Connection& connection);

/// What a failed statement of ours means to the engine.
StoreError store_error(const Problem& problem);

Reserved::Item reserve(Connection& connection, const Reserve::Item& item);
Activated::Item activate(Connection& connection, const Activate::Item& item);
IdleAdvanced advance_idle(Connection& connection, const AdvanceIdle& request);
/// Reads; no transaction.
LookedUp look_up(Connection& connection, const Lookup& request);

/// T4: compare-and-set of one lane inside the open transaction. `applied`, or why not; then the
/// caller rolls back.
UnitResult advance_lane(Connection& connection, const Domain& domain, const Fence& fence,
                        std::uint16_t lane, Offset from, Offset to, LeaderEpoch leader_epoch);

}  // namespace tenure::sqlite
