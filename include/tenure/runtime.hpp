// A running member of a consumer group: the loop, the workers and what they hold.
//
// Role: carries out what the engine decides: owns source, engine and handlers while run() runs.
// Threads: run() makes its caller the loop thread; it owns the source and the engine, never runs
//   user code and never waits for it. Handlers run on up to Options::concurrency workers (async
//   ones are started by a few), made when they are needed. Every member function may be called
//   from any thread; stop() and the destructor not from a handler, which they wait for, and none
//   of them from an observer.
// Lifecycle: create(), run() once, destructor. The destructor is stop(0) and waits for run() to
//   return.
// Promises: run() returns within budget + commit slice + close limit of a stop (R10), whatever a
//   handler, the store or the broker does.
// Does not promise: that a hung handler ends. Its thread is given up; it keeps the ports and the
//   engine alive until it returns (so Ports are shared pointers), its outcome is late and changes
//   nothing. What such a handler itself refers to must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/options.hpp"
#include "tenure/owner.hpp"
#include "tenure/port/clock.hpp"
#include "tenure/port/effect_store.hpp"
#include "tenure/port/observer.hpp"
#include "tenure/port/source.hpp"
#include "tenure/result.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// What the runtime is connected to. One Runtime at a time uses a source or a store.
struct Ports {
  std::shared_ptr<Source> source{};      ///< required
  std::shared_ptr<EffectStore> store{};  ///< or null
  std::shared_ptr<const Clock> clock{};  ///< null: the system's CLOCK_BOOTTIME
  std::vector<std::shared_ptr<Observer>> observers{};
};

/// How a run ended. Counts are those of the stop, from its request to the end.
struct StopReport {
  enum class Reason : std::uint8_t {
    drained,       ///< everything started was finished and committed (exit 0)
    outcome_stop,  ///< a handler said `stop` (exit 3)
    cut_short,     ///< drain cut short or last commit unresolved: a replay is safe (exit 75)
    fenced,        ///< superseded twice, or our static name is elsewhere (exit 76)
    fatal,         ///< client or program error (exit 70)
    config,        ///< the store's data were written under another lane rule (exit 78)
  };
  std::uint64_t drained = 0;     ///< records that still became terminal
  std::uint64_t abandoned = 0;   ///< records whose handler was not waited for any longer
  std::uint64_t committed = 0;   ///< commits of one partition that were accepted
  std::uint64_t unresolved = 0;  ///< ... and those whose result is not known
  Duration took{};               ///< from the request
  Reason reason = Reason::drained;
  std::string message;  ///< for people; empty when drained
};
std::string_view name(StopReport::Reason reason);

/// One owner as `status` shows it.
struct OwnerStatus {
  std::string topic;
  Partition partition;
  GrantId grant;
  OwnerState state = OwnerState::acquiring;
  std::string_view cause;  ///< CAUSE words of 6-interface, section 9; empty: none
  std::optional<Fence> fence;
  std::optional<Offset> start;  ///< empty while acquiring
  Offset frontier;
  std::uint64_t completed_above = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t window_records = 0;
  std::uint64_t window_bytes = 0;
  std::optional<Offset> committed;
  std::optional<CommitOutcome> last_commit;
  std::optional<Deadline> drain_deadline;
};

/// The whole member at one moment.
struct Status {
  bool running = false;
  Member member;
  Instant now;
  std::vector<OwnerStatus> owners;
  std::uint64_t workers = 0;
  // Since the start.
  std::uint64_t received = 0, handled = 0, replayed = 0, skipped_by_store = 0, retries = 0;
  std::uint64_t parked = 0, late = 0, refused = 0, abandoned = 0, grants = 0, lost = 0;
  std::uint64_t commits_accepted = 0, commits_rejected = 0, commits_unresolved = 0;
};

class Runtime {
 public:
  /// Checks options, routes and ports against each other and opens the store (which may wait for
  /// it). `Error::message` lists everything that is wrong, a line each; code `invalid`. When the
  /// store is merely away the error is retriable: call again.
  static Result<Runtime> create(Options options, std::vector<Route> routes, Ports ports);
  static Result<Runtime> create(const Builder& build, Ports ports);

  Runtime(Runtime&& other) noexcept;
  Runtime& operator=(Runtime&& other) noexcept;
  ~Runtime();

  /// Runs the member until it is stopped. A stop request of `token` is stop() with
  /// Options::shutdown.budget, without waiting. Once; a second call reports `fatal`.
  StopReport run(std::stop_token token = {});

  /// Drains for at most `budget`, commits, leaves the group, and waits for run() to return. A
  /// budget of 0 or less while already stopping is abandon(). Before run(): run() will do nothing.
  StopReport stop(std::chrono::milliseconds budget);

  /// Begins a stop without waiting for its end.
  void request_stop(std::chrono::milliseconds budget);
  /// Second signal: no more waiting for handlers, commits or the broker. Without waiting.
  void abandon();

  /// Answered by the loop between two of its turns; `running` is false before and after run().
  [[nodiscard]] Status status() const;

 private:
  struct Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenure
