// The `sql` handler's statements with their record parameters (6-interface, section 4).
//
// compile_sql() reads them once, at the start; run_sql() fills them from a record. Neither knows
// a database: what is specific is behind SqlExecutor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "tenure/outcome.hpp"
#include "tenure/record.hpp"
#include "tenure/result.hpp"

namespace tenure::handler {

struct SqlOptions {
  std::vector<std::string> statements;  ///< run in this order; one SQL statement each
  bool text = true;                     ///< false: key and value are bound as bytes
  std::int64_t expect_rows = 0;  ///< each statement changes at least so many, else reject no_rows
};

/// Something wrong with a statement. Lines and columns count from 1, bytes from the line's start.
struct SqlFault {
  std::size_t statement = 0;  ///< index into SqlOptions::statements
  std::size_t line = 1;
  std::size_t column = 1;
  std::string text;  ///< what, and the fix
};
/// "statement 2, line 1, column 17: unknown parameter ..."; statements count from 1.
std::string describe(const SqlFault& fault);

/// One parameter that a record fills.
struct SqlParameter {
  enum class Source : std::uint8_t {
    key,
    value,
    topic,
    partition,
    offset,
    timestamp_ms,
    identity,
    attempt,
    header,
    json
  };
  Source source = Source::key;
  std::string written;            ///< ":json(/id)"
  bool required = false;          ///< a final `!`: without it a missing one is NULL
  std::string header;             ///< name
  std::vector<std::string> path;  ///< of the JSON pointer, unescaped
};

struct SqlStatement {
  std::string text;  ///< with ?1, ?2 ... for the parameters, in their order
  std::vector<SqlParameter> parameters;
};

/// A value; shared read-only between threads once compiled.
struct SqlProgram {
  std::vector<SqlStatement> statements;
  bool reads_json = false;
  bool text = true;
  std::int64_t expect_rows = 0;
};

/// All faults at once, in order. Literals ('..', "..", `..`, [..]), comments (--, /* */), casts
/// (::type) are left alone. `:key!=1` is a comparison, `:key! = 1` a required parameter.
tl::expected<SqlProgram, std::vector<SqlFault>> compile_sql(const SqlOptions& options);

/// Text as the database stores text; bytes as bytes. Views.
struct SqlText {
  std::string_view bytes;
};
struct SqlBlob {
  std::string_view bytes;
};
using SqlValue = std::variant<std::nullptr_t, std::int64_t, double, SqlText, SqlBlob>;

/// Runs one statement in the record's transaction.
class SqlExecutor {
 public:
  virtual ~SqlExecutor() = default;
  /// Number of rows changed. `values` belong to ?1, ?2 ... in order.
  virtual Result<std::int64_t> run(std::string_view sql, std::span<const SqlValue> values) = 0;
};

/// Fills and runs all statements; stops at the first that fails. Nothing runs when a parameter
/// cannot be filled: `reject`, class `missing_field`, or `data` where the value is no JSON. What
/// an SQL error means is the store's to say; this answers `retry`, class `sql`, then.
///
/// A key, value, header or JSON string that is not UTF-8, or has a zero byte, is bound as bytes.
/// JSON: whole numbers as integers where 64 bits hold them, else as REAL, true and false as 1 and
/// 0, objects and arrays as JSON text, null as missing.
Outcome run_sql(const SqlProgram& program, const Record& record, SqlExecutor& executor);

}  // namespace tenure::handler
