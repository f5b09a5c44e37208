"""tools/kafka: a real broker that starts, is frozen, killed and revived, and leaves nothing."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1))


def eventually(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def lives(pid):
    """False when it is gone, or only waits for its parent to take notice."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Kafka(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "cluster"

    def kafka(self, *arguments, code=0):
        result = subprocess.run([str(TOOLS / "kafka"), *map(str, arguments), "--dir", self.folder],
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout if code == 0 else result.stderr

    def start(self, nodes, *arguments):
        self.addCleanup(subprocess.run, [str(TOOLS / "kafka"), "stop", "--dir", self.folder],
                        stderr=subprocess.DEVNULL)
        lines = self.kafka("start", nodes, "--owner", os.getpid(), *arguments).splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0].split(",")

    def states(self):
        return [line.split()[3] for line in self.kafka("status").splitlines()]

    def test_one_node(self):
        (address,) = self.start(1, "--fast-groups", "--session-ms", "2000", "--set",
                                "num.io.threads=3")
        properties = (self.folder / "node-1" / "server.properties").read_text()
        self.assertIn("group.consumer.session.timeout.ms=2000\n", properties)
        self.assertIn("num.io.threads=3\n", properties)
        self.assertTrue(address.startswith("127.0.0.1:"))
        self.assertEqual(self.kafka("coordinator", "anyone").strip(), "1")
        self.kafka("topic", "orders", 12, "--config", "retention.ms=100000")
        self.assertIn("already exists", self.kafka("topic", "orders", 12, code=1))
        self.assertIn("partition", self.kafka("topic", "none", 0, code=1).lower())
        self.assertIn("already runs", self.kafka("start", code=1))
        self.kafka("freeze", 1)
        self.assertEqual(self.states(), ["frozen"])
        self.kafka("thaw", 1)
        self.assertEqual(self.states(), ["running"])
        self.kafka("kill", 1)
        self.assertEqual(self.states(), ["dead"])
        self.assertIn("does not run", self.kafka("freeze", 1, code=1))
        self.kafka("revive", 1)
        self.assertIn("already exists", self.kafka("topic", "orders", 12, code=1))  # its data
        self.assertIn("no node 4", self.kafka("kill", 4, code=1))
        self.kafka("stop")
        self.assertFalse(self.folder.exists())

    def test_only_its_own_processes_are_signalled(self):
        self.start(1)
        record = self.folder / "node-1" / "pid"
        true_record = record.read_text()
        stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        try:
            record.write_text(f"{stranger.pid} 1\n")  # the pid came back, the start time tells
            self.assertIn("does not run", self.kafka("kill", 1, code=1))
            self.assertIsNone(stranger.poll())
        finally:
            record.write_text(true_record)
            stranger.communicate()
        self.assertEqual(stranger.returncode, 0)

    def test_the_cluster_ends_with_its_owner(self):
        owner = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        self.kafka("start", "--owner", owner.pid)
        node = int(self.kafka("status").split()[2])
        owner.communicate()
        self.assertTrue(eventually(lambda: not self.folder.exists(), 10))
        self.assertFalse(lives(node))

    def test_three_nodes_go_on_without_the_coordinator(self):
        self.assertEqual(len(self.start(3)), 3)
        self.kafka("topic", "orders", 6)
        coordinator = self.kafka("coordinator", "group").strip()
        self.kafka("kill", coordinator)
        self.assertTrue(eventually(
            lambda: self.kafka("coordinator", "group").strip() != coordinator, 30))
        self.kafka("revive", coordinator)
        self.assertEqual(self.states(), ["running"] * 3)


if __name__ == "__main__":
    unittest.main()
