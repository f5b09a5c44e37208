#include "handler/exec_protocol.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "unit/handler/exec_rig.hpp"

namespace tenure::handler {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

class OneMessage final : public MessageReader {
 public:
  void view(std::span<const MessageHandle>, std::span<MessageView>) const override {}
  std::vector<Header> headers(MessageHandle) const override { return all; }
  std::vector<Header> all;
};

struct Line {
  OneMessage reader;
  MessageView view{Bytes(), Bytes(), 1796126671120};
  std::optional<Fence> fence;

  std::string text() const {
    test::TestOwner holder(&reader, fence);
    const Record record(holder.origin(), nullptr, view, Offset(190014), no_leader_epoch, 3, 0,
                        Offset(0));
    std::string out;
    append_record(out, 88, record, holder.owner(), 20000ms);
    return out;
  }
  json parsed() const { return json::parse(text()); }
};

TEST(ExecProtocol, ARecordLineHasTheDocumentedKeysInOrder) {
  Line line;
  line.view.key = Bytes(std::string_view("k1"));
  line.view.value = Bytes(std::string_view("v"));
  line.reader.all = {{"trace", Bytes(std::string_view("t"))}};
  EXPECT_EQ(line.text(),
            R"({"type":"record","id":"88","topic":"orders","partition":5,"offset":190014,)"
            R"("timestamp_ms":1796126671120,"key":{"text":"k1"},"value":{"text":"v"},)"
            R"("headers":[["trace",{"text":"t"}]],)"
            R"("identity":"test-cluster/12340000-0000-0000-0000-000000000000/5/190014",)"
            R"("attempt":3,"epoch":41,"grant":7,)"
            R"("topic_id":"12340000-0000-0000-0000-000000000000","scope":"billing-scope",)"
            R"("fence":null,"timeout_ms":20000})"
            "\n");
}

TEST(ExecProtocol, NullEmptyTextAndBinaryAreTold) {
  Line line;
  line.view.key = Bytes();
  line.view.value = Bytes(std::string_view(""));
  line.reader.all = {{"a", Bytes()},
                     {"a", Bytes(std::string_view("\xFF\x00\x01", 3))},
                     {"b", Bytes(std::string_view("\u20ac\n"))}};
  const json parsed = line.parsed();
  EXPECT_TRUE(parsed["key"].is_null());
  EXPECT_EQ(parsed["value"], json({{"text", ""}}));
  EXPECT_EQ(parsed["headers"],
            json::parse(R"([["a",null],["a",{"base64":"/wAB"}],["b",{"text":"\u20ac\n"}]])"));
}

TEST(ExecProtocol, TheFenceIsTokenAndOwner) {
  Line line;
  line.fence = Fence{Token(12), Uuid{{0xAB}}};
  EXPECT_EQ(line.parsed()["fence"],
            json::parse(R"({"token":12,"owner":"ab000000-0000-0000-0000-000000000000"})"));
}

TEST(ExecProtocol, ARecordWithoutATimeHasNull) {
  Line line;
  line.view.timestamp_ms = -1;
  EXPECT_TRUE(line.parsed()["timestamp_ms"].is_null());
}

TEST(ExecProtocol, NoByteOfAPayloadBreaksALine) {
  for (int byte = 0; byte < 256; ++byte) {
    Line line;
    const std::string payload(3, static_cast<char>(byte));
    line.view.value = Bytes(std::string_view(payload));
    const std::string text = line.text();
    EXPECT_EQ(text.find('\n'), text.size() - 1) << byte;
    EXPECT_EQ(line.parsed()["value"].contains(byte < 0x80 ? "text" : "base64"), true) << byte;
  }
}

TEST(ExecProtocol, HelloCancelAndByeAsDocumented) {
  std::string out;
  append_hello(out, test::puppet());
  append_cancel(out, 88, CancelCause::revoked);
  append_cancel(out, 88, CancelCause::lost);
  append_cancel(out, 88, CancelCause::timeout);
  append_cancel(out, 88, CancelCause::shutdown);
  append_bye(out);
  EXPECT_EQ(out, R"({"type":"hello","protocol":1,"group":"billing","topics":["orders","emails"],)"
                 R"("in_flight":16})"
                 "\n"
                 R"({"type":"cancel","id":"88","cause":"revoked"})"
                 "\n"
                 R"({"type":"cancel","id":"88","cause":"lost"})"
                 "\n"
                 R"({"type":"cancel","id":"88","cause":"timeout"})"
                 "\n"
                 R"({"type":"cancel","id":"88","cause":"shutdown"})"
                 "\n"
                 R"({"type":"bye"})"
                 "\n");
}

TEST(ExecProtocol, AnOutcomeNamesTheAttemptEvenWhenItIsBad) {
  const auto line = read_line(R"({"type":"outcome","id":"88","outcome":"maybe"})");
  const auto* bad = std::get_if<BadLine>(&line);
  ASSERT_NE(bad, nullptr);
  EXPECT_EQ(bad->id, AttemptId{88});
}

TEST(ExecProtocol, DeepNestingIsNoCrash) {
  const std::string deep(200000, '[');
  EXPECT_TRUE(std::holds_alternative<BadLine>(read_line(deep)));
  EXPECT_TRUE(std::holds_alternative<BadLine>(read_line(deep + std::string(deep.size(), ']'))));
}

}  // namespace
}  // namespace tenure::handler
