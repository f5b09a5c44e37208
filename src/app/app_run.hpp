// A long-running member from its configuration to its exit code: what `tenure run` and app()
// share.
//
// Role: config, log, history, signals, readiness, progress, drain, exit code. The only thing that
//   differs between programs is who handles the records.
// Threads: run_program() on the main thread; it makes one for signals, one for progress and one
//   that asks for the broker until it has answered once.
// Promises: after the first TERM or INT it ends within shutdown.budget_ms + drain.commit_ms +
//   shutdown.close_ms (R10); after a second one within 1 s, with 75.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/app_events.hpp"
#include "app/command_line.hpp"
#include "app/config.hpp"
#include "app/exit_code.hpp"
#include "tenure/options.hpp"
#include "tenure/port/logger.hpp"
#include "tenure/result.hpp"

namespace tenure::app {

/// What ties topics to code, with what has to be told of the program's end. Either may be empty.
struct Handlers {
  std::function<void()> stopping;  ///< the drain of a stop has begun; loop thread, must not wait
  std::function<void()> ended;     ///< no handler is called any more; may wait
};

struct RunSetup {
  ConfigSources sources;
  /// Adds routes to the builder, whose options are those of the configuration. Code `invalid`:
  /// the configuration is to blame; a line a fault.
  std::function<Result<Handlers>(const Config& config, Logger& logger, EventStream& events,
                                 Builder& builder)>
      tie;
  bool require_ready = false;
  bool until_end = false;
  std::optional<std::string> history;
  bool color = false;
};

/// Call Signals::block() first. Never returns while a handler that was given up may still run:
/// then it ends the process itself.
ExitCode run_program(const RunSetup& setup);

// The command line that all such programs share.

/// -c -b -g -t -X -o -q -v --color --ascii
std::vector<FlagSpec> flags_of_every_verb();
/// --order --concurrency --require-ready --until-end --history
std::vector<FlagSpec> flags_of_run();
/// Settings of the line, in its order, and the file it names.
ConfigSources sources_of(const Parsed& parsed);
/// Fills what flags_of_run() says but for the configuration.
void apply(const Parsed& parsed, RunSetup& setup);
/// Whether to use color on this descriptor: --color, NO_COLOR, TERM, and is it a terminal.
bool color_wanted(const Parsed& parsed, int descriptor);

/// Prints the faults to stderr, a line each.
void print_faults(const std::vector<Fault>& faults, bool warnings);

}  // namespace tenure::app
