"""The verdict on a chaos run, from witnesses alone.

  J1  each record has exactly one effect                   LOST, DUPLICATE EFFECT, GHOST
  J2  effects of a key ascend in database order            KEY REORDER
  J3  no effect under a token after a newer activation     STALE EFFECT
  J4  committed = log end on every partition               COMMITTED != END
  J5  balances equal the sequential reference              BALANCE
  J6  no commit, at any time, past a record without effect COMMIT PAST EFFECT

Pure functions: no process, no database, no clock. Written apart from the product's own judge, so
that one mistake cannot sit in both.
"""

import dataclasses
import typing

MODULUS = 1_000_000_007


class Record(typing.NamedTuple):
    """As a fresh client reads it."""
    partition: int
    offset: int
    key: str
    seq: int  # position among the records of its key, from 0
    amount: int


class Effect(typing.NamedTuple):
    """A row written in the transaction of the record's effect. pos is the database's order."""
    pos: int
    partition: int
    offset: int
    key: str
    seq: int
    member: str  # the process that wrote it, as its own configuration says


class Activation(typing.NamedTuple):
    """A token became the active one (T3). One sequence of positions with the effects."""
    pos: int
    partition: int
    token: int


class End(typing.NamedTuple):
    partition: int
    committed: int | None  # None: nothing was ever committed (F4)
    end: int


class Sample(typing.NamedTuple):
    """A committed offset read during the run, and what the database held right after."""
    partition: int
    committed: int
    effects_below: int  # different offsets below it that have an effect


class Account(typing.NamedTuple):
    balance: int
    records: int


@dataclasses.dataclass
class Evidence:
    records: list = dataclasses.field(default_factory=list)
    effects: list = dataclasses.field(default_factory=list)
    activations: list = dataclasses.field(default_factory=list)
    accounts: dict = dataclasses.field(default_factory=dict)  # key -> Account
    ends: list = dataclasses.field(default_factory=list)
    samples: list = dataclasses.field(default_factory=list)
    # (partition, token) -> member, as the members' histories claim. May have holes.
    activated_by: dict = dataclasses.field(default_factory=dict)


class Finding(typing.NamedTuple):
    violation: str
    count: int
    example: str  # the first one


@dataclasses.dataclass
class Verdict:
    findings: list
    missing: list  # why a run without findings proves nothing
    compared: dict  # judge -> how many things it compared

    @property
    def word(self):
        if self.findings:
            return "FAIL"
        return "INCONCLUSIVE" if self.missing else "PASS"


def next_balance(balance, amount):
    """Not commutative: an order or a count that is wrong shows in the sum."""
    return (balance * 31 + amount) % MODULUS


def reference(records):
    """What one process, handling each partition from its start, would leave behind."""
    accounts = {}
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        before = accounts.get(record.key, Account(0, 0))
        accounts[record.key] = Account(next_balance(before.balance, record.amount),
                                       before.records + 1)
    return accounts


class Findings:
    def __init__(self):
        self.all = {}

    def add(self, violation, example):
        count, first = self.all.get(violation, (0, example))
        self.all[violation] = (count + 1, first)

    def take(self):
        return [Finding(violation, *found) for violation, found in self.all.items()]


def judge_once(evidence, findings):
    records = {(r.partition, r.offset): r for r in evidence.records}
    seen = {}
    for effect in evidence.effects:
        place = (effect.partition, effect.offset)
        record = records.get(place)
        if record is None:
            findings.add("GHOST", f"{effect}: the topic has no such record")
        elif (record.key, record.seq) != (effect.key, effect.seq):
            findings.add("GHOST", f"{effect}: the record is {record}")
        elif place in seen:
            findings.add("DUPLICATE EFFECT", f"{record}: {seen[place]} and {effect}")
        seen.setdefault(place, effect)
    for place in sorted(records.keys() - seen.keys()):
        findings.add("LOST", f"{records[place]} has no effect")
    return len(records)


def judge_order(evidence, findings):
    compared = 0
    last = {}
    for effect in evidence.effects:
        before = last.get(effect.key)
        if before is not None:
            compared += 1
            # An equal one is a duplicate: J1.
            if (effect.seq, effect.offset) < (before.seq, before.offset):
                findings.add("KEY REORDER", f"{effect} came after {before}")
        last[effect.key] = effect
    return compared


def judge_fence(evidence, findings):
    """A token belongs to one process. The first row under an activation, or the histories, tell
    which; a row of another process was written by one whose own token is older."""
    compared = 0
    activations = sorted(evidence.activations)
    following = 0
    active = {}  # partition -> newest activation
    writers = {}  # (partition, token) -> the member of the first effect under it
    for effect in evidence.effects:
        while following < len(activations) and activations[following].pos < effect.pos:
            one = activations[following]
            following += 1
            newest = active.get(one.partition)
            if newest is not None and one.token <= newest.token:
                findings.add("STALE EFFECT", f"{one} was activated after {newest}")
                continue
            active[one.partition] = one
        newest = active.get(effect.partition)
        if newest is None:
            findings.add("STALE EFFECT", f"{effect}: no token was ever activated before it")
            continue
        compared += 1
        term = (effect.partition, newest.token)
        owner = evidence.activated_by.get(term) or writers.setdefault(term, effect.member)
        if owner != effect.member:
            findings.add("STALE EFFECT", f"{effect} stands after {newest} of {owner}")
    return compared


def judge_commits(evidence, findings):
    for end in evidence.ends:
        # Nobody need commit in a log that never held anything.
        if end.committed != end.end and not (end.committed is None and end.end == 0):
            findings.add("COMMITTED != END", str(end))
    return len(evidence.ends)


def judge_balances(evidence, findings):
    expected = reference(evidence.records)
    for key in sorted(expected.keys() | evidence.accounts.keys()):
        wanted, found = expected.get(key), evidence.accounts.get(key)
        if wanted != found:
            findings.add("BALANCE", f"key {key}: {found}, expected {wanted}")
    return len(expected)


def judge_samples(evidence, findings):
    offsets = {}
    for record in evidence.records:
        offsets.setdefault(record.partition, []).append(record.offset)
    compared = 0
    for sample in evidence.samples:
        below = sum(offset < sample.committed for offset in offsets.get(sample.partition, ()))
        compared += below
        if sample.effects_below < below:
            findings.add("COMMIT PAST EFFECT", f"{sample}, of {below} records below it")
    return compared


NOTHING = {
    "J1": "the topic holds no record",
    "J2": "no key has two effects",
    "J3": "no effect stands under a token",
    "J4": "no partition was read",
    "J5": "no balance is expected",
    "J6": "no committed offset above a record was read during the run",
}


def judge(evidence, sights=()):
    """sights: (what, seen) pairs; what must have happened for a PASS to mean anything."""
    evidence.effects.sort()
    findings = Findings()
    compared = {
        "J1": judge_once(evidence, findings),
        "J2": judge_order(evidence, findings),
        "J3": judge_fence(evidence, findings),
        "J4": judge_commits(evidence, findings),
        "J5": judge_balances(evidence, findings),
        "J6": judge_samples(evidence, findings),
    }
    missing = [f"{name} compared nothing: {NOTHING[name]}"
               for name, count in compared.items() if count == 0]
    missing += [f"not seen: {what}" for what, seen in sights if not seen]
    return Verdict(findings.take(), missing, compared)
