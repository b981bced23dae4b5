# SPDX-License-Identifier: MIT
"""fast.py CASE: what the fast halves of malloc and free count (runtime/entry/fast.c), to the block: where
handlers come in between, which block was the newest, how long blocks lived, who freed them."""

import glob
import os
import sys

from harness import (BUILD, build, consistent, equal, fail, finish, heap, only_profile, scratch, traced)

PASS = ["-fplugin=" + path
        for path in glob.glob(os.path.join(BUILD, "lib", "memtrace", "gcc-*", "memtrace.so"))]
# Without a pass malloc has no fast half, but free has.
WAYS = (("preload", [], "preload"), ("frame-pointer", PASS, "pass"))


def runs(name):
    """The profile of each way to run it, and the first line it printed."""
    for mode, flags, way in WAYS:
        if way == "pass" and not flags:
            continue
        folder = scratch()
        program = build("fast.c", "gcc", "-O2", mode, flags=flags)
        under = traced([program, name], mode, folder)
        equal((under.stdout.split()[-1:], under.returncode), ([b"done"], 0), name, way, under.stderr)
        data = only_profile(folder, name)
        consistent(data, name + " " + way)
        yield way, data, under.stdout.split()[0]


def test_refused():
    """Where blocks lie so low that NULL has a place beside theirs, what is refused is thrown, and not counted."""
    if not PASS:
        return
    program = build("refused.cpp", "gcc", "-O1", "frame-pointer", flags=[*PASS, "-no-pie"])
    folder = scratch()
    under = traced(["setarch", "-R", program], "frame-pointer", folder)
    low, given, nulls, thrown = under.stdout.split()
    if low == b"0":
        print("the heap lies high here: nothing is shown")
    equal((int(given) > 100, nulls, thrown), (True, b"0", b"1"), "refused", under.stderr)
    data = only_profile(folder, "refused")
    consistent(data, "refused")


def in_function(data, name):
    """{field: sum} of what was allocated in a function itself."""
    own = [context for context in heap(data) if context["frames"][0]["function"] == name]
    return {field: sum(context[field] for context in own)
            for field in ("allocations", "frees", "temporary")}


def test_handlers():
    """A counter that is not changed by one instruction loses what a handler adds in between: the sums
    of threads and of call paths, which consistent() compares, are then not the same."""
    for way, data, pairs in runs("handlers"):
        own = in_function(data, "handlers")
        equal((own["allocations"], own["frees"]), (int(pairs) + 2,) * 2, way, "pairs")
        if in_function(data, "on_timer")["allocations"] + data["lost"] < 2000:
            fail(way, "the handler hardly came:", in_function(data, "on_timer"), data["lost"])


def test_newest():
    """The last of each four is freed before another is allocated; it never lies where one lay that
    was freed so before."""
    for way, data, _ in runs("newest"):
        equal(in_function(data, "newest"), {"allocations": 400, "frees": 100, "temporary": 100}, way)


def test_lifetimes():
    """1,000 blocks lived 40 ms and more: none of them less than four ticks of 4.2 ms."""
    for way, data, _ in runs("lifetimes"):
        lived = [sum(context["lifetimes"][bucket] for context in heap(data)
                     if context["frames"][0]["function"] == "take_all") for bucket in range(16)]
        equal((sum(lived), sum(lived[:2])), (1000, 0), way, lived)


def test_others():
    """1,000 blocks that another thread made, long ago."""
    for way, data, _ in runs("others"):
        told = [(thread["frees"], thread["freed_for_others"]) for thread in data["threads"]
                if thread["freed_for_others"]]
        equal(told, [(1001, 1000)], way)


globals()["test_" + sys.argv[1]]()
finish()
