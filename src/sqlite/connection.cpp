#include "sqlite/connection.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <thread>

#include "base/assert.hpp"

namespace tenure::sqlite {
namespace {

constexpr std::size_t prepared_max = 128;
constexpr std::size_t shown_sql_bytes = 120;

/// PRAGMAs with an argument that only read, or only concern the open transaction.
constexpr std::array<std::string_view, 9> harmless_pragmas = {
    "table_info",       "table_xinfo",       "table_list",  "index_list",        "index_info",
    "foreign_key_list", "foreign_key_check", "quick_check", "defer_foreign_keys"};

bool ours(const char* table) {
  return table != nullptr && sqlite3_strnicmp(table, "tenure_", 7) == 0;
}

std::string shortened(std::string_view sql) {
  if (sql.size() <= shown_sql_bytes) return std::string(sql);
  return std::string(sql.substr(0, shown_sql_bytes)) + "...";
}

/// SQLite knows only C strings and int sizes in some calls.
int as_int(std::size_t size) {
  return static_cast<int>(
      std::min(size, static_cast<std::size_t>(std::numeric_limits<int>::max())));
}

}  // namespace

UnitVerdict verdict_of(int code, bool fits) {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
    case SQLITE_PROTOCOL:
    case SQLITE_SCHEMA:
      return UnitVerdict::contention;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
      return UnitVerdict::unavailable;
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
      return UnitVerdict::data;
    case SQLITE_CONSTRAINT:
      return UnitVerdict::constraint;
    case SQLITE_ERROR:
      return fits ? UnitVerdict::data : UnitVerdict::handler_down;
    default:
      return UnitVerdict::sql;
  }
}

std::string_view code_name(int code) {
  switch (code & 0xFF) {
    case SQLITE_OK:
      return "SQLITE_OK";
    case SQLITE_ERROR:
      return "SQLITE_ERROR";
    case SQLITE_INTERNAL:
      return "SQLITE_INTERNAL";
    case SQLITE_PERM:
      return "SQLITE_PERM";
    case SQLITE_ABORT:
      return "SQLITE_ABORT";
    case SQLITE_BUSY:
      return "SQLITE_BUSY";
    case SQLITE_LOCKED:
      return "SQLITE_LOCKED";
    case SQLITE_NOMEM:
      return "SQLITE_NOMEM";
    case SQLITE_READONLY:
      return "SQLITE_READONLY";
    case SQLITE_INTERRUPT:
      return "SQLITE_INTERRUPT";
    case SQLITE_IOERR:
      return "SQLITE_IOERR";
    case SQLITE_CORRUPT:
      return "SQLITE_CORRUPT";
    case SQLITE_NOTFOUND:
      return "SQLITE_NOTFOUND";
    case SQLITE_FULL:
      return "SQLITE_FULL";
    case SQLITE_CANTOPEN:
      return "SQLITE_CANTOPEN";
    case SQLITE_PROTOCOL:
      return "SQLITE_PROTOCOL";
    case SQLITE_SCHEMA:
      return "SQLITE_SCHEMA";
    case SQLITE_TOOBIG:
      return "SQLITE_TOOBIG";
    case SQLITE_CONSTRAINT:
      return "SQLITE_CONSTRAINT";
    case SQLITE_MISMATCH:
      return "SQLITE_MISMATCH";
    case SQLITE_MISUSE:
      return "SQLITE_MISUSE";
    case SQLITE_NOLFS:
      return "SQLITE_NOLFS";
    case SQLITE_AUTH:
      return "SQLITE_AUTH";
    case SQLITE_RANGE:
      return "SQLITE_RANGE";
    case SQLITE_NOTADB:
      return "SQLITE_NOTADB";
    case SQLITE_ROW:
      return "SQLITE_ROW";
    case SQLITE_DONE:
      return "SQLITE_DONE";
    default:
      return "SQLITE_UNKNOWN";
  }
}

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<Connection> connection(new Connection(settings.path));
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX;
  if (settings.create) flags |= SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(settings.path.c_str(), &connection->database_, flags,
                                   settings.vfs.empty() ? nullptr : settings.vfs.c_str());
  if (code != SQLITE_OK) {
    std::string reason = connection->database_ != nullptr ? sqlite3_errmsg(connection->database_)
                                                          : sqlite3_errstr(code);
    const int system =
        connection->database_ != nullptr ? sqlite3_system_errno(connection->database_) : 0;
    if (system != 0) reason += std::string(": ") + std::strerror(system);
    return fail(Code::unavailable,
                "cannot open the SQLite database " + settings.path + ": " + reason,
                "check that the folder exists and that this user may read and write it");
  }
  ::sqlite3* database = connection->database_;
  sqlite3_extended_result_codes(database, 1);
  connection->guard();
  sqlite3_set_authorizer(database, &Connection::on_authorize, connection.get());
  // A declared reference is meant.
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  return connection;
}

Connection::~Connection() {
  for (Cache* cache : {&our_statements_, &handlers_statements_}) {
    for (Prepared& prepared : cache->recent) sqlite3_finalize(prepared.statement);
  }
  // v2: statements that a handler has left open keep the handle until they end.
  sqlite3_close_v2(database_);
}

bool Connection::in_transaction() const {
  return sqlite3_get_autocommit(database_) == 0;
}

bool Connection::guard() {
  sqlite3_busy_handler(database_, &Connection::on_busy, this);
  sqlite3_rollback_hook(database_, &Connection::on_rollback, this);
  return sqlite3_commit_hook(database_, &Connection::on_commit, this) == this;
}

void Connection::finish_statements() {
  for (sqlite3_stmt* statement = sqlite3_next_stmt(database_, nullptr); statement != nullptr;
       statement = sqlite3_next_stmt(database_, statement)) {
    sqlite3_reset(statement);
  }
}

void Connection::roll_back() {
  const OwnStatements own(*this);
  // A late interrupt may strike the ROLLBACK itself; it is forgotten once no statement runs.
  for (int attempt = 0; in_transaction(); ++attempt) {
    TENURE_ASSERT(attempt < 1000, "T6 an ended transaction is rolled back");
    finish_statements();
    run("ROLLBACK", {}, nullptr);
  }
}

bool Connection::moved() const {
  int answer = 0;
  const int code = sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &answer);
  return code == SQLITE_OK && answer != 0;
}

void Connection::roll_back_and_disable() {
  sqlite3_mutex* mutex = sqlite3_db_mutex(database_);
  sqlite3_mutex_enter(mutex);
  roll_back();
  disabled_ = true;
  // Setting an authorizer makes prepared statements prepare again, and so ask it.
  sqlite3_set_authorizer(database_, &Connection::on_authorize, this);
  sqlite3_mutex_leave(mutex);
}

void Connection::interrupt() {
  sqlite3_interrupt(database_);
}

std::string Connection::describe(std::string_view text, int code) const {
  std::string out = path_;
  out += ": ";
  out += text;
  out += " (";
  out += code_name(code);
  out += ": ";
  out += sqlite3_errstr(code);
  out += ")";
  return out;
}

void Connection::fail_with(int code, UnitVerdict verdict, std::string message) {
  problem_ = Problem{code, verdict, std::move(message)};
}

void Connection::fail_as_sqlite_says(bool fits, std::string_view sql) {
  if (denied_) {
    problem_ = *denied_;
    denied_.reset();
    return;
  }
  const int code = sqlite3_extended_errcode(database_);
  std::string message = path_ + ": " + sqlite3_errmsg(database_);
  const int system = sqlite3_system_errno(database_);
  const UnitVerdict verdict = verdict_of(code, fits);
  if (verdict == UnitVerdict::unavailable && system != 0) {
    message += std::string(": ") + std::strerror(system);
  }
  message += " (" + std::string(code_name(code)) + ") in: " + shortened(sql);
  fail_with(code, verdict, std::move(message));
}

bool Connection::map_parameters(Prepared& prepared) {
  const int count = sqlite3_bind_parameter_count(prepared.statement);
  bool dollars = false;
  bool marks = false;
  for (int i = 1; i <= count; ++i) {
    const char* name = sqlite3_bind_parameter_name(prepared.statement, i);
    int number = i;
    if (name != nullptr && name[0] == '$') {
      dollars = true;
      // SQLite takes $2 for a name and numbers it by first appearance; people mean the second.
      number = 0;
      for (const char* digit = name + 1; *digit != '\0'; ++digit) {
        if (*digit < '0' || *digit > '9' || number > 99999) {
          number = 0;
          break;
        }
        number = number * 10 + (*digit - '0');
      }
    } else if (name == nullptr || name[0] == '?') {
      marks = true;
    } else {
      number = 0;
    }
    if (number == 0) {
      fail_with(SQLITE_ERROR, UnitVerdict::handler_down,
                path_ + ": parameter " + name +
                    " has a name; use ?1 or $1 in: " + shortened(prepared.sql));
      return false;
    }
    prepared.numbers.push_back(number);
    prepared.wanted = std::max(prepared.wanted, number);
  }
  if (dollars && marks) {
    fail_with(SQLITE_ERROR, UnitVerdict::handler_down,
              path_ + ": ? and $1 do not mix in: " + shortened(prepared.sql));
    return false;
  }
  return true;
}

Connection::Prepared* Connection::prepare(std::string_view sql) {
  auto& [recent, by_sql] = own_ ? our_statements_ : handlers_statements_;
  if (auto known = by_sql.find(sql); known != by_sql.end()) {
    recent.splice(recent.begin(), recent, known->second);
    return &recent.front();
  }
  Prepared prepared;
  prepared.sql = sql;
  const char* tail = nullptr;
  const int code =
      sqlite3_prepare_v3(database_, prepared.sql.data(), as_int(prepared.sql.size() + 1),
                         SQLITE_PREPARE_PERSISTENT, &prepared.statement, &tail);
  if (code != SQLITE_OK) {
    fail_as_sqlite_says(false, sql);
    return nullptr;
  }
  const std::string_view rest(tail);
  if (prepared.statement == nullptr ||
      rest.find_first_not_of("; \t\r\n") != std::string_view::npos) {
    sqlite3_finalize(prepared.statement);
    fail_with(SQLITE_ERROR, UnitVerdict::handler_down,
              path_ + ": a call takes exactly one statement; got: " + shortened(sql));
    return nullptr;
  }
  if (!map_parameters(prepared)) {
    sqlite3_finalize(prepared.statement);
    return nullptr;
  }
  if (recent.size() >= prepared_max) {
    by_sql.erase(recent.back().sql);
    sqlite3_finalize(recent.back().statement);
    recent.pop_back();
  }
  recent.push_front(std::move(prepared));
  by_sql.emplace(recent.front().sql, recent.begin());
  return &recent.front();
}

bool Connection::bind(const Prepared& prepared, std::span<const Value> values) {
  if (static_cast<std::size_t>(prepared.wanted) != values.size()) {
    fail_with(SQLITE_ERROR, UnitVerdict::handler_down,
              path_ + ": " + std::to_string(prepared.wanted) + " parameters wanted, " +
                  std::to_string(values.size()) + " given in: " + shortened(prepared.sql));
    return false;
  }
  int parameter = 0;
  for (const int number : prepared.numbers) {
    ++parameter;
    const Value::Variant& value = values[static_cast<std::size_t>(number) - 1].variant();
    int code = SQLITE_OK;
    // Null as destructor: the values outlive the run, and bindings are cleared after it.
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      code = sqlite3_bind_int64(prepared.statement, parameter, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      code = sqlite3_bind_double(prepared.statement, parameter, *real);
    } else if (const auto* text = std::get_if<Text>(&value)) {
      const char* data = text->bytes.empty() ? "" : text->bytes.data();
      code = sqlite3_bind_text64(prepared.statement, parameter, data, text->bytes.size(), nullptr,
                                 SQLITE_UTF8);
    } else if (const auto* blob = std::get_if<Blob>(&value)) {
      const char* data = blob->bytes.empty() ? "" : blob->bytes.data();
      code = sqlite3_bind_blob64(prepared.statement, parameter, data, blob->bytes.size(), nullptr);
    } else {
      code = sqlite3_bind_null(prepared.statement, parameter);
    }
    if (code != SQLITE_OK) {
      fail_as_sqlite_says(true, prepared.sql);
      return false;
    }
  }
  return true;
}

void Connection::collect(sqlite3_stmt* statement, Rows& rows) {
  const int columns = sqlite3_column_count(statement);
  for (int i = 0; i < columns; ++i) {
    switch (sqlite3_column_type(statement, i)) {
      case SQLITE_INTEGER:
        rows.cells_.emplace_back(std::int64_t{sqlite3_column_int64(statement, i)});
        break;
      case SQLITE_FLOAT:
        rows.cells_.emplace_back(sqlite3_column_double(statement, i));
        break;
      case SQLITE_TEXT:
      case SQLITE_BLOB: {
        const bool text = sqlite3_column_type(statement, i) == SQLITE_TEXT;
        const void* data = sqlite3_column_blob(statement, i);
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
        std::string bytes;
        if (size > 0 && data != nullptr) bytes.assign(static_cast<const char*>(data), size);
        rows.cells_.emplace_back(std::move(bytes), text);
        break;
      }
      default:
        rows.cells_.emplace_back();
    }
  }
}

bool Connection::run(std::string_view sql, std::span<const Value> values, Rows* rows) {
  denied_.reset();
  Prepared* prepared = prepare(sql);
  if (prepared == nullptr) return false;
  sqlite3_stmt* statement = prepared->statement;
  bool good = bind(*prepared, values);
  if (good) {
    const std::int64_t changes_before = sqlite3_total_changes64(database_);
    if (rows != nullptr) {
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const char* name = sqlite3_column_name(statement, i);
        rows->names_.emplace_back(name == nullptr ? "" : name);
      }
    }
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      if (rows != nullptr) collect(statement, *rows);
    }
    good = code == SQLITE_DONE;
    if (!good) {
      bool fits = true;
      if ((code & 0xFF) == SQLITE_ERROR && !denied_) {
        // Malformed JSON or a table dropped meanwhile? Whether it still prepares tells.
        const std::string message = sqlite3_errmsg(database_);
        sqlite3_stmt* again = nullptr;
        fits = sqlite3_prepare_v3(database_, prepared->sql.data(), as_int(prepared->sql.size() + 1),
                                  0, &again, nullptr) == SQLITE_OK;
        sqlite3_finalize(again);
        denied_.reset();
        fail_with(code, verdict_of(code, fits),
                  path_ + ": " + message + " (SQLITE_ERROR) in: " + shortened(sql));
      } else {
        fail_as_sqlite_says(fits, sql);
      }
    } else if (rows != nullptr) {
      // sqlite3_changes keeps the count of an earlier statement after one that changes no rows.
      if (sqlite3_total_changes64(database_) != changes_before) {
        rows->changed_ = sqlite3_changes64(database_);
      }
    }
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return good;
}

bool Connection::run_own(std::string_view sql, std::initializer_list<Value> values, Rows* rows) {
  const OwnStatements own(*this);
  return run(sql, std::span<const Value>(values.begin(), values.size()), rows);
}

int Connection::on_authorize(void* self, int action, const char* first, const char* second,
                             const char*, const char*) {
  auto& connection = *static_cast<Connection*>(self);
  const auto deny = [&](UnitVerdict verdict, std::string what) {
    connection.denied_ = Problem{SQLITE_AUTH, verdict, connection.path_ + ": " + std::move(what)};
    return SQLITE_DENY;
  };
  if (connection.disabled_ && !connection.own_) {
    return deny(UnitVerdict::retired, "the transaction has ended");
  }
  if (connection.own_) return SQLITE_OK;
  switch (action) {
    case SQLITE_TRANSACTION:
      return deny(UnitVerdict::misuse, std::string("the handler ran ") + first +
                                           "; Tenure ends the transaction, remove it");
    case SQLITE_SAVEPOINT:
      return deny(UnitVerdict::misuse,
                  "the handler ran a SAVEPOINT statement; a handler's "
                  "statements stand or fall together, remove it");
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
      return deny(UnitVerdict::handler_down,
                  "ATTACH and DETACH are refused in a handler: two files do not commit together");
    case SQLITE_PRAGMA:
      if (second == nullptr) return SQLITE_OK;
      for (const std::string_view harmless : harmless_pragmas) {
        if (sqlite3_stricmp(first, harmless.data()) == 0) return SQLITE_OK;
      }
      return deny(UnitVerdict::handler_down,
                  std::string("PRAGMA ") + first + " = ... is refused in a handler");
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
      if (ours(first)) {
        return deny(UnitVerdict::handler_down,
                    std::string(first) + " is Tenure's own; a handler may only read it");
      }
      return SQLITE_OK;
    case SQLITE_ALTER_TABLE:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_INDEX:
    case SQLITE_DROP_TRIGGER:
      if (ours(second)) {
        return deny(UnitVerdict::handler_down,
                    std::string(second) + " is Tenure's own; a handler may only read it");
      }
      return SQLITE_OK;
    default:
      return SQLITE_OK;
  }
}

int Connection::on_busy(void* self, int calls) {
  const auto& patience = static_cast<Connection*>(self)->patience_;
  if (patience.given_up != nullptr && patience.given_up->load()) return 0;
  if (std::chrono::steady_clock::now() >= patience.deadline) return 0;
  // SQLite keeps no queue of waiting processes: whoever asks often enough gets in between two
  // transactions of a busy one.
  std::this_thread::sleep_for(std::chrono::milliseconds(calls < 200 ? 1 : 5));
  return 1;
}

int Connection::on_commit(void* self) {
  auto& connection = *static_cast<Connection*>(self);
  if (connection.own_) return 0;
  connection.ended_by_hand_ = true;
  return 1;
}

void Connection::on_rollback(void* self) {
  auto& connection = *static_cast<Connection*>(self);
  if (!connection.own_) connection.ended_by_hand_ = true;
}

}  // namespace tenure::sqlite
