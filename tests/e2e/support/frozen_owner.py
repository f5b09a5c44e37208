"""A frozen owner's late transaction is refused by the store, once, and the process goes on.

The moment is made, not hit by chance: we hold SQLite's write lock ourselves, so that the owner's
handler runs and waits for it with no write open; then the owner is frozen and the lock let go. The
broker is frozen around the thaw: the owner cannot learn that it was replaced but from the store.
"""

from support import judges, plan, rig, scenario

PARTITIONS = 2


class Run(scenario.Scenario):
    PARTITIONS = PARTITIONS

    def __init__(self, options, *where):
        super().__init__(options, *where)
        self.sent = [0] * PARTITIONS

    def send_to(self, partition, count):
        """Records of the partition's only key."""
        records = []
        for _ in range(count):
            seq = self.sent[partition]
            self.sent[partition] += 1
            records.append(plan.Record(partition, f"key-{partition}",
                                       f'{{"seq":{seq},"amount":{seq + 1}}}'))
        self.send(records)

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

    def play(self, offsets):
        rig.say(f"frozen owner: protocol {self.options.protocol}, {PARTITIONS} partitions")
        first = self.make_member("a")
        self.make_store(first)
        first.start()
        sampler = rig.Sampler(offsets, self.database)
        try:
            refusal = self.freeze_and_thaw(first, offsets)
            self.stop_members(self.members, scenario.STOP_BUDGET + 1.0)
        finally:
            sampler.close()
        return self.judge(first, refusal, self.gather(offsets, sampler.samples))

    def freeze_and_thaw(self, first, offsets):
        """The place of the record whose late effect must be refused."""
        self.expect("a owns all", lambda: len(self.activated(first)) == PARTITIONS)
        for partition in range(PARTITIONS):
            self.send_to(partition, 20)
        self.expect("a handles all", self.all_handled)
        self.expect("a commits all", lambda: scenario.all_committed(offsets.ask()))

        late = (0, self.sent[0])
        with self.database.write_lock():
            self.send_to(0, 1)
            self.expect("the handler of the record runs",
                        lambda: first.seen("record.dispatched", partition=0, offset=late[1]), 4.0)
            first.freeze()
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
            self.send_to(partition, 20)
        self.expect("all is handled", self.all_handled)
        self.expect("all is committed", lambda: scenario.all_committed(offsets.ask()))
        if not self.effects_of(first, frozen_at):
            raise rig.Broken("a has new grants, but no effect under them")
        return late

    def judge(self, first, late, evidence):
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
