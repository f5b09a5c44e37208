// The whole member on the mock cluster: source, engine, workers and store, several in a process.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "kafka/mock_group.hpp"
#include "tenure/kafka/source.hpp"
#include "tenure/runtime.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string protocol_name(const testing::TestParamInfo<Protocol>& info) {
  return std::string(name(info.param));
}

std::shared_ptr<Source> source_for(const MockCluster& cluster, Protocol protocol) {
  SourceOptions options;
  options.topics = {"t"};
  options.properties = {{"bootstrap.servers", cluster.bootstrap()},
                        {"group.id", "g"},
                        {"fetch.wait.max.ms", "50"},
                        {"fetch.queue.backoff.ms", "10"}};
  if (protocol == Protocol::consumer) {
    options.properties.emplace_back("group.protocol", "consumer");
  } else {
    options.properties.emplace_back("partition.assignment.strategy",
                                    protocol == Protocol::eager ? "range" : "cooperative-sticky");
    options.properties.emplace_back("session.timeout.ms", "4000");
    options.properties.emplace_back("heartbeat.interval.ms", "200");
  }
  auto source = make_source(options);
  EXPECT_TRUE(source.has_value()) << (source ? "" : source.error().message);
  return std::move(*source);
}

class Temporary {
 public:
  Temporary() {
    std::string name = (std::filesystem::temp_directory_path() / "tenure-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Temporary() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class Database {
 public:
  explicit Database(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, 10000);
  }
  ~Database() { sqlite3_close(db_); }
  void run(const std::string& sql) {
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << sql << ": " << (error == nullptr ? "" : error);
    sqlite3_free(error);
  }
  std::int64_t number(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const std::int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
  }

 private:
  sqlite3* db_ = nullptr;
};

/// A Runtime on a thread of its own.
class Member {
 public:
  Member(Builder build, Ports ports) : ports_(ports) {
    auto made = Runtime::create(build, std::move(ports));
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    runtime_ = std::make_unique<Runtime>(std::move(*made));
    thread_ = std::thread([this] { report_ = runtime_->run(); });
  }
  ~Member() { end(); }
  StopReport end(milliseconds budget = seconds(10)) {
    if (thread_.joinable()) {
      runtime_->request_stop(budget);
      thread_.join();
    }
    return report_;
  }
  Status status() { return runtime_->status(); }

 private:
  Ports ports_;
  std::unique_ptr<Runtime> runtime_;
  std::thread thread_;
  StopReport report_;
};

bool wait_for(const std::function<bool()>& done, seconds limit = seconds(40)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + milliseconds(10));
  }
  return true;
}

class RuntimeOnMock : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, RuntimeOnMock,
                         testing::Values(Protocol::eager, Protocol::cooperative,
                                         Protocol::consumer),
                         protocol_name);

TEST_P(RuntimeOnMock, HandlesEveryRecordOnceWhenAloneAndLeavesCleanly) {
  MockCluster cluster;
  cluster.create("t", 4);
  for (int p = 0; p < 4; ++p) cluster.produce("t", p, 100, "key-" + std::to_string(p));
  std::mutex mutex;
  std::set<std::pair<int, std::int64_t>> seen;
  std::atomic<int> calls{0};
  Builder build;
  build.group("g");
  build.on("t", [&](const Record& record, const Owner&) {
    const std::lock_guard lock(mutex);
    seen.emplace(record.partition(), record.offset());
    ++calls;
    return done();
  });
  Member member(build, {source_for(cluster, GetParam()), nullptr, nullptr, {}});
  ASSERT_TRUE(wait_for([&] { return calls.load() == 400; }));
  const StopReport report = member.end();
  EXPECT_EQ(report.reason, StopReport::Reason::drained) << report.message;
  EXPECT_EQ(calls.load(), 400);
  EXPECT_EQ(seen.size(), 400u);
}

TEST_P(RuntimeOnMock, T4_TwoMembersHandOverWithOneEffectARecord) {
  Temporary folder;
  const std::string path = folder.file("effects.db");
  Database database(path);
  database.run("create table audit(n integer primary key, p int, o int, who int)");
  MockCluster cluster;
  cluster.create("t", 6);
  const auto member_of = [&](int who) {
    sqlite::Options options;
    options.path = path;
    options.create = true;
    auto store = sqlite::make_store(options);
    EXPECT_TRUE(store.has_value());
    Builder build;
    build.group("g");
    build.options().commit.interval = milliseconds(200);
    build.on("t", [who](const Record& record, const Owner&, sqlite::Transaction& tx) {
      tx.execute("insert into audit(p, o, who) values (?, ?, ?)", record.partition(),
                 record.offset(), who);
      return done();
    });
    return std::make_unique<Member>(
        build, Ports{source_for(cluster, GetParam()), std::move(*store), nullptr, {}});
  };
  auto first = member_of(1);
  for (int p = 0; p < 6; ++p) cluster.produce("t", p, 200, "a" + std::to_string(p));
  ASSERT_TRUE(wait_for([&] { return database.number("select count(*) from audit") >= 300; }));
  auto second = member_of(2);
  ASSERT_TRUE(wait_for([&] {
    for (int p = 0; p < 6; ++p) cluster.produce("t", p, 5, "b" + std::to_string(p));
    return database.number("select count(*) from audit where who = 2") > 0;
  }));
  EXPECT_EQ(first->end().reason == StopReport::Reason::fatal, false);
  for (int p = 0; p < 6; ++p) cluster.produce("t", p, 50, "c" + std::to_string(p));
  std::int64_t produced = 0;
  ASSERT_TRUE(wait_for([&] {
    produced = 0;
    const Status status = second->status();
    if (status.owners.size() != 6) return false;
    for (const OwnerStatus& owner : status.owners) {
      if (owner.state != OwnerState::active || owner.committed != owner.frontier) return false;
      produced += owner.frontier.value();
    }
    return database.number("select count(*) from audit") == produced;
  }));
  EXPECT_EQ(second->end().reason, StopReport::Reason::drained);
  EXPECT_EQ(database.number("select count(*) from (select distinct p, o from audit)"), produced);
  EXPECT_EQ(database.number("select count(*) from audit"), produced) << "one effect a record";
  EXPECT_GT(produced, 1500);
}

}  // namespace
}  // namespace tenure::kafka
