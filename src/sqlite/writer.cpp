#include "sqlite/writer.hpp"

#include <sqlite3.h>

namespace tenure::sqlite {

Connection* Writer::enter(Turnstile::Waiter& waiter, Patience patience, Synchronous level,
                          Problem& problem) {
  switch (turnstile_.enter(waiter, patience.deadline)) {
    case Turnstile::Entry::taken:
      break;
    case Turnstile::Entry::cancelled:
      problem = {SQLITE_INTERRUPT, UnitVerdict::retired, "the owner has ended"};
      return nullptr;
    case Turnstile::Entry::too_late:
      problem = {SQLITE_BUSY, UnitVerdict::contention,
                 file_.path() + ": other transactions of this process took too long"};
      return nullptr;
  }
  Connection* connection = this->connection(waiter, patience, level, problem);
  if (connection == nullptr) turnstile_.leave(waiter);
  return connection;
}

Connection* Writer::connection(Turnstile::Waiter& waiter, Patience patience, Synchronous level,
                               Problem& problem) {
  if (auto there = file_.still_there(); !there) {
    problem = {SQLITE_READONLY_DBMOVED, UnitVerdict::unavailable,
               there.error().message + "; " + there.error().hint};
    return nullptr;
  }
  if (connection_ == nullptr) {
    auto opened = file_.connect();
    if (!opened) {
      problem = {SQLITE_CANTOPEN, UnitVerdict::unavailable, opened.error().message};
      return nullptr;
    }
    turnstile_.while_held_by(waiter, [&] { connection_ = std::move(*opened); });
    level_ = Synchronous::full;
    connection_->wait_for_locks(patience);
    if (!connection_->run_own("PRAGMA synchronous = FULL")) {
      problem = connection_->problem();
      drop(waiter);
      return nullptr;
    }
  }
  connection_->wait_for_locks(patience);
  if (level != level_) {
    if (!connection_->run_own(level == Synchronous::full ? "PRAGMA synchronous = FULL"
                                                         : "PRAGMA synchronous = NORMAL")) {
      problem = connection_->problem();
      return nullptr;
    }
    level_ = level;
  }
  return connection_.get();
}

std::unique_ptr<Connection> Writer::drop(Turnstile::Waiter& waiter) {
  std::unique_ptr<Connection> dropped;
  turnstile_.while_held_by(waiter, [&] { dropped = std::move(connection_); });
  return dropped;
}

void Writer::interrupt(const Turnstile::Waiter& waiter) {
  turnstile_.while_held_by(waiter, [&] {
    if (connection_ != nullptr) connection_->interrupt();
  });
}

}  // namespace tenure::sqlite
