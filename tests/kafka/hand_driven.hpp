// A Source driven by hand, with a sink that records what it is told.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kafka/cluster.hpp"
#include "tenure/kafka/source.hpp"

namespace tenure::kafka {

/// Drives one Source by hand. Assigns are answered at once with fresh owners, revokes too,
/// unless `hold_revokes`; records are noted and released.
class HandDriven : public SourceSink {
 public:
  HandDriven(const Cluster& cluster, const std::string& group, const std::string& topic,
             Protocol protocol, Properties extra = {}) {
    SourceOptions options;
    options.topics = {topic};
    options.properties = cluster.member_properties(protocol);
    options.properties.emplace_back("group.id", group);
    for (auto& row : extra) options.properties.push_back(std::move(row));
    auto made = make_source(options);
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return;
    }
    source = std::move(*made);
    open();
  }
  ~HandDriven() override { source.reset(); }

  /// Polls until `done`, at most `limit`. True when done.
  bool until(const std::function<bool()>& done,
             std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (true) {
      source->poll_events();
      source->poll_records(records_at_once);
      if (done()) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return woken_; });
      woken_ = false;
    }
  }
  /// Polls for `time`; for what must not happen.
  void during(std::chrono::milliseconds time) {
    until([] { return false; }, time);
  }
  void open() {
    const auto opened = source->open(*this, [this] {
      const std::lock_guard lock(mutex_);
      woken_ = true;
      wake_.notify_one();
    });
    EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().message);
  }
  void start(const TopicPartition& partition, std::int64_t offset) {
    const StartAt at{owners.at(partition), partition, Offset(offset), no_leader_epoch};
    source->start(std::span<const StartAt>(&at, 1));
  }
  /// Offsets delivered under the present owner of the partition.
  const std::vector<std::int64_t>& of(const TopicPartition& partition) {
    return offsets[owners.at(partition).grant];
  }
  void commit(std::uint64_t id, const std::vector<std::pair<TopicPartition, std::int64_t>>& rows,
              const std::string& metadata = "") {
    std::vector<CommitLine> lines;
    for (const auto& [partition, offset] : rows) {
      lines.push_back({owners.at(partition), partition, Offset(offset), no_leader_epoch, metadata});
    }
    source->commit(CommitId(id), lines);
  }
  void release_revokes() {
    for (const Rebalance& revoke : held) answer(revoke);
    held.clear();
  }

  std::unique_ptr<Source> source;
  std::map<TopicPartition, OwnerRef> owners;
  std::map<GrantId, std::vector<std::int64_t>> offsets;  // delivered, by grant
  std::map<GrantId, std::int64_t> reached_at;
  std::vector<Rebalance> rebalances;
  std::vector<Rebalance> held;
  std::vector<CommitAnswer> answers;
  std::vector<CommittedRead> committed;
  std::vector<TopicsRead> topics;
  std::vector<LogEndsRead> ends;
  std::vector<RecordError> errors;
  std::vector<ClientError> client_errors;
  std::vector<MembershipTimes> known_times;
  std::function<void(OwnerRef)> on_delivered;  // called inside the source's call
  std::size_t records_at_once = 1000;
  bool hold_revokes = false;
  bool keep_messages = false;
  std::vector<MessageHandle> kept;
  bool is_closed = false;

 private:
  void answer(const Rebalance& rebalance) {
    if (rebalance.kind == Rebalance::Kind::assign) {
      std::vector<GrantedPartition> granted;
      for (const TopicPartition& partition : rebalance.partitions) {
        owners[partition] = {static_cast<std::uint32_t>(++last_grant_), GrantId(last_grant_)};
        granted.push_back({partition, owners[partition]});
      }
      EXPECT_TRUE(source->answer_assign(rebalance.id, granted));
      EXPECT_FALSE(source->answer_assign(rebalance.id, granted)) << "R5 once";
    } else {
      for (const TopicPartition& partition : rebalance.partitions) owners.erase(partition);
      EXPECT_TRUE(source->answer_revoke(rebalance.id, rebalance.partitions));
    }
  }
  void rebalance(const Rebalance& rebalance) override {
    rebalances.push_back(rebalance);
    if (rebalance.kind == Rebalance::Kind::revoke && hold_revokes) {
      held.push_back(rebalance);
      return;
    }
    answer(rebalance);
  }
  void delivered(OwnerRef owner, std::span<const Delivered> records) override {
    std::vector<MessageHandle> messages;
    for (const Delivered& record : records) {
      offsets[owner.grant].push_back(record.offset.value());
      if (record.message != nullptr) messages.push_back(record.message);
    }
    if (on_delivered) on_delivered(owner);
    if (keep_messages) {
      kept.insert(kept.end(), messages.begin(), messages.end());
    } else {
      source->release(messages);
    }
  }
  void reached(const Reached& reached) override {
    reached_at[reached.owner.grant] = reached.offset.value();
  }
  void record_error(const RecordError& error) override { errors.push_back(error); }
  void commit_answered(const CommitAnswer& answer) override { answers.push_back(answer); }
  void committed_read(const CommittedRead& read) override { committed.push_back(read); }
  void topics_read(const TopicsRead& read) override { topics.push_back(read); }
  void log_ends_read(const LogEndsRead& read) override { ends.push_back(read); }
  void client_error(const ClientError& error) override { client_errors.push_back(error); }
  void times(const MembershipTimes& times) override { known_times.push_back(times); }
  void closed() override { is_closed = true; }
  void client_log(Level, std::string_view, std::string_view) override {}

  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
  std::uint64_t last_grant_ = 0;
};

}  // namespace tenure::kafka
