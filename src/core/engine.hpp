// The engine: one member's owners from grant to release, as a pure function of what happened.
//
// Role: decides everything rules O, F, R, C and T of design/2-ownership ask of a member: what to
//   answer to the broker, what to read, what may be dispatched, what may be committed and when
//   an owner ends. `step(input, now) -> commands`.
// Owns: PartitionOwners and their windows, the acquisition in progress, the commit slot, the
//   lease, the pool of runs.
// Threads: none; the loop thread calls. Lifecycle: one engine a Runtime::run().
// Promises: each Rebalance is answered exactly once (R5); at most one commit is out (C1); a
//   retired owner changes nothing (O3); no clock, no I/O, no randomness but the seed given.
// Does not promise: that its commands succeed. What fails comes back as an input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/command.hpp"
#include "core/input.hpp"
#include "core/window.hpp"
#include "tenure/ids.hpp"
#include "tenure/outcome.hpp"
#include "tenure/owner.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class ResetPolicy : std::uint8_t { earliest, latest, error };

struct EngineOptions {
  std::string group;
  std::string scope;  ///< effect scope; = group by default

  Order order = Order::key;
  /// Blocking: a run occupies a worker; runs are queued ahead of them. Async: every run has one
  /// record and needs a credit.
  bool async = false;
  std::uint32_t concurrency = 64;

  // Effect.
  bool fence = false;     ///< a store: tickets and fence for every owner
  bool progress = false;  ///< kind transaction: lanes at the store
  std::uint16_t lanes = 8;
  std::uint32_t batch_records = 1;
  Duration batch_wait{};

  // Window.
  std::uint64_t window_records = 1024;
  std::uint64_t window_bytes = 16u << 20;
  std::uint64_t window_records_total = 65536;
  std::uint64_t window_bytes_total = 256u << 20;
  std::uint64_t ready_max = 1000;  ///< records ready or queued ahead, over all owners

  // Retry.
  std::uint16_t attempts = 8;
  Duration backoff_min = milliseconds(200);
  Duration backoff_max = seconds(30);
  double jitter = 0.2;
  std::uint32_t retry_waiting_max = 10000;
  OutcomeKind exhausted = OutcomeKind::reject;  ///< reject, park or stop

  // Commit, drain, shutdown.
  Duration commit_interval = seconds(1);
  bool start_position = true;  ///< C8
  Duration drain_budget = seconds(5);
  Duration commit_slice = seconds(2);
  Duration drain_margin = seconds(1);
  Duration shutdown_budget = seconds(20);
  Duration close_limit = seconds(3);

  ResetPolicy reset = ResetPolicy::earliest;
  bool record_events = false;  ///< report single records too
  bool until_end = false;      ///< stop when the ends read at the first join are passed
  std::uint64_t seed = 1;      ///< jitter and owner nonces
};

/// What an owner shows (Owner's "alive" values, status). Right when taken.
struct OwnerSnapshot {
  OwnerRef owner;
  OwnerState state = OwnerState::acquiring;
  bool suspect = false;
  std::string_view cause;  ///< CAUSE words of 6-interface, section 9; empty = none
  std::optional<Deadline> drain_deadline;
  Offset frontier;
  std::uint64_t completed_above = 0;
  std::uint64_t window_records = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t in_flight = 0;
  std::optional<Offset> committed;
  std::optional<CommitOutcome> last_commit;
  std::optional<RetiredReason> retired_reason;
};

/// Totals since the start, for StopReport, app.stopped and tests.
struct EngineTotals {
  std::uint64_t received = 0, handled = 0, replayed = 0, dropped = 0, skipped_by_store = 0;
  std::uint64_t late = 0, refused = 0, retries = 0, parked = 0, abandoned = 0;
  std::uint64_t commits_accepted = 0, commits_rejected = 0, commits_unresolved = 0;
  std::uint64_t grants = 0, lost = 0, superseded_answers = 0, retired_calls = 0, rewinds = 0;
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Emits OpenSource. Once, first.
  void start(Instant now, Commands& out);

  /// Takes one input and appends what is to be done.
  void step(const Input& input, Instant now, Commands& out);

  /// Call step(Tick) no later than this. `never` = nothing is due.
  [[nodiscard]] Instant next_wake() const;

  /// How many records the source may hand over now; 0 = do not poll records.
  [[nodiscard]] std::size_t room() const;

  /// Owners whose snapshot changed since the last call, at most once each. Valid until the next
  /// step.
  [[nodiscard]] const std::vector<OwnerRef>& touched();
  /// Empty when the owner has been dropped.
  [[nodiscard]] std::optional<OwnerSnapshot> snapshot(OwnerRef owner) const;
  [[nodiscard]] const EngineTotals& totals() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenure::core
