// Text that must be valid JSON and UTF-8 whatever bytes it is made of: handler lines, log lines,
// histories. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenure {

/// Length of the longest prefix that is UTF-8 as RFC 3629 has it: no surrogates, nothing
/// overlong, nothing above U+10FFFF.
std::size_t utf8_prefix(std::string_view text);

inline bool valid_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

/// At most `bytes` of valid UTF-8, cut between characters.
std::string_view cut_utf8(std::string_view text, std::size_t bytes);

/// `text` with each byte that is not UTF-8 replaced by U+FFFD.
std::string to_utf8(std::string_view text);

/// Appends a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Appends padded base64 of the standard alphabet (RFC 4648, section 4).
void append_base64(std::string& out, std::string_view bytes);

/// How deep arrays and objects of a JSON text are nested, without reading it: parsers that
/// recurse need to know before.
std::size_t json_nesting(std::string_view text);

}  // namespace tenure
