"""An exec handler (protocol version 1) that saves what it is given, byte by byte.

argv: FOLDER. Files OFFSET.value, OFFSET.key, OFFSET.name0, OFFSET.header0 ...; none for null.
"""

import base64
import json
import sys


def decode(value):
    if value is None:
        return None
    if "text" in value:
        return value["text"].encode()
    return base64.b64decode(value["base64"], validate=True)


def save(folder, record, part, data):
    if data is not None:
        with open("%s/%d.%s" % (folder, record["offset"], part), "wb") as file:
            file.write(data)


for text in sys.stdin.buffer:
    line = json.loads(text)
    if line["type"] == "hello":
        answer = {"type": "hello", "protocol": 1}
    elif line["type"] == "record":
        save(sys.argv[1], line, "key", decode(line["key"]))
        save(sys.argv[1], line, "value", decode(line["value"]))
        for i, (name, value) in enumerate(line["headers"]):
            save(sys.argv[1], line, "name%d" % i, name.encode())
            save(sys.argv[1], line, "header%d" % i, decode(value))
        answer = {"type": "outcome", "id": line["id"], "outcome": "done"}
    else:
        continue
    print(json.dumps(answer), flush=True)
