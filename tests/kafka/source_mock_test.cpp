// The Source contract on librdkafka's mock cluster, for each protocol.
#include <gtest/gtest.h>

#include "kafka/mock_group.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SourceOnMock : public testing::TestWithParam<Protocol> {
 protected:
  TopicPartition p(int number) const { return {"t", Partition(number)}; }
};

std::string protocol_name(const testing::TestParamInfo<Protocol>& info) {
  return std::string(name(info.param));
}

INSTANTIATE_TEST_SUITE_P(Protocols, SourceOnMock,
                         testing::Values(Protocol::eager, Protocol::cooperative,
                                         Protocol::consumer),
                         protocol_name);

TEST_P(SourceOnMock, O6_NothingIsDeliveredBeforeTheStartAndNothingBelowIt) {
  MockCluster cluster;
  cluster.create("t", 2);
  cluster.produce("t", 0, 100);
  cluster.produce("t", 1, 100);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 2; }));
  member.until([] { return false; }, milliseconds(300));
  EXPECT_TRUE(member.offsets.empty());
  EXPECT_TRUE(member.errors.empty());
  member.start(p(0), 40);
  ASSERT_TRUE(member.until([&] { return member.offsets[member.owners[p(0)].grant].size() == 60; }));
  EXPECT_EQ(member.offsets[member.owners[p(0)].grant].front(), 40);
  EXPECT_EQ(member.offsets[member.owners[p(0)].grant].back(), 99);
  EXPECT_EQ(member.offsets.count(member.owners[p(1)].grant), 0u);
  // F3: the end of the partition says where the fetch has passed.
  EXPECT_TRUE(member.until([&] { return member.reached_at[member.owners[p(0)].grant] == 100; }));
}

TEST_P(SourceOnMock, ReadsCommittedOffsetsWithMetadataTopicFactsAndLogEnds) {
  MockCluster cluster;
  cluster.create("t", 2);
  cluster.produce("t", 0, 10);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 2; }));
  const std::vector<CommitLine> lines{
      {member.owners[p(0)], p(0), Offset(7), LeaderEpoch(0), "some words"}};
  member.source->commit(CommitId(1), lines);
  ASSERT_TRUE(member.until([&] { return member.answers.size() == 1; }));
  EXPECT_EQ(member.answers[0].id, CommitId(1));
  ASSERT_EQ(member.answers[0].lines.size(), 1u);
  EXPECT_EQ(member.answers[0].lines[0].error, BrokerError::none);

  const std::vector<TopicPartition> both{p(0), p(1)};
  member.source->read_committed(ReadId(1), both);
  const std::vector<std::string> topics{"t"};
  member.source->read_topics(ReadId(2), topics);
  member.source->read_log_ends(ReadId(3), both);
  ASSERT_TRUE(member.until([&] {
    return !member.committed.empty() && !member.topics.empty() && !member.ends.empty();
  }));
  const CommittedRead& read = member.committed[0];
  ASSERT_EQ(read.offsets.size(), 2u);
  EXPECT_EQ(read.offsets[0].offset, Offset(7));
  EXPECT_EQ(read.offsets[0].metadata, "some words");
  EXPECT_FALSE(read.offsets[1].offset.has_value()) << "F4";
  EXPECT_EQ(read.offsets[1].error, BrokerError::none);
  EXPECT_FALSE(member.topics[0].cluster.empty());
  ASSERT_EQ(member.topics[0].topics.size(), 1u);
  EXPECT_EQ(member.topics[0].topics[0].error, BrokerError::none);
  EXPECT_EQ(member.topics[0].topics[0].partitions, 2);
  EXPECT_FALSE(member.topics[0].topics[0].id.zero());
  ASSERT_EQ(member.ends[0].ends.size(), 2u);
  EXPECT_EQ(member.ends[0].ends[0].start, Offset(0));
  EXPECT_EQ(member.ends[0].ends[0].end, Offset(10));
  EXPECT_EQ(member.ends[0].ends[1].end, Offset(0));
  EXPECT_GE(member.known_times.size(), 1u);
}

TEST_P(SourceOnMock, AClosedFlowStopsOnePartitionAloneAndLosesNothing) {
  MockCluster cluster;
  cluster.create("t", 2);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 2; }));
  member.start(p(0), 0);
  member.start(p(1), 0);
  cluster.produce("t", 0, 10);
  ASSERT_TRUE(member.until([&] { return member.offsets[member.owners[p(0)].grant].size() == 10; }));
  member.source->set_flow(member.owners[p(0)], false);
  cluster.produce("t", 0, 50);
  cluster.produce("t", 1, 50);
  ASSERT_TRUE(member.until([&] { return member.offsets[member.owners[p(1)].grant].size() == 50; }));
  member.source->set_flow(member.owners[p(0)], true);
  ASSERT_TRUE(member.until([&] { return member.offsets[member.owners[p(0)].grant].size() == 60; }));
  for (std::int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(member.offsets[member.owners[p(0)].grant][static_cast<std::size_t>(i)], i);
  }
}

TEST_P(SourceOnMock, AHandOverDeliversEachPartitionUnderOneOwnerAtATime) {
  MockCluster cluster;
  cluster.create("t", 4);
  for (int i = 0; i < 4; ++i) cluster.produce("t", i, 20);
  HandDriven first(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(first.until([&] { return first.owners.size() == 4; }));
  for (int i = 0; i < 4; ++i) first.start(p(i), 0);
  ASSERT_TRUE(first.until([&] { return first.offsets.size() == 4; }));
  first.hold_revokes = true;
  HandDriven second(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(first.until([&] {
    second.until([] { return true; });
    return !first.held.empty();
  }));
  // Answered later, from outside any callback.
  first.until([] { return false; }, milliseconds(500));
  first.hold_revokes = false;
  first.release_revokes();
  ASSERT_TRUE(first.until([&] {
    second.until([] { return true; });
    return second.owners.size() == 2 && first.owners.size() == 2;
  }));
  for (const auto& [partition, owner] : second.owners) {
    EXPECT_EQ(first.owners.count(partition), 0u);
    second.start(partition, 20);
    first.keep_messages = false;
    cluster.produce("t", partition.partition.value(), 5);
  }
  EXPECT_TRUE(second.until([&] {
    first.until([] { return true; });
    for (const auto& [partition, owner] : second.owners) {
      if (second.offsets[owner.grant].size() != 5) return false;
    }
    return true;
  }));
}

TEST_P(SourceOnMock, AStartAboveTheLogEndOrBelowItsStartIsAnErrorAndCanBeMoved) {
  MockCluster cluster;
  cluster.create("t", 1);
  cluster.produce("t", 0, 10);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 1; }));
  member.start(p(0), 5000);
  ASSERT_TRUE(member.until([&] { return !member.errors.empty(); }));
  EXPECT_EQ(member.errors[0].error, BrokerError::offset_out_of_range);
  EXPECT_EQ(member.errors[0].owner, member.owners[p(0)]);
  member.start(p(0), 4);
  ASSERT_TRUE(member.until([&] { return member.offsets[member.owners[p(0)].grant].size() == 6; }));
  EXPECT_EQ(member.offsets[member.owners[p(0)].grant].front(), 4);
}

TEST_P(SourceOnMock, T8_AnAssignedPartitionCanGoToANewOwnerWithoutARebalance) {
  MockCluster cluster;
  cluster.create("t", 1);
  cluster.produce("t", 0, 10);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 1; }));
  const OwnerRef old_owner = member.owners[p(0)];
  member.start(p(0), 0);
  ASSERT_TRUE(member.until([&] { return member.offsets[old_owner.grant].size() == 10; }));
  member.source->forget(old_owner);
  cluster.produce("t", 0, 5);
  member.until([] { return false; }, milliseconds(300));
  EXPECT_EQ(member.offsets[old_owner.grant].size(), 10u);
  member.owners[p(0)] = {99, GrantId(99)};
  member.start(p(0), 8);
  ASSERT_TRUE(member.until([&] { return member.offsets[GrantId(99)].size() == 7; }));
  EXPECT_EQ(member.offsets[GrantId(99)].front(), 8);
  EXPECT_EQ(member.offsets[old_owner.grant].size(), 10u);
}

TEST_P(SourceOnMock, R5c_CloseAnswersItsRevokeAndEnds) {
  MockCluster cluster;
  cluster.create("t", 2);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 2; }));
  member.source->close();
  EXPECT_TRUE(member.until([&] { return member.is_closed; }, seconds(5)));
  EXPECT_TRUE(member.owners.empty());
  EXPECT_TRUE(member.source->member().id.empty());
}

TEST_P(SourceOnMock, AMessageOutlivesItsClient) {
  MockCluster cluster;
  cluster.create("t", 1);
  cluster.produce("t", 0, 10);
  HandDriven member(cluster.bootstrap(), "g", "t", GetParam());
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 1; }));
  member.keep_messages = true;
  member.start(p(0), 0);
  ASSERT_TRUE(member.until([&] { return member.kept.size() == 10; }));
  member.source->abandon();
  member.source->poll_events();
  MessageView view;
  member.source->view(std::span<const MessageHandle>(&member.kept[3], 1),
                      std::span<MessageView>(&view, 1));
  EXPECT_EQ(view.value.text(), "value-3");
  EXPECT_EQ(view.key.text(), "k");
  member.source->release(member.kept);
}

TEST(SourceOptions, OwnedPropertiesAreRefusedWithTheReason) {
  for (const char* property : {"enable.auto.commit", "auto.offset.reset", "enable.partition.eof",
                               "test.mock.num.brokers", "opaque"}) {
    SourceOptions options;
    options.topics = {"t"};
    options.properties = {{property, "1"}};
    const auto made = make_source(options);
    ASSERT_FALSE(made.has_value()) << property;
    EXPECT_NE(made.error().message.find(property), std::string::npos);
  }
  EXPECT_FALSE(owned_property("fetch.wait.max.ms").has_value());
}

TEST(SourceOptions, AnUnknownPropertyIsRefusedByTheLinkedClient) {
  EXPECT_TRUE(check_property("no.such.thing", "1").has_value());
  EXPECT_TRUE(check_property("fetch.wait.max.ms", "minus one").has_value());
  EXPECT_FALSE(check_property("fetch.wait.max.ms", "100").has_value());
}

}  // namespace
}  // namespace tenure::kafka
