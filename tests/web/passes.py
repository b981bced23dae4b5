# SPDX-License-Identifier: MIT
"""Lifetimes, sizes, the heap and mappings say what reports say of the same file; what they have over
time adds up to it; and one pass serves them all."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "asking"))

from serving import MEMTRACE, Server, clean_environment, equal, execute, fail, finish, scratch, table  # noqa: E402
from queried import ask, build, busy  # noqa: E402
from processmaps import history, smaps  # noqa: E402
from recorded import only_recording, record  # noqa: E402

import json  # noqa: E402

MAPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mapped.c")
MIB = 1 << 20
FILTERS = ({}, {"size": "24..3000"}, {"function": "alpha"}, {"to": "60%"}, {"from": "25%"},
           {"from": "30%", "to": "70%", "not-function": "beta"}, {"leaked": ""})


def reports(path, show, filters):
    """The tables of a report by name: rows as dictionaries, without what is for people."""
    options = [text for name, value in filters.items()
               for text in (["--" + name, value] if value else ["--" + name])]
    result = execute([MEMTRACE, "report", show, "--json", "--limit", "0", *options, path],
                     clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, show, options, result.stderr)
    return {table["name"]: table["rows"] for table in json.loads(result.stdout)["reports"]}


def comparable(rows):
    """Without frames, whose members differ; numbers as the page has them."""
    def value(cell):
        if isinstance(cell, float):
            return float("%.4g" % cell)
        return int(cell, 16) if isinstance(cell, str) and cell.startswith("0x") else cell
    return [{name: value(cell) for name, cell in row.items() if name != "path"} for row in rows]


def check_lifetimes(server, path, filters):
    told = reports(path, "--show-lifetimes", filters)
    data = server.data("/r/1/lifetimes", per="path", over="time", **filters)
    equal(comparable(table(data["percentiles"])), comparable(told["lifetimes"]), "lifetimes", filters)
    equal(comparable(table(data["all"])), comparable(told["lifetimes-all"]), "lifetimes of all", filters)
    freed = sum(map(sum, data["counts"]))
    is_cut = "from" in filters or "to" in filters
    wanted = told["lifetimes-all"][0]["freed"]
    if freed != wanted and not (is_cut and freed >= wanted):
        fail("lifetimes over time", filters, ": the rows have", freed, "of", wanted)
    edges = [row["from_ns"] for row in data["time"]] + [data["time"][-1]["to_ns"]]
    equal(edges, sorted(edges), "times grow", filters)
    equal([row["to_ns"] for row in data["time"][:-1]], edges[1:-1], "times follow each other")


def check_sizes(server, path, filters):
    told = reports(path, "--show-sizes", filters)
    data = server.data("/r/1/sizes", per="path", over="time", **filters)
    got = [row for row in data["classes"] if row["allocations"] or row["live_blocks"]]
    wanted = told["sizes"]
    equal([[row[name] for name in ("from", "to", "allocations", "total_bytes", "live_blocks",
                                   "live_bytes")] for row in got],
          [[row[name] for name in ("least_bytes", "most_bytes", "allocations", "total_bytes",
                                   "live_blocks", "live_bytes")] for row in wanted], "sizes", filters)
    equal(comparable(table(data["paths"])), comparable(told["sizes-by-path"]), "sizes by path", filters)
    equal([sum(row[i] for row in data["counts"]) for i in range(65)],
          [row["allocations"] for row in data["classes"]], "sizes over time", filters)


def check_heap(server, path, filters):
    at = filters if "to" in filters else filters | {"at": "80%"}
    told = reports(path, "--show-fragmentation", at)
    for name, key in (("pages", "pages"), ("holes", "holes"), ("pins", "pins"), ("slack", "slack"),
                      ("regions", "regions")):
        rows = table(server.data("/r/1/heap/" + name, limit=100000, **at))
        equal(comparable(rows), comparable(told[key]), "heap", name, at)
    data = server.data("/r/1/heap", cells=4096, **at)
    whole = told["fragmentation"][0] if isinstance(told["fragmentation"], list) else told["fragmentation"]
    equal([data[name] for name in ("at_ns", "live_bytes", "slack_bytes", "pages", "holes_bytes",
                                   "live_blocks", "nearly_empty_pages", "holes")],
          [whole[name] for name in ("time_ns", "live_bytes", "slack_bytes", "pages", "hole_bytes",
                                    "live_blocks", "nearly_empty_pages", "holes")], "heap", at)
    for region in data["regions"]:
        size = int(region["end"], 16) - int(region["start"], 16)
        equal(len(region["cells"]), -(-size // data["cell_bytes"]), "cells of", region["start"])
    # A part of it, finer.
    region = max(data["regions"], key=lambda region: region["live_bytes"])
    part = server.data("/r/1/heap", start=region["start"], end=hex(int(region["start"], 16) + 8192), **at)
    equal([(other["start"], other["end"], len(other["cells"])) for other in part["regions"]],
          [(region["start"], hex(min(int(region["end"], 16), int(region["start"], 16) + 8192)),
            min(2, (int(region["end"], 16) - int(region["start"], 16)) // 4096))], "a part of the map")


def check_history(server, path):
    data = server.data("/r/1/heap/history")
    equal(data["time_ns"], sorted(data["time_ns"]), "history's times")
    for i in range(20, len(data["time_ns"]), 47):
        at = data["time_ns"][i]
        live = ask(path, "SELECT coalesce(sum(usable), 0) FROM allocations WHERE class = 'heap' AND"
                         " address IS NOT NULL AND born < %d AND coalesce(freed, 1e18) >= %d"
                   % (at, at))[0]
        live = next(iter(live.values()))
        # Threads' events come one stream after the other, a clock tick apart.
        if abs(data["live"][i] - live) > 0.25 * max(live, 1 << 20):
            fail("history at", at, ": live", data["live"][i], "and SQL says", live)
        if data["spread"][i] + 1 < data["live"][i]:
            fail("history at", at, ": pages", data["spread"][i], "hold", data["live"][i])
        moment = server.data("/r/1/heap", moment="%dns" % at)
        equal((moment["at_ns"], moment["live_bytes"]), (at, data["live"][i]), "the moment", at)
        held = sum(level / 255 * moment["cell_bytes"] for region in moment["regions"]
                   for level in region["cells"])
        cells = sum(level != 0 for region in moment["regions"] for level in region["cells"])
        if abs(held - moment["live_bytes"]) > cells * moment["cell_bytes"] / 255 + 1:
            fail("cells at", at, "hold", held, "of", moment["live_bytes"])
        # A part of the map has nothing of the others.
        region = moment["regions"][-1]
        part = server.data("/r/1/heap", moment="%dns" % at, start=region["start"], end=region["end"])
        equal(part["regions"], [region], "a part of the moment", at)


def check_mappings(server, path):
    rows = table(server.data("/r/2/mappings", all="", limit=100000))
    last = ask(path, "SELECT * FROM smaps WHERE time = (SELECT max(time) FROM smaps)")
    there = {int(row["start"], 16): (row["path"], row["rss"], row["dirty"], row["swap"], row["size"],
                                     row["permissions"][:3])
             for row in rows if row["mapped"] and row["path"] != "[vsyscall]"}
    wanted = {row["address"]: tuple(row[name] for name in ("name", "resident_bytes", "dirty_bytes",
                                                           "swap_bytes", "size", "protection"))
              for row in last if row["name"] != "[vsyscall]"}
    equal(set(there.items()) ^ set(wanted.items()), set(), "mappings as they were last, differing")
    times = [row["time"] for row in ask(path, "SELECT DISTINCT time FROM smaps ORDER BY time")]
    mine = [row for row in rows if row["mapped_by"] and "map_region" in row["mapped_by"]]
    equal([(row["size"] >= 8 * MIB, row["rss"] >= 8 * MIB, row["peak_rss"] == row["rss"],
            row["first_ns"], row["last_ns"], row["permissions"], row["kind"]) for row in mine],
          [(True, True, True, times[0], times[-1], "rw-p", "anonymous")], "what map_region() mapped")
    for row in mine + rows[:5]:
        history = server.data("/r/2/mappings/%d" % row["id"])["history"]
        wanted = ask(path, "SELECT time, resident_bytes, dirty_bytes, swap_bytes FROM smaps"
                           " WHERE address = %d ORDER BY time" % int(row["start"], 16))
        equal([history["time_ns"], history["rss"], history["dirty"], history["swap"]],
              [[other[name] for other in wanted] for name in ("time", "resident_bytes", "dirty_bytes",
                                                              "swap_bytes")], "history of", row["path"])
        equal((history["rss"][-1], max(history["rss"])), (row["rss"], row["peak_rss"]), "its rss")
    history = server.data("/r/2/mappings/0")["history"]
    wanted = ask(path, "SELECT time, sum(resident_bytes) AS rss, sum(dirty_bytes) AS dirty,"
                       " sum(swap_bytes) AS swap FROM smaps GROUP BY time ORDER BY time")
    equal([history["time_ns"], history["rss"], history["dirty"], history["swap"]],
          [[other[name] for other in wanted] for name in ("time", "rss", "dirty", "swap")], "all mappings")
    equal([server.ask("/r/2/mappings/" + number)[0] for number in ("00", "x", "100000")],
          [404, 404, 404], "mappings that there are not")


def check_mapping_filters(server, path):
    """The mappings that filters choose: those of smaps that fit, by plain counting; the command's; and their sums."""
    rows = smaps(path)
    found, last = history(rows)
    most = max(one["peak"] for one in found)
    for filters, holds in (({"mapping-permissions": "rw-p"}, lambda one: one["may"] == "rw-p"),
                           ({"mapping-permissions": "..x"}, lambda one: one["may"][2] == "x"),
                           ({"mapping-peak-rss": "1K..%d" % (most - 1)}, lambda one: 1024 <= one["peak"] < most),
                           ({"mapping-peak-rss": "%d.." % most, "mapping-permissions": ".w."},
                            lambda one: one["peak"] >= most and one["may"][1] == "w"),
                           ({"mapping": "2"}, lambda one: one["number"] == 2),
                           ({"mapping-peak-rss": "%d.." % (most + 1)}, lambda one: False)):
        chosen = {one["number"] for one in found if holds(one)}
        got = table(server.data("/r/2/mappings", all="", limit=100000, **filters))
        equal(sorted((row["id"], row["peak_rss"], row["permissions"]) for row in got),
              [(one["number"], one["peak"], one["may"]) for one in found if holds(one)], "mappings", filters)
        equal(sorted(row["id"] for row in reports(path, "--show-mappings", filters)["each-mapping"]),
              sorted(one["number"] for one in last if holds(one)), "the command's mappings", filters)
        sums = {}
        for row in rows:
            if row["mapping"] in chosen:
                sums[row["time"]] = sums.get(row["time"], 0) + row["resident_bytes"]
        told = server.data("/r/2/mappings/0", **filters)["history"]
        equal(dict(zip(told["time_ns"], told["rss"])), sums, "their sums over time", filters)
        told = server.ask("/r/2/query", {"sql": "SELECT time, sum(resident_bytes) FROM smaps GROUP BY 1"}, **filters)
        equal(dict(told[1]["data"]["rows"]), sums, "the same by SQL", filters)


def check_one_pass(server):
    """Blocks, lifetimes, sizes and the heap of a window are one pass."""
    window = {"from": "11%", "to": "93%"}
    via = [server.ask(address, **window)[1]["via"]
           for address in ("/r/1/sizes", "/r/1/blocks", "/r/1/heap", "/r/1/lifetimes", "/r/1/heap/pins")]
    equal(via, ["pass", "cache", "cache", "cache", "cache"], "one pass, four views")
    # The map, too: so small a recording has too few slices for it.
    answer = server.ask("/r/1/lifetimes", over="time", **window)[1]
    equal((answer["via"], len(answer["data"]["time"]) > 100), ("cache", True), "lifetimes over time")


def main():
    path = busy(scratch(), steps=3000)
    folder = scratch()
    equal(record([build(MAPPED)], folder).returncode, 0, "recording of mapped.c")
    mapped = only_recording(folder, "mapped")
    server = Server(path, mapped)
    check_one_pass(server)
    for filters in FILTERS:
        check_lifetimes(server, path, filters)
        check_sizes(server, path, filters)
    for filters in FILTERS[:4]:
        check_heap(server, path, filters)
    check_history(server, path)
    check_mappings(server, mapped)
    check_mapping_filters(server, mapped)
    server.close()
    finish()


main()
