#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cycles.py [--cycles N] [--seconds S] [SUBJECT...]: attaches to each of some programs and detaches
again, N times (200) or for S seconds, whichever is over first, and prints a line for each: cycles, how
long a thread was held, and whether the program gave what it would have. Not part of the test suite:

    tests/attach/cycles.py                   # some 2,000 cycles, ten minutes on an idle machine
    tests/attach/cycles.py --seconds 30 malloc16 dlopens

A program that does not move on within a minute is a deadlock, one that ends otherwise than with its
own status a crash. A refusal, as of a program whose threads all are in the allocator, is counted.
Needs a build folder: MEMTRACE=/path/of/bin/memtrace, else build/bin/memtrace."""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MEMTRACE = os.environ.get("MEMTRACE") or os.path.join(HERE, "..", "..", "build", "bin", "memtrace")
LIMIT = 60

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

CALLS = ("nanosleep", "poll", "select", "epoll", "read", "recv", "join")


def subjects(folder):
    """Name: command."""
    program = os.path.join(folder, "cycled")
    library = os.path.join(folder, "plugin.so")
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, os.path.join(HERE, "cycled.c")], check=True)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-DPLUGIN", "-o", library,
                    os.path.join(HERE, "cycled.c")], check=True)
    found = {"malloc1": [program, "malloc", "1"], "malloc2": [program, "malloc", "2"],
             "malloc16": [program, "malloc", "16"], "python3": [sys.executable, "-c", PYTHON],
             "dlopens": [program, "dlopens", library], "forks": [program, "forks"]}
    found["alone"] = [program, "alone"]
    found.update({call: [program, "asleep", call] for call in CALLS})
    return found


class Stuck(Exception):
    pass


def run(command, pid, environment, folder):
    try:
        return subprocess.run([MEMTRACE, command, str(pid)], capture_output=True, timeout=LIMIT, text=True,
                              env=environment, cwd=folder, check=False)
    except subprocess.TimeoutExpired:
        raise Stuck(command) from None


def ends_well(command, process):
    """Its output and status are what they are without us."""
    bare = subprocess.run(command, input=b"\n", capture_output=True, timeout=LIMIT, check=False)
    try:
        out, error = process.communicate(b"\n", timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Stuck("the program") from None
    return (b"ready\n" + out, error, process.returncode) == (bare.stdout, bare.stderr, bare.returncode)


def cycle(command, options, folder):
    """Held times in ms of attach and of detach, refusals, and a verdict."""
    environment = {**os.environ, "MEMTRACE_REGION_DIR": os.path.join(folder, "regions")}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    held, refused, cycles = [], [], 0
    end = time.monotonic() + options.seconds
    try:
        process.stdout.readline()
        while cycles < options.cycles and time.monotonic() < end and process.poll() is None:
            for what in ("attach", "detach"):
                done = run(what, process.pid, environment, folder)
                if done.returncode == 0:
                    held.append(float(re.search(r"held for ([\d.]+) ms", done.stdout)[1]))
                else:
                    refused.append(done.stderr.strip())
            cycles += 1
        verdict = "good" if ends_well(command, process) else "CRASHED"
    except Stuck as stuck:
        verdict = "STUCK: %s, process %d is left for you" % (stuck, process.pid)
    return held, refused, cycles, verdict


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
            held, refused, cycles, verdict = cycle(found[name], options, folder)
            total += cycles
            bad += verdict != "good"
            everything += held
            print("%-10s %4d cycles  held %5.2f ms median, %6.2f at most  refused %d  %s" % (
                name, cycles, statistics.median(held or [0]), max(held or [0]), len(refused), verdict), flush=True)
            for line in sorted(set(re.sub(r"\d+", "N", text) for text in refused)):
                print("   ", line)
    everything.sort()
    print("%d cycles, %d bad; held %.2f ms median, %.2f p99; load %.1f" % (
        total, bad, statistics.median(everything or [0]), everything[len(everything) * 99 // 100] if everything else 0,
        os.getloadavg()[0]))
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
