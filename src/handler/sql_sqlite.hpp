// The `sql` handler on SQLite.
#pragma once

#include "handler/sql_program.hpp"
#include "tenure/handler.hpp"

namespace tenure::handler {

/// A handler of single records that takes a sqlite::Transaction (Effect::transaction).
Handler make_sqlite_handler(SqlProgram program);

}  // namespace tenure::handler
