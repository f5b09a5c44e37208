#include "app/config_json.hpp"

#include <nlohmann/json.hpp>

#include "config_fixture.hpp"

namespace tenure::app {
namespace {

using nlohmann::json;

TEST_F(ConfigFile, ShowsEffectiveValuesBySection) {
  const LoadedConfig loaded = load(least_sql());
  ASSERT_TRUE(loaded.config);
  const json shown = config_json(*loaded.config, false);
  EXPECT_EQ(shown["kafka"]["group.id"], "billing");
  EXPECT_EQ(shown["kafka"]["fetch.queue.backoff.ms"], 10);
  EXPECT_EQ(shown["handler"]["sql"]["statements"], json::array({"insert into t values (:key)"}));
  EXPECT_FALSE(shown["handler"].contains("exec"));
  EXPECT_EQ(shown["store"]["sqlite"]["synchronous"], "full");
  EXPECT_EQ(shown["store"]["create"], false);
  EXPECT_EQ(shown["lanes"], "auto");
  EXPECT_EQ(shown["http"]["listen"], "");
  EXPECT_FALSE(shown.contains("dead_letter"));
}

TEST_F(ConfigFile, ShowsTheOriginOfEveryValue) {
  sources_.flags = {{"order", {"none"}, "--order"}};
  sources_.builder = {{"concurrency", {"9"}, "Builder::concurrency"}};
  sources_.environment = {{"TENURE_LOG__LEVEL", "warn"}};
  const LoadedConfig loaded = load(least());
  ASSERT_TRUE(loaded.config);
  const json origins = config_json(*loaded.config, true)["origins"];
  EXPECT_EQ(origins["order"], (json{{"origin", "flag"}, {"at", "--order"}}));
  EXPECT_EQ(origins["log.level"], (json{{"origin", "environment"}, {"at", "TENURE_LOG__LEVEL"}}));
  EXPECT_EQ(origins["concurrency"], (json{{"origin", "builder"}, {"at", "Builder::concurrency"}}));
  EXPECT_EQ(origins["topics"], (json{{"origin", "file"}, {"at", folder_ + "/tenure.yaml:7:9"}}));
  EXPECT_EQ(origins["batch.records"], (json{{"origin", "default"}}));
  const std::string yaml = config_yaml(*loaded.config, true);
  EXPECT_NE(yaml.find("order: none  # flag --order\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("  records: 100  # default\n"), std::string::npos) << yaml;
}

TEST_F(ConfigFile, ShownYamlLoadsToTheSameConfiguration) {
  write("pass", "secret");
  for (const Lines& lines :
       {least(), least_sql(),
        with(least(), {{"store.memory", "{}"},
                       {"kafka.group.protocol", "consumer"},
                       {"kafka.client.id", "\"a: #\\\"b $${x} é\\n\""},
                       {"kafka.sasl.password", "\"${file:" + folder_ + "/pass}\""},
                       {"retry.jitter", "0.1"},
                       {"lanes", "8"}})}) {
    const LoadedConfig first = load(lines);
    ASSERT_TRUE(first.config) << joined(said(first));
    const std::string shown = config_yaml(*first.config, false);
    const LoadedConfig second = load(shown);
    ASSERT_TRUE(second.config) << joined(said(second)) << shown;
    EXPECT_EQ(restart_keys(*first.config, *second.config), Said());
    EXPECT_EQ(config_sha256(*first.config), config_sha256(*second.config));
    EXPECT_EQ(config_yaml(*second.config, false), shown);
  }
}

TEST_F(ConfigFile, Sha256IsOfTheValuesAndNotOfTheirOrigin) {
  const LoadedConfig one = load(least());
  const LoadedConfig same = load(with(least(), {{"concurrency", "64"}}));
  const LoadedConfig other = load(with(least(), {{"concurrency", "65"}}));
  const std::string hash = config_sha256(*one.config);
  EXPECT_EQ(hash.size(), 64U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash, config_sha256(*same.config));
  EXPECT_NE(hash, config_sha256(*other.config));
}

TEST(ConfigSchemaJson, HasEveryKeyOfTheTable) {
  const json schema = config_schema_json();
  for (const Key& key : keys()) {
    const std::string path(key.path);
    if (key.stage == Stage::later) {
      EXPECT_EQ(schema["x-tenure-later"][path], key.reason);
      continue;
    }
    const json* at = &schema;
    std::string rest = path;
    if (rest.starts_with("kafka.")) {
      at = &(*at)["properties"]["kafka"];
      rest.erase(0, 6);
    } else {
      for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
        at = &(*at)["properties"][rest.substr(0, dot)];
        EXPECT_EQ((*at)["additionalProperties"], false) << path;
        rest.erase(0, dot + 1);
      }
    }
    ASSERT_TRUE((*at)["properties"].contains(rest)) << path;
    const json& property = (*at)["properties"][rest];
    EXPECT_EQ(property["description"], key.doc);
    if (key.type == Type::integer) {
      EXPECT_EQ(property["minimum"], key.min);
      EXPECT_EQ(property["maximum"], key.max);
    }
    EXPECT_EQ(property.contains("default"),
              !key.required && key.type != Type::block && path != "effect.scope")
        << path;
  }
  EXPECT_EQ(schema["required"], json::array({"version"}));
  EXPECT_EQ(schema["properties"]["log"]["properties"]["level"]["x-tenure-reload"], "live");
  EXPECT_EQ(schema["properties"]["effect"]["properties"]["kind"]["enum"],
            json::array({"transaction", "idempotent"}));
  EXPECT_TRUE(schema["x-tenure-refused"].contains("enable.auto.commit"));
}

}  // namespace
}  // namespace tenure::app
