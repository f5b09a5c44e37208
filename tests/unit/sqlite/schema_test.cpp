// What `store plan`, `store init` and `store status` show.
#include "unit/sqlite/sqlite_rig.hpp"

namespace tenure::sqlite {
namespace {

class SqliteSchema : public Rig {};

constexpr const char* schema_of =
    "SELECT group_concat(type || ' ' || name || ' ' || sql, ';') FROM (SELECT * FROM "
    "sqlite_master ORDER BY name)";

TEST_F(SqliteSchema, ThePrintedScriptMakesExactlyWhatInitMakes) {
  ASSERT_TRUE(init(options));
  const std::string made = outside(schema_of);
  EXPECT_EQ(outside("PRAGMA journal_mode"), "wal");
  options.path += ".2";
  outside(std::string(ddl()));
  EXPECT_EQ(outside(schema_of), made);
  EXPECT_EQ(outside("PRAGMA journal_mode"), "wal");
  StoreProcess process(*this);
  EXPECT_EQ(process.acquire(domain_of(), rule).fence.token, Token(1));
}

TEST_F(SqliteSchema, InitTwiceChangesNothing) {
  create();
  {
    StoreProcess process(*this);
    process.acquire(domain_of(), rule);
  }
  ASSERT_TRUE(init(options));
  EXPECT_EQ(outside("SELECT next FROM tenure_ticket"), "1");
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
}

TEST_F(SqliteSchema, EveryPrintedStatementFitsTheTables) {
  create();
  ::sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(options.path.c_str(), &database), SQLITE_OK);
  const std::string all = statements();
  const char* rest = all.c_str();
  int prepared = 0;
  while (*rest != '\0') {
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(database, rest, -1, &statement, &rest), SQLITE_OK)
        << sqlite3_errmsg(database) << " at " << rest;
    if (statement != nullptr) ++prepared;
    sqlite3_finalize(statement);
  }
  sqlite3_close(database);
  EXPECT_EQ(prepared, 15);
  for (const char* rule_name : {"T1", "T3", "T4", "E3"}) {
    EXPECT_NE(all.find(rule_name), std::string::npos) << rule_name;
  }
}

TEST_F(SqliteSchema, StatusShowsEveryDomainAndChangesNothing) {
  EXPECT_FALSE(status(options));
  EXPECT_FALSE(std::filesystem::exists(options.path));
  create();
  {
    StoreProcess process(*this);
    const Holder first = process.acquire(domain_of(0), rule, Offset(10));
    process.apply(first, 2, Offset(10), Offset(20));
    process.reserve(process.grant(domain_of(1), LaneRule{1, Order::partition}));
    Holder plain = process.grant(domain_of(2), LaneRule{1, Order::none});
    plain.fence.token = process.reserve(plain).token;
    process.activate(plain, Offset(7), false, "member 9");
  }
  const auto shown = status(options);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->schema, 1);
  EXPECT_EQ(shown->library, sqlite3_libversion());
  ASSERT_EQ(shown->domains.size(), 3U);
  const DomainStatus& kept = shown->domains[0];
  EXPECT_EQ(kept.domain, domain_of(0));
  EXPECT_EQ(kept.rule, rule);
  EXPECT_EQ(kept.next, Token(1));
  EXPECT_EQ(kept.token, Token(1));
  EXPECT_EQ(kept.owner.size(), 36U);
  EXPECT_EQ(kept.minimum, Offset(10));
  EXPECT_EQ(kept.maximum, Offset(20));
  EXPECT_EQ(kept.note, "member 1");
  const DomainStatus& drawn = shown->domains[1];
  EXPECT_EQ(drawn.rule, (LaneRule{1, Order::partition}));
  EXPECT_EQ(drawn.token, Token());
  EXPECT_EQ(drawn.owner, "");
  EXPECT_FALSE(drawn.minimum);
  const DomainStatus& plain = shown->domains[2];
  EXPECT_EQ(plain.token, Token(1));
  EXPECT_FALSE(plain.minimum);
  EXPECT_EQ(plain.note, "member 9");
}

TEST_F(SqliteSchema, StatusOfADatabaseInUseDoesNotDisturbIt) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  const auto one = process.open_unit(holder, 0, Offset(0));
  transaction(*one).execute("INSERT INTO t VALUES (1, 1)");
  EXPECT_TRUE(status(options));
  EXPECT_EQ(StoreProcess::commit(*one, Offset(1)).verdict, UnitVerdict::applied);
  EXPECT_TRUE(process.store().still_there());
}

TEST_F(SqliteSchema, StatusOfAForeignDatabaseSaysSo) {
  outside("CREATE TABLE account(id)");
  const auto shown = status(options);
  ASSERT_FALSE(shown);
  EXPECT_NE(shown.error().message.find("no Tenure tables"), std::string::npos);
  EXPECT_EQ(outside("PRAGMA journal_mode"), "delete");
}

}  // namespace
}  // namespace tenure::sqlite
