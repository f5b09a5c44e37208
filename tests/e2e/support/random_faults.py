"""The run: records are produced while members join, leave, are killed and frozen at random."""

import collections
import dataclasses
import heapq
import json
import time

from support import judges, plan, rig

HEARTBEAT = 0.5
HEAL_LIMIT = 90.0
DRAIN, COMMIT, CLOSE, SHUTDOWN = 1.5, 1.0, 2.0, 4.0
# R10, and what two busy cores may add to five processes that end at once.
STOP_LIMIT = SHUTDOWN + COMMIT + CLOSE + 3.0
LEAST_SECONDS = 20.0  # production is spread over so much, so that faults meet work


@dataclasses.dataclass
class Options:
    protocol: str
    seed: int
    records: int
    rate: int
    kill_coordinator: bool
    replication: int


@dataclasses.dataclass
class Fault:
    """One that was done, and what the database shows about it."""
    kind: str
    member: str
    first_pos: int  # last row before it
    last_pos: int | None = None  # last row before its end (a freeze)
    long: bool = False
    write_open: bool = False


class Run:
    def __init__(self, options, broker, folder, tenure, log_tool):
        self.options = options
        self.broker = broker
        self.folder = folder
        self.tenure = tenure
        name = f"tenure-chaos-{options.protocol}-{options.seed}-{folder.name}"
        self.log = rig.LogTool(log_tool, broker.bootstrap, name, name)
        self.database = rig.Database(folder / "effects.db")
        self.workload = plan.Workload(options.seed, options.protocol, options.records)
        self.seconds = max(LEAST_SECONDS, options.records / options.rate)
        self.steps = plan.draw_steps(options.seed, options.protocol, self.seconds)
        self.members = []
        self.counts = collections.Counter()
        self.faults = []
        self.thaws = []  # heap of (when, number, member, fault)
        self.next_slot = 0
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

    def config(self, member):
        return {
            "version": 1,
            "kafka": {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": self.log.group,
                "client.id": member,
                "max.poll.interval.ms": 15000,
                **rig.group_settings(self.options.protocol, plan.SESSION, HEARTBEAT),
            },
            "topics": [self.log.topic],
            "order": "key",
            "handler": {"sql": {"statements": rig.handler_statements(member)}},
            "effect": {"kind": "transaction"},
            "store": {"sqlite": {"path": str(self.database.path)}},
            "commit": {"interval_ms": 500},
            "drain": {"budget_ms": round(DRAIN * 1000), "commit_ms": round(COMMIT * 1000),
                      "margin_ms": 500},
            "shutdown": {"budget_ms": round(SHUTDOWN * 1000), "close_ms": round(CLOSE * 1000)},
            "log": {"format": "json"},
        }

    def make_member(self):
        name = f"m{self.next_slot}"
        self.next_slot += 1
        member = rig.Member(name, self.folder, self.tenure, self.config(name))
        self.members.append(member)
        return member

    # ---- the run

    def run(self):
        """The verdict. Leaves nothing running."""
        self.print_plan()
        if self.broker.given:
            self.log.create(plan.PARTITIONS, self.options.replication)
        else:
            self.broker.create_topic(self.log.topic, plan.PARTITIONS)
        first = self.make_member()
        first.store_init()
        self.database.install_witnesses()
        first.start()
        for _ in range(plan.MEMBERS_AT_START - 1):
            self.make_member().start()
        offsets = self.log.watch_offsets()
        sampler = rig.Sampler(offsets, self.database)
        producer = rig.Producer(self.log, self.workload.records, self.options.rate, self.seconds)
        try:
            self.make_faults(producer)
            self.heal(offsets)
            self.stop_all()
            sampler.close()
            return self.judge(offsets, sampler)
        finally:
            producer.close()
            sampler.ended.set()
            offsets.close()
            for member in self.members:
                if member.running():
                    member.kill()
            if self.broker.given:
                self.log.drop()

    def make_faults(self, producer):
        began = time.monotonic()
        steps = collections.deque(self.steps)
        coordinator_at = began + 0.4 * self.seconds if self.options.kill_coordinator else None
        while steps or producer.busy():
            now = time.monotonic()
            self.tick()
            if steps and now - began >= steps[0].at:
                self.do(steps.popleft())
            if coordinator_at and now >= coordinator_at:
                coordinator_at = None
                self.coordinator_killed = self.broker.kill_coordinator(self.log.group)
                rig.say(f"  {now - began:.1f}s coordinator killed: node {self.coordinator_killed}")
            time.sleep(0.02)
        producer.finish()

    def tick(self):
        """What is due at any time: thaws, and a look at every process."""
        while self.thaws and self.thaws[0][0] <= time.monotonic():
            self.thaw(heapq.heappop(self.thaws))
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

    def do(self, step):
        kind = step.kind
        active = [member for member in self.members if member.active()]
        candidates = self.owners(active) if kind in ("kill", "freeze") else active
        alive = [member for member in self.members if member.running()]
        # One goes on working whatever happens, and the machine must carry them all.
        if kind != "join" and (len(active) < 2 or not candidates):
            kind = "join"
        if kind == "join" and len(alive) >= plan.MEMBERS_MAX:
            kind = "leave"
            candidates = active
        if kind == "join":
            member = self.make_member().start()
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
        rig.say(f"  {step.at:.1f}s {kind} {member.name}{note}")

    def freeze(self, member, step, fault):
        """A freeze inside SQLite's write lock stalls all until the thaw. Taken when drawn so, else
        tried again at another moment."""
        for _ in range(30):
            fault.first_pos = self.database.last_pos()
            member.freeze()
            fault.write_open = self.database.write_open()
            if step.anywhere or not fault.write_open:
                break
            member.thaw()
            time.sleep(0.007)
        if not member.frozen:
            member.freeze()
        fault.long = step.length > plan.SESSION
        heapq.heappush(self.thaws,
                       (time.monotonic() + step.length, len(self.faults), member, fault))

    def thaw(self, due):
        _, _, member, fault = due
        fault.last_pos = self.database.last_pos()
        member.thaw()

    def heal(self, offsets):
        while self.thaws:
            self.tick()
            time.sleep(0.02)
        if not any(member.active() for member in self.members):
            self.make_member().start()

        def caught_up():
            ends = offsets.ask()
            if ends is None:
                return False
            self.ends_before_stop = ends
            return (sum(end.end for end in ends) >= self.options.records
                    and all((end.committed or 0) == end.end for end in ends))

        began = time.monotonic()
        if not rig.wait_until(caught_up, HEAL_LIMIT, self.tick):
            # The judge will see it, too: these are ends that it is given.
            rig.say(f"  not caught up {HEAL_LIMIT:.0f} s after the last fault")
        self.counts["heal ms"] = round((time.monotonic() - began) * 1000)

    def stop_all(self):
        last = [member for member in self.members if member.active()]
        for member in last:
            member.terminate()
        waiting = [member for member in self.members if member.told_to_stop is not None]
        # Nothing is left to drain: no reason for 75 any more.
        while not all([member.check_stopped(STOP_LIMIT, may_be_cut=member not in last)
                       for member in waiting]):
            time.sleep(0.02)

    # ---- the verdict

    def judge(self, offsets, sampler):
        self.database.require_whole()
        evidence = judges.Evidence()
        evidence.records, ends = self.log.read()
        evidence.effects = self.database.effects()
        evidence.activations = self.database.activations()
        evidence.accounts = self.database.accounts()
        evidence.samples = sampler.samples
        rig.wait_until(lambda: self.read_ends(offsets, evidence), 30)
        if {end.partition: end.end for end in evidence.ends} != ends:
            raise rig.Failure("the topic still grows, or its partitions could not be read")
        evidence.ends = self.ends_before_stop + evidence.ends
        if len(evidence.records) != self.options.records:
            raise rig.Failure(f"the topic holds {len(evidence.records)} records, not the "
                              f"{self.options.records} acknowledged")
        evidence.activated_by = {
            (event["partition"], event["token"]): member.name for member in self.members
            for event in member.events("owner.acquired") if event.get("token")}
        for member in self.members:
            for event in member.events():
                self.counts[event["event"]] += 1
                if event["event"] == "app.stopped":
                    self.counts["refused at the end"] += event.get("refused") or 0
        return judges.judge(evidence, self.sights(evidence))

    def read_ends(self, offsets, evidence):
        evidence.ends = offsets.ask() or []
        return bool(evidence.ends)

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

        def followed(kind, during=False):
            """Faults after which another process was activated for what the victim owned."""
            return sum(any(before == fault.member and fault.first_pos < pos
                           and (not during or pos <= fault.last_pos) for pos, before, _ in taken)
                       for fault in self.faults if fault.kind == kind and (fault.long or not during))

        self.counts["taken from the frozen"] = followed("freeze", during=True)
        self.counts["taken from the killed"] = followed("kill")
        self.counts["stalls"] = sum(fault.write_open for fault in self.faults)
        sights = [
            ("a partition that moved from process to process", bool(taken)),
            ("a killed owner whose partition another took over", followed("kill") > 0),
            ("an owner frozen past its session, whose partition another took over meanwhile",
             followed("freeze", during=True) > 0),
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
