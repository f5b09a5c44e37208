#include "observe/history_writer.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/json_text.hpp"

namespace tenure::observe {
namespace {

// Escaped text is up to six times as long; whole lines stay below history_line_max.
constexpr std::size_t text_max = 1024;
constexpr std::size_t metadata_max = 4096;
constexpr std::size_t event_text_max = 8192;

Error failure_of(std::string what, const std::string& path, int number) {
  what += " history file \"" + path + "\": " + std::strerror(number);
  if (number == EEXIST) {
    return Error{Code::invalid, false, false, std::move(what),
                 "a history is one run's: name a new file, or move this one away"};
  }
  return Error{Code::unavailable, false, false, std::move(what), {}};
}

}  // namespace

Result<std::unique_ptr<HistoryWriter>> HistoryWriter::create(
    const std::string& path, const HistoryStart& start, std::string incarnation,
    std::function<void(const Error&)> failed, WallClock clock) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wbxe"));
  if (!file) return tl::unexpected<Error>(failure_of("cannot create", path, errno));
  std::unique_ptr<HistoryWriter> writer(new HistoryWriter(
      std::move(file), path, std::move(incarnation), std::move(failed), std::move(clock)));
  writer->write_start(start);
  if (writer->failure_) return tl::unexpected<Error>(*writer->failure_);
  return writer;
}

HistoryWriter::HistoryWriter(std::unique_ptr<std::FILE, CloseFile> file, std::string path,
                             std::string incarnation, std::function<void(const Error&)> failed,
                             WallClock clock)
    : file_(std::move(file)),
      path_(std::move(path)),
      incarnation_(std::move(incarnation)),
      failed_(std::move(failed)),
      clock_(std::move(clock)) {}

void HistoryWriter::on_event(const Event& event) {
  begin("event");
  put("inc", incarnation_);
  put("mono_ns", event.at.time_since_epoch().count());
  line_ += ',';
  // Two bytes are left for the brace and the line end.
  append_event_json(line_, event, clock_(), event_text_max, history_line_max - 2);
  end("event");
}

void HistoryWriter::write(const HistoryInput& line) {
  begin("input");
  put(line.place);
  put("offset", line.offset);
  put("key_hash", line.key_hash);
  put("fingerprint", line.fingerprint);
  append_json_key(line_, "acked");
  line_ += line.acked ? "true" : "false";
  end("input");
}

void HistoryWriter::write(const HistoryOwner& line) {
  begin("owner");
  put("pos", line.pos);
  put(line.place);
  put("member", line.member);
  put("epoch", line.epoch);
  end("owner");
}

void HistoryWriter::write(const HistoryCommit& line) {
  begin("commit");
  put("pos", line.pos);
  put(line.place);
  put("offset", line.offset);
  append_json_key(line_, "metadata");
  append_json(line_, FieldValue(std::string_view(line.metadata)), metadata_max);
  if (line.final) line_ += ",\"final\":true";
  end("commit");
}

void HistoryWriter::write(const HistoryFence& line) {
  begin("fence");
  put("pos", line.pos);
  put(line.place);
  put("token", line.token);
  put("owner", line.owner);
  end("fence");
}

void HistoryWriter::write(const HistoryEffect& line) {
  begin("effect");
  put("pos", line.pos);
  put(line.place);
  put("offset", line.offset);
  put("identity", line.identity);
  put("fingerprint", line.fingerprint);
  put("token", line.token);
  put("outcome", line.outcome);
  end("effect");
}

void HistoryWriter::write(const HistoryFault& line) {
  begin("fault");
  put("inc", line.inc);
  put("mono_ns", line.mono_ns);
  put("kind", line.kind);
  put("phase", line.begin ? "begin" : "end");
  end("fault");
}

Result<void> HistoryWriter::close() {
  if (file_) {
    begin("end");
    append_json_key(line_, "counts");
    char separator = '{';
    if (counts_.empty()) line_ += separator;
    for (const auto& [t, count] : counts_) {
      line_ += separator;
      separator = ',';
      append_json_string(line_, t);
      line_ += ':';
      append_number(line_, count);
    }
    line_ += "}}\n";
    write_line();
    std::FILE* file = file_.release();
    if (std::fclose(file) != 0 && !failure_) failure_ = failure_of("cannot close", path_, errno);
  }
  if (failure_) return tl::unexpected<Error>(*failure_);
  return {};
}

void HistoryWriter::begin(std::string_view t) {
  line_ = "{\"t\":\"";
  line_ += t;
  line_ += '"';
}

void HistoryWriter::put(std::string_view key, std::string_view text) {
  append_json_key(line_, key);
  append_json(line_, FieldValue(text), text_max);
}

void HistoryWriter::put(std::string_view key, std::int64_t number) {
  append_json_key(line_, key);
  append_number(line_, number);
}

void HistoryWriter::put(const HistoryPlace& place) {
  put("topic", place.topic);
  put("partition", place.partition);
}

void HistoryWriter::end(std::string_view t) {
  line_ += "}\n";
  write_line();
  const auto found = counts_.find(t);
  if (found != counts_.end()) {
    ++found->second;
  } else {
    counts_.emplace(t, 1);
  }
}

void HistoryWriter::write_line() {
  if (failure_ || !file_) return;
  TENURE_ASSERT(line_.size() <= history_line_max, "a history line has 64 KiB at most");
  const bool written = std::fwrite(line_.data(), 1, line_.size(), file_.get()) == line_.size() &&
                       std::fflush(file_.get()) == 0;
  if (written) return;
  failure_ = failure_of("cannot write", path_, errno);
  if (failed_) failed_(*failure_);
}

void HistoryWriter::write_start(const HistoryStart& start) {
  begin("start");
  put("history", history_version);
  put("run", start.run);
  put("tool", start.tool);
  if (start.seed) put("seed", *start.seed);
  append_json_key(line_, "plan");
  line_ += start.plan;
  put("cluster", start.cluster);
  put("group", start.group);
  put("kind", start.kind);
  append_json_key(line_, "topics");
  line_ += '[';
  for (std::size_t i = 0; i < start.topics.size(); ++i) {
    line_ += i == 0 ? "{\"name\":" : ",{\"name\":";
    append_json_string(line_, start.topics[i].name);
    put("id", start.topics[i].id);
    put("partitions", start.topics[i].partitions);
    line_ += '}';
  }
  line_ += ']';
  append_json_key(line_, "witnesses");
  line_ += '[';
  for (std::size_t i = 0; i < start.witnesses.size(); ++i) {
    if (i > 0) line_ += ',';
    append_json_string(line_, start.witnesses[i]);
  }
  line_ += "]}\n";
  if (line_.size() <= history_line_max) return write_line();
  failure_ = Error{Code::invalid, false, false,
                   "the history's start line would be " + std::to_string(line_.size()) +
                       " bytes long; 65536 are allowed",
                   "fewer topics, or a shorter plan"};
}

}  // namespace tenure::observe
