#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""queued.py [--count N]: `memtrace record --to HOST --queue SIZE`: the local file holds what is still to be sent and no
more; recorder, sender and receiver are killed N times each, and what arrives is all that the program did."""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time

from streamed import (HERE, MEMTRACE, PATIENCE, Gather, build, clean_environment, equal, execute, fail, finish, make_token,
                      pause, received, recordings, scratch, send, settings_for, wait_until)
sys.path.insert(0, HERE)  # tests/programs has a module of that name, too
from beside import senders
from recorded import matches_own_counts, own_counts, report, whole

QUEUED_MOST = (1 << 20) * 3.2  # what a file with --queue 1M may take
RESERVE = 2 << 20  # kept free for a recording's end, and freed in steps


def allocated(path):
    """Bytes on the disk; 0: it is not there any more."""
    try:
        return os.stat(path).st_blocks * 512
    except FileNotFoundError:
        return 0


class Recorded:
    """A recorder of tests/recording/counted.c, which says itself what it does."""

    def __init__(self, program, port, *options, events=None, how="wait", threads=2, regions=None):
        self.folder, self.counts = scratch(), os.path.join(scratch(), "counts")
        self.regions = regions or scratch(where="/dev/shm")
        words = [program, self.counts, str(threads), *([str(events), how] if events else [])]
        self.settings = clean_environment(**settings_for(self.folder, regions=self.regions))
        self.process = subprocess.Popen(
            [MEMTRACE, "record", "--embed", "none", "--to", "127.0.0.1:%d" % port, *options, "--", *words],
            env=self.settings, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until(lambda: recordings(self.folder), "a recording begins")
        self.path = recordings(self.folder)[0]

    def done(self):
        return sum(allocs for allocs, *_ in own_counts(self.counts).values())

    def end(self, seconds=PATIENCE):
        self.process.stdin.close()
        self.process.stdin = None
        errors = self.process.communicate(timeout=seconds)[1].decode()
        equal(self.process.returncode, 0, "the recorder", errors)
        return errors


def only_received(there, what):
    found = received(there)
    equal(len(found), 1, what, "received", found)
    return found[0]


def frees(program):
    """All was acknowledged, and hardly anything of it takes room here; it is gone when all is there."""
    there = scratch()
    token = ("--token", make_token(scratch()))
    gather = Gather(there, *token)
    run = Recorded(program, gather.port, *token, "--queue", "64M", events=1000000)
    wait_until(lambda: run.done() == 2000000, "all is done")
    wait_until(lambda: os.path.getsize(run.path) > 4 << 20, "the file grows")
    wait_until(lambda: allocated(run.path) < RESERVE, "what was sent is freed")
    told = execute([MEMTRACE, "report", run.path])
    equal((told.returncode, len(told.stderr.splitlines()), b"is only the rest of a recording: its first " in told.stderr),
          (1, 1, True), "a report of the rest", told.stderr)
    errors = run.end()
    equal(("read it with" in errors, recordings(run.folder)), (False, []), "the local file is gone", errors)
    equal(len(execute(["sh", "-c", "ls -A %s" % run.folder]).stdout.split()), 0, "nothing is left")
    gather.end()
    data = report(only_received(there, "frees"))
    whole(data, "frees")
    matches_own_counts(data, run.counts, "frees")


def while_it_stands(run, events):
    """Until the program, whose receiver stands still, has done so many: bytes of the local file at most."""
    most = 0
    while run.done() < events:
        if run.process.poll() is not None:
            fail("the recorder ended", run.process.stderr.read())
            finish()
        most = max(most, allocated(run.path))
        pause(0.02)
    return most


def bounded(program):
    """The receiver stands still: the file grows to the queue and no further, and what is lost is counted."""
    there = scratch()
    gather = Gather(there)
    run = Recorded(program, gather.port, "--queue", "1M", "--on-lag", "drop", events=3000000)
    gather.process.send_signal(signal.SIGSTOP)
    most = while_it_stands(run, 6000000)
    gather.process.send_signal(signal.SIGCONT)
    if most > QUEUED_MOST:
        fail("the local file took", most)
    run.end()
    gather.end()
    data = report(only_received(there, "bounded"))
    lost = data["recording"]["lost_allocs"]
    did = sum(allocs for allocs, *_ in own_counts(run.counts).values())
    threads = [thread["allocations"] for thread in data["threads"] if thread["tid"] in own_counts(run.counts)]
    equal(lost > 0, True, "something was lost")
    equal(sum(threads), did, "what was lost is in the totals")
    gaps = data["recording"]["gaps"]
    equal((sum(gap["allocations"] for gap in gaps), data["recording"]["totals_counted"]), (lost, True), "gaps", gaps)


def thinned(program):
    """The receiver stands still, and what comes is more than all room there is: nothing is lost, the program is done before
    the receiver goes on, and what is recorded stands for the rest."""
    there = scratch()
    gather = Gather(there)
    gather.process.send_signal(signal.SIGSTOP)
    run = Recorded(program, gather.port, "--queue", "1M", "--on-lag", "thin", events=2500000)
    most = while_it_stands(run, 5000000)
    gather.process.send_signal(signal.SIGCONT)
    if most > QUEUED_MOST:
        fail("the local file took", most)
    run.end()
    gather.end()
    path = only_received(there, "thinned")
    for command in ("report", "info"):
        said = execute([MEMTRACE, command, path]).stdout.decode()
        equal(len(re.findall(r"^ *thinned +[0-9.]+ s to [0-9.]+ s: one allocation in up to [0-9.]+ [KM]iB", said, re.M)) > 0,
              True, command, said[:2000])
    data = report(path)
    whole(data, "thinned")
    matches_own_counts(data, run.counts, "thinned")
    told, events = data["recording"], report(path, None, "--from", "0s", "--to", "1000s")
    equal((told["sampled"], told["totals_counted"], told["gaps"], len(told["thinned"]) > 0), (True, True, [], True), "told",
          told)
    if not told["events"] < 9000000:
        fail("all was recorded:", told["events"])
    for span in told["thinned"]:
        if not (span["from_ns"] < span["to_ns"] and 256 <= span["sample_bytes"] <= 64 << 20):
            fail("thinned", span)
    for name in ("allocations", "total_bytes"):
        error = events["recording"]["standard_errors"][name]
        if not 0 < abs(events[name] - data[name]) < 6 * error:
            fail(name, "of events", events[name], "+-", error, "but the program counted", data[name])


def ends(program, comes_back):
    """The program ends while the receiver stands still, from the beginning on, and the queue is full: also then the file
    takes no more. Who comes back in time gets all; else what is lost is counted."""
    there = scratch()
    gather = Gather(there)
    gather.process.send_signal(signal.SIGSTOP)
    run = Recorded(program, gather.port, "--queue", "1M", "--linger", "60s" if comes_back else "2s", events=500000)
    wait_until(lambda: run.done() == 1000000, "all is done")
    path, most, told = run.path, 0, []
    descriptor = os.open(path, os.O_RDONLY)  # it is removed when all is there
    run.process.stdin.close()
    run.process.stdin = None
    full = time.monotonic() + 3
    while run.process.poll() is None:
        most = max(most, os.fstat(descriptor).st_blocks * 512)
        if comes_back and not told and time.monotonic() > full:
            gather.process.send_signal(signal.SIGCONT)
            told.append(True)
        pause(0.02)
    os.close(descriptor)
    errors = run.process.stderr.read().decode()
    equal(run.process.returncode, 0, "the recorder", errors)
    if most > QUEUED_MOST:
        fail("the local file took", most)
    if not comes_back:
        equal(len([line for line in errors.splitlines() if "at the program's end are lost" in line]), 1, "the line", errors)
        gather.process.send_signal(signal.SIGCONT)
        sender = send(path, gather.port)
        equal(sender.wait(), 0, "sent later", sender.lines)
    gather.end()
    data = report(only_received(there, "ends"))
    if comes_back:
        whole(data, "ends")
    else:
        equal((data["recording"]["lost_allocs"] > 0, data["recording"]["totals_counted"]), (True, True), "lost at the end")
    matches_own_counts(data, run.counts, "ends")


def rest(program):
    """The network is gone: the rest is sent later, from what is left of the file."""
    there = scratch()
    gather = Gather(there)
    run = Recorded(program, gather.port, "--queue", "64M", "--linger", "1s", events=1000000)
    wait_until(lambda: allocated(run.path) < RESERVE < os.path.getsize(run.path), "something is freed")
    gather.end(signal.SIGKILL)
    wait_until(lambda: run.done() == 2000000, "all is done")
    errors = run.end()
    equal("are only here; memtrace send" in errors, True, "the line", errors)
    gather = Gather(there)
    sender = send(run.path, gather.port)
    equal(sender.wait(), 0, "sent later", sender.lines)
    gather.end()
    data = report(only_received(there, "rest"))
    whole(data, "rest")
    matches_own_counts(data, run.counts, "rest")
    # Who lacks what was freed cannot have it again.
    other = Gather(scratch())
    sender = send(run.path, other.port)
    equal((sender.wait(), len(sender.said("lacks the first .* of .*, which are not here any more"))), (1, 1), "lacks",
          sender.lines)
    other.end()


def kills(program, count):
    there, regions = scratch(), scratch(where="/dev/shm")
    gather = Gather(there)
    port = gather.port
    run = Recorded(program, port, "--queue", "64M", events=600000, how="paced", regions=regions)
    for _ in range(count):
        before = sum(map(os.path.getsize, received(there)))
        run.process.stdin.write(b"..")  # also who was quick has more to send
        run.process.stdin.flush()
        wait_until(lambda: sum(map(os.path.getsize, received(there))) > before or run.process.poll() is not None,
                   "more arrives")
        for sender in senders(run.process.pid)[:random.randint(0, 1)]:
            os.kill(sender, signal.SIGKILL)
        pause(0.3)
        gather.end(signal.SIGKILL)
        gather = Gather(there, port=port)
        pause(0.3)
        old = senders(run.process.pid)
        for sender in old:
            os.kill(sender, signal.SIGKILL)
        wait_until(lambda: set(senders(run.process.pid)) - set(old), "another sender")
    # The recorder itself, and whoever goes on: each `memtrace list` that finds nobody does.
    run.process.kill()
    run.process.wait()
    run.process.stdin.close()

    def goes_on():
        execute([MEMTRACE, "list"], run.settings)
        return not recordings(run.folder)

    wait_until(goes_on, "all is sent, by whoever goes on, and the file is gone")
    gather.end()
    data = report(only_received(there, "kills"))
    equal((data["recording"]["closed"], data["warnings"]), (True, []), "kills")
    matches_own_counts(data, run.counts, "kills")


def refused():
    folder = scratch()
    for options, line in ((("--queue", "8M"), "--queue belongs to --to"),
                          (("--queue", "8M", "--rotate", "1M", "--to", "127.0.0.1:1"), "do not go together"),
                          (("--queue", "4K", "--to", "127.0.0.1:1"), "1M or more")):
        done = execute([MEMTRACE, "record", *options, "--", "/bin/touch", folder + "/ran"],
                       clean_environment(**settings_for(folder)))
        equal((done.returncode, line in done.stderr.decode(), os.path.exists(folder + "/ran")), (2, True, False), options,
              done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--only")
    chosen = parser.parse_args()
    program = build(os.path.join(os.path.dirname(HERE), "recording", "counted.c"), "gcc", "-O2")
    tests = {"refused": refused, "frees": lambda: frees(program), "bounded": lambda: bounded(program),
             "thinned": lambda: thinned(program),
             "ends": lambda: ends(program, True), "lost": lambda: ends(program, False),
             "rest": lambda: rest(program), "kills": lambda: kills(program, chosen.count)}
    for name, test in tests.items():
        if chosen.only in (None, name):
            test()
    finish()


if __name__ == "__main__":
    sys.exit(main())
