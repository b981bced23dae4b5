# SPDX-License-Identifier: MIT
"""unnoticed.py CASE: a program cannot tell that MemTrace is there: descriptors, environment,
children, output, signal and floating-point state are as without it."""

import sys

from harness import (PRELOAD, bare, build, clean_environment, equal, execute, fail, finish, only_profile,
                     preloadable, same_behaviour, scratch, traced)


def environment_case(program, name):
    """Only what `memtrace run` added is taken away again; the rest is in its old place."""
    alone = execute([program, name], clean_environment(KEPT="yes", MEMTRACE_CACHE=None))
    folder = scratch()
    under = traced([program, name], "run", folder, {
        "KEPT": "yes", "MEMTRACE_SUMMARY": None, "MEMTRACE_OUTPUT": None, "MEMTRACE_KEEP_SMALL": None,
        "MEMTRACE_RECORD_OUTPUT": None, "MEMTRACE_CACHE": None,
        "MEMTRACE_REGION_DIR": None}, cwd=folder)
    got = under.stdout.decode().splitlines()
    equal([line for line in got if line.startswith(("MEMTRACE", "LD_PRELOAD"))], [],
          "run: left in the environment")
    without_place = lambda lines: [line for line in lines if not line.startswith(("PWD=", "OLDPWD=", "_="))]
    equal(without_place(got), without_place(alone.stdout.decode().splitlines()), "run: environment")
    # another library that was preloaded stays
    folder = scratch()
    other = preloadable(build("plugin.c", "gcc", "-O2", "bare", shared=True,
                              flags=["-DPLUGIN_INNER=other", "-DSIZE=1"]))
    under = traced([program, name], "run", folder, {"LD_PRELOAD": other})
    equal({line for line in under.stdout.decode().splitlines() if line.startswith("LD_PRELOAD")},
          {"LD_PRELOAD=" + other}, "run: the user's own LD_PRELOAD")
    # what the user set by hand is not ours to remove
    under = traced([program, name], "preload", scratch())
    if b"LD_PRELOAD=" + PRELOAD.encode() not in under.stdout:
        fail("preload: the user's LD_PRELOAD is gone")


def main():
    name = sys.argv[1]
    for mode in ("preload", "run", "hooks", "frame-pointer"):
        what = "%s %s:" % (name, mode)
        program = build("unnoticed.c", "gcc", "-O2", mode)
        if name == "environment":
            if mode == "run":
                environment_case(program, name)
            continue
        # what a program that is followed has open is its own business
        followed = {"MEMTRACE_CHILDREN": "exec"} if name == "descriptors" else {}
        for settings in ({}, {"MEMTRACE_EVERY": "100ms", "MEMTRACE_LOG": "/dev/null"},
                         {"MEMTRACE_RECORD": "1", "MEMTRACE_REGION_DIR": scratch(where="/dev/shm")}):
            folder = scratch()
            alone = bare([program, name])
            equal(alone.returncode, 3, what, "bare exit status")
            if name == "programs":  # an oracle of its own: 6 of 10 ways name an environment
                equal((alone.stdout.count(b"OWN=yes\n"), alone.stdout.count(b"GIVEN=yes\n")), (4, 6), what)
            under = traced([program, name], mode, folder, {**settings, **followed})
            same_behaviour(alone, under, what + str(settings))
            if name == "output" and not settings:
                only_profile(folder, what)
                # with the summary: stdout as before, stderr in whole lines
                under = traced([program, name], mode, scratch(), {"MEMTRACE_SUMMARY": "1"})
                equal(under.stdout, alone.stdout, what, "stdout with a summary")
                lines = under.stderr.decode().splitlines()
                equal([line for line in lines if not line.startswith("memtrace: ")], [], what, "stderr")
                for word in ("peak", "leaked" if mode == "run" else "not freed", "allocations", "call paths", "profile",
                             "read it with"):
                    equal(sum(line.startswith("memtrace: " + word) for line in lines), 1, what, word)


main()
finish()
