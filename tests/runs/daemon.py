# SPDX-License-Identifier: MIT
"""A forked child that outlives its parent, in whose profile its first record is: it stands in the run once, with all
that it did, and so in the sum of all processes."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import MEMTRACE, build, clean_environment, equal, execute, finish, scratch  # noqa: E402


def check(how, *options):
    folder = scratch()
    program = build(os.path.join(HERE, "daemon.c"), "gcc", "-O0")
    environment = clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm"))
    run = os.path.join(folder, "run")
    done = execute([MEMTRACE, "run", "--no-summary", *options, "-o", run, "--", "sh", "-c", '"$0" $1 2>&1; sleep 0.8', program, how], environment)
    equal((done.returncode, b"memtrace" in done.stderr), (0, False), how, options, "status and stderr", done.stderr)
    with open(os.path.join(run, "run.json"), encoding="utf-8") as file:
        processes = json.load(file)["processes"]
    rows = [one for one in processes if one["program"].endswith("daemon")]
    # The block that it was born with is an allocation of a child with a profile of its own.
    equal(sorted(one["allocations"] for one in rows), [1, 12], options, "rows", rows)
    equal({one["pid"] for one in rows if one["parent_pid"] in {other["pid"] for other in rows}} == set(), False, options, "a child")
    told = execute([MEMTRACE, "report", run, "--all-processes", "--json"], environment)
    data = json.loads(told.stdout)
    sizes = {}
    for context in data["contexts"]:
        if context["allocations"] and context["total_bytes"] % context["allocations"] == 0:
            size = context["total_bytes"] // context["allocations"]
            sizes[size] = sizes.get(size, 0) + context["allocations"]
    equal({size: sizes.get(size) for size in (101, 103, 10001)}, {101: 10, 103: 1, 10001: 2}, options, "in all")
    equal(data["allocations"], sum(one["allocations"] for one in processes), options, "the sum of all")


check("")
check("", "--keep-small")
check("killed")
finish()
