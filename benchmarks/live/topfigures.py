# SPDX-License-Identifier: MIT
"""The figures of `memtrace top`, on a terminal that pyte emulates: what a look costs where a program has more than
100,000 call paths, and what it costs a program to be looked at. Used by figures.py."""

import glob
import os
import re
import signal
import sys
import threading
import time

from harness import RunFailed, median, spread, status_mib
from table import Row, check

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "top", "screen"))

import emulated  # noqa: E402

DEPTH = 17  # 2^17 call paths, and those that its later rounds begin higher up
FIRST_MS, LOOK_MS, CORE_SHARE, RESIDENT_MIB, SLOWER = 300, 50, 0.02, 40, 0.01
FAST_MS = 100
MOST_ROWS = 500  # of so many rows side by side; the others are one
RIGHT, END = b"\x1b[C", b"\x1b[4~"


def processor_ns(pid):
    """Of all its threads; one that ends meanwhile is not there."""
    sum_ns = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path, encoding="ascii") as file:
                sum_ns += int(file.read().split()[0])
        except OSError:
            pass
    return sum_ns


def open_top(live, pid, *options):
    try:
        return emulated.Emulated([live.bench.command, "top", *options, str(pid)],
                                 {**live.environment, "LC_ALL": "C.UTF-8", "TERM": "linux"},
                                 live.bench.scratch, 120, 40)
    except emulated.Unavailable as reason:
        raise RunFailed(str(reason)) from reason


def has_rows(lines):
    return lines[4].startswith(">") and not lines[5].startswith("?")


# ---- What top costs ----

def first_screens(live, pid, rounds):
    """Milliseconds from the command to its rows, and until they have names."""
    rows, names = [], []
    for _ in range(rounds):
        begin = time.monotonic()
        with open_top(live, pid) as terminal:
            terminal.wait(has_rows, "the first screen", step=0.002)
            rows.append((time.monotonic() - begin) * 1000)
            terminal.wait(lambda lines: " allocate callpaths.c:" in lines[4], "names", step=0.002)
            names.append((time.monotonic() - begin) * 1000)
    return rows, names


def watch(terminal, seconds):
    """Processor time in ns, seconds that went by, MiB resident each 20 ms."""
    pid, resident = terminal.process.pid, []
    before, begin = processor_ns(pid), time.monotonic()
    while time.monotonic() < begin + seconds:
        terminal.read(0.02)
        resident.append(status_mib(pid, "VmRSS"))
    return processor_ns(pid) - before, time.monotonic() - begin, resident


def look_row(name, terminal, seconds, every_ms, paths):
    """Memory is what it would be of 100,000 call paths."""
    spent, took, resident = watch(terminal, seconds)
    each_ms = spent / 1e6 * every_ms / (took * 1000)
    memory = median(resident) * 100000 / paths
    return Row(f"top, {name}: processor time of a look",
               {"top": f"{each_ms:.1f} ms; {median(resident):.1f} MiB resident, {max(resident):.1f} at most"},
               [check(f"{each_ms:.1f} of {LOOK_MS} ms", each_ms <= LOOK_MS),
                check(f"for each 100,000 {memory:.1f} of {RESIDENT_MIB} MiB", memory <= RESIDENT_MIB)])


def each_second(live, pid, seconds):
    """At the interval that it has by itself, after names were found."""
    with open_top(live, pid) as terminal:
        terminal.wait(lambda lines: " allocate callpaths.c:" in lines[4], "names")
        terminal.read(2)
        spent, took, _ = watch(terminal, seconds)
        share = spent / 1e9 / took
        most = status_mib(terminal.process.pid, "VmHWM")
    return Row("top, once a second: of a core", {"top": f"{share * 100:.2f} % ({most:.1f} MiB at most since its start)"},
               [check(f"{share * 100:.2f} of {CORE_SHARE * 100:.0f} %", share <= CORE_SHARE)])


def views(live, pid, seconds, paths):
    with open_top(live, pid, "--interval", f"{FAST_MS}ms") as terminal:
        terminal.wait(lambda lines: " allocate callpaths.c:" in lines[4], "names")
        yield look_row("functions", terminal, seconds, FAST_MS, paths)
        terminal.press(RIGHT, RIGHT, RIGHT, RIGHT, RIGHT)
        yield look_row("opened to four callers", terminal, seconds, FAST_MS, paths)
        terminal.press("g")
        terminal.wait(lambda lines: "CALL PATH" in lines[3], "call paths")
        yield look_row("call paths", terminal, seconds, FAST_MS, paths)
        terminal.press("h")
        terminal.wait(lambda lines: lines[5].startswith("lifetimes"), "lifetimes")
        yield look_row("lifetimes and sizes", terminal, seconds, FAST_MS, paths)
        terminal.press("h", "f", "/three\r")
        terminal.wait(lambda lines: "/three" in lines[0] and lines[4].startswith(">"), "the filter")
        yield look_row("filtered", terminal, seconds, FAST_MS, paths)


def wait_for_paths(live, pid):
    """How many call paths the program has, as top itself says: more rows than it shows."""
    more = re.compile(r"\.\.\. (\d+) more")

    def rest(terminal):
        return max((int(number) for number in more.findall("\n".join(terminal.lines()))), default=0)

    with open_top(live, pid, "--paths") as terminal:
        terminal.wait(has_rows, "the program")
        terminal.press(END)
        terminal.wait(lambda _: rest(terminal) + MOST_ROWS >= 2 ** DEPTH, "all call paths")
        return rest(terminal) + MOST_ROWS


def cost(live):
    seconds = 3 if live.quick else 15
    program = live.start("preload", "callpaths", "--depth", DEPTH, "--seconds", 3600, wait=False)
    try:
        paths = wait_for_paths(live, program.pid)
        live.bench.progress("top: first screens")
        rows, names = first_screens(live, program.pid, 3 if live.quick else 21)
        first = spread(rows)
        yield Row(f"top, {paths:,} call paths: first screen",
                  {"top": "{:.0f} ms ({:.0f}–{:.0f}); with names {:.0f} ms".format(*first, median(names))},
                  [check(f"{first.median:.0f} of {FIRST_MS} ms", first.median <= FIRST_MS)])
        live.bench.progress("top: once a second")
        yield each_second(live, program.pid, seconds * 2)
        live.bench.progress("top: its views")
        yield from views(live, program.pid, seconds, paths)
    finally:
        live.end([program])


# ---- What the program costs that is looked at ----

class Drained:
    """What is drawn is read meanwhile, so that top never waits for its terminal."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.drain)

    def drain(self):
        while not self.over.is_set():
            self.terminal.read(0.05)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def looked_at(live):
    """One process, asked in turn while top looks at it ten times a second and while top is stopped."""
    rounds = 5 if live.quick else 31
    program = live.start("preload", "pair", "--depth", 10, "--asked", 1000, "--batches", 5, "--batch", 5000000)
    program.ask()  # warm
    with open_top(live, program.pid, "--interval", f"{FAST_MS}ms") as terminal:
        terminal.wait(has_rows, "the first screen")
        found = {"alone": [], "looked at": []}
        for number in range(rounds):
            live.bench.progress(f"pairs, looked at: round {number + 1} of {rounds}")
            for variant in sorted(found, reverse=number % 2 == 1):
                os.kill(terminal.process.pid, signal.SIGSTOP if variant == "alone" else signal.SIGCONT)
                with Drained(terminal):
                    found[variant].append(program.ask()["pair_ns"])
        os.kill(terminal.process.pid, signal.SIGCONT)
    live.end([program])
    ratio = spread([own / other for own, other in zip(found["looked at"], found["alone"])])
    yield Row("malloc+free pair, 10 frames, looked at ten times a second: ns",
              {"preload": f"{median(found['alone']):.2f}",
               "top": "{:.2f} ({:.3f}x of preloaded, {:.3f}–{:.3f})".format(median(found["looked at"]), *ratio)},
              [check(f"{ratio.median:.3f}x of {1 + SLOWER:.2f}x of preloaded", ratio.median <= 1 + SLOWER)])


def top(live):
    yield from cost(live)
    yield from looked_at(live)
