// One transaction of a handler, from open_unit() to its end.
//
// Role: takes the writer at the first statement, runs statements, moves the lane last, gives the
//   writer back; can be ended from outside at any moment.
// Owns: the turn while it is open, and a connection that was taken out of use under the
//   handler's feet.
// Threads: the handler's; end(), interrupt() and clean_up() any.
// Lifecycle: running -> committing -> finished, or running -> retired | timed_out; no way back.
// Promises: once ended from outside no statement of the handler runs any more (T6); COMMIT is
//   sent only by a unit that nobody has ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/mutex.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/turnstile.hpp"
#include "sqlite/writer.hpp"
#include "tenure/port/effect_store.hpp"

namespace tenure::sqlite {

class UnitCore {
 public:
  enum class Stage : std::uint8_t { running, committing, finished, retired, timed_out };

  /// `opened` is told when the unit has taken the writer.
  UnitCore(Writer& writer, const Options& options, UnitKey key, std::function<void()> opened);

  // The handler's thread.
  bool run(std::string_view sql, std::span<const Value> values, Rows* rows);
  [[nodiscard]] ::sqlite3* native();
  /// Why the last run() or native() did not go well.
  [[nodiscard]] Error error();
  [[nodiscard]] const UnitResult* failure();
  UnitResult commit(Offset to, LeaderEpoch leader_epoch);
  void roll_back();

  // Any thread.
  [[nodiscard]] const UnitKey& key() const { return key_; }
  /// Ends the unit unless its COMMIT has been sent. `stage`: retired or timed_out.
  void end(Stage stage);
  [[nodiscard]] bool ended() const { return given_up_.load(); }
  void interrupt() { writer_.interrupt(waiter_); }
  /// Rolls back an ended unit; false while the handler is inside a statement.
  bool clean_up();
  /// When it took the writer; min() = it does not hold it.
  [[nodiscard]] SteadyTime open_since() const { return open_since_.load(); }

 private:
  bool begin() TENURE_REQUIRES(mutex_);
  UnitResult move_and_commit(Offset to, LeaderEpoch leader_epoch) TENURE_REQUIRES(mutex_);
  UnitResult end_result() const;
  void fail_with(UnitResult result) TENURE_REQUIRES(mutex_);
  /// Rolls back what is open and gives back the writer. `forced`: the handler may still hold
  /// native().
  void finish(bool forced) TENURE_REQUIRES(mutex_);

  Writer& writer_;
  const Options& options_;
  const UnitKey key_;
  const std::function<void()> opened_;
  std::atomic<Stage> stage_{Stage::running};
  std::atomic<bool> given_up_{false};  ///< stage_ is retired or timed_out; read while waiting
  std::atomic<SteadyTime> open_since_{SteadyTime::min()};
  Turnstile::Waiter waiter_;

  Mutex mutex_;  ///< held while anything runs
  /// Not null: the turn is ours and a transaction was begun.
  Connection* connection_ TENURE_GUARDED_BY(mutex_) = nullptr;
  bool native_given_ TENURE_GUARDED_BY(mutex_) = false;
  /// The handler has committed or changed our hooks: the connection is not to be trusted.
  bool tampered_ TENURE_GUARDED_BY(mutex_) = false;
  bool closed_ TENURE_GUARDED_BY(mutex_) = false;  ///< committed or rolled back by its worker
  std::optional<UnitResult> failure_ TENURE_GUARDED_BY(mutex_);
  std::unique_ptr<Connection> retired_connection_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::sqlite
