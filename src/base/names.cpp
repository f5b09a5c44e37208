// Words for the values of the public enumerations, as they stand in logs, histories and labels.
#include "tenure/completion.hpp"
#include "tenure/event.hpp"
#include "tenure/ids.hpp"
#include "tenure/outcome.hpp"
#include "tenure/owner.hpp"
#include "tenure/source_types.hpp"
#include "tenure/store_types.hpp"

namespace tenure {

std::string_view name(Protocol protocol) {
  switch (protocol) {
    case Protocol::eager:
      return "eager";
    case Protocol::cooperative:
      return "cooperative";
    case Protocol::consumer:
      return "consumer";
  }
  return "unknown";
}

std::string_view name(Order order) {
  switch (order) {
    case Order::none:
      return "none";
    case Order::key:
      return "key";
    case Order::partition:
      return "partition";
  }
  return "unknown";
}

std::string_view name(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::done:
      return "done";
    case OutcomeKind::retry:
      return "retry";
    case OutcomeKind::reject:
      return "reject";
    case OutcomeKind::park:
      return "park";
    case OutcomeKind::stop:
      return "stop";
  }
  return "unknown";
}

std::string_view name(OwnerState state) {
  switch (state) {
    case OwnerState::acquiring:
      return "acquiring";
    case OwnerState::active:
      return "active";
    case OwnerState::draining:
      return "draining";
    case OwnerState::frozen:
      return "frozen";
    case OwnerState::retired:
      return "retired";
  }
  return "unknown";
}

std::string_view name(RetiredReason reason) {
  switch (reason) {
    case RetiredReason::revoked:
      return "revoked";
    case RetiredReason::lost:
      return "lost";
    case RetiredReason::fatal:
      return "fatal";
    case RetiredReason::shutdown:
      return "shutdown";
    case RetiredReason::superseded:
      return "superseded";
  }
  return "unknown";
}

std::string_view name(StartSource source) {
  switch (source) {
    case StartSource::committed:
      return "committed";
    case StartSource::store:
      return "store";
    case StartSource::reset_policy:
      return "reset_policy";
    case StartSource::log_start:
      return "log_start";
  }
  return "unknown";
}

std::string_view name(CommitOutcome outcome) {
  switch (outcome) {
    case CommitOutcome::accepted:
      return "accepted";
    case CommitOutcome::rejected:
      return "rejected";
    case CommitOutcome::unresolved:
      return "unresolved";
  }
  return "unknown";
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::accepted:
      return "accepted";
    case Verdict::late:
      return "late";
  }
  return "unknown";
}

std::string_view name(Level level) {
  switch (level) {
    case Level::error:
      return "error";
    case Level::warn:
      return "warn";
    case Level::info:
      return "info";
    case Level::debug:
      return "debug";
  }
  return "unknown";
}

std::string_view name(BrokerError error) {
  switch (error) {
    case BrokerError::none:
      return "none";
    case BrokerError::unknown_member_id:
      return "unknown_member_id";
    case BrokerError::illegal_generation:
      return "illegal_generation";
    case BrokerError::rebalance_in_progress:
      return "rebalance_in_progress";
    case BrokerError::stale_member_epoch:
      return "stale_member_epoch";
    case BrokerError::fenced_member_epoch:
      return "fenced_member_epoch";
    case BrokerError::fenced_instance_id:
      return "fenced_instance_id";
    case BrokerError::unreleased_instance_id:
      return "unreleased_instance_id";
    case BrokerError::group_id_not_found:
      return "group_id_not_found";
    case BrokerError::not_coordinator:
      return "not_coordinator";
    case BrokerError::coordinator_loading:
      return "coordinator_loading";
    case BrokerError::metadata_too_large:
      return "metadata_too_large";
    case BrokerError::unknown_topic_or_partition:
      return "unknown_topic_or_partition";
    case BrokerError::not_authorized:
      return "not_authorized";
    case BrokerError::timed_out:
      return "timed_out";
    case BrokerError::transport:
      return "transport";
    case BrokerError::assignment_lost:
      return "assignment_lost";
    case BrokerError::no_offset:
      return "no_offset";
    case BrokerError::closing:
      return "closing";
    case BrokerError::kept_back:
      return "kept_back";
    case BrokerError::not_sent:
      return "not_sent";
    case BrokerError::offset_out_of_range:
      return "offset_out_of_range";
    case BrokerError::log_truncated:
      return "log_truncated";
    case BrokerError::bad_record:
      return "bad_record";
    case BrokerError::other:
      return "other";
  }
  return "unknown";
}

std::string_view name(StoreError error) {
  switch (error) {
    case StoreError::none:
      return "none";
    case StoreError::contention:
      return "contention";
    case StoreError::unavailable:
      return "unavailable";
    case StoreError::schema:
      return "schema";
    case StoreError::rule:
      return "rule";
    case StoreError::superseded:
      return "superseded";
    case StoreError::moved:
      return "moved";
    case StoreError::in_doubt:
      return "in_doubt";
    case StoreError::retired:
      return "retired";
  }
  return "unknown";
}

std::string Uuid::text() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

}  // namespace tenure
