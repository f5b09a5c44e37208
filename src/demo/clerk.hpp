// The handler of a demo member: books a record, and misbehaves on command.
//
// Role: a user's handler that runs the fence in a transaction of its own (6-interface, section 1,
//   fourth shape). Commands make one of its calls stop the process, wait, or take long.
// Owns: the connection to the accounts. Threads: handle() any, command() any.
// Promises: the process is never stopped by freeze() while a write of this object is open.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "demo/account_book.hpp"
#include "demo/world.hpp"
#include "tenure/outcome.hpp"
#include "tenure/owner.hpp"
#include "tenure/record.hpp"

namespace tenure::demo {

class Clerk {
 public:
  struct Options {
    bool plain = false;
    std::uint64_t seed = 1;
    std::chrono::milliseconds work{20};  ///< mean time of one record
    std::chrono::milliseconds slow{20'000};
  };
  using Report = std::function<void(const MemberEvent&)>;

  /// `report`: any thread. `stop_process`: raises SIGSTOP; tests hand in their own.
  Clerk(AccountBook book, Options options, Report report, std::function<void()> stop_process);

  Outcome handle(const Record& record, const Owner& owner);

  /// freeze: the next handler that is about to write stops the process first.
  /// hold_before: from now on one handler of each partition waits before its write.
  /// hold_after: from now on handlers wait after their write, for ever.
  /// slow: the next handler takes Options::slow.
  /// release: whoever waits goes on; nobody else will.
  /// False: no such command.
  bool command(std::string_view name);
  /// Whoever waits goes on, for the end of the process.
  void end();

 private:
  void work(const Record& record);
  /// Waits when told to. True: it did.
  bool wait_before(Spot spot);

  const Options options_;
  const Report report_;
  const std::function<void()> stop_process_;

  Mutex book_mutex_;  ///< held by whoever writes, and by a handler that stops the process
  AccountBook book_ TENURE_GUARDED_BY(book_mutex_);

  Mutex mutex_;
  Condition changed_;
  bool freeze_ TENURE_GUARDED_BY(mutex_) = false;
  bool hold_before_ TENURE_GUARDED_BY(mutex_) = false;
  bool hold_after_ TENURE_GUARDED_BY(mutex_) = false;
  bool slow_ TENURE_GUARDED_BY(mutex_) = false;
  bool ending_ TENURE_GUARDED_BY(mutex_) = false;
  std::uint64_t released_ TENURE_GUARDED_BY(mutex_) = 0;
  std::set<std::int32_t> held_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::demo
