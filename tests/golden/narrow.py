# SPDX-License-Identifier: MIT
"""narrow.py: at a terminal every line of a report has room, numbers whole, and library frames are one line;
what is no terminal gets the same at any width."""

import fcntl
import os
import re
import struct
import subprocess
import termios

import reports
from recorded import only_recording, record
from harness import MEMTRACE, SOURCE, build, clean_environment, equal, execute, fail, finish, scratch

REPORTS = ([], ["--show-leaked", "--bottom-up"], ["--show-peak", "--all-frames"], ["--show-groups"], ["--show-lifetimes"],
           ["--show-sizes"], ["--show-blocks"], ["--show-threads"], ["--flat", "--show-peak"],
           ["--show-allocated", "--paths", "--full-names"], ["--show-timeline"], ["--show-fragmentation", "-n", "3"])


def at_terminal(arguments, columns, folder, **settings):
    """What a terminal so wide gets."""
    # Not a session's own terminal: what is unread when the first process of a session ends may be lost.
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = clean_environment(LC_ALL="C.UTF-8", TERM="xterm", **reports.SETTINGS, **settings)
    process = subprocess.Popen([MEMTRACE, *arguments], env=environment, cwd=folder, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            part = b""
        if not part:
            break
        text += part
    os.close(master)
    equal(process.wait(), 0, arguments, text[-500:])
    text = re.sub("\x1b\\[[0-9;]*[mK]", "", text.decode()).replace("\r\n", "\n")
    return [line.split("\r")[-1] for line in text.split("\n")]


def numbers(lines):
    """All that is a number, in its order."""
    return re.findall(r"[0-9][0-9,.]*(?:%| [KMG]iB| B\b)", " ".join(lines))


def widths(path, folder):
    name = os.path.basename(path)
    for options in REPORTS:
        arguments = ["report", name, "--color=always", *options]
        for columns in (80, 100, 200):
            lines = at_terminal(arguments, columns, folder)
            for line in lines:
                # What may be copied is never cut: paths of files, commands.
                if len(line) > columns and not re.match(" +(memtrace report|command|recording) ", line):
                    fail(options, "at", columns, "columns a line has", len(line), ":", line)
        wide = reports.written(name, *options, cwd=folder).decode().split("\n")
        if options not in ([], ["--show-timeline"], ["--show-fragmentation", "-n", "3"]):
            equal(sorted(numbers(at_terminal(arguments, 80, folder))), sorted(numbers(wide)), options, "numbers")
    lines = at_terminal(["report", name], 80, folder, COLUMNS="120")
    if not any(80 < len(line) for line in lines):
        fail("COLUMNS=120 at a terminal of 80 columns: the longest line has", max(map(len, lines)))
    for columns in ("70", "300"):
        done = execute([MEMTRACE, "report", name], clean_environment(COLUMNS=columns, **reports.SETTINGS), folder)
        equal(done.stdout, reports.written(name, cwd=folder), "no terminal, COLUMNS", columns)


def folds(path):
    """A run of std:: is one line with a count; --all-frames, JSON and CSV have each frame."""
    for options in (["--show-peak"], ["--show-peak", "--bottom-up"], ["--show-peak", "--paths"],
                    ["--show-groups", "--depth", "0"]):
        folded = reports.written(path, *options).decode()
        every = reports.written(path, *options, "--all-frames").decode()
        if "deque.tcc" in folded or "library frames)" not in folded:
            fail(options, "library frames are not folded:\n" + folded[:3000])
        if "_M_push_back_aux" not in every or "library frame" in every:
            fail(options, "--all-frames: library frames are folded:\n" + every[:3000])
    count = int(re.search(r"std::deque<>::push_back[^\n]*\(\+([0-9]+) library frames\)",
                          reports.written(path, "--show-peak", "--paths").decode()).group(1))
    every = reports.written(path, "--show-peak", "--paths", "--all-frames").decode()
    run = re.search(r"((?: +(?:__gnu_cxx|std)::[^\n]*\n)+) +std::deque<>::push_back", every).group(1)
    equal(count, run.count("\n"), "frames folded into push_back")
    equal(reports.written(path, "--show-peak", "--json").count(b"push_back_aux") > 0, True, "JSON has each frame")


def folds_in_diff(path, folder):
    """memtrace diff folds as reports do."""
    program = build(os.path.join(SOURCE, "examples", "newsdesk", "newsdesk.cpp"), optimize="-O2", flags=["-DMENDED"])
    os.makedirs(os.path.join(folder, "mended"))
    equal(record([program], os.path.join(folder, "mended"), "--precise").returncode, 0, "newsdesk, mended")
    other = only_recording(os.path.join(folder, "mended"), "newsdesk")
    for options, folded in (([], True), (["--all-frames"], False)):
        done = execute([MEMTRACE, "diff", path, other, *options], clean_environment(**reports.SETTINGS))
        equal((done.returncode, b"library frame" in done.stdout, b"_M_allocate at" in done.stdout),
              (0, folded, not folded), "diff", options)


folder = scratch()
program = build(os.path.join(SOURCE, "examples", "newsdesk", "newsdesk.cpp"), optimize="-O2")
equal(record([program], folder, "--precise").returncode, 0, "newsdesk")
folds(only_recording(folder, "newsdesk"))
widths(only_recording(folder, "newsdesk"), folder)
folds_in_diff(only_recording(folder, "newsdesk"), folder)
finish()
