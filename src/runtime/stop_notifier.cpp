#include "runtime/stop_notifier.hpp"

#include <chrono>
#include <deque>
#include <utility>

#include "base/mutex.hpp"

namespace tenure::runtime {
namespace {

// A callback that takes longer is not waited for at the end.
constexpr std::chrono::milliseconds patience(100);

}  // namespace

struct StopNotifier::Shared {
  Mutex mutex;
  Condition changed;
  std::deque<std::shared_ptr<detail::OwnerCell>> cells TENURE_GUARDED_BY(mutex);
  bool stopping TENURE_GUARDED_BY(mutex) = false;
  bool ended TENURE_GUARDED_BY(mutex) = false;
};

StopNotifier::StopNotifier() : shared_(std::make_shared<Shared>()) {}

StopNotifier::~StopNotifier() {
  stop();
}

void StopNotifier::fire(std::shared_ptr<detail::OwnerCell> cell) {
  {
    Lock lock(shared_->mutex);
    shared_->cells.push_back(std::move(cell));
    shared_->changed.notify_all();
  }
  if (!thread_.joinable()) thread_ = std::thread([shared = shared_] { work(shared); });
}

void StopNotifier::work(const std::shared_ptr<Shared>& shared) {
  while (true) {
    std::shared_ptr<detail::OwnerCell> cell;
    {
      Lock lock(shared->mutex);
      while (shared->cells.empty() && !shared->stopping) shared->changed.wait(shared->mutex);
      if (shared->cells.empty()) break;
      cell = std::move(shared->cells.front());
      shared->cells.pop_front();
    }
    cell->fire_stop();
  }
  Lock lock(shared->mutex);
  shared->ended = true;
  shared->changed.notify_all();
}

void StopNotifier::stop() {
  if (!thread_.joinable()) return;
  const auto until = std::chrono::steady_clock::now() + patience;
  bool ended = false;
  {
    Lock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.notify_all();
    while (!shared_->ended && shared_->changed.wait_until(shared_->mutex, until)) {
    }
    ended = shared_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace tenure::runtime
