// The engine's parts in one object; its functions are spread by subject over engine*.cpp:
// engine.cpp (step, records, dispatch), engine_acquire.cpp (grant to active), engine_commit.cpp
// (slot, lease), engine_rebalance.cpp (revocation, drain, loss, shutdown).
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "core/commit_outcome.hpp"
#include "core/engine.hpp"
#include "core/partition_owner.hpp"
#include "core/random.hpp"
#include "core/retry_schedule.hpp"

namespace tenure::core {

inline constexpr Duration unchanged_commit_interval = std::chrono::hours(24);  // C9

struct Engine::Impl {
  explicit Impl(EngineOptions options);

  // ---- what the engine is doing --------------------------------------------------------------
  enum class Phase : std::uint8_t {
    opening,    ///< no client yet, or waiting to make a new one
    member,     ///< a client is open and subscribed
    rejoining,  ///< closing this client to join with a new one (R5b)
    closing,    ///< leaving for good
    finished,
  };

  /// Owners that end together: of one revoke, or of a shutdown.
  struct Drain {
    enum class Phase : std::uint8_t { running, advancing, checking, committing, done };
    std::optional<RebalanceId> answers;  ///< empty: shutdown
    std::vector<TopicPartition> partitions;
    std::vector<OwnerRef> owners;
    RetiredReason reason = RetiredReason::revoked;
    Phase phase = Phase::running;
    Instant began;
    Deadline deadline;         ///< end of the drain budget
    Instant stop_at;           ///< stop tokens fire: half the budget
    bool stop_fired = false;
    bool cut = false;          ///< the budget ended with work running
    Deadline commit_deadline;  ///< end of the commit slice
    Deadline advance_deadline; ///< no longer waits for idle advances: the rest is the commit's
    std::optional<CommitId> commit;
    Instant commit_not_before = Instant::min();
    bool resolved = true;      ///< every final commit was accepted or not needed
  };

  struct SlotLine {
    OwnerRef owner;
    TopicPartition partition;
    Offset offset;
    LeaderEpoch leader_epoch;
    bool validates = false;  ///< T2
    bool counted = false;    ///< its outcome was reported: its owner could not wait
  };
  struct Slot {
    CommitId id;
    Instant sent;
    Deadline expires;
    std::vector<SlotLine> lines;
    bool of_former_member = false;  ///< proves nothing about the member of now (R8)
  };

  struct PendingRead {
    enum class Kind : std::uint8_t { topics, committed, ends };
    ReadId id;
    Kind kind;
    Deadline expires;
    std::vector<OwnerRef> owners;
  };

  /// T8: an assigned partition whose owner was superseded waits for its next owner.
  struct Reacquire {
    TopicPartition partition;
    Protocol protocol;
    Instant at;
    std::uint32_t superseded_before;
  };

  EngineOptions options;
  EngineTotals totals;
  Random random;
  RetrySchedule retries;

  Phase phase = Phase::opening;
  Instant now;
  Commands* out = nullptr;  ///< of the step in progress

  TimesKnown times{std::chrono::seconds(45), std::chrono::seconds(3),
                        std::chrono::seconds(300), std::chrono::seconds(60)};
  Instant open_at = never;            ///< next try to open a client
  std::uint32_t open_failures = 0;
  Instant unreleased_since = never;   ///< R11: UNRELEASED_INSTANCE_ID
  bool joined = false;                ///< the first assign has come
  std::optional<Member> last_member;  ///< R5b
  Deadline close_deadline = never;

  std::vector<std::unique_ptr<PartitionOwner>> slots;
  std::vector<std::uint32_t> free_slots;
  std::uint64_t last_grant = 0;
  std::map<TopicPartition, OwnerRef> live;  ///< owners that have not retired
  std::vector<OwnerRef> acquiring;
  std::vector<OwnerRef> ready_list;         ///< owners with records to dispatch
  std::size_t ready_turn = 0;
  std::vector<OwnerRef> ended;              ///< retired, runs still out
  std::vector<Reacquire> reacquire;
  std::vector<OwnerRef> doubtful;           ///< whose look-up failed: again at doubt_at (E3)
  std::deque<Drain> drains;
  std::vector<OwnerRef> touched, touched_shown;

  std::vector<std::unique_ptr<Run>> runs;
  std::vector<Run*> free_runs;
  std::uint64_t runs_out = 0, records_out = 0;
  std::uint64_t abandoned_out = 0;
  double handler_cost_ns = 0;  ///< moving average of one record

  std::uint64_t ready_total = 0, unfinished_total = 0, bytes_total = 0;
  bool totals_full = false;
  std::vector<OwnerRef> starved, starved_before;  ///< wait for the totals to fall
  std::uint64_t starved_at_unfinished = 0, starved_at_bytes = 0;  ///< and were full at these

  std::optional<Slot> slot;
  std::uint64_t last_commit_id = 0;
  Instant commit_at = Instant::min();  ///< next periodic commit
  bool advancing = false;              ///< idle advances are out before a periodic commit
  Deadline advance_deadline = never;
  std::optional<CommitAnswer> commit_answer;  ///< waits for MemberRead
  bool member_asked = false;

  std::optional<Instant> lease_at;     ///< send time of the last accepted commit (R8)
  bool suspect = false;
  Instant suspect_since;

  /// Everything was lost by a commit's answer; the client's own event should follow.
  Instant orphaned_since = never;

  std::vector<PendingRead> reads;
  std::uint64_t last_read_id = 0, last_store_id = 0;
  bool store_down = false;
  Instant store_down_since;
  std::optional<Instant> contended_since;  ///< nothing has gone through at the store since

  bool pump_again = false;  ///< something began late in a pump that its first parts serve
  bool stopping = false;
  StopRequested::Cause stop_cause = StopRequested::Cause::asked;
  bool cut_short = false;
  std::optional<Finished> finish_with;  ///< what to end with once closed
  Instant no_partition_since = never;   ///< until_end with an empty assignment

  // ---- shared small parts (engine.cpp) -------------------------------------------------------
  void step(const Input& input);
  void pump();
  [[nodiscard]] Instant next_wake() const;
  /// until_end, and this member has nothing: is that all, or does an assignment follow?
  [[nodiscard]] bool waits_for_partitions() const;

  PartitionOwner* find(OwnerRef ref);
  [[nodiscard]] const PartitionOwner* find(OwnerRef ref) const;
  PartitionOwner* find_live(const TopicPartition& partition);
  PartitionOwner& create(const TopicPartition& partition, Protocol protocol, const Member& member,
                         std::uint32_t superseded_before);
  void touch(PartitionOwner& owner);
  void emit(Command command) { out->commands.push_back(std::move(command)); }
  void report(EventName name, std::vector<Report::Item> fields = {});
  void report(EventName name, const PartitionOwner& owner, std::vector<Report::Item> fields = {});
  /// Something an operator must see about one partition, for which there is no event of its own.
  void warn(const PartitionOwner& owner, std::string_view cause, std::string text);
  [[nodiscard]] std::vector<PartitionOwner*> live_owners();

  // ---- records (engine.cpp) ------------------------------------------------------------------
  void on(const Tick&) {}
  void on(const TimesKnown& known);
  void on(const RecordsDelivered& delivered);
  void on(const Reached& reached);
  void on(const RecordError& error);
  void on(const RunReturned& returned);
  void on(const LookedUp& found);
  void admit(PartitionOwner& owner);
  void hold(PartitionOwner& owner, const Run& run, const std::vector<Window::Held>& held);
  void park(PartitionOwner& owner, Offset offset, std::string_view reason);
  void finish_run(PartitionOwner& owner, Run& run);
  void recycle(Run* run);
  void doubt(PartitionOwner& owner, Run& run);
  void look_up(PartitionOwner& owner, Run& run);
  void update_flow(PartitionOwner& owner);
  void pump_starved();
  void pump_retries();
  void pump_doubt();
  void pump_dispatch();
  void note_store(bool up, std::string_view error);
  /// A lock that somebody holds for a moment is no news; one that stays is an absent store.
  void note_contention(std::string_view error);
  /// Runs `change` on the owner's window and keeps the totals right.
  template <class Change>
  auto with_window(PartitionOwner& owner, Change change);

  // ---- grant to active (engine_acquire.cpp) --------------------------------------------------
  void grant(const Rebalance& rebalance);
  void on(const TopicsRead& read);
  void on(const CommittedRead& read);
  void on(const LogEndsRead& read);
  void on(const Reserved& answer);
  void on(const Activated& answer);
  void pump_acquire();
  void resolve(PartitionOwner& owner);
  void activate(PartitionOwner& owner);
  void stumble(PartitionOwner& owner);  ///< a step failed: again after backoff
  std::optional<PendingRead> take_read(ReadId id);
  void went_back(PartitionOwner& owner, Offset wanted, Offset end);
  void relocated(PartitionOwner& owner, const LogEnds& ends);

  // ---- commits and lease (engine_commit.cpp) -------------------------------------------------
  void on(const CommitAnswer& answer);
  void on(const MemberRead& read);
  void on(const IdleAdvanced& answer);
  void pump_commits();
  void settle_answer(const Member& member);
  void expire_slot();
  [[nodiscard]] Offset committable(const PartitionOwner& owner) const;
  [[nodiscard]] bool wants_commit(const PartitionOwner& owner) const;
  [[nodiscard]] bool wants_advance(const PartitionOwner& owner) const;
  [[nodiscard]] CommitLine line_for(const PartitionOwner& owner, Offset offset);
  bool ask_advance(PartitionOwner& owner);
  void send(std::vector<CommitLine> lines, std::vector<SlotLine> slot_lines);
  void count(PartitionOwner* owner, const SlotLine& line, CommitOutcome outcome,
             std::string_view reason);
  void check_lease();
  [[nodiscard]] bool lease_fresh() const;

  // ---- revocation, loss, shutdown (engine_rebalance.cpp) -------------------------------------
  void on(const Rebalance& rebalance);
  void on(const ClientError& error);
  void on(const Closed&);
  void on(const OpenFailed& failed);
  void on(const StopRequested& request);
  void on(const AbandonRequested&);
  [[nodiscard]] bool membership_broken(const Member& member) const;
  [[nodiscard]] Duration drain_budget() const;
  void begin_drain(PartitionOwner& owner, Deadline deadline);
  void drop_queued(PartitionOwner& owner);
  void pump_drains();
  void freeze(Drain& drain);
  [[nodiscard]] std::optional<Offset> last_commit(const PartitionOwner& owner) const;
  void not_sent(const Drain& drain);
  void finish_drain(Drain& drain);
  void retire(PartitionOwner& owner, RetiredReason reason);
  void lose_all(std::string_view cause, RetiredReason reason);
  void forget_member();
  void supersede(PartitionOwner& owner, std::string_view step);
  void rejoin(std::string_view why);
  void open_again(Duration wait);
  void begin_stop();
  void pump_stop();
  void end(Finished finished);
  void pump_ended();
};

template <class Change>
auto Engine::Impl::with_window(PartitionOwner& owner, Change change) {
  Window& window = *owner.window;
  const std::uint64_t ready = window.ready();
  const std::uint64_t unfinished = window.unfinished();
  const std::uint64_t bytes = window.bytes();
  struct Totals {
    Impl& impl;
    PartitionOwner& owner;
    std::uint64_t ready, unfinished, bytes;
    ~Totals() {
      const Window& after = *owner.window;
      impl.ready_total += after.ready() - ready;
      impl.unfinished_total += after.unfinished() - unfinished;
      impl.bytes_total += after.bytes() - bytes;
      if (after.ready() > 0 && !owner.in_ready_list && owner.state == OwnerState::active) {
        owner.in_ready_list = true;
        impl.ready_list.push_back(owner.ref);
      }
      impl.touch(owner);
    }
  } keep{*this, owner, ready, unfinished, bytes};
  return change(window);
}

}  // namespace tenure::core
