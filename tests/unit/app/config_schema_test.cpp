#include "app/config_schema.hpp"

#include <set>

#include "config_fixture.hpp"

namespace tenure::app {
namespace {

/// Every line of the table is one test case.
class EveryKey : public ConfigFile, public testing::WithParamInterface<const Key*> {
 protected:
  const Key& key() const { return *GetParam(); }

  /// A configuration in which the key applies and nothing else stands in the way of `value`.
  Lines around(std::string_view value) const {
    const std::string path(key().path);
    Lines lines = path.starts_with("handler.sql") || path.starts_with("store.sqlite") ||
                          (path == "effect.kind" && value == "transaction")
                      ? least_sql()
                      : least();
    if (path.starts_with("handler.http")) lines.erase("handler.exec.command");
    static const Lines companions = {{"window.records", "window.records_total 1073741824"},
                                     {"window.bytes", "window.bytes_total 1099511627776"},
                                     {"window.records_total", "window.records 1"},
                                     {"window.bytes_total", "window.bytes 65536"},
                                     {"retry.backoff_min_ms", "retry.backoff_max_ms 3600000"},
                                     {"retry.backoff_max_ms", "retry.backoff_min_ms 1"}};
    if (const auto found = companions.find(path); found != companions.end()) {
      const std::size_t space = found->second.find(' ');
      lines[found->second.substr(0, space)] = found->second.substr(space + 1);
    }
    const bool long_limits = path.starts_with("drain.") || path.starts_with("shutdown.") ||
                             path == "kafka.heartbeat.interval.ms" ||
                             path == "kafka.session.timeout.ms";
    if (long_limits) {
      lines["kafka.max.poll.interval.ms"] = "86400000";
      if (path != "kafka.session.timeout.ms") lines["kafka.session.timeout.ms"] = "3600000";
    }
    if (path == "kafka.session.timeout.ms" || path == "kafka.max.poll.interval.ms") {
      lines["kafka.heartbeat.interval.ms"] = "1";
    }
    if (path == "kafka.max.poll.interval.ms") {
      lines = with(lines, {{"kafka.session.timeout.ms", "2"},
                           {"drain.budget_ms", "0"},
                           {"drain.commit_ms", "100"},
                           {"drain.margin_ms", "0"}});
    }
    lines[path] = std::string(value);
    return lines;
  }

  void expect_accepted(const std::string& value) {
    const LoadedConfig loaded = load(around(value));
    ASSERT_TRUE(loaded.config) << value << "\n" << joined(said(loaded));
    EXPECT_EQ(loaded.config->settings.at(std::string(key().path)).origin, Origin::file);
  }

  /// Exactly one error, at the value, naming the key and what is accepted.
  void expect_refused(const std::string& value, const std::string& accepts) {
    const std::string text = yaml(around(value));
    const LoadedConfig loaded = load(text);
    EXPECT_FALSE(loaded.config) << value;
    std::vector<Fault> errors;
    for (const Fault& fault : loaded.faults) {
      if (fault.severity == Fault::Severity::error) errors.push_back(fault);
    }
    ASSERT_EQ(errors.size(), 1U) << value << "\n" << joined(said(loaded));
    EXPECT_EQ(errors[0].key, key().path);
    EXPECT_NE(errors[0].text.find(accepts), std::string::npos) << errors[0].text;
    const std::string name(
        key().path.substr(key().path.starts_with("kafka.") ? 6 : key().path.rfind('.') + 1));
    std::size_t line_start = 0;
    for (int line = 1; line < errors[0].at.line; ++line)
      line_start = text.find('\n', line_start) + 1;
    EXPECT_EQ(text.substr(text.find_first_not_of(' ', line_start)).find(name + ": "), 0U) << text;
  }
};

TEST_P(EveryKey, HasItsDefaultAndItsRange) {
  const Key& line = key();
  const std::string path(line.path);
  EXPECT_FALSE(line.doc.empty());
  EXPECT_EQ(find_key(path), &line);
  EXPECT_NE(environment_name(path), "TENURE_");

  if (line.stage == Stage::later) {
    EXPECT_FALSE(line.reason.empty());
    const LoadedConfig loaded = load(around("1"));
    EXPECT_FALSE(loaded.config);
    EXPECT_NE(
        joined(said(loaded)).find("comes in a later version, with " + std::string(line.reason)),
        std::string::npos)
        << joined(said(loaded));
    // From a variable, too, and then by the key's own name.
    ConfigSources sources;
    sources.file = write("tenure.yaml", yaml(least()));
    sources.environment[environment_name(path)] = "1";
    EXPECT_NE(joined(said(load_config(sources)))
                  .find(environment_name(path) + ": error: comes in a later version"),
              std::string::npos);
    return;
  }

  if (!line.required && line.type != Type::block) {
    Lines without = around("1");
    without.erase(path);
    const LoadedConfig loaded = load(without);
    ASSERT_TRUE(loaded.config) << joined(said(loaded));
    const Setting& setting = loaded.config->settings.at(path);
    EXPECT_EQ(setting.origin, Origin::fallback);
    if (line.default_rule.empty()) {
      EXPECT_EQ(setting.value, default_value(line));
    }
  } else if (line.required) {
    Lines without = around("1");
    without.erase(path);
    if (path.starts_with("handler.") || path.starts_with("store.")) {
      without[path.substr(0, path.rfind('.'))] = "{}";
    }
    const LoadedConfig loaded = load(without);
    EXPECT_FALSE(loaded.config);
    const std::string all = joined(said(loaded));
    EXPECT_NE(all.find("missing; write `" + std::string(line.example) + "`"), std::string::npos)
        << all;
    EXPECT_NE(all.find("[" + path + "]"), std::string::npos) << all;
  }

  if (line.stage == Stage::only_default) {
    const std::string same = line.type == Type::string ? "\"" + std::string(line.fallback) + "\""
                                                       : std::string(line.fallback);
    expect_accepted(same);
    const std::string another =
        line.type == Type::boolean ? "true"
        : line.type == Type::integer
            ? std::to_string(line.max)
            : (line.type == Type::word ? std::string(line.words.back().text) : "other");
    if (!is_sensitive(path)) {
      expect_refused(another, "accepts only " + (line.type == Type::string ? same : same));
    } else {
      expect_refused("\"${env:X}\"", "the environment has no X");
    }
    return;
  }

  switch (line.type) {
    case Type::integer:
    case Type::auto_integer:
      expect_accepted(std::to_string(line.min));
      expect_accepted(std::to_string(line.max));
      expect_refused(std::to_string(line.min - 1), "out of range; accepted: " + accepted(line));
      expect_refused(std::to_string(line.max + 1), "out of range; accepted: " + accepted(line));
      expect_refused("9223372036854775808", "the nearest is " + std::to_string(line.max));
      expect_refused("many", "expected " + accepted(line) + ", got \"many\"");
      expect_refused("1.5", "expected " + accepted(line));
      expect_refused("[1]", "got a list");
      if (line.type == Type::auto_integer) expect_accepted("auto");
      break;
    case Type::number:
      expect_accepted("0");
      expect_accepted("1");
      expect_accepted("0.25");
      expect_refused("-0.1", "out of range; accepted: a number 0..1; the nearest is 0");
      expect_refused("1.1", "out of range; accepted: a number 0..1; the nearest is 1");
      expect_refused("nan", "expected a number 0..1");
      break;
    case Type::boolean:
      expect_accepted("true");
      expect_accepted("false");
      expect_refused("yes", "expected true or false, got \"yes\"; write true");
      expect_refused("\"true\"", "remove the quotes");
      expect_refused("2", "expected true or false");
      break;
    case Type::word:
      for (const Word& word : line.words) {
        if (word.later) {
          expect_refused(std::string(word.text), "comes in a later version");
        } else {
          expect_accepted(std::string(word.text));
        }
      }
      expect_refused("nonsense", "expected " + accepted(line) + ", got \"nonsense\"");
      break;
    case Type::string:
      expect_accepted(path == "kafka.partition.assignment.strategy" ? "range" : "some");
      if (line.min > 0) expect_refused("\"\"", "expected a text that is not empty");
      expect_refused("[a]", "got a list");
      break;
    case Type::list:
      expect_accepted("[a, b]");
      expect_refused("[]", "expected a list of texts that is not empty");
      expect_refused("a", "put it in [ ]");
      break;
    case Type::block:
      expect_accepted("{}");
      expect_accepted("");
      expect_refused("yes", "expected a section");
      break;
    case Type::map:
      FAIL() << "a map of this version has no test";
  }
}

std::vector<const Key*> every_key() {
  std::vector<const Key*> all;
  for (const Key& key : keys()) all.push_back(&key);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryKey, testing::ValuesIn(every_key()),
                         [](const testing::TestParamInfo<const Key*>& parameter) {
                           std::string name(parameter.param->path);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(ConfigSchema, PathsAreUnique) {
  std::set<std::string_view> paths;
  for (const Key& key : keys()) EXPECT_TRUE(paths.insert(key.path).second) << key.path;
}

TEST(ConfigSchema, NearestFindsSlipsAndUnits) {
  const std::vector<std::string_view> names = {"processes", "timeout_ms", "in_flight", "mode"};
  EXPECT_EQ(nearest("proceses", names), "processes");
  EXPECT_EQ(nearest("processse", names), "processes");
  EXPECT_EQ(nearest("timeout", names), "timeout_ms");
  EXPECT_EQ(nearest("timeout_s", names), "timeout_ms");
  EXPECT_EQ(nearest("timeout_sec", names), "timeout_ms");
  EXPECT_EQ(nearest("in-flight", names), "in_flight");
  EXPECT_EQ(nearest("MODE", names), "mode");
  EXPECT_EQ(nearest("colour", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
}

TEST(ConfigSchema, QuoteEscapesAndCutsAtAWholeCharacter) {
  EXPECT_EQ(quote("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\x01\"");
  std::string text(59, 'a');
  EXPECT_EQ(quote(text + "\xC3\xA9"), "\"" + text + "..\"");
}

TEST(ConfigSchema, RefusedPropertiesMatchByNamePrefixAndSuffix) {
  EXPECT_TRUE(refused_property("enable.auto.commit", false));
  EXPECT_TRUE(refused_property("rebalance_cb", false));
  EXPECT_TRUE(refused_property("test.mock.num.brokers", false));
  EXPECT_TRUE(refused_property("offset.store.method", false));
  EXPECT_TRUE(refused_property("session.timeout.ms", true));
  EXPECT_FALSE(refused_property("session.timeout.ms", false));
  EXPECT_FALSE(refused_property("client.id", true));
}

}  // namespace
}  // namespace tenure::app
