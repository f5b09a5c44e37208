// A fresh client's view of a topic and of what a group has committed.
//
// Role: witness of input, log ends and committed offsets. Joins no group, changes nothing.
// Owns: its client. Threads: one. Blocking calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/evidence.hpp"
#include "tenure/result.hpp"

struct rd_kafka_s;

namespace tenure::judge {

/// A record as it stands in the log.
struct RawRecord {
  Place at;
  std::string key;
  std::string value;
};

class TopicWitness {
 public:
  /// `group`: whose committed offsets are read.
  static Result<TopicWitness> open(const std::string& brokers, const std::string& topic,
                                   const std::string& group);
  TopicWitness(TopicWitness&&) noexcept;
  TopicWitness& operator=(TopicWitness&&) noexcept;
  ~TopicWitness();

  /// Log end and committed offset of every partition.
  Result<std::vector<PartitionEnd>> ends(std::chrono::milliseconds limit);
  /// Every record from the log start to the ends as they are now.
  Result<std::vector<RawRecord>> records(std::chrono::milliseconds limit);

 private:
  struct Close {
    void operator()(::rd_kafka_s* client) const;
  };
  TopicWitness(std::unique_ptr<::rd_kafka_s, Close> client, std::string topic);
  Result<int> partitions(int timeout_ms);

  std::unique_ptr<::rd_kafka_s, Close> client_;
  std::string topic_;
};

}  // namespace tenure::judge
