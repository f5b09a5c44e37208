#include "memory/database_state.hpp"

namespace tenure::memory {

Database::Database() : state_(std::make_unique<State>()) {}
Database::~Database() = default;

std::optional<std::string> Database::get(std::string_view key) const {
  const Lock lock(state_->mutex);
  const auto found = state_->now.entries.find(key);
  return found == state_->now.entries.end() ? std::nullopt : found->second.value;
}

void Database::put(std::string key, std::string value) {
  const Lock lock(state_->mutex);
  Image& now = state_->now;
  now.entries[std::move(key)] = Entry{std::move(value), ++now.version};
}

std::map<std::string, std::string> Database::entries() const {
  const Lock lock(state_->mutex);
  std::map<std::string, std::string> out;
  for (const auto& [key, entry] : state_->now.entries) {
    if (entry.value) out.emplace(key, *entry.value);
  }
  return out;
}

std::vector<LaneRow> Database::lanes(const Domain& domain) const {
  const Lock lock(state_->mutex);
  const auto found = state_->now.domains.find(domain);
  return found == state_->now.domains.end() ? std::vector<LaneRow>() : found->second.lanes;
}

void Database::set_lane(const Domain& domain, std::uint16_t lane, LaneRow row) {
  const Lock lock(state_->mutex);
  DomainRows& rows = state_->now.domains[domain];
  if (rows.lanes.size() <= lane) rows.lanes.resize(std::size_t{lane} + 1);
  rows.lanes[lane] = std::move(row);
}

std::shared_ptr<const Database::Image> Database::image() const {
  const Lock lock(state_->mutex);
  return std::make_shared<const Image>(state_->now);
}

void Database::restore(const Image& image) {
  const Lock lock(state_->mutex);
  // Versions never go back: a transaction that began before must not find them unchanged.
  const std::uint64_t version = state_->now.version + 1;
  state_->now = image;
  state_->now.version = version;
}

}  // namespace tenure::memory
