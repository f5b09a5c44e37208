#include "contract/store/store_conformance.hpp"

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "contract/store/store_process.hpp"

namespace tenure::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr LaneRule one_lane{1, Order::key};
constexpr LaneRule four_lanes{4, Order::key};

Domain domain_of(std::int32_t partition = 0, std::uint8_t topic = 1) {
  Domain domain;
  domain.scope = "billing";
  domain.cluster = "cluster-1";
  domain.topic_id.bytes[0] = topic;
  domain.topic_id.bytes[15] = 7;
  domain.partition = Partition(partition);
  return domain;
}

std::string text(const std::optional<Offset>& offset) {
  return offset ? std::to_string(offset->value()) : "nothing";
}

void expect_verdict(Report& report, const UnitResult& result, UnitVerdict wanted,
                    const std::string& what) {
  report.expect(result.verdict == wanted, what + ": expected " + std::string(name(wanted)) +
                                              ", was " + std::string(name(result.verdict)) + " " +
                                              result.message);
}

void expect_error(Report& report, StoreError error, StoreError wanted, const std::string& what) {
  report.expect(error == wanted, what + ": expected " + std::string(name(wanted)) + ", was " +
                                     std::string(name(error)));
}

void expect_effects(Report& report, StoreWorld& world, std::size_t wanted,
                    const std::string& what) {
  const std::size_t found = world.effects().size();
  report.expect(found == wanted, what + ": expected " + std::to_string(wanted) +
                                     " effects, found " + std::to_string(found));
}

void expect_next(Report& report, const std::vector<LaneProgress>& lanes, std::uint16_t lane,
                 std::optional<Offset> wanted, const std::string& what) {
  if (lane >= lanes.size()) {
    report.expect(false, what + ": no lane " + std::to_string(lane));
    return;
  }
  report.expect(lanes[lane].lane == lane, what + ": lanes are in order");
  report.expect(lanes[lane].next_offset == wanted,
                what + ": lane " + std::to_string(lane) + " expected at " + text(wanted) +
                    ", stands at " + text(lanes[lane].next_offset));
}

/// What a new owner would be given, without activating anything.
std::vector<LaneProgress> stored(StoreProcess& process, const Domain& domain, LaneRule rule) {
  return process.reserve(process.grant(domain, rule)).lanes;
}

// T1

void t1_tickets_increase(StoreWorld& world, Report& report) {
  std::int64_t last = 0;
  for (int round = 0; round < 2; ++round) {  // durable: the second round is another life
    StoreProcess a(world);
    StoreProcess b(world);
    for (StoreProcess* process : {&a, &b, &a}) {
      const Reserved::Item item = process->reserve(process->grant(domain_of(), four_lanes));
      expect_error(report, item.error, StoreError::none, "reserve");
      report.expect(item.token.value() > last, "each ticket is above all drawn before");
      report.expect(item.lanes.empty(), "a domain never activated has no lanes");
      last = item.token.value();
    }
  }
}

void t1_many_domains(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  for (std::int32_t partition = 0; partition < 20; ++partition) {
    const Holder holder = process.acquire(domain_of(partition), four_lanes, Offset(partition));
    report.expect(holder.fence.token == Token(1), "each domain has tickets of its own");
    expect_next(report, holder.lanes, 3, Offset(partition), "first use");
  }
}

// T3

void t3_first_use(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(42));
  report.expect(holder.lanes.size() == 4, "all lanes are created");
  for (std::uint16_t lane = 0; lane < 4; ++lane) {
    expect_next(report, holder.lanes, lane, Offset(42), "first use");
    report.expect(holder.lanes[lane].leader_epoch == LeaderEpoch(3), "with the leader epoch");
  }
}

void t3_first_counts_once(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder first = process.acquire(domain_of(), four_lanes, Offset(42));
  expect_verdict(report, process.apply(first, 2, Offset(42), Offset(50)), UnitVerdict::applied,
                 "effect");
  const Holder second = process.acquire(domain_of(), four_lanes, Offset(7));
  expect_next(report, second.lanes, 0, Offset(42), "stored progress wins over the start given");
  expect_next(report, second.lanes, 2, Offset(50), "stored progress wins over the start given");
}

void t3_older_token(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  Holder late = a.grant(domain_of(), four_lanes);
  late.fence.token = a.reserve(late).token;
  const Holder newer = b.acquire(domain_of(), four_lanes, Offset(10));
  const Activated::Item refused = a.activate(late, Offset(5));
  expect_error(report, refused.error, StoreError::superseded, "late activation by an older token");
  report.expect(refused.stored_token == newer.fence.token, "it names the active token");
  expect_verdict(report, b.apply(newer, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                 "the newer owner is untouched");
  expect_verdict(report, a.apply(late, 0, Offset(11), Offset(12)), UnitVerdict::superseded,
                 "the older owner has no effect");
  expect_effects(report, world, 1, "only the newer owner's");
}

void t3_retry(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  expect_verdict(report, process.apply(holder, 1, Offset(10), Offset(13)), UnitVerdict::applied,
                 "effect");
  const Activated::Item again = process.activate(holder, Offset(10));
  expect_error(report, again.error, StoreError::none, "my own token once more");
  expect_next(report, again.lanes, 1, Offset(13), "with progress as it is now");
}

void t3_no_progress(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  Holder plain = process.grant(domain_of(), one_lane);
  plain.fence.token = process.reserve(plain).token;
  const Activated::Item activated = process.activate(plain, Offset(42), false);
  expect_error(report, activated.error, StoreError::none, "kind without progress");
  expect_next(report, activated.lanes, 0, std::nullopt, "kind without progress");
  const LookedUp looked = process.look_up(plain, 0);
  expect_error(report, looked.error, StoreError::none, "look-up of a lane without progress");
  report.expect(!looked.next_offset, "a lane without progress stands nowhere");
  const Holder kept = process.acquire(domain_of(), one_lane, Offset(60));
  expect_next(report, kept.lanes, 0, Offset(60), "set by the first kind that keeps it");
  expect_verdict(report, process.apply(plain, 0, Offset(60), Offset(61)), UnitVerdict::superseded,
                 "the earlier owner");
}

void t3_rule_without_progress(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  Holder plain = process.grant(domain_of(), one_lane);
  plain.fence.token = process.reserve(plain).token;
  expect_error(report, process.activate(plain, Offset(42), false).error, StoreError::none,
               "kind without progress");
  const Holder kept = process.acquire(domain_of(), four_lanes, Offset(60));
  report.expect(kept.lanes.size() == 4, "a rule that no stored offset depends on may change");
  expect_next(report, kept.lanes, 3, Offset(60), "and starts at what was validated");
  Holder older = plain;
  older.rule = four_lanes;
  expect_error(report, process.activate(older, Offset(42)).error, StoreError::superseded,
               "the fence stands through the change");
}

void t3_takeover_with_open_unit(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  const Holder old_owner = a.acquire(domain_of(), four_lanes, Offset(10));
  const auto unit = a.open_unit(old_owner, 1, Offset(10));
  a.write(*unit, old_owner, 1, 10);
  Holder new_owner = b.grant(domain_of(), four_lanes);
  Activated::Item activated;
  std::thread takeover([&] {
    // A store with one writer makes both wait until the open unit ends.
    for (StoreError error = StoreError::contention; error == StoreError::contention;) {
      const Reserved::Item reserved = b.reserve(new_owner);
      error = reserved.error;
      new_owner.fence.token = reserved.token;
    }
    do {
      activated = b.activate(new_owner, Offset(10));
    } while (activated.error == StoreError::contention);
  });
  const UnitResult result = StoreProcess::commit(*unit, Offset(11));
  takeover.join();
  expect_error(report, activated.error, StoreError::none, "takeover");
  const bool applied = result.verdict == UnitVerdict::applied;
  report.expect(applied || result.verdict == UnitVerdict::superseded,
                "the open unit is applied or superseded");
  expect_next(report, activated.lanes, 1, applied ? Offset(11) : Offset(10),
              "activation returns what the running effect committed");
  expect_effects(report, world, applied ? 1 : 0, "effect and progress together");
}

// T4

void t4_compares_all(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  Holder other = holder;
  other.fence.owner.bytes[15] = 0xEE;
  expect_verdict(report, process.apply(other, 0, Offset(10), Offset(11)), UnitVerdict::superseded,
                 "my token under another nonce");
  other = holder;
  other.fence.token = Token(holder.fence.token.value() + 1);
  expect_verdict(report, process.apply(other, 0, Offset(10), Offset(11)), UnitVerdict::superseded,
                 "a token that is not active");
  expect_effects(report, world, 0, "refused units leave nothing");
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(12)), UnitVerdict::applied,
                 "all equal");
  expect_verdict(report, process.apply(holder, 0, Offset(12), Offset(13)), UnitVerdict::applied,
                 "the next one");
  expect_effects(report, world, 3, "applied");
  const auto lanes = stored(process, domain_of(), four_lanes);
  expect_next(report, lanes, 0, Offset(13), "progress moved with the effects");
  expect_next(report, lanes, 1, Offset(10), "other lanes did not");
}

void t4_unknown_domain(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  Holder holder = process.grant(domain_of(), one_lane);
  holder.fence.token = process.reserve(holder).token;
  expect_verdict(report, process.apply(holder, 0, Offset(0), Offset(1)), UnitVerdict::superseded,
                 "an owner that never activated");
  expect_effects(report, world, 0, "nothing");
}

void t4_refused_batch(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  const Holder old_owner = a.acquire(domain_of(), four_lanes, Offset(10));
  b.acquire(domain_of(), four_lanes);
  expect_verdict(report, a.apply(old_owner, 0, Offset(10), Offset(110)), UnitVerdict::superseded,
                 "a batch of a superseded owner");
  expect_effects(report, world, 0, "a refused advance leaves none of the batch");
}

void t4_moved(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  expect_verdict(report, process.apply(holder, 0, Offset(5), Offset(12)), UnitVerdict::moved,
                 "the lane is ahead of what was expected, short of the target");
  expect_verdict(report, process.apply(holder, 0, Offset(15), Offset(16)), UnitVerdict::moved,
                 "the lane is behind what was expected");
  expect_effects(report, world, 0, "moved leaves nothing");
  expect_next(report, stored(process, domain_of(), four_lanes), 0, Offset(10), "nor moves");
}

void t4_offset_gap(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  const auto unit = process.open_unit(holder, 0, Offset(10));
  process.write(*unit, holder, 0, 40);
  expect_verdict(report, StoreProcess::commit(*unit, Offset(41)), UnitVerdict::applied,
                 "a gap between progress and record is no error");
  expect_next(report, stored(process, domain_of(), four_lanes), 0, Offset(41), "gap");
}

void t4_progress_alone(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  const auto unit = process.open_unit(holder, 0, Offset(10));
  expect_verdict(report, StoreProcess::commit(*unit, Offset(11)), UnitVerdict::applied,
                 "a unit without statements moves progress");
  expect_effects(report, world, 0, "progress alone");
  expect_next(report, stored(process, domain_of(), four_lanes), 0, Offset(11), "progress alone");
}

void t4_concurrent_lanes(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  const Holder holder = a.acquire(domain_of(0), four_lanes, Offset(0));
  const Holder other = b.acquire(domain_of(1), four_lanes, Offset(0));
  constexpr std::int64_t effects = 25;
  std::atomic<int> failed{0};
  const auto stream = [&](StoreProcess& process, const Holder& owner, std::uint16_t lane) {
    for (std::int64_t offset = 0; offset < effects;) {
      const UnitResult result = process.apply(owner, lane, Offset(offset), Offset(offset + 1));
      if (result.verdict == UnitVerdict::applied) {
        ++offset;
      } else if (result.verdict != UnitVerdict::contention) {
        ++failed;
        return;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint16_t lane = 0; lane < 4; ++lane) {
    threads.emplace_back([&, lane] { stream(a, holder, lane); });
    threads.emplace_back([&, lane] { stream(b, other, lane); });
  }
  for (std::thread& thread : threads) thread.join();
  report.expect(failed == 0, "lanes do not disturb each other");
  expect_effects(report, world, 8 * effects, "all lanes");
}

void t4_idle_advance(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  const std::vector<AdvanceIdle::Step> steps = {{0, Offset(10), Offset(20), LeaderEpoch(3)},
                                                {3, Offset(10), Offset(21), LeaderEpoch(3)}};
  expect_error(report, process.advance_idle(holder, steps).error, StoreError::none, "idle rows");
  auto lanes = stored(process, domain_of(), four_lanes);
  expect_next(report, lanes, 0, Offset(20), "idle row");
  expect_next(report, lanes, 1, Offset(10), "a row that was not named");
  expect_next(report, lanes, 3, Offset(21), "idle row");
  expect_error(report, process.advance_idle(holder, steps).error, StoreError::none,
               "the same once more, after a lost reply");
  expect_error(report,
               process
                   .advance_idle(holder, {{1, Offset(10), Offset(30), LeaderEpoch(3)},
                                          {0, Offset(10), Offset(30), LeaderEpoch(3)}})
                   .error,
               StoreError::moved, "one row is elsewhere");
  expect_next(report, stored(process, domain_of(), four_lanes), 1, Offset(10), "then no row moves");
}

void t4_idle_advance_refused(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  const Holder old_owner = a.acquire(domain_of(), four_lanes, Offset(10));
  b.acquire(domain_of(), four_lanes);
  expect_error(report,
               a.advance_idle(old_owner, {{0, Offset(10), Offset(20), LeaderEpoch(3)}}).error,
               StoreError::superseded, "idle advance of a superseded owner");
  expect_next(report, stored(b, domain_of(), four_lanes), 0, Offset(10), "moves nothing");
}

void t4_commit_by_hand(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  const auto unit = process.open_unit(holder, 0, Offset(10));
  process.write(*unit, holder, 0, 10);
  if (!world.commit_by_hand(*unit)) return;
  expect_verdict(report, StoreProcess::commit(*unit, Offset(11)), UnitVerdict::misuse,
                 "the handler's own COMMIT");
  expect_effects(report, world, 0, "keeps nothing");
  expect_next(report, stored(process, domain_of(), four_lanes), 0, Offset(10), "moves nothing");
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                 "and harms nobody after it");
}

void t4_failed_statement(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  const auto unit = process.open_unit(holder, 0, Offset(10));
  process.write(*unit, holder, 0, 10);
  report.expect(unit->failure() == nullptr, "no failure yet");
  if (!world.fail_statement(*unit)) return;
  report.expect(unit->failure() != nullptr, "a failed statement shows");
  process.write(*unit, holder, 0, 11);  // must not run outside a transaction either
  const UnitResult result = StoreProcess::commit(*unit, Offset(12));
  report.expect(unit->failure() != nullptr && result.verdict == unit->failure()->verdict &&
                    result.verdict != UnitVerdict::applied,
                "commit answers the failure");
  expect_effects(report, world, 0, "and keeps nothing");
  expect_next(report, stored(process, domain_of(), four_lanes), 0, Offset(10), "nor moves");
}

// T5

void t5_notes(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  for (const char* note : {"epoch 9", "epoch 2", ""}) {
    Holder holder = process.grant(domain_of(), one_lane);
    holder.fence.token = process.reserve(holder).token;
    expect_error(report, process.activate(holder, Offset(0), true, note).error, StoreError::none,
                 "a note decides nothing");
  }
}

// T6

void t6_hung_unit(StoreWorld& world, Report& report) {
  StoreProcess zombie(world, milliseconds(200));
  StoreProcess live(world);
  const Holder old_owner = zombie.acquire(domain_of(), four_lanes, Offset(10));
  const auto unit = zombie.open_unit(old_owner, 0, Offset(10));
  zombie.write(*unit, old_owner, 0, 10);
  const auto began = Clock::now();
  Holder new_owner = live.grant(domain_of(), four_lanes);
  Reserved::Item reserved;
  do {
    reserved = live.reserve(new_owner);
  } while (reserved.error == StoreError::contention && Clock::now() - began < seconds(10));
  expect_error(report, reserved.error, StoreError::none, "T1 beside a hung unit");
  new_owner.fence.token = reserved.token;
  const Activated::Item activated = live.activate(new_owner, Offset(10));
  expect_error(report, activated.error, StoreError::none, "takeover from a hung unit");
  report.expect(Clock::now() - began < seconds(5), "a hung unit does not hold a takeover for long");
  zombie.write(*unit, old_owner, 0, 10);
  const UnitResult late = StoreProcess::commit(*unit, Offset(11));
  report.expect(late.verdict == UnitVerdict::timeout || late.verdict == UnitVerdict::superseded ||
                    late.verdict == UnitVerdict::retired,
                "the hung unit's commit is refused, was " + std::string(name(late.verdict)));
  expect_effects(report, world, 0, "a hung unit leaves nothing");
}

void t6_live_zombie(StoreWorld& world, Report& report) {
  StoreProcess zombie(world);
  StoreProcess live(world);
  const Holder old_owner = zombie.acquire(domain_of(), four_lanes, Offset(0));
  std::atomic<bool> over{false};
  std::atomic<bool> going{false};
  std::vector<std::thread> streams;
  std::vector<std::int64_t> reached(4, 0);
  for (std::uint16_t lane = 0; lane < 4; ++lane) {
    streams.emplace_back([&, lane] {
      while (!over) {
        const Offset from(reached[lane]);
        const UnitResult result = zombie.apply(old_owner, lane, from, from.next());
        if (result.verdict == UnitVerdict::applied) {
          ++reached[lane];
          going = true;
        } else if (result.verdict != UnitVerdict::contention) {
          going = true;  // a store that refuses everything must not hang the case
          return;
        }
      }
    });
  }
  while (!going) std::this_thread::yield();
  const auto began = Clock::now();
  Holder new_owner = live.grant(domain_of(), four_lanes);
  Activated::Item activated;
  activated.error = StoreError::contention;
  while (Clock::now() - began < seconds(15) && activated.error == StoreError::contention) {
    const Reserved::Item reserved = live.reserve(new_owner);
    if (reserved.error == StoreError::contention) continue;
    new_owner.fence.token = reserved.token;
    activated = live.activate(new_owner, Offset(0));
  }
  const auto took = Clock::now() - began;
  over = true;
  for (std::thread& stream : streams) stream.join();
  expect_error(report, activated.error, StoreError::none, "takeover from a busy zombie");
  report.expect(took < seconds(5), "a busy zombie does not starve a takeover");
  for (std::uint16_t lane = 0; lane < 4; ++lane) {
    expect_next(report, activated.lanes, lane, Offset(reached[lane]),
                "no effect of the zombie after the activation");
  }
}

void t6_cancel(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  const Holder other = process.acquire(domain_of(1), four_lanes, Offset(10));
  const auto idle = process.open_unit(holder, 0, Offset(10));
  const auto open = process.open_unit(holder, 1, Offset(10));
  process.write(*open, holder, 1, 10);
  process.store().cancel(holder.owner);
  process.write(*open, holder, 1, 10);
  process.write(*idle, holder, 0, 10);
  for (EffectUnit* unit : {idle.get(), open.get()}) {
    const UnitResult* failure = unit->failure();
    report.expect(failure != nullptr && failure->verdict == UnitVerdict::retired,
                  "a unit of an ended owner says retired");
    expect_verdict(report, StoreProcess::commit(*unit, Offset(11)), UnitVerdict::retired,
                   "commit of an ended owner");
  }
  const auto after = process.open_unit(holder, 2, Offset(10));
  expect_verdict(report, StoreProcess::commit(*after, Offset(11)), UnitVerdict::retired,
                 "a unit opened after the end");
  expect_error(report, process.advance_idle(holder, {{2, Offset(10), Offset(11)}}).error,
               StoreError::retired, "a request of an ended owner");
  expect_effects(report, world, 0, "an ended owner leaves nothing");
  expect_verdict(report, process.apply(other, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                 "other owners go on");
}

void t6_cancel_while_waiting(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder busy = process.acquire(domain_of(0), four_lanes, Offset(10));
  const Holder holder = process.acquire(domain_of(1), four_lanes, Offset(10));
  const auto first = process.open_unit(busy, 0, Offset(10));
  process.write(*first, busy, 0, 10);
  const auto waiting = process.open_unit(holder, 0, Offset(10));
  std::atomic<bool> started{false};
  std::thread handler([&] {
    started = true;
    process.write(*waiting, holder, 0, 10);  // waits where there is one writer
  });
  while (!started) std::this_thread::yield();
  const auto began = Clock::now();
  process.store().cancel(holder.owner);
  handler.join();
  report.expect(Clock::now() - began < seconds(2), "cancel ends the waiting at once");
  expect_verdict(report, StoreProcess::commit(*waiting, Offset(11)), UnitVerdict::retired,
                 "the waiting unit");
  expect_verdict(report, StoreProcess::commit(*first, Offset(11)), UnitVerdict::applied,
                 "the unit it waited for");
}

void t6_close(StoreWorld& world, Report& report) {
  {
    StoreProcess process(world);
    const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
    const auto open = process.open_unit(holder, 1, Offset(10));
    process.write(*open, holder, 1, 10);
    process.store().close(seconds(5));
    process.write(*open, holder, 1, 11);
    expect_verdict(report, StoreProcess::commit(*open, Offset(11)), UnitVerdict::retired,
                   "a unit of a closed store");
  }
  StoreProcess next(world);
  expect_effects(report, world, 0, "closing keeps nothing of open units");
  const Holder holder = next.acquire(domain_of(), four_lanes, Offset(99));
  expect_next(report, holder.lanes, 1, Offset(10), "the next life reads the store");
}

// T8

void t8_again(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  const Holder first = a.acquire(domain_of(), four_lanes, Offset(10));
  const Holder second = b.acquire(domain_of(), four_lanes);
  expect_verdict(report, a.apply(first, 0, Offset(10), Offset(11)), UnitVerdict::superseded,
                 "superseded");
  expect_verdict(report, b.apply(second, 0, Offset(10), Offset(12)), UnitVerdict::applied,
                 "in between");
  const Holder third = a.acquire(domain_of(), four_lanes, Offset(10));
  report.expect(third.fence.token > second.fence.token, "a new owner draws a later ticket");
  expect_next(report, third.lanes, 0, Offset(12), "and goes on where the other one was");
  expect_verdict(report, a.apply(third, 0, Offset(12), Offset(13)), UnitVerdict::applied,
                 "the new owner");
  expect_verdict(report, b.apply(second, 0, Offset(13), Offset(14)), UnitVerdict::superseded,
                 "now the other one is out");
}

void t8_lost_tail(StoreWorld& world, Report& report) {
  Holder old_owner;
  std::function<void()> restore;
  {
    StoreProcess a(world);
    a.acquire(domain_of(), four_lanes, Offset(10));
  }
  restore = world.remember();
  if (!restore) return;
  {
    StoreProcess a(world);
    old_owner = a.acquire(domain_of(), four_lanes);
    expect_verdict(report, a.apply(old_owner, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                   "an effect that the failover loses");
  }
  restore();
  StoreProcess a(world);
  StoreProcess b(world);
  expect_effects(report, world, 0, "the tail is gone");
  const Holder new_owner = b.acquire(domain_of(), four_lanes);
  report.expect(new_owner.fence.token == old_owner.fence.token, "the token was handed out again");
  expect_next(report, new_owner.lanes, 0, Offset(10), "progress went with its effect");
  expect_verdict(report, a.apply(old_owner, 0, Offset(10), Offset(11)), UnitVerdict::superseded,
                 "the same token under another nonce");
  expect_error(report, a.activate(old_owner, Offset(10)).error, StoreError::superseded,
               "nor can it be activated again");
  expect_verdict(report, b.apply(new_owner, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                 "the new owner");
}

void t8_ticket_above_token(StoreWorld& world, Report& report) {
  // Drawn before a failover that lost the draw, activated after it.
  StoreProcess process(world);
  for (const bool some_drawn : {false, true}) {
    const Domain domain = domain_of(some_drawn ? 1 : 0);
    Holder holder = process.grant(domain, one_lane);
    if (some_drawn) process.reserve(holder);
    holder.fence.token = Token(7);
    expect_error(report, process.activate(holder, Offset(10)).error, StoreError::none,
                 "a token above all tickets");
    const Reserved::Item next = process.reserve(process.grant(domain, one_lane));
    report.expect(next.token > Token(7), "later tickets are above the active token");
  }
}

// Lane rule and domains (3-effects, Lanes)

void lanes_rule_refused(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  for (const LaneRule rule : {LaneRule{8, Order::key}, LaneRule{4, Order::none}}) {
    Holder other = process.grant(domain_of(), rule);
    const Reserved::Item reserved = process.reserve(other);
    expect_error(report, reserved.error, StoreError::rule, "T1 under another rule");
    report.expect(reserved.message.find('4') != std::string::npos, "it names the stored rule");
    other.fence.token = Token(holder.fence.token.value() + 10);
    expect_error(report, process.activate(other, Offset(10)).error, StoreError::rule,
                 "T3 under another rule");
  }
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                 "the refused activations changed nothing");
}

void lanes_recreated_topic(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(0, 1), four_lanes, Offset(1000));
  Domain scope = domain_of(0, 1);
  scope.scope = "audit";
  Domain cluster = domain_of(0, 1);
  cluster.cluster = "cluster-2";
  for (const Domain& domain : {domain_of(0, 2), domain_of(1, 1), scope, cluster}) {
    const Holder other = process.acquire(domain, LaneRule{2, Order::key}, Offset(3));
    expect_next(report, other.lanes, 0, Offset(3), "another domain starts by itself");
    expect_verdict(report, process.apply(other, 0, Offset(3), Offset(4)), UnitVerdict::applied,
                   "another domain");
  }
  expect_verdict(report, process.apply(holder, 0, Offset(1000), Offset(1001)), UnitVerdict::applied,
                 "the first domain is untouched");
}

void lanes_most(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), LaneRule{1024, Order::key}, Offset(5));
  report.expect(holder.lanes.size() == 1024, "1024 lanes");
  expect_verdict(report, process.apply(holder, 1023, Offset(5), Offset(6)), UnitVerdict::applied,
                 "the last lane");
}

// E1, E3

void e1_roll_back(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  {
    const auto unit = process.open_unit(holder, 0, Offset(10));
    process.write(*unit, holder, 0, 10);
    unit->roll_back();
  }
  {
    const auto unit = process.open_unit(holder, 0, Offset(10));
    process.write(*unit, holder, 0, 10);
  }
  expect_effects(report, world, 0, "rolled back or dropped");
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(11)), UnitVerdict::applied,
                 "the lane can go on");
}

void e3_already_applied(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(13)), UnitVerdict::applied,
                 "first attempt");
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(13)),
                 UnitVerdict::already_applied, "the same again");
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(11)),
                 UnitVerdict::already_applied, "a part of it again");
  expect_effects(report, world, 3, "each once");
}

void e3_lookup(StoreWorld& world, Report& report) {
  StoreProcess a(world);
  StoreProcess b(world);
  const Holder holder = a.acquire(domain_of(), four_lanes, Offset(10));
  expect_verdict(report, a.apply(holder, 2, Offset(10), Offset(13)), UnitVerdict::applied,
                 "effect");
  const LookedUp found = a.look_up(holder, 2);
  expect_error(report, found.error, StoreError::none, "look-up");
  report.expect(found.lane == 2 && found.next_offset == Offset(13), "look-up reads the lane");
  b.acquire(domain_of(), four_lanes);
  expect_error(report, a.look_up(holder, 2).error, StoreError::superseded,
               "look-up under a fence that is not mine any more");
}

void e3_lost_reply(StoreWorld& world, Report& report, bool applied) {
  StoreProcess process(world);
  const Holder holder = process.acquire(domain_of(), four_lanes, Offset(10));
  {
    const auto unit = process.open_unit(holder, 0, Offset(10));
    process.write(*unit, holder, 0, 10);
    if (!world.lose_commit_reply(process.store(), *unit, applied)) return;
    expect_verdict(report, StoreProcess::commit(*unit, Offset(11)), UnitVerdict::in_doubt,
                   "COMMIT without a reply");
  }
  const LookedUp found = process.look_up(holder, 0);
  expect_error(report, found.error, StoreError::none, "look-up");
  report.expect(found.next_offset == (applied ? Offset(11) : Offset(10)),
                "look-up says which, on a new connection");
  expect_effects(report, world, applied ? 1 : 0, "effect and progress together");
  expect_verdict(report, process.apply(holder, 0, Offset(10), Offset(11)),
                 applied ? UnitVerdict::already_applied : UnitVerdict::applied,
                 "the next attempt decides");
  expect_effects(report, world, 1, "once");
  expect_verdict(report, process.apply(holder, 0, Offset(11), Offset(12)), UnitVerdict::applied,
                 "and the lane goes on");
}

void e3_lost_reply_applied(StoreWorld& world, Report& report) {
  e3_lost_reply(world, report, true);
}
void e3_lost_reply_not_applied(StoreWorld& world, Report& report) {
  e3_lost_reply(world, report, false);
}

void still_there(StoreWorld& world, Report& report) {
  StoreProcess process(world);
  report.expect(process.store().still_there().has_value(), "a store in place says so");
}

constexpr StoreCase all_cases[] = {
    {"T1_EachTicketIsAboveAllDrawnBeforeAlsoInAnotherLife", t1_tickets_increase},
    {"T1_EachDomainHasTicketsOfItsOwn", t1_many_domains},
    {"T3_FirstUseCreatesAllLanesAtTheValidatedStart", t3_first_use},
    {"T3_StoredProgressWinsOverTheStartGiven", t3_first_counts_once},
    {"T3_ALateActivationByAnOlderTokenChangesNothing", t3_older_token},
    {"T3_ARetriedActivationIsAcceptedWithProgressAsItIsNow", t3_retry},
    {"T3_AKindWithoutProgressLeavesItForTheFirstThatKeepsIt", t3_no_progress},
    {"T3_ALaneRuleThatNoOffsetDependsOnMayChangeUnderTheFence", t3_rule_without_progress},
    {"T3_ATakeoverReturnsWhatAnOpenUnitCommitted", t3_takeover_with_open_unit},
    {"T3_TheMostLanesAreActivatedTogether", lanes_most},
    {"T4_AnEffectComparesTokenNonceAndProgress", t4_compares_all},
    {"T4_AnOwnerThatNeverActivatedHasNoEffect", t4_unknown_domain},
    {"T4_ARefusedAdvanceLeavesNoneOfTheBatch", t4_refused_batch},
    {"T4_ALaneThatIsElsewhereStopsLoudly", t4_moved},
    {"T4_AGapBetweenOffsetsIsNoError", t4_offset_gap},
    {"T4_ProgressMovesWithoutAnEffect", t4_progress_alone},
    {"T4_LanesDoNotDisturbEachOther", t4_concurrent_lanes},
    {"T4_IdleLanesMoveTogetherOrNotAtAll", t4_idle_advance},
    {"T4_IdleLanesOfASupersededOwnerDoNotMove", t4_idle_advance_refused},
    {"T4_ACommitByTheHandlerIsCaught", t4_commit_by_hand},
    {"T4_AFailedStatementDecidesTheUnit", t4_failed_statement},
    {"T5_NotesDecideNothing", t5_notes},
    {"T6_AHungUnitDoesNotHoldATakeover", t6_hung_unit},
    {"T6_ABusyZombieDoesNotStarveATakeover", t6_live_zombie},
    {"T6_CancelEndsOpenUnitsForEver", t6_cancel},
    {"T6_CancelEndsAWaitingUnitAtOnce", t6_cancel_while_waiting},
    {"T6_CloseEndsOpenUnits", t6_close},
    {"T8_ASupersededMemberGoesOnUnderALaterTicket", t8_again},
    {"T8_AReissuedTokenIsToldApartByItsNonce", t8_lost_tail},
    {"T8_TicketsNeverFallBelowAnActiveToken", t8_ticket_above_token},
    {"Lanes_AnotherRuleIsRefused", lanes_rule_refused},
    {"Lanes_ARecreatedTopicIsANewDomain", lanes_recreated_topic},
    {"E1_EffectAndProgressRollBackTogether", e1_roll_back},
    {"E3_ARepeatedUnitIsAlreadyApplied", e3_already_applied},
    {"E3_ALookupReadsTheLaneUnderTheFence", e3_lookup},
    {"E3_ALostReplyOfAnAppliedCommitIsFound", e3_lost_reply_applied},
    {"E3_ALostReplyOfACommitThatWasNotIsDecidedByTheNextAttempt", e3_lost_reply_not_applied},
    {"StoreInPlaceSaysSo", still_there},
};

// Fuzz

class Worker {
 public:
  Worker(StoreWorld& world, StoreProcess& process, const TakeoverFuzz& fuzz, std::uint64_t seed)
      : world_(world), process_(process), fuzz_(fuzz), random_(seed) {}

  void run(Clock::time_point until) {
    while (Clock::now() < until) hold(until);
  }

  TakeoverCounts counts;
  std::vector<std::string> broken;

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void hold(Clock::time_point until) {
    const LaneRule rule{fuzz_.lanes, Order::key};
    const auto partition =
        static_cast<std::int32_t>(below(static_cast<std::uint64_t>(fuzz_.partitions)));
    Holder holder = process_.grant(domain_of(partition), rule);
    const Reserved::Item reserved = process_.reserve(holder);
    if (reserved.error != StoreError::none) return;
    holder.fence.token = reserved.token;
    if (below(4) == 0) take_time(std::chrono::microseconds(below(2000)));
    const Activated::Item activated = process_.activate(holder, Offset(0));
    if (activated.error != StoreError::none) return;
    holder.lanes = activated.lanes;
    ++counts.takeovers;
    const std::uint64_t units = 1 + below(24);
    for (std::uint64_t i = 0; i < units && Clock::now() < until; ++i) {
      if (!one_unit(holder)) return;
    }
  }

  /// False: the owner is over.
  bool one_unit(Holder& holder) {
    const auto lane = static_cast<std::uint16_t>(below(fuzz_.lanes));
    const Offset from = holder.next(lane);
    const Offset to(from.value() + 1 + static_cast<std::int64_t>(below(3)));
    UnitResult result;
    {
      const auto unit = process_.open_unit(holder, lane, from);
      for (std::int64_t offset = from.value(); offset < to.value(); ++offset) {
        process_.write(*unit, holder, lane, offset);
      }
      if (below(3) == 0) take_time(std::chrono::microseconds(below(3000)));
      if (below(16) == 0) return true;  // dropped, as by a handler that throws
      if (below(12) == 0) world_.lose_commit_reply(process_.store(), *unit, below(2) == 0);
      result = StoreProcess::commit(*unit, to);
    }
    switch (result.verdict) {
      case UnitVerdict::applied:
      case UnitVerdict::already_applied:
        ++counts.applied;
        holder.lanes[lane].next_offset = to;
        return true;
      case UnitVerdict::contention:
        return true;
      case UnitVerdict::superseded:
        ++counts.refused;
        return false;
      case UnitVerdict::in_doubt: {
        ++counts.in_doubt;
        const LookedUp looked = process_.look_up(holder, lane);
        if (looked.error != StoreError::none) return false;
        // Found = done; not found proves nothing yet, the next attempt decides.
        if (looked.next_offset) holder.lanes[lane].next_offset = looked.next_offset;
        return true;
      }
      default:
        broken.push_back("a unit ended " + std::string(name(result.verdict)) + " " +
                         result.message);
        return false;
    }
  }

  StoreWorld& world_;
  StoreProcess& process_;
  const TakeoverFuzz& fuzz_;
  std::mt19937_64 random_;
};

void judge(StoreWorld& world, const TakeoverFuzz& fuzz, Report& report) {
  std::map<std::pair<std::int32_t, std::uint16_t>,
           std::map<std::int64_t, std::vector<std::int64_t>>>
      by_lane;
  for (const StoredEffect& effect : world.effects()) {
    by_lane[{effect.partition, effect.lane}][effect.offset].push_back(effect.token);
  }
  StoreProcess reader(world);
  for (std::int32_t partition = 0; partition < fuzz.partitions; ++partition) {
    const auto lanes = stored(reader, domain_of(partition), LaneRule{fuzz.lanes, Order::key});
    for (std::uint16_t lane = 0; lane < lanes.size(); ++lane) {
      const std::string where =
          "partition " + std::to_string(partition) + " lane " + std::to_string(lane);
      const auto& offsets = by_lane[{partition, lane}];
      std::int64_t next = 0;
      std::int64_t token = 0;
      std::uint64_t duplicates = 0;
      std::uint64_t stale = 0;
      std::uint64_t holes = 0;
      for (const auto& [offset, tokens] : offsets) {
        if (offset != next) ++holes;
        next = offset + 1;
        duplicates += tokens.size() - 1;
        for (const std::int64_t one : tokens) {
          if (one < token) ++stale;
          token = std::max(token, one);
        }
      }
      report.expect(duplicates == 0, where + ": " + std::to_string(duplicates) + " duplicates");
      report.expect(holes == 0, where + ": " + std::to_string(holes) + " holes");
      report.expect(stale == 0, where + ": " + std::to_string(stale) + " stale effects");
      report.expect(lanes[lane].next_offset == Offset(next),
                    where + ": progress " + text(lanes[lane].next_offset) + ", effects up to " +
                        std::to_string(next));
    }
  }
}

}  // namespace

std::span<const StoreCase> store_cases() {
  return all_cases;
}

TakeoverCounts fuzz_takeovers(StoreWorld& world, const TakeoverFuzz& fuzz, Report& report) {
  TakeoverCounts counts;
  {
    std::vector<std::unique_ptr<StoreProcess>> processes;
    std::vector<std::unique_ptr<Worker>> workers;
    for (int process = 0; process < fuzz.processes; ++process) {
      processes.push_back(std::make_unique<StoreProcess>(world));
      for (int worker = 0; worker < fuzz.workers_per_process; ++worker) {
        workers.push_back(std::make_unique<Worker>(world, *processes.back(), fuzz,
                                                   fuzz.seed * 1000 + workers.size()));
      }
    }
    const auto until = Clock::now() + fuzz.duration;
    std::vector<std::thread> threads;
    for (const auto& worker : workers) {
      threads.emplace_back([&worker = *worker, until] {
        try {
          worker.run(until);
        } catch (const NoAnswer& error) {
          worker.broken.emplace_back(error.what());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& worker : workers) {
      counts.takeovers += worker->counts.takeovers;
      counts.applied += worker->counts.applied;
      counts.refused += worker->counts.refused;
      counts.in_doubt += worker->counts.in_doubt;
      for (const std::string& what : worker->broken) report.expect(false, what);
    }
  }
  judge(world, fuzz, report);
  report.expect(counts.takeovers > 0 && counts.applied > 0, "something was compared");
  return counts;
}

}  // namespace tenure::testing
