#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memtrace/expect.h: a program that checks its expectations by its own arithmetic, in C and C++, by
both compilers, linked with the runtime, run under it, recorded, and without it."""

import os
import re
import shutil
import subprocess
import sys

from gates import HERE
from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, files, finish, report,
                     scratch, traced)

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))
from recorded import by_thread, costs  # noqa: E402

FLAGS = ["-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]


def subject(name, compiler, optimize, mode, *more):
    return build([os.path.join(HERE, name)], compiler, optimize, mode, flags=FLAGS + list(more))


def right(result, what):
    output = result.stdout.decode()
    equal(result.returncode, 0, what, "status", result.stderr.decode())
    if "WRONG" in output:
        fail(what, output)
    return [int(number) for number in re.search(r"failures (\d+), not measured (\d+)", output).groups()]


def check_message(result, what):
    """The last failure goes to stderr, with a path that memtrace symbolize names."""
    lines = result.stderr.decode()
    if not re.search(r"expect\.c:\d+: error: MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST: 2 allocations of 33 bytes, "
                     r"more than 1; beyond that first at\n    /.+\+0x", lines):
        fail(what, "message:", lines)
    named = subprocess.run([MEMTRACE, "symbolize"], input=result.stderr, capture_output=True).stdout.decode()
    path = named[named.index("beyond that first at"):]
    if not re.search(r"take\S*( long\))? at .*expect\.c:\d+.*\n(.*\n)*.*main at .*expect\.c:\d+", path):
        fail(what, "named:", named)


def check_counting():
    for name, compiler, optimize, mode in (("expect.c", "gcc", "-O0", "run"),
                                           ("expect.cpp", "gcc", "-O2", "frame-pointer"),
                                           ("expect.c", "clang", "-O2", "preload"),
                                           ("expect.cpp", "clang", "-O0", "hooks")):
        if shutil.which(compiler) is None:
            continue
        what = "%s %s %s" % (name, compiler, mode)
        result = traced([subject(name, compiler, optimize, mode)], mode, scratch())
        failures, _ = right(result, what)
        if failures < 40:
            fail(what, "only", failures, "failures: nothing was measured")
        check_message(result, what)


def check_recorded():
    """Watched threads are recorded as others are."""
    folder = scratch()
    result = execute([MEMTRACE, "record", "--profile", "--", subject("expect.c", "gcc", "-O0", "run")],
                     clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_KEEP_SMALL="1",
                                       MEMTRACE_OUTPUT=folder + "/a.mtp",
                                       MEMTRACE_RECORD_OUTPUT=folder + "/a.mtr",
                                       MEMTRACE_REGION_DIR=scratch(where="/dev/shm")))
    right(result, "recorded")
    recorded, profiled = (next(data for data in map(report, files(folder, ending))
                               if not data["process"]["forked"]) for ending in (".mtr", ".mtp"))
    equal(costs(recorded, False), costs(profiled, False), "recorded call paths")
    equal(by_thread(recorded), by_thread(profiled), "recorded threads")


def check_without():
    """Without the runtime nothing is judged; that is said once, or is a failure if it must not be."""
    result = execute([subject("expect.c", "gcc", "-O0", "bare"), "none"])
    failures, missed = right(result, "without the runtime")
    said = result.stderr.decode().splitlines()
    if failures != 0 or missed < 40 or len(said) != 1 or "not measured" not in said[0]:
        fail("without the runtime:", failures, missed, said)
    program = subject("expect.c", "gcc", "-O0", "bare", "-DMEMTRACE_EXPECT_REQUIRED=1")
    result = execute([program, "none"])
    failures = int(re.search(rb"failures (\d+)", result.stdout).group(1))
    equal(failures, missed, "MEMTRACE_EXPECT_REQUIRED: every block")


def main():
    check_counting()
    check_recorded()
    check_without()
    finish()


main()
