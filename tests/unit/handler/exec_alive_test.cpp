// The exec protocol in mode `alive`, spoken with programs in another language.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "unit/handler/exec_rig.hpp"

namespace tenure::handler::test {
namespace {

using nlohmann::json;

/// The value that makes the puppet write one line.
std::string says(const std::string& line) {
  return json::array({{"line", line}}).dump();
}
/// An outcome line of the record itself with these further members.
std::string answers(const std::string& members) {
  return says(R"({"type":"outcome","id":"$ID",)" + members + "}");
}

struct Answer {
  const char* name;
  std::string value;
  OutcomeKind kind;
  std::string reason = "";
  std::string failure_class = "";
  std::optional<std::chrono::milliseconds> after = {};
};
void PrintTo(const Answer& answer, std::ostream* out) {
  *out << answer.name;
}

class ExecAnswers : public testing::TestWithParam<Answer> {};

TEST_P(ExecAnswers, MeanWhatTheProtocolSays) {
  ExecRig rig(puppet());
  rig.start();
  const Outcome outcome = rig.run(GetParam().value);
  EXPECT_EQ(outcome.kind(), GetParam().kind);
  EXPECT_EQ(outcome.reason(), GetParam().reason);
  EXPECT_EQ(outcome.failure_class(), GetParam().failure_class);
  EXPECT_EQ(outcome.after(), GetParam().after);
  // The process is still the same and still of use.
  EXPECT_EQ(rig.run(answers(R"("outcome":"done")")).kind(), OutcomeKind::done);
  EXPECT_EQ(rig.events_so_far(EventName::handler_started).size(), 1U);
  EXPECT_TRUE(rig.events_so_far(EventName::handler_exited).empty());
}

const std::string long_reason = [] {
  std::string text(511, 'r');
  return text + "\u20ac" + text;
}();

INSTANTIATE_TEST_SUITE_P(
    Exec, ExecAnswers,
    testing::Values(
        Answer{"done", answers(R"("outcome":"done")"), OutcomeKind::done},
        Answer{"retry", answers(R"("outcome":"retry")"), OutcomeKind::retry},
        Answer{"retry_after", answers(R"("outcome":"retry","after_ms":5000)"), OutcomeKind::retry,
               "", "", 5000ms},
        Answer{"retry_after_zero", answers(R"("outcome":"retry","after_ms":0)"), OutcomeKind::retry,
               "", "", 0ms},
        Answer{"retry_after_is_capped",
               answers(R"("outcome":"retry","after_ms":9000000000000000000)"), OutcomeKind::retry,
               "", "", 24h},
        Answer{"reject",
               answers(R"("outcome":"reject","reason":"no account","class":"no_account")"),
               OutcomeKind::reject, "no account", "no_account"},
        Answer{"park", answers(R"("outcome":"park","reason":"ask Ann")"), OutcomeKind::park,
               "ask Ann"},
        Answer{"stop", answers(R"("outcome":"stop","reason":"schema gone")"), OutcomeKind::stop,
               "schema gone"},
        Answer{"unknown_keys_are_ignored", answers(R"("outcome":"done","took_ms":[1,{"x":null}])"),
               OutcomeKind::done},
        Answer{"keys_in_any_order", says(R"({"outcome":"done","id":"$ID","type":"outcome"})"),
               OutcomeKind::done},
        Answer{"null_is_absent",
               answers(R"("outcome":"retry","after_ms":null,"reason":null,"class":null)"),
               OutcomeKind::retry},
        Answer{"white_space_around",
               says(" \t{ \"type\" : \"outcome\", \"id\" : \"$ID\", "
                    "\"outcome\" : \"done\" } \r"),
               OutcomeKind::done},
        Answer{"escapes", answers(R"("outcome":"park","reason":"\u20ac \"x\"\n")"),
               OutcomeKind::park, "\u20ac \"x\"\n"},
        Answer{"longest_class",
               answers(R"("outcome":"reject","class":"abcdefghijklmnopqrstuvwxyz_01234")"),
               OutcomeKind::reject, "", "abcdefghijklmnopqrstuvwxyz_01234"},
        Answer{"long_reason_is_cut_between_characters",
               answers("\"outcome\":\"reject\",\"reason\":\"" + long_reason + "\""),
               OutcomeKind::reject, std::string(511, 'r')}),
    [](const auto& instance) { return instance.param.name; });

struct Fault {
  const char* name;
  std::string value;
  std::string failure_class;  ///< of the record's retry
  std::string error;          ///< part of handler.protocol_error's text
};
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

class ExecFaults : public testing::TestWithParam<Fault> {};

TEST_P(ExecFaults, EndTheProcessAndGiveItsRecordsBack) {
  ExecOptions options = puppet();
  options.line_bytes = 4096;
  ExecRig rig(options);
  rig.start();
  const int bystander = rig.submit(R"([["hold"]])");
  const Outcome outcome = rig.run(GetParam().value);
  EXPECT_EQ(outcome.kind(), OutcomeKind::retry);
  EXPECT_EQ(outcome.failure_class(), GetParam().failure_class);
  EXPECT_EQ(rig.result(bystander).kind(), OutcomeKind::retry);
  EXPECT_EQ(rig.result(bystander).failure_class(), "handler_exit");
  const HandlerEvent event = rig.events(EventName::handler_protocol_error, 1)[0];
  EXPECT_NE(event.error.find(GetParam().error), std::string::npos) << event.error;
  EXPECT_GT(event.pid, 0);
  EXPECT_EQ(rig.events(EventName::handler_exited, 1)[0].cause, "protocol");
  // A new process goes on.
  EXPECT_EQ(rig.run("again").kind(), OutcomeKind::done);
  EXPECT_EQ(rig.outcomes.repeated(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Exec, ExecFaults,
    testing::Values(
        Fault{"plain_text", says("hello, I am a print statement"), "handler_exit", "not JSON"},
        Fault{"empty_line", says(""), "handler_exit", "not JSON"},
        Fault{"half_a_line", says(R"({"type":"outcome","id":"$ID",)"), "handler_exit", "not JSON"},
        Fault{"two_objects", says(R"({"type":"outcome","id":"$ID","outcome":"done"} {})"),
              "handler_exit", "not JSON"},
        Fault{"array", says("[1]"), "handler_exit", "not a JSON object"},
        Fault{"number", says("7"), "handler_exit", "not a JSON object"},
        Fault{"not_utf8", R"([["raw","eyJ0eXBlIjoi/yJ9Cg=="]])", "handler_exit", "not JSON"},
        Fault{"no_type", says(R"({"id":"$ID","outcome":"done"})"), "handler_exit", "\"type\""},
        Fault{"type_no_string", says(R"({"type":1})"), "handler_exit", "\"type\""},
        Fault{"unknown_type", says(R"({"type":"progress","id":"$ID"})"), "handler_exit",
              "\"type\""},
        Fault{"no_id", says(R"({"type":"outcome","outcome":"done"})"), "handler_exit", "\"id\""},
        Fault{"id_no_string", says(R"({"type":"outcome","id":2,"outcome":"done"})"), "handler_exit",
              "\"id\""},
        Fault{"id_with_zero", says(R"({"type":"outcome","id":"0$ID","outcome":"done"})"),
              "handler_exit", "\"id\""},
        Fault{"id_with_space", says(R"({"type":"outcome","id":"$ID ","outcome":"done"})"),
              "handler_exit", "\"id\""},
        Fault{"unknown_id", says(R"({"type":"outcome","id":"99","outcome":"done"})"),
              "handler_exit", "unknown or repeated id \"99\""},
        Fault{"no_outcome", says(R"({"type":"outcome","id":"$ID"})"), "protocol", "\"outcome\""},
        Fault{"unknown_outcome", answers(R"("outcome":"maybe")"), "protocol", "\"outcome\""},
        Fault{"outcome_upper_case", answers(R"("outcome":"Done")"), "protocol", "\"outcome\""},
        Fault{"after_negative", answers(R"("outcome":"retry","after_ms":-1)"), "protocol",
              "\"after_ms\""},
        Fault{"after_fraction", answers(R"("outcome":"retry","after_ms":1.5)"), "protocol",
              "\"after_ms\""},
        Fault{"after_text", answers(R"("outcome":"retry","after_ms":"5")"), "protocol",
              "\"after_ms\""},
        Fault{"reason_no_string", answers(R"("outcome":"reject","reason":7)"), "protocol",
              "\"reason\""},
        Fault{"class_upper_case", answers(R"("outcome":"reject","class":"Bad")"), "protocol",
              "\"class\""},
        Fault{"class_empty", answers(R"("outcome":"reject","class":"")"), "protocol", "\"class\""},
        Fault{"class_too_long",
              answers(R"("outcome":"reject","class":"abcdefghijklmnopqrstuvwxyz_012345")"),
              "protocol", "\"class\""},
        Fault{"class_with_dash", answers(R"("outcome":"reject","class":"a-b")"), "protocol",
              "\"class\""},
        Fault{"long_line", says(std::string(4097, ' ')), "handler_exit", "line_bytes (4096)"},
        Fault{"long_line_without_end",
              json::array({{"raw", std::string(8192, 'A')}, {"hold"}}).dump(), "handler_exit",
              "line_bytes (4096)"},
        Fault{"second_hello", says(R"({"type":"hello","protocol":1})"), "handler_exit",
              "a second hello"},
        Fault{"stdout_closed", R"([["close",1],["hold"]])", "handler_exit", "closed its stdout"},
        Fault{"stdin_closed", R"([["close",0],["sleep"]])", "handler_exit", "closed its stdin"}),
    [](const auto& instance) { return instance.param.name; });

TEST(ExecAlive, ARepeatedOutcomeCountsOnce) {
  ExecRig rig(puppet());
  rig.start();
  const std::string line = R"({"type":"outcome","id":"$ID","outcome":"done"})";
  const Outcome outcome = rig.run(json::array({{"line", line}, {"line", line}}).dump());
  EXPECT_EQ(outcome.kind(), OutcomeKind::done);
  EXPECT_NE(rig.events(EventName::handler_protocol_error, 1)[0].error.find("repeated id"),
            std::string::npos);
  rig.events(EventName::handler_exited, 1);
  EXPECT_EQ(rig.outcomes.repeated(), 0U);
}

struct Greeting {
  const char* name;
  std::string hello;
  std::string error;  ///< empty: accepted
};
void PrintTo(const Greeting& greeting, std::ostream* out) {
  *out << greeting.name;
}

class ExecGreetings : public testing::TestWithParam<Greeting> {};

TEST_P(ExecGreetings, AreTakenOrRefused) {
  ExecOptions options = puppet({"--hello", GetParam().hello});
  options.start_limit = GetParam().hello.empty() ? 300ms : 20000ms;
  ExecRig rig(options);
  rig.start();
  const int waiting = rig.submit("record");
  if (GetParam().error.empty()) {
    EXPECT_EQ(rig.result(waiting).kind(), OutcomeKind::done);
    return;
  }
  const HandlerEvent event = rig.events(EventName::handler_protocol_error, 2)[0];
  EXPECT_NE(event.error.find(GetParam().error), std::string::npos) << event.error;
  // Nothing was handed over, so nothing has failed.
  EXPECT_FALSE(rig.outcomes.answered(waiting));
}

INSTANTIATE_TEST_SUITE_P(
    Exec, ExecGreetings,
    testing::Values(Greeting{"usual", R"({"type":"hello","protocol":1,"name":"charge"})", ""},
                    Greeting{"without_name", R"({"type":"hello","protocol":1})", ""},
                    Greeting{"with_more", R"({"type":"hello","protocol":1,"pid":3})", ""},
                    Greeting{"none", "", "no hello within 300 ms"},
                    Greeting{"newer", R"({"type":"hello","protocol":2})", "protocol 2"},
                    Greeting{"older", R"({"type":"hello","protocol":0})", "protocol 0"},
                    Greeting{"as_text", R"({"type":"hello","protocol":"1"})", "\"protocol\""},
                    Greeting{"no_protocol", R"({"type":"hello"})", "\"protocol\""},
                    Greeting{"name_no_text", R"({"type":"hello","protocol":1,"name":1})",
                             "\"name\""},
                    Greeting{"outcome_first", R"({"type":"outcome","id":"1","outcome":"done"})",
                             "unknown or repeated id"},
                    Greeting{"banner", "charge.py v3 ready", "not JSON"}),
    [](const auto& instance) { return instance.param.name; });

// Data.

TEST(ExecAlive, EveryPayloadPassesUnharmed) {
  ExecOptions options = puppet();
  Folder saved;
  options.command = python("saver.py", {saved.at("")});
  ExecRig rig(options);
  rig.start();
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  std::string big;
  while (big.size() < (1U << 20)) big += "0123456789\n\"\\\t\u20ac";
  std::string big_binary(1U << 20, '\0');
  for (std::size_t i = 0; i < big_binary.size(); ++i) {
    big_binary[i] = static_cast<char>((i * 2654435761U) >> 13);
  }
  const std::vector<Payload> payloads = {
      {std::nullopt, std::nullopt, {}},
      {"", "", {{"", ""}}},
      {"key", all_bytes, {{"all", all_bytes}, {"none", std::nullopt}, {"all", "again"}}},
      {all_bytes, "text \u20ac \U0001F600 \n\r\t\"\\/", {}},
      {"k", big, {{"h", std::string(1, '\0')}}},
      {std::nullopt, big_binary, {{"bin", "\xFF\xFE"}}},
  };
  std::vector<int> indices;
  for (const Payload& payload : payloads) indices.push_back(rig.submit(payload));
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const Outcome outcome = rig.result(indices[i]);
    ASSERT_EQ(outcome.kind(), OutcomeKind::done) << outcome.reason() << rig.log();
    const auto expect = [&](const std::string& part, const std::optional<std::string>& text) {
      const std::string file = std::to_string(100 + indices[i]) + "." + part;
      EXPECT_EQ(std::filesystem::exists(saved.at(file)), text.has_value()) << i << " " << part;
      EXPECT_TRUE(!text || saved.read(file) == *text) << i << " " << part;
    };
    expect("key", payloads[i].key);
    expect("value", payloads[i].value);
    for (std::size_t h = 0; h < payloads[i].headers.size(); ++h) {
      expect("name" + std::to_string(h), payloads[i].headers[h].first);
      expect("header" + std::to_string(h), payloads[i].headers[h].second);
    }
  }
}

TEST(ExecAlive, HandsOverTheRecordAsDocumented) {
  Folder folder;
  ExecRig rig(puppet({"--journal", folder.at("journal")}), Fence{Token(12), Uuid{{0xAB}}});
  rig.start();
  rig.result(rig.submit(Payload{"k", "v", {}}, 4));
  const std::string journal = folder.read("journal");
  const json hello = json::parse(journal.substr(0, journal.find('\n')));
  EXPECT_EQ(hello["topics"], json::parse(R"(["orders","emails"])"));
  const json record = json::parse(journal.substr(journal.find('\n') + 1));
  EXPECT_EQ(record["attempt"], 4);
  EXPECT_EQ(record["offset"], 100);
  EXPECT_EQ(record["fence"]["token"], 12);
  EXPECT_EQ(record["timeout_ms"], 20000);
}

// Several records, several processes.

TEST(ExecAlive, AnswersMayComeInAnyOrder) {
  ExecOptions options = puppet();
  options.command = python("shuffler.py", {"8"});
  options.in_flight = 8;
  ExecRig rig(options);
  rig.start();
  for (int i = 0; i < 64; ++i) rig.submit("x");
  ASSERT_TRUE(rig.outcomes.wait_for(64));
  EXPECT_EQ(rig.outcomes.repeated(), 0U);
  // The handler says its place in its own order: not all can have kept theirs.
  int moved = 0;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(rig.result(i).kind(), OutcomeKind::retry);
    if (rig.result(i).reason() != std::to_string(i % 8)) ++moved;
  }
  EXPECT_GT(moved, 0);
}

TEST(ExecAlive, AProcessNeverHasMoreThanInFlight) {
  Folder folder;
  ExecOptions options = puppet({"--journal", folder.at("journal"), "--on-cancel",
                                R"({"type":"outcome","id":"$ID","outcome":"done"})"});
  options.in_flight = 3;
  ExecRig rig(options);
  rig.start();
  for (int i = 0; i < 10; ++i) rig.submit(R"([["hold"]])");
  ASSERT_TRUE(wait_for_file(folder.at("journal"), "\"offset\":102"));
  // The stop answers those that wait; had a fourth been handed over it would be in the journal.
  rig.holder.fire_stop();
  ASSERT_TRUE(rig.outcomes.wait_for(10));
  EXPECT_EQ(folder.read("journal").find("\"offset\":103"), std::string::npos);
}

TEST(ExecAlive, RecordsSpreadOverTheProcesses) {
  Folder folder;
  ExecOptions options = puppet({"--journal", folder.at("journal")});
  options.processes = 3;
  options.in_flight = 1;
  ExecRig rig(options);
  rig.start();
  for (int i = 0; i < 3; ++i) rig.submit(R"([["hold"]])");
  for (const std::string offset : {"100", "101", "102"}) {
    EXPECT_TRUE(wait_for_file(folder.at("journal"), "\"offset\":" + offset));
  }
}

// Timeouts.

TEST(ExecAlive, ATimeoutCancelsThenKills) {
  Folder folder;
  ExecOptions options = puppet({"--journal", folder.at("journal")});
  options.timeout = 200ms;
  options.cancel_grace = 50ms;
  ExecRig rig(options);
  rig.start();
  rig.run("warm");
  const int late = rig.submit(R"([["hold"]])");
  EXPECT_EQ(rig.result(late).kind(), OutcomeKind::retry);
  EXPECT_EQ(rig.result(late).failure_class(), "timeout");
  EXPECT_NE(folder.read("journal").find(R"("cause":"timeout")"), std::string::npos);
  const HandlerEvent exited = rig.events(EventName::handler_exited, 1)[0];
  EXPECT_EQ(exited.cause, "timeout");
  EXPECT_NE(exited.error.find("within 200 ms"), std::string::npos) << exited.error;
  EXPECT_NE(exited.error.find("SIGKILL"), std::string::npos) << exited.error;
  EXPECT_EQ(rig.run("again").kind(), OutcomeKind::done);
}

TEST(ExecAlive, AnAnswerInTheGraceStillCounts) {
  ExecOptions options =
      puppet({"--on-cancel", R"({"type":"outcome","id":"$ID","outcome":"park","reason":"late"})"});
  options.timeout = 100ms;
  options.cancel_grace = 20000ms;
  ExecRig rig(options);
  rig.start();
  const Outcome outcome = rig.run(R"([["hold"]])");
  EXPECT_EQ(outcome.kind(), OutcomeKind::park);
  EXPECT_EQ(outcome.reason(), "late");
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
  EXPECT_TRUE(rig.events_so_far(EventName::handler_exited).empty());
}

TEST(ExecAlive, AProcessThatIsOverdueGetsNothingNew) {
  Folder folder;
  ExecOptions options = puppet({"--journal", folder.at("journal")});
  options.timeout = 100ms;
  options.cancel_grace = 400ms;
  ExecRig rig(options);
  // What its process had been given when the late record ended with it.
  std::string given;
  rig.outcomes.on_outcome = [&](int, const Outcome& outcome) {
    if (outcome.failure_class() == "timeout") given = folder.read("journal");
  };
  rig.start();
  rig.run("warm");
  const int late = rig.submit(R"([["hold"]])");
  ASSERT_TRUE(wait_for_file(folder.at("journal"), "\"cancel\""));
  const int next = rig.submit("x");
  EXPECT_EQ(rig.result(late).failure_class(), "timeout");
  EXPECT_NE(given.find("\"offset\":101"), std::string::npos) << given;
  EXPECT_EQ(given.find("\"offset\":102"), std::string::npos) << given;
  EXPECT_EQ(rig.result(next).kind(), OutcomeKind::done);
}

TEST(ExecAlive, AHandlerThatDoesNotReadIsTimedOutToo) {
  ExecOptions options = puppet();
  options.timeout = 300ms;
  options.cancel_grace = 0ms;
  ExecRig rig(options);
  rig.start();
  rig.run("warm");
  std::vector<int> indices{rig.submit(R"([["sleep"]])")};
  // More than any pipe holds.
  for (int i = 0; i < 4; ++i) indices.push_back(rig.submit(std::string(1U << 20, 'x')));
  for (const int index : indices) EXPECT_NE(rig.result(index).kind(), OutcomeKind::stop);
  EXPECT_EQ(rig.result(indices[0]).failure_class(), "timeout");
  EXPECT_EQ(rig.run("x").kind(), OutcomeKind::done);
}

TEST(ExecAlive, NoRetryStartsBeforeTheProcessIsGone) {
  ExecOptions options = puppet();
  options.timeout = 100ms;
  options.cancel_grace = 0ms;
  ExecRig rig(options);
  std::atomic<pid_t> pid{0};
  std::atomic<int> alive_at_outcome{0};
  rig.outcomes.on_outcome = [&](int, const Outcome& outcome) {
    if (outcome.failure_class() != "timeout") return;
    if (::kill(pid, 0) == 0) ++alive_at_outcome;
  };
  rig.start();
  pid = static_cast<pid_t>(rig.events(EventName::handler_started, 1)[0].pid);
  EXPECT_EQ(rig.run(R"([["sleep"]])").failure_class(), "timeout");
  EXPECT_EQ(alive_at_outcome, 0);
}

// Cancels.

struct Ending {
  const char* name;
  std::optional<RetiredReason> reason;
  bool shutdown;
  std::string cause;
};
void PrintTo(const Ending& ending, std::ostream* out) {
  *out << ending.name;
}

class ExecCancels : public testing::TestWithParam<Ending> {};

TEST_P(ExecCancels, TellTheCauseAndTakeTheAnswer) {
  Folder folder;
  ExecRig rig(puppet({"--journal", folder.at("journal"), "--on-cancel",
                      R"({"type":"outcome","id":"$ID","outcome":"done"})"}));
  rig.start();
  const int running = rig.submit(R"([["hold"]])");
  ASSERT_TRUE(wait_for_file(folder.at("journal"), "\"record\""));
  if (GetParam().shutdown) rig.exec.begin_shutdown();
  if (GetParam().reason) rig.holder.retire(*GetParam().reason);
  rig.holder.fire_stop();
  EXPECT_EQ(rig.result(running).kind(), OutcomeKind::done);
  EXPECT_NE(folder.read("journal").find("\"cause\":\"" + GetParam().cause + "\""),
            std::string::npos)
      << folder.read("journal");
}

INSTANTIATE_TEST_SUITE_P(
    Exec, ExecCancels,
    testing::Values(Ending{"revoked", {}, false, "revoked"},
                    Ending{"retired_by_revocation", RetiredReason::revoked, false, "revoked"},
                    Ending{"lost", RetiredReason::lost, false, "lost"},
                    Ending{"lost_while_shutting_down", RetiredReason::lost, true, "lost"},
                    Ending{"superseded", RetiredReason::superseded, false, "lost"},
                    Ending{"fatal", RetiredReason::fatal, false, "lost"},
                    Ending{"shutdown", {}, true, "shutdown"},
                    Ending{"retired_by_shutdown", RetiredReason::shutdown, false, "shutdown"}),
    [](const auto& instance) { return instance.param.name; });

TEST(ExecAlive, OnlyATimeoutKillsAfterACancel) {
  Folder folder;
  ExecRig rig(puppet({"--journal", folder.at("journal")}));
  rig.start();
  const int running = rig.submit(R"([["hold"]])");
  ASSERT_TRUE(wait_for_file(folder.at("journal"), "\"record\""));
  rig.holder.fire_stop();
  ASSERT_TRUE(wait_for_file(folder.at("journal"), "\"revoked\""));
  EXPECT_FALSE(rig.outcomes.answered(running));
  EXPECT_TRUE(rig.events_so_far(EventName::handler_exited).empty());
}

TEST(ExecAlive, ARecordOfAnEndedOwnerIsNotHandedOver) {
  Folder folder;
  ExecRig rig(puppet({"--journal", folder.at("journal")}));
  rig.holder.fire_stop();
  rig.start();
  const Outcome outcome = rig.run("x");
  EXPECT_EQ(outcome.kind(), OutcomeKind::retry);
  EXPECT_EQ(folder.read("journal").find("\"record\""), std::string::npos);
}

// Ends of processes.

TEST(ExecAlive, AnExitGivesItsRecordsBack) {
  ExecRig rig(puppet());
  rig.start();
  const int other = rig.submit(R"([["hold"]])");
  const Outcome outcome = rig.run(R"([["exit",3]])");
  EXPECT_EQ(outcome.kind(), OutcomeKind::retry);
  EXPECT_EQ(outcome.failure_class(), "handler_exit");
  EXPECT_NE(outcome.reason().find("exit code 3"), std::string::npos);
  EXPECT_EQ(rig.result(other).failure_class(), "handler_exit");
  const HandlerEvent exited = rig.events(EventName::handler_exited, 1)[0];
  EXPECT_EQ(exited.cause, "exit");
  EXPECT_EQ(exited.error, "exit code 3");
}

TEST(ExecAlive, ASignalGivesItsRecordsBack) {
  ExecRig rig(puppet());
  rig.start();
  const Outcome outcome = rig.run(R"([["signal",11]])");
  EXPECT_EQ(outcome.failure_class(), "handler_exit");
  const HandlerEvent exited = rig.events(EventName::handler_exited, 1)[0];
  EXPECT_EQ(exited.cause, "signal");
  EXPECT_EQ(exited.error, "signal 11 (SIGSEGV)");
}

TEST(ExecAlive, WhatItSaidBeforeItEndedCounts) {
  for (const int signal : {0, 9}) {
    ExecRig rig(puppet());
    rig.start();
    const Outcome outcome = rig.run(
        json::array({{"line", R"({"type":"outcome","id":"$ID","outcome":"park","reason":"last"})"},
                     signal == 0 ? json({"exit", 0}) : json({"signal", signal})})
            .dump());
    EXPECT_EQ(outcome.kind(), OutcomeKind::park);
    rig.events(EventName::handler_exited, 1);
    EXPECT_EQ(rig.outcomes.repeated(), 0U);
  }
}

TEST(ExecAlive, ALineWithoutItsEndDoesNotCount) {
  ExecRig rig(puppet());
  rig.start();
  // {"type":"outcome","id":"1","outcome":"done"} and no line end
  const Outcome outcome = rig.run(
      R"([["raw","eyJ0eXBlIjoib3V0Y29tZSIsImlkIjoiMSIsIm91dGNvbWUiOiJkb25lIn0="],["exit",0]])");
  EXPECT_EQ(outcome.failure_class(), "handler_exit");
}

TEST(ExecAlive, StderrGoesToTheLogWhateverItIs) {
  ExecRig rig(puppet());
  rig.start();
  rig.run(json::array({{"err", "one\ntwo\n" + std::string(20000, 'w') + "\nthree without end"},
                       {"exit", 0}})
              .dump());
  rig.events(EventName::handler_exited, 1);
  const std::string log = rig.log();
  EXPECT_NE(log.find("] one\n"), std::string::npos);
  EXPECT_NE(log.find("] two\n"), std::string::npos);
  EXPECT_NE(log.find("] three without end\n"), std::string::npos);
  EXPECT_GE(std::count(log.begin(), log.end(), 'w'), 20000);
}

TEST(ExecAlive, AMissingProgramIsSaidAndWaitedFor) {
  Folder folder;
  ExecOptions options = puppet();
  options.command = {folder.at("charge")};
  ExecRig rig(options);
  rig.start();
  const int waiting = rig.submit("x");
  const HandlerEvent event = rig.events(EventName::handler_exited, 2)[1];
  EXPECT_EQ(event.cause, "start");
  EXPECT_NE(event.error.find("cannot start \"" + folder.at("charge") + "\""), std::string::npos);
  EXPECT_NE(event.error.find("No such file or directory (errno 2)"), std::string::npos);
  EXPECT_NE(event.error.find("next try in 20 ms"), std::string::npos) << event.error;
  EXPECT_FALSE(rig.outcomes.answered(waiting));
  folder.write("charge",
               "#!/bin/sh\nread hello\necho '{\"type\":\"hello\",\"protocol\":1}'\nread record\n"
               "echo '{\"type\":\"outcome\",\"id\":\"1\",\"outcome\":\"done\"}'\nread more\n",
               true);
  EXPECT_EQ(rig.result(waiting).kind(), OutcomeKind::done);
}

TEST(ExecAlive, ReasonsOfAFailedStartAreTold) {
  Folder folder;
  folder.write("plain", "#!/bin/sh\n");
  folder.write("no_interpreter", "#!/nowhere/interpreter\n", true);
  folder.write("no_line", "echo hello\n", true);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {folder.at("plain"), "chmod +x"},
      {folder.at("no_interpreter"), "the interpreter in its #! line is missing"},
      {folder.at("no_line"), "a script needs a #! line"},
      {folder.at(""), "not a file that may be executed"},
      {"tenure-no-such-program", "not found in PATH"},
  };
  for (const auto& [command, text] : cases) {
    ExecOptions options = puppet();
    options.command = {command};
    ExecRig rig(options);
    rig.start();
    const HandlerEvent event = rig.events(EventName::handler_exited, 1)[0];
    EXPECT_NE(event.error.find(text), std::string::npos) << event.error;
    EXPECT_EQ(event.pid, 0);
  }
}

TEST(ExecAlive, ACommandIsFoundInThePath) {
  ExecOptions options = puppet();
  options.command = {"sh", "-c",
                     "read hello; echo '{\"type\":\"hello\",\"protocol\":1}'; read end"};
  ExecRig rig(options);
  rig.start();
  rig.events(EventName::handler_started, 1);
  EXPECT_TRUE(rig.events_so_far(EventName::handler_exited).empty());
}

TEST(ExecAlive, AProgramThatCrashesAtOnceIsStartedEverMoreSlowly) {
  ExecOptions options = puppet();
  options.command = {"/bin/false"};
  options.restart_min = 5ms;
  options.restart_max = 300ms;
  ExecRig rig(options);
  const auto begin = std::chrono::steady_clock::now();
  rig.start();
  const int waiting = rig.submit("x");
  // 5 + 10 + 20 + 40 + 80 + 160 + 300 ms lie before the eighth start.
  rig.events(EventName::handler_started, 8);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 615ms);
  EXPECT_EQ(rig.events(EventName::handler_exited, 7)[0].error, "exit code 1");
  EXPECT_FALSE(rig.outcomes.answered(waiting));
}

TEST(ExecAlive, KilledAHundredTimesNothingIsLostOrDoubled) {
  ExecOptions options = puppet();
  options.command = python("mortal.py", {"7"});
  options.processes = 4;
  options.in_flight = 8;
  ExecRig rig(options);
  std::mutex mutex;
  std::condition_variable changed;
  int open = 0;
  int done = 0;
  int again = 0;
  rig.outcomes.on_outcome = [&](int, const Outcome& outcome) {
    const std::lock_guard lock(mutex);
    --open;
    ++(outcome.kind() == OutcomeKind::done ? done : again);
    if (outcome.kind() != OutcomeKind::done) {
      EXPECT_EQ(outcome.failure_class(), "handler_exit") << outcome.reason();
    }
    changed.notify_all();
  };
  rig.start();
  int records = 0;
  while (true) {
    const bool more = rig.events_so_far(EventName::handler_exited).size() < 100;
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, patience,
                                   [&] { return open < 32 && (more || again > 0 || open == 0); }));
      if (!more && again == 0) break;
      if (again > 0) {
        --again;
      } else {
        ++records;
      }
      ++open;
    }
    // A retry is a new attempt with an index of its own: an outcome that comes twice shows.
    rig.submit("x");
  }
  EXPECT_EQ(done, records);
  EXPECT_GE(rig.events_so_far(EventName::handler_exited).size(), 100U);
  EXPECT_EQ(rig.outcomes.repeated(), 0U);
}

// The end of all.

TEST(ExecAlive, ByeEndsAnIdleHandlerAtOnce) {
  Folder folder;
  ExecRig rig(puppet({"--journal", folder.at("journal")}));
  rig.start();
  rig.run("x");
  const auto begin = std::chrono::steady_clock::now();
  rig.exec.close(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  EXPECT_NE(folder.read("journal").find("{\"type\":\"bye\"}\n"), std::string::npos);
  const HandlerEvent exited = rig.events(EventName::handler_exited, 1)[0];
  EXPECT_EQ(exited.cause, "shutdown");
  EXPECT_EQ(exited.error, "exit code 0");
  EXPECT_EQ(rig.run("x").failure_class(), "no_outcome");
}

TEST(ExecAlive, AnAnswerAfterByeStillCounts) {
  ExecOptions options = puppet();
  options.command = python("slow_bye.py");
  ExecRig rig(options);
  rig.start();
  const int running = rig.submit("x");
  ASSERT_TRUE(rig.wait_for_log("has it"));
  rig.exec.close(20s);
  EXPECT_EQ(rig.result(running).kind(), OutcomeKind::done);
}

TEST(ExecAlive, AHandlerThatIgnoresTheEndGetsTermThenKill) {
  for (const bool ignores_term : {false, true}) {
    std::vector<std::string> arguments{"--ignore-end"};
    if (ignores_term) arguments.emplace_back("--ignore-term");
    ExecOptions options = puppet(arguments);
    options.close_term = 100ms;
    options.close_kill = 300ms;
    ExecRig rig(options);
    rig.start();
    rig.run("x");
    rig.exec.close(20s);
    const HandlerEvent exited = rig.events(EventName::handler_exited, 1)[0];
    EXPECT_EQ(exited.cause, "shutdown");
    EXPECT_NE(exited.error.find(ignores_term ? "SIGKILL" : "SIGTERM"), std::string::npos)
        << exited.error;
  }
}

TEST(ExecAlive, CloseKillsWhenItsLimitEnds) {
  ExecRig rig(puppet({"--ignore-end", "--ignore-term"}));
  rig.start();
  const int running = rig.submit(R"([["err","has it\n"],["hold"]])");
  ASSERT_TRUE(rig.wait_for_log("has it"));
  const auto begin = std::chrono::steady_clock::now();
  rig.exec.close(100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  EXPECT_EQ(rig.result(running).failure_class(), "handler_exit");
}

TEST(ExecAlive, ChildrenDieWithUsHoweverWeDie) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t middle = ::fork();
  ASSERT_GE(middle, 0);
  if (middle == 0) {
    ExecRig rig(puppet({"--ignore-end", "--ignore-term"}));
    static_cast<void>(rig.exec.start());
    rig.run("x");
    const pid_t child = static_cast<pid_t>(rig.events(EventName::handler_started, 1)[0].pid);
    static_cast<void>(::write(pipe_ends[1], &child, sizeof child));
    ::pause();
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  pid_t child = 0;
  ASSERT_EQ(::read(pipe_ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::close(pipe_ends[0]);
  ASSERT_EQ(::kill(child, 0), 0);
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  EXPECT_TRUE(wait_until([&] { return is_gone(child); }));
}

TEST(ExecAlive, ManyThreadsMaySubmitAtOnce) {
  ExecOptions options = puppet();
  options.processes = 2;
  ExecRig rig(options);
  rig.start();
  const Handler handler = rig.exec.handler();
  std::vector<std::thread> threads;
  std::atomic<int> next{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        const int index = next++;
        const MessageView view{Bytes(), Bytes(), 0};
        static const Payload empty;
        const Record record(rig.holder.origin(), const_cast<Payload*>(&empty), view, Offset(index),
                            no_leader_epoch, 1, 0, Offset(0));
        handler.async(record, rig.holder.owner(), rig.outcomes.completion(index));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(rig.outcomes.wait_for(1000));
  EXPECT_EQ(rig.outcomes.repeated(), 0U);
}

TEST(ExecAlive, AnEmptyCommandIsRefused) {
  ExecOptions options = puppet();
  options.command.clear();
  ExecRig rig(options);
  const Result<void> started = rig.exec.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::invalid);
}

}  // namespace
}  // namespace tenure::handler::test
