#include "runtime/loop.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/assert.hpp"

namespace tenure::runtime {
namespace {

// The poll that keeps the membership alive is called at least this often.
constexpr Duration sleep_longest = std::chrono::seconds(1);
// While workers are busy and more waits for them, returned runs are looked at this often.
constexpr Duration look_interval = std::chrono::milliseconds(1);
// What a store may take to end its threads after everything is committed.
constexpr Duration store_close_limit = std::chrono::milliseconds(500);
// Async handlers only start something: a few threads are enough, and one that blocks does not
// stop the others.
constexpr std::uint32_t async_workers_max = 4;

/// One per record under load, and so only for observers that ask for them.
bool of_single_records(EventName name) {
  return name == EventName::record_dispatched || name == EventName::record_outcome ||
         name == EventName::frontier_advanced;
}

std::vector<std::optional<TopicPattern>> patterns_of(const std::vector<Route>& routes) {
  std::vector<std::optional<TopicPattern>> patterns;
  for (const Route& route : routes) {
    patterns.emplace_back();
    if (!TopicPattern::is_pattern(route.topic)) continue;
    if (Result<TopicPattern> compiled = TopicPattern::compile(route.topic)) {
      patterns.back() = std::move(*compiled);
    }
  }
  return patterns;
}

StopReport::Reason reason_of(core::Finished::Reason reason) {
  switch (reason) {
    case core::Finished::Reason::drained:
      return StopReport::Reason::drained;
    case core::Finished::Reason::outcome_stop:
      return StopReport::Reason::outcome_stop;
    case core::Finished::Reason::cut_short:
      return StopReport::Reason::cut_short;
    case core::Finished::Reason::fenced:
      return StopReport::Reason::fenced;
    case core::Finished::Reason::fatal:
      return StopReport::Reason::fatal;
    case core::Finished::Reason::config:
      return StopReport::Reason::config;
  }
  return StopReport::Reason::fatal;
}

}  // namespace

Loop::Loop(Setup setup)
    : setup_(std::move(setup)),
      source_(setup_.ports.source),
      store_(setup_.ports.store),
      clock_(setup_.ports.clock),
      executor_(setup_.executor),
      patterns_(patterns_of(setup_.routes)),
      async_(setup_.engine.async),
      engine_(setup_.engine),
      now_(clock_->now()),
      workers_(
          async_ ? std::min(setup_.engine.concurrency, async_workers_max)
                 : setup_.engine.concurrency,
          [this](RunTask& task, Executor::Scratch& scratch) { executor_.execute(task, scratch); }) {
  for (const std::shared_ptr<Observer>& observer : setup_.ports.observers) {
    wants_records_.push_back(observer->wants_records());
  }
}

Loop::~Loop() {
  close_store();
}

Result<void> Loop::open_store() {
  if (store_ == nullptr) return {};
  Result<void> opened = store_->open(*this);
  if (opened) store_open_ = true;
  return opened;
}

void Loop::close_store() {
  if (store_open_.exchange(false)) store_->close(store_close_limit);
}

// ---- requests, from any thread ------------------------------------------------------------------

void Loop::request_stop(Duration budget) {
  const bool again = asked_to_stop_.exchange(true);
  if (again && budget <= Duration::zero()) {
    abandon();
    return;
  }
  post_->post(core::Input(
      core::StopRequested{core::StopRequested::Cause::asked, std::max(budget, Duration::zero())}));
}

void Loop::abandon() {
  asked_to_stop_ = true;
  post_->post(core::AbandonRequested{});
}

Status Loop::status() {
  Lock lock(status_mutex_);
  if (!running_.load()) return {};
  const std::uint64_t mine = ++status_asked_;
  status_wanted_.store(true);
  post_->wake();
  while (status_given_ < mine && running_.load()) status_answered_.wait(status_mutex_);
  if (status_given_ < mine) return {};
  return status_;
}

void Loop::returned(RunTask& task) noexcept {
  // Under load the loop looks every millisecond, and is rung for only when workers, or credits,
  // would run out before that.
  const bool urgent = async_ ? (uncollected_.fetch_add(1, std::memory_order_relaxed) + 1) * 8 >=
                                   setup_.engine.concurrency
                             : workers_.hungry();
  post_->put(&task, urgent);
  if (over_.load()) settle_late();
}

void Loop::resumed(RunTask& task) noexcept {
  if (!workers_.push_front(task)) post_->wake();
}

// ---- run
// ------------------------------------------------------------------------------------------

StopReport Loop::run(const std::stop_token& token) {
  StopReport report;
  if (asked_to_stop_) return report;
  {
    Lock lock(status_mutex_);
    running_ = true;
  }
  {
    const std::stop_callback on_request(token, [this] { request_stop(setup_.shutdown_budget); });
    now_ = clock_->now();
    engine_.start(now_, commands_);
    carry_out();
    while (!finished_) {
      const bool collected = turn();
      if (!finished_) sleep(collected);
    }
  }

  // Everything of ours ends here; what a hung handler holds stays (runtime.hpp).
  std::vector<RunTask*> queued;
  workers_.stop(queued);
  for (RunTask* task : queued) give_back(*task);
  notifier_.stop();
  close_store();
  settle_late();
  const core::EngineTotals totals = engine_.totals();
  over_ = true;
  settle_late();

  const core::EngineTotals before = totals_at_stop_.value_or(totals);
  report.drained = totals.handled - before.handled;
  report.abandoned = totals.abandoned;
  report.committed = totals.commits_accepted - before.commits_accepted;
  report.unresolved = totals.commits_unresolved - before.commits_unresolved;
  report.took = stop_at_ ? clock_->now() - *stop_at_ : Duration::zero();
  report.reason = reason_of(finished_->reason);
  report.message = finished_->message;
  {
    Lock lock(status_mutex_);
    running_ = false;
    status_answered_.notify_all();
  }
  return report;
}

/// True when runs came back.
bool Loop::turn() {
  post_->begin_turn();
  now_ = clock_->now();
  if (source_open_) source_->poll_events();
  carry_out();

  // R3: what has arrived is taken in before the passing of time may freeze an owner.
  if (async_) uncollected_.store(0, std::memory_order_relaxed);
  RunTask* task = post_->take_nodes();
  const bool collected = task != nullptr;
  while (task != nullptr) {
    RunTask* next = task->next;
    give_back(*task);
    task = next;
  }
  collect();
  if (engine_.next_wake() <= now_) step(core::Tick{});
  carry_out();

  may_have_records_ = false;
  if (source_open_ && !finished_) {
    const std::size_t room = engine_.room();
    if (room > 0 && source_->poll_records(room) > 0) may_have_records_ = true;
    carry_out();
  }
  if (status_wanted_.exchange(false)) answer_status();
  return collected;
}

bool Loop::under_load() const {
  return async_ ? runs_out_ * 2 >= setup_.engine.concurrency : !workers_.hungry();
}

void Loop::sleep(bool collected) {
  if (may_have_records_ && engine_.room() > 0) return;
  Duration longest = sleep_longest;
  const Instant wake = engine_.next_wake();
  if (wake != never) {
    // What is due and yet did not happen in this turn waits for something else; never spin on it.
    longest = std::clamp(wake - clock_->now(), look_interval, sleep_longest);
  }
  if (workers_.grow(shared_from_this())) longest = std::min(longest, look_interval);
  if (collected && under_load()) {
    post_->sleep(std::min(longest, look_interval), Post::Sleep::doze);
  } else {
    post_->sleep(longest, Post::Sleep::park);
  }
}

void Loop::collect() {
  post_->take_messages(messages_);
  for (const core::Input& input : messages_) {
    if (std::holds_alternative<core::StopRequested>(input) ||
        std::holds_alternative<core::AbandonRequested>(input)) {
      note_stop();
    }
    step(input);
  }
  messages_.clear();
}

void Loop::note_stop() {
  if (stop_at_) return;
  stop_at_ = now_;
  totals_at_stop_ = engine_.totals();
}

void Loop::step(const core::Input& input) {
  engine_.step(input, now_, commands_);
  for (const OwnerRef owner : engine_.touched()) {
    if (Seat* shown = seat(owner); shown != nullptr && !shown->touched) {
      shown->touched = true;
      touched_.push_back(owner);
    }
  }
}

void Loop::carry_out() {
  while (!commands_.empty()) {
    std::swap(commands_, executing_);
    // R5: an owner shows that it has retired before the answer goes to the broker.
    publish();
    for (core::Command& command : executing_.commands) {
      std::visit([this](auto& value) { on(value); }, command);
    }
    dispatch(executing_.dispatched);
    if (!executing_.freed.empty()) source_->release(executing_.freed);
    executing_.clear();
  }
  publish();
}

void Loop::publish() {
  for (const OwnerRef owner : touched_) {
    Seat* shown = seat(owner);
    if (shown == nullptr) continue;
    shown->touched = false;
    if (shown->entry == nullptr) continue;
    if (const std::optional<core::OwnerSnapshot> snapshot = engine_.snapshot(owner)) {
      shown->entry->cell->publish(*snapshot);
    }
  }
  touched_.clear();
}

void Loop::give_back(RunTask& task) {
  core::Run* run = task.run;
  --runs_out_;
  tasks_.give(task);
  step(core::RunReturned{run});
}

void Loop::dispatch(std::span<core::Run* const> runs) {
  if (runs.empty()) return;
  const std::shared_ptr<Loop> self = shared_from_this();
  batch_.clear();
  for (core::Run* run : runs) {
    Seat* owner = seat(run->owner);
    TENURE_ASSERT(owner != nullptr && owner->entry != nullptr,
                  "O6 nothing is dispatched before the owner is active");
    if (!owner->entry->cell->dispatch_open()) {
      step(core::RunReturned{run});
      continue;
    }
    batch_.push_back(&tasks_.take(*run, owner->entry, self, *clock_,
                                  async_ || executor_.options().units, async_));
  }
  runs_out_ += batch_.size();
  workers_.push(batch_, self);
}

/// After the end: late runs are counted, and their messages freed.
void Loop::settle_late() {
  Lock lock(late_);
  RunTask* task = post_->take_nodes();
  while (task != nullptr) {
    RunTask* next = task->next;
    core::Run* run = task->run;
    tasks_.give(*task);
    engine_.step(core::RunReturned{run}, std::max(now_, clock_->now()), commands_);
    static_cast<void>(engine_.touched());
    task = next;
  }
  if (!commands_.freed.empty()) source_->release(commands_.freed);
  commands_.clear();
}

// ---- owners
// ---------------------------------------------------------------------------------------

Loop::Seat* Loop::seat(OwnerRef owner) {
  if (owner.slot >= seats_.size()) return nullptr;
  Seat& found = seats_[owner.slot];
  return found.owner == owner ? &found : nullptr;
}

Loop::Seat& Loop::take_seat(OwnerRef owner, TopicPartition partition) {
  if (owner.slot >= seats_.size()) seats_.resize(owner.slot + 1);
  Seat& taken = seats_[owner.slot];
  if (taken.owner != owner) taken = Seat{owner, std::move(partition), nullptr, false};
  return taken;
}

const Handler& Loop::handler_for(const std::string& topic) const {
  for (const Route& route : setup_.routes) {
    if (route.topic == topic) return route.handler;
  }
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (patterns_[i] && patterns_[i]->matches(topic)) return setup_.routes[i].handler;
  }
  // The client subscribed by the same names: a topic without a route cannot be told from one.
  return setup_.routes.front().handler;
}

void Loop::answer_status() {
  Status status;
  status.running = true;
  status.member = member_;
  status.now = now_;
  status.workers = workers_.workers();
  const core::EngineTotals& totals = engine_.totals();
  status.received = totals.received;
  status.handled = totals.handled;
  status.replayed = totals.replayed;
  status.skipped_by_store = totals.skipped_by_store;
  status.retries = totals.retries;
  status.parked = totals.parked;
  status.late = totals.late;
  status.refused = totals.refused;
  status.abandoned = totals.abandoned;
  status.grants = totals.grants;
  status.lost = totals.lost;
  status.commits_accepted = totals.commits_accepted;
  status.commits_rejected = totals.commits_rejected;
  status.commits_unresolved = totals.commits_unresolved;
  for (const Seat& shown : seats_) {
    const std::optional<core::OwnerSnapshot> snapshot = engine_.snapshot(shown.owner);
    if (!snapshot) continue;
    OwnerStatus owner;
    owner.topic = shown.partition.topic;
    owner.partition = shown.partition.partition;
    owner.grant = shown.owner.grant;
    owner.state = snapshot->state;
    owner.cause = snapshot->cause;
    if (shown.entry != nullptr) {
      owner.fence = shown.entry->cell->facts().fence;
      owner.start = shown.entry->cell->facts().start_offset;
    }
    owner.frontier = snapshot->frontier;
    owner.completed_above = snapshot->completed_above;
    owner.in_flight = snapshot->in_flight;
    owner.window_records = snapshot->window_records;
    owner.window_bytes = snapshot->window_bytes;
    owner.committed = snapshot->committed;
    owner.last_commit = snapshot->last_commit;
    owner.drain_deadline = snapshot->drain_deadline;
    status.owners.push_back(std::move(owner));
  }
  std::sort(
      status.owners.begin(), status.owners.end(), [](const OwnerStatus& a, const OwnerStatus& b) {
        return std::tie(a.topic, a.partition, a.grant) < std::tie(b.topic, b.partition, b.grant);
      });
  Lock lock(status_mutex_);
  status_ = std::move(status);
  status_given_ = status_asked_;
  status_answered_.notify_all();
}

// ---- commands
// ---------------------------------------------------------------------------------------

void Loop::on(core::OpenSource&) {
  const std::shared_ptr<Post> post = post_;
  const Result<void> opened = source_->open(*this, [post] { post->wake(); });
  source_open_ = opened.has_value();
  if (!opened) {
    std::string message = opened.error().message;
    if (!opened.error().hint.empty()) message += " (" + opened.error().hint + ")";
    step(core::OpenFailed{std::move(message), opened.error().retriable});
  }
}

void Loop::on(core::CloseSource&) {
  source_->close();
}

void Loop::on(core::AbandonSource&) {
  source_->abandon();
  source_open_ = false;
}

void Loop::on(core::AnswerAssign& command) {
  for (const GrantedPartition& granted : command.granted) {
    take_seat(granted.owner, granted.partition);
  }
  // False: overtaken by a newer rebalance, whose event is on its way (R5).
  static_cast<void>(source_->answer_assign(command.id, command.granted));
}

void Loop::on(core::AnswerRevoke& command) {
  static_cast<void>(source_->answer_revoke(command.id, command.revoked));
}

void Loop::on(core::StartFetch& command) {
  may_have_records_ = true;
  source_->start({&command.start, 1});
}

void Loop::on(core::SetFlow& command) {
  // An open flow may have what the client has already fetched, and nobody will ring for it.
  if (command.open) may_have_records_ = true;
  source_->set_flow(command.owner, command.open);
}

void Loop::on(core::ForgetOwner& command) {
  source_->forget(command.owner);
}

void Loop::on(core::SendCommit& command) {
  if (store_ != nullptr && setup_.engine.progress) {
    const Result<void> there = store_->still_there();
    if (!there) {
      const Field fields[] = {{"error", std::string_view(there.error().message)},
                              {"store", store_->name()}};
      emit(EventName::store_unavailable, traits(EventName::store_unavailable).level, fields,
           nullptr);
      CommitAnswer answer;
      answer.id = command.id;
      for (const CommitLine& line : command.lines) {
        answer.lines.push_back({line.owner, BrokerError::kept_back});
      }
      step(std::move(answer));
      return;
    }
  }
  source_->commit(command.id, command.lines);
}

void Loop::on(core::ReadCommitted& command) {
  source_->read_committed(command.id, command.partitions);
}
void Loop::on(core::ReadTopics& command) {
  source_->read_topics(command.id, command.topics);
}
void Loop::on(core::ReadLogEnds& command) {
  source_->read_log_ends(command.id, command.partitions);
}

void Loop::on(core::ReadMember&) {
  member_ = source_->member();
  step(core::MemberRead{member_});
}

void Loop::on(Reserve& command) {
  store_->submit(std::move(command));
}
void Loop::on(Activate& command) {
  store_->submit(std::move(command));
}
void Loop::on(AdvanceIdle& command) {
  store_->submit(std::move(command));
}
void Loop::on(Lookup& command) {
  store_->submit(std::move(command));
}

void Loop::on(core::CancelUnits& command) {
  if (store_ != nullptr) store_->cancel(command.owner);
}

void Loop::on(core::OwnerActivated& command) {
  detail::OwnerCell::Facts facts;
  facts.owner = command.owner;
  facts.origin = {
      command.partition.topic, command.partition.partition, command.cluster, command.topic_id,
      setup_.engine.group,     setup_.engine.scope,         source_.get()};
  facts.member = command.member;
  facts.protocol = command.protocol;
  facts.start_offset = command.start_offset;
  facts.start_source = command.start_source;
  facts.fence = command.fence;
  auto cell = std::make_shared<detail::OwnerCell>(std::move(facts));
  if (const auto snapshot = engine_.snapshot(command.owner)) cell->publish(*snapshot);
  Owner owner(cell);
  take_seat(command.owner, command.partition).entry = std::make_shared<OwnerEntry>(
      OwnerEntry{std::move(cell), std::move(owner), &handler_for(command.partition.topic)});
}

void Loop::on(core::CloseDispatch& command) {
  Seat* owner = seat(command.owner);
  if (owner == nullptr || owner->entry == nullptr) return;
  owner->entry->cell->close_dispatch();
  std::vector<RunTask*> queued;
  workers_.reclaim(command.owner, queued);
  for (RunTask* task : queued) {
    if (async_) {
      // Of the worker and of the Completion that will not be made.
      task->release();
      task->release();
    }
    give_back(*task);
  }
}

void Loop::on(core::FireStop& command) {
  const Seat* owner = seat(command.owner);
  if (owner != nullptr && owner->entry != nullptr) notifier_.fire(owner->entry->cell);
}

void Loop::on(core::AbandonRuns& command) {
  workers_.abandon(command.owner);
}

void Loop::on(core::DropOwner& command) {
  if (Seat* owner = seat(command.owner)) *owner = Seat{};
}

void Loop::on(core::Finished& command) {
  finished_ = std::move(command);
}

void Loop::on(core::Report& command) {
  if (command.owner && command.name == EventName::owner_granted) {
    take_seat(*command.owner, {command.topic, command.partition});
  }
  if (command.name == EventName::owner_retired && command.owner) show_retired(command);
  if (command.name == EventName::app_draining) note_stop();
  if (setup_.ports.observers.empty()) return;
  fields_.clear();
  for (const core::Report::Item& item : command.fields) {
    fields_.push_back(
        {item.key, std::visit([](const auto& value) { return FieldValue(value); }, item.value)});
  }
  emit(command.name, command.level.value_or(traits(command.name).level), fields_,
       command.owner ? &command : nullptr);
}

/// An owner without runs is dropped in the step that retires it, and then has no snapshot any
/// more; its last values are those of its event. R5: shown before the answer, which comes later.
void Loop::show_retired(const core::Report& retired) {
  Seat* owner = seat(*retired.owner);
  if (owner == nullptr || owner->entry == nullptr) return;
  const detail::OwnerCell& cell = *owner->entry->cell;
  core::OwnerSnapshot last;
  last.state = OwnerState::retired;
  last.frontier = cell.frontier();
  for (const core::Report::Item& item : retired.fields) {
    if (const auto* number = std::get_if<std::int64_t>(&item.value)) {
      if (item.key == "frontier") last.frontier = Offset(*number);
      if (item.key == "committed") last.committed = Offset(*number);
    } else if (const auto* text = std::get_if<std::string>(&item.value)) {
      for (const RetiredReason reason :
           {RetiredReason::revoked, RetiredReason::lost, RetiredReason::fatal,
            RetiredReason::shutdown, RetiredReason::superseded}) {
        if (item.key == "reason" && *text == name(reason)) last.retired_reason = reason;
      }
    }
  }
  TENURE_ASSERT(last.retired_reason.has_value(), "O3 an owner retires for a reason");
  owner->entry->cell->publish(last);
}

void Loop::emit(EventName name, Level level, std::span<const Field> fields,
                const core::Report* about_owner) {
  Event event;
  event.name = name;
  event.level = level;
  event.at = now_;
  event.seq = ++last_seq_;
  event.group = setup_.engine.group;
  event.member = member_.id;
  event.epoch = member_.epoch;
  event.fields = fields;
  if (about_owner != nullptr) {
    event.has_owner = true;
    event.topic = about_owner->topic;
    event.partition = about_owner->partition;
    event.grant = about_owner->owner->grant;
  }
  for (std::size_t i = 0; i < setup_.ports.observers.size(); ++i) {
    if (wants_records_[i] || !of_single_records(name)) setup_.ports.observers[i]->on_event(event);
  }
}

// ---- sinks
// ------------------------------------------------------------------------------------------

void Loop::rebalance(const Rebalance& rebalance) {
  member_ = rebalance.member;
  step(rebalance);
}
void Loop::delivered(OwnerRef owner, std::span<const Delivered> records) {
  step(core::RecordsDelivered{owner, records});
}
void Loop::reached(const Reached& reached) {
  step(reached);
}
void Loop::record_error(const RecordError& error) {
  step(error);
}
void Loop::commit_answered(const CommitAnswer& answer) {
  step(answer);
}
void Loop::committed_read(const CommittedRead& read) {
  step(read);
}
void Loop::topics_read(const TopicsRead& read) {
  step(read);
}
void Loop::log_ends_read(const LogEndsRead& read) {
  step(read);
}
void Loop::client_error(const ClientError& error) {
  step(error);
}
void Loop::times(const MembershipTimes& times) {
  step(core::TimesKnown{times.session, times.heartbeat, times.poll_limit, times.socket_timeout});
}
void Loop::closed() {
  source_open_ = false;
  step(Closed{});
}
void Loop::client_log(Level level, std::string_view facility, std::string_view text) {
  const Field fields[] = {{"facility", facility}, {"text", text}};
  emit(EventName::client_log, level, fields, nullptr);
}

void Loop::reserved(Reserved answer) {
  post_->post(std::move(answer));
}
void Loop::activated(Activated answer) {
  post_->post(std::move(answer));
}
void Loop::idle_advanced(IdleAdvanced answer) {
  post_->post(std::move(answer));
}
void Loop::looked_up(LookedUp answer) {
  post_->post(std::move(answer));
}

}  // namespace tenure::runtime
