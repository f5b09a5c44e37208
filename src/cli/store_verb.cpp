#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "app/app_run.hpp"
#include "app/config.hpp"
#include "app/wiring.hpp"
#include "cli/verbs.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::cli {
namespace {

using app::ExitCode;

struct Store {
  ExitCode code = ExitCode::ok;
  std::optional<sqlite::Options> options;
};

/// The store that a whole and valid configuration names.
Store store_of(const app::Parsed& line) {
  app::ConfigSources sources = app::sources_of(line);
  sources.handlers = app::HandlerRule::at_most_one;
  const app::LoadedConfig loaded = load_config(sources);
  app::print_faults(loaded.faults, false);
  if (!loaded.config) return {ExitCode::config_invalid, {}};
  const auto* sqlite = std::get_if<app::Config::Sqlite>(&loaded.config->store);
  if (sqlite == nullptr) {
    say("tenure: the configuration names no store that keeps anything; add "
        "`store: {sqlite: {path: ..}}`");
    return {ExitCode::config_invalid, {}};
  }
  return {ExitCode::ok, app::sqlite_options(*loaded.config, *sqlite)};
}

ExitCode failed(const Error& error) {
  say(fmt::format("tenure: {}{}", error.message, error.hint.empty() ? "" : "; " + error.hint));
  return error.code == Code::unavailable ? ExitCode::unreachable : ExitCode::failed;
}

std::string plan_text(const sqlite::Options& options) {
  return fmt::format("-- {}\n-- run once by `tenure store init --execute`\n{}\n"
                     "-- run by members\n{}\n",
                     options.path, sqlite::ddl(), sqlite::statements());
}

nlohmann::json domain_json(const sqlite::DomainStatus& domain) {
  nlohmann::json out = {{"scope", domain.domain.scope},
                        {"cluster", domain.domain.cluster},
                        {"topic_id", domain.domain.topic_id.text()},
                        {"partition", domain.domain.partition.value()},
                        {"lanes", domain.rule.lanes},
                        {"order", name(domain.rule.order)},
                        {"next", domain.next.value()},
                        {"token", nullptr},
                        {"owner", nullptr},
                        {"minimum", nullptr},
                        {"maximum", nullptr},
                        {"note", domain.note}};
  if (domain.token.value() > 0) {
    out["token"] = domain.token.value();
    out["owner"] = domain.owner;
  }
  if (domain.minimum) out["minimum"] = domain.minimum->value();
  if (domain.maximum) out["maximum"] = domain.maximum->value();
  return out;
}

std::string offset_text(const std::optional<Offset>& offset) {
  return offset ? std::to_string(offset->value()) : "-";
}

}  // namespace

ExitCode store_plan_verb(const app::Parsed& line) {
  const Store store = store_of(line);
  if (!store.options) return store.code;
  if (json_wanted(line)) {
    const nlohmann::json out = {{"path", store.options->path},
                                {"ddl", sqlite::ddl()},
                                {"statements", sqlite::statements()}};
    print(out.dump() + "\n");
  } else {
    print(plan_text(*store.options));
  }
  return ExitCode::ok;
}

ExitCode store_init_verb(const app::Parsed& line) {
  Store store = store_of(line);
  if (!store.options) return store.code;
  if (!line.on("--execute")) {
    print(fmt::format("-- plan; nothing was changed; --execute runs it on {}\n{}",
                      store.options->path, sqlite::ddl()));
    return ExitCode::ok;
  }
  store.options->create = true;
  if (auto made = sqlite::init(*store.options); !made) return failed(made.error());
  say(fmt::format("tenure: {} has Tenure's tables, version {}", store.options->path,
                  sqlite::schema_version));
  return ExitCode::ok;
}

ExitCode store_status_verb(const app::Parsed& line) {
  const Store store = store_of(line);
  if (!store.options) return store.code;
  const Result<sqlite::Status> status = sqlite::status(*store.options);
  if (!status) return failed(status.error());
  if (json_wanted(line)) {
    for (const sqlite::DomainStatus& domain : status->domains) {
      print(domain_json(domain).dump() + "\n");
    }
    return ExitCode::ok;
  }
  say(fmt::format("{}: tables version {}, SQLite {}", store.options->path, status->schema,
                  status->library));
  print(fmt::format("{:<16} {:<36} {:>4} {:>5} {:>6} {:>12} {:>12}\n", "SCOPE", "TOPIC ID", "PART",
                    "LANES", "TOKEN", "FROM", "TO"));
  for (const sqlite::DomainStatus& domain : status->domains) {
    print(fmt::format("{:<16} {:<36} {:>4} {:>5} {:>6} {:>12} {:>12}\n", domain.domain.scope,
                      domain.domain.topic_id.text(), domain.domain.partition.value(),
                      domain.rule.lanes, domain.token.value(), offset_text(domain.minimum),
                      offset_text(domain.maximum)));
  }
  return ExitCode::ok;
}

}  // namespace tenure::cli
