// Produces the records of a demo at a steady rate.
//
// Role: a producer on a thread of its own. Keys go round in an order drawn from the seed; a key
//   always goes to the same partition.
// Owns: client and thread. Threads: one caller. Lifecycle: start -> finish() or destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "demo/plan.hpp"
#include "tenure/result.hpp"

struct rd_kafka_s;

namespace tenure::demo {

class Load {
 public:
  static Result<std::unique_ptr<Load>> start(const Plan& plan, const std::string& brokers,
                                             const std::string& topic);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Stops producing and waits until every record has been answered. An error when one was not
  /// taken by the broker.
  Result<void> finish();
  [[nodiscard]] std::uint64_t delivered() const { return delivered_.load(); }

 private:
  struct Close {
    void operator()(::rd_kafka_s* client) const;
  };
  Load(const Plan& plan, std::string topic) : plan_(plan), topic_(std::move(topic)) {}
  void produce();

  const Plan plan_;
  const std::string topic_;
  std::unique_ptr<::rd_kafka_s, Close> client_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> delivered_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::thread thread_;
};

}  // namespace tenure::demo
