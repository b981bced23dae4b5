#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The paths in profiles of programs with frame words are the stacks that gdb shows, at every level:
clang_backtraces.py SUBJECT CASE CLANG PLUGIN (tests/programs/backtraces.py does the comparison).
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

import backtraces  # noqa: E402
import harness  # noqa: E402

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")


def main():
    clang, plugin = sys.argv[3:5]
    del sys.argv[3:]
    folder, name = os.path.split(clang)
    harness.COMPILERS["clang"] = (clang, os.path.join(folder, name.replace("clang", "clang++")))
    harness.MODES["pass"] = (["-fpass-plugin=" + plugin], True)
    backtraces.VARIANTS = [("clang", level, "pass") for level in LEVELS]
    backtraces.main()


if __name__ == "__main__":
    main()
    harness.finish()
