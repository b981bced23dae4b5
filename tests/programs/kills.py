# SPDX-License-Identifier: MIT
"""kills.py MODE COUNT [SEED]: SIGKILLs a program with four allocating threads at random moments,
start-up included. Each time the profile is there, can be read, and its sums agree but for the one
event that each thread had under way."""

import os
import random
import signal
import subprocess
import sys
import time

from harness import (MEMTRACE, PRELOAD, build, clean_environment, consistent, equal, execute, fail,
                     finish, profiles, report, scratch)

THREADS = 5


def kill_once(program, folder, regions, delay, from_start):
    """True if the program had got far enough to have a profile."""
    process = subprocess.Popen(
        [program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=clean_environment(LD_PRELOAD=PRELOAD if "preload" in folder else None,
                              MEMTRACE_REGION_DIR=regions,
                              MEMTRACE_OUTPUT=os.path.join(folder, "%p.mtp")))
    if not from_start:
        process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    equal(process.wait(), -signal.SIGKILL, "the way it ended")
    process.stdout.close()
    return not from_start


def check_profile(path, what):
    data = report(path)
    # one event under way per thread: its block may be counted in one place and not yet in the other
    for context in data["contexts"]:
        if context["frees"] > context["allocations"] or context["live_bytes"] < 0:
            fail(what, "more freed than allocated:", context)
    for field, total in (("allocations", "allocations"), ("frees", "frees")):
        contexts = sum(context[field] for context in data["contexts"])
        threads = sum(thread[field] for thread in data["threads"])
        equal(contexts, data[total], what, field)
        if abs(threads - contexts) > THREADS:
            fail(what, "threads count", threads, field, "and contexts", contexts)
    equal(sum(context["total_bytes"] for context in data["contexts"]), data["total_bytes"], what, "bytes")
    equal(sum(context["peak_bytes"] for context in data["contexts"]), data["peak_bytes"], what, "peak")
    equal(data["lost"], 0, what, "lost")
    return data["allocations"]


def main():
    mode, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
    print("seed", seed, flush=True)
    generator = random.Random(seed)
    seen = read = 0
    for index in range(count):
        program = build("killed.c", ("gcc", "clang")[index % 2], "-O2", mode)
        folder, regions = scratch(prefix=mode), scratch(where="/dev/shm")
        from_start = index % 5 == 4
        delay = generator.random() * (0.01 if from_start else 0.08)
        what = "kill %d (%s, %.2f ms):" % (index, mode, delay * 1e3)
        must_exist = kill_once(program, folder, regions, delay, from_start)
        listed = execute([MEMTRACE, "list"], clean_environment(MEMTRACE_REGION_DIR=regions))
        equal(listed.returncode, 0, what, "memtrace list", listed.stderr.decode())
        found = profiles(folder)
        if must_exist:
            equal(len(found), 1, what, "profiles")
        for path in found:
            events = check_profile(path, what)
            seen += events
            read += 1
            if must_exist and events == 0:
                fail(what, "nothing was counted")
        equal(os.listdir(regions), [], what, "regions left behind")
        for path in found:
            os.unlink(path)
    print(read, "profiles of", count, "kills,", seen, "allocations in them")
    finish()


main()
