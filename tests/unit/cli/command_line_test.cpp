#include "app/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "cli/program.hpp"

namespace tenure::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::variant<Parsed, ParseEnd> parsed(const std::vector<std::string>& arguments) {
  return parse(cli::program(), arguments);
}
Parsed good(const std::vector<std::string>& arguments) {
  auto result = parsed(arguments);
  if (const auto* end = std::get_if<ParseEnd>(&result)) {
    ADD_FAILURE() << end->text;
    return {};
  }
  return std::get<Parsed>(result);
}
ParseEnd bad(const std::vector<std::string>& arguments) {
  auto result = parsed(arguments);
  if (const auto* end = std::get_if<ParseEnd>(&result)) return *end;
  ADD_FAILURE() << "was taken as " << std::get<Parsed>(result).verb;
  return {};
}

TEST(CommandLine, FlagsMayStandBeforeAndAfterTheVerb) {
  for (const auto& line : std::vector<std::vector<std::string>>{
           {"-c", "x.yaml", "run", "--order", "key"},
           {"run", "-c", "x.yaml", "--order=key"},
           {"--config=x.yaml", "run", "--order", "key"}}) {
    const Parsed parsed = good(line);
    EXPECT_EQ(parsed.verb, "run");
    EXPECT_EQ(parsed.value("--config"), "x.yaml");
    EXPECT_EQ(parsed.value("--order"), "key");
  }
}

TEST(CommandLine, TopicsAndClientPropertiesTakeSeveralValues) {
  const Parsed line = good({"run", "-t", "a", "b", "-t", "c", "-X", "x.y=1", "-X", "z=2"});
  EXPECT_THAT(line.all("--topic"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(line.all("-X"), ElementsAre("x.y=1", "z=2"));
}

TEST(CommandLine, ATopicBeforeTheVerbDoesNotSwallowIt) {
  const Parsed line = good({"-t", "orders", "run"});
  EXPECT_EQ(line.verb, "run");
  EXPECT_THAT(line.all("--topic"), ElementsAre("orders"));
}

TEST(CommandLine, AnExecCommandKeepsItsWords) {
  EXPECT_THAT(good({"run", "--exec", "./charge.py", "fast", "--order", "key"}).all("--exec"),
              ElementsAre("./charge.py", "fast"));
}

TEST(CommandLine, VerbsOfTwoWordsAreOneVerb) {
  EXPECT_EQ(good({"config", "show", "--origin"}).verb, "config show");
  EXPECT_EQ(good({"store", "init", "--execute", "-c", "t.yaml"}).verb, "store init");
}

TEST(CommandLine, SwitchesCount) {
  const Parsed line = good({"run", "-v", "-v", "--until-end"});
  EXPECT_EQ(line.count("--verbose"), 2);
  EXPECT_TRUE(line.on("--until-end"));
  EXPECT_FALSE(line.on("--quiet"));
}

TEST(CommandLine, AnUnknownVerbShowsTheNearestOneAndExits64) {
  const ParseEnd end = bad({"rnu"});
  EXPECT_EQ(end.code, ExitCode::usage);
  EXPECT_THAT(end.text, HasSubstr("unknown verb \"rnu\"; nearest: \"run\""));
  EXPECT_THAT(bad({"config", "shwo"}).text, HasSubstr("nearest: \"config show\""));
}

TEST(CommandLine, VerbsOfALaterVersionAreRefusedAndNotInHelp) {
  for (const std::string verb : {"init", "simulate", "status", "verify", "torture", "probe",
                                  "export", "completion", "top", "dlq", "offsets"}) {
    const ParseEnd end = bad({verb});
    EXPECT_EQ(end.code, ExitCode::usage) << verb;
    EXPECT_THAT(end.text, HasSubstr("comes in a later version")) << verb;
    EXPECT_THAT(help(cli::program(), {}), Not(HasSubstr("\n  " + verb + " "))) << verb;
  }
  EXPECT_THAT(bad({"config", "explain"}).text, HasSubstr("comes in a later version"));
}

TEST(CommandLine, AMissingVerbIsNamedSo) {
  EXPECT_EQ(bad({}).code, ExitCode::usage);
  EXPECT_THAT(bad({}).text, HasSubstr("a verb is missing; there are run, demo, check"));
  EXPECT_THAT(bad({"store"}).text, HasSubstr("there are plan, init, status"));
}

TEST(CommandLine, AnUnknownFlagShowsTheNearestOneAndNeverItsValue) {
  const ParseEnd end = bad({"run", "--ordr=hunter2"});
  EXPECT_EQ(end.code, ExitCode::usage);
  EXPECT_THAT(end.text, HasSubstr("unknown flag \"--ordr\"; did you mean \"--order\"?"));
  EXPECT_THAT(end.text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(bad({"run", "sasl.password=hunter2"}).text, Not(HasSubstr("hunter2")));
}

TEST(CommandLine, AFlagOfAnotherVerbIsUnknown) {
  EXPECT_EQ(bad({"version", "--execute"}).code, ExitCode::usage);
}

TEST(CommandLine, AFlagWithoutItsValueSaysWhatItNeeds) {
  EXPECT_THAT(bad({"run", "-c"}).text, HasSubstr("needs FILE"));
}

TEST(CommandLine, AWordThatIsNoneOfTheListShowsTheList) {
  const ParseEnd end = bad({"run", "--order", "kee"});
  EXPECT_EQ(end.code, ExitCode::usage);
  EXPECT_THAT(end.text, HasSubstr("--order takes one of key, partition, none; did you mean "
                                  "\"key\"?"));
}

TEST(CommandLine, HelpHasItsExamplesFirstForEveryVerb) {
  EXPECT_THAT(bad({"--help"}).text, StartsWith("Examples:\n  tenure "));
  EXPECT_EQ(bad({"--help"}).code, ExitCode::ok);
  for (const VerbSpec& verb : cli::program().verbs) {
    if (verb.hidden) continue;
    const std::string text = help(cli::program(), verb.path);
    EXPECT_THAT(text, StartsWith("Examples:\n  tenure " + verb.path.substr(0, 3))) << verb.path;
    EXPECT_THAT(text, HasSubstr("--config FILE")) << verb.path;
  }
  EXPECT_THAT(bad({"run", "-h"}).text, HasSubstr("--require-ready"));
  EXPECT_THAT(bad({"config", "--help"}).text, HasSubstr("config show"));
}

TEST(CommandLine, HelpFits80Columns) {
  std::vector<std::string> texts = {help(cli::program(), {})};
  for (const VerbSpec& verb : cli::program().verbs) {
    texts.push_back(help(cli::program(), verb.path));
  }
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(CommandLine, TheHiddenVerbIsInNoHelp) {
  EXPECT_THAT(help(cli::program(), {}), Not(HasSubstr("demo-member")));
  EXPECT_THAT(bad({"demo-membre"}).text, Not(HasSubstr("nearest: \"demo-member\"")));
}

TEST(CommandLine, AProgramWithoutVerbsTakesItsFlags) {
  ProgramSpec program;
  program.name = "charge";
  program.flags = {{"-c,--config", "FILE", "configuration"}};
  const auto result = parse(program, {"-c", "x"});
  ASSERT_TRUE(std::holds_alternative<Parsed>(result));
  EXPECT_EQ(std::get<Parsed>(result).value("--config"), "x");
  const auto extra = parse(program, {"run"});
  ASSERT_TRUE(std::holds_alternative<ParseEnd>(extra));
  EXPECT_EQ(std::get<ParseEnd>(extra).code, ExitCode::usage);
}

}  // namespace
}  // namespace tenure::app
