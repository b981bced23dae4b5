# SPDX-License-Identifier: MIT
"""before_test.py CASE: what recordings say of the heap that a program had when it was attached to: how much
was there, and each block of it that goes, by arithmetic; in windows, in files made of them, where a recording begins in
the middle of the run, and where events are lost."""

import json
import os
import re
import signal
import sys

from attach_test import (FOLDER, HERE, PLAIN, REGIONS, SETTINGS, Subject, attach, build, clean_environment, equal, execute,
                         fail, finish, left_of, memtrace, near, need_ptrace, numbers, report)
from harness import MEMTRACE, wait_until

RECORDING = os.path.join(os.path.dirname(HERE), "recording")
sys.path.insert(0, RECORDING)
from recorded import matches_own_counts, own_counts  # noqa: E402


def path_of(name):
    return os.path.join(FOLDER, name)


def subject_of(threads):
    return Subject(build(os.path.join(HERE, "before.c"), flags=["-pthread"]), threads, environment=PLAIN)


def detached(subject):
    """The recording's path."""
    done = memtrace("detach", subject.pid)
    equal((done.returncode, done.stderr), (0, b""), "detach")
    return done.stdout.decode().strip().rpartition("recording ")[2]


def json_of(*arguments):
    done = memtrace(*arguments)
    equal((done.returncode, done.stderr), (0, b""), *arguments)
    return json.loads(done.stdout)


def windows(path, whole):
    """What is left at a moment, and what goes after it, is what there was; whatever the moment is."""
    left, freed_bytes, frees = left_of(whole)
    for moment in (0.001, 0.5, 0.9):
        time = "%dns" % (whole["process"]["duration_ns"] * moment)
        until = left_of(json_of("report", "--json", "--to", time, path))
        data = json_of("report", "--json", "--from", time, path)
        since = left_of(data)
        equal((until[0] - since[1], until[1] + since[1], until[2] + since[2]), (left, freed_bytes, frees), "until", time)
        equal((since[0], data["live_bytes"], data["live_blocks"]),
              (left, whole["live_bytes"], whole["live_blocks"]), "from", time)


def others(path, whole):
    """The same out of SQL, exports and files that were written anew."""
    left, freed_bytes, frees = left_of(whole)
    rows = memtrace("query", path, "SELECT live_bytes, frees FROM contexts WHERE function = '[before attach]'", "--format", "csv")
    equal(rows.stdout.decode().split()[1:], ["%d,%d" % (left, frees)], "SQL")
    equal(memtrace("report", "--show-marks", path).stdout.split(), [b"Marks", b"nothing"], "marks")
    exported = memtrace("export", "--format", "folded", "--cost", "leaked", path)
    equal([line.split()[-1] for line in exported.stdout.decode().splitlines() if line.startswith("[before attach] ")],
          [str(left)], "folded")
    massif = memtrace("export", "--format", "massif", path).stdout.decode()
    sizes = list(map(int, re.findall(r"mem_heap_B=(\d+)", massif)))
    equal((max(sizes), sizes[-1]), (whole["peak_bytes"], whole["live_bytes"]), "massif")
    for command in ("repack", "anonymize", "strip"):
        done = memtrace(command, path, "-o", path_of("other.mtr"))
        equal(done.returncode, 0, command, done.stderr)
        equal(left_of(report(path_of("other.mtr"))), (left, freed_bytes, frees), command)
        os.unlink(path_of("other.mtr"))


def says_it_was_left(path):
    """Wherever the program's end is told; and nothing is called leaked."""
    equal(report(path)["process"]["end"], "detached", "JSON")
    equal(json_of("info", "--json", path)["state"], "detached", "info")
    equal(json_of("query", "--format", "json", path, "SELECT end FROM processes"), [{"end": "detached"}], "SQL")
    text = memtrace("report", path).stdout.decode()
    equal(("detached from after" in text, "live then" in text, "eaked" in text), (True, True, False), "the text")


def test_recorded():
    """As test_before of attach_test.py, of a recording."""
    for threads in (3,):
        subject = subject_of(threads)
        attach(subject.pid, "--record", "-o", "%d.mtr" % threads)
        for step in range(5):
            gone, gone_bytes, now, new_bytes = numbers(subject)
        path = detached(subject)
        whole = report(path)
        says_it_was_left(path)
        left, freed_bytes, frees = left_of(whole)
        equal((freed_bytes, frees, frees), (gone_bytes, gone, 1500 * threads), "freed")
        near(whole["live_bytes"], now, "live")
        equal((whole["live_bytes"], whole["live_blocks"], whole["frees"]),
              (left + new_bytes, whole["allocations"], 0), "old and new")
        equal((whole["recording"]["foreign_frees"], whole["lost"]), (0, 0), "nothing is missing")
        at_first = left + freed_bytes
        near(at_first, now + gone_bytes - new_bytes, "at first")
        equal(max(point["live_bytes"] for point in whole["timeline"]), whole["peak_bytes"], "over time")
        if whole["peak_bytes"] < at_first:
            fail("held at most", whole["peak_bytes"], "but", at_first, "from the start")
        windows(path, whole)
        others(path, whole)
        subject.process.kill()
        subject.process.communicate()


def control(subject, *words):
    done = execute([MEMTRACE, "control", str(subject.pid), *words], clean_environment(**SETTINGS), FOLDER)
    equal((done.returncode, done.stderr), (0, b""), "control", words)


def test_midway():
    """A recording begins and ends while threads free old blocks, twice: it begins with what is left at that
    moment, and has each free from there on, no more and no less."""
    subject = Subject(build(os.path.join(HERE, "before_busy.c"), flags=["-pthread"]), 4, environment=PLAIN)
    attach(subject.pid)
    subject.say()
    control(subject, "record", "-o", path_of("first.mtr"))
    control(subject, "record", "off")
    control(subject, "record", "-o", path_of("second.mtr"))
    subject.say()
    subject.hear(b"done\n")
    control(subject, "record", "off")
    profile = left_of(report(str(subject.pid), SETTINGS))
    first, second = left_of(report(path_of("first.mtr"))), left_of(report(path_of("second.mtr")))
    equal(profile[2], 4 * 20000, "all are gone")
    equal(second[0], profile[0], "left at the end")
    if first[0] < second[0] + second[1] or first[2] + second[2] > profile[2]:
        fail("one begins where the other has ended, or later:", first, second, "of", profile)
    for name in ("first.mtr", "second.mtr"):
        data = report(path_of(name))
        equal((data["lost"], data["recording"]["foreign_frees"], data["recording"]["closed"]), (0, 0, True), name)
    memtrace("detach", subject.pid)
    subject.close(b"", 3)


def companion_of(pid):
    """The process that writes down what this one records."""
    def find():
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % name, encoding="utf-8", errors="replace") as file:
                    arguments = file.read().split("\0")
            except OSError:
                continue
            if "companion" in arguments and any(
                    argument.startswith(REGIONS) and os.path.basename(argument).startswith("%d." % pid)
                    for argument in arguments):
                found.append(int(name))
        return found
    found = []
    wait_until(find, "who records %d" % pid)
    return found[0]


def test_gaps():
    """Where events are lost, the totals are those that the program itself counted, what it had before among them."""
    pairs = 2000000
    counts = path_of("counts")
    subject = Subject(build(os.path.join(RECORDING, "counted.c"), optimize="-O2", flags=["-pthread"]), counts, 2, pairs, "asked",
                      environment=PLAIN)
    attach(subject.pid, "--record", "-o", "gaps.mtr")
    collector = companion_of(subject.pid)
    os.kill(collector, signal.SIGSTOP)
    try:
        subject.say()
        wait_until(lambda: sum(allocs for allocs, *_ in own_counts(counts).values()) == 2 * pairs, "all is done")
    finally:
        os.kill(collector, signal.SIGCONT)
    data = report(detached(subject))
    told = data["recording"]
    equal((told["closed"], told["totals_counted"], len(told["gaps"])), (True, True, 1), "gaps", told["gaps"])
    if not 0 < told["lost_allocs"] < 2 * pairs:
        fail("lost", told)
    matches_own_counts(data, counts, "by thread")
    left, freed_bytes, frees = left_of(data)
    equal((frees, freed_bytes), (256, sum(max(32, -(-(size * 10 + 1 + 8) // 16) * 16) for size in range(256))), "old blocks")
    equal((data["allocations"], data["allocations"] - data["frees"]), (2 * pairs, 256), "all")
    subject.close(b"", 0)


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]]()
    finish()
