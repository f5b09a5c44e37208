"""The run: records are produced while members join, leave, are killed and frozen at random."""

import collections
import dataclasses
import heapq
import json
import time

from support import judges, plan, rig, scenario

HEAL_LIMIT = 90.0
# R10, and what two busy cores may add to five processes that end at once.
STOP_LIMIT = scenario.STOP_BUDGET + 3.0
TAKEOVER_LIMIT = 20.0  # a freeze lasts longer than drawn until the takeover, but not for ever
AT_LOCK = 0.3  # longer than the pause between two bursts of records
RETRIES = 40  # of a fault that must happen and cannot yet
LEAST_SECONDS = 20.0  # production is spread over so much, so that faults meet work


@dataclasses.dataclass
class Fault:
    """One that was done, and what the database shows about it."""
    kind: str
    member: str
    first_pos: int  # last row before it
    last_pos: int | None = None  # last row before its end (a freeze)
    long: bool = False
    owned: set = dataclasses.field(default_factory=set)  # partitions
    write_open: bool = False


class Run(scenario.Scenario):
    def __init__(self, options, *where):
        super().__init__(options, *where)
        self.workload = plan.Workload(options.seed, options.protocol, options.records)
        self.seconds = max(LEAST_SECONDS, options.records / options.rate)
        self.steps = plan.draw_steps(options.seed, options.protocol, self.seconds)
        self.counts = collections.Counter()
        self.faults = []
        self.thaws = []  # heap of (when, number, last moment, member, fault)
        self.coordinator_killed = None
        self.ends_before_stop = []

    # ---- the plan

    def print_plan(self):
        options = self.options
        rig.say(f"seed {options.seed}: protocol {options.protocol}, {options.records} records at "
                f"{options.rate}/s over {self.seconds:.0f} s, {self.workload.keys} keys, partition "
                f"{self.workload.single_key_partition} of {plan.PARTITIONS} has one")
        for step in self.steps:
            rig.say("  " + json.dumps({k: v for k, v in dataclasses.asdict(step).items() if v}))

    # ---- the run

    def play(self, offsets):
        self.print_plan()
        first = self.join(start=False)
        self.make_store(first)
        first.start()
        for _ in range(plan.MEMBERS_AT_START - 1):
            self.join()
        self.expect("every partition has an owner",
                    lambda: len({one.partition for one in self.database.activations()})
                    == plan.PARTITIONS)
        sampler = rig.Sampler(offsets, self.database)
        producer = rig.Producer(self.log, self.workload.records, self.options.rate, self.seconds)
        try:
            self.make_faults(producer)
            self.heal(offsets)
            # Nothing is left to drain: no reason for 75 any more.
            last = [member for member in self.members if member.active()]
            self.stop_members(last, STOP_LIMIT, may_be_cut=lambda member: member not in last)
        finally:
            producer.close()
            sampler.close()
        return self.judge(offsets, sampler)

    def join(self, start=True):
        member = self.make_member(f"m{len(self.members)}")
        return member.start() if start else member

    def make_faults(self, producer):
        began = time.monotonic()
        steps = [(step.at, 0, number, step) for number, step in enumerate(self.steps)]
        coordinator_at = 0.4 * self.seconds if self.options.kill_coordinator else None
        while steps or producer.busy():
            self.tick()
            now = time.monotonic() - began
            if steps and now >= steps[0][0]:
                _, retries, number, step = heapq.heappop(steps)
                done = self.do(step, now)
                if not done and step.must and retries < RETRIES:
                    heapq.heappush(steps, (now + 0.5, retries + 1, number, step))
            if coordinator_at and now >= coordinator_at:
                coordinator_at = None
                self.coordinator_killed = self.broker.kill_coordinator(self.log.group)
                rig.say(f"  {now:.1f}s coordinator killed: node {self.coordinator_killed}")
            time.sleep(0.02)
        producer.finish()

    def tick(self):
        """What is due at any time: thaws, and a look at every process."""
        while self.thaws and self.thaws[0][0] <= time.monotonic():
            self.thaw(*heapq.heappop(self.thaws))
        for member in self.members:
            if member.told_to_stop is not None:
                member.check_stopped(STOP_LIMIT, may_be_cut=True)
            elif not member.frozen:
                member.check_alive()

    def owners(self, members):
        """Those who have made an effect lately: a fault that hits an idle one shows nothing."""
        active = {member.name: member for member in members}
        rows = self.database.latest_writers(50)
        return [active[name] for name in rows if name in active]

    def do(self, step, now):
        """True when it was done. Else it may be tried again; what makes it possible is done."""
        kind = step.kind
        active = [member for member in self.members if member.active()]
        alive = [member for member in self.members if member.running()]
        candidates = self.owners(active) if kind in ("kill", "freeze") else active
        # One goes on working whatever happens, and the machine must carry them all.
        if kind != "join" and (len(active) < 2 or not candidates):
            if step.must and len(active) >= 2:
                return False  # nobody has anything to lose yet
            kind = "join"
        if kind == "join" and len(alive) >= plan.MEMBERS_MAX:
            if len(active) < 2:
                return False
            kind, candidates = "leave", active
        if kind == "join":
            member = self.join()
        else:
            member = candidates[int(step.pick * len(candidates))]
        fault = Fault(kind, member.name, self.database.last_pos())
        if kind == "leave":
            member.terminate()
        elif kind == "kill":
            member.kill()
        elif kind == "freeze":
            self.freeze(member, step, fault)
        self.faults.append(fault)
        self.counts[kind] += 1
        note = " inside a write transaction" if fault.write_open else ""
        rig.say(f"  {now:.1f}s {kind} {member.name}{note}")
        return kind == step.kind

    def freeze(self, member, step, fault):
        """A freeze inside SQLite's write lock stalls all until the thaw. Taken when drawn so, else
        tried again at another moment."""
        for _ in range(30):
            with self.database.write_lock(step.where == "at lock"):
                if step.where == "at lock":
                    time.sleep(AT_LOCK)  # its workers come to the lock
                member.freeze()
            fault.write_open = self.database.write_open()
            if step.where == "anywhere" or not fault.write_open:
                break
            member.thaw()
            time.sleep(0.007)
        if not member.frozen:
            member.freeze()
        fault.first_pos = self.database.last_pos()
        fault.owned = self.database.partitions_of(member.name)
        fault.long = step.length > plan.SESSION
        due = time.monotonic() + step.length
        last = due + (TAKEOVER_LIMIT if fault.long and not fault.write_open else 0.0)
        heapq.heappush(self.thaws, (due, len(self.faults), last, member, fault))

    def thaw(self, _, number, last, member, fault):
        pos = self.database.last_pos()
        taken = any(one.pos > fault.first_pos and one.partition in fault.owned
                    for one in self.database.activations())
        if not taken and time.monotonic() < last:
            heapq.heappush(self.thaws, (time.monotonic() + 0.2, number, last, member, fault))
            return
        fault.last_pos = pos
        member.thaw()

    def heal(self, offsets):
        while self.thaws:
            self.tick()
            time.sleep(0.02)
        if not any(member.active() for member in self.members):
            self.join()

        def caught_up():
            ends = offsets.ask()
            self.ends_before_stop = ends or self.ends_before_stop
            return scenario.all_committed(ends)

        began = time.monotonic()
        if not rig.wait_until(caught_up, HEAL_LIMIT, self.tick):
            # The judge will see it, too: these are ends that it is given.
            rig.say(f"  not caught up {HEAL_LIMIT:.0f} s after the last fault")
        self.counts["heal ms"] = round((time.monotonic() - began) * 1000)

    # ---- the verdict

    def judge(self, offsets, sampler):
        evidence = self.gather(offsets, sampler.samples)
        if len(evidence.records) != self.options.records:
            raise rig.Failure(f"the topic holds {len(evidence.records)} records, not the "
                              f"{self.options.records} acknowledged")
        evidence.ends += self.ends_before_stop
        for member in self.members:
            self.count_events(member)
        return judges.judge(evidence, self.sights(evidence))

    def count_events(self, member):
        events = collections.Counter(event["event"] for event in member.events())
        self.counts.update(events)
        for event in member.events("app.stopped"):
            self.counts["refused at the end"] += event["refused"]
            if event["refused"] != events["effect.refused"]:
                raise rig.Broken(f"app.stopped of {member.name} counts refused {event['refused']}, "
                                 f"its history has {events['effect.refused']} effect.refused")

    def sights(self, evidence):
        writer_of = dict(evidence.activated_by)
        positions = sorted(evidence.activations)
        newest = {}
        at = 0
        for effect in evidence.effects:
            while at < len(positions) and positions[at].pos < effect.pos:
                newest[positions[at].partition] = positions[at].token
                at += 1
            if effect.partition in newest:
                writer_of.setdefault((effect.partition, newest[effect.partition]), effect.member)
        taken = list(takeovers(positions, writer_of))
        self.counts["takeovers"] = len(taken)

        def taken_from(kind, during=False):
            """Faults after which another process was activated for what the victim owned."""
            return sum(any(before == fault.member and fault.first_pos < pos
                           and (not during or pos <= fault.last_pos) for pos, before, _ in taken)
                       for fault in self.faults
                       if fault.kind == kind and (fault.long or not during))

        self.counts["stalls"] = sum(fault.write_open for fault in self.faults)
        sights = [
            ("a partition that moved from process to process", bool(taken)),
            ("a killed owner whose partition another took over", taken_from("kill") > 0),
            ("an owner frozen past its session, whose partition another took over meanwhile",
             taken_from("freeze", during=True) > 0),
            ("a member that left", self.counts["leave"] > 0),
            ("a member that joined during the run", self.counts["join"] > 0),
            ("effects in the partition of a single key",
             any(e.partition == self.workload.single_key_partition for e in evidence.effects)),
        ]
        if self.options.kill_coordinator:
            sights.append(("the coordinator's node killed", self.coordinator_killed is not None))
        return sights

    def summary(self, verdict):
        count = self.counts
        found = {finding.violation: finding.count for finding in verdict.findings}
        return (f"{verdict.compared['J1']} records  {found.get('LOST', 0)} lost  "
                f"{found.get('DUPLICATE EFFECT', 0)} duplicate  "
                f"{found.get('KEY REORDER', 0)} reordered  {found.get('STALE EFFECT', 0)} stale  "
                f"join {count['join']} leave {count['leave']} kill {count['kill']} "
                f"freeze {count['freeze']} (stalls {count['stalls']})  "
                f"takeovers {count['takeovers']}  refused {count['effect.refused']} "
                f"(app.stopped {count['refused at the end']})  late {count['record.late']}  "
                f"replayed {count['record.replayed']}  skipped {count['record.skipped']}  "
                f"rebalances {count['group.rebalancing']}  grants {count['owner.granted']}  "
                f"healed in {count['heal ms'] / 1000:.1f}s")


def takeovers(activations, writer_of):
    """(pos, from, to) of each activation by another process than the one before."""
    last = {}
    for one in activations:
        writer = writer_of.get((one.partition, one.token))
        if writer is None:
            continue  # activated, and ended before its first effect and its first event
        before = last.get(one.partition)
        if before is not None and before != writer:
            yield one.pos, before, writer
        last[one.partition] = writer
