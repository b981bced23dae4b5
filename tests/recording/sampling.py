# SPDX-License-Identifier: MIT
"""sampling.py: recordings that keep one allocation in many bytes. What they estimate is as near to the
profile of the same run, which counts everything, as the errors say that stand beside it."""

import os

from recorded import HERE, only_recording, record
from harness import build, equal, fail, finish, profiles, report, scratch

SIGMAS = 5  # one run in a million is further off
PAIRS = 150000


def run(size):
    what = "one in %s:" % size
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder = scratch()
    under = record([program, os.path.join(folder, "counts"), "2", str(PAIRS)], folder, "--sample", size)
    equal(under.returncode, 0, what, "exit status", under.stderr)
    recorded, profiled = report(only_recording(folder, what)), report(profiles(folder)[0])
    told = recorded["recording"]
    equal((told["sampled"], told["closed"], told["foreign_frees"], recorded["lost"]),
          (True, True, 0, 0), what, "sampled, closed, foreign frees, lost")
    for name in ("total_bytes", "allocations", "live_bytes"):
        error = told["standard_errors"][name]
        if abs(recorded[name] - profiled[name]) > SIGMAS * error + profiled[name] / 1000:
            fail(what, name, recorded[name], "+-", error, "but it is", profiled[name])
    if not told["standard_errors"]["total_bytes"] < profiled["total_bytes"] / 10:
        fail(what, "an estimate that says little:", told["standard_errors"])
    kept = told["events"] / (profiled["allocations"] + profiled["frees"])
    if kept > 0.5:
        fail(what, "most events were kept:", kept)


for size in ("4K", "32K"):
    run(size)
finish()
