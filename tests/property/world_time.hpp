// Time, chance and failure of a simulated world: single-threaded, repeatable by its seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/random.hpp"
#include "tenure/time.hpp"

namespace tenure::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A rule that did not hold. Ends the world.
struct Broken {
  std::string what;
};
[[noreturn]] inline void broken(std::string what) {
  throw Broken{std::move(what)};
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint64_t bits() { return random_.next(); }
  /// In [0, count).
  std::uint64_t below(std::uint64_t count) { return count == 0 ? 0 : random_.next() % count; }
  /// In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool chance(double percent) { return random_.unit() * 100 < percent; }
  Duration time(Duration low, Duration high) {
    return Duration(between(low.count(), high.count()));
  }

 private:
  core::Random random_;
};

/// What happens when. Of two things at the same time the one asked for first comes first.
class Schedule {
 public:
  [[nodiscard]] Instant now() const { return now_; }

  void in(Duration wait, std::function<void()> what) {
    events_.emplace(std::pair(now_ + wait, ++last_), std::move(what));
  }
  void at(Instant when, std::function<void()> what) {
    events_.emplace(std::pair(std::max(when, now_), ++last_), std::move(what));
  }
  /// The next thing happens; false when nothing is left.
  bool next() {
    if (events_.empty()) return false;
    auto first = events_.extract(events_.begin());
    now_ = first.key().first;
    first.mapped()();
    return true;
  }

 private:
  Instant now_{std::chrono::hours(1)};
  std::uint64_t last_ = 0;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace tenure::test
