#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>

#include "contract/store/fault_vfs.hpp"
#include "contract/store/worlds.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::testing {
namespace {

namespace fs = std::filesystem;

class SqliteWorld final : public StoreWorld {
 public:
  explicit SqliteWorld(sqlite::Synchronous synchronous) {
    FaultVfs::get();
    std::string pattern = (fs::temp_directory_path() / "tenure-store-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    folder_ = pattern;
    options_.path = (folder_ / "effects.db").string();
    options_.synchronous = synchronous;
    options_.vfs = FaultVfs::name;
    if (auto made = sqlite::init(options_); !made) throw std::runtime_error(made.error().message);
    run("CREATE TABLE effect(partition INTEGER, lane INTEGER, off INTEGER, token INTEGER)");
  }
  ~SqliteWorld() override {
    FaultVfs::get().fail_next_log_sync = SQLITE_OK;
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  std::unique_ptr<EffectStore> make_store(std::chrono::milliseconds unit_timeout) override {
    sqlite::Options options = options_;
    options.unit_timeout = unit_timeout;
    auto store = sqlite::make_store(options);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  void write(EffectUnit& unit, const StoredEffect& effect) override {
    transaction(unit).execute("INSERT INTO effect VALUES ($1, $2, $3, $4)", effect.partition,
                              effect.lane, effect.offset, effect.token);
  }
  std::vector<StoredEffect> effects() override {
    std::vector<StoredEffect> out;
    const auto collect = [](void* to, int, char** values, char**) {
      static_cast<std::vector<StoredEffect>*>(to)->push_back(
          {std::atoi(values[0]), static_cast<std::uint16_t>(std::atoi(values[1])),
           std::atoll(values[2]), std::atoll(values[3])});
      return 0;
    };
    run("SELECT partition, lane, off, token FROM effect ORDER BY rowid", collect, &out);
    return out;
  }
  bool fail_statement(EffectUnit& unit) override {
    transaction(unit).execute("INSERT INTO no_such_table VALUES (1)");
    return true;
  }
  bool commit_by_hand(EffectUnit& unit) override {
    ::sqlite3* database = transaction(unit).native();
    // A handler that goes out of its way: no authorizer, and a transaction open again after it.
    sqlite3_set_authorizer(database, nullptr, nullptr);
    sqlite3_exec(database, "COMMIT; BEGIN", nullptr, nullptr, nullptr);
    sqlite3_exec(database, "BEGIN", nullptr, nullptr, nullptr);
    return true;
  }
  bool lose_commit_reply(EffectStore&, EffectUnit& unit, bool applied) override {
    if (!applied) {
      FaultVfs::get().fail_next_log_sync = SQLITE_IOERR_FSYNC;
      return options_.synchronous == sqlite::Synchronous::full;
    }
    // Called after the commit; its error is that of the COMMIT statement.
    ::sqlite3* database = transaction(unit).native();
    if (database == nullptr) return false;
    sqlite3_wal_hook(
        database, [](void*, ::sqlite3*, const char*, int) { return SQLITE_IOERR; }, nullptr);
    return true;
  }
  std::function<void()> remember() override {
    const fs::path copy = folder_ / "copy.db";
    fs::copy_file(options_.path, copy, fs::copy_options::overwrite_existing);
    return [this, copy] {
      fs::remove(options_.path + "-wal");
      fs::remove(options_.path + "-shm");
      fs::copy_file(copy, options_.path, fs::copy_options::overwrite_existing);
    };
  }

 private:
  static sqlite::Transaction& transaction(EffectUnit& unit) {
    return *static_cast<sqlite::Transaction*>(unit.transaction());
  }
  void run(const char* sql, int (*row)(void*, int, char**, char**) = nullptr, void* to = nullptr) {
    ::sqlite3* database = nullptr;
    int code = sqlite3_open(options_.path.c_str(), &database);
    sqlite3_busy_timeout(database, 10000);
    if (code == SQLITE_OK) code = sqlite3_exec(database, sql, row, to, nullptr);
    const std::string message = sqlite3_errmsg(database);
    sqlite3_close(database);
    if (code != SQLITE_OK) throw std::runtime_error(std::string(sql) + ": " + message);
  }

  fs::path folder_;
  sqlite::Options options_;
};

}  // namespace

std::unique_ptr<StoreWorld> sqlite_world() {
  return std::make_unique<SqliteWorld>(sqlite::Synchronous::full);
}
std::unique_ptr<StoreWorld> sqlite_normal_world() {
  return std::make_unique<SqliteWorld>(sqlite::Synchronous::normal);
}

}  // namespace tenure::testing
