# SPDX-License-Identifier: MIT
"""A child that goes on when `memtrace record -o NAME` has ended, or is killed then: its recording and the
program's own are both there, and whatever else had a name that it would have got."""

import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (MEMTRACE, build, clean_environment, equal, execute, finish, report, scratch)  # noqa: E402

OWN, CHILD = {10001, 10003}, {20001, 20002}


def sizes(folder):
    """{file: the sizes of blocks in it} of all recordings, in folders, too."""
    return {os.path.join(at, name): {context["total_bytes"] for context in report(os.path.join(at, name))["contexts"]}
            for at, _, names in os.walk(folder) for name in names if name.endswith(".mtr")}


def children_of(program):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % pid) == program:
                found.append(int(pid))
        except OSError:
            pass
    return found


def check(milliseconds, kills):
    folder, regions = scratch(), scratch(where="/dev/shm")
    program = build(os.path.join(HERE, "outliving.c"), "gcc", "-O0")
    mine = os.path.join(folder, "outliving")  # of this run alone: so its child can be found
    os.link(program, mine) if os.stat(program).st_dev == os.stat(folder).st_dev else execute(["/bin/cp", program, mine])
    environment = clean_environment(MEMTRACE_REGION_DIR=regions)
    with open(os.path.join(folder, "said"), "wb") as said:  # no pipe, whose end the child keeps open
        result = subprocess.run([MEMTRACE, "record", "--no-summary", "--keep-small", "-o", "o.mtr", "--", mine,
                                 str(milliseconds)], env=environment, cwd=folder, stdout=said, stderr=said, check=False)
    equal(result.returncode, 0, "record")
    before = sizes(folder)
    equal(any(OWN <= found for found in before.values()), True, "at the end", before)
    if kills:
        for pid in children_of(mine):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (os.listdir(regions) or children_of(mine)) and time.monotonic() < deadline:
        execute([MEMTRACE, "list"], environment)
        time.sleep(0.05)
    equal(os.listdir(regions), [], "regions left")
    after = sizes(folder)
    equal(any(OWN <= found for found in after.values()), True, milliseconds, kills, "the program's own", after)
    if not kills:
        equal(any(CHILD <= found for found in after.values()), True, milliseconds, "its child's", after)


check(200, False)
check(5, False)
check(30000, True)
finish()
