#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""programs.py [CASE]: the list of programs, of a run's processes and of a folder's files in `memtrace top`."""

import os
import re
import shutil
import signal
import subprocess

from terminal import (DOWN, LEFT, MEMTRACE, RIGHT, UP, Subject, Terminal, build, check, environment, equal, folder,
                      run_cases)

PROGRAM = build("heap.c")
HEADING = "      PID    LIVE*   LIVE/s  ALLOC/s     RSS         UP  PROGRAM"


def rows(lines):
    """Of the list: (whether it is selected, PID, live bytes, what is behind the numbers)."""
    found = []
    for line in lines[4:-1]:
        match = re.fullmatch(r"(>| ) *(\d+) +(\S+) +\S+ +\S+ +\S+ +\d+:\d\d:\d\d  (.*)", line)
        if match:
            found.append((match[1] == ">", int(match[2]), match[3], match[4]))
    return found


def wait_rows(terminal, *wanted):
    terminal.wait(lambda lines: lines[3] == HEADING and rows(lines) == list(wanted), wanted)


def is_open(subject):
    return lambda lines: lines[0].startswith("heap (%d)  up " % subject.pid) and "keep heap.c" in lines[4]


def test_choosing():
    with Subject(PROGRAM) as small, Subject(PROGRAM) as large:
        large.step()
        with Terminal() as terminal:
            wait_rows(terminal, (True, large.pid, "201.2K", "heap"), (False, small.pid, "100.6K", "heap"))
            check(re.fullmatch(r"programs  2 running  every 0\.1 s +\[list\]", terminal.lines()[0]),
                  terminal.lines()[0])
            check(re.match(r"live 301\.8K  rss [\d.]+M  ", terminal.lines()[1]), terminal.lines()[1])
            terminal.press("r")
            terminal.wait(lambda lines: rows(lines)[:1] == [(True, small.pid, "100.6K", "heap")], "the other way")
            terminal.press("r", DOWN)
            wait_rows(terminal, (False, large.pid, "201.2K", "heap"), (True, small.pid, "100.6K", "heap"))
            terminal.press(b"\r")
            terminal.wait(is_open(small), "the smaller one")
            terminal.wait(lambda lines: lines[-1].startswith("? help  Esc list  "), "the foot")
            terminal.press(LEFT)
            wait_rows(terminal, (False, large.pid, "201.2K", "heap"), (True, small.pid, "100.6K", "heap"))
            terminal.press(UP, RIGHT)
            terminal.wait(is_open(large), "the larger one")
            terminal.press("x")
            terminal.wait(lambda lines: lines[4] == "live bytes", "a page of it")
            terminal.press(b"\x1b")
            terminal.wait(is_open(large), "its rows")
            terminal.press(b"\x1b")
            wait_rows(terminal, (True, large.pid, "201.2K", "heap"), (False, small.pid, "100.6K", "heap"))
            terminal.press("q")
            equal(terminal.wait_end(), 0)
            terminal.is_sane()


def test_coming_and_going():
    """The selection stays on its program; what has ended goes."""
    with Subject(PROGRAM) as first:
        with Subject(PROGRAM) as second, Terminal() as terminal:
            pair = sorted((first.pid, second.pid))
            wait_rows(terminal, (True, pair[0], "100.6K", "heap"), (False, pair[1], "100.6K", "heap"))
            terminal.press(DOWN)
            with Subject(PROGRAM) as third:
                third.step()
                wait_rows(terminal, (False, third.pid, "201.2K", "heap"), (False, pair[0], "100.6K", "heap"),
                          (True, pair[1], "100.6K", "heap"))
                os.kill(third.pid, signal.SIGKILL)
            wait_rows(terminal, (False, pair[0], "100.6K", "heap"), (True, pair[1], "100.6K", "heap"))


def test_only_one():
    """It is opened at once; the list is behind it."""
    with Subject(PROGRAM) as subject, Terminal() as terminal:
        terminal.wait(is_open(subject), "the program")
        terminal.press(b"\x1b")
        wait_rows(terminal, (True, subject.pid, "100.6K", "heap"))
        os.kill(subject.pid, signal.SIGKILL)
        terminal.wait(lambda lines: lines[4] == " no program of yours is profiled now", "none")
        terminal.press(b"\r", DOWN, "l")
        terminal.wait(lambda lines: lines[4] == " no program of yours is profiled now", "none")


def start_run(name, *command):
    """A recorded shell that is the parent of two programs."""
    return Subject("sh", *command, "-o", name, more=["-c", "%s two words; exit 0" % PROGRAM])


def test_a_run():
    """While it goes on its programs, then its files."""
    name = folder + "/run.mtr"
    with Subject(PROGRAM) as other, start_run(name, "record") as run:
        with Terminal(name, width=110) as terminal:
            terminal.wait(lambda lines: any("heap two words" in row[3] for row in rows(lines)), "the program")
            check(other.pid not in [row[1] for row in rows(terminal.lines())], terminal.lines())
            check(any(row[3].startswith(("dash -c", "sh -c", "bash -c")) for row in rows(terminal.lines())),
                  terminal.lines())
            live = [row for row in rows(terminal.lines()) if "heap two words" in row[3]][0]
            equal(live[2], "100.6K")
            for _ in range(12):  # so much that it gets a file of its own
                run.step()
            run.end()
            terminal.wait(lambda lines: re.match(r".*/run\.mtr  0 running  \d files ", lines[0]) and any(
                row[1:] == (live[1], "1.3M", "heap two words  heap.%d.mtr" % live[1]) for row in rows(lines)),
                "the files")
            at = [row[1] for row in rows(terminal.lines())].index(live[1])
            terminal.press(*[DOWN] * at, b"\r")
            terminal.wait(lambda lines: lines[0].endswith("[file]") and "keep heap.c" in lines[4], "the file")
    shutil.rmtree(name)


def test_without_a_terminal():
    with Subject(PROGRAM) as first, Subject(PROGRAM) as second:
        done = subprocess.run([MEMTRACE, "top", "--interval", "100ms", "--once"], stdin=subprocess.DEVNULL, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
        equal((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        equal(lines[2], HEADING)
        equal([int(line.split()[0]) for line in lines[3:]], sorted((first.pid, second.pid)))


run_cases(globals())
