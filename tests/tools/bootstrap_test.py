"""tools/bootstrap says what is missing and refuses what it cannot trust."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1))


def bootstrap(*arguments, **environment):
    result = subprocess.run([str(TOOLS / "bootstrap"), *arguments], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env={**os.environ, **environment})
    return result.returncode, result.stdout


class Bootstrap(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_unknown_option_is_usage(self):
        self.assertEqual(bootstrap("--wit", "demo")[0], 64)
        self.assertEqual(bootstrap("--with", "everything")[0], 64)

    def test_a_ready_machine_needs_less_than_two_seconds(self):
        began = time.monotonic()
        code, output = bootstrap("--with", "test", "--no-apt")
        self.assertEqual(code, 0, output)
        self.assertLess(time.monotonic() - began, 2, output)

    def test_no_apt_lists_what_is_missing(self):
        for tool in ("bash", "cut", "dirname", "flock", "head", "id", "mkdir", "sed", "sha256sum",
                     "sort", "uname", "grep", "g++", "make"):
            os.symlink(shutil.which(tool), self.folder / tool)
        code, output = bootstrap("--no-apt", PATH=str(self.folder),
                                 TENURE_CACHE=str(self.folder / "cache"))
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r'FAILED at "packages": missing:.* cmake .*npm')
        self.assertNotIn(" make ", output)
        self.assertIn("as root: apt-get install", output)

    @unittest.skipIf(
        subprocess.run(["pkg-config", "--atleast-version=2.14.2", "rdkafka"]).returncode == 0,
        "the system's librdkafka is used")
    def test_an_archive_that_is_not_the_pinned_one_is_refused(self):
        archive = self.folder / "other.tgz"
        archive.write_bytes(b"not librdkafka")
        code, output = bootstrap("--prefix-only", TENURE_CACHE=str(self.folder / "cache"),
                                 TENURE_LIBRDKAFKA_TARBALL=str(archive))
        self.assertEqual(code, 1, output)
        self.assertIn('FAILED at "librdkafka: verify"', output)
        self.assertFalse(list((self.folder / "cache").glob("librdkafka-*")))
        self.assertFalse(list((self.folder / "cache").glob("build-*")))


if __name__ == "__main__":
    unittest.main()
