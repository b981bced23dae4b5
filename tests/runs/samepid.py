# SPDX-License-Identifier: MIT
"""Processes of a run with the same program and PID, in several namespaces or one after the other by exec: none takes
the place of another's file, and the run tells of each once."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (BUILD, MEMTRACE, build, clean_environment, equal, execute, finish, report, scratch)  # noqa: E402

LIBRARY = os.path.join(BUILD, "lib", "libmemtrace.so")
FIRST, COUNT = 1000000, 5


def kept(folder, ending):
    """{file: the sizes of large blocks that it tells of}"""
    return {name: sorted({context["total_bytes"] // context["allocations"] for context in
                          report(os.path.join(folder, name))["contexts"]
                          if context["total_bytes"] >= FIRST * max(1, context["allocations"])})
            for name in os.listdir(folder) if name.endswith(ending) and name.startswith(("again", "subject"))}


def check_images():
    """NAME.2.mtr would be the second part of the recording NAME.mtr."""
    folder, times = scratch(), 3
    program = build(os.path.join(HERE, "again.c"))
    result = execute([MEMTRACE, "record", "--no-summary", "--keep-small", "-o", "run", "--", program, str(times)],
                     clean_environment(), cwd=folder)
    equal((result.returncode, result.stderr), (0, b""), "record")
    run = os.path.join(folder, "run")
    recordings = kept(run, ".mtr")
    processes = report(run)["run"]["processes"]
    equal([process["image"] for process in processes], list(range(1, times + 2)), "images")
    equal([recordings.get(process["file"]) for process in processes], [[FIRST + times - i] for i in range(times + 1)],
          "the recording of each image", recordings)
    equal([name for name in recordings if re.search(r"\.\d+\.\d+\.mtr$", name)], [], "names of parts")


def script(program):
    """Some one after the other, some at the same time. (unshare is given the program by exec.)"""
    alone = "unshare --pid --fork " + program
    return "%s %d; %s %d; for size in %s; do %s $size & done; wait" % (
        alone, FIRST, alone, FIRST + 1, " ".join(str(FIRST + i) for i in range(2, COUNT)), alone)


def check_namespaces():
    if subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("namespaces of PIDs cannot be had here: not looked at")
        return
    program = build(os.path.join(HERE, "subject.c"))
    wanted = [[FIRST + i] for i in range(COUNT)]
    folder = scratch()
    result = execute([MEMTRACE, "run", "-o", "run", "--", "sh", "-c", script(program)], clean_environment(), cwd=folder)
    equal(result.returncode, 0, "run", result.stderr)
    run = os.path.join(folder, "run")
    found = kept(run, ".mtp")
    mine = {process["file"]: process["pid"] for process in report(run)["run"]["processes"]
            if os.path.basename(process["program"]).startswith("subject")}
    equal(sorted(found.get(name, []) for name in mine), wanted, "told of in the run", mine, found)
    equal(set(mine.values()), {1}, "PIDs")
    equal(sorted(found.values()), wanted, "files", sorted(found))
    equal([name for name in os.listdir(folder) if name != "run"], [], "nothing else")
    folder = scratch()
    os.mkdir(os.path.join(folder, "regions"), 0o700)
    result = execute(["sh", "-c", script(program)], clean_environment(
        LD_PRELOAD=LIBRARY, MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT="run", MEMTRACE_REGION_DIR=folder + "/regions"),
                     cwd=folder)
    equal((result.returncode, result.stderr), (0, b""), "by hand")
    found = kept(os.path.join(folder, "run"), ".mtp")
    equal(sorted(found.values()), wanted, "files by hand", sorted(found))
    equal(sorted(os.listdir(folder)), ["regions", "run"], "nothing else")


check_images()
check_namespaces()
finish()
