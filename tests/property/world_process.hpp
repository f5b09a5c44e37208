// One member process of a simulated world: the REAL engine, a client, workers; and the judge that
// watches everything the engine asks for.
//
// The judge keeps its own books from what was delivered, dispatched, returned and answered, and
// compares after every step. It never asks the engine what is right, only what it shows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine.hpp"
#include "property/world_client.hpp"
#include "property/world_store.hpp"

namespace tenure::test {

/// What handlers are like while there is trouble; percent of records or runs.
struct Mood {
  double retry = 3, park = 0.2, stop = 0, handler_down = 0.5;
  double slow = 4, hung = 0.5;
};

class Process final : public Host {
 public:
  Process(Cluster& cluster, StoreRows& store, core::EngineOptions options, const Mood& mood,
          const std::string& name, std::uint64_t* hash)
      : cluster_(cluster),
        store_(store),
        options_(options),
        mood_(mood),
        name_(name),
        hash_(hash),
        engine_(std::move(options)),
        client_(cluster, *this, name) {}

  void start() {
    engine_.start(now(), commands_);
    carry_out();
  }

  // ---- what the world does to it ----------------------------------------------------------------

  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool frozen() const { return frozen_; }
  [[nodiscard]] bool stopping() const { return stop_until_ != never; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool parked() const { return parked_; }
  [[nodiscard]] Client& client() { return client_; }

  void crash() { alive_ = false; }

  void freeze(Duration span) {
    if (!alive_ || frozen_) return;
    frozen_ = true;
    frozen_for_ += span;
    if (stop_until_ != never) stop_until_ += span;
    cluster_.schedule.in(span, [this] { thaw(); });
  }

  void stop(Duration budget) {
    if (!alive_ || stopping()) return;
    later(Duration(0), [this, budget] {
      if (stopping()) return;
      stop_until_ = now() + budget + options_.commit_slice + options_.close_limit +
                    2 * cluster_.heartbeat + seconds(1);
      take(core::StopRequested{core::StopRequested::Cause::asked, budget});
    });
  }

  /// Owners active here, by partition.
  std::map<int, OwnerRef> active() {
    std::map<int, OwnerRef> owners;
    for (auto& [id, grant] : grants_) {
      if (grant.activated && !grant.retired) owners[grant.partition] = grant.ref;
    }
    return owners;
  }

  std::string describe() {
    std::string text = "  " + name_ + (alive_ ? "" : " dead") + (frozen_ ? " frozen" : "") +
                       " member '" + client_.member().id + "' epoch " +
                       std::to_string(client_.member().epoch.value()) +
                       (client_.waits_for_answer() ? " event unanswered" : "") + " room " +
                       std::to_string(engine_.room()) + " tasks " + std::to_string(tasks_.size());
    const Instant wake = engine_.next_wake();
    text += wake == never
                ? " wake never"
                : " wake in " + std::to_string((wake - now()).count() / 1'000'000) + " ms";
    for (auto& [id, grant] : grants_) {
      const auto shown = engine_.snapshot(grant.ref);
      if (!shown) continue;
      text += "\n    p" + std::to_string(grant.partition) + " grant " + std::to_string(id) +
              " state " + std::to_string(static_cast<int>(shown->state)) + " cause '" +
              std::string(shown->cause) + "' frontier " + std::to_string(shown->frontier.value()) +
              " committed " +
              (shown->committed ? std::to_string(shown->committed->value()) : std::string("none")) +
              " window " + std::to_string(shown->window_records) + " in flight " +
              std::to_string(shown->in_flight);
    }
    return text;
  }

  // ---- Host -------------------------------------------------------------------------------------

  void later(Duration wait, std::function<void()> what) override {
    cluster_.schedule.in(wait, [this, what = std::move(what)] {
      if (!alive_) return;
      if (frozen_) {
        inbox_.push_back(what);
      } else {
        what();
      }
    });
  }

  MessageHandle message() override {
    const MessageHandle handle = reinterpret_cast<MessageHandle>(++last_message_);  // NOLINT
    messages_.emplace(handle, false);
    return handle;
  }

  [[nodiscard]] std::size_t room() const override { return engine_.room(); }

  void take(const core::Input& input) override {
    if (!alive_) return;
    if (carrying_) {
      // A port never calls back from inside a call.
      later(Duration(0), [this, input] { take(input); });
      return;
    }
    std::visit([this](const auto& value) { note(value); }, input);
    step(input);
    carry_out();
    arm();
  }

  void committed(const CommitLine& line) override {
    PartitionLog& log = cluster_.logs[Cluster::index(line.partition)];
    // The start that `latest` means; C8 commits it before anything is delivered.
    if (options_.reset == core::ResetPolicy::latest && !log.committed) {
      log.excuse_below(line.offset.value());
    }
    log.committed = Committed{line.offset.value(), line.leader_epoch, line.metadata};
    if (log.truncated) return;
    const auto undone = log.first_undone();
    if (undone && line.offset.value() > *undone) {
      fail("LOST: offset " + std::to_string(line.offset.value()) + " of p" +
           std::to_string(Cluster::index(line.partition)) + " was committed over " +
           std::to_string(*undone) + ", which has no effect");
    }
  }

 private:
  enum class Place : std::uint8_t { waiting, out, doubt };
  struct Grant {
    OwnerRef ref;
    int partition = 0;
    Member member;
    bool activated = false, closed = false, retired = false, validated = false;
    bool log_went_back = false;
    std::optional<Fence> fence;
    std::vector<LaneProgress> lanes;
    std::int64_t frontier = -1;
    std::map<std::int64_t, Place> records;                  ///< delivered and not terminal
    std::map<std::uint64_t, std::set<std::int64_t>> order;  ///< the same by what keeps order
    std::map<std::uint64_t, int> runs;                      ///< out, by what keeps order
    std::map<std::int64_t, LogRecord> content;
  };
  struct Task {
    std::uint64_t id = 0;
    core::Run* run = nullptr;
    OwnerRef owner;
    std::uint64_t order = 0;
    bool started = false, ignores_stop = false, abandoned = false, closed = false;
    std::shared_ptr<bool> cancelled = std::make_shared<bool>(false);
    std::uint32_t in_unit = 0;
  };
  enum class Verdict : std::uint8_t {
    applied,
    already,
    superseded,
    moved,
    in_doubt,
    contention,
    unavailable,
    retired
  };

  [[nodiscard]] Instant now() const { return cluster_.now(); }
  [[noreturn]] void fail(const std::string& what) { broken(name_ + ": " + what); }

  void thaw() {
    frozen_ = false;
    while (alive_ && !frozen_ && !inbox_.empty()) {
      const auto what = std::move(inbox_.front());
      inbox_.pop_front();
      what();
    }
  }

  // ---- driving ----------------------------------------------------------------------------------

  void step(const core::Input& input) {
    engine_.step(input, now(), commands_);
    for (const OwnerRef ref : engine_.touched()) {
      const auto shown = engine_.snapshot(ref);
      const auto found = grants_.find(ref.grant.value());
      if (!shown || found == grants_.end() || !found->second.activated) continue;
      Grant& grant = found->second;
      if (shown->frontier.value() < grant.frontier) fail("F2 a frontier went back");
      grant.frontier = shown->frontier.value();
      if (!grant.records.empty() && grant.frontier > grant.records.begin()->first) {
        fail("F2 frontier " + std::to_string(grant.frontier) + " passed the incomplete offset " +
             std::to_string(grant.records.begin()->first) + " of p" +
             std::to_string(grant.partition));
      }
    }
  }

  void carry_out() {
    if (carrying_) return;
    carrying_ = true;
    while (!commands_.empty() && alive_) {
      std::swap(commands_, executing_);
      for (const core::Command& command : executing_.commands) {
        mix(command.index() + 1);
        std::visit([this](const auto& value) { on(value); }, command);
      }
      for (core::Run* run : executing_.dispatched) dispatch(*run);
      for (const MessageHandle message : executing_.freed) {
        mix(0xf);
        const auto found = messages_.find(message);
        if (found == messages_.end()) fail("a message was freed twice");
        if (found->second) fail("a message was freed while its handler had it");
        messages_.erase(found);
      }
      executing_.clear();
    }
    carrying_ = false;
  }

  /// The tick no later than the engine asks for, and as rarely as the runtime would.
  void arm() {
    if (!alive_) return;
    const Instant wake = engine_.next_wake();
    if (wake == never) return;
    const Instant at = std::max(wake, now() + milliseconds(1));
    if (armed_at_ > now() && armed_at_ <= at) return;
    armed_at_ = at;
    cluster_.schedule.at(at, [this, at] {
      if (alive_ && armed_at_ == at) later(Duration(0), [this] { tick(); });
    });
  }

  void tick() {
    armed_at_ = Instant::min();
    if (engine_.next_wake() <= now()) {
      const std::uint64_t before = *hash_;
      take(core::Tick{});
      // A tick that leads to nothing is allowed now and then, not all the time.
      if (*hash_ == before) {
        const std::int64_t second = now().time_since_epoch() / seconds(1);
        idle_ticks_ = second == idle_second_ ? idle_ticks_ + 1 : 1;
        idle_second_ = second;
        if (idle_ticks_ > 300)
          fail("busy loop: wakes in the past and nothing happens\n" + describe());
      }
    }
    arm();
  }

  void mix(std::uint64_t value) {
    *hash_ = (*hash_ ^ value) * 0x9e3779b97f4a7c15ULL;
    *hash_ ^= *hash_ >> 29;
  }

  // ---- inputs, noted before they are taken ------------------------------------------------------

  template <class Input>
  void note(const Input&) {}

  void note(const Rebalance& rebalance) {
    unanswered_[rebalance.id.value()] = {now(), frozen_for_};
    member_ = rebalance.member;
    if (rebalance.lost) ++membership_;
  }
  void note(const core::RecordsDelivered& delivered) {
    const auto found = grants_.find(delivered.owner.grant.value());
    if (found == grants_.end()) fail("delivered to nobody");
    Grant& grant = found->second;
    if (!grant.activated || grant.retired || grant.closed || grant.log_went_back) return;
    const auto& log = cluster_.logs[static_cast<std::size_t>(grant.partition)];
    for (const Delivered& record : delivered.records) {
      const std::int64_t offset = record.offset.value();
      if (!grant.lanes.empty()) {
        const LaneProgress& lane = grant.lanes[record.hash % grant.lanes.size()];
        if (lane.next_offset && record.offset < *lane.next_offset) continue;  // stored already
      }
      if (!grant.content.emplace(offset, *log.from(offset)).second) continue;  // handed over twice
      grant.records.emplace(offset, Place::waiting);
      if (ordered()) grant.order[order_of(record.hash)].insert(offset);
    }
  }
  void note(const CommitAnswer& answer) {
    if (!commit_out_ || commit_out_->id != answer.id) return;
    bool accepted = false;
    for (const CommitAnswer::Line& line : answer.lines) {
      if (line.error != BrokerError::none) continue;
      accepted = true;
      const auto found = grants_.find(line.owner.grant.value());
      if (found != grants_.end()) found->second.validated = true;
    }
    if (accepted && commit_out_->membership == membership_) {
      lease_at_ = std::max(lease_at_, commit_out_->sent);
    }
    commit_out_.reset();
  }
  void note(const Activated& answer) {
    for (const Activated::Item& item : answer.items) {
      const auto found = grants_.find(item.owner.grant.value());
      if (found != grants_.end() && options_.progress) found->second.lanes = item.lanes;
    }
  }
  void note(const LookedUp& found) {
    ++cluster_.seen["(looked up)"];
    const auto at = grants_.find(found.owner.grant.value());
    if (at == grants_.end() || found.error != StoreError::none || !found.next_offset) return;
    Grant& grant = at->second;
    std::vector<std::int64_t> done;
    for (auto& [offset, place] : grant.records) {
      if (place != Place::doubt || lane_of(grant, offset) != found.lane) continue;
      place = Place::waiting;
      grant.runs[found.lane] = 0;
      if (offset < found.next_offset->value()) done.push_back(offset);
    }
    for (const std::int64_t offset : done) finish(grant, offset);
  }

  // ---- order ------------------------------------------------------------------------------------

  [[nodiscard]] bool ordered() const { return options_.progress || options_.order != Order::none; }
  [[nodiscard]] std::uint64_t order_of(std::uint64_t hash) const {
    if (options_.progress) return hash % options_.lanes;
    return options_.order == Order::partition ? 0 : hash;
  }
  [[nodiscard]] std::uint16_t lane_of(const Grant& grant, std::int64_t offset) const {
    return static_cast<std::uint16_t>(grant.content.at(offset).hash % options_.lanes);
  }
  void finish(Grant& grant, std::int64_t offset) {
    grant.records.erase(offset);
    if (ordered()) grant.order[order_of(grant.content.at(offset).hash)].erase(offset);
  }

  // ---- commands: source -------------------------------------------------------------------------

  void on(const core::OpenSource&) {
    ++membership_;
    lease_at_ = Instant::min();
    commit_out_.reset();
    if (cluster_.trouble_now(3)) {
      later(Duration(0), [this] { take(core::OpenFailed{"no", true}); });
    } else {
      later(Duration(0), [this] { client_.start(); });
    }
  }
  void on(const core::CloseSource&) {
    if (!unanswered_.empty()) fail("R5c closed with a revoke pending");
    client_.close();
  }
  void on(const core::AbandonSource&) { client_.abandon(); }

  void check_answer(RebalanceId id) {
    mix(id.value());
    const auto found = unanswered_.find(id.value());
    if (found == unanswered_.end()) fail("R5 a rebalance was answered twice");
    const Duration most = options_.drain_budget + options_.commit_slice + seconds(1) +
                          (frozen_for_ - found->second.second);
    if (now() - found->second.first > most && !stopping()) fail("R2 the answer came too late");
    unanswered_.erase(found);
  }
  void on(const core::AnswerAssign& answer) {
    check_answer(answer.id);
    for (const GrantedPartition& granted : answer.granted) {
      if (granted.owner.grant == GrantId()) continue;
      add_grant(granted.owner, granted.partition);
    }
    static_cast<void>(client_.answer_assign(answer));
  }
  void on(const core::AnswerRevoke& answer) {
    check_answer(answer.id);
    for (auto& [id, grant] : grants_) {
      const bool named = std::find(answer.revoked.begin(), answer.revoked.end(),
                                   Cluster::partition(grant.partition)) != answer.revoked.end();
      const auto shown = engine_.snapshot(grant.ref);
      if (named && shown && shown->state != OwnerState::retired && granted_before(id, answer)) {
        fail("R5 released before it retired");
      }
    }
    static_cast<void>(client_.answer_revoke(answer));
  }
  /// A grant of a later assign is no business of this answer.
  bool granted_before(std::uint64_t, const core::AnswerRevoke& answer) {
    return unanswered_.empty() || unanswered_.begin()->first > answer.id.value();
  }
  Grant& add_grant(OwnerRef ref, const TopicPartition& partition) {
    Grant& grant = grants_[ref.grant.value()];
    grant.ref = ref;
    grant.partition = static_cast<int>(Cluster::index(partition));
    grant.member = member_;
    return grant;
  }
  void on(const core::StartFetch& start) {
    mix(static_cast<std::uint64_t>(start.start.offset.value()));
    Grant& grant = known(start.start.owner);
    if (!grant.activated || grant.retired) fail("O6 fetching began without an active owner");
    client_.start_fetch(start.start);
  }
  void on(const core::SetFlow& flow) { client_.set_flow(flow.owner, flow.open); }
  void on(const core::ForgetOwner& forget) {
    const auto found = grants_.find(forget.owner.grant.value());
    const auto shown = engine_.snapshot(forget.owner);
    const bool retired = !shown || shown->state == OwnerState::retired;
    if (found != grants_.end()) {
      if (found->second.retired) fail("O3 an owner retired twice");
      found->second.retired = retired;
      found->second.log_went_back = !retired;
    }
    client_.forget(forget.owner);
  }

  void on(const core::SendCommit& commit) {
    if (commit_out_ && now() - commit_out_->sent < cluster_.session + cluster_.socket_timeout) {
      fail("C1 a second commit while one is outstanding");
    }
    commit_out_ = CommitOut{commit.id, now(), membership_};
    if (commit.lines.empty()) fail("C5 an empty commit");
    for (const CommitLine& line : commit.lines) {
      mix(static_cast<std::uint64_t>(line.offset.value()));
      Grant& grant = known(line.owner);
      if (grant.retired) fail("C5 a commit for a retired owner");
      if (grant.log_went_back) fail("F8 a commit though the log went back");
      if (!grant.records.empty() && line.offset.value() > grant.records.begin()->first) {
        fail("C5 a commit above an incomplete record");
      }
      const auto shown = engine_.snapshot(line.owner);
      if (shown && shown->state == OwnerState::frozen) {
        const Member member = client_.member();
        if (member.id != grant.member.id || member.epoch.value() < grant.member.epoch.value()) {
          fail("R5b a last commit as another member");
        }
      }
      if (!options_.progress) continue;
      for (const StoreRows::Lane& lane : store_.rows(domain(grant.partition)).lanes) {
        if (lane.next && line.offset > *lane.next) {
          fail("a commit of " + std::to_string(line.offset.value()) +
               " above what the store has, " + std::to_string(lane.next->value()));
        }
      }
    }
    lines_sent_ += commit.lines.size();
    client_.commit(commit);
  }
  void on(const core::ReadCommitted& read) {
    if (commit_out_ && now() - commit_out_->sent < cluster_.session + cluster_.socket_timeout) {
      fail("F4 committed offsets read while a commit is outstanding");
    }
    client_.read(read);
  }
  void on(const core::ReadTopics& read) { client_.read(read); }
  void on(const core::ReadLogEnds& read) { client_.read(read); }
  void on(const core::ReadMember&) { step(core::MemberRead{client_.member()}); }

  // ---- commands: store --------------------------------------------------------------------------

  [[nodiscard]] Domain domain(int p) const {
    return {options_.scope, "c", cluster_.topic_id, Partition(p)};
  }

  void on(const Reserve& request) {
    cluster_.schedule.in(cluster_.trip(), [this, request] {
      Reserved answer{request.id, {}};
      for (const Reserve::Item& item : request.items) {
        if (cluster_.store_away() || cluster_.trouble_now()) {
          answer.items.push_back({item.owner, StoreError::unavailable, "away", {}, {}});
          continue;
        }
        Reserved::Item line = store_.reserve(item);
        if (cluster_.trouble_now()) line = {item.owner, StoreError::in_doubt, "lost", {}, {}};
        answer.items.push_back(std::move(line));
      }
      later(cluster_.trip(), [this, answer] { take(answer); });
    });
  }

  void on(const Activate& request) {
    for (const Activate::Item& item : request.items) {
      mix(static_cast<std::uint64_t>(item.fence.token.value()));
      if (!known(item.owner).validated) fail("T3 activated without an accepted commit (T2)");
    }
    const auto answer = std::make_shared<Activated>(Activated{request.id, {}});
    answer->items.resize(request.items.size());
    const auto left = std::make_shared<std::size_t>(request.items.size());
    for (std::size_t i = 0; i < request.items.size(); ++i) {
      cluster_.schedule.in(cluster_.trip(), [this, item = request.items[i], i, answer, left] {
        activate(item, i, answer, left);
      });
    }
  }
  void activate(const Activate::Item& item, std::size_t i, const std::shared_ptr<Activated>& answer,
                const std::shared_ptr<std::size_t>& left) {
    const Instant locked = StoreRows::locked_until(store_.rows(item.domain));
    if (locked > now()) {  // waits for in-flight advances
      cluster_.schedule.at(locked, [=, this] { activate(item, i, answer, left); });
      return;
    }
    Activated::Item& line = answer->items[i];
    line.owner = item.owner;
    if (cluster_.store_away() || cluster_.trouble_now()) {
      line.error = StoreError::unavailable;
    } else if (cluster_.trouble_now()) {
      line.error = StoreError::contention;
    } else {
      line = store_.activate(item);
      if (cluster_.trouble_now()) {
        line = {};
        line.owner = item.owner;
        line.error = StoreError::in_doubt;
      }
    }
    if (--*left == 0) later(cluster_.trip(), [this, answer] { take(*answer); });
  }

  void on(const AdvanceIdle& request) {
    cluster_.schedule.in(cluster_.trip(), [this, request] { advance(request); });
  }
  void advance(const AdvanceIdle& request) {
    const Instant locked = StoreRows::locked_until(store_.rows(request.domain));
    if (locked > now()) {
      cluster_.schedule.at(locked, [this, request] { advance(request); });
      return;
    }
    IdleAdvanced answer{request.id, request.owner, StoreError::none, {}};
    if (cluster_.store_away()) {
      answer.error = StoreError::unavailable;
    } else if (cluster_.trouble_now()) {
      answer.error = StoreError::contention;
    } else if (cluster_.trouble_now()) {
      answer.error = StoreError::in_doubt;  // not applied
    } else {
      answer.error = store_.advance(request);
      if (answer.error == StoreError::moved) fail("an idle lane is not where its owner left it");
      if (cluster_.trouble_now()) answer.error = StoreError::in_doubt;  // applied
    }
    later(cluster_.trip(), [this, answer] { take(answer); });
  }

  void on(const Lookup& request) {
    cluster_.schedule.in(cluster_.trip(), [this, request] {
      LookedUp answer{request.id, request.owner, request.lane, StoreError::unavailable, {}, {}};
      if (!cluster_.store_away() && !cluster_.trouble_now()) answer = store_.look_up(request);
      later(cluster_.trip(), [this, answer] { take(answer); });
    });
  }

  void on(const core::CancelUnits& cancel) {
    for (auto& [id, task] : tasks_) {
      if (task.owner == cancel.owner) *task.cancelled = true;
    }
  }

  // ---- commands: owners -------------------------------------------------------------------------

  Grant& known(OwnerRef owner) {
    const auto found = grants_.find(owner.grant.value());
    if (found == grants_.end()) fail("O1 an owner nobody was told of");
    return found->second;
  }

  void on(const core::OwnerActivated& activated) {
    Grant& grant = grants_.contains(activated.owner.grant.value())
                       ? known(activated.owner)
                       : add_grant(activated.owner, activated.partition);  // T8
    grant.member = activated.member;
    if (grant.retired) fail("O3 a retired owner became active");
    if (options_.fence && !grant.validated) fail("T2 active without an accepted commit");
    if (options_.fence != activated.fence.has_value()) fail("O2 an owner without its fence");
    grant.activated = true;
    grant.fence = activated.fence;
    grant.frontier = activated.start_offset.value();
    if (activated.start_source == StartSource::reset_policy) {
      cluster_.logs[static_cast<std::size_t>(grant.partition)].excuse_below(
          activated.start_offset.value());
    }
  }
  void on(const core::CloseDispatch& close) {
    known(close.owner).closed = true;
    std::vector<std::uint64_t> reclaimed;
    for (const std::uint64_t id : queue_) {
      if (tasks_.at(id).owner == close.owner) reclaimed.push_back(id);
    }
    for (const std::uint64_t id : reclaimed) {
      std::erase(queue_, id);
      give_back(id);
    }
    for (auto& [id, task] : tasks_) {
      if (task.owner == close.owner) task.closed = true;
    }
  }
  void on(const core::FireStop& stop) {
    for (auto& [id, task] : tasks_) {
      if (task.owner != stop.owner || !task.started || task.ignores_stop) continue;
      later(cluster_.draw.time(milliseconds(1), milliseconds(30)),
            [this, which = task.id] { finish_task(which); });
    }
  }
  void on(const core::AbandonRuns& abandon) {
    for (auto& [id, task] : tasks_) {
      if (task.owner != abandon.owner || task.abandoned) continue;
      task.abandoned = true;
      if (task.started) --busy_;
    }
    start_tasks();
  }
  void on(const core::DropOwner& drop) {
    Grant& grant = known(drop.owner);
    if (!grant.retired) fail("O3 dropped before it retired");
    for (const auto& [id, task] : tasks_) {
      if (task.owner == drop.owner) fail("O5 dropped with a run out");
    }
    grants_.erase(drop.owner.grant.value());
  }
  void on(const core::Finished& finished) {
    mix(static_cast<std::uint64_t>(finished.reason));
    switch (finished.reason) {
      case core::Finished::Reason::fenced:
      case core::Finished::Reason::fatal:
      case core::Finished::Reason::config:
        fail("ended without a cause: " + finished.message);
      default:
        break;
    }
    if (stop_until_ != never && now() > stop_until_) fail("R10 the shutdown took too long");
    if (!unanswered_.empty()) fail("R5 ended with a rebalance unanswered");
    const core::EngineTotals& totals = engine_.totals();
    if (totals.commits_accepted + totals.commits_rejected + totals.commits_unresolved !=
        lines_sent_) {
      fail("C2 the outcome of a commit was not counted once");
    }
    std::size_t out = 0;
    for (const auto& [message, is_out] : messages_) out += is_out ? 1 : 0;
    // What this very step frees comes behind the command.
    if (messages_.size() != out + executing_.freed.size() + commands_.freed.size()) {
      fail("ended with messages nobody has: " + std::to_string(messages_.size()) + " kept, " +
           std::to_string(out) + " out");
    }
    alive_ = false;
  }
  void on(const core::Report& report) {
    mix(static_cast<std::uint64_t>(report.name));
    if (cluster_.show) show(report);
    ++cluster_.seen[traits(report.name).name];
    if (report.name == EventName::owner_granted && report.owner) {
      add_grant(*report.owner, {report.topic, report.partition});
    }
    if (report.name == EventName::record_parked) parked_ = true;
    if (report.name == EventName::commit_unresolved && report.fields.size() > 1) {
      const auto* reason = std::get_if<std::string>(&report.fields[1].value);
      if (reason != nullptr && *reason == "not_sent") ++lines_sent_;
    }
    if (report.name == EventName::effect_refused &&
        std::get<std::string>(report.fields.front().value) == "moved") {
      fail("T4 a lane moved under its owner's own token and stops for good");
    }
    if (report.name == EventName::app_draining && stop_until_ == never) {
      stop_until_ = now() + options_.shutdown_budget + options_.commit_slice +
                    options_.close_limit + 2 * cluster_.heartbeat + seconds(1);
    }
  }

  void show(const core::Report& report) {
    std::cout << (now().time_since_epoch() - std::chrono::hours(1)).count() / 1'000'000 << " "
              << name_ << " " << traits(report.name).name;
    if (report.owner) {
      std::cout << " p" << report.partition.value() << " grant " << report.owner->grant.value();
    }
    for (const auto& field : report.fields) {
      std::cout << " " << field.key << "=";
      std::visit([](const auto& value) { std::cout << value; }, field.value);
    }
    std::cout << "\n";
  }

  // ---- workers ----------------------------------------------------------------------------------

  void dispatch(core::Run& run) {
    ++cluster_.seen["(run)"];
    Grant& grant = known(run.owner);
    if (!grant.activated) fail("O6 dispatched before the owner was active");
    if (grant.retired) fail("O3 dispatched for a retired owner");
    if (run.fence != grant.fence) fail("O2 a run with another fence");
    Task task;
    task.id = ++last_task_;
    task.run = &run;
    task.owner = run.owner;
    task.order = ordered() ? order_of(content(grant, run.records.front()).hash) : 0;
    if (ordered() && ++grant.runs[task.order] != 1) fail("two runs of one lane at a time");
    if (options_.async && run.records.size() != 1) fail("an async run of several records");
    for (const core::RunRecord& record : run.records) {
      const std::int64_t offset = record.offset.value();
      mix(static_cast<std::uint64_t>(offset));
      const auto found = grant.records.find(offset);
      if (found == grant.records.end())
        fail("offset " + std::to_string(offset) + " of p" + std::to_string(grant.partition) +
             " dispatched though it is done");
      if (found->second != Place::waiting) fail("O5 a record dispatched twice");
      found->second = Place::out;
      const auto message = messages_.find(record.message);
      if (message == messages_.end()) fail("a freed message was dispatched");
      message->second = true;
    }
    if (ordered()) {
      auto expected = grant.order[task.order].begin();
      for (const core::RunRecord& record : run.records) {
        if (*expected++ != record.offset.value()) fail("order: a record overtook an earlier one");
      }
    }
    if (grant.closed) {
      // The gate: R1 was decided in the same step.
      tasks_.emplace(task.id, task);
      give_back(task.id);
      return;
    }
    const auto shown = engine_.snapshot(run.owner);
    if (!shown) fail("O5 dispatched for an owner that is gone");
    if (shown->state != OwnerState::active) {
      // Decided inside the call that carries this out: the gate closes with the next commands.
      const auto& next = commands_.commands;
      const bool closes = std::any_of(next.begin(), next.end(), [&](const core::Command& command) {
        const auto* close = std::get_if<core::CloseDispatch>(&command);
        return close != nullptr && close->owner == run.owner;
      });
      if (!closes) fail("R1 dispatched while not active");
    }
    if (shown->suspect) fail("R8 dispatched while suspect");
    if (grant.log_went_back) fail("F8 dispatched though the log went back");
    if (now() - lease_at_ > cluster_.session) fail("R8 dispatched on an old lease");
    tasks_.emplace(task.id, task);
    queue_.push_back(task.id);
    start_tasks();
  }

  const LogRecord& content(Grant& grant, const core::RunRecord& record) {
    const auto found = grant.content.find(record.offset.value());
    if (found == grant.content.end()) fail("a record that was never delivered");
    return found->second;
  }

  void start_tasks() {
    while (!queue_.empty() && (options_.async || busy_ < options_.concurrency)) {
      Task& task = tasks_.at(queue_.front());
      queue_.pop_front();
      task.started = true;
      ++busy_;
      Duration takes = cluster_.draw.time(Duration(0), milliseconds(cluster_.healed ? 2 : 10));
      if (!cluster_.healed && cluster_.draw.chance(mood_.slow)) {
        takes = cluster_.draw.time(milliseconds(50), seconds(1));
      }
      if (!cluster_.healed && cluster_.draw.chance(mood_.hung)) {
        takes = cluster_.draw.time(seconds(3), seconds(15));
        task.ignores_stop = cluster_.draw.chance(60);
      }
      later(takes, [this, id = task.id] { finish_task(id); });
    }
  }

  void finish_task(std::uint64_t id) {
    const auto found = tasks_.find(id);
    if (found == tasks_.end() || found->second.in_unit != 0) return;
    Task& task = found->second;
    core::Run& run = *task.run;
    const auto size = static_cast<std::uint32_t>(run.records.size());
    // R1: a run in progress stops between two records.
    const auto most =
        task.closed && size > 1 ? static_cast<std::uint32_t>(1 + cluster_.draw.below(size)) : size;
    run.took = milliseconds(1);
    Grant& grant = known(task.owner);
    std::uint32_t done = 0;
    for (std::uint32_t i = 0; i < most; ++i) {
      core::RunRecord& record = run.records[i];
      record.result = core::RecordResult::done;
      if (!cluster_.healed) {
        if (cluster_.draw.chance(mood_.retry)) record.result = core::RecordResult::retry;
        if (cluster_.draw.chance(mood_.park)) record.result = core::RecordResult::park;
        if (cluster_.draw.chance(mood_.stop)) record.result = core::RecordResult::stop;
        if (cluster_.draw.chance(mood_.handler_down)) {
          record.result = core::RecordResult::again;
          run.again = core::AgainCause::handler_down;
        }
      }
      if (record.result == core::RecordResult::done) {
        if (i == done) ++done;
        if (!options_.progress) {
          cluster_.logs[static_cast<std::size_t>(grant.partition)].effect(content(grant, record),
                                                                          false, false, run.lane);
        }
      } else if (ordered()) {
        break;
      }
    }
    if (options_.fence && !options_.progress && fence_refuses(grant)) {
      run.store_error = StoreError::superseded;
      give_back(id);
      return;
    }
    if (!options_.progress || done == 0) {
      give_back(id);
      return;
    }
    task.in_unit = done;
    for (std::uint32_t i = 0; i < done; ++i) run.records[i].result = core::RecordResult::unstarted;
    Unit unit;
    unit.domain = domain(grant.partition);
    unit.fence = *run.fence;
    unit.lane = run.lane;
    unit.from = run.lane_from;
    unit.to = run.records[done - 1].offset.next();
    unit.cancelled = task.cancelled;
    for (std::uint32_t i = 0; i < done; ++i) unit.records.push_back(content(grant, run.records[i]));
    unit.answer = [this, id](Verdict verdict) {
      later(cluster_.trip(), [this, id, verdict] { unit_ended(id, verdict); });
    };
    cluster_.schedule.in(cluster_.trip(), [this, unit] { run_unit(unit); });
  }

  /// Kind idempotent, its receiver honours the fence.
  bool fence_refuses(const Grant& grant) {
    const auto& lanes = store_.rows(domain(grant.partition)).lanes;
    return !lanes.empty() && lanes.front().token > grant.fence->token && cluster_.draw.chance(50);
  }

  struct Unit {
    Domain domain;
    Fence fence;
    std::uint16_t lane = 0;
    Offset from, to;
    std::vector<LogRecord> records;
    std::shared_ptr<bool> cancelled;
    std::function<void(Verdict)> answer;
  };

  /// At the store: goes on whatever has become of the process.
  void run_unit(const Unit& unit) {
    StoreRows::Rows& rows = store_.rows(unit.domain);
    if (unit.lane < rows.lanes.size() && rows.lanes[unit.lane].locked_until > now()) {
      cluster_.schedule.at(rows.lanes[unit.lane].locked_until, [this, unit] { run_unit(unit); });
      return;
    }
    if (*unit.cancelled) {
      unit.answer(Verdict::retired);
    } else if (cluster_.store_away()) {
      unit.answer(Verdict::unavailable);
    } else if (cluster_.trouble_now(2)) {
      unit.answer(Verdict::contention);
    } else if (cluster_.trouble_now()) {
      unit.answer(Verdict::in_doubt);  // lost on the way there
    } else if (cluster_.trouble_now() && store_.check(unit.domain, unit.fence, unit.lane, unit.from,
                                                      unit.to) == StoreRows::Check::apply) {
      // The reply is lost now, the old session commits a while later and holds the row till then.
      const Duration wait = cluster_.draw.time(milliseconds(1), milliseconds(600));
      rows.lanes[unit.lane].locked_until = now() + wait;
      cluster_.schedule.in(wait, [this, unit] { static_cast<void>(apply(unit)); });
      unit.answer(Verdict::in_doubt);
    } else {
      const Verdict verdict = apply(unit);
      unit.answer(cluster_.trouble_now() ? Verdict::in_doubt : verdict);
    }
  }

  Verdict apply(const Unit& unit) {
    switch (store_.check(unit.domain, unit.fence, unit.lane, unit.from, unit.to)) {
      case StoreRows::Check::already:
        return Verdict::already;
      case StoreRows::Check::superseded:
        return Verdict::superseded;
      case StoreRows::Check::moved:
        return Verdict::moved;
      case StoreRows::Check::apply:
        break;
    }
    store_.rows(unit.domain).lanes[unit.lane].next = unit.to;
    auto& log = cluster_.logs[static_cast<std::size_t>(unit.domain.partition.value())];
    for (const LogRecord& record : unit.records) {
      log.effect(record, true, options_.order != Order::none, unit.lane);
    }
    return Verdict::applied;
  }

  void unit_ended(std::uint64_t id, Verdict verdict) {
    Task& task = tasks_.at(id);
    core::Run& run = *task.run;
    const std::uint32_t done = task.in_unit;
    const auto rest = [&](core::RecordResult result) {
      for (std::uint32_t i = 0; i < run.records.size(); ++i) {
        run.records[i].result = i == 0 ? result : core::RecordResult::unstarted;
      }
    };
    switch (verdict) {
      case Verdict::applied:
      case Verdict::already:
        for (std::uint32_t i = 0; i < done; ++i) {
          run.records[i].result =
              verdict == Verdict::applied ? core::RecordResult::done : core::RecordResult::replayed;
        }
        run.lane_reached = run.records[done - 1].offset.next();
        break;
      case Verdict::superseded:
        rest(core::RecordResult::unstarted);
        run.store_error = StoreError::superseded;
        break;
      case Verdict::moved:
        rest(core::RecordResult::unstarted);
        run.store_error = StoreError::moved;
        break;
      case Verdict::in_doubt:
        rest(core::RecordResult::unstarted);
        run.store_error = StoreError::in_doubt;
        break;
      case Verdict::contention:
        rest(core::RecordResult::again);
        run.again = core::AgainCause::contention;
        break;
      case Verdict::unavailable:
        rest(core::RecordResult::again);
        run.again = core::AgainCause::store_down;
        run.store_message = "away";
        break;
      case Verdict::retired:
        rest(core::RecordResult::unstarted);
        run.store_error = StoreError::retired;
        break;
    }
    give_back(id);
  }

  void give_back(std::uint64_t id) {
    const Task task = tasks_.at(id);
    tasks_.erase(id);
    if (task.started && !task.abandoned) --busy_;
    core::Run& run = *task.run;
    Grant& grant = known(task.owner);
    if (ordered()) --grant.runs[task.order];
    // A lane that has moved is looked up too: in this world nobody else moves it under its token.
    const bool doubt =
        run.store_error == StoreError::in_doubt || run.store_error == StoreError::moved;
    if (doubt && ordered()) ++grant.runs[task.order];  // the lane waits
    for (const core::RunRecord& record : run.records) {
      const auto message = messages_.find(record.message);
      if (message != messages_.end()) message->second = false;
      const auto found = grant.records.find(record.offset.value());
      if (found == grant.records.end()) continue;
      found->second = doubt ? Place::doubt : Place::waiting;
      if (record.result == core::RecordResult::done ||
          record.result == core::RecordResult::replayed) {
        finish(grant, record.offset.value());
      }
    }
    if (carrying_) {
      step(core::RunReturned{&run});
    } else {
      take(core::RunReturned{&run});
    }
    start_tasks();
  }

  struct CommitOut {
    CommitId id;
    Instant sent;
    std::uint64_t membership = 0;
  };

  Cluster& cluster_;
  StoreRows& store_;
  const core::EngineOptions options_;
  const Mood mood_;
  const std::string name_;
  std::uint64_t* hash_;
  core::Engine engine_;
  Client client_;
  core::Commands commands_, executing_;
  bool carrying_ = false;

  bool alive_ = true, frozen_ = false, parked_ = false;
  Duration frozen_for_{};
  Instant stop_until_ = never;
  std::deque<std::function<void()>> inbox_;
  Instant armed_at_ = Instant::min();
  std::int64_t idle_second_ = 0;
  int idle_ticks_ = 0;

  std::map<std::uint64_t, Grant> grants_;
  Member member_;
  std::map<std::uint64_t, std::pair<Instant, Duration>> unanswered_;
  std::optional<CommitOut> commit_out_;
  std::uint64_t lines_sent_ = 0;  ///< and those that R4 had to give up before
  std::uint64_t membership_ = 0;
  Instant lease_at_ = Instant::min();

  std::map<MessageHandle, bool> messages_;  ///< not freed; true: a run has it
  std::uintptr_t last_message_ = 0;
  std::map<std::uint64_t, Task> tasks_;
  std::deque<std::uint64_t> queue_;
  std::uint64_t last_task_ = 0;
  std::uint32_t busy_ = 0;
};

}  // namespace tenure::test
