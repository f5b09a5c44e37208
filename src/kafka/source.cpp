#include "tenure/kafka/source.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "kafka/client.hpp"

namespace tenure::kafka {

namespace {

constexpr int client_version_required = 0x020e02ff;

/// Properties that the runtime decides on, with the reason shown to the user.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> owned{{
    {"enable.auto.commit", "Tenure commits the contiguous frontier itself (C4)"},
    {"enable.auto.offset.store", "Tenure commits the contiguous frontier itself (C4)"},
    {"auto.commit.interval.ms", "Tenure commits the contiguous frontier itself (C4)"},
    {"auto.offset.reset", "Tenure resolves starts itself; set it as its own option (F7)"},
    {"enable.partition.eof", "Tenure needs the ends of partitions itself (F3)"},
    {"log.queue", "Tenure takes the client's log lines itself"},
    {"enabled_events", "Tenure uses the client's event interface itself"},
    {"opaque", "Tenure uses the client's event interface itself"},
    {"rebalance_cb", "Tenure answers rebalances itself (R5)"},
    {"offset_commit_cb", "Tenure takes the answers to commits itself (C2)"},
}};

// A client's end is waited for this long by the end of the source; one that handlers still hold
// messages of, or whose question the broker does not answer, takes longer and is left alone.
constexpr std::chrono::milliseconds burial_limit(500);

/// A client that takes longer than that lives on while the process exits, when OpenSSL would free
/// what the client's threads still use: a crash instead of the exit code (seen with a broker that
/// was away). OpenSSL is told not to; the system frees it all. Before the first client of the
/// process, else it is too late.
void keep_openssl_until_the_end() {
  using Init = int (*)(std::uint64_t options, const void* settings);
  constexpr std::uint64_t no_atexit = 0x00080000;  // OPENSSL_INIT_NO_ATEXIT
  // librdkafka may be built without it, or carry its own.
  if (void* symbol = ::dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto")) {
    reinterpret_cast<Init>(symbol)(no_atexit, nullptr);
  }
}

/// Counts the clients that are on their way out.
struct Burials {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t under_way = 0;  // guarded by mutex
};

// The member of a Kafka consumer group behind the Source port.
//
// Role: one Client after another; each is a new member (R11).
// Owns: the client that is open, and those given up until the call that they are inside of ends.
// Threads: as Source says. A client that was given up ends on a thread of its own.
class KafkaSource final : public Source {
 public:
  explicit KafkaSource(SourceOptions options) : options_(std::move(options)) {}
  ~KafkaSource() override {
    if (waker_) waker_->silence();
    abandon();
    std::unique_lock lock(burials_->mutex);
    burials_->ended.wait_for(lock, burial_limit, [this] { return burials_->under_way == 0; });
  }

  Result<void> open(SourceSink& sink, std::function<void()> waker) override {
    abandon();
    if (waker_) waker_->silence();
    waker_ = std::make_shared<Waker>(std::move(waker));
    auto client = Client::create(options_, sink, waker_);
    if (!client) return tl::unexpected<Error>(client.error());
    client_ = std::move(*client);
    return {};
  }

  void poll_events() override {
    if (!client_) return;
    polling_ = true;
    client_->poll_events();
    polling_ = false;
    bury();
  }
  std::size_t poll_records(std::size_t records_max) override {
    if (!client_) return 0;
    polling_ = true;
    const std::size_t handed = client_->poll_records(records_max);
    polling_ = false;
    bury();
    return handed;
  }
  bool answer_assign(RebalanceId id, std::span<const GrantedPartition> granted) override {
    return client_ && client_->answer_assign(id, granted);
  }
  bool answer_revoke(RebalanceId id, std::span<const TopicPartition> revoked) override {
    return client_ && client_->answer_revoke(id, revoked);
  }
  void start(std::span<const StartAt> starts) override {
    if (client_) client_->start(starts);
  }
  void set_flow(OwnerRef owner, bool open) override {
    if (client_) client_->set_flow(owner, open);
  }
  void forget(OwnerRef owner) override {
    if (client_) client_->forget(owner);
  }
  void commit(CommitId id, std::span<const CommitLine> lines) override {
    if (client_) client_->commit(id, lines);
  }
  void read_committed(ReadId id, std::span<const TopicPartition> partitions) override {
    if (client_) client_->read_committed(id, partitions);
  }
  void read_topics(ReadId id, std::span<const std::string> topics) override {
    if (client_) client_->read_topics(id, topics);
  }
  void read_log_ends(ReadId id, std::span<const TopicPartition> partitions) override {
    if (client_) client_->read_log_ends(id, partitions);
  }
  Member member() override { return client_ ? client_->member() : Member{}; }
  void close() override {
    if (client_) client_->close();
  }
  void abandon() override {
    if (!client_) return;
    client_->give_up();
    ended_.push_back(std::move(client_));
    // From inside one of its calls it lives until that returns.
    if (!polling_) bury();
  }
  void release(std::span<const MessageHandle> messages) override {
    for (const MessageHandle message : messages) {
      if (message != nullptr) rd_kafka_message_destroy(static_cast<rd_kafka_message_t*>(message));
    }
  }

  void view(std::span<const MessageHandle> messages, std::span<MessageView> views) const override {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto* message = static_cast<const rd_kafka_message_t*>(messages[i]);
      MessageView& view = views[i];
      view.key = message->key == nullptr
                     ? Bytes()
                     : Bytes(static_cast<const char*>(message->key), message->key_len);
      view.value = message->payload == nullptr
                       ? Bytes()
                       : Bytes(static_cast<const char*>(message->payload), message->len);
      rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
      const std::int64_t timestamp = rd_kafka_message_timestamp(message, &type);
      view.timestamp_ms = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp;
    }
  }

  std::vector<Header> headers(MessageHandle handle) const override {
    std::vector<Header> found;
    rd_kafka_headers_t* headers = nullptr;
    const auto* message = static_cast<const rd_kafka_message_t*>(handle);
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return found;
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      found.emplace_back(name,
                         value == nullptr ? Bytes() : Bytes(static_cast<const char*>(value), size));
    }
    return found;
  }

 private:
  void bury() {
    for (std::unique_ptr<Client>& client : ended_) {
      {
        const std::lock_guard lock(burials_->mutex);
        ++burials_->under_way;
      }
      Client::bury(std::move(client), [burials = burials_] {
        const std::lock_guard lock(burials->mutex);
        --burials->under_way;
        burials->ended.notify_all();
      });
    }
    ended_.clear();
  }

  SourceOptions options_;
  std::shared_ptr<Waker> waker_;
  std::unique_ptr<Client> client_;
  bool polling_ = false;
  std::vector<std::unique_ptr<Client>> ended_;
  const std::shared_ptr<Burials> burials_ = std::make_shared<Burials>();
};

}  // namespace

std::optional<std::string> owned_property(std::string_view property) {
  for (const auto& [name, reason] : owned) {
    if (property == name) return std::string(reason);
  }
  if (property.substr(0, 10) == "test.mock.") return "it starts a broker inside the client";
  return {};
}

std::optional<std::string> check_property(const std::string& property, const std::string& value) {
  const ConfHandle conf(rd_kafka_conf_new());
  char reason[512];
  if (rd_kafka_conf_set(conf.get(), property.c_str(), value.c_str(), reason, sizeof reason) ==
      RD_KAFKA_CONF_OK) {
    return {};
  }
  return std::string(reason);
}

std::string client_version() {
  return rd_kafka_version_str();
}

Result<std::unique_ptr<Source>> make_source(SourceOptions options) {
  keep_openssl_until_the_end();
  if (rd_kafka_version() < client_version_required) {
    return fail(Code::invalid,
                "librdkafka " + client_version() + " is too old: 2.14.2 or newer is required",
                "run tools/bootstrap, which builds a pinned one");
  }
  if (options.topics.empty()) return fail(Code::invalid, "no topics to consume");
  for (const auto& [name, value] : options.properties) {
    if (const auto reason = owned_property(name)) {
      return fail(Code::invalid, "client property " + name + " may not be set: " + *reason);
    }
    if (const auto reason = check_property(name, value)) return fail(Code::invalid, *reason);
  }
  return std::unique_ptr<Source>(std::make_unique<KafkaSource>(std::move(options)));
}

}  // namespace tenure::kafka
