// What the tests of this folder run on: librdkafka's mock cluster or a real broker, and a
// producer.
#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/kafka/source.hpp"

namespace tenure::kafka {

using Properties = std::vector<std::pair<std::string, std::string>>;
using MaybeBytes = std::optional<std::string>;

/// One record as it is produced.
struct Sent {
  MaybeBytes key;
  MaybeBytes value;
  std::vector<std::pair<std::string, MaybeBytes>> headers;
};

inline void set_property(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  char reason[512];
  EXPECT_EQ(rd_kafka_conf_set(conf, name.c_str(), value.c_str(), reason, sizeof reason),
            RD_KAFKA_CONF_OK)
      << reason;
}

inline rd_kafka_t* new_producer(const std::string& bootstrap, const Properties& properties = {}) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  set_property(conf, "bootstrap.servers", bootstrap);
  set_property(conf, "linger.ms", "1");
  set_property(conf, "log_level", "0");
  set_property(conf, "message.max.bytes", "2000000");
  for (const auto& [name, value] : properties) set_property(conf, name, value);
  // The first client of the process is to be a source's: it settles what happens at the exit.
  EXPECT_FALSE(make_source({}).has_value());
  char reason[512];
  rd_kafka_t* made = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
  EXPECT_NE(made, nullptr) << reason;
  return made;
}

/// Queues one record; the caller flushes.
inline void send(rd_kafka_t* producer, const std::string& topic, int partition, const Sent& sent) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(sent.headers.size());
  for (const auto& [name, value] : sent.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()),
                        value ? value->data() : nullptr,
                        value ? static_cast<ssize_t>(value->size()) : 0);
  }
  std::array<rd_kafka_vu_t, 6> fields{};
  std::size_t count = 0;
  fields[count].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[count++].u.cstr = topic.c_str();
  fields[count].vtype = RD_KAFKA_VTYPE_PARTITION;
  fields[count++].u.i32 = partition;
  fields[count].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[count++].u.i = RD_KAFKA_MSG_F_COPY;
  fields[count].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[count++].u.headers = headers;
  if (sent.key) {
    fields[count].vtype = RD_KAFKA_VTYPE_KEY;
    fields[count].u.mem.ptr = const_cast<char*>(sent.key->data());
    fields[count++].u.mem.size = sent.key->size();
  }
  if (sent.value) {
    fields[count].vtype = RD_KAFKA_VTYPE_VALUE;
    fields[count].u.mem.ptr = const_cast<char*>(sent.value->data());
    fields[count++].u.mem.size = sent.value->size();
  }
  rd_kafka_error_t* failed = rd_kafka_produceva(producer, fields.data(), count);
  EXPECT_EQ(failed, nullptr) << (failed == nullptr ? "" : rd_kafka_error_string(failed));
  if (failed != nullptr) {
    rd_kafka_error_destroy(failed);
    rd_kafka_headers_destroy(headers);
  }
}

class Cluster {
 public:
  explicit Cluster(std::string bootstrap)
      : bootstrap_(std::move(bootstrap)), producer_(new_producer(bootstrap_)) {}
  virtual ~Cluster() { rd_kafka_destroy(producer_); }
  Cluster(const Cluster&) = delete;

  virtual void create(const std::string& topic, int partitions) = 0;
  /// What a member of a group needs, the group's name not among it.
  [[nodiscard]] virtual Properties member_properties(Protocol protocol) const = 0;

  /// `count` records with the values value-0, value-1 ...
  void produce(const std::string& topic, int partition, int count, const std::string& key = "k") {
    for (int i = 0; i < count; ++i) {
      send(producer_, topic, partition, {key, "value-" + std::to_string(i), {}});
    }
    flush();
  }
  void produce(const std::string& topic, int partition, const Sent& sent) {
    send(producer_, topic, partition, sent);
    flush();
  }
  [[nodiscard]] const std::string& bootstrap() const { return bootstrap_; }
  [[nodiscard]] rd_kafka_t* producer() const { return producer_; }

 protected:
  [[nodiscard]] Properties common_properties(Protocol protocol) const {
    Properties properties{{"bootstrap.servers", bootstrap_},
                          {"fetch.wait.max.ms", "50"},
                          {"fetch.queue.backoff.ms", "10"}};
    if (protocol == Protocol::consumer) {
      properties.emplace_back("group.protocol", "consumer");
    } else {
      properties.emplace_back("partition.assignment.strategy",
                              protocol == Protocol::eager ? "range" : "cooperative-sticky");
      properties.emplace_back("heartbeat.interval.ms", "200");
    }
    return properties;
  }

 private:
  void flush() { EXPECT_EQ(rd_kafka_flush(producer_, 10000), RD_KAFKA_RESP_ERR_NO_ERROR); }

  std::string bootstrap_;
  rd_kafka_t* producer_ = nullptr;
};

/// The mock cluster and the instance that it lives in.
class MockHolder {
 public:
  explicit MockHolder(int brokers) : holder_(new_producer("127.0.0.1:1")) {
    cluster_ = rd_kafka_mock_cluster_new(holder_, brokers);
    rd_kafka_mock_set_controller_id(cluster_, 1);
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster_, 0);
    // A session of 3 s or less would end while a member of the consumer protocol is well.
    rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster_, 4000);
    rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster_, 200);
  }
  ~MockHolder() {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(holder_);
  }
  MockHolder(const MockHolder&) = delete;

 protected:
  rd_kafka_t* holder_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
};

class MockCluster final : private MockHolder, public Cluster {
 public:
  explicit MockCluster(int brokers = 1)
      : MockHolder(brokers), Cluster(rd_kafka_mock_cluster_bootstraps(cluster_)) {}

  void create(const std::string& topic, int partitions) override {
    rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1);
  }
  [[nodiscard]] Properties member_properties(Protocol protocol) const override {
    Properties properties = common_properties(protocol);
    // The mock holds every classic rebalance for a second less than the session.
    if (protocol != Protocol::consumer) properties.emplace_back("session.timeout.ms", "2500");
    return properties;
  }
  [[nodiscard]] rd_kafka_mock_cluster_t* raw() const { return cluster_; }
  /// The next requests of that kind are answered with these errors.
  void fail(std::int16_t api_key, const std::vector<rd_kafka_resp_err_t>& errors) {
    rd_kafka_mock_push_request_errors_array(cluster_, api_key, errors.size(), errors.data());
  }
  void down() { rd_kafka_mock_broker_set_down(cluster_, 1); }
  void up() { rd_kafka_mock_broker_set_up(cluster_, 1); }
};

// API keys of Kafka's protocol.
inline constexpr std::int16_t api_offset_commit = 8;
inline constexpr std::int16_t api_offset_fetch = 9;
inline constexpr std::int16_t api_heartbeat = 12;
inline constexpr std::int16_t api_consumer_heartbeat = 68;

/// A folder that goes with the test.
class Temporary {
 public:
  Temporary() {
    std::string name = (std::filesystem::temp_directory_path() / "tenure-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Temporary() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// One node of Apache Kafka; it ends with the process.
class BrokerProcess {
 public:
  BrokerProcess() {
    const std::string answer = run("start 1 --owner " + std::to_string(getpid()) +
                                   " --fast-groups --session-ms 5000 --heartbeat-ms 300");
    address_ = answer.substr(0, answer.find('\n'));
    EXPECT_FALSE(address_.empty());
  }
  ~BrokerProcess() { run("stop"); }
  BrokerProcess(const BrokerProcess&) = delete;

 protected:
  std::string run(const std::string& arguments) const {
    const std::string command =
        std::string(TENURE_TOOLS_DIR) + "/kafka " + arguments + " --dir " + folder_.file("cluster");
    FILE* pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::string answer;
    char line[1024];
    while (std::fgets(line, sizeof line, pipe) != nullptr) answer += line;
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return answer;
  }

  Temporary folder_;
  std::string address_;
};

class BrokerCluster final : private BrokerProcess, public Cluster {
 public:
  BrokerCluster() : Cluster(address_) {}

  void create(const std::string& topic, int partitions) override {
    char reason[512];
    rd_kafka_NewTopic_t* wanted =
        rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, reason, sizeof reason);
    admin(RD_KAFKA_ADMIN_OP_CREATETOPICS, [&](auto* options, auto* queue) {
      rd_kafka_CreateTopics(producer(), &wanted, 1, options, queue);
    });
    rd_kafka_NewTopic_destroy(wanted);
  }
  void remove(const std::string& topic) {
    rd_kafka_DeleteTopic_t* unwanted = rd_kafka_DeleteTopic_new(topic.c_str());
    admin(RD_KAFKA_ADMIN_OP_DELETETOPICS, [&](auto* options, auto* queue) {
      rd_kafka_DeleteTopics(producer(), &unwanted, 1, options, queue);
    });
    rd_kafka_DeleteTopic_destroy(unwanted);
  }
  /// Everything below `before` is gone.
  void cut(const std::string& topic, int partition, std::int64_t before) {
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = before;
    rd_kafka_DeleteRecords_t* request = rd_kafka_DeleteRecords_new(list);
    admin(RD_KAFKA_ADMIN_OP_DELETERECORDS, [&](auto* options, auto* queue) {
      rd_kafka_DeleteRecords(producer(), &request, 1, options, queue);
    });
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_topic_partition_list_destroy(list);
  }
  void configure_group(const std::string& group, const std::string& name,
                       const std::string& value) {
    rd_kafka_ConfigResource_t* resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_GROUP, group.c_str());
    rd_kafka_error_destroy(rd_kafka_ConfigResource_add_incremental_config(
        resource, name.c_str(), RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, value.c_str()));
    admin(RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS, [&](auto* options, auto* queue) {
      rd_kafka_IncrementalAlterConfigs(producer(), &resource, 1, options, queue);
    });
    rd_kafka_ConfigResource_destroy(resource);
  }
  [[nodiscard]] Properties member_properties(Protocol protocol) const override {
    Properties properties = common_properties(protocol);
    if (protocol != Protocol::consumer) properties.emplace_back("session.timeout.ms", "6000");
    return properties;
  }

 private:
  template <class Ask>
  void admin(rd_kafka_admin_op_t kind, Ask ask) {
    rd_kafka_AdminOptions_t* options = rd_kafka_AdminOptions_new(producer(), kind);
    char reason[512];
    rd_kafka_AdminOptions_set_request_timeout(options, 20000, reason, sizeof reason);
    if (kind == RD_KAFKA_ADMIN_OP_CREATETOPICS || kind == RD_KAFKA_ADMIN_OP_DELETETOPICS) {
      rd_kafka_AdminOptions_set_operation_timeout(options, 20000, reason, sizeof reason);
    }
    rd_kafka_queue_t* queue = rd_kafka_queue_new(producer());
    ask(options, queue);
    rd_kafka_event_t* event = rd_kafka_queue_poll(queue, 25000);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(rd_kafka_event_error(event), RD_KAFKA_RESP_ERR_NO_ERROR)
        << rd_kafka_event_error_string(event);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_AdminOptions_destroy(options);
  }
};

}  // namespace tenure::kafka
