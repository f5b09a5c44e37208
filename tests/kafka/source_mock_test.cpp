// The Source contract on librdkafka's mock cluster, and what needs no cluster.
#include "kafka/source_contract.hpp"

namespace tenure::kafka {

std::shared_ptr<Cluster> contract_cluster() {
  return std::make_shared<MockCluster>();
}

namespace {

INSTANTIATE_TEST_SUITE_P(OnMock, SourceContract, protocols(), protocol_name);

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
