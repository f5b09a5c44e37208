// README's program, built against the installed library, as a member on the mock cluster.
// Its path is in the environment: README_PROGRAM.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "e2e/cli/program_run.hpp"
#include "kafka/cluster.hpp"

namespace tenure {
namespace {

class Accounts {
 public:
  explicit Accounts(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &raw_), SQLITE_OK);
    run("create table account(id text primary key, cents integer not null)");
  }
  ~Accounts() { sqlite3_close(raw_); }
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;

  void run(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(raw_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  }
  std::map<std::string, int> cents() {
    std::map<std::string, int> found;
    const auto row = [](void* target, int, char** values, char**) {
      (*static_cast<std::map<std::string, int>*>(target))[values[0]] = std::atoi(values[1]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(raw_, "select id, cents from account", row, &found, nullptr), SQLITE_OK);
    return found;
  }

 private:
  sqlite3* raw_ = nullptr;
};

TEST(ReadmeProgram, ChargesEachOrderOnceAndEndsAtTheEnd) {
  const char* program = std::getenv("README_PROGRAM");
  ASSERT_NE(program, nullptr);
  const e2e::TestFolder folder;
  Accounts accounts(folder.file("bank.db"));
  accounts.run("insert into account values ('ada', 1000), ('bob', 1000), ('eve', 1000)");

  kafka::MockCluster cluster;
  cluster.create("orders", 2);
  for (int i = 1; i <= 20; ++i) {
    cluster.produce("orders", 0, {i % 2 == 0 ? "ada" : "bob", {}, {{"cents", std::to_string(i)}}});
  }
  cluster.produce("orders", 1, {"ada", "a value", {{"cents", "7"}, {"note", {}}}});

  const std::string config = folder.write(
      "tenure.yaml", "version: 1\nkafka:\n  bootstrap.servers: \"" + cluster.bootstrap() +
                         "\"\n  group.id: billing\n  session.timeout.ms: 2500\n"
                         "  heartbeat.interval.ms: 200\nstore:\n  sqlite: {path: " +
                         folder.file("bank.db") + "}\n  create: true\n");
  const std::map<std::string, int> after{
      {"ada", 1000 - 110 - 7}, {"bob", 1000 - 100}, {"eve", 1000}};
  for (const char* start : {"first start", "second start: nothing is done again"}) {
    SCOPED_TRACE(start);
    e2e::ProgramRun run({"-c", config, "--until-end"}, {}, program);
    EXPECT_EQ(run.ends(std::chrono::seconds(60)), 0) << run.err();
    EXPECT_EQ(accounts.cents(), after);
  }
}

}  // namespace
}  // namespace tenure
