#include "unit/handler/exec_rig.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tenure::handler::test {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Bytes bytes_of(const std::optional<std::string>& text) {
  return text ? Bytes(text->data(), text->size()) : Bytes();
}

detail::OwnerCell::Facts facts(const MessageReader* reader, std::optional<Fence> fence) {
  detail::OwnerCell::Facts facts;
  facts.owner = OwnerRef{0, GrantId(7)};
  facts.origin.topic = "orders";
  facts.origin.partition = Partition(5);
  facts.origin.cluster = "test-cluster";
  facts.origin.topic_id.bytes = {0x12, 0x34};
  facts.origin.group = "billing";
  facts.origin.scope = "billing-scope";
  facts.origin.reader = reader;
  facts.member = Member{"member-1", Epoch(41), ""};
  facts.start_offset = Offset(0);
  facts.fence = fence;
  return facts;
}

}  // namespace

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenure-exec-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::read(const std::string& name) const {
  return text_of(path_ / name);
}

void Folder::write(const std::string& name, const std::string& text, bool executable) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  if (executable) {
    std::filesystem::permissions(path_ / name, std::filesystem::perms::owner_all);
  }
}

std::vector<std::string> python(const std::string& file, std::vector<std::string> arguments) {
  const std::filesystem::path folder =
      std::filesystem::path(__FILE__).parent_path() / ".." / ".." / "support" / "handlers";
  // The distribution's own starts several times faster than a version switcher's shim.
  const std::string interpreter =
      ::access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  std::vector<std::string> command{interpreter, "-S", "-E", (folder / file).string()};
  for (std::string& argument : arguments) command.push_back(std::move(argument));
  return command;
}

class Outcomes::Target final : public detail::CompletionTarget {
 public:
  Target(Outcomes& outcomes, int index) : outcomes_(outcomes), index_(index) {}
  Verdict complete(Outcome outcome) noexcept override {
    outcomes_.record(index_, outcome);
    return Verdict::accepted;
  }
  void release() noexcept override { delete this; }

 private:
  Outcomes& outcomes_;
  int index_;
};

Completion Outcomes::completion(int index) {
  return Completion(new Target(*this, index));  // released by the Completion
}

void Outcomes::record(int index, const Outcome& outcome) {
  if (on_outcome) on_outcome(index, outcome);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[index];
  if (++entry.deliveries == 1) ++answered_;
  if (!entry.outcome) entry.outcome = outcome;
  changed_.notify_all();
}

std::optional<Outcome> Outcomes::wait(int index) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return entries_[index].outcome.has_value(); });
  return entries_[index].outcome;
}

bool Outcomes::wait_for(std::size_t answered) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return answered_ >= answered; });
}

bool Outcomes::answered(int index) {
  const std::lock_guard lock(mutex_);
  return entries_[index].outcome.has_value();
}

std::size_t Outcomes::answered() {
  const std::lock_guard lock(mutex_);
  return answered_;
}

std::size_t Outcomes::repeated() {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [index, entry] : entries_) {
    if (entry.deliveries > 1) ++count;
  }
  return count;
}

TestOwner::TestOwner(const MessageReader* reader, std::optional<Fence> fence)
    : cell_(std::make_shared<detail::OwnerCell>(facts(reader, fence))) {}

void TestOwner::retire(RetiredReason reason) {
  core::OwnerSnapshot shown;
  shown.state = OwnerState::retired;
  shown.retired_reason = reason;
  cell_->publish(shown);
}

class ExecRig::Reader final : public MessageReader {
 public:
  void view(std::span<const MessageHandle> messages, std::span<MessageView> views) const override {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Payload& payload = *static_cast<const Payload*>(messages[i]);
      views[i] = MessageView{bytes_of(payload.key), bytes_of(payload.value), 1796126671120};
    }
  }
  std::vector<Header> headers(MessageHandle message) const override {
    std::vector<Header> headers;
    for (const auto& [name, value] : static_cast<const Payload*>(message)->headers) {
      headers.emplace_back(name, bytes_of(value));
    }
    return headers;
  }
};

ExecRig::ExecRig(ExecOptions options, std::optional<Fence> fence)
    : reader_(std::make_unique<Reader>()),
      holder(reader_.get(), fence),
      exec(std::move(options), *this, [this](HandlerEvent event) {
        const std::lock_guard lock(mutex_);
        events_.push_back(std::move(event));
        changed_.notify_all();
      }) {}

ExecRig::~ExecRig() {
  exec.close(0ms);
}

void ExecRig::start() {
  const Result<void> started = exec.start();
  ASSERT_TRUE(started) << started.error().message;
}

int ExecRig::submit(Payload payload, std::uint16_t attempt) {
  const int index = next_++;
  held_.push_back(std::move(payload));
  const MessageHandle message = &held_.back();
  MessageView view;
  reader_->view({&message, 1}, {&view, 1});
  const Record record(holder.origin(), message, view, Offset(100 + index), no_leader_epoch, attempt,
                      0, Offset(0));
  exec.handler().async(record, holder.owner(), outcomes.completion(index));
  return index;
}

Outcome ExecRig::result(int index) {
  std::optional<Outcome> outcome = outcomes.wait(index);
  if (outcome) return *outcome;
  ADD_FAILURE() << "no outcome of record " << index << "; log: " << log();
  return stop("no outcome");
}

std::vector<HandlerEvent> ExecRig::events(EventName name, std::size_t count) {
  const auto has = [&] {
    std::size_t found = 0;
    for (const HandlerEvent& event : events_) found += event.name == name ? 1 : 0;
    return found >= count;
  };
  {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, patience, has)) << traits(name).name;
  }
  std::vector<HandlerEvent> found = events_so_far(name);
  found.resize(std::max(found.size(), count));
  return found;
}

std::vector<HandlerEvent> ExecRig::events_so_far(EventName name) {
  const std::lock_guard lock(mutex_);
  std::vector<HandlerEvent> found;
  for (const HandlerEvent& event : events_) {
    if (event.name == name) found.push_back(event);
  }
  return found;
}

bool ExecRig::wait_for_log(const std::string& text) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return log_.find(text) != std::string::npos; });
}

std::string ExecRig::log() {
  const std::lock_guard lock(mutex_);
  return log_;
}

void ExecRig::write(Level, std::string_view facility, std::string_view text) {
  const std::lock_guard lock(mutex_);
  log_.append(facility).append(": ").append(text).append("\n");
  changed_.notify_all();
}

ExecOptions puppet(std::vector<std::string> arguments) {
  ExecOptions options;
  options.command = python("puppet.py", std::move(arguments));
  options.processes = 1;
  options.group = "billing";
  options.topics = {"orders", "emails"};
  options.restart_min = 10ms;
  return options;
}

bool is_gone(pid_t pid) {
  const std::string text = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return true;
  return text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

bool wait_until(const std::function<bool()>& condition) {
  // Nothing signals a change of a file or another process: looked at again and again.
  std::mutex mutex;
  std::condition_variable never;
  const auto end = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    never.wait_for(lock, 5ms);
  }
  return true;
}

bool wait_for_file(const std::string& path, const std::string& text) {
  return wait_until([&] { return text_of(path).find(text) != std::string::npos; });
}

}  // namespace tenure::handler::test
