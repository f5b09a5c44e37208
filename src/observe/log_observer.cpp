#include "observe/log_observer.hpp"

#include <algorithm>

#include "base/json_text.hpp"

namespace tenure::observe {
namespace {

constexpr Duration repeat_interval = std::chrono::seconds(10);
constexpr std::size_t places_max = 4096;
constexpr std::size_t text_max = 4096;
constexpr std::size_t line_max = 32768;

std::string_view color_of(Level level) {
  switch (level) {
    case Level::error:
      return "\x1b[31m";
    case Level::warn:
      return "\x1b[33m";
    case Level::info:
    case Level::debug:
      break;
  }
  return "";
}

/// What happens once, or answers a person who asked: never a repeat.
bool always_told(EventName name) {
  switch (name) {
    case EventName::app_starting:
    case EventName::app_ready:
    case EventName::app_draining:
    case EventName::config_loaded:
    case EventName::config_rejected:
      return true;
    default:
      return false;
  }
}

bool bare(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '"' && c != '\x7f';
  });
}

/// A word as it is, anything else in quotes and escaped: a line stays a line.
void append_word(std::string& out, std::string_view text) {
  if (bare(text) && valid_utf8(text)) {
    out += text;
  } else {
    append_json_string(out, text);
  }
}

void append_head(std::string& out, WallTime now, std::string_view name, Level level, bool color) {
  append_local_clock(out, now);
  out += ' ';
  const std::string_view escape = color ? color_of(level) : std::string_view();
  out += escape;
  out += name;
  if (!escape.empty()) out += "\x1b[0m";
}

/// Without color a line that matters must say so in words.
void append_level(std::string& out, Level level, bool color) {
  if (color || level > Level::warn) return;
  out += "  level ";
  out += name(level);
}

}  // namespace

LogObserver::LogObserver(LogOptions options, LineSink sink, WallClock clock)
    : format_(options.format),
      color_(options.color),
      sink_(std::move(sink)),
      clock_(std::move(clock)),
      level_(options.level) {}

bool LogObserver::wants_records() const {
  return level_.load(std::memory_order_relaxed) == Level::debug;
}

void LogObserver::on_event(const Event& event) {
  if (event.level > level_.load(std::memory_order_relaxed)) return;
  std::int64_t suppressed = 0;
  if (event.name == EventName::app_stopped) {
    suppressed = take_untold();
  } else if (!always_told(event.name)) {
    if (written_.size() >= places_max) forget_old(event.at);
    const Place place{event.name, event.has_owner ? event.grant.value() : 0};
    const auto [entry, is_new] = written_.try_emplace(place, Written{event.at, 0});
    if (!is_new) {
      if (event.at - entry->second.at < repeat_interval) {
        ++entry->second.suppressed;
        return;
      }
      suppressed = entry->second.suppressed;
      entry->second = Written{event.at, 0};
    }
  }
  line_.clear();
  if (format_ == LogFormat::json) {
    write_json(event, suppressed);
  } else {
    write_text(event, suppressed);
  }
  sink_(event.level, line_);
}

void LogObserver::write_text(const Event& event, std::int64_t suppressed) {
  append_head(line_, clock_(), traits(event.name).name, event.level, color_);
  if (event.has_owner) {
    line_ += "  ";
    append_word(line_, event.topic);
    line_ += ' ';
    append_number(line_, std::int64_t{event.partition.value()});
  }
  for (const Field& field : event.fields) {
    if (line_.size() > line_max - text_max) break;
    line_ += "  ";
    line_ += field.key;
    line_ += ' ';
    if (const auto* text = std::get_if<std::string_view>(&field.value); text != nullptr) {
      append_word(line_, text->substr(0, text_max));
    } else {
      append_json(line_, field.value, text_max);
    }
  }
  if (event.has_owner && event.epoch.value() >= 0) {
    line_ += "  epoch ";
    append_number(line_, std::int64_t{event.epoch.value()});
  }
  append_level(line_, event.level, color_);
  if (suppressed > 0) {
    line_ += "  suppressed ";
    append_number(line_, suppressed);
  }
}

void LogObserver::write_json(const Event& event, std::int64_t suppressed) {
  line_ += '{';
  append_event_json(line_, event, clock_(), text_max, line_max);
  if (suppressed > 0) {
    append_json_key(line_, "suppressed");
    append_number(line_, suppressed);
  }
  line_ += '}';
}

void LogObserver::forget_old(Instant now) {
  for (auto entry = written_.begin(); entry != written_.end();) {
    if (now - entry->second.at < repeat_interval) {
      ++entry;
      continue;
    }
    untold_ += entry->second.suppressed;
    entry = written_.erase(entry);
  }
}

std::int64_t LogObserver::take_untold() {
  std::int64_t all = std::exchange(untold_, 0);
  for (auto& [place, written] : written_) all += std::exchange(written.suppressed, 0);
  return all;
}

void LineLogger::write(Level level, std::string_view facility, std::string_view text) {
  if (!enabled(level)) return;
  std::string line;
  if (format_ == LogFormat::json) {
    line += "{\"ts\":\"";
    append_utc(line, clock_());
    line += "\",\"level\":\"";
    line += name(level);
    line += "\",\"event\":\"";
    line += traits(EventName::client_log).name;
    line += "\",\"facility\":";
    append_json_string(line, facility);
    line += ",\"text\":";
    append_json(line, FieldValue(text), line_max - text_max);
    line += '}';
  } else {
    append_head(line, clock_(), traits(EventName::client_log).name, level, color_);
    line += "  ";
    append_word(line, facility);
    line += "  ";
    std::string words;
    append_json_string(words, cut_utf8(to_utf8(text), line_max - text_max));
    // Escaped, so that it cannot forge a line or steer the terminal; without the quotes.
    line += std::string_view(words).substr(1, words.size() - 2);
    append_level(line, level, color_);
  }
  sink_(level, line);
}

}  // namespace tenure::observe
