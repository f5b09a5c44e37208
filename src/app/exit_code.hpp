// Exit codes of every verb: a promise to shells, systemd and Kubernetes. Numbers follow sysexits
// where one fits; they are part of the interface and never change meaning.
#pragma once

namespace tenure::app {

enum class ExitCode : int {
  ok = 0,                 ///< drained and committed; verdict PASS; plan printed
  failed = 1,             ///< verdict FAIL, or the action was refused
  inconclusive = 2,       ///< nothing was proven, or a verdict verb was interrupted: never a pass
  stopped = 3,            ///< outcome `stop`, or `retry.exhausted: stop`
  usage = 64,             ///< wrong command line; the nearest name is shown
  unreadable_input = 65,  ///< input or history version that cannot be read
  unreachable = 69,       ///< broker or store away at start under --require-ready: try again
  internal = 70,          ///< our bug, or a fatal state of the client
  no_terminal = 74,       ///< the verb needs a terminal
  drain_cut_short = 75,   ///< drain cut short or last commit unresolved: restart freely (replay)
  fenced = 76,            ///< same group.instance.id elsewhere, or superseded twice: do not restart
  access_refused = 77,    ///< the broker or store refused access; missing ACLs are printed
  config_invalid = 78,    ///< the configuration is invalid; all faults are printed
};

/// For main() and _exit().
constexpr int number(ExitCode code) {
  return static_cast<int>(code);
}

}  // namespace tenure::app
