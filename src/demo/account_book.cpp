#include "demo/account_book.hpp"

#include <sqlite3.h>

#include <utility>
#include <variant>

namespace tenure::demo {
namespace {

// Longer than any lock of the demo.
constexpr int busy_ms = 30'000;

constexpr const char* tables =
    "CREATE TABLE account(id TEXT PRIMARY KEY NOT NULL, cents INTEGER NOT NULL,\n"
    "  partition INTEGER NOT NULL, offset INTEGER NOT NULL, token INTEGER);\n"
    // One sequence over effects and activations, in the order of their commits: SQLite has one
    // writer at a time.
    "CREATE TABLE witness(pos INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,\n"
    "  partition INTEGER NOT NULL, offset INTEGER, account TEXT, token INTEGER);\n"
    "CREATE TRIGGER account_opened AFTER INSERT ON account BEGIN\n"
    "  INSERT INTO witness(kind, partition, offset, account, token)\n"
    "  VALUES ('effect', NEW.partition, NEW.offset, NEW.id, NEW.token); END;\n"
    "CREATE TRIGGER account_changed AFTER UPDATE ON account BEGIN\n"
    "  INSERT INTO witness(kind, partition, offset, account, token)\n"
    "  VALUES ('effect', NEW.partition, NEW.offset, NEW.id, NEW.token); END;\n";

constexpr const char* fence_triggers =
    "CREATE TRIGGER fence_created AFTER INSERT ON tenure_lane BEGIN\n"
    "  INSERT INTO witness(kind, partition, token)\n"
    "  VALUES ('fence', NEW.partition, NEW.token); END;\n"
    "CREATE TRIGGER fence_activated AFTER UPDATE OF token ON tenure_lane BEGIN\n"
    "  INSERT INTO witness(kind, partition, token)\n"
    "  VALUES ('fence', NEW.partition, NEW.token); END;\n";

constexpr const char* change_sql =
    "INSERT INTO account(id, cents, partition, offset, token) VALUES (?1, ?2, ?3, ?4, ?5)\n"
    "ON CONFLICT(id) DO UPDATE SET cents = cents + excluded.cents,\n"
    "  partition = excluded.partition, offset = excluded.offset, token = excluded.token";

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* connection, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  return Statement(statement);
}

void bind_value(sqlite3_stmt* statement, int index, const sqlite::Parameter& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    sqlite3_bind_int64(statement, index, *number);
  } else {
    const auto& text = std::get<std::string>(value);
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const void* bytes = sqlite3_column_blob(statement, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

Error error_of(sqlite3* connection, const std::string& what) {
  return {Code::refused, false, false,
          what + ": " + (connection == nullptr ? "out of memory" : sqlite3_errmsg(connection)), {}};
}

}  // namespace

void AccountBook::Close::operator()(::sqlite3* connection) const { sqlite3_close_v2(connection); }

AccountBook::AccountBook(::sqlite3* connection) : connection_(connection) {}
AccountBook::AccountBook(AccountBook&&) noexcept = default;
AccountBook& AccountBook::operator=(AccountBook&&) noexcept = default;
AccountBook::~AccountBook() = default;

bool AccountBook::run(const char* sql) {
  return sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

Result<void> AccountBook::create(const std::string& path, bool plain) {
  if (!plain) {
    sqlite::Options options;
    options.path = path;
    options.create = true;
    if (auto made = sqlite::init(options); !made) return made;
  }
  Result<AccountBook> book = open(path);
  if (!book) return tl::unexpected<Error>(book.error());
  if (!book->run("PRAGMA journal_mode = WAL") || !book->run(tables) ||
      (!plain && !book->run(fence_triggers))) {
    return tl::unexpected<Error>(error_of(book->connection_.get(), path));
  }
  return {};
}

Result<AccountBook> AccountBook::open(const std::string& path) {
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  AccountBook book(connection);
  if (code != SQLITE_OK) return tl::unexpected<Error>(error_of(connection, path));
  sqlite3_busy_timeout(connection, busy_ms);
  // The demo kills processes, not machines.
  static_cast<void>(book.run("PRAGMA synchronous = NORMAL"));
  return book;
}

Applied AccountBook::apply(const Entry& entry, const std::optional<sqlite::Advance>& advance) {
  sqlite3* connection = connection_.get();
  if (!run("BEGIN IMMEDIATE")) return Applied::again;
  const Statement change = prepare(connection, change_sql);
  bind_value(change.get(), 1, entry.key);
  bind_value(change.get(), 2, entry.cents);
  bind_value(change.get(), 3, std::int64_t{entry.at.partition});
  bind_value(change.get(), 4, entry.at.offset);
  if (entry.token) bind_value(change.get(), 5, *entry.token);
  bool good = sqlite3_step(change.get()) == SQLITE_DONE;
  std::string state;
  if (good && advance) {
    const Statement last = prepare(connection, advance->sql);
    for (std::size_t i = 0; i < advance->parameters.size(); ++i) {
      bind_value(last.get(), static_cast<int>(i) + 1, advance->parameters[i]);
    }
    good = sqlite3_step(last.get()) == SQLITE_DONE;
    if (!good) state = sqlite::state(connection);
  }
  if (good && run("COMMIT")) return Applied::written;
  if (sqlite3_get_autocommit(connection) == 0) static_cast<void>(run("ROLLBACK"));
  if (state == sqlite::superseded) return Applied::superseded;
  return state == sqlite::already_applied ? Applied::already : Applied::again;
}

bool AccountBook::lock(int wait_ms) {
  sqlite3_busy_timeout(connection_.get(), wait_ms);
  const bool locked = run("BEGIN IMMEDIATE");
  sqlite3_busy_timeout(connection_.get(), busy_ms);
  return locked;
}

void AccountBook::unlock() { static_cast<void>(run("ROLLBACK")); }

Result<void> AccountBook::read(judge::Evidence& evidence) {
  sqlite3* connection = connection_.get();
  // One snapshot for all of it.
  if (!run("BEGIN")) return tl::unexpected<Error>(error_of(connection, "witness"));
  const Statement rows = prepare(
      connection, "SELECT pos, kind, partition, offset, account, token FROM witness ORDER BY pos");
  int code = SQLITE_ERROR;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    const std::int64_t pos = sqlite3_column_int64(rows.get(), 0);
    const std::int32_t partition = sqlite3_column_int(rows.get(), 2);
    if (text_of(rows.get(), 1) == "fence") {
      evidence.fences.push_back({pos, partition, sqlite3_column_int64(rows.get(), 5)});
      continue;
    }
    judge::EffectRow effect;
    effect.pos = pos;
    effect.at = {partition, sqlite3_column_int64(rows.get(), 3)};
    effect.key = text_of(rows.get(), 4);
    if (sqlite3_column_type(rows.get(), 5) != SQLITE_NULL) {
      effect.token = sqlite3_column_int64(rows.get(), 5);
    }
    evidence.effects.push_back(std::move(effect));
  }
  if (code != SQLITE_DONE) return tl::unexpected<Error>(error_of(connection, "witness"));
  const Statement accounts = prepare(connection, "SELECT id, cents FROM account");
  while ((code = sqlite3_step(accounts.get())) == SQLITE_ROW) {
    evidence.balances[text_of(accounts.get(), 0)] = sqlite3_column_int64(accounts.get(), 1);
  }
  static_cast<void>(run("ROLLBACK"));
  if (code != SQLITE_DONE) return tl::unexpected<Error>(error_of(connection, "account"));
  return {};
}

}  // namespace tenure::demo
