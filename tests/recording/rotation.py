# SPDX-License-Identifier: MIT
"""rotation.py: a recording in parts. The first part stands for all of them: read as one they say what
the profile says. Each other part opens alone, with names and threads; together they have each event
once."""

import json
import os
import shutil

from recorded import HERE, own_counts, record, recordings, same_as_profile, whole
from harness import (MEMTRACE, build, consistent, equal, execute, fail, finish, profiles, report,
                     scratch)

THREADS = 2
PAIRS = 300000


def alone(path):
    """A part where its neighbours are not."""
    return report(shutil.copy(path, os.path.join(scratch(), "part.mtr")))


def files_in(path):
    """How many blocks of program files."""
    told = execute([MEMTRACE, "info", path])
    return [line.split()[1] for line in told.stdout.decode().splitlines() if line.startswith("files ")]


def named_without_the_program(program, counts):
    """The symbols go along in each part, so that one can be read where the program is not."""
    folder = scratch()
    gone = shutil.copy(program, os.path.join(folder, "gone"))
    under = record([gone, counts, str(THREADS), str(PAIRS)], folder, "--rotate", "100K")
    equal(under.returncode, 0, "exit status", under.stderr)
    os.unlink(gone)
    parts = recordings(folder)
    if len(parts) < 2:
        fail("too few parts:", len(parts), under.stderr)
    for path in parts:
        data = alone(path)
        names = {frame["function"] for context in data["contexts"] for frame in context["frames"]}
        if data["recording"]["events"] > 1000 and "churn" not in names:
            fail(os.path.basename(path), "has no names of its program:", sorted(names)[:20])
        equal((data["recording"]["closed"], data["warnings"]), (True, []), path, "closed, warnings")
    one = os.path.join(folder, "one.mtr")
    first = min(parts, key=lambda path: (len(path), path))
    equal(execute([MEMTRACE, "repack", "-o", one, first]).returncode, 0, "repack")
    equal(files_in(one), files_in(shutil.copy(first, os.path.join(scratch(), "part.mtr"))),
          "blocks of files, once each")


def main():
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder = scratch()
    counts = os.path.join(folder, "counts")
    under = record([program, counts, str(THREADS), str(PAIRS)], folder, "--rotate", "100K")
    equal(under.returncode, 0, "exit status", under.stderr)
    parts = [alone(path) for path in recordings(folder)]
    if len(parts) < 2:
        fail("too few parts:", len(parts), under.stderr)
    first = min(recordings(folder), key=lambda path: (len(path), path))
    together = report(first)
    whole(together, "all parts")
    equal(together["recording"]["parts"], len(parts), "parts read as one")
    equal(together["recording"]["events"], sum(data["recording"]["events"] for data in parts), "events")
    same_as_profile(together, report(profiles(folder)[0]), "all parts:")
    os.unlink(profiles(folder)[0])
    newest = execute([MEMTRACE, "report", "--json"], cwd=folder)
    equal(json.loads(newest.stdout)["recording"]["parts"], len(parts), "parts of the newest recording")
    equal(sorted(data["recording"]["part"] for data in parts), list(range(len(parts))), "numbers")
    workers = own_counts(counts)
    for data in parts:
        what = "part %d:" % data["recording"]["part"]
        equal((data["recording"]["closed"], data["warnings"], data["lost"]), (True, [], 0), what,
              "closed, warnings, lost")
        consistent(data, what)
        if data["recording"]["events"] > 1000 and not any(
                frame["function"] == "churn" for context in data["contexts"]
                for frame in context["frames"]):
            fail(what, "no names")
    for tid, (allocs, _, frees, _) in workers.items():
        of_thread = [thread for data in parts for thread in data["threads"] if thread["tid"] == tid]
        equal(sum(thread["allocations"] for thread in of_thread), allocs, "thread", tid, "allocations")
    frees = sum(data["frees"] + data["recording"]["foreign_frees"] for data in parts)
    done = sum(counts[2] for counts in workers.values())
    if not done <= frees <= done + 100:  # a few of the program's own
        fail("frees of all parts:", frees, "but", done, "were done")
    named_without_the_program(program, counts)


main()
finish()
