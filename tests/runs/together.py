# SPDX-License-Identifier: MIT
"""The peak of all processes of a run is what they held together: of programs with one thread, too, which tell the
others' counters nothing."""

import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (MEMTRACE, build, clean_environment, equal, finish, report, scratch)  # noqa: E402

program = build(os.path.join(HERE, "together.c"), "gcc", "-O0")
most = 0
for seconds in (0.5, 4, 30):  # longer only where the machine was too busy to look
    folder = scratch()
    command = subprocess.Popen([MEMTRACE, "run", "--no-summary", "--keep-small", "-o", "run", "--", program],
                               env=clean_environment(), cwd=folder, stdin=subprocess.PIPE)
    time.sleep(seconds)
    command.stdin.close()
    equal(command.wait(), 0, "run")
    run = report(os.path.join(folder, "run"))["run"]
    most = max(point["live_bytes"] for point in run["timeline"])
    if most >= 3000000:
        break
equal(3000000 <= most < 3100000, True, "seen together", most)
equal(3000000 <= run["peak_bytes"] <= run["peak_bound_bytes"], True, "the peak of all", run["peak_bytes"])
finish()
