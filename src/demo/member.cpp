#include "demo/member.hpp"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "app/app_signals.hpp"
#include "app/wiring.hpp"
#include "base/mutex.hpp"
#include "demo/account_book.hpp"
#include "demo/clerk.hpp"
#include "demo/member_line.hpp"
#include "observe/log_observer.hpp"
#include "tenure/options.hpp"
#include "tenure/runtime.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::demo {
namespace {

using std::chrono::milliseconds;

/// stdout, a line at a time.
class Voice final : public Observer {
 public:
  void say(const MemberEvent& event) {
    const std::string line = to_line(event);
    const Lock lock(mutex_);
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void on_event(const Event& event) override {
    if (const std::optional<MemberEvent> told = member_event(event)) say(*told);
  }

 private:
  Mutex mutex_;
};

/// Looks every so often how far owners are ahead of their frontier.
class GapWatch {
 public:
  GapWatch(const Runtime& runtime, Voice& voice)
      : thread_([&runtime, &voice](const std::stop_token& stop) {
          Mutex mutex;
          Condition changed;
          const std::stop_callback wake(stop, [&] {
            const Lock lock(mutex);
            changed.notify_all();
          });
          std::map<std::int32_t, std::int64_t> told;
          while (!stop.stop_requested()) {
            for (const OwnerStatus& owner : runtime.status().owners) {
              const auto gap = static_cast<std::int64_t>(owner.completed_above);
              if (std::exchange(told[owner.partition.value()], gap) == gap) continue;
              MemberEvent event;
              event.name = "gap";
              event.partition = owner.partition.value();
              event.grant = static_cast<std::int64_t>(owner.grant.value());
              event.count = gap;
              voice.say(event);
            }
            const Lock lock(mutex);
            const auto until = std::chrono::steady_clock::now() + milliseconds(250);
            while (!stop.stop_requested() && changed.wait_until(mutex, until)) {
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

/// Commands of the parent, until it goes away.
void listen(Clerk& clerk) {
  for (std::string line; std::getline(std::cin, line);) static_cast<void>(clerk.command(line));
}

Options options_of(const MemberSettings& settings) {
  Options options;
  options.group = settings.group;
  options.kafka = settings.kafka;
  options.commit.interval = milliseconds(500);
  options.drain.budget = milliseconds(1'000);
  options.drain.commit = milliseconds(1'000);
  options.shutdown.budget = milliseconds(3'000);
  options.shutdown.close = milliseconds(2'000);
  options.seed = settings.seed;
  options.effect.kind = settings.plain ? Effect::idempotent : Effect::transaction;
  return options;
}

app::ExitCode failed(const Error& error) {
  ::fprintf(stderr, "demo-member: %s\n", error.message.c_str());
  return app::ExitCode::internal;
}

}  // namespace

app::ExitCode run_member() {
  std::string line;
  if (!std::getline(std::cin, line)) return app::ExitCode::usage;
  const std::optional<MemberSettings> settings = settings_of(line);
  if (!settings) return app::ExitCode::usage;

  Result<AccountBook> book = AccountBook::open(settings->database);
  if (!book) return failed(book.error());
  const auto voice = std::make_shared<Voice>();
  Clerk::Options clerk_options;
  clerk_options.plain = settings->plain;
  clerk_options.seed = settings->seed;
  clerk_options.work = milliseconds(settings->work_ms);
  clerk_options.slow = milliseconds(settings->slow_ms);
  // Shared with handlers that nobody waits for (R9).
  const auto clerk = std::make_shared<Clerk>(
      std::move(*book), clerk_options, [voice](const MemberEvent& event) { voice->say(event); },
      [] { ::raise(SIGSTOP); });

  const Options options = options_of(*settings);
  Ports ports;
  if (!settings->plain) {
    sqlite::Options store;
    store.path = settings->database;
    store.synchronous = sqlite::Synchronous::normal;
    store.busy_timeout = milliseconds(1'000);
    auto made = sqlite::make_store(store);
    if (!made) return failed(made.error());
    ports.store = std::move(*made);
  }
  auto source = app::make_source(options, {settings->topic}, !settings->plain);
  if (!source) return failed(source.error());
  ports.source = std::move(*source);
  ports.observers.push_back(voice);
  // For whoever keeps the folder; nothing is judged from it.
  ports.observers.push_back(std::make_shared<observe::LogObserver>(
      observe::LogOptions{observe::LogFormat::json, Level::info, false},
      [](Level, std::string_view text) {
        ::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
      }));

  Builder build(options);
  build.on(settings->topic, [clerk](const Record& record, const Owner& owner) -> Outcome {
    return clerk->handle(record, owner);
  });
  Result<Runtime> runtime = Runtime::create(build, ports);
  if (!runtime) return failed(runtime.error());

  std::thread([clerk] { listen(*clerk); }).detach();
  StopReport report;
  {
    int asked = 0;
    const app::Signals signals([&](int number) {
      if (number == SIGHUP || number == SIGUSR1) return;
      clerk->end();
      if (++asked == 1) {
        runtime->request_stop(options.shutdown.budget);
      } else {
        runtime->abandon();
      }
    });
    const GapWatch watch(*runtime, *voice);
    report = runtime->run();
  }
  if (!report.message.empty()) ::fprintf(stderr, "demo-member: %s\n", report.message.c_str());
  return app::exit_code_of(report.reason);
}

}  // namespace tenure::demo
