#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cost.py: what `memtrace top` costs where a program has 131,072 call paths: processor time until the first
screen, and of each look after it, in each view; what is resident between two looks, of 100,000 call paths.

The targets, 300 ms and 50 ms, are held to by benchmarks/live, on an idle machine. Beside other work the same look
takes longer: here it may take twice that, so that what fails is a look that does more, not a machine that does."""

import os

from terminal import RIGHT, Subject, Terminal, build, check, run_cases

FIRST_MS = 600
LOOK_MS = 100
SECONDS = 2
RESIDENT_MIB = 40
PATHS = 131072
EVERY = "200ms"


def processor_ms(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open("/proc/%d/statm" % pid) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cost(terminal, what):
    """Of a look."""
    before = processor_ms(terminal.process.pid)
    resident = []
    for _ in range(20):
        terminal.read(SECONDS / 20)
        resident.append(resident_mib(terminal.process.pid))
    least = min(resident) * 100000 / PATHS
    print("%s: %.1f MiB of 100,000" % (what, least))
    check(least <= RESIDENT_MIB, what, least)
    each = (processor_ms(terminal.process.pid) - before) / (SECONDS * 1000 / int(EVERY[:-2]))
    print("%s: %.1f ms" % (what, each))
    check(each <= LOOK_MS, what, each)


def test_cost():
    subject = Subject(build("crowd.c"))
    try:
        with Terminal("--interval", EVERY, str(subject.pid)) as terminal:
            terminal.wait(lambda lines: "crowd" in lines[0], "the first screen")
            first = processor_ms(terminal.process.pid)
            print("first screen: %.1f ms" % first)
            check(first <= FIRST_MS, "the first screen", first)
            terminal.wait(lambda lines: "leaf" in lines[4], "names")
            cost(terminal, "functions")
            terminal.press(RIGHT, RIGHT, RIGHT, RIGHT, RIGHT)
            cost(terminal, "callers")
            terminal.press("g")
            cost(terminal, "paths")
            terminal.press("h")
            terminal.wait(lambda lines: lines[5].startswith("lifetimes"), "lifetimes")
            cost(terminal, "lifetimes")
            terminal.press("/right\r")
            terminal.wait(lambda lines: "/right" in lines[0], "the filter")
            terminal.press("h")
            cost(terminal, "filtered")
    finally:
        os.kill(subject.pid, 9)
        subject.end()


run_cases(globals())
