# SPDX-License-Identifier: MIT
"""What the tests of gates share: profiles of programs, and running a command whose status is known."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (MEMTRACE, clean_environment, equal, execute, fail, finish, scratch)  # noqa: E402

CACHE = scratch()


def profile(program, folder, name, *arguments, recorded=False):
    """The path of a profile or recording of the program's run, and what it printed."""
    path = os.path.join(folder, name)
    result = execute([MEMTRACE, "record" if recorded else "run", "--output", path, "--", program,
                      *arguments],
                     clean_environment(MEMTRACE_SUMMARY="0",
                                       MEMTRACE_REGION_DIR=scratch(where="/dev/shm")))
    if result.returncode != 0:
        fail("memtrace", name, result.stderr.decode())
        finish()
    return path, result.stdout.decode()


def compiled(source, folder, name, *flags):
    """The program of a source that was written for this run alone: harness.build() would keep it."""
    program = os.path.join(folder, name)
    result = execute(["gcc", "-g", "-fno-builtin", "-w", *flags, source, "-o", program])
    if result.returncode != 0:
        fail("gcc", source, result.stderr.decode())
        finish()
    return program


def command(*arguments, status=0, cwd=None):
    """What `memtrace ARGUMENTS` prints; what it says of a failure is one line."""
    result = execute([MEMTRACE, *arguments], clean_environment(MEMTRACE_CACHE=CACHE), cwd=cwd)
    said = result.stderr.decode()
    equal(result.returncode, status, "memtrace", arguments, "status,", said)
    if status != 0 and len(said.splitlines()) > 1:
        fail("memtrace", arguments, "says more than a line:", said)
    return result.stdout.decode(), said
