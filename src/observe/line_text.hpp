// Pieces of lines that logs and histories share. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tenure/event.hpp"

namespace tenure::observe {

using WallTime = std::chrono::system_clock::time_point;

void append_number(std::string& out, std::int64_t number);
void append_number(std::string& out, std::uint64_t number);
/// null where JSON has no number for it.
void append_number(std::string& out, double number);

/// "2026-12-01T12:04:31.007Z": RFC 3339, UTC, milliseconds.
void append_utc(std::string& out, WallTime time);
/// "12:04:31" where the process is.
void append_local_clock(std::string& out, WallTime time);

/// A JSON value; texts are cut to `text_max` bytes.
void append_json(std::string& out, const FieldValue& value, std::size_t text_max);
/// `,"key":` (key is one of ours: nothing to escape).
void append_json_key(std::string& out, std::string_view key);

/// The keys every event has, `"ts":...` to `"grant":...`, with what it carries behind them.
/// Unknown is null: seq 0, epoch < 0, an empty text. Stops adding own fields, with
/// `"cut":true`, before the whole passes `line_max` bytes.
void append_event_json(std::string& out, const Event& event, WallTime now, std::size_t text_max,
                       std::size_t line_max);

}  // namespace tenure::observe
