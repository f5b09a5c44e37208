// The database of a demo: accounts, and what the database itself writes down as a witness.
//
// Role: a user's own connection to the store's file. The effect of a record is a change of its
//   account; with a fence the last statement of the transaction moves the lane (T4, shape 4 of
//   handlers in 6-interface, section 1).
// Threads: apply() one at a time, guarded by the caller; one object a connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "judge/evidence.hpp"
#include "tenure/result.hpp"
#include "tenure/sqlite/store.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tenure::demo {

/// How an effect ended.
enum class Applied : std::uint8_t {
  written,     ///< committed
  already,     ///< an earlier attempt had committed it (E3)
  superseded,  ///< refused: a later owner was activated
  again,       ///< rolled back: locked too long, or the lane is elsewhere
};

class AccountBook {
 public:
  struct Entry {
    judge::Place at;
    std::string key;
    std::int64_t cents = 0;
    std::optional<std::int64_t> token;  ///< under which it is written
  };

  /// Makes the file: Tenure's tables unless `plain`, accounts, and the triggers that witness.
  static Result<void> create(const std::string& path, bool plain);
  static Result<AccountBook> open(const std::string& path);

  AccountBook(AccountBook&&) noexcept;
  AccountBook& operator=(AccountBook&&) noexcept;
  ~AccountBook();

  /// One transaction. `advance` is its last statement; empty: none (plain).
  Applied apply(const Entry& entry, const std::optional<sqlite::Advance>& advance);

  /// Takes the write lock if nobody holds it, waiting at most `wait_ms`.
  bool lock(int wait_ms);
  void unlock();

  /// Witnesses and balances as they stand.
  Result<void> read(judge::Evidence& evidence);

 private:
  struct Close {
    void operator()(::sqlite3* connection) const;
  };
  explicit AccountBook(::sqlite3* connection);
  [[nodiscard]] bool run(const char* sql);

  std::unique_ptr<::sqlite3, Close> connection_;
};

}  // namespace tenure::demo
