#include "judge/topic_witness.hpp"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace tenure::judge {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct ListClose {
  void operator()(rd_kafka_topic_partition_list_t* list) const {
    rd_kafka_topic_partition_list_destroy(list);
  }
};
using List = std::unique_ptr<rd_kafka_topic_partition_list_t, ListClose>;
struct MessageClose {
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
};
using Message = std::unique_ptr<rd_kafka_message_t, MessageClose>;

void no_log(const rd_kafka_t*, int, const char*, const char*) {}

int left_ms(steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 1'000'000));
}

tl::unexpected<Error> broken(std::string_view what, rd_kafka_resp_err_t error) {
  return fail(Code::unavailable, fmt::format("{}: {}", what, rd_kafka_err2str(error)));
}

std::string bytes(const void* data, std::size_t size) {
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

}  // namespace

void TopicWitness::Close::operator()(::rd_kafka_s* client) const { rd_kafka_destroy(client); }

TopicWitness::TopicWitness(std::unique_ptr<::rd_kafka_s, Close> client, std::string topic)
    : client_(std::move(client)), topic_(std::move(topic)) {}
TopicWitness::TopicWitness(TopicWitness&&) noexcept = default;
TopicWitness& TopicWitness::operator=(TopicWitness&&) noexcept = default;
TopicWitness::~TopicWitness() = default;

Result<TopicWitness> TopicWitness::open(const std::string& brokers, const std::string& topic,
                                        const std::string& group) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"bootstrap.servers", brokers},
           {"group.id", group},
           {"enable.auto.commit", "false"},
           {"enable.auto.offset.store", "false"},
           {"auto.offset.reset", "error"},
           {"fetch.wait.max.ms", "10"},
           {"isolation.level", "read_committed"}}) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size()) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return fail(Code::invalid, text.data());
    }
  }
  rd_kafka_conf_set_log_cb(conf, no_log);
  std::unique_ptr<::rd_kafka_s, Close> client(
      rd_kafka_new(RD_KAFKA_CONSUMER, conf, text.data(), text.size()));
  if (client == nullptr) {
    rd_kafka_conf_destroy(conf);
    return fail(Code::internal, text.data());
  }
  rd_kafka_poll_set_consumer(client.get());
  return TopicWitness(std::move(client), topic);
}

Result<int> TopicWitness::partitions(int timeout_ms) {
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr);
  const struct rd_kafka_metadata* found = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(client_.get(), 0, topic, &found, timeout_ms);
  rd_kafka_topic_destroy(topic);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return broken("metadata of " + topic_, error);
  const rd_kafka_resp_err_t of_topic =
      found->topic_cnt == 1 ? found->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  const int count = of_topic == RD_KAFKA_RESP_ERR_NO_ERROR ? found->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(found);
  if (of_topic != RD_KAFKA_RESP_ERR_NO_ERROR) return broken("topic " + topic_, of_topic);
  return count;
}

Result<std::vector<PartitionEnd>> TopicWitness::ends(milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  const Result<int> count = partitions(left_ms(deadline));
  if (!count) return tl::unexpected<Error>(count.error());
  const List list(rd_kafka_topic_partition_list_new(*count));
  for (int i = 0; i < *count; ++i) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), i);
  }
  if (const auto error = rd_kafka_committed(client_.get(), list.get(), left_ms(deadline))) {
    return broken("committed offsets", error);
  }
  std::vector<PartitionEnd> out;
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& each = list->elems[i];
    if (each.err != RD_KAFKA_RESP_ERR_NO_ERROR) return broken("committed offset", each.err);
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (const auto error = rd_kafka_query_watermark_offsets(
            client_.get(), topic_.c_str(), each.partition, &low, &high, left_ms(deadline))) {
      return broken("log end", error);
    }
    PartitionEnd end{each.partition, high, {}};
    if (each.offset >= 0) end.committed = each.offset;
    out.push_back(end);
  }
  return out;
}

Result<std::vector<RawRecord>> TopicWitness::records(milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  const Result<int> count = partitions(left_ms(deadline));
  if (!count) return tl::unexpected<Error>(count.error());
  std::map<std::int32_t, std::int64_t> missing;
  const List list(rd_kafka_topic_partition_list_new(*count));
  for (int i = 0; i < *count; ++i) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (const auto error = rd_kafka_query_watermark_offsets(
            client_.get(), topic_.c_str(), i, &low, &high, left_ms(deadline))) {
      return broken("log end", error);
    }
    if (high <= low) continue;
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), i)->offset = low;
    missing[i] = high;
  }
  if (const auto error = rd_kafka_assign(client_.get(), list.get())) return broken("assign", error);
  std::vector<RawRecord> out;
  while (!missing.empty()) {
    if (steady_clock::now() > deadline) {
      return fail(Code::unavailable, fmt::format("read {} records of {} and not all of them in "
                                                 "{} ms",
                                                 out.size(), topic_, limit.count()));
    }
    const Message message(
        rd_kafka_consumer_poll(client_.get(), std::min(left_ms(deadline), 100)));
    // Nothing visible may be left below the end: then the position has to pass it.
    if (message == nullptr || message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      const List position(rd_kafka_topic_partition_list_copy(list.get()));
      if (rd_kafka_position(client_.get(), position.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
      for (int i = 0; i < position->cnt; ++i) {
        const auto found = missing.find(position->elems[i].partition);
        if (found != missing.end() && position->elems[i].offset >= found->second) {
          missing.erase(found);
        }
      }
      continue;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) return broken(topic_, message->err);
    const auto found = missing.find(message->partition);
    if (found == missing.end() || message->offset >= found->second) continue;
    out.push_back({{message->partition, message->offset},
                   bytes(message->key, message->key_len),
                   bytes(message->payload, message->len)});
    if (message->offset + 1 >= found->second) missing.erase(found);
  }
  rd_kafka_assign(client_.get(), nullptr);
  return out;
}

}  // namespace tenure::judge
