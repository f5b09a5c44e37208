#include "tenure/testing/world.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <thread>
#include <variant>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "base/xxh64.hpp"

namespace tenure::testing {
namespace {

constexpr std::string_view cluster_name = "world";

class WorldClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    return Instant(Duration(at_.load(std::memory_order_relaxed)));
  }
  void advance(Duration by) { at_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<Duration::rep> at_{std::chrono::nanoseconds(std::chrono::hours(1)).count()};
};

Bytes bytes_of(const std::optional<std::string>& text) {
  return text ? Bytes(text->data(), text->size()) : Bytes();
}

/// A message in a log. Its content never changes; its address never does either.
struct Stored {
  Message message;
  Offset offset;
};

struct Log {
  std::deque<Stored> records;
  Offset start, end;
  std::optional<Offset> committed;
  std::string metadata;
};

struct Topic {
  Uuid id;
  std::vector<Log> partitions;
};

/// What one member fetches.
struct Fetch {
  OwnerRef owner;
  std::optional<Offset> position;  ///< empty: stands at its placeholder (O6)
  bool open = true;
  bool forgotten = false;
  std::optional<Offset> reached;  ///< last reported
};

using Happening = std::variant<Rebalance, CommitAnswer, CommittedRead, TopicsRead, LogEndsRead,
                               MembershipTimes, RecordError, Closed>;

}  // namespace

class World::State : public std::enable_shared_from_this<World::State> {
 public:
  explicit State(Options given) : options(std::move(given)) {}

  struct Seat {
    std::string name;
    bool open = false;   ///< has a client
    bool known = false;  ///< the group knows it
    bool closing = false;
    std::string id;
    Epoch epoch;
    std::map<TopicPartition, Fetch> fetches;  ///< assigned and answered
    std::vector<TopicPartition> assigned;     ///< by the group
    std::deque<Rebalance> unanswered;         ///< delivered or not
    std::deque<Happening> happenings;
    std::deque<Happening> held_commits, held_reads;
    std::function<void()> waker;
    std::shared_ptr<Member> member;
    std::size_t turn = 0;
  };

  const Options options;
  const std::shared_ptr<WorldClock> clock = std::make_shared<WorldClock>();

  mutable Mutex mutex;
  mutable Condition changed;
  std::map<std::string, Topic, std::less<>> topics TENURE_GUARDED_BY(mutex);
  std::map<std::string, Seat> seats TENURE_GUARDED_BY(mutex);
  std::vector<Commit> commits TENURE_GUARDED_BY(mutex);
  std::vector<std::pair<BrokerError, bool>> commit_faults TENURE_GUARDED_BY(mutex);
  std::vector<Error> open_faults TENURE_GUARDED_BY(mutex);
  bool hold_commits TENURE_GUARDED_BY(mutex) = false;
  bool hold_reads TENURE_GUARDED_BY(mutex) = false;
  std::uint64_t last_rebalance TENURE_GUARDED_BY(mutex) = 0;
  std::int32_t generation TENURE_GUARDED_BY(mutex) = 0;
  std::uint32_t last_member TENURE_GUARDED_BY(mutex) = 0;
  std::size_t messages_out TENURE_GUARDED_BY(mutex) = 0;

  /// Wakers only signal; they are called without the lock all the same.
  void tell(std::vector<std::function<void()>> wakers) {
    changed.notify_all();
    for (const auto& waker : wakers) {
      if (waker) waker();
    }
  }
  std::vector<std::function<void()>> all_wakers() TENURE_REQUIRES(mutex) {
    std::vector<std::function<void()>> wakers;
    for (const auto& [name, seat] : seats) wakers.push_back(seat.waker);
    return wakers;
  }

  Seat& seat_of(const std::string& name) TENURE_REQUIRES(mutex) {
    const auto found = seats.find(name);
    TENURE_ASSERT(found != seats.end(), "World::member() has made this member");
    return found->second;
  }
  Log& log_of(std::string_view topic, std::int32_t partition) TENURE_REQUIRES(mutex) {
    const auto found = topics.find(topic);
    TENURE_ASSERT(found != topics.end(), "World::create_topic() has made this topic");
    auto& partitions = found->second.partitions;
    TENURE_ASSERT(partition >= 0 && static_cast<std::size_t>(partition) < partitions.size(),
                  "the topic has this partition");
    return partitions[static_cast<std::size_t>(partition)];
  }
  Log* find_log(const TopicPartition& partition) TENURE_REQUIRES(mutex) {
    const auto found = topics.find(partition.topic);
    if (found == topics.end()) return nullptr;
    const auto index = static_cast<std::size_t>(partition.partition.value());
    return index < found->second.partitions.size() ? &found->second.partitions[index] : nullptr;
  }

  void happen(Seat& seat, Happening happening) TENURE_REQUIRES(mutex) {
    seat.happenings.push_back(std::move(happening));
  }

  void ask(Seat& seat, Rebalance::Kind kind, std::vector<TopicPartition> partitions, bool lost)
      TENURE_REQUIRES(mutex) {
    Rebalance rebalance;
    rebalance.id = RebalanceId(++last_rebalance);
    rebalance.kind = kind;
    rebalance.lost = lost;
    rebalance.protocol = options.protocol;
    rebalance.partitions = std::move(partitions);
    if (seat.known) seat.epoch = Epoch(++generation);
    rebalance.member = {seat.id, seat.epoch, {}};
    seat.unanswered.push_back(rebalance);
    happen(seat, std::move(rebalance));
  }

  void assign(Seat& seat, std::vector<TopicPartition> partitions) TENURE_REQUIRES(mutex) {
    for (const TopicPartition& partition : partitions) seat.assigned.push_back(partition);
    ask(seat, Rebalance::Kind::assign, std::move(partitions), false);
  }

  void join(Seat& seat) TENURE_REQUIRES(mutex) {
    seat.known = true;
    seat.id = seat.name + "-" + std::to_string(++last_member);
    seat.epoch = Epoch(++generation);
    share();
  }

  /// The group forgets the member.
  void forget(Seat& seat) TENURE_REQUIRES(mutex) {
    seat.known = false;
    seat.epoch = Epoch(-1);
    seat.assigned.clear();
    share();
  }

  /// Automatic: every partition to the member it belongs to, moved ones by way of a revocation.
  void share() TENURE_REQUIRES(mutex) {
    if (!options.automatic) return;
    std::vector<Seat*> members;
    for (auto& [name, seat] : seats) {
      if (seat.known && !seat.closing) members.push_back(&seat);
    }
    if (members.empty()) return;
    std::map<Seat*, std::vector<TopicPartition>> target;
    std::size_t next = 0;
    for (const auto& [name, topic] : topics) {
      for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
        target[members[next++ % members.size()]].push_back(
            {name, Partition(static_cast<std::int32_t>(i))});
      }
    }
    for (Seat* seat : members) {
      const std::vector<TopicPartition>& wanted = target[seat];
      std::vector<TopicPartition> moved;
      for (const TopicPartition& held : seat->assigned) {
        const bool keeps = std::find(wanted.begin(), wanted.end(), held) != wanted.end();
        if (!keeps && !being_revoked(*seat, held)) moved.push_back(held);
      }
      if (!moved.empty()) ask(*seat, Rebalance::Kind::revoke, std::move(moved), false);
    }
    for (Seat* seat : members) {
      std::vector<TopicPartition> added;
      for (const TopicPartition& wanted : target[seat]) {
        if (!held_by_anyone(wanted)) added.push_back(wanted);
      }
      if (!added.empty()) assign(*seat, std::move(added));
    }
  }

  static bool being_revoked(const Seat& seat, const TopicPartition& partition) {
    return std::any_of(seat.unanswered.begin(), seat.unanswered.end(), [&](const Rebalance& asked) {
      return asked.kind == Rebalance::Kind::revoke &&
             std::find(asked.partitions.begin(), asked.partitions.end(), partition) !=
                 asked.partitions.end();
    });
  }
  bool held_by_anyone(const TopicPartition& partition) TENURE_REQUIRES(mutex) {
    return std::any_of(seats.begin(), seats.end(), [&](const auto& entry) {
      const Seat& seat = entry.second;
      return std::find(seat.assigned.begin(), seat.assigned.end(), partition) !=
             seat.assigned.end();
    });
  }

  void release_held(Seat& seat, std::deque<Happening>& held) TENURE_REQUIRES(mutex) {
    for (Happening& happening : held) happen(seat, std::move(happening));
    held.clear();
  }
};

/// One client after the other of one member. Loop thread, but for view() and headers().
class World::Member final : public Source {
 public:
  Member(std::shared_ptr<State> state, std::string name)
      : state_(std::move(state)), name_(std::move(name)) {}

  Result<void> open(SourceSink& sink, std::function<void()> waker) override {
    std::vector<std::function<void()>> wakers;
    {
      Lock lock(state_->mutex);
      if (!state_->open_faults.empty()) {
        const Error error = state_->open_faults.front();
        state_->open_faults.erase(state_->open_faults.begin());
        return tl::unexpected<Error>(error);
      }
      State::Seat& seat = state_->seat_of(name_);
      TENURE_ASSERT(!seat.open, "R11 the former client was closed or abandoned");
      sink_ = &sink;
      seat.open = true;
      seat.closing = false;
      seat.waker = std::move(waker);
      seat.happenings.clear();
      seat.unanswered.clear();
      seat.held_commits.clear();
      seat.held_reads.clear();
      seat.fetches.clear();
      state_->happen(seat, state_->options.times);
      state_->join(seat);
      wakers = state_->all_wakers();
    }
    state_->tell(std::move(wakers));
    return {};
  }

  void poll_events() override {
    while (true) {
      std::optional<Happening> next;
      {
        Lock lock(state_->mutex);
        State::Seat& seat = state_->seat_of(name_);
        if (!seat.open || seat.happenings.empty()) break;
        const auto* rebalance = std::get_if<Rebalance>(&seat.happenings.front());
        // As the client does: the next rebalance only after the answer to the one before.
        if (rebalance != nullptr && !seat.unanswered.empty() &&
            rebalance->id != seat.unanswered.front().id) {
          const auto other = std::find_if(seat.happenings.begin(), seat.happenings.end(),
                                          [](const Happening& happening) {
                                            return !std::holds_alternative<Rebalance>(happening);
                                          });
          if (other == seat.happenings.end()) break;
          next = std::move(*other);
          seat.happenings.erase(other);
        } else {
          next = std::move(seat.happenings.front());
          seat.happenings.pop_front();
        }
        if (std::holds_alternative<Closed>(*next)) seat.open = false;
      }
      std::visit([this](const auto& value) { hand_over(value); }, *next);
    }
    state_->changed.notify_all();
  }

  std::size_t poll_records(std::size_t records_max) override {
    std::size_t handed = 0;
    while (handed < records_max) {
      std::vector<Delivered> batch;
      OwnerRef owner;
      std::optional<Offset> reached;
      std::optional<RecordError> error;
      {
        Lock lock(state_->mutex);
        State::Seat& seat = state_->seat_of(name_);
        if (!seat.open) break;
        for (std::size_t tried = 0; tried < seat.fetches.size(); ++tried) {
          auto place = seat.fetches.begin();
          std::advance(place, static_cast<std::ptrdiff_t>(seat.turn++ % seat.fetches.size()));
          Fetch& fetch = place->second;
          owner = fetch.owner;
          if (take(place->first, fetch, records_max - handed, batch, reached, error)) break;
        }
        state_->messages_out += batch.size();
      }
      if (error) {
        sink_->record_error(*error);
        continue;
      }
      if (batch.empty() && !reached) break;
      if (!batch.empty()) sink_->delivered(owner, batch);
      if (reached) sink_->reached({owner, *reached});
      handed += batch.size();
    }
    return handed;
  }

  bool answer_assign(RebalanceId id, std::span<const GrantedPartition> granted) override {
    Lock lock(state_->mutex);
    State::Seat& seat = state_->seat_of(name_);
    if (!seat.open || seat.unanswered.empty() || seat.unanswered.front().id != id) return false;
    TENURE_ASSERT(seat.unanswered.front().kind == Rebalance::Kind::assign,
                  "R5 an assign is answered as one");
    seat.unanswered.pop_front();
    for (const GrantedPartition& each : granted) {
      seat.fetches[each.partition] = Fetch{each.owner, {}, true, false, {}};
    }
    state_->changed.notify_all();
    return true;
  }

  bool answer_revoke(RebalanceId id, std::span<const TopicPartition> revoked) override {
    std::vector<std::function<void()>> wakers;
    {
      Lock lock(state_->mutex);
      State::Seat& seat = state_->seat_of(name_);
      if (!seat.open || seat.unanswered.empty() || seat.unanswered.front().id != id) return false;
      TENURE_ASSERT(seat.unanswered.front().kind == Rebalance::Kind::revoke,
                    "R5 a revoke is answered as one");
      const bool lost = seat.unanswered.front().lost;
      seat.unanswered.pop_front();
      for (const TopicPartition& partition : revoked) {
        seat.fetches.erase(partition);
        std::erase(seat.assigned, partition);
      }
      if (seat.closing) {
        seat.known = false;
        state_->happen(seat, Closed{});
      } else if (lost) {
        state_->join(seat);
      }
      state_->share();
      wakers = state_->all_wakers();
    }
    state_->tell(std::move(wakers));
    return true;
  }

  void start(std::span<const StartAt> starts) override {
    Lock lock(state_->mutex);
    State::Seat& seat = state_->seat_of(name_);
    for (const StartAt& at : starts) {
      const auto found = seat.fetches.find(at.partition);
      if (found == seat.fetches.end()) continue;
      // A new owner of the same grant (T8) comes with its start.
      found->second = Fetch{at.owner, at.offset, found->second.open, false, {}};
    }
  }

  void set_flow(OwnerRef owner, bool open) override {
    Lock lock(state_->mutex);
    if (Fetch* fetch = find(owner)) fetch->open = open;
  }

  void forget(OwnerRef owner) override {
    Lock lock(state_->mutex);
    if (Fetch* fetch = find(owner)) fetch->forgotten = true;
  }

  void commit(CommitId id, std::span<const CommitLine> lines) override {
    std::function<void()> waker;
    {
      Lock lock(state_->mutex);
      State::Seat& seat = state_->seat_of(name_);
      if (!seat.open) return;
      BrokerError error = seat.known ? BrokerError::none : BrokerError::unknown_member_id;
      bool applied = error == BrokerError::none;
      if (!state_->commit_faults.empty()) {
        std::tie(error, applied) = state_->commit_faults.front();
        state_->commit_faults.erase(state_->commit_faults.begin());
        applied = applied || error == BrokerError::none;
      }
      CommitAnswer answer;
      answer.id = id;
      for (const CommitLine& line : lines) {
        Log* log = state_->find_log(line.partition);
        BrokerError each = error;
        if (log == nullptr) {
          each = BrokerError::unknown_topic_or_partition;
        } else if (applied) {
          log->committed = line.offset;
          log->metadata = line.metadata;
        }
        answer.lines.push_back({line.owner, each});
        state_->commits.push_back(
            {name_, line.partition, line.offset, line.metadata, each, applied && log != nullptr});
      }
      (state_->hold_commits ? seat.held_commits : seat.happenings).push_back(std::move(answer));
      waker = seat.waker;
    }
    state_->tell({waker});
  }

  void read_committed(ReadId id, std::span<const TopicPartition> partitions) override {
    CommittedRead read;
    read.id = id;
    Lock lock(state_->mutex);
    for (const TopicPartition& partition : partitions) {
      CommittedOffset committed;
      committed.partition = partition;
      if (const Log* log = state_->find_log(partition)) {
        committed.offset = log->committed;
        committed.metadata = log->metadata;
      } else {
        committed.error = BrokerError::unknown_topic_or_partition;
      }
      read.offsets.push_back(std::move(committed));
    }
    answer_read(std::move(read));
  }

  void read_topics(ReadId id, std::span<const std::string> topics) override {
    TopicsRead read;
    read.id = id;
    read.cluster = cluster_name;
    Lock lock(state_->mutex);
    for (const std::string& topic : topics) {
      TopicFacts facts;
      facts.topic = topic;
      const auto found = state_->topics.find(topic);
      if (found == state_->topics.end()) {
        facts.error = BrokerError::unknown_topic_or_partition;
      } else {
        facts.id = found->second.id;
        facts.partitions = static_cast<std::int32_t>(found->second.partitions.size());
      }
      read.topics.push_back(std::move(facts));
    }
    answer_read(std::move(read));
  }

  void read_log_ends(ReadId id, std::span<const TopicPartition> partitions) override {
    LogEndsRead read;
    read.id = id;
    Lock lock(state_->mutex);
    for (const TopicPartition& partition : partitions) {
      LogEnds ends;
      ends.partition = partition;
      if (const Log* log = state_->find_log(partition)) {
        ends.start = log->start;
        ends.end = log->end;
      } else {
        ends.error = BrokerError::unknown_topic_or_partition;
      }
      read.ends.push_back(ends);
    }
    answer_read(std::move(read));
  }

  [[nodiscard]] tenure::Member member() override {
    Lock lock(state_->mutex);
    const State::Seat& seat = state_->seat_of(name_);
    return {seat.id, seat.epoch, {}};
  }

  void close() override {
    std::function<void()> waker;
    {
      Lock lock(state_->mutex);
      State::Seat& seat = state_->seat_of(name_);
      if (!seat.open || seat.closing) return;
      seat.closing = true;
      if (seat.fetches.empty() && seat.unanswered.empty()) {
        seat.known = false;
        seat.assigned.clear();
        state_->happen(seat, Closed{});
        state_->share();
      } else {
        std::vector<TopicPartition> held;
        for (const auto& [partition, fetch] : seat.fetches) held.push_back(partition);
        state_->ask(seat, Rebalance::Kind::revoke, std::move(held), false);
      }
      waker = seat.waker;
    }
    state_->tell({waker});
  }

  void abandon() override {
    std::vector<std::function<void()>> wakers;
    {
      Lock lock(state_->mutex);
      State::Seat& seat = state_->seat_of(name_);
      seat.open = false;
      seat.closing = false;
      seat.happenings.clear();
      seat.unanswered.clear();
      seat.fetches.clear();
      state_->forget(seat);
      wakers = state_->all_wakers();
    }
    state_->tell(std::move(wakers));
  }

  void release(std::span<const MessageHandle> messages) override {
    Lock lock(state_->mutex);
    TENURE_ASSERT(messages.size() <= state_->messages_out, "a message is released once");
    state_->messages_out -= messages.size();
    state_->changed.notify_all();
  }

  void view(std::span<const MessageHandle> messages, std::span<MessageView> views) const override {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& message = static_cast<const Stored*>(messages[i])->message;
      views[i] = {bytes_of(message.key), bytes_of(message.value), message.timestamp_ms};
    }
  }

  [[nodiscard]] std::vector<Header> headers(MessageHandle message) const override {
    std::vector<Header> headers;
    for (const auto& [name, value] : static_cast<const Stored*>(message)->message.headers) {
      headers.emplace_back(name, bytes_of(value));
    }
    return headers;
  }

 private:
  Fetch* find(OwnerRef owner) TENURE_REQUIRES(state_->mutex) {
    for (auto& [partition, fetch] : state_->seat_of(name_).fetches) {
      if (fetch.owner == owner) return &fetch;
    }
    return nullptr;
  }

  template <class Read>
  void answer_read(Read read) TENURE_REQUIRES(state_->mutex) {
    State::Seat& seat = state_->seat_of(name_);
    if (!seat.open) return;
    (state_->hold_reads ? seat.held_reads : seat.happenings).push_back(std::move(read));
    if (seat.waker) seat.waker();
  }

  /// True when there is something to hand over.
  bool take(const TopicPartition& partition, Fetch& fetch, std::size_t records_max,
            std::vector<Delivered>& batch, std::optional<Offset>& reached,
            std::optional<RecordError>& error) TENURE_REQUIRES(state_->mutex) {
    if (!fetch.position || !fetch.open || fetch.forgotten) return false;
    Log* log = state_->find_log(partition);
    if (log == nullptr) return false;
    if (*fetch.position < log->start || *fetch.position > log->end) {
      error = RecordError{fetch.owner, BrokerError::offset_out_of_range, *fetch.position,
                          "offset is outside of the log"};
      fetch.position.reset();
      return true;
    }
    auto next = std::lower_bound(
        log->records.begin(), log->records.end(), *fetch.position,
        [](const Stored& stored, Offset offset) { return stored.offset < offset; });
    for (; next != log->records.end() && batch.size() < records_max; ++next) {
      const Message& message = next->message;
      Delivered record;
      record.message = &*next;
      record.offset = next->offset;
      const bool by_key = message.key && state_->options.order != Order::none;
      record.hash = by_key ? xxh64({message.key->data(), message.key->size()})
                           : xxh64_of_offset(next->offset.value());
      std::size_t bytes =
          (message.key ? message.key->size() : 0) + (message.value ? message.value->size() : 0);
      for (const auto& [name, value] : message.headers) {
        bytes += name.size() + (value ? value->size() : 0);
      }
      record.bytes = static_cast<std::uint32_t>(bytes);
      batch.push_back(record);
      fetch.position = next->offset.next();
    }
    if (next == log->records.end()) {
      fetch.position = log->end;
      if (fetch.reached != log->end) reached = fetch.reached = log->end;
    }
    return !batch.empty() || reached.has_value();
  }

  void hand_over(const Rebalance& value) { sink_->rebalance(value); }
  void hand_over(const CommitAnswer& value) { sink_->commit_answered(value); }
  void hand_over(const CommittedRead& value) { sink_->committed_read(value); }
  void hand_over(const TopicsRead& value) { sink_->topics_read(value); }
  void hand_over(const LogEndsRead& value) { sink_->log_ends_read(value); }
  void hand_over(const MembershipTimes& value) { sink_->times(value); }
  void hand_over(const RecordError& value) { sink_->record_error(value); }
  void hand_over(const Closed&) { sink_->closed(); }

  const std::shared_ptr<State> state_;
  const std::string name_;
  SourceSink* sink_ = nullptr;
};

World::World() : World(Options{}) {}
World::World(Options options) : state_(std::make_shared<State>(std::move(options))) {
  TENURE_ASSERT(state_->options.protocol != Protocol::eager,
                "the world's rebalances are incremental");
}

World::~World() {
  // Members hold the state, and the state members: the sources that are in use live on.
  std::vector<std::shared_ptr<Member>> members;
  Lock lock(state_->mutex);
  for (auto& [name, seat] : state_->seats) members.push_back(std::move(seat.member));
}

void World::create_topic(std::string name, std::int32_t partitions) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    Topic topic;
    const std::size_t number = state_->topics.size() + 1;
    for (std::size_t i = 0; i < 4; ++i) {
      topic.id.bytes[15 - i] = static_cast<std::uint8_t>((number >> (8 * i)) & 0xFF);
    }
    topic.partitions.resize(static_cast<std::size_t>(partitions));
    const bool created = state_->topics.emplace(std::move(name), std::move(topic)).second;
    TENURE_ASSERT(created, "a topic is created once");
    state_->share();
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

Offset World::produce(std::string_view topic, std::int32_t partition, Message message) {
  std::vector<std::function<void()>> wakers;
  Offset at;
  {
    Lock lock(state_->mutex);
    Log& log = state_->log_of(topic, partition);
    at = log.end;
    log.records.push_back({std::move(message), at});
    log.end = at.next();
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
  return at;
}

void World::skip(std::string_view topic, std::int32_t partition, std::int64_t offsets) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    Log& log = state_->log_of(topic, partition);
    log.end = Offset(log.end.value() + offsets);
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

void World::truncate_before(std::string_view topic, std::int32_t partition, Offset offset) {
  Lock lock(state_->mutex);
  // The records stay where they are: someone may still be looking at them.
  Log& log = state_->log_of(topic, partition);
  log.start = std::max(log.start, std::min(offset, log.end));
}

std::shared_ptr<Source> World::member(const std::string& name) {
  Lock lock(state_->mutex);
  State::Seat& seat = state_->seats[name];
  if (seat.member == nullptr) {
    seat.name = name;
    seat.member = std::make_shared<Member>(state_, name);
  }
  return seat.member;
}

void World::assign(const std::string& member, std::vector<TopicPartition> partitions) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    state_->assign(state_->seat_of(member), std::move(partitions));
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

void World::revoke(const std::string& member, std::vector<TopicPartition> partitions) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    state_->ask(state_->seat_of(member), Rebalance::Kind::revoke, std::move(partitions), false);
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

void World::lose(const std::string& member) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    State::Seat& seat = state_->seat_of(member);
    std::vector<TopicPartition> held;
    for (const auto& [partition, fetch] : seat.fetches) held.push_back(partition);
    state_->forget(seat);
    state_->ask(seat, Rebalance::Kind::revoke, std::move(held), true);
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

void World::expire(const std::string& member) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    State::Seat& seat = state_->seat_of(member);
    // The client keeps id and epoch until it hears of it.
    const Epoch epoch = seat.epoch;
    state_->forget(seat);
    seat.epoch = epoch;
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

void World::set_committed(std::string_view topic, std::int32_t partition, Offset offset) {
  Lock lock(state_->mutex);
  state_->log_of(topic, partition).committed = offset;
}

void World::fail_next_commit(BrokerError error, bool applied) {
  Lock lock(state_->mutex);
  state_->commit_faults.emplace_back(error, applied);
}

void World::fail_next_open(Error error) {
  Lock lock(state_->mutex);
  state_->open_faults.push_back(std::move(error));
}

void World::hold_commit_answers(bool held) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    state_->hold_commits = held;
    if (!held) {
      for (auto& [name, seat] : state_->seats) state_->release_held(seat, seat.held_commits);
    }
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

void World::hold_reads(bool held) {
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    state_->hold_reads = held;
    if (!held) {
      for (auto& [name, seat] : state_->seats) state_->release_held(seat, seat.held_reads);
    }
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

std::optional<Offset> World::committed(std::string_view topic, std::int32_t partition) const {
  Lock lock(state_->mutex);
  return state_->log_of(topic, partition).committed;
}

std::vector<Commit> World::commits() const {
  Lock lock(state_->mutex);
  return state_->commits;
}

std::vector<TopicPartition> World::assigned(const std::string& member) const {
  Lock lock(state_->mutex);
  return state_->seat_of(member).assigned;
}

std::size_t World::unanswered(const std::string& member) const {
  Lock lock(state_->mutex);
  return state_->seat_of(member).unanswered.size();
}

bool World::joined(const std::string& member) const {
  Lock lock(state_->mutex);
  const State::Seat& seat = state_->seat_of(member);
  return seat.known && seat.unanswered.empty();
}

std::size_t World::messages_out() const {
  Lock lock(state_->mutex);
  return state_->messages_out;
}

std::shared_ptr<const Clock> World::clock() const {
  return state_->clock;
}

void World::advance(Duration by) {
  TENURE_ASSERT(by >= Duration::zero(), "time does not go back");
  state_->clock->advance(by);
  std::vector<std::function<void()>> wakers;
  {
    Lock lock(state_->mutex);
    wakers = state_->all_wakers();
  }
  state_->tell(std::move(wakers));
}

bool World::wait_until(const std::function<bool()>& done, std::chrono::seconds longest) const {
  const auto ends = std::chrono::steady_clock::now() + longest;
  while (true) {
    // Asked without the lock: `done` may look at the world.
    if (done()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now >= ends) return false;
    Lock lock(state_->mutex);
    // What `done` looks at may change outside of the world too.
    static_cast<void>(
        state_->changed.wait_until(state_->mutex, now + std::chrono::milliseconds(2)));
  }
}

}  // namespace tenure::testing
