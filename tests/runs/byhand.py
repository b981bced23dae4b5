# SPDX-License-Identifier: MIT
"""Preloaded by hand, with one name for all profiles: what the program starts by exec is of its run, and
nobody sees a variable that the user did not set."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (BUILD, MEMTRACE, build, clean_environment, equal, execute, fail, finish, report,  # noqa: E402
                     scratch)

LIBRARY = os.path.join(BUILD, "lib", "libmemtrace.so")
ENVIRONMENT = "/usr/bin/env"


def started(folder, script, **settings):
    return execute(["/bin/sh", "-c", script], dict(
        clean_environment(MEMTRACE_REGION_DIR=os.path.join(folder, "regions")),
        LD_PRELOAD=LIBRARY, MEMTRACE_SUMMARY="0", **settings), cwd=folder)


def check_profiles():
    folder, program = scratch(), build(os.path.join(HERE, "subject.c"))
    os.mkdir(os.path.join(folder, "regions"), 0o700)
    script = "%s 1001 1002; (%s 2001); sh -c '%s 3001; exit 0'; exec %s 4001" % ((program,) * 4)
    result = started(folder, script, MEMTRACE_OUTPUT="out.mtp")
    equal((result.returncode, result.stderr), (0, b""), "a run of several")
    equal(sorted(os.listdir(os.path.join(folder, "regions"))), [], "regions left")
    out = os.path.join(folder, "out.mtp")
    found = [report(os.path.join(out, name)) for name in sorted(os.listdir(out)) if name.endswith(".mtp")]
    mine = [data["total_bytes"] for data in found if os.path.basename(data["program"]).startswith("subject")]
    equal(sorted(mine), [2001, 2003, 3001, 4001], "profiles of its programs")
    equal(len(found) >= 6, True, "those of both shells, too", len(found))


def check_recordings():
    """None takes the place of another one's."""
    folder, program = scratch(), build(os.path.join(HERE, "subject.c"))
    os.mkdir(os.path.join(folder, "regions"), 0o700)
    result = started(folder, "%s 1001; (%s 2001); exec %s 4001" % ((program,) * 3), MEMTRACE_RECORD="1",
                     MEMTRACE_RECORD_OUTPUT="out.mtr")
    equal((result.returncode, result.stderr), (0, b""), "recordings")
    wanted = {1001, 2001, 4001}
    for _ in range(200):  # companions end after their programs
        paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("out")]
        totals = {report(path)["total_bytes"] for path in paths}
        if wanted <= totals and not os.listdir(os.path.join(folder, "regions")):
            break
        execute(["/bin/sleep", "0.05"])
    equal(wanted - totals, set(), "recordings that are missing", totals)
    again = started(folder, "exec %s 5001" % program, MEMTRACE_RECORD="1", MEMTRACE_RECORD_OUTPUT="out.mtr")
    equal((again.returncode, again.stderr), (0, b""), "once more")
    for _ in range(100):
        if report(os.path.join(folder, "out.mtr"))["total_bytes"] in (5001,) or any(
                report(os.path.join(folder, name))["total_bytes"] == 5001 for name in os.listdir(folder)
                if name.startswith("out")):
            break
        execute(["/bin/sleep", "0.05"])
    else:
        fail("the recording of another run is missing")


def check_environment():
    folder = scratch()
    os.mkdir(os.path.join(folder, "regions"), 0o700)
    result = started(folder, "sh -c %s" % ENVIRONMENT, MEMTRACE_OUTPUT="out.mtp")
    seen = {line.split("=")[0] for line in result.stdout.decode().splitlines()}
    equal({name for name in seen if name.startswith("MEMTRACE")} - {"MEMTRACE_SUMMARY", "MEMTRACE_OUTPUT",
                                                                  "MEMTRACE_REGION_DIR"}
          - set(clean_environment()), set(), "variables that nobody set")


check_profiles()
check_recordings()
check_environment()
finish()
