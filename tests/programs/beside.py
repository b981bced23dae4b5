# SPDX-License-Identifier: MIT
"""beside.py CASE: a program and the libraries that it brings, which stand in the way of what the runtime
calls, or in whose way it might stand: other clocks and environments, its own descriptors and filters,
other allocators. It runs as it does alone, and is counted."""

import os
import subprocess
import sys
import time

from harness import (PRELOAD, bare, build, clean_environment, equal, execute, fail, files, finish, preloadable,
                     profiles, report, same_behaviour, scratch, traced)


def library(*sources, flags=()):
    return preloadable(build(list(sources), "gcc", "-O1", shared=True, flags=flags))


def in_time(program, mode, what, settings):
    """As the program does alone; one that hangs is ended."""
    folder = scratch()
    try:
        under = traced(program, mode, folder, settings, timeout=20)
    except subprocess.TimeoutExpired:
        fail(what, "hangs")
        finish()
    return folder, under


def clock():
    """Clocks of others (libfaketime) are the program's: none of ours asks them."""
    program = build("beside.c", "gcc", "-O1")
    other = library("beside_clock.c")
    own = build(["beside.c", "beside_clock.c"], "gcc", "-O1", flags=["-rdynamic"])
    alone = execute([program, "clock"], clean_environment(LD_PRELOAD=other))
    equal(alone.stdout, b"another time: 1\n", "clock: alone")
    for what, command, mode, settings in (
            ("preloaded", program, "run", {"LD_PRELOAD": other}),
            ("in front of ours", program, "given", {"LD_PRELOAD": other + ":" + PRELOAD}),
            ("the program's own", own, "preload", {}),
            ("recorded", program, "run", {"LD_PRELOAD": other, "MEMTRACE_RECORD": "1"}),
            ("with a companion", program, "given", {"LD_PRELOAD": other + ":" + PRELOAD,
                                                    "MEMTRACE_EVERY": "50ms", "MEMTRACE_LOG": "/dev/null"})):
        before = time.time_ns()
        folder, under = in_time([command, "clock"], mode, "clock: " + what, settings)
        after = time.time_ns()
        same_behaviour(alone, under, "clock: " + what)
        found = profiles(folder) + files(folder, ".mtr")
        if not equal(len(found), 1, "clock:", what, "profiles"):
            continue
        process = report(found[0])["process"]
        if not before < process["start_realtime_ns"] < after or \
                not 100e6 < process["duration_ns"] < after - before:
            fail("clock:", what, process, "between", before, "and", after)


def shell():
    """system() and popen() do what POSIX says, and what they start is followed."""
    program = build("beside.c", "gcc", "-O1")
    alone = bare([program, "shell"])
    equal(alone.returncode, 0, "shell: alone")
    for mode in ("run", "preload"):
        folder, under = in_time([program, "shell"], mode, "shell", {})
        same_behaviour(alone, under, "shell: " + mode)
    followed = [path for path in profiles(folder) if os.path.basename(path).startswith("grep")]
    equal(len(followed), 3, "shell: what the shells started", profiles(folder))


def variables():
    """The environment stays the program's own while other threads start shells."""
    program = build("beside.c", "gcc", "-O1")
    _, under = in_time([program, "variables"], "run", "variables", {})
    equal((under.returncode, under.stdout, under.stderr), (0, b"lost 0, seen 0\n", b""), "variables")


def main():
    name = sys.argv[1]
    {"clock": clock, "shell": shell, "variables": variables}[name]()
    finish()


main()
