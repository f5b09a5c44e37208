// What an exec handler is told: the program, how many of it, and its times.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tenure/outcome.hpp"

namespace tenure::handler {

enum class ExecMode : std::uint8_t {
  alive,       ///< `processes` programs that stay, `in_flight` records each, protocol version 1
  per_record,  ///< one program start a record, `processes` at once
};

/// Ranges are those of `handler.exec` (6-interface, section 3); whoever fills it checks them.
struct ExecOptions {
  std::vector<std::string> command;  ///< argv, no shell; never empty
  ExecMode mode = ExecMode::alive;
  std::uint32_t processes = 4;
  std::uint32_t in_flight = 16;                  ///< per process; alive only
  std::chrono::milliseconds timeout{20000};      ///< per attempt, from handing over to the answer
  std::chrono::milliseconds start_limit{10000};  ///< from start to the handler's hello
  std::chrono::milliseconds cancel_grace{2000};  ///< from the timeout to the kill
  std::size_t line_bytes = 8388608;              ///< longest line a handler may write; not of ours
  OutcomeKind on_error = OutcomeKind::retry;     ///< per_record: exit codes without a meaning
  std::string group;                             ///< told in hello
  std::vector<std::string> topics;               ///< told in hello

  // Fixed by protocol version 1; tests shorten them.
  std::chrono::milliseconds restart_min{100};
  std::chrono::milliseconds restart_max{30000};
  std::chrono::milliseconds close_term{5000};   ///< from bye to SIGTERM
  std::chrono::milliseconds close_kill{10000};  ///< from bye to SIGKILL
};

}  // namespace tenure::handler
