// What the tests of exec handlers share: records without a client, an owner without an engine,
// completions that are watched, handlers written in Python.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "handler/exec_handler.hpp"
#include "ports/owner_cell.hpp"
#include "tenure/completion.hpp"
#include "tenure/owner.hpp"
#include "tenure/port/logger.hpp"
#include "tenure/record.hpp"

namespace tenure::handler::test {

using namespace std::chrono_literals;

/// Longer than anything takes on a loaded machine.
inline constexpr std::chrono::seconds patience{30};

/// A folder of its own, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string at(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& text, bool executable = false) const;

 private:
  std::filesystem::path path_;
};

/// argv of a Python program in tests/support/handlers.
std::vector<std::string> python(const std::string& file, std::vector<std::string> arguments = {});

/// The key, value and headers of one record; null = absent.
struct Payload {
  std::optional<std::string> key = "k";
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

/// Counts what becomes of each attempt. Thread-safe.
class Outcomes {
 public:
  struct Entry {
    std::optional<Outcome> outcome;
    int deliveries = 0;
  };

  Completion completion(int index);
  /// Waits for the outcome of attempt `index`; empty after `patience`.
  std::optional<Outcome> wait(int index);
  bool wait_for(std::size_t answered);
  [[nodiscard]] bool answered(int index);
  [[nodiscard]] std::size_t answered();
  /// Attempts that were answered more than once.
  [[nodiscard]] std::size_t repeated();
  /// Called with every outcome, on the thread that brings it. Set before anything is submitted.
  std::function<void(int, const Outcome&)> on_outcome;

 private:
  class Target;
  void record(int index, const Outcome& outcome);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Entry> entries_;
  std::size_t answered_ = 0;
};

/// An owner that tests end as they like.
class TestOwner {
 public:
  explicit TestOwner(const MessageReader* reader, std::optional<Fence> fence = {});
  [[nodiscard]] const RecordOrigin& origin() const { return cell_->facts().origin; }
  [[nodiscard]] Owner owner() const { return Owner(cell_); }
  void fire_stop() { cell_->fire_stop(); }
  void retire(RetiredReason reason);

 private:
  std::shared_ptr<detail::OwnerCell> cell_;
};

/// A running ExecHandler and everything around it.
class ExecRig : public Logger {
 public:
  explicit ExecRig(ExecOptions options, std::optional<Fence> fence = {});
  ~ExecRig() override;

  void start();
  /// Hands a record over; answers its index.
  int submit(Payload payload, std::uint16_t attempt = 1);
  int submit(const std::string& value) { return submit(Payload{"k", value, {}}); }
  Outcome result(int index);
  Outcome run(const std::string& value) { return result(submit(value)); }

  /// Waits until `count` events of that name have come; returns them.
  std::vector<HandlerEvent> events(EventName name, std::size_t count);
  std::vector<HandlerEvent> events_so_far(EventName name);
  bool wait_for_log(const std::string& text);
  std::string log();

  bool enabled(Level) const override { return true; }
  void write(Level level, std::string_view facility, std::string_view text) override;

 private:
  class Reader;

  std::unique_ptr<Reader> reader_;
  std::list<Payload> held_;
  int next_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HandlerEvent> events_;
  std::string log_;

 public:
  Folder folder;
  TestOwner holder;
  Outcomes outcomes;
  ExecHandler exec;  ///< last: its thread uses the others
};

/// Options of a puppet that answers quickly in every respect.
ExecOptions puppet(std::vector<std::string> arguments = {});

/// Waits until the text of a file has `text` in it.
bool wait_for_file(const std::string& path, const std::string& text);
/// A zombie counts: it is as dead as a process gets where nobody reaps orphans.
bool is_gone(pid_t pid);
bool wait_until(const std::function<bool()>& condition);

}  // namespace tenure::handler::test
