#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The keys of `memtrace top` on a recording: they reach its program, on this machine or through `memtrace gather`, where
the sender allows it, and the screen says what became of it. Seen in the recordings, by the numbers of blocks."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "top", "screen"))

import emulated  # noqa: E402
from control import NOT_ALLOWED, Program, counted, one_file, rows_of  # noqa: E402
from streamed import (MEMTRACE, Gather, clean_environment, equal, finish, received, recordings, scratch,  # noqa: E402
                      wait_until)

SKIP = 77
FOLDER = scratch()


class Top(emulated.Emulated):
    def __init__(self, path):
        try:
            super().__init__([MEMTRACE, "top", "--interval", "100ms", path],
                             clean_environment(LC_ALL="C.UTF-8", TERM="linux"), FOLDER, 120, 30)
        except emulated.Unavailable as reason:
            print("SKIPPED:", reason)
            sys.exit(SKIP)
        self.wait(lambda lines: "q  quit" in lines[-1] or "q quit" in lines[-1], "the first screen")

    def says(self, key, answer):
        """What the last line is, after this key."""
        self.press(key)
        self.wait(lambda lines: answer in lines[-1], "after", repr(key), repr(answer))


def switch(path, program):
    with Top(path) as top:
        program.allocate(10, 70001)
        top.says("o", "off, nothing new is recorded")
        program.allocate(20, 70002)
        top.says("o", "exact, every allocation is recorded")
        top.says("M", 'marked "top ')
        program.allocate(30, 70003)
        top.says("O", "sampled, one allocation in 512.0 KiB is recorded")
        top.says("O", "exact, every allocation is recorded")
        top.says("R", "it is recorded already")
        equal(program.end(), 0, program.command.lines)
        top.wait(lambda lines: "[file]" in lines[0], "its end is seen")
        top.says("o", "it does not run")


def switched(path):
    found = counted(path)
    equal({size: found.get(size) for size in (70001, 70002, 70003)}, {70001: 10, 70002: None, 70003: 30}, path)
    marks = [row["name"] for row in rows_of(path, "SELECT name FROM markers") if (row["name"] or "").startswith("top")]
    equal([bool(re.fullmatch(r"top \d\d:\d\d:\d\d", mark)) for mark in marks], [True], marks)


def gathered():
    folder, there = scratch(), scratch()
    gather = Gather(there)
    program = Program(folder, "--to", "127.0.0.1:%d" % gather.port, "--allow-control")
    path = one_file(there)
    switch(path, program)
    gather.end()
    switched(path)


def not_allowed():
    folder, there = scratch(), scratch()
    gather = Gather(there)
    program = Program(folder, "--to", "127.0.0.1:%d" % gather.port)
    with Top(one_file(there)) as top:
        for key in "oOM":
            top.says(key, NOT_ALLOWED)
        program.allocate(50, 70007)
    equal(program.end(), 0, program.command.lines)
    gather.end()
    equal(counted(received(there)[0]), {70007: 50}, "nothing happened to it")


def here():
    folder = scratch()
    program = Program(folder)
    wait_until(lambda: recordings(folder), "it is recorded")
    path = recordings(folder)[0]
    switch(path, program)
    switched(path)


def main():
    for test in (gathered, not_allowed, here):
        test()
    finish()


if __name__ == "__main__":
    main()
