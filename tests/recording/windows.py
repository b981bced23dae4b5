#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""windows.py [OPTION OF RECORD...]: what reports say of windows of a recording, with the cache and
without it, is what counting all events one by one says: reader.py decodes them, each thread's
frees find their allocations by name."""

import json
import os
import random
import sys

from recorded import HERE, MEMTRACE, clean_environment, only_recording, record, scratch, whole
from harness import build, equal, execute, finish, report
from reader import Recording

PAIRS, WINDOWS = 60000, 8


def lives_of(path):
    """Birth, death (None: never) and size of each heap block."""
    recording = Recording(path)
    births, deaths = {}, {}
    for event in recording.events():
        kind = type(event).__name__
        if kind == "Alloc":
            if recording.is_heap(event.context):
                births[event.block] = event.time, event.size
            if event.old:
                deaths[event.old] = event.time
        elif kind == "Free":
            deaths[event.block] = event.time
    lives = []
    for name, (born, size) in births.items():
        died = deaths.get(name)
        lives.append((born, None if died is None else max(died, born), size))
    return lives


def expected(lives, start, end):
    born = [size for birth, _, size in lives if start <= birth < end]
    freed = [size for _, death, size in lives if death is not None and start <= death < end]
    held = [size for birth, death, size in lives if birth < end and (death is None or death >= end)]
    return {"allocations": len(born), "total_bytes": sum(born), "frees": len(freed),
            "live_blocks": len(held), "live_bytes": sum(held)}


def ask(path, cache, *options):
    result = execute([MEMTRACE, "report", "--json", *options, path],
                     clean_environment(MEMTRACE_CACHE=cache))
    equal(result.returncode, 0, "report", options, result.stderr)
    return result.stdout


def main():
    options = sys.argv[1:]
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder = scratch()
    cache = scratch()
    under = record([program, os.path.join(folder, "counts"), "2", str(PAIRS)], folder, *options)
    equal(under.returncode, 0, "exit status", under.stderr)
    path = only_recording(folder, "windows")
    whole(report(path), "windows")
    lives = lives_of(path)
    last = max(max(birth, death or 0) for birth, death, _ in lives)
    generator = random.Random(str(options))
    for number in range(WINDOWS):
        start, end = sorted(generator.randrange(last // 1000) for _ in range(2))
        window = "--from", "%dus" % start, "--to", "%dus" % (end + 1)
        kept = ask(path, cache, *window)
        equal(kept, ask(path, "", *window), "with and without the cache", window)
        data = json.loads(kept)
        found = expected(lives, start * 1000, (end + 1) * 1000)
        equal({name: data[name] for name in found}, found, "window", number, window)
    finish()


main()
