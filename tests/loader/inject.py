# SPDX-License-Identifier: MIT
"""inject.py CASE: libraries whose calls preloading does not reach: unseen without MEMTRACE_INJECT,
counted exactly with it, and the program does the same in both."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (LIBRARY, MEMTRACE, SUBJECTS, bare, build, clean_environment, consistent, equal,
                     execute, fail, finish, heap, only_profile, same_behaviour, scratch, traced)

RUNS, VISITS = 2, 30  # as in host.c
# Behind the guest's first size: (frees of its runs, innermost functions).
BLOCKS = {1: "guest_run", 3: "guest_run", 5: "guest_run", 7: "guest_run", 9: "guest_run",
          11: "guest_run", 13: "guest_run", 15: "strdup", 17: "guest_run", 19: "guest_run",
          21: "start_thread", 23: "guest_run"}
LEAKED = {19}
WAYS_TO_CALL = {"lazy": ["-Wl,-z,lazy"], "now": ["-Wl,-z,now", "-Wl,-z,relro"],
                "no_plt": ["-fno-plt", "-Wl,-z,relro"]}


def guest(first, flags=(), libraries=()):
    return build(os.path.join(HERE, "guest.c"), "gcc", "-O2", shared=True,
                 flags=["-DFIRST=%d" % first, *flags], libraries=libraries)


def host(flags=()):
    return build(os.path.join(HERE, "host.c"), "gcc", "-O2", flags=["-I" + SUBJECTS, *flags])


def run(command, settings, what, log=b"", lost=0):
    """Under MemTrace as bare; its profile."""
    folder = scratch()
    alone = bare(command)
    equal(alone.returncode, 3, what, "bare exit status", alone.stdout, alone.stderr)
    under = traced(command, "preload", folder, settings)
    equal((under.returncode, under.stdout), (3, alone.stdout), what, "status and output")
    equal(under.stderr[:len(log)] if log else under.stderr, log, what, "stderr", under.stderr)
    data = only_profile(folder, what)
    if data["lost"] > lost:
        fail(what, "lost", data["lost"])
    consistent(data, what)
    return data


def blocks(data, size):
    found = [context for context in heap(data) if context["total_bytes"] == size * context["allocations"]]
    return found, (sum(context["allocations"] for context in found),
                   sum(context["frees"] for context in found))


def check_counted(data, first, what, frees=RUNS):
    """All but what the constructor did, which came too early."""
    equal(blocks(data, first)[1], (0, 0), what, "before it could be led to us")
    for more, function in BLOCKS.items():
        contexts, counts = blocks(data, first + more)
        equal(counts, (RUNS, 0 if more in LEAKED else frees), what, "+%d: allocations and frees" % more)
        for context in contexts:
            names = [frame["function"].lstrip("_") for frame in context["frames"]]
            equal(names[0], function, what, "+%d: who asked" % more, names)
            if more != 21:
                equal("guest_run" in names and "main" in names, True, what, "its callers", names)


def check_unseen(data, first, what, seen=()):
    for more in [0, *BLOCKS]:
        if more not in seen:
            equal(blocks(data, first + more)[1], (0, 0), what, "+%d is unseen" % more)


def case_deepbind():
    """Bound to libc's malloc in our own namespace. What libc does for it is seen anyway."""
    for number, (way, flags) in enumerate(WAYS_TO_CALL.items()):
        first = 90101 + 100 * number
        command = [host(), "deepbind:" + guest(first, flags)]
        # What libc made for it, it frees unseen: known if the place is used again.
        check_unseen(run(command, {}, way, lost=RUNS), first, way, seen=(15,))
        check_counted(run(command, {"MEMTRACE_INJECT": "1"}, way), first, way)


def case_namespace():
    """A second C library with a heap of its own."""
    for number, (way, flags) in enumerate(WAYS_TO_CALL.items()):
        first = 91101 + 100 * number
        command = [host(), "apart:" + guest(first, flags)]
        check_unseen(run(command, {}, way), first, way)
        check_counted(run(command, {"MEMTRACE_INJECT": "1"}, way), first, way)


def case_many():
    """Namespaces one after the other, more than there can be at one time; plain libraries between."""
    guests = [guest(92101 + 100 * i) for i in range(20)]
    command = [host(), *("%s:%s" % (("apart", "plain")[i % 2], path) for i, path in enumerate(guests))]
    data = run(command, {"MEMTRACE_INJECT": "1"}, "many")
    for i in range(0, 20, 2):
        check_counted(data, 92101 + 100 * i, "many %d" % i)


def case_allocator():
    """A library that brings another allocator, opened late: one that is bound to it alone."""
    bump = build(os.path.join(HERE, "bump.c"), "gcc", "-O2", shared=True)
    path = guest(95101, libraries=["-Wl,--no-as-needed", bump])
    command = [host(), "global:" + bump, "deepbind:" + path]
    check_unseen(run(command, {}, "allocator"), 95101, "allocator", seen=(15, 21))
    data = run(command, {"MEMTRACE_INJECT": "1"}, "allocator")
    for more in BLOCKS:
        equal(blocks(data, 95101 + more)[1][0], RUNS, "allocator", "+%d" % more)


def case_storm():
    """Threads that open and close libraries while words are rewritten: names may be wrong where one
    is loaded as another goes, but no block is missing. A constructor's block is seen if another
    thread was at it just then."""
    guests = [guest(94101 + 100 * number, flags) for number, flags in
              enumerate([*WAYS_TO_CALL.values(), []])]
    command = [host(), "storm", *("deepbind:" + path for path in guests)]
    data = run(command, {"MEMTRACE_INJECT": "1"}, "storm", lost=100)
    found = [context for context in heap(data) if context["total_bytes"] > 90000 * context["allocations"]]
    allocations = sum(context["allocations"] for context in found)
    visits = len(guests) * VISITS
    least = visits * RUNS * len(BLOCKS)
    equal(least <= allocations <= least + visits, True, "storm: allocations", allocations, least)
    equal(sum(context["live_blocks"] for context in found), visits * RUNS * len(LEAKED), "storm: live")


def case_run_path():
    """The loader looks for a name where the caller's run path says, with us as without."""
    path = guest(96101)
    program = host(["-Wl,--enable-new-dtags", "-Wl,-rpath," + os.path.dirname(path)])
    for settings in ({}, {"MEMTRACE_INJECT": "1"}):
        data = run([program, "deepbind:guest.so"], settings, "run path %s" % settings)
        check_unseen(data, 96101, "run path", seen=(15,))


def case_option():
    """memtrace run --inject."""
    first, folder = 97101, scratch()
    out = os.path.join(folder, "out.mtp")
    under = execute([MEMTRACE, "run", "--inject", "--no-summary", "-o", out, "--", host(),
                     "apart:" + guest(first)], clean_environment())
    equal((under.returncode, under.stdout), (3, b"done\n"), "--inject", under.stderr)
    check_counted(only_profile(folder, "--inject"), first, "--inject")


def case_program():
    """An allocator inside the program is left alone, and one line says so."""
    program = host(["-include", os.path.join(HERE, "bump.c"), "-rdynamic"])
    command = [program, "plain:" + guest(99101, WAYS_TO_CALL["now"]), "apart:" + guest(98101)]
    data = run(command, {"MEMTRACE_INJECT": "1"}, "in the program",
               b"memtrace: host has a malloc of its own: what it gives out is not counted; try "
               b"`memtrace run --alloc auto`, or link the allocator as a shared library\nmemtrace: inject: ")
    check_unseen(data, 99101, "in the program")
    check_counted(data, 98101, "in the program")


globals()["case_" + sys.argv[1]]()
finish()
