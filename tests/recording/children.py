# SPDX-License-Identifier: MIT
"""children.py HOW: a child made by fork, exec, vfork or spawn has a recording of its own, and each
recording has what its process did; with MEMTRACE_CHILDREN=none the parent's alone is there."""

import os
import re
import sys

from recorded import HERE, is_closed, record, recordings, wait_until
from harness import build, equal, finish, report, scratch


def did(output):
    """By process: what it says of itself."""
    return {int(pid): (int(allocations), int(frees)) for pid, allocations, frees in
            re.findall(r"did (\d+) allocations (\d+) frees (\d+)", output.decode())}


def run(how, follow):
    what = "%s%s:" % (how, " followed" if follow else "")
    program = build(os.path.join(HERE, "children.c"), "gcc", "-O2")
    folder = scratch()
    under = record([program, how], folder, settings={"MEMTRACE_CHILDREN": None if follow else "none"})
    equal(under.returncode, 0, what, "exit status", under.stderr)
    told = did(under.stdout)
    equal(len(told), 2, what, "processes", under.stdout)
    expected = told if follow else {pid: counts for pid, counts in told.items()
                                    if counts[0] == 200}
    wait_until(lambda: len(recordings(folder)) >= len(expected), what + " all recordings")
    wait_until(lambda: all(map(is_closed, recordings(folder))),
               what + " the end of all recordings")
    found = {}
    for path in recordings(folder):
        data = report(path)
        inherited = data["process"]["inherited_blocks"]
        if how == "fork" and data["process"]["forked"]:
            equal(inherited, 100, what, "inherited blocks")
        found[data["process"]["pid"]] = (data["allocations"] - inherited, data["frees"])
        equal((data["lost"], data["warnings"], data["recording"]["foreign_frees"]), (0, [], 0), what,
              "lost, warnings, foreign frees")
    equal(found, expected, what, "allocations and frees")


for follow in (True, False):
    run(sys.argv[1], follow)
finish()
