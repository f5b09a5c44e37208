#include "tenure/runtime.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "base/mutex.hpp"
#include "runtime/boot_time.hpp"
#include "runtime/loop.hpp"
#include "runtime/topic_pattern.hpp"

namespace tenure {
namespace {

using runtime::Executor;
using runtime::Loop;

std::string_view name(Handler::Shape shape) {
  switch (shape) {
    case Handler::Shape::single:
      return "one record";
    case Handler::Shape::batch:
      return "a batch";
    case Handler::Shape::async:
      return "a Completion";
  }
  return "unknown";
}

core::ResetPolicy policy_of(Reset reset) {
  switch (reset) {
    case Reset::earliest:
      return core::ResetPolicy::earliest;
    case Reset::latest:
      return core::ResetPolicy::latest;
    case Reset::error:
      return core::ResetPolicy::error;
  }
  return core::ResetPolicy::earliest;
}

/// What is wrong between options, routes and ports. `kind` is the resolved one.
void check_together(const std::vector<Route>& routes, const Ports& ports, Effect kind,
                    std::vector<Problem>& problems) {
  const auto add = [&](std::string key, std::string message, std::string hint) {
    problems.push_back({std::move(key), std::move(message), std::move(hint)});
  };
  if (ports.source == nullptr) add("source", "there is no source", "set Ports::source");
  for (const Route& route : routes) {
    const std::string where = "handler of topic \"" + route.topic + "\": ";
    const Handler& handler = route.handler;
    const bool callable = handler.shape == Handler::Shape::async ? handler.async != nullptr
                                                                 : handler.blocking != nullptr;
    if (!callable) add("topics", where + "is empty", "make one with make_handler()");
    if (handler.shape != routes.front().handler.shape ||
        handler.transaction != routes.front().handler.transaction) {
      add("topics",
          where + "takes " + std::string(name(handler.shape)) + ", that of \"" +
              routes.front().topic + "\" " + std::string(name(routes.front().handler.shape)) +
              "; shape and transaction must be the same for all",
          "run two programs");
    }
    if (handler.transaction != nullptr && ports.store == nullptr) {
      add("store", where + "takes a transaction, but there is no store", "set Ports::store");
    } else if (handler.transaction != nullptr &&
               handler.transaction != ports.store->transaction_kind()) {
      add("store",
          where + "takes a transaction of another store than the one given, " +
              std::string(ports.store->name()),
          "use that store's Transaction type");
    }
    if (handler.transaction != nullptr && kind != Effect::transaction) {
      add("effect.kind", where + "takes a transaction, but the kind is idempotent",
          "use Effect::transaction");
    }
    if (handler.shape == Handler::Shape::async && kind == Effect::transaction) {
      add("effect.kind", where + "is async, and an async handler has no transaction",
          "use Effect::idempotent");
    }
    if (route.topic.empty()) add("topics", "a topic has no name", {});
    if (runtime::TopicPattern::is_pattern(route.topic)) {
      const Result<runtime::TopicPattern> compiled = runtime::TopicPattern::compile(route.topic);
      if (!compiled) add("topics", compiled.error().message, {});
    }
  }
  if (kind == Effect::transaction && ports.store == nullptr) {
    add("effect.kind", "transaction needs a store", "set Ports::store or use Effect::idempotent");
  }
}

Effect kind_of(const Options& options, const std::vector<Route>& routes, const Ports& ports) {
  if (options.effect.kind) return *options.effect.kind;
  const bool async = !routes.empty() && routes.front().handler.shape == Handler::Shape::async;
  return ports.store != nullptr && !async ? Effect::transaction : Effect::idempotent;
}

core::EngineOptions engine_options(const Options& options, const Handler& handler, Effect kind,
                                   bool store, const Ports& ports) {
  core::EngineOptions engine;
  engine.group = options.group;
  engine.scope = options.effect.scope.empty() ? options.group : options.effect.scope;
  engine.order = options.order;
  engine.async = handler.shape == Handler::Shape::async;
  engine.concurrency = options.concurrency;
  engine.fence = store;
  engine.progress = kind == Effect::transaction;
  engine.lanes = options.lanes.value_or(options.order == Order::partition ? std::uint16_t{1}
                                                                          : std::uint16_t{8});
  const bool batch = handler.shape == Handler::Shape::batch;
  if (batch || engine.progress) engine.batch_records = options.batch.records_max;
  // A handler with a transaction of its own gains nothing by waiting for more.
  if (batch || handler.transaction != nullptr) engine.batch_wait = options.batch.wait_max;
  engine.window_records = options.window.records;
  engine.window_bytes = options.window.bytes;
  engine.window_records_total = options.window.records_total;
  engine.window_bytes_total = options.window.bytes_total;
  // Enough for the workers to find their next run there, few enough to stay in the cache.
  engine.ready_max = 1000 + std::uint64_t{2} * options.concurrency;
  engine.attempts = options.retry.attempts;
  engine.backoff_min = options.retry.backoff_min;
  engine.backoff_max = options.retry.backoff_max;
  engine.jitter = options.retry.jitter;
  engine.retry_waiting_max = options.retry.waiting_max;
  engine.exhausted = options.retry.exhausted;
  engine.commit_interval = options.commit.interval;
  engine.start_position = options.commit.start_position;
  engine.drain_budget = options.drain.budget;
  engine.commit_slice = options.drain.commit;
  engine.drain_margin = options.drain.margin;
  engine.shutdown_budget = options.shutdown.budget;
  engine.close_limit = options.shutdown.close;
  engine.reset = policy_of(options.reset);
  engine.record_events =
      std::any_of(ports.observers.begin(), ports.observers.end(),
                  [](const std::shared_ptr<Observer>& each) { return each->wants_records(); });
  engine.until_end = options.until_end;
  engine.seed = options.seed;
  if (engine.seed == 0) {
    std::random_device device;
    engine.seed = (std::uint64_t{device()} << 32) | device();
  }
  return engine;
}

std::string lines_of(const std::vector<Problem>& problems) {
  std::string lines;
  for (const Problem& problem : problems) {
    if (!lines.empty()) lines += '\n';
    lines += problem.message + " [" + problem.key + "]";
    if (!problem.hint.empty()) lines += "; " + problem.hint;
  }
  return lines;
}

}  // namespace

std::string_view name(StopReport::Reason reason) {
  switch (reason) {
    case StopReport::Reason::drained:
      return "drained";
    case StopReport::Reason::outcome_stop:
      return "outcome_stop";
    case StopReport::Reason::cut_short:
      return "cut_short";
    case StopReport::Reason::fenced:
      return "fenced";
    case StopReport::Reason::fatal:
      return "fatal";
    case StopReport::Reason::config:
      return "config";
  }
  return "unknown";
}

struct Runtime::Impl {
  std::shared_ptr<Loop> loop;
  std::chrono::milliseconds shutdown_budget{};

  Mutex mutex;
  Condition changed;
  enum class Phase : std::uint8_t { made, running, ended };
  Phase phase TENURE_GUARDED_BY(mutex) = Phase::made;
  StopReport report TENURE_GUARDED_BY(mutex);

  StopReport stop(std::chrono::milliseconds budget) {
    loop->request_stop(budget);
    Lock lock(mutex);
    while (phase == Phase::running) changed.wait(mutex);
    return report;
  }

  ~Impl() {
    stop(std::chrono::milliseconds(0));
    loop->close_store();
  }
};

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::Runtime(Runtime&& other) noexcept = default;
Runtime& Runtime::operator=(Runtime&& other) noexcept = default;
Runtime::~Runtime() = default;

Result<Runtime> Runtime::create(const Builder& build, Ports ports) {
  const std::vector<Problem> problems = build.validate();
  if (!problems.empty()) return fail(Code::invalid, lines_of(problems));
  return create(build.options(), build.routes(), std::move(ports));
}

Result<Runtime> Runtime::create(Options options, std::vector<Route> routes, Ports ports) {
  Builder build(options);
  for (const Route& route : routes) build.on(route.topic, route.handler);
  std::vector<Problem> problems = build.validate();
  const Effect kind = kind_of(options, routes, ports);
  check_together(routes, ports, kind, problems);
  if (!problems.empty()) return fail(Code::invalid, lines_of(problems));

  if (ports.clock == nullptr) ports.clock = std::make_shared<runtime::BootTime>();
  const Handler& handler = routes.front().handler;
  Loop::Setup setup;
  setup.engine = engine_options(options, handler, kind, ports.store != nullptr, ports);
  setup.executor.store = ports.store.get();
  setup.executor.units = handler.transaction != nullptr;
  setup.executor.progress = setup.engine.progress;
  setup.executor.ordered = options.order != Order::none || setup.engine.progress;
  setup.routes = std::move(routes);
  setup.ports = std::move(ports);
  setup.shutdown_budget = options.shutdown.budget;
  auto impl = std::make_unique<Impl>();
  impl->loop = std::make_shared<Loop>(std::move(setup));
  impl->shutdown_budget = options.shutdown.budget;
  const Result<void> opened = impl->loop->open_store();
  if (!opened) return tl::unexpected<Error>(opened.error());
  return Runtime(std::move(impl));
}

StopReport Runtime::run(std::stop_token token) {
  {
    Lock lock(impl_->mutex);
    if (impl_->phase != Impl::Phase::made) {
      StopReport twice;
      twice.reason = StopReport::Reason::fatal;
      twice.message = "Runtime::run() was called twice; make a new Runtime";
      return twice;
    }
    impl_->phase = Impl::Phase::running;
  }
  const StopReport report = impl_->loop->run(token);
  Lock lock(impl_->mutex);
  impl_->report = report;
  impl_->phase = Impl::Phase::ended;
  impl_->changed.notify_all();
  return report;
}

StopReport Runtime::stop(std::chrono::milliseconds budget) {
  return impl_->stop(budget);
}
void Runtime::request_stop(std::chrono::milliseconds budget) {
  impl_->loop->request_stop(budget);
}
void Runtime::abandon() {
  impl_->loop->abandon();
}
Status Runtime::status() const {
  return impl_->loop->status();
}

}  // namespace tenure
