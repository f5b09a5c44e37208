#include "app/app_broker.hpp"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/mutex.hpp"

namespace tenure::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct ConfClose {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
struct ClientClose {
  void operator()(rd_kafka_t* client) const {
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfClose>;
using Client = std::unique_ptr<rd_kafka_t, ClientClose>;

/// What the client complained of last. Written by its threads.
struct Complaint {
  Mutex mutex;
  std::string text TENURE_GUARDED_BY(mutex);
  bool refused TENURE_GUARDED_BY(mutex) = false;
};

void on_error(rd_kafka_t*, int code, const char* reason, void* opaque) {
  auto& complaint = *static_cast<Complaint*>(opaque);
  const Lock lock(complaint.mutex);
  if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL ||
      code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED) {
    complaint.refused = true;
  }
  // "all brokers down" says less than what came before it.
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !complaint.text.empty()) return;
  complaint.text = reason;
}

void no_log(const rd_kafka_t*, int, const char*, const char*) {}

}  // namespace

Result<BrokerFacts> ask_brokers(const std::map<std::string, std::string>& properties,
                                bool with_topics, milliseconds limit,
                                const std::function<bool()>& cancelled) {
  Complaint complaint;
  Conf conf(rd_kafka_conf_new());
  std::array<char, 512> text{};
  for (const auto& [name, value] : properties) {
    // They belong to the member that will join; debug would write to a log we do not show.
    if (name == "group.instance.id" || name == "debug") continue;
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), text.data(), text.size()) !=
        RD_KAFKA_CONF_OK) {
      return fail(Code::invalid, text.data());
    }
  }
  rd_kafka_conf_set_opaque(conf.get(), &complaint);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_conf_set_log_cb(conf.get(), no_log);
  const Client client(
      rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), text.data(), text.size()));
  if (client == nullptr) return fail(Code::invalid, text.data());
  static_cast<void>(conf.release());

  const auto deadline = steady_clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    const int slice = static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 500));
    const struct rd_kafka_metadata* found = nullptr;
    const rd_kafka_resp_err_t error =
        rd_kafka_metadata(client.get(), with_topics ? 1 : 0, nullptr, &found, slice);
    rd_kafka_poll(client.get(), 0);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      BrokerFacts facts;
      facts.brokers = static_cast<std::size_t>(found->broker_cnt);
      for (int i = 0; with_topics && i < found->topic_cnt; ++i) {
        const struct rd_kafka_metadata_topic& topic = found->topics[i];
        if (topic.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
          facts.topics[topic.topic] = topic.partition_cnt;
        } else {
          facts.broken[topic.topic] = rd_kafka_err2str(topic.err);
        }
      }
      rd_kafka_metadata_destroy(found);
      if (char* id = rd_kafka_clusterid(client.get(), slice)) {
        facts.cluster = id;
        rd_kafka_mem_free(client.get(), id);
      }
      return facts;
    }
    const Lock lock(complaint.mutex);
    if (complaint.refused) {
      return fail(Code::refused, complaint.text, "check the credentials and certificates");
    }
    if (left.count() <= 0 || (cancelled && cancelled())) {
      return fail(Code::unavailable,
                  complaint.text.empty() ? rd_kafka_err2str(error) : complaint.text,
                  "check kafka.bootstrap.servers, and that a broker listens there");
    }
  }
}

}  // namespace tenure::app
