#include "handler/sql_sqlite.hpp"

#include <type_traits>
#include <utility>
#include <vector>

#include "tenure/sqlite/store.hpp"

namespace tenure::handler {
namespace {

sqlite::Value bound(const SqlValue& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, SqlText>) {
          return sqlite::Value(sqlite::Text{held.bytes});
        } else if constexpr (std::is_same_v<Held, SqlBlob>) {
          return sqlite::Value(sqlite::Blob{held.bytes});
        } else {
          return sqlite::Value(held);
        }
      },
      value);
}

class SqliteExecutor final : public SqlExecutor {
 public:
  explicit SqliteExecutor(sqlite::Transaction& transaction) : transaction_(transaction) {}

  Result<std::int64_t> run(std::string_view sql, std::span<const SqlValue> values) override {
    std::vector<sqlite::Value> parameters;
    parameters.reserve(values.size());
    for (const SqlValue& value : values) parameters.push_back(bound(value));
    const Result<sqlite::Rows> rows = transaction_.query_values(sql, parameters);
    if (!rows) return tl::unexpected<Error>(rows.error());
    return rows->changed();
  }

 private:
  sqlite::Transaction& transaction_;
};

}  // namespace

Handler make_sqlite_handler(SqlProgram program) {
  return make_handler([program = std::move(program)](const Record& record, const Owner&,
                                                     sqlite::Transaction& transaction) -> Outcome {
    SqliteExecutor executor(transaction);
    return run_sql(program, record, executor);
  });
}

}  // namespace tenure::handler
