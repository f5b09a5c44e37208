#include "runtime/topic_pattern.hpp"

#include <regex.h>

#include <array>
#include <utility>

namespace tenure::runtime {

struct TopicPattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (valid) regfree(&expression);
  }
  regex_t expression{};
  bool valid = false;
};

TopicPattern::TopicPattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
TopicPattern::TopicPattern(TopicPattern&&) noexcept = default;
TopicPattern& TopicPattern::operator=(TopicPattern&&) noexcept = default;
TopicPattern::~TopicPattern() = default;

Result<TopicPattern> TopicPattern::compile(const std::string& pattern) {
  auto compiled = std::make_unique<Compiled>();
  const int failed = regcomp(&compiled->expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
  if (failed != 0) {
    std::array<char, 256> text{};
    regerror(failed, &compiled->expression, text.data(), text.size());
    return fail(Code::invalid, "\"" + pattern + "\" is no regular expression: " + text.data());
  }
  compiled->valid = true;
  return TopicPattern(std::move(compiled));
}

bool TopicPattern::matches(const std::string& topic) const {
  return regexec(&compiled_->expression, topic.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace tenure::runtime
