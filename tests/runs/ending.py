# SPDX-License-Identifier: MIT
"""A program that the command started ends while the run does: its profile is there, in the run's folder or beside it,
and nothing waits in shared memory for somebody to look. However long after the command's own process that is."""

import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import MEMTRACE, build, clean_environment, equal, finish, report, scratch  # noqa: E402


def check(microseconds):
    folder, regions = scratch(), scratch(where="/dev/shm")
    program = build(os.path.join(HERE, "ending.c"), "gcc", "-O0")
    with open(os.path.join(folder, "said"), "wb") as said:  # no pipe, whose end the other one keeps open
        result = subprocess.run([MEMTRACE, "run", "--no-summary", "--keep-small", "-o", "run", "--", program, str(microseconds)],
                                env=clean_environment(MEMTRACE_REGION_DIR=regions), cwd=folder, stdout=said, stderr=said, check=False)
    equal(result.returncode, 0, microseconds, "status")
    deadline = time.monotonic() + 20
    while os.listdir(regions) and time.monotonic() < deadline:
        time.sleep(0.01)
    equal(os.listdir(regions), [], microseconds, "regions left")
    found = set()
    for at, _, names in os.walk(folder):
        for name in names:
            if name not in ("said", "run.json") and name[0] != ".":
                found |= {context["total_bytes"] for context in report(os.path.join(at, name))["contexts"]}
    equal({10001, 20001} <= found, True, microseconds, "both programs' blocks", found)
    if os.path.exists(os.path.join(folder, "run", "run.json")):
        with open(os.path.join(folder, "run", "run.json"), encoding="utf-8") as file:
            processes = json.load(file)["processes"]
        equal(len({process["pid"] for process in processes}), len(processes), "each is told of once", processes)
        files = {process["file"] for process in processes}
        equal(files - set(os.listdir(os.path.join(folder, "run"))), set(), "files that are missing")


for each in range(0, 3000, 150):
    check(each)
finish()
