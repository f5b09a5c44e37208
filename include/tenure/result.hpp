// Errors as values. Operating failures are `Result<T>`; broken invariants are assertions; user
// handlers may throw and the boundary converts.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tenure {

/// What kind of failure an `Error` is. Closed list.
enum class Code : std::uint8_t {
  invalid,      ///< an argument, option or configuration value is wrong
  unavailable,  ///< a broker or store cannot be reached now
  refused,      ///< the broker, store or operating system said no
  retired,      ///< the owner, transaction or runtime this was asked of has ended
  fenced,       ///< a later owner was activated (T4); never retried
  internal,     ///< a bug of ours or of a library
};

/// Why something did not work, and what to do. A value.
struct Error {
  Code code = Code::internal;
  bool retriable = false;  ///< the same call may work later without any change
  bool fatal = false;      ///< this process cannot go on
  std::string message;     ///< what happened, with names and values; never a secret
  std::string hint;        ///< the fix, or empty
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for a failed `Result`.
inline tl::unexpected<Error> fail(Code code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(
      Error{code, code == Code::unavailable, false, std::move(message), std::move(hint)});
}

}  // namespace tenure
