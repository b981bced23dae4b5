# SPDX-License-Identifier: MIT
"""disk.py: the disk is full in the middle. Recording stops and says so once, the program goes on with
its output and status, and the file is whole up to there."""

import os

from recorded import HERE, only_recording, own_counts, record
from harness import build, equal, execute, fail, finish, report, scratch, skip

PAIRS = 500000


def full_disk(folder, size):
    """A small file system of its own; skips where we may not mount one."""
    if os.geteuid() != 0:
        skip("mounting needs root")
    if execute(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", folder]).returncode != 0:
        skip("no tmpfs can be mounted here")


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
        data = report(only_recording(folder, "full disk"))
        equal(data["warnings"], [], "warnings")
        if data["recording"]["events"] == 0:
            fail("nothing was recorded before the disk was full")
        done = sum(allocs for allocs, *_ in own_counts(counts).values())
        if data["total_allocations"] >= done:
            fail("the disk was never full:", data["total_allocations"], "of", done)
    finally:
        execute(["umount", folder])


main()
finish()
