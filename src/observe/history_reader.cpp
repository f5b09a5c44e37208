#include "observe/history_reader.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.hpp"

namespace tenure::observe {
namespace {

using Json = nlohmann::json;

/// Far more than version 1 has; writing a value back recurses.
constexpr std::size_t nesting_max = 64;

/// What a line lacks or has wrong; caught in parse().
struct BadKey {
  std::string text;
};

const Json& at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw BadKey{std::string("has no \"") + key + "\""};
  return *found;
}

std::string text_of(const Json& object, const char* key) {
  const Json& value = at(object, key);
  if (!value.is_string()) throw BadKey{std::string("\"") + key + "\" is no string"};
  return value.get<std::string>();
}

/// Absent and null: empty.
std::string optional_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? std::string() : text_of(object, key);
}

std::int64_t number_of(const Json& object, const char* key) {
  const Json& value = at(object, key);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <=
                         static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits) throw BadKey{std::string("\"") + key + "\" is no whole number of 64 bits"};
  return value.get<std::int64_t>();
}

std::int32_t small_number_of(const Json& object, const char* key) {
  const std::int64_t value = number_of(object, key);
  if (value < -1 || value > std::numeric_limits<std::int32_t>::max()) {
    throw BadKey{std::string("\"") + key + "\" is out of range"};
  }
  return static_cast<std::int32_t>(value);
}

bool flag_of(const Json& object, const char* key, bool missing) {
  const auto found = object.find(key);
  if (found == object.end()) return missing;
  if (!found->is_boolean()) throw BadKey{std::string("\"") + key + "\" is neither true nor false"};
  return found->get<bool>();
}

HistoryPlace place_of(const Json& object) {
  return HistoryPlace{text_of(object, "topic"), small_number_of(object, "partition")};
}

HistoryEvent::Value value_of(const Json& value) {
  if (value.is_null()) return nullptr;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return value.get<double>();
  }
  if (value.is_number()) return value.get<std::int64_t>();
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

HistoryStart start_of(const Json& object) {
  HistoryStart start;
  start.run = optional_text(object, "run");
  start.tool = optional_text(object, "tool");
  if (object.contains("seed") && !object["seed"].is_null()) {
    start.seed = number_of(object, "seed");
  }
  if (object.contains("plan")) start.plan = object["plan"].dump();
  start.cluster = optional_text(object, "cluster");
  start.group = optional_text(object, "group");
  start.kind = optional_text(object, "kind");
  if (object.contains("topics")) {
    for (const Json& topic : object["topics"]) {
      start.topics.push_back(HistoryTopic{text_of(topic, "name"), optional_text(topic, "id"),
                                          small_number_of(topic, "partitions")});
    }
  }
  if (object.contains("witnesses")) {
    for (const Json& witness : object["witnesses"]) {
      if (!witness.is_string()) throw BadKey{"\"witnesses\" holds something else than strings"};
      start.witnesses.push_back(witness.get<std::string>());
    }
  }
  return start;
}

HistoryEvent event_of(const Json& object) {
  HistoryEvent event;
  event.inc = text_of(object, "inc");
  event.mono_ns = number_of(object, "mono_ns");
  event.seq = number_of(object, "seq");
  event.event = text_of(object, "event");
  for (const auto& [key, value] : object.items()) {
    if (key != "t" && key != "inc" && key != "mono_ns" && key != "seq" && key != "event") {
      event.keys.emplace(key, value_of(value));
    }
  }
  return event;
}

HistoryFault fault_of(const Json& object) {
  const std::string phase = text_of(object, "phase");
  if (phase != "begin" && phase != "end") throw BadKey{"\"phase\" is neither begin nor end"};
  return HistoryFault{text_of(object, "inc"), number_of(object, "mono_ns"), text_of(object, "kind"),
                      phase == "begin"};
}

HistoryEnd end_of(const Json& object) {
  HistoryEnd end;
  const Json& counts = at(object, "counts");
  if (!counts.is_object()) throw BadKey{"\"counts\" is no object"};
  for (const auto& [t, count] : counts.items()) {
    end.counts.emplace(t, number_of(counts, t.c_str()));
  }
  return end;
}

/// All but start, whose version comes first.
HistoryLine line_of(const std::string& t, const Json& object) {
  if (t == "event") return event_of(object);
  if (t == "input") {
    return HistoryInput{place_of(object), number_of(object, "offset"),
                        optional_text(object, "key_hash"), optional_text(object, "fingerprint"),
                        flag_of(object, "acked", true)};
  }
  if (t == "owner") {
    return HistoryOwner{number_of(object, "pos"), place_of(object), text_of(object, "member"),
                        small_number_of(object, "epoch")};
  }
  if (t == "commit") {
    return HistoryCommit{number_of(object, "pos"), place_of(object), number_of(object, "offset"),
                         optional_text(object, "metadata"), flag_of(object, "final", false)};
  }
  if (t == "fence") {
    return HistoryFence{number_of(object, "pos"), place_of(object), number_of(object, "token"),
                        text_of(object, "owner")};
  }
  if (t == "effect") {
    return HistoryEffect{number_of(object, "pos"),
                         place_of(object),
                         number_of(object, "offset"),
                         optional_text(object, "identity"),
                         optional_text(object, "fingerprint"),
                         number_of(object, "token"),
                         text_of(object, "outcome")};
  }
  if (t == "fault") return fault_of(object);
  if (t == "end") return end_of(object);
  return HistoryUnknown{t};
}

/// Reads to the next '\n' and no further than `line_max` bytes. False: nothing is left.
bool read_text(std::istream& stream, std::string& text, bool& whole, std::size_t line_max) {
  text.clear();
  whole = false;
  for (int c = stream.get(); c != std::char_traits<char>::eof(); c = stream.get()) {
    if (c == '\n') {
      whole = true;
      return true;
    }
    text += static_cast<char>(c);
    if (text.size() >= line_max) return true;
  }
  return !text.empty();
}

}  // namespace

Result<std::optional<HistoryLine>> HistoryReader::next() {
  if (error_) return tl::unexpected<Error>(*error_);
  if (finished_) return std::optional<HistoryLine>();
  std::string text;
  bool whole = false;
  if (!read_text(stream_, text, whole, history_line_max)) {
    finish();
    return std::optional<HistoryLine>();
  }
  ++number_;
  Result<std::optional<HistoryLine>> line;
  if (!whole && text.size() >= history_line_max) {
    line = tl::unexpected<Error>(error("is longer than 64 KiB"));
  } else if (!whole && number_ > 1) {
    // What a killed writer leaves: its last line stops somewhere.
    finish();
    cut_ = "line " + std::to_string(number_) + " is cut off";
    return std::optional<HistoryLine>();
  } else {
    line = parse(text);
  }
  if (!line) error_ = line.error();
  return line;
}

Result<std::optional<HistoryLine>> HistoryReader::parse(const std::string& text) {
  constexpr std::string_view zstd_magic = "\x28\xB5\x2F\xFD";
  if (number_ == 1 && text.starts_with(zstd_magic)) {
    return tl::unexpected<Error>(error("is compressed", "unpack it first: zstd -d"));
  }
  if (json_nesting(text) > nesting_max) {
    return tl::unexpected<Error>(error("is nested too deeply"));
  }
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return tl::unexpected<Error>(error("is no JSON object"));
  try {
    const std::string t = text_of(object, "t");
    if (number_ == 1) {
      if (t != "start") return tl::unexpected<Error>(error("is no start line: this is no history"));
      const std::int64_t version = number_of(object, "history");
      if (version != history_version) {
        return tl::unexpected<Error>(error("is history version " + std::to_string(version) +
                                           "; this program reads version " +
                                           std::to_string(history_version)));
      }
      return std::optional<HistoryLine>(start_of(object));
    }
    if (t == "start") return tl::unexpected<Error>(error("is a second start line"));
    if (end_) return tl::unexpected<Error>(error("comes behind the end line"));
    HistoryLine line = line_of(t, object);
    if (const auto* end = std::get_if<HistoryEnd>(&line); end != nullptr) {
      end_ = *end;
    } else {
      ++counts_[t];
    }
    return std::optional<HistoryLine>(std::move(line));
  } catch (const BadKey& bad) {
    return tl::unexpected<Error>(error(bad.text));
  } catch (const Json::exception&) {
    return tl::unexpected<Error>(error("has a member of the wrong type"));
  }
}

void HistoryReader::finish() {
  finished_ = true;
  if (!end_) {
    cut_ = "the end line is missing";
    return;
  }
  auto all = end_->counts;
  all.insert(counts_.begin(), counts_.end());
  const auto count_in = [](const auto& counts, const std::string& t) {
    const auto found = counts.find(t);
    return found == counts.end() ? std::int64_t{0} : found->second;
  };
  for (const auto& [t, ignored] : all) {
    const std::int64_t promised = count_in(end_->counts, t);
    const std::int64_t found = count_in(counts_, t);
    if (promised == found) continue;
    cut_ = "the end line counts " + std::to_string(promised) + " " + t + " lines; there are " +
           std::to_string(found);
    return;
  }
}

Error HistoryReader::error(std::string text, std::string hint) const {
  return Error{Code::invalid, false, false,
               name_ + ":" + std::to_string(number_) + ": the line " + std::move(text),
               std::move(hint)};
}

}  // namespace tenure::observe
