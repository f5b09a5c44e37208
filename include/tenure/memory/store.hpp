// The memory store: the fence and the transactions of a real store, in this process, for tests.
//
// A Database outlives the stores that open it, as a real one outlives processes: give each
// simulated process its own Store on a shared Database.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/port/effect_store.hpp"
#include "tenure/result.hpp"
#include "tenure/store_types.hpp"

namespace tenure::memory {

struct StoreCore;
struct UnitCore;

/// A lane as it stands.
struct LaneRow {
  Token token;
  Uuid owner;
  std::optional<Offset> next_offset;
  LeaderEpoch leader_epoch = no_leader_epoch;
  std::string note;
};

/// What is durable: entries, tickets and lanes.
///
/// Threads: any. Lifetime: shared. Promises: a transaction commits all it wrote or nothing, and
///   only when nothing it has read has changed since (serialisable; else `contention`).
class Database {
 public:
  Database();
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // For tests to look at, and to set the scene; no fence is asked.
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  void put(std::string key, std::string value);
  [[nodiscard]] std::map<std::string, std::string> entries() const;
  /// Empty: never activated.
  [[nodiscard]] std::vector<LaneRow> lanes(const Domain& domain) const;
  void set_lane(const Domain& domain, std::uint16_t lane, LaneRow row);

  /// A copy of everything, and back to it: a failover that loses its tail.
  class Image;
  [[nodiscard]] std::shared_ptr<const Image> image() const;
  void restore(const Image& image);

 private:
  friend struct StoreCore;
  friend struct UnitCore;
  struct State;
  const std::unique_ptr<State> state_;
};

/// What a handler writes through: a map from text to text.
///
/// Threads: the handler's. Lifetime: until the handler returns. Promises: reads see what the
///   transaction itself has written; nothing is visible to others before its end; once the unit
///   has ended every call answers `retired` and changes nothing.
class Transaction {
 public:
  explicit Transaction(UnitCore& core) : core_(core) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  static TransactionKind kind();

  /// Empty optional: no such key.
  Result<std::optional<std::string>> get(std::string_view key);
  void put(std::string key, std::string value);
  void erase(std::string key);

 private:
  UnitCore& core_;
};

/// Threads, lifetime: as in EffectStore. Answers on the thread that asks, before the call
/// returns; while stalled, on the thread that calls resume().
class Store final : public EffectStore {
 public:
  explicit Store(std::shared_ptr<Database> database);
  ~Store() override;

  // Faults, for tests. Any thread.
  /// The next request or commit fails so, having done nothing. in_doubt: see below.
  void fail_next(StoreError error);
  /// The next commit of a unit is answered `in_doubt`.
  void lose_next_commit_reply(bool applied);
  /// Requests and commits are taken, but neither done nor answered, until resume().
  void stall();
  void resume();

  [[nodiscard]] std::string_view name() const override { return "memory"; }
  [[nodiscard]] TransactionKind transaction_kind() const override { return Transaction::kind(); }
  Result<void> open(StoreSink& sink) override;
  void submit(Reserve request) override;
  void submit(Activate request) override;
  void submit(AdvanceIdle request) override;
  void submit(Lookup request) override;
  [[nodiscard]] std::unique_ptr<EffectUnit> open_unit(UnitKey key) override;
  void cancel(OwnerRef owner) override;
  [[nodiscard]] Result<void> still_there() override { return {}; }
  void close(Duration limit) override;

 private:
  const std::shared_ptr<StoreCore> core_;
};

}  // namespace tenure::memory
