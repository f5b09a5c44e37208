#include <atomic>
#include <cstdio>

#include "contract/store/store_process.hpp"
#include "contract/store/worlds.hpp"
#include "tenure/memory/store.hpp"

namespace tenure::testing {
namespace {

class MutantUnit final : public EffectUnit {
 public:
  MutantUnit(std::shared_ptr<memory::Database> database, UnitKey key)
      : database_(std::move(database)), key_(std::move(key)) {}

  void* transaction() override { return this; }
  const UnitResult* failure() const override { return nullptr; }
  void commit(Offset to, LeaderEpoch leader_epoch, std::function<void(UnitResult)> done) override {
    // SELECT EXISTS(token and owner are mine), in a statement of its own ...
    const auto lanes = database_->lanes(key_.domain);
    if (key_.lane >= lanes.size() || lanes[key_.lane].token != key_.fence.token ||
        lanes[key_.lane].owner != key_.fence.owner) {
      done({UnitVerdict::superseded, "not my token"});
      return;
    }
    // ... a round trip later the transaction, which believes it.
    take_time(std::chrono::microseconds(200));
    for (auto& [key, value] : written) database_->put(key, value);
    auto row = database_->lanes(key_.domain).at(key_.lane);
    row.next_offset = to;
    row.leader_epoch = leader_epoch;
    database_->set_lane(key_.domain, key_.lane, row);
    done({UnitVerdict::applied, {}});
  }
  void roll_back() override { written.clear(); }

  std::vector<std::pair<std::string, std::string>> written;

 private:
  const std::shared_ptr<memory::Database> database_;
  const UnitKey key_;
};

/// Everything but the units is the memory store's own.
class MutantStore final : public EffectStore {
 public:
  explicit MutantStore(std::shared_ptr<memory::Database> database)
      : database_(database), sound_(std::move(database)) {}

  std::string_view name() const override { return "mutant"; }
  TransactionKind transaction_kind() const override { return nullptr; }
  Result<void> open(StoreSink& sink) override { return sound_.open(sink); }
  void submit(Reserve request) override { sound_.submit(std::move(request)); }
  void submit(Activate request) override { sound_.submit(std::move(request)); }
  void submit(AdvanceIdle request) override { sound_.submit(std::move(request)); }
  void submit(Lookup request) override { sound_.submit(std::move(request)); }
  std::unique_ptr<EffectUnit> open_unit(UnitKey key) override {
    return std::make_unique<MutantUnit>(database_, std::move(key));
  }
  void cancel(OwnerRef owner) override { sound_.cancel(owner); }
  Result<void> still_there() override { return {}; }
  void close(Duration limit) override { sound_.close(limit); }

 private:
  const std::shared_ptr<memory::Database> database_;
  memory::Store sound_;
};

class MutantWorld final : public StoreWorld {
 public:
  std::unique_ptr<EffectStore> make_store(std::chrono::milliseconds) override {
    return std::make_unique<MutantStore>(database_);
  }
  void write(EffectUnit& unit, const StoredEffect& effect) override {
    static std::atomic<std::uint64_t> last{0};
    static_cast<MutantUnit*>(unit.transaction())
        ->written.emplace_back(
            "effect/" + std::to_string(++last),
            std::to_string(effect.partition) + " " + std::to_string(effect.lane) + " " +
                std::to_string(effect.offset) + " " + std::to_string(effect.token));
  }
  std::vector<StoredEffect> effects() override {
    std::vector<StoredEffect> out;
    for (const auto& [key, value] : database_->entries()) {
      long long field[4] = {};
      if (std::sscanf(value.c_str(), "%lld %lld %lld %lld", &field[0], &field[1], &field[2],
                      &field[3]) == 4) {
        out.push_back({static_cast<std::int32_t>(field[0]), static_cast<std::uint16_t>(field[1]),
                       field[2], field[3]});
      }
    }
    return out;
  }

 private:
  const std::shared_ptr<memory::Database> database_ = std::make_shared<memory::Database>();
};

}  // namespace

std::unique_ptr<StoreWorld> mutant_world() {
  return std::make_unique<MutantWorld>();
}

}  // namespace tenure::testing
