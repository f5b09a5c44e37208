// What a program can set: the values of the configuration (design 6-interface, section 3) as
// plain members with their defaults, and the Builder that ties topics to handlers.
//
// Values; one thread; before the Runtime is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenure/handler.hpp"
#include "tenure/ids.hpp"
#include "tenure/outcome.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// What is promised of an effect.
enum class Effect : std::uint8_t {
  transaction,  ///< effect and progress in one database transaction: exactly once in the database
  idempotent,   ///< at least once; once if the receiver honours the identity or the fence
};
std::string_view name(Effect effect);

/// Where to start when the group has no committed offset, and for nothing else (F7).
enum class Reset : std::uint8_t { earliest, latest, error };
std::string_view name(Reset reset);

/// One thing that is wrong with an option.
struct Problem {
  std::string key;      ///< as in the configuration: "retry.attempts"
  std::string message;  ///< what is wrong, with the value and the accepted range
  std::string hint;     ///< the fix, or empty
};

/// Durations are exact to a millisecond where they come from a configuration file.
struct Options {
  std::string group;  ///< consumer group; required
  /// Client properties, verbatim, for the Kafka source; `group.id` is `group`.
  std::map<std::string, std::string> kafka;
  Reset reset = Reset::earliest;

  Order order = Order::key;
  /// 1 .. 1024 lanes at the store; empty: 8, with order partition 1. Stored with the data: another
  /// number is refused later. Unused without a store.
  std::optional<std::uint16_t> lanes;
  std::uint32_t concurrency = 64;  ///< 1 .. 65536 handlers at once in the process

  struct Window {
    std::uint64_t records = 1024;            ///< a partition; 1 .. 2^30
    std::uint64_t bytes = 16u << 20;         ///< a partition; 65536 .. 2^40
    std::uint64_t records_total = 65536;     ///< 1 .. 2^30
    std::uint64_t bytes_total = 256u << 20;  ///< 65536 .. 2^40
  } window;

  struct Retry {
    std::uint16_t attempts = 8;                     ///< 1 .. 1000, the first included
    std::chrono::milliseconds backoff_min{200};     ///< 1 ms .. 1 h
    std::chrono::milliseconds backoff_max{30'000};  ///< backoff_min .. 1 h
    double jitter = 0.2;                            ///< 0 .. 1, random part of a backoff
    std::uint32_t waiting_max = 10'000;             ///< 1 .. 2^20; above it admission stops
    OutcomeKind exhausted = OutcomeKind::reject;    ///< reject, park or stop
  } retry;

  struct EffectOptions {
    /// Empty: transaction with a store and a blocking handler, else idempotent.
    std::optional<Effect> kind;
    std::string scope;  ///< name of the effect at the store; empty: the group. Keep it when the
                        ///< group is renamed
  } effect;

  /// Of one lane in one transaction, or of one call of a batch handler.
  struct BatchLimits {
    std::uint32_t records_max = 100;        ///< 1 .. 10000
    std::chrono::milliseconds wait_max{5};  ///< 0 .. 60 s
  } batch;

  struct Commit {
    std::chrono::milliseconds interval{1'000};  ///< 10 ms .. 10 min
    std::uint32_t metadata_bytes = 3072;        ///< 0 .. 4096
    bool start_position = true;                 ///< C8
  } commit;

  struct Drain {
    std::chrono::milliseconds budget{5'000};  ///< 0 .. 1 h; effective: R7
    std::chrono::milliseconds commit{2'000};  ///< 100 ms .. 60 s, after the budget
    std::chrono::milliseconds margin{1'000};  ///< 0 .. 60 s
  } drain;

  struct Shutdown {
    std::chrono::milliseconds budget{20'000};  ///< 0 .. 1 h
    std::chrono::milliseconds close{3'000};    ///< 100 ms .. 60 s
  } shutdown;

  bool until_end = false;  ///< stop when the log ends read at the first join are passed
  std::uint64_t seed = 0;  ///< of jitter and owner nonces; 0: from the system

  /// Everything that is wrong, in the order of the members. Empty: nothing is.
  [[nodiscard]] std::vector<Problem> validate() const;
};

/// Records of `topic` (a name, or ^regex) go to `handler`.
struct Route {
  std::string topic;
  Handler handler;
};

/// Ties topics to handlers and sets options:
///   build.on("orders", charge).order(Order::key).concurrency(16);
/// Several topics may have handlers of their own; every other setting holds for the whole
/// program, whichever on() it is chained to, and setting it twice to different values is a
/// problem that validate() lists. One thread; before the Runtime is made.
class Builder {
 public:
  /// What on() returns. A view of its Builder.
  class On {
   public:
    On& order(Order value);
    On& effect(Effect kind);
    On& scope(std::string value);
    On& lanes(std::uint16_t value);
    On& concurrency(std::uint32_t value);
    On& batch(Options::BatchLimits value);
    On& window(Options::Window value);
    On& retry(Options::Retry value);

   private:
    friend class Builder;
    On(Builder& builder, std::string topic) : builder_(&builder), topic_(std::move(topic)) {}
    template <class Value>
    On& set(std::string_view key, Value& member, Value value, bool same);

    Builder* builder_;
    std::string topic_;
  };

  Builder() = default;
  explicit Builder(Options options) : options_(std::move(options)) {}

  /// `handler`: a function, function object or lambda of a shape of handler.hpp, or a Handler.
  template <class F>
  On on(std::string topic, F&& handler) {
    if constexpr (std::is_same_v<std::decay_t<F>, Handler>) {
      add({topic, std::forward<F>(handler)});
    } else {
      add({topic, make_handler(std::forward<F>(handler))});
    }
    return On(*this, std::move(topic));
  }

  Builder& group(std::string value);
  /// A client property, verbatim.
  Builder& kafka(std::string property, std::string value);

  [[nodiscard]] Options& options() { return options_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
  /// Names and ^regexes of on(), for the source.
  [[nodiscard]] std::vector<std::string> topics() const;

  /// Options::validate() and what is wrong with the routes.
  [[nodiscard]] std::vector<Problem> validate() const;

 private:
  void add(Route route);

  Options options_;
  std::vector<Route> routes_;
  std::map<std::string, std::string, std::less<>> set_by_;  ///< key -> topic that set it
  std::vector<Problem> conflicts_;
};

}  // namespace tenure
