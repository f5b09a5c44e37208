// What both modes of an exec handler have in common: attempts, the queue before a process is
// free, and how words reach the outside.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "handler/exec_attempt.hpp"
#include "handler/exec_options.hpp"
#include "handler/handler_event.hpp"
#include "handler/line_reader.hpp"
#include "tenure/port/logger.hpp"

namespace tenure::handler {

using Time = std::chrono::steady_clock::time_point;

/// Role: owns attempts from take() to their outcome and decides nothing about processes.
/// Threads: the I/O thread only. Promises: every attempt gets exactly one outcome.
class ExecPool {
 public:
  ExecPool(const ExecOptions& options, const ProgramImage& image, Logger& logger,
           const HandlerEventSink& events, ExecInbox& inbox)
      : options_(options), image_(image), logger_(logger), events_(events), inbox_(inbox) {}
  virtual ~ExecPool();
  ExecPool(const ExecPool&) = delete;
  ExecPool& operator=(const ExecPool&) = delete;

  void take(std::unique_ptr<Attempt> attempt);
  /// The stop token of this attempt fired.
  void stopped(AttemptId id, bool shutdown);
  /// Nothing new is started; what waits is answered, what runs may end.
  void begin_close(Time now);

  /// Does what is due, starts processes, hands records over. Returns when to come again.
  virtual Time advance(Time now) = 0;
  /// Appends what to poll for.
  virtual void watch(std::vector<pollfd>& descriptors) = 0;
  /// The same entries, polled.
  virtual void ready(std::span<const pollfd> descriptors, Time now) = 0;
  virtual void kill_all() = 0;
  /// No process is left.
  [[nodiscard]] virtual bool empty() const = 0;

 protected:
  virtual void close_processes(Time now) = 0;
  virtual void cancel_running(Attempt& attempt, CancelCause cause) = 0;

  [[nodiscard]] const ExecOptions& options() const { return options_; }
  [[nodiscard]] const ProgramImage& image() const { return image_; }
  [[nodiscard]] bool closing() const { return closing_; }

  /// The next that waits for a process, or null.
  [[nodiscard]] Attempt* front();
  /// front() now belongs to a process.
  void pop_front(std::size_t slot);
  /// Null: unknown or answered.
  [[nodiscard]] Attempt* find(AttemptId id);
  void finish(AttemptId id, Outcome outcome);

  void emit(EventName name, std::int64_t pid, std::string cause, std::string error) const;
  /// Logs what a process wrote on `descriptor`, reading until it blocks, ends or `limit` bytes
  /// have come, and hands the raw bytes to `also`. False: it has ended.
  template <class Also>
  bool log_output(int descriptor, LineReader& lines, std::int64_t pid, Also also);
  void log_rest(LineReader& lines, std::int64_t pid);
  /// Reads until the descriptor blocks or has ended (false) or a turn's share was taken.
  template <class Take>
  static bool read_some(int descriptor, Take take);

  static constexpr std::size_t log_line_bytes_max = 8192;

 private:
  enum class Read { bytes, blocked, ended };
  static Read read_once(int descriptor, std::span<char> buffer, std::size_t& size);
  void log_lines(LineReader& lines, std::int64_t pid);
  void log_line(std::string_view line, std::int64_t pid);

  const ExecOptions& options_;
  const ProgramImage& image_;
  Logger& logger_;
  const HandlerEventSink& events_;
  ExecInbox& inbox_;
  std::unordered_map<AttemptId, std::unique_ptr<Attempt>> attempts_;
  std::deque<AttemptId> queue_;  ///< some may have been answered meanwhile
  bool closing_ = false;
};

template <class Take>
bool ExecPool::read_some(int descriptor, Take take) {
  constexpr std::size_t turn_bytes = 1U << 20;
  std::array<char, 65536> buffer;
  for (std::size_t total = 0; total < turn_bytes;) {
    std::size_t size = 0;
    switch (read_once(descriptor, buffer, size)) {
      case Read::blocked:
        return true;
      case Read::ended:
        return false;
      case Read::bytes:
        break;
    }
    total += size;
    if (!take(std::string_view(buffer.data(), size))) return true;
  }
  return true;
}

template <class Also>
bool ExecPool::log_output(int descriptor, LineReader& lines, std::int64_t pid, Also also) {
  return read_some(descriptor, [&](std::string_view bytes) {
    also(bytes);
    lines.append(bytes);
    log_lines(lines, pid);
    return true;
  });
}

}  // namespace tenure::handler
