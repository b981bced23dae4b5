# SPDX-License-Identifier: MIT
"""jit.py CASE: code written at run time. Registered, its frames are stepped through in every way of
walking; not registered, the path ends there, the loss is counted and the program goes on."""

import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (SUBJECTS, bare, build, equal, execute, fail, finish, have, heap, only_profile,
                     scratch, skip, traced)

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


def check_llvm():
    """What LLVM's JIT compilers write and register."""
    have("clang")
    lli = sorted(glob.glob("/usr/lib/llvm-*/bin/lli"))
    if not lli:
        skip("no lli")
    code = os.path.join(scratch(), "plain.bc")
    made = execute(["clang", "-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-emit-llvm", "-c",
                    os.path.join(HERE, "jit_plain.c"), "-o", code])
    equal(made.returncode, 0, "clang", made.stderr)
    for kind in ("mcjit", "orc"):
        what, folder = "lli %s:" % kind, scratch()
        under = traced([lli[0], "-jit-kind=" + kind, code], "preload", folder)
        equal((under.returncode, under.stderr), (3, b""), what, "exit status and stderr")
        data = only_profile(folder, what)
        found = [context for context in heap(data)
                 if context["total_bytes"] == 70001 * context["allocations"]]
        equal(sum(context["allocations"] for context in found), 20, what, "allocations")
        equal(data["lost"], 0, what, "lost")
        for context in found:
            names = [frame["function"] for frame in context["frames"]]
            equal((names[:3], "main" in names), ([""] * 3, True), what, "written code, then lli's", names)


if sys.argv[1] == "llvm":
    check_llvm()
else:
    for mode in ("auto", "verify", "patch"):
        check(sys.argv[1], mode)
finish()
