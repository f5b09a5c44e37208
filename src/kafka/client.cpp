#include "kafka/client.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "base/xxh64.hpp"
#include "kafka/broker_error.hpp"

namespace tenure::kafka {

namespace {

// A question to the broker gives up after this; the engine asks again.
constexpr int inquiry_timeout_ms = 5000;
// ... which is waited for in pieces: the end of a client waits for one piece at most.
constexpr int answer_piece_ms = 100;
constexpr int committed_pieces_ms[] = {250, 500, 1000, 2000};
// The seek is handed to the client's own thread, never to a broker; it answers in microseconds.
constexpr int seek_timeout_ms = 50;
constexpr int wake_timeout_ms = 1000;
constexpr std::chrono::milliseconds start_again_wait(10);
constexpr std::size_t batch_records = 1000;
// On the way out: what the group's coordinator may take to let a member go.
constexpr std::chrono::seconds end_close_limit(10);
// KIP-848: what the broker uses when it does not tell us.
constexpr Duration broker_session_default = std::chrono::seconds(45);
constexpr Duration broker_heartbeat_default = std::chrono::seconds(5);

void wake(rd_kafka_t*, void* opaque) {
  static_cast<Waker*>(opaque)->call();
}

Uuid uuid_of(const rd_kafka_Uuid_t* id) {
  Uuid uuid;
  const auto high = static_cast<std::uint64_t>(rd_kafka_Uuid_most_significant_bits(id));
  const auto low = static_cast<std::uint64_t>(rd_kafka_Uuid_least_significant_bits(id));
  for (std::size_t i = 0; i < 8; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
    uuid.bytes[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  }
  return uuid;
}

/// A broker so old that it tells no topic ids: the name stands in. Marked as such by its version
/// digit (8 = custom), so that it is never mistaken for a broker's id.
Uuid uuid_of_name(std::string_view topic) {
  Uuid uuid;
  const std::uint64_t words[2] = {xxh64(std::span<const char>(topic.data(), topic.size())),
                                  topic.size()};
  for (std::size_t i = 0; i < 16; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0fu) | 0x80u);
  return uuid;
}

/// From the client's cache; empty before the first answer of a broker.
std::string cluster_id(rd_kafka_t* client) {
  char* id = rd_kafka_clusterid(client, 0);
  std::string text = id == nullptr ? "" : id;
  if (id != nullptr) rd_kafka_mem_free(client, id);
  return text;
}

Level level_of(int syslog) {
  if (syslog <= 3) return Level::error;
  if (syslog == 4) return Level::warn;
  if (syslog <= 6) return Level::info;
  return Level::debug;
}

using AdminOptions = std::unique_ptr<rd_kafka_AdminOptions_t, Free<rd_kafka_AdminOptions_destroy>>;
using TopicCollection =
    std::unique_ptr<rd_kafka_TopicCollection_t, Free<rd_kafka_TopicCollection_destroy>>;
using ConfigResource =
    std::unique_ptr<rd_kafka_ConfigResource_t, Free<rd_kafka_ConfigResource_destroy>>;

AdminOptions admin_options(rd_kafka_t* client, rd_kafka_admin_op_t kind, int timeout_ms) {
  AdminOptions options(rd_kafka_AdminOptions_new(client, kind));
  char reason[512];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), timeout_ms, reason, sizeof reason);
  return options;
}

EventHandle wait_for_answer(rd_kafka_queue_t* queue, const std::atomic<bool>& stopped) {
  EventHandle event;
  for (int waited = 0; !event && !stopped && waited < inquiry_timeout_ms + 1000;
       waited += answer_piece_ms) {
    event.reset(rd_kafka_queue_poll(queue, answer_piece_ms));
  }
  return event;
}

BrokerError error_of(const EventHandle& event) {
  return event ? broker_error(rd_kafka_event_error(event.get())) : BrokerError::timed_out;
}

/// Both ends of the logs, at the client's isolation level.
std::vector<LogEnds> ask_log_ends(rd_kafka_t* client, rd_kafka_IsolationLevel_t isolation,
                                  const std::vector<TopicPartition>& asked,
                                  const std::atomic<bool>& stopped) {
  const AdminOptions options =
      admin_options(client, RD_KAFKA_ADMIN_OP_LISTOFFSETS, inquiry_timeout_ms);
  rd_kafka_error_destroy(rd_kafka_AdminOptions_set_isolation_level(options.get(), isolation));
  const std::int64_t specs[] = {RD_KAFKA_OFFSET_SPEC_EARLIEST, RD_KAFKA_OFFSET_SPEC_LATEST};
  QueueHandle queues[2];
  for (std::size_t end = 0; end < 2; ++end) {
    PartitionList list;
    for (const TopicPartition& partition : asked) list.add(partition, specs[end]);
    queues[end].reset(rd_kafka_queue_new(client));
    rd_kafka_ListOffsets(client, list.get(), options.get(), queues[end].get());
  }
  std::vector<LogEnds> ends(asked.size());
  std::map<TopicPartition, std::size_t> rows;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ends[i].partition = asked[i];
    rows[asked[i]] = i;
  }
  for (std::size_t end = 0; end < 2; ++end) {
    const EventHandle event = wait_for_answer(queues[end].get(), stopped);
    // A partition that the answer does not name is not known either.
    std::vector<BrokerError> errors(
        asked.size(), error_of(event) == BrokerError::none ? BrokerError::other : error_of(event));
    std::size_t count = 0;
    const rd_kafka_ListOffsetsResultInfo_t** infos =
        error_of(event) == BrokerError::none
            ? rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event.get()),
                                                &count)
            : nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      const auto* row = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[i]);
      const auto found = rows.find(partition_of(*row));
      if (found == rows.end()) continue;
      LogEnds& line = ends[found->second];
      BrokerError& error = errors[found->second];
      error = broker_error(row->err);
      if (error == BrokerError::none && row->offset < 0) error = BrokerError::other;
      if (error == BrokerError::none) (end == 0 ? line.start : line.end) = Offset(row->offset);
    }
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (ends[i].error == BrokerError::none) ends[i].error = errors[i];
    }
  }
  return ends;
}

struct DescribedTopics {
  TopicsRead read;
  bool without_ids = false;
};

DescribedTopics ask_topics(rd_kafka_t* client, ReadId id, const std::vector<std::string>& topics,
                           const std::atomic<bool>& stopped) {
  std::vector<const char*> names;
  for (const std::string& topic : topics) names.push_back(topic.c_str());
  const TopicCollection collection(
      rd_kafka_TopicCollection_of_topic_names(names.data(), names.size()));
  const AdminOptions options =
      admin_options(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, inquiry_timeout_ms);
  const QueueHandle queue(rd_kafka_queue_new(client));
  rd_kafka_DescribeTopics(client, collection.get(), options.get(), queue.get());
  const EventHandle event = wait_for_answer(queue.get(), stopped);
  // F8: an id that could not be read is not known; nothing may stand in for it.
  BrokerError error = error_of(event);
  DescribedTopics described;
  described.read.id = id;
  described.read.cluster = cluster_id(client);
  if (error == BrokerError::none && described.read.cluster.empty()) error = BrokerError::transport;
  for (const std::string& topic : topics) {
    TopicFacts facts;
    facts.topic = topic;
    facts.error = error == BrokerError::none ? BrokerError::other : error;
    described.read.topics.push_back(std::move(facts));
  }
  if (error != BrokerError::none) return described;
  std::size_t count = 0;
  const rd_kafka_TopicDescription_t** rows = rd_kafka_DescribeTopics_result_topics(
      rd_kafka_event_DescribeTopics_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = rd_kafka_TopicDescription_name(rows[i]);
    for (TopicFacts& facts : described.read.topics) {
      if (facts.topic != name) continue;
      facts.error = broker_error(rd_kafka_error_code(rd_kafka_TopicDescription_error(rows[i])));
      if (facts.error != BrokerError::none) continue;
      facts.id = uuid_of(rd_kafka_TopicDescription_topic_id(rows[i]));
      std::size_t partitions = 0;
      rd_kafka_TopicDescription_partitions(rows[i], &partitions);
      facts.partitions = static_cast<std::int32_t>(partitions);
      if (facts.id.zero()) {
        facts.id = uuid_of_name(facts.topic);
        described.without_ids = true;
      }
    }
  }
  return described;
}

/// What the broker uses for this group: its own value, else that for all groups.
BrokerError ask_group_times(rd_kafka_t* client, const std::string& group, MembershipTimes& times,
                            const std::atomic<bool>& stopped) {
  const ConfigResource resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_GROUP, group.c_str()));
  rd_kafka_ConfigResource_t* asked = resource.get();
  const AdminOptions options =
      admin_options(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, inquiry_timeout_ms);
  const QueueHandle queue(rd_kafka_queue_new(client));
  rd_kafka_DescribeConfigs(client, &asked, 1, options.get(), queue.get());
  const EventHandle event = wait_for_answer(queue.get(), stopped);
  if (error_of(event) != BrokerError::none) return error_of(event);
  std::size_t resources = 0;
  const rd_kafka_ConfigResource_t** rows = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event.get()), &resources);
  if (resources != 1) return BrokerError::other;
  if (rd_kafka_ConfigResource_error(rows[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return broker_error(rd_kafka_ConfigResource_error(rows[0]));
  }
  std::size_t entries = 0;
  const rd_kafka_ConfigEntry_t** entry = rd_kafka_ConfigResource_configs(rows[0], &entries);
  bool found = false;
  for (std::size_t e = 0; e < entries; ++e) {
    const std::string_view name = rd_kafka_ConfigEntry_name(entry[e]);
    const char* value = rd_kafka_ConfigEntry_value(entry[e]);
    const Duration duration = std::chrono::milliseconds(value ? std::atoll(value) : 0);
    if (duration <= Duration::zero()) continue;
    if (name == "consumer.heartbeat.interval.ms") times.heartbeat = duration;
    if (name == "consumer.session.timeout.ms") {
      times.session = duration;
      found = true;
    }
  }
  return found ? BrokerError::none : BrokerError::other;
}

}  // namespace

// ---- birth and death -------------------------------------------------------------------------

Client::Client(SourceSink& sink, std::shared_ptr<Waker> waker, SourceOptions::Hash hash)
    : sink_(sink), waker_(std::move(waker)), hash_(hash) {}

Result<std::unique_ptr<Client>> Client::create(const SourceOptions& options, SourceSink& sink,
                                               std::shared_ptr<Waker> waker) {
  ConfHandle conf(rd_kafka_conf_new());
  char reason[512];
  const auto set = [&](const std::string& name, const std::string& value) {
    return rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), reason, sizeof reason) ==
           RD_KAFKA_CONF_OK;
  };
  for (const auto& [name, value] : options.properties) {
    if (!set(name, value)) {
      return fail(Code::invalid, "client property " + name + ": " + reason);
    }
  }
  // Ours, see ADR 0001 and 0004: starts are resolved by the engine, ends of partitions tell where
  // the fetch has passed (F3, F7), commits are explicit (C4).
  using Property = std::pair<const char*, const char*>;
  for (const auto& [name, value] :
       {Property{"enable.auto.commit", "false"}, Property{"enable.auto.offset.store", "false"},
        Property{"auto.offset.reset", "error"}, Property{"enable.partition.eof", "true"},
        Property{"log.queue", "true"}}) {
    if (!set(name, value)) {
      return fail(Code::internal, std::string("client property ") + name + ": " + reason);
    }
  }
  rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR |
                                           RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_LOG);

  std::unique_ptr<Client> made(new Client(sink, std::move(waker), options.hash));
  made->client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), reason, sizeof reason);
  if (made->client_ == nullptr) {
    return fail(Code::invalid, std::string("the client refuses its configuration: ") + reason);
  }
  static_cast<void>(conf.release());  // the client's now
  made->group_protocol_ = made->property("group.protocol");
  rd_kafka_t* client = made->client_;
  rd_kafka_poll_set_consumer(client);
  rd_kafka_set_log_queue(client, nullptr);
  made->consumer_queue_.reset(rd_kafka_queue_get_consumer(client));
  made->data_queue_.reset(rd_kafka_queue_new(client));
  made->reply_queue_.reset(rd_kafka_queue_new(client));
  made->close_queue_.reset(rd_kafka_queue_new(client));
  for (rd_kafka_queue_t* queue : {made->consumer_queue_.get(), made->data_queue_.get(),
                                  made->reply_queue_.get(), made->close_queue_.get()}) {
    rd_kafka_queue_cb_event_enable(queue, wake, made->waker_.get());
  }
  made->batch_.resize(batch_records);
  const auto waker_of_inquiry = [signal = made->waker_] { signal->call(); };
  made->group_inquiry_ = std::make_unique<Inquiry>(waker_of_inquiry);
  made->leader_inquiry_ = std::make_unique<Inquiry>(waker_of_inquiry);

  PartitionList topics;
  for (const std::string& topic : options.topics) {
    topics.add({topic, Partition(RD_KAFKA_PARTITION_UA)});
  }
  const rd_kafka_resp_err_t error = rd_kafka_subscribe(client, topics.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    bury(std::move(made), [] {});
    return fail(Code::invalid, std::string("subscribe: ") + rd_kafka_err2str(error));
  }
  made->ask_times();
  return made;
}

Client::~Client() {
  // Inquiries use the client: they end first.
  group_inquiry_.reset();
  leader_inquiry_.reset();
  if (client_ == nullptr) return;
  for (rd_kafka_queue_t* queue :
       {consumer_queue_.get(), data_queue_.get(), reply_queue_.get(), close_queue_.get()}) {
    if (queue != nullptr) rd_kafka_queue_cb_event_enable(queue, nullptr, nullptr);
  }
  if (!closed_) end_close();
  granted_.clear();
  close_queue_.reset();
  reply_queue_.reset();
  data_queue_.reset();
  consumer_queue_.reset();
  // The group has been left, as far as its coordinator could be reached.
  rd_kafka_destroy_flags(client_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

/// Leaves the group: a rebalance that nobody answers any more would hold up the others, and, now
/// and then, the client's own destruction for ever.
void Client::end_close() {
  if (!closing_) {
    const ErrorHandle failed(rd_kafka_consumer_close_queue(client_, close_queue_.get()));
    if (failed) return;  // after a fatal error there is nothing to leave
  }
  const auto limit = std::chrono::steady_clock::now() + end_close_limit;
  if (!unanswered_.empty()) answer_close();
  while (rd_kafka_consumer_closed(client_) == 0 && std::chrono::steady_clock::now() < limit) {
    const EventHandle event(rd_kafka_queue_poll(close_queue_.get(), 100));
    if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_REBALANCE) answer_close();
  }
}

/// The first answer after a close gives everything away, whatever it answers. A second one could
/// meet the end of the group's side and would then never return.
bool Client::answer_close() {
  if (!std::exchange(close_answered_, true)) rd_kafka_assign(client_, nullptr);
  return true;
}

void Client::bury(std::unique_ptr<Client> client, std::function<void()> ended) {
  client->given_up_ = true;
  client->group_inquiry_->stop();
  client->leader_inquiry_->stop();
  // Destroying waits for messages that handlers still hold; the loop thread must not.
  std::thread([buried = std::move(client), ended = std::move(ended)]() mutable {
    buried.reset();
    ended();
  }).detach();
}

std::string Client::property(const char* name) const {
  char value[512];
  std::size_t size = sizeof value;
  if (rd_kafka_conf_get(rd_kafka_conf(client_), name, value, &size) != RD_KAFKA_CONF_OK) return {};
  return value;
}

Duration Client::milliseconds_of(const char* name, Duration otherwise) const {
  const std::string text = property(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size()
             ? Duration(std::chrono::milliseconds(value))
             : otherwise;
}

void Client::ask_times() {
  MembershipTimes times;
  times.poll_limit = milliseconds_of("max.poll.interval.ms", std::chrono::minutes(5));
  times.socket_timeout = milliseconds_of("socket.timeout.ms", std::chrono::minutes(1));
  times.session = milliseconds_of("session.timeout.ms", broker_session_default);
  times.heartbeat = milliseconds_of("heartbeat.interval.ms", std::chrono::seconds(3));
  if (group_protocol_ == "consumer") {
    times.session = broker_session_default;
    times.heartbeat = broker_heartbeat_default;
    ask_broker_times(times);
  }
  times_due_ = times;
}

void Client::ask_broker_times(MembershipTimes times) {
  // KIP-848: the broker decides. A value that it does not tell (no right to, a mock) is taken as
  // Apache Kafka's default; one that could not be asked for is asked for again.
  leader_inquiry_->ask([this, times, group = property("group.id")](
                           const std::atomic<bool>& stopped) mutable -> Inquiry::Answer {
    const BrokerError error = ask_group_times(client_, group, times, stopped);
    if (error == BrokerError::none) return [this, times] { sink_.times(times); };
    if (error == BrokerError::timed_out || error == BrokerError::transport) {
      return [this, times] { ask_broker_times(times); };
    }
    return [this, error] {
      sink_.client_log(Level::info, "TIMES",
                       "the broker does not tell the session timeout of this group (" +
                           std::string(name(error)) +
                           "): Apache Kafka's default, 45 s, is assumed");
    };
  });
}

// ---- events ----------------------------------------------------------------------------------

void Client::poll_events() {
  if (times_due_) sink_.times(*std::exchange(times_due_, std::nullopt));
  flush_starts();
  std::vector<CommitAnswer> refused;
  refused.swap(refused_commits_);
  for (const CommitAnswer& answer : refused) {
    if (!given_up_) sink_.commit_answered(answer);
  }

  std::vector<Inquiry::Answer> answers;
  group_inquiry_->take(answers);
  leader_inquiry_->take(answers);
  for (const Inquiry::Answer& answer : answers) {
    if (!given_up_) answer();
  }

  serve(reply_queue_.get());
  serve(closing_ ? close_queue_.get() : consumer_queue_.get());
  if (closing_ && !closed_ && !given_up_ && rd_kafka_consumer_closed(client_) == 1) {
    closed_ = true;
    sink_.closed();
  }
}

void Client::serve(rd_kafka_queue_t* queue) {
  while (!given_up_) {
    // While closing the group's events are forwarded elsewhere.
    if (closing_ && queue == consumer_queue_.get()) return;
    const EventHandle event(rd_kafka_queue_poll(queue, 0));
    if (!event) return;
    switch (rd_kafka_event_type(event.get())) {
      case RD_KAFKA_EVENT_REBALANCE:
        on_rebalance(event.get());
        break;
      case RD_KAFKA_EVENT_OFFSET_COMMIT:
        on_commit(event.get());
        break;
      case RD_KAFKA_EVENT_ERROR:
        on_error(event.get());
        break;
      case RD_KAFKA_EVENT_LOG:
        on_log(event.get());
        break;
      default:
        break;
    }
  }
}

void Client::on_rebalance(rd_kafka_event_t* event) {
  Rebalance rebalance;
  rebalance.id = RebalanceId(++last_rebalance_);
  rebalance.kind = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS
                       ? Rebalance::Kind::assign
                       : Rebalance::Kind::revoke;
  rebalance.lost = rebalance.kind == Rebalance::Kind::revoke &&
                   (rd_kafka_assignment_lost(client_) == 1 || granting_anew_);
  const char* protocol = rd_kafka_rebalance_protocol(client_);
  protocol_ = group_protocol_ == "consumer" ? Protocol::consumer
              : protocol != nullptr && std::string_view(protocol) == "EAGER"
                  ? Protocol::eager
                  : Protocol::cooperative;
  rebalance.protocol = protocol_;
  if (const auto* list = rd_kafka_event_topic_partition_list(event)) {
    for (int i = 0; i < list->cnt; ++i) {
      rebalance.partitions.push_back(partition_of(list->elems[i]));
    }
  }
  rebalance.member = read_member();
  unanswered_.insert(rebalance.id);
  sink_.rebalance(rebalance);
}

void Client::on_error(rd_kafka_event_t* event) {
  const rd_kafka_resp_err_t code = rd_kafka_event_error(event);
  ClientError error;
  error.error = broker_error(code);
  error.message = rd_kafka_event_error_string(event);
  error.all_brokers_down = code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
  if (rd_kafka_event_error_is_fatal(event) == 1 || code == RD_KAFKA_RESP_ERR__FATAL) {
    error.fatal = true;
    char reason[512];
    const rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(client_, reason, sizeof reason);
    if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
      error.error = broker_error(fatal);
      error.message = reason;
    }
  }
  sink_.client_error(error);
}

void Client::on_log(rd_kafka_event_t* event) {
  const char* facility = nullptr;
  const char* text = nullptr;
  int level = 0;
  if (rd_kafka_event_log(event, &facility, &text, &level) != 0) return;
  sink_.client_log(level_of(level), facility, text);
}

Member Client::member() const {
  // Asked while the group's side is ending, the client may never answer.
  return closing_ ? Member{} : read_member();
}

Member Client::read_member() const {
  Member member;
  const GroupMetadata metadata(rd_kafka_consumer_group_metadata(client_));
  if (!metadata) return member;
  const char* id = rd_kafka_consumer_group_metadata_member_id(metadata.get());
  const char* instance = rd_kafka_consumer_group_metadata_group_instance_id(metadata.get());
  member.id = id == nullptr ? "" : id;
  member.instance_id = instance == nullptr ? "" : instance;
  member.epoch = Epoch(rd_kafka_consumer_group_metadata_generation_id(metadata.get()));
  return member;
}

// ---- assignment ------------------------------------------------------------------------------

Client::Granted* Client::find(std::string_view topic, std::int32_t partition) {
  const auto found = granted_.find(topic);
  if (found == granted_.end()) return nullptr;
  const auto row = found->second.find(partition);
  return row == found->second.end() ? nullptr : row->second.get();
}

Client::Granted* Client::find(OwnerRef owner) {
  for (auto& [topic, partitions] : granted_) {
    for (auto& [partition, granted] : partitions) {
      if (granted->owner == owner) return granted.get();
    }
  }
  return nullptr;
}

void Client::forward(Granted& granted, bool open) {
  rd_kafka_queue_forward(granted.queue.get(), open ? data_queue_.get() : nullptr);
}

bool Client::answer_assign(RebalanceId id, std::span<const GrantedPartition> list) {
  if (unanswered_.erase(id) == 0) return false;
  if (closing_) return answer_close();
  PartitionList added;
  std::vector<std::unique_ptr<Granted>> fresh;
  for (const GrantedPartition& row : list) {
    auto granted = std::make_unique<Granted>();
    granted->partition = row.partition;
    granted->owner = row.owner;
    // ADR 0001: the partition's queue first, else what is fetched meanwhile goes elsewhere; then
    // pause, then assign at a concrete offset, which asks nobody anything while it is paused.
    granted->queue.reset(rd_kafka_queue_get_partition(client_, row.partition.topic.c_str(),
                                                      row.partition.partition.value()));
    forward(*granted, false);
    added.add(row.partition, 0);
    fresh.push_back(std::move(granted));
  }
  if (!added.empty()) rd_kafka_pause_partitions(client_, added.get());
  for (int i = 0; i < added.size(); ++i) added[i].err = RD_KAFKA_RESP_ERR_NO_ERROR;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (incremental()) {
    const ErrorHandle failed(rd_kafka_incremental_assign(client_, added.get()));
    if (failed) error = rd_kafka_error_code(failed.get());
  } else {
    error = rd_kafka_assign(client_, added.get());
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    sink_.client_log(Level::error, "ASSIGN", rd_kafka_err2str(error));
    return false;
  }
  for (std::unique_ptr<Granted>& granted : fresh) {
    const TopicPartition& partition = granted->partition;
    granted_[partition.topic][partition.partition.value()] = std::move(granted);
  }
  if (incremental()) wake_started();
  return true;
}

bool Client::answer_revoke(RebalanceId id, std::span<const TopicPartition> list) {
  if (unanswered_.erase(id) == 0) return false;
  if (closing_) return answer_close();
  PartitionList removed;
  std::vector<std::unique_ptr<Granted>> outdated;
  for (const TopicPartition& partition : list) {
    const auto topic = granted_.find(partition.topic);
    if (topic != granted_.end()) {
      const auto row = topic->second.find(partition.partition.value());
      if (row != topic->second.end()) {
        forward(*row->second, false);
        outdated.push_back(std::move(row->second));
        topic->second.erase(row);
      }
    }
    removed.add(partition);
  }
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (incremental()) {
    const ErrorHandle failed(rd_kafka_incremental_unassign(client_, removed.get()));
    if (failed) error = rd_kafka_error_code(failed.get());
  } else {
    error = rd_kafka_assign(client_, nullptr);
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    sink_.client_log(Level::error, "UNASSIGN", rd_kafka_err2str(error));
    return false;
  }
  // What had been fetched is outdated now; looking at the queue drops it and frees its memory.
  for (const auto& granted : outdated) {
    rd_kafka_message_t* message = nullptr;
    while (rd_kafka_consume_batch_queue(granted->queue.get(), 0, &message, 1) == 1) {
      rd_kafka_message_destroy(message);
    }
  }
  if (incremental()) wake_started();
  return true;
}

void Client::wake_started() {
  // Trap 2 of design/7-benchmarks: partitions that are kept, or resumed, are fetched again on a
  // one-second grid unless a request wakes the thread of their leader.
  PartitionList asked;
  for (const auto& [topic, partitions] : granted_) {
    for (const auto& [number, granted] : partitions) {
      if (granted->started) asked.add(granted->partition, RD_KAFKA_OFFSET_SPEC_LATEST);
    }
  }
  if (asked.empty() || closing_) return;
  // One request to each leader. The answers come to the reply queue, where nobody looks at them.
  const AdminOptions options =
      admin_options(client_, RD_KAFKA_ADMIN_OP_LISTOFFSETS, wake_timeout_ms);
  rd_kafka_ListOffsets(client_, asked.get(), options.get(), reply_queue_.get());
}

// ---- starting --------------------------------------------------------------------------------

void Client::start(std::span<const StartAt> starts) {
  for (const StartAt& at : starts) {
    Granted* granted = find(at.partition.topic, at.partition.partition.value());
    if (granted == nullptr) continue;  // revoked meanwhile
    granted->owner = at.owner;
    granted->start = at.offset;
    granted->start_leader_epoch = at.leader_epoch;
    granted->expected = at.offset;
    granted->started = false;
    granted->flow_wanted = true;
    granted->start_due = true;
    starts_due_ = true;
  }
  waker_->call();
}

void Client::flush_starts() {
  if (!starts_due_ || closing_) return;
  starts_due_ = false;
  grant_stopped_anew();
  PartitionList wanted;
  std::vector<Granted*> rows;
  for (auto& [topic, partitions] : granted_) {
    for (auto& [number, granted] : partitions) {
      if (!granted->start_due) continue;
      if (granted->stopped) {
        starts_due_ = true;
        continue;
      }
      rd_kafka_topic_partition_set_leader_epoch(
          &wanted.add(granted->partition, granted->start.value()),
          granted->start_leader_epoch.value());
      rows.push_back(granted.get());
    }
  }
  if (!rows.empty()) seek(wanted, rows);
  if (starts_due_ && !start_again_asked_) {
    // Looked at again with the answer of the commit that it waits for, or a little later.
    start_again_asked_ = true;
    group_inquiry_->ask([this](const std::atomic<bool>&) -> Inquiry::Answer {
      std::this_thread::sleep_for(start_again_wait);
      return [this] { start_again_asked_ = false; };
    });
  }
}

void Client::seek(const PartitionList& wanted, const std::vector<Granted*>& rows) {
  // ADR 0001: with a time-out of 0 a refused seek would not be reported.
  const ErrorHandle failed(rd_kafka_seek_partitions(client_, wanted.get(), seek_timeout_ms));
  PartitionList resumed;
  for (int i = 0; i < wanted.size(); ++i) {
    Granted& granted = *rows[static_cast<std::size_t>(i)];
    if (wanted[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      starts_due_ = true;  // not started yet inside the client: a commit is outstanding
      continue;
    }
    granted.start_due = false;
    granted.started = true;
    forward(granted, granted.flow_wanted);
    resumed.add(granted.partition);
  }
  if (resumed.empty()) return;
  rd_kafka_resume_partitions(client_, resumed.get());
  wake_started();
}

void Client::grant_stopped_anew() {
  const auto due = [](const Granted& granted) { return granted.stopped && granted.start_due; };
  if (!any_granted(due)) return;
  // An (un)assign while a rebalance waits for its answer would be taken for that answer.
  serve(consumer_queue_.get());
  if (!unanswered_.empty() || closing_ || given_up_ || !any_granted(due)) return;
  PartitionList anew;
  for (auto& [topic, partitions] : granted_) {
    for (auto& [number, granted] : partitions) {
      // An eager assignment is replaced whole: every partition starts again where it was.
      if (incremental() && !due(*granted)) continue;
      anew.add(granted->partition, 0);
      if (granted->started) {
        granted->start = granted->expected;
        granted->start_leader_epoch = no_leader_epoch;
        granted->start_due = true;
      }
      forward(*granted, false);
      granted->started = false;
      granted->stopped = false;
    }
  }
  if (incremental()) {
    const ErrorHandle removed(rd_kafka_incremental_unassign(client_, anew.get()));
  }
  rd_kafka_pause_partitions(client_, anew.get());
  for (int i = 0; i < anew.size(); ++i) anew[i].err = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (incremental()) {
    const ErrorHandle added(rd_kafka_incremental_assign(client_, anew.get()));
  } else {
    rd_kafka_assign(client_, anew.get());
  }
  // ADR 0001: a revoke that came in between has been answered by that: it is lost.
  granting_anew_ = true;
  serve(consumer_queue_.get());
  granting_anew_ = false;
}

bool Client::any_granted(bool (*matches)(const Granted&)) const {
  for (const auto& [topic, partitions] : granted_) {
    for (const auto& [number, granted] : partitions) {
      if (matches(*granted)) return true;
    }
  }
  return false;
}

void Client::set_flow(OwnerRef owner, bool open) {
  Granted* granted = find(owner);
  if (granted == nullptr || granted->flow_wanted == open) return;
  granted->flow_wanted = open;
  if (granted->started) forward(*granted, open);
}

void Client::forget(OwnerRef owner) {
  Granted* granted = find(owner);
  if (granted == nullptr) return;
  forward(*granted, false);
  granted->owner = OwnerRef{};
  granted->started = false;
  granted->start_due = false;
}

// ---- records ---------------------------------------------------------------------------------

std::size_t Client::poll_records(std::size_t records_max) {
  flush_starts();
  std::size_t handed = 0;
  while (handed < records_max && !closing_ && !given_up_) {
    const std::size_t most = std::min(records_max - handed, batch_.size());
    const ssize_t got = rd_kafka_consume_batch_queue(data_queue_.get(), 0, batch_.data(), most);
    if (got <= 0) break;
    std::span<rd_kafka_message_t* const> rest(batch_.data(), static_cast<std::size_t>(got));
    handed += rest.size();
    const bool was_all = rest.size() < most;
    while (!rest.empty()) {
      const auto other =
          std::find_if(rest.begin(), rest.end(), [first = rest[0]](const rd_kafka_message_t* next) {
            return next->rkt != first->rkt || next->partition != first->partition;
          });
      const auto count = static_cast<std::size_t>(other - rest.begin());
      hand_over(rest.first(count));
      rest = rest.subspan(count);
    }
    if (was_all) break;
  }
  return handed;
}

/// Messages of one partition. What the sink does may take it away: it is looked up after each call.
void Client::hand_over(std::span<rd_kafka_message_t* const> messages) {
  const char* topic = rd_kafka_topic_name(messages[0]->rkt);
  const std::int32_t partition = messages[0]->partition;
  const auto look_up = [&]() -> Granted* {
    Granted* granted = closing_ || given_up_ ? nullptr : find(topic, partition);
    return granted != nullptr && granted->started ? granted : nullptr;
  };
  const auto flush = [&](const Granted& granted) {
    if (filled_.empty()) return;
    sink_.delivered(granted.owner, filled_);
    filled_.clear();
  };
  Granted* granted = look_up();
  // The topic's name lives while the message at hand does.
  for (rd_kafka_message_t* message : messages) {
    const bool is_error = message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
    const bool is_record = !is_error || broker_error(message->err) == BrokerError::bad_record;
    if (granted != nullptr && !is_record) {
      flush(*granted);
      granted = look_up();
    }
    if (granted == nullptr || (is_record && message->offset < granted->expected.value())) {
      rd_kafka_message_destroy(message);
      continue;
    }
    if (!is_record) {
      on_message_error(*granted, *message);
      granted = look_up();
      rd_kafka_message_destroy(message);
      continue;
    }
    Delivered record;
    record.offset = Offset(message->offset);
    if (is_error) {
      // F1: the client skips it; to us it is an incomplete record like any other.
      record.hash = xxh64_of_offset(message->offset);
      rd_kafka_message_destroy(message);
    } else {
      record.message = message;
      record.bytes = static_cast<std::uint32_t>(message->key_len + message->len);
      record.leader_epoch = LeaderEpoch(rd_kafka_message_leader_epoch(message));
      if (hash_ == SourceOptions::Hash::key && message->key != nullptr) {
        record.hash =
            xxh64(std::span<const char>(static_cast<const char*>(message->key), message->key_len));
      } else if (hash_ != SourceOptions::Hash::none) {
        record.hash = xxh64_of_offset(message->offset);
      }
    }
    granted->expected = record.offset.next();
    filled_.push_back(record);
  }
  if (granted != nullptr) flush(*granted);
}

void Client::on_message_error(Granted& granted, const rd_kafka_message_t& message) {
  const OwnerRef owner = granted.owner;
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    // Everything below was handed over before it (ADR 0004).
    if (message.offset >= 0) sink_.reached({owner, Offset(message.offset)});
    return;
  }
  BrokerError error = broker_error(message.err);
  // ADR 0001: a truncation that the leader epoch proved comes without a position.
  if (message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && message.offset < 0) {
    error = BrokerError::log_truncated;
  }
  if (error == BrokerError::offset_out_of_range || error == BrokerError::log_truncated) {
    granted.stopped = true;
    granted.started = false;
  }
  sink_.record_error({owner, error, granted.expected, rd_kafka_message_errstr(&message)});
}

// ---- commits and reads -----------------------------------------------------------------------

void Client::commit(CommitId id, std::span<const CommitLine> lines) {
  PartitionList list;
  for (const CommitLine& line : lines) {
    rd_kafka_topic_partition_t& row = list.add(line.partition, line.offset.value());
    rd_kafka_topic_partition_set_leader_epoch(&row, line.leader_epoch.value());
    if (!line.metadata.empty()) {
      // Freed with the list by the client.
      row.metadata = std::malloc(line.metadata.size());
      std::memcpy(row.metadata, line.metadata.data(), line.metadata.size());
      row.metadata_size = line.metadata.size();
    }
  }
  commits_[id].lines.assign(lines.begin(), lines.end());
  const rd_kafka_resp_err_t error =
      closing_ ? RD_KAFKA_RESP_ERR__DESTROY
               : rd_kafka_commit_queue(client_, list.get(), reply_queue_.get(), nullptr,
                                       reinterpret_cast<void*>(id.value()));
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  CommitAnswer answer{id, {}};
  for (const CommitLine& line : lines) answer.lines.push_back({line.owner, broker_error(error)});
  commits_.erase(id);
  refused_commits_.push_back(std::move(answer));
  waker_->call();
}

void Client::on_commit(rd_kafka_event_t* event) {
  const CommitId id(reinterpret_cast<std::uint64_t>(rd_kafka_event_opaque(event)));
  const auto request = commits_.find(id);
  if (request == commits_.end()) return;
  const rd_kafka_resp_err_t whole = rd_kafka_event_error(event);
  const rd_kafka_topic_partition_list_t* list = rd_kafka_event_topic_partition_list(event);
  // C2: each line's own error counts. The request's error is that of one of its lines, unless the
  // last attempt failed as a whole; lines may then still show what an earlier attempt met.
  const auto own_error = [&](const TopicPartition& partition) {
    const rd_kafka_topic_partition_t* row =
        list == nullptr ? nullptr
                        : rd_kafka_topic_partition_list_find(list, partition.topic.c_str(),
                                                             partition.partition.value());
    return row == nullptr ? RD_KAFKA_RESP_ERR_UNKNOWN : row->err;
  };
  bool of_a_line = whole == RD_KAFKA_RESP_ERR_NO_ERROR;
  for (const CommitLine& line : request->second.lines) {
    of_a_line = of_a_line || own_error(line.partition) == whole;
  }
  CommitAnswer answer{id, {}};
  for (const CommitLine& line : request->second.lines) {
    answer.lines.push_back(
        {line.owner, broker_error(of_a_line ? own_error(line.partition) : whole)});
  }
  commits_.erase(request);
  sink_.commit_answered(answer);
}

void Client::read_committed(ReadId id, std::span<const TopicPartition> partitions) {
  group_inquiry_->ask([this, id,
                       asked = std::vector<TopicPartition>(partitions.begin(), partitions.end())](
                          const std::atomic<bool>& stopped) {
    PartitionList list;
    for (const TopicPartition& partition : asked) list.add(partition);
    rd_kafka_resp_err_t failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (const int piece : committed_pieces_ms) {
      failed = rd_kafka_committed(client_, list.get(), piece);
      const BrokerError error = broker_error(failed);
      if (stopped || (error != BrokerError::timed_out && error != BrokerError::transport &&
                      failed != RD_KAFKA_RESP_ERR__WAIT_COORD)) {
        break;
      }
    }
    CommittedRead read{id, {}};
    for (int i = 0; i < list.size(); ++i) {
      CommittedOffset line;
      line.partition = asked[static_cast<std::size_t>(i)];
      line.error = broker_error(failed != RD_KAFKA_RESP_ERR_NO_ERROR ? failed : list[i].err);
      if (line.error == BrokerError::none && list[i].offset >= 0) {
        line.offset = Offset(list[i].offset);
        line.leader_epoch = LeaderEpoch(rd_kafka_topic_partition_get_leader_epoch(&list[i]));
        if (list[i].metadata != nullptr) {
          line.metadata.assign(static_cast<const char*>(list[i].metadata), list[i].metadata_size);
        }
      }
      read.offsets.push_back(std::move(line));
    }
    return [this, read = std::move(read)] { sink_.committed_read(read); };
  });
}

void Client::read_topics(ReadId id, std::span<const std::string> topics) {
  leader_inquiry_->ask([this, id, asked = std::vector<std::string>(topics.begin(), topics.end())](
                           const std::atomic<bool>& stopped) -> Inquiry::Answer {
    DescribedTopics described = ask_topics(client_, id, asked, stopped);
    return [this, described = std::move(described)] {
      if (described.without_ids) {
        sink_.client_log(Level::warn, "TOPICID",
                         "the broker tells no topic ids: a recreated topic cannot be told "
                         "from the old one");
      }
      sink_.topics_read(described.read);
    };
  });
}

void Client::read_log_ends(ReadId id, std::span<const TopicPartition> partitions) {
  const rd_kafka_IsolationLevel_t isolation = property("isolation.level") == "read_uncommitted"
                                                  ? RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
                                                  : RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED;
  leader_inquiry_->ask([this, id, isolation,
                        asked = std::vector<TopicPartition>(partitions.begin(), partitions.end())](
                           const std::atomic<bool>& stopped) {
    LogEndsRead read{id, ask_log_ends(client_, isolation, asked, stopped)};
    return [this, read = std::move(read)] { sink_.log_ends_read(read); };
  });
}

void Client::close() {
  if (closing_) return;
  closing_ = true;
  const ErrorHandle failed(rd_kafka_consumer_close_queue(client_, close_queue_.get()));
  waker_->call();
}

}  // namespace tenure::kafka
