#include "app/config.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.hpp"

namespace tenure::app {
namespace {

constexpr std::size_t largest_file = std::size_t{1} << 20U;
constexpr std::string_view kafka_prefix = "kafka.";
constexpr std::string_view variable_prefix = "TENURE_";

std::string joined(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

std::string below(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
}

/// Where a value stands.
struct Place {
  Origin origin = Origin::fallback;
  std::string where;
  Position at;
  std::size_t order = 0;  ///< among the variables, flags or calls

  [[nodiscard]] std::string text() const {
    if (at.line == 0) return where;
    return where + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }
};

/// A value as it was found, not yet checked.
struct Found {
  Place place;
  const YamlNode* node = nullptr;  ///< from a file
  std::vector<std::string> texts;  ///< from elsewhere
};

template <class E>
struct Named {
  std::string_view text;
  E value;
};

/// Role: one load. Owns: what was found, the faults, the settings. Threads: one. Lives for one
/// call of load_config.
class Loader {
 public:
  explicit Loader(const ConfigSources& sources) : sources_(sources) {}

  LoadedConfig run() {
    read_file();
    take_environment();
    take_given(sources_.flags, Origin::flag);
    take_given(sources_.builder, Origin::builder);
    consumer_ = is_consumer();
    for (const auto& [path, all] : found_) evaluate(path, all);
    choose_blocks();
    // After a broken file a missing or clashing key would be a guess.
    if (file_complete_) {
      check_required();
      fill_defaults();
      cross_check();
    }
    return finish();
  }

 private:
  // ---- faults -----------------------------------------------------------------------------------

  void report(Fault::Severity severity, const Place& place, std::string text, std::string key) {
    ranked_.push_back({rank(place.origin), place.order, ranked_.size(),
                       Fault{severity, place.where, place.at, std::move(text), std::move(key)}});
  }
  void error(const Place& place, std::string text, std::string key) {
    report(Fault::Severity::error, place, std::move(text), std::move(key));
  }
  void bad(const Place& place, std::string text, const std::string& key) {
    bad_.insert(key);
    error(place, std::move(text), key);
  }
  void warn(const Place& place, std::string text, std::string key) {
    report(Fault::Severity::warning, place, std::move(text), std::move(key));
  }

  static int rank(Origin origin) {
    switch (origin) {
      case Origin::file:
        return 0;
      case Origin::environment:
        return 1;
      case Origin::flag:
        return 2;
      case Origin::builder:
        return 3;
      case Origin::fallback:
        break;
    }
    return 4;
  }

  Place file_place(Position at) const { return {Origin::file, sources_.file.value_or(""), at}; }

  /// Top of the file, or the command line when there is none.
  Place top() const {
    if (sources_.file) return file_place({1, 1});
    return {Origin::fallback, "tenure", {}, 0};
  }

  /// Where the winning value of a key stands, else its section, else the top.
  Place place_of(std::string_view path) const {
    if (const Found* winner = winner_of(path)) return winner->place;
    for (std::string section(path); section.rfind('.') != std::string::npos;) {
      section.resize(section.rfind('.'));
      const auto present = sections_.find(section);
      if (present != sections_.end()) return present->second;
    }
    return top();
  }

  /// The first of these keys that somebody has set, else the first: what a fault of several keys
  /// is reported at.
  std::string given_of(std::initializer_list<std::string_view> paths) const {
    for (const std::string_view path : paths) {
      if (winner_of(path) != nullptr) return std::string(path);
    }
    return std::string(*paths.begin());
  }

  // ---- sources ----------------------------------------------------------------------------------

  void read_file() {
    if (!sources_.file) return;
    file_complete_ = false;
    const std::string& name = *sources_.file;
    const auto unreadable = [&](const std::string& why) { error(file_place({}), why, ""); };
    struct stat status{};
    if (stat(name.c_str(), &status) != 0) {
      return unreadable("cannot read the configuration: " + std::string(std::strerror(errno)) +
                        "; name another file with -c");
    }
    if (S_ISDIR(status.st_mode)) {
      return unreadable("cannot read the configuration: it is a directory; name a file in it");
    }
    errno = 0;
    std::ifstream stream(name, std::ios::binary);
    if (!stream) {
      return unreadable("cannot read the configuration: " + std::string(std::strerror(errno)));
    }
    std::string text(largest_file + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (stream.bad()) return unreadable("cannot read the configuration");
    if (text.size() > largest_file) return unreadable("the configuration is larger than 1 MiB");

    tree_ = YamlTree::parse(text);
    for (const YamlTree::Fault& fault : tree_.faults()) {
      error(file_place(fault.at), fault.text, fault.path);
    }
    if (tree_.root() == nullptr || tree_.root()->kind == YamlNode::Kind::null) {
      if (tree_.faults().empty()) {
        error(file_place({1, 1}), "the file is empty; begin with \"version: 1\"", "");
      }
      return;
    }
    if (tree_.root()->kind != YamlNode::Kind::map) {
      return error(file_place(tree_.root_at()), "expected keys such as \"version: 1\"", "");
    }
    file_complete_ = true;
    walk("", *tree_.root());
  }

  void walk(const std::string& section, const YamlNode& node) {
    for (const YamlNode::Entry& entry : node.entries) {
      const std::string path = below(section, entry.key);
      const Place key_place = file_place(entry.at);
      if (section != "kafka" && is_section(path)) {
        enter(path, entry);
      } else if (section == "kafka" || find_key(path) != nullptr) {
        found_[path].push_back({file_place(entry.value.at), entry.value.node, {}});
      } else {
        error(key_place, unknown_key(section, entry.key), path);
      }
    }
  }

  void enter(const std::string& path, const YamlNode::Entry& entry) {
    const Place place = file_place(entry.at);
    sections_.emplace(path, place);
    if (const Key* later = later_section(path)) {
      return error(place, comes_later(*later), path);
    }
    const YamlNode& node = *entry.value.node;
    if (node.kind == YamlNode::Kind::map) return walk(path, node);
    if (node.kind == YamlNode::Kind::null) return;
    const auto names = names_below(path);
    bad(file_place(entry.value.at), "expected a section with the keys " + joined(names), path);
  }

  /// A key of the section when all of them come later.
  static const Key* later_section(const std::string& path) {
    const Key* first = nullptr;
    for (const Key& key : keys()) {
      if (!key.path.starts_with(path + ".")) continue;
      if (key.stage != Stage::later) return nullptr;
      if (first == nullptr) first = &key;
    }
    return first;
  }

  static std::string comes_later(const Key& key) {
    return "comes in a later version, with " + std::string(key.reason) + "; remove it";
  }

  static std::string unknown_key(const std::string& section, const std::string& name) {
    std::string text = "unknown key " + quote(name) + "; ";
    if (name == "<<") return text + "merge keys are not read here; repeat the keys";
    if (name.find(':') != std::string::npos) return text + "a space is missing after \":\"";
    const auto names = names_below(section);
    if (const auto meant = nearest(name, names))
      return text + "did you mean " + quote(*meant) + "?";
    for (const Key& key : keys()) {  // the right key in the wrong section
      if (key.path.ends_with("." + name)) {
        return text + "did you mean " + quote(key.path) + "?";
      }
    }
    return text + "known here: " + joined(names);
  }

  void take_environment() {
    std::size_t order = 0;
    for (auto it = sources_.environment.lower_bound(variable_prefix);
         it != sources_.environment.end() && it->first.starts_with(variable_prefix); ++it) {
      take_variable(it->first, it->second, order++);
    }
  }

  void take_variable(const std::string& variable, const std::string& text, std::size_t order) {
    std::string rest = variable.substr(variable_prefix.size());
    std::transform(rest.begin(), rest.end(), rest.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    const Place place{Origin::environment, variable, {}, order};
    std::string path;
    const bool sectioned = rest.find("__") != std::string::npos;
    if (rest.starts_with("kafka__") && rest.size() > 7) {
      path = rest.substr(7);
      std::replace(path.begin(), path.end(), '_', '.');
      path.insert(0, kafka_prefix);
    } else {
      for (std::size_t i = 0; i < rest.size();) {
        if (rest.compare(i, 2, "__") == 0) {
          path += '.';
          i += 2;
        } else {
          path += rest[i++];
        }
      }
    }
    if (find_key(path) == nullptr && !path.starts_with(kafka_prefix)) {
      std::vector<std::string> variables;
      for (const Key& key : keys()) variables.push_back(environment_name(key.path));
      const std::vector<std::string_view> candidates(variables.begin(), variables.end());
      const auto meant = nearest(variable, candidates);
      // Kubernetes sets TENURE_PORT and the like for a service named tenure: only a name with a
      // section is certainly meant for us, a near miss probably.
      if (sectioned) {
        const std::string hint =
            is_section(path) ? "a section; set its keys"
                             : (meant ? "did you mean " + std::string(*meant) + "?" : "remove it");
        return error(place, "unknown variable; " + hint, path);
      }
      const bool near_miss =
          meant && variable.size() > variable_prefix.size() + 2 &&
          nearest(std::string_view(variable).substr(variable_prefix.size()), tails(candidates));
      if (near_miss) {
        warn(place, "ignored; did you mean " + std::string(*meant) + "?", path);
      }
      return;
    }
    add_given(path, Found{place, nullptr, {text}});
  }

  static std::vector<std::string_view> tails(const std::vector<std::string_view>& variables) {
    std::vector<std::string_view> result;
    for (const std::string_view one : variables)
      result.push_back(one.substr(variable_prefix.size()));
    return result;
  }

  void take_given(const std::vector<Given>& given, Origin origin) {
    std::size_t order = 0;
    for (const Given& one : given) {
      const Place place{origin, one.name, {}, order++};
      if (find_key(one.key) == nullptr &&
          !(one.key.starts_with(kafka_prefix) && one.key.size() > kafka_prefix.size())) {
        error(place, "unknown key", one.key);
        continue;
      }
      add_given(one.key, Found{place, nullptr, one.values});
    }
  }

  void add_given(const std::string& path, Found found) {
    for (std::string section = path; section.rfind('.') != std::string::npos;) {
      section.resize(section.rfind('.'));
      if (!path.starts_with(kafka_prefix)) sections_.emplace(section, found.place);
    }
    auto& all = found_[path];
    const bool twice = std::any_of(all.begin(), all.end(), [&](const Found& other) {
      return other.place.origin == found.place.origin;
    });
    if (twice) return bad(found.place, "given twice", path);
    all.push_back(std::move(found));
  }

  const Found* winner_of(std::string_view path) const {
    const auto all = found_.find(path);
    if (all == found_.end() || all->second.empty()) return nullptr;
    return &*std::max_element(
        all->second.begin(), all->second.end(),
        [](const Found& a, const Found& b) { return a.place.origin < b.place.origin; });
  }

  bool is_consumer() const {
    const Found* winner = winner_of("kafka.group.protocol");
    if (winner == nullptr) return false;
    if (winner->node != nullptr) return winner->node->text == "consumer";
    return winner->texts.size() == 1 && winner->texts.front() == "consumer";
  }

  // ---- one value --------------------------------------------------------------------------------

  void evaluate(const std::string& path, const std::vector<Found>& all) {
    const Found* winner = winner_of(path);
    for (const Found& found : all) {
      auto setting = check(path, found);
      if (setting && &found == winner) settings_[path] = std::move(*setting);
    }
  }

  std::optional<Setting> check(const std::string& path, const Found& found) {
    const Key* key = find_key(path);
    const bool client = path.starts_with(kafka_prefix);
    static constexpr Key any_property = [] {
      Key property;
      property.type = Type::string;
      return property;
    }();
    if (key == nullptr) key = &any_property;
    if (key->stage == Stage::later) return fail_at(found.place, comes_later(*key), path);
    if (client && !allowed_property(path, found)) return std::nullopt;

    Setting setting;
    setting.origin = found.place.origin;
    setting.at = found.place.text();
    setting.secret = is_sensitive(path);
    const bool good = key->type == Type::list ? check_list(path, *key, found, setting)
                                              : check_scalar(path, *key, found, setting);
    if (!good) return std::nullopt;
    if (setting.value == Value(std::string())) setting.secret = false;  // nothing to hide
    if (key->stage == Stage::only_default && setting.value != default_value(*key)) {
      const std::string only =
          key->type == Type::string ? quote(key->fallback) : std::string(key->fallback);
      return fail_at(found.place,
                     "accepts only " + only + " until " + std::string(key->reason) +
                         (key->reason.ends_with('s') ? " come" : " comes") + " in a later version",
                     path);
    }
    if (client && !taken_by_client(path, found.place, setting)) return std::nullopt;
    return setting;
  }

  std::nullopt_t fail_at(const Place& place, std::string text, const std::string& path) {
    bad(place, std::move(text), path);
    return std::nullopt;
  }

  bool allowed_property(const std::string& path, const Found& found) {
    const std::string property = path.substr(kafka_prefix.size());
    const bool turns_off =
        (property == "enable.auto.commit" || property == "enable.auto.offset.store") &&
        (found.node != nullptr ? found.node->text == "false"
                               : found.texts == std::vector<std::string>{"false"});
    if (turns_off) {
      warn(found.place, "always off in Tenure (C4); remove it", path);
      return false;
    }
    const auto reason = refused_property(property, consumer_);
    if (reason) bad(found.place, "refused: " + *reason, path);
    return !reason;
  }

  bool check_scalar(const std::string& path, const Key& key, const Found& found, Setting& setting) {
    std::string text;
    bool quoted = false;
    if (found.node != nullptr) {
      const YamlNode& node = *found.node;
      const bool empty_section =
          key.type == Type::block && (node.kind == YamlNode::Kind::null ||
                                      (node.kind == YamlNode::Kind::map && node.entries.empty()));
      if (empty_section) {
        setting.value = setting.written = true;
        return true;
      }
      if (node.kind != YamlNode::Kind::scalar) {
        bad(found.place, no_scalar(path, key, node), path);
        return false;
      }
      text = node.text;
      quoted = node.quoted;
    } else {
      if (found.texts.size() != 1) {
        bad(found.place, "expected " + accepted(key) + ", got several values", path);
        return false;
      }
      text = found.texts.front();
    }
    auto expanded = expand_text(path, key, found.place, text, setting);
    if (!expanded) return false;
    setting.written = text;
    auto value = parse_scalar(key, *expanded, quoted, setting.secret);
    if (!value) {
      bad(found.place, value.error().message, path);
      return false;
    }
    if (const auto wrong = wrong_text(path, *expanded)) {
      bad(found.place, *wrong, path);
      return false;
    }
    setting.value = std::move(*value);
    if (key.type != Type::string) setting.written = setting.value;
    return true;
  }

  static std::string no_scalar(const std::string& path, const Key& key, const YamlNode& node) {
    std::string text = "expected " + accepted(key) + ", got ";
    switch (node.kind) {
      case YamlNode::Kind::null:
        text += "nothing; write a value or remove the line";
        if (!key.required && !key.fallback.empty()) {
          text += " (default " + std::string(key.fallback) + ")";
        }
        return text;
      case YamlNode::Kind::list:
        text += "a list";
        if (path.starts_with(kafka_prefix)) text += "; write \"a,b\"";
        return text;
      case YamlNode::Kind::map:
        text += "a section";
        if (path.starts_with(kafka_prefix)) {
          text +=
              "; write client properties with dots: " + path.substr(kafka_prefix.size()) + ".x: y";
        }
        return text;
      case YamlNode::Kind::scalar:
        break;
    }
    return text + "another value";
  }

  bool check_list(const std::string& path, const Key& key, const Found& found, Setting& setting) {
    struct Item {
      std::string text;
      Place place;
    };
    std::vector<Item> items;
    bool good = true;
    YamlTree inline_list;
    const YamlNode* node = found.node;
    if (node == nullptr && found.place.origin == Origin::environment) {
      const std::string& text = found.texts.front();
      if (text.starts_with('[')) {
        inline_list = YamlTree::parse(text);
        if (inline_list.root() == nullptr || inline_list.root()->kind != YamlNode::Kind::list) {
          bad(found.place, "not a list; write [\"a\", \"b\"]", path);
          return false;
        }
        node = inline_list.root();
      } else if (path == "topics") {
        for (std::size_t start = 0; start <= text.size();) {
          const std::size_t comma = std::min(text.find(',', start), text.size());
          items.push_back({text.substr(start, comma - start), found.place});
          start = comma + 1;
        }
      } else {
        bad(found.place, "not a list; write [\"a\", \"b\"]", path);
        return false;
      }
    } else if (node == nullptr) {
      for (const std::string& text : found.texts) items.push_back({text, found.place});
    }
    if (node != nullptr) {
      if (node->kind == YamlNode::Kind::scalar) {
        const std::string shown = setting.secret ? "another value" : quote(node->text);
        bad(found.place, "expected " + accepted(key) + ", got " + shown + "; put it in [ ]", path);
        return false;
      }
      if (node->kind != YamlNode::Kind::list) {
        bad(found.place, no_scalar(path, key, *node), path);
        return false;
      }
      for (const YamlNode::Item& item : node->items) {
        const Place place = found.node != nullptr ? file_place(item.at) : found.place;
        if (item.node->kind != YamlNode::Kind::scalar) {
          bad(place, "expected a text in this list; put it in quotes", path);
          good = false;
          continue;
        }
        items.push_back({item.node->text, place});
      }
    }
    if (good && static_cast<std::int64_t>(items.size()) < key.min) {
      bad(found.place, "expected " + accepted(key), path);
      return false;
    }
    std::vector<std::string> values;
    std::vector<std::string> written;
    bool all_references = true;
    for (const Item& item : items) {
      Setting one;
      one.origin = setting.origin;
      const auto expanded = expand_text(path, key, item.place, item.text, one);
      good = good && expanded.has_value();
      if (!expanded) continue;
      const bool repeated = std::find(values.begin(), values.end(), *expanded) != values.end();
      auto wrong = wrong_text(path, *expanded);
      if (!wrong && path == "topics" && repeated)
        wrong = "topic " + quote(*expanded) + " is here twice";
      if (!wrong && expanded->empty() && (path == "handler.sql.statements" || values.empty())) {
        wrong = "expected a text that is not empty";
      }
      if (wrong) {
        bad(item.place, *wrong, path);
        good = false;
      }
      setting.secret = setting.secret || one.secret;
      all_references = all_references && (!one.secret || one.only_references);
      values.push_back(*expanded);
      written.push_back(item.text);
    }
    setting.only_references = all_references;
    setting.value = std::move(values);
    setting.written = std::move(written);
    return good;
  }

  /// Replaces references and refuses what must not be written out.
  std::optional<std::string> expand_text(const std::string& path, const Key& key,
                                         const Place& place, const std::string& text,
                                         Setting& setting) {
    if (!is_utf8(text)) return fail_at(place, "not UTF-8", path);
    if (text.find('\0') != std::string::npos) return fail_at(place, "has a NUL byte", path);
    if (key.type != Type::string && key.type != Type::list) return text;
    auto expansion = expand(text, sources_.environment);
    if (!expansion) return fail_at(place, expansion.error().message, path);
    setting.secret = setting.secret || expansion->secret;
    setting.only_references = expansion->only_references;
    if (needs_reference(path) && !expansion->only_references && !text.empty()) {
      const std::string fix = "write ${file:PATH}, ${cred:NAME} or ${env:NAME}";
      if (place.origin == Origin::flag) {
        return fail_at(place, "a secret on the command line can be read by others; " + fix, path);
      }
      if (place.origin == Origin::file || place.origin == Origin::builder) {
        return fail_at(place, "a secret must not be written out; " + fix, path);
      }
    }
    if (!setting.secret && !is_utf8(expansion->text)) {
      return fail_at(place, "refers to a value that is not UTF-8", path);
    }
    return expansion->text;
  }

  /// What a text of this key must look like beyond its type.
  static std::optional<std::string> wrong_text(const std::string& path, const std::string& text) {
    if (path == "topics") return wrong_topic(text);
    if (path == "kafka.bootstrap.servers") return wrong_servers(text);
    if (path == "kafka.partition.assignment.strategy") return wrong_strategy(text);
    if (path == "store.sqlite.path" && text == ":memory:") {
      return "a database that ends with its connection; write store.memory instead";
    }
    return std::nullopt;
  }

  static std::optional<std::string> wrong_topic(const std::string& text) {
    if (text.starts_with('^')) {
      if (text.size() == 1) return "an empty regular expression; write ^name.*";
      return std::nullopt;
    }
    const bool legal = !text.empty() && text.size() <= 249 && text != "." && text != ".." &&
                       std::all_of(text.begin(), text.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ||
                                c == '_' || c == '-';
                       });
    if (legal) return std::nullopt;
    return "no topic name: " + quote(text) +
           "; 1..249 of letters, digits, \".\", \"_\", \"-\", or ^regex";
  }

  static std::optional<std::string> wrong_servers(const std::string& text) {
    std::size_t start = 0;
    while (start <= text.size()) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      std::string server = text.substr(start, comma - start);
      server.erase(0, std::min(server.find_first_not_of(' '), server.size()));
      server.resize(server.find_last_not_of(' ') + 1);
      start = comma + 1;
      const std::string shown = quote(server);
      if (const std::size_t scheme = server.find("://"); scheme != std::string::npos) {
        server.erase(0, scheme + 3);
      }
      const std::size_t colon = server.rfind(':');
      const bool bracketed = server.starts_with('[') && server.find(']') > 1;
      const bool has_port = colon != std::string::npos && (!bracketed || colon > server.find(']'));
      const std::string host = has_port ? server.substr(0, colon) : server;
      bool legal = !host.empty() && host.find_first_of(" \t/@") == std::string::npos &&
                   (bracketed || host.find(':') == std::string::npos);
      if (has_port) {
        const std::string port = server.substr(colon + 1);
        legal = legal && !port.empty() && port.size() <= 5 &&
                port.find_first_not_of("0123456789") == std::string::npos;
        legal = legal && std::stoi(port) >= 1 && std::stoi(port) <= 65535;
      }
      if (!legal) return "no broker: " + shown + "; write host:port, with a port 1..65535";
    }
    return std::nullopt;
  }

  static std::optional<std::string> wrong_strategy(const std::string& text) {
    static constexpr std::string_view names[] = {"range", "roundrobin", "cooperative-sticky"};
    bool eager = false;
    bool cooperative = false;
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      const std::string name = text.substr(start, comma - start);
      start = comma + 1;
      if (std::find(std::begin(names), std::end(names), name) == std::end(names)) {
        const auto meant = nearest(name, names);
        return "unknown assignor " + quote(name) + "; known: " + joined(names) +
               (meant ? "; did you mean " + quote(*meant) + "?" : "");
      }
      (name == "cooperative-sticky" ? cooperative : eager) = true;
    }
    if (eager && cooperative) {
      return std::string("cooperative-sticky cannot be mixed with others; name it alone");
    }
    return std::nullopt;
  }

  bool taken_by_client(const std::string& path, const Place& place, const Setting& setting) {
    const std::string property = path.substr(kafka_prefix.size());
    if (!sources_.check_property || property == "auto.offset.reset") return true;
    const auto complaint = sources_.check_property(property, client_text(setting.value));
    if (!complaint) return true;
    bad(place,
        setting.secret ? "the client does not take this value"
                       : "the client says: " + one_line(*complaint),
        path);
    return false;
  }

  /// The client ends some of its complaints with a line end.
  static std::string one_line(std::string text) {
    text.resize(text.find_last_not_of(" \r\n") + 1);
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

  static std::string client_text(const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return {};
  }

  // ---- the whole --------------------------------------------------------------------------------

  std::vector<std::string> present(std::initializer_list<std::string_view> paths) const {
    std::vector<std::string> result;
    for (const std::string_view path : paths) {
      if (sections_.contains(path) || found_.contains(path)) result.emplace_back(path);
    }
    return result;
  }

  Place section_place(const std::string& path) const {
    const auto section = sections_.find(path);
    return section != sections_.end() ? section->second : place_of(path);
  }

  void choose_blocks() {
    handlers_ = present({"handler.exec", "handler.http", "handler.sql"});
    stores_ = present({"store.postgres", "store.sqlite", "store.memory"});
    const auto two = [&](const std::vector<std::string>& blocks, const std::string& one_of) {
      for (std::size_t i = 1; i < blocks.size(); ++i) {
        const Place first = section_place(blocks[0]);
        const Place second = section_place(blocks[i]);
        const bool swapped = std::tuple(rank(second.origin), second.order, second.at) <
                             std::tuple(rank(first.origin), first.order, first.at);
        bad(swapped ? first : second,
            "only one " + one_of + ", but " + (swapped ? blocks[i] : blocks[0]) + " is given at " +
                (swapped ? second : first).text(),
            swapped ? blocks[0] : blocks[i]);
      }
    };
    if (sources_.handlers == HandlerRule::none) {
      for (const std::string& block : handlers_) {
        bad(section_place(block), "this program has its handler in the code; remove it", block);
      }
      return two(stores_, "store");
    }
    two(handlers_, "handler");
    two(stores_, "store");
    if (file_complete_ && sources_.handlers == HandlerRule::one && handlers_.empty() &&
        sound({"handler"})) {
      error(section_place("handler"), "no handler; give one of handler.exec, handler.sql",
            "handler");
    }
  }

  bool applies(const Key& key) const {
    if (key.stage == Stage::later) return false;
    for (const std::string_view root : {"handler.", "store."}) {
      if (!key.path.starts_with(root)) continue;
      const std::size_t dot = key.path.find('.', root.size());
      const std::string block(key.path.substr(0, dot));
      if (dot == std::string_view::npos && key.type != Type::block) return true;  // store.create
      const auto& blocks = root == "handler." ? handlers_ : stores_;
      return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
    }
    return true;
  }

  void check_required() {
    for (const Key& key : keys()) {
      if (!key.required || !applies(key) || found_.contains(key.path)) continue;
      if (key.path == "version" && !sources_.file) continue;
      std::string text =
          "missing; write " + quote_example(key) + ", set " + environment_name(key.path);
      if (!key.flag.empty()) text += ", or use " + std::string(key.flag);
      bad(place_of(key.path), text, std::string(key.path));
    }
  }

  static std::string quote_example(const Key& key) { return "`" + std::string(key.example) + "`"; }

  /// Defaults that do not depend on other keys, then those that do.
  void fill_defaults() {
    for (const Key& key : keys()) {
      const std::string path(key.path);
      if (!applies(key) || settings_.contains(path) || key.type == Type::block) continue;
      if (key.required && path != "version") continue;
      if (consumer_ &&
          refused_property(path.substr(std::min(path.size(), kafka_prefix.size())), true) &&
          path.starts_with(kafka_prefix)) {
        continue;
      }
      Setting setting;
      setting.value = setting.written = default_value(key);
      settings_[path] = std::move(setting);
    }
    const auto rule = [&](const std::string& path, Value value) {
      Setting& setting = settings_[path];
      if (setting.origin == Origin::fallback) setting.value = setting.written = std::move(value);
    };
    if (settings_.contains("kafka.group.id")) rule("effect.scope", text("kafka.group.id"));
    rule("kafka.queued.min.messages",
         std::max(integer("kafka.queued.min.messages"),
                  std::min<std::int64_t>(integer("window.records"), 10'000'000)));
    const bool outside = has_handler("handler.exec") || has_handler("handler.http");
    const bool transactional = has_handler("handler.sql") || (!outside && !stores_.empty());
    rule("effect.kind", std::string(transactional ? "transaction" : "idempotent"));
  }

  bool has_handler(std::string_view block) const {
    return std::find(handlers_.begin(), handlers_.end(), block) != handlers_.end();
  }

  const Value& value(std::string_view path) const { return settings_.find(path)->second.value; }
  std::int64_t integer(std::string_view path) const { return std::get<std::int64_t>(value(path)); }
  const std::string& text(std::string_view path) const {
    return std::get<std::string>(value(path));
  }
  bool truth(std::string_view path) const { return std::get<bool>(value(path)); }
  std::uint32_t count(std::string_view path) const {
    return static_cast<std::uint32_t>(integer(path));
  }
  std::chrono::milliseconds span(std::string_view path) const {
    return std::chrono::milliseconds(integer(path));
  }
  const std::vector<std::string>& list(std::string_view path) const {
    return std::get<std::vector<std::string>>(value(path));
  }
  bool given(std::string_view path) const { return winner_of(path) != nullptr; }

  /// False when one of them is wrong by itself: then nothing can be said of them together.
  bool sound(std::initializer_list<std::string_view> paths) const {
    return std::none_of(paths.begin(), paths.end(),
                        [this](std::string_view path) { return bad_.contains(path); });
  }

  void at_most(std::string_view small, std::string_view large) {
    if (!sound({small, large}) || integer(small) <= integer(large)) return;
    const std::string key = given_of({small, large});
    error(place_of(key),
          std::string(small) + " " + std::to_string(integer(small)) + " is above " +
              std::string(large) + " " + std::to_string(integer(large)) + "; " +
              (key == small ? "lower it, or raise " + std::string(large)
                            : "raise it, or lower " + std::string(small)),
          key);
  }

  void cross_check() {
    at_most("window.records", "window.records_total");
    at_most("window.bytes", "window.bytes_total");
    at_most("retry.backoff_min_ms", "retry.backoff_max_ms");
    check_budgets();
    check_session();
    check_effect();
    check_lanes();
    if (given("commit.metadata_bytes") && sound({"commit.metadata_bytes"}) &&
        integer("commit.metadata_bytes") != 3072) {
      warn(place_of("commit.metadata_bytes"),
           "no effect yet: this version writes no completion map", "commit.metadata_bytes");
    }
    if (stores_.empty() && sound({"store.create"}) && truth("store.create")) {
      warn(place_of("store.create"), "no effect without a store", "store.create");
    }
  }

  /// R7: what a drain may take must fit into what the group protocol leaves.
  void check_budgets() {
    if (!sound({"drain.budget_ms", "drain.commit_ms", "drain.margin_ms", "shutdown.budget_ms",
                "kafka.heartbeat.interval.ms", "kafka.max.poll.interval.ms",
                "kafka.group.protocol"})) {
      return;
    }
    const std::int64_t limit = integer("kafka.max.poll.interval.ms");
    const std::int64_t commit = integer("drain.commit_ms");
    std::int64_t margin = integer("drain.margin_ms");
    std::string margin_name = "drain.margin_ms ";
    // Under KIP-848 the broker tells the interval, at run time.
    if (!consumer_ && integer("kafka.heartbeat.interval.ms") > margin) {
      margin = integer("kafka.heartbeat.interval.ms");
      margin_name = "kafka.heartbeat.interval.ms ";
    }
    const auto sum = [&](std::string_view name, std::int64_t budget) {
      return std::string(name) + " " + std::to_string(budget) + " + drain.commit_ms " +
             std::to_string(commit) + " + " + margin_name + std::to_string(margin) + " = " +
             std::to_string(budget + commit + margin) + " exceeds kafka.max.poll.interval.ms " +
             std::to_string(limit);
    };
    const std::int64_t drain = integer("drain.budget_ms");
    const std::int64_t left = limit - commit - margin;
    if (drain > left) {
      const std::string key =
          given_of({"drain.budget_ms", "drain.commit_ms", "drain.margin_ms",
                    "kafka.max.poll.interval.ms", "kafka.heartbeat.interval.ms"});
      const std::string lower =
          left >= 0 ? "lower drain.budget_ms to " + std::to_string(left) + ", or " : "";
      error(place_of(key),
            sum("drain.budget_ms", drain) + "; " + lower + "raise kafka.max.poll.interval.ms to " +
                std::to_string(drain + commit + margin),
            key);
    } else if (const std::int64_t shutdown = integer("shutdown.budget_ms"); shutdown > left) {
      const std::string key = given_of({"shutdown.budget_ms", "kafka.max.poll.interval.ms",
                                        "drain.commit_ms", "drain.margin_ms"});
      warn(place_of(key),
           sum("shutdown.budget_ms", shutdown) + "; a rebalance during the shutdown cuts it to " +
               std::to_string(left),
           key);
    }
  }

  void check_session() {
    if (consumer_ || !sound({"kafka.session.timeout.ms", "kafka.heartbeat.interval.ms",
                             "kafka.max.poll.interval.ms"})) {
      return;
    }
    at_most("kafka.session.timeout.ms", "kafka.max.poll.interval.ms");
    const std::int64_t session = integer("kafka.session.timeout.ms");
    const std::int64_t heartbeat = integer("kafka.heartbeat.interval.ms");
    if (heartbeat < session) return;
    const std::string key = given_of({"kafka.heartbeat.interval.ms", "kafka.session.timeout.ms"});
    error(place_of(key),
          "kafka.heartbeat.interval.ms " + std::to_string(heartbeat) +
              " must be below kafka.session.timeout.ms " + std::to_string(session) +
              "; a third of it is usual",
          key);
  }

  void check_effect() {
    if (handlers_.size() > 1 || stores_.size() > 1) return;
    const bool sql = has_handler("handler.sql");
    if (sql && stores_.empty()) {
      return error(section_place("handler.sql"), "needs a store; add `store: {sqlite: {path: ..}}`",
                   "handler.sql");
    }
    if (sql && stores_ == std::vector<std::string>{"store.memory"}) {
      return error(section_place("store.memory"),
                   "runs no SQL; handler.sql needs `store: {sqlite: {path: ..}}`", "store.memory");
    }
    if (!sound({"effect.kind"})) return;
    const bool transaction = text("effect.kind") == "transaction";
    const bool exec = has_handler("handler.exec");
    if (transaction && (exec || has_handler("handler.http"))) {
      return error(place_of("effect.kind"),
                   "transaction cannot cover what a program or service outside the store does; "
                   "write idempotent",
                   "effect.kind");
    }
    if (sql && !transaction) {
      return error(place_of("effect.kind"),
                   "handler.sql runs in the store's transaction; write transaction", "effect.kind");
    }
    if (transaction && stores_.empty()) {
      error(place_of("effect.kind"),
            "transaction needs a store; add `store: {sqlite: {path: ..}}` or write idempotent",
            "effect.kind");
    }
  }

  void check_lanes() {
    if (!given("lanes") || !sound({"lanes", "order"})) return;
    const auto* lanes = std::get_if<std::int64_t>(&value("lanes"));
    if (lanes == nullptr) return;
    if (text("order") == "partition" && *lanes != 1) {
      error(place_of("lanes"),
            "order partition is one lane, got " + std::to_string(*lanes) + "; write auto or 1",
            "lanes");
    } else if (stores_.empty()) {
      warn(place_of("lanes"), "no effect without a store", "lanes");
    }
  }

  // ---- the result -------------------------------------------------------------------------------

  LoadedConfig finish() {
    std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& a, const Ranked& b) {
      return std::tie(a.rank, a.order, a.fault.at, a.number) <
             std::tie(b.rank, b.order, b.fault.at, b.number);
    });
    LoadedConfig result;
    bool valid = true;
    for (Ranked& ranked : ranked_) {
      valid = valid && ranked.fault.severity == Fault::Severity::warning;
      result.faults.push_back(std::move(ranked.fault));
    }
    if (valid) result.config = build();
    return result;
  }

  template <class E, std::size_t N>
  E word(std::string_view path, const Named<E> (&names)[N]) const {
    for (const Named<E>& one : names) {
      if (one.text == text(path)) return one.value;
    }
    TENURE_ASSERT(false, "the schema lets through a word that the configuration does not know");
    return names[0].value;
  }

  OutcomeKind outcome(std::string_view path) const {
    return word<OutcomeKind>(path, {{"retry", OutcomeKind::retry},
                                    {"reject", OutcomeKind::reject},
                                    {"park", OutcomeKind::park},
                                    {"stop", OutcomeKind::stop}});
  }

  Config build() {
    Config config;
    config.kafka = build_kafka();
    config.topics = settings_.contains("topics") ? list("topics") : std::vector<std::string>();
    config.order = word<Order>(
        "order", {{"key", Order::key}, {"partition", Order::partition}, {"none", Order::none}});
    if (std::holds_alternative<std::int64_t>(value("lanes"))) config.lanes = count("lanes");
    config.concurrency = count("concurrency");
    config.window = {count("window.records"), static_cast<std::uint64_t>(integer("window.bytes")),
                     count("window.records_total"),
                     static_cast<std::uint64_t>(integer("window.bytes_total"))};
    if (has_handler("handler.exec")) config.handler = build_exec();
    if (has_handler("handler.sql")) {
      config.handler = Config::Sql{list("handler.sql.statements"), truth("handler.sql.text"),
                                   count("handler.sql.expect_rows")};
    }
    config.retry.attempts = count("retry.attempts");
    config.retry.backoff_min = span("retry.backoff_min_ms");
    config.retry.backoff_max = span("retry.backoff_max_ms");
    config.retry.jitter = std::get<double>(value("retry.jitter"));
    config.retry.waiting_max = count("retry.waiting_max");
    config.retry.exhausted = outcome("retry.exhausted");
    config.effect.kind = word<EffectKind>("effect.kind", {{"transaction", EffectKind::transaction},
                                                          {"idempotent", EffectKind::idempotent}});
    config.effect.scope = text("effect.scope");
    if (settings_.contains("store.sqlite.path")) {
      using Synchronous = Config::Sqlite::Synchronous;
      config.store = Config::Sqlite{
          text("store.sqlite.path"),
          word<Synchronous>("store.sqlite.synchronous",
                            {{"full", Synchronous::full}, {"normal", Synchronous::normal}})};
    } else if (settings_.contains("store.memory")) {
      config.store = Config::Memory{};
    }
    config.store_create = truth("store.create");
    config.batch = {count("batch.records"), span("batch.wait_ms")};
    config.commit = {span("commit.interval_ms"), count("commit.metadata_bytes"),
                     truth("commit.start_position")};
    config.drain = {span("drain.budget_ms"), span("drain.commit_ms"), span("drain.margin_ms")};
    config.shutdown = {span("shutdown.budget_ms"), span("shutdown.close_ms")};
    config.log.format = word<LogFormat>(
        "log.format",
        {{"auto", LogFormat::automatic}, {"text", LogFormat::text}, {"json", LogFormat::json}});
    config.log.level = word<Level>("log.level", {{"error", Level::error},
                                                 {"warn", Level::warn},
                                                 {"info", Level::info},
                                                 {"debug", Level::debug}});
    config.log.keys =
        word<LoggedKeys>("log.keys", {{"hash", LoggedKeys::hash}, {"none", LoggedKeys::none}});
    config.settings = std::move(settings_);
    return config;
  }

  Config::Kafka build_kafka() const {
    Config::Kafka kafka;
    for (auto it = settings_.lower_bound(kafka_prefix);
         it != settings_.end() && it->first.starts_with(kafka_prefix); ++it) {
      if (it->first == "kafka.auto.offset.reset") continue;
      kafka.properties[it->first.substr(kafka_prefix.size())] = client_text(it->second.value);
    }
    kafka.bootstrap_servers = text("kafka.bootstrap.servers");
    kafka.group_id = text("kafka.group.id");
    kafka.group_protocol = consumer_ ? GroupProtocol::consumer : GroupProtocol::classic;
    kafka.auto_offset_reset =
        word<OffsetReset>("kafka.auto.offset.reset", {{"earliest", OffsetReset::earliest},
                                                      {"latest", OffsetReset::latest},
                                                      {"error", OffsetReset::error}});
    kafka.max_poll_interval = span("kafka.max.poll.interval.ms");
    const auto or_default = [&](std::string_view path) {
      const Value value =
          settings_.contains(path) ? this->value(path) : default_value(*find_key(path));
      return std::chrono::milliseconds(std::get<std::int64_t>(value));
    };
    kafka.session_timeout = or_default("kafka.session.timeout.ms");
    kafka.heartbeat_interval = or_default("kafka.heartbeat.interval.ms");
    return kafka;
  }

  Config::Exec build_exec() const {
    using Mode = Config::Exec::Mode;
    Config::Exec exec;
    exec.command = list("handler.exec.command");
    exec.mode =
        word<Mode>("handler.exec.mode", {{"alive", Mode::alive}, {"per_record", Mode::per_record}});
    exec.processes = count("handler.exec.processes");
    exec.in_flight = count("handler.exec.in_flight");
    exec.timeout = span("handler.exec.timeout_ms");
    exec.start = span("handler.exec.start_ms");
    exec.cancel_grace = span("handler.exec.cancel_grace_ms");
    exec.line_bytes = count("handler.exec.line_bytes");
    exec.on_error = outcome("handler.exec.on_error");
    return exec;
  }

  struct Ranked {
    int rank = 0;
    std::size_t order = 0;
    std::size_t number = 0;
    Fault fault;
  };

  const ConfigSources& sources_;
  YamlTree tree_;
  bool file_complete_ = true;  ///< all keys of the file are known
  bool consumer_ = false;
  std::map<std::string, std::vector<Found>, std::less<>> found_;
  std::map<std::string, Place, std::less<>> sections_;
  std::set<std::string, std::less<>> bad_;
  std::vector<std::string> handlers_;
  std::vector<std::string> stores_;
  Settings settings_;
  std::vector<Ranked> ranked_;
};

}  // namespace

std::string to_string(const Fault& fault) {
  std::string line = fault.where;
  if (fault.at.line > 0) {
    line += ":" + std::to_string(fault.at.line) + ":" + std::to_string(fault.at.column);
  }
  line += fault.severity == Fault::Severity::error ? ": error: " : ": warning: ";
  line += fault.text;
  if (!fault.key.empty()) line += " [" + fault.key + "]";
  return line;
}

LoadedConfig load_config(const ConfigSources& sources) {
  return Loader(sources).run();
}

std::vector<std::string> restart_keys(const Config& old_config, const Config& new_config) {
  std::set<std::string> changed;
  const auto compare = [&changed](const Settings& left, const Settings& right) {
    for (const auto& [path, setting] : left) {
      const Key* key = find_key(path);
      if (key != nullptr && key->reload == Reload::live) continue;
      const auto other = right.find(path);
      if (other == right.end() || other->second.value != setting.value) changed.insert(path);
    }
  };
  compare(old_config.settings, new_config.settings);
  compare(new_config.settings, old_config.settings);
  return {changed.begin(), changed.end()};
}

std::string environment_name(std::string_view key_path) {
  std::string name(variable_prefix);
  const bool client = key_path.starts_with(kafka_prefix);
  bool first_dot = true;
  for (const char c : key_path) {
    if (c != '.') {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    name += client && !first_dot ? "_" : "__";
    first_dot = false;
  }
  return name;
}

}  // namespace tenure::app
