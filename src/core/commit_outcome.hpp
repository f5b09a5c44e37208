// What an answer to a commit means, from the per-partition error alone (C2, C7).
#pragma once

#include <cstdint>

#include "tenure/owner.hpp"
#include "tenure/source_types.hpp"

namespace tenure::core {

/// The table at the end of research/bugs.md, as data.
struct CommitVerdict {
  CommitOutcome outcome = CommitOutcome::unresolved;
  enum class Then : std::uint8_t {
    nothing,
    again,             ///< commit the same or a higher value while still owner (C3)
    without_metadata,  ///< commit again at once, plain (C7)
    lost,              ///< the group does not know us any more (R6)
    lost_if_no_epoch,  ///< lost when the epoch is negative now; else a rebalance is running
    read_topic,        ///< the topic may be gone or another one (F8); commit again
    fenced,            ///< another process has our static name: exit 76 (R11)
  } then = Then::nothing;
};

CommitVerdict classify(BrokerError error);

}  // namespace tenure::core
