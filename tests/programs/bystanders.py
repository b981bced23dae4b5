# SPDX-License-Identifier: MIT
"""bystanders.py CASE: a program and the libraries that it brings, which stand in the way of what the runtime
calls, or in whose way it might stand: other clocks and environments, its own descriptors and filters,
other allocators. It runs as it does alone, and is counted."""

import os
import subprocess
import sys
import time

from harness import (PRELOAD, bare, build, clean_environment, equal, execute, fail, files, finish, preloadable,
                     profiles, report, same_behaviour, scratch, skip, traced)


def library(*sources, flags=()):
    return preloadable(build(list(sources), "gcc", "-O1", shared=True, flags=flags))


def in_time(program, mode, what, settings):
    """As the program does alone; one that hangs is ended."""
    folder = scratch()
    try:
        under = traced(program, mode, folder, settings, timeout=100)
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
    """The environment stays the program's own while other threads start shells; and what cannot be
    read is for the kernel to refuse."""
    program = build("beside_words.c", "gcc", "-O1")
    alone = bare([program])
    equal(alone.stdout.count(b"Bad address"), 42, "variables: alone", alone.stdout)
    for mode in ("run", "preload"):
        same_behaviour(alone, in_time([program], mode, "variables", {})[1], "variables: words, " + mode)
    program = build("beside.c", "gcc", "-O1")
    _, under = in_time([program, "variables"], "run", "variables", {})
    equal((under.returncode, under.stdout, under.stderr), (0, b"lost 0, seen 0\n", b""), "variables")


def counted():
    """No call of the allocator behind ours is ours: nor a byte of what it has."""
    count = library("beside_count.c")
    program = build("beside.c", "gcc", "-O1")
    alone = execute([program, "allocations"], clean_environment(LD_PRELOAD=count))
    equal(alone.returncode, 0, "counted: alone", alone.stderr)
    for settings in ({}, {"MEMTRACE_SAMPLE": "64K"}, {"MEMTRACE_RECORD": "1"}):
        _, under = in_time([program, "allocations"], "run", "counted", {"LD_PRELOAD": count, **settings})
        same_behaviour(alone, under, "counted: %s" % settings)


def own():
    """A program with an allocator of its own finds the break where it left it."""
    program = build("beside_own.c", "gcc", "-O1")
    _, under = in_time([program], "run", "own", {})
    equal((under.returncode, under.stdout), (0, b"ok\n"), "own")


def resolver():
    """An ifunc's resolver may allocate before we are there."""
    within = build("beside_resolver.c", "gcc", "-O1", flags=["-DWITH_MAIN"])
    for what, program, compile_flags in (
            ("in the program", within, None), ("lazily", None, ["-Wl,-z,lazy"]), ("at once", None, ["-Wl,-z,now"])):
        if program is None:
            other = build(["beside_resolver.c"], "gcc", "-O1", shared=True, flags=compile_flags)
            program = build("beside_resolved.c", "gcc", "-O1", flags=compile_flags,
                            libraries=[other, "-Wl,-rpath," + os.path.dirname(other)])
        for mode in ("preload", "run"):
            folder, under = in_time([program], mode, "resolver " + what, {})
            equal((under.returncode, under.stdout, under.stderr), (0, b"42\n", b""), "resolver", what, mode)
            equal(len(profiles(folder)), 1, "resolver", what, mode, "profiles")


def checked():
    """glibc's own heap checking (libc_malloc_debug) is behind ours, in the versions that programs have."""
    program = build("beside.c", "gcc", "-O1")
    settings = {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"}
    alone = execute([program, "overwrite"], clean_environment(**settings))
    if alone.returncode != -6:
        skip("no libc_malloc_debug.so.0")
    _, under = in_time([program, "overwrite"], "run", "checked", settings)
    equal((under.returncode, under.stdout), (-6, alone.stdout), "checked")
    equal(under.stderr.splitlines()[:1], alone.stderr.splitlines()[:1], "checked: stderr")


def filtered():
    """A program that is started under a filter of the one before is not killed for what we call."""
    program = build("beside_filter.c", "gcc", "-O1")
    for how in ("prctl", "syscall", "spawn"):
        for otherwise in ("kill", "refuse"):
            what = "filtered: %s %s" % (otherwise, how)
            alone = bare([program, otherwise, how])
            if alone.returncode == 98 or alone.returncode < 0:
                skip("such a filter ends the program by itself here")
            equal((alone.returncode, alone.stdout), (7, b"started\n"), what, "alone")
            for mode in ("preload", "run"):
                _, under = in_time([program, otherwise, how], mode, what, {"MEMTRACE_LOG_LEVEL": "none"})
                same_behaviour(alone, under, what + " " + mode)


def stderr():
    """What the program opens as descriptor 2, once it has closed its standard error, is its own file."""
    program = build("beside_stderr.c", "gcc", "-O1")
    for settings in ({"MEMTRACE_SUMMARY": "1"}, {"MEMTRACE_SUMMARY": "1", "MEMTRACE_OUTPUT": "/dev/full/x.mtp"},
                     {"MEMTRACE_SUMMARY": "1", "MEMTRACE_EVERY": "10ms"}):
        file = os.path.join(scratch(), "data")
        folder, under = in_time([program, file], "preload", "stderr", settings)
        equal(under.returncode, 5, "stderr", settings)
        with open(file, "rb") as written:
            equal(written.read(), b"data\n", "stderr", settings, "the program's own file")


def main():
    name = sys.argv[1]
    {"checked": checked, "clock": clock, "counted": counted, "filtered": filtered, "own": own, "resolver": resolver, "shell": shell, "stderr": stderr, "variables": variables}[name]()
    finish()


main()
