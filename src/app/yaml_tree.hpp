// One YAML (or JSON) document as a tree that remembers where everything stood.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenure::app {

/// Place in a text. 1-based, columns in code points; 0 = no place.
struct Position {
  int line = 0;
  int column = 0;
  friend bool operator==(const Position&, const Position&) = default;
  friend auto operator<=>(const Position&, const Position&) = default;
};

/// True when the text is well-formed UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

/// A value of the document. Owned by its YamlTree.
struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  /// A use of a node; an alias is used at another place than it was defined.
  struct Item {
    const YamlNode* node = nullptr;
    Position at;
  };
  struct Entry {
    std::string key;
    Position at;  ///< of the key
    Item value;
  };

  Kind kind = Kind::null;
  bool quoted = false;  ///< scalar in quotes, or a block scalar: text, never a number
  std::string text;     ///< scalar
  std::vector<Item> items;
  std::vector<Entry> entries;  ///< without duplicates
};

/// Role: strict reading of one document: what yaml-cpp lets pass in silence (duplicate keys, a
///   quote that is never closed, tags, a second document) is a fault here.
/// Owns: its nodes. Threads: a value; one thread at a time.
/// Promises: no exception; every fault has its place, in text order; no value of the document is
///   quoted in a fault. After a syntax error there is no root and that error is the only fault.
/// Does not promise: that the root is a map.
class YamlTree {
 public:
  struct Fault {
    Position at;
    std::string text;
    std::string path;  ///< dotted key path, or empty
  };

  static YamlTree parse(std::string_view text);

  /// nullptr when there is no document or a syntax error.
  [[nodiscard]] const YamlNode* root() const { return root_; }
  [[nodiscard]] Position root_at() const { return root_at_; }
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }

 private:
  friend class YamlTreeBuilder;
  std::vector<std::unique_ptr<YamlNode>> nodes_;
  const YamlNode* root_ = nullptr;
  Position root_at_;
  std::vector<Fault> faults_;
};

}  // namespace tenure::app
