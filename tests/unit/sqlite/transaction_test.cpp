// sqlite::Transaction: what a handler can do, and what it cannot.
#include <atomic>
#include <limits>
#include <thread>

#include "unit/sqlite/sqlite_rig.hpp"

namespace tenure::sqlite {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SqliteTransaction : public Rig {
 protected:
  void SetUp() override {
    create(
        "CREATE TABLE t(k, v); CREATE TABLE account(id TEXT PRIMARY KEY, cents INTEGER NOT "
        "NULL CHECK (cents >= 0)); INSERT INTO account VALUES ('a', 10);"
        "CREATE TABLE child(id INTEGER PRIMARY KEY, account TEXT REFERENCES account(id) "
        "DEFERRABLE INITIALLY DEFERRED, other TEXT REFERENCES account(id))");
    process = std::make_unique<StoreProcess>(*this, seconds(60));
    holder = process->acquire(domain_of(), rule, Offset(0));
  }
  void TearDown() override { process.reset(); }

  std::unique_ptr<EffectUnit> unit(std::uint16_t lane = 0) {
    return process->open_unit(holder, lane, Offset(0));
  }
  /// What a single statement leads to.
  UnitVerdict verdict_of(std::string_view sql) {
    const auto one = unit();
    transaction(*one).execute(sql);
    const UnitResult* failure = one->failure();
    const UnitVerdict verdict = failure == nullptr ? UnitVerdict::applied : failure->verdict;
    if (failure != nullptr) last_message = failure->message;
    one->roll_back();
    return verdict;
  }

  std::unique_ptr<StoreProcess> process;
  Holder holder;
  std::string last_message;
};

TEST_F(SqliteTransaction, BytesOfEveryKindComeBackUnharmed) {
  const std::string megabyte = [] {
    std::string out(1 << 20, '\0');
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 31 + i / 256);
    return out;
  }();
  const std::string text_megabyte(1 << 20, 'x');
  struct Case {
    const char* name;
    Bytes bytes;
    const char* type;
  };
  const Case cases[] = {
      {"null", Bytes(), "null"},
      {"empty", Bytes(""), "text"},
      {"text", Bytes("Grüße, 世界 🙂"), "text"},
      {"zero byte", Bytes("a\0b", 3), "blob"},
      {"not utf-8", Bytes("\xC3\x28"), "blob"},
      {"overlong", Bytes("\xC0\xAF"), "blob"},
      {"surrogate", Bytes("\xED\xA0\x80"), "blob"},
      {"above the last code point", Bytes("\xF4\x90\x80\x80"), "blob"},
      {"cut", Bytes("\xE4\xB8"), "blob"},
      {"1 MB binary", Bytes(megabyte), "blob"},
      {"1 MB text", Bytes(text_megabyte), "text"},
  };
  const auto one = unit();
  Transaction& tx = transaction(*one);
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    tx.execute("INSERT INTO t VALUES (?, ?)", each.name, each.bytes);
    const auto rows = tx.query("SELECT v, typeof(v) FROM t WHERE k = ?", each.name);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->at(0, 0).bytes(), each.bytes);
    EXPECT_EQ(rows->at(0, 1).text(), each.type);
    // The same bytes find what they have stored.
    const auto found = tx.query("SELECT count(*) FROM t WHERE v IS ?", each.bytes);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->at(0, 0).integer(), 1);
  }
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "11");
}

TEST_F(SqliteTransaction, ParametersKeepTheirTypes) {
  const auto one = unit();
  Transaction& tx = transaction(*one);
  const std::string owned = "owned";
  // Not constants: g++ 12 warns about a constant empty optional under sanitizers.
  const std::vector<std::optional<int>> optionals = {std::nullopt, 3};
  const auto rows = tx.query(
      "SELECT typeof(?), typeof(?), typeof(?), typeof(?), typeof(?), typeof(?), typeof(?), "
      "typeof(?), typeof(?), ?",
      nullptr, true, std::uint32_t{7}, 1.5F, owned, optionals[0], optionals[1], Blob{"x"},
      std::string_view(), std::numeric_limits<std::int64_t>::min());
  ASSERT_TRUE(rows) << rows.error().message;
  std::string types;
  for (std::size_t i = 0; i < 9; ++i) types += std::string(rows->at(0, i).text()) + " ";
  EXPECT_EQ(types, "null integer integer real text null integer blob text ");
  EXPECT_EQ(rows->at(0, 9).integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(rows->at(0, 9).bytes(), Bytes());
  EXPECT_FALSE(rows->at(0, 0).integer());
  EXPECT_THROW((void)rows->at(1, 0), std::out_of_range);
  EXPECT_THROW((void)rows->at(0, 10), std::out_of_range);
}

TEST_F(SqliteTransaction, DollarsBindByTheirNumber) {
  const auto one = unit();
  // By first appearance, which is SQLite's own way, this would be b-a.
  const auto rows = transaction(*one).query("SELECT $2 || '-' || $1 || '-' || $2", "a", "b");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->at(0, 0).text(), "b-a-b");
}

TEST_F(SqliteTransaction, PlaceholdersThatCouldBindWronglyAreRefused) {
  const auto failure = [&](auto call) {
    const auto one = unit();
    call(transaction(*one));
    const UnitResult* found = one->failure();
    EXPECT_NE(found, nullptr);
    EXPECT_EQ(found->verdict, UnitVerdict::handler_down);
    return found->message;
  };
  EXPECT_NE(failure([](Transaction& tx) { tx.execute("SELECT :key", 1); }).find(":key"),
            std::string::npos);
  EXPECT_NE(failure([](Transaction& tx) { tx.execute("SELECT ?, $1", 1); }).find("mix"),
            std::string::npos);
  EXPECT_NE(failure([](Transaction& tx) { tx.execute("SELECT ?, ?", 1); }).find("2 parameters"),
            std::string::npos);
  EXPECT_NE(failure([](Transaction& tx) { tx.execute("SELECT ?", 1, 2); }).find("2 given"),
            std::string::npos);
  EXPECT_NE(failure([](Transaction& tx) {
              tx.execute("INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (2, 2)");
            }).find("one statement"),
            std::string::npos);
  EXPECT_NE(failure([](Transaction& tx) { tx.execute("  -- nothing"); }).find("one statement"),
            std::string::npos);
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
}

TEST_F(SqliteTransaction, RowsCountWhatTheStatementChanged) {
  const auto one = unit();
  Transaction& tx = transaction(*one);
  EXPECT_EQ(tx.query("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")->changed(), 3);
  EXPECT_EQ(tx.query("SELECT * FROM t")->changed(), 0);
  EXPECT_EQ(tx.query("UPDATE t SET v = 9 WHERE k > 1")->changed(), 2);
  EXPECT_EQ(tx.query("UPDATE t SET v = 9 WHERE k > 7")->changed(), 0);
  EXPECT_EQ(tx.query("CREATE TABLE made_by_handler(x)")->changed(), 0);
  EXPECT_EQ(tx.query("DELETE FROM t")->changed(), 3);
  const auto rows = tx.query("SELECT 1 AS one, NULL AS two UNION ALL SELECT 2, 'x'");
  EXPECT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->columns(), 2U);
  EXPECT_EQ(rows->name(1), "two");
  EXPECT_TRUE(rows->at(0, 1).null());
  EXPECT_EQ(tx.query("SELECT * FROM t")->size(), 0U);
  EXPECT_EQ(tx.query("INSERT INTO t VALUES (7, 8) RETURNING v")->at(0, 0).integer(), 8);
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTransaction, ErrorsHaveTheClassOfTheInterfaceTable) {
  EXPECT_EQ(verdict_of("INSERT INTO accountt VALUES (1)"), UnitVerdict::handler_down);
  EXPECT_NE(last_message.find("accountt"), std::string::npos) << last_message;
  EXPECT_EQ(verdict_of("SELEKT 1"), UnitVerdict::handler_down);
  EXPECT_EQ(verdict_of("INSERT INTO account VALUES ('a', 1)"), UnitVerdict::constraint);
  EXPECT_EQ(verdict_of("UPDATE account SET cents = -1"), UnitVerdict::constraint);
  EXPECT_EQ(verdict_of("UPDATE account SET cents = NULL"), UnitVerdict::constraint);
  EXPECT_EQ(verdict_of("INSERT INTO child VALUES (1, 'a', 'nobody')"), UnitVerdict::constraint);
  EXPECT_EQ(verdict_of("INSERT INTO child(id) VALUES ('x')"), UnitVerdict::data);
  EXPECT_EQ(verdict_of("SELECT zeroblob(2000000000)"), UnitVerdict::data);
  // The statement fits; what it met does not.
  EXPECT_EQ(verdict_of("SELECT json_extract('{', '$.a')"), UnitVerdict::data);
  EXPECT_EQ(verdict_of("INSERT INTO t SELECT abs(-9223372036854775807 - 1), 1"), UnitVerdict::data);
}

TEST_F(SqliteTransaction, E1_AConstraintThatIsCheckedAtCommitKeepsNothing) {
  const auto one = unit();
  transaction(*one).execute("INSERT INTO child VALUES (1, 'nobody', NULL)");
  EXPECT_EQ(one->failure(), nullptr);
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::constraint);
  EXPECT_EQ(outside("SELECT count(*) FROM child"), "0");
  EXPECT_EQ(outside("SELECT max(next_offset) FROM tenure_lane"), "0");
}

TEST_F(SqliteTransaction, T4_StatementsThatWouldEndTheTransactionAreRefused) {
  for (const char* sql : {"COMMIT", "END", "ROLLBACK", "BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT x",
                          "RELEASE x", "ROLLBACK TO x"}) {
    EXPECT_EQ(verdict_of(sql), UnitVerdict::misuse) << sql;
    EXPECT_NE(last_message.find("remove it"), std::string::npos) << last_message;
  }
  for (const char* sql :
       {"ATTACH ':memory:' AS other", "PRAGMA journal_mode = DELETE", "PRAGMA synchronous = OFF",
        "PRAGMA foreign_keys = 0", "UPDATE tenure_lane SET next_offset = 7",
        "INSERT INTO tenure_ticket VALUES (1,2,3,4,5,6,7,8)", "DELETE FROM tenure_lane",
        "DROP TABLE tenure_lane", "ALTER TABLE tenure_lane ADD COLUMN x",
        "INSERT INTO tenure_advance(scope) VALUES ('x')", "DROP TRIGGER tenure_advance_insert",
        "CREATE TRIGGER x AFTER UPDATE ON tenure_lane BEGIN SELECT 1; END"}) {
    EXPECT_EQ(verdict_of(sql), UnitVerdict::handler_down) << sql;
  }
  for (const char* sql : {"SELECT count(*) FROM tenure_lane", "PRAGMA table_info(t)",
                          "PRAGMA journal_mode", "CREATE TEMP TABLE scratch(x)"}) {
    EXPECT_EQ(verdict_of(sql), UnitVerdict::applied) << sql << ": " << last_message;
  }
}

TEST_F(SqliteTransaction, T4_AfterAnErrorNothingRunsAndOthersMayWrite) {
  const auto bad = unit(0);
  const auto good = unit(1);
  transaction(*bad).execute("INSERT INTO t VALUES ('bad', 1)");
  transaction(*bad).execute("no such statement");
  // Would wait for ever if the failed unit kept the writer.
  transaction(*good).execute("INSERT INTO t VALUES ('good', 1)");
  EXPECT_EQ(StoreProcess::commit(*good, Offset(1)).verdict, UnitVerdict::applied);
  const auto rows = transaction(*bad).query("INSERT INTO t VALUES ('late', 1)");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::refused);
  EXPECT_EQ(transaction(*bad).native(), nullptr);
  EXPECT_EQ(StoreProcess::commit(*bad, Offset(1)).verdict, UnitVerdict::handler_down);
  EXPECT_EQ(outside("SELECT k FROM t"), "good");
}

TEST_F(SqliteTransaction, NativeTakesPartInTheTransaction) {
  const auto one = unit();
  ::sqlite3* database = transaction(*one).native();
  ASSERT_NE(database, nullptr);
  ASSERT_EQ(sqlite3_exec(database, "INSERT INTO t VALUES ('native', 1)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
  sqlite3_stmt* half_read = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(database, "SELECT 1 UNION ALL SELECT 2", -1, &half_read, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(half_read), SQLITE_ROW);
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
  sqlite3_finalize(half_read);
  EXPECT_EQ(outside("SELECT k FROM t"), "native");
}

TEST_F(SqliteTransaction, T4_ACommitThroughNativeIsTurnedIntoARollback) {
  for (const char* trick : {"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"}) {
    SCOPED_TRACE(trick);
    const auto one = unit();
    ::sqlite3* database = transaction(*one).native();
    ASSERT_NE(database, nullptr);
    sqlite3_set_authorizer(database, nullptr, nullptr);
    sqlite3_exec(database, "INSERT INTO t VALUES ('stale', 1)", nullptr, nullptr, nullptr);
    sqlite3_exec(database, trick, nullptr, nullptr, nullptr);
    sqlite3_exec(database, "BEGIN; INSERT INTO t VALUES ('stale', 2)", nullptr, nullptr, nullptr);
    EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::misuse);
    EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
    EXPECT_EQ(outside("SELECT max(next_offset) FROM tenure_lane"), "0");
  }
}

TEST_F(SqliteTransaction, T4_AfterATrickTheNextUnitIsGuardedAsEver) {
  {
    const auto one = unit();
    ::sqlite3* database = transaction(*one).native();
    sqlite3_set_authorizer(database, nullptr, nullptr);
    sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
    EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::misuse);
  }
  EXPECT_EQ(verdict_of("UPDATE tenure_lane SET next_offset = 7"), UnitVerdict::handler_down);
}

TEST_F(SqliteTransaction, T4_AReplacedCommitHookIsNoticed) {
  const auto one = unit();
  ::sqlite3* database = transaction(*one).native();
  sqlite3_commit_hook(database, [](void*) { return 0; }, nullptr);
  transaction(*one).execute("INSERT INTO t VALUES (1, 1)");
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::misuse);
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
}

TEST_F(SqliteTransaction, T4_AHandleKeptBeyondTheUnitCannotCommit) {
  ::sqlite3* kept = nullptr;
  {
    const auto one = unit();
    kept = transaction(*one).native();
    EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
  }
  EXPECT_NE(sqlite3_exec(kept, "INSERT INTO t VALUES ('stray', 1)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
}

TEST_F(SqliteTransaction, T6_AUnitThatIsCancelledJustBeforeItsCommitKeepsNothing) {
  const auto one = unit();
  transaction(*one).execute("INSERT INTO t VALUES (1, 1)");
  // The last thing asked before COMMIT.
  testing::FaultVfs::get().on_moved_question = [&] { process->store().cancel(holder.owner); };
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::retired);
  testing::FaultVfs::get().on_moved_question = {};
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
  EXPECT_EQ(outside("SELECT max(next_offset) FROM tenure_lane"), "0");
}

TEST_F(SqliteTransaction, T6_CancelInterruptsARunningStatement) {
  const auto one = unit();
  std::atomic<bool> started{false};
  std::thread handler([&] {
    started = true;
    // Without an end of its own.
    const auto rows = transaction(*one).query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
    EXPECT_FALSE(rows);
    EXPECT_EQ(rows.error().code, Code::retired);
  });
  while (!started) std::this_thread::yield();
  process->store().cancel(holder.owner);
  handler.join();
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::retired);
  const Holder next = process->acquire(domain_of(), rule);
  EXPECT_EQ(process->apply(next, 0, Offset(0), Offset(1)).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTransaction, T4_ALateUnitOfAnEndedOwnerIsToldOfTheSuccessorInTheDatabase) {
  const auto waiting = unit();
  process->store().cancel(holder.owner);
  ASSERT_NE(waiting->failure(), nullptr);
  EXPECT_EQ(waiting->failure()->verdict, UnitVerdict::retired) << "nobody stands there yet";
  const Holder successor = process->acquire(domain_of(), rule);
  const auto late = process->open_unit(holder, 0, Offset(0));
  transaction(*late).execute("INSERT INTO t VALUES ('late', 1)");
  const UnitResult result = StoreProcess::commit(*late, Offset(1));
  EXPECT_EQ(result.verdict, UnitVerdict::superseded);
  EXPECT_NE(result.message.find("superseded by"), std::string::npos) << result.message;
  EXPECT_EQ(process->apply(successor, 0, Offset(0), Offset(1)).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("SELECT count(*) FROM t WHERE k = 'late'"), "0");
}

TEST_F(SqliteTransaction, T6_ACancelBetweenTwoStatementsStillInterruptsTheNext) {
  const auto one = unit();
  // Asked while the unit takes its turn: nothing runs yet that an interrupt could strike. The
  // pause lets the store's own thread try; it has to try again.
  testing::FaultVfs::get().on_moved_question = [&] {
    process->store().cancel(holder.owner);
    testing::take_time(milliseconds(20));
  };
  const auto rows = transaction(*one).query(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
  testing::FaultVfs::get().on_moved_question = {};
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::retired);
}

class SqliteHungUnit : public SqliteTransaction {
 protected:
  void SetUp() override {
    SqliteTransaction::SetUp();
    process.reset();
    process = std::make_unique<StoreProcess>(*this, milliseconds(100));
    holder = process->acquire(domain_of(), rule, Offset(0));
  }
};

TEST_F(SqliteHungUnit, T6_AStatementWithoutEndIsInterrupted) {
  const auto one = unit();
  const auto rows = transaction(*one).query(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::retired);
  ASSERT_NE(one->failure(), nullptr);
  EXPECT_EQ(one->failure()->verdict, UnitVerdict::timeout);
  EXPECT_NE(one->failure()->message.find("100 ms"), std::string::npos);
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::timeout);
}

TEST_F(SqliteHungUnit, T6_AHandlerThatStandsStillIsRolledBackAndAnswersRetiredForEver) {
  const auto hung = unit(0);
  ::sqlite3* kept = transaction(*hung).native();
  ASSERT_NE(kept, nullptr);
  sqlite3_stmt* prepared = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(kept, "INSERT INTO t VALUES ('zombie', 1)", -1, &prepared, nullptr),
            SQLITE_OK);
  sqlite3_stmt* half_read = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(kept, "SELECT 1 UNION ALL SELECT 2", -1, &half_read, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(half_read), SQLITE_ROW);
  ASSERT_EQ(sqlite3_step(prepared), SQLITE_DONE);
  ASSERT_EQ(sqlite3_reset(prepared), SQLITE_OK);
  // Gets the writer only when the store's own timer has ended the first unit.
  const auto next = unit(1);
  transaction(*next).execute("INSERT INTO t VALUES ('live', 1)");
  // The zombie wakes, with the raw handle and with the safe one.
  EXPECT_NE(sqlite3_step(prepared), SQLITE_DONE);
  EXPECT_NE(sqlite3_exec(kept, "INSERT INTO t VALUES ('zombie', 2)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_NE(sqlite3_exec(kept, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_NE(sqlite3_exec(kept, "SELECT k FROM t", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_FALSE(transaction(*hung).query("INSERT INTO t VALUES ('zombie', 3)"));
  EXPECT_EQ(transaction(*hung).native(), nullptr);
  EXPECT_EQ(StoreProcess::commit(*next, Offset(1)).verdict, UnitVerdict::applied);
  EXPECT_EQ(StoreProcess::commit(*hung, Offset(1)).verdict, UnitVerdict::timeout);
  sqlite3_finalize(prepared);
  sqlite3_finalize(half_read);
  EXPECT_EQ(outside("SELECT k FROM t"), "live");
  EXPECT_EQ(process->apply(holder, 2, Offset(0), Offset(1)).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTransaction, ManyDifferentStatementsAreNoProblem) {
  const auto one = unit();
  for (int i = 0; i < 400; ++i) {
    const auto rows = transaction(*one).query("SELECT " + std::to_string(i));
    ASSERT_TRUE(rows);
    ASSERT_EQ(rows->at(0, 0).integer(), i);
  }
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTransaction, TablesMadeAndChangedByOthersAreSeen) {
  const auto first = unit(0);
  transaction(*first).execute("INSERT INTO t(k) VALUES (1)");
  EXPECT_EQ(StoreProcess::commit(*first, Offset(1)).verdict, UnitVerdict::applied);
  outside("ALTER TABLE t ADD COLUMN more DEFAULT 5");
  const auto second = unit(1);
  const auto rows = transaction(*second).query("SELECT more FROM t");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->at(0, 0).integer(), 5);
  second->roll_back();
  outside("DROP TABLE t");
  EXPECT_EQ(verdict_of("INSERT INTO t(k) VALUES (1)"), UnitVerdict::handler_down);
}

}  // namespace
}  // namespace tenure::sqlite
