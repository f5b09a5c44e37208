#include "demo/member_line.hpp"

#include <nlohmann/json.hpp>

#include <variant>

namespace tenure::demo {
namespace {

using nlohmann::json;

std::optional<json> parsed(std::string_view line) {
  json value = json::parse(line, nullptr, false);
  if (!value.is_object()) return {};
  return value;
}

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_line(const MemberSettings& s) {
  return dumped({{"name", s.name},
                 {"database", s.database},
                 {"topic", s.topic},
                 {"group", s.group},
                 {"kafka", s.kafka},
                 {"plain", s.plain},
                 {"seed", s.seed},
                 {"work_ms", s.work_ms},
                 {"slow_ms", s.slow_ms}});
}

std::optional<MemberSettings> settings_of(std::string_view line) {
  const std::optional<json> value = parsed(line);
  if (!value) return {};
  MemberSettings s;
  try {
    s.name = value->at("name");
    s.database = value->at("database");
    s.topic = value->at("topic");
    s.group = value->at("group");
    s.kafka = value->at("kafka").get<std::map<std::string, std::string>>();
    s.plain = value->at("plain");
    s.seed = value->at("seed");
    s.work_ms = value->at("work_ms");
    s.slow_ms = value->at("slow_ms");
  } catch (const json::exception&) {
    return {};
  }
  return s;
}

std::string to_line(const MemberEvent& event) {
  json value = {{"name", event.name}};
  if (event.partition >= 0) value["partition"] = event.partition;
  if (event.offset >= 0) value["offset"] = event.offset;
  if (event.grant != 0) value["grant"] = event.grant;
  if (event.token != 0) value["token"] = event.token;
  if (event.count != 0) value["count"] = event.count;
  if (event.number > 0) value["number"] = event.number;
  if (!event.text.empty()) value["text"] = event.text;
  if (event.late) value["late"] = true;
  return dumped(value);
}

std::optional<MemberEvent> event_of(std::string_view line) {
  const std::optional<json> value = parsed(line);
  if (!value) return {};
  MemberEvent event;
  try {
    event.name = value->at("name");
    event.partition = value->value("partition", -1);
    event.offset = value->value("offset", std::int64_t{-1});
    event.grant = value->value("grant", std::int64_t{0});
    event.token = value->value("token", std::int64_t{0});
    event.count = value->value("count", std::int64_t{0});
    event.number = value->value("number", 0.0);
    event.text = value->value("text", "");
    event.late = value->value("late", false);
  } catch (const json::exception&) {
    return {};
  }
  return event;
}

std::optional<MemberEvent> member_event(const Event& event) {
  switch (event.name) {
    case EventName::group_joined:
    case EventName::group_left:
    case EventName::group_fenced:
    case EventName::client_fatal:
    case EventName::owner_acquired:
    case EventName::owner_draining:
    case EventName::owner_drained:
    case EventName::owner_retired:
    case EventName::owner_released:
    case EventName::owner_lost:
    case EventName::owner_suspect:
    case EventName::record_late:
    case EventName::record_skipped:
    case EventName::record_parked:
    case EventName::effect_refused:
    case EventName::commit_rejected:
    case EventName::commit_unresolved:
    case EventName::store_unavailable:
    case EventName::store_recovered:
      break;
    default:
      return {};
  }
  MemberEvent out;
  out.name = traits(event.name).name;
  // Nothing committed is not "committed 0".
  if (event.name == EventName::owner_retired) out.count = -1;
  if (event.has_owner) {
    out.partition = event.partition.value();
    out.grant = static_cast<std::int64_t>(event.grant.value());
  }
  for (const Field& field : event.fields) {
    const auto* number = std::get_if<std::int64_t>(&field.value);
    const auto* fraction = std::get_if<double>(&field.value);
    const auto* text = std::get_if<std::string_view>(&field.value);
    if (number != nullptr) {
      if (field.key == "token") out.token = *number;
      if (field.key == "offset" || field.key == "frontier" || field.key == "progress") {
        out.offset = *number;
      }
      if (field.key == "in_flight" || field.key == "count" || field.key == "committed" ||
          field.key == "left") {
        out.count = *number;
      }
    } else if (fraction != nullptr) {
      if (field.key == "took_ms" || field.key == "budget_ms") out.number = *fraction;
    } else if (text != nullptr) {
      if (field.key == "reason" || field.key == "result" || field.key == "cause" ||
          field.key == "by" || field.key == "error") {
        out.text = *text;
      }
    }
  }
  return out;
}

}  // namespace tenure::demo
