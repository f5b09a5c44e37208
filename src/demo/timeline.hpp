// The printed story of a run: one line for what one member does to several partitions at once.
//
// Role: collects events of a member that belong together and prints them when no more come.
// Threads: one. Pure but for the sink.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "demo/world.hpp"

namespace tenure::demo {

class Timeline {
 public:
  using Time = std::chrono::milliseconds;  ///< since the run began

  explicit Timeline(std::function<void(const std::string&)> print) : print_(std::move(print)) {}

  /// `world` has taken it already.
  void observe(const Observation& observation, const World& world, Time now);
  void say(Time now, const std::string& who, const std::string& text);
  /// Prints what has been complete for a while.
  void look(Time now);
  void flush();

 private:
  enum class Kind : std::uint8_t { owns, drains, lost, refused, late, skipped };
  struct Group {
    Time first{};
    Time last{};
    std::set<std::int32_t> partitions;
    std::int64_t in_flight = 0;
    std::int64_t left = 0;
    std::int64_t skipped = 0;
    std::uint64_t revoked = 0;
    std::uint64_t committed = 0;
    double took_ms = 0;
    std::size_t count = 0;
    std::string example;
  };
  void print(const std::pair<std::string, Kind>& key, const Group& group);
  void line(Time at, const std::string& who, const std::string& head, const std::string& tail);

  const std::function<void(const std::string&)> print_;
  std::map<std::pair<std::string, Kind>, Group> groups_;
};

}  // namespace tenure::demo
