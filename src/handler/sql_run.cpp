// Fills the parameters of a SqlProgram from a record and runs it.
#include <charconv>
#include <limits>
#include <list>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "handler/sql_program.hpp"

namespace tenure::handler {
namespace {

using Json = nlohmann::ordered_json;
using Source = SqlParameter::Source;

/// As many levels as SQLite's own JSON functions take; writing them out recurses.
constexpr std::size_t nesting_max = 1000;

/// Null: there is nothing at that place.
const Json* follow(const Json& document, const std::vector<std::string>& path) {
  const Json* at = &document;
  for (const std::string& step : path) {
    if (at->is_object()) {
      const auto found = at->find(step);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
      const bool number = error == std::errc() && end == step.data() + step.size() &&
                          (step.size() == 1 || step.front() != '0');
      if (!number || index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      return nullptr;
    }
  }
  return at;
}

/// A zero byte would end the text for half of SQLite's functions.
SqlValue as_text(std::string_view bytes) {
  if (bytes.find('\0') == std::string_view::npos && valid_utf8(bytes)) return SqlText{bytes};
  return SqlBlob{bytes};
}

/// The values of one record, with what they point to.
class Filling {
 public:
  Filling(const SqlProgram& program, const Record& record) : program_(program), record_(record) {}

  /// Empty: all is well. Else why there is no JSON.
  std::optional<Outcome> read_json() {
    const Bytes value = record_.value();
    // A tombstone has no fields; that is not a fault of its form.
    if (!program_.reads_json || value.null()) return {};
    if (json_nesting(value.text()) > nesting_max) {
      return reject(fmt::format("the value's JSON is nested deeper than {}", nesting_max), "data");
    }
    document_ = Json::parse(value.text(), nullptr, /*allow_exceptions=*/false);
    if (document_->is_discarded()) return reject("the value is not JSON", "data");
    return {};
  }

  /// Null = missing.
  SqlValue value_of(const SqlParameter& parameter) {
    switch (parameter.source) {
      case Source::key:
        return payload(record_.key());
      case Source::value:
        return payload(record_.value());
      case Source::topic:
        return SqlText{record_.topic()};
      case Source::partition:
        return std::int64_t{record_.partition()};
      case Source::offset:
        return record_.offset();
      case Source::timestamp_ms:
        if (record_.timestamp_ms() < 0) return nullptr;
        return record_.timestamp_ms();
      case Source::identity:
        return SqlText{texts_.emplace_back(record_.identity())};
      case Source::attempt:
        return std::int64_t{record_.attempt()};
      case Source::header: {
        const Bytes header = record_.header(parameter.header);
        if (header.null()) return nullptr;
        return as_text(header.text());
      }
      case Source::json:
        return json(parameter.path);
    }
    return nullptr;
  }

 private:
  SqlValue payload(Bytes bytes) const {
    if (bytes.null()) return nullptr;
    return program_.text ? as_text(bytes.text()) : SqlValue(SqlBlob{bytes.text()});
  }

  SqlValue json(const std::vector<std::string>& path) {
    const Json* found = document_ ? follow(*document_, path) : nullptr;
    if (found == nullptr) return nullptr;
    switch (found->type()) {
      case Json::value_t::string:
        return as_text(found->get_ref<const std::string&>());
      case Json::value_t::boolean:
        return std::int64_t{found->get<bool>() ? 1 : 0};
      case Json::value_t::number_integer:
        return found->get<std::int64_t>();
      case Json::value_t::number_unsigned: {
        const auto number = found->get<std::uint64_t>();
        if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          return static_cast<double>(number);
        }
        return static_cast<std::int64_t>(number);
      }
      case Json::value_t::number_float:
        return found->get<double>();
      case Json::value_t::object:
      case Json::value_t::array:
        return SqlText{texts_.emplace_back(found->dump())};
      case Json::value_t::null:
      case Json::value_t::binary:
      case Json::value_t::discarded:
        break;
    }
    return nullptr;
  }

  const SqlProgram& program_;
  const Record& record_;
  std::optional<Json> document_;
  std::list<std::string> texts_;  ///< a list: values point into it
};

}  // namespace

Outcome run_sql(const SqlProgram& program, const Record& record, SqlExecutor& executor) {
  // All parameters first: the database is not kept waiting, and nothing runs in vain.
  Filling filling(program, record);
  if (std::optional<Outcome> refused = filling.read_json(); refused) return *std::move(refused);
  std::vector<std::vector<SqlValue>> values(program.statements.size());
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    for (const SqlParameter& parameter : program.statements[i].parameters) {
      values[i].push_back(filling.value_of(parameter));
      if (parameter.required && std::holds_alternative<std::nullptr_t>(values[i].back())) {
        return reject(fmt::format("statement {}: {} is missing", i + 1, parameter.written),
                      "missing_field");
      }
    }
  }
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    const Result<std::int64_t> changed = executor.run(program.statements[i].text, values[i]);
    if (!changed) {
      return retry({}, fmt::format("statement {}: {}", i + 1, changed.error().message), "sql");
    }
    if (*changed < program.expect_rows) {
      return reject(fmt::format("statement {} changed {} rows; {} are expected", i + 1, *changed,
                                program.expect_rows),
                    "no_rows");
    }
  }
  return done();
}

}  // namespace tenure::handler
