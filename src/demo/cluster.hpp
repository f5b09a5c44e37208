// Where a demo's records live: the client's mock cluster, or the user's brokers.
//
// Role: makes the topic, and removes what it made on the user's brokers.
// Owns: the mock cluster and the client it runs in, or nothing but names. Threads: one.
// Lifecycle: one a run; the destructor removes topic and group from the user's brokers.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "demo/plan.hpp"
#include "tenure/result.hpp"

namespace tenure::demo {

class Cluster {
 public:
  /// A topic and a group of this run's own on the mock cluster or, with Plan::brokers, there.
  static Result<std::unique_ptr<Cluster>> make(const Plan& plan, const std::string& run);
  virtual ~Cluster() = default;

  [[nodiscard]] const std::string& brokers() const { return brokers_; }
  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] const std::string& group() const { return group_; }
  [[nodiscard]] bool mock() const { return mock_; }
  /// Client properties of a member.
  [[nodiscard]] const std::map<std::string, std::string>& member() const { return member_; }

 protected:
  std::string brokers_;
  std::string topic_;
  std::string group_;
  bool mock_ = false;
  std::map<std::string, std::string> member_;
};

}  // namespace tenure::demo
