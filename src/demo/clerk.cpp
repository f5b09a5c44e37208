#include "demo/clerk.hpp"

#include <charconv>
#include <string>
#include <utility>

#include "tenure/sqlite/store.hpp"

namespace tenure::demo {
namespace {

MemberEvent event_at(std::string name, Spot spot) {
  MemberEvent event;
  event.name = std::move(name);
  event.partition = spot.partition;
  event.offset = spot.offset;
  return event;
}

std::optional<std::int64_t> cents_of(Bytes value) {
  const std::string_view text = value.text();
  std::int64_t cents = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cents);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return cents;
}

}  // namespace

Clerk::Clerk(AccountBook book, Options options, Report report, std::function<void()> stop_process)
    : options_(options), report_(std::move(report)), stop_process_(std::move(stop_process)),
      book_(std::move(book)) {}

bool Clerk::command(std::string_view name) {
  const Lock lock(mutex_);
  if (name == "freeze") {
    freeze_ = true;
  } else if (name == "hold_before") {
    hold_before_ = true;
  } else if (name == "hold_after") {
    hold_after_ = true;
  } else if (name == "slow") {
    slow_ = true;
  } else if (name == "release") {
    hold_before_ = hold_after_ = false;
    ++released_;
    changed_.notify_all();
  } else {
    return false;
  }
  return true;
}

void Clerk::end() {
  const Lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void Clerk::work(const Record& record) {
  // Spread over 0.5 .. 1.5 of the mean, the same for a record in every run of a seed.
  const auto spread = static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(record.offset()) * 2654435761U + options_.seed) % 1000);
  auto time = options_.work * (500 + spread) / 1000;
  bool slow = false;
  {
    const Lock lock(mutex_);
    slow = std::exchange(slow_, false);
  }
  if (slow) {
    time = options_.slow;
    report_(event_at("held", {record.partition(), record.offset()}));
  }
  const Lock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + time;
  while (!ending_ && std::chrono::steady_clock::now() < until) {
    if (!changed_.wait_until(mutex_, until)) break;
  }
}

bool Clerk::wait_before(Spot spot) {
  std::uint64_t before = 0;
  {
    const Lock lock(mutex_);
    if (!hold_before_ || !held_.insert(spot.partition).second) return false;
    before = released_;
  }
  report_(event_at("held", spot));
  const Lock lock(mutex_);
  while (released_ == before && !ending_) changed_.wait(mutex_);
  return true;
}

Outcome Clerk::handle(const Record& record, const Owner& owner) {
  const Spot spot{record.partition(), record.offset()};
  const std::optional<std::int64_t> cents = cents_of(record.value());
  if (!cents) return reject("the value is no number of cents", "undecodable");
  AccountBook::Entry entry;
  entry.at = {spot.partition, spot.offset};
  entry.key = record.key().text();
  entry.cents = *cents;
  std::optional<sqlite::Advance> advance;
  if (!options_.plain) {
    entry.token = owner.fence() ? std::optional(owner.fence()->token.value()) : std::nullopt;
    advance = sqlite::advance(owner, record);
  }

  work(record);
  bool late = wait_before(spot);
  bool freeze = false;
  {
    const Lock lock(mutex_);
    freeze = std::exchange(freeze_, false);
  }
  Applied applied{};
  {
    // No other handler is inside a write while this one stops the process.
    const Lock lock(book_mutex_);
    if (freeze) {
      report_(event_at("freezing", spot));
      stop_process_();
      late = true;
    }
    applied = book_.apply(entry, advance);
  }

  MemberEvent told = event_at("applied", spot);
  told.late = late;
  told.token = entry.token.value_or(0);
  told.grant = static_cast<std::int64_t>(owner.grant_id().value());
  switch (applied) {
    case Applied::written:
      break;
    case Applied::already:
      told.name = "again";
      break;
    case Applied::superseded:
      told.name = "refused";
      report_(told);
      throw FenceRefused{};
    case Applied::again:
      return retry(std::chrono::milliseconds(100), "the database is busy", "sql");
  }
  report_(told);
  bool hold = false;
  {
    const Lock lock(mutex_);
    hold = hold_after_;
  }
  if (hold) {
    report_(event_at("held", spot));
    const Lock lock(mutex_);
    while (!ending_ && hold_after_) changed_.wait(mutex_);
  }
  return done();
}

}  // namespace tenure::demo
