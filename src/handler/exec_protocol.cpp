#include "handler/exec_protocol.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace tenure::handler {
namespace {

using Json = nlohmann::json;

constexpr std::size_t class_bytes_max = 32;
constexpr std::chrono::milliseconds after_max = std::chrono::hours(24);

void append_number(std::string& out, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

void append_bytes(std::string& out, Bytes bytes) {
  if (bytes.null()) {
    out += "null";
  } else if (valid_utf8(bytes.text())) {
    out += "{\"text\":";
    append_json_string(out, bytes.text());
    out += '}';
  } else {
    out += "{\"base64\":\"";
    append_base64(out, bytes.text());
    out += "\"}";
  }
}

/// Null counts as absent.
const Json* find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<AttemptId> read_id(const Json& object) {
  const Json* id = find(object, "id");
  if (id == nullptr || !id->is_string()) return {};
  const auto& text = id->get_ref<const std::string&>();
  AttemptId value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  // "07" is not the id we gave out as "7".
  if (text.size() > 1 && text.front() == '0') return {};
  return value;
}

std::optional<OutcomeKind> read_kind(std::string_view text) {
  if (text == "done") return OutcomeKind::done;
  if (text == "retry") return OutcomeKind::retry;
  if (text == "reject") return OutcomeKind::reject;
  if (text == "park") return OutcomeKind::park;
  if (text == "stop") return OutcomeKind::stop;
  return {};
}

bool valid_class(std::string_view text) {
  return !text.empty() && text.size() <= class_bytes_max &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::variant<HelloLine, OutcomeLine, BadLine> read_hello(const Json& object) {
  const Json* protocol = find(object, "protocol");
  if (protocol == nullptr || !protocol->is_number_integer()) {
    return BadLine{"hello has no whole number \"protocol\"", {}};
  }
  if (*protocol != exec_protocol_version) {
    return BadLine{fmt::format("hello answers protocol {}; offered was {}", protocol->dump(),
                               exec_protocol_version),
                   {}};
  }
  const Json* name = find(object, "name");
  if (name != nullptr && !name->is_string()) return BadLine{"hello: \"name\" is no string", {}};
  return HelloLine{name == nullptr ? std::string() : name->get<std::string>()};
}

std::variant<HelloLine, OutcomeLine, BadLine> read_outcome(const Json& object) {
  const std::optional<AttemptId> id = read_id(object);
  if (!id) return BadLine{"outcome: \"id\" is missing or none that a record line carried", {}};
  const Json* word = find(object, "outcome");
  std::optional<OutcomeKind> kind;
  if (word != nullptr && word->is_string()) kind = read_kind(word->get_ref<const std::string&>());
  if (!kind) {
    return BadLine{"outcome: \"outcome\" must be done, retry, reject, park or stop", id};
  }
  std::optional<std::chrono::milliseconds> after;
  if (const Json* wish = find(object, "after_ms"); wish != nullptr) {
    if (!wish->is_number_integer() || (!wish->is_number_unsigned() && *wish < 0)) {
      return BadLine{"outcome: \"after_ms\" must be a whole number >= 0", id};
    }
    const auto limit = static_cast<std::uint64_t>(after_max.count());
    after = std::chrono::milliseconds(
        static_cast<std::int64_t>(std::min(wish->get<std::uint64_t>(), limit)));
  }
  std::string reason;
  if (const Json* text = find(object, "reason"); text != nullptr) {
    if (!text->is_string()) return BadLine{"outcome: \"reason\" is no string", id};
    reason = cut_utf8(text->get_ref<const std::string&>(), reason_bytes_max);
  }
  std::string failure_class;
  if (const Json* text = find(object, "class"); text != nullptr) {
    if (!text->is_string() || !valid_class(text->get_ref<const std::string&>())) {
      return BadLine{"outcome: \"class\" must match [a-z0-9_]{1,32}", id};
    }
    failure_class = text->get<std::string>();
  }
  return OutcomeLine{*id, Outcome(*kind, std::move(reason), std::move(failure_class), after)};
}

}  // namespace

std::string_view name(CancelCause cause) {
  switch (cause) {
    case CancelCause::revoked:
      return "revoked";
    case CancelCause::lost:
      return "lost";
    case CancelCause::timeout:
      return "timeout";
    case CancelCause::shutdown:
      return "shutdown";
  }
  return "";
}

void append_hello(std::string& out, const ExecOptions& options) {
  out += "{\"type\":\"hello\",\"protocol\":";
  append_number(out, exec_protocol_version);
  out += ",\"group\":";
  append_json_string(out, options.group);
  out += ",\"topics\":[";
  for (std::size_t i = 0; i < options.topics.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, options.topics[i]);
  }
  out += "],\"in_flight\":";
  append_number(out, options.in_flight);
  out += "}\n";
}

void append_record(std::string& out, AttemptId id, const Record& record, const Owner& owner,
                   std::chrono::milliseconds timeout) {
  out.reserve(out.size() + record.key().size() + record.value().size() + 512);
  fmt::format_to(std::back_inserter(out), "{{\"type\":\"record\",\"id\":\"{}\",\"topic\":", id);
  append_json_string(out, record.topic());
  fmt::format_to(std::back_inserter(out),
                 ",\"partition\":{},\"offset\":{},\"timestamp_ms\":", record.partition(),
                 record.offset());
  if (record.timestamp_ms() < 0) {
    out += "null";
  } else {
    append_number(out, record.timestamp_ms());
  }
  out += ",\"key\":";
  append_bytes(out, record.key());
  out += ",\"value\":";
  append_bytes(out, record.value());
  out += ",\"headers\":[";
  bool first = true;
  for (const auto& [header, value] : record.headers()) {
    out += first ? "[" : ",[";
    first = false;
    append_json_string(out, header);
    out += ',';
    append_bytes(out, value);
    out += ']';
  }
  out += "],\"identity\":";
  append_json_string(out, record.identity());
  fmt::format_to(
      std::back_inserter(out),
      ",\"attempt\":{},\"epoch\":{},\"grant\":{},\"topic_id\":\"{}\",\"scope\":", record.attempt(),
      owner.epoch().value(), owner.grant_id().value(), record.origin().topic_id.text());
  append_json_string(out, record.origin().scope);
  if (const std::optional<Fence> fence = owner.fence(); fence) {
    fmt::format_to(std::back_inserter(out), ",\"fence\":{{\"token\":{},\"owner\":\"{}\"}}",
                   fence->token.value(), fence->owner.text());
  } else {
    out += ",\"fence\":null";
  }
  fmt::format_to(std::back_inserter(out), ",\"timeout_ms\":{}}}\n", timeout.count());
}

void append_cancel(std::string& out, AttemptId id, CancelCause cause) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"type\":\"cancel\",\"id\":\"{}\",\"cause\":\"{}\"}}\n", id, name(cause));
}

void append_bye(std::string& out) {
  out += "{\"type\":\"bye\"}\n";
}

std::variant<HelloLine, OutcomeLine, BadLine> read_line(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return BadLine{object.is_discarded()
                       ? "not JSON; stdout is for the protocol, other text belongs on stderr"
                       : "not a JSON object",
                   {}};
  }
  const Json* type = find(object, "type");
  if (type == nullptr || !type->is_string()) return BadLine{"no string \"type\"", {}};
  const auto& word = type->get_ref<const std::string&>();
  if (word == "hello") return read_hello(object);
  if (word == "outcome") return read_outcome(object);
  return BadLine{"\"type\" must be hello or outcome", {}};
}

}  // namespace tenure::handler
