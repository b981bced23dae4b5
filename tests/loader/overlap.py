# SPDX-License-Identifier: MIT
"""overlap.py MODE: a library is opened to the place of another, and used, before the thread that
closed that one is back from dlclose: every block names the library that was there."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (PRELOAD, SUBJECTS, bare, build, equal, fail, finish, heap, only_profile,
                     preloadable, scratch, traced)

# The last one follows itself: the same file at the same place.
ORDER = [0, 1, 0, 1, 1, 0]


def plugin(letter, number):
    names = ["-D%s=%s_%s" % (role, letter, role.lower()) for role in ("RUN", "INNER", "BORN", "GONE")]
    return build(os.path.join(HERE, "overlap_plugin.c"), "gcc", "-O2", shared=True, flags=[
        "-I" + SUBJECTS, "-DROOM=%d" % (1000 + 512 * number), "-DSIZE=%d" % (70401 + 10 * number), *names])


def check(data, letter, number, library):
    opened, size = ORDER.count(number), 70401 + 10 * number
    inner = [context for context in heap(data) if context["frames"] and
             context["frames"][0]["function"] == letter + "_inner"]
    ways = {letter + "_run": ("call", 2, size), letter + "_born": (None, 1, size + 1),
            letter + "_gone": (None, 1, size + 2)}
    for way, (caller, times, bytes_each) in ways.items():
        found = [context for context in inner if context["frames"][1]["function"] == way]
        equal((sum(context["allocations"] for context in found),
               sum(context["total_bytes"] for context in found)),
              (opened * times, opened * times * bytes_each), "blocks of", way)
        for context in found:
            names = [frame["function"] for frame in context["frames"]]
            equal((names[2] if caller else caller, "main" in names or "close_in_between" in names),
                  (caller, True), "callers of", way, names)
            equal([os.path.realpath(frame["module"]) for frame in context["frames"][:2]],
                  [os.path.realpath(library)] * 2, "modules of", way)
    equal(sum(context["allocations"] for context in inner), 4 * opened, "blocks of library", letter)
    records = len([module for module in data["modules"] if module["path"] == library])
    equal(1 <= records <= opened, True, "library", letter, "has a record for each place where it was:", records)


def main(mode):
    program = build(os.path.join(HERE, "overlap.c"), "gcc", "-O2", flags=["-I" + SUBJECTS])
    shim = build(os.path.join(HERE, "overlap_shim.c"), "gcc", "-O2", shared=True)
    libraries, folder = [plugin("ab"[number], number) for number in range(2)], scratch()
    command = [program]
    for number in ORDER:
        command += [libraries[number], "ab"[number] + "_run"]
    equal(bare(command).returncode, 3, "bare exit status")
    under = traced(command, "with the shim", folder,
                   {"MEMTRACE_UNWIND": mode, "LD_PRELOAD": PRELOAD + " " + preloadable(shim)})
    equal((under.returncode, under.stderr), (3, b""), "exit status", under.stdout)
    if len(set(under.stdout.split())) != 1:
        fail("the libraries did not lie at the same place:", under.stdout.split())
    data = only_profile(folder, mode)
    equal(data["lost"], 0, "lost", data["lost_by_kind"])
    for number, library in enumerate(libraries):
        check(data, "ab"[number], number, library)


main(sys.argv[1])
finish()
