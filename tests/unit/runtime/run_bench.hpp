// What an executor test needs around one run: an owner, messages, a store that answers as told.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/owner_cell.hpp"
#include "runtime/boot_time.hpp"
#include "runtime/executor.hpp"
#include "runtime/run_task.hpp"
#include "tenure/handler.hpp"

namespace tenure::runtime {

/// Messages are strings: the value of a record.
class TextReader final : public MessageReader {
 public:
  void view(std::span<const MessageHandle> messages, std::span<MessageView> views) const override {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& text = *static_cast<const std::string*>(messages[i]);
      views[i] = {Bytes(), Bytes(std::string_view(text)), -1};
    }
  }
  [[nodiscard]] std::vector<Header> headers(MessageHandle) const override {
    return {
        {"a", Bytes(std::string_view("1"))}, {"b", Bytes()}, {"a", Bytes(std::string_view("2"))}};
  }
};

struct FakeTransaction {
  static TransactionKind kind() {
    static constexpr int id = 0;
    return &id;
  }
  void execute(std::string text) {
    written.push_back(std::move(text));
    if (fail_on && written.back() == fail_on->first) failure = fail_on->second;
  }
  std::vector<std::string> written;
  std::optional<std::pair<std::string, UnitResult>> fail_on;
  std::optional<UnitResult> failure;
};

/// Keeps what was committed; answers commits with `answers` (then `applied`), at once or later.
class FakeStore final : public EffectStore {
 public:
  class Unit final : public EffectUnit {
   public:
    Unit(FakeStore& store, UnitKey key) : store_(store), key_(std::move(key)) {
      transaction_.fail_on = store.fail_on;
    }
    ~Unit() override {
      if (!ended_) ++store_.rolled_back;
    }
    void* transaction() override { return &transaction_; }
    [[nodiscard]] const UnitResult* failure() const override {
      return transaction_.failure ? &*transaction_.failure : nullptr;
    }
    void commit(Offset to, LeaderEpoch, std::function<void(UnitResult)> done) override {
      ended_ = true;
      UnitResult result;
      if (!store_.answers.empty()) {
        result = store_.answers.front();
        store_.answers.pop_front();
      }
      if (result.verdict == UnitVerdict::applied) {
        store_.committed.push_back(transaction_.written);
        store_.moves.emplace_back(key_.from, to);
      }
      if (store_.later) {
        store_.pending.emplace_back(std::move(done), result);
      } else {
        done(result);
      }
    }
    void roll_back() override {
      ended_ = true;
      ++store_.rolled_back;
    }

   private:
    FakeStore& store_;
    UnitKey key_;
    FakeTransaction transaction_;
    bool ended_ = false;
  };

  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] TransactionKind transaction_kind() const override {
    return FakeTransaction::kind();
  }
  Result<void> open(StoreSink&) override { return {}; }
  void submit(Reserve) override {}
  void submit(Activate) override {}
  void submit(AdvanceIdle) override {}
  void submit(Lookup) override {}
  std::unique_ptr<EffectUnit> open_unit(UnitKey key) override {
    ++opened;
    return std::make_unique<Unit>(*this, std::move(key));
  }
  void cancel(OwnerRef) override {}
  Result<void> still_there() override { return {}; }
  void close(Duration) override {}

  void answer_next() {
    auto [done, result] = std::move(pending.front());
    pending.pop_front();
    done(result);
  }

  std::optional<std::pair<std::string, UnitResult>> fail_on;
  std::deque<UnitResult> answers;
  bool later = false;
  std::deque<std::pair<std::function<void(UnitResult)>, UnitResult>> pending;
  std::vector<std::vector<std::string>> committed;
  std::vector<std::pair<Offset, Offset>> moves;
  int opened = 0;
  int rolled_back = 0;
};

/// Collects what comes back.
class Returns final : public RunReturn {
 public:
  void returned(RunTask& task) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    returned_.push_back(&task);
  }
  void resumed(RunTask& task) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    resumed_.push_back(&task);
  }
  std::size_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return returned_.size();
  }
  RunTask* take_resumed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (resumed_.empty()) return nullptr;
    RunTask* task = resumed_.back();
    resumed_.pop_back();
    return task;
  }
  std::vector<RunTask*> take_returned() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(returned_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<RunTask*> returned_;
  std::vector<RunTask*> resumed_;
};

/// Owner, messages and runs. Offsets of a run ascend by 10 from 100, so that gaps show.
class Bench {
 public:
  explicit Bench(Handler given) : handler(std::move(given)) {
    detail::OwnerCell::Facts facts;
    facts.owner = {0, GrantId(7)};
    facts.origin = {"orders", Partition(3), "c", Uuid{}, "billing", "scope", &reader};
    facts.member = {"m-1", Epoch(41), ""};
    facts.start_offset = Offset(100);
    facts.fence = Fence{Token(5), Uuid{}};
    auto cell = std::make_shared<detail::OwnerCell>(std::move(facts));
    Owner owner(cell);
    entry = std::make_shared<OwnerEntry>(OwnerEntry{cell, owner, &handler});
  }

  core::Run& make_run(std::vector<std::string> values) {
    runs.emplace_back();
    core::Run& run = runs.back();
    run.owner = entry->cell->facts().owner;
    run.lane = 2;
    run.lane_from = Offset(100);
    run.fence = entry->cell->facts().fence;
    std::int64_t offset = 100;
    for (std::string& value : values) {
      messages.push_back(std::move(value));
      core::RunRecord record;
      record.message = &messages.back();
      record.offset = Offset(offset);
      offset += 10;
      run.records.push_back(record);
    }
    return run;
  }

  RunTask& lend(core::Run& run, bool shared = false, bool completion = false) {
    return tasks.take(run, entry, returns, clock, shared, completion);
  }

  /// Executes until the run is back, as the workers would.
  core::Run& execute(const Executor& executor, core::Run& run) {
    RunTask* task = &lend(run);
    while (task != nullptr) {
      executor.execute(*task, scratch);
      task = returns->take_resumed();
    }
    return run;
  }

  void close() { entry->cell->close_dispatch(); }
  void retire() {
    core::OwnerSnapshot shown;
    shown.state = OwnerState::retired;
    shown.retired_reason = RetiredReason::lost;
    entry->cell->publish(shown);
  }

  TextReader reader;
  Handler handler;
  BootTime clock;
  std::shared_ptr<OwnerEntry> entry;
  std::deque<std::string> messages;
  std::deque<core::Run> runs;
  std::shared_ptr<Returns> returns = std::make_shared<Returns>();
  RunTaskPool tasks;
  Executor::Scratch scratch;
};

/// "done retry unstarted", for comparing at a glance.
inline std::string results(const core::Run& run) {
  std::string all;
  for (const core::RunRecord& record : run.records) {
    if (!all.empty()) all += ' ';
    switch (record.result) {
      case core::RecordResult::unstarted:
        all += "unstarted";
        break;
      case core::RecordResult::done:
        all += "done";
        break;
      case core::RecordResult::replayed:
        all += "replayed";
        break;
      case core::RecordResult::retry:
        all += "retry";
        break;
      case core::RecordResult::reject:
        all += "reject";
        break;
      case core::RecordResult::park:
        all += "park";
        break;
      case core::RecordResult::stop:
        all += "stop";
        break;
      case core::RecordResult::again:
        all += "again";
        break;
    }
  }
  return all;
}

}  // namespace tenure::runtime
