// The fresh client, on the client library's mock cluster.
#include "judge/topic_witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

namespace tenure::judge {
namespace {

using std::chrono::milliseconds;
using ::testing::SizeIs;

constexpr milliseconds limit{10'000};

class TopicWitnessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    std::array<char, 256> text{};
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size());
    ASSERT_NE(client_, nullptr) << text.data();
    cluster_ = rd_kafka_mock_cluster_new(client_, 1);
    ASSERT_NE(cluster_, nullptr);
    brokers_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    rd_kafka_mock_topic_create(cluster_, "orders", 3, 1);
    conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers_.c_str(), text.data(), text.size());
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size());
    ASSERT_NE(producer_, nullptr) << text.data();
  }
  void TearDown() override {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(client_);
  }

  void produce(std::int32_t partition, const std::string& key, const std::string& value) {
    rd_kafka_topic_t* topic = rd_kafka_topic_new(producer_, "orders", nullptr);
    ASSERT_EQ(rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY,
                               const_cast<char*>(value.data()), value.size(), key.data(),
                               key.size(), nullptr),
              0);
    rd_kafka_topic_destroy(topic);
    ASSERT_EQ(rd_kafka_flush(producer_, 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }

  rd_kafka_t* client_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  rd_kafka_t* producer_ = nullptr;
  std::string brokers_;
};

TEST_F(TopicWitnessTest, ReadsEveryRecordOfEveryPartition) {
  for (int i = 0; i < 20; ++i) produce(i % 2, "k" + std::to_string(i), std::to_string(i));
  auto witness = TopicWitness::open(brokers_, "orders", "g");
  ASSERT_TRUE(witness) << witness.error().message;
  const auto records = witness->records(limit);
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_THAT(*records, SizeIs(20));
  for (const RawRecord& record : *records) {
    EXPECT_EQ(record.key, "k" + record.value);
    EXPECT_EQ(record.at.partition, std::stoi(record.value) % 2);
    EXPECT_EQ(record.at.offset, std::stoi(record.value) / 2);
  }
}

TEST_F(TopicWitnessTest, AnEmptyTopicHasNoRecordsAndEndsAtZero) {
  auto witness = TopicWitness::open(brokers_, "orders", "g");
  ASSERT_TRUE(witness);
  EXPECT_THAT(*witness->records(limit), SizeIs(0));
  const auto ends = witness->ends(limit);
  ASSERT_TRUE(ends) << ends.error().message;
  ASSERT_THAT(*ends, SizeIs(3));
  EXPECT_EQ(ends->front().end, 0);
}

TEST_F(TopicWitnessTest, F4_NoCommittedOffsetIsNoNumber) {
  produce(0, "k", "1");
  auto witness = TopicWitness::open(brokers_, "orders", "g");
  ASSERT_TRUE(witness);
  const auto ends = witness->ends(limit);
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_EQ((*ends)[0].end, 1);
  EXPECT_FALSE((*ends)[0].committed.has_value());
}

TEST_F(TopicWitnessTest, ATopicThatIsNotThereIsAnErrorAndNoEmptyWitness) {
  rd_kafka_mock_topic_set_error(cluster_, "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  auto witness = TopicWitness::open(brokers_, "gone", "g");
  ASSERT_TRUE(witness);
  EXPECT_FALSE(witness->records(limit).has_value());
  EXPECT_FALSE(witness->ends(limit).has_value());
}

}  // namespace
}  // namespace tenure::judge
