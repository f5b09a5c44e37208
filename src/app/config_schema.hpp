// The one table of configuration keys. Parser, `config schema`, messages and tests are driven by
// it; a default or a range is written nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenure/result.hpp"

namespace tenure::app {

enum class Type : std::uint8_t {
  boolean,
  integer,
  auto_integer,  ///< the word `auto`, or an integer
  number,        ///< decimal fraction
  word,          ///< one of a closed list
  string,
  list,   ///< of strings
  map,    ///< of strings; only in keys that come later
  block,  ///< a section without keys of its own; its presence says it all
};

/// What this version does with a key.
enum class Stage : std::uint8_t {
  now,
  later,         ///< refused in any value
  only_default,  ///< accepted with its default only
};

/// What a change of the key needs.
enum class Reload : std::uint8_t { restart, live };

struct Word {
  std::string_view text;
  bool later = false;  ///< known, but refused until a later version
};

/// One line of the table.
struct Key {
  std::string_view path;  ///< as in section 3 of the interface; client properties under `kafka.`
  Type type = Type::string;
  std::string_view fallback;  ///< the default, as YAML would hold it; unused when required
  /// Integers and numbers: accepted range, ends included. String: least length. List: least items.
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::span<const Word> words;
  bool required = false;  ///< where its section is present; `version` in a file only
  Stage stage = Stage::now;
  std::string_view reason;  ///< what a key of another stage waits for
  Reload reload = Reload::restart;
  std::string_view doc;           ///< one line
  std::string_view default_rule;  ///< when the default depends on other keys
  std::string_view flag;          ///< flag of `tenure run` that sets it
  std::string_view example;       ///< YAML, for a missing required key
};

/// A checked value. Word and string: std::string. `auto`: the string "auto". Block: `true`.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// The table, in the order of section 3.
std::span<const Key> keys();

/// nullptr when there is no such key. Client properties that have no line of their own have none.
const Key* find_key(std::string_view path);

/// True for a section: a path with keys below it.
bool is_section(std::string_view path);

/// Names directly below a section ("" = top level), in table order.
std::vector<std::string_view> names_below(std::string_view section);

/// "an integer 1..65536", "true or false", "one of key, partition, none" ...
std::string accepted(const Key& key);

/// Text -> value, with the range. `quoted`: the text stood in quotes in a file, so that it is no
/// number or boolean (client properties take both). The error says what is accepted and, where one
/// can be guessed, what to write; it repeats the text unless `hide`.
Result<Value> parse_scalar(const Key& key, std::string_view text, bool quoted, bool hide);

/// The table's default as a value. Not for required keys.
Value default_value(const Key& key);

/// Why a client property may not be set, or nothing. `consumer`: under group.protocol consumer.
std::optional<std::string> refused_property(std::string_view property, bool consumer);

/// Refused properties and their reasons, for `config schema`.
struct RefusedProperty {
  std::string_view pattern;  ///< a name; `x.*` a prefix, `*_x` a suffix
  std::string_view reason;
  bool only_consumer = false;
};
std::span<const RefusedProperty> refused_properties();

/// The candidate a typist most likely meant, or nothing.
std::optional<std::string_view> nearest(std::string_view text,
                                        std::span<const std::string_view> candidates);

/// In double quotes, control characters escaped, long texts cut.
std::string quote(std::string_view text);

}  // namespace tenure::app
