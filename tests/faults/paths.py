# SPDX-License-Identifier: MIT
"""paths.py CASE: no room for all call paths. What is shown then was taken: each path that is told is
the beginning of the true one, and the allocations whose path is not told whole are counted as lost.

A block's size tells its true path (paths.c)."""

import os
import shlex
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "query"))

from faults import small_tmpfs
from queried import ask
from recorded import only_recording
from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, finish, profiles, report,
                     scratch, traced)

SUBJECT = os.path.join(HERE, "paths.c")
LEVELS, BASE = 6, 10000
ALL = 2 * 6 * 2 * 4 ** LEVELS  # threads, rounds, two of each on average
OTHERS = 60  # allocations of the C library, of which this test knows no path


def subjects():
    """Prebuilt, and with whatever tells its stacks: hooks, the compiler's pass."""
    words = shlex.split(execute([MEMTRACE, "flags", "--cflags"]).stdout.decode())
    linked = shlex.split(execute([MEMTRACE, "flags", "--libs"]).stdout.decode())
    return [("preload", build(SUBJECT, "gcc", "-O1"), {}),
            ("preload", build(SUBJECT, "gcc", "-O1"), {"MEMTRACE_UNWIND": "verify"}),
            ("hooks", build(SUBJECT, "gcc", "-O1", "hooks"), {}),
            ("pass", build(SUBJECT, "gcc", "-O1", flags=words, libraries=linked), {})]


def true_path(size):
    return ["step_%d" % ((size - BASE) >> shift & 3) for shift in range(2 * LEVELS - 2, -1, -2)] + ["make"]


def below_work(names):
    """From the outside in, what `work` called; None: it is not on the path."""
    return names[names.index("work") + 1:] if "work" in names else None


def steps(context):
    """The subject's functions from the outside in, which inlining left."""
    return below_work([frame["function"] for frame in reversed(context["frames"])
                       if frame["function"] != "step"])


def is_beginning(names):
    """Whether the last function stands behind all levels, and not before."""
    return all((name == "make") == (level == LEVELS) for level, name in enumerate(names)) and \
        len(names) <= LEVELS + 1


def check_profile(data, what):
    """Returns how many of the subject's allocations have their whole path."""
    whole = 0
    for context in data["contexts"]:
        names = steps(context)
        if names is None:
            continue
        if not is_beginning(names):
            fail(what, "a path that was never taken:", names)
            return 0
        whole += context["allocations"] if names[-1:] == ["make"] else 0
    return whole


def run(mode, program, folder, settings, what):
    under = traced([program], mode, folder, settings)
    equal((under.returncode, under.stdout), (3, b"all done\n"), what, "status and output", under.stderr)
    found = profiles(folder)
    equal(len(found), 1, what, "profiles")
    return report(found[0]) if found else finish()


def case_limit():
    for limit in (60, 500, 3000):
        for mode, program, more in subjects():
            what = "%d contexts %s %s:" % (limit, mode, more)
            data = run(mode, program, scratch(), {"MEMTRACE_CONTEXTS": str(limit), **more}, what)
            cut = ALL - check_profile(data, what)
            lost = data["lost_by_kind"]["contexts"]
            equal(cut > 1000, True, what, "paths that are cut", cut)
            equal(cut <= lost <= cut + OTHERS, True, what, "each is counted", cut, lost)
            equal(data["lost"], lost, what, "nothing else is lost", data["lost_by_kind"])


def case_small_regions():
    """As in a container, whose /dev/shm has 64 MiB; here a few hundred KiB do."""
    told = 0
    for size in ("384k", "640k"):
        where = small_tmpfs(size)
        for mode, program, more in subjects():
            what = "regions of %s %s %s:" % (size, mode, more)
            data = run(mode, program, scratch(), {"MEMTRACE_REGION_DIR": where, **more}, what)
            lost = data["lost_by_kind"]
            whole = check_profile(data, what)
            equal(whole > 0, True, what, "whole paths", whole)
            equal(lost["contexts"] + lost["events"] >= ALL - whole, True, what, "each is counted", whole, lost)
            equal(sum(context["allocations"] for context in data["contexts"]) + lost["events"] >= ALL, True,
                  what, "all allocations", lost)
            told += lost["contexts"]
    equal(told > 1000, True, "paths that are cut", told)


def case_recorded():
    for mode, program, more in subjects():
        folder = scratch()
        what = "recorded %s %s:" % (mode, more)
        under = execute([MEMTRACE, "record", "--", program], cwd=folder, environment=clean_environment(
            MEMTRACE_CONTEXTS="500", MEMTRACE_SUMMARY="0",
            MEMTRACE_REGION_DIR=scratch(where="/dev/shm"), **more))
        equal(under.returncode, 3, what, "the program", under.stderr)
        recording = only_recording(folder, what)
        paths = {}
        for row in ask(recording, "SELECT context, function FROM frames WHERE function <> 'step' "
                                  "ORDER BY context, level DESC"):
            paths.setdefault(row["context"], []).append(row["function"])
        wrong = [(row, paths[row["context"]]) for row in ask(
            recording, "SELECT DISTINCT size, context FROM allocations WHERE size BETWEEN %d AND %d" %
            (BASE, BASE + 4 ** LEVELS - 1)) if not is_true(paths.get(row["context"], []), row["size"])]
        equal(wrong[:3], [], what, "paths that do not begin the true one", len(wrong))


def is_true(names, size):
    names = below_work(names)
    return names is None or names == true_path(size)[:len(names)]


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}
if __name__ == "__main__":
    CASES[sys.argv[1]]()
    finish()
