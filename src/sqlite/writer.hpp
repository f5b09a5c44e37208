// The one writing connection of this process, and whose turn it is.
//
// Role: SQLite has one writer at a time; a queue of our own is fair and can be cancelled, a file
//   lock is neither.
// Owns: the connection, opened again after it was dropped. Threads: any; the connection belongs
//   to the waiter that entered, until it leaves.
#pragma once

#include <atomic>
#include <memory>

#include "sqlite/connection.hpp"
#include "sqlite/database_file.hpp"
#include "sqlite/turnstile.hpp"

namespace tenure::sqlite {

class Writer {
 public:
  explicit Writer(const DatabaseFile& file) : file_(file) {}

  /// Waits for the turn and gives the connection, which waits for other processes for as long as
  /// `patience` allows. Null: `problem` says why, and the turn is not held.
  Connection* enter(Turnstile::Waiter& waiter, Patience patience, Synchronous level,
                    Problem& problem);
  void leave(Turnstile::Waiter& waiter) { turnstile_.leave(waiter); }

  /// Takes the connection out of use; the next one to need it opens another. By the holder.
  std::unique_ptr<Connection> drop(Turnstile::Waiter& waiter);
  /// The connection again, after drop(). By the holder; null: `problem` says why.
  Connection* connection(Turnstile::Waiter& waiter, Patience patience, Synchronous level,
                         Problem& problem);

  [[nodiscard]] Result<void> still_there() const { return file_.still_there(); }
  void cancel(Turnstile::Waiter& waiter) { turnstile_.cancel(waiter); }
  void close() { turnstile_.close(); }
  /// Ends the statement that `waiter` runs, if it holds the turn.
  void interrupt(const Turnstile::Waiter& waiter);

 private:
  const DatabaseFile& file_;
  Turnstile turnstile_;
  std::unique_ptr<Connection> connection_;  ///< changed by the holder, under the turnstile's lock
  Synchronous level_ = Synchronous::full;   ///< of connection_
};

}  // namespace tenure::sqlite
