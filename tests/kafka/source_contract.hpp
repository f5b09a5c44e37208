// The Source contract, for each protocol; the including program says on which cluster.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "kafka/hand_driven.hpp"

namespace tenure::kafka {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A new mock cluster for each test, or the broker of the program.
std::shared_ptr<Cluster> contract_cluster();

inline std::string protocol_name(const ::testing::TestParamInfo<Protocol>& info) {
  return std::string(name(info.param));
}
inline auto protocols() {
  return ::testing::Values(Protocol::eager, Protocol::cooperative, Protocol::consumer);
}

class SourceContract : public ::testing::TestWithParam<Protocol> {
 protected:
  SourceContract() {
    static std::atomic<int> tests{0};
    const std::string number = std::to_string(++tests);
    topic = "t" + number;
    group = "g" + number;
  }
  [[nodiscard]] TopicPartition p(int number) const { return {topic, Partition(number)}; }
  std::unique_ptr<HandDriven> join(Properties extra = {}) {
    return std::make_unique<HandDriven>(*cluster, group, topic, GetParam(), std::move(extra));
  }
  /// A member that owns all `partitions` of a new topic.
  std::unique_ptr<HandDriven> owner_of(int partitions) {
    cluster->create(topic, partitions);
    auto member = join();
    EXPECT_TRUE(member->until(
        [&] { return member->owners.size() == static_cast<std::size_t>(partitions); }));
    return member;
  }
  static std::vector<std::int64_t> range(std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(to - from));
    std::iota(all.begin(), all.end(), from);
    return all;
  }

  std::shared_ptr<Cluster> cluster = contract_cluster();
  std::string topic;
  std::string group;
};

TEST_P(SourceContract, O6_NothingIsDeliveredBeforeTheStartAndNothingBelowIt) {
  cluster->create(topic, 2);
  cluster->produce(topic, 0, 100);
  cluster->produce(topic, 1, 100);
  auto member = join();
  ASSERT_TRUE(member->until([&] { return member->owners.size() == 2; }));
  member->during(milliseconds(300));
  EXPECT_TRUE(member->offsets.empty());
  EXPECT_TRUE(member->errors.empty());
  member->start(p(0), 40);
  ASSERT_TRUE(member->until([&] { return member->of(p(0)).size() == 60; }));
  EXPECT_EQ(member->of(p(0)), range(40, 100));
  EXPECT_TRUE(member->of(p(1)).empty());
  // F3: the end of the partition says where the fetch has passed.
  EXPECT_TRUE(member->until([&] { return member->reached_at[member->owners[p(0)].grant] == 100; }));
}

TEST_P(SourceContract, R5b_MemberAndEpochAreReadAtEachEventAndTheTimesAreKnownBefore) {
  cluster->create(topic, 1);
  auto member = join();
  ASSERT_TRUE(member->until([&] { return member->owners.size() == 1; }));
  ASSERT_FALSE(member->known_times.empty());
  const Rebalance& first = member->rebalances.back();
  EXPECT_EQ(first.protocol, GetParam());
  EXPECT_FALSE(first.lost);
  EXPECT_FALSE(first.member.id.empty());
  EXPECT_GT(first.member.epoch.value(), 0);
  EXPECT_EQ(member->source->member().id, first.member.id);
  EXPECT_EQ(member->source->member().epoch, first.member.epoch);
}

TEST_P(SourceContract, ReadsCommittedOffsetsWithMetadataTopicFactsAndLogEnds) {
  auto member = owner_of(2);
  cluster->produce(topic, 0, 10);
  const std::string words(4000, 'w');  // C10: the broker's limit is 4096
  member->commit(1, {{p(0), 7}}, words);
  ASSERT_TRUE(member->until([&] { return member->answers.size() == 1; }));
  EXPECT_EQ(member->answers[0].id, CommitId(1));
  ASSERT_EQ(member->answers[0].lines.size(), 1u);
  EXPECT_EQ(member->answers[0].lines[0].error, BrokerError::none);
  EXPECT_EQ(member->answers[0].lines[0].owner, member->owners[p(0)]);

  const std::vector<TopicPartition> both{p(0), p(1)};
  member->source->read_committed(ReadId(1), both);
  const std::vector<std::string> topics{topic, topic + "-unknown"};
  member->source->read_topics(ReadId(2), topics);
  member->source->read_log_ends(ReadId(3), both);
  ASSERT_TRUE(member->until([&] {
    return !member->committed.empty() && !member->topics.empty() && !member->ends.empty();
  }));
  const CommittedRead& read = member->committed[0];
  ASSERT_EQ(read.offsets.size(), 2u);
  EXPECT_EQ(read.offsets[0].offset, Offset(7));
  EXPECT_EQ(read.offsets[0].metadata, words);
  EXPECT_FALSE(read.offsets[1].offset.has_value()) << "F4";
  EXPECT_EQ(read.offsets[1].error, BrokerError::none);
  EXPECT_FALSE(member->topics[0].cluster.empty());
  ASSERT_EQ(member->topics[0].topics.size(), 2u);
  EXPECT_EQ(member->topics[0].topics[0].error, BrokerError::none);
  EXPECT_EQ(member->topics[0].topics[0].partitions, 2);
  EXPECT_FALSE(member->topics[0].topics[0].id.zero());
  EXPECT_EQ(member->topics[0].topics[1].error, BrokerError::unknown_topic_or_partition);
  ASSERT_EQ(member->ends[0].ends.size(), 2u);
  EXPECT_EQ(member->ends[0].ends[0].start, Offset(0));
  EXPECT_EQ(member->ends[0].ends[0].end, Offset(10));
  EXPECT_EQ(member->ends[0].ends[1].end, Offset(0));
}

TEST_P(SourceContract, AClosedFlowStopsOnePartitionAloneAndLosesNothing) {
  auto member = owner_of(2);
  member->start(p(0), 0);
  member->start(p(1), 0);
  cluster->produce(topic, 0, 10);
  ASSERT_TRUE(member->until([&] { return member->of(p(0)).size() == 10; }));
  member->source->set_flow(member->owners[p(0)], false);
  cluster->produce(topic, 0, 50);
  cluster->produce(topic, 1, 50);
  ASSERT_TRUE(member->until([&] { return member->of(p(1)).size() == 50; }));
  member->during(milliseconds(200));
  EXPECT_EQ(member->of(p(0)).size(), 10u);
  member->source->set_flow(member->owners[p(0)], true);
  ASSERT_TRUE(member->until([&] { return member->of(p(0)).size() == 60; }));
  EXPECT_EQ(member->of(p(0)), range(0, 60));
}

TEST_P(SourceContract, R5_AHandOverDeliversEachPartitionUnderOneOwnerAtATime) {
  cluster->create(topic, 4);
  for (int i = 0; i < 4; ++i) cluster->produce(topic, i, 20);
  auto first = join();
  ASSERT_TRUE(first->until([&] { return first->owners.size() == 4; }));
  for (int i = 0; i < 4; ++i) first->start(p(i), 0);
  ASSERT_TRUE(first->until([&] {
    return std::all_of(first->owners.begin(), first->owners.end(),
                       [&](const auto& owned) { return first->of(owned.first).size() == 20; });
  }));
  const std::map<TopicPartition, OwnerRef> before = first->owners;
  first->hold_revokes = true;
  auto second = join();
  ASSERT_TRUE(first->until([&] {
    second->until([] { return true; });
    return !first->held.empty();
  }));
  // Answered later, from outside any call of the source.
  first->during(milliseconds(300));
  first->hold_revokes = false;
  first->release_revokes();
  ASSERT_TRUE(first->until([&] {
    second->until([] { return true; });
    return second->owners.size() == 2 && first->owners.size() == 2;
  }));
  for (const auto& [partition, owner] : second->owners) {
    EXPECT_EQ(first->owners.count(partition), 0u);
    second->start(partition, 20);
  }
  for (const auto& [partition, owner] : first->owners) {
    // O4: in eager even a partition that comes back is a new grant.
    if (GetParam() == Protocol::eager) first->start(partition, 20);
  }
  for (int i = 0; i < 4; ++i) cluster->produce(topic, i, 5);
  EXPECT_TRUE(second->until([&] {
    first->until([] { return true; });
    for (const auto& [partition, owner] : second->owners) {
      if (second->of(partition) != range(20, 25)) return false;
    }
    for (const auto& [partition, owner] : first->owners) {
      const auto from = GetParam() == Protocol::eager ? 20 : 0;
      if (first->of(partition) != range(from, 25)) return false;
    }
    return true;
  }));
  for (const auto& [partition, owner] : before) {
    if (second->owners.count(partition) != 0) {
      EXPECT_EQ(first->offsets[owner.grant], range(0, 20)) << "nothing after the release";
    }
  }
}

TEST_P(SourceContract, F7_AStartAboveTheLogEndIsAnErrorAndCanBeMoved) {
  auto member = owner_of(1);
  cluster->produce(topic, 0, 10);
  member->start(p(0), 5000);
  ASSERT_TRUE(member->until([&] { return !member->errors.empty(); }));
  EXPECT_EQ(member->errors[0].error, BrokerError::offset_out_of_range);
  EXPECT_EQ(member->errors[0].owner, member->owners[p(0)]);
  EXPECT_EQ(member->errors[0].offset, Offset(5000));
  member->start(p(0), 4);
  ASSERT_TRUE(member->until([&] { return member->of(p(0)).size() == 6; }));
  EXPECT_EQ(member->of(p(0)).front(), 4);
}

TEST_P(SourceContract, F7_StoppedPartitionsAreGrantedAnewAndTheOthersNeitherLoseNorRepeat) {
  auto member = owner_of(4);
  // 0 flows on, 1 has a closed flow with records fetched behind it, 2 and 3 are out of range.
  member->start(p(0), 0);
  member->start(p(1), 0);
  cluster->produce(topic, 0, 200);
  cluster->produce(topic, 1, 100);
  cluster->produce(topic, 2, 20);
  cluster->produce(topic, 3, 20);
  ASSERT_TRUE(member->until(
      [&] { return member->of(p(0)).size() == 200 && member->of(p(1)).size() == 100; }));
  member->source->set_flow(member->owners[p(1)], false);
  cluster->produce(topic, 1, 50);
  member->during(milliseconds(150));
  member->start(p(2), 5000);
  member->start(p(3), 6000);
  ASSERT_TRUE(member->until([&] { return member->errors.size() == 2; }));
  cluster->produce(topic, 0, 300);
  member->start(p(2), 3);
  ASSERT_TRUE(member->until([&] { return member->of(p(2)).size() == 17; }));
  EXPECT_TRUE(member->of(p(3)).empty()) << "nobody has said where it starts";
  cluster->produce(topic, 0, 300);
  member->start(p(3), 4);
  ASSERT_TRUE(member->until(
      [&] { return member->of(p(3)).size() == 16 && member->of(p(0)).size() == 800; }));
  cluster->produce(topic, 1, 50);
  member->during(milliseconds(150));
  EXPECT_EQ(member->of(p(1)).size(), 100u) << "its flow stayed closed";
  member->source->set_flow(member->owners[p(1)], true);
  ASSERT_TRUE(member->until([&] { return member->of(p(1)).size() == 200; }));
  EXPECT_EQ(member->of(p(0)), range(0, 800));
  EXPECT_EQ(member->of(p(1)), range(0, 200));
  EXPECT_EQ(member->of(p(2)), range(3, 20));
  EXPECT_EQ(member->of(p(3)), range(4, 20));
  EXPECT_EQ(member->errors.size(), 2u);
  // What was granted anew is an assignment like any other.
  member->source->close();
  EXPECT_TRUE(member->until([&] { return member->is_closed; }, seconds(5)));
}

TEST_P(SourceContract, T8_AnAssignedPartitionCanGoToANewOwnerWithoutARebalance) {
  auto member = owner_of(1);
  cluster->produce(topic, 0, 10);
  const OwnerRef old_owner = member->owners[p(0)];
  member->start(p(0), 0);
  ASSERT_TRUE(member->until([&] { return member->of(p(0)).size() == 10; }));
  member->source->forget(old_owner);
  cluster->produce(topic, 0, 5);
  member->during(milliseconds(300));
  EXPECT_EQ(member->offsets[old_owner.grant].size(), 10u);
  member->owners[p(0)] = {99, GrantId(99)};
  member->start(p(0), 8);
  ASSERT_TRUE(member->until([&] { return member->of(p(0)).size() == 7; }));
  EXPECT_EQ(member->of(p(0)), range(8, 15));
  EXPECT_EQ(member->offsets[old_owner.grant].size(), 10u);
}

TEST_P(SourceContract, R5c_CloseAnswersItsRevokeAndEnds) {
  auto member = owner_of(2);
  member->source->close();
  EXPECT_TRUE(member->until([&] { return member->is_closed; }, seconds(5)));
  EXPECT_TRUE(member->owners.empty());
  EXPECT_TRUE(member->source->member().id.empty());
  // The same source joins again with a new client (R11).
  member->open();
  EXPECT_TRUE(member->until([&] { return member->owners.size() == 2; }));
}

TEST_P(SourceContract, AMessageOutlivesItsClient) {
  auto member = owner_of(1);
  cluster->produce(topic, 0, 10);
  member->keep_messages = true;
  member->start(p(0), 0);
  ASSERT_TRUE(member->until([&] { return member->kept.size() == 10; }));
  member->source->abandon();
  member->source->poll_events();
  MessageView view;
  member->source->view(std::span<const MessageHandle>(&member->kept[3], 1),
                       std::span<MessageView>(&view, 1));
  EXPECT_EQ(view.value.text(), "value-3");
  EXPECT_EQ(view.key.text(), "k");
  member->source->release(member->kept);
}

TEST_P(SourceContract, NothingComesAfterAnAbandonInsideACallOfTheSink) {
  auto member = owner_of(2);
  cluster->produce(topic, 0, 50);
  cluster->produce(topic, 1, 50);
  int calls = 0;
  member->on_delivered = [&](OwnerRef) {
    ++calls;
    member->source->abandon();
  };
  member->start(p(0), 0);
  member->start(p(1), 0);
  ASSERT_TRUE(member->until([&] { return calls > 0; }));
  member->during(milliseconds(200));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(member->source->member().id.empty());
}

TEST_P(SourceContract, EverythingMayBeDoneInsideACallOfTheSink) {
  auto member = owner_of(3);
  for (int i = 0; i < 3; ++i) cluster->produce(topic, i, 50);
  const OwnerRef forgotten = member->owners[p(0)];
  const OwnerRef stopped = member->owners[p(1)];
  member->on_delivered = [&](OwnerRef owner) {
    if (owner == forgotten) member->source->forget(owner);
    if (owner == stopped) member->source->set_flow(owner, false);
  };
  member->records_at_once = 10;
  for (int i = 0; i < 3; ++i) member->start(p(i), 0);
  ASSERT_TRUE(member->until([&] {
    return !member->of(p(0)).empty() && !member->of(p(1)).empty() && member->of(p(2)).size() == 50;
  }));
  member->during(milliseconds(200));
  for (int i = 0; i < 3; ++i) cluster->produce(topic, i, 50);
  ASSERT_TRUE(member->until([&] { return member->of(p(2)).size() == 100; }));
  const std::size_t of_forgotten = member->of(p(0)).size();
  EXPECT_LE(of_forgotten, 10u) << "not even what the client had forwarded already";
  EXPECT_LE(member->of(p(1)).size(), 50u) << "what was on its way may still come";
  member->on_delivered = [&](OwnerRef owner) {
    if (owner == member->owners[p(2)]) member->source->close();
  };
  member->source->set_flow(stopped, true);
  ASSERT_TRUE(member->until([&] { return member->of(p(1)).size() == 100; }));
  EXPECT_EQ(member->of(p(1)), range(0, 100));
  cluster->produce(topic, 2, 50);
  EXPECT_TRUE(member->until([&] { return member->is_closed; }));
  EXPECT_EQ(member->offsets[forgotten.grant].size(), of_forgotten);
}

TEST_P(SourceContract, KeysValuesAndHeadersComeUnharmed) {
  auto member = owner_of(1);
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  const std::string nuls("\0\0a\0", 4);
  const std::vector<Sent> sent{
      {std::nullopt, std::nullopt, {}},
      {"", "", {}},
      {every_byte, every_byte, {{"bin", every_byte}, {"", ""}, {"null", std::nullopt}}},
      {nuls, std::string(1'000'000, 'x'), {{"n", nuls}, {"n", "again"}, {"\xff\xfe", "v"}}},
      {std::string(500'000, '\0'), "v", {}},
  };
  for (const Sent& one : sent) cluster->produce(topic, 0, one);
  member->keep_messages = true;
  member->start(p(0), 0);
  ASSERT_TRUE(member->until([&] { return member->kept.size() == sent.size(); }));
  std::vector<MessageView> views(sent.size());
  member->source->view(member->kept, views);
  const auto same = [](const Bytes& got, const MaybeBytes& wanted) {
    return wanted ? !got.null() && got.text() == *wanted : got.null();
  };
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(same(views[i].key, sent[i].key)) << i;
    EXPECT_TRUE(same(views[i].value, sent[i].value)) << i;
    EXPECT_GT(views[i].timestamp_ms, 0);
    const std::vector<Header> headers = member->source->headers(member->kept[i]);
    ASSERT_EQ(headers.size(), sent[i].headers.size()) << i;
    for (std::size_t h = 0; h < headers.size(); ++h) {
      EXPECT_EQ(headers[h].first, sent[i].headers[h].first);
      EXPECT_TRUE(same(headers[h].second, sent[i].headers[h].second)) << i << " " << h;
    }
  }
  member->source->release(member->kept);
}

}  // namespace tenure::kafka
