// The `sql` handler in a real transaction of the SQLite store.
#include "handler/sql_sqlite.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <future>
#include <string>

#include "tenure/sqlite/store.hpp"
#include "unit/handler/exec_rig.hpp"

namespace tenure::handler {
namespace {

class Answers final : public StoreSink {
 public:
  void reserved(Reserved answer) override { drawn.set_value(std::move(answer)); }
  void activated(Activated answer) override { active.set_value(std::move(answer)); }
  void idle_advanced(IdleAdvanced) override {}
  void looked_up(LookedUp) override {}
  std::promise<Reserved> drawn;
  std::promise<Activated> active;
};

class OneMessage final : public MessageReader {
 public:
  void view(std::span<const MessageHandle>, std::span<MessageView>) const override {}
  std::vector<Header> headers(MessageHandle) const override { return all; }
  std::vector<Header> all;
};

class SqlOnSqlite : public testing::Test {
 protected:
  SqlOnSqlite() {
    sqlite::Options options;
    options.path = folder.at("effects.db");
    options.create = true;
    store = std::move(*sqlite::make_store(options));
    EXPECT_TRUE(store->open(answers));
    domain.scope = "billing-scope";
    domain.cluster = "test-cluster";
    domain.topic_id.bytes = {0x12, 0x34};
    domain.partition = Partition(5);
    const LaneRule rule{1, Order::partition};
    store->submit(Reserve{StoreRequestId(1), {Reserve::Item{owner, domain, rule}}});
    fence = Fence{answers.drawn.get_future().get().items[0].token, Uuid{{0xAB}}};
    Activate::Item item;
    item.owner = owner;
    item.domain = domain;
    item.rule = rule;
    item.fence = fence;
    item.first = Offset(0);
    store->submit(Activate{StoreRequestId(2), {item}});
    EXPECT_EQ(answers.active.get_future().get().items[0].error, StoreError::none);
    outside("create table t (k, v, h, n)");
  }
  ~SqlOnSqlite() override { store->close(std::chrono::seconds(5)); }

  struct Ran {
    Outcome outcome;
    UnitVerdict verdict;
  };
  /// Runs one record as a worker does: the unit is committed when the outcome is done.
  Ran run(const SqlOptions& options, const MessageView& view) {
    const Handler handler = make_sqlite_handler(*compile_sql(options));
    EXPECT_EQ(handler.transaction, store->transaction_kind());
    const test::TestOwner holder(&reader, fence);
    const Offset offset(next_++);
    const Record record(holder.origin(), nullptr, view, offset, no_leader_epoch, 1, 0, offset);
    const auto unit = store->open_unit(UnitKey{owner, domain, fence, 0, offset});
    const Outcome outcome = handler.blocking({&record, 1}, holder.owner(), unit->transaction());
    if (const UnitResult* failure = unit->failure(); failure != nullptr) {
      --next_;
      return {outcome, failure->verdict};
    }
    if (outcome.kind() != OutcomeKind::done) {
      unit->roll_back();
      --next_;
      return {outcome, UnitVerdict::retired};
    }
    std::promise<UnitVerdict> verdict;
    unit->commit(offset.next(), no_leader_epoch,
                 [&](UnitResult result) { verdict.set_value(result.verdict); });
    return {outcome, verdict.get_future().get()};
  }

  std::string outside(const std::string& sql) const {
    ::sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(folder.at("effects.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10000);
    std::string out;
    const auto collect = [](void* to, int columns, char** values, char**) {
      for (int i = 0; i < columns; ++i) {
        *static_cast<std::string*>(to) +=
            values[i] == nullptr ? "NULL " : values[i] + std::string(" ");
      }
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), collect, &out, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
    return out;
  }

  test::Folder folder;
  Answers answers;
  OneMessage reader;
  std::unique_ptr<EffectStore> store;
  OwnerRef owner{1, GrantId(7)};
  Domain domain;
  Fence fence;

 private:
  std::int64_t next_ = 0;
};

Bytes bytes(std::string_view text) {
  return Bytes(text);
}

TEST_F(SqlOnSqlite, EveryValueArrivesUnharmed) {
  SqlOptions options;
  options.statements = {"insert into t values (:key, :value, :header(h), :json(/n))"};
  SqlOptions no_json = options;
  no_json.statements = {"insert into t values (:key, :value, :header(h), null);"};
  const std::string big(1U << 20, 'x');
  const std::string binary("\xFF\x00\x01", 3);
  reader.all = {{"h", Bytes(binary.data(), binary.size())}};
  EXPECT_EQ(run(options, {Bytes(), bytes(R"({"n":7})"), 1}).verdict, UnitVerdict::applied);
  reader.all.clear();
  EXPECT_EQ(run(options, {bytes("k"), Bytes(), 1}).verdict, UnitVerdict::applied);
  EXPECT_EQ(run(no_json, {bytes(""), bytes(""), 1}).verdict, UnitVerdict::applied);
  EXPECT_EQ(run(no_json, {bytes(binary), bytes(big), 1}).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("select quote(k), typeof(v), length(v), quote(h), quote(n) from t"),
            "NULL text 7 X'FF0001' 7 "
            "'k' null NULL NULL NULL "
            "'' text 0 NULL NULL "
            "X'FF0001' text 1048576 NULL NULL ");
}

TEST_F(SqlOnSqlite, BytesWhereTextIsOff) {
  SqlOptions options;
  options.statements = {"insert into t (k, v) values (:key, :value)"};
  options.text = false;
  EXPECT_EQ(run(options, {bytes("a"), bytes("b"), 1}).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("select quote(k), quote(v) from t"), "X'61' X'62' ");
}

TEST_F(SqlOnSqlite, ARejectLeavesNothingBehind) {
  SqlOptions options;
  options.statements = {"insert into t (k) values (:key)", "update t set v = 1 where k = 'nobody'"};
  options.expect_rows = 1;
  const Ran ran = run(options, {bytes("a"), Bytes(), 1});
  EXPECT_EQ(ran.outcome.kind(), OutcomeKind::reject);
  EXPECT_EQ(ran.outcome.failure_class(), "no_rows");
  EXPECT_EQ(outside("select count(*) from t"), "0 ");
}

TEST_F(SqlOnSqlite, AnSqlErrorIsTheStoresToJudge) {
  SqlOptions options;
  options.statements = {"insert into nowhere values (:key)"};
  const Ran ran = run(options, {bytes("a"), Bytes(), 1});
  EXPECT_EQ(ran.outcome.kind(), OutcomeKind::retry);
  EXPECT_EQ(ran.outcome.failure_class(), "sql");
  EXPECT_NE(ran.outcome.reason().find("nowhere"), std::string::npos) << ran.outcome.reason();
  EXPECT_EQ(ran.verdict, UnitVerdict::handler_down);
}

TEST_F(SqlOnSqlite, PositionsSurviveRepetitionAndComments) {
  SqlOptions options;
  options.statements = {
      "insert into t values (:key /* :value */, :partition, ':key', :key) -- :offset"};
  EXPECT_EQ(run(options, {bytes("a"), Bytes(), 1}).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("select * from t"), "a 5 :key a ");
}

}  // namespace
}  // namespace tenure::handler
