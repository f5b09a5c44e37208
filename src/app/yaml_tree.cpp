#include "app/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace tenure::app {
namespace {

/// First byte that is not well-formed UTF-8 (RFC 3629), or npos.
std::size_t first_malformed(std::string_view text) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  while (i < text.size()) {
    const unsigned char lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
      length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      length = 3;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      length = 4;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return i;
    }
    if (i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      const unsigned char next = byte(i + k);
      if (next < low || next > high) return i;
      low = 0x80;
      high = 0xBF;
    }
    i += length;
  }
  return std::string_view::npos;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

/// yaml-cpp's words say what its scanner lost; people need to know what to change.
std::string plain_words(const std::string& message) {
  struct Wording {
    std::string_view theirs;
    std::string_view ours;
  };
  static constexpr Wording wordings[] = {
      {"illegal map value",
       "a key is not allowed here; check the indentation, and quote a value that contains \": \""},
      {"illegal map key", "a key is not allowed here; check the indentation"},
      {"illegal block entry", "a list item is not allowed here; check the indentation"},
      {"end of map not found",
       "unexpected text; check the indentation, and that nothing follows a closing quote"},
      {"end of sequence not found", "unexpected text in a list; check the indentation"},
      {"end of sequence flow not found", "a list is never closed; add \"]\""},
      {"end of map flow not found", "a mapping is never closed; add \"}\""},
      {"unknown token", "a value cannot start with this character; put it in quotes"},
      {"the referenced anchor is not defined", "this alias has no anchor before it"},
      {"bad file", "nested too deeply"},
  };
  for (const Wording& wording : wordings) {
    if (message == wording.theirs) return std::string(wording.ours);
  }
  if (message.starts_with("invalid unicode")) {
    return "this \\u escape is half of a pair; write the character itself";
  }
  return "not valid YAML: " + message;
}

}  // namespace

bool is_utf8(std::string_view text) {
  return first_malformed(text) == std::string_view::npos;
}

/// Role: turns yaml-cpp's events into a YamlTree. Lives for one parse, on the caller's stack.
class YamlTreeBuilder final : public YAML::EventHandler {
 public:
  YamlTreeBuilder(std::string_view text, YamlTree& tree) : text_(text), tree_(tree) {
    lines_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') lines_.push_back(i + 1);
    }
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) {
      fault(position(mark), "a second document starts here; one file is one configuration");
      ignoring_ = true;
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) return add_key(position(mark), std::nullopt);
    // The mark of an absent value is that of the next token, which helps nobody.
    const bool written =
        offset(mark) < text_.size() &&
        std::string_view("~nN").find(text_[offset(mark)]) != std::string_view::npos;
    const Position at =
        !written && !open_.empty() && open_.back().is_map ? open_.back().key_at : position(mark);
    add(make(YamlNode::Kind::null, anchor), at);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Position at = position(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end() || is_open(found->second)) {
      fault(at, "this alias refers to itself");
      if (expects_key()) return add_key(at, std::nullopt);
      return add(make(YamlNode::Kind::null, 0), at);
    }
    if (expects_key()) {
      const YamlNode& node = *found->second;
      return add_key(at,
                     node.kind == YamlNode::Kind::scalar ? std::optional(node.text) : std::nullopt);
    }
    add(found->second, at);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    check_closed(mark);
    if (expects_key()) {
      YamlNode* key = make(YamlNode::Kind::scalar, anchor);
      key->text = value;
      return add_key(position(mark), value);
    }
    YamlNode* node = make(YamlNode::Kind::scalar, anchor);
    node->text = value;
    node->quoted = tag == "!";
    add(node, position(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    start(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    start(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { end(); }

  void syntax_error(const YAML::Mark& mark, const std::string& message) {
    forget_all();
    if (unclosed_quote_) return finish();
    // A tab in the indentation is seldom named by the scanner but nearly always the cause.
    const auto line = static_cast<std::size_t>(std::max(mark.line, 0));
    if (line < lines_.size()) {
      const std::string_view rest = text_.substr(lines_[line]);
      const std::size_t blank = rest.find_first_not_of(" \t");
      const std::size_t tab = rest.substr(0, blank).find('\t');
      if (tab != std::string_view::npos && (blank != std::string_view::npos)) {
        return fault(position_of(lines_[line] + tab), "a tab in the indentation; use spaces");
      }
    }
    if (message == "illegal map value" && line > 0 && line < lines_.size()) {
      // `order:key` is a text that goes on in the next line; the error comes a line late.
      const std::string_view before =
          text_.substr(lines_[line - 1], lines_[line] - lines_[line - 1]);
      const std::size_t colon = before.find(':');
      if (colon != std::string_view::npos && before.find(": ") == std::string_view::npos &&
          before.find_first_of(" \r\n#", colon) > colon + 1) {
        return fault(position_of(lines_[line - 1] + colon), "a space is missing after \":\"");
      }
    }
    fault(position(mark), plain_words(message));
  }

  /// An open quote has swallowed the rest of the text: nothing that was read can be trusted.
  void finish() {
    if (!unclosed_quote_) return;
    forget_all();
    fault(*unclosed_quote_, "a quote that is never closed");
  }

  void fault(Position at, std::string text) {
    if (!ignoring_) tree_.faults_.push_back({at, std::move(text), path()});
  }

  Position position_of(std::size_t at) const {
    const auto after = std::upper_bound(lines_.begin(), lines_.end(), at);
    const std::size_t start = *(after - 1);
    int column = 1;
    for (std::size_t i = start; i < at && i < text_.size(); ++i) {
      if ((static_cast<unsigned char>(text_[i]) & 0xC0U) != 0x80U) ++column;
    }
    return {static_cast<int>(after - lines_.begin()), column};
  }

  int documents() const { return documents_; }

 private:
  struct Open {
    YamlNode* node = nullptr;
    Position at;
    bool is_map = false;
    bool is_key = false;    ///< a list or map used as a key: read, reported, forgotten
    bool has_key = false;   ///< a key is waiting for its value
    bool key_kept = false;  ///< false: a duplicate, its value is read and forgotten
    std::string key;
    Position key_at;
    std::unordered_map<std::string, int> seen;  ///< key -> line of its first use
  };

  void forget_all() {
    tree_.root_ = nullptr;
    tree_.faults_.clear();
    open_.clear();
    ignoring_ = false;
  }

  std::size_t offset(const YAML::Mark& mark) const {
    const auto line = static_cast<std::size_t>(std::max(mark.line, 0));
    const std::size_t start = line < lines_.size() ? lines_[line] : text_.size();
    return std::min(start + static_cast<std::size_t>(std::max(mark.column, 0)), text_.size());
  }
  Position position(const YAML::Mark& mark) const { return position_of(offset(mark)); }

  bool expects_key() const {
    return !open_.empty() && open_.back().is_map && !open_.back().has_key;
  }
  bool is_open(const YamlNode* node) const {
    return std::any_of(open_.begin(), open_.end(),
                       [node](const Open& open) { return open.node == node; });
  }

  std::string path() const {
    std::string joined;
    for (const Open& open : open_) {
      if (!open.is_map || !open.has_key) continue;
      if (!joined.empty()) joined += '.';
      joined += open.key;
    }
    return joined;
  }

  YamlNode* make(YamlNode::Kind kind, YAML::anchor_t anchor) {
    tree_.nodes_.push_back(std::make_unique<YamlNode>());
    YamlNode* node = tree_.nodes_.back().get();
    node->kind = kind;
    if (anchor != 0) anchors_[anchor] = node;
    return node;
  }

  void add_key(Position at, std::optional<std::string> key) {
    Open& map = open_.back();
    map.has_key = true;
    map.key_kept = false;
    map.key_at = at;
    map.key = key.value_or("");
    if (!key) return fault(at, "a key must be a word");
    const auto [first, fresh] = map.seen.emplace(*key, at.line);
    if (!fresh) {
      return fault(at, "duplicate key \"" + *key + "\"; first given in line " +
                           std::to_string(first->second));
    }
    map.key_kept = true;
  }

  void add(const YamlNode* node, Position at) {
    if (open_.empty()) {
      if (documents_ == 1) {
        tree_.root_ = node;
        tree_.root_at_ = at;
      }
      return;
    }
    Open& open = open_.back();
    if (!open.is_map) {
      open.node->items.push_back({node, at});
      return;
    }
    if (open.key_kept) open.node->entries.push_back({open.key, open.key_at, {node, at}});
    open.has_key = false;
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YamlNode::Kind kind) {
    check_tag(mark, tag);
    Open open;
    open.at = position(mark);
    open.is_map = kind == YamlNode::Kind::map;
    open.is_key = expects_key();
    open.node = make(kind, anchor);
    open_.push_back(std::move(open));
  }

  void end() {
    const YamlNode* node = open_.back().node;
    const Position at = open_.back().at;
    const bool is_key = open_.back().is_key;
    open_.pop_back();
    if (is_key) return add_key(at, std::nullopt);
    add(node, at);
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      fault(position(mark), "tags such as !!str are not used here; quotes make a text");
    }
  }

  /// yaml-cpp ends an open quote at the end of the file without a word.
  void check_closed(const YAML::Mark& mark) {
    std::size_t i = offset(mark);
    while (i < text_.size() && text_[i] == '&') {  // an anchor stands before its value
      i = std::min(text_.find_first_of(" \t\r\n", i), text_.size());
      i = std::min(text_.find_first_not_of(" \t\r\n", i), text_.size());
    }
    if (i >= text_.size() || (text_[i] != '"' && text_[i] != '\'')) return;
    const char quote = text_[i];
    const std::size_t opened = i;
    for (++i; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote != '\'' || i + 1 >= text_.size() || text_[i + 1] != '\'') return;
        ++i;
      }
    }
    if (!unclosed_quote_) unclosed_quote_ = position_of(opened);
  }

  std::string_view text_;
  YamlTree& tree_;
  std::vector<std::size_t> lines_;  ///< offset of each line's first byte
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, const YamlNode*> anchors_;
  std::optional<Position> unclosed_quote_;
  int documents_ = 0;
  bool ignoring_ = false;  ///< in a second document
};

YamlTree YamlTree::parse(std::string_view text) {
  YamlTree tree;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  YamlTreeBuilder builder(text, tree);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    builder.fault({1, 1}, "the file is UTF-16; save it as UTF-8");
    return tree;
  }
  if (const std::size_t at = first_malformed(text); at != std::string_view::npos) {
    builder.fault(builder.position_of(at), "not UTF-8; save the file as UTF-8");
    return tree;
  }
  if (const auto at = std::find_if(text.begin(), text.end(), is_control); at != text.end()) {
    builder.fault(builder.position_of(static_cast<std::size_t>(at - text.begin())),
                  "a control character; remove it");
    return tree;
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (builder.documents() < 2 && parser.HandleNextDocument(builder)) {
    }
    builder.finish();
  } catch (const YAML::ParserException& error) {
    builder.syntax_error(error.mark, error.msg);
  } catch (const std::exception& error) {
    builder.syntax_error(YAML::Mark(), error.what());
  }
  return tree;
}

}  // namespace tenure::app
