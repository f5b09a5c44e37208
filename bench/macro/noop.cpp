// A no-op handler over a preloaded topic: what the runtime itself costs a record.
//
//   noop --brokers LIST --topic T --group G --records N [--order none|key|partition]
//        [--concurrency C] [--commit-interval-ms MS] [--async 1] [--x.PROPERTY VALUE]
//
// Prints one JSON line: records, seconds from the first record to the end of the drain with its
// commit, rate, CPU time, peak memory. The frontier and commits are on (tier A3).
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tenure/kafka/source.hpp"
#include "tenure/runtime.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  std::string brokers = "127.0.0.1:9092";
  std::string topic;
  std::string group = "noop";
  std::string order = "none";
  std::int64_t records = 0;
  bool async = false;
  tenure::Builder build;
  std::vector<std::pair<std::string, std::string>> properties;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--brokers") brokers = value;
    else if (flag == "--topic") topic = value;
    else if (flag == "--group") group = value;
    else if (flag == "--records") records = std::atoll(value.c_str());
    else if (flag == "--order") order = value;
    else if (flag == "--async") async = value == "1";
    else if (flag == "--concurrency")
      build.options().concurrency = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    else if (flag == "--commit-interval-ms")
      build.options().commit.interval = std::chrono::milliseconds(std::atoi(value.c_str()));
    else if (flag.rfind("--x.", 0) == 0) properties.emplace_back(flag.substr(4), value);
  }
  build.group(group);
  build.options().order = order == "key"         ? tenure::Order::key
                          : order == "partition" ? tenure::Order::partition
                                                 : tenure::Order::none;

  tenure::kafka::SourceOptions source_options;
  source_options.topics = {topic};
  source_options.hash = order == "key" ? tenure::kafka::SourceOptions::Hash::key
                                       : tenure::kafka::SourceOptions::Hash::none;
  source_options.properties = {{"bootstrap.servers", brokers},
                               {"group.id", group},
                               {"partition.assignment.strategy", "cooperative-sticky"},
                               {"fetch.wait.max.ms", "100"},
                               {"fetch.queue.backoff.ms", "10"},
                               {"queued.min.messages", "20000"},
                               {"heartbeat.interval.ms", "1000"}};
  for (auto& property : properties) source_options.properties.push_back(property);
  auto source = tenure::kafka::make_source(source_options);
  if (!source) {
    std::fprintf(stderr, "noop: %s\n", source.error().message.c_str());
    return 1;
  }

  std::atomic<std::int64_t> seen{0};
  Clock::time_point started;
  double cpu_started = 0;
  std::stop_source enough;
  const auto count = [&] {
    const std::int64_t n = seen.fetch_add(1, std::memory_order_relaxed) + 1;
    if (n == 1) {
      started = Clock::now();
      cpu_started = cpu_seconds();
    }
    if (n == records) enough.request_stop();
  };
  if (async) {
    build.on(topic, [&](const tenure::Record&, const tenure::Owner&, tenure::Completion c) {
      count();
      std::move(c).complete(tenure::done());
    });
  } else {
    build.on(topic, [&](const tenure::Record&, const tenure::Owner&) {
      count();
      return tenure::done();
    });
  }
  auto runtime = tenure::Runtime::create(build, {std::move(*source), nullptr, nullptr, {}});
  if (!runtime) {
    std::fprintf(stderr, "noop: %s\n", runtime.error().message.c_str());
    return 1;
  }
  const tenure::StopReport report = runtime->run(enough.get_token());
  const double took = seconds_since(started);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"contestant\":\"tenure\",\"order\":\"%s\",\"async\":%s,\"records\":%lld,\"seconds\":%.4f,"
      "\"rec_per_s\":%.0f,\"cpu_us_per_record\":%.4f,\"max_rss_mb\":%.1f,\"reason\":\"%s\"}\n",
      order.c_str(), async ? "true" : "false", static_cast<long long>(seen.load()), took,
      static_cast<double>(seen.load()) / took,
      (cpu_seconds() - cpu_started) * 1e6 / static_cast<double>(seen.load()),
      static_cast<double>(usage.ru_maxrss) / 1024, std::string(name(report.reason)).c_str());
  return seen.load() >= records ? 0 : 1;
}
