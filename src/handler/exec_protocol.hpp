// The lines of the exec protocol, version 1 (6-interface, section 4). Pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "handler/exec_options.hpp"
#include "tenure/outcome.hpp"
#include "tenure/owner.hpp"
#include "tenure/record.hpp"

namespace tenure::handler {

inline constexpr std::int64_t exec_protocol_version = 1;

/// Names one attempt of one record; new each time.
using AttemptId = std::uint64_t;

/// Why a handler should give a record up. `timeout` is the only one followed by a kill.
enum class CancelCause : std::uint8_t { revoked, lost, timeout, shutdown };
std::string_view name(CancelCause cause);

// Each appends one line, '\n' included.
void append_hello(std::string& out, const ExecOptions& options);
void append_record(std::string& out, AttemptId id, const Record& record, const Owner& owner,
                   std::chrono::milliseconds timeout);
void append_cancel(std::string& out, AttemptId id, CancelCause cause);
void append_bye(std::string& out);

/// {"type":"hello"} of a handler that speaks our version.
struct HelloLine {
  std::string name;
};
/// {"type":"outcome"}, checked.
struct OutcomeLine {
  AttemptId id = 0;
  Outcome outcome;
};
/// A line that is not the protocol. `id` is set when it is an outcome of that attempt.
struct BadLine {
  std::string reason;  ///< no payload
  std::optional<AttemptId> id;
};

/// Reads one line of a handler, without its '\n'.
std::variant<HelloLine, OutcomeLine, BadLine> read_line(std::string_view line);

/// A reason as it is kept: at most 512 bytes of valid UTF-8.
inline constexpr std::size_t reason_bytes_max = 512;

}  // namespace tenure::handler
