#include "handler/line_reader.hpp"

namespace tenure::handler {

void LineReader::append(std::string_view bytes) {
  if (start_ > 0) {
    buffer_.erase(0, start_);
    searched_ -= start_;
    start_ = 0;
  }
  buffer_.append(bytes);
}

bool LineReader::next(std::string_view& line) {
  const std::size_t end = buffer_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = buffer_.size();
    return false;
  }
  if (end - start_ > line_max_) {
    searched_ = end;
    return false;
  }
  line = std::string_view(buffer_).substr(start_, end - start_);
  start_ = end + 1;
  searched_ = start_;
  return true;
}

bool LineReader::next_piece(std::string_view& piece) {
  if (next(piece)) return true;
  if (!too_long()) return false;
  piece = std::string_view(buffer_).substr(start_, line_max_);
  start_ += piece.size();
  return true;
}

void LineReader::clear() {
  buffer_.clear();
  start_ = 0;
  searched_ = 0;
}

}  // namespace tenure::handler
