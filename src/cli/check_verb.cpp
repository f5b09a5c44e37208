#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/app_broker.hpp"
#include "app/app_run.hpp"
#include "app/config.hpp"
#include "cli/check.hpp"
#include "cli/verbs.hpp"

namespace tenure::cli {
namespace {

using app::ExitCode;

constexpr std::chrono::milliseconds broker_limit{5'000};

nlohmann::json json_of(const Finding& finding) {
  return {{"id", finding.id},
          {"status", name(finding.health)},
          {"expected", finding.expected},
          {"observed", finding.observed},
          {"evidence", finding.evidence},
          {"consequence", finding.consequence},
          {"fix", finding.fix}};
}

std::string text_of(const Finding& finding, bool wide) {
  std::string out =
      fmt::format("{:<12} {:<20} {}\n", name(finding.health), finding.id, finding.observed);
  if (finding.health == Health::ok && !wide) return out;
  for (const auto& [head, text] : {std::pair<const char*, const std::string&>{
                                       "expected", finding.expected},
                                   {"observed", finding.observed},
                                   {"evidence", finding.evidence},
                                   {"consequence", finding.consequence},
                                   {"fix", finding.fix}}) {
    if (!text.empty()) out += fmt::format("             {:<12} {}\n", head, text);
  }
  return out;
}

std::vector<Finding> config_findings(const app::LoadedConfig& loaded, const std::string& file) {
  std::vector<Finding> findings;
  for (const app::Fault& fault : loaded.faults) {
    Finding finding;
    finding.id = "config." + (fault.key.empty() ? "file" : fault.key);
    finding.health =
        fault.severity == app::Fault::Severity::error ? Health::fail : Health::warn;
    finding.expected = "a configuration without faults";
    finding.observed = to_string(fault);
    finding.evidence = file;
    finding.consequence = loaded.config ? "the member runs otherwise than it may seem"
                                        : "a member does not start (exit 78)";
    finding.fix = "as the text says";
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    Finding finding;
    finding.id = "config";
    finding.expected = "a configuration without faults";
    finding.observed = "valid";
    finding.evidence = file;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

ExitCode check_verb(const app::Parsed& line) {
  app::ConfigSources sources = app::sources_of(line);
  sources.handlers = app::HandlerRule::at_most_one;
  const app::LoadedConfig loaded = load_config(sources);
  std::vector<Finding> all;
  const auto show = [&](std::vector<Finding> findings) {
    for (Finding& finding : findings) {
      print(json_wanted(line) ? json_of(finding).dump(-1, ' ', false,
                                                      nlohmann::json::error_handler_t::replace) +
                                    "\n"
                              : text_of(finding, line.value("--output") == "wide"));
      all.push_back(std::move(finding));
    }
  };
  show(config_findings(loaded, sources.file.value_or("flags and environment")));
  if (!loaded.config) return ExitCode::config_invalid;
  const app::Config& config = *loaded.config;
  show(check_client(config));
  show(check_budgets(config));
  show(check_store(config));
  show(check_brokers(config, app::ask_brokers(config.kafka.properties, true, broker_limit)));
  return exit_code_of(all);
}

}  // namespace tenure::cli
