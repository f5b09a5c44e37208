#include "sqlite/store_core.hpp"

#include <algorithm>
#include <utility>

#include "sqlite/fence.hpp"

namespace tenure::sqlite {
namespace {

/// How often an ended unit is looked at until its worker has left the statement.
constexpr std::chrono::milliseconds clean_up_again{1};

}  // namespace

/// The writer for the requests of one pass, with a trouble that ends the pass for all.
struct StoreCore::Turn {
  Turn(Writer& the_writer, const Options& options, const std::atomic<bool>& closing,
       Synchronous wanted)
      : writer(the_writer),
        patience{std::chrono::steady_clock::now() + options.busy_timeout, &closing},
        level(wanted) {}
  ~Turn() {
    if (held) writer.leave(waiter);
  }

  /// Null: `error` and `message` are set, for this item and all that follow.
  Connection* connection() {
    if (error != StoreError::none) return nullptr;
    Problem problem;
    Connection* out = held ? writer.connection(waiter, patience, level, problem)
                           : writer.enter(waiter, patience, level, problem);
    held = held || out != nullptr;
    if (out == nullptr) {
      error = problem.verdict == UnitVerdict::retired ? StoreError::retired : store_error(problem);
      message = problem.message;
    }
    return out;
  }

  /// Learns from an item's answer.
  void note(StoreError answer, const std::string& text) {
    if (answer == StoreError::in_doubt) writer.drop(waiter);
    // What keeps one transaction from the file keeps the next: say so without waiting again.
    if (answer == StoreError::contention || answer == StoreError::unavailable ||
        answer == StoreError::schema) {
      error = answer;
      message = text;
    }
  }

  Writer& writer;
  Patience patience;
  Synchronous level;
  Turnstile::Waiter waiter;
  bool held = false;
  StoreError error = StoreError::none;
  std::string message;
};

Result<void> StoreCore::open(StoreSink& sink) {
  auto file = DatabaseFile::open(options_);
  if (!file) return tl::unexpected<Error>(file.error());
  file_ = std::move(*file);
  writer_ = std::make_unique<Writer>(*file_);
  {
    const Lock lock(sink_mutex_);
    sink_ = &sink;
  }
  {
    const Lock lock(requests_mutex_);
    serving_ = true;
  }
  {
    const Lock lock(registry_);
    watching_ = true;
  }
  server_ = std::thread([self = shared_from_this()] { self->serve(); });
  watcher_ = std::thread([self = shared_from_this()] { self->watch(); });
  return {};
}

// Requests of the engine.

void StoreCore::submit(Request request) {
  const Lock lock(requests_mutex_);
  requests_.push_back(std::move(request));
  requests_wake_.notify_one();
}

void StoreCore::serve() {
  while (true) {
    std::deque<Request> batch;
    {
      const Lock lock(requests_mutex_);
      while (requests_.empty() && !closing_.load()) requests_wake_.wait(requests_mutex_);
      batch.swap(requests_);
      if (batch.empty()) {
        serving_ = false;
        requests_wake_.notify_all();
        return;
      }
    }
    for (Request& request : batch) answer(std::move(request));
  }
}

void StoreCore::answer(Request request) {
  const auto tell = [this](auto member, auto value) {
    const Lock lock(sink_mutex_);
    if (sink_ != nullptr) (sink_->*member)(std::move(value));
  };
  if (const auto* reserve = std::get_if<Reserve>(&request)) {
    tell(&StoreSink::reserved, answer_reserve(*reserve));
  } else if (const auto* activate = std::get_if<Activate>(&request)) {
    tell(&StoreSink::activated, answer_activate(*activate));
  } else if (const auto* advance = std::get_if<AdvanceIdle>(&request)) {
    tell(&StoreSink::idle_advanced, answer_advance(*advance));
  } else if (const auto* lookup = std::get_if<Lookup>(&request)) {
    tell(&StoreSink::looked_up, answer_lookup(*lookup));
  }
}

Reserved StoreCore::answer_reserve(const Reserve& request) {
  Reserved out;
  out.id = request.id;
  Turn turn(*writer_, options_, closing_, Synchronous::full);
  for (const Reserve::Item& item : request.items) {
    Reserved::Item answer;
    answer.owner = item.owner;
    if (cancelled(item.owner)) {
      answer.error = StoreError::retired;
    } else if (Connection* connection = turn.connection(); connection == nullptr) {
      answer.error = turn.error;
      answer.message = turn.message;
    } else {
      answer = reserve(*connection, item);
      turn.note(answer.error, answer.message);
    }
    out.items.push_back(std::move(answer));
  }
  return out;
}

Activated StoreCore::answer_activate(const Activate& request) {
  Activated out;
  out.id = request.id;
  Turn turn(*writer_, options_, closing_, Synchronous::full);
  for (const Activate::Item& item : request.items) {
    Activated::Item answer;
    answer.owner = item.owner;
    if (cancelled(item.owner)) {
      answer.error = StoreError::retired;
    } else if (Connection* connection = turn.connection(); connection == nullptr) {
      answer.error = turn.error;
      answer.message = turn.message;
    } else {
      answer = activate(*connection, item);
      turn.note(answer.error, answer.message);
    }
    out.items.push_back(std::move(answer));
  }
  return out;
}

IdleAdvanced StoreCore::answer_advance(const AdvanceIdle& request) {
  IdleAdvanced out;
  out.id = request.id;
  out.owner = request.owner;
  if (cancelled(request.owner)) {
    out.error = StoreError::retired;
    return out;
  }
  Turn turn(*writer_, options_, closing_, options_.synchronous);
  Connection* connection = turn.connection();
  if (connection == nullptr) {
    out.error = turn.error;
    out.message = turn.message;
    return out;
  }
  out = advance_idle(*connection, request);
  turn.note(out.error, out.message);
  return out;
}

LookedUp StoreCore::answer_lookup(const Lookup& request) {
  LookedUp out;
  out.id = request.id;
  out.owner = request.owner;
  out.lane = request.lane;
  if (cancelled(request.owner)) {
    out.error = StoreError::retired;
    return out;
  }
  auto connection = file_->connect();
  if (!connection) {
    out.error = StoreError::unavailable;
    out.message = connection.error().message;
    return out;
  }
  (*connection)
      ->wait_for_locks({std::chrono::steady_clock::now() + options_.busy_timeout, &closing_});
  return look_up(**connection, request);
}

// Units of handlers.

bool StoreCore::cancelled(OwnerRef owner) {
  const Lock lock(registry_);
  return closing_.load() || cancelled_grants_.contains(owner.grant.value());
}

std::shared_ptr<UnitCore> StoreCore::open_unit(UnitKey key) {
  const std::uint64_t grant = key.owner.grant.value();
  auto unit =
      std::make_shared<UnitCore>(*writer_, options_, std::move(key), [this] { unit_opened(); });
  const Lock lock(registry_);
  if (closing_.load() || cancelled_grants_.contains(grant)) unit->end(UnitCore::Stage::retired);
  units_.emplace(unit.get(), unit);
  return unit;
}

UnitResult StoreCore::why_ended(const UnitKey& key, UnitResult retired) const {
  if (closing_.load() || file_ == nullptr) return retired;
  auto connection = file_->connect();
  if (!connection) return retired;
  Lookup lookup;
  lookup.domain = key.domain;
  lookup.fence = key.fence;
  lookup.lane = key.lane;
  LookedUp found = look_up(**connection, lookup);
  if (found.error != StoreError::superseded) return retired;
  return {UnitVerdict::superseded, std::move(found.message)};
}

void StoreCore::forget(const UnitCore& unit) {
  const Lock lock(registry_);
  units_.erase(&unit);
}

void StoreCore::unit_opened() {
  // All units have the same time limit, so a watch that has a deadline wakes soon enough.
  if (!watch_idle_.load()) return;
  const Lock lock(registry_);
  look_again_ = true;
  registry_wake_.notify_one();
}

void StoreCore::cancel(OwnerRef owner) {
  const Lock lock(registry_);
  cancelled_grants_.insert(owner.grant.value());
  for (const auto& [pointer, unit] : units_) {
    if (unit->key().owner == owner) unit->end(UnitCore::Stage::retired);
  }
  look_again_ = true;
  registry_wake_.notify_one();
}

std::vector<std::shared_ptr<UnitCore>> StoreCore::take_ended(SteadyTime now, SteadyTime& next) {
  std::vector<std::shared_ptr<UnitCore>> ended;
  for (const auto& [pointer, unit] : units_) {
    const SteadyTime since = unit->open_since();
    if (since != SteadyTime::min() && !unit->ended()) {
      const SteadyTime due = since + options_.unit_timeout;
      if (due <= now) {
        unit->end(UnitCore::Stage::timed_out);
      } else {
        next = std::min(next, due);
      }
    }
    if (unit->ended()) ended.push_back(unit);
  }
  return ended;
}

void StoreCore::watch() {
  while (true) {
    SteadyTime next = SteadyTime::max();
    std::vector<std::shared_ptr<UnitCore>> ended;
    {
      const Lock lock(registry_);
      look_again_ = false;
      // Before the look at the units: one that opens after it sees the flag and wakes us.
      watch_idle_.store(true);
      ended = take_ended(std::chrono::steady_clock::now(), next);
      if (next != SteadyTime::max()) watch_idle_.store(false);
    }
    bool again = false;
    for (const auto& unit : ended) {
      unit->interrupt();
      if (!unit->clean_up()) again = true;
    }
    ended.clear();
    const Lock lock(registry_);
    if (closing_.load() && !again) {
      watching_ = false;
      registry_wake_.notify_all();
      return;
    }
    if (look_again_) continue;
    if (again) {
      next = std::min(next, std::chrono::steady_clock::now() + clean_up_again);
    }
    if (next == SteadyTime::max()) {
      registry_wake_.wait(registry_);
    } else {
      registry_wake_.wait_until(registry_, next);
    }
  }
}

// End.

Result<void> StoreCore::still_there() const {
  return file_->still_there();
}

void StoreCore::close(Duration limit) {
  if (!server_.joinable()) return;
  const SteadyTime deadline =
      std::chrono::steady_clock::now() + std::min<Duration>(limit, std::chrono::hours(24));
  {
    const Lock lock(requests_mutex_);
    closing_.store(true);
    requests_wake_.notify_all();
  }
  writer_->close();
  {
    const Lock lock(registry_);
    for (const auto& [pointer, unit] : units_) unit->end(UnitCore::Stage::retired);
    look_again_ = true;
    registry_wake_.notify_all();
  }
  bool served = false;
  {
    const Lock lock(requests_mutex_);
    while (serving_ && requests_wake_.wait_until(requests_mutex_, deadline)) {
    }
    served = !serving_;
  }
  bool watched = false;
  {
    const Lock lock(registry_);
    while (watching_ && registry_wake_.wait_until(registry_, deadline)) {
    }
    watched = !watching_;
  }
  {
    const Lock lock(sink_mutex_);
    sink_ = nullptr;
  }
  // A thread that SQLite or the disk does not let go keeps the core alive by itself.
  served ? server_.join() : server_.detach();
  watched ? watcher_.join() : watcher_.detach();
}

}  // namespace tenure::sqlite
