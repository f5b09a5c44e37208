// The fence run by the user, in a transaction of their own.
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "sample.hpp"

using namespace tenure;

namespace {

/// A stand-in for a connection pool, with what can go wrong around one: a commit whose reply is
/// lost, and a process that stands still before it begins.
class Pool {
 public:
  class Transaction {
   public:
    explicit Transaction(Pool& pool) : pool_(pool), connection_(pool.path_) {
      state_ = connection_.run("begin immediate");
    }
    template <class... Values>
    void run(std::string_view sql, const Values&... values) {
      run(sql, std::vector<sqlite::Parameter>{std::string(values.text())...});
    }
    void run(std::string_view sql, const std::vector<sqlite::Parameter>& values) {
      if (state_.empty()) state_ = connection_.run(sql, values);
    }
    std::string commit() {
      if (state_.empty()) state_ = connection_.run("commit");
      if (state_.empty() && pool_.lose_replies_.exchange(0) > 0) state_ = "SQLITE_IOERR";
      if (state_ == sqlite::superseded) ++pool_.superseded;
      if (state_ == sqlite::already_applied) ++pool_.already_applied;
      return state_;
    }

   private:
    Pool& pool_;
    sample::Connection connection_;
    std::string state_;
  };

  explicit Pool(std::string path) : path_(std::move(path)) {}

  Transaction begin() {
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.wait(lock, [this] { return !frozen_; });
      --waiting_;
    }
    return Transaction(*this);
  }

  void lose_next_reply() { lose_replies_ = 1; }
  void freeze(bool frozen) {
    const std::lock_guard lock(mutex_);
    frozen_ = frozen;
    changed_.notify_all();
  }
  [[nodiscard]] int waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  std::atomic<int> superseded{0};
  std::atomic<int> already_applied{0};

 private:
  const std::string path_;
  std::atomic<int> lose_replies_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool frozen_ = false;
  int waiting_ = 0;
};

Builder program(Pool& pool) {
  Builder build;
  build.group("test");
  build
      .on("ledger",
          [&pool](const Record& record, const Owner& owner) -> Outcome {
            auto tx = pool.begin();
            tx.run("insert into entry values (?1, ?2)", record.key(), record.value());
            auto last = sqlite::advance(owner, record);  // must be the last statement
            tx.run(last.sql, last.parameters);
            auto state = tx.commit();
            if (state == sqlite::superseded) throw FenceRefused{};
            if (state == sqlite::already_applied) return done();
            return state.empty() ? done() : retry();
          })
      .effect(Effect::transaction);
  return build;
}

}  // namespace

int main() {
  const sample::Folder folder;
  const std::string file = folder.file("ledger.db");
  sample::Connection database(file);
  database.run("create table entry(key text, value text)");
  testing::World world;
  world.create_topic("ledger", 1);
  const auto produce = [&world](const char* value) {
    world.produce("ledger", 0, {.key = "k", .value = value});
  };
  const auto committed = [&world](std::int64_t offset) {
    return sample::eventually(world,
                              [&] { return world.committed("ledger", 0) == Offset(offset); });
  };
  sample::Checks check;

  Pool a_pool(file);
  Pool b_pool(file);
  const Builder a_program = program(a_pool);
  const Builder b_program = program(b_pool);
  const sample::Member a(a_program, sample::ports(world, "A", file));
  produce("plain");
  check(committed(1), "a record is handled and committed");

  a_pool.lose_next_reply();
  produce("reply lost");
  check(committed(2), "E3: the attempt after a lost reply ends well");
  check(a_pool.already_applied == 1, "E3: and was told that all had been applied");

  a_pool.freeze(true);
  produce("late");
  check(sample::eventually(world, [&] { return a_pool.waiting() == 1; }), "A has begun the third");
  world.expire("A");
  const sample::Member b(b_program, sample::ports(world, "B", file));
  check(committed(3), "B, the new owner, does the third");
  a_pool.freeze(false);
  check(sample::eventually(world, [&] { return a_pool.superseded == 1; }),
        "F6: A's late transaction is refused");

  check(database.number("select count(*) from entry") == 3, "each record has one entry");
  check(database.number("select count(distinct value) from entry") == 3, "and its own");
  check(b_pool.superseded + b_pool.already_applied == 0, "B met neither");
  return check.failed();
}
