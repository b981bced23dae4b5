# SPDX-License-Identifier: MIT
"""terminal.py: a program on a terminal of its own, which pyte emulates, and the subject that it looks at."""

import os
import shutil
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
sys.path.insert(0, os.path.join(HERE, "screen"))

import emulated  # noqa: E402
from emulated import HEIGHT, PATIENCE, WIDTH  # noqa: E402
from harness import MEMTRACE, shared  # noqa: E402, F401

SKIP = 77
UP, DOWN, RIGHT, LEFT = (b"\x1b[" + letter for letter in (b"A", b"B", b"C", b"D"))

folder = tempfile.mkdtemp(prefix="memtrace-top-")
regions = folder + "/regions"
os.mkdir(regions, 0o700)
environment = {name: value for name, value in os.environ.items()
               if not name.startswith("MEMTRACE") and name not in ("LD_PRELOAD", "COLUMNS", "LINES", "NO_COLOR")}
environment.update(MEMTRACE_REGION_DIR=regions, LC_ALL="C.UTF-8", TERM="linux")


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def equal(found, wanted, *what):
    check(found == wanted, *what, "\nfound\n", found, "\nwanted\n", wanted)


def until(condition, *what):
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, "waited in vain for", *what)
        time.sleep(0.02)


def build(source, *flags):
    program = os.path.join(folder, source.partition(".")[0])
    subprocess.run(["cc", "-g", "-O1", "-fno-optimize-sibling-calls", *flags, os.path.join(HERE, source), "-o",
                    program], check=True)
    return program


class Subject:
    """A profiled program, which makes a step for each call."""

    def __init__(self, program, *command, more=()):
        before = self.list()
        self.process = subprocess.Popen(
            [MEMTRACE, *(command or ("run", "-o", folder + "/subject.mtp")), "--", program, *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=folder)
        check(self.process.stdout.readline() == b"ready\n", "the subject starts")
        self.pid = self.find(before)

    @staticmethod
    def list():
        return {int(name.partition(".")[0]) for name in os.listdir(regions) if name.endswith(".mtp")}

    def find(self, before):
        until(lambda: self.list() - before, "its region")
        return (self.list() - before).pop()

    def step(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        check(self.process.stdout.readline() == b"ready\n", "the subject makes a step")

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Terminal(emulated.Emulated):
    """`memtrace top ARGUMENT...` on a terminal; `shell`: what runs it."""

    def __init__(self, *arguments, width=WIDTH, height=HEIGHT, shell=(), **settings):
        try:
            super().__init__([*shell, MEMTRACE, "top", "--interval", "100ms", *arguments],
                             {**environment, **settings}, folder, width, height)
        except emulated.Unavailable as reason:
            print("SKIPPED:", reason)
            sys.exit(SKIP)

    def wait_rows(self, wanted, first=3):
        """Until the lines from the headings on are these, and nothing but the foot is below."""
        rows = [line.rstrip() for line in wanted.strip("\n").split("\n")]
        height = self.screen.lines
        rows += [""] * (height - 1 - first - len(rows))
        self.wait(lambda lines: lines[first:height - 1] == rows, "\n" + "\n".join(rows), "\nbut:")

    def is_sane(self):
        """As it was before: settings, cursor, attributes."""
        self.read(0.1)
        equal(termios.tcgetattr(self.slave), self.before, "the terminal's settings")
        check(not self.screen.cursor.hidden, "the cursor is there")
        check(not self.screen.cursor.attrs.reverse and not self.screen.cursor.attrs.bold, "no attribute is left")

    def wait_end(self):
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            check(time.monotonic() < end, "it does not end")
            self.read(0.05)
        return self.process.returncode


def run_cases(cases):
    """Runs all functions called test_...; says of each that fails what was wrong."""
    failed = 0
    for name, function in list(cases.items()):
        if not name.startswith("test_"):
            continue
        if len(sys.argv) > 1 and sys.argv[1] not in name:
            continue
        begin = time.monotonic()
        try:
            function()
            print("%s: %.1f s" % (name[5:], time.monotonic() - begin), flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print("FAILED:", name, error)
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(failed != 0)
