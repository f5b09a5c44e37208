#include "observe/line_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/json_text.hpp"

namespace tenure::observe {
namespace {

/// Of group, member and topic; what Kafka has in practice is far shorter.
constexpr std::size_t name_max = 1024;

template <class Number>
void append_chars(std::string& out, Number number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_two(std::string& out, int number) {
  out += static_cast<char>('0' + number / 10 % 10);
  out += static_cast<char>('0' + number % 10);
}

void append_clock(std::string& out, const std::tm& parts) {
  append_two(out, parts.tm_hour);
  out += ':';
  append_two(out, parts.tm_min);
  out += ':';
  append_two(out, parts.tm_sec);
}

void append_text_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    append_json_string(out, cut_utf8(to_utf8(text), name_max));
  }
}

}  // namespace

void append_number(std::string& out, std::int64_t number) {
  append_chars(out, number);
}
void append_number(std::string& out, std::uint64_t number) {
  append_chars(out, number);
}
void append_number(std::string& out, double number) {
  if (std::isfinite(number)) {
    append_chars(out, number);
  } else {
    out += "null";
  }
}

void append_utc(std::string& out, WallTime time) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const auto since = std::chrono::floor<milliseconds>(time.time_since_epoch());
  const auto whole = std::chrono::floor<seconds>(since);
  const std::time_t stamp = whole.count();
  std::tm parts{};
  ::gmtime_r(&stamp, &parts);
  append_chars(out, parts.tm_year + 1900);
  out += '-';
  append_two(out, parts.tm_mon + 1);
  out += '-';
  append_two(out, parts.tm_mday);
  out += 'T';
  append_clock(out, parts);
  const auto fraction = static_cast<int>((since - whole).count());
  out += '.';
  out += static_cast<char>('0' + fraction / 100);
  append_two(out, fraction % 100);
  out += 'Z';
}

void append_local_clock(std::string& out, WallTime time) {
  const std::time_t stamp = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::localtime_r(&stamp, &parts);
  append_clock(out, parts);
}

void append_json(std::string& out, const FieldValue& value, std::size_t text_max) {
  if (const auto* number = std::get_if<std::int64_t>(&value); number != nullptr) {
    append_number(out, *number);
  } else if (const auto* real = std::get_if<double>(&value); real != nullptr) {
    append_number(out, *real);
  } else if (const auto* flag = std::get_if<bool>(&value); flag != nullptr) {
    out += *flag ? "true" : "false";
  } else {
    append_json_string(out, cut_utf8(to_utf8(std::get<std::string_view>(value)), text_max));
  }
}

void append_json_key(std::string& out, std::string_view key) {
  out += ",\"";
  out += key;
  out += "\":";
}

void append_event_json(std::string& out, const Event& event, WallTime now, std::size_t text_max,
                       std::size_t line_max) {
  out += "\"ts\":\"";
  append_utc(out, now);
  out += "\",\"level\":\"";
  out += name(event.level);
  out += "\",\"event\":\"";
  out += traits(event.name).name;
  out += '"';
  append_json_key(out, "seq");
  if (event.seq > 0) {
    append_number(out, event.seq);
  } else {
    out += "null";
  }
  append_json_key(out, "group");
  append_text_or_null(out, event.group);
  append_json_key(out, "member");
  append_text_or_null(out, event.member);
  append_json_key(out, "epoch");
  if (event.epoch.value() >= 0) {
    append_number(out, std::int64_t{event.epoch.value()});
  } else {
    out += "null";
  }
  if (event.has_owner) {
    append_json_key(out, "topic");
    append_text_or_null(out, event.topic);
    append_json_key(out, "partition");
    append_number(out, std::int64_t{event.partition.value()});
    append_json_key(out, "grant");
    append_number(out, event.grant.value());
  }
  for (const Field& field : event.fields) {
    const std::size_t before = out.size();
    append_json_key(out, field.key);
    append_json(out, field.value, text_max);
    constexpr std::string_view cut = ",\"cut\":true";
    if (out.size() + cut.size() <= line_max) continue;
    out.resize(before);
    out += cut;
    return;
  }
}

}  // namespace tenure::observe
