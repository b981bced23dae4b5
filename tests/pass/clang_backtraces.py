#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The paths in profiles of programs with frame words are the stacks that gdb shows, at every level:
clang_backtraces.py SUBJECT CASE CLANG PLUGIN [LEVEL] (compared by
tests/programs/backtraces.py).
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

import backtraces  # noqa: E402
import clang_names  # noqa: E402
import harness  # noqa: E402

# Clang gives an optimised coroutine's call line 0 there; gdb takes the line before it.
MISLEADING = {("coroutines", "clang", "-O1")}
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")


def main():
    clang, plugin = sys.argv[3:5]
    del sys.argv[3:5]
    harness.COMPILERS["clang"] = (clang, clang_names.plus(clang))
    harness.MODES["pass"] = (["-fpass-plugin=" + plugin], True)
    backtraces.VARIANTS = [("clang", level, "pass") for level in LEVELS]
    backtraces.MISLEADING |= MISLEADING
    backtraces.main()


if __name__ == "__main__":
    main()
    harness.finish()
