// The SQLite store: effects, progress and fence in one database file on a local disk.
//
// sqlite::Transaction is what a handler writes through; sqlite::advance() is for handlers that
// run the fence in a transaction of their own; the rest makes, creates and inspects the store.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/owner.hpp"
#include "tenure/port/effect_store.hpp"
#include "tenure/record.hpp"
#include "tenure/result.hpp"
#include "tenure/store_types.hpp"

struct sqlite3;

namespace tenure::sqlite {

/// How long a commit of effects waits for the disk. Drawing and activating tokens always waits.
enum class Synchronous : std::uint8_t {
  full,    ///< a committed effect survives a power failure
  normal,  ///< the last effects may be undone by a power failure, with their progress: they run
           ///< again. Right where nothing outside the database has seen them.
};

struct Options {
  /// Database file on a local disk; relative to the working folder. May hold the user's own
  /// tables too. It is switched to write-ahead logging, for good.
  std::string path{};
  Synchronous synchronous = Synchronous::full;
  /// Create file and tables when they are missing (`store init` at start).
  bool create = false;
  /// Longest wait of one unit or request for its turn and for locks of other processes; then
  /// `contention`, which is tried again. 1 ms .. 1 h.
  std::chrono::milliseconds busy_timeout{5000};
  /// Longest time a handler's transaction may stay open; then it is rolled back under the
  /// handler's feet and its handle answers `retired` for ever (T6). 10 ms .. 24 h.
  std::chrono::milliseconds unit_timeout{10000};
  /// Name of the SQLite VFS; empty = SQLite's default.
  std::string vfs{};

  /// Every fault at once, one a line.
  [[nodiscard]] Result<void> validate() const;
};

/// Threads, lifetime: as in EffectStore. Nothing is opened before EffectStore::open().
Result<std::unique_ptr<EffectStore>> make_store(Options options);

/// Creates what is missing of file and tables. Does nothing when all is there. Blocking.
Result<void> init(const Options& options);

/// Everything init() runs, in order; ready for the sqlite3 program.
std::string_view ddl();
/// Every other statement the store runs, each with a line that says when.
std::string statements();
/// Version of the tables this library reads and writes.
inline constexpr int schema_version = 1;

/// One domain as it stands in the file.
struct DomainStatus {
  Domain domain;
  LaneRule rule;
  Token next;                     ///< last ticket drawn
  Token token;                    ///< active; 0 = never activated
  std::string owner;              ///< nonce of the active owner; empty = never activated
  std::optional<Offset> minimum;  ///< over lanes; empty = no progress is kept
  std::optional<Offset> maximum;
  std::string note;  ///< member id, epoch, client: for people (T5)
};
struct Status {
  int schema = 0;                     ///< version found
  std::string library;                ///< version of SQLite
  std::vector<DomainStatus> domains;  ///< by scope, cluster, topic id, partition
};
/// Reads the file; creates and changes nothing. Blocking.
Result<Status> status(const Options& options);

/// Binds as TEXT, as it is.
struct Text {
  std::string_view bytes;
};
/// Binds as BLOB.
struct Blob {
  std::string_view bytes;
};

/// One parameter of a statement. A view: what it points to must outlive the call.
///   nullptr, empty optional, null Bytes   NULL
///   bool, integers up to 64 bits signed   INTEGER
///   float, double                         REAL
///   string, string_view, char pointer     TEXT, as it is
///   Bytes                                 TEXT when valid UTF-8 without a zero byte, else BLOB;
///                                         the same bytes always bind the same way
///   sqlite::Text, sqlite::Blob            what they say
class Value {
 public:
  using Variant = std::variant<std::nullptr_t, std::int64_t, double, Text, Blob>;

  Value(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): parameters convert
  template <std::integral T>
    requires(std::signed_integral<T> || sizeof(T) < sizeof(std::int64_t))
  Value(T number) : value_(static_cast<std::int64_t>(number)) {}
  template <std::floating_point T>
  Value(T number) : value_(static_cast<double>(number)) {}
  Value(std::string_view text) : value_(Text{text}) {}
  Value(const std::string& text) : value_(Text{text}) {}
  Value(const char* text) {
    if (text != nullptr) value_ = Text{text};
  }
  Value(Text text) : value_(text) {}
  Value(Blob blob) : value_(blob) {}
  Value(Bytes bytes);
  template <class T>
  Value(const std::optional<T>& value)
      : value_(value.has_value() ? Value(value.value()).value_ : Variant(nullptr)) {}

  [[nodiscard]] const Variant& variant() const { return value_; }

 private:
  Variant value_{nullptr};
};

/// One value of a result. Owns it.
class Cell {
 public:
  using Variant = std::variant<std::nullptr_t, std::int64_t, double, std::string>;

  Cell() = default;
  explicit Cell(std::int64_t number) : value_(number) {}
  explicit Cell(double number) : value_(number) {}
  Cell(std::string bytes, bool text) : value_(std::move(bytes)), text_(text) {}

  [[nodiscard]] bool null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  /// Empty for NULL and for everything that is not an INTEGER.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  /// Of REAL and INTEGER; empty otherwise.
  [[nodiscard]] std::optional<double> real() const;
  /// Of TEXT and BLOB; null otherwise. Until the Rows end.
  [[nodiscard]] Bytes bytes() const;
  /// Of TEXT and BLOB; empty otherwise. Until the Rows end.
  [[nodiscard]] std::string_view text() const { return bytes().text(); }
  [[nodiscard]] bool blob() const { return std::holds_alternative<std::string>(value_) && !text_; }

 private:
  Variant value_{nullptr};
  bool text_ = false;
};

/// What a statement answered, all of it. A value.
class Rows {
 public:
  /// Rows inserted, updated or deleted by the statement itself, without its triggers.
  [[nodiscard]] std::int64_t changed() const { return changed_; }
  [[nodiscard]] std::size_t size() const {
    return names_.empty() ? 0 : cells_.size() / names_.size();
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t columns() const { return names_.size(); }
  /// Throws std::out_of_range.
  [[nodiscard]] const std::string& name(std::size_t column) const { return names_.at(column); }
  /// Throws std::out_of_range.
  [[nodiscard]] const Cell& at(std::size_t row, std::size_t column) const;

 private:
  friend class Connection;
  std::int64_t changed_ = 0;
  std::vector<std::string> names_;
  std::vector<Cell> cells_;
};

class UnitCore;

/// The transaction of one run of a handler: the user's statements, in the database exactly when
/// the progress of their records is.
///
/// Owns: nothing; a handle. Threads: the handler's. Lifetime: until the handler returns.
/// Lifecycle: the database transaction begins at the first statement, which waits for its turn
///   (SQLite has one writer); it should be followed swiftly by the others: until the end nobody
///   else writes.
/// Promises: there is no way to commit or roll back: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, ATTACH,
///   changes of PRAGMAs and of tenure_* tables are refused; after the first error nothing more
///   runs and the unit is rolled back; once ended from outside (revoked, unit_timeout) every call
///   answers `retired` and changes nothing.
/// Placeholders: `?`, `?1` or `$1`; not `:name`, `@name`. One statement a call.
class Transaction {
 public:
  explicit Transaction(UnitCore& core) : core_(core) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  static TransactionKind kind();

  /// Runs a statement for its effect. An error is remembered and decides the outcome.
  template <class... Values>
  void execute(std::string_view sql, const Values&... values) {
    execute_values(sql, std::initializer_list<Value>{Value(values)...});
  }
  /// Runs a statement and takes its rows. Error codes: `retired`; `unavailable` (locked, disk);
  /// `refused` (everything the statement itself is to blame for).
  template <class... Values>
  Result<Rows> query(std::string_view sql, const Values&... values) {
    return query_values(sql, std::initializer_list<Value>{Value(values)...});
  }
  void execute_values(std::string_view sql, std::span<const Value> values);
  Result<Rows> query_values(std::string_view sql, std::span<const Value> values);

  /// The connection, inside the open transaction, for libraries that take one; begins it if need
  /// be. Null when the transaction has ended or cannot begin. Never keep it, or statements of it,
  /// beyond the handler. A commit through it is turned into a rollback and answered `misuse`.
  [[nodiscard]] ::sqlite3* native();

 private:
  void execute_values(std::string_view sql, std::initializer_list<Value> values) {
    execute_values(sql, std::span<const Value>(values.begin(), values.size()));
  }
  Result<Rows> query_values(std::string_view sql, std::initializer_list<Value> values) {
    return query_values(sql, std::span<const Value>(values.begin(), values.size()));
  }
  UnitCore& core_;
};

// The fence in a transaction of the user's own (4 of Effect::transaction: T4).

/// Owned, so that it may be bound after the record has gone.
using Parameter = std::variant<std::int64_t, std::string>;

/// A statement for the user's connection to the store's file.
struct Advance {
  std::string_view sql;
  std::vector<Parameter> parameters;  ///< bind as ?1, ?2, ...
};

/// The statement that moves the lane past `record` under the owner's fence. It must be the last
/// of the transaction. When it cannot, it fails *and rolls the whole transaction back*; state()
/// then says why. Throws std::logic_error for an owner without a fence.
Advance advance(const Domain& domain, Fence fence, std::uint16_t lane, Offset from, Offset to,
                LeaderEpoch leader_epoch);
Advance advance_without_fence();  // throws; keeps the text out of every caller
inline Advance advance(const Owner& owner, const Record& record) {
  const std::optional<Fence> fence = owner.fence();
  if (!fence) return advance_without_fence();
  return advance(
      Domain{owner.scope(), owner.cluster(), owner.topic_id(), Partition(owner.partition())},
      *fence, record.lane(), record.lane_from(), Offset(record.offset()).next(),
      record.leader_epoch());
}

/// A later owner was activated: no outcome, throw FenceRefused (F6).
inline constexpr std::string_view superseded = "TN001";
/// An earlier attempt had committed effect and progress: done (E3).
inline constexpr std::string_view already_applied = "TN002";
/// My token, but the lane is elsewhere.
inline constexpr std::string_view moved = "TN003";

/// What the connection's last call says: empty = no error; one of the three above; else the
/// name of SQLite's error class, such as "SQLITE_BUSY".
std::string state(::sqlite3* connection);

}  // namespace tenure::sqlite
