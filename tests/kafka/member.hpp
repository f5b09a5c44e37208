// A whole member on a thread of its own, and what tests of it look at.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kafka/cluster.hpp"
#include "support/pace.hpp"
#include "tenure/kafka/source.hpp"
#include "tenure/port/observer.hpp"
#include "tenure/runtime.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::kafka {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline std::string protocol_name(const ::testing::TestParamInfo<Protocol>& info) {
  return std::string(name(info.param));
}
inline auto protocols() {
  return ::testing::Values(Protocol::eager, Protocol::cooperative, Protocol::consumer);
}

inline std::shared_ptr<Source> source_for(const Cluster& cluster, Protocol protocol,
                                          const std::string& topic = "t",
                                          const std::string& group = "g", Properties extra = {}) {
  SourceOptions options;
  options.topics = {topic};
  options.properties = cluster.member_properties(protocol);
  options.properties.emplace_back("group.id", group);
  for (auto& row : extra) options.properties.push_back(std::move(row));
  auto source = make_source(options);
  EXPECT_TRUE(source.has_value()) << (source ? "" : source.error().message);
  return std::move(*source);
}

class Database {
 public:
  explicit Database(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, 10000);
  }
  ~Database() { sqlite3_close(db_); }
  void run(const std::string& sql) {
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << sql << ": " << (error == nullptr ? "" : error);
    sqlite3_free(error);
  }
  std::int64_t number(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const std::int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
  }

 private:
  sqlite3* db_ = nullptr;
};

/// Counts events by name, and keeps the text of some.
class EventLog final : public Observer {
 public:
  void on_event(const Event& event) override {
    const std::lock_guard lock(mutex_);
    ++counts_[event.name];
    if (event.name == EventName::client_fatal || event.name == EventName::health_changed) {
      for (const Field& field : event.fields) {
        if (const auto* text = std::get_if<std::string_view>(&field.value)) {
          texts_.emplace_back(*text);
        }
      }
    }
  }
  int count(EventName name) {
    const std::lock_guard lock(mutex_);
    return counts_[name];
  }
  bool said(const std::string& part) {
    const std::lock_guard lock(mutex_);
    for (const std::string& text : texts_) {
      if (text.find(part) != std::string::npos) return true;
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::map<EventName, int> counts_;
  std::vector<std::string> texts_;
};

/// A Runtime on a thread of its own.
class Member {
 public:
  Member(Builder build, Ports ports) : ports_(ports) {
    auto made = Runtime::create(build, std::move(ports));
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    runtime_ = std::make_unique<Runtime>(std::move(*made));
    thread_ = std::thread([this] { report_ = runtime_->run(); });
  }
  ~Member() { end(); }
  StopReport end(milliseconds budget = seconds(10)) {
    if (thread_.joinable()) {
      runtime_->request_stop(budget);
      thread_.join();
    }
    return report_;
  }
  /// Waits for a run that ends by itself.
  StopReport wait() {
    if (thread_.joinable()) thread_.join();
    return report_;
  }
  Status status() { return runtime_->status(); }

 private:
  Ports ports_;
  std::unique_ptr<Runtime> runtime_;
  std::thread thread_;
  StopReport report_;
};

inline bool wait_for(const std::function<bool()>& done, seconds limit = seconds(40)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::tenure::testing::pace_until(std::chrono::steady_clock::now() + milliseconds(10));
  }
  return true;
}

}  // namespace tenure::kafka
