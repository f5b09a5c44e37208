// Cuts a byte stream into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenure::handler {

/// One thread. A line is everything before a '\n'; the rest waits for more bytes.
class LineReader {
 public:
  /// `line_max`: bytes without the '\n'.
  explicit LineReader(std::size_t line_max) : line_max_(line_max) {}

  void append(std::string_view bytes);
  /// False: no whole line is there. The view ends with the next call.
  bool next(std::string_view& line);
  /// As next(), but a line that is too long comes in pieces.
  bool next_piece(std::string_view& piece);
  /// What came after the last '\n'. The view ends with the next call.
  [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(start_); }
  /// The next line, whole or not, is longer than allowed. Ask when next() said false.
  [[nodiscard]] bool too_long() const { return buffer_.size() - start_ > line_max_; }
  void clear();

 private:
  std::size_t line_max_;
  std::string buffer_;
  std::size_t start_ = 0;     ///< of the line to come
  std::size_t searched_ = 0;  ///< no '\n' in [start_, searched_)
};

}  // namespace tenure::handler
