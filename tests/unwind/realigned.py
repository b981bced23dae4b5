# SPDX-License-Identifier: MIT
"""realigned.py MODE: beyond a function that keeps its CFA in memory, that word alone tells one caller
from another: every block has the one that its size says. A guard that is to spare the word stands in a
newer frame."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (SUBJECTS, bare, build, equal, execute, fail, finish, have, heap, only_profile,
                     same_behaviour, scratch, traced)

SIZE, TIMES, DEPTH = 60001, 4 * 20 * 3, 60
CALLERS = {"first": SIZE, "second": SIZE + 1}


def main(mode):
    have("readelf")
    program = build(os.path.join(HERE, "realigned.c"), "gcc", "-O2", flags=["-I" + SUBJECTS])
    tables = execute(["readelf", "--debug-dump=frames", program]).stdout
    if not re.search(rb"def_cfa_expression \(DW_OP_breg6 \(rbp\): -\d+; DW_OP_deref\)", tables):
        fail("no function keeps its CFA in memory")
    folder = scratch()
    alone = bare([program])
    equal((alone.returncode, alone.stdout), (3, b""), "bare")
    same_behaviour(alone, traced([program], "preload", folder, {"MEMTRACE_UNWIND": mode}), mode)
    data = only_profile(folder, mode)
    equal(data["lost"], 0, "lost", data["lost_by_kind"])
    guards = traced([program, "guards"], "preload", scratch(), {"MEMTRACE_UNWIND": mode})
    equal(guards.returncode, int(mode == "patch"), mode, "guards in newer frames, at the first allocation")
    right = {caller: 0 for caller in CALLERS}
    for context in heap(data):
        names = [frame["function"] for frame in context["frames"]]
        if names[:2] != ["inner", "realigned"]:
            continue
        caller = names[2]
        equal(names[3:5 + DEPTH + 1], ["take_turns"] + ["deep"] * (DEPTH + 1) + ["main"], "callers of", caller)
        equal(context["total_bytes"], context["allocations"] * CALLERS.get(caller, 0), "blocks of", caller)
        right[caller] = right.get(caller, 0) + context["allocations"]
    equal(right, {caller: TIMES for caller in CALLERS}, "blocks of each caller")


main(sys.argv[1])
finish()
