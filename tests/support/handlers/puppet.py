"""An exec handler (protocol version 1) that does what each record's value tells it.

The value is a JSON list of actions. "$ID" in a text stands for the record's id.
  ["line", TEXT]      writes TEXT and a line end to stdout
  ["raw", BASE64]     writes these bytes to stdout
  ["err", TEXT]       writes TEXT to stderr
  ["exit", CODE]      ends at once
  ["signal", NUMBER]  sends itself a signal
  ["close", FD]       closes a descriptor
  ["sleep"]           never goes on, reads nothing
  ["hold"]            answers nothing, but goes on reading
A value that is no such list is answered with done.

--journal FILE: every line it reads, as it came, is appended there.
--hello TEXT:   this line instead of the usual hello; empty: none.
--on-cancel TEXT: a line written for each cancel.
--ignore-end:   goes on when stdin closes; --ignore-term: and when told to end.
"""

import argparse
import base64
import json
import os
import signal
import sys
import time


def decode(value):
    if value is None:
        return None
    if "text" in value:
        return value["text"].encode()
    return base64.b64decode(value["base64"], validate=True)


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def act(action, record):
    word = action[0]
    if word == "line":
        write(action[1].replace("$ID", record["id"]).encode() + b"\n")
    elif word == "raw":
        write(base64.b64decode(action[1]))
    elif word == "err":
        sys.stderr.write(action[1])
        sys.stderr.flush()
    elif word == "exit":
        os._exit(action[1])
    elif word == "signal":
        os.kill(os.getpid(), action[1])
    elif word == "close":
        os.close(action[1])
    elif word == "sleep":
        while True:
            time.sleep(60)


def actions_of(record):
    try:
        actions = json.loads(decode(record["value"]))
    except (TypeError, ValueError):
        actions = None
    if isinstance(actions, list):
        return actions
    return [["line", '{"type":"outcome","id":"$ID","outcome":"done"}']]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal")
    parser.add_argument("--hello", default='{"type":"hello","protocol":1,"name":"puppet"}')
    parser.add_argument("--on-cancel")
    parser.add_argument("--ignore-end", action="store_true")
    parser.add_argument("--ignore-term", action="store_true")
    options = parser.parse_args()
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    journal = open(options.journal, "ab", buffering=0) if options.journal else None

    while True:
        text = sys.stdin.buffer.readline()
        if not text:
            break
        if journal:
            journal.write(text)
        line = json.loads(text)
        if line["type"] == "hello" and options.hello:
            write(options.hello.encode() + b"\n")
        elif line["type"] == "record":
            for action in actions_of(line):
                act(action, line)
        elif line["type"] == "cancel" and options.on_cancel:
            write(options.on_cancel.replace("$ID", line["id"]).encode() + b"\n")
    if options.ignore_end:
        while True:
            time.sleep(60)


main()
