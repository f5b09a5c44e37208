#include "tenure/sqlite/store.hpp"

#include <sqlite3.h>

#include "base/assert.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/store_core.hpp"

namespace tenure::sqlite {
namespace {

/// The port's unit: a handle to a UnitCore and the Transaction that handlers see.
class Unit final : public EffectUnit {
 public:
  Unit(std::shared_ptr<StoreCore> store, std::shared_ptr<UnitCore> core)
      : store_(std::move(store)), core_(std::move(core)), transaction_(*core_) {}
  ~Unit() override {
    core_->roll_back();
    store_->forget(*core_);
  }

  void* transaction() override { return &transaction_; }
  const UnitResult* failure() const override {
    const UnitResult* failure = core_->failure();
    return failure == nullptr ? nullptr : &told(*failure);
  }
  void commit(Offset to, LeaderEpoch leader_epoch, std::function<void(UnitResult)> done) override {
    TENURE_ASSERT(to > core_->key().from, "T4 a unit moves its lane forward");
    const UnitResult result = core_->commit(to, leader_epoch);
    done(told(result));
  }
  void roll_back() override { core_->roll_back(); }

 private:
  // An ended owner's late transaction is refused either way; whether a successor stands in the
  // database already is news for people, and the database says it.
  const UnitResult& told(const UnitResult& result) const {
    if (result.verdict != UnitVerdict::retired) return result;
    if (!told_) told_ = store_->why_ended(core_->key(), result);
    return *told_;
  }

  mutable std::optional<UnitResult> told_;
  const std::shared_ptr<StoreCore> store_;
  const std::shared_ptr<UnitCore> core_;
  Transaction transaction_;
};

class Store final : public EffectStore {
 public:
  explicit Store(Options options) : core_(std::make_shared<StoreCore>(std::move(options))) {}
  ~Store() override { core_->close(std::chrono::seconds(1)); }

  std::string_view name() const override { return "sqlite"; }
  TransactionKind transaction_kind() const override { return Transaction::kind(); }
  Result<void> open(StoreSink& sink) override { return core_->open(sink); }
  void submit(Reserve request) override { core_->submit(std::move(request)); }
  void submit(Activate request) override { core_->submit(std::move(request)); }
  void submit(AdvanceIdle request) override { core_->submit(std::move(request)); }
  void submit(Lookup request) override { core_->submit(std::move(request)); }
  std::unique_ptr<EffectUnit> open_unit(UnitKey key) override {
    return std::make_unique<Unit>(core_, core_->open_unit(std::move(key)));
  }
  void cancel(OwnerRef owner) override { core_->cancel(owner); }
  Result<void> still_there() override { return core_->still_there(); }
  void close(Duration limit) override { core_->close(limit); }

 private:
  const std::shared_ptr<StoreCore> core_;
};

void check_range(std::string& faults, std::string_view name, std::chrono::milliseconds value,
                 std::chrono::milliseconds least, std::chrono::milliseconds most) {
  if (value >= least && value <= most) return;
  if (!faults.empty()) faults += '\n';
  faults += std::string(name) + ": " + std::to_string(value.count()) + " ms is outside " +
            std::to_string(least.count()) + ".." + std::to_string(most.count()) + " ms";
}

}  // namespace

Result<void> Options::validate() const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  std::string faults;
  if (path.empty()) {
    faults = "path: empty; it names the database file";
  } else if (path[0] == ':') {
    faults = "path: " + path + " would vanish with the process; use the memory store for that";
  } else if (path.substr(0, 5) == "file:") {
    faults = "path: " + path + " is a URI; give the file's own name";
  } else if (path.find('\0') != std::string::npos) {
    faults = "path: holds a zero byte";
  }
  check_range(faults, "busy_timeout", busy_timeout, milliseconds(1), hours(1));
  check_range(faults, "unit_timeout", unit_timeout, milliseconds(10), hours(24));
  if (!vfs.empty() && sqlite3_vfs_find(vfs.c_str()) == nullptr) {
    if (!faults.empty()) faults += '\n';
    faults += "vfs: SQLite knows none named " + vfs;
  }
  if (!faults.empty()) return fail(Code::invalid, faults, "see tenure/sqlite/store.hpp");
  return {};
}

Result<std::unique_ptr<EffectStore>> make_store(Options options) {
  if (auto valid = options.validate(); !valid) return tl::unexpected<Error>(valid.error());
  if (sqlite3_threadsafe() != 1) {
    return fail(Code::refused, "this SQLite library was built without SQLITE_THREADSAFE=1",
                "link the one of your distribution");
  }
  return std::make_unique<Store>(std::move(options));
}

Result<void> init(const Options& options) {
  if (auto valid = options.validate(); !valid) return valid;
  Options creating = options;
  creating.create = true;
  auto file = DatabaseFile::open(creating);
  if (!file) return tl::unexpected<Error>(file.error());
  return {};
}

}  // namespace tenure::sqlite
