// Histories, written and read back.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "observe/history_reader.hpp"
#include "observe/history_writer.hpp"

namespace tenure::observe {
namespace {

using nlohmann::json;

class HistoryFile : public testing::Test {
 protected:
  HistoryFile() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tenure-history-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = (folder_ / "h.jsonl").string();
  }
  ~HistoryFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::unique_ptr<HistoryWriter> writer() {
    HistoryStart start;
    start.run = "7f3a";
    start.tool = "0.4.0";
    start.seed = 7;
    start.cluster = "c";
    start.group = "g";
    start.kind = "transaction";
    start.topics = {{"orders", "id-1", 8}};
    start.witnesses = {"input", "commit"};
    auto made = HistoryWriter::create(path_, start, "A.1", {},
                                      [] { return WallTime(std::chrono::milliseconds(7)); });
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  std::filesystem::path folder_;
  std::string path_;
};

Event an_event(std::uint64_t seq) {
  Event event;
  event.name = EventName::owner_granted;
  event.level = Level::info;
  event.at = Instant(Duration(1234567890));
  event.seq = seq;
  event.group = "g";
  event.member = "m";
  event.epoch = Epoch(3);
  event.has_owner = true;
  event.topic = "orders";
  event.partition = Partition(5);
  event.grant = GrantId(9);
  return event;
}

struct ReadBack {
  std::vector<HistoryLine> lines;
  std::string error;
  std::string cut;
  bool empty = false;
};

ReadBack read(const std::string& text) {
  std::istringstream stream(text);
  HistoryReader reader(stream, "h.jsonl");
  ReadBack back;
  while (true) {
    auto line = reader.next();
    if (!line) {
      back.error = line.error().message;
      EXPECT_EQ(reader.next().error().message, back.error);
      break;
    }
    if (!*line) {
      EXPECT_FALSE(*reader.next());
      break;
    }
    back.lines.push_back(std::move(**line));
  }
  back.cut = reader.cut();
  back.empty = reader.empty();
  return back;
}

const std::string start_line = R"({"t":"start","history":1})"
                               "\n";

TEST_F(HistoryFile, LinesHaveTheDocumentedKeysInOrder) {
  const auto history = writer();
  Event event = an_event(17);
  const std::vector<Field> fields = {{"start", std::int64_t{5113}},
                                     {"start_source", std::string_view("store")}};
  event.fields = fields;
  history->on_event(event);
  history->write(HistoryInput{{"id-1", 5}, 5120, "ab", "cd", true});
  history->write(HistoryOwner{88, {"id-1", 5}, "m", 41});
  history->write(HistoryCommit{89, {"id-1", 5}, 5113, "meta", true});
  history->write(HistoryFence{12, {"id-1", 5}, 4, "uuid"});
  history->write(HistoryEffect{13, {"id-1", 5}, 5120, "i", "f", 4, "done"});
  history->write(HistoryFault{"A.1", 1, "freeze", false});
  ASSERT_TRUE(history->close());
  EXPECT_EQ(
      text(),
      R"({"t":"start","history":1,"run":"7f3a","tool":"0.4.0","seed":7,"plan":{},"cluster":"c",)"
      R"("group":"g","kind":"transaction","topics":[{"name":"orders","id":"id-1","partitions":8}],)"
      R"("witnesses":["input","commit"]})"
      "\n"
      R"({"t":"event","inc":"A.1","mono_ns":1234567890,"ts":"1970-01-01T00:00:00.007Z",)"
      R"("level":"info","event":"owner.granted","seq":17,"group":"g","member":"m","epoch":3,)"
      R"("topic":"orders","partition":5,"grant":9,"start":5113,"start_source":"store"})"
      "\n"
      R"({"t":"input","topic":"id-1","partition":5,"offset":5120,"key_hash":"ab",)"
      R"("fingerprint":"cd","acked":true})"
      "\n"
      R"({"t":"owner","pos":88,"topic":"id-1","partition":5,"member":"m","epoch":41})"
      "\n"
      R"({"t":"commit","pos":89,"topic":"id-1","partition":5,"offset":5113,"metadata":"meta",)"
      R"("final":true})"
      "\n"
      R"({"t":"fence","pos":12,"topic":"id-1","partition":5,"token":4,"owner":"uuid"})"
      "\n"
      R"({"t":"effect","pos":13,"topic":"id-1","partition":5,"offset":5120,"identity":"i",)"
      R"("fingerprint":"f","token":4,"outcome":"done"})"
      "\n"
      R"({"t":"fault","inc":"A.1","mono_ns":1,"kind":"freeze","phase":"end"})"
      "\n"
      R"({"t":"end","counts":{"commit":1,"effect":1,"event":1,"fault":1,"fence":1,"input":1,)"
      R"("owner":1}})"
      "\n");
}

TEST_F(HistoryFile, WhatWasWrittenIsReadBack) {
  const auto history = writer();
  history->on_event(an_event(17));
  history->write(HistoryEffect{13, {"id-1", 5}, 5120, "i\n", "f", 4, "done"});
  history->write(HistoryFault{"A.1", 1, "freeze", true});
  ASSERT_TRUE(history->close());
  const ReadBack back = read(text());
  EXPECT_EQ(back.error, "");
  EXPECT_EQ(back.cut, "");
  ASSERT_EQ(back.lines.size(), 5U);
  const auto& start = std::get<HistoryStart>(back.lines[0]);
  EXPECT_EQ(start.seed, 7);
  EXPECT_EQ(start.topics[0].partitions, 8);
  EXPECT_EQ(start.witnesses[1], "commit");
  const auto& event = std::get<HistoryEvent>(back.lines[1]);
  EXPECT_EQ(event.inc, "A.1");
  EXPECT_EQ(event.event, "owner.granted");
  EXPECT_EQ(event.seq, 17);
  EXPECT_EQ(event.mono_ns, 1234567890);
  EXPECT_EQ(std::get<std::int64_t>(event.keys.at("grant")), 9);
  EXPECT_EQ(std::get<HistoryEffect>(back.lines[2]).identity, "i\n");
  EXPECT_TRUE(std::get<HistoryFault>(back.lines[3]).begin);
  EXPECT_EQ(std::get<HistoryEnd>(back.lines[4]).counts.at("effect"), 1);
}

TEST_F(HistoryFile, LinesNeverPass64KiB) {
  const auto history = writer();
  const std::string big(200000, '\x01');
  Event event = an_event(1);
  event.group = big;
  const std::vector<Field> fields(40, Field{"error", std::string_view(big)});
  event.fields = fields;
  history->on_event(event);
  history->write(HistoryCommit{1, {big, 5}, 1, big, false});
  history->write(HistoryEffect{1, {big, 5}, 1, big, big, 1, big});
  ASSERT_TRUE(history->close());
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), history_line_max);
  EXPECT_EQ(read(text()).error, "");
  EXPECT_EQ(read(text()).cut, "");
}

TEST_F(HistoryFile, AnOverlongStartIsAnErrorNotALine) {
  HistoryStart start;
  start.topics.assign(2000, HistoryTopic{std::string(200, 't'), "id", 1});
  const auto made = HistoryWriter::create(path_, start, "A.1");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("start line"), std::string::npos);
}

TEST_F(HistoryFile, AnExistingFileIsRefused) {
  std::ofstream(path_) << "mine";
  const auto made = HistoryWriter::create(path_, HistoryStart(), "A.1");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::invalid);
  EXPECT_NE(made.error().message.find(path_), std::string::npos);
  EXPECT_EQ(text(), "mine");
}

TEST_F(HistoryFile, AMissingFolderIsNamed) {
  const auto made = HistoryWriter::create(path_ + "/x/y", HistoryStart(), "A.1");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("No such file or directory"), std::string::npos);
}

TEST_F(HistoryFile, AFailedWriteIsToldOnceAndStopsTheFile) {
  // A limit of the file's size stands for a full disk.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2000, 2000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int told = 0;
    auto made = HistoryWriter::create(path_, HistoryStart(), "A.1", [&](const Error&) { ++told; });
    for (std::uint64_t i = 1; made && i < 100; ++i) (*made)->on_event(an_event(i));
    const bool good = made && told == 1 && (*made)->failure() &&
                      (*made)->failure()->code == Code::unavailable && !(*made)->close();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const ReadBack back = read(text());
  EXPECT_EQ(back.error, "");
  EXPECT_NE(back.cut, "");
}

TEST_F(HistoryFile, AKilledWriterLosesAtMostItsLastLine) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto history = writer();
    for (std::uint64_t seq = 1;; ++seq) {
      history->on_event(an_event(seq));
      if (::write(ends[1], &seq, sizeof seq) < 0) ::_exit(1);
    }
  }
  ::close(ends[1]);
  std::uint64_t said = 0;
  while (said < 200) ASSERT_GT(::read(ends[0], &said, sizeof said), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  // What it had said before it died is in the pipe.
  for (std::uint64_t seq = 0; ::read(ends[0], &seq, sizeof seq) > 0;) said = seq;
  ::close(ends[0]);
  const ReadBack back = read(text());
  EXPECT_EQ(back.error, "");
  EXPECT_NE(back.cut, "");
  EXPECT_GE(back.lines.size(), said + 1);
}

TEST(HistoryReader, UnknownKeysAreIgnoredAndUnknownKindsHandedOver) {
  const ReadBack back =
      read(start_line + R"({"t":"input","topic":"a","partition":0,"offset":1,"colour":{"x":[1]}})"
                        "\n"
                        R"({"t":"comet","tail":true})"
                        "\n"
                        R"({"t":"end","counts":{"input":1,"comet":1,"effect":0},"more":1})"
                        "\n");
  EXPECT_EQ(back.error, "");
  EXPECT_EQ(back.cut, "");
  EXPECT_EQ(std::get<HistoryUnknown>(back.lines[2]).t, "comet");
}

TEST(HistoryReader, AnotherVersionIsAnError) {
  EXPECT_EQ(read(R"({"t":"start","history":2})"
                 "\n")
                .error,
            "h.jsonl:1: the line is history version 2; this program reads version 1");
}

TEST(HistoryReader, NothingAtAllIsEmpty) {
  const ReadBack back = read("");
  EXPECT_TRUE(back.empty);
  EXPECT_EQ(back.error, "");
}

TEST(HistoryReader, AMissingEndIsACut) {
  EXPECT_EQ(read(start_line).cut, "the end line is missing");
  const ReadBack half = read(start_line + R"({"t":"inp)");
  EXPECT_EQ(half.error, "");
  EXPECT_EQ(half.cut, "line 2 is cut off");
  // Even where it happens to be whole: its end was never written.
  EXPECT_EQ(read(start_line + R"({"t":"end","counts":{}})").cut, "line 2 is cut off");
}

TEST(HistoryReader, UnequalCountsAreACut) {
  const std::string input = R"({"t":"input","topic":"a","partition":0,"offset":1})"
                            "\n";
  EXPECT_EQ(read(start_line + input +
                 R"({"t":"end","counts":{"input":2}})"
                 "\n")
                .cut,
            "the end line counts 2 input lines; there are 1");
  EXPECT_EQ(read(start_line + input +
                 R"({"t":"end","counts":{}})"
                 "\n")
                .cut,
            "the end line counts 0 input lines; there are 1");
}

TEST(HistoryReader, WhatIsNoHistoryIsAnErrorThatNamesTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello\n", "h.jsonl:1: the line is no JSON object"},
      {"[]\n", "h.jsonl:1: the line is no JSON object"},
      {"{}\n", "h.jsonl:1: the line has no \"t\""},
      {R"({"t":"event"})"
       "\n",
       "h.jsonl:1: the line is no start line: this is no history"},
      {R"({"t":"start"})"
       "\n",
       "h.jsonl:1: the line has no \"history\""},
      {R"({"t":"start","history":"1"})"
       "\n",
       "h.jsonl:1: the line \"history\" is no whole number of 64 bits"},
      {R"({"t":"start","history":1,"topics":[7]})"
       "\n",
       "h.jsonl:1: the line has no \"name\""},
      {"\x28\xB5\x2F\xFD....\n", "h.jsonl:1: the line is compressed"},
      {start_line + start_line, "h.jsonl:2: the line is a second start line"},
      {start_line + "\n{}\n", "h.jsonl:2: the line is no JSON object"},
      {start_line + R"({"t":"input","partition":0,"offset":1})"
                    "\n",
       "h.jsonl:2: the line has no \"topic\""},
      {start_line + R"({"t":"input","topic":"a","partition":99999999999,"offset":1})"
                    "\n",
       "h.jsonl:2: the line \"partition\" is out of range"},
      {start_line + R"({"t":"input","topic":"a","partition":0,"offset":18446744073709551615})"
                    "\n",
       "h.jsonl:2: the line \"offset\" is no whole number of 64 bits"},
      {start_line + R"({"t":"fault","inc":"a","mono_ns":1,"kind":"k","phase":"mid"})"
                    "\n",
       "h.jsonl:2: the line \"phase\" is neither begin nor end"},
      {start_line +
           R"({"t":"end","counts":{}})"
           "\n" +
           R"({"t":"comet"})"
           "\n",
       "h.jsonl:3: the line comes behind the end line"},
      {start_line + std::string(70000, ' ') + "\n", "h.jsonl:2: the line is longer than 64 KiB"},
      {start_line + R"({"t":"event","inc":"a","mono_ns":1,"seq":1,"event":"e","x":)" +
           std::string(30000, '[') + std::string(30000, ']') + "}\n",
       "h.jsonl:2: the line is nested too deeply"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(read(text).error, error);
}

}  // namespace
}  // namespace tenure::observe
