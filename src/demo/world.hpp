// What the parent of a demo knows of its members: told by them over a pipe, and by the operating
// system.
//
// A pure state: no processes, no clock. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenure::demo {

/// A record that a member's handler was working on when something happened.
struct Spot {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  friend auto operator<=>(const Spot&, const Spot&) = default;
};

/// One line of a member: an event of its runtime, or of its handler (names without a dot).
///   applied, again   the effect was written; the database had it already
///   freezing         the process stops itself in this handler
///   held             the handler keeps the record back until released
///   refused          the database refused the effect: superseded
///   gap              completed above the frontier of a partition, in `count`
/// `offset` and `count` of owner.retired: its frontier, and what of it is committed.
struct MemberEvent {
  std::string name;
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  std::int64_t grant = 0;
  std::int64_t token = 0;
  std::int64_t count = 0;
  double number = 0;  ///< took_ms, budget_ms
  std::string text;  ///< reason, result, cause, by
  bool late = false;  ///< of a handler that was frozen or held
};

// Observations.
struct Told { std::string member; MemberEvent event; };
struct Stopped { std::string member; };                 ///< by a signal, may be continued
struct Exited { std::string member; int code = 0; bool killed = false; };
struct LockProbed { bool free = false; };               ///< nobody holds the database's write lock
struct LockTaken {};                                    ///< we hold it
struct LockGiven {};
struct CaughtUp {};                                     ///< committed = log end everywhere
using Observation = std::variant<Told, Stopped, Exited, LockProbed, LockTaken, LockGiven, CaughtUp>;

struct MemberState {
  bool running = false;
  bool stopped = false;  ///< frozen
  std::optional<int> exit_code;
  bool killed = false;
  std::map<std::int32_t, std::int64_t> owned;  ///< partition -> grant
  std::int64_t newest_grant = 0;
  std::int64_t newest_grant_at_freeze = 0;
  std::uint64_t applied = 0;
  std::optional<Spot> freezing;
  std::vector<Spot> held;
  std::uint64_t drains = 0;            ///< owners that drained completely
  std::uint64_t drains_committed = 0;  ///< revoked owners whose whole frontier was committed
  std::uint64_t late = 0;             ///< record.late
  std::map<std::int32_t, std::set<std::int64_t>> grants;  ///< all there were
  std::map<std::int32_t, std::int64_t> gap;
};

struct World {
  int partitions = 0;
  std::map<std::string, MemberState> members;
  std::map<Spot, std::map<std::string, int>> applied;  ///< who wrote it, how often
  std::map<std::int32_t, std::int64_t> highest_applied;
  std::map<std::int32_t, std::int64_t> token;  ///< newest acquired
  std::uint64_t refused = 0;
  std::uint64_t late_written = 0;  ///< late effects that the database took a second time
  std::uint64_t skipped = 0;       ///< records skipped, from the store
  std::uint64_t killed = 0;        ///< members that SIGKILL ended
  std::uint64_t again = 0;         ///< effects written a second time, or found there
  bool store_unavailable = false;
  bool store_recovered = false;
  std::optional<bool> lock_free;
  bool lock_taken = false;
  bool lock_given = false;
  bool caught_up = false;
  std::int64_t gap_max = 0;

  void take(const Observation& observation);

  [[nodiscard]] const MemberState& member(const std::string& name) const;
  /// Partitions that somebody alive owns.
  [[nodiscard]] std::size_t owned_except(std::string_view name) const;
  [[nodiscard]] bool all_owned() const {
    return owned_except({}) == static_cast<std::size_t>(partitions);
  }
  /// Owners of all members that drained completely; revoked ones with all of it committed.
  [[nodiscard]] std::uint64_t drains() const;
  [[nodiscard]] std::uint64_t drains_committed() const;
  /// The member owns something by a grant that is younger than its freeze.
  [[nodiscard]] bool granted_since_freeze(const std::string& name) const;
  [[nodiscard]] bool applied_by_other(Spot spot, std::string_view name) const;

 private:
  void told(const std::string& name, const MemberEvent& event);
};

}  // namespace tenure::demo
