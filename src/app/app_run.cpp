#include "app/app_run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "app/app_broker.hpp"
#include "app/app_signals.hpp"
#include "app/config_json.hpp"
#include "app/wiring.hpp"
#include "base/mutex.hpp"
#include "observe/history_writer.hpp"
#include "observe/line_text.hpp"
#include "observe/log_observer.hpp"
#include "tenure/kafka/source.hpp"
#include "tenure/runtime.hpp"
#include "tenure/version.hpp"

namespace tenure::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr milliseconds ready_limit{30'000};
constexpr milliseconds said_within{4'500};   // "says so within 5 s"
constexpr milliseconds progress_every{10'000};
constexpr milliseconds abandoned_within{900};  // "a second signal within 1 s"
constexpr milliseconds store_retry{1'000};

/// A flag that can be waited for.
class Flag {
 public:
  void set() {
    const Lock lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool is_set() const {
    const Lock lock(mutex_);
    return set_;
  }
  /// True when it was set in time.
  bool wait(milliseconds time) const {
    const auto until = steady_clock::now() + time;
    const Lock lock(mutex_);
    while (!set_ && changed_.wait_until(mutex_, until)) {
    }
    return set_;
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  bool set_ TENURE_GUARDED_BY(mutex_) = false;
};

/// stderr, a line at a time, from any thread.
void write_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  static_cast<void>(::fwrite(text.data(), 1, text.size(), stderr));
}

/// Counts what app.stopped tells, and sees the first join.
class Tally final : public Observer {
 public:
  explicit Tally(std::function<void()> joined) : joined_(std::move(joined)) {}
  void on_event(const Event& event) override {
    if (event.name == EventName::effect_refused) ++refused_;
    if (event.name == EventName::record_late) ++late_;
    if (event.name == EventName::group_joined && !std::exchange(seen_, true)) first_join_ = true;
  }
  /// Called after an event was handed out, by whoever handed it out.
  void after() {
    if (first_join_.exchange(false)) joined_();
  }
  [[nodiscard]] std::int64_t refused() const { return refused_; }
  [[nodiscard]] std::int64_t late() const { return late_; }

 private:
  const std::function<void()> joined_;
  bool seen_ = false;
  std::atomic<bool> first_join_{false};
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::int64_t> late_{0};
};

std::string local_clock() {
  std::string out;
  observe::append_local_clock(out, std::chrono::system_clock::now());
  return out;
}

std::string utc_clock() {
  std::string out;
  observe::append_utc(out, std::chrono::system_clock::now());
  return out;
}

/// Sums over owners that a progress line shows.
struct Sums {
  std::uint64_t owned = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t gap = 0;
};
Sums sums_of(const Status& status) {
  Sums sums;
  for (const OwnerStatus& owner : status.owners) {
    if (owner.state == OwnerState::retired) continue;
    ++sums.owned;
    sums.in_flight += owner.in_flight;
    sums.gap += owner.completed_above;
  }
  return sums;
}

class Program {
 public:
  Program(const RunSetup& setup, Config config)
      : setup_(setup), config_(std::move(config)), json_(json_wanted(config_.log.format)),
        log_(std::make_shared<observe::LogObserver>(log_options(), sink())),
        logger_(std::make_shared<observe::LineLogger>(log_options(), sink())),
        tally_(std::make_shared<Tally>([this] { ready_.set(); })) {
    events_.group(config_.kafka.group_id);
    events_.add(log_);
    events_.add(tally_);
  }

  ExitCode run() {
    Builder builder(runtime_options(config_));
    builder.options().until_end = setup_.until_end;
    Result<Handlers> handlers = setup_.tie(config_, *logger_, events_, builder);
    if (!handlers) return refused(handlers.error());
    handlers_ = std::move(*handlers);
    const ExitCode code = run_tied(builder);
    if (handlers_.ended) handlers_.ended();
    return code;
  }

  /// A handler that nobody waits for any more may still be running.
  [[nodiscard]] bool handlers_left() const { return handlers_left_; }

 private:
  [[nodiscard]] static bool json_wanted(LogFormat format) {
    return format == LogFormat::json ||
           (format == LogFormat::automatic && ::isatty(STDERR_FILENO) == 0);
  }
  [[nodiscard]] observe::LogOptions log_options() const {
    observe::LogOptions options;
    options.format = json_ ? observe::LogFormat::json : observe::LogFormat::text;
    options.level = config_.log.level;
    options.color = setup_.color && !json_;
    return options;
  }
  static observe::LineSink sink() {
    return [](Level, std::string_view line) { write_line(line); };
  }

  ExitCode refused(const Error& error) {
    const std::string text = error.message + (error.hint.empty() ? "" : "; " + error.hint);
    const Field fields[] = {{"error", std::string_view(text)}};
    events_.say(EventName::config_rejected, fields);
    switch (error.code) {
      case Code::unavailable: return ExitCode::unreachable;
      case Code::internal: return ExitCode::internal;
      default: return ExitCode::config_invalid;
    }
  }

  ExitCode run_tied(Builder& builder) {
    const std::string client = kafka::client_version();
    events_.say(EventName::app_starting, {{"version", std::string_view(TENURE_VERSION)},
                                          {"client", std::string_view(client)}});
    const std::string sha = config_sha256(config_);
    events_.say(EventName::config_loaded, {{"sha256", std::string_view(sha)}});
    const Signals signals([this](int number) { on_signal(number); });

    if (setup_.require_ready) {
      if (const auto code = wait_for_broker()) return *code;
    }
    if (setup_.history) {
      if (auto code = open_history()) return *code;
    }
    Result<std::unique_ptr<EffectStore>> store = make_store(config_);
    if (!store) return refused(store.error());
    Ports ports;
    ports.store = std::move(*store);
    Result<std::unique_ptr<Source>> source =
        make_source(builder.options(), builder.topics(), ports.store != nullptr);
    if (!source) return refused(source.error());
    ports.source = std::move(*source);
    ports.observers.push_back(std::make_shared<Forward>(events_, *tally_, handlers_));
    Result<Runtime> runtime = create(builder, ports);
    if (!runtime) return stop_asked_.is_set() ? ended_early() : away(runtime.error());
    return run_member(*runtime);
  }

  /// Hands the loop's events on; the stream outlives it.
  class Forward final : public Observer {
   public:
    Forward(EventStream& events, Tally& tally, const Handlers& handlers)
        : events_(events), tally_(tally), handlers_(handlers) {}
    void on_event(const Event& event) override {
      events_.on_event(event);
      tally_.after();
      if (event.name == EventName::app_draining && handlers_.stopping) handlers_.stopping();
    }
    [[nodiscard]] bool wants_records() const override { return events_.wants_records(); }

   private:
    EventStream& events_;
    Tally& tally_;
    const Handlers& handlers_;
  };

  /// Tries again while the store is merely away.
  Result<Runtime> create(const Builder& builder, const Ports& ports) {
    const auto deadline = steady_clock::now() + ready_limit;
    bool said = false;
    while (true) {
      Result<Runtime> made = Runtime::create(builder, ports);
      if (made || !made.error().retriable) return made;
      if (!std::exchange(said, true)) {
        const std::string text = made.error().message;
        events_.say(EventName::store_unavailable, {{"error", std::string_view(text)}});
      }
      if (setup_.require_ready && steady_clock::now() > deadline) return made;
      if (stop_asked_.wait(store_retry)) return made;
    }
  }

  ExitCode away(const Error& error) {
    if (!error.retriable) return refused(error);
    const std::string text = "the store is not ready: " + error.message;
    const Field fields[] = {{"check", std::string_view("store")},
                            {"status", std::string_view("fail")},
                            {"text", std::string_view(text)}};
    events_.say(EventName::health_changed, fields, Level::error);
    return ExitCode::unreachable;
  }

  ExitCode ended_early() {
    say_stopped({}, ExitCode::ok);
    return ExitCode::ok;
  }

  void broker_health(std::string_view status, std::string_view text, Level level) {
    const Field fields[] = {{"check", std::string_view("broker")}, {"status", status},
                            {"text", text}};
    events_.say(EventName::health_changed, fields, level);
  }

  std::optional<ExitCode> wait_for_broker() {
    const auto deadline = steady_clock::now() + ready_limit;
    bool said = false;
    while (true) {
      const auto found = ask_brokers(config_.kafka.properties, false, said_within,
                                     [this] { return stop_asked_.is_set(); });
      if (stop_asked_.is_set()) return ended_early();
      if (found) {
        cluster_ = found->cluster;
        return {};
      }
      const std::string text = config_.kafka.bootstrap_servers + ": " + found.error().message;
      if (found.error().code == Code::refused) {
        broker_health("fail", text, Level::error);
        return ExitCode::access_refused;
      }
      if (steady_clock::now() > deadline) {
        broker_health("fail", "no broker within 30 s: " + text, Level::error);
        return ExitCode::unreachable;
      }
      if (!std::exchange(said, true)) broker_health("fail", text + "; trying on", Level::warn);
      stop_asked_.wait(milliseconds(200));
    }
  }

  /// Says within 5 s that no broker answers, and when one does.
  void watch_broker() {
    bool said = false;
    while (!over_.is_set()) {
      const auto found = ask_brokers(config_.kafka.properties, false, said_within,
                                     [this] { return over_.is_set(); });
      if (over_.is_set()) return;
      if (found) {
        if (said) broker_health("ok", "a broker answers", Level::info);
        return;
      }
      if (!std::exchange(said, true)) {
        broker_health("fail",
                      config_.kafka.bootstrap_servers + ": " + found.error().message +
                          "; trying on",
                      Level::warn);
      }
      over_.wait(seconds(1));
    }
  }

  std::optional<ExitCode> open_history() {
    observe::HistoryStart start;
    std::random_device device;
    start.run = fmt::format("{:08x}", device());
    start.tool = TENURE_VERSION;
    start.cluster = cluster_;
    start.group = config_.kafka.group_id;
    start.kind = config_.effect.kind == EffectKind::transaction ? "transaction" : "idempotent";
    for (const std::string& topic : config_.topics) start.topics.push_back({topic, {}, 0});
    auto made = observe::HistoryWriter::create(
        *setup_.history, start, fmt::format("{}.1", ::getpid()), [](const Error& error) {
          write_line("history: " + error.message + "; nothing more is written to it");
        });
    if (!made) return refused(made.error());
    history_ = std::move(*made);
    events_.add(history_);
    return {};
  }

  ExitCode run_member(Runtime& runtime) {
    {
      const Lock lock(mutex_);
      runtime_ = &runtime;
      // Once: to ask again with a budget of 0 would be to abandon.
      if (stop_asked_.is_set()) runtime.request_stop(config_.shutdown.budget);
    }
    std::thread broker([this] { watch_broker(); });
    std::thread progress([this, &runtime] { show_progress(runtime); });
    const StopReport report = runtime.run();
    over_.set();
    {
      const Lock lock(mutex_);
      runtime_ = nullptr;
    }
    progress.join();
    broker.join();
    handlers_left_ = report.abandoned > 0;
    const ExitCode code = exit_code_of(report.reason);
    say_stopped(report, code);
    if (history_ != nullptr) {
      const auto closed = history_->close();
      if (!closed) write_line("history: " + closed.error().message);
    }
    return code;
  }

  void say_stopped(const StopReport& report, ExitCode code) {
    std::vector<Field> fields = {
        {"drained", static_cast<std::int64_t>(report.drained)},
        {"abandoned", static_cast<std::int64_t>(report.abandoned)},
        {"committed", static_cast<std::int64_t>(report.committed)},
        {"unresolved", static_cast<std::int64_t>(report.unresolved)},
        {"refused", tally_->refused()},
        {"late", tally_->late()},
        {"exit", std::int64_t{number(code)}},
    };
    if (!report.message.empty()) fields.push_back({"reason", std::string_view(report.message)});
    events_.say(EventName::app_stopped, fields,
                code == ExitCode::ok ? std::optional<Level>() : Level::error);
  }

  void show_progress(const Runtime& runtime) {
    std::uint64_t before = 0;
    bool said_ready = false;
    auto next = steady_clock::now() + progress_every;
    while (true) {
      // app.ready follows the first join at once, the line every ten seconds.
      if (!said_ready && ready_.wait(milliseconds(0))) {
        said_ready = true;
        events_.say(EventName::app_ready, {});
      }
      const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
      const milliseconds slice =
          said_ready ? left : std::min<milliseconds>(left, milliseconds(100));
      if (over_.wait(std::max(slice, milliseconds(0)))) return;
      if (steady_clock::now() < next) continue;
      next += progress_every;
      if (config_level() < Level::info) continue;
      const Status status = runtime.status();
      if (!status.running) continue;
      const double rate = static_cast<double>(status.handled - before) /
                          std::chrono::duration<double>(progress_every).count();
      before = status.handled;
      const Sums sums = sums_of(status);
      if (json_) {
        const nlohmann::json line = {{"ts", utc_clock()},
                                     {"level", "info"},
                                     {"event", "progress"},
                                     {"group", config_.kafka.group_id},
                                     {"done_per_s", rate},
                                     {"in_flight", sums.in_flight},
                                     {"concurrency", config_.concurrency},
                                     {"gap", sums.gap},
                                     {"owned", sums.owned}};
        write_line(line.dump());
      } else {
        write_line(fmt::format("{} progress  {:.0f} done/s  in flight {}/{}  gap {}  owned {}",
                               local_clock(), rate, sums.in_flight, config_.concurrency, sums.gap,
                               sums.owned));
      }
    }
  }

  [[nodiscard]] Level config_level() const { return level_.load(std::memory_order_relaxed); }

  void on_signal(int number) {
    switch (number) {
      case SIGHUP: reload(); return;
      case SIGUSR1: show_state(); return;
      default: break;
    }
    const int asked = ++stops_;
    if (asked == 1) {
      const Lock lock(mutex_);
      stop_asked_.set();
      if (runtime_ != nullptr) runtime_->request_stop(config_.shutdown.budget);
      return;
    }
    {
      const Lock lock(mutex_);
      if (runtime_ != nullptr) runtime_->abandon();
    }
    if (asked > 2) return;
    // Whatever hangs: this is the promise.
    std::thread([] {
      ::timespec time{0, std::chrono::nanoseconds(abandoned_within).count()};
      ::nanosleep(&time, nullptr);
      ::_exit(app::number(ExitCode::drain_cut_short));
    }).detach();
  }

  void reload() {
    LoadedConfig loaded = load_config(setup_.sources);
    std::string error;
    if (!loaded.config) {
      for (const Fault& fault : loaded.faults) {
        if (fault.severity == Fault::Severity::warning) continue;
        error += (error.empty() ? "" : "; ") + to_string(fault);
      }
    } else if (const auto keys = restart_keys(config_, *loaded.config); !keys.empty()) {
      error = "nothing was changed: a restart is needed for ";
      for (const std::string& key : keys) error += (key == keys.front() ? "" : ", ") + key;
    }
    if (!error.empty()) {
      events_.say(EventName::config_rejected, {{"error", std::string_view(error)}});
      return;
    }
    level_.store(loaded.config->log.level, std::memory_order_relaxed);
    log_->set_level(loaded.config->log.level);
    logger_->set_level(loaded.config->log.level);
    const std::string sha = config_sha256(*loaded.config);
    events_.say(EventName::config_loaded, {{"sha256", std::string_view(sha)}});
  }

  /// Asked for by a person: at every level.
  void show_state() {
    Status status;
    {
      const Lock lock(mutex_);
      if (runtime_ != nullptr) status = runtime_->status();
    }
    nlohmann::json owners = nlohmann::json::array();
    for (const OwnerStatus& owner : status.owners) {
      nlohmann::json shown = {{"topic", owner.topic},
                              {"partition", owner.partition.value()},
                              {"grant", owner.grant.value()},
                              {"state", name(owner.state)},
                              {"frontier", owner.frontier.value()},
                              {"above", owner.completed_above},
                              {"in_flight", owner.in_flight},
                              {"window_records", owner.window_records},
                              {"window_bytes", owner.window_bytes},
                              {"cause", nullptr},
                              {"token", nullptr},
                              {"committed", nullptr}};
      if (!owner.cause.empty()) shown["cause"] = owner.cause;
      if (owner.fence) shown["token"] = owner.fence->token.value();
      if (owner.committed) shown["committed"] = owner.committed->value();
      owners.push_back(std::move(shown));
    }
    const nlohmann::json state = {{"ts", utc_clock()},
                                  {"event", "state"},
                                  {"group", config_.kafka.group_id},
                                  {"member", status.member.id},
                                  {"epoch", status.member.epoch.value()},
                                  {"running", status.running},
                                  {"owners", owners},
                                  {"totals",
                                   {{"lost", status.lost},
                                    {"late", status.late},
                                    {"refused", status.refused},
                                    {"replayed", status.replayed},
                                    {"parked", status.parked}}}};
    write_line(json_ ? state.dump() : local_clock() + " state  " + state.dump());
  }

  const RunSetup& setup_;
  const Config config_;
  const bool json_;
  const std::shared_ptr<observe::LogObserver> log_;
  const std::shared_ptr<observe::LineLogger> logger_;
  Flag ready_;       ///< joined for the first time
  Flag stop_asked_;  ///< by a signal
  Flag over_;        ///< the run has ended
  const std::shared_ptr<Tally> tally_;
  EventStream events_;
  std::shared_ptr<observe::HistoryWriter> history_;
  Handlers handlers_;
  std::string cluster_;
  std::atomic<Level> level_{config_.log.level};
  bool handlers_left_ = false;
  int stops_ = 0;  ///< signals' thread

  Mutex mutex_;
  Runtime* runtime_ TENURE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace

ExitCode run_program(const RunSetup& setup) {
  RunSetup checked = setup;
  checked.sources.check_property = kafka::check_property;
  LoadedConfig loaded = load_config(checked.sources);
  print_faults(loaded.faults, true);
  if (!loaded.config) return ExitCode::config_invalid;
  ExitCode code = ExitCode::ok;
  {
    Program program(checked, std::move(*loaded.config));
    code = program.run();
    if (program.handlers_left()) {
      // Destructors would pull the ground from under its feet.
      ::fflush(nullptr);
      ::_exit(number(code));
    }
  }
  return code;
}

void print_faults(const std::vector<Fault>& faults, bool warnings) {
  for (const Fault& fault : faults) {
    if (warnings || fault.severity == Fault::Severity::error) write_line(to_string(fault));
  }
}

std::vector<FlagSpec> flags_of_every_verb() {
  return {
      {"-c,--config", "FILE", "configuration, YAML or JSON"},
      {"-b,--brokers", "BROKERS", "host:port, separated by commas"},
      {"-g,--group", "GROUP", "consumer group"},
      {"-t,--topic", "TOPIC", "topic names or ^regex", {}, true},
      {"-X", "PROPERTY=VALUE", "client properties, verbatim", {}, true},
      {"-o,--output", "FORMAT", "format of what is printed", {"text", "wide", "json"}},
      {"-q,--quiet", "", "warnings and errors only"},
      {"-v,--verbose", "", "debug events too"},
      {"--color", "WHEN", "color on a terminal", {"auto", "always", "never"}},
      {"--ascii", "", "no characters beyond ASCII"},
  };
}

std::vector<FlagSpec> flags_of_run() {
  return {
      {"--order", "ORDER", "what is handled one after the other", {"key", "partition", "none"}},
      {"--concurrency", "N", "handlers at once"},
      {"--require-ready", "", "wait 30 s for broker and store, else exit 69"},
      {"--until-end", "", "stop at the log ends of the first join"},
      {"--history", "FILE", "write what happens to a new file, as JSON lines"},
  };
}

ConfigSources sources_of(const Parsed& parsed) {
  ConfigSources sources;
  sources.environment = process_environment();
  sources.file = parsed.value("--config");
  sources.check_property = kafka::check_property;
  const auto give = [&](std::string key, std::string_view flag, std::string name) {
    if (const auto value = parsed.value(flag)) {
      sources.flags.push_back({std::move(key), {*value}, std::move(name)});
    }
  };
  give("kafka.bootstrap.servers", "--brokers", "-b");
  give("kafka.group.id", "--group", "-g");
  if (const auto topics = parsed.all("--topic"); !topics.empty()) {
    sources.flags.push_back({"topics", topics, "-t"});
  }
  for (const std::string& property : parsed.all("-X")) {
    const std::size_t equal = property.find('=');
    const std::string name = property.substr(0, equal);
    const std::string value =
        equal == std::string::npos ? std::string() : property.substr(equal + 1);
    sources.flags.push_back({"kafka." + name, {value}, "-X"});
  }
  give("order", "--order", "--order");
  give("concurrency", "--concurrency", "--concurrency");
  if (parsed.on("--verbose")) {
    sources.flags.push_back({"log.level", {"debug"}, "-v"});
  } else if (parsed.on("--quiet")) {
    sources.flags.push_back({"log.level", {"warn"}, "-q"});
  }
  if (parsed.value("--output") == "json") {
    sources.flags.push_back({"log.format", {"json"}, "-o"});
  } else if (parsed.on("--output")) {
    sources.flags.push_back({"log.format", {"text"}, "-o"});
  }
  return sources;
}

void apply(const Parsed& parsed, RunSetup& setup) {
  setup.require_ready = parsed.on("--require-ready");
  setup.until_end = parsed.on("--until-end");
  setup.history = parsed.value("--history");
  setup.color = color_wanted(parsed, STDERR_FILENO);
}

bool color_wanted(const Parsed& parsed, int descriptor) {
  const std::string when = parsed.value("--color").value_or("auto");
  if (when != "auto") return when == "always";
  const char* no_color = ::getenv("NO_COLOR");
  const char* term = ::getenv("TERM");
  return ::isatty(descriptor) != 0 && (no_color == nullptr || *no_color == '\0') &&
         term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace tenure::app
