// What the samples share: a folder, a database connection of the user's own, a running member.
#pragma once

#include <sqlite3.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/sqlite/store.hpp>
#include <tenure/tenure.hpp>
#include <tenure/testing/world.hpp>

namespace sample {

/// A folder that goes with its owner.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenure-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A connection that has nothing to do with Tenure's.
class Connection {
 public:
  explicit Connection(const std::string& path) {
    if (sqlite3_open(path.c_str(), &raw_) != SQLITE_OK) throw std::runtime_error("no " + path);
    sqlite3_busy_timeout(raw_, 10'000);
  }
  ~Connection() { sqlite3_close(raw_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs one statement; what went wrong, as sqlite::state() names it, or empty.
  std::string run(std::string_view sql, const std::vector<tenure::sqlite::Parameter>& values = {}) {
    return run_rows(sql, values, [](sqlite3_stmt*) {});
  }
  /// First column of the first row; -1: there is none.
  std::int64_t number(std::string_view sql) {
    std::int64_t found = -1;
    const std::string state = run_rows(
        sql, {}, [&](sqlite3_stmt* statement) { found = sqlite3_column_int64(statement, 0); });
    return state.empty() ? found : -1;
  }

 private:
  std::string run_rows(std::string_view sql, const std::vector<tenure::sqlite::Parameter>& values,
                       const std::function<void(sqlite3_stmt*)>& on_row) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(raw_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) !=
        SQLITE_OK) {
      return tenure::sqlite::state(raw_);
    }
    int index = 0;
    for (const tenure::sqlite::Parameter& value : values) {
      ++index;
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        sqlite3_bind_int64(statement, index, *number);
      } else {
        const auto& text = std::get<std::string>(value);
        sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()),
                          SQLITE_TRANSIENT);
      }
    }
    int step = SQLITE_OK;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) on_row(statement);
    std::string state = step == SQLITE_DONE ? std::string() : tenure::sqlite::state(raw_);
    sqlite3_finalize(statement);
    return state;
  }

  sqlite3* raw_ = nullptr;
};

/// A Runtime on a loop thread of its own.
class Member {
 public:
  Member(const tenure::Builder& build, tenure::Ports ports)
      : runtime_(tenure::Runtime::create(build, std::move(ports))) {
    if (!runtime_) throw std::runtime_error(runtime_.error().message);
    loop_ = std::jthread([this](const std::stop_token& stop) { runtime_->run(stop); });
  }
  ~Member() { runtime_->abandon(); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

 private:
  tenure::Result<tenure::Runtime> runtime_;
  std::jthread loop_;
};

inline tenure::Ports ports(tenure::testing::World& world, const std::string& member,
                           const std::string& database = {}) {
  tenure::Ports made{world.member(member), nullptr, world.clock(), {}};
  if (!database.empty()) {
    auto store = tenure::sqlite::make_store({.path = database, .create = true});
    if (!store) throw std::runtime_error(store.error().message);
    made.store = std::move(*store);
  }
  return made;
}

/// Lets the world's clock go on until `done`. False: it did not come to that.
inline bool eventually(tenure::testing::World& world, const std::function<bool()>& done) {
  return world.wait_until(
      [&] {
        if (done()) return true;
        world.advance(std::chrono::milliseconds(50));
        return false;
      },
      std::chrono::seconds(60));
}

/// Says what was not as expected; main() returns how many there were.
class Checks {
 public:
  void operator()(bool holds, const char* what) {
    if (holds) return;
    ++failed_;
    std::fprintf(stderr, "not so: %s\n", what);
  }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  int failed_ = 0;
};

}  // namespace sample
