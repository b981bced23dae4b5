# SPDX-License-Identifier: MIT
"""missed.py CASE: frees that no interposer sees. When the place of such a block is used again, the block
is counted as freed, where it was allocated, and the free as one that was noticed late."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "query"))

from queried import ask
from recorded import only_recording, record
from harness import (MEMTRACE, bare, build, clean_environment, consistent, equal, execute, fail, finish,
                     only_profile, profiles, report, scratch, traced)

PLUGIN = "give_back.c"
NO_CACHE = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def check(data, missed, what):
    """By valgrind's count and by arithmetic nothing of the subject's is left."""
    own = [context for context in data["contexts"]
           if any(frame["function"] == "take" for frame in context["frames"])]
    equal(sum(context["allocations"] for context in own) >= missed, True, what, "blocks")
    for context in own:
        equal((context["live_blocks"], context["live_bytes"], context["frees"]),
              (0, 0, context["allocations"]), what, "left of", context["hash"])
    equal(data["lost_by_kind"]["frees"], missed, what, "frees noticed late")
    equal(data["lost"], missed, what, "lost", data["lost_by_kind"])
    equal(sum(thread["live_bytes"] for thread in data["threads"]), data["live_bytes"], what, "by threads")
    consistent(data, what)


def missed_by(output):
    return int(re.search(rb"missed (\d+)", output)[1])


def run(arguments, settings=None):
    for mode in ("preload", "frame-pointer"):
        what = "%s %s:" % (mode, arguments[0])
        program, folder = build("missed.c", mode=mode, optimize="-O1"), scratch()
        under = traced([program, *arguments], mode, folder, settings)
        equal(under.returncode, 3, what, "exit status", under.stdout, under.stderr)
        check(only_profile(folder, what), missed_by(under.stdout), what)


def case_internal():
    run(["internal"])


def case_deepbind():
    run(["deepbind", build(PLUGIN, shared=True)])


def case_sizes():
    run(["sizes"], NO_CACHE)


def case_recorded():
    """Also in the recording: what lay at one place was there one after the other."""
    for arguments, settings in ((["internal"], {}), (["sizes"], NO_CACHE)):
        what, folder = "recorded %s:" % arguments[0], scratch()
        under = record([build("missed.c", optimize="-O1"), *arguments], folder, "--precise", settings=settings)
        equal(under.returncode, 3, what, "exit status", under.stderr)
        missed = missed_by(under.stdout)
        check(report(profiles(folder)[0]), missed, what)
        recording = only_recording(folder, what)
        data = report(recording)
        equal((data["lost"], data["recording"]["foreign_frees"]), (missed, 0), what, "lost", data["lost_by_kind"])
        check(data, missed, what)
        last = {}
        for block in ask(recording, "SELECT id, address, size, born, freed FROM allocations ORDER BY id"):
            before = last.get(block["address"])
            if before and (before["freed"] is None or before["freed"] > block["born"]):
                fail(what, "two blocks in one place:", before, block)
                break
            last[block["address"]] = block


def case_check():
    """Leaks may be too high then: `memtrace check` says so."""
    folder = scratch()
    traced([build("missed.c"), "internal"], "preload", folder)
    result = execute([MEMTRACE, "check", profiles(folder)[0], "--max-leaked", "1M"], clean_environment())
    equal((result.returncode, b"16,000 blocks were freed without being seen" in result.stderr), (0, True),
          "check", result.stderr)
    result = execute([MEMTRACE, "report", profiles(folder)[0]], clean_environment())
    equal(b"(frees noticed late: 16,000)" in result.stdout, True, "report", result.stdout[:700])


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}
equal(bare([build("missed.c"), "internal"]).returncode, 3, "the subject")
CASES[sys.argv[1]]()
finish()
