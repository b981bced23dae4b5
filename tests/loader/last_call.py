# SPDX-License-Identifier: MIT
"""last_call.py MODE: dlsym() and dlvsym() called last in a function whose return address may be patched know their
caller; backtrace() counts the program's own frames alone."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import SUBJECTS, bare, build, equal, finish, scratch, traced

SOURCE = os.path.join(HERE, "last_call.c")


def main(mode):
    library = build(SOURCE, "gcc", "-O2", shared=True, flags=["-DLIBRARY", "-I" + SUBJECTS, "-Wl,--version-script=" + os.path.join(HERE, "last_call.map")])
    program = build(SOURCE, "gcc", "-O2", flags=["-I" + SUBJECTS])
    equal(bare([program, library]).returncode, 3, "bare exit status")
    under = traced([program, library], "preload", scratch(), {"MEMTRACE_UNWIND": mode})
    equal((under.returncode, under.stderr), (3, b""), "exit status", under.stdout)


main(sys.argv[1])
finish()
