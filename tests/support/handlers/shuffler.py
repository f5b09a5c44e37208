"""An exec handler (protocol version 1) that answers N records at a time, the last first.

argv: N. Each is answered `retry`; the reason is its place in the order of the answers.
"""

import json
import sys

size = int(sys.argv[1])
held = []
for text in sys.stdin.buffer:
    line = json.loads(text)
    if line["type"] == "hello":
        print(json.dumps({"type": "hello", "protocol": 1}), flush=True)
    elif line["type"] == "record":
        held.append(line["id"])
    if len(held) == size:
        for place in range(size):
            answer = {"type": "outcome", "id": held.pop(), "outcome": "retry", "reason": str(place)}
            print(json.dumps(answer), flush=True)
