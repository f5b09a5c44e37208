// Everything the engine can be told. Values; spans and pointers end with the step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "core/run.hpp"
#include "tenure/ids.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"
#include "tenure/time.hpp"

namespace tenure::core {

/// The source was opened; the times of the membership.
struct TimesKnown {
  Duration session{};
  Duration heartbeat{};
  Duration poll_limit{};
  Duration socket_timeout{};
};

/// Records of one owner, offsets ascending. The engine takes over the messages.
struct RecordsDelivered {
  OwnerRef owner;
  std::span<const Delivered> records;
};

/// A dispatched run comes back, run or not. The engine takes the run back.
struct RunReturned {
  Run* run = nullptr;
};

/// Answer to Command ReadMember.
struct MemberRead {
  Member member;
};

/// The client could not be created.
struct OpenFailed {
  std::string message;
  bool retriable = true;
};

/// SIGTERM, stop(), a handler's `stop`: drain all and leave (R10).
struct StopRequested {
  enum class Cause : std::uint8_t { asked, outcome_stop, until_end } cause = Cause::asked;
  Duration budget{};
};

/// A second signal: no more waiting for anything.
struct AbandonRequested {};

/// Nothing but the passing of time.
struct Tick {};

using Input =
    std::variant<Tick, TimesKnown, Rebalance, RecordsDelivered, Reached, RecordError, RunReturned,
                 CommitAnswer, CommittedRead, TopicsRead, LogEndsRead, ClientError, Closed,
                 MemberRead, OpenFailed, Reserved, Activated, IdleAdvanced, LookedUp,
                 StopRequested, AbandonRequested>;

}  // namespace tenure::core
