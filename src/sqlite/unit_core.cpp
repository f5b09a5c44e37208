#include "sqlite/unit_core.hpp"

#include <sqlite3.h>

#include <utility>

#include "sqlite/fence.hpp"

namespace tenure::sqlite {

UnitCore::UnitCore(Writer& writer, const Options& options, UnitKey key,
                   std::function<void()> opened)
    : writer_(writer), options_(options), key_(std::move(key)), opened_(std::move(opened)) {}

void UnitCore::fail_with(UnitResult result) {
  if (!failure_) failure_ = std::move(result);
}

UnitResult UnitCore::end_result() const {
  if (stage_.load() == Stage::timed_out) {
    return {UnitVerdict::timeout, "the transaction stayed open longer than " +
                                      std::to_string(options_.unit_timeout.count()) +
                                      " ms and was rolled back"};
  }
  return {UnitVerdict::retired, "the owner has ended; the transaction was rolled back"};
}

bool UnitCore::begin() {
  const Patience patience{std::chrono::steady_clock::now() + options_.busy_timeout, &given_up_};
  Problem problem;
  Connection* connection = writer_.enter(waiter_, patience, options_.synchronous, problem);
  if (connection != nullptr && !connection->run_own("BEGIN IMMEDIATE")) {
    problem = connection->problem();
    writer_.leave(waiter_);
    connection = nullptr;
  }
  if (connection == nullptr) {
    fail_with(ended() ? end_result() : UnitResult{problem.verdict, problem.message});
    return false;
  }
  connection->watch_ends();
  connection_ = connection;
  open_since_.store(std::chrono::steady_clock::now());
  opened_();
  return true;
}

bool UnitCore::run(std::string_view sql, std::span<const Value> values, Rows* rows) {
  const Lock lock(mutex_);
  if (ended() || closed_) {
    fail_with(end_result());
    return false;
  }
  if (failure_) return false;
  if (connection_ == nullptr && !begin()) return false;
  const bool good = connection_->run(sql, values, rows);
  if (ended()) {
    fail_with(end_result());
    finish(true);
    return false;
  }
  if (good) return true;
  fail_with({connection_->problem().verdict, connection_->problem().message});
  // Nothing more can become of it: let others write.
  finish(true);
  return false;
}

::sqlite3* UnitCore::native() {
  const Lock lock(mutex_);
  if (ended() || closed_) {
    fail_with(end_result());
    return nullptr;
  }
  if (failure_) return nullptr;
  if (connection_ == nullptr && !begin()) return nullptr;
  native_given_ = true;
  return connection_->handle();
}

Error UnitCore::error() {
  const Lock lock(mutex_);
  const UnitResult result = failure_ ? *failure_ : end_result();
  Error error;
  error.message = result.message;
  switch (result.verdict) {
    case UnitVerdict::retired:
    case UnitVerdict::timeout:
      error.code = Code::retired;
      break;
    case UnitVerdict::contention:
    case UnitVerdict::unavailable:
      error.code = Code::unavailable;
      error.retriable = true;
      break;
    default:
      error.code = Code::refused;
  }
  return error;
}

const UnitResult* UnitCore::failure() {
  const Lock lock(mutex_);
  if (ended()) fail_with(end_result());
  return failure_ ? &*failure_ : nullptr;
}

UnitResult UnitCore::commit(Offset to, LeaderEpoch leader_epoch) {
  const Lock lock(mutex_);
  UnitResult result;
  if (closed_) return {UnitVerdict::retired, "the unit has ended"};
  if (ended()) {
    result = end_result();
  } else if (failure_) {
    result = *failure_;
  } else if (connection_ == nullptr && !begin()) {
    result = *failure_;
  } else {
    result = move_and_commit(to, leader_epoch);
  }
  closed_ = true;
  finish(false);
  if (result.verdict != UnitVerdict::applied) fail_with(result);
  return result;
}

UnitResult UnitCore::move_and_commit(Offset to, LeaderEpoch leader_epoch) {
  Connection& connection = *connection_;
  bool guarded = true;
  if (native_given_) {
    connection.finish_statements();
    guarded = connection.guard();
  }
  if (!guarded || connection.ended_by_hand() || !connection.in_transaction()) {
    // Through native() only. SQLite itself ends a transaction after a full disk and the like.
    const int code = sqlite3_extended_errcode(connection.handle());
    const UnitVerdict verdict = verdict_of(code, true);
    const bool rolled_back = !connection.in_transaction();
    if (rolled_back &&
        (verdict == UnitVerdict::unavailable || verdict == UnitVerdict::contention)) {
      return {verdict, connection.describe("the transaction was rolled back", code)};
    }
    tampered_ = true;
    return {UnitVerdict::misuse,
            connection.path() + ": the handler ended the transaction itself through native()"};
  }
  UnitResult result =
      advance_lane(connection, key_.domain, key_.fence, key_.lane, key_.from, to, leader_epoch);
  if (result.verdict != UnitVerdict::applied) return ended() ? end_result() : result;
  if (auto there = writer_.still_there(); !there) {
    return {UnitVerdict::unavailable, there.error().message + "; " + there.error().hint};
  }
  Stage running = Stage::running;
  if (!stage_.compare_exchange_strong(running, Stage::committing)) return end_result();
  switch (tenure::sqlite::commit(connection)) {
    case CommitEnd::committed:
      return result;
    case CommitEnd::rolled_back:
      return {connection.problem().verdict, connection.problem().message};
    case CommitEnd::in_doubt:
      break;
  }
  result = {UnitVerdict::in_doubt, connection.problem().message};
  // What this connection believes of the file is in doubt as well (E3: a new connection).
  connection_ = nullptr;
  open_since_.store(SteadyTime::min());
  std::unique_ptr<Connection> dropped = writer_.drop(waiter_);
  if (native_given_) {
    dropped->roll_back_and_disable();
    retired_connection_ = std::move(dropped);
  }
  writer_.leave(waiter_);
  return result;
}

void UnitCore::roll_back() {
  const Lock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  finish(false);
}

void UnitCore::end(Stage stage) {
  Stage running = Stage::running;
  if (!stage_.compare_exchange_strong(running, stage)) return;
  given_up_.store(true);
  writer_.cancel(waiter_);
}

bool UnitCore::clean_up() {
  if (!mutex_.try_lock()) return false;
  finish(true);
  mutex_.unlock();
  return true;
}

void UnitCore::finish(bool forced) {
  if (connection_ == nullptr) return;
  Connection& connection = *std::exchange(connection_, nullptr);
  open_since_.store(SteadyTime::min());
  if (native_given_ && (forced || tampered_)) {
    // The handler may go on using the handle: it keeps this connection, which refuses
    // everything, and the store goes on with another.
    connection.roll_back_and_disable();
    retired_connection_ = writer_.drop(waiter_);
  } else {
    connection.roll_back();
    if (native_given_) connection.guard();
  }
  writer_.leave(waiter_);
}

}  // namespace tenure::sqlite
