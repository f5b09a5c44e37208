// What an Owner handle reads: the facts of one grant and, as atomics, what changes.
//
// Role: the window through which handlers, adapters and operators see a PartitionOwner of the
//   engine, and the two switches they act by: the stop token and the dispatch gate.
// Owns: the facts; the stop source.
// Threads: the loop thread writes (publish, close_dispatch); anyone reads. Every value is an
//   atomic of its own, so a reader may see one before the other (owner.hpp says so); stores are
//   release and loads acquire only so that a reader of `retired` also sees why.
// Lifecycle: made when the owner becomes active; lives as long as any handle to it.
// Promises: `retired` never turns back (O3); a closed gate never opens (R1).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/engine.hpp"
#include "tenure/ids.hpp"
#include "tenure/owner.hpp"
#include "tenure/record.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure::detail {

class OwnerCell {
 public:
  /// O2; nothing here changes.
  struct Facts {
    OwnerRef owner;
    RecordOrigin origin;  ///< topic, partition, group, scope, cluster
    Member member;
    Protocol protocol = Protocol::cooperative;
    Offset start_offset;
    StartSource start_source = StartSource::committed;
    std::optional<Fence> fence;
  };

  explicit OwnerCell(Facts facts) : facts_(std::move(facts)) {
    frontier_.store(facts_.start_offset.value(), std::memory_order_relaxed);
  }
  OwnerCell(const OwnerCell&) = delete;
  OwnerCell& operator=(const OwnerCell&) = delete;

  [[nodiscard]] const Facts& facts() const { return facts_; }
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }
  /// Runs the callbacks that users registered: never on the loop thread.
  void fire_stop() { stop_.request_stop(); }

  void publish(const core::OwnerSnapshot& shown) {
    frontier_.store(shown.frontier.value(), std::memory_order_relaxed);
    above_.store(shown.completed_above, std::memory_order_relaxed);
    records_.store(shown.window_records, std::memory_order_relaxed);
    bytes_.store(shown.window_bytes, std::memory_order_relaxed);
    if (shown.committed) committed_.store(shown.committed->value(), std::memory_order_relaxed);
    if (shown.last_commit) {
      last_commit_.store(static_cast<std::int32_t>(*shown.last_commit), std::memory_order_relaxed);
    }
    if (shown.drain_deadline) {
      deadline_.store(shown.drain_deadline->time_since_epoch().count(), std::memory_order_relaxed);
    }
    if (shown.retired_reason) {
      reason_.store(static_cast<std::int32_t>(*shown.retired_reason), std::memory_order_relaxed);
    }
    // Pairs with the acquire in state().
    state_.store(shown.state, std::memory_order_release);
  }

  void close_dispatch() { dispatch_.store(false, std::memory_order_relaxed); }
  /// Asked by workers between two records (R1). A value a moment old is fine: the record that
  /// slips through counts as started.
  [[nodiscard]] bool dispatch_open() const { return dispatch_.load(std::memory_order_relaxed); }

  [[nodiscard]] OwnerState state() const { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] Offset frontier() const {
    return Offset(frontier_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] std::uint64_t above() const { return above_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::optional<Offset> committed() const {
    const std::int64_t value = committed_.load(std::memory_order_relaxed);
    if (value < 0) return {};
    return Offset(value);
  }
  [[nodiscard]] std::optional<CommitOutcome> last_commit() const {
    const std::int32_t value = last_commit_.load(std::memory_order_relaxed);
    if (value < 0) return {};
    return static_cast<CommitOutcome>(value);
  }
  [[nodiscard]] std::optional<Deadline> drain_deadline() const {
    const Duration::rep value = deadline_.load(std::memory_order_relaxed);
    if (value < 0) return {};
    return Deadline(Duration(value));
  }
  [[nodiscard]] std::optional<RetiredReason> retired_reason() const {
    if (state() != OwnerState::retired) return {};
    const std::int32_t value = reason_.load(std::memory_order_relaxed);
    if (value < 0) return {};
    return static_cast<RetiredReason>(value);
  }

 private:
  // Negative = absent (F4: absent is never shown as a number).
  const Facts facts_;
  std::stop_source stop_;
  std::atomic<bool> dispatch_{true};
  std::atomic<OwnerState> state_{OwnerState::active};
  std::atomic<std::int64_t> frontier_{0};
  std::atomic<std::uint64_t> above_{0}, records_{0}, bytes_{0};
  std::atomic<std::int64_t> committed_{-1};
  std::atomic<std::int32_t> last_commit_{-1};
  std::atomic<std::int32_t> reason_{-1};
  std::atomic<Duration::rep> deadline_{-1};
};

}  // namespace tenure::detail
