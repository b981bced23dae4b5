# SPDX-License-Identifier: MIT
"""live.py: a recording is read while it is written. Each report is of a moment: it says so, its sums add
up, and it is never ahead of what the program did by then; the next one has more."""

import os
import signal

from recorded import HERE, child_of, matches_own_counts, own_counts, recordings, report_so_far, start, wait_until
from harness import build, consistent, equal, fail, finish, report, scratch

THREADS = 2


def look(path, counts, what):
    data = report(path)
    done = sum(allocs_begun for _, allocs_begun, *_ in own_counts(counts).values())
    equal((data["process"]["end"], data["recording"]["closed"], data["warnings"]),
          ("running", False, []), what, "state, closed, warnings")
    consistent(data, what)
    if data["allocations"] > done + 100:  # a few of the program's own
        fail(what, data["allocations"], "allocations, but only", done, "were begun")
    return data["allocations"]


def has_events(folder):
    data = report_so_far(recordings(folder)[0]) if recordings(folder) else None
    return data is not None and data["allocations"] > 0


def main():
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder = scratch()
    counts = os.path.join(folder, "counts")
    recorder = start([program, counts, str(THREADS)], folder)
    pid = child_of(recorder.pid)
    recorder.stdout.readline()
    wait_until(lambda: has_events(folder), "the first events in the file")
    path = recordings(folder)[0]
    seen = look(path, counts, "first look:")
    wait_until(lambda: look(path, counts, "another look:") > seen, "more events in the file")
    os.kill(pid, signal.SIGKILL)
    recorder.communicate()
    data = report(path)
    equal((data["process"]["end"], data["recording"]["closed"], data["warnings"]),
          ("killed", True, []), "at the end: state, closed, warnings")
    matches_own_counts(data, counts, "at the end:")


main()
finish()
