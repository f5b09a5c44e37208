// The object that holds a grant, as a handler and an operator see it.
//
// Role: a shared handle to one PartitionOwner. Threads: any, no lock. Each value is right when
// it is read, not all of them as a set. Lifetime: may be kept after the owner has retired;
// everything stays readable and says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "tenure/ids.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// O3: acquiring -> active -> draining -> frozen -> retired, and from each straight to retired.
enum class OwnerState : std::uint8_t { acquiring, active, draining, frozen, retired };
std::string_view name(OwnerState state);

enum class RetiredReason : std::uint8_t { revoked, lost, fatal, shutdown, superseded };
std::string_view name(RetiredReason reason);

/// Where the start offset came from.
enum class StartSource : std::uint8_t { committed, store, reset_policy, log_start };
std::string_view name(StartSource source);

/// Per partition and attempt (C2). Unresolved is neither success nor failure.
enum class CommitOutcome : std::uint8_t { accepted, rejected, unresolved };
std::string_view name(CommitOutcome outcome);

namespace detail {
class OwnerCell;
}

class Owner {
 public:
  explicit Owner(std::shared_ptr<const detail::OwnerCell> cell) : cell_(std::move(cell)) {}

  // Fixed at the grant (O2).
  [[nodiscard]] const std::string& group() const;
  [[nodiscard]] const std::string& member_id() const;
  [[nodiscard]] const std::string& instance_id() const;  ///< empty = dynamic member
  [[nodiscard]] const std::string& topic() const;
  [[nodiscard]] const Uuid& topic_id() const;
  [[nodiscard]] const std::string& cluster() const;
  [[nodiscard]] const std::string& scope() const;
  [[nodiscard]] std::int32_t partition() const;
  [[nodiscard]] Epoch epoch() const;  ///< as read at the grant; a diagnostic (T5)
  [[nodiscard]] GrantId grant_id() const;
  [[nodiscard]] Protocol protocol() const;
  [[nodiscard]] Offset start_offset() const;
  [[nodiscard]] StartSource start_source() const;
  [[nodiscard]] std::optional<Fence> fence() const;  ///< empty without a store

  // Alive.
  [[nodiscard]] OwnerState state() const;
  /// Fires at half the drain budget, at once when the assignment is lost (R1).
  [[nodiscard]] std::stop_token stop_token() const;
  [[nodiscard]] std::optional<Deadline> drain_deadline() const;  ///< from the revocation on
  [[nodiscard]] Offset frontier() const;
  [[nodiscard]] std::uint64_t completed_above() const;
  [[nodiscard]] std::uint64_t window_records() const;
  [[nodiscard]] std::uint64_t window_bytes() const;
  [[nodiscard]] std::optional<Offset> committed() const;  ///< last accepted by this owner (F4)
  [[nodiscard]] std::optional<CommitOutcome> last_commit() const;
  [[nodiscard]] std::optional<RetiredReason> retired_reason() const;

  friend bool operator==(const Owner& a, const Owner& b) { return a.cell_ == b.cell_; }

 private:
  std::shared_ptr<const detail::OwnerCell> cell_;
};

}  // namespace tenure
