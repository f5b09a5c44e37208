#include "app/app_events.hpp"

#include <time.h>

#include <algorithm>
#include <utility>

namespace tenure::app {
namespace {

// The Runtime's clock (CLOCK_BOOTTIME), so that all events have comparable times.
Instant boot_now() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

void EventStream::add(std::shared_ptr<Observer> observer) {
  const Lock lock(mutex_);
  observers_.push_back(std::move(observer));
}

bool EventStream::wants_records() const {
  const Lock lock(mutex_);
  return std::any_of(
      observers_.begin(), observers_.end(),
      [](const std::shared_ptr<Observer>& observer) { return observer->wants_records(); });
}

void EventStream::hand_out(const Event& event) {
  for (const std::shared_ptr<Observer>& observer : observers_) observer->on_event(event);
}

void EventStream::on_event(const Event& event) {
  const Lock lock(mutex_);
  member_ = event.member;
  epoch_ = event.epoch;
  Event numbered = event;
  numbered.seq = ++last_seq_;
  hand_out(numbered);
}

void EventStream::group(std::string group) {
  const Lock lock(mutex_);
  group_ = std::move(group);
}

void EventStream::say(EventName name, std::initializer_list<Field> fields,
                      std::optional<Level> level) {
  say(name, std::span<const Field>(fields.begin(), fields.size()), level);
}

void EventStream::say(EventName name, std::span<const Field> fields, std::optional<Level> level) {
  const Lock lock(mutex_);
  Event event{};
  event.name = name;
  event.level = level.value_or(traits(name).level);
  event.at = boot_now();
  event.seq = ++last_seq_;
  event.group = group_;
  event.member = member_;
  event.epoch = epoch_;
  event.fields = fields;
  hand_out(event);
}

}  // namespace tenure::app
