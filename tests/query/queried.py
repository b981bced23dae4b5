# SPDX-License-Identifier: MIT
"""What the tests of queries share: a recording of a program that does everything at random
(tests/selection/busy.c), and asking it."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "selection"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))

from recorded import only_recording, record  # noqa: E402
from harness import (BUILD, MEMTRACE, build, clean_environment, equal, execute, fail, finish,  # noqa: E402
                     profiles, report, scratch)

BUSY = os.path.join(os.path.dirname(HERE), "selection", "busy.c")
SETTINGS = {"MEMTRACE_CACHE": ""}


def busy(folder, *options, threads=3, steps=1500):
    """A recording, with a profile beside it, of several threads."""
    program = build(BUSY)
    result = record([program, "7", str(threads), str(steps)], folder, *options)
    equal(result.returncode, 0, "recording", result.stderr)
    return only_recording(folder, "busy")


def run(source, *arguments, settings=None, **more):
    """The last argument is SQL."""
    return execute([MEMTRACE, "query", *arguments[:-1], source, arguments[-1]],
                   clean_environment(**SETTINGS, **(settings or {})), **more)


def ask(source, sql, *options):
    """The rows of one statement, as dictionaries. A failure is one of the test."""
    result = run(source, "--format", "json", *options, sql)
    if result.returncode != 0 or result.stderr:
        fail(sql, ": status", result.returncode, result.stderr.decode(errors="replace"))
        return []
    return json.loads(result.stdout)


def column(source, sql, *options):
    """The values of the first column."""
    return [next(iter(row.values())) for row in ask(source, sql, *options)]


def told(source, *options):
    return report(source, SETTINGS, *options)
