# SPDX-License-Identifier: MIT
"""What the tests of recordings share: recording a program, reading what came out, comparing it with
the profile of the same run."""

import json
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (BUILD, MEMTRACE, clean_environment, equal, execute, fail, files, finish,  # noqa: E402
                     profiles, report, scratch, wait_until)

LIST_EVENTS = os.path.join(BUILD, "tests", "recording", "list_events")


def settings_for(folder, regions=None, **more):
    """Recordings and profiles go to the folder, regions to one that nobody else looks into."""
    return {"MEMTRACE_SUMMARY": "0", "MEMTRACE_KEEP_SMALL": "1", "MEMTRACE_OUTPUT": os.path.join(folder, "%e.%p.mtp"),
            "MEMTRACE_RECORD_OUTPUT": os.path.join(folder, "%e.%p.mtr"),
            "MEMTRACE_REGION_DIR": regions or scratch(where="/dev/shm"), **more}


def record(command, folder, *options, settings=None, **more):
    """`memtrace record` of a program, with a profile beside the recording."""
    return execute([MEMTRACE, "record", "--profile", *options, "--", *command],
                   clean_environment(**settings_for(folder, **(settings or {}))), **more)


def recordings(folder):
    return files(folder, ".mtr")


def report_so_far(path):
    """What the report says of a recording that may be under way; None of one that was made just now, in which
    nothing is yet."""
    told = execute([MEMTRACE, "report", "--json", "--depth", "0", path])
    return json.loads(told.stdout) if told.returncode == 0 else None


def is_closed(path):
    data = report_so_far(path)
    return data is not None and data["recording"]["closed"]


def only_recording(folder, what):
    found = recordings(folder)
    if len(found) != 1:
        fail(what, ": expected one recording, found", [os.path.basename(path) for path in found])
        finish()
    return found[0]


def whole(data, what):
    """A recording that its writer finished and that lacks nothing."""
    told = data["recording"]
    equal((told["closed"], told["lost_allocs"], told["lost_frees"], told["foreign_frees"]),
          (True, 0, 0, 0), what, "closed, lost and foreign")
    equal(data["warnings"], [], what, "warnings")


def costs(data, exact):
    """What each call path cost; by number of threads the moment of the peak may differ."""
    names = ("total_bytes", "allocations", "frees", "live_bytes", "live_blocks", "temporary")
    names += ("peak_bytes",) if exact else ()
    return {context["hash"]: {name: context[name] for name in names} | {
        "lifetimes": sum(context["lifetimes"])}
        for part in ("contexts", "mappings", "pools") for context in data[part]}


def by_thread(data):
    names = ("allocations", "frees", "total_bytes", "freed_bytes", "live_bytes", "freed_for_others")
    return {thread["id"]: {name: thread[name] for name in names} | {
        "freed_of": sorted(thread["freed_of"], key=lambda foreign: foreign["thread"])}
        for thread in data["threads"]}


def same_as_profile(recorded, profiled, what):
    """All that both tell must be the same; with one thread to the byte, the peak included."""
    exact = len(profiled["threads"]) == 1
    got, expected = costs(recorded, exact), costs(profiled, exact)
    for name in sorted(set(got) | set(expected)):
        if got.get(name) != expected.get(name):
            fail(what, "call path", name, ": recording", got.get(name), "profile", expected.get(name))
            break
    equal(by_thread(recorded), by_thread(profiled), what, "threads")
    bound = recorded["peak_error_bytes"] + profiled["peak_error_bytes"]
    if abs(recorded["peak_bytes"] - profiled["peak_bytes"]) > bound:
        fail(what, "maximum", recorded["peak_bytes"], "and", profiled["peak_bytes"],
             "but the bounds are", recorded["peak_error_bytes"], profiled["peak_error_bytes"])


def both(folder, what):
    """Recording and profile of the only run in the folder, compared."""
    recorded = report(only_recording(folder, what))
    found = profiles(folder)
    if equal(len(found), 1, what, "profiles"):
        same_as_profile(recorded, report(found[0]), what)
    return recorded


def events(path):
    """Lines of list_events.c, split."""
    result = execute([LIST_EVENTS, path])
    if result.returncode != 0:
        fail("list_events", path, result.stderr.decode())
        finish()
    return [line.split() for line in result.stdout.decode().splitlines()]


# ---- A program that counts its own events (counted.c) ----

COUNTS = struct.Struct("8Q")


def own_counts(path):
    """By thread: events begun and done."""
    with open(path, "rb") as file:
        raw = file.read()
    found = {}
    for place in range(len(raw) // COUNTS.size):
        tid, allocs_begun, allocs_done, frees_begun, frees_done, *_ = COUNTS.unpack_from(
            raw, place * COUNTS.size)
        if tid != 0:
            found[tid] = (allocs_done, allocs_begun, frees_done, frees_begun)
    return found


def matches_own_counts(data, path, what):
    """Each thread's recorded events are those it did: the one under way may be in or not."""
    threads = {thread["tid"]: thread for thread in data["threads"]}
    for tid, (allocs_done, allocs_begun, frees_done, frees_begun) in own_counts(path).items():
        thread = threads.get(tid, {"allocations": 0, "frees": 0})
        if not allocs_done <= thread["allocations"] <= allocs_begun:
            fail(what, "thread", tid, "recorded", thread["allocations"], "allocations, did",
                 allocs_done, "to", allocs_begun)
        if not frees_done <= thread["frees"] <= frees_begun:
            fail(what, "thread", tid, "recorded", thread["frees"], "frees, did", frees_done, "to",
                 frees_begun)


def child_of(pid):
    """The only child of a process, once it has one."""
    path = "/proc/%d/task/%d/children" % (pid, pid)
    wait_until(lambda: open(path).read().split(), "a child of %d" % pid)
    return int(open(path).read().split()[0])


def start(command, folder, *options, settings=None, **more):
    """`memtrace record` of a program in the background, its output a pipe."""
    return subprocess.Popen(
        [MEMTRACE, "record", *options, "--", *command], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=clean_environment(**settings_for(folder, **(settings or {}))),
        **more)


def number_in(text, pattern):
    return int(re.search(pattern, text).group(1).replace(",", ""))
