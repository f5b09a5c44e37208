#include "cli/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tenure/sqlite/store.hpp"

namespace tenure::cli {
namespace {

using app::Config;
using app::ExitCode;
using ::testing::HasSubstr;

class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tenure-check-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Config config(const std::string& topics = "[orders]") {
    const std::string file = folder_ + "/tenure.yaml";
    std::ofstream(file) << "version: 1\nkafka: {bootstrap.servers: \"b:1\", group.id: g}\n"
                        << "topics: " << topics << "\nstore: {sqlite: {path: " << folder_
                        << "/t.db}}\n";
    app::ConfigSources sources;
    sources.file = file;
    sources.handlers = app::HandlerRule::at_most_one;
    app::LoadedConfig loaded = load_config(sources);
    for (const app::Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
    return std::move(*loaded.config);
  }
  static Finding find(const std::vector<Finding>& findings, const std::string& id) {
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& finding) { return finding.id == id; });
    if (found != findings.end()) return *found;
    ADD_FAILURE() << "no finding " << id;
    return {};
  }
  void init() {
    sqlite::Options options;
    options.path = folder_ + "/t.db";
    options.create = true;
    ASSERT_TRUE(sqlite::init(options));
  }

  std::string folder_;
};

TEST_F(CheckTest, AStoreWithoutItsFileFailsAndSaysHowToMakeIt) {
  const Finding finding = find(check_store(config()), "store.tables");
  EXPECT_NE(finding.health, Health::ok);
  EXPECT_FALSE(finding.fix.empty());
  EXPECT_NE(exit_code_of({finding}), ExitCode::ok);
}

TEST_F(CheckTest, AStoreWithItsTablesOnALocalDiskIsOk) {
  init();
  const std::vector<Finding> findings = check_store(config());
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.health, Health::ok) << finding.id << ": " << finding.observed;
  }
  EXPECT_EQ(findings.size(), 3U);
  EXPECT_EQ(exit_code_of(findings), ExitCode::ok);
}

TEST_F(CheckTest, TablesOfAnotherVersionFail) {
  init();
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/t.db").c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, "UPDATE tenure_schema SET version = 99", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  sqlite3_close(connection);
  const Finding finding = find(check_store(config()), "store.tables");
  EXPECT_EQ(finding.health, Health::fail);
  EXPECT_THAT(finding.observed, HasSubstr("99"));
}

TEST_F(CheckTest, ATopicThatIsNotThereFailsAndOneThatIsDoesNot) {
  app::BrokerFacts facts;
  facts.brokers = 1;
  facts.cluster = "c";
  facts.topics = {{"orders", 8}};
  const std::vector<Finding> findings = check_brokers(config("[orders, gone]"), facts);
  EXPECT_EQ(find(findings, "topic.orders").health, Health::ok);
  EXPECT_EQ(find(findings, "topic.orders").observed, "8 partitions");
  EXPECT_EQ(find(findings, "topic.gone").health, Health::fail);
  EXPECT_EQ(exit_code_of(findings), ExitCode::failed);
}

TEST_F(CheckTest, ATopicExpressionThatMatchesNothingIsAWarning) {
  app::BrokerFacts facts;
  facts.cluster = "c";
  facts.topics = {{"orders", 8}};
  const std::vector<Finding> findings = check_brokers(config("['^ord', '^x']"), facts);
  EXPECT_EQ(find(findings, "topic.^ord").health, Health::ok);
  EXPECT_EQ(find(findings, "topic.^x").health, Health::warn);
  EXPECT_EQ(exit_code_of(findings), ExitCode::ok);
}

TEST_F(CheckTest, AnUnreachableBrokerIs69AndRefusedCredentialsAre1) {
  const Result<app::BrokerFacts> away = fail(Code::unavailable, "connection refused");
  EXPECT_EQ(exit_code_of(check_brokers(config(), away)), ExitCode::unreachable);
  const Result<app::BrokerFacts> refused = fail(Code::refused, "bad password");
  EXPECT_EQ(exit_code_of(check_brokers(config(), refused)), ExitCode::failed);
}

TEST_F(CheckTest, R7_BudgetsThatFitAreOkAndSayHowLongAShutdownTakes) {
  const std::vector<Finding> findings = check_budgets(config());
  EXPECT_EQ(exit_code_of(findings), ExitCode::ok);
  EXPECT_EQ(find(findings, "budget.drain").observed, "5000 ms effective");
  EXPECT_EQ(find(findings, "budget.shutdown").observed,
            "25000 ms at most from SIGTERM to the end");
}

TEST_F(CheckTest, R8_ACommitIntervalLongerThanHalfTheSessionIsAWarning) {
  Config slow = config();
  slow.commit.interval = slow.kafka.session_timeout;
  EXPECT_EQ(find(check_budgets(slow), "budget.session").health, Health::warn);
}

TEST_F(CheckTest, EveryFindingHasWhatAPersonNeeds) {
  init();
  app::BrokerFacts facts;
  std::vector<Finding> all = check_client(config());
  for (const auto& some : {check_brokers(config("[gone]"), facts), check_store(config()),
                           check_budgets(config())}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  for (const Finding& finding : all) {
    EXPECT_FALSE(finding.id.empty());
    EXPECT_FALSE(finding.expected.empty()) << finding.id;
    EXPECT_FALSE(finding.observed.empty()) << finding.id;
    EXPECT_FALSE(finding.evidence.empty()) << finding.id;
    EXPECT_FALSE(finding.consequence.empty()) << finding.id;
    if (finding.health == Health::ok) continue;
    EXPECT_FALSE(finding.fix.empty()) << finding.id;
  }
}

}  // namespace
}  // namespace tenure::cli
