# SPDX-License-Identifier: MIT
"""resident.py: the most memory that was resident is what the kernel says, not what was sampled: of
profiles and recordings, of programs that ended and that were killed; and in the report's text."""

import os
import re

from harness import (MEMTRACE, PRELOAD, build, clean_environment, equal, execute, fail, finish,
                     report, scratch)

KIB = 1024
SPARE = 2048 * KIB  # what the program touches after it has asked, and the kernel's own batches


def check(path, said, what):
    got = report(path)["process"]["peak_resident_bytes"]
    if not said - SPARE <= got <= said + SPARE:
        fail(what, ": resident", got, "but the program said", said)
    text = execute([MEMTRACE, "report", path]).stdout.decode()
    line = re.search(r"^ *resident +([0-9.]+) MiB at most, ([0-9.]+) [KM]iB of it MemTrace's own$", text, re.MULTILINE)
    if line is None or abs(float(line.group(1)) * KIB * KIB - got) > 0.1 * KIB * KIB:
        fail(what, ": the report says", line and line.group(0))


def run(command, what, **settings):
    folder = scratch()
    environment = clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_REGION_DIR=scratch(),
                                    MEMTRACE_OUTPUT=os.path.join(folder, "run.mtp"),
                                    MEMTRACE_RECORD_OUTPUT=os.path.join(folder, "run.mtr"),
                                    **settings)
    said = int(execute(command, environment).stdout) * KIB
    found = sorted(os.listdir(folder))
    if equal(len(found), 1, what, "files"):
        check(os.path.join(folder, found[0]), said, what)



def resident_at_end(program, last, *prefix):
    environment = clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_REGION_DIR=scratch())
    return int(execute([*prefix, program, "small", *last], environment).stdout) * KIB


def check_own(program, last):
    """MemTrace's own part is what the program has more with it than without."""
    path = os.path.join(scratch(), "own.mtp")
    more = (resident_at_end(program, last, MEMTRACE, "run", "--output", path, "--") -
            resident_at_end(program, last))
    got = report(path)["process"]["own_resident_bytes"]
    if not more - SPARE <= got <= more + SPARE or got < 4 * SPARE:
        fail("MemTrace's own memory,", last, ":", got, "but the program has", more, "more with it")


# Subshells that fork children, and grow out of what they share with their parent.
SUBSHELLS = """for i in 1 2; do
    (x=$(seq 1 20000); y=$(echo $x | wc); ( for k in $(seq 1 9000); do z=$k; done ); true )
done; true"""


def check_forked():
    """What others have written to a region, and what a process has only read of its tables, is no memory of its own."""
    folder = scratch()
    environment = clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_REGION_DIR=scratch())
    for command in ("run", "record"):
        path = os.path.join(folder, command)
        execute([MEMTRACE, command, "-o", path, "--", "bash", "-c", SUBSHELLS], environment)
        files = [name for name in sorted(os.listdir(path)) if re.search(r"\.mt[pr]$", name) and not name.startswith("others")]
        if len(files) < 2:
            fail(command, "subshells have", files)
        for name in files:
            process = report(os.path.join(path, name))["process"]
            if not process["own_resident_bytes"] < process["peak_resident_bytes"]:
                fail(command, name, "MemTrace's own", process["own_resident_bytes"], "of", process["peak_resident_bytes"])


def main():
    check_forked()
    program = build("resident.c", "gcc", "-O1")
    for last in ([], ["killed"]):
        how = last[0] if last else "ended"
        run([MEMTRACE, "run", "--", program, *last], "run, " + how)
        run([MEMTRACE, "record", "--", program, *last], "record, " + how)
        check_own(program, last)
    run([program], "preloaded", LD_PRELOAD=PRELOAD)


main()
finish()
