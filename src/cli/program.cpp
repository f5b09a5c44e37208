#include "cli/program.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "app/app_run.hpp"
#include "cli/verbs.hpp"
#include "demo/member.hpp"
#include "demo/plan.hpp"
#include "tenure/kafka/source.hpp"
#include "tenure/version.hpp"

namespace tenure::cli {
namespace {

using app::ExitCode;
using app::FlagSpec;
using app::Parsed;

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const demo::Scenario scenario : demo::scenarios) names.emplace_back(name(scenario));
  return names;
}

std::string scenario_summaries() {
  std::string out = "\nMembers are real processes that are really frozen and killed. Witnesses "
                    "outside\nof them decide. Scenarios:\n";
  for (const demo::Scenario scenario : demo::scenarios) {
    out += fmt::format("  {:<11} {}\n", name(scenario), summary(scenario));
  }
  out += "Exit codes: 0 PASS, 1 FAIL, 2 INCONCLUSIVE.\n";
  return out;
}

std::vector<FlagSpec> run_flags() {
  std::vector<FlagSpec> flags = {
      {"--exec", "COMMAND", "handler program and its arguments", {}, true},
      {"--http", "URL", ""},
      {"--sql", "STATEMENT", "statements for each record, in one transaction", {}, true},
  };
  for (FlagSpec& flag : app::flags_of_run()) flags.push_back(std::move(flag));
  return flags;
}

app::ProgramSpec make_program() {
  app::ProgramSpec program;
  program.name = "tenure";
  program.summary = "Consumer groups in which one owner holds a partition, from grant to release.";
  program.examples = {
      "tenure demo",
      "tenure run -b b1:9092 -g billing -t orders --order key --exec ./charge.py",
      "tenure check -c tenure.yaml",
  };
  program.flags = app::flags_of_every_verb();
  program.later = {"init",     "simulate", "status", "verify",  "torture",        "probe",
                   "export",   "completion", "top",  "dlq",     "offsets",        "config explain"};
  program.verbs = {
      {"run",
       "topics to handler, until TERM or INT",
       {"tenure run -b b1:9092 -g billing -t orders --order key --exec ./charge.py",
        "tenure run -c tenure.yaml --require-ready",
        "tenure run -c tenure.yaml -b b1:9092 --until-end --history run.jsonl"},
       run_flags()},
      {"demo",
       "an embedded broker, members that fail, a verdict",
       {"tenure demo", "tenure demo --scenario zombie --plain",
        "tenure demo --scenario kill --protocol consumer --seed 7"},
       {{"--scenario", "NAME", "what happens", scenario_names()},
        {"--members", "N", "member processes, 2..8 (default 2)"},
        {"--partitions", "N", "partitions, 2..64 (default 8)"},
        {"--rate", "N", "records a second, 20..2000 (default 200)"},
        {"--seed", "N", "of keys, amounts and times (default: drawn)"},
        {"--protocol", "P", "of the group", {"cooperative", "consumer", "eager"}},
        {"--plain", "", "without progress and fence: must end FAIL"},
        {"--keep", "DIR", "keep database and members' logs in a new folder"}},
       false,
       scenario_summaries()},
      {"check",
       "config, broker, topics, store, budgets; read-only",
       {"tenure check -c tenure.yaml", "tenure check -c tenure.yaml -o json"},
       {}},
      {"config show",
       "effective values",
       {"tenure config show -c tenure.yaml", "tenure config show -c tenure.yaml --origin"},
       {{"--origin", "", "where each value comes from"}}},
      {"config schema", "JSON Schema of the file, for editors", {"tenure config schema"}, {}},
      {"store plan",
       "the tables and every statement that runs on them",
       {"tenure store plan -c tenure.yaml"},
       {}},
      {"store init",
       "create the tables that are missing",
       {"tenure store init -c tenure.yaml", "tenure store init -c tenure.yaml --execute"},
       {{"--execute", "", "do it; without, the plan is printed"}}},
      {"store status",
       "domains, tokens and progress as stored",
       {"tenure store status -c tenure.yaml", "tenure store status -c tenure.yaml -o json"},
       {}},
      {"version", "versions of the program and its libraries", {"tenure version"}, {}},
      {"demo-member", "a member of a demo", {}, {}, true},
  };
  return program;
}

using Verb = ExitCode (*)(const Parsed&);
constexpr std::array<std::pair<std::string_view, Verb>, 10> verbs = {{
    {"run", run_verb},
    {"demo", demo_verb},
    {"check", check_verb},
    {"config show", config_show_verb},
    {"config schema", config_schema_verb},
    {"store plan", store_plan_verb},
    {"store init", store_init_verb},
    {"store status", store_status_verb},
    {"version", version_verb},
    {"demo-member", [](const Parsed&) { return demo::run_member(); }},
}};

}  // namespace

void print(std::string_view text) {
  static_cast<void>(::fwrite(text.data(), 1, text.size(), stdout));
  ::fflush(stdout);
}

void say(std::string_view line) {
  std::string text(line);
  text += '\n';
  static_cast<void>(::fwrite(text.data(), 1, text.size(), stderr));
}

bool json_wanted(const Parsed& line) { return line.value("--output") == "json"; }

const app::ProgramSpec& program() {
  static const app::ProgramSpec made = make_program();
  return made;
}

ExitCode version_verb(const Parsed& line) {
  const std::string client = kafka::client_version();
  if (json_wanted(line)) {
    const nlohmann::json out = {{"tenure", TENURE_VERSION},
                                {"librdkafka", client},
                                {"sqlite", sqlite3_libversion()},
                                {"protocols", {"eager", "cooperative", "consumer"}},
                                {"handlers", {"exec", "sql"}},
                                {"stores", {"sqlite", "memory"}}};
    print(out.dump() + "\n");
  } else {
    print(fmt::format("tenure {}\nlibrdkafka {}\nSQLite {}\nprotocols eager cooperative consumer\n"
                      "handlers exec sql\nstores sqlite memory\n",
                      TENURE_VERSION, client, sqlite3_libversion()));
  }
  return ExitCode::ok;
}

ExitCode run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments.front() == "--version") return version_verb({});
  auto parsed = app::parse(program(), arguments);
  if (const auto* end = std::get_if<app::ParseEnd>(&parsed)) {
    ::fputs(end->text.c_str(), end->code == ExitCode::ok ? stdout : stderr);
    return end->code;
  }
  const Parsed& line = std::get<Parsed>(parsed);
  const auto verb = std::find_if(verbs.begin(), verbs.end(),
                                 [&](const auto& each) { return each.first == line.verb; });
  if (verb == verbs.end()) return ExitCode::internal;
  try {
    return verb->second(line);
  } catch (const std::exception& error) {
    say(fmt::format("tenure: internal error: {}; please report it", error.what()));
    return ExitCode::internal;
  }
}

}  // namespace tenure::cli
