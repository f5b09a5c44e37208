// librdkafka's mock cluster, a producer for it, and a hand-driven Source with a recording sink.
#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tenure/kafka/source.hpp"

namespace tenure::kafka {

class MockCluster {
 public:
  explicit MockCluster(int brokers = 1) {
    char reason[512];
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", "127.0.0.1:1", reason, sizeof reason);
    rd_kafka_conf_set(conf, "log_level", "0", reason, sizeof reason);
    holder_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
    cluster_ = rd_kafka_mock_cluster_new(holder_, brokers);
    bootstrap_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    rd_kafka_mock_set_controller_id(cluster_, 1);
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster_, 0);
    conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap_.c_str(), reason, sizeof reason);
    rd_kafka_conf_set(conf, "linger.ms", "1", reason, sizeof reason);
    rd_kafka_conf_set(conf, "log_level", "0", reason, sizeof reason);
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
  }
  ~MockCluster() {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(holder_);
  }
  MockCluster(const MockCluster&) = delete;

  void create(const std::string& topic, int partitions) {
    rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1);
  }
  void produce(const std::string& topic, int partition, int count, const std::string& key = "k") {
    rd_kafka_topic_t* topic_handle = rd_kafka_topic_new(producer_, topic.c_str(), nullptr);
    for (int i = 0; i < count; ++i) {
      const std::string value = "value-" + std::to_string(i);
      ASSERT_EQ(rd_kafka_produce(topic_handle, partition, RD_KAFKA_MSG_F_COPY,
                                 const_cast<char*>(value.data()), value.size(), key.data(),
                                 key.size(), nullptr),
                0);
    }
    rd_kafka_topic_destroy(topic_handle);
    ASSERT_EQ(rd_kafka_flush(producer_, 10000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  [[nodiscard]] const std::string& bootstrap() const { return bootstrap_; }
  [[nodiscard]] rd_kafka_mock_cluster_t* raw() const { return cluster_; }
  [[nodiscard]] rd_kafka_t* producer() const { return producer_; }

 private:
  rd_kafka_t* holder_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  rd_kafka_t* producer_ = nullptr;
  std::string bootstrap_;
};

/// Drives one Source by hand. Assigns are answered at once with fresh owners, revokes too,
/// unless `hold_revokes`; records are noted and released.
class HandDriven : public SourceSink {
 public:
  HandDriven(const std::string& bootstrap, const std::string& group, const std::string& topic,
             Protocol protocol, std::vector<std::pair<std::string, std::string>> extra = {}) {
    SourceOptions options;
    options.topics = {topic};
    options.properties = {{"bootstrap.servers", bootstrap}, {"group.id", group},
                          {"fetch.wait.max.ms", "50"},      {"fetch.queue.backoff.ms", "10"}};
    if (protocol == Protocol::consumer) {
      options.properties.emplace_back("group.protocol", "consumer");
    } else {
      options.properties.emplace_back(
          "partition.assignment.strategy",
          protocol == Protocol::eager ? "range" : "cooperative-sticky");
      options.properties.emplace_back("session.timeout.ms", "6000");
      options.properties.emplace_back("heartbeat.interval.ms", "300");
    }
    for (auto& row : extra) options.properties.push_back(std::move(row));
    auto made = make_source(options);
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return;
    }
    source = std::move(*made);
    const auto opened = source->open(*this, [this] {
      const std::lock_guard lock(mutex_);
      woken_ = true;
      wake_.notify_one();
    });
    EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().message);
  }
  ~HandDriven() override { source.reset(); }

  /// Polls until `done`, at most `limit`. True when done.
  bool until(const std::function<bool()>& done,
             std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (true) {
      source->poll_events();
      source->poll_records(1000);
      if (done()) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return woken_; });
      woken_ = false;
    }
  }
  void start(const TopicPartition& partition, std::int64_t offset) {
    const StartAt at{owners.at(partition), partition, Offset(offset), no_leader_epoch};
    source->start(std::span<const StartAt>(&at, 1));
  }
  void release_revokes() {
    for (const Rebalance& revoke : held) answer(revoke);
    held.clear();
  }

  std::unique_ptr<Source> source;
  std::map<TopicPartition, OwnerRef> owners;
  std::map<GrantId, std::vector<std::int64_t>> offsets;  // delivered, by grant
  std::map<GrantId, std::int64_t> reached_at;
  std::vector<Rebalance> rebalances;
  std::vector<Rebalance> held;
  std::vector<CommitAnswer> answers;
  std::vector<CommittedRead> committed;
  std::vector<TopicsRead> topics;
  std::vector<LogEndsRead> ends;
  std::vector<RecordError> errors;
  std::vector<ClientError> client_errors;
  std::vector<MembershipTimes> known_times;
  std::vector<MessageView> views;  // keys and values end with the call; sizes stay
  bool hold_revokes = false;
  bool keep_messages = false;
  std::vector<MessageHandle> kept;
  bool is_closed = false;

 private:
  void answer(const Rebalance& rebalance) {
    if (rebalance.kind == Rebalance::Kind::assign) {
      std::vector<GrantedPartition> granted;
      for (const TopicPartition& partition : rebalance.partitions) {
        owners[partition] = {static_cast<std::uint32_t>(++last_grant_), GrantId(last_grant_)};
        granted.push_back({partition, owners[partition]});
      }
      EXPECT_TRUE(source->answer_assign(rebalance.id, granted));
      EXPECT_FALSE(source->answer_assign(rebalance.id, granted)) << "R5 once";
    } else {
      for (const TopicPartition& partition : rebalance.partitions) owners.erase(partition);
      EXPECT_TRUE(source->answer_revoke(rebalance.id, rebalance.partitions));
    }
  }
  void rebalance(const Rebalance& rebalance) override {
    rebalances.push_back(rebalance);
    if (rebalance.kind == Rebalance::Kind::revoke && hold_revokes) {
      held.push_back(rebalance);
      return;
    }
    answer(rebalance);
  }
  void delivered(OwnerRef owner, std::span<const Delivered> records) override {
    std::vector<MessageHandle> messages;
    for (const Delivered& record : records) {
      offsets[owner.grant].push_back(record.offset.value());
      if (record.message != nullptr) messages.push_back(record.message);
    }
    if (keep_messages) {
      kept.insert(kept.end(), messages.begin(), messages.end());
    } else {
      source->release(messages);
    }
  }
  void reached(const Reached& reached) override {
    reached_at[reached.owner.grant] = reached.offset.value();
  }
  void record_error(const RecordError& error) override { errors.push_back(error); }
  void commit_answered(const CommitAnswer& answer) override { answers.push_back(answer); }
  void committed_read(const CommittedRead& read) override { committed.push_back(read); }
  void topics_read(const TopicsRead& read) override { topics.push_back(read); }
  void log_ends_read(const LogEndsRead& read) override { ends.push_back(read); }
  void client_error(const ClientError& error) override { client_errors.push_back(error); }
  void times(const MembershipTimes& times) override { known_times.push_back(times); }
  void closed() override { is_closed = true; }
  void client_log(Level, std::string_view, std::string_view) override {}

  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
  std::uint64_t last_grant_ = 0;
};

}  // namespace tenure::kafka
