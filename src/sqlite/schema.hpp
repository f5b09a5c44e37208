// Tables of the store and their version.
#pragma once

#include <optional>

#include "sqlite/connection.hpp"
#include "tenure/result.hpp"

namespace tenure::sqlite {

/// Version of the tables in the file; empty = it holds none. Fails when it cannot be read.
Result<std::optional<int>> read_schema_version(Connection& connection);

/// The tables are there and of our version; else says what to do.
Result<void> require_schema(Connection& connection);

/// Creates the tables unless they are there; one transaction.
Result<void> create_schema(Connection& connection);

}  // namespace tenure::sqlite
