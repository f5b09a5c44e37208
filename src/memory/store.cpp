#include "tenure/memory/store.hpp"

#include <atomic>
#include <deque>
#include <set>
#include <variant>

#include "base/assert.hpp"
#include "base/interval_set.hpp"
#include "base/mutex.hpp"
#include "memory/database_state.hpp"
#include "memory/fence.hpp"

namespace tenure::memory {
namespace {

constexpr char kind_tag = 'm';

/// A fault a unit can meet, as its verdict.
UnitVerdict verdict_of(StoreError error) {
  switch (error) {
    case StoreError::contention:
      return UnitVerdict::contention;
    case StoreError::superseded:
      return UnitVerdict::superseded;
    case StoreError::moved:
      return UnitVerdict::moved;
    case StoreError::in_doubt:
      return UnitVerdict::in_doubt;
    case StoreError::retired:
      return UnitVerdict::retired;
    case StoreError::none:
      return UnitVerdict::applied;
    case StoreError::schema:
      return UnitVerdict::handler_down;
    case StoreError::rule:
    case StoreError::unavailable:
      break;
  }
  return UnitVerdict::unavailable;
}

}  // namespace

/// One transaction: what it has read and at which version, what it will write.
struct UnitCore {
  UnitCore(std::shared_ptr<StoreCore> the_store, UnitKey the_key)
      : store(std::move(the_store)), key(std::move(the_key)) {}

  const std::shared_ptr<StoreCore> store;
  const UnitKey key;
  std::atomic<bool> ended{false};  ///< by cancel() or close(), before its commit was taken
  std::atomic<bool> taken{false};  ///< its commit was taken
  // The handler's thread.
  std::map<std::string, std::uint64_t, std::less<>> read;
  std::map<std::string, std::optional<std::string>, std::less<>> written;
  std::optional<UnitResult> failure;
};

struct StoreCore {
  explicit StoreCore(std::shared_ptr<Database> the_database)
      : database(std::move(the_database)), state(*database->state_) {}

  using Work = std::function<void()>;

  /// Now, or at resume().
  void take(Work work) {
    {
      const Lock lock(mutex);
      if (stalled) {
        waiting.push_back(std::move(work));
        return;
      }
    }
    work();
  }

  StoreError next_fault() {
    const Lock lock(mutex);
    return std::exchange(fault, StoreError::none);
  }

  bool cancelled(OwnerRef owner) {
    const Lock lock(mutex);
    return closed || cancelled_grants.contains(owner.grant.value());
  }

  /// What keeps a request from being done at all.
  StoreError obstacle(OwnerRef owner) {
    return cancelled(owner) ? StoreError::retired : next_fault();
  }

  template <class Answer>
  void tell(void (StoreSink::*member)(Answer), Answer answer) {
    StoreSink* to = nullptr;
    {
      const Lock lock(mutex);
      to = sink;
    }
    if (to != nullptr) (to->*member)(std::move(answer));
  }

  UnitResult commit(UnitCore& unit, Offset to, LeaderEpoch leader_epoch);

  const std::shared_ptr<Database> database;
  Database::State& state;  ///< of `database`
  Mutex mutex;
  StoreSink* sink TENURE_GUARDED_BY(mutex) = nullptr;
  bool closed TENURE_GUARDED_BY(mutex) = false;
  bool stalled TENURE_GUARDED_BY(mutex) = false;
  std::deque<Work> waiting TENURE_GUARDED_BY(mutex);
  StoreError fault TENURE_GUARDED_BY(mutex) = StoreError::none;
  std::optional<bool> lost_reply TENURE_GUARDED_BY(mutex);  ///< applied?
  IntervalSet cancelled_grants TENURE_GUARDED_BY(mutex);
  std::set<UnitCore*> units TENURE_GUARDED_BY(mutex);
};

UnitResult StoreCore::commit(UnitCore& unit, Offset to, LeaderEpoch leader_epoch) {
  if (const StoreError error = next_fault(); error != StoreError::none) {
    return {verdict_of(error), "fault of the test"};
  }
  std::optional<bool> lost;
  {
    const Lock lock(mutex);
    lost = std::exchange(lost_reply, std::nullopt);
  }
  if (lost == false) return {UnitVerdict::in_doubt, "the reply to COMMIT was lost"};
  const Lock lock(state.mutex);
  Database::Image& now = state.now;
  UnitResult result =
      check_lane(now, unit.key.domain, unit.key.fence, unit.key.lane, unit.key.from, to);
  if (result.verdict != UnitVerdict::applied) return result;
  for (const auto& [key, version] : unit.read) {
    const auto found = now.entries.find(key);
    if ((found == now.entries.end() ? 0 : found->second.version) != version) {
      return {UnitVerdict::contention, "another transaction changed what this one has read"};
    }
  }
  ++now.version;
  for (auto& [key, value] : unit.written) {
    now.entries[key] = Entry{std::move(value), now.version};
  }
  move_lane(now, unit.key.domain, unit.key.lane, to, leader_epoch);
  if (lost == true) return {UnitVerdict::in_doubt, "the reply to COMMIT was lost"};
  return result;
}

namespace {

class Unit final : public EffectUnit {
 public:
  explicit Unit(std::shared_ptr<UnitCore> core) : core_(std::move(core)), transaction_(*core_) {}
  ~Unit() override {
    const Lock lock(core_->store->mutex);
    core_->store->units.erase(core_.get());
  }

  void* transaction() override { return &transaction_; }
  const UnitResult* failure() const override {
    if (core_->ended.load() && !core_->failure) {
      core_->failure = UnitResult{UnitVerdict::retired, "the owner has ended"};
    }
    return core_->failure ? &*core_->failure : nullptr;
  }
  void commit(Offset to, LeaderEpoch leader_epoch, std::function<void(UnitResult)> done) override {
    TENURE_ASSERT(to > core_->key.from, "T4 a unit moves its lane forward");
    if (failure() != nullptr) {
      done(*core_->failure);
      return;
    }
    core_->store->take([core = core_, to, leader_epoch, done = std::move(done)] {
      core->taken.store(true);
      done(core->ended.load() ? UnitResult{UnitVerdict::retired, "the owner has ended"}
                              : core->store->commit(*core, to, leader_epoch));
      // Whatever became of it, it is over.
      core->ended.store(true);
    });
  }
  void roll_back() override {
    core_->ended.store(true);
    core_->written.clear();
  }

 private:
  const std::shared_ptr<UnitCore> core_;
  Transaction transaction_;
};

}  // namespace

TransactionKind Transaction::kind() {
  return &kind_tag;
}

Result<std::optional<std::string>> Transaction::get(std::string_view key) {
  if (core_.ended.load()) return fail(Code::retired, "the transaction has ended");
  if (const auto own = core_.written.find(key); own != core_.written.end()) return own->second;
  auto& state = core_.store->state;
  const Lock lock(state.mutex);
  const auto& entries = state.now.entries;
  const auto found = entries.find(key);
  const std::uint64_t version = found == entries.end() ? 0 : found->second.version;
  core_.read.emplace(std::string(key), version);
  return found == entries.end() ? std::optional<std::string>() : found->second.value;
}

void Transaction::put(std::string key, std::string value) {
  if (core_.ended.load()) return;
  core_.written[std::move(key)] = std::move(value);
}

void Transaction::erase(std::string key) {
  if (core_.ended.load()) return;
  core_.written[std::move(key)] = std::nullopt;
}

Store::Store(std::shared_ptr<Database> database)
    : core_(std::make_shared<StoreCore>(std::move(database))) {}

Store::~Store() {
  close(Duration::zero());
}

void Store::fail_next(StoreError error) {
  const Lock lock(core_->mutex);
  core_->fault = error;
}

void Store::lose_next_commit_reply(bool applied) {
  const Lock lock(core_->mutex);
  core_->lost_reply = applied;
}

void Store::stall() {
  const Lock lock(core_->mutex);
  core_->stalled = true;
}

void Store::resume() {
  std::deque<StoreCore::Work> work;
  {
    const Lock lock(core_->mutex);
    core_->stalled = false;
    work.swap(core_->waiting);
  }
  for (StoreCore::Work& one : work) one();
}

Result<void> Store::open(StoreSink& sink) {
  if (const StoreError error = core_->next_fault(); error != StoreError::none) {
    return fail(Code::unavailable, "memory store: fault of the test");
  }
  const Lock lock(core_->mutex);
  core_->sink = &sink;
  return {};
}

void Store::submit(Reserve request) {
  core_->take([core = core_, request = std::move(request)] {
    Reserved out;
    out.id = request.id;
    for (const Reserve::Item& item : request.items) {
      Reserved::Item answer;
      answer.owner = item.owner;
      answer.error = core->obstacle(item.owner);
      if (answer.error == StoreError::none) {
        const Lock lock(core->state.mutex);
        answer = reserve(core->state.now, item);
      }
      out.items.push_back(std::move(answer));
    }
    core->tell(&StoreSink::reserved, std::move(out));
  });
}

void Store::submit(Activate request) {
  core_->take([core = core_, request = std::move(request)] {
    Activated out;
    out.id = request.id;
    for (const Activate::Item& item : request.items) {
      Activated::Item answer;
      answer.owner = item.owner;
      answer.error = core->obstacle(item.owner);
      if (answer.error == StoreError::none) {
        const Lock lock(core->state.mutex);
        answer = activate(core->state.now, item);
      }
      out.items.push_back(std::move(answer));
    }
    core->tell(&StoreSink::activated, std::move(out));
  });
}

void Store::submit(AdvanceIdle request) {
  core_->take([core = core_, request = std::move(request)] {
    IdleAdvanced out;
    out.id = request.id;
    out.owner = request.owner;
    out.error = core->obstacle(request.owner);
    if (out.error == StoreError::none) {
      const Lock lock(core->state.mutex);
      out = advance_idle(core->state.now, request);
    }
    core->tell(&StoreSink::idle_advanced, std::move(out));
  });
}

void Store::submit(Lookup request) {
  core_->take([core = core_, request = std::move(request)] {
    LookedUp out;
    out.id = request.id;
    out.owner = request.owner;
    out.lane = request.lane;
    out.error = core->obstacle(request.owner);
    if (out.error == StoreError::none) {
      const Lock lock(core->state.mutex);
      out = look_up(core->state.now, request);
    }
    core->tell(&StoreSink::looked_up, std::move(out));
  });
}

std::unique_ptr<EffectUnit> Store::open_unit(UnitKey key) {
  auto unit = std::make_shared<UnitCore>(core_, std::move(key));
  const Lock lock(core_->mutex);
  if (core_->closed || core_->cancelled_grants.contains(unit->key.owner.grant.value())) {
    unit->ended.store(true);
  }
  core_->units.insert(unit.get());
  return std::make_unique<Unit>(std::move(unit));
}

void Store::cancel(OwnerRef owner) {
  const Lock lock(core_->mutex);
  core_->cancelled_grants.insert(owner.grant.value());
  for (UnitCore* unit : core_->units) {
    if (unit->key.owner == owner && !unit->taken.load()) unit->ended.store(true);
  }
}

void Store::close(Duration) {
  resume();
  const Lock lock(core_->mutex);
  core_->closed = true;
  core_->sink = nullptr;
  for (UnitCore* unit : core_->units) {
    if (!unit->taken.load()) unit->ended.store(true);
  }
}

}  // namespace tenure::memory
