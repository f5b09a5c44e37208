"""An exec handler (protocol version 1) that kills itself at random, mid-line too.

argv: SEED. Answers what it has read in random order; about every twentieth time it dies instead.
"""

import json
import os
import random
import signal
import sys


def main():
    dice = random.Random(int(sys.argv[1]) * 1000003 + os.getpid())
    unread = b""
    while True:
        data = os.read(0, 1 << 16)
        if not data:
            return
        *texts, unread = (unread + data).split(b"\n")
        lines = [json.loads(text) for text in texts]
        if any(line["type"] == "hello" for line in lines):
            os.write(1, b'{"type":"hello","protocol":1}\n')
        ids = [line["id"] for line in lines if line["type"] == "record"]
        dice.shuffle(ids)
        for name in ids:
            answer = json.dumps({"type": "outcome", "id": name, "outcome": "done"}).encode() + b"\n"
            if dice.random() < 0.05:
                os.write(1, answer[: dice.randrange(len(answer) + 1)])
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(1, answer)


main()
