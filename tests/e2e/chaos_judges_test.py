"""The judges of the chaos test find what was planted, and pass nothing that they did not see."""

import functools
import unittest

from support.judges import (Account, Activation, Effect, End, Evidence, Record, Sample, judge,
                            next_balance, reference)

PARTITIONS, KEYS, ROUNDS = 3, 4, 6


def good_run():
    """Three partitions of four keys; a goes first, b takes partition 1 over in the middle."""
    evidence = Evidence()
    pos = 0
    for partition in range(PARTITIONS):
        pos += 1
        evidence.activations.append(Activation(pos, partition, 1))
        evidence.activated_by[partition, 1] = "a"
    for seq in range(ROUNDS):
        if seq == ROUNDS // 2:
            pos += 1
            evidence.activations.append(Activation(pos, 1, 2))
            evidence.activated_by[1, 2] = "b"
        for partition in range(PARTITIONS):
            for number in range(KEYS):
                key, offset = f"k{partition}.{number}", seq * KEYS + number
                evidence.records.append(
                    Record(partition, offset, key, seq, amount=10 * seq + number))
                pos += 1
                member = "b" if partition == 1 and seq >= ROUNDS // 2 else "a"
                evidence.effects.append(Effect(pos, partition, offset, key, seq, member))
        evidence.samples += [Sample(p, (seq + 1) * KEYS - 1, (seq + 1) * KEYS)
                             for p in range(PARTITIONS)]
    end = ROUNDS * KEYS
    evidence.ends = [End(p, end, end) for p in range(PARTITIONS)]
    evidence.accounts = reference(evidence.records)
    return evidence


class Judges(unittest.TestCase):
    def setUp(self):
        self.run_ = good_run()

    def violations(self):
        return {finding.violation: finding.count for finding in judge(self.run_).findings}

    def effect_at(self, partition, offset):
        return next(index for index, effect in enumerate(self.run_.effects)
                    if (effect.partition, effect.offset) == (partition, offset))

    def swap_positions(self, one, other):
        effects = self.run_.effects
        first, second = effects[one], effects[other]
        effects[one] = first._replace(pos=second.pos)
        effects[other] = second._replace(pos=first.pos)

    def test_a_good_run_passes_and_says_what_was_compared(self):
        verdict = judge(self.run_, [("a takeover", True)])
        self.assertEqual((verdict.word, verdict.findings, verdict.missing), ("PASS", [], []))
        records = PARTITIONS * KEYS * ROUNDS
        self.assertEqual(verdict.compared["J1"], records)
        self.assertEqual(verdict.compared["J2"], records - PARTITIONS * KEYS)
        self.assertEqual(verdict.compared["J3"], records)

    def test_the_order_in_which_rows_are_given_does_not_matter(self):
        self.run_.effects.reverse()
        self.run_.activations.reverse()
        self.assertEqual(judge(self.run_).word, "PASS")

    def test_a_lost_record(self):
        del self.run_.effects[self.effect_at(2, 5)]
        self.assertEqual(self.violations(), {"LOST": 1})

    def test_a_lost_record_shows_in_its_balance_too(self):
        key = self.run_.records[0].key
        account = self.run_.accounts[key]
        self.run_.accounts[key] = account._replace(records=account.records - 1)
        self.assertEqual(self.violations(), {"BALANCE": 1})

    def test_an_effect_made_twice(self):
        again = self.run_.effects[self.effect_at(0, 7)]
        self.run_.effects.append(again._replace(pos=again.pos + 0.5))
        self.assertEqual(self.violations(), {"DUPLICATE EFFECT": 1})

    def test_a_late_second_effect_is_a_duplicate_and_out_of_order(self):
        again = self.run_.effects[self.effect_at(0, 7)]
        self.run_.effects.append(again._replace(pos=10_000))
        self.assertEqual(self.violations(), {"DUPLICATE EFFECT": 1, "KEY REORDER": 1})

    def test_an_effect_of_no_record(self):
        some = self.run_.effects[self.effect_at(0, 7)]
        self.run_.effects.append(some._replace(pos=10_000, offset=999, seq=999))
        self.assertEqual(self.violations(), {"GHOST": 1})

    def test_an_effect_under_a_foreign_key(self):
        index = self.effect_at(0, 7)
        self.run_.effects[index] = self.run_.effects[index]._replace(key="k9")
        self.assertEqual(self.violations(), {"GHOST": 1})

    def test_two_records_of_a_key_in_the_wrong_order(self):
        self.swap_positions(self.effect_at(0, 1), self.effect_at(0, 1 + KEYS))
        self.assertEqual(self.violations(), {"KEY REORDER": 1})

    def test_two_keys_in_another_order_are_fine(self):
        self.swap_positions(self.effect_at(0, 1), self.effect_at(0, 2))
        self.assertEqual(judge(self.run_).word, "PASS")

    def test_a_row_of_the_old_owner_after_the_new_one_was_activated(self):
        index = self.effect_at(1, ROUNDS // 2 * KEYS)
        self.run_.effects[index] = self.run_.effects[index]._replace(member="a")
        self.assertEqual(self.violations(), {"STALE EFFECT": 1})

    def test_the_same_without_what_histories_claim(self):
        self.run_.activated_by.clear()
        index = self.effect_at(1, ROUNDS // 2 * KEYS + 3)
        self.run_.effects[index] = self.run_.effects[index]._replace(member="a")
        self.assertEqual(self.violations(), {"STALE EFFECT": 1})

    def test_a_row_before_any_activation(self):
        del self.run_.activations[2]
        self.assertEqual(self.violations(), {"STALE EFFECT": ROUNDS * KEYS})

    def test_a_token_that_goes_back(self):
        last = self.run_.effects[-1].pos
        self.run_.activations.append(Activation(last - 0.5, 1, 1))
        self.assertEqual(self.violations(), {"STALE EFFECT": 1})

    def test_a_commit_short_of_the_end(self):
        self.run_.ends[1] = self.run_.ends[1]._replace(committed=23)
        self.assertEqual(self.violations(), {"COMMITTED != END": 1})

    def test_a_commit_past_the_end(self):
        self.run_.ends[1] = self.run_.ends[1]._replace(committed=25)
        self.assertEqual(self.violations(), {"COMMITTED != END": 1})

    def test_no_commit_at_all_where_there_are_records(self):
        self.run_.ends[1] = self.run_.ends[1]._replace(committed=None)
        self.assertEqual(self.violations(), {"COMMITTED != END": 1})

    def test_an_empty_log_needs_no_commit(self):
        self.run_.ends.append(End(3, None, 0))
        self.assertEqual(judge(self.run_).word, "PASS")

    def test_a_commit_that_once_stood_above_a_record_without_effect(self):
        self.run_.samples.append(Sample(0, 9, 8))
        self.assertEqual(self.violations(), {"COMMIT PAST EFFECT": 1})

    def test_a_wrong_balance(self):
        self.run_.accounts["k1.1"] = Account(self.run_.accounts["k1.1"].balance + 1, ROUNDS)
        self.assertEqual(self.violations(), {"BALANCE": 1})

    def test_a_missing_and_an_unknown_account(self):
        self.run_.accounts["k9"] = self.run_.accounts.pop("k1.1")
        self.assertEqual(self.violations(), {"BALANCE": 2})

    def test_the_balance_knows_the_order(self):
        one_two, two_one = ([1, 2], [2, 1])
        self.assertNotEqual(functools.reduce(next_balance, one_two, 0),
                            functools.reduce(next_balance, two_one, 0))

    def test_an_empty_run_is_no_pass(self):
        verdict = judge(Evidence())
        self.assertEqual(verdict.word, "INCONCLUSIVE")
        self.assertEqual(len(verdict.missing), 6)

    def test_what_was_not_seen_is_no_pass(self):
        verdict = judge(self.run_, [("a freeze", False), ("a kill", True)])
        self.assertEqual((verdict.word, verdict.missing), ("INCONCLUSIVE", ["not seen: a freeze"]))

    def test_a_violation_outweighs_what_was_not_seen(self):
        self.run_.ends[0] = self.run_.ends[0]._replace(committed=0)
        self.assertEqual(judge(self.run_, [("a freeze", False)]).word, "FAIL")


if __name__ == "__main__":
    unittest.main()
