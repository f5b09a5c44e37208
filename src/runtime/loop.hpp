// The loop: one thread between the outside (source, store, workers, requests) and the engine.
//
// Role: feeds the engine with what happened and carries out its commands in their order; shows
//   owners to handlers; reports events; parks in one place.
// Owns: engine, mailbox, owner entries, tasks, workers, stop notifier; shares the ports.
// Threads: run() and everything private on the thread that calls run(). returned(), resumed(),
//   request_stop(), abandon(), status() on any. After run() the thread that brings a late run
//   back takes the loop's place for that moment, one at a time (late_).
// Lifecycle: shared: workers, asynchronous commits and Completions hold it, so that what comes
//   late finds engine and source in place. run() once.
// Promises: never runs user code, never waits for it (R10); sleeps at most a second; does not
//   spin: a turn without work ends in the mailbox.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/mailbox.hpp"
#include "base/mutex.hpp"
#include "core/engine.hpp"
#include "runtime/executor.hpp"
#include "runtime/run_task.hpp"
#include "runtime/stop_notifier.hpp"
#include "runtime/topic_pattern.hpp"
#include "runtime/worker_pool.hpp"
#include "tenure/runtime.hpp"

namespace tenure::runtime {

class Loop final : public RunReturn,
                   public std::enable_shared_from_this<Loop>,
                   private SourceSink,
                   private StoreSink {
 public:
  struct Setup {
    core::EngineOptions engine;
    Executor::Options executor;
    std::vector<Route> routes;
    Ports ports;
    std::chrono::milliseconds shutdown_budget{};
  };

  explicit Loop(Setup setup);
  ~Loop() override;

  Result<void> open_store();
  void close_store();

  StopReport run(const std::stop_token& token);

  void request_stop(Duration budget);
  void abandon();
  Status status();

  // RunReturn.
  void returned(RunTask& task) noexcept override;
  void resumed(RunTask& task) noexcept override;

 private:
  using Post = Mailbox<RunTask, core::Input>;

  /// What the loop knows of one owner, by its slot.
  struct Seat {
    OwnerRef owner;
    TopicPartition partition;
    std::shared_ptr<OwnerEntry> entry;  ///< from its activation on
    bool touched = false;
  };

  [[nodiscard]] bool under_load() const;
  bool turn();
  void sleep(bool collected);
  void collect();
  void note_stop();
  void step(const core::Input& input);
  void carry_out();
  void publish();
  void settle_late();
  void answer_status();
  void give_back(RunTask& task);
  void dispatch(std::span<core::Run* const> runs);
  const Handler& handler_for(const std::string& topic) const;
  Seat* seat(OwnerRef owner);
  Seat& take_seat(OwnerRef owner, TopicPartition partition);
  void show_retired(const core::Report& retired);
  void emit(EventName name, Level level, std::span<const Field> fields,
            const core::Report* about_owner);

  // Commands.
  void on(core::OpenSource&);
  void on(core::CloseSource&);
  void on(core::AbandonSource&);
  void on(core::AnswerAssign&);
  void on(core::AnswerRevoke&);
  void on(core::StartFetch&);
  void on(core::SetFlow&);
  void on(core::ForgetOwner&);
  void on(core::SendCommit&);
  void on(core::ReadCommitted&);
  void on(core::ReadTopics&);
  void on(core::ReadLogEnds&);
  void on(core::ReadMember&);
  void on(Reserve&);
  void on(Activate&);
  void on(AdvanceIdle&);
  void on(Lookup&);
  void on(core::CancelUnits&);
  void on(core::OwnerActivated&);
  void on(core::CloseDispatch&);
  void on(core::FireStop&);
  void on(core::AbandonRuns&);
  void on(core::DropOwner&);
  void on(core::Finished&);
  void on(core::Report&);

  // SourceSink.
  void rebalance(const Rebalance& rebalance) override;
  void delivered(OwnerRef owner, std::span<const Delivered> records) override;
  void reached(const Reached& reached) override;
  void record_error(const RecordError& error) override;
  void commit_answered(const CommitAnswer& answer) override;
  void committed_read(const CommittedRead& read) override;
  void topics_read(const TopicsRead& read) override;
  void log_ends_read(const LogEndsRead& read) override;
  void client_error(const ClientError& error) override;
  void times(const MembershipTimes& times) override;
  void closed() override;
  void client_log(Level level, std::string_view facility, std::string_view text) override;

  // StoreSink.
  void reserved(Reserved answer) override;
  void activated(Activated answer) override;
  void idle_advanced(IdleAdvanced answer) override;
  void looked_up(LookedUp answer) override;

  // Constant after construction.
  const Setup setup_;
  const std::shared_ptr<Source> source_;
  const std::shared_ptr<EffectStore> store_;
  const std::shared_ptr<const Clock> clock_;
  const Executor executor_;
  const std::vector<std::optional<TopicPattern>> patterns_;  ///< of setup_.routes
  const bool async_;
  std::vector<bool> wants_records_;

  /// Apart from the Loop, since the source keeps a waker for as long as it likes.
  const std::shared_ptr<Post> post_ = std::make_shared<Post>();

  // The loop thread's; after its end of whoever holds late_.
  core::Engine engine_;
  core::Commands commands_;
  core::Commands executing_;
  std::vector<core::Input> messages_;
  std::vector<Seat> seats_;
  std::vector<OwnerRef> touched_;
  RunTaskPool tasks_;
  std::vector<RunTask*> batch_;
  std::vector<Field> fields_;
  Instant now_;
  bool source_open_ = false;
  std::uint64_t runs_out_ = 0;     ///< tasks lent and not come back
  bool may_have_records_ = false;  ///< something was started or reopened since the last poll
  std::optional<core::Finished> finished_;
  Member member_;
  std::uint64_t last_seq_ = 0;
  std::optional<core::EngineTotals> totals_at_stop_;
  std::optional<Instant> stop_at_;

  StopNotifier notifier_;
  WorkerPool workers_;

  /// Async runs put into the mailbox and not taken; relaxed: only decides who rings.
  std::atomic<std::uint32_t> uncollected_{0};
  std::atomic<bool> asked_to_stop_{false};
  std::atomic<bool> store_open_{false};
  std::atomic<bool> running_{false};
  /// Set when nobody runs turns any more. seq_cst, as the mailbox: a run put before this is seen
  /// by the last look, one put after sees it.
  std::atomic<bool> over_{false};
  Mutex late_;

  Mutex status_mutex_;
  Condition status_answered_;
  std::uint64_t status_asked_ TENURE_GUARDED_BY(status_mutex_) = 0;
  std::uint64_t status_given_ TENURE_GUARDED_BY(status_mutex_) = 0;
  std::atomic<bool> status_wanted_{false};
  Status status_ TENURE_GUARDED_BY(status_mutex_);
};

}  // namespace tenure::runtime
