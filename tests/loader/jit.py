# SPDX-License-Identifier: MIT
"""jit.py CASE: code written at run time. Registered, its frames are stepped through in every way of
walking; not registered, the path ends there, the loss is counted and the program goes on."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (SUBJECTS, bare, build, equal, fail, finish, heap, only_profile, scratch,
                     traced)

CALLS = {"known": 3, "unknown": 3, "thread": 300}  # allocations that a line stands for
CALLERS = {"known": ["call", "allocate"], "unknown": [], "thread": ["call", "work"]}


def expected(output):
    """{(address, kind): [allocations, bytes]}: equal paths are one context, whatever their sizes."""
    sums = {}
    for line in output.splitlines():
        kind, size, address = line.split()[:3]
        if kind not in CALLS:
            continue
        entry = sums.setdefault((int(address, 16), kind), [0, 0])
        entry[0] += CALLS[kind]
        entry[1] += CALLS[kind] * int(size)
    return sums


def check(case, mode):
    what = "jit.c %s %s:" % (case, mode)
    program, folder = build(os.path.join(HERE, "jit.c"), "gcc", "-O2", flags=["-I" + SUBJECTS]), scratch()
    alone = bare([program, case])
    equal(alone.returncode, 3, what, "bare exit status", alone.stdout)
    under = traced([program, case], "preload", folder, {"MEMTRACE_UNWIND": mode})
    equal((under.returncode, under.stderr), (3, b""), what, "exit status and stderr")
    data = only_profile(folder, what)
    equal(b"WRONG" in alone.stdout + under.stdout, False, what, "it says", under.stdout)
    sums = expected(under.stdout.decode())
    equal(len(sums) >= 1, True, what, "something was allocated", under.stdout)
    for (address, kind), (allocations, size) in sums.items():
        contexts = [context for context in heap(data) if context["frames"]
                    and context["frames"][0]["offset"] == address - 1
                    and (len(context["frames"]) == 1) == (kind == "unknown")]
        equal((sum(context["allocations"] for context in contexts),
               sum(context["total_bytes"] for context in contexts)), (allocations, size), what, kind,
              hex(address))
        for context in contexts:
            names = [frame["function"] for frame in context["frames"][1:]]
            equal(names[:2], CALLERS[kind], what, kind, "callers of the written code", names)
    if data["lost"] < sum(kind == "unknown" for _, kind in sums):
        fail(what, "paths that end early are not counted:", data["lost"])


for mode in ("auto", "verify", "patch"):
    check(sys.argv[1], mode)
finish()
