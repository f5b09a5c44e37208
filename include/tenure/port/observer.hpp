// Who wants to know what happened.
#pragma once

#include "tenure/event.hpp"

namespace tenure {

/// Called on the loop thread, one call at a time; must not block, throw, or call the Runtime.
/// Outlives the Runtime.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const Event& event) = 0;
  /// Whether it wants the events of single records that traits() does not mark `history`
  /// (record.dispatched, record.outcome, frontier.advanced ...). Asked once, at the start.
  [[nodiscard]] virtual bool wants_records() const { return false; }
};

}  // namespace tenure
