// The database that is the authority over effects.
//
// Requests of the engine (reserve, activate, advance, lookup) are submitted on the loop thread
// and answered once each, from any thread, through the StoreSink: a store may keep as many in
// flight as it likes. Handlers' transactions are EffectUnits, opened on a worker thread; commit
// is asynchronous too: its result comes through a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tenure/ids.hpp"
#include "tenure/result.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// Receives answers. Any thread; must not block or call back into the store.
class StoreSink {
 public:
  virtual ~StoreSink() = default;
  virtual void reserved(Reserved answer) = 0;
  virtual void activated(Activated answer) = 0;
  virtual void idle_advanced(IdleAdvanced answer) = 0;
  virtual void looked_up(LookedUp answer) = 0;
};

/// How a unit ended, or what an SQL error inside it means (6-interface, section 4, sql).
enum class UnitVerdict : std::uint8_t {
  applied,          ///< effect and progress are committed
  already_applied,  ///< an earlier attempt had committed both (E3): done
  superseded,       ///< not my token: rolled back, the owner is retired (F6)
  moved,            ///< my token, the lane is elsewhere: rolled back, the lane stops, loud
  contention,       ///< busy, deadlock, serialisation: again, not an attempt
  unavailable,      ///< store away, full, read-only, moved: again, not an attempt, loud
  in_doubt,         ///< reply to COMMIT lost: look up first (E3)
  retired,          ///< cancelled: the owner has ended
  handler_down,     ///< the SQL does not fit the schema or the role (42xxx): again, no attempt
  timeout,          ///< retry, class `timeout`
  data,             ///< reject, class `data`
  constraint,       ///< reject, class `constraint`
  sql,              ///< retry, class `sql`
  misuse,           ///< the handler ended our transaction itself: stop
};
std::string_view name(UnitVerdict verdict);

struct UnitResult {
  UnitVerdict verdict = UnitVerdict::applied;
  std::string message;  ///< for people; no payload
};

/// What a unit moves and under which fence.
struct UnitKey {
  OwnerRef owner;
  Domain domain;
  Fence fence;
  std::uint16_t lane = 0;
  Offset from;  ///< the lane's stored progress as the engine knows it
};

/// One database transaction of one lane: the user's statements, then the advance of the lane.
/// Worker's thread until commit() or roll_back(); the destructor rolls back what is open.
/// The database transaction begins at the first statement of the handler or at commit().
class EffectUnit {
 public:
  virtual ~EffectUnit() = default;
  /// The adapter's own Transaction (sqlite::Transaction ...), of the kind that
  /// EffectStore::transaction_kind() names.
  [[nodiscard]] virtual void* transaction() = 0;
  /// Set once a statement of the handler has failed; it decides the outcome, whatever the
  /// handler says, and commit() would answer the same.
  [[nodiscard]] virtual const UnitResult* failure() const = 0;
  /// Compare-and-set of the lane as the last statement (it raises when it matches nothing, T4),
  /// then COMMIT. `done` is called exactly once, from any thread, possibly before this returns;
  /// the unit may be destroyed after that.
  virtual void commit(Offset to, LeaderEpoch leader_epoch,
                      std::function<void(UnitResult)> done) = 0;
  virtual void roll_back() = 0;
};

/// Identifies a Transaction type: the address of an inline variable of the adapter.
using TransactionKind = const void*;

/// Threads: submit(), cancel() and close() on the loop thread; open_unit() on any.
/// Lifetime: outlives the Runtime and every unit.
class EffectStore {
 public:
  virtual ~EffectStore() = default;

  /// "sqlite", "memory": label of metrics and events.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual TransactionKind transaction_kind() const = 0;

  /// Connects and checks version and tables; blocking, before the loop starts. Retriable when
  /// the store is merely away.
  virtual Result<void> open(StoreSink& sink) = 0;

  virtual void submit(Reserve request) = 0;
  virtual void submit(Activate request) = 0;
  virtual void submit(AdvanceIdle request) = 0;
  virtual void submit(Lookup request) = 0;

  /// A transaction for one run of a lane. Never blocks; waits, where needed, at the first
  /// statement.
  [[nodiscard]] virtual std::unique_ptr<EffectUnit> open_unit(UnitKey key) = 0;

  /// T6: the owner has ended. Its open units are interrupted and rolled back and answer
  /// `retired`, now and for ever; a unit whose COMMIT has been sent ends as it ends. Does not
  /// wait.
  virtual void cancel(OwnerRef owner) = 0;

  /// Before each Kafka commit of a derived offset: is what we wrote still reachable under its
  /// name? (SQLite goes on writing into a deleted file.) Cheap, does not wait. An error keeps
  /// the commit back.
  [[nodiscard]] virtual Result<void> still_there() = 0;

  /// Ends the store's threads; open units answer `retired`. At most `limit`.
  virtual void close(Duration limit) = 0;
};

}  // namespace tenure
