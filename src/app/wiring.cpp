#include "app/wiring.hpp"

#include <cstdint>
#include <utility>

#include "tenure/kafka/source.hpp"
#include "tenure/memory/store.hpp"

namespace tenure::app {
namespace {

Reset reset_of(OffsetReset reset) {
  switch (reset) {
    case OffsetReset::earliest: return Reset::earliest;
    case OffsetReset::latest: return Reset::latest;
    case OffsetReset::error: return Reset::error;
  }
  return Reset::earliest;
}

/// Collects the settings that differ from the defaults.
class Differences {
 public:
  void number(std::string key, std::uint64_t value, std::uint64_t fallback, std::string name) {
    if (value != fallback) add(std::move(key), std::to_string(value), std::move(name));
  }
  void time(std::string key, std::chrono::milliseconds value, std::chrono::milliseconds fallback,
            std::string name) {
    if (value != fallback) add(std::move(key), std::to_string(value.count()), std::move(name));
  }
  void word(std::string key, std::string_view value, std::string_view fallback, std::string name) {
    if (value != fallback) add(std::move(key), std::string(value), std::move(name));
  }
  void add(std::string key, std::string value, std::string name) {
    given.push_back({std::move(key), {std::move(value)}, std::move(name)});
  }

  std::vector<Given> given;
};

}  // namespace

Options runtime_options(const Config& config) {
  Options options;
  options.group = config.kafka.group_id;
  options.kafka = config.kafka.properties;
  options.reset = reset_of(config.kafka.auto_offset_reset);
  options.order = config.order;
  if (config.lanes) options.lanes = static_cast<std::uint16_t>(*config.lanes);
  options.concurrency = config.concurrency;
  options.window = {config.window.records, config.window.bytes, config.window.records_total,
                    config.window.bytes_total};
  options.retry.attempts = static_cast<std::uint16_t>(config.retry.attempts);
  options.retry.backoff_min = config.retry.backoff_min;
  options.retry.backoff_max = config.retry.backoff_max;
  options.retry.jitter = config.retry.jitter;
  options.retry.waiting_max = config.retry.waiting_max;
  options.retry.exhausted = config.retry.exhausted;
  options.effect.kind = config.effect.kind == EffectKind::transaction ? Effect::transaction
                                                                      : Effect::idempotent;
  options.effect.scope = config.effect.scope;
  options.batch = {config.batch.records, config.batch.wait};
  options.commit = {config.commit.interval, config.commit.metadata_bytes,
                    config.commit.start_position};
  options.drain = {config.drain.budget, config.drain.commit, config.drain.margin};
  options.shutdown = {config.shutdown.budget, config.shutdown.close};
  return options;
}

std::vector<Given> given_by(const Builder& builder) {
  const Options& is = builder.options();
  const Options fallback;
  Differences differ;
  if (!is.group.empty()) differ.add("kafka.group.id", is.group, "Builder::group");
  for (const auto& [property, value] : is.kafka) {
    differ.add("kafka." + property, value, "Builder::kafka");
  }
  const std::vector<std::string> topics = builder.topics();
  if (!topics.empty()) differ.given.push_back({"topics", topics, "Builder::on"});
  differ.word("kafka.auto.offset.reset", name(is.reset), name(fallback.reset), "Options::reset");
  differ.word("order", name(is.order), name(fallback.order), "Builder::order");
  if (is.lanes) differ.add("lanes", std::to_string(*is.lanes), "Builder::lanes");
  differ.number("concurrency", is.concurrency, fallback.concurrency, "Builder::concurrency");
  differ.number("window.records", is.window.records, fallback.window.records, "Builder::window");
  differ.number("window.bytes", is.window.bytes, fallback.window.bytes, "Builder::window");
  differ.number("window.records_total", is.window.records_total, fallback.window.records_total,
                "Builder::window");
  differ.number("window.bytes_total", is.window.bytes_total, fallback.window.bytes_total,
                "Builder::window");
  differ.number("retry.attempts", is.retry.attempts, fallback.retry.attempts, "Builder::retry");
  differ.time("retry.backoff_min_ms", is.retry.backoff_min, fallback.retry.backoff_min,
              "Builder::retry");
  differ.time("retry.backoff_max_ms", is.retry.backoff_max, fallback.retry.backoff_max,
              "Builder::retry");
  differ.word("retry.jitter", std::to_string(is.retry.jitter),
              std::to_string(fallback.retry.jitter), "Builder::retry");
  differ.number("retry.waiting_max", is.retry.waiting_max, fallback.retry.waiting_max,
                "Builder::retry");
  differ.word("retry.exhausted", name(is.retry.exhausted), name(fallback.retry.exhausted),
              "Builder::retry");
  if (is.effect.kind) {
    differ.add("effect.kind", std::string(name(*is.effect.kind)), "Builder::effect");
  }
  if (!is.effect.scope.empty()) differ.add("effect.scope", is.effect.scope, "Builder::scope");
  differ.number("batch.records", is.batch.records_max, fallback.batch.records_max,
                "Builder::batch");
  differ.time("batch.wait_ms", is.batch.wait_max, fallback.batch.wait_max, "Builder::batch");
  differ.time("commit.interval_ms", is.commit.interval, fallback.commit.interval,
              "Options::commit");
  differ.number("commit.metadata_bytes", is.commit.metadata_bytes, fallback.commit.metadata_bytes,
                "Options::commit");
  if (!is.commit.start_position) differ.add("commit.start_position", "false", "Options::commit");
  differ.time("drain.budget_ms", is.drain.budget, fallback.drain.budget, "Options::drain");
  differ.time("drain.commit_ms", is.drain.commit, fallback.drain.commit, "Options::drain");
  differ.time("drain.margin_ms", is.drain.margin, fallback.drain.margin, "Options::drain");
  differ.time("shutdown.budget_ms", is.shutdown.budget, fallback.shutdown.budget,
              "Options::shutdown");
  differ.time("shutdown.close_ms", is.shutdown.close, fallback.shutdown.close,
              "Options::shutdown");
  return std::move(differ.given);
}

sqlite::Options sqlite_options(const Config& config, const Config::Sqlite& sqlite) {
  sqlite::Options options;
  options.path = sqlite.path;
  options.synchronous = sqlite.synchronous == Config::Sqlite::Synchronous::full
                            ? sqlite::Synchronous::full
                            : sqlite::Synchronous::normal;
  options.create = config.store_create;
  return options;
}

Result<std::unique_ptr<EffectStore>> make_store(const Config& config) {
  if (const auto* sqlite = std::get_if<Config::Sqlite>(&config.store)) {
    return sqlite::make_store(sqlite_options(config, *sqlite));
  }
  if (std::holds_alternative<Config::Memory>(config.store)) {
    return std::unique_ptr<EffectStore>(
        std::make_unique<memory::Store>(std::make_shared<memory::Database>()));
  }
  return std::unique_ptr<EffectStore>();
}

Result<std::unique_ptr<Source>> make_source(const Options& options,
                                            const std::vector<std::string>& topics, bool store) {
  using Hash = kafka::SourceOptions::Hash;
  kafka::SourceOptions source;
  for (const auto& [property, value] : options.kafka) {
    source.properties.emplace_back(property, value);
  }
  source.topics = topics;
  switch (options.order) {
    case Order::key: source.hash = Hash::key; break;
    case Order::partition: source.hash = Hash::none; break;
    case Order::none: source.hash = store ? Hash::offset : Hash::none; break;
  }
  return kafka::make_source(std::move(source));
}

ExitCode exit_code_of(StopReport::Reason reason) {
  switch (reason) {
    case StopReport::Reason::drained: return ExitCode::ok;
    case StopReport::Reason::outcome_stop: return ExitCode::stopped;
    case StopReport::Reason::cut_short: return ExitCode::drain_cut_short;
    case StopReport::Reason::fenced: return ExitCode::fenced;
    case StopReport::Reason::fatal: return ExitCode::internal;
    case StopReport::Reason::config: return ExitCode::config_invalid;
  }
  return ExitCode::internal;
}

}  // namespace tenure::app
