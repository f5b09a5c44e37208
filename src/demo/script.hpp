// The schedule of a scenario: what is done, and what has to be seen first.
//
// Role: a state machine over the World: each step waits for something observed, then acts. No
//   step waits for time to pass, except where time itself is shown (a lock, a slow key).
// Threads: one. Lifecycle: one Script a run. Pure: processes, pipes and clocks are the caller's.
// Promises: the same observations give the same actions; when the patience of a step ends, the
//   rest of the scenario is left out, the members come to their end, and the run proves nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "demo/plan.hpp"
#include "demo/world.hpp"
#include "judge/judge.hpp"

namespace tenure::demo {

// Actions.
struct StartMember { std::string member; };
struct TellMember {  ///< one command: freeze, hold_before, hold_after, release, slow
  std::string member;
  std::string command;
};
struct Continue { std::string member; };   ///< SIGCONT
struct Kill { std::string member; };       ///< SIGKILL
struct Terminate { std::string member; };  ///< SIGTERM
struct ProbeLock {};                       ///< is the database's write lock free?
struct LockStore {};                       ///< for Plan::locked
struct StopProducing {};                   ///< and watch for CaughtUp from then on
struct Say { std::string who; std::string text; };
using Action =
    std::variant<StartMember, TellMember, Continue, Kill, Terminate, ProbeLock, LockStore,
                 StopProducing, Say>;

struct Step {
  std::string what;  ///< for people: what it waits for
  std::function<bool(const World&)> when;
  /// Returns how many steps to go back; 0 = on to the next.
  std::function<std::size_t(World&, std::vector<Action>&)> act;
  std::chrono::milliseconds patience{20'000};
};

/// "0-3,5" of a member's partitions.
std::string ranges(const std::map<std::int32_t, std::int64_t>& owned);

class Script {
 public:
  using Time = std::chrono::milliseconds;  ///< since the run began

  explicit Script(const Plan& plan);

  /// What happened; returns what to do now.
  std::vector<Action> observe(const Observation& observation, Time now);
  /// Nothing happened; looks at patience.
  std::vector<Action> look(Time now);

  [[nodiscard]] bool finished() const { return next_ == steps_.size(); }
  /// What the run waited for in vain.
  [[nodiscard]] const std::optional<std::string>& stuck() const { return stuck_; }
  [[nodiscard]] const World& world() const { return world_; }
  /// What must have been seen for a verdict (6-interface, section 5).
  [[nodiscard]] std::vector<judge::Sight> sights() const;

 private:
  void give_up(Time now, std::vector<Action>& out);

  const Plan plan_;
  World world_;
  std::size_t end_ = 0;  ///< first step of the end; set while steps_ are made
  std::vector<Step> steps_;
  std::size_t next_ = 0;
  Time since_{};
  std::optional<std::string> stuck_;
};

}  // namespace tenure::demo
