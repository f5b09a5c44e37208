#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/app_run.hpp"
#include "cli/verbs.hpp"
#include "handler/exec_handler.hpp"
#include "handler/sql_program.hpp"
#include "handler/sql_sqlite.hpp"

namespace tenure::cli {
namespace {

using app::Config;
using app::ExitCode;

// Past bye, TERM and KILL of the exec protocol.
constexpr std::chrono::milliseconds exec_close{12'000};
// What a program that has nothing left to do gets, however late it is.
constexpr std::chrono::milliseconds exec_close_least{1'000};

void on_every_topic(const Config& config, const Handler& handler, Builder& builder) {
  for (const std::string& topic : config.topics) builder.on(topic, handler);
}

handler::ExecOptions exec_options(const Config& config, const Config::Exec& exec) {
  handler::ExecOptions options;
  options.command = exec.command;
  options.mode = exec.mode == Config::Exec::Mode::alive ? handler::ExecMode::alive
                                                        : handler::ExecMode::per_record;
  options.processes = exec.processes;
  options.in_flight = exec.in_flight;
  options.timeout = exec.timeout;
  options.start_limit = exec.start;
  options.cancel_grace = exec.cancel_grace;
  options.line_bytes = exec.line_bytes;
  options.on_error = exec.on_error;
  options.group = config.kafka.group_id;
  options.topics = config.topics;
  return options;
}

Result<app::Handlers> tie_exec(const Config& config, const Config::Exec& exec, Logger& logger,
                               app::EventStream& events, Builder& builder) {
  const auto handler = std::make_shared<handler::ExecHandler>(
      exec_options(config, exec), logger, [&events](const handler::HandlerEvent& event) {
        std::vector<Field> fields = {{"pid", event.pid}};
        if (!event.cause.empty()) fields.push_back({"cause", std::string_view(event.cause)});
        if (!event.error.empty()) fields.push_back({"error", std::string_view(event.error)});
        events.say(event.name, fields);
      });
  if (auto started = handler->start(); !started) return tl::unexpected<Error>(started.error());
  on_every_topic(config, handler->handler(), builder);
  // R10: the handler's programs end within the budgets of the whole.
  using Clock = std::chrono::steady_clock;
  const auto stopped_at = std::make_shared<std::atomic<Clock::rep>>(0);
  const auto whole = config.shutdown.budget + config.drain.commit + config.shutdown.close;
  app::Handlers out;
  out.stopping = [handler, stopped_at] {
    stopped_at->store(Clock::now().time_since_epoch().count());
    handler->begin_shutdown();
  };
  out.ended = [handler, stopped_at, whole] {
    const Clock::time_point began{Clock::duration(stopped_at->load())};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(began + whole - Clock::now());
    handler->close(std::clamp(left, exec_close_least, exec_close));
  };
  return out;
}

Result<app::Handlers> tie_sql(const Config& config, const Config::Sql& sql, Builder& builder) {
  handler::SqlOptions options;
  options.statements = sql.statements;
  options.text = sql.text;
  options.expect_rows = sql.expect_rows;
  auto program = handler::compile_sql(options);
  if (!program) {
    std::string text;
    for (const handler::SqlFault& fault : program.error()) {
      text += (text.empty() ? "" : "\n") + describe(fault);
    }
    return fail(Code::invalid, "handler.sql.statements: " + text);
  }
  on_every_topic(config, handler::make_sqlite_handler(std::move(*program)), builder);
  return app::Handlers{};
}

}  // namespace

ExitCode run_verb(const app::Parsed& line) {
  app::RunSetup setup;
  setup.sources = app::sources_of(line);
  setup.sources.handlers = app::HandlerRule::one;
  const auto give = [&](std::string key, const std::string& flag) {
    if (const auto values = line.all(flag); !values.empty()) {
      setup.sources.flags.push_back({std::move(key), values, flag});
    }
  };
  give("handler.exec.command", "--exec");
  give("handler.http.url", "--http");
  give("handler.sql.statements", "--sql");
  setup.tie = [](const Config& config, Logger& logger, app::EventStream& events,
                 Builder& builder) -> Result<app::Handlers> {
    if (const auto* exec = std::get_if<Config::Exec>(&config.handler)) {
      return tie_exec(config, *exec, logger, events, builder);
    }
    if (const auto* sql = std::get_if<Config::Sql>(&config.handler)) {
      return tie_sql(config, *sql, builder);
    }
    return fail(Code::invalid, "there is no handler", "add --exec or --sql");
  };
  app::apply(line, setup);
  return app::run_program(setup);
}

}  // namespace tenure::cli
