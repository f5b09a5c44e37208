// The chaos test's own view of the broker. Shares no code with what it tests.
//
//   log_tool BROKERS create TOPIC PARTITIONS REPLICATION
//   log_tool BROKERS drop TOPIC GROUP    best effort: also when one of them is not there
//   log_tool BROKERS produce TOPIC       stdin: PARTITION <tab> KEY <tab> VALUE, a record a line;
//                                        at its end prints {"acked":N,"failed":N}
//   log_tool BROKERS read TOPIC          all records, PARTITION <tab> OFFSET <tab> KEY <tab> VALUE,
//                                        then a line "end" <tab> PARTITION <tab> LOW <tab> HIGH
//                                        each
//   log_tool BROKERS offsets TOPIC GROUP a JSON line for each line of stdin: committed and end
//
// Exit 0, or 1 with a line on stderr. `produce` acknowledges by all replicas, once, in order.
#include <librdkafka/rdkafka.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds request_timeout = seconds(10);
/// A cluster that has just lost its coordinator or a leader answers again within this.
constexpr milliseconds patience = seconds(60);

int count_of(milliseconds span) {
  return static_cast<int>(span.count());
}

template <class T, void (*free_it)(T*)>
struct Free {
  void operator()(T* object) const { free_it(object); }
};
using Client = std::unique_ptr<rd_kafka_t, Free<rd_kafka_t, rd_kafka_destroy>>;
using Partitions =
    std::unique_ptr<rd_kafka_topic_partition_list_t,
                    Free<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>>;
using Message =
    std::unique_ptr<rd_kafka_message_t, Free<rd_kafka_message_t, rd_kafka_message_destroy>>;
using Topic = std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_t, rd_kafka_topic_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Free<rd_kafka_queue_t, rd_kafka_queue_destroy>>;
using Reply = std::unique_ptr<rd_kafka_event_t, Free<rd_kafka_event_t, rd_kafka_event_destroy>>;

[[noreturn]] void fail(const std::string& what, rd_kafka_resp_err_t error) {
  throw std::runtime_error(what + ": " + rd_kafka_err2str(error));
}

void require(rd_kafka_resp_err_t error, const std::string& what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail(what, error);
}

int number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("not a number: " + std::string(text));
  }
  return value;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

Client make_client(rd_kafka_type_t type, const Settings& settings,
                   void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr,
                   void* opaque = nullptr) {
  std::array<char, 512> problem{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [key, value] : settings) {
    if (rd_kafka_conf_set(conf, key.c_str(), value.c_str(), problem.data(), problem.size()) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      throw std::runtime_error(problem.data());
    }
  }
  if (delivered != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  rd_kafka_conf_set_opaque(conf, opaque);
  Client client(rd_kafka_new(type, conf, problem.data(), problem.size()));
  if (!client) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(problem.data());
  }
  return client;
}

Partitions all_partitions(rd_kafka_t* client, const std::string& topic) {
  const Topic handle(rd_kafka_topic_new(client, topic.c_str(), nullptr));
  const rd_kafka_metadata_t* metadata = nullptr;
  require(rd_kafka_metadata(client, 0, handle.get(), &metadata, count_of(request_timeout)),
          "metadata of " + topic);
  const int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(metadata);
  if (count == 0) throw std::runtime_error("no such topic: " + topic);
  Partitions list(rd_kafka_topic_partition_list_new(count));
  for (int i = 0; i < count; ++i) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), i)->offset = 0;
  }
  return list;
}

struct LogEnds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

LogEnds ends_of(rd_kafka_t* client, const std::string& topic, std::int32_t partition) {
  LogEnds ends;
  const Queue nothing(rd_kafka_queue_new(client));
  const auto deadline = Clock::now() + patience;
  while (true) {
    const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        client, topic.c_str(), partition, &ends.low, &ends.high, count_of(request_timeout));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return ends;
    // A partition whose leader has just died has none for a while.
    if (Clock::now() > deadline) fail("ends of partition " + std::to_string(partition), error);
    Reply(rd_kafka_queue_poll(nothing.get(), 100));
  }
}

// ---- create, drop

Reply await(rd_kafka_queue_t* queue, const std::string& what) {
  Reply reply(rd_kafka_queue_poll(queue, count_of(patience)));
  if (!reply) throw std::runtime_error(what + ": no answer");
  return reply;
}

void create(const Settings& broker, const std::string& topic, int partitions, int replication) {
  const Client client = make_client(RD_KAFKA_PRODUCER, broker);
  const Queue queue(rd_kafka_queue_new(client.get()));
  std::array<char, 256> problem{};
  rd_kafka_NewTopic_t* wanted =
      rd_kafka_NewTopic_new(topic.c_str(), partitions, replication, problem.data(), problem.size());
  if (wanted == nullptr) throw std::runtime_error(problem.data());
  rd_kafka_CreateTopics(client.get(), &wanted, 1, nullptr, queue.get());
  rd_kafka_NewTopic_destroy(wanted);
  const Reply reply = await(queue.get(), "create " + topic);
  require(rd_kafka_event_error(reply.get()), "create " + topic);
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(reply.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    require(rd_kafka_topic_result_error(results[i]), "create " + topic);
  }
}

void drop(const Settings& broker, const std::string& topic, const std::string& group) {
  const Client client = make_client(RD_KAFKA_PRODUCER, broker);
  const Queue queue(rd_kafka_queue_new(client.get()));
  rd_kafka_DeleteTopic_t* old_topic = rd_kafka_DeleteTopic_new(topic.c_str());
  rd_kafka_DeleteTopics(client.get(), &old_topic, 1, nullptr, queue.get());
  rd_kafka_DeleteTopic_destroy(old_topic);
  await(queue.get(), "drop " + topic);
  rd_kafka_DeleteGroup_t* old_group = rd_kafka_DeleteGroup_new(group.c_str());
  rd_kafka_DeleteGroups(client.get(), &old_group, 1, nullptr, queue.get());
  rd_kafka_DeleteGroup_destroy(old_group);
  await(queue.get(), "drop " + group);
}

// ---- produce

struct Deliveries {
  std::int64_t acked = 0;
  std::int64_t failed = 0;
};

void count_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& deliveries = *static_cast<Deliveries*>(opaque);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++deliveries.acked;
    return;
  }
  ++deliveries.failed;
  std::cerr << "log_tool: not delivered: " << rd_kafka_err2str(message->err) << "\n";
}

void produce(Settings settings, const std::string& topic) {
  settings.emplace_back("enable.idempotence", "true");
  settings.emplace_back("linger.ms", "5");
  settings.emplace_back("message.timeout.ms", std::to_string(2 * patience.count()));
  Deliveries deliveries;
  const Client client = make_client(RD_KAFKA_PRODUCER, settings, &count_delivery, &deliveries);
  const Topic log(rd_kafka_topic_new(client.get(), topic.c_str(), nullptr));
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t first = line.find('\t');
    const std::size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (second == std::string::npos) throw std::runtime_error("not a record: " + line);
    const int partition = number(std::string_view(line).substr(0, first));
    std::string key = line.substr(first + 1, second - first - 1);
    std::string value = line.substr(second + 1);
    while (true) {
      if (rd_kafka_produce(log.get(), partition, RD_KAFKA_MSG_F_COPY, value.data(), value.size(),
                           key.data(), key.size(), nullptr) == 0) {
        break;
      }
      const rd_kafka_resp_err_t error = rd_kafka_last_error();
      if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("produce", error);
      rd_kafka_poll(client.get(), 100);
    }
    rd_kafka_poll(client.get(), 0);
  }
  require(rd_kafka_flush(client.get(), count_of(2 * patience)), "flush");
  std::cout << "{\"acked\":" << deliveries.acked << ",\"failed\":" << deliveries.failed << "}\n";
}

// ---- read

void read(Settings settings, const std::string& topic) {
  // Never joins: assigns by itself and commits nothing.
  settings.emplace_back("group.id", "log_tool-" + topic);
  settings.emplace_back("enable.auto.commit", "false");
  settings.emplace_back("auto.offset.reset", "error");
  const Client client = make_client(RD_KAFKA_CONSUMER, settings);
  rd_kafka_poll_set_consumer(client.get());
  const Partitions list = all_partitions(client.get(), topic);
  std::map<std::int32_t, LogEnds> open;
  std::string ends;
  for (int i = 0; i < list->cnt; ++i) {
    rd_kafka_topic_partition_t& line = list->elems[i];
    const LogEnds at = ends_of(client.get(), topic, line.partition);
    line.offset = at.low;
    if (at.low < at.high) open[line.partition] = at;
    ends += "end\t" + std::to_string(line.partition) + "\t" + std::to_string(at.low) + "\t" +
            std::to_string(at.high) + "\n";
  }
  require(rd_kafka_assign(client.get(), list.get()), "assign");
  auto deadline = Clock::now() + patience;
  while (!open.empty()) {
    const Message message(rd_kafka_consumer_poll(client.get(), 1000));
    if (Clock::now() > deadline) throw std::runtime_error("read: nothing for a minute");
    if (!message) continue;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      std::cerr << "log_tool: read: " << rd_kafka_err2str(message->err) << "\n";
      continue;
    }
    deadline = Clock::now() + patience;
    const auto found = open.find(message->partition);
    if (found == open.end()) continue;
    std::cout << message->partition << '\t' << message->offset << '\t'
              << std::string_view(static_cast<const char*>(message->key), message->key_len) << '\t'
              << std::string_view(static_cast<const char*>(message->payload), message->len) << '\n';
    if (message->offset + 1 >= found->second.high) open.erase(found);
  }
  std::cout << ends;
  rd_kafka_consumer_close(client.get());
}

// ---- offsets

void offsets(Settings settings, const std::string& topic, const std::string& group) {
  settings.emplace_back("group.id", group);
  const Client client = make_client(RD_KAFKA_CONSUMER, settings);
  const Partitions list = all_partitions(client.get(), topic);
  for (std::string line; std::getline(std::cin, line);) {
    // Committed first: an end read later can only be higher.
    const rd_kafka_resp_err_t error =
        rd_kafka_committed(client.get(), list.get(), count_of(request_timeout));
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      std::cout << "{\"error\":\"" << rd_kafka_err2name(error) << "\"}" << std::endl;
      continue;
    }
    std::string answer;
    for (int i = 0; i < list->cnt; ++i) {
      const rd_kafka_topic_partition_t& one = list->elems[i];
      if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        answer.clear();
        std::cout << "{\"error\":\"" << rd_kafka_err2name(one.err) << "\"}" << std::endl;
        break;
      }
      const std::string committed = one.offset >= 0 ? std::to_string(one.offset) : "null";
      answer += (i == 0 ? "" : ",");
      answer += "{\"partition\":" + std::to_string(one.partition) + ",\"committed\":" + committed +
                ",\"end\":" + std::to_string(ends_of(client.get(), topic, one.partition).high) +
                "}";
    }
    if (!answer.empty()) std::cout << "{\"partitions\":[" << answer << "]}" << std::endl;
  }
}

int usage() {
  std::cerr << "usage: log_tool BROKERS create TOPIC PARTITIONS REPLICATION | drop TOPIC GROUP |\n"
               "       produce TOPIC | read TOPIC | offsets TOPIC GROUP\n";
  return 64;
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 3) return usage();
  const Settings broker = {
      {"bootstrap.servers", words[0]}, {"client.id", "log_tool"}, {"log_level", "2"}};
  const std::string& verb = words[1];
  const std::string& topic = words[2];
  if (verb == "create" && words.size() == 5) {
    create(broker, topic, number(words[3]), number(words[4]));
  } else if (verb == "drop" && words.size() == 4) {
    drop(broker, topic, words[3]);
  } else if (verb == "produce" && words.size() == 3) {
    produce(broker, topic);
  } else if (verb == "read" && words.size() == 3) {
    read(broker, topic);
  } else if (verb == "offsets" && words.size() == 4) {
    offsets(broker, topic, words[3]);
  } else {
    return usage();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& problem) {
    std::cerr << "log_tool: " << problem.what() << "\n";
    return 1;
  }
}
