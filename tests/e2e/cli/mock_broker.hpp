// The client library's mock cluster in the test's own process.
#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <string>
#include <vector>

namespace tenure::e2e {

class MockBroker {
 public:
  MockBroker() {
    std::array<char, 256> text{};
    holder_ = rd_kafka_new(RD_KAFKA_PRODUCER, quiet(), text.data(), text.size());
    cluster_ = rd_kafka_mock_cluster_new(holder_, 1);
    bootstrap_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    rd_kafka_mock_set_controller_id(cluster_, 1);
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster_, 0);
    rd_kafka_conf_t* conf = quiet();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap_.c_str(), text.data(), text.size());
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size());
  }
  ~MockBroker() {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(holder_);
  }
  MockBroker(const MockBroker&) = delete;
  MockBroker& operator=(const MockBroker&) = delete;

  [[nodiscard]] const std::string& bootstrap() const { return bootstrap_; }
  void create(const std::string& topic, int partitions) {
    rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1);
  }
  void produce(const std::string& topic, std::int32_t partition, int count) {
    rd_kafka_topic_t* handle = rd_kafka_topic_new(producer_, topic.c_str(), nullptr);
    for (int i = 0; i < count; ++i) {
      std::string value = "value " + std::to_string(i);
      const std::string key = "k" + std::to_string(i % 5);
      ASSERT_EQ(rd_kafka_produce(handle, partition, RD_KAFKA_MSG_F_COPY, value.data(),
                                 value.size(), key.data(), key.size(), nullptr),
                0);
    }
    rd_kafka_topic_destroy(handle);
    ASSERT_EQ(rd_kafka_flush(producer_, 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  /// The next `count` requests of this kind are answered so.
  void fail_next(std::int16_t api, rd_kafka_resp_err_t error, std::size_t count) {
    const std::vector<rd_kafka_resp_err_t> errors(count, error);
    rd_kafka_mock_push_request_errors_array(cluster_, api, count, errors.data());
  }

 private:
  static rd_kafka_conf_t* quiet() {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
    return conf;
  }

  rd_kafka_t* holder_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  rd_kafka_t* producer_ = nullptr;
  std::string bootstrap_;
};

}  // namespace tenure::e2e
