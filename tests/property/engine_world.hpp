// A small world around the real engine, in virtual time, repeatable by its seed: members that
// freeze, crash, are cut off and restart; one group, one store, logs with gaps. Trouble first,
// then healing; after every step the judge of world_process.hpp, at the end liveness.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "property/world_process.hpp"

namespace tenure::test {

class EngineWorld {
 public:
  struct Report {
    std::uint64_t hash = 0;  ///< over everything the engines asked for, in order
    std::string broken;      ///< empty: every rule held
    std::string parameters;
    std::uint64_t steps = 0;
    std::map<std::string_view, std::uint64_t> seen;  ///< events, by name
  };

  explicit EngineWorld(std::uint64_t seed, bool show = false)
      : seed_(seed), show_(show), draw_(seed * 2 + 1) {
    draw_parameters();
  }

  Report run() {
    Report report;
    try {
      begin();
      const Instant heal_at = cluster_->now() + trouble_for_;
      while (cluster_->now() < heal_at) report.steps += next();
      heal();
      const Instant limit = cluster_->now() + seconds(120);
      Instant look = cluster_->now();
      for (;;) {
        report.steps += next();
        if (cluster_->now() < look) continue;
        if (complete()) break;
        if (cluster_->now() > limit) broken("not live: " + describe());
        look = cluster_->now() + milliseconds(100);
      }
      stop_all();
      const Instant stopped_by = cluster_->now() + seconds(40);
      while (any_alive()) {
        if (cluster_->now() > stopped_by) broken("not stopped: " + describe());
        report.steps += next();
      }
    } catch (const Broken& failure) {
      report.broken = failure.what;
      if (cluster_) {
        report.broken +=
            "\n  at " + std::to_string((cluster_->now() - begun_).count() / 1'000'000) + " ms";
      }
    }
    report.hash = hash_;
    report.parameters = parameters_;
    if (cluster_) report.seen = cluster_->seen;
    return report;
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + draw_.below(values.size()));
  }

  void draw_parameters() {
    protocol_ = one_of({Protocol::eager, Protocol::cooperative, Protocol::consumer});
    partitions_ = static_cast<int>(draw_.between(1, 6));
    processes_wanted_ = static_cast<int>(draw_.between(1, 4));
    session_ = one_of<Duration>({seconds(3), seconds(6)});
    records_ = static_cast<int>(draw_.between(20, 200));
    keys_ = static_cast<std::uint64_t>(one_of({1, 3, 10, 1000}));
    trouble_for_ = draw_.time(seconds(15), seconds(45));
    trouble_ = one_of({0.0, 0.5, 2.0, 5.0});
    truncates_ = draw_.chance(5);
    retains_ = draw_.chance(30);

    core::EngineOptions& o = options_;
    o.group = o.scope = "g";
    const int kind = static_cast<int>(draw_.below(3));  // plain, fenced, transaction
    o.fence = kind > 0;
    o.progress = kind == 2;
    o.order = one_of({Order::none, Order::key, Order::partition});
    o.lanes = o.order == Order::partition ? std::uint16_t{1}
                                          : static_cast<std::uint16_t>(draw_.between(1, 8));
    o.async = !o.progress && draw_.chance(30);
    o.concurrency = static_cast<std::uint32_t>(draw_.between(1, 8));
    o.batch_records = o.async ? 1 : static_cast<std::uint32_t>(one_of({1, 4, 16}));
    o.batch_wait = draw_.chance(30) ? Duration(milliseconds(20)) : Duration(0);
    o.window_records = static_cast<std::uint64_t>(one_of({1, 4, 16, 64}));
    o.window_bytes = static_cast<std::uint64_t>(one_of({200, 1000, 100000}));
    o.window_records_total = o.window_records * static_cast<std::uint64_t>(one_of({1, 2, 100}));
    o.window_bytes_total = o.window_bytes * static_cast<std::uint64_t>(one_of({1, 2, 100}));
    o.ready_max = static_cast<std::uint64_t>(one_of({2, 10, 1000}));
    o.attempts = static_cast<std::uint16_t>(draw_.between(2, 6));
    o.backoff_min = one_of<Duration>({milliseconds(5), milliseconds(100)});
    o.backoff_max = seconds(1);
    o.retry_waiting_max = static_cast<std::uint32_t>(one_of({2, 1000}));
    o.commit_interval = one_of<Duration>({milliseconds(100), milliseconds(500), seconds(1)});
    o.start_position = !draw_.chance(20);
    o.drain_budget = one_of<Duration>({milliseconds(200), seconds(1), seconds(3)});
    o.commit_slice = one_of<Duration>({milliseconds(300), seconds(1)});
    o.drain_margin = milliseconds(500);
    o.shutdown_budget = seconds(3);
    o.close_limit = seconds(2);
    o.reset =
        o.progress || draw_.chance(80) ? core::ResetPolicy::earliest : core::ResetPolicy::latest;
    o.record_events = draw_.chance(20);
    mood_.stop = draw_.chance(10) ? 0.1 : 0;
    mood_.park = draw_.chance(50) ? 0.2 : 0;
    mood_.hung = one_of({0.0, 0.5, 2.0});

    parameters_ =
        "protocol " + std::string(name(protocol_)) + ", partitions " + std::to_string(partitions_) +
        ", processes " + std::to_string(processes_wanted_) + ", kind " +
        (kind == 0   ? "plain"
         : kind == 1 ? "fenced"
                     : "transaction") +
        ", order " + std::string(name(o.order)) + ", lanes " + std::to_string(o.lanes) +
        (o.async ? ", async" : "") + ", concurrency " + std::to_string(o.concurrency) + ", batch " +
        std::to_string(o.batch_records) + ", window " + std::to_string(o.window_records) + "/" +
        std::to_string(o.window_bytes) + " of " + std::to_string(o.window_records_total) + "/" +
        std::to_string(o.window_bytes_total) + ", ready " + std::to_string(o.ready_max) +
        ", keys " + std::to_string(keys_) + ", trouble " + std::to_string(trouble_) +
        (retains_ ? ", retention" : "") + (truncates_ ? ", truncation" : "") +
        (o.reset == core::ResetPolicy::latest ? ", latest" : "") +
        (o.start_position ? "" : ", no start position");
  }

  void begin() {
    cluster_ = std::make_unique<Cluster>(seed_, protocol_, partitions_, session_, seconds(12));
    cluster_->trouble = trouble_;
    cluster_->show = show_;
    begun_ = cluster_->now();
    tick();
    produce();
    for (int i = 0; i < processes_wanted_; ++i) {
      current_.push_back(nullptr);
      cluster_->schedule.in(draw_.time(Duration(0), seconds(3)), [this, i] { start(i); });
    }
    trouble();
  }

  std::uint64_t next() { return cluster_->schedule.next() ? 1 : 0; }

  void start(int place) {
    Process*& process = current_[static_cast<std::size_t>(place)];
    if (process != nullptr && process->alive()) return;
    core::EngineOptions options = options_;
    options.seed = draw_.bits();
    processes_.push_back(std::make_unique<Process>(
        *cluster_, store_, options, mood_, "process-" + std::to_string(processes_.size()), &hash_));
    process = processes_.back().get();
    process->start();
  }

  /// The broker's own clockwork.
  void tick() {
    cluster_->group.tick(cluster_->coordinator_away());
    cluster_->schedule.in(milliseconds(200), [this] { tick(); });
  }

  void produce() {
    for (PartitionLog& log : cluster_->logs) {
      const std::int64_t some = draw_.between(0, 1 + records_ / 10);
      for (std::int64_t i = 0; i < some && static_cast<int>(log.records().size()) < records_; ++i) {
        log.append(draw_, keys_, 100);
      }
    }
    if (!cluster_->healed) {
      cluster_->schedule.in(draw_.time(milliseconds(100), trouble_for_ / 8), [this] { produce(); });
    }
  }

  void trouble() {
    if (cluster_->healed) return;
    cluster_->schedule.in(draw_.time(milliseconds(100), seconds(3)), [this] { trouble(); });
    const int place = static_cast<int>(draw_.below(current_.size()));
    Process* process = current_[static_cast<std::size_t>(place)];
    PartitionLog& log = cluster_->logs[draw_.below(cluster_->logs.size())];
    if (process == nullptr || !process->alive()) {
      start(place);
      return;
    }
    if (trouble_ == 0 && draw_.chance(50)) return;
    switch (draw_.below(9)) {
      case 0:
        process->freeze(draw_.time(milliseconds(100), session_ * 5 / 2));
        break;
      case 1:
        process->freeze(draw_.time(session_ + cluster_->socket_timeout, session_ * 4));
        break;
      case 2:
        process->crash();
        break;
      case 3:
        process->stop(draw_.time(milliseconds(100), seconds(4)));
        break;
      case 4:
        process->client().cut_until = cluster_->now() + draw_.time(milliseconds(300), session_ * 2);
        break;
      case 5:
        cluster_->coordinator_away_until =
            cluster_->now() + draw_.time(milliseconds(300), session_ * 3 / 2);
        break;
      case 6:
        cluster_->store_away_until = cluster_->now() + draw_.time(milliseconds(100), seconds(4));
        break;
      case 7:
        if (retains_) log.retain_from(draw_.between(log.start, log.end));
        break;
      case 8:
        if (truncates_ && log.end > log.start) {
          log.truncate(draw_.between(std::max(log.start, log.end - 10), log.end));
        }
        break;
      default:
        break;
    }
  }

  void heal() {
    cluster_->healed = true;
    cluster_->coordinator_away_until = cluster_->store_away_until = Instant::min();
    for (int i = 0; i < processes_wanted_; ++i) {
      Process* process = current_[static_cast<std::size_t>(i)];
      if (process == nullptr || !process->alive()) {
        start(i);
        continue;
      }
      process->client().cut_until = Instant::min();
      // What is parked is tried again by a new grant only.
      if (process->parked() || draw_.chance(30)) process->stop(seconds(3));
    }
    revive();
  }

  /// Restarts what has ended since.
  void revive() {
    if (stopping_) return;
    for (int i = 0; i < processes_wanted_; ++i) start(i);
    cluster_->schedule.in(seconds(1), [this] { revive(); });
  }

  [[nodiscard]] bool live_log(int p) const {
    return !cluster_->logs[static_cast<std::size_t>(p)].truncated;
  }

  /// All consumed, committed = end, each partition with one owner.
  bool complete() {
    std::vector<int> owners(static_cast<std::size_t>(partitions_), 0);
    for (const Process* process : current_) {
      if (process == nullptr || !process->alive() || process->frozen()) return false;
    }
    for (Process* process : current_) {
      for (const auto& [p, owner] : process->active()) ++owners[static_cast<std::size_t>(p)];
    }
    for (int p = 0; p < partitions_; ++p) {
      PartitionLog& log = cluster_->logs[static_cast<std::size_t>(p)];
      if (!live_log(p)) continue;
      if (owners[static_cast<std::size_t>(p)] != 1 || log.first_undone()) return false;
      const std::int64_t committed = log.committed ? log.committed->offset : -1;
      const bool nothing = !options_.start_position && committed < 0 && log.records().empty();
      if (committed != log.end && !nothing) return false;
    }
    return true;
  }

  void stop_all() {
    stopping_ = true;
    for (Process* process : current_) process->stop(seconds(5));
  }
  bool any_alive() const {
    for (const Process* process : current_) {
      if (process->alive()) return true;
    }
    return false;
  }

  std::string describe() {
    std::string text;
    for (int p = 0; p < partitions_; ++p) {
      PartitionLog& log = cluster_->logs[static_cast<std::size_t>(p)];
      const auto undone = log.first_undone();
      text += "\n  p" + std::to_string(p) + " log " + std::to_string(log.start) + ".." +
              std::to_string(log.end) + " committed " +
              (log.committed ? std::to_string(log.committed->offset) : std::string("none")) +
              (undone ? " undone from " + std::to_string(*undone) : std::string()) +
              (log.truncated ? " truncated" : "");
    }
    for (Process* process : current_) {
      if (process != nullptr) text += "\n" + process->describe();
    }
    return text;
  }

  const std::uint64_t seed_;
  const bool show_;
  Draw draw_;
  Protocol protocol_ = Protocol::cooperative;
  int partitions_ = 1, processes_wanted_ = 1, records_ = 0;
  Duration session_{}, trouble_for_{};
  std::uint64_t keys_ = 1;
  double trouble_ = 0;
  bool truncates_ = false, retains_ = false, stopping_ = false;
  core::EngineOptions options_;
  Mood mood_;
  std::string parameters_;

  std::uint64_t hash_ = 1;
  Instant begun_;
  std::unique_ptr<Cluster> cluster_;
  StoreRows store_;
  std::vector<std::unique_ptr<Process>> processes_;  ///< dead ones too: messages to them fly
  std::vector<Process*> current_;
};

}  // namespace tenure::test
