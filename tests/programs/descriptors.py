# SPDX-License-Identifier: MIT
"""descriptors.py: at no moment the program sees a descriptor that it did not open: from its first constructor
to its exit, in threads and forked children, after exec, while it is recorded, has a companion, or is
another user; and after somebody attached."""

import os
import subprocess

from harness import (MEMTRACE, bare, build, clean_environment, equal, execute, finish, own_regions, report, scratch,
                     profiles, traced)

PERIODIC = {"MEMTRACE_EVERY": "100ms", "MEMTRACE_LOG": os.path.join(scratch(), "log")}


def attached(program, *verbs):
    """What it says after `memtrace attach`."""
    subject = subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=clean_environment(), cwd=scratch())
    said = b""
    while not said.endswith(b"ready\n") and subject.poll() is None:
        said += subject.stdout.readline()
    done = execute([MEMTRACE, *verbs, str(subject.pid)], clean_environment(MEMTRACE_REGION_DIR=own_regions()), scratch())
    equal(done.returncode, 0, verbs, done.stderr)
    rest, errors = subject.communicate(b"x")
    equal((subject.returncode, errors), (3, b""), verbs)
    return said + rest


def same(alone, under, what):
    got, expected = under.decode().splitlines(), alone.decode().splitlines()
    equal(len(got), len(expected), what, "lines")
    for line, bare_line in zip(got, expected):
        equal(line, bare_line, what)


def main():
    program = build("descriptors.c", "gcc", "-O1", "preload", libraries=["-pthread"])
    alone = bare([program])
    equal(alone.returncode, 3, alone.stdout)
    for mode, settings in (("preload", {}), ("preload", PERIODIC), ("run", {}), ("preload", {"MEMTRACE_RECORD": "1"})):
        folder = scratch()
        under = traced([program], mode, folder, settings)
        equal(under.returncode, 3, mode, settings, under.stderr)
        same(alone.stdout, under.stdout, (mode, settings))
        for path in profiles(folder) if not settings else ():
            equal(report(path)["lost"], 0, mode, settings, "lost")
    same(alone.stdout.replace(b"main:", b"ready\nmain:", 1),
         attached(program, "attach"), "attach")
    finish()


main()
