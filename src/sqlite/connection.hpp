// One connection to the database file.
//
// Role: RAII over sqlite3*, prepared statements kept for reuse, and the guard that keeps a
//   handler's SQL from ending our transaction.
// Owns: the sqlite3 handle and its statements.
// Threads: one at a time, except interrupt().
// Promises: only ends of transactions made inside an OwnStatements scope reach the disk; every
//   other commit on this connection becomes a rollback.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenure/port/effect_store.hpp"
#include "tenure/result.hpp"
#include "tenure/sqlite/store.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tenure::sqlite {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Why a statement failed.
struct Problem {
  int code = 0;  ///< extended result code of SQLite
  UnitVerdict verdict = UnitVerdict::sql;
  std::string message;  ///< for people: what, where
};

/// How long to wait for locks of other processes.
struct Patience {
  SteadyTime deadline{};
  const std::atomic<bool>* given_up = nullptr;  ///< ends the waiting at once
};

/// Meaning of a result code (6-interface, end of section 4). `fits`: the statement itself could
/// be prepared, so an error that names no class is about the data it met.
UnitVerdict verdict_of(int code, bool fits);

/// "SQLITE_BUSY" of an extended or primary result code.
std::string_view code_name(int code);

class Connection {
 public:
  struct Settings {
    std::string path;
    std::string vfs;
    bool create = false;
  };
  static Result<std::unique_ptr<Connection>> open(const Settings& settings);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Statements in this scope are ours: they may end transactions and write our tables.
  class OwnStatements {
   public:
    explicit OwnStatements(Connection& connection)
        : connection_(connection), before_(connection.own_) {
      connection_.own_ = true;
    }
    ~OwnStatements() { connection_.own_ = before_; }
    OwnStatements(const OwnStatements&) = delete;
    OwnStatements& operator=(const OwnStatements&) = delete;

   private:
    Connection& connection_;
    bool before_;
  };

  /// Runs one statement to its end. On failure problem() says why.
  bool run(std::string_view sql, std::span<const Value> values, Rows* rows);
  /// The same for statements of ours.
  bool run_own(std::string_view sql, std::initializer_list<Value> values = {},
               Rows* rows = nullptr);
  [[nodiscard]] const Problem& problem() const { return problem_; }

  void wait_for_locks(Patience patience) { patience_ = patience; }
  [[nodiscard]] bool in_transaction() const;
  /// Ends statements that a handler has left half read through native().
  void finish_statements();
  /// Rolls back if a transaction is open.
  void roll_back();
  /// A transaction ended that we did not end, since watch_ends().
  [[nodiscard]] bool ended_by_hand() const { return ended_by_hand_; }
  void watch_ends() { ended_by_hand_ = false; }
  /// Sets our hooks, which a handler may have replaced through native(). False: the one that
  /// keeps it from committing was not in place.
  bool guard();

  /// Has the file of this connection lost its name? (SQLITE_FCNTL_HAS_MOVED)
  [[nodiscard]] bool moved() const;
  /// Rolls back; from then on every statement fails, prepared ones too: the handle may still be
  /// in the hands of a handler, in the middle of a call, that does not know that it is over.
  void roll_back_and_disable();
  /// Any thread: ends the running statement, if any.
  void interrupt();

  [[nodiscard]] ::sqlite3* handle() const { return database_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// A message of ours: "/x/orders.db: TEXT (SQLITE_FULL: database or disk is full)".
  [[nodiscard]] std::string describe(std::string_view text, int code) const;

 private:
  struct Prepared {
    std::string sql;
    sqlite3_stmt* statement = nullptr;
    std::vector<int> numbers;  ///< which value binds at parameter i + 1
    int wanted = 0;            ///< how many values
  };
  /// Most recently used first; bounded. What is ours was prepared without asking the guard, so a
  /// handler's statement of the same text must not meet it.
  struct Cache {
    std::list<Prepared> recent;
    std::unordered_map<std::string_view, std::list<Prepared>::iterator> by_sql;
  };

  explicit Connection(std::string path) : path_(std::move(path)) {}
  Prepared* prepare(std::string_view sql);
  bool map_parameters(Prepared& prepared);
  bool bind(const Prepared& prepared, std::span<const Value> values);
  void collect(sqlite3_stmt* statement, Rows& rows);
  void fail_with(int code, UnitVerdict verdict, std::string message);
  void fail_as_sqlite_says(bool fits, std::string_view sql);

  static int on_authorize(void* self, int action, const char* first, const char* second,
                          const char* database, const char* trigger);
  static int on_busy(void* self, int calls);
  static int on_commit(void* self);
  static void on_rollback(void* self);

  const std::string path_;
  ::sqlite3* database_ = nullptr;
  bool own_ = false;
  bool disabled_ = false;
  bool ended_by_hand_ = false;
  Patience patience_;
  Problem problem_;
  std::optional<Problem> denied_;
  Cache our_statements_;
  Cache handlers_statements_;
};

}  // namespace tenure::sqlite
