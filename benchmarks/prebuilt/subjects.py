# SPDX-License-Identifier: MIT
"""The whole programs of `benchmarks/run prebuilt`: Debian's own python3 and C compiler as they are
installed, and redis-server from its sources. Used by figures.py."""

import os
import subprocess

import harness
from programs.subjects import Redis, Subject

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
NOISE = None  # the limit that is how much the bare runs differ


class Whole(Subject):
    """A program, and how many times its bare time it may take: NOISE, or 0 without a target."""

    def __init__(self, limit, *words, **more):
        super().__init__(*words, **more)
        self.limit = limit


class WholeRedis(Redis):
    """The same of redis-server."""

    def __init__(self, limit, *words):
        super().__init__(*words)
        self.limit = limit


def whole_programs(work):
    """Those that are here."""
    workload = os.path.join(HERE, "workload.py")
    if os.path.exists(PYTHON):
        yield Whole(1.3, "python3, JSON, PYTHONMALLOC=malloc", PYTHON, [workload, 100],
                    [workload, 3], environment={"PYTHONMALLOC": "malloc"})
    compiler = harness.first_line("gcc", "-print-prog-name=cc1")
    sources = [preprocessed(work, name) for name in ("btree", "pager")]
    if compiler and os.path.isabs(compiler) and all(sources):
        yield Whole(1.15, "cc1 -O1, SQLite's btree.c (short: pager.c)", compiler,
                    *(["-fpreprocessed", "-quiet", "-O1", source, "-o", "/dev/null"]
                      for source in sources))
    if os.path.exists(os.path.join(work, "gcc-bare", "redis-server")):
        yield WholeRedis(NOISE, "redis-server under redis-benchmark", ())
        yield WholeRedis(0, "redis-server under redis-benchmark, 16 requests in a pipeline")


def preprocessed(work, name):
    """A file of SQLite's as the compiler proper gets it, made once; None: there are no sources."""
    folder = os.path.join(work, "sources", "sqlite3", "unpacked")
    target = os.path.join(work, name + ".i")
    if not os.path.exists(target):
        command = ["gcc", "-E", "-I", folder, "-I", os.path.join(folder, "src"),
                   os.path.join(folder, "src", name + ".c"), "-o", target]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            return None
    return target
