// The demo's database: what is written, what is refused, and what it witnesses by itself.
#include "demo/account_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "judge/judge.hpp"

namespace tenure::demo {
namespace {

using ::testing::SizeIs;

class AccountBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tenure-book-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ + "/demo.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  AccountBook make(bool plain = false) {
    const auto made = AccountBook::create(path_, plain);
    EXPECT_TRUE(made) << made.error().message;
    auto book = AccountBook::open(path_);
    EXPECT_TRUE(book) << book.error().message;
    return std::move(*book);
  }
  void sql(const std::string& text) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
  }
  /// Lane 0 of partition 3, active under `token`, at offset 5.
  void first_owner(std::int64_t token) {
    sql("INSERT INTO tenure_lane(scope, cluster, topic_id, partition, lane, token, owner, "
        "next_offset, leader_epoch, note) VALUES ('g', 'c', '" +
        domain_.topic_id.text() + "', 3, 0, " + std::to_string(token) + ", '" +
        Uuid{}.text() + "', 5, -1, '')");
  }
  void takes_over(std::int64_t token) {
    sql("UPDATE tenure_lane SET token = " + std::to_string(token));
  }
  sqlite::Advance advance(std::int64_t token, std::int64_t from, std::int64_t to) {
    return sqlite::advance(domain_, Fence{Token(token), Uuid{}}, 0, Offset(from), Offset(to),
                           no_leader_epoch);
  }
  static AccountBook::Entry entry(std::int64_t offset, std::int64_t cents,
                                  std::optional<std::int64_t> token) {
    return {{3, offset}, "k", cents, token};
  }
  static judge::Evidence read(AccountBook& book) {
    judge::Evidence evidence;
    const auto result = book.read(evidence);
    EXPECT_TRUE(result) << result.error().message;
    return evidence;
  }

  Domain domain_{"g", "c", Uuid{}, Partition(3)};
  std::string folder_;
  std::string path_;
};

TEST_F(AccountBookTest, AnEffectAndItsProgressAreOneTransactionAndBothAreWitnessed) {
  AccountBook book = make();
  first_owner(1);
  EXPECT_EQ(book.apply(entry(5, 100, 1), advance(1, 5, 6)), Applied::written);
  EXPECT_EQ(book.apply(entry(6, -30, 1), advance(1, 6, 7)), Applied::written);
  const judge::Evidence evidence = read(book);
  ASSERT_THAT(evidence.effects, SizeIs(2));
  ASSERT_THAT(evidence.fences, SizeIs(1));
  EXPECT_LT(evidence.fences[0].pos, evidence.effects[0].pos);
  EXPECT_EQ(evidence.fences[0].token, 1);
  EXPECT_EQ(evidence.effects[1].token, 1);
  EXPECT_EQ(evidence.balances.at("k"), 70);
}

TEST_F(AccountBookTest, E3_ARepeatedEffectIsAlreadyThereAndChangesNothing) {
  AccountBook book = make();
  first_owner(1);
  ASSERT_EQ(book.apply(entry(5, 100, 1), advance(1, 5, 6)), Applied::written);
  EXPECT_EQ(book.apply(entry(5, 100, 1), advance(1, 5, 6)), Applied::already);
  EXPECT_EQ(read(book).balances.at("k"), 100);
  EXPECT_THAT(read(book).effects, SizeIs(1));
}

TEST_F(AccountBookTest, T4_AnEffectUnderASupersededTokenIsRefusedWhole) {
  AccountBook book = make();
  first_owner(1);
  takes_over(2);
  EXPECT_EQ(book.apply(entry(5, 100, 1), advance(1, 5, 6)), Applied::superseded);
  const judge::Evidence evidence = read(book);
  EXPECT_THAT(evidence.effects, SizeIs(0));
  EXPECT_THAT(evidence.fences, SizeIs(2)) << "the activation is witnessed";
  EXPECT_EQ(evidence.balances.count("k"), 0U);
}

TEST_F(AccountBookTest, PlainWritesWhateverItIsTold) {
  AccountBook book = make(true);
  EXPECT_EQ(book.apply(entry(5, 100, {}), {}), Applied::written);
  EXPECT_EQ(book.apply(entry(5, 100, {}), {}), Applied::written);
  const judge::Evidence evidence = read(book);
  EXPECT_EQ(evidence.balances.at("k"), 200);
  ASSERT_THAT(evidence.effects, SizeIs(2));
  EXPECT_FALSE(evidence.effects[0].token.has_value());
}

TEST_F(AccountBookTest, TheWriteLockIsTakenByOneAtATime) {
  AccountBook book = make();
  auto other = AccountBook::open(path_);
  ASSERT_TRUE(other);
  ASSERT_TRUE(book.lock(1));
  EXPECT_FALSE(other->lock(1));
  book.unlock();
  EXPECT_TRUE(other->lock(1));
}

TEST_F(AccountBookTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(AccountBook::create(folder_ + "/none/demo.db", true));
}

}  // namespace
}  // namespace tenure::demo
