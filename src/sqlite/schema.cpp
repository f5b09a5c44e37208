#include "sqlite/schema.hpp"

#include <sqlite3.h>

#include <array>
#include <string>

namespace tenure::sqlite {
namespace {

constexpr std::string_view schema_sql =
    "CREATE TABLE tenure_schema(\n"
    "  id INTEGER PRIMARY KEY CHECK (id = 1),\n"
    "  version INTEGER NOT NULL)";

constexpr std::string_view version_sql = "INSERT INTO tenure_schema(id, version) VALUES (1, 1)";

constexpr std::string_view ticket_sql =
    "CREATE TABLE tenure_ticket(\n"
    "  scope TEXT NOT NULL, cluster TEXT NOT NULL, topic_id TEXT NOT NULL,\n"
    "  partition INTEGER NOT NULL,\n"
    "  next INTEGER NOT NULL,        -- last ticket drawn (T1)\n"
    "  lanes INTEGER NOT NULL, hash TEXT NOT NULL, lane_order TEXT NOT NULL,  -- lane rule\n"
    "  PRIMARY KEY (scope, cluster, topic_id, partition)) WITHOUT ROWID";

constexpr std::string_view lane_sql =
    "CREATE TABLE tenure_lane(\n"
    "  scope TEXT NOT NULL, cluster TEXT NOT NULL, topic_id TEXT NOT NULL,\n"
    "  partition INTEGER NOT NULL, lane INTEGER NOT NULL,\n"
    "  token INTEGER NOT NULL, owner TEXT NOT NULL,  -- the fence: active token and its nonce\n"
    "  next_offset INTEGER,          -- progress; NULL = the kind keeps none\n"
    "  leader_epoch INTEGER NOT NULL,\n"
    "  note TEXT NOT NULL,           -- for people only, never compared (T5)\n"
    "  PRIMARY KEY (scope, cluster, topic_id, partition, lane)) WITHOUT ROWID";

constexpr std::string_view advance_view_sql =
    "CREATE VIEW tenure_advance AS\n"
    "  SELECT scope, cluster, topic_id, partition, lane, token, owner,\n"
    "         next_offset AS from_offset, next_offset AS to_offset, leader_epoch\n"
    "  FROM tenure_lane";

// ROLLBACK, not ABORT: a program that overlooks the error must not be able to commit.
constexpr std::string_view advance_trigger_sql =
    "CREATE TRIGGER tenure_advance_insert INSTEAD OF INSERT ON tenure_advance BEGIN\n"
    "  SELECT CASE\n"
    "    WHEN lane.token IS NOT NEW.token OR lane.owner IS NOT NEW.owner\n"
    "      THEN RAISE(ROLLBACK, 'TN001 superseded: a later owner was activated')\n"
    "    WHEN lane.next_offset >= NEW.to_offset\n"
    "      THEN RAISE(ROLLBACK, 'TN002 already applied: an earlier attempt had committed')\n"
    "    WHEN lane.next_offset IS NOT NEW.from_offset\n"
    "      THEN RAISE(ROLLBACK, 'TN003 moved: the lane is not where it was expected')\n"
    "    END\n"
    "  FROM (SELECT 1) LEFT JOIN tenure_lane AS lane\n"
    "    ON lane.scope = NEW.scope AND lane.cluster = NEW.cluster\n"
    "    AND lane.topic_id = NEW.topic_id AND lane.partition = NEW.partition\n"
    "    AND lane.lane = NEW.lane;\n"
    "  UPDATE tenure_lane SET next_offset = NEW.to_offset, leader_epoch = NEW.leader_epoch\n"
    "  WHERE scope = NEW.scope AND cluster = NEW.cluster AND topic_id = NEW.topic_id\n"
    "    AND partition = NEW.partition AND lane = NEW.lane;\n"
    "END";

constexpr std::array<std::string_view, 6> create_statements = {
    schema_sql, version_sql, ticket_sql, lane_sql, advance_view_sql, advance_trigger_sql};

}  // namespace

std::string_view ddl() {
  static const std::string script = [] {
    std::string out = "PRAGMA journal_mode = WAL;\nBEGIN IMMEDIATE;\n";
    for (const std::string_view statement : create_statements) {
      out += statement;
      out += ";\n";
    }
    out += "COMMIT;\n";
    return out;
  }();
  return script;
}

Result<std::optional<int>> read_schema_version(Connection& connection) {
  Rows tables;
  if (!connection.run_own("SELECT name FROM sqlite_master WHERE type = 'table' AND name = "
                          "'tenure_schema'",
                          {}, &tables)) {
    return fail(Code::unavailable, connection.problem().message);
  }
  if (tables.empty()) return std::optional<int>();
  Rows rows;
  if (!connection.run_own("SELECT version FROM tenure_schema", {}, &rows)) {
    return fail(Code::unavailable, connection.problem().message);
  }
  if (rows.size() != 1 || !rows.at(0, 0).integer()) {
    return fail(Code::refused, connection.path() + ": tenure_schema does not hold one version",
                "the file was changed by hand; restore it, or use another file");
  }
  return std::optional<int>(static_cast<int>(*rows.at(0, 0).integer()));
}

Result<void> require_schema(Connection& connection) {
  const auto version = read_schema_version(connection);
  if (!version) return tl::unexpected<Error>(version.error());
  if (!*version) {
    return fail(Code::refused, connection.path() + ": it has no Tenure tables",
                "run `tenure store init --execute`, or set store.create: true");
  }
  if (**version != schema_version) {
    return fail(Code::refused,
                connection.path() + ": its Tenure tables have version " +
                    std::to_string(**version) + ", this program needs version " +
                    std::to_string(schema_version),
                "use the Tenure release that made them, or another file");
  }
  return {};
}

Result<void> create_schema(Connection& connection) {
  const auto failed = [&](std::string_view what) {
    const Problem problem = connection.problem();
    connection.roll_back();
    const bool later =
        problem.verdict == UnitVerdict::contention || problem.verdict == UnitVerdict::unavailable;
    return fail(later ? Code::unavailable : Code::refused,
                std::string(what) + ": " + problem.message);
  };
  if (!connection.run_own("BEGIN IMMEDIATE")) return failed("cannot create Tenure's tables");
  const auto version = read_schema_version(connection);
  if (!version || *version) {
    connection.roll_back();
    if (!version) return tl::unexpected<Error>(version.error());
    return require_schema(connection);
  }
  for (const std::string_view statement : create_statements) {
    if (!connection.run_own(statement)) return failed("cannot create Tenure's tables");
  }
  if (!connection.run_own("COMMIT")) return failed("cannot create Tenure's tables");
  return {};
}

}  // namespace tenure::sqlite
