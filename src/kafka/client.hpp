// One member of a consumer group: one rd_kafka_t from creation to destruction.
//
// Role: carries out what a Source must do on one client instance. After a loss that the client
//   does not admit (R5b) or a fatal error (R11) the Source makes another one.
// Owns: the client, its queues, the partitions it was granted, two inquiry threads.
// Threads: the loop thread; messages may be read and, after the end, released on it as well.
// Lifecycle: create() -> ... -> close() or give_up() -> bury(), which destroys the client off the
//   loop thread, since that waits until every message has been released.
// Promises: O6 a granted partition stands still until start(); records below the start are never
//   handed over; no call waits for a broker.
// Does not promise: to answer a rebalance by itself, ever.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/handles.hpp"
#include "kafka/inquiry.hpp"
#include "tenure/kafka/source.hpp"

namespace tenure::kafka {

/// What the client's queues call when something arrives, on any thread. Outlives the client and,
/// once silenced, whoever it signals.
class Waker {
 public:
  explicit Waker(std::function<void()> signal) : signal_(std::move(signal)) {}
  void call() {
    const std::lock_guard lock(mutex_);
    if (signal_) signal_();
  }
  void silence() {
    const std::lock_guard lock(mutex_);
    signal_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void()> signal_;  // guarded by mutex_
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> create(const SourceOptions& options, SourceSink& sink,
                                                std::shared_ptr<Waker> waker);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void poll_events();
  std::size_t poll_records(std::size_t records_max);
  bool answer_assign(RebalanceId id, std::span<const GrantedPartition> granted);
  bool answer_revoke(RebalanceId id, std::span<const TopicPartition> revoked);
  void start(std::span<const StartAt> starts);
  void set_flow(OwnerRef owner, bool open);
  void forget(OwnerRef owner);
  void commit(CommitId id, std::span<const CommitLine> lines);
  void read_committed(ReadId id, std::span<const TopicPartition> partitions);
  void read_topics(ReadId id, std::span<const std::string> topics);
  void read_log_ends(ReadId id, std::span<const TopicPartition> partitions);
  [[nodiscard]] Member member() const;
  void close();

  /// Nothing is handed over any more; from inside a call of the sink, too.
  void give_up() { given_up_ = true; }

  /// Ends the client without waiting for it: on a thread of its own, which calls `ended` when the
  /// last message has been released and all is freed.
  static void bury(std::unique_ptr<Client> client, std::function<void()> ended);

 private:
  struct Granted {
    TopicPartition partition;
    OwnerRef owner;  // none: nothing is handed over
    QueueHandle queue;
    bool started = false;
    bool flow_wanted = true;
    bool stopped = false;    // by an error of its own: a seek is refused, it is assigned anew
    bool start_due = false;  // start() was asked, the client has not taken it yet
    Offset start;
    LeaderEpoch start_leader_epoch = no_leader_epoch;
    Offset expected;  // next offset to hand over
  };
  struct Request {
    std::vector<CommitLine> lines;
  };

  Client(SourceSink& sink, std::shared_ptr<Waker> waker, SourceOptions::Hash hash);

  void serve(rd_kafka_queue_t* queue);
  void on_rebalance(rd_kafka_event_t* event);
  void on_error(rd_kafka_event_t* event);
  void on_log(rd_kafka_event_t* event);
  void on_commit(rd_kafka_event_t* event);
  void on_message_error(Granted& granted, const rd_kafka_message_t& message);
  void hand_over(std::span<rd_kafka_message_t* const> messages);
  void flush_starts();
  void seek(const PartitionList& wanted, const std::vector<Granted*>& rows);
  void grant_stopped_anew();
  void forward(Granted& granted, bool open);
  void wake_started();
  void end_close();
  bool answer_close();
  [[nodiscard]] Member read_member() const;
  void ask_times();
  void ask_broker_times(MembershipTimes times);
  [[nodiscard]] bool any_granted(bool (*matches)(const Granted&)) const;
  [[nodiscard]] Granted* find(std::string_view topic, std::int32_t partition);
  [[nodiscard]] Granted* find(OwnerRef owner);
  [[nodiscard]] bool incremental() const { return protocol_ != Protocol::eager; }
  [[nodiscard]] std::string property(const char* name) const;
  [[nodiscard]] Duration milliseconds_of(const char* name, Duration otherwise) const;

  SourceSink& sink_;
  std::shared_ptr<Waker> waker_;
  const SourceOptions::Hash hash_;
  std::string group_protocol_;
  Protocol protocol_ = Protocol::cooperative;

  rd_kafka_t* client_ = nullptr;
  QueueHandle consumer_queue_;  // rebalances, errors, logs
  QueueHandle data_queue_;      // records of partitions whose flow is open
  QueueHandle reply_queue_;     // answers to commits
  QueueHandle close_queue_;
  bool closing_ = false;
  bool closed_ = false;
  bool close_answered_ = false;
  bool given_up_ = false;

  std::map<std::string, std::map<std::int32_t, std::unique_ptr<Granted>>, std::less<>> granted_;
  std::uint64_t last_rebalance_ = 0;
  std::set<RebalanceId> unanswered_;
  std::map<CommitId, Request> commits_;
  std::vector<CommitAnswer> refused_commits_;  // by the client, at once
  std::optional<MembershipTimes> times_due_;
  bool starts_due_ = false;
  bool start_again_asked_ = false;
  bool granting_anew_ = false;

  std::vector<Delivered> filled_;  // records of one partition on their way to the sink
  std::vector<rd_kafka_message_t*> batch_;

  std::unique_ptr<Inquiry> group_inquiry_;   // asks the coordinator
  std::unique_ptr<Inquiry> leader_inquiry_;  // asks leaders and any broker
};

}  // namespace tenure::kafka
