// One stream of events, whoever they come from.
//
// Role: joins the events of the Runtime with those of the program itself (app.*, config.*,
//   handler.*) and hands them to the observers, one at a time and numbered in that order.
// Threads: any. Lifecycle: observers are added before the Runtime is made; outlives it.
// Promises: `seq` has no gaps; an observer is never called twice at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "tenure/event.hpp"
#include "tenure/port/observer.hpp"

namespace tenure::app {

class EventStream final : public Observer {
 public:
  void add(std::shared_ptr<Observer> observer);

  void on_event(const Event& event) override;
  [[nodiscard]] bool wants_records() const override;

  /// An event of the program itself. Group, member and epoch are those last heard of.
  void say(EventName name, std::initializer_list<Field> fields, std::optional<Level> level = {});
  void say(EventName name, std::span<const Field> fields, std::optional<Level> level = {});
  void group(std::string group);

 private:
  void hand_out(const Event& event) TENURE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Observer>> observers_ TENURE_GUARDED_BY(mutex_);
  std::uint64_t last_seq_ TENURE_GUARDED_BY(mutex_) = 0;
  std::string group_ TENURE_GUARDED_BY(mutex_);
  std::string member_ TENURE_GUARDED_BY(mutex_);
  Epoch epoch_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::app
