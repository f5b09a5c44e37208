// Asks a cluster, from outside of the group, whether it is there and what it holds.
//
// A client of its own for each call, which joins nothing and changes nothing. Blocking; any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "tenure/result.hpp"

namespace tenure::app {

struct BrokerFacts {
  std::string cluster;  ///< id; empty when the broker does not say
  std::size_t brokers = 0;
  std::map<std::string, std::int32_t, std::less<>> topics;  ///< name -> partitions
  std::map<std::string, std::string, std::less<>> broken;   ///< name -> why it has no facts
};

/// Tries for at most `limit`. `with_topics`: read the names of all topics too. Errors:
/// unavailable (nobody answered; the message says what the client met), refused (credentials),
/// invalid (the client refuses a property). `cancelled` ends the wait early.
Result<BrokerFacts> ask_brokers(const std::map<std::string, std::string>& properties,
                                bool with_topics, std::chrono::milliseconds limit,
                                const std::function<bool()>& cancelled = {});

}  // namespace tenure::app
