#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gaps.py: a recording that loses events, because its collector stands still: it says when and how many, and its totals
are those that the program itself and its profile tell, whoever dies meanwhile."""

import json
import os
import signal
import time

from recorded import (HERE, both, clean_environment, matches_own_counts, only_recording, own_counts, recordings, settings_for,
                      start, wait_until)
from harness import MEMTRACE, build, equal, execute, fail, finish, profiles, report, scratch

PAIRS = 2000000  # of each of two threads: more than the buffers hold


class Lagging:
    """A recorded program whose collector stood still from some moment on, until all was done."""

    def __init__(self, program, *options, mode="wait"):
        self.folder, self.counts, self.regions = scratch(), os.path.join(scratch(), "counts"), scratch(where="/dev/shm")
        self.launched = time.monotonic()
        self.process = start([program, self.counts, "2", str(PAIRS), mode], self.folder, "--on-lag", "drop", "--profile",
                             *options, settings={"MEMTRACE_REGION_DIR": self.regions}, stdin=-1)
        wait_until(lambda: os.path.exists(self.counts) and self.done() > 1000, "the program works")
        wait_until(lambda: any(os.path.getsize(path) > 1 << 16 for path in recordings(self.folder)), "events are written")
        self.seen = time.monotonic()
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = time.monotonic()
        wait_until(lambda: self.done() == 2 * PAIRS, "all is done")
        self.went_on = time.monotonic()

    def done(self):
        return sum(allocs for allocs, *_ in own_counts(self.counts).values())

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        errors = self.process.communicate(b"")[1].decode()
        equal(self.process.returncode, 0, "the recorder", errors)

    def died(self):
        self.process.kill()
        self.process.communicate()  # its program reads the end of the input now

        def ended():
            execute([MEMTRACE, "list"], clean_environment(**settings_for(self.folder, regions=self.regions)))
            return not os.listdir(self.regions)

        wait_until(ended, "somebody goes on")


def check(run, what):
    """Totals, by path and by thread, are the profile's and those of the program's own counters."""
    data = both(run.folder, what)
    told = data["recording"]
    matches_own_counts(data, run.counts, what)
    equal((told["closed"], told["totals_counted"], len(told["gaps"])), (True, True, 1), what, "gaps", told["gaps"])
    gap = told["gaps"][0]
    equal((gap["allocations"], gap["frees"]), (told["lost_allocs"], told["lost_frees"]), what, "as many as were lost")
    if not 0 < gap["allocations"] < 2 * PAIRS:
        fail(what, "lost", gap)
    return data, gap


def stopped(program):
    run = Lagging(program)
    run.end()
    data, gap = check(run, "stopped")
    if not gap["from_ns"] <= (run.stopped - run.launched) * 1e9 or not gap["to_ns"] >= (run.went_on - run.seen) * 1e9:
        fail("stopped from", run.stopped - run.launched, "to", run.went_on - run.seen, "but the gap is", gap)
    path = only_recording(run.folder, "stopped")
    says(path, gap)
    windows(path, gap)
    transformed(path, data)


def says(path, gap):
    seconds = "%.3f s to %.3f s" % (gap["from_ns"] / 1e9, gap["to_ns"] / 1e9)
    for command in ("report", "info"):
        told = execute([MEMTRACE, command, path]).stdout.decode()
        lines = [line for line in told.splitlines() if line.split()[:2] == ["events", "missing"] and seconds in line]
        equal(len(lines), 1, command, "says", seconds, told[:2000])
    told = execute([MEMTRACE, "report", path]).stdout.decode()
    equal("exact: as the program counted them" in told, True, "the report", told[:2000])
    told = json.loads(execute([MEMTRACE, "info", "--json", path]).stdout)
    equal(told["gaps"], [gap], "info --json")


def windows(path, gap):
    """Of a window only events tell; the gap is named where it lies in the window."""
    for start_ns, end_ns, found in ((0, gap["from_ns"], []), (gap["from_ns"], gap["to_ns"], [gap])):
        told = execute([MEMTRACE, "report", "--json", "--depth", "0", "--from", "%dns" % start_ns, "--to", "%dns" % end_ns,
                        path])
        if equal(told.returncode, 0, "a window", told.stderr):
            told = json.loads(told.stdout)["recording"]
            equal((told["gaps"], told["totals_counted"]), (found, False), "window", start_ns, end_ns)


def transformed(path, data):
    to = os.path.join(scratch(), "to.mtr")
    for command in ("repack", "anonymize"):
        done = execute([MEMTRACE, command, path, "-o", to])
        if equal(done.returncode, 0, command, done.stderr):
            again = report(to)
            for name in ("allocations", "total_bytes", "peak_bytes", "live_bytes", "frees"):
                equal(again.get(name), data.get(name), command, name)
            equal(again["recording"]["gaps"], data["recording"]["gaps"], command, "gaps")
            equal(again["recording"]["totals_counted"], True, command)
        os.unlink(to)


def killed(program):
    run = Lagging(program)
    run.died()
    check(run, "killed")


def partly(program):
    """Of some sizes only: the program counts others too, so its counters say nothing of them."""
    run = Lagging(program, "--sizes", "1-1500")
    run.end()
    told = report(only_recording(run.folder, "partly"))["recording"]
    equal((told["totals_counted"], len(told["gaps"]), told["lost_allocs"] > 0), (False, 1, True), "partly", told)


def forked(program):
    """A child that does all: what it was born with is among its totals, as it is in its events."""
    run = Lagging(program, mode="forked")
    run.end()
    of_child = [data for data in map(report, recordings(run.folder) + profiles(run.folder)) if data["process"]["forked"]]
    if equal(len(of_child), 2, "the child's recording and profile"):
        told = of_child[0]["recording"]
        equal((told["closed"], told["totals_counted"], len(told["gaps"])), (True, True, 1), "gaps", told["gaps"])
        matches_own_counts(of_child[0], run.counts, "forked")
        equal(of_child[0]["process"]["inherited_blocks"], 256, "blocks born with")
        names = ("allocations", "total_bytes", "frees", "live_blocks", "live_bytes", "peak_bytes")
        equal([of_child[0][name] for name in names], [of_child[1][name] for name in names], names)


def main():
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    stopped(program)
    killed(program)
    partly(program)
    forked(program)
    finish()


if __name__ == "__main__":
    main()
