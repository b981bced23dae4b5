# SPDX-License-Identifier: MIT
"""recovery.py CASE: the collector is killed in the middle; the program goes on. The next command goes on
with the file, and each event is in it once."""

import json
import os
import random
import signal
import subprocess
import sys
import time

from recorded import (HERE, child_of, events, matches_own_counts, only_recording, recordings, start,
                      wait_until)
from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, finish, is_gone, report, scratch)

THREADS = 4
PAIRS = 30000  # of each thread: all of it fits the buffers


def check_unfinished(path, what):
    """What is there already can be read, unless the file had only just been made."""
    told = execute([MEMTRACE, "report", "--json", path])
    if told.returncode == 0:
        equal(json.loads(told.stdout)["recording"]["closed"], False, what, "closed before it was")
    elif b"does not say which program it belongs to" not in told.stderr:
        fail(what, "the unfinished recording cannot be read:", told.stderr)


def kill_collector(delay, kill_program):
    """Events of the program, which had no collector from some moment on."""
    what = "collector killed after %.1f ms%s:" % (delay * 1e3, ", then the program" if kill_program else "")
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder, regions = scratch(), scratch(where="/dev/shm")
    counts = os.path.join(folder, "counts")
    recorder = start([program, counts, str(THREADS), str(PAIRS), "wait"], folder,
                     stdin=subprocess.PIPE, settings={"MEMTRACE_REGION_DIR": regions})
    pid = child_of(recorder.pid)
    recorder.stdout.readline()
    time.sleep(delay)
    recorder.kill()
    recorder.wait()
    if kill_program:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    recorder.stdin.close()  # only now the program may end by itself, however fast it was
    wait_until(lambda: is_gone(pid), what + " the program's end")
    recorder.stdout.close()
    recorder.stderr.close()
    for path in recordings(folder):
        check_unfinished(path, what)
    environment = clean_environment(MEMTRACE_REGION_DIR=regions)
    for _ in range(2):  # the second finds nothing to do
        listed = execute([MEMTRACE, "list"], environment)
        equal(listed.returncode, 0, what, "memtrace list", listed.stderr)
    equal(os.listdir(regions), [], what, "regions left behind")
    path = only_recording(folder, what)
    data = report(path)
    equal((data["recording"]["closed"], data["lost"], data["warnings"]), (True, 0, []), what,
          "closed, lost, warnings")
    matches_own_counts(data, counts, what)
    names = [(line[1], line[2]) for line in events(path) if line[0] == "alloc"]
    equal(len(set(names)), len(names), what, "allocations that are there twice")
    return len(names)


def main():
    generator = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    total = sum(kill_collector(generator.random() * 0.03, index % 2 == 1) for index in range(4))
    if total == 0:
        fail("nothing was recorded")
    print(total, "allocations recovered")


main()
finish()
