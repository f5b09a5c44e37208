// Whole members on Apache Kafka: how long kept partitions stand still when others join.
#include "kafka/silence.hpp"

namespace tenure::kafka {
namespace {

class RuntimeOnBroker : public ::testing::TestWithParam<Protocol> {
 protected:
  static BrokerCluster& broker() {
    static BrokerCluster one;
    return one;
  }
};
INSTANTIATE_TEST_SUITE_P(Protocols, RuntimeOnBroker,
                         ::testing::Values(Protocol::cooperative, Protocol::consumer),
                         protocol_name);

TEST_P(RuntimeOnBroker, KeptPartitionsAreHandledWithoutASecondOfSilenceAtTenJoins) {
  constexpr int partitions = 12;
  constexpr int joins = 10;
  const std::string topic = "silence-" + std::string(name(GetParam()));
  BrokerCluster& cluster = broker();
  cluster.create(topic, partitions);
  Starts starts;
  const auto member_of = [&](bool noted) {
    Builder build;
    build.group(topic);
    build.on(topic, [&starts, noted](const Record& record, const Owner&) {
      if (noted) starts.note(record.partition());
      return done();
    });
    return std::make_unique<Member>(
        build, Ports{source_for(cluster, GetParam(), topic, topic), nullptr, nullptr, {}});
  };
  auto first = member_of(true);
  Load load(cluster, topic, partitions, milliseconds(5));
  ASSERT_TRUE(wait_for([&] { return starts.partitions() == partitions; }));
  std::vector<double> silences;
  for (int i = 0; i < joins; ++i) {
    starts.begin_again();
    auto second = member_of(false);
    ASSERT_TRUE(wait_for([&] {
      return first->status().owners.size() == partitions / 2 &&
             second->status().owners.size() == partitions / 2;
    }));
    std::vector<int> kept;
    for (const OwnerStatus& owner : first->status().owners) kept.push_back(owner.partition.value());
    silences.push_back(starts.longest_gap(kept));
    EXPECT_EQ(second->end().reason, StopReport::Reason::drained);
    ASSERT_TRUE(wait_for([&] {
      const Status status = first->status();
      return std::count_if(status.owners.begin(), status.owners.end(),
                           [](const OwnerStatus& owner) {
                             return owner.state == OwnerState::active;
                           }) == partitions;
    }));
  }
  std::sort(silences.begin(), silences.end());
  std::cout << "silence of kept partitions through the whole runtime at " << joins << " joins, "
            << name(GetParam()) << ": p50 " << silences[joins / 2] << " ms, worst "
            << silences.back() << " ms\n";
  EXPECT_LT(silences[joins / 2], 400) << "the request that wakes the fetch is missing";
}

}  // namespace
}  // namespace tenure::kafka
