"""Each check of tools/ reports a planted fault with rule and line, and passes its clean twin."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1))
COMPILER = sys.argv.pop(1)


def run(*command):
    result = subprocess.run([str(part) for part in command], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def plant(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class CheckLayers(Tree):
    def assert_reports(self, name, text, line, rule):
        self.plant(name, text)
        code, output = run(sys.executable, TOOLS / "check_layers.py", self.root)
        self.assertEqual(code, 1, output)
        self.assertIn(f"{name}:{line}: {rule}", output)
        self.assertIn(text.splitlines()[line - 1].strip(), output)

    def test_clean_tree_passes(self):
        self.plant("src/core/lane.hpp",
                   '#pragma once\n#include <vector>\n#include "base/gate.hpp"\n')
        self.plant("src/kafka/source.cpp", '#include <librdkafka/rdkafka.h>\n#include <thread>\n')
        code, output = run(sys.executable, TOOLS / "check_layers.py", self.root)
        self.assertEqual(code, 0, output)

    def test_empty_tree_is_no_pass(self):
        self.assertEqual(run(sys.executable, TOOLS / "check_layers.py", self.root)[0], 1)

    def test_core_includes_an_adapter(self):
        self.assert_reports("src/core/lane.cpp", '#include <vector>\n#include "kafka/source.hpp"\n',
                            2, "layers: core must not include kafka")

    def test_an_adapter_includes_another(self):
        self.assert_reports("src/kafka/a.cpp", '#include "sqlite/store.hpp"\n', 1,
                            "layers: kafka must not include sqlite")

    def test_runtime_includes_an_adapter(self):
        self.assert_reports("src/runtime/a.cpp", '#include "kafka/source.hpp"\n', 1,
                            "layers: runtime must not include kafka")

    def test_core_includes_a_thread(self):
        self.assert_reports("src/core/a.cpp", "\n#include <mutex>\n", 2, "core is pure")

    def test_runtime_includes_the_client(self):
        self.assert_reports("src/runtime/a.cpp", "#include <librdkafka/rdkafka.h>\n", 1,
                            "third party: runtime must not include")

    def test_public_header_shows_a_library(self):
        self.assert_reports("include/tenure/a.hpp", "#pragma once\n#include <sqlite3.h>\n", 2,
                            "third party")

    def test_public_header_includes_a_private_one(self):
        self.assert_reports("include/tenure/a.hpp", '#pragma once\n#include "core/engine.hpp"\n', 2,
                            "layers: a public header")

    def test_source_includes_a_test(self):
        self.assert_reports("src/core/a.cpp", '#include "support/x.hpp"\n', 1, "paths")

    def test_dots_in_a_path(self):
        self.assert_reports("tests/unit/a.cpp", '#include "../a.hpp"\n', 1, "paths")

    def test_unknown_layer(self):
        self.assert_reports("src/magic/a.cpp", "#include <sqlite3.h>\n", 1, "layers: src/magic")

    def test_header_without_guard(self):
        self.assert_reports("src/core/a.hpp", "int a();\n", 1, "header")

    def test_long_line(self):
        self.assert_reports("src/core/a.cpp", "//" + "x" * 99 + "\n", 1, "width")

    def test_machine_path(self):
        self.assert_reports("src/core/a.cpp", 'auto a = "/ro' + 'ot/x";\n', 1, "machine path")

    def test_sleep_in_a_test(self):
        self.assert_reports("tests/unit/a.cpp", "\nstd::this_thread::sleep_for(1s);\n", 2,
                            "no sleep")

    def test_banned_name(self):
        self.plant("src/core/string_utils.cpp", "int a();\n")
        code, output = run(sys.executable, TOOLS / "check_layers.py", self.root)
        self.assertEqual(code, 1, output)
        self.assertIn("src/core/string_utils.cpp:1: name: ", output)


class CheckSymbols(Tree):
    def check(self, layer, source):
        file = self.plant("a.cpp", source)
        run(COMPILER, "-std=c++20", "-O1", "-c", file, "-o", self.root / "a.o")
        run("ar", "rcs", self.root / "a.a", self.root / "a.o")
        return run(sys.executable, TOOLS / "check_symbols.py", layer, self.root / "a.a")

    def test_pure_object_passes(self):
        source = "#include <vector>\nstd::vector<int> f() { return {1}; }\n"
        code, output = self.check("core", source)
        self.assertEqual(code, 0, output)

    def test_empty_archive_is_no_pass(self):
        self.plant("a.a", "!<arch>\n")
        code, _ = run(sys.executable, TOOLS / "check_symbols.py", "core", self.root / "a.a")
        self.assertEqual(code, 1)

    def test_each_forbidden_kind_is_reported(self):
        for source, rule in (
            ("#include <mutex>\nstd::mutex m; void f() { std::scoped_lock l(m); }", "threads"),
            ("#include <thread>\nvoid f() { std::thread([] {}).join(); }", "threads"),
            ("#include <chrono>\nauto f() { return std::chrono::steady_clock::now(); }", "clocks"),
            ("#include <ctime>\nauto f() { timespec t; return clock_gettime(1, &t); }", "clocks"),
            ('extern "C" void rd_kafka_destroy(void*); void f() { rd_kafka_destroy(nullptr); }',
             "librdkafka"),
            ('extern "C" int sqlite3_close(void*); int f() { return sqlite3_close(nullptr); }',
             "SQLite"),
            ("#include <cstdlib>\nint f() { return std::rand(); }", "randomness"),
            ("#include <iostream>\nvoid f() { std::cout << 1; }", "streams"),
            ("#include <fstream>\nvoid f() { std::ofstream o(\"x\"); }", "streams"),
            ("#include <cstdio>\nvoid f() { std::puts(\"x\"); }", "streams"),
        ):
            with self.subTest(source):
                code, output = self.check("core", source + "\n")
                self.assertEqual(code, 1, output)
                self.assertIn("a.o: ", output)
                self.assertIn(rule, output)


if __name__ == "__main__":
    unittest.main()
