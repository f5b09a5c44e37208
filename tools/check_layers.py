#!/usr/bin/env python3
"""Checks which layer includes which, and the few things no file of the project may hold.

Usage: check_layers.py [ROOT]. Prints 'file:line: rule: why' and the line itself for each fault;
exit 1 when there is one. The arrows are those of the architecture: base <- core <- ports <-
adapters and runtime <- app <- cli; nothing includes what stands above it.
"""

import pathlib
import re
import sys

CORE_STD = {  # no threads, locks, atomics, clocks, randomness, I/O or unordered iteration
    "algorithm", "array", "bit", "chrono", "compare", "concepts", "cstddef", "cstdint", "cstring",
    "functional", "initializer_list", "iterator", "limits", "map", "memory", "numeric", "optional",
    "queue", "set", "span", "string", "string_view", "tuple", "type_traits", "utility", "variant",
    "vector", "deque", "cmath", "new", "cassert", "climits", "charconv", "list", "ratio",
}
PUBLIC = "tenure"
# layer: (project layers it may include beside itself and the public headers, third party)
LAYERS = {
    "base": (set(), {"tl/", "xxhash.h"}),
    "core": ({"base"}, {"tl/"}),
    "ports": ({"base", "core"}, {"tl/"}),
    "runtime": ({"base", "core", "ports"}, {"tl/", "fmt/", "xxhash.h"}),
    "memory": ({"base", "core", "ports"}, {"tl/"}),
    "observe": ({"base", "core", "ports"}, {"tl/", "fmt/", "nlohmann/"}),
    "kafka": ({"base", "core", "ports"}, {"tl/", "fmt/", "librdkafka/", "xxhash.h"}),
    "sqlite": ({"base", "core", "ports"}, {"tl/", "fmt/", "sqlite3.h", "xxhash.h"}),
    "handler": ({"base", "core", "ports", "sqlite"}, {"tl/", "fmt/", "nlohmann/", "sqlite3.h"}),
    "judge": ({"base", "core", "ports"},
              {"tl/", "fmt/", "nlohmann/", "librdkafka/", "sqlite3.h", "xxhash.h"}),
    "app": ({"base", "core", "ports", "runtime", "memory", "observe", "kafka", "sqlite", "handler"},
            {"tl/", "fmt/", "nlohmann/", "librdkafka/", "sqlite3.h", "yaml-cpp/", "CLI/",
             "openssl/", "xxhash.h"}),
    "testing": ({"base", "core", "ports"}, {"tl/", "xxhash.h"}),
    "sim": ({"base", "core", "ports", "memory"}, {"tl/"}),
}
LAYERS["demo"] = (LAYERS["app"][0] | {"app", "judge"}, LAYERS["app"][1])
LAYERS["cli"] = (LAYERS["demo"][0] | {"demo"}, LAYERS["demo"][1])
SYSTEM = re.compile(r"(sys|netinet|arpa|linux)/|(unistd|fcntl|poll|signal|pthread|spawn|dlfcn|"
                    r"netdb|errno|regex|execinfo|cxxabi|sched|limits|time|termios|stdio|stdlib|"
                    r"string)"
                    r"\.h$")
SYSTEM_LAYERS = {"base", "runtime", "kafka", "sqlite", "handler", "app", "judge", "demo", "cli"}
# A public header shows no library's types; port headers hold no implementation.
PUBLIC_THIRD_PARTY = {"tl/"}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
BANNED_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|manager|misc)(_|\.|$)")
# In two halves, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.$])/(wo" r"rk|tm" r"p/t|ro" r"ot|ho" r"me)/")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(|(?<![\w.])sleep\s*\(")
SOURCE_ENDINGS = {".hpp", ".cpp", ".h"}
WIDE_ALLOWED = {".md", ".json", ".xml", ".tsv", ".jsonl"}
ROOTS = ("include", "src", "sim", "tests", "bench", "tools", "cmake", "docs", ".ci")


def includes_of(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, line, match[1], match[2]


def layer_of(path):
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return {"sim": "sim", "include": PUBLIC}.get(parts[0])


def project_layer(name):
    """The layer that an include of ours names, or None for a foreign one."""
    first = name.split("/")[0]
    return first if first in LAYERS or first == PUBLIC else None


def check_includes(path, text):
    layer = layer_of(path)
    for number, line, quote, name in includes_of(text):
        if name.startswith("../") or "/../" in name:
            yield number, "paths", "name files from include/ or src/, never '../'", line
            continue
        if layer is None:
            if path.parts[0] in ("tests", "bench"):
                continue  # tests may link anything
            yield number, "layers", f"{path.parent} belongs to no layer", line
            continue
        target = project_layer(name) if quote == '"' or "/" in name else None
        if target == PUBLIC:
            if layer == PUBLIC:
                continue
            if name.startswith("tenure/testing/") and layer not in ("sim", "testing"):
                yield number, "layers", "only sim, testing and tests include tenure/testing", line
            continue
        if target is not None:
            if layer == PUBLIC:
                yield number, "layers", "a public header includes public headers only", line
            elif target != layer and target not in LAYERS.get(layer, (set(),))[0]:
                yield number, "layers", f"{layer} must not include {target}", line
            continue
        if quote == '"':
            yield number, "paths", "no layer of this name; foreign headers go in <>", line
            continue
        if layer not in LAYERS and layer != PUBLIC:
            yield number, "layers", f"src/{layer} is not in the table of check_layers.py", line
            continue
        allowed = PUBLIC_THIRD_PARTY if layer == PUBLIC else LAYERS[layer][1]
        if any(name == a or (a.endswith("/") and name.startswith(a)) for a in allowed):
            continue
        if "/" in name or name.endswith(".h"):
            if not (layer in SYSTEM_LAYERS and SYSTEM.match(name)):
                yield number, "third party", f"{layer} must not include <{name}>", line
        elif layer == "core" and name not in CORE_STD:
            yield number, "core is pure", f"core must not include <{name}>", line


def check_text(path, text):
    source = path.suffix in SOURCE_ENDINGS
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > 100 and path.suffix not in WIDE_ALLOWED and "http" not in line:
            yield number, "width", f"{len(line)} columns; 100 at most", line
        if MACHINE_PATH.search(line):
            yield number, "machine path", "no path of one machine", line
        if source and path.parts[0] == "tests" and SLEEP.search(line):
            yield number, "no sleep", "wait for what you mean, not for time", line
    if source and path.suffix != ".cpp" and "#pragma once" not in text:
        yield 1, "header", "'#pragma once' is missing", text.split("\n", 1)[0]


def check(root):
    faults = []
    seen = 0
    for top in ("", *ROOTS):
        for file in sorted((root / top).rglob("*") if top else root.glob("*")):
            path = file.relative_to(root)
            if not file.is_file() or "__pycache__" in path.parts:
                continue
            if BANNED_NAMES.search(path.stem + "."):
                faults.append(f"{path}:1: name: no utils, helpers, common, manager, misc")
            try:
                text = file.read_text()
            except UnicodeDecodeError:
                continue
            seen += 1
            found = list(check_text(path, text))
            if path.suffix in SOURCE_ENDINGS:
                found += check_includes(path, text)
            faults += [f"{path}:{number}: {rule}: {why}\n    {line.strip()}"
                       for number, rule, why, line in found]
    return seen, faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    seen, faults = check(root.resolve())
    for fault in faults:
        print(fault)
    print(f"check_layers: {seen} files, {len(faults)} faults")
    # A check that compared nothing has not passed.
    return 1 if faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
