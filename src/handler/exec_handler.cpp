#include "handler/exec_handler.hpp"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.hpp"
#include "handler/exec_alive.hpp"
#include "handler/exec_attempt.hpp"
#include "handler/exec_per_record.hpp"
#include "handler/exec_pool.hpp"

namespace tenure::handler {
namespace {

/// Without lines of a record that an outer handler was given.
std::vector<std::string> inherited_environment() {
  constexpr std::string_view ours = "TENURE_RECORD_";
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    if (!std::string_view(*line).starts_with(ours)) lines.emplace_back(*line);
  }
  return lines;
}

int milliseconds_until(Time wake, Time now) {
  if (wake == Time::max()) return -1;
  if (wake <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(wake - now).count();
  return static_cast<int>(std::min<decltype(left)>(left, INT_MAX));
}

}  // namespace

/// The I/O thread and what it owns.
class ExecHandler::Loop {
 public:
  Loop(ExecOptions options, Logger& logger, HandlerEventSink events)
      : options_(std::move(options)), logger_(logger), events_(std::move(events)) {}

  Result<void> start() {
    if (options_.command.empty()) return fail(Code::invalid, "handler.exec.command is empty");
    if (!inbox_.open()) {
      return fail(Code::unavailable,
                  fmt::format("no descriptor for the exec handler: {}", std::strerror(errno)),
                  "raise the limit of open files (ulimit -n)");
    }
    image_.emplace(options_.command, inherited_environment());
    if (options_.mode == ExecMode::alive) {
      pool_ = std::make_unique<ExecAlive>(options_, *image_, logger_, events_, inbox_);
    } else {
      pool_ = std::make_unique<ExecPerRecord>(options_, *image_, logger_, events_, inbox_);
    }
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return fail(Code::unavailable,
                  fmt::format("no thread for the exec handler: {}", error.what()));
    }
    return {};
  }

  ExecInbox& inbox() { return inbox_; }

  void close(std::chrono::milliseconds limit) {
    if (!thread_.joinable()) return;
    inbox_.set_close();
    const auto bounded = std::min<std::chrono::milliseconds>(limit, std::chrono::hours(24));
    if (!wait_for_end(std::chrono::steady_clock::now() + bounded)) inbox_.set_kill();
    thread_.join();
    pool_.reset();
  }

 private:
  void run() {
    // Writes to a closed pipe answer EPIPE here, and no signal handler of the host runs here.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::vector<pollfd> descriptors;
    bool killed = false;
    while (true) {
      ExecInbox::Content content = inbox_.take();
      const Time now = std::chrono::steady_clock::now();
      for (std::unique_ptr<Attempt>& attempt : content.attempts) pool_->take(std::move(attempt));
      for (const AttemptId id : content.stopped) pool_->stopped(id, content.shutdown);
      if (content.close) pool_->begin_close(now);
      if (content.kill && !killed) {
        pool_->kill_all();
        killed = true;
      }
      const Time wake = pool_->advance(now);
      if (content.close && pool_->empty()) break;

      descriptors.assign(1, pollfd{inbox_.descriptor(), POLLIN, 0});
      pool_->watch(descriptors);
      const int ready = ::poll(descriptors.data(), descriptors.size(),
                               milliseconds_until(wake, std::chrono::steady_clock::now()));
      if (ready > 0) {
        pool_->ready(std::span<const pollfd>(descriptors).subspan(1),
                     std::chrono::steady_clock::now());
      }
    }
    const Lock lock(mutex_);
    has_ended_ = true;
    ended_.notify_all();
  }

  bool wait_for_end(Time until) {
    const Lock lock(mutex_);
    while (!has_ended_) {
      if (!ended_.wait_until(mutex_, until)) return has_ended_;
    }
    return true;
  }

  const ExecOptions options_;
  Logger& logger_;
  const HandlerEventSink events_;
  std::optional<ProgramImage> image_;
  ExecInbox inbox_;
  std::unique_ptr<ExecPool> pool_;  // the I/O thread's while it runs

  Mutex mutex_;
  Condition ended_;
  bool has_ended_ TENURE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

ExecHandler::ExecHandler(ExecOptions options, Logger& logger, HandlerEventSink events)
    : loop_(std::make_unique<Loop>(std::move(options), logger, std::move(events))) {}

ExecHandler::~ExecHandler() {
  close(std::chrono::milliseconds(0));
}

Result<void> ExecHandler::start() {
  return loop_->start();
}

Handler ExecHandler::handler() {
  Handler handler;
  handler.shape = Handler::Shape::async;
  handler.async = [this](const Record& record, const Owner& owner, Completion completion) {
    // Handed back, it is dropped: `retry`, class `no_outcome`.
    static_cast<void>(
        loop_->inbox().put(std::make_unique<Attempt>(record, owner, std::move(completion))));
  };
  return handler;
}

void ExecHandler::begin_shutdown() {
  loop_->inbox().set_shutdown();
}

void ExecHandler::begin_close() {
  loop_->inbox().set_close();
}

void ExecHandler::close(std::chrono::milliseconds limit) {
  loop_->close(limit);
}

}  // namespace tenure::handler
