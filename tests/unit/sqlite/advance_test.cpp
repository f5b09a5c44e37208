// The fence in a transaction of the user's own: sqlite::advance() and sqlite::state().
#include "ports/owner_cell.hpp"
#include "unit/sqlite/sqlite_rig.hpp"

namespace tenure::sqlite {
namespace {

/// A user's own connection to the store's file.
class OwnConnection {
 public:
  explicit OwnConnection(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    sqlite3_busy_timeout(database_, 10000);
  }
  ~OwnConnection() { sqlite3_close(database_); }
  OwnConnection(const OwnConnection&) = delete;
  OwnConnection& operator=(const OwnConnection&) = delete;

  /// State after the call.
  std::string run(const std::string& sql) {
    sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
    return state(database_);
  }
  std::string run(const Advance& advance) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, advance.sql.data(),
                                 static_cast<int>(advance.sql.size()), &statement, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(database_);
    int index = 0;
    for (const Parameter& parameter : advance.parameters) {
      ++index;
      if (const auto* number = std::get_if<std::int64_t>(&parameter)) {
        sqlite3_bind_int64(statement, index, *number);
      } else {
        const auto& text = std::get<std::string>(parameter);
        sqlite3_bind_text64(statement, index, text.data(), text.size(), nullptr, SQLITE_UTF8);
      }
    }
    sqlite3_step(statement);
    std::string out = state(database_);
    sqlite3_finalize(statement);
    return out;
  }
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(database_) == 0; }

 private:
  ::sqlite3* database_ = nullptr;
};

class SqliteAdvance : public Rig {
 protected:
  void SetUp() override {
    create();
    process = std::make_unique<StoreProcess>(*this);
    holder = process->acquire(domain_of(), rule, Offset(10));
  }
  void TearDown() override { process.reset(); }

  Advance step(const Holder& who, std::int64_t from, std::int64_t to, std::uint16_t lane = 0) {
    return advance(who.domain, who.fence, lane, Offset(from), Offset(to), LeaderEpoch(4));
  }
  std::string stored(const char* column = "next_offset", int lane = 0) {
    return outside(std::string("SELECT ") + column +
                   " FROM tenure_lane WHERE lane = " + std::to_string(lane));
  }

  std::unique_ptr<StoreProcess> process;
  Holder holder;
};

TEST_F(SqliteAdvance, T4_EffectAndProgressCommitTogether) {
  OwnConnection own(options.path);
  EXPECT_EQ(own.run("BEGIN IMMEDIATE; INSERT INTO t VALUES (1, 1)"), "");
  EXPECT_EQ(own.run(step(holder, 10, 11)), "");
  EXPECT_EQ(stored(), "10");
  EXPECT_EQ(own.run("COMMIT"), "");
  EXPECT_EQ(stored(), "11");
  EXPECT_EQ(stored("leader_epoch"), "4");
  EXPECT_EQ(stored("next_offset", 1), "10");
  // The store's own units and the user's agree on where the lane is.
  EXPECT_EQ(process->apply(holder, 0, Offset(11), Offset(12)).verdict, UnitVerdict::applied);
  EXPECT_EQ(own.run(step(holder, 12, 13)), "");
  EXPECT_EQ(stored(), "13");
}

TEST_F(SqliteAdvance, T4_ASupersededOwnerIsRolledBackEvenIfItOverlooksTheError) {
  OwnConnection own(options.path);
  process->acquire(domain_of(), rule);
  EXPECT_EQ(own.run("BEGIN IMMEDIATE; INSERT INTO t VALUES ('stale', 1)"), "");
  EXPECT_EQ(own.run(step(holder, 10, 11)), superseded);
  EXPECT_FALSE(own.in_transaction());
  EXPECT_EQ(own.run("COMMIT"), "SQLITE_ERROR");
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
  EXPECT_EQ(stored(), "10");
}

TEST_F(SqliteAdvance, T4_TokenAndNonceAreBothCompared) {
  OwnConnection own(options.path);
  Holder other = holder;
  other.fence.owner.bytes[15] = 9;
  EXPECT_EQ(own.run(step(other, 10, 11)), superseded);
  other = holder;
  other.fence.token = Token(holder.fence.token.value() + 1);
  EXPECT_EQ(own.run(step(other, 10, 11)), superseded);
  other = holder;
  other.domain.partition = Partition(77);
  EXPECT_EQ(own.run(step(other, 10, 11)), superseded) << "no row at all";
  EXPECT_EQ(stored(), "10");
}

TEST_F(SqliteAdvance, E3_AnEarlierAttemptThatCommittedIsToldApart) {
  OwnConnection own(options.path);
  EXPECT_EQ(own.run(step(holder, 10, 13)), "");
  own.run("BEGIN IMMEDIATE; INSERT INTO t VALUES ('again', 1)");
  EXPECT_EQ(own.run(step(holder, 10, 13)), already_applied);
  EXPECT_FALSE(own.in_transaction());
  EXPECT_EQ(own.run(step(holder, 10, 11)), already_applied);
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
  EXPECT_EQ(stored(), "13");
}

TEST_F(SqliteAdvance, T4_ALaneThatIsElsewhereSaysMoved) {
  OwnConnection own(options.path);
  EXPECT_EQ(own.run(step(holder, 11, 12)), moved);
  EXPECT_EQ(own.run(step(holder, 8, 12)), moved);
  EXPECT_EQ(stored(), "10");
}

TEST_F(SqliteAdvance, T3_ALaneWithoutProgressDoesNotAdvance) {
  Holder plain = process->grant(domain_of(5), LaneRule{1, Order::key});
  plain.fence.token = process->reserve(plain).token;
  ASSERT_EQ(process->activate(plain, Offset(10), false).error, StoreError::none);
  OwnConnection own(options.path);
  EXPECT_EQ(own.run(step(plain, 10, 11)), moved);
}

TEST_F(SqliteAdvance, StateNamesTheErrorsOfSqlite) {
  OwnConnection own(options.path);
  EXPECT_EQ(own.run("SELECT 1"), "");
  EXPECT_EQ(own.run("SELEKT 1"), "SQLITE_ERROR");
  own.run("CREATE TABLE u(x UNIQUE); INSERT INTO u VALUES (1)");
  EXPECT_EQ(own.run("INSERT INTO u VALUES (1)"), "SQLITE_CONSTRAINT");
  // A user's own trigger that raises our words by accident is the user's business, but a text
  // that merely mentions them is not ours.
  own.run("CREATE TRIGGER r BEFORE INSERT ON u BEGIN SELECT RAISE(ABORT, 'not TN001'); END");
  EXPECT_EQ(own.run("INSERT INTO u VALUES (2)"), "SQLITE_CONSTRAINT");
}

class NoMessages : public MessageReader {
 public:
  void view(std::span<const MessageHandle>, std::span<MessageView>) const override {}
  std::vector<Header> headers(MessageHandle) const override { return {}; }
};

Owner owner_of(const Holder& holder, std::optional<Fence> fence) {
  detail::OwnerCell::Facts facts;
  facts.owner = holder.owner;
  facts.origin.topic = "orders";
  facts.origin.partition = holder.domain.partition;
  facts.origin.cluster = holder.domain.cluster;
  facts.origin.topic_id = holder.domain.topic_id;
  facts.origin.scope = holder.domain.scope;
  facts.fence = fence;
  return Owner(std::make_shared<detail::OwnerCell>(facts));
}

TEST_F(SqliteAdvance, T4_AnOwnerAndItsRecordGiveTheStatement) {
  const NoMessages reader;
  RecordOrigin origin;
  origin.reader = &reader;
  const Record record(origin, nullptr, MessageView{}, Offset(17), LeaderEpoch(6), 1, 2, Offset(10));
  OwnConnection own(options.path);
  EXPECT_EQ(own.run(advance(owner_of(holder, holder.fence), record)), "");
  EXPECT_EQ(stored("next_offset", 2), "18");
  EXPECT_EQ(stored("leader_epoch", 2), "6");
  EXPECT_EQ(own.run(advance(owner_of(holder, holder.fence), record)), already_applied);
  EXPECT_THROW((void)advance(owner_of(holder, std::nullopt), record), std::logic_error);
}

}  // namespace
}  // namespace tenure::sqlite
