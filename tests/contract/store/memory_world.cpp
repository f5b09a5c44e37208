#include <atomic>
#include <cstdio>

#include "contract/store/worlds.hpp"
#include "tenure/memory/store.hpp"

namespace tenure::testing {
namespace {

class MemoryWorld final : public StoreWorld {
 public:
  std::unique_ptr<EffectStore> make_store(std::chrono::milliseconds) override {
    return std::make_unique<memory::Store>(database_);
  }
  void write(EffectUnit& unit, const StoredEffect& effect) override {
    static std::atomic<std::uint64_t> last{0};
    static_cast<memory::Transaction*>(unit.transaction())
        ->put("effect/" + std::to_string(++last),
              std::to_string(effect.partition) + " " + std::to_string(effect.lane) + " " +
                  std::to_string(effect.offset) + " " + std::to_string(effect.token));
  }
  std::vector<StoredEffect> effects() override {
    std::vector<StoredEffect> out;
    for (const auto& [key, value] : database_->entries()) {
      StoredEffect effect;
      long long partition = 0;
      long long lane = 0;
      long long offset = 0;
      long long token = 0;
      if (std::sscanf(value.c_str(), "%lld %lld %lld %lld", &partition, &lane, &offset, &token) !=
          4) {
        continue;
      }
      effect.partition = static_cast<std::int32_t>(partition);
      effect.lane = static_cast<std::uint16_t>(lane);
      effect.offset = offset;
      effect.token = token;
      out.push_back(effect);
    }
    return out;
  }
  bool lose_commit_reply(EffectStore& store, EffectUnit&, bool applied) override {
    static_cast<memory::Store&>(store).lose_next_commit_reply(applied);
    return true;
  }
  std::function<void()> remember() override {
    return [this, image = database_->image()] { database_->restore(*image); };
  }

 private:
  const std::shared_ptr<memory::Database> database_ = std::make_shared<memory::Database>();
};

}  // namespace

std::unique_ptr<StoreWorld> memory_world() {
  return std::make_unique<MemoryWorld>();
}

}  // namespace tenure::testing
