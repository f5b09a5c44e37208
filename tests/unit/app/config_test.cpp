#include "app/config.hpp"

#include <sys/stat.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/config_json.hpp"
#include "config_fixture.hpp"

namespace tenure::app {
namespace {

using namespace std::chrono_literals;

// design/6-interface, section 3, without the keys of later versions, with one handler, its kind
// and one store.
constexpr std::string_view section_3 = R"yaml(version: 1  # req
kafka:  # client properties verbatim, tried on the linked client; our own defaults:
  bootstrap.servers: "b1:9093"  # req
  group.id: billing  # req
  partition.assignment.strategy: cooperative-sticky  # not sent with group.protocol: consumer
  auto.offset.reset: earliest
  fetch.wait.max.ms: 100
  fetch.queue.backoff.ms: 10  # 7-benchmarks, trap 1
  queued.min.messages: 20000
  heartbeat.interval.ms: 1000  # trap 3; not sent with group.protocol: consumer
topics: [orders]  # req: names or ^regex
order: key  # key partition none
lanes: auto
concurrency: 64  # 1..65536 handlers at once in the process
window: { records: 1024, bytes: 16777216, records_total: 65536, bytes_total: 268435456 }
handler:  # exactly one; none in C++ programs
  sql: { statements: ["insert into t values (:json(/id)!, :value)"], text: true, expect_rows: 0 }
retry: { attempts: 8, backoff_min_ms: 200, backoff_max_ms: 30000, jitter: 0.2, waiting_max: 10000,
  exhausted: reject }
effect:
  kind: transaction
  scope: billing  # = group.id; keep it when the group is renamed
  identity: offset
  identity_window_ms: 604800000
  on_conflict: reject
store:  # at most one: postgres sqlite memory
  sqlite: { path: ./tenure.db, synchronous: full }  # path req; full normal
  create: false  # true = `store init` at start
batch: { records: 100, wait_ms: 5 }
commit: { interval_ms: 1000, metadata_bytes: 3072, start_position: true }
drain: { budget_ms: 5000, commit_ms: 2000, margin_ms: 1000 }
shutdown: { budget_ms: 20000, close_ms: 3000 }
http: { listen: "", page: "", page_clients: 8, admin_token: "" }
metrics: { partitions: none, client: false }
log: { format: auto, level: info, keys: hash }
)yaml";
constexpr std::string_view section_3_exec = R"(
  exec: { command: [./charge.py], mode: alive, processes: 4, in_flight: 16, timeout_ms: 20000,
    start_ms: 10000,
    cancel_grace_ms: 2000, line_bytes: 8388608, on_error: retry })";

std::string replaced(std::string_view text, const std::string& from, const std::string& to) {
  std::string result(text);
  const std::size_t at = result.find(from);
  if (at == std::string::npos) throw std::logic_error("no such text: " + from);
  return result.replace(at, from.size(), to);
}

TEST_F(ConfigFile, Section3LoadsAndItsValuesAreTheDefaults) {
  const LoadedConfig written = load(section_3);
  ASSERT_TRUE(written.config) << joined(said(written));
  EXPECT_TRUE(written.faults.empty()) << joined(said(written));
  Lines lines = least_sql();
  lines["kafka.bootstrap.servers"] = "b1:9093";
  lines["handler.sql.statements"] = "[\"insert into t values (:json(/id)!, :value)\"]";
  lines["store.sqlite.path"] = "./tenure.db";
  const LoadedConfig defaults = load(lines);
  ASSERT_TRUE(defaults.config) << joined(said(defaults));
  EXPECT_EQ(restart_keys(*written.config, *defaults.config), Said());
  EXPECT_EQ(config_sha256(*written.config), config_sha256(*defaults.config));
  // Every key of this version is in section 3, but the client properties that checks read.
  for (const auto& [path, setting] : written.config->settings) {
    const bool ours = path != "kafka.max.poll.interval.ms" && path != "kafka.session.timeout.ms" &&
                      path != "kafka.group.protocol";
    EXPECT_EQ(setting.origin, ours ? Origin::file : Origin::fallback) << path;
  }
}

TEST_F(ConfigFile, Section3LoadsWithTheExecHandler) {
  std::string text(section_3);
  const std::size_t sql = text.find("\n  sql:");
  text.replace(sql, text.find("\nretry:") - sql, section_3_exec);
  text = replaced(text, "kind: transaction", "kind: idempotent");
  const LoadedConfig written = load(text);
  ASSERT_TRUE(written.config) << joined(said(written));
  const LoadedConfig defaults = load(with(
      least(), {{"kafka.bootstrap.servers", "b1:9093"}, {"store.sqlite.path", "./tenure.db"}}));
  ASSERT_TRUE(defaults.config) << joined(said(defaults));
  EXPECT_EQ(restart_keys(*written.config, *defaults.config), Said());
}

TEST_F(ConfigFile, EveryKeyReachesItsField) {
  const LoadedConfig loaded = load(R"(version: 1
kafka: { bootstrap.servers: "b1:1,b2:2", group.id: g,
  partition.assignment.strategy: "range,roundrobin",
  auto.offset.reset: latest, fetch.wait.max.ms: 101, fetch.queue.backoff.ms: 11,
  queued.min.messages: 20001,
  heartbeat.interval.ms: 1001, session.timeout.ms: 45001, max.poll.interval.ms: 300001,
  client.id: "me",
  group.instance.id: i-1 }
topics: [a, "^b.*"]
order: none
lanes: 3
concurrency: 65
window: { records: 1025, bytes: 16777217, records_total: 65537, bytes_total: 268435457 }
handler:
  exec: { command: [./x, -a, "b c"], mode: per_record, processes: 5, in_flight: 17,
    timeout_ms: 20001,
    start_ms: 10001, cancel_grace_ms: 2001, line_bytes: 8388609, on_error: park }
retry: { attempts: 9, backoff_min_ms: 201, backoff_max_ms: 30001, jitter: 0.25, waiting_max: 10001,
  exhausted: stop }
effect: { kind: idempotent, scope: s }
store: { sqlite: { path: p.db, synchronous: normal }, create: true }
batch: { records: 101, wait_ms: 6 }
commit: { interval_ms: 1001, metadata_bytes: 0, start_position: false }
drain: { budget_ms: 5001, commit_ms: 2001, margin_ms: 1002 }
shutdown: { budget_ms: 20001, close_ms: 3001 }
log: { format: json, level: debug, keys: none }
)");
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  const Config& c = *loaded.config;
  const std::map<std::string, std::string> properties = {
      {"bootstrap.servers", "b1:1,b2:2"},
      {"group.id", "g"},
      {"group.protocol", "classic"},
      {"partition.assignment.strategy", "range,roundrobin"},
      {"fetch.wait.max.ms", "101"},
      {"fetch.queue.backoff.ms", "11"},
      {"queued.min.messages", "20001"},
      {"heartbeat.interval.ms", "1001"},
      {"session.timeout.ms", "45001"},
      {"max.poll.interval.ms", "300001"},
      {"client.id", "me"},
      {"group.instance.id", "i-1"}};
  EXPECT_EQ(c.kafka.properties, properties);  // F7: auto.offset.reset is ours
  EXPECT_EQ(c.kafka.bootstrap_servers, "b1:1,b2:2");
  EXPECT_EQ(c.kafka.group_id, "g");
  EXPECT_EQ(c.kafka.group_protocol, GroupProtocol::classic);
  EXPECT_EQ(c.kafka.auto_offset_reset, OffsetReset::latest);
  EXPECT_EQ(c.kafka.max_poll_interval, 300001ms);
  EXPECT_EQ(c.kafka.session_timeout, 45001ms);
  EXPECT_EQ(c.kafka.heartbeat_interval, 1001ms);
  EXPECT_EQ(c.topics, (Said{"a", "^b.*"}));
  EXPECT_EQ(c.order, Order::none);
  EXPECT_EQ(c.lanes, 3U);
  EXPECT_EQ(c.lane_count(), 3U);
  EXPECT_EQ(c.concurrency, 65U);
  EXPECT_EQ(c.window.records, 1025U);
  EXPECT_EQ(c.window.bytes, 16777217U);
  EXPECT_EQ(c.window.records_total, 65537U);
  EXPECT_EQ(c.window.bytes_total, 268435457U);
  const auto& exec = std::get<Config::Exec>(c.handler);
  EXPECT_EQ(exec.command, (Said{"./x", "-a", "b c"}));
  EXPECT_EQ(exec.mode, Config::Exec::Mode::per_record);
  EXPECT_EQ(exec.processes, 5U);
  EXPECT_EQ(exec.in_flight, 17U);
  EXPECT_EQ(exec.timeout, 20001ms);
  EXPECT_EQ(exec.start, 10001ms);
  EXPECT_EQ(exec.cancel_grace, 2001ms);
  EXPECT_EQ(exec.line_bytes, 8388609U);
  EXPECT_EQ(exec.on_error, OutcomeKind::park);
  EXPECT_EQ(c.retry.attempts, 9U);
  EXPECT_EQ(c.retry.backoff_min, 201ms);
  EXPECT_EQ(c.retry.backoff_max, 30001ms);
  EXPECT_DOUBLE_EQ(c.retry.jitter, 0.25);
  EXPECT_EQ(c.retry.waiting_max, 10001U);
  EXPECT_EQ(c.retry.exhausted, OutcomeKind::stop);
  EXPECT_EQ(c.effect.kind, EffectKind::idempotent);
  EXPECT_EQ(c.effect.scope, "s");
  const auto& sqlite = std::get<Config::Sqlite>(c.store);
  EXPECT_EQ(sqlite.path, "p.db");
  EXPECT_EQ(sqlite.synchronous, Config::Sqlite::Synchronous::normal);
  EXPECT_TRUE(c.store_create);
  EXPECT_EQ(c.batch.records, 101U);
  EXPECT_EQ(c.batch.wait, 6ms);
  EXPECT_EQ(c.commit.interval, 1001ms);
  EXPECT_EQ(c.commit.metadata_bytes, 0U);
  EXPECT_FALSE(c.commit.start_position);
  EXPECT_EQ(c.drain.budget, 5001ms);
  EXPECT_EQ(c.drain.commit, 2001ms);
  EXPECT_EQ(c.drain.margin, 1002ms);
  EXPECT_EQ(c.shutdown.budget, 20001ms);
  EXPECT_EQ(c.shutdown.close, 3001ms);
  EXPECT_EQ(c.log.format, LogFormat::json);
  EXPECT_EQ(c.log.level, Level::debug);
  EXPECT_EQ(c.log.keys, LoggedKeys::none);

  const LoadedConfig sql = load(with(
      least_sql(), {{"handler.sql.text", "false"}, {"handler.sql.expect_rows", "2147483648"}}));
  ASSERT_TRUE(sql.config);
  const auto& handler = std::get<Config::Sql>(sql.config->handler);
  EXPECT_EQ(handler.statements, (Said{"insert into t values (:key)"}));
  EXPECT_FALSE(handler.text);
  EXPECT_EQ(handler.expect_rows, 2147483648U);
}

TEST_F(ConfigFile, EveryWordReachesItsValue) {
  const auto outcome = [&](const char* word) {
    return std::get<Config::Exec>(
               load(with(least(), {{"handler.exec.on_error", word}})).config->handler)
        .on_error;
  };
  EXPECT_EQ(outcome("retry"), OutcomeKind::retry);
  EXPECT_EQ(outcome("reject"), OutcomeKind::reject);
  EXPECT_EQ(outcome("park"), OutcomeKind::park);
  EXPECT_EQ(outcome("stop"), OutcomeKind::stop);
  const auto level = [&](const char* word) {
    return load(with(least(), {{"log.level", word}})).config->log.level;
  };
  EXPECT_EQ(level("error"), Level::error);
  EXPECT_EQ(level("warn"), Level::warn);
  EXPECT_EQ(level("info"), Level::info);
  EXPECT_EQ(level("debug"), Level::debug);
  const auto order = [&](const char* word) {
    return load(with(least(), {{"order", word}})).config->order;
  };
  EXPECT_EQ(order("key"), Order::key);
  EXPECT_EQ(order("partition"), Order::partition);
  const auto reset = [&](const char* word) {
    return load(with(least(), {{"kafka.auto.offset.reset", word}})).config->kafka.auto_offset_reset;
  };
  EXPECT_EQ(reset("earliest"), OffsetReset::earliest);
  EXPECT_EQ(reset("error"), OffsetReset::error);
  EXPECT_EQ(load(with(least(), {{"log.format", "text"}})).config->log.format, LogFormat::text);
  EXPECT_TRUE(std::holds_alternative<Config::Memory>(
      load(with(least(), {{"store.memory", "{}"}})).config->store));
}

TEST_F(ConfigFile, DefaultsThatDependOnOtherKeys) {
  EXPECT_EQ(load(least()).config->effect.kind, EffectKind::idempotent);
  EXPECT_EQ(load(with(least(), {{"store.sqlite.path", "x"}})).config->effect.kind,
            EffectKind::idempotent);  // exec, store or not
  EXPECT_EQ(load(least_sql()).config->effect.kind, EffectKind::transaction);
  EXPECT_EQ(load(least()).config->effect.scope, "billing");
  EXPECT_EQ(load(least()).config->lane_count(), 8U);
  EXPECT_EQ(load(with(least(), {{"order", "partition"}})).config->lane_count(), 1U);
  EXPECT_EQ(load(with(least(), {{"window.records", "30000"}}))
                .config->kafka.properties.at("queued.min.messages"),
            "30000");
  EXPECT_EQ(load(with(least(), {{"window.records", "30000"}, {"kafka.queued.min.messages", "5"}}))
                .config->kafka.properties.at("queued.min.messages"),
            "5");
  // C++ programs have their handler in the code: the store decides.
  sources_.handlers = HandlerRule::none;
  Lines program = least();
  program.erase("handler.exec.command");
  EXPECT_EQ(load(program).config->effect.kind, EffectKind::idempotent);
  program["store.sqlite.path"] = "x";
  EXPECT_EQ(load(program).config->effect.kind, EffectKind::transaction);
}

TEST_F(ConfigFile, UnderTheConsumerProtocolTheBrokerDecides) {
  const LoadedConfig loaded = load(with(least(), {{"kafka.group.protocol", "consumer"}}));
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  const auto& properties = loaded.config->kafka.properties;
  EXPECT_EQ(properties.at("group.protocol"), "consumer");
  EXPECT_FALSE(properties.contains("session.timeout.ms"));
  EXPECT_FALSE(properties.contains("heartbeat.interval.ms"));
  EXPECT_FALSE(properties.contains("partition.assignment.strategy"));
  EXPECT_EQ(loaded.config->kafka.session_timeout, 45s);

  EXPECT_EQ(
      faults(with(least(), {{"kafka.group.protocol", "consumer"},
                            {"kafka.heartbeat.interval.ms", "1000"},
                            {"kafka.partition.assignment.strategy", "range"},
                            {"kafka.session.timeout.ms", "6000"}})),
      (Said{"tenure.yaml:8:26: error: refused: under group.protocol consumer the broker decides "
            "it; remove it [kafka.heartbeat.interval.ms]",
            "tenure.yaml:9:34: error: refused: under group.protocol consumer the broker assigns; "
            "remove it, or use group.remote.assignor [kafka.partition.assignment.strategy]",
            "tenure.yaml:10:23: error: refused: under group.protocol consumer the broker decides "
            "it; remove it [kafka.session.timeout.ms]"}));
}

// ---- precedence
// -----------------------------------------------------------------------------------

TEST_F(ConfigFile, FlagBeatsEnvironmentBeatsFileBeatsBuilderBeatsDefault) {
  const auto concurrency = [&] {
    const LoadedConfig loaded = load_config(sources_);
    EXPECT_TRUE(loaded.config) << joined(said(loaded));
    return std::pair(loaded.config->concurrency, loaded.config->settings.at("concurrency"));
  };
  sources_.file = write("tenure.yaml", yaml(least()));
  EXPECT_EQ(concurrency().first, 64U);
  EXPECT_EQ(concurrency().second.origin, Origin::fallback);
  sources_.builder = {{"concurrency", {"5"}, "Builder::concurrency"}};
  EXPECT_EQ(concurrency().first, 5U);
  EXPECT_EQ(concurrency().second.at, "Builder::concurrency");
  sources_.file = write("tenure.yaml", yaml(with(least(), {{"concurrency", "6"}})));
  EXPECT_EQ(concurrency().first, 6U);
  EXPECT_EQ(concurrency().second.at, folder_ + "/tenure.yaml:1:14");
  sources_.environment["TENURE_CONCURRENCY"] = "7";
  EXPECT_EQ(concurrency().first, 7U);
  EXPECT_EQ(concurrency().second.at, "TENURE_CONCURRENCY");
  sources_.flags = {{"concurrency", {"8"}, "--concurrency"}};
  EXPECT_EQ(concurrency().first, 8U);
  EXPECT_EQ(concurrency().second.at, "--concurrency");
  EXPECT_EQ(concurrency().second.origin, Origin::flag);
}

TEST_F(ConfigFile, NoFileIsNeeded) {
  sources_.flags = {{"kafka.bootstrap.servers", {"b1:9092"}, "-b"},
                    {"kafka.group.id", {"billing"}, "-g"},
                    {"topics", {"orders", "refunds"}, "-t"},
                    {"kafka.fetch.wait.max.ms", {"50"}, "-X"},
                    {"handler.exec.command", {"./charge.py", "-v"}, "--exec"}};
  const LoadedConfig loaded = load_config(sources_);
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  EXPECT_EQ(loaded.config->topics, (Said{"orders", "refunds"}));
  EXPECT_EQ(loaded.config->kafka.properties.at("fetch.wait.max.ms"), "50");
  EXPECT_EQ(std::get<Config::Exec>(loaded.config->handler).command, (Said{"./charge.py", "-v"}));
}

TEST_F(ConfigFile, WithoutAFileWhatIsMissingIsNamedWithItsFlag) {
  EXPECT_EQ(
      said(load_config(sources_)),
      (Said{"tenure: error: no handler; give one of handler.exec, handler.sql [handler]",
            "tenure: error: missing; write `bootstrap.servers: \"b1:9092\"`, set "
            "TENURE_KAFKA__BOOTSTRAP_SERVERS, or use -b [kafka.bootstrap.servers]",
            "tenure: error: missing; write `group.id: billing`, set TENURE_KAFKA__GROUP_ID, or "
            "use -g [kafka.group.id]",
            "tenure: error: missing; write `topics: [orders]`, set TENURE_TOPICS, or use -t "
            "[topics]"}));
}

TEST_F(ConfigFile, VariablesReachEveryDepth) {
  Environment& env = sources_.environment;
  env["TENURE_KAFKA__BOOTSTRAP_SERVERS"] = "b1:9092";
  env["TENURE_KAFKA__GROUP_ID"] = "billing";
  env["TENURE_KAFKA__SSL_CA_LOCATION"] = "/ca";
  env["TENURE_TOPICS"] = "orders,refunds";
  env["TENURE_HANDLER__EXEC__COMMAND"] = R"(["./charge.py", "a,b"])";
  env["TENURE_HANDLER__EXEC__TIMEOUT_MS"] = "500";
  env["TENURE_STORE__MEMORY"] = "{}";
  const LoadedConfig loaded = load_config(sources_);
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  EXPECT_EQ(loaded.config->topics, (Said{"orders", "refunds"}));
  EXPECT_EQ(loaded.config->kafka.properties.at("ssl.ca.location"), "/ca");
  EXPECT_EQ(std::get<Config::Exec>(loaded.config->handler).command, (Said{"./charge.py", "a,b"}));
  EXPECT_EQ(std::get<Config::Exec>(loaded.config->handler).timeout, 500ms);
  EXPECT_TRUE(std::holds_alternative<Config::Memory>(loaded.config->store));
}

TEST_F(ConfigFile, FaultsOfVariablesAndFlagsNameThem) {
  sources_.environment = {{"TENURE_CONCURRENCY", "0"},
                          {"TENURE_CONCURENCY", "9"},
                          {"TENURE_HANDLER__EXEC__COMMAND", "./charge.py"},
                          {"TENURE_PORT", "tcp://10.0.0.1:9464"},
                          {"TENURE_RECORD_KEY", "k"},
                          {"TENURE_SERVICE_HOST", "10.0.0.1"},
                          {"TENURE_WINDOW__RECORD", "9"},
                          {"TENURE_WINDOW", "9"},
                          {"TENURE_COMMIT__INTERVAL_MS", "1s"}};
  sources_.flags = {{"order", {"kye"}, "--order"},
                    {"kafka.enable.auto.commit", {"true"}, "-X"},
                    {"topics", {"a b"}, "-t"},
                    {"bogus", {"1"}, "--bogus"}};
  EXPECT_EQ(
      faults(least()),
      (Said{"TENURE_COMMIT__INTERVAL_MS: error: expected an integer 10..600000 (milliseconds), got "
            "\"1s\"; write 1000 [commit.interval_ms]",
            "TENURE_CONCURENCY: warning: ignored; did you mean TENURE_CONCURRENCY? [concurency]",
            "TENURE_CONCURRENCY: error: 0 is out of range; accepted: an integer 1..65536; the "
            "nearest "
            "is 1 [concurrency]",
            "TENURE_HANDLER__EXEC__COMMAND: error: not a list; write [\"a\", \"b\"] "
            "[handler.exec.command]",
            "TENURE_WINDOW__RECORD: error: unknown variable; did you mean TENURE_WINDOW__RECORDS? "
            "[window.record]",
            "--order: error: expected one of key, partition, none, got \"kye\"; did you mean "
            "\"key\"? "
            "[order]",
            "-X: error: refused: Tenure commits what is proven and nothing else (C4); remove it "
            "[kafka.enable.auto.commit]",
            "-t: error: no topic name: \"a b\"; 1..249 of letters, digits, \".\", \"_\", \"-\", or "
            "^regex [topics]",
            "--bogus: error: unknown key [bogus]"}));
}

TEST_F(ConfigFile, AFlagGivenTwiceIsNotGuessed) {
  sources_.flags = {{"kafka.client.id", {"a"}, "-X"}, {"kafka.client.id", {"b"}, "-X"}};
  EXPECT_EQ(faults(least()), (Said{"-X: error: given twice [kafka.client.id]"}));
}

TEST_F(ConfigFile, VariablesAndFlagsMustBeUtf8) {
  sources_.environment = {{"TENURE_EFFECT__SCOPE", "caf\xE9"}, {"NAME", "caf\xE9"}};
  sources_.flags = {{"topics", {"caf\xE9"}, "-t"}, {"kafka.client.id", {"${env:NAME}"}, "-X"}};
  EXPECT_EQ(faults(least()),
            (Said{"TENURE_EFFECT__SCOPE: error: not UTF-8 [effect.scope]",
                  "-t: error: not UTF-8 [topics]",
                  "-X: error: refers to a value that is not UTF-8 [kafka.client.id]"}));
}

TEST_F(ConfigFile, AFaultyValueIsReportedEvenWhereAnotherSourceWins) {
  sources_.environment["TENURE_CONCURRENCY"] = "7";
  EXPECT_EQ(faults(with(least(), {{"concurrency", "0"}})),
            (Said{"tenure.yaml:1:14: error: 0 is out of range; accepted: an integer 1..65536; the "
                  "nearest is 1 [concurrency]"}));
}

// ---- bad input, each kind by name
// ----------------------------------------------------------------

TEST_F(ConfigFile, MissingFile) {
  sources_.file = folder_ + "/nope.yaml";
  EXPECT_EQ(
      said(load_config(sources_)),
      (Said{"nope.yaml: error: cannot read the configuration: No such file or directory; name "
            "another file with -c"}));
}

TEST_F(ConfigFile, DirectoryInsteadOfAFile) {
  std::filesystem::create_directory(folder_ + "/conf.d");
  sources_.file = folder_ + "/conf.d";
  EXPECT_EQ(
      said(load_config(sources_)),
      (Said{"conf.d: error: cannot read the configuration: it is a directory; name a file in it"}));
}

TEST_F(ConfigFile, EmptyFile) {
  const Said empty = {"tenure.yaml:1:1: error: the file is empty; begin with \"version: 1\""};
  EXPECT_EQ(faults(""), empty);
  EXPECT_EQ(faults("# nothing\n"), empty);
  EXPECT_EQ(faults("---\n"), empty);
}

TEST_F(ConfigFile, HugeFile) {
  EXPECT_EQ(faults(std::string(2U << 20U, '#')),
            (Said{"tenure.yaml: error: the configuration is larger than 1 MiB"}));
}

TEST_F(ConfigFile, ListInsteadOfKeys) {
  EXPECT_EQ(faults("- a\n"),
            (Said{"tenure.yaml:1:1: error: expected keys such as \"version: 1\""}));
}

TEST_F(ConfigFile, SyntaxErrorIsTheOnlyFaultOfTheFile) {
  EXPECT_EQ(faults("version: 2\nbogus: 1\nkafka: {\n"),
            (Said{"tenure.yaml:4:1: error: a mapping is never closed; add \"}\""}));
}

TEST_F(ConfigFile, NotUtf8) {
  EXPECT_EQ(faults("version: 1\ntopics: [caf\xE9]\n"),
            (Said{"tenure.yaml:2:13: error: not UTF-8; save the file as UTF-8"}));
}

TEST_F(ConfigFile, TabInTheIndentation) {
  EXPECT_EQ(faults("version: 1\nwindow:\n\trecords: 5\n"),
            (Said{"tenure.yaml:3:1: error: a tab in the indentation; use spaces"}));
}

TEST_F(ConfigFile, DuplicateKey) {
  EXPECT_EQ(
      faults(yaml(least()) + "window: {records: 1, records: 2}\norder: key\norder: none\n"),
      (Said{"tenure.yaml:9:22: error: duplicate key \"records\"; first given in line 9 "
            "[window.records]",
            "tenure.yaml:11:1: error: duplicate key \"order\"; first given in line 10 [order]"}));
}

TEST_F(ConfigFile, SecondDocument) {
  EXPECT_EQ(faults(yaml(least()) + "---\nversion: 1\n"),
            (Said{"tenure.yaml:9:1: error: a second document starts here; one file is one "
                  "configuration"}));
}

TEST_F(ConfigFile, AnchorsAndAliasesAreFine) {
  const LoadedConfig loaded =
      load(yaml(least()) + "batch: {wait_ms: &w 7}\ndrain: {budget_ms: *w}\n");
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  EXPECT_EQ(loaded.config->drain.budget, 7ms);
}

TEST_F(ConfigFile, JsonParsesToo) {
  const LoadedConfig loaded = load(
      "{\n\t\"version\": 1,\n\t\"kafka\": {\"bootstrap.servers\": \"b1:9092\", \"group.id\": "
      "\"g\"},\n"
      "\t\"topics\": [\"orders\"],\n\t\"handler\": {\"exec\": {\"command\": [\"./x\"]}}\n}\n");
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  EXPECT_EQ(loaded.config->kafka.group_id, "g");
}

TEST_F(ConfigFile, UnknownKeyWithASuggestion) {
  EXPECT_EQ(
      faults("version: 1\nkafka: {bootstrap.servers: \"b:1\", group.id: g}\ntopics: [t]\n"
             "handler:\n  exec:\n    command: [x]\n    proceses: 4\n    timeout: 20000\n"
             "timeout_ms: 5\nbootstrap.servers: b\nwibble: {a: 1}\n<<: {order: key}\norder:key\n"),
      (Said{"tenure.yaml:7:5: error: unknown key \"proceses\"; did you mean \"processes\"? "
            "[handler.exec.proceses]",
            "tenure.yaml:8:5: error: unknown key \"timeout\"; did you mean \"timeout_ms\"? "
            "[handler.exec.timeout]",
            "tenure.yaml:9:1: error: unknown key \"timeout_ms\"; did you mean "
            "\"handler.exec.timeout_ms\"? [timeout_ms]",
            "tenure.yaml:10:1: error: unknown key \"bootstrap.servers\"; did you mean "
            "\"kafka.bootstrap.servers\"? [bootstrap.servers]",
            "tenure.yaml:11:1: error: unknown key \"wibble\"; known here: version, kafka, topics, "
            "order, lanes, concurrency, window, handler, retry, dead_letter, effect, store, batch, "
            "commit, drain, shutdown, http, metrics, log [wibble]",
            "tenure.yaml:12:1: error: unknown key \"<<\"; merge keys are not read here; repeat the "
            "keys [<<]",
            "tenure.yaml:13:1: error: unknown key \"order:key\"; a space is missing after \":\" "
            "[order:key]"}));
}

TEST_F(ConfigFile, WrongType) {
  EXPECT_EQ(
      faults(yaml(least()) +
             "concurrency: \"64\"\nwindow: 5\nretry: [a]\nbatch: {records: ~, wait_ms: }\n"
             "commit: {interval_ms: 010, start_position: yes}\nlanes: {a: 1}\n"),
      (Said{
          "tenure.yaml:9:14: error: expected an integer 1..65536, got \"64\"; remove the quotes "
          "[concurrency]",
          "tenure.yaml:10:9: error: expected a section with the keys records, bytes, "
          "records_total, "
          "bytes_total [window]",
          "tenure.yaml:11:8: error: expected a section with the keys attempts, backoff_min_ms, "
          "backoff_max_ms, jitter, waiting_max, exhausted [retry]",
          "tenure.yaml:12:18: error: expected an integer 1..10000, got nothing; write a value or "
          "remove the line (default 100) [batch.records]",
          "tenure.yaml:12:21: error: expected an integer 0..60000 (milliseconds), got nothing; "
          "write "
          "a value or remove the line (default 5) [batch.wait_ms]",
          "tenure.yaml:13:23: error: expected an integer 10..600000 (milliseconds), got \"010\"; "
          "no "
          "leading zero [commit.interval_ms]",
          "tenure.yaml:13:44: error: expected true or false, got \"yes\"; write true "
          "[commit.start_position]",
          "tenure.yaml:14:8: error: expected auto or an integer 1..1024, got a section [lanes]"}));
}

TEST_F(ConfigFile, WrongUnit) {
  EXPECT_EQ(
      faults(yaml(least()) +
             "commit: {interval_ms: 2.5s}\nwindow: {bytes: 16 MiB, bytes_total: 1GB}\n"
             "drain: {budget_ms: 90min, margin_ms: 1 fortnight}\nconcurrency: 1k\n"),
      (Said{
          "tenure.yaml:9:23: error: expected an integer 10..600000 (milliseconds), got \"2.5s\"; "
          "write 2500 [commit.interval_ms]",
          "tenure.yaml:10:17: error: expected an integer 65536..1099511627776 (bytes), got \"16 "
          "MiB\"; write 16777216 [window.bytes]",
          "tenure.yaml:10:38: error: expected an integer 65536..1099511627776 (bytes), got "
          "\"1GB\"; "
          "write 1000000000 [window.bytes_total]",
          "tenure.yaml:11:20: error: expected an integer 0..3600000 (milliseconds), got \"90min\" "
          "[drain.budget_ms]",
          "tenure.yaml:11:38: error: expected an integer 0..60000 (milliseconds), got \"1 "
          "fortnight\" [drain.margin_ms]",
          "tenure.yaml:12:14: error: expected an integer 1..65536, got \"1k\" [concurrency]"}));
}

TEST_F(ConfigFile, WrongVersion) {
  Lines lines = least();
  lines["version"] = "2";
  EXPECT_EQ(faults(lines), (Said{"tenure.yaml:8:10: error: 2 is out of range; accepted: an integer "
                                 "1..1; the nearest is 1 [version]"}));
}

TEST_F(ConfigFile, MissingRequiredKeys) {
  EXPECT_EQ(
      faults("version: 1\nkafka:\n  group.id: g\nhandler: {exec: {mode: alive}}\n"),
      (Said{"tenure.yaml:1:1: error: missing; write `topics: [orders]`, set TENURE_TOPICS, or use "
            "-t [topics]",
            "tenure.yaml:2:1: error: missing; write `bootstrap.servers: \"b1:9092\"`, set "
            "TENURE_KAFKA__BOOTSTRAP_SERVERS, or use -b [kafka.bootstrap.servers]",
            "tenure.yaml:4:11: error: missing; write `command: [./charge.py]`, set "
            "TENURE_HANDLER__EXEC__COMMAND, or use --exec [handler.exec.command]"}));
}

TEST_F(ConfigFile, KeysAndValuesOfLaterVersions) {
  EXPECT_EQ(
      faults("version: 1\nkafka: {bootstrap.servers: \"b:1\", group.id: g}\ntopics: [t]\n"
             "handler:\n  http: {url: \"http://x\"}\n"
             "dead_letter: {topic: x}\n"
             "effect:\n  kind: claim\n  identity: header:id\n  claim: {lease_ms: 5000}\n"
             "store:\n  postgres: {dsn: \"${cred:pg}\"}\n"
             "http: {listen: \"0.0.0.0:9464\", page: \"127.0.0.1:9465\"}\n"
             "metrics: {partitions: owned}\n"),
      (Said{
          "tenure.yaml:5:3: error: comes in a later version, with the HTTP handler; remove it "
          "[handler.http]",
          "tenure.yaml:6:1: error: comes in a later version, with dead letters; remove it "
          "[dead_letter]",
          "tenure.yaml:8:9: error: \"claim\" comes in a later version; accepted now: transaction, "
          "idempotent [effect.kind]",
          "tenure.yaml:9:13: error: accepts only \"offset\" until identity by header comes in a "
          "later "
          "version [effect.identity]",
          "tenure.yaml:10:3: error: comes in a later version, with effect kind claim; remove it "
          "[effect.claim]",
          "tenure.yaml:12:3: error: comes in a later version, with the PostgreSQL store; remove it "
          "[store.postgres]",
          "tenure.yaml:13:16: error: accepts only \"\" until the metrics and health server comes "
          "in a "
          "later version [http.listen]",
          "tenure.yaml:13:38: error: accepts only \"\" until the metrics and health server comes "
          "in a "
          "later version [http.page]",
          "tenure.yaml:14:23: error: accepts only none until the metrics and health server comes "
          "in a "
          "later version [metrics.partitions]"}));
}

TEST_F(ConfigFile, MetadataBytesAreAcceptedWithoutEffect) {
  EXPECT_EQ(faults(with(least(), {{"commit.metadata_bytes", "3072"}})), Said());
  const LoadedConfig loaded = load(with(least(), {{"commit.metadata_bytes", "0"}}));
  EXPECT_TRUE(loaded.config);
  EXPECT_EQ(said(loaded), (Said{"tenure.yaml:2:19: warning: no effect yet: this version writes no "
                                "completion map [commit.metadata_bytes]"}));
}

// ---- client properties
// ----------------------------------------------------------------------------

TEST_F(ConfigFile, C4_OwnedPropertiesAreRefusedWithTheReason) {
  const std::string ours =
      "error: refused: Tenure commits what is proven and nothing else (C4); remove it";
  const std::string events =
      "error: refused: Tenure owns the client's events and callbacks; remove it";
  EXPECT_EQ(
      faults("version: 1\ntopics: [t]\nhandler: {exec: {command: [x]}}\nkafka:\n"
             "  bootstrap.servers: b:1\n  group.id: g\n"
             "  enable.auto.commit: true\n"
             "  enable.auto.offset.store: true\n"
             "  auto.commit.interval.ms: 5\n"
             "  offset.store.method: broker\n"
             "  enable.partition.eof: true\n"
             "  rebalance_cb: x\n"
             "  opaque: x\n"
             "  test.mock.num.brokers: 3\n"
             "  metadata.broker.list: b\n"),
      (Said{"tenure.yaml:7:23: " + ours + " [kafka.enable.auto.commit]",
            "tenure.yaml:8:29: " + ours + " [kafka.enable.auto.offset.store]",
            "tenure.yaml:9:28: " + ours + " [kafka.auto.commit.interval.ms]",
            "tenure.yaml:10:24: " + ours + " [kafka.offset.store.method]",
            "tenure.yaml:11:25: error: refused: Tenure finds the end of a partition itself (F3); "
            "remove it [kafka.enable.partition.eof]",
            "tenure.yaml:12:17: " + events + " [kafka.rebalance_cb]",
            "tenure.yaml:13:11: " + events + " [kafka.opaque]",
            "tenure.yaml:14:26: error: refused: a mock cluster has no group of yours; try tenure "
            "demo [kafka.test.mock.num.brokers]",
            "tenure.yaml:15:25: error: refused: another name of bootstrap.servers; use that "
            "[kafka.metadata.broker.list]"}));
}

TEST_F(ConfigFile, C4_TurningAutoCommitOffIsHarmlessAndNotPassedOn) {
  const LoadedConfig loaded = load(with(least(), {{"kafka.enable.auto.commit", "false"}}));
  ASSERT_TRUE(loaded.config);
  EXPECT_EQ(said(loaded), (Said{"tenure.yaml:6:23: warning: always off in Tenure (C4); remove it "
                                "[kafka.enable.auto.commit]"}));
  EXPECT_FALSE(loaded.config->kafka.properties.contains("enable.auto.commit"));
}

TEST_F(ConfigFile, OtherPropertiesAreTriedOnTheClient) {
  std::vector<std::string> asked;
  sources_.check_property = [&](const std::string& property,
                                const std::string& value) -> std::optional<std::string> {
    asked.push_back(property + "=" + value);
    if (property == "wibble") return "No such configuration property: \"wibble\"";
    if (property == "socket.timeout.ms")
      return "Configuration property out of range: " + value + "\n";
    return std::nullopt;
  };
  EXPECT_EQ(
      faults(with(least(), {{"kafka.wibble", "1"},
                            {"kafka.socket.timeout.ms", "1"},
                            {"kafka.client.id", "\"007\""},
                            {"kafka.fetch.wait.max.ms", "\"101\""},
                            {"kafka.auto.offset.reset", "latest"}})),
      (Said{"tenure.yaml:10:22: error: the client says: Configuration property out of range: 1 "
            "[kafka.socket.timeout.ms]",
            "tenure.yaml:11:11: error: the client says: No such configuration property: "
            "\"wibble\" [kafka.wibble]"}));
  EXPECT_EQ(asked, (Said{"bootstrap.servers=b1:9092", "client.id=007", "fetch.wait.max.ms=101",
                         "group.id=billing", "socket.timeout.ms=1", "wibble=1"}));
}

TEST_F(ConfigFile, PropertiesAreTextsUnderTheirDottedNames) {
  EXPECT_EQ(
      faults("version: 1\ntopics: [t]\nhandler: {exec: {command: [x]}}\nkafka:\n"
             "  bootstrap.servers: [a, b]\n  group.id: g\n  ssl:\n    ca: x\n  client.id:\n"),
      (Said{"tenure.yaml:5:22: error: expected a text that is not empty, got a list; write "
            "\"a,b\" [kafka.bootstrap.servers]",
            "tenure.yaml:8:5: error: expected a text, got a section; write client properties with "
            "dots: ssl.x: y [kafka.ssl]",
            "tenure.yaml:9:3: error: expected a text, got nothing; write a value or remove the "
            "line [kafka.client.id]"}));
}

TEST_F(ConfigFile, BrokersAndAssignorsAreChecked) {
  const auto servers = [&](const char* text) {
    return joined(faults(with(least(), {{"kafka.bootstrap.servers", text}})));
  };
  for (const char* good :
       {"b1", "b1:1,b2:65535", "\"[::1]:9092\"", "SASL_SSL://b1:9092", "\"b1, b2\""}) {
    EXPECT_EQ(servers(good), "") << good;
  }
  for (const char* wrong :
       {"b1:0", "b1:65536", "\"b1:\"", ":9092", "\"b1,,b2\"", "b1:x", "\"a b:1\"",
        "http://b1:9092/x", "\"a:b:1\"", "b1:99999999999999999999"}) {
    EXPECT_NE(
        servers(wrong).find("write host:port, with a port 1..65535 [kafka.bootstrap.servers]"),
        std::string::npos)
        << wrong;
  }
  const auto strategy = [&](const char* text) {
    return joined(faults(with(least(), {{"kafka.partition.assignment.strategy", text}})));
  };
  EXPECT_EQ(strategy("\"range,roundrobin\""), "");
  EXPECT_EQ(
      strategy("\"range,cooperative-sticky\""),
      "tenure.yaml:7:34: error: cooperative-sticky cannot be mixed with others; name it alone "
      "[kafka.partition.assignment.strategy]\n");
  EXPECT_EQ(
      strategy("cooperative-stiky"),
      "tenure.yaml:7:34: error: unknown assignor \"cooperative-stiky\"; known: range, roundrobin, "
      "cooperative-sticky; did you mean \"cooperative-sticky\"? "
      "[kafka.partition.assignment.strategy]\n");
}

// ---- rules over several keys
// -------------------------------------------------------------------------

TEST_F(ConfigFile, R7_ADrainMustFitIntoTheRebalance) {
  EXPECT_EQ(faults(with(least(), {{"drain.budget_ms", "5000"},
                                  {"kafka.max.poll.interval.ms", "7000"},
                                  {"kafka.session.timeout.ms", "6000"}})),
            (Said{"tenure.yaml:2:14: error: drain.budget_ms 5000 + drain.commit_ms 2000 + "
                  "drain.margin_ms 1000 = 8000 exceeds kafka.max.poll.interval.ms 7000; lower "
                  "drain.budget_ms to 4000, or raise kafka.max.poll.interval.ms to 8000 "
                  "[drain.budget_ms]"}));
  // At its end it fits; the heartbeat counts where it is the larger margin.
  const Lines edge = with(least(), {{"drain.budget_ms", "5000"},
                                    {"kafka.max.poll.interval.ms", "8000"},
                                    {"shutdown.budget_ms", "5000"},
                                    {"kafka.session.timeout.ms", "6000"}});
  EXPECT_EQ(faults(edge), Said());
  EXPECT_EQ(
      faults(with(edge, {{"kafka.heartbeat.interval.ms", "1001"}})),
      (Said{"tenure.yaml:2:14: error: drain.budget_ms 5000 + drain.commit_ms 2000 + "
            "kafka.heartbeat.interval.ms 1001 = 8001 exceeds kafka.max.poll.interval.ms 8000; "
            "lower drain.budget_ms to 4999, or raise kafka.max.poll.interval.ms to 8001 "
            "[drain.budget_ms]"}));
  // Reported where somebody wrote something, not at a default.
  EXPECT_EQ(faults(with(least(), {{"kafka.max.poll.interval.ms", "2000"},
                                  {"kafka.session.timeout.ms", "2000"}})),
            (Said{"tenure.yaml:7:25: error: drain.budget_ms 5000 + drain.commit_ms 2000 + "
                  "drain.margin_ms 1000 = 8000 exceeds kafka.max.poll.interval.ms 2000; raise "
                  "kafka.max.poll.interval.ms to 8000 [kafka.max.poll.interval.ms]"}));
}

TEST_F(ConfigFile, R7_AShutdownLongerThanARebalanceIsAWarning) {
  const LoadedConfig loaded = load(with(least(), {{"shutdown.budget_ms", "297001"}}));
  EXPECT_TRUE(loaded.config);
  EXPECT_EQ(
      said(loaded),
      (Said{"tenure.yaml:8:14: warning: shutdown.budget_ms 297001 + drain.commit_ms 2000 + "
            "drain.margin_ms 1000 = 300001 exceeds kafka.max.poll.interval.ms 300000; a rebalance "
            "during the shutdown cuts it to 297000 [shutdown.budget_ms]"}));
  EXPECT_EQ(faults(with(least(), {{"shutdown.budget_ms", "297000"}})), Said());
}

TEST_F(ConfigFile, SessionLimitsMustAgree) {
  EXPECT_EQ(
      faults(with(least(), {{"kafka.session.timeout.ms", "300001"}})),
      (Said{"tenure.yaml:7:23: error: kafka.session.timeout.ms 300001 is above "
            "kafka.max.poll.interval.ms 300000; lower it, or raise kafka.max.poll.interval.ms "
            "[kafka.session.timeout.ms]"}));
  EXPECT_EQ(
      faults(with(least(), {{"kafka.session.timeout.ms", "1000"}})),
      (Said{"tenure.yaml:7:23: error: kafka.heartbeat.interval.ms 1000 must be below "
            "kafka.session.timeout.ms 1000; a third of it is usual [kafka.session.timeout.ms]"}));
}

TEST_F(ConfigFile, PartsStayWithinTheirTotals) {
  EXPECT_EQ(
      faults(with(least(), {{"window.records", "70000"},
                            {"window.bytes_total", "65536"},
                            {"retry.backoff_max_ms", "100"}})),
      (Said{"tenure.yaml:8:19: error: retry.backoff_min_ms 200 is above retry.backoff_max_ms 100; "
            "raise it, or lower retry.backoff_min_ms [retry.backoff_max_ms]",
            "tenure.yaml:12:16: error: window.bytes 16777216 is above window.bytes_total 65536; "
            "raise it, or lower window.bytes [window.bytes_total]",
            "tenure.yaml:13:12: error: window.records 70000 is above window.records_total 65536; "
            "lower it, or raise window.records_total [window.records]"}));
}

TEST_F(ConfigFile, ExactlyOneHandlerAtMostOneStore) {
  Lines none = least();
  none.erase("handler.exec.command");
  EXPECT_EQ(faults(none), (Said{"tenure.yaml:1:1: error: no handler; give one of handler.exec, "
                                "handler.sql [handler]"}));
  EXPECT_EQ(faults(with(none, {{"handler", "{}"}})),
            (Said{"tenure.yaml:1:1: error: no handler; give one of handler.exec, handler.sql "
                  "[handler]"}));
  EXPECT_EQ(faults(with(least(), {{"handler.sql.statements", "[\"select 1\"]"},
                                  {"store.memory", "{}"},
                                  {"store.sqlite.path", "x"}})),
            (Said{"tenure.yaml:4:3: error: only one handler, but handler.exec is given at "
                  "tenure.yaml:2:3 [handler.sql]",
                  "tenure.yaml:11:3: error: only one store, but store.memory is given at "
                  "tenure.yaml:10:11 [store.sqlite]"}));
  sources_.handlers = HandlerRule::at_most_one;
  EXPECT_EQ(faults(none), Said());
  sources_.handlers = HandlerRule::none;
  EXPECT_EQ(faults(none), Said());
  EXPECT_EQ(faults(least()),
            (Said{"tenure.yaml:2:3: error: this program has its handler in the code; "
                  "remove it [handler.exec]"}));
}

TEST_F(ConfigFile, AFlagsHandlerBesideTheFilesIsNoSilentChange) {
  sources_.flags = {{"handler.exec.command", {"./x"}, "--exec"}};
  EXPECT_EQ(faults(least_sql()),
            (Said{"--exec: error: only one handler, but handler.sql is given at "
                  "tenure.yaml:2:3 [handler.exec]"}));
}

TEST_F(ConfigFile, HandlerKindAndStoreMustFit) {
  EXPECT_EQ(
      faults(with(least(), {{"effect.kind", "transaction"}, {"store.sqlite.path", "x"}})),
      (Said{"tenure.yaml:2:9: error: transaction cannot cover what a program or service outside "
            "the store does; write idempotent [effect.kind]"}));
  EXPECT_EQ(faults(with(least_sql(), {{"effect.kind", "idempotent"}})),
            (Said{"tenure.yaml:2:9: error: handler.sql runs in the store's transaction; write "
                  "transaction [effect.kind]"}));
  Lines sql = least_sql();
  sql.erase("store.sqlite.path");
  EXPECT_EQ(faults(sql), (Said{"tenure.yaml:2:3: error: needs a store; add `store: {sqlite: {path: "
                               "..}}` [handler.sql]"}));
  EXPECT_EQ(faults(with(sql, {{"store.memory", "{}"}})),
            (Said{"tenure.yaml:8:11: error: runs no SQL; handler.sql needs `store: {sqlite: {path: "
                  "..}}` [store.memory]"}));
  sources_.handlers = HandlerRule::none;
  Lines program = least();
  program.erase("handler.exec.command");
  EXPECT_EQ(
      faults(with(program, {{"effect.kind", "transaction"}})),
      (Said{"tenure.yaml:2:9: error: transaction needs a store; add `store: {sqlite: {path: ..}}` "
            "or write idempotent [effect.kind]"}));
}

TEST_F(ConfigFile, LanesFollowTheOrderAndNeedAStore) {
  EXPECT_EQ(faults(with(least_sql(), {{"lanes", "2"}, {"order", "partition"}})),
            (Said{"tenure.yaml:7:8: error: order partition is one lane, got 2; write auto or 1 "
                  "[lanes]"}));
  EXPECT_EQ(faults(with(least_sql(), {{"lanes", "1"}, {"order", "partition"}})), Said());
  EXPECT_EQ(faults(with(least(), {{"lanes", "16"}})),
            (Said{"tenure.yaml:7:8: warning: no effect without a store [lanes]"}));
}

TEST_F(ConfigFile, TopicsAreNamesOrRegexOnce) {
  EXPECT_EQ(
      faults(with(least(), {{"topics", "[a, \"^\", .., a, \"^x.*\", {b: 1}, ~]"}})),
      (Said{"tenure.yaml:7:13: error: an empty regular expression; write ^name.* [topics]",
            "tenure.yaml:7:18: error: no topic name: \"..\"; 1..249 of letters, digits, \".\", "
            "\"_\", \"-\", or ^regex [topics]",
            "tenure.yaml:7:22: error: topic \"a\" is here twice [topics]",
            "tenure.yaml:7:33: error: expected a text in this list; put it in quotes [topics]",
            "tenure.yaml:7:41: error: expected a text in this list; put it in quotes "
            "[topics]"}));
}

TEST_F(ConfigFile, NulBytesAndEmptyProgramsAreRefused) {
  EXPECT_EQ(faults(with(least(), {{"handler.exec.command", "[\"a\\0b\"]"}})),
            (Said{"tenure.yaml:3:15: error: has a NUL byte [handler.exec.command]"}));
  EXPECT_EQ(
      faults(with(least(), {{"handler.exec.command", "[\"\", a]"}})),
      (Said{"tenure.yaml:3:15: error: expected a text that is not empty [handler.exec.command]"}));
  EXPECT_EQ(faults(with(least(), {{"handler.exec.command", "[a, \"\"]"}})), Said());
  EXPECT_EQ(faults(with(least(), {{"store.sqlite.path", "\":memory:\""}})),
            (Said{"tenure.yaml:9:11: error: a database that ends with its connection; write "
                  "store.memory instead [store.sqlite.path]"}));
}

TEST_F(ConfigFile, AllFaultsComeAtOnceInFileOrderThenVariablesThenFlags) {
  sources_.flags = {{"order", {"x"}, "--order"}};
  sources_.environment = {{"TENURE_BATCH__RECORDS", "0"}};
  const Said all = faults(
      "version: 1\nlog: {level: loud}\nbogus: 1\nconcurrency: 0\norder: key\norder: key\n"
      "kafka: {group.id: g, bootstrap.servers: b}\nhandler: {exec: {command: [x]}}\n");
  ASSERT_EQ(all.size(), 7U) << joined(all);
  EXPECT_EQ(all[0].substr(0, 16), "tenure.yaml:1:1:") << all[0];  // topics missing
  EXPECT_EQ(all[1].substr(0, 17), "tenure.yaml:2:14:");
  EXPECT_EQ(all[2].substr(0, 16), "tenure.yaml:3:1:");
  EXPECT_EQ(all[3].substr(0, 17), "tenure.yaml:4:14:");
  EXPECT_EQ(all[4].substr(0, 16), "tenure.yaml:6:1:");
  EXPECT_EQ(all[5].substr(0, 22), "TENURE_BATCH__RECORDS:");
  EXPECT_EQ(all[6].substr(0, 8), "--order:");
}

// ---- secrets
// ------------------------------------------------------------------------------------------

constexpr std::string_view canary = "hunter2-canary";

TEST_F(ConfigFile, SecretsComeByReferenceOnly) {
  const std::string fix = "write ${file:PATH}, ${cred:NAME} or ${env:NAME} [kafka.sasl.password]";
  EXPECT_EQ(faults(with(least(), {{"kafka.sasl.password", std::string(canary)}})),
            (Said{"tenure.yaml:7:18: error: a secret must not be written out; " + fix}));
  sources_.flags = {{"kafka.sasl.password", {std::string(canary)}, "-X"}};
  EXPECT_EQ(faults(least()),
            (Said{"-X: error: a secret on the command line can be read by others; " + fix}));

  sources_.flags = {{"kafka.sasl.password", {"${env:P}"}, "-X"}};
  sources_.environment = {{"P", std::string(canary)}};
  const LoadedConfig by_reference = load(least());
  ASSERT_TRUE(by_reference.config) << joined(said(by_reference));
  EXPECT_EQ(by_reference.config->kafka.properties.at("sasl.password"), canary);

  sources_.flags.clear();
  sources_.environment = {{"TENURE_KAFKA__SASL_PASSWORD", std::string(canary)}};
  const LoadedConfig by_variable = load(least());
  ASSERT_TRUE(by_variable.config);
  EXPECT_EQ(by_variable.config->kafka.properties.at("sasl.password"), canary);
  EXPECT_EQ(config_json(*by_variable.config, false)["kafka"]["sasl.password"], "********");
}

TEST_F(ConfigFile, AnyTextMayUseReferences) {
  sources_.environment = {{"POD_NAME", "billing-2"}};
  const LoadedConfig loaded =
      load(with(least(), {{"kafka.group.instance.id", "\"${env:POD_NAME}\""},
                          {"topics", "[\"t-${env:POD_NAME}\"]"}}));
  ASSERT_TRUE(loaded.config) << joined(said(loaded));
  EXPECT_EQ(loaded.config->kafka.properties.at("group.instance.id"), "billing-2");
  EXPECT_EQ(loaded.config->topics, (Said{"t-billing-2"}));
  EXPECT_EQ(faults(with(least(), {{"kafka.client.id", "${POD_NAME}"}})),
            (Said{"tenure.yaml:6:14: error: a bare ${..}; write ${file:PATH}, ${cred:NAME} or "
                  "${env:NAME}, and $${ for the characters themselves [kafka.client.id]"}));
  EXPECT_EQ(
      faults(with(least(), {{"concurrency", "${env:POD_NAME}"}})),
      (Said{"tenure.yaml:1:14: error: expected an integer 1..65536, got \"${env:POD_NAME}\"; "
            "references give texts only; use an environment variable TENURE_.. [concurrency]"}));
}

TEST_F(ConfigFile, ACanaryPasswordIsInNoMessageAndNoOutput) {
  const std::string secret(canary);
  const std::string file = write("pass", canary);
  const std::vector<Lines> variants = {
      {{"kafka.sasl.password", secret}},
      {{"kafka.sasl.password", "[" + secret + "]"}},
      {{"kafka.sasl.password", "{a: " + secret + "}"}},
      {{"kafka.sasl.password", "\"${" + secret + "}\""}},
      {{"kafka.sasl.password", "\"" + secret + "${env:NOPE}\""}},
      {{"kafka.sasl.password", "\"" + secret + "\nmore: 1"}},
      {{"kafka.sasl.password", "\"${file:" + file + "}\""}},
      {{"kafka.sasl.username", "\"${file:" + file + "}\""}},
      {{"kafka.client.id", "\"${file:" + file + "}\""}},
      {{"kafka.ssl.key.pem", "|\n    " + secret}},
      {{"kafka.sasl.oauthbearer.client.secret", secret}},
      {{"http.admin_token", secret}},
      {{"store.postgres.dsn", secret}},
      {{"handler.exec.command", "[\"${file:" + file + "}\"]"}},
      {{"topics", "[\"${file:" + file + "}\"]"}},
  };
  // A client that repeats the value in its complaint, as librdkafka does.
  for (const bool complains : {false, true}) {
    sources_.check_property = [complains](const std::string&, const std::string& value) {
      return complains ? std::optional("bad value \"" + value + "\"") : std::nullopt;
    };
    for (const Lines& variant : variants) {
      for (const bool from_environment : {false, true}) {
        sources_.environment.clear();
        if (from_environment) {
          for (const auto& [path, value] : variant) {
            sources_.environment[environment_name(path)] = secret;
          }
        }
        const LoadedConfig loaded = load(from_environment ? least() : with(least(), variant));
        std::string out = joined(said(loaded));
        if (loaded.config) {
          out += config_json(*loaded.config, true).dump() + config_yaml(*loaded.config, true) +
                 config_sha256(*loaded.config);
        }
        const std::string& path = variant.begin()->first;
        const bool no_secret = from_environment && !is_sensitive(path);  // an ordinary value there
        EXPECT_TRUE(no_secret || out.find(secret) == std::string::npos) << path << "\n" << out;
      }
    }
  }
}

// ---- reload
// -------------------------------------------------------------------------------------------

TEST_F(ConfigFile, OnlyTheLogLevelIsLive) {
  const Config before = *load(least()).config;
  EXPECT_EQ(restart_keys(before, *load(with(least(), {{"log.level", "debug"}})).config), Said());
  EXPECT_EQ(restart_keys(before, *load(with(least(), {{"log.level", "debug"},
                                                      {"log.format", "json"},
                                                      {"concurrency", "65"},
                                                      {"topics", "[orders, more]"},
                                                      {"kafka.client.id", "x"},
                                                      {"store.sqlite.path", "x"}}))
                                      .config),
            (Said{"concurrency", "kafka.client.id", "log.format", "store.sqlite.path",
                  "store.sqlite.synchronous", "topics"}));
  // A default that is written down changes nothing.
  EXPECT_EQ(restart_keys(before, *load(with(least(), {{"concurrency", "64"}})).config), Said());
}

TEST_F(ConfigFile, AChangedSecretNeedsARestart) {
  const std::string file = write("pass", "one");
  const Lines lines = with(least(), {{"kafka.sasl.password", "\"${file:" + file + "}\""}});
  const Config before = *load(lines).config;
  write("pass", "two");
  EXPECT_EQ(restart_keys(before, *load(lines).config), (Said{"kafka.sasl.password"}));
}

}  // namespace
}  // namespace tenure::app
