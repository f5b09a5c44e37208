// Runs the handler on one run: every shape, with or without a transaction of ours.
//
// Role: turns what handlers return, throw or break into the results of the run's records.
//   - single without unit: a call a record; ordered: the first that is not done ends the run.
//   - batch: one call; `reject`, `park`, a throw or a failed statement bisect it, `retry` repeats
//     it whole.
//   - single with unit (design 3-effects): a call a record inside one transaction. When record k
//     is not done: roll back, those before k again (no attempt counted), commit; then the
//     handler's verdict on k stands. A failed statement may be an earlier record's fault, so then
//     k runs alone, and what happens there counts.
//   - async: the handler gets a Completion.
//   Between two records, and before a batch, the owner's dispatch gate is asked (R1).
// Owns: nothing. Threads: any number of workers at once, a Scratch each; the callback of a commit
//   comes on any thread and runs no handler there.
// Promises: every run is handed to RunTask::back exactly once; the worker never waits for a
//   commit; no allocation, lock or string copy for a record that is done without a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/run_task.hpp"

namespace tenure::runtime {

class Executor {
 public:
  struct Options {
    EffectStore* store = nullptr;  ///< with `units`
    bool units = false;            ///< the handler takes a Transaction
    bool progress = false;         ///< kind transaction: `done` moves the lane's progress
    bool ordered = true;           ///< records of a run must not overtake each other
  };

  /// A worker's own memory, reused from run to run.
  struct Scratch {
    std::vector<MessageHandle> messages;
    std::vector<MessageView> views;
    std::vector<Record> records;
    /// End of the run before, when this one follows without a wait: one clock reading less.
    std::optional<Instant> mark;
  };

  explicit Executor(Options options) : options_(options) {}

  [[nodiscard]] const Options& options() const { return options_; }

  /// Takes the run as far as it can: it is back at the engine, or will be by a commit's callback
  /// or a Completion. `task` must not be touched afterwards.
  void execute(RunTask& task, Scratch& scratch) const;

 private:
  enum class Next : std::uint8_t {
    finished,  ///< the run can go back
    more,      ///< another unit or batch of the same run
    away,      ///< a commit is out; someone else goes on
  };

  void each_alone(RunTask& task, Scratch& scratch) const;
  Next try_unit(RunTask& task, Scratch& scratch) const;
  Next try_batch(RunTask& task, Scratch& scratch) const;
  Next not_done(RunTask& task, std::uint32_t index, Outcome outcome) const;
  Next commit(RunTask& task) const;
  Next committed(RunTask& task) const;
  Next failed(RunTask& task, std::uint32_t index, const UnitResult& result, bool certain) const;
  void refused(RunTask& task) const;
  Next passed(RunTask& task, core::RecordResult result) const;
  void look(const RunTask& task, std::uint32_t from, std::uint32_t to, Scratch& scratch) const;

  Options options_;
};

}  // namespace tenure::runtime
