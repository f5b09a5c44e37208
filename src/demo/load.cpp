#include "demo/load.hpp"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <utility>

namespace tenure::demo {
namespace {

constexpr int flush_ms = 10'000;
constexpr std::chrono::milliseconds pace{5};

void no_log(const rd_kafka_t*, int, const char*, const char*) {}

}  // namespace

void Load::Close::operator()(::rd_kafka_s* client) const { rd_kafka_destroy(client); }

Result<std::unique_ptr<Load>> Load::start(const Plan& plan, const std::string& brokers,
                                          const std::string& topic) {
  std::unique_ptr<Load> load(new Load(plan, topic));
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  for (const auto& [name, value] :
       {std::pair<const char*, const char*>{"bootstrap.servers", brokers.c_str()},
        {"acks", "all"},
        {"linger.ms", "5"}}) {
    if (rd_kafka_conf_set(conf, name, value, text.data(), text.size()) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return fail(Code::invalid, text.data());
    }
  }
  rd_kafka_conf_set_opaque(conf, load.get());
  rd_kafka_conf_set_log_cb(conf, no_log);
  rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    auto& counts = *static_cast<Load*>(self);
    ++(message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? counts.delivered_ : counts.failed_);
  });
  load->client_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size()));
  if (load->client_ == nullptr) {
    rd_kafka_conf_destroy(conf);
    return fail(Code::internal, text.data());
  }
  load->thread_ = std::thread([raw = load.get()] { raw->produce(); });
  return load;
}

Load::~Load() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Load::produce() {
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr);
  std::mt19937_64 random(plan_.seed);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sent = 0;
  while (!stop_) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    const auto due = static_cast<std::uint64_t>(passed.count() * plan_.rate);
    for (; sent < due; ++sent) {
      const std::uint64_t drawn = random();
      const std::string key =
          fmt::format("k{:02}", drawn % static_cast<std::uint64_t>(plan_.keys));
      const std::string value =
          std::to_string(static_cast<std::int64_t>((drawn >> 32) % 20'001) - 10'000);
      // Ours, not the client's, whose choice differs between versions.
      const auto partition = static_cast<std::int32_t>(
          (drawn % static_cast<std::uint64_t>(plan_.keys)) %
          static_cast<std::uint64_t>(plan_.partitions));
      if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, const_cast<char*>(value.data()),
                           value.size(), key.data(), key.size(), nullptr) == 0) {
        continue;
      }
      if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) break;
      ++failed_;
    }
    rd_kafka_poll(client_.get(), static_cast<int>(pace.count()));
  }
  rd_kafka_topic_destroy(topic);
}

Result<void> Load::finish() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  if (rd_kafka_flush(client_.get(), flush_ms) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return fail(Code::unavailable, "the broker did not take all records in time");
  }
  if (failed_ > 0) {
    return fail(Code::unavailable, fmt::format("the broker refused {} records", failed_.load()));
  }
  return {};
}

}  // namespace tenure::demo
