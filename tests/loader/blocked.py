# SPDX-License-Identifier: MIT
"""blocked.py CASE MODE: a thread stands still inside the loader, inside the allocator, or anywhere;
all others go on allocating and every allocation is counted."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import SUBJECTS, bare, build, equal, fail, finish, heap, only_profile, scratch, skip, traced

WORKERS, SIZE = 3, 201
ROUNDS = {"constructor": 1000, "callback": 1000, "malloc": 1000, "anywhere": 50 * 20}


def counted(data, size, innermost):
    return sum(context["allocations"] for context in heap(data)
               if context["total_bytes"] == size * context["allocations"] and context["frames"]
               and context["frames"][0]["function"] == innermost)


def main(case, mode):
    if mode == "libunwind":
        skip("libunwind finds tables by dl_iterate_phdr, which waits for the loader's lock: who is "
             "stopped inside it holds up all others, by nature")
    bump = build(os.path.join(HERE, "bump.c"), "gcc", "-O2", shared=True)
    program = build(os.path.join(HERE, "blocked.c"), "gcc", "-O2", libraries=[bump], flags=[
        "-I" + SUBJECTS, "-rdynamic", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
        "-Wl,--no-as-needed", "-Wl,-z,now", "-Wl,-rpath," + os.path.dirname(bump)])
    still, folder = build(os.path.join(HERE, "still.c"), "gcc", "-O2", shared=True), scratch()
    command = [program, case] + ([still] if case == "constructor" else [])
    equal(bare(command).returncode, 3, "bare exit status")
    under = traced(command, "preload", folder, {"MEMTRACE_UNWIND": mode})
    if not equal((under.returncode, under.stdout), (3, b"done\n"), "exit status", under.stderr):
        return
    data = only_profile(folder, mode)
    rounds, lost = WORKERS * ROUNDS[case], data["lost_by_kind"]
    equal(counted(data, SIZE, "next_step"), rounds, "allocations of the others", lost)
    if case != "anywhere":
        equal(counted(data, SIZE + 2, "next_step"), rounds, "those by way of the C library")
        equal(data["lost"], 0, "lost", lost)
    elif data["frees"] + data["live_blocks"] != data["allocations"]:
        fail("frees and leaks do not add up to", data["allocations"])


main(*sys.argv[1:])
finish()
