#include "core/commit_metadata.hpp"

#include <array>
#include <charconv>

namespace tenure::core {

namespace {

constexpr std::string_view prefix = "tenure/1 ";
constexpr std::string_view crc_key = " crc=";

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1u) != 0 ? (value >> 1) ^ 0x82f63b78u : value >> 1;
    }
    table[i] = value;
  }
  return table;
}();

std::string hex8(std::uint32_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(8, '0');
  for (std::size_t i = 0; i < 8; ++i) text[7 - i] = digits[(value >> (4 * i)) & 0xf];
  return text;
}

template <class Number>
bool parse(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) {
    crc = crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xffu] ^ (crc >> 8);
  }
  return crc ^ 0xffffffffu;
}

std::string encode(const CommitMetadata& metadata) {
  std::string text(prefix);
  text += "log=" + metadata.cluster + "/" + metadata.topic_id;
  text += " at=" + std::to_string(metadata.at.value());
  text += " epoch=" + std::to_string(metadata.epoch);
  text += " gap=" + std::to_string(metadata.gap);
  const std::uint32_t crc = crc32c(text);
  text += crc_key;
  text += hex8(crc);
  return text;
}

std::optional<CommitMetadata> decode(std::string_view text) {
  if (text.substr(0, prefix.size()) != prefix) return {};
  const std::size_t crc_at = text.rfind(crc_key);
  if (crc_at == std::string_view::npos) return {};
  std::uint32_t crc = 0;
  const std::string_view digits = text.substr(crc_at + crc_key.size());
  if (digits.size() != 8 || !parse(digits, crc, 16)) return {};
  const std::string_view covered = text.substr(0, crc_at);
  if (crc32c(covered) != crc) return {};

  CommitMetadata metadata;
  bool has_at = false;
  std::string_view rest = covered.substr(prefix.size());
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "log") {
      const std::size_t slash = value.rfind('/');
      if (slash == std::string_view::npos) return {};
      metadata.cluster = std::string(value.substr(0, slash));
      metadata.topic_id = std::string(value.substr(slash + 1));
    } else if (key == "at") {
      std::int64_t at = 0;
      if (!parse(value, at) || at < 0) return {};
      metadata.at = Offset(at);
      has_at = true;
    } else if (key == "epoch") {
      if (!parse(value, metadata.epoch)) return {};
    } else if (key == "gap") {
      if (!parse(value, metadata.gap)) return {};
    }
  }
  if (!has_at) return {};
  return metadata;
}

}  // namespace tenure::core
