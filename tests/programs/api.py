# SPDX-License-Identifier: MIT
"""api.py CASE: the functions of memtrace.h, from C and from C++, in programs that carry the runtime,
under preload, and in one that runs without it."""

import os
import sys

from harness import (BUILD, MEMTRACE, bare, build, equal, execute, clean_environment, fail, finish,
                     heap, only_profile, scratch, traced)


def run_case(name, mode, source):
    program, folder = build(source, "gcc" if source.endswith("c") else "clang", "-O1", mode), scratch()
    what = "%s %s %s:" % (source, name, mode)
    under = traced([program, name], mode, folder)
    equal(under.stdout, b"done\n", what, "stdout")
    equal(under.returncode, 3, what, "exit status")
    return only_profile(folder, what), under.stderr.decode(), what


def sizes(data):
    return {context["total_bytes"]: context for context in heap(data)}


def check_start_stop(data, stderr, what):
    found = sizes(data)
    equal(found[90001]["frees"], 1, what, "a block from before the stop is freed")
    equal(90003 in found, False, what, "a block of the pause is counted")
    equal(found[90005]["live_bytes"], 90005, what, "counting goes on")


def check_threads(data, stderr, what):
    names = [thread["name"] for thread in data["threads"]]
    equal(sum(name.startswith("the worker with a name") for name in names), 1, what, "names", names)


def check_pools(data, stderr, what):
    """Each pool has contexts of its own, outside the heap."""
    for pool in ("first pool", "second pool"):
        found = [context for context in data["pools"] if context["pool"] == pool]
        count = sum(context["allocations"] for context in found)
        equal((count, sum(context["frees"] for context in found)), (12, 2), what, pool, "events")
        equal(sum(context["total_bytes"] for context in found), 80 + 90031 + 90033, what, pool, "bytes")
    for size in (90031, 90033):
        if any(context["total_bytes"] == size for context in heap(data)):
            fail(what, "a custom allocation is counted as heap")


def check_heap(data, stderr, what):
    found = {context["total_bytes"]: context for context in heap(data)}
    equal([(found[size]["allocations"], found[size]["frees"]) for size in (3500, 2001, 2003)],
          [(500, 100), (1, 1), (1, 0)], what, "blocks of the heap")
    equal([(context["pool"], context["frees"]) for context in data["pools"]], [("inside", 1)], what, "the pool's")
    equal(data["lost"], 0, what, "lost")


def check_lookup(data, stderr, what):
    equal("90041" in stderr or "90,041" in stderr, True, what, "print_trace says the size", stderr)
    equal("+0x" in stderr or "take" in stderr, True, what, "print_trace shows a path", stderr)
    equal(stderr.count("not a live block"), 1, what, "print_trace of the stack", stderr)


POINT, BEGIN, END, SNAPSHOT, ON, OFF = range(1, 7)  # enum memtrace_mark
IN_C = [(POINT, "a mark"), (BEGIN, "outer"), (BEGIN, "inner"), (END, ""), (OFF, ""), (POINT, "while off"),
        (ON, ""), (END, "")]
AT_LAST = [(SNAPSHOT, ""), (POINT, ""), (POINT, "x" * 4096)]


def record(source, name):
    """The case under `memtrace record`: the words of each line of list_events."""
    folder = scratch()
    recording = os.path.join(folder, "out.mtr")
    under = execute([MEMTRACE, "record", "--no-summary", "-o", recording, "--",
                     build(source, "gcc", "-O1", "preload"), name],
                    clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm"),
                                      MEMTRACE_LOG="/dev/null"))
    equal((under.stdout, under.returncode), (b"done\n", 3), source, under.stderr)
    listed = execute([os.path.join(BUILD, "tests", "recording", "list_events"), recording])
    return [line.split(" ", 3) for line in listed.stdout.decode().splitlines()]


def check_sample():
    """Exact and sampled recording take turns: 3 MB are none or, rarely, one of a sample of 1 GB."""
    lines = record("api.c", "sample")
    sizes = [line[3].split()[0] for line in lines if line[0] == "alloc"]
    equal([line[2] for line in lines if line[0] == "mark"], ["7", "7"], "enum memtrace_mark")
    equal((sizes.count("3001"), sizes.count("3005")), (1000, 1000), "exact")
    if sizes.count("3003") > 5:
        fail("sampled:", sizes.count("3003"))


def check_marks():
    """Each mark stands in the recording in its place among the events; a profile has none."""
    for source, marks in (("api.c", IN_C + AT_LAST),
                          ("api.cpp", IN_C + [(BEGIN, "object"), (END, "")] + AT_LAST)):
        lines = record(source, "marks")
        equal([(int(line[2]), line[3]) for line in lines if line[0] == "mark"], marks, source)
        taken = [line[0] for line in lines if line[0] == "mark" or line[3:4] and line[3][:4] == "9006"]
        equal(taken[:6], ["mark"] * 4 + ["alloc", "mark"], source, "the block's place")
        run_case("marks", "preload", source)


def main():
    name = sys.argv[1]
    if name in ("marks", "sample"):
        return {"marks": check_marks, "sample": check_sample}[name]()
    if name in ("c", "cxx"):
        source = "api." + {"c": "c", "cxx": "cpp"}[name]
        for case in ("start_stop", "filter", "threads", "pools", "heap", "lookup", "marks"):
            run_case(case, "hooks", source)
        return
    if name == "without":
        for source in ("api.c", "api.cpp"):
            for compiler in ("gcc", "clang"):
                alone = bare([build(source, compiler, "-O0"), name])
                equal((alone.stdout, alone.returncode), (b"done\n", 3), source, "without the library")
        return
    if name == "forked":  # children of all sorts: some are given profiles of their own
        for mode in ("preload", "frame-pointer", "hooks"):
            folder = scratch()
            under = traced([build("api.c", "gcc", "-O1", mode), name], mode, folder)
            equal((under.stdout, under.returncode), (b"done\n", 3), mode, "in children", under.stderr)
            equal(under.stderr.count(b"lies in a block of 90,051 bytes"), 1, mode, "print_trace in a child", under.stderr)
        return
    for mode in ("preload", "frame-pointer"):
        result = run_case(name, mode, "api.c")
        {"start_stop": check_start_stop, "threads": check_threads, "pools": check_pools,
         "heap": check_heap, "lookup": check_lookup, "filter": lambda *_: None}[name](*result)


main()
finish()
