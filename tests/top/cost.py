#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cost.py: what `memtrace top` costs where a program has 131,072 call paths: processor time until the first
screen, and of each look after it, in each view."""

import os

from terminal import RIGHT, Subject, Terminal, build, check, run_cases

FIRST_MS = 300
LOOK_MS = 50
SECONDS = 3
EVERY = "200ms"


def processor_ms(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def cost(terminal, what):
    """Of a look."""
    before = processor_ms(terminal.process.pid)
    terminal.read(SECONDS)
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
            terminal.read(2)
            cost(terminal, "functions")
            terminal.press(RIGHT, RIGHT, RIGHT, RIGHT, RIGHT)
            cost(terminal, "callers")
            terminal.press("g")
            cost(terminal, "paths")
            terminal.press("/right\r")
            terminal.read(2)
            cost(terminal, "filtered")
    finally:
        os.kill(subject.pid, 9)
        subject.end()


run_cases(globals())
