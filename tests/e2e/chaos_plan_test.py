"""What a seed draws, and how a run is written and read."""

import collections
import json
import pathlib
import tempfile
import unittest

from support import plan, rig

SEEDS = range(20)


class Plan(unittest.TestCase):
    def test_a_seed_draws_the_same_again_and_another_something_else(self):
        for protocol in plan.PROTOCOLS:
            self.assertEqual(plan.draw_steps(7, protocol, 40), plan.draw_steps(7, protocol, 40))
            self.assertNotEqual(plan.draw_steps(7, protocol, 40), plan.draw_steps(8, protocol, 40))
        self.assertEqual(plan.Workload(7, "range", 500).records,
                         plan.Workload(7, "range", 500).records)
        self.assertNotEqual(plan.Workload(7, "range", 500).records,
                            plan.Workload(7, "consumer", 500).records)

    def test_every_seed_does_what_a_run_must_have_seen(self):
        for seed in SEEDS:
            steps = plan.draw_steps(seed, "range", 20)
            self.assertEqual({step.kind for step in steps if step.must}, set(plan.MUST_HAPPEN))
            (freeze,) = [step for step in steps if step.must and step.kind == "freeze"]
            self.assertGreater(freeze.length, plan.SESSION)
            self.assertEqual(freeze.where, "at lock")
            self.assertTrue(all(0 <= step.pick < 1 for step in steps))
            self.assertEqual(steps, sorted(steps, key=lambda step: step.at))

    def test_one_partition_has_one_key_and_every_other_has_more(self):
        for seed in SEEDS:
            workload = plan.Workload(seed, "consumer", 6000)
            self.assertTrue(64 <= workload.keys <= 200)
            keys = collections.defaultdict(set)
            for record in workload.records:
                keys[record.partition].add(record.key)
            self.assertEqual(len(keys), plan.PARTITIONS)
            self.assertEqual([p for p in keys if len(keys[p]) == 1],
                             [workload.single_key_partition])

    def test_a_key_has_one_partition_and_numbers_its_records(self):
        next_seq, partition_of = collections.Counter(), {}
        for record in plan.Workload(3, "range", 2000).records:
            self.assertEqual(partition_of.setdefault(record.key, record.partition),
                             record.partition)
            self.assertEqual(json.loads(record.value)["seq"], next_seq[record.key])
            next_seq[record.key] += 1


class Rig(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def member(self, *events):
        member = rig.Member("m0", self.folder, "tenure", {"version": 1})
        member.history_file.write_text("".join(
            json.dumps({"t": "event", "seq": n, **event}) + "\n" for n, event in enumerate(events)))
        return member

    def test_a_tree_becomes_yaml(self):
        tree = {"version": 1, "kafka": {"group.id": "g: 1"}, "topics": ["a", "b\n"],
                "handler": {"sql": {"text": True}}}
        self.assertEqual(rig.yaml(tree), 'version: 1\nkafka:\n  group.id: "g: 1"\ntopics:\n'
                                         '  - "a"\n  - "b\\n"\nhandler:\n  sql:\n    text: true\n')

    def test_a_line_cut_by_a_kill_is_no_event(self):
        member = self.member({"event": "app.ready"}, {"event": "owner.granted"})
        with open(member.history_file, "a", encoding="utf-8") as history:
            history.write('{"t":"event","seq":2,"event":"owner.acq')
        self.assertEqual([event["event"] for event in member.events()],
                         ["app.ready", "owner.granted"])

    def test_an_event_in_history_and_log_is_one(self):
        member = self.member({"event": "app.ready"})
        member.log_file.write_text('{"seq":0,"event":"app.ready"}\nsome text\n'
                                   '{"seq":1,"event":"app.stopped"}\n')
        self.assertEqual([event["event"] for event in member.events()],
                         ["app.ready", "app.stopped"])

    def test_only_what_the_events_tell_explains_exit_75(self):
        whole = {"event": "owner.drained", "result": "complete"}
        self.assertIsNone(self.member(whole, {"event": "app.stopped", "abandoned": 0}).cut_drain())
        for event in ({"event": "owner.drained", "result": "deadline"},
                      {"event": "commit.unresolved", "reason": "not_sent"},
                      {"event": "app.stopped", "abandoned": 2}):
            self.assertIsNotNone(self.member(whole, event).cut_drain(), event)
        lost = {"event": "owner.lost", "cause": "session"}
        self.assertIsNone(self.member(lost, {"event": "app.draining"}, whole).cut_drain())
        self.assertIsNotNone(self.member({"event": "app.draining"}, lost).cut_drain())


if __name__ == "__main__":
    unittest.main()
