#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""heaptrack_print reads our heaptrack files, and what it adds up is what the report says: calls,
temporary allocations, peak and leaked bytes, in all and by innermost function; of several
threads and of python3. What has no events is refused."""

import os
import re
import subprocess

from exported import HERE, equal, export, finish, record, recorded, recordings, report, scratch
from harness import MEMTRACE, build, have
from heaptrackprint import PARTS, by_function, known, printed

def check(source, folder, what):
    data = report(source)
    path = os.path.join(folder, "out.zst")
    export(source, "--format", "heaptrack", "--output", path)
    for cost, part in PARTS.items():
        text, found = printed(path, folder, cost)
        total = sum(context[part] for context in data["contexts"])
        equal(sum(found.values()), total, what, cost, "in all")
        if cost != "temporary":
            equal(known(found), by_function(data, part), what, cost, "by function")
    for pattern, expected in ((r"calls to allocation functions: (\d+)", data["allocations"]),
                              (r"temporary memory allocations: (\d+)", data["temporary"])):
        equal(int(re.search(pattern, text).group(1)), expected, what, pattern)
    os.unlink(path)
    return data


def check_filters(source, folder):
    """What filters select."""
    path = os.path.join(folder, "filtered.zst")
    for options in (["--function", "^leak"], ["--not-function", "recurse"], ["--size", "100..200"],
                    ["--size", "100..", "--path-depth", "3.."]):
        data = report(source, None, *options)
        export(source, "--format", "heaptrack", *options, "--output", path)
        equal(data["allocations"] > 0, True, *options, "select something")
        for cost in ("allocations", "temporary", "leaked"):
            equal(sum(printed(path, folder, cost)[1].values()),
                  sum(context[PARTS[cost]] for context in data["contexts"]), *options, cost)
        # heaptrack's maximum is that of what is selected, ours what of it was held at the program's.
        peak = sum(printed(path, folder, "peak")[1].values())
        equal(data["peak_bytes"] <= peak <= data["total_bytes"], True, *options, "peak", peak)


def check_packing(source, folder):
    """The same bytes, however they are packed."""
    plain = {}
    for ending, unpack in (("txt", ["cat"]), ("gz", ["gzip", "-dc"]), ("zst", ["zstd", "-dc"])):
        path = os.path.join(folder, "packed." + ending)
        export(source, "--format", "heaptrack", "--output", path)
        with open(path, "rb") as file:
            plain[ending] = subprocess.run(unpack, stdin=file, stdout=subprocess.PIPE, check=True).stdout
    equal(plain["gz"] == plain["txt"] and plain["zst"] == plain["txt"], True, "packed alike")
    equal(plain["txt"].startswith(b"v 10400 3\nX "), True, "version and command")
    with open(os.path.join(folder, "packed.zst"), "rb") as file:
        equal(export(source, "--format", "heaptrack") == file.read(), True, "stdout is zstd")


def check_refused(recording, profile, folder):
    """No events are made up: one line says what to do."""
    path = os.path.join(folder, "refused.zst")
    for source, options, word in ((profile, [], b"memtrace record"), (recording, ["--leaked"], b"how a block ended"),
                                  (recording, ["--lifetime", "..1h"], b"how a block ended")):
        done = subprocess.run([MEMTRACE, "export", "--format", "heaptrack", *options, "--output", path, source],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal((done.returncode, done.stderr.count(b"\n"), word in done.stderr, os.path.exists(path)),
              (1, 1, True, False), options, done.stderr)


def main():
    have("heaptrack_print", "zstd")
    folder = scratch()
    recording, profile = recorded(folder)
    check(recording, folder, "recording")
    check_refused(recording, profile, folder)
    check_filters(recording, folder)
    check_packing(recording, folder)
    threads = scratch()
    record([build(os.path.join(HERE, "..", "recording", "exchange.c"), flags=["-pthread"]), "2000"], threads)
    check(recordings(threads)[0], threads, "threads that free each other's blocks")
    python = scratch()
    record(["/usr/bin/python3", "-c", "import json, re; [json.dumps(list(range(i))) for i in range(50)]"],
           python, settings={"PYTHONMALLOC": "malloc"})
    equal(check(recordings(python)[0], python, "python3")["allocations"] > 20000, True, "python3's calls")
    finish()


main()
