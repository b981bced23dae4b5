#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cycles.py [--cycles N] [--seconds S] [SUBJECT...]: attaches to each of some programs and detaches
again, N times (200) or for S seconds, whichever is over first, and prints a line for each: cycles, how
long a thread was held, how long after its start the command had allocations counted, how long another
thread of the program did nothing at most beside `attach --dry-run`, which touches nothing, and beside
`attach`, and whether the program gave what it would have. Not part of the test suite; `benchmarks/run live --only cycles` makes its table.

    tests/attach/cycles.py --cycles 80       # some 2,000 cycles
    tests/attach/cycles.py --seconds 30 malloc16 dlopens

A program that does not move on within a minute is a deadlock, one that ends otherwise than with its
own status a crash. A refusal, as of a program whose threads all are in the allocator, is counted.
Needs a build folder: MEMTRACE=/path/of/bin/memtrace, else build/bin/memtrace."""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MEMTRACE = os.environ.get("MEMTRACE") or os.path.join(HERE, "..", "..", "build", "bin", "memtrace")
LIMIT = 60
LOOK_EVERY = 10  # of so many cycles one profile is looked into

PYTHON = """
import hashlib, sys, threading
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), done.set())).start()
print("ready", flush=True)
text = ""
while not (done.is_set() and text):
    text = ",".join(str(i * i) for i in range(3000))
print(hashlib.sha256(text.encode()).hexdigest())
"""

# Each that a thread may be taken from (collect/attach/attachstop.c).
CALLS = ("poll", "ppoll", "epoll_wait", "epoll_pwait", "select", "pselect6", "accept", "accept4", "recvfrom",
         "recvmsg", "wait4", "waitid", "pause", "nanosleep", "clock_nanosleep", "futex", "read")


# Place of context_count in a region's header (include/memtrace/format.h), and what it is before anything
# was counted: the root and two frames that stand for something else.
CONTEXT_COUNT, CONTEXTS_AT_FIRST = 72, 3


class Stuck(Exception):
    pass


class Counting(threading.Thread):
    """Looks each half millisecond at the region of a program that is being attached to: when the first
    allocation is counted. A point of the timeline, which comes each few thousand allocations, would tell
    it too late."""

    def __init__(self, pid, folder):
        super().__init__()
        self.pattern = os.path.join(folder, "regions", "%d.*.mtp" % pid)
        self.is_over = False
        self.start_at, self.after_ms = time.monotonic(), None
        self.start()

    def contexts(self):
        for path in glob.glob(self.pattern):
            try:
                with open(path, "rb") as region:
                    header = region.read(CONTEXT_COUNT + 8)
            except FileNotFoundError:
                continue
            if len(header) == CONTEXT_COUNT + 8:
                return int.from_bytes(header[CONTEXT_COUNT:], sys.byteorder)
        return 0

    def run(self):
        while not self.is_over:
            if self.contexts() > CONTEXTS_AT_FIRST:
                self.after_ms = (time.monotonic() - self.start_at) * 1000
                return
            time.sleep(0.0005)

    def end(self):
        self.is_over = True
        self.join()
        return self.after_ms



class Subject:
    """A program that says "ready", and ends at an empty line. gaps: whether it tells them."""

    def __init__(self, *command, gaps=False, allocates=True):
        self.command, self.gaps, self.allocates = command, gaps, allocates
        self.process = None

    def start(self, folder):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=folder)
        self.process.stdout.readline()

    @property
    def pid(self):
        return self.process.pid

    def ask(self):
        """ms for which a thread of those at work did nothing at most since the last question, and how
        often they have worked."""
        self.process.stdin.write(b"g\n")
        self.process.stdin.flush()
        gap, works = self.process.stdout.readline().split()
        return int(gap) / 1e6, int(works)

    def ends_well(self):
        """Its output and status are what they are without us."""
        bare = subprocess.run(self.command, input=b"\n", capture_output=True, timeout=LIMIT, check=False)
        try:
            out, error = self.process.communicate(b"\n", timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Stuck("the program") from None
        return (b"ready\n" + out, error, self.process.returncode) == (bare.stdout, bare.stderr, bare.returncode)


class Redis(Subject):
    """redis-server, which redis-benchmark asks all the time."""

    KEYS = {"key %d" % number: "%d" % number * 50 for number in range(100)}

    def start(self, folder):
        self.socket = os.path.join(folder, "redis.socket")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--dir", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        end = time.monotonic() + LIMIT
        while self.client("ping") != "PONG":
            if time.monotonic() > end:
                raise Stuck("redis-server")
            time.sleep(0.05)
        for key, value in self.KEYS.items():
            self.client("set", key, value)
        self.load = subprocess.Popen(["redis-benchmark", "-s", self.socket, "-l", "-q", "-c", "10", "-t", "set,get,lpush,lpop"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def client(self, *words):
        return subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True, text=True,
                              timeout=LIMIT, check=False).stdout.strip()

    def ends_well(self):
        try:
            is_good = self.load.poll() is None and \
                all(self.client("get", key) == value for key, value in self.KEYS.items())
            self.load.kill()
            is_good = is_good and self.load.communicate(timeout=LIMIT)[1] == b""
            self.client("shutdown", "nosave")
            self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Stuck("redis-server") from None
        return is_good and self.process.returncode == 0


def subjects(folder):
    """Name: subject. Of those that are not installed: None."""
    program = os.path.join(folder, "cycled")
    library = os.path.join(folder, "plugin.so")
    source = os.path.join(HERE, "cycled.c")
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, source], check=True)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-DPLUGIN", "-o", library, source], check=True)
    found = {"malloc%d" % threads: Subject(program, "malloc", str(threads), gaps=True) for threads in (1, 2, 16)}
    found["python3"] = Subject(sys.executable, "-c", PYTHON)
    found["redis"] = Redis() if shutil.which("redis-server") and shutil.which("redis-benchmark") else None
    found["dlopens"] = Subject(program, "dlopens", library, gaps=True)
    found["forks"] = Subject(program, "forks", gaps=True, allocates=False)
    found["threads1000"] = Subject(program, "many", "1000", gaps=True)
    found["turns"] = Subject(program, "turns", allocates=False)
    found["alone"] = Subject(program, "alone", gaps=True)
    found.update({call: Subject(program, "asleep", call, allocates=False) for call in CALLS})
    return found


class Cycles:
    """What was seen of one program: ms of each attach and detach, and a verdict."""

    def __init__(self):
        self.count = self.empty = 0
        self.held, self.counting, self.before, self.beside, self.refused = [], [], [], [], []
        self.verdict = "good"


def memtrace(*arguments, folder):
    environment = {**os.environ, "MEMTRACE_REGION_DIR": os.path.join(folder, "regions")}
    try:
        return subprocess.run([MEMTRACE, *map(str, arguments)], capture_output=True, timeout=LIMIT, text=True,
                              env=environment, cwd=folder, check=False)
    except subprocess.TimeoutExpired:
        raise Stuck(arguments[0]) from None


def look(seen, profile, folder):
    data = json.loads(memtrace("report", "--json", profile, folder=folder).stdout)
    seen.empty += not any(point["allocations"] > 0 for point in data["timeline"])


def gap_beside_nothing(subject, took, folder):
    """The same of a time as long in which the command touches nothing."""
    subject.ask()
    end = time.monotonic() + took
    memtrace("attach", "--dry-run", subject.pid, folder=folder)
    time.sleep(max(0, end - time.monotonic()))
    return subject.ask()[0]


def one_cycle(subject, seen, folder):
    before = time.monotonic()
    took = 0
    is_looked_at = subject.allocates and seen.count % LOOK_EVERY == 0
    seen.count += 1
    if subject.gaps:
        subject.ask()
    counting = Counting(subject.pid, folder) if is_looked_at else None
    for command in ("attach", "detach"):
        done = memtrace(command, subject.pid, folder=folder)
        if command == "attach" and counting is not None and counting.end() is not None:
            seen.counting.append(counting.after_ms)
        if done.returncode != 0:
            seen.refused.append(done.stderr.strip())
            return
        seen.held.append(float(re.search(r"held for ([\d.]+) ms", done.stdout)[1]))
        if command == "attach" and subject.gaps:
            took = time.monotonic() - before
            seen.beside.append(subject.ask()[0])
    if subject.gaps:
        seen.before.append(gap_beside_nothing(subject, took, folder))
    if is_looked_at:
        look(seen, done.stdout.strip().rpartition("profile ")[2], folder)


def run(subject, cycles, seconds, folder):
    """Cycles of one program, from its start to its end."""
    seen = Cycles()
    end = time.monotonic() + seconds
    try:
        subject.start(folder)
        while seen.count < cycles and time.monotonic() < end and subject.process.poll() is None:
            one_cycle(subject, seen, folder)
        seen.verdict = "good" if subject.ends_well() else "CRASHED"
    except Stuck as stuck:
        seen.verdict = "STUCK: %s, process %d is left for you" % (stuck, subject.pid)
    return seen


def three(values):
    """Median, 99th of 100 and the longest."""
    values = sorted(values) or [0.0]
    return statistics.median(values), values[len(values) * 99 // 100], values[-1]


def line_of(name, seen):
    gaps = "  gap %5.2f, %5.2f ms" % (statistics.median(seen.before), statistics.median(seen.beside)) \
        if seen.beside else ""
    counting = "  counting after %3.0f ms" % three(seen.counting)[0] if seen.counting else ""
    return "%-15s %4d cycles  held %5.2f ms median, %6.2f p99, %6.2f at most%s%s  refused %d  %s" % (
        name, seen.count, *three(seen.held), counting, gaps, len(seen.refused), seen.verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("subject", nargs="*")
    options = parser.parse_args()
    everything, total, bad = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "regions"), 0o700)
        found = subjects(folder)
        for name in options.subject or found:
            if found[name] is None:
                print("%-15s not installed" % name)
                continue
            seen = run(found[name], options.cycles, options.seconds, folder)
            total += seen.count
            bad += seen.verdict != "good" or seen.empty != 0
            everything += seen.held
            print(line_of(name, seen), flush=True)
            if seen.empty:
                print("    in %d profiles there is nothing" % seen.empty)
            for line in sorted(set(re.sub(r"\d+", "N", text) for text in seen.refused)):
                print("   ", line)
    print("%d cycles, %d programs bad; held %.2f ms median, %.2f p99, %.2f at most; load %.1f" % (
        total, bad, *three(everything), os.getloadavg()[0]))
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
