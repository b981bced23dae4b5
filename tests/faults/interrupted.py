# SPDX-License-Identifier: MIT
"""interrupted.py CASE: signals and forks that come while the library is at work; see interrupted.c."""

import glob
import os
import sys

from faults import HERE, MODES, allocations_of
from harness import BUILD, build, equal, fail, finish, profiles, report, scratch, traced
import lightreader


def light_children(path, size):
    """How many blocks of this size each light child allocated that did."""
    profile = lightreader.Profile(path)
    found = [sum(allocations for _, _, held, allocations, _, _ in profile.paths(child).values()
                 if allocations and held == size * allocations) for child in profile.children()]
    return [count for count in found if count]


def interrupted(action):
    """What handlers do that interrupt the library; see interrupted.c."""
    for mode in MODES if action != "map" else MODES[:1]:
        what = "%s %s:" % (action, mode)
        program, folder = build(os.path.join(HERE, "interrupted.c"), "gcc", "-O1", mode), scratch()
        under = traced([program, action], mode, folder,
                       {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm")})
        if not equal(under.returncode, 3, what, "status", under.stdout, under.stderr):
            continue
        faults = int(under.stdout.split()[-1])
        equal((under.stdout, under.stderr), (b"faults %d\n" % faults, b""), what, "output")
        if faults < 8:
            fail(what, "hardly interrupted:", faults)
        found = [report(path) for path in profiles(folder)]
        children = [data for data in found if allocations_of(data, 80007)]
        light = [count for path in profiles(folder) for count in light_children(path, 80007)]
        equal(set(light) | {5}, {5}, what, "a light child's allocations after the handler's")
        equal(len(children) + len(light), faults if action in ("fork", "storm", "map") else 0, what, "children's profiles")
        for data in children:
            equal(allocations_of(data, 80007), 5, what, "a child's allocations after the handler's")
            held = sorted(context["live_blocks"] for context in data["mappings"])[-1:]
            if action == "map" and held != [20000] and (held != [0] or data["lost"] < 20000):
                fail(what, "a child inherits mappings:", held, "lost", data["lost"])
        yield what, faults, next(data for data in found if data not in children)


def case_nested():
    """The library is not entered twice, wherever the handler's stack lies: it counts a loss."""
    for what, faults, data in interrupted("nest"):
        equal(allocations_of(data, 80003), 0, what, "allocations by the handler")
        equal(data["lost"], 2 * faults, what, "lost: an allocation and a free a handler")


def case_resized():
    """A realloc in there is not counted; but its block is, to its end."""
    for what, faults, data in interrupted("resize"):
        equal(data["lost_by_kind"]["events"], 2 * faults, what, "lost: two calls a handler", data["lost_by_kind"])
        equal(data["lost"], 2 * faults, what, "nothing else is lost", data["lost_by_kind"])
        for size in (80011, 811):
            moved = [context for context in data["contexts"]
                     if context["allocations"] and context["total_bytes"] == size * context["allocations"]]
            equal(sum(context["live_blocks"] for context in moved), 0, what, "left of", size)
            equal(sum(context["allocations"] for context in moved) > faults, True, what, "blocks of", size)


def case_left():
    """A handler that does not come back leaves the thread counted."""
    for what, faults, data in interrupted("leave"):
        pages = allocations_of(data, 80005)
        equal(pages % 4 == 0 and pages > 100 and data["lost"] == 0, True, what, pages, data["lost"])


def case_forked_inside():
    for what, faults, data in interrupted("fork"):
        equal(allocations_of(data, 80003), 0, what, "allocations by children in the parent's profile")


def case_forked_anywhere():
    for what, faults, data in interrupted("storm"):
        equal(data["lost"], 0, what, "lost")


def case_forked_mapping():
    """A child gets the mappings whole, or counts their loss."""
    for what, faults, data in interrupted("map"):
        equal(data["lost"], 0, what, "lost by the parent")


def case_fast():
    """Small blocks, counted without a mark that the library is at work: every event counts once, be it
    the loop's, a handler's in the middle of it (which may be lost, and is told so) or a child's."""
    passes = ["-fplugin=" + path for path in glob.glob(os.path.join(BUILD, "lib", "memtrace", "gcc-*", "memtrace.so"))]
    for mode, flags in [("preload", [])] + [("frame-pointer", [flag]) for flag in passes]:
        program, folder = build(os.path.join(HERE, "interrupted_fast.c"), "gcc", "-O2", mode, flags), scratch()
        under = traced([program], mode, folder, {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm")})
        if not equal((under.returncode, under.stderr), (3, b""), mode, "status", under.stdout):
            continue
        pairs, signals = (int(word) for word in under.stdout.split()[1::2])
        found = [report(path) for path in profiles(folder)]
        data = next(data for data in found if not allocations_of(data, 807))
        handlers = allocations_of(data, 803)
        frees = sum(context["frees"] for context in data["contexts"] if context["total_bytes"] == 801 * context["allocations"])
        equal((allocations_of(data, 801), frees), (pairs, pairs), mode, "the loop's allocations and frees")
        equal(2 * (signals - handlers), data["lost"], mode, "handlers: counted or told to be lost", handlers, signals)
        equal([held for context in data["contexts"] if (held := context["live_blocks"]) < 0 or held > 1], [],
              mode, "nothing is left")
        children = [allocations_of(data, 807) for data in found if allocations_of(data, 807)]
        light = [count for path in profiles(folder) for count in light_children(path, 807)]
        equal((set(children + light), len(children + light)), ({5}, signals // 10), mode, "children")


if __name__ == "__main__":
    globals()["case_" + sys.argv[1]]()
    finish()
