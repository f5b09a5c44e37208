"""A handler that ignores its stop token holds up nobody longer than the budgets say.

Measured from the owner's events: frozen within the drain budget, released within budget and commit
slice, 0.5 s of tolerance each. The partition moves, and what completes late changes nothing.
"""

import json
import pathlib
import sys

from support import judges, plan, rig, scenario
from support.scenario import COMMIT, DRAIN

PARTITIONS = 2
RECORDS = 20  # a partition
KEYS = 7
HANGS_AT = 5  # offset; the first record of its key
TOLERANCE = 0.5
HANDLER = pathlib.Path(__file__).with_name("hanging_handler.py")


class Run(scenario.Scenario):
    PARTITIONS = PARTITIONS

    def __init__(self, options, *where):
        super().__init__(options, *where)
        self.witness = self.folder / "handled"
        self.gate = self.folder / "gate"
        self.times = {}

    def handler(self, member):
        command = [sys.executable, HANDLER, member, self.witness, self.gate]
        # No timeout in reach: it would end the handler, and that is another promise.
        return {"handler": {"exec": {"command": [str(word) for word in command], "processes": 1,
                                     "timeout_ms": 120000}}}

    def handled(self, phase, member=None):
        """Places, as the handlers themselves noted them."""
        if not self.witness.exists():
            return set()
        lines = map(json.loads, self.witness.read_text().splitlines())
        return {(line["partition"], line["offset"]) for line in lines
                if line["phase"] == phase and member in (None, line["member"])}

    def play(self, offsets):
        rig.say(f"stuck handler: protocol {self.options.protocol}, {PARTITIONS} partitions, "
                f"offset {HANGS_AT} of each hangs in a; budget {DRAIN} s, commit {COMMIT} s")
        self.send([plan.Record(partition, f"key-{seq % KEYS}", json.dumps(
                       {"seq": seq, "amount": 1, **({"hang": "a"} if seq == HANGS_AT else {})}))
                   for seq in range(RECORDS) for partition in range(PARTITIONS)])
        self.hang(self.make_member("a").start(), offsets)
        self.stop_members(self.members, scenario.STOP_BUDGET + 1.0)
        return self.judge(offsets)

    def hang(self, first, offsets):
        stuck = {(partition, HANGS_AT) for partition in range(PARTITIONS)}
        # The key of the stuck record waits behind it, the others go on.
        others = {(partition, seq) for seq in range(RECORDS) for partition in range(PARTITIONS)
                  if seq % KEYS != HANGS_AT}
        self.expect("a handles all but what hangs", lambda: self.handled("done") == others)
        self.expect("both records hang", lambda: stuck <= self.handled("begun", "a"))

        second = self.make_member("b").start()
        self.expect("a partition moves to b", lambda: self.moved(first, second) is not None)
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
            acts = event["event"].startswith(("commit.", "frontier."))
            if acts and event.get("partition") == moved:
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
        evidence = judges.Evidence(records=records, ends=self.ends_now(offsets))
        compared = {"J1": len(records), "J4": judges.judge_commits(evidence, findings)}
        missing = [f"{name} compared nothing" for name, count in compared.items() if count == 0]
        if len(ends) != PARTITIONS:
            missing.append("a partition could not be read")
        return judges.Verdict(findings.take(), missing, compared)

    def summary(self, verdict):
        return (f"{verdict.compared['J1']} records  frozen after {self.times['owner.frozen']:.2f}s "
                f"(at most {DRAIN + TOLERANCE}), released after "
                f"{self.times['owner.released']:.2f}s (at most {DRAIN + COMMIT + TOLERANCE})")
