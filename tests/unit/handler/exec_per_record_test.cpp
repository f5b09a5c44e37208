// The exec protocol in mode `per_record`.
#include "handler/exec_per_record.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "unit/handler/exec_rig.hpp"

namespace tenure::handler::test {
namespace {

/// A shell script that is started for each record.
ExecOptions script(std::string text) {
  ExecOptions options;
  options.command = {"/bin/sh", "-c", std::move(text)};
  options.mode = ExecMode::per_record;
  options.processes = 2;
  options.restart_min = 10ms;
  return options;
}

struct Exit {
  const char* name;
  std::string script;
  OutcomeKind on_error;
  OutcomeKind kind;
  std::string failure_class;
  std::string reason;
};
void PrintTo(const Exit& exit, std::ostream* out) {
  *out << exit.name;
}

class ExecExits : public testing::TestWithParam<Exit> {};

TEST_P(ExecExits, MeanWhatTheTableSays) {
  ExecOptions options = script(GetParam().script);
  options.on_error = GetParam().on_error;
  ExecRig rig(options);
  rig.start();
  const Outcome outcome = rig.run("value");
  EXPECT_EQ(outcome.kind(), GetParam().kind);
  EXPECT_EQ(outcome.failure_class(), GetParam().failure_class);
  EXPECT_EQ(outcome.reason(), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Exec, ExecExits,
    testing::Values(Exit{"done", "exit 0", OutcomeKind::retry, OutcomeKind::done, "", ""},
                    Exit{"done_with_words", "echo fine >&2", OutcomeKind::retry, OutcomeKind::done,
                         "", ""},
                    Exit{"reject", "echo no account >&2; exit 65", OutcomeKind::retry,
                         OutcomeKind::reject, "", "no account"},
                    Exit{"retry", "echo later >&2; exit 75", OutcomeKind::park, OutcomeKind::retry,
                         "", "later"},
                    Exit{"stop", "echo wrong config >&2; exit 78", OutcomeKind::retry,
                         OutcomeKind::stop, "", "wrong config"},
                    Exit{"other_is_retry", "exit 1", OutcomeKind::retry, OutcomeKind::retry,
                         "handler_exit", "exit code 1"},
                    Exit{"other_as_configured_reject", "echo x >&2; exit 2", OutcomeKind::reject,
                         OutcomeKind::reject, "handler_exit", "x"},
                    Exit{"other_as_configured_park", "exit 255", OutcomeKind::park,
                         OutcomeKind::park, "handler_exit", "exit code 255"},
                    Exit{"other_as_configured_stop", "exit 127", OutcomeKind::stop,
                         OutcomeKind::stop, "handler_exit", "exit code 127"},
                    Exit{"a_signal_is_retry", "kill -SEGV $$", OutcomeKind::stop,
                         OutcomeKind::retry, "handler_exit", "signal 11 (SIGSEGV)"},
                    Exit{"reason_without_line_ends", "printf 'a\\nb\\r\\n\\n' >&2; exit 65",
                         OutcomeKind::retry, OutcomeKind::reject, "", "a\nb"},
                    Exit{"reason_is_cut", "printf '%600s' x >&2; exit 65", OutcomeKind::retry,
                         OutcomeKind::reject, "", std::string(512, ' ')},
                    Exit{"reason_is_text", "printf '\\377z' >&2; exit 65", OutcomeKind::retry,
                         OutcomeKind::reject, "", "\uFFFDz"}),
    [](const auto& instance) { return instance.param.name; });

TEST(ExecPerRecord, TheValueComesOnStdinByteForByte) {
  Folder folder;
  ExecRig rig(script("cat > '" + folder.at("") + "'/$TENURE_RECORD_OFFSET"));
  rig.start();
  std::string binary(1U << 20, '\0');
  for (std::size_t i = 0; i < binary.size(); ++i) {
    binary[i] = static_cast<char>((i * 2654435761U) >> 13);
  }
  const int big = rig.submit(binary);
  const int empty = rig.submit("");
  const int null = rig.submit(Payload{"k", std::nullopt, {{"h", "\xFF"}}});
  for (const int index : {big, empty, null}) {
    EXPECT_EQ(rig.result(index).kind(), OutcomeKind::done);
  }
  EXPECT_TRUE(folder.read("100") == binary);
  EXPECT_EQ(folder.read("101"), "");
  EXPECT_EQ(folder.read("102"), "");
}

std::map<std::string, std::string> environment(ExecRig& rig, Payload payload) {
  rig.start();
  EXPECT_EQ(rig.result(rig.submit(std::move(payload), 3)).kind(), OutcomeKind::done);
  std::map<std::string, std::string> lines;
  std::istringstream text(rig.log());
  for (std::string line; std::getline(text, line);) {
    const std::size_t name = line.find("TENURE_RECORD_");
    const std::size_t equal = line.find('=');
    if (name != std::string::npos)
      lines[line.substr(name + 14, equal - name - 14)] = line.substr(equal + 1);
  }
  return lines;
}

TEST(ExecPerRecord, TheEnvironmentNamesTheRecord) {
  ::setenv("TENURE_RECORD_STALE", "from an outer handler", 1);
  ExecRig rig(script("env"), Fence{Token(12), Uuid{{0xAB}}});
  ::unsetenv("TENURE_RECORD_STALE");
  const std::map<std::string, std::string> expected = {
      {"SCOPE", "billing-scope"},
      {"TOPIC", "orders"},
      {"TOPIC_ID", "12340000-0000-0000-0000-000000000000"},
      {"PARTITION", "5"},
      {"OFFSET", "100"},
      {"KEY", "a%20b%2F%25%00%FF%0A%3D~-._Z9"},
      {"IDENTITY", "test-cluster/12340000-0000-0000-0000-000000000000/5/100"},
      {"ATTEMPT", "3"},
      {"EPOCH", "41"},
      {"FENCE_TOKEN", "12"},
      {"FENCE_OWNER", "ab000000-0000-0000-0000-000000000000"},
      {"TOMBSTONE", "0"},
  };
  EXPECT_EQ(environment(rig, Payload{std::string("a b/%\0\xFF\n=~-._Z9", 15), "v", {}}), expected);
}

TEST(ExecPerRecord, WhatIsAbsentIsNotInTheEnvironment) {
  ExecRig rig(script("env"));
  const auto lines = environment(rig, Payload{std::nullopt, std::nullopt, {}});
  EXPECT_FALSE(lines.contains("KEY"));
  EXPECT_FALSE(lines.contains("FENCE_TOKEN"));
  EXPECT_FALSE(lines.contains("FENCE_OWNER"));
  EXPECT_EQ(lines.at("TOMBSTONE"), "1");
}

TEST(ExecPerRecord, AnEmptyKeyIsNotANullKey) {
  ExecRig rig(script("env"));
  EXPECT_EQ(environment(rig, Payload{"", "", {}}).at("KEY"), "");
}

TEST(ExecPerRecord, AKeyThatNoEnvironmentHoldsIsRejected) {
  ExecRig rig(script("exit 0"));
  rig.start();
  const int index = rig.submit(Payload{std::string(1U << 20, 'k'), "v", {}});
  EXPECT_EQ(rig.result(index).kind(), OutcomeKind::reject);
  EXPECT_EQ(rig.result(index).failure_class(), "data");
  EXPECT_NE(rig.result(index).reason().find("key of 1048576 bytes"), std::string::npos);
  EXPECT_EQ(rig.run("next").kind(), OutcomeKind::done);
}

TEST(ExecPerRecord, AHandlerNeedNotReadItsInput) {
  ExecRig rig(script("exec <&-; exit 0"));
  rig.start();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(rig.run(std::string(1U << 20, 'x')).kind(), OutcomeKind::done);
  }
}

TEST(ExecPerRecord, MuchOutputDoesNotBlockIt) {
  ExecRig rig(script("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero; echo end >&2"));
  rig.start();
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
  EXPECT_TRUE(rig.wait_for_log("end"));
}

TEST(ExecPerRecord, ABackgroundProcessEndsWithItsLeader) {
  Folder folder;
  ExecRig rig(script("sleep 600 & echo $! > '" + folder.at("pid") + "'; exit 0"));
  rig.start();
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
  const pid_t background = std::stoi(folder.read("pid"));
  EXPECT_TRUE(wait_until([&] { return is_gone(background); }));
}

TEST(ExecPerRecord, ATimeoutTermsThenKills) {
  for (const bool ignores : {false, true}) {
    ExecOptions options =
        script(ignores ? "trap '' TERM; while :; do sleep 600; done" : "exec sleep 600");
    options.timeout = 100ms;
    options.cancel_grace = 200ms;
    ExecRig rig(options);
    rig.start();
    const Outcome outcome = rig.run("x");
    EXPECT_EQ(outcome.kind(), OutcomeKind::retry);
    EXPECT_EQ(outcome.failure_class(), "timeout");
    const HandlerEvent exited = rig.events(EventName::handler_exited, 1)[0];
    EXPECT_EQ(exited.cause, "timeout");
    EXPECT_NE(exited.error.find(ignores ? "SIGKILL" : "SIGTERM"), std::string::npos)
        << exited.error;
  }
}

TEST(ExecPerRecord, AnEndInTheGraceStillCounts) {
  ExecOptions options = script("trap 'exit 0' TERM; while :; do sleep 0.01; done");
  options.timeout = 300ms;
  options.cancel_grace = 20000ms;
  ExecRig rig(options);
  rig.start();
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
}

TEST(ExecPerRecord, AnExitOfTheTrapAfterATimeoutIsATimeout) {
  ExecOptions options = script("trap 'exit 143' TERM; while :; do sleep 0.01; done");
  options.timeout = 300ms;
  options.cancel_grace = 20000ms;
  options.on_error = OutcomeKind::stop;
  ExecRig rig(options);
  rig.start();
  EXPECT_EQ(rig.run("x").failure_class(), "timeout");
}

TEST(ExecPerRecord, NoMoreProcessesThanAllowedRunAtOnce) {
  Folder folder;
  ExecRig rig(script("mkdir '" + folder.at("run") + "'/$$; n=$(ls '" + folder.at("run") +
                     "' | wc -l); sleep 0.05; rmdir '" + folder.at("run") +
                     "'/$$; [ $n -le 2 ] || exit 65"));
  std::filesystem::create_directory(folder.at("run"));
  rig.start();
  for (int i = 0; i < 12; ++i) rig.submit("x");
  for (int i = 0; i < 12; ++i) EXPECT_EQ(rig.result(i).kind(), OutcomeKind::done);
}

TEST(ExecPerRecord, AMissingProgramCostsNoAttempt) {
  Folder folder;
  ExecOptions options = script("");
  options.command = {folder.at("charge")};
  ExecRig rig(options);
  rig.start();
  const int waiting = rig.submit("x");
  const HandlerEvent event = rig.events(EventName::handler_exited, 3)[2];
  EXPECT_EQ(event.cause, "start");
  EXPECT_NE(event.error.find("errno 2"), std::string::npos) << event.error;
  EXPECT_NE(event.error.find("next try in 40 ms"), std::string::npos) << event.error;
  EXPECT_FALSE(rig.outcomes.answered(waiting));
  folder.write("charge", "#!/bin/sh\nexit 65\n", true);
  EXPECT_EQ(rig.result(waiting).kind(), OutcomeKind::reject);
}

TEST(ExecPerRecord, AStopDoesNotEndARunningProcess) {
  Folder folder;
  ExecRig rig(
      script("echo started >&2; while [ ! -e '" + folder.at("go") + "' ]; do sleep 0.01; done"));
  rig.start();
  const int running = rig.submit("x");
  ASSERT_TRUE(rig.wait_for_log("started"));
  rig.holder.fire_stop();
  const int refused = rig.submit("y");
  EXPECT_EQ(rig.result(refused).failure_class(), "no_outcome");
  EXPECT_FALSE(rig.outcomes.answered(running));
  folder.write("go", "");
  EXPECT_EQ(rig.result(running).kind(), OutcomeKind::done);
}

TEST(ExecPerRecord, CloseWaitsThenTermsThenKills) {
  ExecOptions options = script("trap '' TERM; echo started >&2; while :; do sleep 600; done");
  options.close_term = 50ms;
  options.close_kill = 100ms;
  ExecRig rig(options);
  rig.start();
  const int running = rig.submit("x");
  ASSERT_TRUE(rig.wait_for_log("started"));
  rig.exec.close(20s);
  EXPECT_EQ(rig.result(running).failure_class(), "handler_exit");
  EXPECT_EQ(rig.events(EventName::handler_exited, 1)[0].cause, "shutdown");
}

TEST(ExecPerRecord, CloseKillsWhenItsLimitEnds) {
  ExecRig rig(script("trap '' TERM; echo started >&2; while :; do sleep 600; done"));
  rig.start();
  const int running = rig.submit("x");
  ASSERT_TRUE(rig.wait_for_log("started"));
  rig.exec.close(0ms);
  EXPECT_EQ(rig.result(running).failure_class(), "handler_exit");
}

TEST(ExecPerRecord, AProgramStartsWithoutOurDescriptors) {
  int leaked[2];
  ASSERT_EQ(::pipe(leaked), 0);  // without close-on-exec, on purpose
  ExecOptions options = script("");
  options.command = {"/bin/ls", "-m", "/proc/self/fd"};
  ExecRig rig(options);
  rig.start();
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
  ::close(leaked[0]);
  ::close(leaked[1]);
  // 3 is the listing's own.
  EXPECT_NE(rig.log().find("] 0, 1, 2, 3\n"), std::string::npos) << rig.log();
}

TEST(ExecPerRecord, AProgramStartsWithDefaultSignalsInItsOwnGroup) {
  // No shell: some clear what they inherit.
  ExecOptions options = script("");
  options.command = {"/bin/grep", "-E", "Sig(Blk|Ign)|NSpgid|^Pid", "/proc/self/status"};
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  ExecRig rig(options);
  rig.start();
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
  ::signal(SIGUSR1, before);
  const std::string log = rig.log();
  EXPECT_NE(log.find("SigBlk:\t0000000000000000"), std::string::npos) << log;
  // 32 and 33 are the C library's own: no program can set them, so whoever started the tests
  // decides on them.
  constexpr std::uint64_t of_the_library = 3ull << 31;
  const std::string ignored = log.substr(log.find("SigIgn:\t") + 8, 16);
  EXPECT_EQ(std::stoull(ignored, nullptr, 16) & ~of_the_library, 0u) << log;
  const auto number = [&](const std::string& key) {
    return std::stoi(log.substr(log.find(key) + key.size()));
  };
  EXPECT_EQ(number("NSpgid:\t"), number("] Pid:\t")) << log;
}

}  // namespace
}  // namespace tenure::handler::test
