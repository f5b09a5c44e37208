// The Source contract on Apache Kafka, and what only a real broker does: markers, retention,
// recreated topics, limits, times of its own, static members. One node serves all cases.
#include <algorithm>
#include <iostream>

#include "kafka/source_contract.hpp"
#include "support/pace.hpp"

namespace tenure::kafka {

namespace {

std::shared_ptr<BrokerCluster> the_broker() {
  static std::shared_ptr<BrokerCluster> broker;
  if (!broker) broker = std::make_shared<BrokerCluster>();
  return broker;
}

}  // namespace

std::shared_ptr<Cluster> contract_cluster() {
  return the_broker();
}

namespace {

INSTANTIATE_TEST_SUITE_P(OnBroker, SourceContract, protocols(), protocol_name);

class SourceOnBroker : public SourceContract {
 protected:
  std::shared_ptr<BrokerCluster> broker = the_broker();
};
INSTANTIATE_TEST_SUITE_P(OnBroker, SourceOnBroker, protocols(), protocol_name);

/// Writes whole transactions.
class Transactions {
 public:
  Transactions(const Cluster& cluster, const std::string& id)
      : producer_(new_producer(cluster.bootstrap(), {{"transactional.id", id}})) {
    check(rd_kafka_init_transactions(producer_, 20000));
  }
  ~Transactions() { rd_kafka_destroy(producer_); }
  Transactions(const Transactions&) = delete;
  void begin(const std::string& topic, int partition, int count) {
    check(rd_kafka_begin_transaction(producer_));
    for (int i = 0; i < count; ++i) send(producer_, topic, partition, {"k", "in transaction", {}});
    EXPECT_EQ(rd_kafka_flush(producer_, 10000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void commit() { check(rd_kafka_commit_transaction(producer_, 20000)); }
  void abort() { check(rd_kafka_abort_transaction(producer_, 20000)); }

 private:
  static void check(rd_kafka_error_t* error) {
    EXPECT_EQ(error, nullptr) << (error == nullptr ? "" : rd_kafka_error_string(error));
    if (error != nullptr) rd_kafka_error_destroy(error);
  }
  rd_kafka_t* producer_;
};

TEST_P(SourceOnBroker, F3_ReachedAtTheTailIsTheLogEndBehindMarkersAbortedAndOpenTransactions) {
  auto member = owner_of(1);
  member->start(p(0), 0);
  const GrantId grant = member->owners[p(0)].grant;
  std::uint64_t reads = 0;
  const auto log_end = [&] {
    const std::vector<TopicPartition> asked{p(0)};
    const std::size_t before = member->ends.size();
    member->source->read_log_ends(ReadId(++reads), asked);
    EXPECT_TRUE(member->until([&] { return member->ends.size() > before; }));
    EXPECT_EQ(member->ends.back().ends[0].error, BrokerError::none);
    return member->ends.back().ends[0].end.value();
  };
  const auto expect_at = [&](std::int64_t end) {
    EXPECT_TRUE(member->until([&] { return member->reached_at[grant] == end; })) << end;
    EXPECT_EQ(log_end(), end);
  };
  cluster->produce(topic, 0, 10);
  expect_at(10);
  Transactions transactions(*cluster, topic);
  transactions.begin(topic, 0, 5);
  transactions.commit();
  expect_at(16);
  transactions.begin(topic, 0, 5);
  transactions.abort();
  expect_at(22);
  for (int i = 0; i < 3; ++i) {
    transactions.begin(topic, 0, 3);
    transactions.abort();
  }
  expect_at(34);
  transactions.begin(topic, 0, 4);
  cluster->produce(topic, 0, 2);
  member->during(milliseconds(300));
  EXPECT_EQ(member->reached_at[grant], 34) << "an open transaction ends the log";
  EXPECT_EQ(log_end(), 34);
  transactions.commit();
  expect_at(41);
  std::vector<std::int64_t> visible = range(0, 15);
  const std::vector<std::int64_t> last = range(34, 40);
  visible.insert(visible.end(), last.begin(), last.end());
  EXPECT_EQ(member->of(p(0)), visible);
}

TEST_P(SourceOnBroker, F7_APositionBelowTheLogStartIsAnErrorAndGoesOnAtTheLogStart) {
  auto member = owner_of(2);
  cluster->produce(topic, 0, 50);
  cluster->produce(topic, 1, 50);
  broker->cut(topic, 0, 30);
  member->start(p(0), 10);
  member->start(p(1), 0);
  ASSERT_TRUE(member->until([&] { return !member->errors.empty(); }));
  EXPECT_EQ(member->errors[0].error, BrokerError::offset_out_of_range);
  EXPECT_EQ(member->errors[0].offset, Offset(10));
  const std::vector<TopicPartition> asked{p(0)};
  member->source->read_log_ends(ReadId(1), asked);
  ASSERT_TRUE(member->until([&] { return !member->ends.empty(); }));
  EXPECT_EQ(member->ends[0].ends[0].start, Offset(30));
  EXPECT_EQ(member->ends[0].ends[0].end, Offset(50));
  member->start(p(0), 30);
  ASSERT_TRUE(member->until(
      [&] { return member->of(p(0)).size() == 20 && member->of(p(1)).size() == 50; }));
  EXPECT_EQ(member->of(p(0)), range(30, 50));
  EXPECT_EQ(member->of(p(1)), range(0, 50));
}

TEST_P(SourceOnBroker, F8_ARecreatedTopicHasAnotherId) {
  cluster->create(topic, 1);
  // A member that does not read it, lest its leaving and coming back is waited for.
  const std::string other = topic + "-other";
  cluster->create(other, 1);
  HandDriven member(*cluster, group, other, GetParam());
  const auto read = [&](std::uint64_t id) {
    const std::vector<std::string> topics{topic};
    const std::size_t before = member.topics.size();
    member.source->read_topics(ReadId(id), topics);
    EXPECT_TRUE(member.until([&] { return member.topics.size() > before; }));
    return member.topics.back().topics.at(0);
  };
  const TopicFacts first = read(1);
  EXPECT_EQ(first.error, BrokerError::none);
  EXPECT_EQ(read(2).id, first.id);
  broker->remove(topic);
  std::uint64_t id = 2;
  EXPECT_TRUE(
      member.until([&] { return read(++id).error == BrokerError::unknown_topic_or_partition; }));
  cluster->create(topic, 2);
  TopicFacts second;
  EXPECT_TRUE(member.until([&] {
    second = read(++id);
    return second.error == BrokerError::none;
  }));
  EXPECT_NE(second.id, first.id);
  EXPECT_FALSE(second.id.zero());
  EXPECT_EQ(second.partitions, 2);
}

TEST_P(SourceOnBroker, C7_OversizedMetadataIsRefusedForItsLineAndTheOffsetStaysAsItWas) {
  auto member = owner_of(2);
  cluster->produce(topic, 0, 10);
  cluster->produce(topic, 1, 10);
  const std::vector<CommitLine> lines{
      {member->owners[p(0)], p(0), Offset(5), no_leader_epoch, std::string(5000, 'm')},
      {member->owners[p(1)], p(1), Offset(6), no_leader_epoch, "short"}};
  member->source->commit(CommitId(1), lines);
  ASSERT_TRUE(member->until([&] { return member->answers.size() == 1; }));
  ASSERT_EQ(member->answers[0].lines.size(), 2u);
  EXPECT_EQ(member->answers[0].lines[0].error, BrokerError::metadata_too_large);
  const std::vector<TopicPartition> both{p(0), p(1)};
  member->source->read_committed(ReadId(1), both);
  ASSERT_TRUE(member->until([&] { return !member->committed.empty(); }));
  EXPECT_FALSE(member->committed[0].offsets[0].offset.has_value());
  EXPECT_EQ(member->committed[0].offsets[1].offset, Offset(6));
}

TEST(SourceOnBrokerTimes, R8_Kip848TimesAreTheBrokersAndTheGroupsOwnGoBeforeThem) {
  const std::shared_ptr<BrokerCluster> broker = the_broker();
  broker->create("times", 1);
  const auto times_of = [&](const std::string& group, Duration session) {
    HandDriven member(*broker, group, "times", Protocol::consumer);
    EXPECT_TRUE(member.until([&] {
      return !member.known_times.empty() && member.known_times.back().session == session;
    })) << group;
    EXPECT_EQ(member.known_times.front().session, seconds(45)) << "until the broker has answered";
    return member.known_times.back();
  };
  EXPECT_EQ(times_of("of-broker", seconds(5)).heartbeat, milliseconds(300));
  broker->configure_group("of-group", "consumer.session.timeout.ms", "7000");
  EXPECT_EQ(times_of("of-group", seconds(7)).heartbeat, milliseconds(300));
}

TEST_P(SourceOnBroker, AStaticMemberThatRestartsTakesItsPartitionsWithoutARebalanceOfTheOthers) {
  cluster->create(topic, 4);
  auto first = join({{"group.instance.id", "one"}});
  auto second = join({{"group.instance.id", "two"}});
  ASSERT_TRUE(first->until([&] {
    second->until([] { return true; });
    return first->owners.size() == 2 && second->owners.size() == 2;
  }));
  std::vector<TopicPartition> owned;
  for (const auto& [partition, owner] : second->owners) owned.push_back(partition);
  const std::size_t before = first->rebalances.size();
  EXPECT_EQ(second->rebalances.back().member.instance_id, "two");
  second->source->close();
  ASSERT_TRUE(second->until([&] { return second->is_closed; }));
  second = join({{"group.instance.id", "two"}});
  ASSERT_TRUE(second->until([&] {
    first->until([] { return true; });
    return second->owners.size() == 2;
  }));
  std::vector<TopicPartition> again;
  for (const auto& [partition, owner] : second->owners) again.push_back(partition);
  EXPECT_EQ(again, owned);
  EXPECT_EQ(first->rebalances.size(), before) << "nobody else noticed";
}

TEST_P(SourceOnBroker, KeptPartitionsAreSilentForLessThanASecondWhenOthersJoin) {
  if (GetParam() == Protocol::eager) GTEST_SKIP() << "eager keeps nothing";
  constexpr int partitions = 12;
  constexpr int joins = 10;
  auto member = owner_of(partitions);
  for (int i = 0; i < partitions; ++i) member->start(p(i), 0);
  std::atomic<bool> stop{false};
  std::thread load([&] {
    auto next = std::chrono::steady_clock::now();
    while (!stop) {
      for (int i = 0; i < partitions; ++i) {
        send(cluster->producer(), topic, i, {"k", "v", {}});
      }
      rd_kafka_poll(cluster->producer(), 0);
      next += milliseconds(5);
      ::tenure::testing::pace_until(next);
    }
  });
  using Clock = std::chrono::steady_clock;
  std::map<GrantId, std::vector<Clock::time_point>> seen;
  member->on_delivered = [&](OwnerRef owner) { seen[owner.grant].push_back(Clock::now()); };
  ASSERT_TRUE(member->until([&] { return seen.size() == partitions; }));
  std::vector<double> silences;
  for (int i = 0; i < joins; ++i) {
    for (auto& [grant, times] : seen) times.assign(1, Clock::now());
    auto other = join();
    ASSERT_TRUE(member->until([&] {
      other->until([] { return true; });
      return other->owners.size() == partitions / 2;
    }));
    const Clock::time_point joined = Clock::now();
    // Kept ones have gone on when each has delivered after the join.
    ASSERT_TRUE(member->until([&] {
      return std::all_of(member->owners.begin(), member->owners.end(), [&](const auto& row) {
        return seen[row.second.grant].back() > joined + milliseconds(200);
      });
    }));
    double worst = 0;
    for (const auto& [partition, owner] : member->owners) {
      const auto& times = seen[owner.grant];
      for (std::size_t t = 1; t < times.size(); ++t) {
        worst = std::max(
            worst, std::chrono::duration<double, std::milli>(times[t] - times[t - 1]).count());
      }
    }
    silences.push_back(worst);
    other->source->close();
    ASSERT_TRUE(member->until([&] {
      other->until([] { return true; });
      return other->is_closed && member->owners.size() == partitions;
    }));
    for (const auto& [partition, owner] : member->owners) {
      if (seen.count(owner.grant) == 0) member->start(partition, 0);
    }
    ASSERT_TRUE(member->until([&] {
      return std::all_of(member->owners.begin(), member->owners.end(),
                         [&](const auto& row) { return seen.count(row.second.grant) != 0; });
    }));
  }
  stop = true;
  load.join();
  rd_kafka_flush(cluster->producer(), 10000);
  std::sort(silences.begin(), silences.end());
  std::cout << "kept partitions' silence at " << joins << " joins, " << name(GetParam()) << ": p50 "
            << silences[silences.size() / 2] << " ms, worst " << silences.back() << " ms\n";
  EXPECT_LT(silences[silences.size() / 2], 400) << "the request that wakes the fetch is missing";
}

}  // namespace
}  // namespace tenure::kafka
