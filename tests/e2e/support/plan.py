"""Everything a run draws from its seed, drawn before anything starts."""

import dataclasses
import json
import random
import typing

PROTOCOLS = ("range", "cooperative-sticky", "consumer")
PARTITIONS = 12
MEMBERS_AT_START = 3
MEMBERS_MAX = 5
SESSION = 3.0  # seconds of silence after which the group takes the partitions away
# What a run must have seen to prove something comes first, in an order that is drawn.
MUST_HAPPEN = ("freeze", "kill", "leave", "join")


@dataclasses.dataclass
class Step:
    """One fault. pick chooses among those who are there when it is due."""
    at: float  # seconds after the start of production
    kind: str  # join, leave, kill, freeze
    pick: float  # 0 <= pick < 1
    length: float = 0.0  # of a freeze
    # Where a freeze finds its victim: anywhere, even inside an open write transaction; elsewhere;
    # or with handlers that run and wait for the write lock, which we hold until it is frozen.
    where: str = ""
    must: bool = False  # the run proves nothing without it


class Record(typing.NamedTuple):
    partition: int
    key: str
    value: str


class Workload:
    """Keys and their records, in production order. One partition has one key only: with eight
    lanes a partition, seven of its lanes are idle for ever (3-effects)."""

    def __init__(self, seed, protocol, records):
        draw = random.Random(f"{seed} {protocol} workload")
        self.keys = draw.randint(64, 200)
        self.single_key_partition = draw.randrange(PARTITIONS)
        others = [p for p in range(PARTITIONS) if p != self.single_key_partition]
        partition_of = {"lonely": self.single_key_partition}
        for number in range(self.keys - 1):
            # Two each at least, the rest anywhere.
            partition = others[number // 2] if number < 2 * len(others) else draw.choice(others)
            partition_of[f"key-{number}"] = partition
        names = list(partition_of)
        weights = [len(names) / PARTITIONS] + [draw.choice((0.5, 1, 1, 4)) for _ in names[1:]]
        next_seq = dict.fromkeys(names, 0)
        self.records = []
        for key in draw.choices(names, weights, k=records):
            value = {"seq": next_seq[key], "amount": draw.randint(1, 1000), "key": key}
            next_seq[key] += 1
            self.records.append(Record(partition_of[key], key, json.dumps(value)))


def draw_steps(seed, protocol, seconds):
    draw = random.Random(f"{seed} {protocol} faults")
    steps = []
    first = list(MUST_HAPPEN)
    draw.shuffle(first)
    at = 1.0
    while True:
        must = bool(first)
        kind = first.pop() if must else draw.choice(
            ("join", "join", "leave", "kill", "freeze", "freeze"))
        step = Step(round(at, 3), kind, round(draw.random(), 6), must=must)
        if kind == "freeze":
            past = must or draw.random() < 0.75
            step.length = round(
                SESSION + draw.uniform(1.0, 3.0) if past else draw.uniform(0.1, 1.5), 3)
            step.where = "at lock" if must else draw.choice(
                ("at lock", "at lock", "anywhere", "elsewhere"))
        steps.append(step)
        at += draw.uniform(0.3, 4.0)
        if not first and at > seconds:
            return steps
