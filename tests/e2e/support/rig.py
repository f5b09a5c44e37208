"""What a chaos run is made of: a broker, members as users run them, a database with witnesses."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from support import judges

LOCK_WAIT = 0.25  # a writer that keeps SQLite's lock this long is not at work but frozen


class Failure(Exception):
    """The run cannot go on; says why. Nothing about the product follows from it."""


class Broken(Exception):
    """The product did what it must not do, outside of what the judges see."""


def say(text):
    print(text, flush=True)


def dies_with_us(command):
    """Ends with this process, however that ends. The kernel ties it to the calling thread."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]


def wait_until(condition, seconds, tick=lambda: None):
    """True when the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        tick()
        time.sleep(0.05)
    return True


# ----------------------------------------------------------------------------------------- broker


class Broker:
    """A real Kafka of our own, or one that is given (then it is only used, never touched)."""

    def __init__(self, kafka_tool, folder, given=None):
        self.kafka_tool = kafka_tool
        self.folder = folder
        self.given = given
        self.bootstrap = given

    def start(self, nodes, session, heartbeat):
        if self.given:
            return
        self.bootstrap = self._tool(
            "start", nodes, "--owner", os.getpid(), "--fast-groups", "--session-ms",
            round(session * 1000), "--heartbeat-ms", round(heartbeat * 1000)).strip()

    def stop(self):
        if not self.given and self.bootstrap:
            self._tool("stop")

    def create_topic(self, name, partitions):
        self._tool("topic", name, partitions)

    def freeze(self, node):
        self._tool("freeze", node)

    def thaw(self, node):
        self._tool("thaw", node)

    def kill_coordinator(self, group):
        node = self._tool("coordinator", group).strip()
        self._tool("kill", node)
        return node

    def _tool(self, *words):
        result = subprocess.run([str(self.kafka_tool), *map(str, words), "--dir", str(self.folder)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            raise Failure(f"tools/kafka {words[0]}: {result.stderr.strip()}")
        return result.stdout


class LogTool:
    """Our own view of the topic and of the group's offsets."""

    def __init__(self, program, bootstrap, topic, group):
        self.program = program
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = group

    def command(self, verb, *words):
        return dies_with_us([self.program, self.bootstrap, verb, self.topic, *words])

    def run(self, verb, *words):
        result = subprocess.run(self.command(verb, *words), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            raise Failure(f"log_tool {verb}: {result.stderr.strip()}")
        return result.stdout

    def create(self, partitions, replication):
        self.run("create", partitions, replication)

    def drop(self):
        self.run("drop", self.group)

    def read(self):
        """All records, and {partition: end}."""
        records, ends = [], {}
        for line in self.run("read").splitlines():
            words = line.split("\t")
            if words[0] == "end":
                ends[int(words[1])] = int(words[3])
                continue
            value = json.loads(words[3])
            records.append(judges.Record(int(words[0]), int(words[1]), words[2], value["seq"],
                                         value["amount"]))
        return records, ends

    def watch_offsets(self):
        return OffsetsWatch(self.command("offsets", self.group))


class OffsetsWatch:
    """Answers with the committed offset and the end of each partition. One caller at a time."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.lock = threading.Lock()

    def ask(self):
        """A list of judges.End; None while the coordinator does not answer."""
        with self.lock:
            try:
                self.process.stdin.write("\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
            except (OSError, ValueError):
                line = ""
        if not line:
            raise Failure("log_tool offsets ended")
        answer = json.loads(line)
        if "error" in answer:
            return None
        return [judges.End(one["partition"], one["committed"], one["end"])
                for one in answer["partitions"]]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


class Producer:
    """Sends records in bursts at `rate`, spread evenly over `seconds`."""

    BURSTS_A_SECOND = 4

    def __init__(self, log_tool, records, rate, seconds):
        self.process = subprocess.Popen(log_tool.command("produce"), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.records = records
        self.rate = rate
        self.seconds = seconds
        self.sent = 0
        self.result = None
        self.thread = threading.Thread(target=self._send)
        self.thread.start()

    def _send(self):
        bursts = max(1, round(self.seconds * self.BURSTS_A_SECOND))
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ValueError):
            for burst in range(bursts):
                last = len(self.records) * (burst + 1) // bursts
                due = began + burst * self.seconds / bursts
                while self.sent < last:
                    count = min(last - self.sent, 50)
                    time.sleep(max(0.0, due - time.monotonic()))
                    self.process.stdin.write("".join(
                        f"{r.partition}\t{r.key}\t{r.value}\n"
                        for r in self.records[self.sent:self.sent + count]))
                    self.process.stdin.flush()
                    self.sent += count
                    due += count / self.rate

    def busy(self):
        return self.thread.is_alive()

    def finish(self):
        """Waits until all is acknowledged."""
        self.thread.join()
        output, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise Failure("log_tool produce failed")
        self.result = json.loads(output)
        if self.result != {"acked": len(self.records), "failed": 0}:
            raise Failure(f"not all records were acknowledged: {output.strip()}")

    def close(self):
        self.process.kill()
        self.thread.join()
        with contextlib.suppress(OSError, ValueError):
            self.process.communicate()


# --------------------------------------------------------------------------------------- database


WITNESSES = """
CREATE TABLE account(key TEXT PRIMARY KEY, balance INTEGER NOT NULL, records INTEGER NOT NULL);
CREATE TABLE witness(
  pos INTEGER PRIMARY KEY AUTOINCREMENT,  -- one writer at a time: the order of commits
  kind TEXT NOT NULL,  -- effect, activation
  partition INTEGER NOT NULL,
  member TEXT, offset INTEGER, key TEXT, seq INTEGER,  -- effect
  lane INTEGER, token INTEGER);  -- activation
CREATE INDEX witness_place ON witness(partition, offset) WHERE kind = 'effect';
CREATE TRIGGER witness_first AFTER INSERT ON tenure_lane BEGIN
  INSERT INTO witness(kind, partition, lane, token)
  VALUES ('activation', NEW.partition, NEW.lane, NEW.token);
END;
CREATE TRIGGER witness_next AFTER UPDATE ON tenure_lane
WHEN NEW.token IS NOT OLD.token OR NEW.owner IS NOT OLD.owner BEGIN
  INSERT INTO witness(kind, partition, lane, token)
  VALUES ('activation', NEW.partition, NEW.lane, NEW.token);
END;
"""


def handler_statements(member):
    """The SQL handler: an audit row that names its writer, and a balance."""
    return [
        "INSERT INTO witness(kind, member, partition, offset, key, seq)"
        f" VALUES ('effect', '{member}', :partition, :offset, :key, :json(/seq)!)",
        "INSERT INTO account(key, balance, records) VALUES (:key, :json(/amount)!, 1)"
        " ON CONFLICT (key) DO UPDATE SET records = records + 1,"
        f" balance = (balance * 31 + :json(/amount)!) % {judges.MODULUS}",
    ]


class Database:
    def __init__(self, path):
        self.path = path

    def connect(self, timeout=30.0):
        """Autocommit; for the calling thread."""
        return sqlite3.connect(self.path, timeout=timeout, isolation_level=None)

    def install_witnesses(self):
        with contextlib.closing(self.connect()) as connection:
            connection.executescript(WITNESSES)

    def write_open(self):
        """True when somebody holds the write lock, and goes on holding it."""
        with contextlib.closing(self.connect(timeout=LOCK_WAIT)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            connection.execute("ROLLBACK")
            return False

    @contextlib.contextmanager
    def write_lock(self, wanted=True):
        """Keeps every writer waiting; without `wanted` nobody."""
        if not wanted:
            yield
            return
        with contextlib.closing(self.connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")

    def last_pos(self):
        with contextlib.closing(self.connect()) as connection:
            return connection.execute("SELECT coalesce(max(pos), 0) FROM witness").fetchone()[0]

    def latest_writers(self, rows):
        """Members with an effect among the last rows, by name."""
        with contextlib.closing(self.connect()) as connection:
            return [name for name, in connection.execute(
                "SELECT DISTINCT member FROM (SELECT member FROM witness WHERE kind = 'effect'"
                " ORDER BY pos DESC LIMIT ?) ORDER BY member", (rows,))]

    def partitions_of(self, member):
        """Those whose last effect is the member's."""
        with contextlib.closing(self.connect()) as connection:
            return {partition for partition, name in connection.execute(
                "SELECT partition, member FROM witness WHERE pos IN (SELECT max(pos) FROM witness"
                " WHERE kind = 'effect' GROUP BY partition)") if name == member}

    def effects(self):
        with contextlib.closing(self.connect()) as connection:
            return [judges.Effect(*row) for row in connection.execute(
                "SELECT pos, partition, offset, key, seq, member FROM witness"
                " WHERE kind = 'effect' ORDER BY pos")]

    def activations(self):
        """One a token: the lane rows of a domain are activated together."""
        with contextlib.closing(self.connect()) as connection:
            return [judges.Activation(*row) for row in connection.execute(
                "SELECT min(pos), partition, token FROM witness WHERE kind = 'activation'"
                " GROUP BY partition, token ORDER BY 1")]

    def accounts(self):
        with contextlib.closing(self.connect()) as connection:
            return {key: judges.Account(balance, records) for key, balance, records in
                    connection.execute("SELECT key, balance, records FROM account")}

    def require_whole(self):
        with contextlib.closing(self.connect()) as connection:
            (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
        if answer != "ok":
            raise Broken(f"the database is damaged: {answer}")


class Sampler:
    """Reads, during the run, committed offsets and then the effects below them (J6)."""

    EVERY = 0.3

    def __init__(self, offsets, database):
        self.offsets = offsets
        self.database = database
        self.samples = []
        self.unanswered = 0
        self.problem = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            with contextlib.closing(self.database.connect()) as connection:
                while not self.ended.wait(self.EVERY):
                    self._take(connection)
        except (Failure, sqlite3.Error) as problem:
            self.problem = problem

    def _take(self, connection):
        ends = self.offsets.ask()
        if ends is None:
            self.unanswered += 1
            return
        for end in ends:
            if not end.committed:
                continue
            (below,) = connection.execute(
                "SELECT count(DISTINCT offset) FROM witness WHERE kind = 'effect'"
                " AND partition = ? AND offset < ?", (end.partition, end.committed)).fetchone()
            self.samples.append(judges.Sample(end.partition, end.committed, below))

    def close(self):
        self.ended.set()
        self.thread.join()
        if self.problem and sys.exc_info()[0] is None:
            raise Failure(f"the sampler of committed offsets ended: {self.problem}")


# ---------------------------------------------------------------------------------------- members


def yaml(value, depth=0):
    """A tree of dicts, lists and scalars as YAML. JSON's scalars are YAML's."""
    pad = "  " * depth
    if not isinstance(value, dict):
        return f" {json.dumps(value)}\n"
    lines = "" if depth == 0 else "\n"
    for key, inner in value.items():
        if isinstance(inner, list):
            lines += f"{pad}{key}:\n" + "".join(f"{pad}  - {json.dumps(item)}\n" for item in inner)
        else:
            lines += f"{pad}{key}:{yaml(inner, depth + 1)}"
    return lines


def group_settings(protocol, session, heartbeat):
    """For `consumer` session and heartbeat are the broker's."""
    if protocol == "consumer":
        return {"group.protocol": "consumer"}
    return {"partition.assignment.strategy": protocol,
            "session.timeout.ms": round(session * 1000),
            "heartbeat.interval.ms": round(heartbeat * 1000)}


class Member:
    """One `tenure run` process with its own configuration, history and log."""

    def __init__(self, name, folder, program, config):
        self.name = name
        self.folder = folder
        self.program = program
        self.config_file = folder / f"{name}.yaml"
        self.history_file = folder / f"{name}.jsonl"
        self.log_file = folder / f"{name}.log"
        self.config_file.write_text(yaml(config))
        self.process = None
        self.frozen = False
        self.told_to_stop = None  # when
        self.took_to_stop = None
        self.killed = False

    def start(self):
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                dies_with_us([self.program, "run", "-c", self.config_file, "--history",
                              self.history_file]),
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def store_init(self):
        result = subprocess.run([str(self.program), "store", "init", "-c", str(self.config_file),
                                 "--execute"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            raise Failure(f"tenure store init --execute: exit {result.returncode}\n"
                          + result.stdout)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def active(self):
        """Works: neither frozen nor on its way out."""
        return self.running() and not self.frozen and self.told_to_stop is None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat")
        if not wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] in "TZ", 5):
            raise Failure(f"{self.name} does not stop at SIGSTOP")
        self.frozen = True

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.told_to_stop = time.monotonic()
        self.process.send_signal(signal.SIGTERM)

    def check_alive(self):
        """Raises when it ended though nobody told it to."""
        if self.process is None or self.killed or self.told_to_stop is not None:
            return
        code = self.process.poll()
        if code is not None:
            raise Broken(f"{self.name} ended by itself with {code}: {self.last_words()}")

    def check_stopped(self, limit, may_be_cut):
        """Notes the end of one that was told to stop; raises when it took too long or ended
        otherwise than it may. True when it has ended."""
        code = self.process.poll()
        if code is None:
            if time.monotonic() - self.told_to_stop > limit:
                raise Broken(f"{self.name} still runs {limit:.1f} s after SIGTERM")
            return False
        if self.took_to_stop is not None:
            return True
        self.took_to_stop = time.monotonic() - self.told_to_stop
        if code == 0 or (code == 75 and may_be_cut and self.cut_drain()):
            return True
        raise Broken(f"{self.name} ended with {code} after SIGTERM: {self.last_words()}")

    def cut_drain(self):
        """What explains exit 75 in its own events: work that was left, a commit without answer."""
        cut = None
        for event in self.events():
            name = event["event"]
            if name == "app.draining":
                cut = None  # what was lost before is no matter of the shutdown
            elif name in ("commit.unresolved", "commit.rejected", "owner.lost"):
                cut = name
            elif name == "owner.drained" and event.get("result") != "complete":
                cut = f"{name} {event.get('result')}"
            elif name == "app.stopped" and event.get("abandoned"):
                cut = f"{name} abandoned {event.get('abandoned')}"
        return cut

    def last_words(self):
        lines = self.log_file.read_text(errors="replace").splitlines()
        return f"see {self.log_file}; it ends with:\n    " + "\n    ".join(lines[-8:])

    def events(self, *names):
        """Its events in order; those of the history, and of the log what the history lacks."""
        found = {}
        for file in (self.history_file, self.log_file):
            for event in read_events(file):
                found.setdefault(event.get("seq", ("line", len(found))), event)
        return [event for event in found.values() if not names or event["event"] in names]

    def seen(self, name, **fields):
        """True when it has reported such an event."""
        return any(all(event.get(key) == value for key, value in fields.items())
                   for event in self.events(name))


def read_events(file):
    """The complete event lines of a history or of a JSON log."""
    if not file.exists():
        return
    with open(file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not line.endswith("\n") or '"event"' not in line:
                continue
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                yield event


def require_tools(tenure, log_tool):
    for program in (tenure, log_tool):
        if not os.access(program, os.X_OK):
            raise Failure(f"{program} is not there; build it: cmake --build, target "
                          f"{program.name}")
    if not shutil.which("setpriv"):
        raise Failure("setpriv is missing; it is in the package util-linux")
