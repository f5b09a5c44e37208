// Reduces the client's error codes to what the engine decides on.
#pragma once

#include <librdkafka/rdkafka.h>

#include "tenure/source_types.hpp"

namespace tenure::kafka {

/// Total: an unknown code is `other`. Source: librdkafka 2.15.1 and research/bugs.md, last table.
BrokerError broker_error(rd_kafka_resp_err_t code);

}  // namespace tenure::kafka
