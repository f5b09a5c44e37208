// Writes a history: JSON lines that verify judges later.
//
// Role: the Observer behind `run --history`, and the pen of whoever writes witnesses.
// Owns: the file. Threads: one at a time (the loop thread, while it observes).
// Lifecycle: create -> events and witnesses -> close(). Without close() there is no end line and
//   a reader calls the history cut, which is right.
// Promises: each line is handed to the operating system before the call returns, so that a
//   killed process loses at most the line it was writing; a line is at most 64 KiB; keys stand
//   in a fixed order; after the first failed write nothing more is written and failure() says so.
// Does not promise: that lines survive a power failure before close().
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "observe/history.hpp"
#include "observe/line_text.hpp"
#include "observe/log_observer.hpp"
#include "tenure/event.hpp"
#include "tenure/port/observer.hpp"
#include "tenure/result.hpp"

namespace tenure::observe {

class HistoryWriter final : public Observer {
 public:
  /// A new file: one that exists is refused, since a history must not be mixed with another.
  /// `incarnation` names this process in its events ("A.1"). `failed` is told once when writing
  /// fails later.
  static Result<std::unique_ptr<HistoryWriter>> create(
      const std::string& path, const HistoryStart& start, std::string incarnation,
      std::function<void(const Error&)> failed = {},
      WallClock clock = std::chrono::system_clock::now);

  void on_event(const Event& event) override;
  [[nodiscard]] bool wants_records() const override { return true; }

  void write(const HistoryInput& line);
  void write(const HistoryOwner& line);
  void write(const HistoryCommit& line);
  void write(const HistoryFence& line);
  void write(const HistoryEffect& line);
  void write(const HistoryFault& line);

  /// Writes the end line and closes. The first failure of all, if there was one.
  Result<void> close();
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  HistoryWriter(std::unique_ptr<std::FILE, CloseFile> file, std::string path,
                std::string incarnation, std::function<void(const Error&)> failed, WallClock clock);
  void begin(std::string_view t);
  void put(std::string_view key, std::string_view text);
  void put(std::string_view key, std::int64_t number);
  void put(const HistoryPlace& place);
  /// Ends the line, writes and counts it.
  void end(std::string_view t);
  void write_line();
  void write_start(const HistoryStart& start);

  std::unique_ptr<std::FILE, CloseFile> file_;
  const std::string path_;
  const std::string incarnation_;
  const std::function<void(const Error&)> failed_;
  const WallClock clock_;
  std::string line_;
  std::map<std::string, std::int64_t, std::less<>> counts_;
  std::optional<Error> failure_;
};

}  // namespace tenure::observe
