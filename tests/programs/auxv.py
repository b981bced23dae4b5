# SPDX-License-Identifier: MIT
"""auxv.py: behind the environment's NULL a program finds the auxiliary vector, and the environment is
the one it was started with, however many variables `memtrace run` had put there."""

import os

from harness import MEMTRACE, PRELOAD, build, execute, fail, finish, same_behaviour, scratch

# Odd and even numbers of variables.
OPTIONS = [["run"], ["run", "--children", "none"], ["run", "--children", "exec"],
           ["run", "--children", "none", "--top", "3"],
           ["run", "--children", "none", "--top", "3", "--stacks", "short"],
           ["record", "--children", "none"], ["record", "--children", "none", "--precise"]]


def settings(folder, **more):
    """A small environment: what differs can be read."""
    return {"PATH": "/usr/bin:/bin", "KEPT": "yes", "TMPDIR": folder, **more}


def subject(mode):
    library = build("auxv.c", "gcc", "-O1", "bare", flags=["-DAUXV_LIBRARY"], shared=True)
    return build("auxv.c", "gcc", "-O1", mode,
                 libraries=[library, "-Wl,-rpath," + os.path.dirname(library)])


def commands():
    program = subject("bare")
    for preload in (None, "libm.so.6"):  # with one of the user's the variable is only shortened
        for options in OPTIONS:
            folder = scratch()
            more = {"LD_PRELOAD": preload} if preload else {}
            alone = execute([program, "argument"], settings(folder, **more), cwd=folder)
            under = execute([MEMTRACE, *options, "--no-summary", "--", program, "argument"],
                            settings(folder, **more), cwd=folder)
            same_behaviour(alone, under, " ".join(options) + " with LD_PRELOAD %s:" % preload)


def by_hand():
    """An odd number of added variables, as when something in between took one away: who finds the
    environment by argv sees its first variable twice."""
    program, folder = subject("bare"), scratch()
    alone = execute([program, "argument"], settings(folder), cwd=folder)
    added = {"LD_PRELOAD": PRELOAD, "MEMTRACE_CHILDREN": "none", "MEMTRACE_SUMMARY": "0", "MEMTRACE_OUTPUT": folder + "/out.mtp"}
    for extra in ({}, {"MEMTRACE_TOP": "3"}):
        names = ",".join(["MEMTRACE_ADDED", *added, *extra])
        under = execute([program, "argument"],
                        {**settings(folder), **added, **extra, "MEMTRACE_ADDED": names}, cwd=folder)
        if extra:  # six: even
            same_behaviour(alone, under, "even:")
            continue
        lines = lambda done: [line for line in done.stdout.decode().splitlines()
                              if not line.startswith("by argv")]
        if lines(alone) != lines(under) or alone.returncode != under.returncode or under.stderr:
            fail("odd:", under.returncode, under.stdout, under.stderr)
        seen = [line for line in under.stdout.decode().splitlines() if line.startswith("by argv ")]
        own = [line for line in alone.stdout.decode().splitlines() if line.startswith("by argv ")]
        if seen != own[:1] + own:
            fail("odd, by argv:", seen, own)
        if b"by argv: auxv as the kernel made it" not in under.stdout:
            fail("odd, by argv: no auxiliary vector:", under.stdout)


def instrumented():
    for mode in ("hooks", "frame-pointer"):
        folder, program = scratch(), subject(mode)
        alone = execute([program, "argument"], settings(folder, MEMTRACE="off"), cwd=folder)
        under = execute([program, "argument"], settings(folder, MEMTRACE="on"), cwd=folder)
        clean = lambda text: text.replace(b"MEMTRACE=off", b"MEMTRACE=on")
        if clean(alone.stdout) != under.stdout or alone.returncode != under.returncode:
            fail(mode, "differs:", alone.stdout, under.stdout)


def followed():
    """A program that another one started, which put the variables back."""
    program = subject("bare")
    for command in ([program, "argument"], ["sh", "-c", program + " argument; exit $?"],
                    ["sh", "-c", "exec " + program + " argument"]):
        folder = scratch()
        alone = execute(command, settings(folder), cwd=folder)
        under = execute([MEMTRACE, "run", "--no-summary", "--", *command], settings(folder), cwd=folder)
        same_behaviour(alone, under, " ".join(command) + ":")


commands()
by_hand()
instrumented()
followed()
finish()
