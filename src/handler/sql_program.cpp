#include "handler/sql_program.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tenure::handler {
namespace {

using Source = SqlParameter::Source;

struct NamedSource {
  std::string_view name;
  Source source;
};
constexpr std::array<NamedSource, 10> sources = {{
    {"key", Source::key},
    {"value", Source::value},
    {"topic", Source::topic},
    {"partition", Source::partition},
    {"offset", Source::offset},
    {"timestamp_ms", Source::timestamp_ms},
    {"identity", Source::identity},
    {"attempt", Source::attempt},
    {"header", Source::header},
    {"json", Source::json},
}};

/// Words a statement of a handler cannot begin with: the transaction is ours.
constexpr std::array<std::string_view, 10> refused_words = {
    "BEGIN",   "COMMIT", "END",    "ROLLBACK", "SAVEPOINT",
    "RELEASE", "ATTACH", "DETACH", "VACUUM",   "PRAGMA"};

bool word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool word_part(char c) {
  return word_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool white(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string unknown(std::string_view name) {
  std::string_view nearest;
  std::size_t least = 3;
  for (const NamedSource& known : sources) {
    const std::size_t distance = edit_distance(upper(name), upper(known.name));
    if (distance < least) {
      least = distance;
      nearest = known.name;
    }
  }
  std::string text = fmt::format("unknown parameter \":{}\"", name);
  if (!nearest.empty()) {
    text += fmt::format("; did you mean \":{}\"?", nearest);
  } else {
    text +=
        "; there are key value topic partition offset timestamp_ms identity attempt "
        "header(NAME) json(POINTER)";
  }
  return text;
}

/// RFC 6901. Empty when it is no pointer.
std::optional<std::vector<std::string>> pointer_path(std::string_view pointer) {
  std::vector<std::string> path;
  if (pointer.empty()) return path;
  if (pointer.front() != '/') return {};
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    const char c = pointer[i];
    if (c == '/') {
      path.emplace_back();
    } else if (c != '~') {
      path.back() += c;
    } else if (i + 1 < pointer.size() && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      path.back() += pointer[++i] == '0' ? '~' : '/';
    } else {
      return {};
    }
  }
  return path;
}

/// Copies one statement and puts ?N where it has parameters.
class Reader {
 public:
  Reader(std::string_view source, std::size_t statement, std::vector<SqlFault>& faults)
      : source_(source), statement_(statement), faults_(faults) {}

  SqlStatement read() {
    while (at_ < source_.size()) step();
    if (!seen_anything_) fault(0, "the statement is empty");
    return std::move(result_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void copy(std::size_t count) {
    result_.text.append(source_.substr(at_, count));
    at_ = std::min(at_ + count, source_.size());
  }
  void copy_to(std::size_t end) { copy(std::min(end, source_.size()) - at_); }

  void fault(std::size_t at, std::string text) {
    const std::string_view before = source_.substr(0, at);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n');
    const std::size_t column =
        line_start == std::string_view::npos ? at : before.size() - line_start - 1;
    faults_.push_back(
        SqlFault{statement_, static_cast<std::size_t>(lines) + 1, column + 1, std::move(text)});
  }

  void step() {
    const char c = peek();
    if (white(c)) return copy(1);
    if (c == '-' && peek(1) == '-') return copy_to(source_.find('\n', at_));
    if (c == '/' && peek(1) == '*') {
      const std::size_t end = source_.find("*/", at_ + 2);
      return copy_to(end == std::string_view::npos ? end : end + 2);
    }
    if (c == ';') {
      if (!seen_anything_) fault(at_, "nothing stands before the ;");
      seen_anything_ = true;
      ended_ = true;
      return copy(1);
    }
    if (ended_ && !told_of_more_) {
      told_of_more_ = true;
      fault(at_, "a second statement begins here; make it an entry of its own");
    }
    if (c == '\'' || c == '"' || c == '`') return literal(c);
    if (c == '[') return literal(']');
    if (c == ':' && peek(1) == ':') {
      mark();
      return copy(2);
    }
    if (c == ':' && word_start(peek(1))) return parameter();
    if (c == '?' || ((c == '@' || c == '$') && word_start(peek(1)))) {
      fault(at_, fmt::format("\"{}\" would stay without a value; parameters are written :name",
                             source_.substr(at_, c == '?' ? 1 : 2)));
    }
    if (word_start(c)) return word();
    mark();
    copy(1);
  }

  void mark() { seen_anything_ = true; }

  void literal(char close) {
    mark();
    const std::size_t begin = at_;
    std::size_t end = source_.find(close, at_ + 1);
    if (end == std::string_view::npos) {
      fault(begin, fmt::format("{} is never closed", source_[begin]));
    }
    copy_to(end == std::string_view::npos ? end : end + 1);
    // A doubled quote stands for itself: the next step reads its second half as a literal.
  }

  void word() {
    std::size_t end = at_;
    while (end < source_.size() && word_part(source_[end])) ++end;
    if (!seen_anything_) {
      const std::string first = upper(source_.substr(at_, end - at_));
      if (std::find(refused_words.begin(), refused_words.end(), first) != refused_words.end()) {
        fault(at_, first +
                       " cannot run here: Tenure begins and ends the transaction, so that "
                       "effect and progress are one");
      }
    }
    mark();
    copy_to(end);
  }

  void parameter() {
    mark();
    const std::size_t begin = at_;
    std::size_t end = begin + 1;
    while (end < source_.size() && word_part(source_[end])) ++end;
    const std::string_view name = source_.substr(begin + 1, end - begin - 1);
    const auto known = std::find_if(sources.begin(), sources.end(),
                                    [&](const NamedSource& entry) { return entry.name == name; });
    if (known == sources.end()) {
      fault(begin, unknown(name));
      return copy_to(end);
    }
    SqlParameter parameter;
    parameter.source = known->source;
    if (parameter.source == Source::header || parameter.source == Source::json) {
      if (!argument(begin, end, parameter)) return copy_to(end);
    }
    parameter.written = source_.substr(begin, end - begin);
    // `:key!=1` compares.
    if (end < source_.size() && source_[end] == '!' &&
        !(end + 1 < source_.size() && source_[end + 1] == '=')) {
      parameter.required = true;
      ++end;
    }
    place(std::move(parameter));
    at_ = end;
    // ":json(/a)1" is no SQL; "?11" would be.
    if (word_part(peek())) result_.text += ' ';
  }

  /// Reads "(...)" behind the name; moves `end` behind it.
  bool argument(std::size_t begin, std::size_t& end, SqlParameter& parameter) {
    const bool is_header = parameter.source == Source::header;
    const std::size_t close = source_.find(')', end);
    if (end >= source_.size() || source_[end] != '(' || close == std::string_view::npos) {
      fault(begin, is_header ? "write :header(NAME)" : "write :json(POINTER), as in :json(/id)");
      return false;
    }
    const std::string_view text = source_.substr(end + 1, close - end - 1);
    end = close + 1;
    if (is_header) {
      parameter.header = text;
      if (text.empty()) fault(begin, "write :header(NAME); the name is empty");
      return !text.empty();
    }
    std::optional<std::vector<std::string>> path = pointer_path(text);
    if (!path) {
      fault(begin, fmt::format("\"{}\" is no JSON pointer: it begins with / and ~ stands only in "
                               "~0 and ~1; as in :json(/order/id)",
                               text));
      return false;
    }
    parameter.path = std::move(*path);
    return true;
  }

  /// The same parameter twice is bound once.
  void place(SqlParameter parameter) {
    auto& all = result_.parameters;
    auto same = std::find_if(all.begin(), all.end(), [&](const SqlParameter& other) {
      return other.written == parameter.written;
    });
    if (same == all.end()) {
      all.push_back(std::move(parameter));
      same = all.end() - 1;
    } else {
      same->required = same->required || parameter.required;
    }
    result_.text += fmt::format("?{}", same - all.begin() + 1);
  }

  std::string_view source_;
  std::size_t statement_;
  std::vector<SqlFault>& faults_;
  SqlStatement result_;
  std::size_t at_ = 0;
  bool seen_anything_ = false;
  bool ended_ = false;
  bool told_of_more_ = false;
};

}  // namespace

std::string describe(const SqlFault& fault) {
  return fmt::format("statement {}, line {}, column {}: {}", fault.statement + 1, fault.line,
                     fault.column, fault.text);
}

tl::expected<SqlProgram, std::vector<SqlFault>> compile_sql(const SqlOptions& options) {
  std::vector<SqlFault> faults;
  SqlProgram program;
  program.text = options.text;
  program.expect_rows = options.expect_rows;
  if (options.statements.empty()) faults.push_back(SqlFault{0, 1, 1, "there is no statement"});
  for (std::size_t i = 0; i < options.statements.size(); ++i) {
    program.statements.push_back(Reader(options.statements[i], i, faults).read());
    for (const SqlParameter& parameter : program.statements.back().parameters) {
      program.reads_json = program.reads_json || parameter.source == Source::json;
    }
  }
  if (!faults.empty()) return tl::unexpected(std::move(faults));
  return program;
}

}  // namespace tenure::handler
