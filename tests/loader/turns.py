# SPDX-License-Identifier: MIT
"""turns.py MODE: libraries that take turns at the same addresses, under a thread that has stood in
each at the same depth: every block names the library that was there."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import SUBJECTS, bare, build, equal, fail, finish, heap, only_profile, scratch, traced

ROUNDS = 4


def plugin(number, flags):
    return build("plugin.c", "gcc", "-O2", shared=True, flags=[
        "-DPLUGIN_INNER=plugin_%s_inner" % "abc"[number], "-DSIZE=%d" % (70401 + number), *flags])


def main(mode):
    flags = ["-fno-omit-frame-pointer"] if mode == "fp" else []
    program = build(os.path.join(HERE, "turns.c"), "gcc", "-O2", flags=["-I" + SUBJECTS, *flags])
    libraries, folder = [plugin(number, flags) for number in range(3)], scratch()
    equal(bare([program, *libraries]).returncode, 3, "bare exit status")
    under = traced([program, *libraries * ROUNDS], "preload", folder, {"MEMTRACE_UNWIND": mode})
    equal((under.returncode, under.stderr), (3, b""), "exit status", under.stdout)
    places = under.stdout.split()
    if len(set(places)) == len(places):
        fail("no library lay where another had been:", places)
    data = only_profile(folder, mode)
    for number, library in enumerate(libraries):
        found = [context for context in heap(data) if context["frames"] and
                 context["frames"][0]["function"] == "plugin_%s_inner" % "abc"[number]]
        equal((sum(context["allocations"] for context in found),
               sum(context["total_bytes"] for context in found)),
              (ROUNDS, ROUNDS * (70401 + number)), "blocks of library", number)
        for context in found:
            frames = context["frames"]
            equal([frame["function"] for frame in frames[1:4]], ["plugin_run", "call", "work"],
                  "callers in library", number)
            equal([os.path.realpath(frame["module"]) for frame in frames[:2]],
                  [os.path.realpath(library)] * 2, "modules")


main(sys.argv[1])
finish()
