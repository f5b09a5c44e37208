// Every scenario of `tenure demo` on the mock cluster, with real processes.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/cli/program_run.hpp"

namespace tenure::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds longest{110};  // alone on a machine 60, here others run beside it

/// Processes whose parent is `pid`.
std::vector<int> children_of(int pid) {
  std::vector<int> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    // "pid (name) state ppid ..."
    if (std::atoi(text.c_str() + end + 4) == pid) out.push_back(std::stoi(name));
  }
  return out;
}

bool alive(int pid) { return ::kill(pid, 0) == 0; }

std::string demo(const std::vector<std::string>& flags, int expected) {
  std::vector<std::string> arguments = {"demo"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  ProgramRun run(arguments);
  EXPECT_TRUE(run.says("demo: mock broker 127.0.0.1:", milliseconds(5'000)));
  EXPECT_EQ(run.ends(longest), expected) << run.out() << run.err();
  return run.out();
}

void passes(const std::vector<std::string>& flags) {
  const std::string out = demo(flags, 0);
  EXPECT_THAT(out, HasSubstr("  PASS  "));
  EXPECT_THAT(out, HasSubstr("  0 lost  0 duplicate  "));
  EXPECT_THAT(out, HasSubstr("key order kept"));
}

void fails(const std::vector<std::string>& flags) {
  const std::string out = demo(flags, 1);
  EXPECT_THAT(out, HasSubstr("  FAIL  "));
  EXPECT_THAT(out, HasSubstr("  DUPLICATE EFFECT x"));
}

TEST(Demo, TourShowsADrainAndARefusedEffect) {
  const std::string out = demo({"--seed", "11"}, 0);
  EXPECT_THAT(out, HasSubstr("A drains"));
  EXPECT_THAT(out, HasSubstr("REFUSED, token 1 superseded by 2"));
}
TEST(Demo, TourPlainIsRed) { fails({"--seed", "11", "--plain"}); }
TEST(Demo, ZombieIsRefusedByTheDatabase) { passes({"--scenario", "zombie", "--seed", "12"}); }
TEST(Demo, ZombiePlainIsRed) { fails({"--scenario", "zombie", "--seed", "12", "--plain"}); }
TEST(Demo, ZombieUnderTheConsumerProtocol) {
  passes({"--scenario", "zombie", "--seed", "13", "--protocol", "consumer"});
}
TEST(Demo, ZombieUnderTheEagerProtocol) {
  passes({"--scenario", "zombie", "--seed", "14", "--protocol", "eager"});
}
TEST(Demo, KillLosesAndRepeatsNothing) { passes({"--scenario", "kill", "--seed", "15"}); }
TEST(Demo, KillPlainIsRed) { fails({"--scenario", "kill", "--seed", "15", "--plain"}); }
TEST(Demo, ReclaimedPartitionRefusesItsFormerGrant) {
  passes({"--scenario", "reclaim", "--seed", "16"});
}
TEST(Demo, ReclaimPlainIsRed) { fails({"--scenario", "reclaim", "--seed", "16", "--plain"}); }
TEST(Demo, SlowKeyHoldsNobodyElse) { passes({"--scenario", "slow-key", "--seed", "17"}); }
TEST(Demo, StoreDownIsNoticedAndRecoveredFrom) {
  const std::string out = demo({"--scenario", "store-down", "--seed", "18"}, 0);
  EXPECT_THAT(out, HasSubstr("store.unavailable"));
  EXPECT_THAT(out, HasSubstr("store.recovered"));
}
TEST(Demo, ThreeMembersShareSixteenPartitions) {
  passes({"--scenario", "kill", "--seed", "19", "--members", "3", "--partitions", "16"});
}

TEST(Demo, AnInterruptedRunIsInconclusiveAndLeavesNoProcess) {
  ProgramRun run({"demo", "--scenario", "zombie", "--seed", "20"});
  ASSERT_TRUE(run.says("A owns", milliseconds(30'000))) << run.out();
  const std::vector<int> members = children_of(run.pid());
  EXPECT_EQ(members.size(), 2U);
  run.signal(SIGINT);
  EXPECT_EQ(run.ends(milliseconds(10'000)), 2);
  EXPECT_THAT(run.out(), HasSubstr("INCONCLUSIVE"));
  for (const int member : members) EXPECT_FALSE(alive(member));
}

TEST(Demo, AKilledParentTakesItsMembersWithIt) {
  const TestFolder folder;  // a killed process removes nothing
  ProgramRun run({"demo", "--scenario", "zombie", "--seed", "21", "--keep", folder.file("kept")});
  ASSERT_TRUE(run.says("frozen ", milliseconds(30'000))) << run.out();
  const std::vector<int> members = children_of(run.pid());
  EXPECT_EQ(members.size(), 2U);
  run.signal(SIGKILL);
  EXPECT_EQ(run.ends(milliseconds(5'000)), 128 + SIGKILL);
  // Whoever collects orphans needs a moment.
  const auto deadline = ProgramRun::Clock::now() + seconds(10);
  for (const int member : members) {
    const std::string stat = "/proc/" + std::to_string(member) + "/stat";
    const auto gone = [&] {
      std::ifstream in(stat);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      const std::size_t end = text.rfind(')');
      return end == std::string::npos || text[end + 2] == 'Z' || text[end + 2] == 'X';
    };
    while (!gone() && ProgramRun::Clock::now() < deadline) {
    }
    EXPECT_TRUE(gone()) << "a member, the frozen one too, dies with its parent";
  }
}

TEST(Demo, ItsFirstLineComesWithinASecond) {
  ProgramRun run({"demo", "--seed", "22"});
  const auto began = ProgramRun::Clock::now();
  ASSERT_TRUE(run.says("demo: mock broker", milliseconds(5'000)));
  EXPECT_LT(ProgramRun::Clock::now() - began, seconds(1));
  run.signal(SIGINT);
  EXPECT_EQ(run.ends(seconds(10)), 2);
}

TEST(Demo, KeepsDatabaseAndLogsOnlyWhereItIsTold) {
  const TestFolder folder;
  const std::string keep = folder.file("kept");
  ProgramRun run({"demo", "--scenario", "kill", "--seed", "23", "--keep", keep});
  EXPECT_EQ(run.ends(longest), 0) << run.out();
  EXPECT_TRUE(std::filesystem::exists(keep + "/demo.db"));
  EXPECT_TRUE(std::filesystem::exists(keep + "/A.log"));
  ProgramRun again({"demo", "--keep", keep});
  EXPECT_EQ(again.ends(), 64) << "a folder that is not empty is somebody's";
}

TEST(Demo, RefusesWhatItCannotShow) {
  ProgramRun plain({"demo", "--scenario", "slow-key", "--plain"});
  EXPECT_EQ(plain.ends(), 64);
  EXPECT_THAT(plain.err(), HasSubstr("tour, zombie, kill, reclaim"));
  ProgramRun members({"demo", "--members", "99"});
  EXPECT_EQ(members.ends(), 64);
  EXPECT_THAT(members.err(), HasSubstr("2..8"));
  ProgramRun scenario({"demo", "--scenario", "zombi"});
  EXPECT_EQ(scenario.ends(), 64);
  EXPECT_THAT(scenario.err(), HasSubstr("did you mean \"zombie\""));
}

}  // namespace
}  // namespace tenure::e2e
