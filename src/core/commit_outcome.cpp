#include "core/commit_outcome.hpp"

namespace tenure::core {

CommitVerdict classify(BrokerError error) {
  using Then = CommitVerdict::Then;
  switch (error) {
    case BrokerError::none:
      return {CommitOutcome::accepted, Then::nothing};
    case BrokerError::unknown_member_id:
    case BrokerError::fenced_member_epoch:
    case BrokerError::assignment_lost:
      return {CommitOutcome::rejected, Then::lost};
    case BrokerError::fenced_instance_id:
      return {CommitOutcome::rejected, Then::fenced};
    case BrokerError::illegal_generation:
      return {CommitOutcome::rejected, Then::lost_if_no_epoch};
    case BrokerError::rebalance_in_progress:
    case BrokerError::stale_member_epoch:
    case BrokerError::coordinator_loading:
    case BrokerError::not_authorized:
    case BrokerError::kept_back:
    case BrokerError::no_offset:
    case BrokerError::group_id_not_found:
      return {CommitOutcome::rejected, Then::again};
    case BrokerError::unknown_topic_or_partition:
      return {CommitOutcome::rejected, Then::read_topic};
    case BrokerError::metadata_too_large:
      return {CommitOutcome::rejected, Then::without_metadata};
    // Retries inside the client are invisible: an earlier send may have been applied.
    case BrokerError::not_coordinator:
    case BrokerError::timed_out:
    case BrokerError::transport:
    case BrokerError::closing:
    case BrokerError::not_sent:
    case BrokerError::other:
    // Never answers to a commit; unknown is the safe reading.
    case BrokerError::unreleased_instance_id:
    case BrokerError::offset_out_of_range:
    case BrokerError::log_truncated:
    case BrokerError::bad_record:
      return {CommitOutcome::unresolved, Then::again};
  }
  return {CommitOutcome::unresolved, Then::again};
}

}  // namespace tenure::core
