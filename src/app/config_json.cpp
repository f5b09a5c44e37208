#include "app/config_json.hpp"

#include <openssl/evp.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/assert.hpp"

namespace tenure::app {
namespace {

using nlohmann::json;

json to_json(const Value& value) {
  return std::visit([](const auto& one) { return json(one); }, value);
}

json block() {
  return json::object();
}

/// A value as the file would hold it: what looks like a reference but is none gets its `$$`.
std::string loadable(const Setting& setting) {
  std::string text = shown(setting).dump();
  if (setting.secret) return text;
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3)) {
    text.insert(at, "$");
  }
  return text;
}

/// The object at a section path, made on the way.
json& section(json& root, std::string_view path) {
  json* at = &root;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    json& next = (*at)[std::string(path.substr(0, dot))];
    if (next.is_null()) next = block();
    at = &next;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return *at;
}

struct Split {
  std::string_view section;
  std::string_view name;
};

/// Client properties keep the dots of their names.
Split split(std::string_view path) {
  if (path.starts_with("kafka.")) return {"kafka", path.substr(6)};
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

json default_json(const Key& key) {
  if (key.type == Type::map || key.type == Type::block) return block();
  if (key.type != Type::list) return to_json(default_value(key));
  return json::array();
}

json property_schema(const Key& key) {
  json schema = block();
  schema["description"] = key.doc;
  switch (key.type) {
    case Type::boolean:
      schema["type"] = "boolean";
      break;
    case Type::integer:
      schema["type"] = "integer";
      schema["minimum"] = key.min;
      schema["maximum"] = key.max;
      break;
    case Type::auto_integer:
      schema["oneOf"] = json::array(
          {{{"const", "auto"}}, {{"type", "integer"}, {"minimum", key.min}, {"maximum", key.max}}});
      break;
    case Type::number:
      schema["type"] = "number";
      schema["minimum"] = key.min;
      schema["maximum"] = key.max;
      break;
    case Type::word:
      schema["enum"] = json::array();
      for (const Word& word : key.words) {
        if (!word.later) schema["enum"].push_back(word.text);
      }
      break;
    case Type::string:
      schema["type"] = "string";
      if (key.min > 0) schema["minLength"] = key.min;
      break;
    case Type::list:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      if (key.min > 0) schema["minItems"] = key.min;
      break;
    case Type::map:
      schema["type"] = "object";
      schema["additionalProperties"] = {{"type", "string"}};
      break;
    case Type::block:
      schema["type"] = json::array({"object", "null"});
      schema["additionalProperties"] = false;
      break;
  }
  if (!key.required && key.type != Type::block && key.default_rule != "group.id") {
    schema["default"] = default_json(key);
  }
  if (!key.default_rule.empty()) schema["x-tenure-default"] = key.default_rule;
  if (key.stage == Stage::only_default) {
    schema["const"] = default_json(key);
    schema["x-tenure-later"] = key.reason;
  }
  if (key.reload == Reload::live) schema["x-tenure-reload"] = "live";
  if (!key.flag.empty()) schema["x-tenure-flag"] = key.flag;
  schema["x-tenure-environment"] = environment_name(key.path);
  return schema;
}

json& schema_section(json& root, std::string_view path) {
  json* at = &root;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    json& next = (*at)["properties"][std::string(path.substr(0, dot))];
    if (next.is_null()) {
      next = {{"type", "object"}, {"additionalProperties", false}, {"properties", block()}};
    }
    at = &next;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return *at;
}

/// Keys in the order of the table; client properties without a line of their own after those that
/// have one.
std::vector<std::string> ordered_paths(const Settings& settings) {
  std::vector<std::string> paths;
  const auto add_others = [&] {
    for (const auto& [path, setting] : settings) {
      if (find_key(path) == nullptr) paths.push_back(path);
    }
  };
  bool in_kafka = false;
  for (const Key& key : keys()) {
    const bool is_kafka = key.path.starts_with("kafka.");
    if (in_kafka && !is_kafka) add_others();
    in_kafka = is_kafka;
    if (settings.contains(key.path)) paths.emplace_back(key.path);
  }
  return paths;
}

}  // namespace

json shown(const Setting& setting) {
  if (!setting.secret) return to_json(setting.value);
  if (setting.only_references) return to_json(setting.written);
  return scrubbed_text;
}

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::fallback:
      return "default";
    case Origin::builder:
      return "builder";
    case Origin::file:
      return "file";
    case Origin::environment:
      return "environment";
    case Origin::flag:
      return "flag";
  }
  return "default";
}

json config_json(const Config& config, bool origins) {
  json values = block();
  json from = block();
  for (const auto& [path, setting] : config.settings) {
    const Split at = split(path);
    const Key* key = find_key(path);
    section(values, at.section)[std::string(at.name)] =
        key != nullptr && key->type == Type::block ? block() : shown(setting);
    from[path] = {{"origin", name(setting.origin)}};
    if (!setting.at.empty()) from[path]["at"] = setting.at;
  }
  if (!origins) return values;
  return {{"config", std::move(values)}, {"origins", std::move(from)}};
}

std::string config_yaml(const Config& config, bool origins) {
  std::string text;
  std::string open;  // the section whose lines are being written
  for (const std::string& path : ordered_paths(config.settings)) {
    const Setting& setting = config.settings.find(path)->second;
    const Split at = split(path);
    std::size_t depth = 0;
    for (std::size_t start = 0; start < at.section.size(); ++depth) {
      const std::size_t end = std::min(at.section.find('.', start), at.section.size());
      const std::string_view whole = at.section.substr(0, end);
      if (open != whole && !open.starts_with(std::string(whole) + ".")) {
        text += std::string(2 * depth, ' ') + std::string(at.section.substr(start, end - start)) +
                ":\n";
        open = whole;
      }
      start = end + 1;
    }
    open = at.section;
    const Key* key = find_key(path);
    const bool is_block = key != nullptr && key->type == Type::block;
    const bool plain = key != nullptr && key->type == Type::word;
    text += std::string(2 * depth, ' ') + std::string(at.name) + ": ";
    text += is_block ? "{}" : plain ? std::get<std::string>(setting.value) : loadable(setting);
    if (origins) {
      text += "  # " + std::string(name(setting.origin));
      if (!setting.at.empty()) text += " " + setting.at;
    }
    text += '\n';
  }
  return text;
}

json config_schema_json() {
  json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Tenure configuration"},
               {"type", "object"},
               {"additionalProperties", false},
               {"properties", block()},
               {"required", json::array()},
               {"x-tenure-later", block()},
               {"x-tenure-refused", block()}};
  for (const Key& key : keys()) {
    if (key.stage == Stage::later) {
      root["x-tenure-later"][std::string(key.path)] = key.reason;
      continue;
    }
    const Split at = split(key.path);
    json& parent = schema_section(root, at.section);
    parent["properties"][std::string(at.name)] = property_schema(key);
    // What flags or variables may give as well is no fault of the file.
    if (key.required && (key.path == "version" || key.flag.empty())) {
      parent["required"].push_back(at.name);
    }
  }
  root["properties"]["kafka"]["additionalProperties"] = {
      {"type", json::array({"string", "number", "boolean"})}};
  for (const std::string_view one_of : {"handler", "store"}) {
    json& blocks = root["properties"][std::string(one_of)];
    blocks["description"] =
        one_of == "handler" ? "exactly one; none in C++ programs" : "at most one";
  }
  for (const RefusedProperty& one : refused_properties()) {
    root["x-tenure-refused"][std::string(one.pattern)] = one.reason;
  }
  return root;
}

std::string config_sha256(const Config& config) {
  const std::string text = config_json(config, false).dump();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const int hashed =
      EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  TENURE_ASSERT(hashed == 1, "libcrypto without SHA-256");
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += digits[digest[i] >> 4U];
    hex += digits[digest[i] & 0x0FU];
  }
  return hex;
}

}  // namespace tenure::app
