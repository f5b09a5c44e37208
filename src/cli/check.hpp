// What `check` finds: each finding is about one thing that was looked at.
//
// Role: judges a configuration against what there is: client, brokers, topics, store, budgets.
// Pure but for what it asks: read-only, blocking. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/app_broker.hpp"
#include "app/config.hpp"
#include "app/exit_code.hpp"
#include "tenure/result.hpp"

namespace tenure::cli {

enum class Health : std::uint8_t { ok, warn, fail, unreachable };
std::string_view name(Health health);

struct Finding {
  std::string id;  ///< stable: "topic.orders", "store.tables"
  Health health = Health::ok;
  std::string expected;
  std::string observed;
  std::string evidence;     ///< how it was looked at
  std::string consequence;  ///< of what was observed, when it is not what was expected
  std::string fix;
};

std::vector<Finding> check_client(const app::Config& config);
/// `facts`: what ask_brokers() answered.
std::vector<Finding> check_brokers(const app::Config& config,
                                   const Result<app::BrokerFacts>& facts);
std::vector<Finding> check_store(const app::Config& config);
std::vector<Finding> check_budgets(const app::Config& config);

/// 0, 1 = something is wrong, 69 = broker or store cannot be reached.
app::ExitCode exit_code_of(const std::vector<Finding>& findings);

}  // namespace tenure::cli
