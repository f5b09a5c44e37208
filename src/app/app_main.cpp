#include "app/app_main.hpp"

#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/app_run.hpp"
#include "app/app_signals.hpp"
#include "app/command_line.hpp"
#include "app/wiring.hpp"
#include "tenure/options.hpp"

namespace tenure {
namespace {

using app::ExitCode;

app::ProgramSpec program_named(std::string name) {
  app::ProgramSpec program;
  program.summary = "Handles the records of a consumer group (Tenure).";
  program.examples = {name + " -c tenure.yaml", name + " -b b1:9092 -g billing"};
  program.name = std::move(name);
  program.flags = app::flags_of_run();
  for (app::FlagSpec& flag : app::flags_of_every_verb()) program.flags.push_back(std::move(flag));
  return program;
}

/// The code's handlers on the topics of the configuration.
Result<app::Handlers> tie(const std::vector<Route>& routes, const app::Config& config,
                          Builder& builder) {
  if (routes.size() == 1) {
    for (const std::string& topic : config.topics) builder.on(topic, routes.front().handler);
    return app::Handlers{};
  }
  for (const std::string& topic : config.topics) {
    const auto found = std::find_if(routes.begin(), routes.end(),
                                    [&](const Route& route) { return route.topic == topic; });
    if (found == routes.end()) {
      return fail(Code::invalid,
                  fmt::format("topics: this program has no handler for \"{}\"", topic),
                  "name only topics that it handles, or leave `topics` out");
    }
    builder.on(topic, found->handler);
  }
  return app::Handlers{};
}

}  // namespace

int detail::app_main(int argc, char** argv, const std::function<void(Builder& build)>& build) {
  app::Signals::block();
  const std::string path = argc > 0 ? argv[0] : "program";
  const app::ProgramSpec program = program_named(path.substr(path.find_last_of('/') + 1));
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  auto parsed = app::parse(program, arguments);
  if (const auto* end = std::get_if<app::ParseEnd>(&parsed)) {
    ::fputs(end->text.c_str(), end->code == ExitCode::ok ? stdout : stderr);
    return number(end->code);
  }
  const auto& line = std::get<app::Parsed>(parsed);

  Builder code;
  build(code);
  // What Options::validate() knows the configuration checks too, but not what on() was told twice.
  bool sound = true;
  for (const Problem& problem : code.validate()) {
    if (problem.key == "kafka.group.id") continue;
    ::fprintf(stderr, "%s: error: %s [%s]\n", program.name.c_str(), problem.message.c_str(),
              problem.key.c_str());
    sound = false;
  }
  if (!sound) return number(ExitCode::config_invalid);
  app::RunSetup setup;
  setup.sources = app::sources_of(line);
  setup.sources.builder = app::given_by(code);
  setup.sources.handlers = app::HandlerRule::none;
  setup.tie = [&code](const app::Config& config, Logger&, app::EventStream&, Builder& builder) {
    return tie(code.routes(), config, builder);
  };
  app::apply(line, setup);
  return number(app::run_program(setup));
}

}  // namespace tenure
