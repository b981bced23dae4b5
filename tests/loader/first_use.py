# SPDX-License-Identifier: MIT
"""first_use.py MODE: a thread that a constructor waits for may call anything for the first time."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import SUBJECTS, bare, build, equal, finish, scratch, traced


def main(mode):
    program = build(os.path.join(HERE, "first_use.c"), "gcc", "-O2",
                    flags=["-I" + SUBJECTS, "-rdynamic", "-fno-omit-frame-pointer", "-Wl,-z,now"])
    command = [program, build(os.path.join(HERE, "still.c"), "gcc", "-O2", shared=True)]
    expected = bare(command)
    equal((expected.returncode, expected.stdout), (3, b"done\n"), "bare", expected.stderr)
    under = traced(command, "preload", scratch(), {"MEMTRACE_UNWIND": mode})
    equal((under.returncode, under.stdout), (3, b"done\n"), "traced", under.stderr)


main(*sys.argv[1:])
finish()
