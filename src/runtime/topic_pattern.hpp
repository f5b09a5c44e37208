// A ^regex of topic names, read as the client library reads it: POSIX extended.
// Owns the compiled expression. One thread.
#pragma once

#include <memory>
#include <string>

#include "tenure/result.hpp"

namespace tenure::runtime {

class TopicPattern {
 public:
  static bool is_pattern(const std::string& topic) { return topic.starts_with('^'); }
  static Result<TopicPattern> compile(const std::string& pattern);

  TopicPattern(TopicPattern&&) noexcept;
  TopicPattern& operator=(TopicPattern&&) noexcept;
  ~TopicPattern();

  [[nodiscard]] bool matches(const std::string& topic) const;

 private:
  struct Compiled;
  explicit TopicPattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tenure::runtime
