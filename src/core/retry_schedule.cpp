#include "core/retry_schedule.hpp"

#include <algorithm>

namespace tenure::core {

namespace {
// Ties broken by grant and ordinal, so that the order never depends on the heap's history.
bool later(const RetrySchedule::Entry& a, const RetrySchedule::Entry& b) {
  if (a.due != b.due) return a.due > b.due;
  if (a.owner.grant != b.owner.grant) return a.owner.grant > b.owner.grant;
  return a.ordinal > b.ordinal;
}
}  // namespace

Duration RetrySchedule::backoff(std::uint32_t tries, Random& random) const {
  Duration wait = policy_.backoff_min;
  for (std::uint32_t i = 1; i < tries && wait < policy_.backoff_max; ++i) wait *= 2;
  wait = std::min(wait, policy_.backoff_max);
  const double share = 1.0 - policy_.jitter * random.unit();
  return Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * share));
}

void RetrySchedule::add(const Entry& entry) {
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool RetrySchedule::pop(Instant now, Entry& entry) {
  if (heap_.empty() || heap_.front().due > now) return false;
  entry = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
  return true;
}

void RetrySchedule::drop(OwnerRef owner) {
  const auto gone = std::remove_if(heap_.begin(), heap_.end(),
                                   [&](const Entry& entry) { return entry.owner == owner; });
  if (gone == heap_.end()) return;
  heap_.erase(gone, heap_.end());
  std::make_heap(heap_.begin(), heap_.end(), later);
}

}  // namespace tenure::core
