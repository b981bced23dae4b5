# SPDX-License-Identifier: MIT
"""tableless.py CASE: a library without .eh_frame. With a .debug_frame in its file its stacks are
whole; with none, a damaged one or another's they may end early, which is told, and nothing else
happens."""

import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (SUBJECTS, bare, build, equal, execute, fail, finish, have, heap, only_profile,
                     same_behaviour, scratch, traced)

TIMES, BLOCKS, SIZE, DEPTH = 3, 20, 50001, 60
PATH = ["called_back", "frame_z", "frame_a"] + ["frame_m"] * (DEPTH + 1) + ["frame_b", "call", "main"]
WITHOUT_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer",
                  "-ffunction-sections", "-Wl,--sort-section=name"]
DAMAGES = 25


def section(library, name):
    """(offset, size)"""
    table = execute(["readelf", "-SW", library]).stdout.decode()
    found = re.search(re.escape(name) + r"\s+\w+\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", table)
    return (int(found.group(1), 16), int(found.group(2), 16)) if found else (0, 0)


def starts(library):
    """Where the code of each entry starts, in the order of the section."""
    text = execute(["readelf", "--debug-dump=frames", library]).stdout.decode()
    part = text[text.index("Contents of the .debug_frame section"):]
    return [int(start, 16) for start in re.findall(r"FDE .*pc=([0-9a-f]+)", part)]


class Subject:
    def __init__(self):
        flags = ["-I" + SUBJECTS]
        self.program = build(os.path.join(HERE, "tableless.c"), "gcc", "-O2", flags=flags)
        self.library = build(os.path.join(HERE, "tableless_library.c"), "gcc", "-O2", shared=True,
                             flags=flags + WITHOUT_TABLES)
        if starts(self.library) == sorted(starts(self.library)):
            fail("the entries are sorted already")

    def run(self, mode, what, library, *more):
        folder, command = scratch(), [self.program, library, *more]
        equal(bare([self.program, self.library]).returncode, 3, what, "bare")
        under = traced(command, "preload", folder, {"MEMTRACE_UNWIND": mode})
        equal((under.returncode, under.stdout, under.stderr), (3, b"", b""), what, "as without us")
        data = only_profile(folder, what)
        found = [context for context in heap(data) if context["frames"] and
                 context["frames"][0]["function"] == "called_back"]
        equal((sum(context["allocations"] for context in found),
               sum(context["total_bytes"] for context in found)),
              (TIMES * BLOCKS, TIMES * BLOCKS * SIZE), what, "blocks")
        return data, [[frame["function"].split(".")[0] for frame in context["frames"]]
                      for context in found]


def check_whole(subject):
    for mode in ("verify", "patch"):
        data, paths = subject.run(mode, mode, subject.library)
        equal(data["lost"], 0, mode, "lost", data["lost_by_kind"])
        for path in paths:
            equal(path[:len(PATH)], PATH, mode, "frames")


def check_cut_off(data, paths, what):
    """Nothing is wrong, but stacks end within the library."""
    equal(data["lost_by_kind"]["frames"] > 0, True, what, "lost frames", data["lost_by_kind"])
    for path in paths:
        equal(path, PATH[:len(path)], what, "frames")
        equal("main" in path, False, what, "the whole path", path)


def check_stripped(subject):
    have("strip")
    library = os.path.join(scratch(), "stripped.so")
    subprocess.run(["strip", "-g", "-o", library, subject.library], check=True)
    data, paths = subject.run("verify", "stripped:", library)
    check_cut_off(data, paths, "stripped:")


def check_replaced(subject):
    """The file that is found is not the one that is loaded: the first time it is not used."""
    folder = scratch()
    library, other = os.path.join(folder, "library.so"), os.path.join(folder, "other")
    shutil.copy(subject.library, library)
    shutil.copy(build(os.path.join(HERE, "tableless_library.c"), "gcc", "-O1", shared=True,
                      flags=["-I" + SUBJECTS, *WITHOUT_TABLES]), other)
    data, paths = subject.run("verify", "replaced:", library, other)
    equal(data["lost_by_kind"]["frames"] > 0, True, "replaced:", "lost frames", data["lost_by_kind"])
    equal(any(path[:len(PATH)] == PATH for path in paths), True, "replaced:", "later paths are whole")
    for path in paths:
        wrong = [pair for pair in zip(path, PATH) if pair[0] not in ("", pair[1])]  # "": of no file
        equal(wrong, [], "replaced:", "frames", path)


def check_damaged(subject):
    """Whatever the section holds, the program goes on."""
    folder, dice = scratch(), random.Random(7)
    with open(subject.library, "rb") as file:
        whole = file.read()
    offset, size = section(subject.library, ".debug_frame")
    equal(size > 100, True, "size of .debug_frame")
    for turn in range(DAMAGES):
        damaged = bytearray(whole)
        for _ in range(1 + turn):
            damaged[offset + dice.randrange(size)] = dice.choice([0, 1, 0x7f, 0xff, dice.randrange(256)])
        library = os.path.join(folder, "damaged%d.so" % turn)
        with open(library, "wb") as file:
            file.write(damaged)
        subject.run(("verify", "patch")[turn % 2], "damage %d:" % turn, library)


def paths_of(program, case, what):
    """What tests/programs/subjects/stacks.c does in a case: (names, allocations) of each path."""
    folder = scratch()
    same_behaviour(bare([program, case]), traced([program, case], "preload", folder), what)
    data = only_profile(folder, what)
    equal(data["lost"], 0, what, "lost", data["lost_by_kind"])
    return sorted(([frame["function"].split(".")[0] for frame in context["frames"]], context["allocations"])
                  for context in heap(data))


def check_program(_):
    """A whole program, with tables and without: the same paths."""
    with_tables = build("stacks.c", "gcc", "-O2")
    without = build("stacks.c", "gcc", "-O2", flags=WITHOUT_TABLES)
    for case in ("recursion", "alloca", "signal", "threads", "fibers"):
        equal(paths_of(without, case, case + " without tables:"),
              paths_of(with_tables, case, case + " with tables:"), case, "paths")


def main(case):
    have("readelf")
    globals()["check_" + case](Subject())


main(sys.argv[1])
finish()
