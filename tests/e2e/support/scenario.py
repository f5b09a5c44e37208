"""What the scenarios share: a topic and a group of their own, members with one configuration."""

import dataclasses
import time

from support import judges, plan, rig

HEARTBEAT = 0.5
DRAIN, COMMIT, CLOSE, SHUTDOWN = 1.5, 1.0, 2.0, 4.0
STOP_BUDGET = SHUTDOWN + COMMIT + CLOSE  # R10
LIMIT = 30.0  # for a step that has no limit of its own


@dataclasses.dataclass
class Options:
    protocol: str
    seed: int
    records: int
    rate: int
    kill_coordinator: bool
    replication: int


class Scenario:
    """One run. run() gives the verdict and leaves no process running; the folder stays."""

    PARTITIONS = plan.PARTITIONS

    def __init__(self, options, broker, folder, tenure, log_tool):
        self.options = options
        self.broker = broker
        self.folder = folder
        self.tenure = tenure
        name = f"{folder.parent.name}-{folder.name}"
        self.log = rig.LogTool(log_tool, broker.bootstrap, name, name)
        self.database = rig.Database(folder / "effects.db")
        self.members = []

    # ---- for the scenarios to define

    def handler(self, member):
        """Sections of the configuration that say what is done with a record."""
        return {"handler": {"sql": {"statements": rig.handler_statements(member)}},
                "effect": {"kind": "transaction"},
                "store": {"sqlite": {"path": str(self.database.path)}}}

    def play(self, offsets):
        """The run itself, up to the verdict."""
        raise NotImplementedError

    def summary(self, verdict):
        raise NotImplementedError

    # ----

    def run(self):
        if self.broker.given:
            self.log.create(self.PARTITIONS, self.options.replication)
        else:
            self.broker.create_topic(self.log.topic, self.PARTITIONS)
        offsets = self.log.watch_offsets()
        try:
            return self.play(offsets)
        finally:
            offsets.close()
            for member in self.members:
                if member.running():
                    member.kill()
            if self.broker.given:
                self.log.drop()

    def make_member(self, name):
        config = {
            "version": 1,
            "kafka": {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": self.log.group,
                "client.id": name,
                "max.poll.interval.ms": 15000,
                **rig.group_settings(self.options.protocol, plan.SESSION, HEARTBEAT),
            },
            "topics": [self.log.topic],
            "order": "key",
            **self.handler(name),
            "commit": {"interval_ms": 300},
            "drain": {"budget_ms": round(DRAIN * 1000), "commit_ms": round(COMMIT * 1000),
                      "margin_ms": 500},
            "shutdown": {"budget_ms": round(SHUTDOWN * 1000), "close_ms": round(CLOSE * 1000)},
            "log": {"format": "json"},
        }
        member = rig.Member(name, self.folder, self.tenure, config)
        self.members.append(member)
        return member

    def make_store(self, member):
        member.store_init()
        self.database.install_witnesses()

    def check_alive(self):
        for member in self.members:
            if not member.frozen:
                member.check_alive()

    def expect(self, what, condition, seconds=LIMIT):
        if not rig.wait_until(condition, seconds, self.check_alive):
            raise rig.Broken(f"not within {seconds:.0f} s: {what}")

    def send(self, records):
        """Acknowledged when this returns."""
        producer = rig.Producer(self.log, records, 10_000, 0.0)
        try:
            producer.finish()
        finally:
            producer.close()

    def stop_members(self, members, limit, may_be_cut=lambda member: False):
        for member in members:
            member.terminate()
        waiting = [member for member in self.members if member.told_to_stop is not None]
        while not all([member.check_stopped(limit, may_be_cut(member)) for member in waiting]):
            time.sleep(0.02)

    def gather(self, offsets, samples):
        """What the witnesses say at the end."""
        self.database.require_whole()
        evidence = judges.Evidence(samples=samples)
        evidence.records, ends = self.log.read()
        evidence.effects = self.database.effects()
        evidence.activations = self.database.activations()
        evidence.accounts = self.database.accounts()
        evidence.ends = self.ends_now(offsets)
        if {end.partition: end.end for end in evidence.ends} != ends:
            raise rig.Failure("the topic still grows, or its partitions could not be read")
        evidence.activated_by = {
            (event["partition"], event["token"]): member.name for member in self.members
            for event in member.events("owner.acquired") if event.get("token")}
        return evidence

    def ends_now(self, offsets):
        found = []

        def ask():
            found[:] = offsets.ask() or []
            return bool(found)

        rig.wait_until(ask, LIMIT)
        return found


def all_committed(ends):
    return ends is not None and all((end.committed or 0) == end.end for end in ends)
