#!/usr/bin/env python3
"""Checks that the engine is pure: what its archive asks the outside world for.

Usage: check_symbols.py core|base ARCHIVE. Prints 'archive:object: symbol: rule' for each undefined
symbol of a forbidden kind; exit 1 when there is one, or when the archive holds no object.
"""

import re
import subprocess
import sys

LIBRARIES = [(r"rd_kafka_", "no librdkafka"), (r"sqlite3_", "no SQLite"), (r"PQ[a-z]", "no libpq")]
RANDOM = [(r"(rand|srand|rand_r|random|getrandom|getentropy|drand48)$|_ZNSt13random_device",
           "no randomness")]
CLOCKS = [(r"(clock_gettime|clock_nanosleep|gettimeofday|time|nanosleep|usleep|sleep)$|"
           r"_ZNSt6chrono.*3nowEv", "no clocks")]
THREADS = [(r"(pthread_|thrd_|mtx_|cnd_|sem_|__cxa_thread_atexit|__gthr|__tls_get_addr)|"
            r"_ZNSt6thread|_ZNSt18condition_variable|_ZNSt3_V222condition_variable_any",
            "no threads or locks"),
           (r"__atomic_|__sync_", "no atomics")]
INPUT_OUTPUT = [(r"(open|openat|read|write|pread|pwrite|close|socket|connect|send|recv|poll|"
                 r"fopen|fdopen|fclose|fread|fwrite|fputs|fputc|puts|putchar|printf|fprintf|"
                 r"vfprintf|dprintf|perror|getenv|system|execv|fork|std(in|out|err))(64)?$|"
                 r"_ZSt4(cout|cerr|clog)|_ZNSt8ios_base|_ZNSo|_ZNSi|_ZSt.*basic_ostream|"
                 r"_ZNSt1[0-9]basic_([io]?f?stream|filebuf)|_ZNSt10filesystem",
                 "no streams, files or sockets")]
RULES = {
    "core": LIBRARIES + RANDOM + CLOCKS + THREADS + INPUT_OUTPUT,
    # Holds the locks of the runtime and the assertion that writes its last words.
    "base": LIBRARIES + RANDOM + CLOCKS,
}


def faults(rules, archive):
    listing = subprocess.run(["nm", "--undefined-only", archive], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    objects = 0
    found = []
    current = ""
    for line in listing.splitlines():
        if line.endswith(":"):
            current = line[:-1]
            objects += 1
        elif line.strip():
            symbol = line.split()[-1].split("@")[0]
            for pattern, rule in rules:
                if re.match(pattern, symbol):
                    found.append(f"{archive}:{current}: {symbol}: {rule}")
                    break
    return objects, found


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        print(__doc__, file=sys.stderr)
        return 64
    objects, found = faults(RULES[sys.argv[1]], sys.argv[2])
    for fault in found:
        print(fault)
    print(f"check_symbols: {sys.argv[1]}: {objects} objects, {len(found)} faults")
    return 1 if found or objects == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
