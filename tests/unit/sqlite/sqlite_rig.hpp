// A database in a temporary folder, stores on it, and a stranger's view of it.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "contract/store/fault_vfs.hpp"
#include "contract/store/store_process.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::sqlite {

using testing::Holder;
using testing::StoreProcess;

inline constexpr LaneRule rule{4, Order::key};

inline Domain domain_of(std::int32_t partition = 0) {
  Domain domain;
  domain.scope = "billing";
  domain.cluster = "cluster-1";
  domain.topic_id.bytes[0] = 1;
  domain.partition = Partition(partition);
  return domain;
}

class Rig : public ::testing::Test, public testing::StoreWorld {
 protected:
  Rig() {
    testing::FaultVfs::get();
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tenure-sqlite-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    folder = pattern;
    options.path = (folder / "effects.db").string();
    options.vfs = testing::FaultVfs::name;
    options.busy_timeout = std::chrono::seconds(10);
  }
  ~Rig() override {
    testing::FaultVfs::get().on_moved_question = {};
    testing::FaultVfs::get().fail_log_writes = SQLITE_OK;
    testing::FaultVfs::get().fail_next_log_sync = SQLITE_OK;
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }

  /// File and tables, and a table of the user's.
  void create(const std::string& more = "CREATE TABLE t(k, v)") {
    const auto made = init(options);
    ASSERT_TRUE(made) << made.error().message;
    outside(more);
  }

  std::unique_ptr<EffectStore> make_store(std::chrono::milliseconds unit_timeout) override {
    Options used = options;
    used.unit_timeout = unit_timeout;
    auto store = sqlite::make_store(used);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  void write(EffectUnit&, const testing::StoredEffect&) override {}
  std::vector<testing::StoredEffect> effects() override { return {}; }

  static Transaction& transaction(EffectUnit& unit) {
    return *static_cast<Transaction*>(unit.transaction());
  }

  /// By a stranger's connection: first column of each row, joined by commas.
  std::string outside(const std::string& sql) const {
    ::sqlite3* database = nullptr;
    int code = sqlite3_open(options.path.c_str(), &database);
    sqlite3_busy_timeout(database, 10000);
    std::string out;
    const auto collect = [](void* to, int, char** values, char**) {
      auto& text = *static_cast<std::string*>(to);
      if (!text.empty()) text += ',';
      text += values[0] == nullptr ? "NULL" : values[0];
      return 0;
    };
    if (code == SQLITE_OK) code = sqlite3_exec(database, sql.c_str(), collect, &out, nullptr);
    const std::string message = sqlite3_errmsg(database);
    sqlite3_close(database);
    if (code != SQLITE_OK) ADD_FAILURE() << sql << ": " << message;
    return out;
  }

  std::filesystem::path folder;
  Options options;
};

/// A real process beside the test. It runs `body`, says ready, and ends when told or killed.
/// To be made before the test opens a store (fork and threads do not mix).
class OtherProcess {
 public:
  /// `body` gets a function that says ready and returns when the process is to end.
  explicit OtherProcess(const std::function<int(const std::function<void()>&)>& body) {
    int up[2];
    int down[2];
    if (::pipe(up) != 0 || ::pipe(down) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      ::close(up[0]);
      ::close(down[1]);
      int code = 94;
      // Nothing may get out of here: this process must not go on as a second test program.
      try {
        code = body([&] {
          const char ready = 'r';
          if (::write(up[1], &ready, 1) != 1) ::_exit(90);
          char end = 0;
          // Ends too when the test has died: the pipe closes.
          while (::read(down[0], &end, 1) < 0) {
          }
        });
      } catch (const std::exception& error) {
        std::fprintf(stderr, "the other process: %s\n", error.what());
      }
      ::_exit(code);
    }
    ::close(up[1]);
    ::close(down[0]);
    ready_ = up[0];
    end_ = down[1];
  }
  ~OtherProcess() {
    signal(SIGKILL);
    join();
    ::close(ready_);
    ::close(end_);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  void wait_ready() {
    char byte = 0;
    ASSERT_EQ(::read(ready_, &byte, 1), 1) << "the other process ended early";
  }
  void signal(int number) {
    if (pid_ > 0) ::kill(pid_, number);
  }
  /// Tells it to end; its exit code.
  int finish() {
    const char end = 'e';
    if (::write(end_, &end, 1) != 1) return 91;
    return join();
  }
  int join() {
    if (pid_ <= 0) return 92;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 93;
  }
  /// Stopped by SIGSTOP for sure.
  void wait_stopped() {
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

 private:
  pid_t pid_ = -1;
  int ready_ = -1;
  int end_ = -1;
};

}  // namespace tenure::sqlite
