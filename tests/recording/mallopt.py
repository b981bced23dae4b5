# SPDX-License-Identifier: MIT
"""mallopt.py: a program that sets its allocator does so as without MemTrace, and its recording says
when and how."""

import json
import os
import subprocess

from recorded import HERE, record, recordings
from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, scratch


def marks(path):
    done = execute([MEMTRACE, "query", path, "--format", "json",
                    "SELECT kind, name, time, thread FROM markers ORDER BY time"])
    return json.loads(done.stdout)


def main():
    program = build(os.path.join(HERE, "mallopt.c"), "gcc", "-pthread")
    bare = subprocess.run([program], capture_output=True, check=True).stdout
    refused = " (refused)" if bare.split()[1] == b"0" else ""  # glibc 2.43 has no fast bins, and takes it
    folder = scratch()
    done = record([program], folder)
    equal((done.returncode, done.stdout), (0, bare), "results of mallopt()", done.stderr)
    paths = sorted(recordings(folder), key=lambda path: -len(marks(path)))
    equal([[mark["name"] for mark in marks(path)] for path in paths[1:]], [["M_ARENA_MAX=1"]], "the child")
    told = marks(paths[0])
    equal([(mark["kind"], mark["name"]) for mark in told],
          [("mallopt", "M_MMAP_THRESHOLD=1048576"), ("mallopt", "M_MXFAST=1048576" + refused),
           ("mallopt", "12345=6"), ("mallopt", "M_TRIM_THRESHOLD=-1"), ("mallopt", "M_TOP_PAD=65536")],
          "marks")
    if len({mark["thread"] for mark in told}) != 2:
        fail("threads of the marks:", told)
    text = execute([MEMTRACE, "report", "--show-marks", paths[0]]).stdout
    equal(b"M_TOP_PAD=65536" in text, True, "--show-marks", text)

    # Counted alone, there is nothing to tell: only the calls are made.
    folder = scratch()
    done = execute([MEMTRACE, "run", "--", program],
                   clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_KEEP_SMALL="1",
                                     MEMTRACE_OUTPUT=os.path.join(folder, "%e.%p.mtp")))
    equal(done.stdout, bare, "results under memtrace run")
    finish()


if __name__ == "__main__":
    main()
