// Events as lines: text for people at a terminal, JSON for files and machines.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "observe/line_text.hpp"
#include "tenure/event.hpp"
#include "tenure/port/logger.hpp"
#include "tenure/port/observer.hpp"

namespace tenure::observe {

enum class LogFormat : std::uint8_t {
  text,  ///< `12:04:31 owner.released  orders 5  took_ms 700`, local time
  json,  ///< one object a line, UTC
};

struct LogOptions {
  LogFormat format = LogFormat::text;
  Level level = Level::info;
  bool color = false;  ///< text only: warn yellow, error red; without, the line says its level
};

/// Takes one line without its end. Where a LogObserver and a LineLogger share one: any thread.
using LineSink = std::function<void(Level level, std::string_view line)>;
/// For tests; any thread.
using WallClock = std::function<WallTime()>;

/// Role: writes each event of its level or above, and of a repeated one a line every 10 s.
/// Owns: when each event was last written. Threads: on_event() the loop; set_level() any.
/// Promises: lines carry no payload (events have none); of several events of one name and one
///   owner within 10 s the first is written, and the next written one counts those between in
///   `suppressed`; those never counted so are told with app.stopped. Lines of 32 KiB at most.
class LogObserver final : public Observer {
 public:
  LogObserver(LogOptions options, LineSink sink, WallClock clock = std::chrono::system_clock::now);

  void on_event(const Event& event) override;
  /// At level debug.
  [[nodiscard]] bool wants_records() const override;
  /// Events of single records stay away when it was not debug at the start.
  void set_level(Level level) { level_.store(level, std::memory_order_relaxed); }

 private:
  /// A grant is a new tenure of its partition: its first event is no repeat.
  struct Place {
    EventName name;
    std::uint64_t grant;
    auto operator<=>(const Place&) const = default;
  };
  struct Written {
    Instant at;
    std::int64_t suppressed = 0;
  };

  void write_text(const Event& event, std::int64_t suppressed);
  void write_json(const Event& event, std::int64_t suppressed);
  void forget_old(Instant now);
  std::int64_t take_untold();

  const LogFormat format_;
  const bool color_;
  const LineSink sink_;
  const WallClock clock_;
  std::atomic<Level> level_;  // only a filter: nothing else is published by it
  std::map<Place, Written> written_;
  std::int64_t untold_ = 0;  ///< suppressed ones whose place was forgotten
  std::string line_;
};

/// The Logger that writes through the same sink, as event client.log without its owner's keys.
/// Threads: any.
class LineLogger final : public Logger {
 public:
  LineLogger(LogOptions options, LineSink sink, WallClock clock = std::chrono::system_clock::now)
      : format_(options.format),
        color_(options.color),
        sink_(std::move(sink)),
        clock_(std::move(clock)),
        level_(options.level) {}

  [[nodiscard]] bool enabled(Level level) const override {
    return level <= level_.load(std::memory_order_relaxed);
  }
  void write(Level level, std::string_view facility, std::string_view text) override;
  void set_level(Level level) { level_.store(level, std::memory_order_relaxed); }

 private:
  const LogFormat format_;
  const bool color_;
  const LineSink sink_;
  const WallClock clock_;
  std::atomic<Level> level_;  // only a filter: nothing else is published by it
};

}  // namespace tenure::observe
