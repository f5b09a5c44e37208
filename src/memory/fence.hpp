// T1, T3 and T4 on the rows of a memory::Database. Pure; the caller holds the database's mutex.
#pragma once

#include "memory/database_state.hpp"
#include "tenure/store_types.hpp"

namespace tenure::memory {

Reserved::Item reserve(Database::Image& database, const Reserve::Item& item);
Activated::Item activate(Database::Image& database, const Activate::Item& item);
IdleAdvanced advance_idle(Database::Image& database, const AdvanceIdle& request);
LookedUp look_up(const Database::Image& database, const Lookup& request);

/// T4: `applied` when the lane is mine and stands at `from`; changes nothing.
UnitResult check_lane(const Database::Image& database, const Domain& domain, const Fence& fence,
                      std::uint16_t lane, Offset from, Offset to);
/// After check_lane() in the same transaction.
void move_lane(Database::Image& database, const Domain& domain, std::uint16_t lane, Offset to,
               LeaderEpoch leader_epoch);

}  // namespace tenure::memory
