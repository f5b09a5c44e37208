// The whole member on the mock cluster: source, engine, workers and store, several in a process.
#include <atomic>
#include <set>

#include "kafka/member.hpp"

namespace tenure::kafka {
namespace {

class RuntimeOnMock : public ::testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, RuntimeOnMock, protocols(), protocol_name);

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
  std::int64_t produced = 0;
  const auto produce = [&](int count, const std::string& key) {
    for (int p = 0; p < 6; ++p) cluster.produce("t", p, count, key + std::to_string(p));
    produced += 6 * count;
  };
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
  produce(200, "a");
  ASSERT_TRUE(wait_for([&] { return database.number("select count(*) from audit") >= 300; }));
  auto second = member_of(2);
  ASSERT_TRUE(wait_for([&] {
    produce(5, "b");
    return database.number("select count(*) from audit where who = 2") > 0;
  }));
  EXPECT_EQ(first->end().reason == StopReport::Reason::fatal, false);
  produce(50, "c");
  ASSERT_TRUE(wait_for([&] {
    std::int64_t committed = 0;
    const Status status = second->status();
    if (status.owners.size() != 6) return false;
    for (const OwnerStatus& owner : status.owners) {
      if (owner.state != OwnerState::active || owner.committed != owner.frontier) return false;
      committed += owner.frontier.value();
    }
    return committed == produced;
  }));
  EXPECT_EQ(second->end().reason, StopReport::Reason::drained);
  EXPECT_EQ(database.number("select count(*) from (select distinct p, o from audit)"), produced);
  EXPECT_EQ(database.number("select count(*) from audit"), produced) << "one effect a record";
}

}  // namespace
}  // namespace tenure::kafka
