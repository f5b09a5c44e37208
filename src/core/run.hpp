// What travels between the engine and whoever runs handlers: a run of records of one owner and,
// where there are lanes, of one lane.
//
// Owns: nothing but its own vectors; messages belong to the window until it settles the run.
// Threads: lent by the engine (loop thread) to one executor at a time; given back whole.
// Lifecycle: pooled by the engine; reused without allocation once its vectors have grown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

/// Place of a record in the order of delivery to one owner; dense from 0.
using Ordinal = std::uint64_t;

/// What became of one record of a run.
enum class RecordResult : std::uint8_t {
  unstarted,   ///< the handler was never called for it, or all of it was rolled back uncounted
  done,        ///< terminal
  replayed,    ///< terminal: the store had it already (E1, E3)
  retry,       ///< attempt + 1
  reject,
  park,
  stop,
  again,       ///< not an attempt: contention, store or handler down; `Run::again` says which
};

/// Why a record is to be tried again without counting an attempt.
enum class AgainCause : std::uint8_t { contention, store_down, handler_down };

struct RunRecord {
  MessageHandle message = nullptr;
  Offset offset;
  Ordinal ordinal = 0;
  std::uint32_t bytes = 0;
  LeaderEpoch leader_epoch = no_leader_epoch;
  std::uint16_t attempt = 1;  ///< 1 = first
  RecordResult result = RecordResult::unstarted;
};

/// Detail of a record that did not end `done`. Rare, so apart from RunRecord.
struct RunFailure {
  std::uint32_t index = 0;  ///< into Run::records
  std::string reason;
  std::string failure_class;
  std::optional<Duration> after;
};

struct Run {
  OwnerRef owner;
  std::uint16_t lane = 0;
  std::uint32_t key_slot = 0;  ///< private to the window: its queue for this run
  /// Kind transaction: the lane's stored progress as the engine knows it; the first unit of the
  /// run compares with it, later ones with what the previous one stored.
  Offset lane_from;
  std::optional<Fence> fence;  ///< of the owner, when it has one
  std::vector<RunRecord> records;  ///< offsets ascending; never empty when dispatched

  // Filled by the executor.
  std::vector<RunFailure> failures;
  AgainCause again = AgainCause::contention;
  /// none, or what ended the run's store transaction: superseded (F6), moved, in_doubt (E3),
  /// retired, unavailable, contention.
  StoreError store_error = StoreError::none;
  std::string store_message;
  std::optional<Offset> lane_reached;  ///< stored progress after the run's last committed unit
  Duration took{};                     ///< handler time of the whole run
};

}  // namespace tenure::core
