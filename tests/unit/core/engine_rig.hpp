// Steps the engine by hand: a broker, a group and a store reduced to tables and answers.
//
// By default every read and every store request is answered at once from the tables, commits
// are accepted, and dispatched runs wait in `out` until the test finishes them. Each of these can
// be held back and answered otherwise. Time moves only by advance().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine.hpp"

namespace tenure::core {

/// In a test body `Run` would name testing::Test::Run.
using RecordRun = Run;

class Rig {
 public:
  struct Log {
    Offset start{0};
    Offset end{1000};
    std::optional<Offset> committed;
    std::string metadata;
    BrokerError read_error = BrokerError::none;
  };
  struct StoredLane {
    Token token{0};
    Uuid owner{};
    std::optional<Offset> next;
  };
  struct StoredDomain {
    std::int64_t ticket = 0;
    std::vector<StoredLane> lanes;
  };

  explicit Rig(EngineOptions options = defaults()) : options_(options), engine_(options) {
    engine_.start(now_, commands_);
    carry_out();
    if (auto_open) step(TimesKnown{session, heartbeat, poll_limit, socket_timeout});
  }

  static EngineOptions defaults() {
    EngineOptions options;
    options.group = "g";
    options.scope = "g";
    options.order = Order::none;
    return options;
  }
  static EngineOptions transactional(std::uint16_t lanes = 4) {
    EngineOptions options = defaults();
    options.fence = options.progress = true;
    options.order = Order::key;
    options.lanes = lanes;
    options.batch_records = 10;
    return options;
  }

  // ---- what the world looks like -------------------------------------------------------------
  static constexpr Duration session = seconds(10), heartbeat = seconds(1),
                            poll_limit = seconds(300), socket_timeout = seconds(60);
  bool auto_open = true;
  std::string cluster = "cluster-1";
  std::map<std::string, TopicFacts> topics;  // default: made on demand
  std::map<TopicPartition, Log> logs;
  std::map<Domain, StoredDomain> store;
  Member member{"m-1", Epoch(1), ""};

  bool hold_commits = false, hold_topics = false, hold_committed = false, hold_ends = false,
       hold_reserve = false, hold_activate = false, hold_advance = false, hold_lookup = false;
  std::map<TopicPartition, std::deque<BrokerError>> commit_errors;  // next answers; then accepted
  StoreError reserve_error = StoreError::none, activate_error = StoreError::none,
             advance_error = StoreError::none, lookup_error = StoreError::none;

  // ---- what the engine did -------------------------------------------------------------------
  std::vector<Run*> out;                // dispatched, not returned
  std::vector<SendCommit> commits;      // all sent
  std::deque<SendCommit> open_commits;  // held back
  std::deque<ReadTopics> open_topics;
  std::deque<ReadCommitted> open_committed;
  std::deque<ReadLogEnds> open_ends;
  std::deque<Reserve> open_reserves;
  std::deque<Activate> open_activates;
  std::deque<AdvanceIdle> open_advances;
  std::deque<Lookup> open_lookups;
  std::vector<AnswerAssign> assigns;
  std::vector<AnswerRevoke> revokes;
  std::vector<StartFetch> starts;
  std::vector<OwnerActivated> activated;
  std::vector<Report> reports;
  std::vector<Finished> finished;
  std::vector<MessageHandle> freed;
  std::map<GrantId, bool> flow;
  std::set<GrantId> forgotten, stopped, closed_dispatch, abandoned, dropped, cancelled;
  int opens = 0, closes = 0, abandons = 0;
  /// Everything in order of execution, one word each, for tests about order.
  std::vector<std::string> trace;

  // ---- driving -------------------------------------------------------------------------------
  Engine& engine() { return engine_; }
  [[nodiscard]] Instant now() const { return now_; }

  void step(const Input& input) {
    engine_.step(input, now_, commands_);
    carry_out();
  }

  /// Moves time in steps no longer than the engine asks for.
  void advance(Duration by) {
    const Instant until = now_ + by;
    while (now_ < until) {
      const Instant wake = engine_.next_wake();
      ASSERT_TRUE(wake == never || wake >= last_wake_ || wake >= now_) << "wakes in the past";
      now_ = std::min(until, std::max(wake, now_ + Duration(1'000'000)));
      step(Tick{});
    }
  }
  /// A frozen process: time passes, nothing is stepped.
  void freeze(Duration by) { now_ += by; }

  std::vector<OwnerRef> assign(std::vector<int> partitions,
                               Protocol protocol = Protocol::cooperative,
                               const std::string& topic = "t") {
    Rebalance rebalance;
    rebalance.id = RebalanceId(++last_rebalance_);
    rebalance.kind = Rebalance::Kind::assign;
    rebalance.protocol = protocol;
    rebalance.member = member;
    for (const int p : partitions) rebalance.partitions.push_back({topic, Partition(p)});
    step(rebalance);
    std::vector<OwnerRef> owners;
    if (!assigns.empty() && assigns.back().id == rebalance.id) {
      for (const auto& granted : assigns.back().granted) owners.push_back(granted.owner);
    }
    return owners;
  }
  OwnerRef assign(int partition) { return assign(std::vector<int>{partition}).front(); }

  RebalanceId revoke(std::vector<int> partitions, bool lost = false,
                     Protocol protocol = Protocol::cooperative, const std::string& topic = "t") {
    Rebalance rebalance;
    rebalance.id = RebalanceId(++last_rebalance_);
    rebalance.kind = Rebalance::Kind::revoke;
    rebalance.lost = lost;
    rebalance.protocol = protocol;
    rebalance.member = member;
    for (const int p : partitions) rebalance.partitions.push_back({topic, Partition(p)});
    step(rebalance);
    return rebalance.id;
  }

  /// Delivers offsets [from, to) of one owner; key = offset % keys.
  void deliver(OwnerRef owner, std::int64_t from, std::int64_t to, std::uint32_t bytes = 100,
               std::uint64_t keys = 7) {
    std::vector<Delivered> records;
    for (std::int64_t o = from; o < to; ++o) {
      records.push_back(
          {message(), Offset(o), static_cast<std::uint64_t>(o) % keys, bytes, LeaderEpoch(3)});
    }
    step(RecordsDelivered{owner, records});
  }
  void deliver(OwnerRef owner, std::vector<Delivered> records) {
    step(RecordsDelivered{owner, records});
  }
  MessageHandle message() {
    messages_.push_back(std::make_unique<int>(0));
    return messages_.back().get();
  }
  [[nodiscard]] std::size_t messages_made() const { return messages_.size(); }

  using Fill = std::function<void(Run&)>;
  /// Returns one run with every record `result`.
  void give_back(Run* run, RecordResult result, const Fill& fill = {}) {
    out.erase(std::find(out.begin(), out.end(), run));
    for (RunRecord& record : run->records) record.result = result;
    run->took = std::chrono::microseconds(100) * static_cast<int>(run->records.size());
    if (options_.progress && (result == RecordResult::done || result == RecordResult::replayed)) {
      store_run(*run);
    }
    if (fill) fill(*run);
    step(RunReturned{run});
  }
  /// Finishes everything that is out, and what follows from it.
  void finish_all(RecordResult result = RecordResult::done) {
    while (!out.empty()) give_back(out.front(), result);
  }
  /// Returns what a CloseDispatch reclaims: here every run not marked started.
  std::set<Run*> started;
  void start_all() { started.insert(out.begin(), out.end()); }

  Run* run_with(std::int64_t offset) {
    for (Run* run : out) {
      for (const RunRecord& record : run->records) {
        if (record.offset == Offset(offset)) return run;
      }
    }
    return nullptr;
  }

  // ---- answers by hand -----------------------------------------------------------------------
  void answer_commit(std::vector<BrokerError> errors = {}) {
    const SendCommit sent = open_commits.front();
    open_commits.pop_front();
    CommitAnswer answer{sent.id, {}};
    for (std::size_t i = 0; i < sent.lines.size(); ++i) {
      const BrokerError error = errors.empty() ? BrokerError::none : errors[i % errors.size()];
      answer.lines.push_back({sent.lines[i].owner, error});
      if (error == BrokerError::none) note_commit(sent.lines[i]);
    }
    step(answer);
  }
  void answer(const ReadTopics& read) {
    TopicsRead result{read.id, cluster, {}};
    for (const std::string& topic : read.topics) result.topics.push_back(facts(topic));
    step(result);
  }
  void answer(const ReadCommitted& read) {
    CommittedRead result{read.id, {}};
    for (const TopicPartition& partition : read.partitions) {
      const Log& log = logs[partition];
      result.offsets.push_back({partition, log.read_error,
                                log.read_error == BrokerError::none ? log.committed : std::nullopt,
                                no_leader_epoch, log.metadata});
    }
    step(result);
  }
  void answer(const ReadLogEnds& read) {
    LogEndsRead result{read.id, {}};
    for (const TopicPartition& partition : read.partitions) {
      result.ends.push_back(
          {partition, BrokerError::none, logs[partition].start, logs[partition].end});
    }
    step(result);
  }
  void answer(const Reserve& request) {
    Reserved result{request.id, {}};
    for (const Reserve::Item& item : request.items) {
      Reserved::Item line;
      line.owner = item.owner;
      line.error = reserve_error;
      if (reserve_error == StoreError::none) {
        StoredDomain& domain = store[item.domain];
        line.token = Token(++domain.ticket);
        line.lanes = progress(domain);
      }
      result.items.push_back(std::move(line));
    }
    step(result);
  }
  void answer(const Activate& request) {
    Activated result{request.id, {}};
    for (const Activate::Item& item : request.items) {
      Activated::Item line;
      line.owner = item.owner;
      line.error = activate_error;
      if (activate_error == StoreError::none) {
        StoredDomain& domain = store[item.domain];
        if (domain.lanes.empty()) {
          domain.lanes.resize(item.rule.lanes);
          for (StoredLane& lane : domain.lanes) {
            if (item.progress) lane.next = item.first;
          }
        }
        if (domain.lanes.front().token > item.fence.token) {
          line.error = StoreError::superseded;
          line.stored_token = domain.lanes.front().token;
        } else {
          for (StoredLane& lane : domain.lanes) {
            lane.token = item.fence.token;
            lane.owner = item.fence.owner;
          }
          line.lanes = progress(domain);
        }
      }
      result.items.push_back(std::move(line));
    }
    step(result);
  }
  void answer(const AdvanceIdle& request) {
    IdleAdvanced result{request.id, request.owner, advance_error, {}};
    if (advance_error == StoreError::none) {
      StoredDomain& domain = store[request.domain];
      for (const AdvanceIdle::Step& lane_step : request.steps) {
        StoredLane& lane = domain.lanes.at(lane_step.lane);
        EXPECT_EQ(lane.next, lane_step.from) << "an idle advance compares with what is stored";
        lane.next = lane_step.to;
      }
    }
    step(result);
  }
  void answer(const Lookup& request) {
    LookedUp result{request.id, request.owner, request.lane, lookup_error, {}, {}};
    if (lookup_error == StoreError::none) {
      const StoredLane& lane = store[request.domain].lanes.at(request.lane);
      if (lane.owner != request.fence.owner) result.error = StoreError::superseded;
      result.next_offset = lane.next;
    }
    step(result);
  }
  /// Applies a run to the store as its unit would; false when the fence or the lane refuses.
  bool store_run(Run& run) {
    for (auto& [domain, stored] : store) {
      if (run.lane >= stored.lanes.size()) continue;
      StoredLane& lane = stored.lanes[run.lane];
      if (!run.fence || lane.owner != run.fence->owner) continue;
      if (lane.next != run.lane_from) return false;
      lane.next = run.records.back().offset.next();
      run.lane_reached = lane.next;
      return true;
    }
    return false;
  }

  // ---- looking -------------------------------------------------------------------------------
  [[nodiscard]] OwnerSnapshot shown(OwnerRef owner) {
    auto snapshot = engine_.snapshot(owner);
    EXPECT_TRUE(snapshot.has_value());
    return snapshot.value_or(OwnerSnapshot{});
  }
  [[nodiscard]] OwnerState state(OwnerRef owner) {
    const auto snapshot = engine_.snapshot(owner);
    return snapshot ? snapshot->state : OwnerState::retired;
  }
  [[nodiscard]] std::size_t count(EventName name) const {
    return static_cast<std::size_t>(std::count_if(
        reports.begin(), reports.end(), [&](const Report& report) { return report.name == name; }));
  }
  [[nodiscard]] const Report* last(EventName name) const {
    for (auto it = reports.rbegin(); it != reports.rend(); ++it) {
      if (it->name == name) return &*it;
    }
    return nullptr;
  }
  static std::int64_t integer(const Report& report, std::string_view key) {
    for (const auto& field : report.fields) {
      if (field.key == key) return std::get<std::int64_t>(field.value);
    }
    ADD_FAILURE() << "no field " << key;
    return -1;
  }
  static std::string text(const Report& report, std::string_view key) {
    for (const auto& field : report.fields) {
      if (field.key == key) return std::get<std::string>(field.value);
    }
    ADD_FAILURE() << "no field " << key;
    return {};
  }
  /// Last committed offset sent for a partition; empty when none was.
  [[nodiscard]] std::optional<Offset> sent(int partition) const {
    for (auto it = commits.rbegin(); it != commits.rend(); ++it) {
      for (const CommitLine& line : it->lines) {
        if (line.partition.partition == Partition(partition)) return line.offset;
      }
    }
    return {};
  }
  TopicFacts& facts(const std::string& topic) {
    auto [it, made] = topics.try_emplace(topic);
    if (made) {
      it->second.topic = topic;
      it->second.partitions = 12;
      it->second.id.bytes[0] = static_cast<std::uint8_t>(topics.size());
    }
    return it->second;
  }
  Domain domain(int partition, const std::string& topic = "t") {
    return {options_.scope, cluster, facts(topic).id, Partition(partition)};
  }
  Log& log(int partition, const std::string& topic = "t") {
    return logs[{topic, Partition(partition)}];
  }

 private:
  static std::vector<LaneProgress> progress(const StoredDomain& domain) {
    std::vector<LaneProgress> lanes;
    for (std::size_t i = 0; i < domain.lanes.size(); ++i) {
      lanes.push_back({static_cast<std::uint16_t>(i), domain.lanes[i].next, no_leader_epoch});
    }
    return lanes;
  }
  void note_commit(const CommitLine& line) {
    logs[line.partition].committed = line.offset;
    logs[line.partition].metadata = line.metadata;
  }

  void carry_out() {
    if (carrying_) return;  // the outer call goes on with what was appended
    carrying_ = true;
    while (!commands_.empty()) {
      Commands batch;
      std::swap(batch, commands_);
      for (const Command& command : batch.commands)
        std::visit([this](const auto& c) { on(c); }, command);
      for (Run* run : batch.dispatched) {
        out.push_back(run);
        trace.push_back("dispatch");
      }
      freed.insert(freed.end(), batch.freed.begin(), batch.freed.end());
      while (!later_.empty() && commands_.empty()) {
        const auto next = std::move(later_.front());
        later_.pop_front();
        carrying_ = false;
        next();
        carrying_ = true;
      }
    }
    carrying_ = false;
    if (!later_.empty()) {
      const auto next = std::move(later_.front());
      later_.pop_front();
      next();
    }
  }

  void on(const OpenSource&) {
    ++opens;
    trace.push_back("open");
  }
  void on(const CloseSource&) {
    ++closes;
    trace.push_back("close");
  }
  void on(const AbandonSource&) {
    ++abandons;
    trace.push_back("abandon");
  }
  void on(const AnswerAssign& c) {
    assigns.push_back(c);
    trace.push_back("assign");
  }
  void on(const AnswerRevoke& c) {
    revokes.push_back(c);
    trace.push_back("answer_revoke");
  }
  void on(const StartFetch& c) {
    starts.push_back(c);
    trace.push_back("start");
  }
  void on(const SetFlow& c) { flow[c.owner.grant] = c.open; }
  void on(const ForgetOwner& c) {
    forgotten.insert(c.owner.grant);
    trace.push_back("forget");
  }
  void on(const SendCommit& c) {
    EXPECT_TRUE(open_commits.empty()) << "C1 at most one commit is outstanding";
    commits.push_back(c);
    open_commits.push_back(c);
    trace.push_back("commit");
    if (hold_commits) return;
    later_.push_back([this] {
      std::vector<BrokerError> errors;
      for (const CommitLine& line : open_commits.front().lines) {
        auto& next = commit_errors[line.partition];
        errors.push_back(next.empty() ? BrokerError::none : next.front());
        if (!next.empty()) next.pop_front();
      }
      answer_commit(errors);
    });
  }
  void on(const ReadTopics& c) {
    if (hold_topics) {
      open_topics.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const ReadCommitted& c) {
    EXPECT_TRUE(open_commits.empty()) << "F4 not read while a commit is outstanding";
    if (hold_committed) {
      open_committed.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const ReadLogEnds& c) {
    if (hold_ends) {
      open_ends.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const ReadMember&) { engine_.step(MemberRead{member}, now_, commands_); }
  void on(const Reserve& c) {
    if (hold_reserve) {
      open_reserves.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const Activate& c) {
    if (hold_activate) {
      open_activates.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const AdvanceIdle& c) {
    if (hold_advance) {
      open_advances.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const Lookup& c) {
    if (hold_lookup) {
      open_lookups.push_back(c);
      return;
    }
    later_.push_back([this, c] { answer(c); });
  }
  void on(const CancelUnits& c) { cancelled.insert(c.owner.grant); }
  void on(const OwnerActivated& c) {
    activated.push_back(c);
    trace.push_back("activated");
  }
  void on(const CloseDispatch& c) {
    closed_dispatch.insert(c.owner.grant);
    std::vector<Run*> reclaimed;
    for (Run* run : out) {
      if (run->owner == c.owner && !started.contains(run)) reclaimed.push_back(run);
    }
    for (Run* run : reclaimed) {
      later_.push_back([this, run] {
        if (std::find(out.begin(), out.end(), run) != out.end()) {
          give_back(run, RecordResult::unstarted);
        }
      });
    }
  }
  void on(const FireStop& c) { stopped.insert(c.owner.grant); }
  void on(const AbandonRuns& c) { abandoned.insert(c.owner.grant); }
  void on(const DropOwner& c) { dropped.insert(c.owner.grant); }
  void on(const Finished& c) {
    finished.push_back(c);
    trace.push_back("finished");
  }
  void on(const Report& c) { reports.push_back(c); }

  EngineOptions options_;
  Engine engine_;
  Commands commands_;
  Instant now_{std::chrono::hours(1)};
  Instant last_wake_{};
  std::uint64_t last_rebalance_ = 0;
  std::vector<std::unique_ptr<int>> messages_;
  std::deque<std::function<void()>> later_;
  bool carrying_ = false;
};

}  // namespace tenure::core
