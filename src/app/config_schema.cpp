#include "app/config_schema.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tenure::app {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t gib = kib * kib * kib;
constexpr std::int64_t tib = kib * gib;
constexpr std::int64_t day_ms = 86'400'000;

constexpr std::array order_words = {Word{"key"}, Word{"partition"}, Word{"none"}};
constexpr std::array mode_words = {Word{"alive"}, Word{"per_record"}};
constexpr std::array on_error_words = {Word{"retry"}, Word{"reject"}, Word{"park"}, Word{"stop"}};
constexpr std::array exhausted_words = {Word{"reject"}, Word{"park"}, Word{"stop"}};
constexpr std::array kind_words = {Word{"transaction"}, Word{"claim", true}, Word{"idempotent"},
                                   Word{"kafka", true}};
constexpr std::array conflict_words = {Word{"reject"}, Word{"stop"}};
constexpr std::array doubt_words = {Word{"park"}, Word{"resend"}, Word{"probe"}};
constexpr std::array synchronous_words = {Word{"full"}, Word{"normal"}};
constexpr std::array partitions_words = {Word{"none"}, Word{"owned"}};
constexpr std::array format_words = {Word{"auto"}, Word{"text"}, Word{"json"}};
constexpr std::array level_words = {Word{"error"}, Word{"warn"}, Word{"info"}, Word{"debug"}};
constexpr std::array keys_words = {Word{"hash"}, Word{"none"}};
constexpr std::array reset_words = {Word{"earliest"}, Word{"latest"}, Word{"error"}};
constexpr std::array protocol_words = {Word{"classic"}, Word{"consumer"}};

constexpr std::string_view http_handler = "the HTTP handler";
constexpr std::string_view http_server = "the metrics and health server";
constexpr std::string_view dead_letters = "dead letters";
constexpr std::string_view inbox = "identity by header";
constexpr std::string_view claims = "effect kind claim";
constexpr std::string_view postgres = "the PostgreSQL store";

constexpr Key integer(std::string_view path, std::string_view fallback, std::int64_t min,
                      std::int64_t max, std::string_view doc) {
  Key key;
  key.path = path;
  key.type = Type::integer;
  key.fallback = fallback;
  key.min = min;
  key.max = max;
  key.doc = doc;
  return key;
}
constexpr Key other(std::string_view path, Type type, std::string_view fallback,
                    std::string_view doc) {
  Key key;
  key.path = path;
  key.type = type;
  key.fallback = fallback;
  key.doc = doc;
  return key;
}
constexpr Key word(std::string_view path, std::string_view fallback, std::span<const Word> words,
                   std::string_view doc) {
  Key key = other(path, Type::word, fallback, doc);
  key.words = words;
  return key;
}
/// A string or list that must be given and must not be empty.
constexpr Key needed(std::string_view path, Type type, std::string_view example,
                     std::string_view flag, std::string_view doc) {
  Key key = other(path, type, "", doc);
  key.required = true;
  key.min = 1;
  key.example = example;
  key.flag = flag;
  return key;
}
constexpr Key later(std::string_view reason, Key key) {
  key.stage = Stage::later;
  key.reason = reason;
  return key;
}
constexpr Key only_default(std::string_view reason, Key key) {
  key.stage = Stage::only_default;
  key.reason = reason;
  return key;
}
constexpr Key ruled(std::string_view rule, Key key) {
  key.default_rule = rule;
  return key;
}
constexpr Key flagged(std::string_view flag, Key key) {
  key.flag = flag;
  return key;
}
constexpr Key not_empty(Key key) {
  key.min = 1;
  return key;
}
constexpr Key live(Key key) {
  key.reload = Reload::live;
  return key;
}
constexpr Key version_key() {
  Key key = integer("version", "1", 1, 1, "version of this format");
  key.required = true;
  key.example = "version: 1";
  return key;
}
constexpr Key lanes_key() {
  Key key = integer("lanes", "auto", 1, 1024,
                    "sequential sub-streams of a partition at the store; a stored rule");
  key.type = Type::auto_integer;
  return key;
}
constexpr Key jitter_key() {
  Key key = integer("retry.jitter", "0.2", 0, 1, "random part of a backoff");
  key.type = Type::number;
  return key;
}

constexpr std::string_view not_sent = "not sent under group.protocol consumer";

constexpr std::array table = {
    version_key(),
    // Client properties: verbatim. These lines exist for a default or because a check reads them.
    needed("kafka.bootstrap.servers", Type::string, "bootstrap.servers: \"b1:9092\"", "-b",
           "brokers to start from, host:port separated by commas"),
    needed("kafka.group.id", Type::string, "group.id: billing", "-g", "consumer group"),
    word("kafka.group.protocol", "classic", protocol_words,
         "rebalance protocol; consumer is KIP-848"),
    ruled(not_sent, other("kafka.partition.assignment.strategy", Type::string, "cooperative-sticky",
                          "assignors: range, roundrobin, cooperative-sticky")),
    word("kafka.auto.offset.reset", "earliest", reset_words,
         "start without a committed offset; applied by Tenure, for nothing else (F7)"),
    integer("kafka.fetch.wait.max.ms", "100", 0, 300'000, "longest wait of a broker for data"),
    integer("kafka.fetch.queue.backoff.ms", "10", 0, 300'000, "pause of a full fetch queue"),
    ruled("20000, or window.records if that is larger",
          integer("kafka.queued.min.messages", "20000", 1, 10'000'000,
                  "records the client fetches ahead per partition")),
    // The ends leave room for what must stand below or fit in: heartbeat < session, and the least
    // drain (0 + commit 100 + one heartbeat) in a rebalance.
    ruled(not_sent, integer("kafka.heartbeat.interval.ms", "1000", 1, 3'599'999,
                            "heartbeats; others learn of a rebalance by them")),
    ruled(not_sent, integer("kafka.session.timeout.ms", "45000", 2, 3'600'000,
                            "silence after which the group takes the partitions away")),
    integer("kafka.max.poll.interval.ms", "300000", 101, day_ms,
            "longest a rebalance may take; bounds the drain (R7)"),
    needed("topics", Type::list, "topics: [orders]", "-t", "topic names or ^regex"),
    flagged("--order", word("order", "key", order_words, "what is handled one after the other")),
    ruled("8; with order partition 1", lanes_key()),
    flagged("--concurrency",
            integer("concurrency", "64", 1, 65'536, "handlers at once in the process")),
    integer("window.records", "1024", 1, gib, "unfinished records per partition"),
    integer("window.bytes", "16777216", 65'536, tib, "bytes of held payloads per partition"),
    integer("window.records_total", "65536", 1, gib, "unfinished records of all partitions"),
    integer("window.bytes_total", "268435456", 65'536, tib,
            "bytes of held payloads of all partitions"),
    needed("handler.exec.command", Type::list, "command: [./charge.py]", "--exec",
           "program and arguments; no shell"),
    word("handler.exec.mode", "alive", mode_words, "kept alive, or one process a record"),
    integer("handler.exec.processes", "4", 1, 256, "processes"),
    integer("handler.exec.in_flight", "16", 1, 4096, "records at once in each process"),
    integer("handler.exec.timeout_ms", "20000", 10, day_ms, "of one attempt"),
    integer("handler.exec.start_ms", "10000", 100, 600'000, "until the program says hello"),
    integer("handler.exec.cancel_grace_ms", "2000", 0, 60'000,
            "between a timeout's cancel and the kill"),
    integer("handler.exec.line_bytes", "8388608", 1024, gib, "longest line of the protocol"),
    word("handler.exec.on_error", "retry", on_error_words, "outcome of any other exit code"),
    later(http_handler, needed("handler.http.url", Type::string, "url: \"https://svc/charge\"",
                               "--http", "where records are posted")),
    later(http_handler, integer("handler.http.timeout_ms", "20000", 10, day_ms, "of one attempt")),
    later(http_handler,
          integer("handler.http.connect_ms", "2000", 10, 60'000, "to open a connection")),
    later(http_handler, other("handler.http.headers", Type::map, "{}", "headers sent")),
    later(http_handler,
          other("handler.http.forward", Type::list, "[traceparent]", "record headers sent on")),
    later(http_handler, other("handler.http.ca_file", Type::string, "", "CA certificates")),
    later(http_handler, other("handler.http.cert_file", Type::string, "", "client certificate")),
    later(http_handler, other("handler.http.key_file", Type::string, "", "client key")),
    needed("handler.sql.statements", Type::list,
           "statements: [\"insert into t values (:key, :value)\"]", "--sql",
           "statements of one record, in order"),
    other("handler.sql.text", Type::boolean, "true", "key and value as text; false = bytes"),
    integer("handler.sql.expect_rows", "0", 0, 2 * gib,
            "rows each statement must change, else reject no_rows"),
    integer("retry.attempts", "8", 1, 1000, "attempts of a record per grant"),
    integer("retry.backoff_min_ms", "200", 1, 3'600'000, "first backoff"),
    integer("retry.backoff_max_ms", "30000", 1, 3'600'000, "longest backoff"),
    jitter_key(),
    integer("retry.waiting_max", "10000", 1, kib* kib,
            "records that wait for another attempt; above it admission stops"),
    word("retry.exhausted", "reject", exhausted_words, "outcome after the last attempt"),
    later(dead_letters, other("dead_letter.topic", Type::string, "{topic}.dlq",
                              "where rejected records go; \"\" = none")),
    ruled("transaction; idempotent without a store and for exec, http",
          word("effect.kind", "transaction", kind_words, "how one business result is kept")),
    ruled("group.id",
          not_empty(other("effect.scope", Type::string, "",
                          "name of the effects at the store; keep it when the group is renamed"))),
    only_default(inbox, other("effect.identity", Type::string, "offset",
                              "name of a record's business operation")),
    only_default(inbox, integer("effect.identity_window_ms", "604800000", 60'000, tib,
                                "stream time a header identity is remembered")),
    only_default(inbox, word("effect.on_conflict", "reject", conflict_words,
                             "same identity, other fingerprint")),
    later(claims, integer("effect.claim.lease_ms", "60000", 1000, day_ms, "life of a claim")),
    later(claims, integer("effect.claim.resend_within_ms", "0", 0, tib,
                          "window in which a call may be repeated; 0 = never")),
    later(claims, word("effect.claim.on_doubt", "park", doubt_words, "after an unknown result")),
    later(postgres, needed("store.postgres.dsn", Type::string, "dsn: \"${cred:pg}\"", "",
                           "connection string")),
    later(postgres, other("store.postgres.schema", Type::string, "tenure", "schema of our tables")),
    later(postgres, integer("store.postgres.connections", "8", 1, 1024, "connections")),
    later(postgres, integer("store.postgres.statement_timeout_ms", "10000", 100, 600'000,
                            "statement_timeout of our sessions")),
    later(postgres, integer("store.postgres.lock_timeout_ms", "2000", 100, 600'000,
                            "lock_timeout of our sessions")),
    later(postgres, integer("store.postgres.idle_in_transaction_ms", "5000", 100, 600'000,
                            "idle_in_transaction_session_timeout of our sessions")),
    later(postgres, integer("store.postgres.tcp_user_timeout_ms", "10000", 100, 600'000,
                            "tcp_user_timeout of our connections")),
    needed("store.sqlite.path", Type::string, "path: ./tenure.db", "", "database file"),
    word("store.sqlite.synchronous", "full", synchronous_words,
         "durability of effects; acquisition is always full"),
    other("store.memory", Type::block, "{}", "a store that ends with the process; for tests"),
    other("store.create", Type::boolean, "false", "create the tables at start"),
    integer("batch.records", "100", 1, 10'000, "records of a lane in one transaction"),
    integer("batch.wait_ms", "5", 0, 60'000, "longest wait for a fuller batch, per lane"),
    integer("commit.interval_ms", "1000", 10, 600'000, "between offset commits"),
    integer("commit.metadata_bytes", "3072", 0, 4096, "completion map in a commit; 0 = none"),
    other("commit.start_position", Type::boolean, "true",
          "commit the resolved start of a partition that has no committed offset (C8)"),
    integer("drain.budget_ms", "5000", 0, 3'600'000, "for started records after a revocation"),
    integer("drain.commit_ms", "2000", 100, 60'000, "for the commit after it"),
    integer("drain.margin_ms", "1000", 0, 60'000, "kept free of the rebalance timeout (R7)"),
    integer("shutdown.budget_ms", "20000", 0, 3'600'000, "for started records at shutdown"),
    integer("shutdown.close_ms", "3000", 100, 60'000, "for closing the client"),
    only_default(http_server, other("http.listen", Type::string, "", "health, metrics and state")),
    only_default(http_server, other("http.page", Type::string, "", "live page")),
    only_default(http_server, integer("http.page_clients", "8", 1, 256, "page clients at once")),
    only_default(http_server, other("http.admin_token", Type::string, "", "opens the page's acts")),
    only_default(http_server,
                 word("metrics.partitions", "none", partitions_words, "partition label on gauges")),
    only_default(http_server,
                 other("metrics.client", Type::boolean, "false", "gauges of the client")),
    word("log.format", "auto", format_words, "text on a terminal, else JSON"),
    live(word("log.level", "info", level_words, "least severe level that is logged")),
    word("log.keys", "hash", keys_words, "how a record's key is logged"),
};

constexpr std::string_view ours = "Tenure commits what is proven and nothing else (C4); remove it";
constexpr std::string_view events = "Tenure owns the client's events and callbacks; remove it";
constexpr std::string_view broker_decides =
    "under group.protocol consumer the broker decides it; remove it";

constexpr std::array refused = {
    RefusedProperty{"enable.auto.commit", ours},
    RefusedProperty{"auto.commit.enable", ours},
    RefusedProperty{"auto.commit.interval.ms", ours},
    RefusedProperty{"enable.auto.offset.store", ours},
    RefusedProperty{"offset.store.*", ours},
    RefusedProperty{"enable.partition.eof",
                    "Tenure finds the end of a partition itself (F3); remove it"},
    RefusedProperty{"*_cb", events},
    RefusedProperty{"opaque", events},
    RefusedProperty{"enabled_events", events},
    RefusedProperty{"log.queue", events},
    RefusedProperty{"default_topic_conf", "set topic properties directly under kafka"},
    RefusedProperty{"ssl_engine_callback_data", events},
    RefusedProperty{"metadata.broker.list", "another name of bootstrap.servers; use that"},
    RefusedProperty{"test.mock.*", "a mock cluster has no group of yours; try tenure demo"},
    RefusedProperty{"session.timeout.ms", broker_decides, true},
    RefusedProperty{"heartbeat.interval.ms", broker_decides, true},
    RefusedProperty{"partition.assignment.strategy",
                    "under group.protocol consumer the broker assigns; remove it, or use "
                    "group.remote.assignor",
                    true},
    RefusedProperty{"group.protocol.type", broker_decides, true},
};

bool is_client_property(const Key& key) {
  return key.path.starts_with("kafka.");
}

bool is_milliseconds(const Key& key) {
  return key.path.ends_with("_ms") || key.path.ends_with(".ms");
}
bool is_bytes(const Key& key) {
  return key.path.ends_with("bytes") || key.path.ends_with("bytes_total");
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), "%g", value);
  return {buffer.data(), static_cast<std::size_t>(length)};
}

std::string words_text(const Key& key, bool later_too) {
  std::string list;
  for (const Word& one : key.words) {
    if (one.later && !later_too) continue;
    if (!list.empty()) list += ", ";
    list += one.text;
  }
  return list;
}

enum class Digits : std::uint8_t { good, not_a_number, leading_zero, too_large };

Digits read_integer(std::string_view text, std::int64_t& value) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) {
        return std::isdigit(static_cast<unsigned char>(c)) != 0;
      })) {
    return Digits::not_a_number;
  }
  // YAML 1.1 readers take 010 for 8: no reader may have to guess.
  if (digits.size() > 1 && digits.front() == '0') return Digits::leading_zero;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? Digits::good : Digits::too_large;
}

/// "20s" in a key of milliseconds, "16MiB" in a key of bytes: what was meant.
std::optional<std::int64_t> converted(const Key& key, std::string_view text) {
  struct Unit {
    std::string_view name;
    double factor;
  };
  static constexpr std::array times = {Unit{"ms", 1},      Unit{"s", 1e3},    Unit{"sec", 1e3},
                                       Unit{"m", 60e3},    Unit{"min", 60e3}, Unit{"h", 3600e3},
                                       Unit{"d", 86'400e3}};
  static constexpr std::array sizes = {Unit{"b", 1},           Unit{"k", 1024},
                                       Unit{"kb", 1e3},        Unit{"kib", 1024},
                                       Unit{"m", 1'048'576},   Unit{"mb", 1e6},
                                       Unit{"mib", 1'048'576}, Unit{"g", 1'073'741'824},
                                       Unit{"gb", 1e9},        Unit{"gib", 1'073'741'824}};
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  double amount = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, amount);
  if (error != std::errc() || stop != text.data() + end) return std::nullopt;
  std::string name(text.substr(std::min(text.find_first_not_of(' ', end), text.size())));
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  const std::span<const Unit> units = is_milliseconds(key) ? std::span<const Unit>(times)
                                      : is_bytes(key)      ? std::span<const Unit>(sizes)
                                                           : std::span<const Unit>();
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const double value = amount * unit.factor;
    if (value != std::floor(value) || value < static_cast<double>(key.min) ||
        value > static_cast<double>(key.max)) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value);
  }
  return std::nullopt;
}

/// Built in place: under sanitizers g++ 12 mistakes a moved variant for an uninitialised one.
template <class T>
Result<Value> good(T value) {
  return Result<Value>(tl::in_place, std::in_place_type<T>, std::move(value));
}

tl::unexpected<Error> wrong(const Key& key, std::string_view text, bool hide,
                            const std::string& hint = {}) {
  std::string message = "expected " + accepted(key) + ", got ";
  message += hide ? "another value" : quote(text);
  if (!hint.empty()) message += "; " + hint;
  return fail(Code::invalid, message);
}

tl::unexpected<Error> out_of_range(const Key& key, std::string_view text,
                                   std::string_view nearest) {
  return fail(Code::invalid, std::string(text.substr(0, 40)) + " is out of range; accepted: " +
                                 accepted(key) + "; the nearest is " + std::string(nearest));
}

Result<Value> parse_integer(const Key& key, std::string_view text, bool quoted, bool hide) {
  if (key.type == Type::auto_integer && text == "auto") return good(std::string("auto"));
  std::int64_t value = 0;
  const Digits digits = read_integer(text, value);
  if (digits == Digits::leading_zero) return wrong(key, text, hide, "no leading zero");
  if (digits == Digits::not_a_number) {
    if (const auto meant = converted(key, text)) {
      return wrong(key, text, hide, "write " + std::to_string(*meant));
    }
    if (text.starts_with("${")) {
      return wrong(key, text, hide,
                   "references give texts only; use an environment variable TENURE_..");
    }
    return wrong(key, text, hide);
  }
  if (quoted && !is_client_property(key)) return wrong(key, text, hide, "remove the quotes");
  const bool below = digits == Digits::too_large ? text.starts_with('-') : value < key.min;
  if (below) return out_of_range(key, text, std::to_string(key.min));
  if (digits == Digits::too_large || value > key.max) {
    return out_of_range(key, text, std::to_string(key.max));
  }
  return good(value);
}

Result<Value> parse_number(const Key& key, std::string_view text, bool quoted, bool hide) {
  const bool shaped = !text.empty() && text.find_first_not_of("-.0123456789") == text.npos;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!shaped || error != std::errc() || end != text.data() + text.size()) {
    return wrong(key, text, hide);
  }
  if (quoted) return wrong(key, text, hide, "remove the quotes");
  if (value < static_cast<double>(key.min)) {
    return out_of_range(key, text, number_text(static_cast<double>(key.min)));
  }
  if (value > static_cast<double>(key.max)) {
    return out_of_range(key, text, number_text(static_cast<double>(key.max)));
  }
  return good(value);
}

Result<Value> parse_boolean(const Key& key, std::string_view text, bool quoted, bool hide) {
  const bool yes = text == "true";
  if (yes || text == "false") {
    if (quoted) return wrong(key, text, hide, "remove the quotes");
    return good(yes);
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (lower == "yes" || lower == "on" || lower == "1" || lower == "y" || lower == "true") {
    return wrong(key, text, hide, "write true");
  }
  if (lower == "no" || lower == "off" || lower == "0" || lower == "n" || lower == "false") {
    return wrong(key, text, hide, "write false");
  }
  return wrong(key, text, hide);
}

Result<Value> parse_word(const Key& key, std::string_view text, bool hide) {
  std::vector<std::string_view> names;
  for (const Word& one : key.words) {
    if (one.text == text) {
      if (one.later) {
        return fail(Code::invalid, quote(text) + " comes in a later version; accepted now: " +
                                       words_text(key, false));
      }
      return good(std::string(text));
    }
    names.push_back(one.text);
  }
  const auto meant = nearest(text, names);
  return wrong(key, text, hide, meant ? "did you mean " + quote(*meant) + "?" : "");
}

}  // namespace

std::span<const Key> keys() {
  return table;
}

const Key* find_key(std::string_view path) {
  const auto found =
      std::find_if(table.begin(), table.end(), [path](const Key& key) { return key.path == path; });
  return found == table.end() ? nullptr : &*found;
}

bool is_section(std::string_view path) {
  return std::any_of(table.begin(), table.end(), [path](const Key& key) {
    return key.path.size() > path.size() && key.path.starts_with(path) &&
           key.path[path.size()] == '.' && !path.starts_with("kafka.");
  });
}

std::vector<std::string_view> names_below(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : table) {
    std::string_view rest = key.path;
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest.size() <= section.size() ||
          rest[section.size()] != '.') {
        continue;
      }
      rest.remove_prefix(section.size() + 1);
    }
    const std::string_view name = section == "kafka" ? rest : rest.substr(0, rest.find('.'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string accepted(const Key& key) {
  const std::string range = std::to_string(key.min) + ".." + std::to_string(key.max);
  const std::string_view unit = is_milliseconds(key) ? " (milliseconds)"
                                : is_bytes(key)      ? " (bytes)"
                                                     : "";
  switch (key.type) {
    case Type::boolean:
      return "true or false";
    case Type::integer:
      return "an integer " + range + std::string(unit);
    case Type::auto_integer:
      return "auto or an integer " + range;
    case Type::number:
      return "a number " + range;
    case Type::word:
      return "one of " + words_text(key, false);
    case Type::string:
      return key.min > 0 ? "a text that is not empty" : "a text";
    case Type::list:
      return key.min > 0 ? "a list of texts that is not empty" : "a list of texts";
    case Type::map:
      return "a mapping of texts";
    case Type::block:
      return "a section; write {}";
  }
  return "another value";
}

Result<Value> parse_scalar(const Key& key, std::string_view text, bool quoted, bool hide) {
  switch (key.type) {
    case Type::boolean:
      return parse_boolean(key, text, quoted, hide);
    case Type::integer:
    case Type::auto_integer:
      return parse_integer(key, text, quoted, hide);
    case Type::number:
      return parse_number(key, text, quoted, hide);
    case Type::word:
      return parse_word(key, text, hide);
    case Type::string:
      if (static_cast<std::int64_t>(text.size()) < key.min) return wrong(key, text, hide);
      return good(std::string(text));
    case Type::block:
      if (text.empty() || text == "{}") return good(true);
      return wrong(key, text, hide);
    case Type::list:
    case Type::map:
      return wrong(key, text, hide);
  }
  return wrong(key, text, hide);
}

Value default_value(const Key& key) {
  if (key.type == Type::list || key.type == Type::map) return std::vector<std::string>();
  if (key.type == Type::string) return std::string(key.fallback);
  // The table's own defaults parse: a test reads every line of it.
  return parse_scalar(key, key.fallback, false, false).value();
}

std::optional<std::string> refused_property(std::string_view property, bool consumer) {
  for (const RefusedProperty& one : refused) {
    if (one.only_consumer && !consumer) continue;
    const std::string_view pattern = one.pattern;
    const bool hit = pattern.ends_with('*')
                         ? property.starts_with(pattern.substr(0, pattern.size() - 1))
                     : pattern.starts_with('*') ? property.ends_with(pattern.substr(1))
                                                : property == pattern;
    if (hit) return std::string(one.reason);
  }
  return std::nullopt;
}

std::span<const RefusedProperty> refused_properties() {
  return refused;
}

std::optional<std::string_view> nearest(std::string_view text,
                                        std::span<const std::string_view> candidates) {
  const auto fold = [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  std::string typed(text.substr(0, 64));
  std::transform(typed.begin(), typed.end(), typed.begin(), fold);
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    // Damerau-Levenshtein, adjacent letters swapped count once: the common slips of a typist.
    const std::size_t n = typed.size();
    const std::size_t m = candidate.size();
    std::vector<std::vector<std::size_t>> d(n + 1, std::vector<std::size_t>(m + 1));
    for (std::size_t i = 0; i <= n; ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= m; ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= n; ++i) {
      for (std::size_t j = 1; j <= m; ++j) {
        const bool same = typed[i - 1] == fold(candidate[j - 1]);
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0U : 1U)});
        if (i > 1 && j > 1 && typed[i - 1] == fold(candidate[j - 2]) &&
            typed[i - 2] == fold(candidate[j - 1])) {
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
      }
    }
    std::size_t distance = d[n][m];
    // "timeout" for timeout_ms, "timeout_s" for timeout_ms: the unit was forgotten or guessed.
    const std::size_t unit = candidate.rfind("_ms");
    if (unit != std::string_view::npos && unit >= 4 &&
        typed.starts_with(candidate.substr(0, unit)) && typed.size() <= unit + 8) {
      distance = 1;
    }
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result = "\"";
  std::size_t end = std::min(text.size(), longest);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(byte));
      result += escape.data();
    } else {
      result += c;
    }
  }
  if (end < text.size()) result += "..";
  return result + "\"";
}

}  // namespace tenure::app
