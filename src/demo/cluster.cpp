#include "demo/cluster.hpp"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <utility>

namespace tenure::demo {
namespace {

// The mock holds every classic rebalance for session - 1 s, and its first one must be shorter
// than a session (librdkafka.md, section 7).
constexpr int mock_session_ms = 3600;
constexpr int mock_first_rebalance_ms = 500;
constexpr int mock_heartbeat_ms = 500;
// The least a broker takes unless it was told otherwise (group.min.session.timeout.ms).
constexpr int broker_session_ms = 6000;
constexpr int admin_ms = 10'000;

struct ClientClose {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};
using Client = std::unique_ptr<rd_kafka_t, ClientClose>;
using Options = rd_kafka_AdminOptions_t;
using Queue = rd_kafka_queue_t;

void no_log(const rd_kafka_t*, int, const char*, const char*) {}

Result<Client> make_client(const std::string& brokers) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  if (!brokers.empty()) {
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), text.data(), text.size());
  }
  rd_kafka_conf_set_log_cb(conf, no_log);
  Client client(rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size()));
  if (client == nullptr) {
    rd_kafka_conf_destroy(conf);
    return fail(Code::internal, text.data());
  }
  return client;
}

std::map<std::string, std::string> member_properties(const Plan& plan, const std::string& brokers,
                                                     const std::string& group, int session_ms) {
  std::map<std::string, std::string> properties = {
      {"bootstrap.servers", brokers},
      {"group.id", group},
      {"fetch.wait.max.ms", "50"},
      {"fetch.queue.backoff.ms", "10"},
  };
  if (plan.protocol == Protocol::consumer) {
    properties["group.protocol"] = "consumer";
  } else {
    properties["partition.assignment.strategy"] =
        plan.protocol == Protocol::eager ? "range" : "cooperative-sticky";
    properties["session.timeout.ms"] = std::to_string(session_ms);
    properties["heartbeat.interval.ms"] = std::to_string(mock_heartbeat_ms);
  }
  return properties;
}

class MockCluster final : public Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> make(const Plan& plan) {
    auto self = std::make_unique<MockCluster>();
    Result<Client> client = make_client({});
    if (!client) return tl::unexpected<Error>(client.error());
    self->client_ = std::move(*client);
    self->mock_cluster_.reset(rd_kafka_mock_cluster_new(self->client_.get(), 1));
    rd_kafka_mock_cluster_t* cluster = self->mock_cluster_.get();
    if (cluster == nullptr) {
      return fail(Code::internal, "the client library cannot start its mock cluster");
    }
    // Requests for the controller find it (DescribeTopics: topic ids).
    rd_kafka_mock_set_controller_id(cluster, 1);
    self->mock_ = true;
    self->brokers_ = rd_kafka_mock_cluster_bootstraps(cluster);
    self->topic_ = "orders";
    self->group_ = "tenure-demo";
    rd_kafka_mock_topic_create(cluster, self->topic_.c_str(), plan.partitions, 1);
    rd_kafka_mock_set_controller_id(cluster, 1);  // it answers for topic ids
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, mock_first_rebalance_ms);
    rd_kafka_mock_set_group_consumer_session_timeout_ms(cluster, mock_session_ms);
    rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(cluster, mock_heartbeat_ms);
    self->member_ = member_properties(plan, self->brokers_, self->group_, mock_session_ms);
    return self;
  }

 private:
  struct Destroy {
    void operator()(rd_kafka_mock_cluster_t* cluster) const {
      rd_kafka_mock_cluster_destroy(cluster);
    }
  };
  Client client_;
  std::unique_ptr<rd_kafka_mock_cluster_t, Destroy> mock_cluster_;
};

class UserCluster final : public Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> make(const Plan& plan, const std::string& run) {
    auto self = std::make_unique<UserCluster>();
    Result<Client> client = make_client(plan.brokers);
    if (!client) return tl::unexpected<Error>(client.error());
    self->client_ = std::move(*client);
    self->brokers_ = plan.brokers;
    self->topic_ = self->group_ = "tenure_demo_" + run;
    std::array<char, 512> text{};
    rd_kafka_NewTopic_t* topic = rd_kafka_NewTopic_new(self->topic_.c_str(), plan.partitions, -1,
                                                       text.data(), text.size());
    if (topic == nullptr) return fail(Code::invalid, text.data());
    const std::string problem =
        self->ask(RD_KAFKA_ADMIN_OP_CREATETOPICS, [&](Options* options, Queue* queue) {
          rd_kafka_CreateTopics(self->client_.get(), &topic, 1, options, queue);
        });
    rd_kafka_NewTopic_destroy(topic);
    if (!problem.empty()) {
      return fail(Code::unavailable,
                  fmt::format("cannot make topic {} on {}: {}", self->topic_, plan.brokers,
                              problem));
    }
    self->made_ = true;
    self->member_ = member_properties(plan, self->brokers_, self->group_, broker_session_ms);
    return self;
  }

  ~UserCluster() override {
    if (!made_) return;
    rd_kafka_DeleteGroup_t* group = rd_kafka_DeleteGroup_new(group_.c_str());
    ask(RD_KAFKA_ADMIN_OP_DELETEGROUPS, [&](Options* options, Queue* queue) {
      rd_kafka_DeleteGroups(client_.get(), &group, 1, options, queue);
    });
    rd_kafka_DeleteGroup_destroy(group);
    rd_kafka_DeleteTopic_t* topic = rd_kafka_DeleteTopic_new(topic_.c_str());
    ask(RD_KAFKA_ADMIN_OP_DELETETOPICS, [&](Options* options, Queue* queue) {
      rd_kafka_DeleteTopics(client_.get(), &topic, 1, options, queue);
    });
    rd_kafka_DeleteTopic_destroy(topic);
  }

 private:
  /// Sends one admin request and waits; returns what went wrong.
  template <class Send>
  std::string ask(rd_kafka_admin_op_t operation, const Send& send) {
    Queue* queue = rd_kafka_queue_new(client_.get());
    Options* options = rd_kafka_AdminOptions_new(client_.get(), operation);
    std::array<char, 512> text{};
    rd_kafka_AdminOptions_set_request_timeout(options, admin_ms, text.data(), text.size());
    send(options, queue);
    std::string problem = "no answer";
    if (rd_kafka_event_t* event = rd_kafka_queue_poll(queue, admin_ms + 1000)) {
      problem.clear();
      if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        problem = rd_kafka_event_error_string(event);
      } else if (const auto* result = rd_kafka_event_CreateTopics_result(event)) {
        std::size_t count = 0;
        const rd_kafka_topic_result_t** topics =
            rd_kafka_CreateTopics_result_topics(result, &count);
        for (std::size_t i = 0; i < count; ++i) {
          if (rd_kafka_topic_result_error(topics[i]) == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
          const char* why = rd_kafka_topic_result_error_string(topics[i]);
          problem = why != nullptr ? why : "refused";
        }
      }
      rd_kafka_event_destroy(event);
    }
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return problem;
  }

  Client client_;
  bool made_ = false;
};

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::make(const Plan& plan, const std::string& run) {
  return plan.brokers.empty() ? MockCluster::make(plan) : UserCluster::make(plan, run);
}

}  // namespace tenure::demo
