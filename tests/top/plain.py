#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plain.py [CASE]: `memtrace top` where there is no terminal: one screen as text, or one line that says why not."""

import json
import os
import subprocess

from terminal import MEMTRACE, Subject, build, check, environment, equal, folder, run_cases, shared

PROGRAM = build("heap.c")


def top(*arguments, **settings):
    return subprocess.run([MEMTRACE, "top", "--interval", "100ms", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                          env={**environment, **settings}, timeout=60)


def test_one_screen():
    with Subject(PROGRAM) as subject:
        for options in ((), ("--once",)):
            done = top(*options, str(subject.pid))
            equal((done.returncode, done.stderr), (0, ""), options)
            lines = done.stdout.splitlines()
            check(lines[0].startswith("heap (%d)  up " % subject.pid), lines[0])
            equal(lines[2:], [
                "     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS      MAX        P50  THR  FUNCTION",
                "    100.6K        0   100.6K        0    0%       4   100.6K          -    1  ▸ keep heap.c:16",
                lines[4]])


def test_as_the_report():
    """Rows are what the report says of the same program."""
    with Subject(PROGRAM) as subject:
        subject.step()
        rows = top("--paths", "--limit", "2", str(subject.pid)).stdout.splitlines()[3:]
        report = json.loads(subprocess.run([MEMTRACE, "report", "--format", "json", str(subject.pid)], check=True,
                                           stdout=subprocess.PIPE, env=environment, cwd=folder).stdout)
        wanted = sorted(((c["live_bytes"], c["total_bytes"], c["live_blocks"]) for c in report["contexts"]),
                        reverse=True)[:2]
        equal(wanted, [(200000, 200000, 2), (6000, 6000, 6)])
        for row, (live, total, blocks) in zip(rows, wanted):
            cells = row.split()
            equal((cells[0], cells[2], cells[5]), ("%.1fK" % (live / 1024), "%.1fK" % (total / 1024), str(blocks)), row)
        equal(len(rows), 2)


def test_a_file():
    with Subject(PROGRAM):
        pass
    done = top(folder + "/subject.mtp")
    equal((done.returncode, done.stderr), (0, ""))
    lines = done.stdout.splitlines()
    check(lines[0].endswith("[file]"), lines[0])
    check(lines[3].startswith("    100.6K        0   100.6K        -    0%       4   100.6K          -    -  ▸ keep"), lines[3])


def test_without_programs():
    """A user of whom no program was ever profiled looks at a file."""
    if os.geteuid() != 0:
        return
    with Subject(PROGRAM):
        pass
    command, profile = shared(MEMTRACE, folder + "/subject.mtp")
    done = subprocess.run([command, "top", "--once", "--interval", "100ms", profile], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, cwd="/", env=environment, user=64123, timeout=60)
    equal((done.returncode, done.stderr), (0, ""))
    check(done.stdout.splitlines()[0].endswith("[file]"), done.stdout)


def test_own_names():
    """What a C++ library allocates is the row of the program's function that called it."""
    source, program = folder + "/own.cpp", folder + "/own"
    with open(source, "w") as file:
        file.write("#include <vector>\nstd::vector<char> kept;\n"
                   "__attribute__((noinline)) void fill() { kept.resize(90000); }\nint main() { fill(); }\n")
    subprocess.run(["g++", "-O0", "-g", "-o", program, source], check=True)
    subprocess.run([MEMTRACE, "run", "--no-summary", "-o", folder + "/own.mtp", "--", program], check=True,
                   env=environment, cwd=folder)
    rows = top("--once", folder + "/own.mtp").stdout.splitlines()[3:]
    equal([row.split("▸ ")[-1].split(" own.cpp")[0] for row in rows if "  87.9K" in row], ["fill"], rows)


def test_what_is_refused():
    for arguments, message in (((folder + "/nowhere",), "/nowhere"), (("1",), "1")):
        done = top(*arguments)
        equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), arguments, done.stderr)
        check(message in done.stderr, done.stderr)
    with Subject(PROGRAM) as first:
        done = top("--function", "no[", str(first.pid))
        check(done.returncode == 1 and done.stderr.startswith("memtrace: no such filter: "), done.stderr)


run_cases(globals())
