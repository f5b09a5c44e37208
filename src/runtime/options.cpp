#include "tenure/options.hpp"

#include <algorithm>
#include <cmath>

namespace tenure {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t records_most = std::uint64_t{1} << 30;
constexpr std::uint64_t bytes_least = 65'536;
constexpr std::uint64_t bytes_most = std::uint64_t{1} << 40;
constexpr std::int64_t hour_ms = 3'600'000;

class Checks {
 public:
  template <class Number>
  void range(std::string key, Number value, std::uint64_t least, std::uint64_t most) {
    const auto number = static_cast<std::uint64_t>(value);
    if (number >= least && number <= most) return;
    add(std::move(key), std::to_string(number) + " is outside of " + std::to_string(least) +
                            " .. " + std::to_string(most));
  }
  void range(std::string key, milliseconds value, std::int64_t least_ms, std::int64_t most_ms) {
    if (value.count() >= least_ms && value.count() <= most_ms) return;
    add(std::move(key), std::to_string(value.count()) + " ms is outside of " +
                            std::to_string(least_ms) + " .. " + std::to_string(most_ms) + " ms");
  }
  void add(std::string key, std::string message, std::string hint = {}) {
    problems.push_back({std::move(key), std::move(message), std::move(hint)});
  }

  std::vector<Problem> problems;
};

bool same(const Options::BatchLimits& a, const Options::BatchLimits& b) {
  return a.records_max == b.records_max && a.wait_max == b.wait_max;
}
bool same(const Options::Window& a, const Options::Window& b) {
  return a.records == b.records && a.bytes == b.bytes && a.records_total == b.records_total &&
         a.bytes_total == b.bytes_total;
}
bool same(const Options::Retry& a, const Options::Retry& b) {
  return a.attempts == b.attempts && a.backoff_min == b.backoff_min &&
         a.backoff_max == b.backoff_max && std::equal_to<double>{}(a.jitter, b.jitter) &&
         a.waiting_max == b.waiting_max && a.exhausted == b.exhausted;
}

}  // namespace

std::string_view name(Effect effect) {
  switch (effect) {
    case Effect::transaction:
      return "transaction";
    case Effect::idempotent:
      return "idempotent";
  }
  return "unknown";
}

std::string_view name(Reset reset) {
  switch (reset) {
    case Reset::earliest:
      return "earliest";
    case Reset::latest:
      return "latest";
    case Reset::error:
      return "error";
  }
  return "unknown";
}

std::vector<Problem> Options::validate() const {
  Checks checks;
  if (group.empty()) {
    checks.add("kafka.group.id", "the consumer group has no name", "set Options::group");
  }
  if (lanes) checks.range("lanes", *lanes, 1, 1024);
  if (lanes && order == Order::partition && *lanes != 1) {
    checks.add("lanes", std::to_string(*lanes) + " lanes with order partition",
               "order partition is one lane; leave `lanes` out");
  }
  checks.range("concurrency", concurrency, 1, 65'536);
  checks.range("window.records", window.records, 1, records_most);
  checks.range("window.bytes", window.bytes, bytes_least, bytes_most);
  checks.range("window.records_total", window.records_total, 1, records_most);
  checks.range("window.bytes_total", window.bytes_total, bytes_least, bytes_most);
  checks.range("retry.attempts", retry.attempts, 1, 1000);
  checks.range("retry.backoff_min_ms", retry.backoff_min, 1, hour_ms);
  checks.range("retry.backoff_max_ms", retry.backoff_max, 1, hour_ms);
  if (retry.backoff_max < retry.backoff_min) {
    checks.add("retry.backoff_max_ms", std::to_string(retry.backoff_max.count()) +
                                           " ms is less than backoff_min, " +
                                           std::to_string(retry.backoff_min.count()) + " ms");
  }
  if (!std::isfinite(retry.jitter) || retry.jitter < 0 || retry.jitter > 1) {
    checks.add("retry.jitter", std::to_string(retry.jitter) + " is outside of 0 .. 1");
  }
  checks.range("retry.waiting_max", retry.waiting_max, 1, std::uint64_t{1} << 20);
  if (retry.exhausted == OutcomeKind::done || retry.exhausted == OutcomeKind::retry) {
    checks.add("retry.exhausted",
               std::string(name(retry.exhausted)) + " is none of reject, park, stop");
  }
  checks.range("batch.records", batch.records_max, 1, 10'000);
  checks.range("batch.wait_ms", batch.wait_max, 0, 60'000);
  checks.range("commit.interval_ms", commit.interval, 10, 600'000);
  checks.range("commit.metadata_bytes", commit.metadata_bytes, 0, 4096);
  checks.range("drain.budget_ms", drain.budget, 0, hour_ms);
  checks.range("drain.commit_ms", drain.commit, 100, 60'000);
  checks.range("drain.margin_ms", drain.margin, 0, 60'000);
  checks.range("shutdown.budget_ms", shutdown.budget, 0, hour_ms);
  checks.range("shutdown.close_ms", shutdown.close, 100, 60'000);
  return std::move(checks.problems);
}

template <class Value>
Builder::On& Builder::On::set(std::string_view key, Value& member, Value value, bool same) {
  const auto [set, first] = builder_->set_by_.emplace(std::string(key), topic_);
  if (!first && !same) {
    builder_->conflicts_.push_back(
        {std::string(key),
         "set to different values for topic \"" + set->second + "\" and topic \"" + topic_ + "\"",
         "all handlers of a program share it; run two programs"});
  }
  member = std::move(value);
  return *this;
}

Builder::On& Builder::On::order(Order value) {
  Order& member = builder_->options_.order;
  return set("order", member, value, member == value);
}
Builder::On& Builder::On::effect(Effect kind) {
  std::optional<Effect>& member = builder_->options_.effect.kind;
  return set("effect.kind", member, std::optional<Effect>(kind), member == kind);
}
Builder::On& Builder::On::scope(std::string value) {
  std::string& member = builder_->options_.effect.scope;
  const bool equal = member == value;
  return set("effect.scope", member, std::move(value), equal);
}
Builder::On& Builder::On::lanes(std::uint16_t value) {
  std::optional<std::uint16_t>& member = builder_->options_.lanes;
  return set("lanes", member, std::optional<std::uint16_t>(value), member == value);
}
Builder::On& Builder::On::concurrency(std::uint32_t value) {
  std::uint32_t& member = builder_->options_.concurrency;
  return set("concurrency", member, value, member == value);
}
Builder::On& Builder::On::batch(Options::BatchLimits value) {
  Options::BatchLimits& member = builder_->options_.batch;
  return set("batch", member, value, same(member, value));
}
Builder::On& Builder::On::window(Options::Window value) {
  Options::Window& member = builder_->options_.window;
  return set("window", member, value, same(member, value));
}
Builder::On& Builder::On::retry(Options::Retry value) {
  Options::Retry& member = builder_->options_.retry;
  return set("retry", member, value, same(member, value));
}

void Builder::add(Route route) {
  routes_.push_back(std::move(route));
}

Builder& Builder::group(std::string value) {
  options_.group = std::move(value);
  return *this;
}

Builder& Builder::kafka(std::string property, std::string value) {
  options_.kafka.insert_or_assign(std::move(property), std::move(value));
  return *this;
}

std::vector<std::string> Builder::topics() const {
  std::vector<std::string> topics;
  for (const Route& route : routes_) topics.push_back(route.topic);
  return topics;
}

std::vector<Problem> Builder::validate() const {
  std::vector<Problem> problems = options_.validate();
  problems.insert(problems.end(), conflicts_.begin(), conflicts_.end());
  if (routes_.empty()) {
    problems.push_back({"topics", "no topic has a handler", "call on(topic, handler)"});
  }
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (routes_[i].topic == routes_[j].topic) {
        problems.push_back({"topics", "topic \"" + routes_[i].topic + "\" has two handlers", {}});
      }
    }
  }
  return problems;
}

}  // namespace tenure
