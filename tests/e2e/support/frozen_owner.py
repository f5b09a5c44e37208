"""A frozen owner's late transaction is refused by the store, once, and the process goes on.

The moment is made, not hit by chance: we hold SQLite's write lock ourselves, so that the owner's
handler runs and waits for it with no write open; then the owner is frozen and the lock let go. The
broker is frozen around the thaw: the owner cannot learn that it was replaced but from the store.
"""

import contextlib

from support import judges, plan, rig

PARTITIONS = 2
LIMIT = 30.0
SESSION, HEARTBEAT = plan.SESSION, 0.5
DRAIN, COMMIT, CLOSE, SHUTDOWN = 1.5, 1.0, 2.0, 4.0
STOP_LIMIT = SHUTDOWN + COMMIT + CLOSE + 1.0


class Run:
    def __init__(self, options, broker, folder, tenure, log_tool):
        self.options = options
        self.broker = broker
        self.folder = folder
        self.tenure = tenure
        name = f"tenure-frozen-{options.protocol}-{folder.name}"
        self.log = rig.LogTool(log_tool, broker.bootstrap, name, name)
        self.database = rig.Database(folder / "effects.db")
        self.members = []
        self.sent = [0] * PARTITIONS

    def make_member(self, name):
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
            "handler": {"sql": {"statements": rig.handler_statements(name)}},
            "effect": {"kind": "transaction"},
            "store": {"sqlite": {"path": str(self.database.path)}},
            "commit": {"interval_ms": 200},
            "drain": {"budget_ms": round(DRAIN * 1000), "commit_ms": round(COMMIT * 1000),
                      "margin_ms": 500},
            "shutdown": {"budget_ms": round(SHUTDOWN * 1000), "close_ms": round(CLOSE * 1000)},
            "log": {"format": "json"},
        })
        self.members.append(member)
        return member

    def send(self, partition, count):
        """Records of the partition's only key; acknowledged when this returns."""
        records = []
        for _ in range(count):
            seq = self.sent[partition]
            self.sent[partition] += 1
            records.append(plan.Record(partition, f"key-{partition}",
                                       f'{{"seq":{seq},"amount":{seq + 1}}}'))
        producer = rig.Producer(self.log, records, 10_000, 0.0)
        try:
            producer.finish()
        finally:
            producer.close()

    def expect(self, what, condition, seconds=LIMIT):
        def tick():
            for member in self.members:
                if not member.frozen:
                    member.check_alive()

        if not rig.wait_until(condition, seconds, tick):
            raise rig.Broken(f"not within {seconds:.0f} s: {what}")

    def activated(self, member, after=0):
        """Partitions whose token became the member's after that position of the database."""
        return {event["partition"] for event in member.events("owner.acquired")
                if (event["partition"], event["token"]) in
                {(a.partition, a.token) for a in self.database.activations() if a.pos > after}}

    def effects_of(self, member, after=0):
        return [effect for effect in self.database.effects()
                if effect.member == member.name and effect.pos > after]

    def all_handled(self):
        return len(self.database.effects()) >= sum(self.sent)

    def run(self):
        rig.say(f"frozen owner: protocol {self.options.protocol}, {PARTITIONS} partitions")
        if self.broker.given:
            self.log.create(PARTITIONS, self.options.replication)
        else:
            self.broker.create_topic(self.log.topic, PARTITIONS)
        first = self.make_member("a")
        first.store_init()
        self.database.install_witnesses()
        first.start()
        offsets = self.log.watch_offsets()
        sampler = rig.Sampler(offsets, self.database)
        try:
            refusal = self.freeze_and_thaw(first, offsets)
            self.stop_all()
            sampler.close()
            return self.judge(first, refusal, offsets, sampler)
        finally:
            sampler.ended.set()
            offsets.close()
            for member in self.members:
                if member.running():
                    member.kill()
            if self.broker.given:
                self.log.drop()

    def caught_up(self, offsets):
        ends = offsets.ask()
        return ends is not None and all((end.committed or 0) == end.end for end in ends)

    def freeze_and_thaw(self, first, offsets):
        """The place of the record whose late effect must be refused."""
        self.expect("a owns all", lambda: len(self.activated(first)) == PARTITIONS)
        for partition in range(PARTITIONS):
            self.send(partition, 20)
        self.expect("a handles all", self.all_handled)
        self.expect("a commits all", lambda: self.caught_up(offsets))

        late = (0, self.sent[0])
        with contextlib.closing(self.database.connect()) as lock:
            lock.execute("BEGIN IMMEDIATE")
            self.send(0, 1)
            self.expect("the handler of the record runs",
                        lambda: first.seen("record.dispatched", partition=0, offset=late[1]), 4.0)
            first.freeze()
            lock.execute("ROLLBACK")
        if self.database.write_open():
            raise rig.Failure("the owner was frozen inside its transaction; nothing is shown")
        frozen_at = self.database.last_pos()
        rig.say("  a frozen; its handler runs, no write is open")

        second = self.make_member("b").start()
        self.expect("b takes all over", lambda: len(self.activated(second)) == PARTITIONS)
        self.expect("b handles the record", self.all_handled)
        rig.say("  b owns all and has handled the record")

        if not self.broker.given:
            self.broker.freeze(1)
        try:
            first.thaw()
            self.expect("the late effect is refused", lambda: first.events("effect.refused"), 5.0)
        finally:
            if not self.broker.given:
                self.broker.thaw(1)
        rig.say("  a thawed; its late effect was refused")

        self.expect("a owns something again", lambda: self.activated(first, frozen_at))
        for partition in range(PARTITIONS):
            self.send(partition, 20)
        self.expect("all is handled", self.all_handled)
        self.expect("all is committed", lambda: self.caught_up(offsets))
        if not self.effects_of(first, frozen_at):
            raise rig.Broken("a has new grants, but no effect under them")
        return late

    def stop_all(self):
        for member in self.members:
            member.terminate()
        while not all([member.check_stopped(STOP_LIMIT, may_be_cut=False)
                       for member in self.members]):
            pass

    def judge(self, first, late, offsets, sampler):
        self.database.require_whole()
        evidence = judges.Evidence()
        evidence.records, _ = self.log.read()
        evidence.effects = self.database.effects()
        evidence.activations = self.database.activations()
        evidence.accounts = self.database.accounts()
        evidence.ends = offsets.ask() or []
        evidence.samples = sampler.samples
        evidence.activated_by = {
            (event["partition"], event["token"]): member.name for member in self.members
            for event in member.events("owner.acquired")}
        verdict = judges.judge(evidence)

        refused = [(member.name, event.get("step"), event.get("partition"), event.get("offset"))
                   for member in self.members for event in member.events("effect.refused")]
        if refused != [("a", "effect", *late)]:
            raise rig.Broken(f"effect.refused was to come once, from a, at {late}: {refused}")
        counted = [event.get("refused") for event in first.events("app.stopped")]
        if counted != [1]:
            raise rig.Broken(f"app.stopped of a counts refused {counted}, not [1]")
        return verdict

    def summary(self, verdict):
        return (f"{verdict.compared['J1']} records  1 late effect refused, app.stopped counts it, "
                "the process went on")
