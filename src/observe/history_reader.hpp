// Reads a history, version 1, line by line, and says whether it is whole.
//
// Role: turns the file of 6-interface section 7 into values; judges nothing.
// Owns: nothing but its place in the stream, which outlives it. Threads: one.
// Promises: unknown keys are ignored, unknown `t` handed over; what is no history, or one of
//   another version, is an error (exit 65) that names the line; a history that merely ends early
//   is read to its end and called not whole (INCONCLUSIVE).
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "observe/history.hpp"
#include "tenure/result.hpp"

namespace tenure::observe {

class HistoryReader {
 public:
  /// `name` stands in messages: "demo.jsonl".
  HistoryReader(std::istream& stream, std::string name) : stream_(stream), name_(std::move(name)) {}

  /// The next line; empty at the end. After an error: the same error again.
  Result<std::optional<HistoryLine>> next();

  /// After the end: why the history is not whole; empty when it is.
  [[nodiscard]] const std::string& cut() const { return cut_; }
  /// After the end: there was no line at all.
  [[nodiscard]] bool empty() const { return number_ == 0; }
  /// Lines of each kind so far, without start and end, unknown kinds too.
  [[nodiscard]] const std::map<std::string, std::int64_t, std::less<>>& counts() const {
    return counts_;
  }

 private:
  Result<std::optional<HistoryLine>> parse(const std::string& text);
  void finish();
  Error error(std::string text, std::string hint = {}) const;

  std::istream& stream_;
  std::string name_;
  std::size_t number_ = 0;  ///< of the line, from 1
  std::map<std::string, std::int64_t, std::less<>> counts_;
  std::optional<HistoryEnd> end_;
  std::optional<Error> error_;
  std::string cut_;
  bool finished_ = false;
};

}  // namespace tenure::observe
