// What goes wrong around a member, on the mock cluster: answers to commits, lost assignments,
// brokers that are away, clients that are given up.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kafka/hand_driven.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Errors = std::vector<rd_kafka_resp_err_t>;

std::string protocol_name(const ::testing::TestParamInfo<Protocol>& info) {
  return std::string(name(info.param));
}

TopicPartition p(int number) {
  return {"t", Partition(number)};
}

class SourceFaults : public ::testing::TestWithParam<Protocol> {
 protected:
  std::unique_ptr<HandDriven> join(Properties extra = {}) {
    auto member = std::make_unique<HandDriven>(cluster, "g", "t", GetParam(), std::move(extra));
    EXPECT_TRUE(member->until([&] { return member->owners.size() == 3; }));
    return member;
  }
  MockCluster cluster;
};
INSTANTIATE_TEST_SUITE_P(Protocols, SourceFaults,
                         ::testing::Values(Protocol::eager, Protocol::cooperative,
                                           Protocol::consumer),
                         protocol_name);

// ---- C2: the outcome of each line of a commit ---------------------------------------------------

struct Injected {
  const char* name;
  Errors errors;
  BrokerError seen;
};

std::vector<Injected> table() {
  const auto often = [](rd_kafka_resp_err_t error) { return Errors(4, error); };
  return {
      // Retried inside the client, at most twice.
      {"coordinator_loading", often(RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS),
       BrokerError::coordinator_loading},
      {"request_timed_out", often(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT), BrokerError::timed_out},
      {"unknown_topic", often(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
       BrokerError::unknown_topic_or_partition},
      {"loading_once", {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS}, BrokerError::none},
      {"not_coordinator_once", {RD_KAFKA_RESP_ERR_NOT_COORDINATOR}, BrokerError::none},
      {"coordinator_away_once", {RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE}, BrokerError::none},
      // Never retried.
      {"rebalance_in_progress",
       {RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS},
       BrokerError::rebalance_in_progress},
      {"illegal_generation",
       {RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION},
       BrokerError::illegal_generation},
      {"unknown_member", {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID}, BrokerError::unknown_member_id},
      {"fenced_instance", {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID}, BrokerError::fenced_instance_id},
      {"stale_epoch", {RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH}, BrokerError::stale_member_epoch},
      {"fenced_epoch", {RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH}, BrokerError::fenced_member_epoch},
      {"network_exception", {RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION}, BrokerError::transport},
      {"unknown", {RD_KAFKA_RESP_ERR_UNKNOWN}, BrokerError::other},
      {"topic_authorization",
       {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED},
       BrokerError::not_authorized},
      {"group_authorization",
       {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED},
       BrokerError::not_authorized},
      {"metadata_too_large",
       {RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE},
       BrokerError::metadata_too_large},
      {"commit_size",
       {RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE},
       BrokerError::metadata_too_large},
  };
}

TEST_P(SourceFaults, C2_EachErrorOfACommitReachesEachOfItsLines) {
  for (const Injected& row : table()) {
    SCOPED_TRACE(row.name);
    MockCluster own;
    own.create("t", 3);
    HandDriven member(own, "g", "t", GetParam());
    ASSERT_TRUE(member.until([&] { return member.owners.size() == 3; }));
    own.fail(api_offset_commit, row.errors);
    const std::map<TopicPartition, OwnerRef> owners = member.owners;
    member.commit(5, {{p(0), 1}, {p(1), 2}, {p(2), 3}});
    ASSERT_TRUE(member.until([&] { return !member.answers.empty(); }));
    EXPECT_EQ(member.answers[0].id, CommitId(5));
    ASSERT_EQ(member.answers[0].lines.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(member.answers[0].lines[static_cast<std::size_t>(i)].error, row.seen) << i;
      EXPECT_EQ(member.answers[0].lines[static_cast<std::size_t>(i)].owner, owners.at(p(i)));
    }
    member.during(milliseconds(1));
    EXPECT_EQ(member.answers.size(), 1u) << "answered once";
  }
}

TEST_P(SourceFaults, C2_ALineThatFailsAloneIsSeen) {
  cluster.create("t", 3);
  auto member = join();
  member->owners[p(50)] = {50, GrantId(50)};  // not there at the broker
  member->commit(1, {{p(0), 1}, {p(50), 2}, {p(2), 3}});
  ASSERT_TRUE(member->until([&] { return !member->answers.empty(); }));
  EXPECT_EQ(member->answers[0].lines[1].error, BrokerError::unknown_topic_or_partition);
  // The client shows that error for the lines that were accepted, too: they count as rejected and
  // are committed again. What it must never do is the reverse.
  const std::vector<TopicPartition> asked{p(0), p(2)};
  member->source->read_committed(ReadId(1), asked);
  ASSERT_TRUE(member->until([&] { return !member->committed.empty(); }));
  EXPECT_EQ(member->committed[0].offsets[0].offset, Offset(1));
  EXPECT_EQ(member->committed[0].offsets[1].offset, Offset(3));
}

TEST_P(SourceFaults, C2_AfterARetryThatFailsAsAWholeTheLinesShowTheLastFailure) {
  cluster.create("t", 3);
  auto member = join({{"socket.timeout.ms", "1000"}});
  // The first attempt is refused line by line and is sent again; nobody answers the second.
  rd_kafka_mock_broker_push_request_error_rtts(
      cluster.raw(), 1, api_offset_commit, 4, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 0,
      RD_KAFKA_RESP_ERR_NO_ERROR, 3000, RD_KAFKA_RESP_ERR_NO_ERROR, 3000,
      RD_KAFKA_RESP_ERR_NO_ERROR, 3000);
  member->commit(1, {{p(0), 1}, {p(1), 2}, {p(2), 3}});
  ASSERT_TRUE(member->until([&] { return !member->answers.empty(); }));
  for (const CommitAnswer::Line& line : member->answers[0].lines) {
    EXPECT_NE(line.error, BrokerError::coordinator_loading) << "it may have been applied";
    EXPECT_NE(line.error, BrokerError::none);
  }
}

TEST_P(SourceFaults, C2_ACommitWhoseConnectionBreaksIsAnsweredOnceItsResultIsKnown) {
  cluster.create("t", 3);
  auto member = join();
  cluster.fail(api_offset_commit, {RD_KAFKA_RESP_ERR__TRANSPORT});
  member->commit(1, {{p(0), 1}, {p(1), 2}, {p(2), 3}});
  ASSERT_TRUE(member->until([&] { return !member->answers.empty(); }));
  const BrokerError first = member->answers[0].lines[0].error;
  for (const CommitAnswer::Line& line : member->answers[0].lines) EXPECT_EQ(line.error, first);
  EXPECT_TRUE(first == BrokerError::none || first == BrokerError::not_coordinator ||
              first == BrokerError::transport || first == BrokerError::unknown_member_id ||
              first == BrokerError::illegal_generation)
      << name(first);
}

TEST_P(SourceFaults, C2_ACommitWhileTheBrokerIsDownIsNeverTakenForAccepted) {
  cluster.create("t", 3);
  auto member = join();
  cluster.down();
  member->commit(1, {{p(0), 1}, {p(1), 2}, {p(2), 3}});
  // Answered when the client gives up waiting for the coordinator, or not at all (C1).
  member->until([&] { return !member->answers.empty(); }, milliseconds(3200));
  for (const CommitAnswer& answer : member->answers) {
    ASSERT_EQ(answer.lines.size(), 3u);
    for (const CommitAnswer::Line& line : answer.lines) {
      EXPECT_TRUE(line.error == BrokerError::not_coordinator ||
                  line.error == BrokerError::transport)
          << name(line.error);
    }
  }
}

TEST_P(SourceFaults, C2_ACommitAfterTheCloseIsAnsweredByTheSource) {
  cluster.create("t", 3);
  auto member = join();
  const std::map<TopicPartition, OwnerRef> owners = member->owners;
  member->source->close();
  member->commit(1, {{p(0), 1}, {p(1), 2}, {p(2), 3}});
  ASSERT_TRUE(member->until([&] { return !member->answers.empty(); }, seconds(2)));
  ASSERT_EQ(member->answers[0].lines.size(), 3u);
  for (const CommitAnswer::Line& line : member->answers[0].lines) {
    EXPECT_EQ(line.error, BrokerError::closing);
  }
}

TEST_P(SourceFaults, F4_ACommittedOffsetThatCouldNotBeReadIsNotNone) {
  cluster.create("t", 3);
  auto member = join();
  cluster.fail(api_offset_fetch, Errors(10, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED));
  const std::vector<TopicPartition> asked{p(0), p(1), p(2)};
  member->source->read_committed(ReadId(1), asked);
  ASSERT_TRUE(member->until([&] { return !member->committed.empty(); }));
  ASSERT_EQ(member->committed[0].offsets.size(), 3u);
  for (const CommittedOffset& line : member->committed[0].offsets) {
    EXPECT_EQ(line.error, BrokerError::not_authorized);
    EXPECT_FALSE(line.offset.has_value());
  }
}

TEST(SourceFaultsReads, F8_WhatABrokerThatIsAwayCannotTellIsAnErrorAndNothingStandsInForIt) {
  MockCluster cluster;
  cluster.create("t", 3);
  HandDriven member(cluster, "g", "t", Protocol::consumer);
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 3; }));
  cluster.down();
  const std::vector<TopicPartition> asked{p(0), p(1), p(2)};
  const std::vector<std::string> topics{"t"};
  member.source->read_topics(ReadId(1), topics);
  member.source->read_committed(ReadId(2), asked);
  ASSERT_TRUE(member.until([&] { return !member.topics.empty() && !member.committed.empty(); }));
  EXPECT_NE(member.topics[0].topics.at(0).error, BrokerError::none);
  EXPECT_TRUE(member.topics[0].topics.at(0).id.zero());
  for (const CommittedOffset& line : member.committed[0].offsets) {
    EXPECT_NE(line.error, BrokerError::none);
  }
}

// ---- R5b, R6: lost ------------------------------------------------------------------------------

TEST_P(SourceFaults, R6_AMemberThatTheGroupHasExpelledIsToldThatAllIsLost) {
  cluster.create("t", 3);
  auto member = join();
  const Member before = member->rebalances.back().member;
  const bool consumer = GetParam() == Protocol::consumer;
  cluster.fail(consumer ? api_consumer_heartbeat : api_heartbeat,
               {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID});
  ASSERT_TRUE(member->until([&] {
    return std::any_of(member->rebalances.begin(), member->rebalances.end(),
                       [](const Rebalance& one) { return one.lost; });
  }));
  const auto lost = std::find_if(member->rebalances.begin(), member->rebalances.end(),
                                 [](const Rebalance& one) { return one.lost; });
  EXPECT_EQ(lost->kind, Rebalance::Kind::revoke);
  EXPECT_EQ(lost->partitions.size(), 3u);
  if (consumer) {
    EXPECT_EQ(lost->member.id, before.id) << "the client's own id, for life: the flag counts";
  } else {
    EXPECT_TRUE(lost->member.id.empty());
  }
  ASSERT_TRUE(member->until([&] { return member->owners.size() == 3; })) << "it joins again";
  EXPECT_FALSE(member->rebalances.back().lost);
  EXPECT_GT(member->rebalances.back().member.epoch.value(), 0);
}

TEST(SourceFaultsKip848, R6_AFencedMemberEpochIsALossAndTheMemberJoinsAgain) {
  MockCluster cluster;
  cluster.create("t", 3);
  HandDriven member(cluster, "g", "t", Protocol::consumer);
  ASSERT_TRUE(member.until([&] { return member.owners.size() == 3; }));
  cluster.fail(api_consumer_heartbeat, {RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH});
  ASSERT_TRUE(
      member.until([&] { return member.rebalances.size() >= 3 && member.owners.size() == 3; }));
  EXPECT_TRUE(member.rebalances[1].lost);
  EXPECT_EQ(member.rebalances[1].kind, Rebalance::Kind::revoke);
  EXPECT_TRUE(member.client_errors.empty() ||
              std::none_of(member.client_errors.begin(), member.client_errors.end(),
                           [](const ClientError& error) { return error.fatal; }));
}

TEST(SourceFaultsClassic, R8_AClientSideSessionTimeoutIsALoss) {
  MockCluster cluster;
  cluster.create("t", 3);
  for (const Protocol protocol : {Protocol::cooperative}) {
    HandDriven member(cluster, "g", "t", protocol);
    ASSERT_TRUE(member.until([&] { return member.owners.size() == 3; }));
    cluster.down();
    ASSERT_TRUE(member.until([&] { return member.rebalances.size() == 2; }));
    EXPECT_TRUE(member.rebalances[1].lost);
    EXPECT_EQ(member.rebalances[1].kind, Rebalance::Kind::revoke);
    cluster.up();
  }
}

TEST(SourceFaultsKip848, R11_UnreleasedAndFencedAndMissingGroupsAreFatalByName) {
  const std::pair<rd_kafka_resp_err_t, BrokerError> rows[] = {
      {RD_KAFKA_RESP_ERR_UNRELEASED_INSTANCE_ID, BrokerError::unreleased_instance_id},
      {RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND, BrokerError::group_id_not_found},
      {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, BrokerError::fenced_instance_id},
  };
  for (const auto& [code, seen] : rows) {
    SCOPED_TRACE(rd_kafka_err2name(code));
    MockCluster cluster;
    cluster.create("t", 3);
    cluster.fail(api_consumer_heartbeat, {code});
    HandDriven member(cluster, "g", "t", Protocol::consumer, {{"group.instance.id", "one"}});
    ASSERT_TRUE(member.until([&] {
      return std::any_of(member.client_errors.begin(), member.client_errors.end(),
                         [](const ClientError& error) { return error.fatal; });
    }));
    EXPECT_EQ(member.client_errors.back().error, seen);
    EXPECT_FALSE(member.client_errors.back().message.empty());
    // The next client of the same source is a new member.
    member.source->abandon();
    member.open();
    EXPECT_TRUE(member.until([&] { return member.owners.size() == 3; }));
  }
}

// ---- brokers that are away, clients that are given up -------------------------------------------

/// A port that nobody listens at.
std::string closed_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(probe);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

TEST_P(SourceFaults, AnUnreachableBrokerIsSaidWithinFiveSecondsAndJoinedWhenItComes) {
  cluster.create("t", 3);
  cluster.down();
  HandDriven member(cluster, "g", "t", GetParam());
  EXPECT_TRUE(member.until([&] { return !member.client_errors.empty(); }, seconds(5)));
  EXPECT_FALSE(member.client_errors.front().fatal);
  EXPECT_EQ(member.client_errors.front().error, BrokerError::transport);
  EXPECT_FALSE(member.known_times.empty()) << "known without a broker";
  cluster.up();
  EXPECT_TRUE(member.until([&] { return member.owners.size() == 3; }));
}

/// Without those of single brokers, which the producer beside the member makes when it likes.
std::size_t threads_of_process() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (!name.empty() && name.rfind("rdk:broker", 0) != 0) ++count;
  }
  return count;
}

TEST_P(SourceFaults, ClientsThatAreGivenUpLeaveNoThreadBehind) {
  cluster.create("t", 3);
  for (int i = 0; i < 3; ++i) cluster.produce("t", i, 100);
  const std::size_t before = threads_of_process();
  std::vector<MessageHandle> kept;
  {
    HandDriven member(cluster, "g", "t", GetParam());
    member.keep_messages = true;
    for (int round = 0; round < 8; ++round) {
      if (round == 0) {
        ASSERT_TRUE(member.until([&] { return member.owners.size() == 3; }));
        for (int i = 0; i < 3; ++i) member.start(p(i), 0);
        ASSERT_TRUE(member.until([&] { return member.kept.size() == 300; }));
      } else {
        member.during(milliseconds(5 * round));
      }
      member.source->abandon();
      member.open();
    }
    // The first client's messages are readable until the last of them is released.
    MessageView view;
    member.source->view(std::span<const MessageHandle>(&member.kept.back(), 1),
                        std::span<MessageView>(&view, 1));
    EXPECT_EQ(view.value.text(), "value-99");
    member.source->release(member.kept);
    member.source->abandon();
    // While the source lives, too.
    EXPECT_TRUE(member.until([&] { return threads_of_process() <= before; }, seconds(15)));
  }
  EXPECT_LE(threads_of_process(), before);
}

TEST_P(SourceFaults, AClientThatIsGivenUpInTheMiddleOfItsCloseEnds) {
  cluster.create("t", 3);
  for (const bool broker_up : {true, false}) {
    SCOPED_TRACE(broker_up ? "broker up" : "broker down");
    const std::size_t before = threads_of_process();
    auto member = join();
    if (!broker_up) cluster.down();
    member->hold_revokes = true;
    member->source->close();
    member->until([&] { return !member->held.empty(); }, milliseconds(500));
    member->source->abandon();
    EXPECT_TRUE(member->until([&] { return threads_of_process() <= before; }, seconds(7)));
  }
}

TEST_P(SourceFaults, AClientThatIsGivenUpWithAnUnansweredRevokeEnds) {
  cluster.create("t", 3);
  const std::size_t before = threads_of_process();
  auto first = join();
  first->hold_revokes = true;
  HandDriven second(cluster, "g", "t", GetParam());
  ASSERT_TRUE(first->until([&] {
    second.until([] { return true; });
    return !first->held.empty();
  }));
  second.source->abandon();
  first->source->abandon();
  EXPECT_TRUE(first->until([&] { return threads_of_process() <= before; }, seconds(7)));
}

TEST_P(SourceFaults, NoCallOfTheLoopThreadWaitsForABrokerThatIsAway) {
  cluster.create("t", 3);
  auto member = join();
  for (int i = 0; i < 3; ++i) member->start(p(i), 0);
  member->during(milliseconds(100));
  cluster.down();
  member->during(milliseconds(100));
  const std::vector<TopicPartition> asked{p(0), p(1), p(2)};
  const std::vector<std::string> topics{"t"};
  const std::map<TopicPartition, OwnerRef> owners = member->owners;
  double worst = 0;
  const auto timed = [&](const char* what, const std::function<void()>& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const double took =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    worst = std::max(worst, took);
    EXPECT_LT(took, 500) << what;
  };
  for (std::uint64_t i = 1; i <= 3; ++i) {
    timed("commit", [&] { member->commit(i, {{p(0), 1}}); });
    timed("read_committed", [&] { member->source->read_committed(ReadId(i), asked); });
    timed("read_topics", [&] { member->source->read_topics(ReadId(10 + i), topics); });
    timed("read_log_ends", [&] { member->source->read_log_ends(ReadId(20 + i), asked); });
    timed("start", [&] { member->start(p(0), 0); });
    timed("poll_events", [&] { member->source->poll_events(); });
    timed("poll_records", [&] { member->source->poll_records(100); });
    timed("member", [&] { static_cast<void>(member->source->member()); });
    timed("set_flow", [&] { member->source->set_flow(owners.at(p(1)), i % 2 == 0); });
    timed("forget", [&] { member->source->forget(owners.at(p(2))); });
  }
  timed("close", [&] { member->source->close(); });
  timed("abandon", [&] { member->source->abandon(); });
  timed("open", [&] { member->open(); });
  timed("end", [&] { member->source->abandon(); });
}

TEST(SourceFaultsOpen, AnAddressThatNobodyListensAtIsSaidWithinFiveSeconds) {
  MockCluster cluster;
  HandDriven member(cluster, "g", "t", Protocol::cooperative,
                    {{"bootstrap.servers", closed_port()}});
  EXPECT_TRUE(member.until([&] { return !member.client_errors.empty(); }, seconds(5)));
  EXPECT_FALSE(member.client_errors.front().fatal);
}

}  // namespace
}  // namespace tenure::kafka
