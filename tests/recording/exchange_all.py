# SPDX-License-Identifier: MIT
"""exchange_all.py: 700 threads, each of which frees a block of each one: half a million pairs. What each command says
is arithmetic, and the pairs cost no command more than a multiple of reading the events."""

import json
import os
import resource

from recorded import HERE, MEMTRACE, execute, only_recording, profiles, record
from harness import build, equal, fail, finish, scratch

THREADS = 700
PAIRS = THREADS * (THREADS - 1)
SECONDS = 10  # of processor time: ten times what it takes; a list kept in order took 16 for the first


def timed(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = execute([MEMTRACE, *words], timeout=100)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    equal(done.returncode, 0, *words, done.stderr.decode()[-300:])
    if spent > SECONDS:
        fail(*words, "took", spent, "s of processor time")
    return done.stdout


def check(path):
    rows = timed("query", "--format", "csv", path,
                 "SELECT count(*), sum(blocks), sum(bytes), max(blocks) FROM foreign_frees")
    equal(rows.split()[-1].decode(), "%d,%d,%d,1" % (PAIRS, PAIRS, 16 * PAIRS), path, "pairs")
    threads = json.loads(timed("report", "--json", path))["threads"]
    equal(sum(thread["freed_for_others"] for thread in threads), PAIRS, path, "freed for others")
    owners = [sorted(freed["thread"] for freed in thread["freed_of"]) for thread in threads
              if thread["freed_of"]]
    everyone = sorted(thread["id"] for thread in threads if thread["freed_of"])
    equal(len(owners), THREADS, path, "threads that freed")
    equal({len(list_) for list_ in owners}, {THREADS - 1}, path, "owners by thread")
    equal(set(owners[0]) < set(everyone), True, path, "owners are the threads")


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "exchange_all.c"), "gcc", "-O1")
    done = record([program, str(THREADS)], folder)
    equal(done.returncode, 0, "the program", done.stderr.decode()[-300:])
    recording = only_recording(folder, "exchange_all")
    check(recording)
    check(profiles(folder)[0])
    timed("report", "--size", "16", "--show-threads", recording)  # another way to add up
    other = scratch()
    record([program, "20"], other)
    merged = os.path.join(folder, "merged.mtr")
    timed("merge", "--output", merged, recording, only_recording(other, "the other one"))
    total = timed("query", "--format", "csv", merged, "SELECT sum(blocks) FROM foreign_frees")
    equal(total.split()[-1].decode(), str(PAIRS + 20 * 19), "merged")
    finish()


if __name__ == "__main__":
    main()
