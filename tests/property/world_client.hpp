// A client library as the Source port shows it: membership, rebalance events one at a time (with
// "lost" and swallowed "lost"), positions, commits, reads. Its own small thread goes on while
// the engine is slow, and stops when the process is frozen.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/command.hpp"
#include "core/input.hpp"
#include "property/world_group.hpp"
#include "property/world_logs.hpp"
#include "property/world_time.hpp"

namespace tenure::test {

/// What a whole simulated cluster is like; drawn from the seed.
struct Cluster {
  Cluster(std::uint64_t seed, Protocol protocol_drawn, int partitions, Duration session_drawn,
          Duration rebalance_timeout)
      : draw(seed),
        protocol(protocol_drawn),
        session(session_drawn),
        poll_limit(rebalance_timeout),
        logs(static_cast<std::size_t>(partitions)),
        group(schedule, draw, protocol_drawn, partitions, session_drawn, rebalance_timeout) {}

  Schedule schedule;
  Draw draw;
  const Protocol protocol;
  const Duration session;
  const Duration heartbeat = milliseconds(500);
  const Duration poll_limit;
  Duration socket_timeout = seconds(3);
  std::vector<PartitionLog> logs;
  Group group;
  Uuid topic_id{{7}};

  Instant coordinator_away_until = Instant::min();
  Instant store_away_until = Instant::min();
  bool healed = false;
  bool show = false;                               ///< prints every event
  std::map<std::string_view, std::uint64_t> seen;  ///< events of the engines, by name
  double trouble = 1;  ///< percent of requests that meet with each kind of it

  [[nodiscard]] Instant now() const { return schedule.now(); }
  bool trouble_now(double times = 1) { return !healed && draw.chance(trouble * times); }
  Duration trip() { return draw.time(milliseconds(1), milliseconds(healed ? 5 : 20)); }
  [[nodiscard]] bool coordinator_away() const { return now() < coordinator_away_until; }
  [[nodiscard]] bool store_away() const { return now() < store_away_until; }

  static TopicPartition partition(int p) { return {"t", Partition(p)}; }
  static std::size_t index(const TopicPartition& p) {
    return static_cast<std::size_t>(p.partition.value());
  }
};

/// The process a client lives in.
class Host {
 public:
  virtual ~Host() = default;
  /// On this process's threads: not while it is frozen, never after its end.
  virtual void later(Duration wait, std::function<void()> what) = 0;
  virtual void take(const core::Input& input) = 0;
  virtual MessageHandle message() = 0;
  [[nodiscard]] virtual std::size_t room() const = 0;
  virtual void committed(const CommitLine& line) = 0;
};

class Client {
 public:
  Client(Cluster& cluster, Host& host, std::string consumer_id)
      : cluster_(cluster), host_(host), consumer_id_(std::move(consumer_id)) {}

  Instant cut_until = Instant::min();  ///< no way to the coordinator (fetching goes on, C7c)

  [[nodiscard]] Member member() const { return {id_, Epoch(epoch_), ""}; }
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] bool waits_for_answer() const { return outstanding_.has_value(); }

  // ---- Source -----------------------------------------------------------------------------------

  void start() {
    reset();
    open_ = true;
    if (consumer()) id_ = consumer_id_ + "-" + std::to_string(++lives_);
    host_.take(core::TimesKnown{cluster_.session, cluster_.heartbeat, cluster_.poll_limit,
                                cluster_.socket_timeout});
    wants_join_ = true;
    beat(life_);
    fetch(life_);
  }

  bool answer_assign(const core::AnswerAssign& answer) {
    if (!outstanding_ || outstanding_->id != answer.id) return false;
    if (cluster_.protocol == Protocol::eager) assigned_.clear();
    for (const GrantedPartition& granted : answer.granted) {
      Place& place = assigned_[static_cast<int>(Cluster::index(granted.partition))];
      place = Place{};
      place.owner = granted.owner;
    }
    answered();
    return true;
  }

  bool answer_revoke(const core::AnswerRevoke& answer) {
    if (!outstanding_ || outstanding_->id != answer.id) return false;
    for (const TopicPartition& partition : answer.revoked) {
      assigned_.erase(static_cast<int>(Cluster::index(partition)));
    }
    answered();
    return true;
  }

  void start_fetch(const StartAt& start) {
    const auto found = assigned_.find(static_cast<int>(Cluster::index(start.partition)));
    if (found == assigned_.end()) return;
    Place& place = found->second;
    place = Place{};
    place.owner = start.owner;
    place.started = place.flow = true;
    place.position = start.offset.value();
    place.epoch = start.leader_epoch.value();
  }

  void set_flow(OwnerRef owner, bool flow) {
    for (auto& [p, place] : assigned_) {
      if (place.owner != owner) continue;
      place.leftover = place.flow && !flow && cluster_.draw.chance(50);
      place.flow = flow;
    }
  }

  void forget(OwnerRef owner) {
    for (auto& [p, place] : assigned_) {
      if (place.owner == owner) place.started = place.leftover = false;
    }
  }

  void commit(const core::SendCommit& request) {
    const auto sent = std::make_shared<core::SendCommit>(request);
    // Answered late, not at all, or applied without a word: the engine has to live with each.
    Fate fate;
    fate.rejected = cluster_.trouble_now(2);
    fate.lost_request = cluster_.trouble_now();
    fate.lost_answer = cluster_.trouble_now();
    fate.never = cluster_.trouble_now(0.5);
    if (cluster_.trouble_now(3)) {
      fate.wait = cluster_.draw.time(milliseconds(50), cluster_.socket_timeout / 2);
    }
    try_commit(sent, fate, cluster_.now(), life_);
  }

  void read(const core::ReadCommitted& request) {
    if (cluster_.trouble_now(0.5)) return;  // never answered
    const bool fails = cluster_.trouble_now(2);
    round_trip(
        [this, request, fails] {
          CommittedRead answer{request.id, {}};
          for (const TopicPartition& partition : request.partitions) {
            const auto& committed = cluster_.logs[Cluster::index(partition)].committed;
            CommittedOffset line{partition, BrokerError::none, {}, no_leader_epoch, {}};
            if (fails && cluster_.draw.chance(50)) {
              line.error = BrokerError::not_coordinator;
            } else if (committed) {
              line.offset = Offset(committed->offset);
              line.leader_epoch = committed->leader_epoch;
              line.metadata = committed->metadata;
            }
            answer.offsets.push_back(std::move(line));
          }
          return answer;
        },
        true);
  }

  void read(const core::ReadTopics& request) {
    if (cluster_.trouble_now(0.5)) return;
    const bool fails = cluster_.trouble_now(2);
    round_trip(
        [this, request, fails] {
          TopicsRead answer{request.id, fails ? "" : "c", {}};
          for (const std::string& topic : request.topics) {
            answer.topics.push_back({topic, fails ? BrokerError::transport : BrokerError::none,
                                     cluster_.topic_id,
                                     static_cast<std::int32_t>(cluster_.logs.size())});
          }
          return answer;
        },
        false);
  }

  void read(const core::ReadLogEnds& request) {
    if (cluster_.trouble_now(0.5)) return;
    const bool fails = cluster_.trouble_now(2);
    round_trip(
        [this, request, fails] {
          LogEndsRead answer{request.id, {}};
          for (const TopicPartition& partition : request.partitions) {
            const PartitionLog& log = cluster_.logs[Cluster::index(partition)];
            answer.ends.push_back({partition, fails ? BrokerError::timed_out : BrokerError::none,
                                   Offset(log.start), Offset(log.end)});
          }
          return answer;
        },
        false);
  }

  void close() {
    closing_ = true;
    wants_join_ = false;
    if (outstanding_) return;  // goes on when it is answered
    leave_steps();
  }

  /// Without a word to anybody.
  void abandon() { reset(); }

 private:
  struct Place {
    OwnerRef owner;
    bool started = false;
    bool flow = false;
    bool leftover = false;  ///< the flow was closed with something on its way
    std::int64_t position = 0;
    std::int32_t epoch = -1;  ///< of the last record, or as started
    std::int64_t told = -1;   ///< position reported as reached
  };
  struct Outstanding {
    RebalanceId id;
    std::function<void()> then;
  };
  struct Fate {
    bool rejected = false, lost_request = false, lost_answer = false, never = false;
    Duration wait{};
  };

  [[nodiscard]] bool consumer() const { return cluster_.protocol == Protocol::consumer; }
  [[nodiscard]] bool reachable() const {
    return cluster_.now() >= cut_until && !cluster_.coordinator_away();
  }

  void reset() {
    ++life_;
    open_ = closing_ = swallowed_ = wants_join_ = join_sent_ = false;
    outstanding_.reset();
    assigned_.clear();
    id_.clear();
    epoch_ = -1;
    heard_ = cluster_.now();
  }

  /// A step of this client's thread, unless the client has been replaced meanwhile.
  void mine(Duration wait, std::function<void()> what) {
    host_.later(wait, [this, life = life_, what = std::move(what)] {
      if (life == life_) what();
    });
  }

  template <class Server>
  void round_trip(Server server, bool coordinator) {
    if (coordinator && !reachable()) return;  // expires at the engine
    cluster_.schedule.in(cluster_.trip(), [this, host = &host_, life = life_, server, coordinator] {
      const auto answer = server();
      host->later(cluster_.trip(), [this, life, answer, coordinator] {
        if (life == life_ && (!coordinator || reachable())) host_.take(answer);
      });
    });
  }

  // ---- membership -------------------------------------------------------------------------------

  void beat(std::uint64_t life) {
    if (life != life_ || !open_) return;
    host_.later(cluster_.heartbeat, [this, life] { beat(life); });
    if (closing_) return;
    const bool member = epoch_ >= 0 && !id_.empty();
    if (!consumer() && member && !outstanding_ && !join_sent_ &&
        cluster_.now() - heard_ > cluster_.session) {
      lose(true);
    }
    if (!reachable()) return;
    if (consumer()) {
      if (wants_join_ && !outstanding_) {
        wants_join_ = false;
        epoch_ = 0;
      }
      if (epoch_ >= 0) send_beat();
      return;
    }
    if (join_sent_ && cluster_.now() - join_at_ > cluster_.poll_limit + seconds(2)) {
      join_sent_ = false;
      wants_join_ = true;
    }
    if (wants_join_ && !outstanding_) {
      send_join();
    } else if (member && !join_sent_) {
      send_beat();
    }
  }

  void send_beat() {
    std::set<int> owned;
    for (const auto& [p, place] : assigned_) owned.insert(p);
    cluster_.schedule.in(cluster_.trip(), [this, host = &host_, life = life_, id = id_,
                                           epoch = epoch_, owned, consumer = consumer()] {
      const Group::Beat answer = consumer ? cluster_.group.heartbeat(id, epoch, owned)
                                          : cluster_.group.heartbeat(id, epoch);
      host->later(cluster_.trip(), [this, life, id, epoch, answer] {
        if (life == life_ && id == id_ && epoch == epoch_ && reachable()) heard(answer);
      });
    });
  }

  void heard(const Group::Beat& answer) {
    if (closing_) return;
    switch (answer.error) {
      case BrokerError::none:
        heard_ = cluster_.now();
        if (consumer()) {
          epoch_ = answer.epoch;
          if (!outstanding_) adopt(answer.partitions, false);
        }
        break;
      case BrokerError::rebalance_in_progress:
        heard_ = cluster_.now();
        if (!outstanding_ && !join_sent_) rejoin();
        break;
      case BrokerError::unknown_member_id:
        lose(true);
        break;
      default:
        lose(false);
        break;
    }
  }

  void rejoin() {
    if (cluster_.protocol == Protocol::eager && !assigned_.empty()) {
      revoke(all(), false, [this] { wants_join_ = true; });
    } else {
      wants_join_ = true;
    }
  }

  void lose(bool forgotten) {
    const bool swallowed = outstanding_.has_value();
    if (consumer()) {
      epoch_ = swallowed ? 0 : -1;
    } else {
      if (forgotten) id_.clear();
      epoch_ = -1;
    }
    join_sent_ = false;
    if (swallowed) {
      swallowed_ = true;  // no event now, and for classic none of this at all (2.2)
      return;
    }
    if (assigned_.empty()) {
      wants_join_ = true;
    } else {
      revoke(all(), true, [this] { wants_join_ = true; });
    }
  }

  void send_join() {
    wants_join_ = false;
    join_sent_ = true;
    join_at_ = cluster_.now();
    const std::uint64_t token = ++last_join_;
    std::set<int> owned;
    for (const auto& [p, place] : assigned_) owned.insert(p);
    cluster_.schedule.in(cluster_.trip(), [this, host = &host_, life = life_, token, id = id_,
                                           owned, owned_epoch = owned_epoch_] {
      const auto unless_gone = [this, host, life, token](std::function<void()> what) {
        host->later(cluster_.trip(), [this, life, token, what = std::move(what)] {
          if (life == life_ && token == last_join_ && join_sent_ && reachable()) what();
        });
      };
      cluster_.group.join(
          id, owned, owned_epoch,
          [this, unless_gone](const Group::Sync& sync) {
            unless_gone([this, sync] {
              join_sent_ = false;
              id_ = sync.id;
              epoch_ = owned_epoch_ = sync.epoch;
              heard_ = cluster_.now();
              if (!closing_) adopt(sync.partitions, true);
            });
          },
          [this, unless_gone] {
            unless_gone([this] {
              join_sent_ = false;
              lose(true);
            });
          });
    });
  }

  /// What the group says that this member has.
  void adopt(const std::set<int>& partitions, bool joined) {
    std::set<int> gone, added;
    for (const auto& [p, place] : assigned_) {
      if (!partitions.contains(p)) gone.insert(p);
    }
    for (const int p : partitions) {
      if (!assigned_.contains(p)) added.insert(p);
    }
    if (cluster_.protocol == Protocol::eager) {
      assign(partitions, {});
    } else if (consumer()) {
      if (!gone.empty()) {
        revoke(gone, false, {});
      } else if (!added.empty()) {
        assign(added, {});
      }
    } else if (!gone.empty()) {
      // Often an empty assign follows; then the member joins again.
      revoke(gone, false, [this, added] { assign(added, [this] { wants_join_ = true; }); });
    } else if (joined) {
      assign(added, {});
    }
  }

  std::set<int> all() const {
    std::set<int> partitions;
    for (const auto& [p, place] : assigned_) partitions.insert(p);
    return partitions;
  }

  void assign(const std::set<int>& partitions, std::function<void()> then) {
    event(Rebalance::Kind::assign, partitions, false, std::move(then));
  }
  void revoke(const std::set<int>& partitions, bool lost, std::function<void()> then) {
    event(Rebalance::Kind::revoke, partitions, lost, std::move(then));
  }
  void event(Rebalance::Kind kind, const std::set<int>& partitions, bool lost,
             std::function<void()> then) {
    Rebalance rebalance;
    rebalance.id = RebalanceId(++last_rebalance_);
    rebalance.kind = kind;
    rebalance.lost = lost;
    rebalance.protocol = cluster_.protocol;
    rebalance.member = member();
    for (const int p : partitions) rebalance.partitions.push_back(Cluster::partition(p));
    outstanding_ = Outstanding{rebalance.id, std::move(then)};
    host_.take(rebalance);
  }

  void answered() {
    const std::function<void()> then = std::move(outstanding_->then);
    outstanding_.reset();
    // The library's thread goes on by itself.
    mine(Duration(1), [this, then] {
      if (closing_) {
        leave_steps();
      } else if (swallowed_) {
        swallowed_ = false;
        if (consumer() && !assigned_.empty()) {
          epoch_ = 0;
          revoke(all(), true, [this] { wants_join_ = true; });
        } else if (cluster_.protocol == Protocol::eager && !assigned_.empty()) {
          revoke(all(), false, [this] { wants_join_ = true; });
        } else {
          wants_join_ = true;
        }
      } else if (then) {
        then();
      }
    });
  }

  void leave_steps() {
    if (!assigned_.empty()) {
      revoke(all(), false, {});
      return;
    }
    const std::string id = id_;
    if (!id.empty() && reachable()) {
      cluster_.schedule.in(cluster_.trip(), [this, id] { cluster_.group.leave(id); });
    }
    mine(cluster_.trip(), [this] {
      reset();
      host_.take(Closed{});
    });
  }

  // ---- records ----------------------------------------------------------------------------------

  void fetch(std::uint64_t life) {
    if (life != life_ || !open_) return;
    host_.later(cluster_.draw.time(milliseconds(5), milliseconds(40)),
                [this, life] { fetch(life); });
    // The library pauses every partition while a rebalance waits for its answer.
    if (outstanding_) return;
    std::vector<int> order;
    for (const auto& [p, place] : assigned_) order.push_back(p);
    if (order.empty()) return;
    const std::size_t first = cluster_.draw.below(order.size());
    for (std::size_t n = 0; n < order.size(); ++n) {
      if (life != life_ || outstanding_) return;
      fetch_one(order[(first + n) % order.size()]);
    }
  }

  void fetch_one(int p) {
    const auto found = assigned_.find(p);
    if (found == assigned_.end()) return;
    Place& place = found->second;
    if (!place.started || (!place.flow && !place.leftover)) return;
    place.leftover = false;
    PartitionLog& log = cluster_.logs[static_cast<std::size_t>(p)];
    const OwnerRef owner = place.owner;
    if (place.position < log.start) {
      place.started = false;
      host_.take(RecordError{owner, BrokerError::offset_out_of_range, Offset(place.position), ""});
      return;
    }
    if (place.position > log.end || (place.epoch >= 0 && place.epoch < log.epoch &&
                                     place.position > log.epoch_end(place.epoch))) {
      place.started = false;
      const bool seen = place.epoch >= 0 && place.epoch < log.epoch;
      host_.take(RecordError{owner,
                             seen ? BrokerError::log_truncated : BrokerError::offset_out_of_range,
                             Offset(place.position), ""});
      return;
    }
    const std::size_t most = std::min<std::size_t>(host_.room(), 1 + cluster_.draw.below(20));
    if (most == 0) return;
    std::vector<Delivered> records;
    for (auto it = log.from(place.position); it != log.records().end() && records.size() < most;
         ++it) {
      records.push_back(
          {host_.message(), Offset(it->offset), it->hash, it->bytes, LeaderEpoch(it->epoch)});
      place.position = it->offset + 1;
      place.epoch = it->epoch;
    }
    if (!records.empty()) {
      host_.take(core::RecordsDelivered{owner, records});
      return;
    }
    place.position = log.end;
    if (place.told == log.end) return;
    place.told = log.end;
    host_.take(Reached{owner, Offset(log.end)});
  }

  // ---- commits ----------------------------------------------------------------------------------

  void try_commit(const std::shared_ptr<core::SendCommit>& request, const Fate& fate, Instant asked,
                  std::uint64_t life) {
    if (life != life_) return;
    if (!reachable()) {
      // Parked until the coordinator is back, then sent as whoever this member is then (C6).
      if (cluster_.now() - asked > cluster_.socket_timeout) {
        answer(*request, BrokerError::timed_out);
        return;
      }
      host_.later(milliseconds(100), [=, this] { try_commit(request, fate, asked, life); });
      return;
    }
    if (fate.lost_request) {
      if (!fate.never) fail_later(request, life);
      return;
    }
    cluster_.schedule.in(cluster_.trip() + fate.wait,
                         [this, host = &host_, life, request, fate, id = id_, epoch = epoch_] {
                           if (cluster_.coordinator_away()) {
                             host->later(cluster_.socket_timeout, [this, life, request] {
                               if (life == life_) answer(*request, BrokerError::timed_out);
                             });
                             return;
                           }
                           BrokerError error = cluster_.group.may_commit(id, epoch);
                           if (error == BrokerError::none && fate.rejected) {
                             error = cluster_.draw.chance(50) ? BrokerError::coordinator_loading
                                                              : BrokerError::rebalance_in_progress;
                           }
                           if (error == BrokerError::none) {
                             for (const CommitLine& line : request->lines) host->committed(line);
                           }
                           if (fate.never) return;
                           host->later(cluster_.trip(), [this, life, request, error, fate] {
                             if (life != life_) return;
                             if (fate.lost_answer || !reachable()) {
                               fail_later(request, life);
                             } else {
                               answer(*request, error);
                             }
                           });
                         });
  }

  void fail_later(const std::shared_ptr<core::SendCommit>& request, std::uint64_t life) {
    host_.later(cluster_.socket_timeout, [this, life, request] {
      if (life == life_) answer(*request, BrokerError::timed_out);
    });
  }

  void answer(const core::SendCommit& request, BrokerError error) {
    CommitAnswer answer{request.id, {}};
    for (const CommitLine& line : request.lines) answer.lines.push_back({line.owner, error});
    host_.take(answer);
  }

  Cluster& cluster_;
  Host& host_;
  const std::string consumer_id_;
  std::uint64_t lives_ = 0;

  std::uint64_t life_ = 0;  ///< of the client object: one open()
  bool open_ = false, closing_ = false, swallowed_ = false;
  bool wants_join_ = false, join_sent_ = false;
  Instant join_at_, heard_;
  std::uint64_t last_join_ = 0, last_rebalance_ = 0;
  std::string id_;
  std::int32_t epoch_ = -1, owned_epoch_ = -1;
  std::optional<Outstanding> outstanding_;
  std::map<int, Place> assigned_;
};

}  // namespace tenure::test
