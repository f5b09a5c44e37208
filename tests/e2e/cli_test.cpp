// The program as its users run it: exit codes, signals, what goes where, on the mock cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/cli/mock_broker.hpp"
#include "e2e/cli/program_run.hpp"

namespace tenure::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds long_enough{60'000};

/// A cluster with a topic, and the configuration of a member on it.
class OnMock : public ::testing::Test {
 protected:
  void SetUp() override { cluster.create("orders", 2); }

  std::string config(const std::string& rest, const std::string& kafka = {},
                     const std::string& brokers = {}) {
    return folder.write(
        "tenure.yaml",
        "version: 1\nkafka:\n  bootstrap.servers: \"" +
            (brokers.empty() ? cluster.bootstrap() : brokers) +
            "\"\n  group.id: g\n  session.timeout.ms: 3600\n  heartbeat.interval.ms: 500\n" +
            kafka + "topics: [orders]\n" + rest);
  }
  std::string sql_config(const std::string& rest = {}, const std::string& kafka = {}) {
    return config("handler:\n  sql:\n    statements: [\"insert into seen(key, value) values "
                  "(:key, :value)\"]\nstore:\n  sqlite: {path: " +
                      folder.file("t.db") + "}\n  create: true\n" + rest,
                  kafka);
  }
  std::string exec_config(const std::string& program, const std::string& rest = {},
                          const std::string& kafka = {}) {
    const std::string path = folder.write("handler.sh", "#!/bin/sh\n" + program + "\n", true);
    return config("handler:\n  exec: {command: [" + path + "], mode: per_record}\n" + rest, kafka);
  }
  void make_table() {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(folder.file("t.db").c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, "create table seen(key, value)", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(connection);
  }
  int rows() {
    sqlite3* connection = nullptr;
    EXPECT_EQ(sqlite3_open(folder.file("t.db").c_str(), &connection), SQLITE_OK);
    int count = -1;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(connection, "select count(*) from seen", -1, &statement, nullptr) ==
            SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
      count = sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return count;
  }

  TestFolder folder;
  MockBroker cluster;
};

constexpr int heartbeat_api = 12;
constexpr int consumer_heartbeat_api = 68;

// ---- exit codes -----------------------------------------------------------------------

TEST_F(OnMock, Exit0_UntilEndHandlesEveryRecordOnceAndCommits) {
  make_table();
  cluster.produce("orders", 0, 30);
  cluster.produce("orders", 1, 20);
  ProgramRun run({"run", "-c", sql_config(), "--until-end"});
  EXPECT_EQ(run.ends(long_enough), 0) << run.err();
  EXPECT_EQ(rows(), 50);
  EXPECT_THAT(run.err(), HasSubstr("app.stopped"));
  EXPECT_EQ(run.out(), "") << "talk goes to stderr";
}

TEST_F(OnMock, Exit3_AHandlerThatSaysStopEndsTheProgram) {
  cluster.produce("orders", 0, 3);
  ProgramRun run({"run", "-c", exec_config("echo enough >&2; exit 78")});
  EXPECT_EQ(run.ends(long_enough), 3) << run.err();
}

TEST_F(OnMock, Exit70_AFatalStateOfTheClientEndsTheProgram) {
  cluster.fail_next(consumer_heartbeat_api, RD_KAFKA_RESP_ERR_INVALID_REQUEST, 1);
  const std::string file = folder.write(
      "consumer.yaml", "version: 1\nkafka: {bootstrap.servers: \"" + cluster.bootstrap() +
                           "\", group.id: g, group.protocol: consumer}\ntopics: [orders]\n"
                           "handler: {exec: {command: [/bin/true], mode: per_record}}\n");
  ProgramRun run({"run", "-c", file});
  EXPECT_EQ(run.ends(long_enough), 70) << run.err();
  EXPECT_THAT(run.err(), HasSubstr("client.fatal"));
}

TEST_F(OnMock, Exit75_ASecondSignalEndsWithinASecond) {
  cluster.produce("orders", 0, 1);
  ProgramRun run({"run", "-c", exec_config("touch " + folder.file("begun") + "; sleep 60")});
  ASSERT_TRUE(run.until([&] { return std::filesystem::exists(folder.file("begun")); },
                        long_enough))
      << run.err();
  run.signal(SIGTERM);
  ASSERT_TRUE(run.says("app.draining", seconds(5))) << run.err();
  const auto again = ProgramRun::Clock::now();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(seconds(5)), 75) << run.err();
  EXPECT_LT(ProgramRun::Clock::now() - again, seconds(1));
}

TEST_F(OnMock, Exit76_AFencedInstanceDoesNotComeBack) {
  ProgramRun run({"run", "-c", exec_config("exit 0", {}, "  group.instance.id: one\n")});
  ASSERT_TRUE(run.says("owner.acquired", long_enough)) << run.err();
  cluster.fail_next(heartbeat_api, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, 20);
  EXPECT_EQ(run.ends(long_enough), 76) << run.err();
}

TEST(Program, Exit64_AWrongCommandLine) {
  ProgramRun run({"rnu"});
  EXPECT_EQ(run.ends(), 64);
  EXPECT_EQ(run.out(), "");
  EXPECT_THAT(run.err(), HasSubstr("nearest: \"run\""));
}

TEST(Program, Exit69_RequireReadyGivesUpAfter30Seconds) {
  const TestFolder folder;
  ProgramRun run({"run", "-b", "127.0.0.1:1", "-g", "g", "-t", "t", "--exec", "/bin/true",
                  "--require-ready"});
  EXPECT_TRUE(run.says("127.0.0.1:1", seconds(5))) << "says so within 5 s: " << run.err();
  EXPECT_EQ(run.ends(seconds(45)), 69) << run.err();
  EXPECT_GT(run.took(), seconds(25));
}

TEST(Program, Exit78_EveryFaultOfAConfigurationAtOnceWithItsPlace) {
  const TestFolder folder;
  const std::string file = folder.write(
      "bad.yaml",
      "version: 1\nkafka: {bootstrap.servers: \"b:1\", group.id: g, enable.auto.commit: true}\n"
      "topics: [t]\nhandler:\n  exec: {command: [x], proceses: 3}\n");
  ProgramRun run({"run", "-c", file});
  EXPECT_EQ(run.ends(), 78);
  EXPECT_THAT(run.err(), HasSubstr(file + ":2:"));
  EXPECT_THAT(run.err(), HasSubstr(file + ":5:"));
  EXPECT_THAT(run.err(), HasSubstr("did you mean \"processes\"?"));
}

TEST(Program, Exit78_AHandlerOfALaterVersionIsRefused) {
  ProgramRun run({"run", "-b", "b:1", "-g", "g", "-t", "t", "--http", "http://x"});
  EXPECT_EQ(run.ends(), 78);
  EXPECT_THAT(run.err(), HasSubstr("later"));
}

// ---- signals --------------------------------------------------------------------------

TEST_F(OnMock, TermWhileSteadyDrainsCommitsAndExits0) {
  make_table();
  cluster.produce("orders", 0, 10);
  ProgramRun run({"run", "-c", sql_config()});
  ASSERT_TRUE(run.says("owner.acquired", long_enough)) << run.err();
  ASSERT_TRUE(run.until([&] { return rows() == 10; }, seconds(20)));
  const auto asked = ProgramRun::Clock::now();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(long_enough), 0) << run.err();
  EXPECT_LT(ProgramRun::Clock::now() - asked, seconds(5)) << "idle: nothing to wait for";
}

TEST_F(OnMock, R10_TermWhileARecordIsHandledWaitsForItAndCommitsIt) {
  cluster.produce("orders", 0, 1);
  ProgramRun run({"run", "-c",
                  exec_config("touch " + folder.file("begun") + "; sleep 2; touch " +
                              folder.file("ended"))});
  ASSERT_TRUE(run.until([&] { return std::filesystem::exists(folder.file("begun")); },
                        long_enough))
      << run.err();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(seconds(20)), 0) << run.err();
  EXPECT_TRUE(std::filesystem::exists(folder.file("ended")));
  EXPECT_THAT(run.err(), HasSubstr("\"drained\":1"));
}

TEST_F(OnMock, TermWhileJoiningExits0) {
  ProgramRun run({"run", "-c", exec_config("exit 0")});
  ASSERT_TRUE(run.says("group.joining", seconds(10))) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.ends(seconds(10)), 0) << run.err();
}

TEST(Program, TermWhileTheBrokerIsAwayEndsWithinItsBudgets) {
  ProgramRun run({"run", "-b", "127.0.0.1:1", "-g", "g", "-t", "t", "--exec", "/bin/true"});
  ASSERT_TRUE(run.says("\"check\":\"broker\"", seconds(5))) << run.err();
  const auto asked = ProgramRun::Clock::now();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(seconds(30)), 0) << run.err();
  EXPECT_LT(ProgramRun::Clock::now() - asked, seconds(6));
}

TEST_F(OnMock, TermWhileTheStoreIsAwayExits0) {
  const std::string file =
      config("handler: {sql: {statements: [\"select 1\"]}}\nstore: {sqlite: {path: " +
             folder.file("t.db") + "}, create: true}\n");
  make_table();
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(folder.file("t.db").c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  ProgramRun run({"run", "-c", file});
  EXPECT_TRUE(run.says("store.unavailable", seconds(20))) << run.err();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(seconds(20)), 0) << run.err();
  sqlite3_exec(connection, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(connection);
}

TEST_F(OnMock, HupChangesTheLogLevelAndNothingElse) {
  const std::string file = exec_config("exit 0");
  const std::string text = folder.read("tenure.yaml");
  ProgramRun run({"run", "-c", file});
  ASSERT_TRUE(run.says("owner.acquired", long_enough)) << run.err();
  folder.write("tenure.yaml", text + "log: {level: warn}\nconcurrency: 3\n");
  run.signal(SIGHUP);
  ASSERT_TRUE(run.says("config.rejected", seconds(5))) << run.err();
  EXPECT_TRUE(run.says("a restart is needed for concurrency", seconds(1))) << run.err();
  folder.write("tenure.yaml", text + "nonsense: 1\n");
  run.signal(SIGHUP);
  EXPECT_TRUE(run.says("nonsense", seconds(5))) << run.err();
  folder.write("tenure.yaml", text + "log: {level: debug}\n");
  run.signal(SIGHUP);
  EXPECT_TRUE(run.until(
      [&] { return run.err().rfind("config.loaded") > run.err().rfind("config.rejected"); },
      seconds(5)))
      << run.err();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(long_enough), 0) << run.err();
}

TEST_F(OnMock, Usr1WritesTheStateToTheLogAtAnyLevel) {
  ProgramRun run({"run", "-q", "-c", exec_config("exit 0")});
  // Quiet: there is no line to wait for but the state itself.
  ASSERT_TRUE(run.until([&] { return run.blocks(SIGUSR1); }, seconds(10)));
  ASSERT_TRUE(run.until(
      [&] {
        run.signal(SIGUSR1);
        return run.err().find("\"state\":\"active\"") != std::string::npos;
      },
      long_enough))
      << run.err();
  EXPECT_THAT(run.err(), HasSubstr("\"topic\":\"orders\""));
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(long_enough), 0);
}

// ---- what goes where ------------------------------------------------------------------

TEST(Program, HelpAndVersionComeWithin100Milliseconds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "measures the program as it is shipped";
#endif
  for (const auto& line : std::vector<std::vector<std::string>>{
           {"--help"}, {"run", "--help"}, {"version"}, {"--version"}}) {
    milliseconds best{1'000};
    for (int i = 0; i < 5; ++i) {
      ProgramRun run(line);
      EXPECT_EQ(run.ends(), 0);
      EXPECT_NE(run.out(), "");
      EXPECT_EQ(run.err(), "");
      best = std::min(best, run.took());
    }
    EXPECT_LT(best, milliseconds(100)) << line.front();
  }
}

TEST(Program, ASecretOnTheCommandLineIsRefusedAndNeverRepeated) {
  for (const std::string property :
       {"sasl.password=canary1", "ssl.key.password=canary1",
        "sasl.oauthbearer.client.secret=canary1"}) {
    ProgramRun run({"run", "-b", "b:1", "-g", "g", "-t", "t", "--exec", "x", "-v", "-X", property});
    EXPECT_EQ(run.ends(), 78) << property;
    EXPECT_THAT(run.err() + run.out(), Not(HasSubstr("canary1"))) << property;
    EXPECT_THAT(run.err(), HasSubstr(property.substr(0, property.find('='))));
  }
}

TEST_F(OnMock, ASecretFromAFileIsInNoOutput) {
  folder.write("secret", "canary2");
  const std::string file =
      exec_config("exit 0", {}, "  sasl.password: \"${file:" + folder.file("secret") + "}\"\n");
  ProgramRun show({"config", "show", "-c", file, "--origin"});
  EXPECT_EQ(show.ends(), 0) << show.err();
  EXPECT_THAT(show.out(), HasSubstr("sasl.password"));
  ProgramRun run({"run", "-v", "-c", file});
  ASSERT_TRUE(run.says("owner.acquired", long_enough)) << run.err();
  run.signal(SIGUSR1);
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(long_enough), 0);
  EXPECT_THAT(show.out() + show.err() + run.err() + run.out(), Not(HasSubstr("canary2")));
}

TEST_F(OnMock, NoColorWithoutATerminalAndNoneWhenItIsNotWanted) {
  ProgramRun run({"run", "-o", "text", "-c", exec_config("exit 0")}, {{"TERM", "xterm"}});
  ASSERT_TRUE(run.says("group.joining", seconds(10))) << run.err();
  run.signal(SIGTERM);
  EXPECT_EQ(run.ends(seconds(20)), 0);
  EXPECT_THAT(run.err(), Not(HasSubstr("\x1b[")));
}

TEST_F(OnMock, AHistoryIsWrittenToANewFileOnly) {
  make_table();
  cluster.produce("orders", 0, 5);
  const std::string file = sql_config();
  const std::string history = folder.file("run.jsonl");
  ProgramRun run({"run", "-c", file, "--until-end", "--history", history});
  EXPECT_EQ(run.ends(long_enough), 0) << run.err();
  const std::string text = folder.read("run.jsonl");
  EXPECT_THAT(text, ::testing::StartsWith("{\"t\":\"start\",\"history\":1"));
  EXPECT_THAT(text, HasSubstr("\"event\":\"owner.acquired\""));
  EXPECT_THAT(text, HasSubstr("{\"t\":\"end\""));
  ProgramRun again({"run", "-c", file, "--until-end", "--history", history});
  EXPECT_EQ(again.ends(long_enough), 78);
  EXPECT_THAT(again.err(), HasSubstr("run.jsonl"));
}

// ---- the other verbs ------------------------------------------------------------------

TEST_F(OnMock, StoreInitNeedsExecuteAndPlanChangesNothing) {
  const std::string file =
      config("handler: {sql: {statements: [\"select 1\"]}}\nstore: {sqlite: {path: " +
             folder.file("t.db") + "}}\n");
  ProgramRun plan({"store", "plan", "-c", file});
  EXPECT_EQ(plan.ends(), 0);
  EXPECT_THAT(plan.out(), HasSubstr("CREATE TABLE tenure_lane"));
  ProgramRun dry({"store", "init", "-c", file});
  EXPECT_EQ(dry.ends(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder.file("t.db")));
  ProgramRun status({"store", "status", "-c", file});
  EXPECT_NE(status.ends(), 0);
  ProgramRun init({"store", "init", "-c", file, "--execute"});
  EXPECT_EQ(init.ends(), 0) << init.err();
  ProgramRun after({"store", "status", "-c", file});
  EXPECT_EQ(after.ends(), 0) << after.err();
}

TEST_F(OnMock, StoreStatusShowsADomainForEachPartitionThatWasOwned) {
  make_table();
  cluster.produce("orders", 0, 5);
  const std::string file = sql_config();
  ProgramRun run({"run", "-c", file, "--until-end"});
  ASSERT_EQ(run.ends(long_enough), 0) << run.err();
  ProgramRun status({"store", "status", "-c", file, "-o", "json"});
  EXPECT_EQ(status.ends(), 0);
  EXPECT_EQ(std::count(status.out().begin(), status.out().end(), '\n'), 2) << status.out();
  EXPECT_THAT(status.out(), HasSubstr("\"scope\":\"g\""));
}

TEST_F(OnMock, CheckPassesOnAClusterWithItsTopicAndStore) {
  make_table();
  const std::string file = sql_config();
  ProgramRun init({"store", "init", "-c", file, "--execute"});
  ASSERT_EQ(init.ends(), 0) << init.err();
  ProgramRun check({"check", "-c", file});
  EXPECT_EQ(check.ends(), 0) << check.out();
  EXPECT_THAT(check.out(), HasSubstr("broker.reachable"));
  EXPECT_THAT(check.out(), HasSubstr("topic.orders"));
  ProgramRun json({"check", "-c", file, "-o", "json"});
  EXPECT_EQ(json.ends(), 0);
  EXPECT_THAT(json.out(), HasSubstr("\"consequence\":"));
}

TEST_F(OnMock, CheckOfATopicThatIsNotThereIs1AndOfNoBrokerIs69) {
  ProgramRun topic({"check", "-c", exec_config("exit 0"), "-t", "gone"});
  EXPECT_EQ(topic.ends(), 1) << topic.out();
  EXPECT_THAT(topic.out(), HasSubstr("topic.gone"));
  ProgramRun away({"check", "-c", exec_config("exit 0"), "-b", "127.0.0.1:1"});
  EXPECT_EQ(away.ends(), 69) << away.out();
  ProgramRun bad({"check", "-b", "b:1"});
  EXPECT_EQ(bad.ends(), 78);
  EXPECT_THAT(bad.out(), HasSubstr("fix"));
}

TEST(Program, ConfigSchemaIsJsonOnStdout) {
  ProgramRun run({"config", "schema"});
  EXPECT_EQ(run.ends(), 0);
  EXPECT_THAT(run.out(), ::testing::StartsWith("{"));
  EXPECT_THAT(run.out(), HasSubstr("json-schema.org"));
}

// ---- a C++ program around app() -------------------------------------------------------

TEST_F(OnMock, AProgramAroundAppTakesConfigurationFlagsAndSignals) {
  make_table();
  cluster.produce("orders", 0, 12);
  const std::string file = folder.write(
      "app.yaml", "version: 1\nkafka: {bootstrap.servers: \"" + cluster.bootstrap() +
                      "\", session.timeout.ms: 3600, heartbeat.interval.ms: 500}\n"
                      "store: {sqlite: {path: " +
                      folder.file("t.db") + "}, create: true}\n");
  ProgramRun run({"-c", file, "-g", "g", "--until-end"}, {}, TENURE_APP_PROGRAM);
  EXPECT_EQ(run.ends(long_enough), 0) << run.err();
  EXPECT_EQ(rows(), 12);
  ProgramRun help({"--help"}, {}, TENURE_APP_PROGRAM);
  EXPECT_EQ(help.ends(), 0);
  EXPECT_THAT(help.out(), HasSubstr("--until-end"));
  ProgramRun wrong({"--utnil-end"}, {}, TENURE_APP_PROGRAM);
  EXPECT_EQ(wrong.ends(), 64);
  EXPECT_THAT(wrong.err(), HasSubstr("did you mean \"--until-end\""));
  ProgramRun handler({"-c", folder.write("h.yaml", folder.read("app.yaml") +
                                                       "handler: {exec: {command: [x]}}\n"),
                      "-g", "g"},
                     {}, TENURE_APP_PROGRAM);
  EXPECT_EQ(handler.ends(), 78) << "its handler is in the code";
}

}  // namespace
}  // namespace tenure::e2e
