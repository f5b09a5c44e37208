// A consumer group without a broker: topics, a group and its members, in this process, with a
// clock that stands still until it is told to move.
//
//   testing::World world;
//   world.create_topic("orders", 2);
//   world.produce("orders", 0, {.key = "k", .value = "v"});
//   auto runtime = Runtime::create(build, {.source = world.member("A"), .clock = world.clock()});
//   std::jthread loop([&](std::stop_token stop) { runtime->run(stop); });
//   world.wait_until([&] { return world.committed("orders", 0) == Offset(1); });
//
// Role: the Source port and the broker behind it. What the real one does by itself happens here
//   when the test says so: rebalances, losses, refused or late answers to commits.
// Threads: World's functions: any thread but a member's loop; a Source: its Runtime's loop.
// Lifecycle: the sources share the world's state; it may die before them.
// Promises: the same calls give the same events in the same order; an answer comes at the next
//   poll unless it is held back; a commit is judged like a broker does, by the member and not by
//   the partition.
// Does not promise: the timing, the batching or the network of a broker; for these there are
//   librdkafka's mock cluster and Kafka itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/port/clock.hpp"
#include "tenure/port/source.hpp"
#include "tenure/source_types.hpp"
#include "tenure/time.hpp"

namespace tenure::testing {

/// What a test puts into a topic. Absent key or value: null.
struct Message {
  std::optional<std::string> key{};
  std::optional<std::string> value{};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers{};
  std::int64_t timestamp_ms = -1;
};

/// One commit of one partition as the group received it.
struct Commit {
  std::string member;  ///< name given to World::member()
  TopicPartition partition;
  Offset offset;
  std::string metadata;
  BrokerError answer = BrokerError::none;
  bool applied = true;  ///< whether it is what the group now has
};

class World {
 public:
  struct Options {
    /// Of partitions: when a member joins or leaves, all partitions are spread anew over the
    /// members, the moved ones revoked first. False: only assign() and revoke() move them.
    bool automatic = true;
    Protocol protocol = Protocol::cooperative;  ///< cooperative or consumer
    /// What lanes are hashed from; order none hashes offsets.
    Order order = Order::key;
    std::string group = "test";
    MembershipTimes times{std::chrono::seconds(45), std::chrono::seconds(3),
                          std::chrono::seconds(300), std::chrono::seconds(60)};
  };

  World();
  explicit World(Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // ---- topics ----
  void create_topic(std::string name, std::int32_t partitions);
  /// Where it was put.
  Offset produce(std::string_view topic, std::int32_t partition, Message message);
  /// Offsets that are never delivered: transaction markers, compacted records.
  void skip(std::string_view topic, std::int32_t partition, std::int64_t offsets);
  /// Retention: nothing below `offset` is there any more.
  void truncate_before(std::string_view topic, std::int32_t partition, Offset offset);

  // ---- the group ----
  /// A member by its name. It joins when its Runtime opens it. The same name gives the same one.
  std::shared_ptr<Source> member(const std::string& name);
  /// The member is asked to take these partitions as well.
  void assign(const std::string& member, std::vector<TopicPartition> partitions);
  /// The member is asked to give these back.
  void revoke(const std::string& member, std::vector<TopicPartition> partitions);
  /// The group has forgotten the member: all it had is lost, its commits are refused.
  void lose(const std::string& member);
  /// As lose(), but the member is not told: what a frozen process does not know.
  void expire(const std::string& member);
  /// A group that has committed before.
  void set_committed(std::string_view topic, std::int32_t partition, Offset offset);

  // ---- faults ----
  /// The next commit request is answered with `error`; `applied`: though it was carried out.
  void fail_next_commit(BrokerError error, bool applied = false);
  /// Answers to commits stay away until it is told otherwise.
  void hold_commit_answers(bool held);
  /// Answers to reads (committed offsets, topics, ends) stay away until it is told otherwise.
  void hold_reads(bool held);
  /// The next open() of any member fails.
  void fail_next_open(Error error);

  // ---- witnesses ----
  [[nodiscard]] std::optional<Offset> committed(std::string_view topic,
                                                std::int32_t partition) const;
  [[nodiscard]] std::vector<Commit> commits() const;
  [[nodiscard]] std::vector<TopicPartition> assigned(const std::string& member) const;
  /// Rebalances of this member that it has not answered.
  [[nodiscard]] std::size_t unanswered(const std::string& member) const;
  [[nodiscard]] bool joined(const std::string& member) const;
  /// Messages handed out and not released, over all members.
  [[nodiscard]] std::size_t messages_out() const;

  // ---- time ----
  [[nodiscard]] std::shared_ptr<const Clock> clock() const;
  void advance(Duration by);
  /// Waits, in real time, until `done`; asks again whenever something happens in the world and
  /// every few milliseconds. False: not within `longest`.
  [[nodiscard]] bool wait_until(const std::function<bool()>& done,
                                std::chrono::seconds longest = std::chrono::seconds(20)) const;

 private:
  class State;
  class Member;
  std::shared_ptr<State> state_;
};

}  // namespace tenure::testing
