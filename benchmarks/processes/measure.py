#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""measure.py BUILD: what forked children cost, bare beside preloaded, interleaved: a program whose
children allocate once or a hundred times, and loops of 300 subshells. BUILD is a build folder with
benchmarks. Prints milliseconds a child by the clock (the fastest round, since other work on the
machine only adds) and by the processor."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

CHILDREN, ROUNDS = 300, 9
LOOP = "i=0; while [ $i -lt %d ]; do ( : ); i=$((i+1)); done" % CHILDREN


def seconds(command, environment):
    """By the clock, and by the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(command, preloaded):
    """(bare, preloaded) milliseconds a child: clock, processor."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("MEMTRACE")}
    rounds = [(seconds(command, bare), seconds(command, {**bare, **preloaded}))
              for _ in range(ROUNDS)]
    return [[choose(measured[kind][what] for measured in rounds) * 1e3 / CHILDREN for kind in (0, 1)]
            for what, choose in ((0, min), (1, statistics.median))]


def main():
    build = os.path.abspath(sys.argv[1])
    forks = os.path.join(build, "benchmarks", "forks")
    subjects = {"C, one allocation a child": [forks, str(CHILDREN), "1"],
                "C, 100 allocations a child": [forks, str(CHILDREN), "100"],
                "sh, 300 subshells": ["sh", "-c", LOOP],
                "bash, 300 subshells": ["bash", "-c", LOOP]}
    print("| ms a child | bare | MemTrace | ratio | processor: bare | MemTrace | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        preloaded = {"LD_PRELOAD": os.path.join(build, "lib", "libmemtrace.so"),
                     "MEMTRACE_SUMMARY": "0", "MEMTRACE_OUTPUT": os.path.join(folder, "out.mtp")}
        for name, command in subjects.items():
            figures = measure(command, preloaded)
            print("| %s |" % name, " | ".join("%.2f | %.2f | %.2f" % (bare, ours, ours / bare)
                                              for bare, ours in figures), "|", flush=True)


if __name__ == "__main__":
    main()
