# SPDX-License-Identifier: MIT
"""pairing.py [ROUNDS]: eight threads that free each other's blocks while addresses are used again at
once (exchange.c). Each free in the recording must name the very allocation whose stamp stood in the
block: thread and number, one by one, in the order of the freeing thread."""

import os
import sys

from recorded import HERE, events, only_recording, record, whole
from harness import build, equal, fail, finish, report, scratch


def expected_frees(output):
    """By freeing thread: (owner, number of its allocation), in order."""
    freed, reused = {}, 0
    for line in output.decode().splitlines():
        words = line.split()
        if words[0] == "freer":
            freed[int(words[1].rstrip(":"))] = [tuple(map(int, word.split("."))) for word in words[2:]]
        else:
            reused = int(words[1])
    return freed, reused


def recorded_frees(path, data, workers):
    """The same of the recording; a number counts the thread's blocks of the program's own only."""
    tids = {thread["id"]: thread["tid"] for thread in data["threads"]}
    lines = events(path)
    first = {}
    for line in lines:  # what the C library asked for on the thread's behalf comes before
        if line[0] == "alloc" and int(line[3]) in (40, 80, 120):
            thread = int(line[1])
            first.setdefault(thread, int(line[2]) - 1)
    freed = {tid: [] for tid in workers}
    for line in lines:
        if line[0] == "free" and tids[int(line[1])] in workers:
            owner, number = int(line[2]), int(line[3])
            if number > first.get(owner, 1 << 60):
                freed[tids[int(line[1])]].append((tids[owner], number - first[owner]))
    return freed


def main():
    rounds = sys.argv[1] if len(sys.argv) > 1 else "20000"
    program = build(os.path.join(HERE, "exchange.c"), "gcc", "-O2")
    folder = scratch()
    under = record([program, rounds], folder,
                   settings={"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"})
    equal(under.returncode, 0, "exit status", under.stderr)
    expected, reused = expected_frees(under.stdout)
    path = only_recording(folder, "exchange")
    data = report(path)
    whole(data, "exchange")
    equal(len(expected), 8, "threads")
    if reused < int(rounds) // 10:
        fail("addresses were hardly used again:", reused)
    found = recorded_frees(path, data, expected)
    for tid, frees in expected.items():
        if found[tid] != frees:
            place = next((i for i, (a, b) in enumerate(zip(found[tid], frees)) if a != b), "the end")
            fail("thread", tid, "freed", len(frees), "recorded", len(found[tid]), "differ at", place)
    print(sum(map(len, expected.values())), "frees,", reused, "addresses used again by another thread")


main()
finish()
