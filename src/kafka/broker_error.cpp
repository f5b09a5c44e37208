#include "kafka/broker_error.hpp"

namespace tenure::kafka {

BrokerError broker_error(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return BrokerError::none;
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID: return BrokerError::unknown_member_id;
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION: return BrokerError::illegal_generation;
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS: return BrokerError::rebalance_in_progress;
    case RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH: return BrokerError::stale_member_epoch;
    case RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH: return BrokerError::fenced_member_epoch;
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return BrokerError::fenced_instance_id;
    case RD_KAFKA_RESP_ERR_UNRELEASED_INSTANCE_ID: return BrokerError::unreleased_instance_id;
    case RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND: return BrokerError::group_id_not_found;
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR__WAIT_COORD: return BrokerError::not_coordinator;
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS: return BrokerError::coordinator_loading;
    case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE: return BrokerError::metadata_too_large;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return BrokerError::unknown_topic_or_partition;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED: return BrokerError::not_authorized;
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT: return BrokerError::timed_out;
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION: return BrokerError::transport;
    case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
    case RD_KAFKA_RESP_ERR__STATE: return BrokerError::assignment_lost;
    case RD_KAFKA_RESP_ERR__NO_OFFSET: return BrokerError::no_offset;
    case RD_KAFKA_RESP_ERR__DESTROY:
    case RD_KAFKA_RESP_ERR__FATAL: return BrokerError::closing;
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    // With auto.offset.reset=error every lost position comes as this, truncation included.
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: return BrokerError::offset_out_of_range;
    case RD_KAFKA_RESP_ERR__LOG_TRUNCATION: return BrokerError::log_truncated;
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
    case RD_KAFKA_RESP_ERR__UNDERFLOW:
    case RD_KAFKA_RESP_ERR_INVALID_MSG: return BrokerError::bad_record;
    default: return BrokerError::other;
  }
}

}  // namespace tenure::kafka
