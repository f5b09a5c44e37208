// The configuration of one process: typed, checked, and with the origin of every value.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/config_schema.hpp"
#include "app/secret.hpp"
#include "app/yaml_tree.hpp"
#include "tenure/event.hpp"
#include "tenure/ids.hpp"
#include "tenure/outcome.hpp"

namespace tenure::app {

/// Where a value came from; a later word wins over an earlier one.
enum class Origin : std::uint8_t { fallback, builder, file, environment, flag };

/// One effective value.
struct Setting {
  Value value;    ///< as used
  Value written;  ///< as written: references not replaced
  bool secret = false;
  bool only_references = false;  ///< `written` holds no part of the secret
  Origin origin = Origin::fallback;
  std::string at;  ///< FILE:LINE:COLUMN, the variable or the flag; empty for a default
};
/// By key path. Only what applies: the chosen handler, the chosen store, no key of a later version.
using Settings = std::map<std::string, Setting, std::less<>>;

enum class OffsetReset : std::uint8_t { earliest, latest, error };
enum class GroupProtocol : std::uint8_t { classic, consumer };
enum class EffectKind : std::uint8_t { transaction, idempotent };
enum class LogFormat : std::uint8_t { automatic, text, json };
enum class LoggedKeys : std::uint8_t { hash, none };

/// A value; made by load_config only. Ranges and units: the schema table.
struct Config {
  using Milliseconds = std::chrono::milliseconds;

  struct Kafka {
    /// For the client, verbatim: bootstrap.servers, group.id and our defaults included. Not in it:
    /// auto.offset.reset (we apply it) and what the group protocol does not take.
    std::map<std::string, std::string> properties;
    std::string bootstrap_servers;
    std::string group_id;
    GroupProtocol group_protocol = GroupProtocol::classic;
    OffsetReset auto_offset_reset = OffsetReset::earliest;
    Milliseconds max_poll_interval{};
    Milliseconds session_timeout{};     ///< under `consumer` the broker's, here the default
    Milliseconds heartbeat_interval{};  ///< under `consumer` the broker's, here the default
  };
  struct Window {
    std::uint32_t records = 0;
    std::uint64_t bytes = 0;
    std::uint32_t records_total = 0;
    std::uint64_t bytes_total = 0;
  };
  struct Exec {
    enum class Mode : std::uint8_t { alive, per_record };
    std::vector<std::string> command;
    Mode mode = Mode::alive;
    std::uint32_t processes = 0;
    std::uint32_t in_flight = 0;  ///< of each process
    Milliseconds timeout{};
    Milliseconds start{};
    Milliseconds cancel_grace{};
    std::uint32_t line_bytes = 0;
    OutcomeKind on_error = OutcomeKind::retry;
  };
  struct Sql {
    std::vector<std::string> statements;
    bool text = true;
    std::uint32_t expect_rows = 0;
  };
  struct Retry {
    std::uint32_t attempts = 0;
    Milliseconds backoff_min{};
    Milliseconds backoff_max{};
    double jitter = 0;
    std::uint32_t waiting_max = 0;
    OutcomeKind exhausted = OutcomeKind::reject;
  };
  struct Effect {
    EffectKind kind = EffectKind::transaction;
    std::string scope;
  };
  struct Sqlite {
    enum class Synchronous : std::uint8_t { full, normal };
    std::string path;
    Synchronous synchronous = Synchronous::full;
  };
  struct Memory {};
  struct Batch {
    std::uint32_t records = 0;
    Milliseconds wait{};
  };
  struct Commit {
    Milliseconds interval{};
    std::uint32_t metadata_bytes = 0;  ///< no completion map is written yet
    bool start_position = true;
  };
  struct Drain {
    Milliseconds budget{};
    Milliseconds commit{};
    Milliseconds margin{};
  };
  struct Shutdown {
    Milliseconds budget{};
    Milliseconds close{};
  };
  struct Log {
    LogFormat format = LogFormat::automatic;
    Level level = Level::info;
    LoggedKeys keys = LoggedKeys::hash;
  };

  Kafka kafka;
  std::vector<std::string> topics;
  Order order = Order::key;
  std::optional<std::uint32_t> lanes;  ///< empty = auto
  std::uint32_t concurrency = 0;
  Window window;
  std::variant<std::monostate, Exec, Sql> handler;  ///< none in C++ programs
  Retry retry;
  Effect effect;
  std::variant<std::monostate, Sqlite, Memory> store;
  bool store_create = false;
  Batch batch;
  Commit commit;
  Drain drain;
  Shutdown shutdown;
  Log log;
  Settings settings;

  /// Lanes of a store domain: as configured, else 8, with order partition 1.
  [[nodiscard]] std::uint32_t lane_count() const {
    return lanes.value_or(order == Order::partition ? 1U : 8U);
  }
  [[nodiscard]] bool has_store() const { return !std::holds_alternative<std::monostate>(store); }
};

/// One thing that is wrong, or odd.
struct Fault {
  enum class Severity : std::uint8_t { error, warning };
  Severity severity = Severity::error;
  std::string where;  ///< file, variable or flag
  Position at;        ///< in a file
  std::string text;   ///< with the accepted range and a suggestion; never a secret
  std::string key;    ///< dotted path, or empty
};
/// `FILE:LINE:COLUMN: error|warning: TEXT [KEY.PATH]`
std::string to_string(const Fault& fault);

/// A value from a flag or from a C++ program.
struct Given {
  std::string key;                  ///< dotted path; client properties as kafka.PROPERTY
  std::vector<std::string> values;  ///< one; for a list, its items
  std::string name;                 ///< for messages: "--order", "-X", "Builder::order"
};

/// How many handler blocks a program takes.
enum class HandlerRule : std::uint8_t {
  one,          ///< `tenure run`
  at_most_one,  ///< verbs that only look
  none,         ///< C++ programs: the handler is in the code
};

struct ConfigSources {
  std::optional<std::string> file;  ///< YAML or JSON
  std::vector<Given> flags;
  std::vector<Given> builder;
  Environment environment;  ///< TENURE_SECTION__KEY, and what ${env:..} and ${cred:..} look up
  HandlerRule handlers = HandlerRule::one;
  /// Asks the linked client whether it takes a property; the answer is its complaint. May be empty.
  std::function<std::optional<std::string>(const std::string& property, const std::string& value)>
      check_property;
};

struct LoadedConfig {
  std::optional<Config> config;  ///< empty when any fault is an error
  std::vector<Fault> faults;     ///< all at once: file order, then variables, flags, builder
};

/// Reads, merges (flag > environment > file > builder > default) and checks. Every source is
/// checked, even where another one wins. Never throws for bad input; reads the file and the
/// secrets it refers to; any thread.
LoadedConfig load_config(const ConfigSources& sources);

/// Keys whose values differ and which do not take effect without a restart, sorted. Empty: a
/// reload may go on. Only log.level is live.
std::vector<std::string> restart_keys(const Config& old_config, const Config& new_config);

/// TENURE_SECTION__KEY of a key path; in client properties `.` is `_`.
std::string environment_name(std::string_view key_path);

}  // namespace tenure::app
