// How long partitions that are kept stand still: load on a topic, and when handlers were called.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kafka/member.hpp"
#include "support/pace.hpp"

namespace tenure::kafka {

/// Produces one record to each partition, again and again.
class Load {
 public:
  Load(const Cluster& cluster, const std::string& topic, int partitions, milliseconds interval)
      : thread_([this, producer = cluster.producer(), topic, partitions, interval] {
          auto next = std::chrono::steady_clock::now();
          while (!stop_) {
            for (int i = 0; i < partitions; ++i) send(producer, topic, i, {"k", "v", {}});
            rd_kafka_poll(producer, 0);
            next += interval;
            ::tenure::testing::pace_until(next);
          }
          rd_kafka_flush(producer, 10000);
        }) {}
  ~Load() {
    stop_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Times at which handlers were started, by partition.
class Starts {
 public:
  using Clock = std::chrono::steady_clock;
  void note(int partition) {
    const std::lock_guard lock(mutex_);
    times_[partition].push_back(Clock::now());
  }
  std::size_t partitions() {
    const std::lock_guard lock(mutex_);
    return times_.size();
  }
  /// Forgets all but the last start of each partition.
  void begin_again() {
    const std::lock_guard lock(mutex_);
    for (auto& [partition, times] : times_) times.erase(times.begin(), times.end() - 1);
  }
  /// Longest time between two starts of one of these partitions, in milliseconds, up to some time
  /// after all of them have gone on.
  double longest_gap(const std::vector<int>& partitions) {
    const Clock::time_point from = Clock::now();
    EXPECT_TRUE(wait_for([&] {
      const std::lock_guard lock(mutex_);
      return std::all_of(partitions.begin(), partitions.end(), [&](int partition) {
        return times_[partition].back() > from + milliseconds(300);
      });
    }));
    const std::lock_guard lock(mutex_);
    double longest = 0;
    for (const int partition : partitions) {
      const auto& times = times_[partition];
      for (std::size_t i = 1; i < times.size(); ++i) {
        longest = std::max(
            longest, std::chrono::duration<double, std::milli>(times[i] - times[i - 1]).count());
      }
    }
    return longest;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<Clock::time_point>> times_;
};

}  // namespace tenure::kafka
