"""A handler that ignores its stop token holds up nobody longer than the budgets say.

Measured from the owner's events: frozen within the drain budget, released within budget and commit
slice, 0.5 s of tolerance each. The partition moves, and what completes late changes nothing.
"""

import json
import pathlib
import sys
import time

from support import judges, plan, rig

PARTITIONS = 2
RECORDS = 20  # a partition
HANGS_AT = 5  # offset
LIMIT = 30.0
TOLERANCE = 0.5
SESSION, HEARTBEAT = plan.SESSION, 0.5
DRAIN, COMMIT, CLOSE, SHUTDOWN = 1.5, 1.0, 2.0, 4.0
STOP_LIMIT = SHUTDOWN + COMMIT + CLOSE + 1.0
HANDLER = pathlib.Path(__file__).with_name("hanging_handler.py")


class Run:
    def __init__(self, options, broker, folder, tenure, log_tool):
        self.options = options
        self.broker = broker
        self.folder = folder
        self.tenure = tenure
        name = f"tenure-stuck-{options.protocol}-{folder.name}"
        self.log = rig.LogTool(log_tool, broker.bootstrap, name, name)
        self.witness = folder / "handled"
        self.gate = folder / "gate"
        self.members = []
        self.times = {}

    def make_member(self, name):
        command = [sys.executable, HANDLER, name, self.witness, self.gate]
        member = rig.Member(name, self.folder, self.tenure, {
            "version": 1,
            "kafka": {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": self.log.group,
                "client.id": name,
                "max.poll.interval.ms": 15000,
                **rig.group_settings(self.options.protocol, SESSION, HEARTBEAT),
            },
            "topics": [self.log.topic],
            "order": "key",
            # No timeout in reach: it would end the handler, and that is another promise.
            "handler": {"exec": {"command": [str(word) for word in command], "processes": 1,
                                 "timeout_ms": 120000}},
            "commit": {"interval_ms": 200},
            "drain": {"budget_ms": round(DRAIN * 1000), "commit_ms": round(COMMIT * 1000),
                      "margin_ms": 500},
            "shutdown": {"budget_ms": round(SHUTDOWN * 1000), "close_ms": round(CLOSE * 1000)},
            "log": {"format": "json"},
        })
        self.members.append(member)
        return member

    def expect(self, what, condition, seconds=LIMIT):
        def tick():
            for member in self.members:
                member.check_alive()

        if not rig.wait_until(condition, seconds, tick):
            raise rig.Broken(f"not within {seconds:.0f} s: {what}")

    def handled(self, phase, member=None):
        """Places, as the handlers themselves noted them."""
        if not self.witness.exists():
            return set()
        lines = map(json.loads, self.witness.read_text().splitlines())
        return {(line["partition"], line["offset"]) for line in lines
                if line["phase"] == phase and member in (None, line["member"])}

    def run(self):
        rig.say(f"stuck handler: protocol {self.options.protocol}, {PARTITIONS} partitions, "
                f"offset {HANGS_AT} of each hangs in a; budget {DRAIN} s, commit {COMMIT} s")
        if self.broker.given:
            self.log.create(PARTITIONS, self.options.replication)
        else:
            self.broker.create_topic(self.log.topic, PARTITIONS)
        self.send()
        first = self.make_member("a").start()
        offsets = self.log.watch_offsets()
        try:
            self.hang(first, offsets)
            for member in self.members:
                member.terminate()
            while not all([member.check_stopped(STOP_LIMIT, may_be_cut=False)
                           for member in self.members]):
                time.sleep(0.02)
            return self.judge(offsets)
        finally:
            offsets.close()
            for member in self.members:
                if member.running():
                    member.kill()
            if self.broker.given:
                self.log.drop()

    def send(self):
        records = [plan.Record(partition, f"key-{seq % 7}", json.dumps(
                       {"seq": seq, "amount": 1, **({"hang": "a"} if seq == HANGS_AT else {})}))
                   for seq in range(RECORDS) for partition in range(PARTITIONS)]
        producer = rig.Producer(self.log, records, 10_000, 0.0)
        try:
            producer.finish()
        finally:
            producer.close()

    def hang(self, first, offsets):
        stuck = {(partition, HANGS_AT) for partition in range(PARTITIONS)}
        # The key of the stuck record waits behind it, the others go on.
        others = {(partition, seq) for seq in range(RECORDS) for partition in range(PARTITIONS)
                  if seq % 7 != HANGS_AT % 7 or seq < HANGS_AT}
        self.expect("a handles all but what hangs", lambda: self.handled("done") == others)
        self.expect("both records hang", lambda: stuck <= self.handled("begun", "a"))

        second = self.make_member("b").start()
        self.expect("a partition moves to b", lambda: self.moved(first, second))
        moved = self.moved(first, second)
        self.expect("b handles what hung in a",
                    lambda: (moved, HANGS_AT) in self.handled("done", "b"))
        self.expect("b commits its partition", lambda: self.at_end(offsets, moved))
        self.measure(first)

        acted = len(first.events())
        self.gate.touch()
        self.expect("a reports the late completion",
                    lambda: first.seen("record.late", partition=moved, offset=HANGS_AT))
        self.expect("all is handled and committed",
                    lambda: all(self.at_end(offsets, p) for p in range(PARTITIONS)))
        for event in first.events()[acted:]:
            if event.get("partition") == moved and event["event"].startswith(("commit.", "frontier.")):
                raise rig.Broken(f"a acts on the partition it lost: {event}")

    def moved(self, first, second):
        """The partition that b acquired after a had released it with work in flight."""
        released = {event["partition"] for event in first.events("owner.released")}
        for event in second.events("owner.acquired"):
            if event["partition"] in released:
                return event["partition"]
        return None

    def at_end(self, offsets, partition):
        ends = offsets.ask()
        return ends is not None and any(
            end.partition == partition and end.committed == end.end for end in ends)

    def measure(self, first):
        """Seconds from the revocation; the same clock, the owner's own process."""
        revoked = {}
        limits = {"owner.frozen": DRAIN + TOLERANCE, "owner.released": DRAIN + COMMIT + TOLERANCE}
        for event in first.events("owner.revoked", *limits):
            grant = (event["partition"], event["grant"])
            if event["event"] == "owner.revoked":
                revoked[grant] = event["mono_ns"]
                continue
            seconds = (event["mono_ns"] - revoked[grant]) / 1e9
            longest = self.times.get(event["event"], 0.0)
            self.times[event["event"]] = max(longest, seconds)
            if seconds > limits[event["event"]]:
                raise rig.Broken(f"{event['event']} {seconds:.2f} s after owner.revoked; "
                                 f"{limits[event['event']]:.1f} s at most: {event}")
        if self.times.keys() != limits.keys():
            raise rig.Broken(f"a told of {sorted(self.times)} only, not of {sorted(limits)}")

    def judge(self, offsets):
        """J1 and J4; this handler keeps no accounts, and may see a record twice."""
        records, ends = self.log.read()
        findings = judges.Findings()
        done = self.handled("done")
        for record in records:
            if (record.partition, record.offset) not in done:
                findings.add("LOST", f"{record} was never done")
        evidence = judges.Evidence(records=records, ends=offsets.ask() or [])
        compared = {"J1": len(records), "J4": judges.judge_commits(evidence, findings)}
        missing = [f"{name} compared nothing" for name, count in compared.items() if count == 0]
        if len(ends) != PARTITIONS:
            missing.append("a partition could not be read")
        return judges.Verdict(findings.take(), missing, compared)

    def summary(self, verdict):
        return (f"{verdict.compared['J1']} records  frozen after {self.times['owner.frozen']:.2f}s "
                f"(at most {DRAIN + TOLERANCE}), released after "
                f"{self.times['owner.released']:.2f}s (at most {DRAIN + COMMIT + TOLERANCE})")
