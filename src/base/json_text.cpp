#include "base/json_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tenure {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

std::uint8_t byte(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

/// Length of the character at `at`, 0 when there is none.
std::size_t character(std::string_view text, std::size_t at) {
  const std::uint8_t first = byte(text, at);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) second_min = 0xA0;
    if (first == 0xED) second_max = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) second_min = 0x90;
    if (first == 0xF4) second_max = 0x8F;
  } else {
    return 0;
  }
  if (text.size() - at < length) return 0;
  const std::uint8_t second = byte(text, at + 1);
  if (second < second_min || second > second_max) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(text, at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool plain_in_json(char c) {
  const auto value = static_cast<std::uint8_t>(c);
  return value >= 0x20 && value < 0x80 && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto value = static_cast<std::uint8_t>(c);
  out += "\\u00";
  out += digits[value >> 4];
  out += digits[value & 0x0F];
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080808080808080U;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word = 0;
    while (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & high_bits) != 0) break;
      at += sizeof word;
    }
    if (at == text.size()) break;
    const std::size_t length = character(text, at);
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes) {
  const std::string_view cut = text.substr(0, bytes);
  return cut.substr(0, utf8_prefix(cut));
}

std::string to_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t good = utf8_prefix(text);
    out.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    out += replacement;
    text.remove_prefix(1);
  }
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && plain_in_json(text[end])) ++end;
    out.append(text.substr(at, end - at));
    if (end == text.size()) break;
    at = end;
    if (byte(text, at) < 0x80) {
      append_escaped(out, text[at]);
      ++at;
      continue;
    }
    const std::size_t length = character(text, at);
    out.append(length == 0 ? replacement : text.substr(at, length));
    at += length == 0 ? 1 : length;
  }
  out += '"';
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::size_t to = out.size();
  out.resize(to + (bytes.size() + 2) / 3 * 4, '=');
  std::size_t at = 0;
  for (; bytes.size() - at >= 3; at += 3) {
    const std::uint32_t group = std::uint32_t{byte(bytes, at)} << 16 |
                                std::uint32_t{byte(bytes, at + 1)} << 8 |
                                std::uint32_t{byte(bytes, at + 2)};
    out[to++] = alphabet[group >> 18];
    out[to++] = alphabet[group >> 12 & 63];
    out[to++] = alphabet[group >> 6 & 63];
    out[to++] = alphabet[group & 63];
  }
  const std::size_t left = bytes.size() - at;
  if (left == 0) return;
  std::uint32_t group = std::uint32_t{byte(bytes, at)} << 16;
  if (left == 2) group |= std::uint32_t{byte(bytes, at + 1)} << 8;
  out[to++] = alphabet[group >> 18];
  out[to++] = alphabet[group >> 12 & 63];
  if (left == 2) out[to] = alphabet[group >> 6 & 63];
}

std::size_t json_nesting(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace tenure
