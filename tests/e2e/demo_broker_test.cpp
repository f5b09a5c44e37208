// `tenure demo --brokers` on a real Kafka: the same scenarios, and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "app/app_broker.hpp"
#include "e2e/cli/program_run.hpp"

namespace tenure::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DemoOnKafka : public ::testing::Test {
 protected:
  void SetUp() override {
    ProgramRun start({"start", "1", "--dir", folder_.file("kafka"), "--owner",
                      std::to_string(::getpid()), "--fast-groups", "--session-ms", "3000",
                      "--heartbeat-ms", "500"},
                     {}, std::string(TENURE_TOOLS_DIR) + "/kafka");
    ASSERT_EQ(start.ends(seconds(120)), 0) << start.err();
    brokers_ = start.out().substr(0, start.out().find('\n'));
    ASSERT_FALSE(brokers_.empty()) << start.err();
  }
  void TearDown() override {
    ProgramRun stop({"stop", "--dir", folder_.file("kafka")}, {},
                    std::string(TENURE_TOOLS_DIR) + "/kafka");
    EXPECT_EQ(stop.ends(seconds(60)), 0) << stop.err();
  }
  std::string demo(std::vector<std::string> flags, int expected) {
    flags.insert(flags.begin(), {"demo", "-b", brokers_});
    ProgramRun run(flags);
    EXPECT_EQ(run.ends(seconds(120)), expected) << run.out() << run.err();
    return run.out();
  }

  TestFolder folder_;
  std::string brokers_;
};

TEST_F(DemoOnKafka, RunsAsOnTheMockAndRemovesItsTopic) {
  EXPECT_THAT(demo({"--seed", "1"}, 0), HasSubstr("A drains"));
  EXPECT_THAT(demo({"--seed", "2", "--protocol", "consumer"}, 0), HasSubstr("REFUSED"));
  EXPECT_THAT(demo({"--scenario", "kill", "--seed", "3", "--protocol", "eager"}, 0),
              HasSubstr("0 lost  0 duplicate"));
  EXPECT_THAT(demo({"--scenario", "zombie", "--seed", "4", "--plain"}, 1),
              HasSubstr("DUPLICATE EFFECT x"));
  const auto facts =
      app::ask_brokers({{"bootstrap.servers", brokers_}}, true, milliseconds(10'000));
  ASSERT_TRUE(facts) << facts.error().message;
  for (const auto& [topic, partitions] : facts->topics) {
    EXPECT_THAT(topic, Not(StartsWith("tenure_demo"))) << "left behind";
  }
}

TEST_F(DemoOnKafka, CheckAndRequireReadyPassOnIt) {
  ProgramRun make({"topic", "orders", "3", "--dir", folder_.file("kafka")}, {},
                  std::string(TENURE_TOOLS_DIR) + "/kafka");
  ASSERT_EQ(make.ends(seconds(30)), 0) << make.err();
  ProgramRun check({"check", "-b", brokers_, "-g", "g", "-t", "orders", "-o", "json"});
  EXPECT_EQ(check.ends(), 0) << check.out() << check.err();
  EXPECT_THAT(check.out(), HasSubstr("\"observed\":\"3 partitions\""));
  ProgramRun run({"run", "-b", brokers_, "-g", "g", "-t", "orders", "--exec", "/bin/cat",
                  "--require-ready", "--until-end"});
  EXPECT_EQ(run.ends(seconds(60)), 0) << run.err();
}

}  // namespace
}  // namespace tenure::e2e
