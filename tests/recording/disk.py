# SPDX-License-Identifier: MIT
"""disk.py: the disk is full in the middle. Recording stops and says so once, the program goes on with
its output and status, and the file is whole up to there: its last mark says why, for which room was kept. Its totals are
those of the whole run."""

import json
import os

from recorded import HERE, matches_own_counts, only_recording, own_counts, record
from harness import MEMTRACE, build, equal, execute, fail, finish, report, scratch, skip

PAIRS = 500000


def full_disk(folder, size):
    """A small file system of its own; skips where we may not mount one."""
    if os.geteuid() != 0:
        skip("mounting needs root")
    if execute(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", folder]).returncode != 0:
        skip("no tmpfs can be mounted here")


def check_end(path):
    told = execute([MEMTRACE, "query", "--format", "json", path,
                    "SELECT name, time, (SELECT max(born) FROM allocations) AS last FROM markers"])
    equal(told.returncode, 0, "query", told.stderr)
    marks = json.loads(told.stdout)
    equal([mark["name"] for mark in marks], ["recording: it could not go on: No space left on device"], "marks")
    if marks and marks[0]["time"] < marks[0]["last"]:
        fail("the mark is not the last of all:", marks)
    info = execute([MEMTRACE, "info", path]).stdout.decode()
    if "recording ended" not in info or "whole" not in info:
        fail("info does not say that the recording ended and is whole:", info)
    if "stopped before the program's end" not in execute([MEMTRACE, "report", path]).stdout.decode():
        fail("the report does not say that the recording ended early")


def main():
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder, counts = scratch(), os.path.join(scratch(), "counts")
    full_disk(folder, "1M")
    try:
        under = record([program, counts, "2", str(PAIRS)], folder,
                       settings={"MEMTRACE_OUTPUT": counts + ".mtp"})
        equal((under.returncode, under.stdout), (0, b"running\n"), "the program", under.stderr)
        told = [line for line in under.stderr.decode().splitlines() if "No space left" in line]
        equal(len(told), 1, "lines about the disk", under.stderr)
        path = only_recording(folder, "full disk")
        check_end(path)
        if os.stat(path).st_blocks * 512 > os.stat(path).st_size + 8192:
            fail("room behind the file is still taken:", os.stat(path))
        data = report(path)
        equal(data["warnings"], [], "warnings")
        if data["recording"]["events"] == 0:
            fail("nothing was recorded before the disk was full")
        done = sum(allocs for allocs, *_ in own_counts(counts).values())
        recorded = json.loads(execute([MEMTRACE, "info", "--json", path]).stdout)["allocations"]
        if recorded >= done:
            fail("the disk was never full:", recorded, "of", done)
        # What came later was counted: it is in the totals, and the recording says when it was.
        matches_own_counts(data, counts, "full disk")
        equal((data["recording"]["totals_counted"], len(data["recording"]["gaps"])), (True, 1), "gaps")
        if not 0 < data["recording"]["gaps"][0]["from_ns"] < data["recording"]["gaps"][0]["to_ns"]:
            fail("the gap is", data["recording"]["gaps"])
    finally:
        execute(["umount", folder])


if __name__ == "__main__":
    main()
    finish()
