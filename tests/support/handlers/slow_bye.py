"""An exec handler (protocol version 1) that answers only after its input has ended."""

import json
import sys

held = []
for text in sys.stdin.buffer:
    line = json.loads(text)
    if line["type"] == "hello":
        print(json.dumps({"type": "hello", "protocol": 1}), flush=True)
    elif line["type"] == "record":
        held.append(line["id"])
        print("has it", file=sys.stderr, flush=True)
for name in held:
    print(json.dumps({"type": "outcome", "id": name, "outcome": "done"}), flush=True)
