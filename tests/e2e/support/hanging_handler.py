#!/usr/bin/env python3
"""An exec handler (protocol 1) that ignores `cancel` and hangs where it is told to.

  hanging_handler.py MEMBER WITNESS GATE

Appends a line to WITNESS when a record is begun and when it is done. A record whose value says
"hang" is not done before the file GATE exists; another member's value is no matter of ours:
"hang" names the member.
"""

import json
import os
import select
import sys

MEMBER, WITNESS, GATE = sys.argv[1:]


class Handler:
    def __init__(self):
        self.witness = os.open(WITNESS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.hanging = []

    def answer(self, line):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def note(self, phase, record):
        line = {"phase": phase, "member": MEMBER, "partition": record["partition"],
                "offset": record["offset"]}
        os.write(self.witness, (json.dumps(line) + "\n").encode())

    def finish(self, record):
        self.note("done", record)
        self.answer({"type": "outcome", "id": record["id"], "outcome": "done"})

    def take(self, line):
        """False when there is nothing more to come."""
        message = json.loads(line)
        if message["type"] == "hello":
            self.answer({"type": "hello", "protocol": 1, "name": "hanging"})
        elif message["type"] == "record":
            self.note("begun", message)
            value = json.loads(message["value"]["text"])
            if value.get("hang") == MEMBER and not os.path.exists(GATE):
                self.hanging.append(message)
            else:
                self.finish(message)
        return message["type"] != "bye"

    def open_gate(self):
        if self.hanging and os.path.exists(GATE):
            for record in self.hanging:
                self.finish(record)
            self.hanging.clear()

    def run(self):
        buffer = b""
        while True:
            readable, _, _ = select.select([0], [], [], 0.05)
            self.open_gate()
            if not readable:
                continue
            data = os.read(0, 65536)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            if not all([self.take(line) for line in lines]):
                return


Handler().run()
