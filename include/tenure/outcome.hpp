// What a handler says of a record. The table in design/6-interface, section 1, is the contract:
//
//   outcome  terminal             frontier  stored effect              then
//   done     yes                  may pass  with the lane's progress
//   retry    no                   held      rolled back                attempt + 1 after backoff
//   reject   on delivery report   then      rolled back, progress only dead letter
//   park     no                   held      rolled back                visible; next grant
//   stop     no                   held      rolled back                drain all, exit 3
//
// Until dead letters exist in Tenure, `reject` parks.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tenure {

enum class OutcomeKind : std::uint8_t { done, retry, reject, park, stop };
std::string_view name(OutcomeKind kind);

/// A value. Make one with done(), retry(), reject(), park() or stop().
class Outcome {
 public:
  [[nodiscard]] OutcomeKind kind() const { return kind_; }
  /// Wish of `retry`: not before this long; empty = the configured backoff. 0 .. 24 h, capped.
  [[nodiscard]] std::optional<std::chrono::milliseconds> after() const { return after_; }
  /// For people; no payload. Cut to 512 bytes where it is stored.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// Class of a failure: [a-z0-9_]{1,32}; empty = the outcome's own name.
  [[nodiscard]] const std::string& failure_class() const { return class_; }

  Outcome(OutcomeKind kind, std::string reason, std::string failure_class,
          std::optional<std::chrono::milliseconds> after)
      : kind_(kind), after_(after), reason_(std::move(reason)), class_(std::move(failure_class)) {}

 private:
  OutcomeKind kind_;
  std::optional<std::chrono::milliseconds> after_;
  std::string reason_;
  std::string class_;
};

/// The record's business operation has happened, or needs none.
inline Outcome done() { return {OutcomeKind::done, {}, {}, {}}; }
/// Not yet: again after `after`, or after the configured backoff.
inline Outcome retry(std::optional<std::chrono::milliseconds> after = {}, std::string reason = {},
                     std::string failure_class = {}) {
  return {OutcomeKind::retry, std::move(reason), std::move(failure_class), after};
}
/// Never: to the dead letters.
inline Outcome reject(std::string reason, std::string failure_class = {}) {
  return {OutcomeKind::reject, std::move(reason), std::move(failure_class), {}};
}
/// Leave it for a person; holds its lane or key, visibly.
inline Outcome park(std::string reason) { return {OutcomeKind::park, std::move(reason), {}, {}}; }
/// Stop the whole program: drain all, exit 3.
inline Outcome stop(std::string reason) { return {OutcomeKind::stop, std::move(reason), {}, {}}; }

/// Thrown by a handler whose own fenced transaction was refused as superseded: no outcome, the
/// owner is retired (F6).
struct FenceRefused : std::exception {
  const char* what() const noexcept override { return "superseded at the store"; }
};

}  // namespace tenure
