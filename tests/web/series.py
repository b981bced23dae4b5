# SPDX-License-Identifier: MIT
"""series.py: each series of /timeline is what SQL counts: allocations and frees of each interval, what was never
freed, what the kernel said of the process; what is held at the edges of a window is held there. What a file does not
have is said to be missing, and the command's chart says so, too."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import Server, equal, execute, fail, finish, scratch  # noqa: E402
from recorded import only_recording, record  # noqa: E402
from harness import MEMTRACE, build, clean_environment, profiles  # noqa: E402

EVERY = "live,resident,swap,virtual,rate,frees,leaked"


def rows_of(path, sql):
    result = execute([MEMTRACE, "query", "--format", "json", path, sql], clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, sql, result.stderr)
    return json.loads(result.stdout)


def counts(edges, times):
    found = [0] * (len(edges) - 1)
    place = 0
    for time in sorted(times):
        while place < len(found) and time >= edges[place + 1]:
            place += 1
        if place < len(found) and time >= edges[0]:
            found[place] += 1
    return found


def check_intervals(server, path, source, where="1", **asked):
    data = server.data("/r/%d/timeline" % source, series=EVERY if "series" not in asked else asked.pop("series"), **asked)
    edges = data["intervals"]["time_ns"]
    blocks = rows_of(path, "SELECT born, freed, size FROM allocations WHERE class = 'heap' AND (%s)" % where)
    end = edges[-1]
    for name, times in (("rate", [row["born"] for row in blocks]), ("frees", [row["freed"] for row in blocks if row["freed"] is not None])):
        want = counts(edges, times)
        got = [round(rate * (last - first) / 1e9) for rate, first, last in zip(data["intervals"][name], edges, edges[1:])]
        equal(got, want, name, source, asked)
    if "leaked" in data["intervals"]:
        kept = [row for row in blocks if row["freed"] is None or row["freed"] >= end]
        equal(data["intervals"]["leaked"], [sum(row["size"] for row in kept if row["born"] < last) for last in edges[1:]], "leaked", asked)
    return data


def check_process(data, path):
    samples = rows_of(path, "SELECT time, swap_bytes, virtual_bytes FROM samples ORDER BY time")
    for at, swap, virtual in zip(data["time_ns"], data["series"]["swap"], data["series"]["virtual"]):
        last = [row for row in samples if row["time"] <= at][-1:] or samples[:1]
        equal((swap, virtual), (last[0]["swap_bytes"], last[0]["virtual_bytes"]), "at", at)


def check_edges(server, path, **window):
    """The curve begins and ends with what is held there."""
    data = server.data("/r/1/timeline", series="live", **window)
    held = server.data("/r/1", **window)["totals"]["live_bytes"]
    first = rows_of(path, "SELECT coalesce(sum(size), 0) AS bytes FROM allocations WHERE class = 'heap' AND born < %d AND"
                          " coalesce(freed, 1e18) >= %d" % (data["time_ns"][0], data["time_ns"][0]))[0]["bytes"]
    equal((data["series"]["live"][0], data["series"]["live"][-1]), (first, held), "at the edges of", window)


def chart(path, series):
    result = execute([MEMTRACE, "report", "--timeline-series", series, path], clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, series, result.stderr)
    return result.stdout.decode()


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "series.c"), libraries=["-lpthread"])
    paths = []
    for number, (count, options) in enumerate(((["20000"], ["--precise"]), (["20000"], []), (["400000", "32"], []))):
        there = os.path.join(folder, str(number))
        os.mkdir(there)
        equal(record([program, *count], there, *options).returncode, 0, "the program")
        paths.append(only_recording(there, "series"))
    server = Server(*paths, profiles(os.path.join(folder, "0"))[0])
    for source, path in enumerate(paths[:2], 1):
        check_process(check_intervals(server, path, source), path)
        check_intervals(server, path, source, intervals=7)
        check_intervals(server, path, source, "size > 50", size="51..")
    window = {"from": "30%", "to": "70%"}
    view = server.data("/r/1/timeline", **window)["intervals"]["time_ns"]
    check_intervals(server, paths[0], 1, "born < %d AND coalesce(freed, 1e18) >= %d" % (view[-1], view[0]), **window)
    for window in (window, {"to": "50%"}, {"from": "20%"}, {"at": "90%"}, {"from": "10%", "to": "35%", "size": "20.."}):
        if "size" not in window:
            check_edges(server, paths[0], **window)
    # Of more events the slices tell, with as many intervals as there are edges.
    long = check_intervals(server, paths[2], 3, series="rate,frees")
    if len(long["intervals"]["time_ns"]) < 20:
        fail("intervals of the long recording:", long["intervals"]["time_ns"])
    check_intervals(server, paths[2], 3)
    missing = server.data("/r/4/timeline", series=EVERY)
    equal((missing["missing"], sorted(missing["series"]), sorted(missing["intervals"])),
          (["swap", "virtual", "frees", "leaked"], ["live", "resident"], ["rate", "time_ns"]), "of a profile")
    equal(server.data("/r/1/timeline", series="live")["missing"], [], "nothing is missing")
    server.close()
    told = chart(paths[0], "virtual,frees,leaked,swap")
    for title in ("address space", "frees per second", "allocated by then and never freed"):
        if title + "\n" not in told:
            fail("no chart of", title, told)
    told = chart(profiles(os.path.join(folder, "0"))[0], EVERY)
    for title in ("swapped out", "address space", "frees per second", "allocated by then and never freed"):
        if title + ": not recorded\n" not in told:
            fail("a profile has", title, told)


main()
finish()
