// One process of a case: a store, opened, with its answers awaited.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "contract/store/store_conformance.hpp"
#include "tenure/port/effect_store.hpp"

namespace tenure::testing {

/// An answer that never came. Ends the case.
struct NoAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::chrono::seconds answer_limit{20};

/// Work of a handler that takes its time: part of a workload, never a way to wait for something.
inline void take_time(std::chrono::microseconds duration) {
  Mutex mutex;
  Condition never_told;
  const auto until = std::chrono::steady_clock::now() + duration;
  const Lock lock(mutex);
  while (never_told.wait_until(mutex, until)) {
  }
}

/// Result of one commit, awaited.
class PendingResult {
 public:
  std::function<void(UnitResult)> callback() {
    return [state = state_](UnitResult result) {
      const Lock lock(state->mutex);
      state->calls += 1;
      state->result = std::move(result);
      state->wake.notify_all();
    };
  }
  UnitResult wait() {
    const auto deadline = std::chrono::steady_clock::now() + answer_limit;
    const Lock lock(state_->mutex);
    while (!state_->result) {
      if (!state_->wake.wait_until(state_->mutex, deadline)) throw NoAnswer("commit: no answer");
    }
    return *state_->result;
  }

 private:
  struct State {
    Mutex mutex;
    Condition wake;
    std::optional<UnitResult> result TENURE_GUARDED_BY(mutex);
    int calls TENURE_GUARDED_BY(mutex) = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// An owner in a case: who, of what, under which fence.
struct Holder {
  OwnerRef owner;
  Domain domain;
  LaneRule rule;
  Fence fence;
  std::vector<LaneProgress> lanes;
  [[nodiscard]] Offset next(std::uint16_t lane) const {
    return lanes.at(lane).next_offset.value_or(Offset(-1));
  }
};

class StoreProcess : private StoreSink {
 public:
  explicit StoreProcess(StoreWorld& world,
                        std::chrono::milliseconds unit_timeout = std::chrono::seconds(60))
      : world_(world), store_(world.make_store(unit_timeout)) {
    if (auto opened = store_->open(*this); !opened) {
      throw NoAnswer("open: " + opened.error().message);
    }
  }
  ~StoreProcess() override { store_->close(std::chrono::seconds(5)); }
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  [[nodiscard]] EffectStore& store() { return *store_; }

  Reserved::Item reserve(const Holder& holder) {
    const StoreRequestId id = next_id();
    store_->submit(Reserve{id, {{holder.owner, holder.domain, holder.rule}}});
    return wait(reserved_, id).items.at(0);
  }
  Activated::Item activate(const Holder& holder, Offset first, bool progress = true,
                           std::string note = "member 1") {
    const StoreRequestId id = next_id();
    store_->submit(Activate{id,
                            {{holder.owner, holder.domain, holder.rule, holder.fence, progress,
                              first, LeaderEpoch(3), std::move(note)}}});
    return wait(activated_, id).items.at(0);
  }
  IdleAdvanced advance_idle(const Holder& holder, std::vector<AdvanceIdle::Step> steps) {
    const StoreRequestId id = next_id();
    store_->submit(AdvanceIdle{id, holder.owner, holder.domain, holder.fence, std::move(steps)});
    return wait(advanced_, id);
  }
  LookedUp look_up(const Holder& holder, std::uint16_t lane) {
    const StoreRequestId id = next_id();
    store_->submit(Lookup{id, holder.owner, holder.domain, holder.fence, lane});
    return wait(looked_up_, id);
  }

  /// A new grant of this process, with nothing drawn yet.
  Holder grant(Domain domain, LaneRule rule) {
    static std::atomic<std::uint64_t> last{0};
    const std::uint64_t number = ++last;
    Holder holder;
    holder.owner = {static_cast<std::uint32_t>(number), GrantId(number)};
    holder.domain = std::move(domain);
    holder.rule = rule;
    for (std::size_t i = 0; i < 8; ++i) {
      holder.fence.owner.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
    }
    return holder;
  }
  /// T1 and T3.
  Holder acquire(Domain domain, LaneRule rule, Offset first = Offset(100)) {
    Holder holder = grant(std::move(domain), rule);
    const Reserved::Item reserved = reserve(holder);
    if (reserved.error != StoreError::none) {
      throw NoAnswer("reserve: " + std::string(name(reserved.error)) + " " + reserved.message);
    }
    holder.fence.token = reserved.token;
    const Activated::Item activated = activate(holder, first);
    if (activated.error != StoreError::none) {
      throw NoAnswer("activate: " + std::string(name(activated.error)) + " " + activated.message);
    }
    holder.lanes = activated.lanes;
    return holder;
  }

  std::unique_ptr<EffectUnit> open_unit(const Holder& holder, std::uint16_t lane, Offset from) {
    return store_->open_unit({holder.owner, holder.domain, holder.fence, lane, from});
  }
  void write(EffectUnit& unit, const Holder& holder, std::uint16_t lane, std::int64_t offset) {
    world_.write(unit, {holder.domain.partition.value(), lane, offset, holder.fence.token.value()});
  }
  static UnitResult commit(EffectUnit& unit, Offset to) {
    PendingResult pending;
    unit.commit(to, LeaderEpoch(3), pending.callback());
    return pending.wait();
  }
  /// One unit with an effect for each offset of [from, to).
  UnitResult apply(const Holder& holder, std::uint16_t lane, Offset from, Offset to) {
    const auto unit = open_unit(holder, lane, from);
    for (std::int64_t offset = from.value(); offset < to.value(); ++offset) {
      write(*unit, holder, lane, offset);
    }
    return commit(*unit, to);
  }

 private:
  template <class Answer>
  using Answers = std::map<StoreRequestId, Answer>;

  void reserved(Reserved answer) override { keep(reserved_, std::move(answer)); }
  void activated(Activated answer) override { keep(activated_, std::move(answer)); }
  void idle_advanced(IdleAdvanced answer) override { keep(advanced_, std::move(answer)); }
  void looked_up(LookedUp answer) override { keep(looked_up_, std::move(answer)); }

  StoreRequestId next_id() { return StoreRequestId(++last_id_); }

  template <class Answer>
  void keep(Answers<Answer>& answers, Answer answer) {
    const Lock lock(mutex_);
    answers.emplace(answer.id, std::move(answer));
    wake_.notify_all();
  }
  template <class Answer>
  Answer wait(Answers<Answer>& answers, StoreRequestId id) {
    const auto deadline = std::chrono::steady_clock::now() + answer_limit;
    const Lock lock(mutex_);
    while (answers.find(id) == answers.end()) {
      if (!wake_.wait_until(mutex_, deadline)) throw NoAnswer("request: no answer");
    }
    Answer out = std::move(answers.at(id));
    answers.erase(id);
    return out;
  }

  StoreWorld& world_;
  std::atomic<std::uint64_t> last_id_{0};
  Mutex mutex_;
  Condition wake_;
  Answers<Reserved> reserved_;
  Answers<Activated> activated_;
  Answers<IdleAdvanced> advanced_;
  Answers<LookedUp> looked_up_;
  const std::unique_ptr<EffectStore> store_;
};

}  // namespace tenure::testing
