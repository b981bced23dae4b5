# SPDX-License-Identifier: MIT
"""toggles.py HOW: recording is switched off and on, by signal or by API. The recording and the profile
have what was allocated while it was on, and the frees of that, whenever they came."""

import os
import re
import sys

from recorded import HERE, both, record, whole
from harness import build, equal, finish, scratch


def main():
    how = sys.argv[1]
    program = build(os.path.join(HERE, "toggles.c"), "gcc", "-O2", "frame-pointer")
    folder = scratch()
    under = record([program, how], folder, "--toggle-signal", "USR1,USR2")
    equal(under.returncode, 0, "exit status", under.stderr)
    want = tuple(map(int, re.search(rb"allocations (\d+) frees (\d+) blocks (\d+)",
                                    under.stdout).groups()))
    data = both(folder, how)
    whole(data, how)
    equal((data["allocations"], data["frees"], data["live_blocks"]), want, how,
          "allocations, frees, blocks")


main()
finish()
