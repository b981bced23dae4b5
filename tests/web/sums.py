# SPDX-License-Identifier: MIT
"""sums.py: trees, functions, call paths and source lines that `memtrace serve` answers are what `memtrace
report --json` tells with the same filters; a difference is the two sides, and the negative of the one the
other way round; what is snapped to slices is exact at their edges."""

import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import Server, execute, equal, fail, finish, scratch, table  # noqa: E402
from recorded import only_recording, record  # noqa: E402
from harness import MEMTRACE, SOURCE, build, clean_environment, report  # noqa: E402
import json  # noqa: E402

OPTIONS = {"maximum": "--show-peak", "leaked": "--show-leaked", "cumulative": "--show-allocated",
           "allocations": "--show-allocations", "temporary": "--show-temporary", "shutdown": "--show-shutdown",
           "short": "--temporary-within"}
BUSY = os.path.join(SOURCE, "tests", "selection", "busy.c")
NEWSDESK = os.path.join(SOURCE, "examples", "newsdesk", "newsdesk.cpp")
EXPLOSIVE = "(((a{1,99}){1,99}){1,99}){1,99}"  # written out it has 99^4 letters
FILTERS = [{}, {"from": "20%", "to": "peak"}, {"size": "100.."}, {"function": "^a", "not-function": "zz"},
           {"leaked": ""}, {"at": "60%"}]


def options_of(filters):
    return [word for name, value in filters.items() for word in
            (["--" + name, value] if value != "" else ["--" + name])]


def shown(metric):
    return [OPTIONS[metric], *(["10ms"] if metric == "short" else [])]


def told(path, *options):
    """{name: rows} of what the command line writes."""
    result = execute([MEMTRACE, "report", "--json", *options, path], clean_environment(MEMTRACE_CACHE=""))
    if result.returncode != 0:
        fail(options, result.stderr)
        finish()
    return {part["name"]: part["rows"] for part in json.loads(result.stdout)["reports"]}


def calls(data):
    """The tree as paths of functions with their costs: [(names, main, side, self)]."""
    nodes, names = data["nodes"], [frame["function"] for frame in data["frames"]]
    paths, found = [()], []
    for place in range(1, len(nodes["parent"])):
        if nodes["parent"][place] >= place:
            fail("a call before its caller:", place)
        paths.append(paths[nodes["parent"][place]] + (names[nodes["frame"][place]],))
        found.append((paths[place], nodes["main"][place], nodes["side"][place], nodes["self"][place]))
    return found


def spelled(row):
    if row["function"] is not None:
        return row["function"]
    return "%s+0x%x" % (os.path.basename(row["module"]), row["offset"]) if row["module"] else "0x%x" % row["offset"]


def reported(rows):
    """The same of the rows of a report."""
    path, found = [], []
    for row in rows:
        path[row["depth"]:] = [spelled(row)]
        side = next(row[name] for name in ("blocks", "total_allocations", "allocations", "bytes") if name in row)
        found.append((tuple(path), row["cost"], side, row["self"]))
    return found


def trees(server, path, source):
    for metric in OPTIONS:
        for filters in FILTERS:
            for direction, option in (("down", "--top-down"), ("up", "--bottom-up")):
                data = server.data("/r/%d/tree" % source, metric=metric, direction=direction, full_names="1",
                                   **filters)
                rows = told(path, *shown(metric), option, *options_of(filters), "--depth", "0")
                want = reported(next(iter(rows.values())))
                what = (metric, filters, direction)
                equal(sorted(calls(data)), sorted(want), what)
                equal(data["nodes"]["frame"][0], -1, what, "the root")
                if direction == "down":
                    equal(data["nodes"]["main"][0], data["total"], what, "the total")


def parts_of_trees(server):
    """A share, a depth, a number of calls: what is left of the whole tree."""
    whole = server.data("/r/1/tree", metric="cumulative")
    everything = calls(whole)
    for share in (0.01, 0.2, 1):
        data = server.data("/r/1/tree", metric="cumulative", min_share=share)
        least = int(whole["total"] * share)
        equal(sorted(calls(data)), sorted(call for call in everything if call[1] >= least), "share", share)
        equal(data["cut"], len(everything) - len(calls(data)), "calls left out at", share)
    equal(sorted(calls(server.data("/r/1/tree", metric="cumulative", depth=3))),
          sorted(call for call in everything if len(call[0]) <= 3), "depth 3")
    for limit in (2, 7, len(everything) // 2, len(everything) - 1, len(everything)):
        few = calls(server.data("/r/1/tree", metric="cumulative", limit=limit))
        left = [call[1] for call in everything if call not in few]
        # All that are dearer than the first that has no room: as many as there can be, the root among them.
        costs = sorted([whole["total"], *(call[1] for call in everything)], reverse=True)
        want = [cost for cost in costs if limit >= len(costs) or cost > costs[limit]][1:]
        if sorted((call[1] for call in few), reverse=True) != want or min(want) <= max(left, default=0):
            fail("limit", limit, few)


def binary(server):
    """Columns say the same as JSON."""
    connection = server.connect()
    connection.request("GET", "/api/v1/r/1/tree?metric=allocations", headers={
        "Authorization": "Bearer " + server.token, "Accept": "application/vnd.memtrace.columns"})
    answer = connection.getresponse()
    data = answer.read()
    equal((answer.getheader("Content-Type"), data[:4]), ("application/vnd.memtrace.columns", b"MTC1"), "binary")
    size = struct.unpack_from("<I", data, 4)[0]
    head = json.loads(data[8:8 + size])["data"]
    start = (8 + size + 7) // 8 * 8
    letters = {"u32": "I", "u64": "Q", "f64": "d"}
    nodes = {name: list(struct.unpack_from("<%d%s" % (column["length"], letters[column["type"]]), data,
                                           start + column["offset"]))
             for name, column in head["nodes"].items()}
    equal({column["type"] for column in head["nodes"].values()}, {"u32"}, "types of small numbers")
    nodes["frame"][0] = -1  # 2^32 - 1
    want = server.data("/r/1/tree", metric="allocations")
    equal(nodes, want["nodes"], "columns")
    equal({name: head[name] for name in want if name != "nodes"},
          {name: want[name] for name in want if name != "nodes"}, "the head")


def functions(server, path):
    for metric in OPTIONS:
        for filters in FILTERS[:3]:
            got = {}
            for row in server.rows("/r/1/functions", metric=metric, full_names="1", all_frames="1", limit=10000,
                                   **filters):
                got.setdefault(row["function"], []).append((row["self"], row["total"]))
            rows = next(iter(told(path, *shown(metric), "--flat", "--all-frames", *options_of(filters)).values()))
            want = {}
            for row in rows:
                want.setdefault(spelled(row), []).append((row["self"], row["inclusive"]))
            equal({name: sorted(pairs) for name, pairs in got.items()},
                  {name: sorted(pairs) for name, pairs in want.items()}, "functions", metric, filters)


def callers(server, path):
    for focus in ("inner", "main", "alloc_one"):
        for metric in ("cumulative", "leaked"):
            data = server.data("/r/1/callers", focus=focus, metric=metric, full_names="1")
            rows = told(path, OPTIONS[metric], "--show-caller-callee", focus)
            equal((data["main"], data["side"]), tuple(
                rows["function"][0][name] for name in ("cost", "allocations" if metric == "cumulative" else "blocks")),
                focus, metric)
            for side, none in (("callers", "(nobody)"), ("callees", "(itself)")):
                got = {names[0]: main for names, main, _, _ in calls(data[side]) if len(names) == 1}
                own = data[side]["nodes"]["self"][0]
                want = {spelled(row): row["cost"] for row in rows[side]}
                equal({**got, **({none: own} if own else {})}, want, focus, metric, side)


def paths(server, path):
    columns = {"maximum": "peak_bytes", "leaked": "live_bytes", "cumulative": "total_bytes",
               "allocations": "allocations", "temporary": "temporary"}
    for metric, column in columns.items():
        for filters in FILTERS:
            got = {row["hash"]: row[column] for row in server.rows("/r/1/paths", metric=metric, limit=10000, **filters)}
            rows = next(iter(told(path, OPTIONS[metric], "--paths", *options_of(filters)).values()))
            equal(got, {row["hash"]: row["cost"] for row in rows}, "paths", metric, filters)


def one_path(server, path):
    """Its totals, and what it held at any moment."""
    for row in server.rows("/r/1/paths", metric="cumulative", limit=3):
        data = server.data("/r/1/paths/" + row["hash"])
        equal({name: data[name] for name in ("live_bytes", "live_blocks", "peak_bytes", "total_bytes",
                                             "allocations", "frees", "temporary")},
              {name: row[name] for name in ("live_bytes", "live_blocks", "peak_bytes", "total_bytes", "allocations",
                                            "frees", "temporary")}, row["hash"])
        equal(sum(bucket["count"] for bucket in data["sizes"]), row["allocations"], row["hash"], "sizes")
        equal(sum(bucket["count"] for bucket in data["lifetimes"]), row["frees"], row["hash"], "lifetimes")
        times, live = data["timeline"]["time_ns"], data["timeline"]["live"]
        for place in (len(times) // 3, len(times) // 2, len(times) - 2):
            whole = report(path, {"MEMTRACE_CACHE": ""}, "--at", "%dns" % times[place], "--path", row["hash"])
            want = sum(context["live_bytes"] for context in whole["contexts"])
            equal(live[place], want, row["hash"], "at", times[place])
    graphed = server.data("/r/1/paths", metric="cumulative", limit=20, graphs="1")
    equal([series[-1] for series in graphed["graphs"]["series"]],
          [row["live_bytes"] for row in table(graphed)], "the ends of graphs")


def searches(server, path):
    for regex in ("^a", "inner|churn", "nothing at all"):
        data = server.data("/r/1/search", regex=regex, metric="cumulative")
        whole = report(path, {"MEMTRACE_CACHE": ""}, "--function", regex)
        got, want = data["main"], sum(context["total_bytes"] for context in whole["contexts"])
        equal(got, want, "search", regex)
        equal(round(data["share"], 4), round(got / data["total"], 4) if data["total"] else 0, regex)


def lines(server, path):
    """Added up once more from the frames of all call paths."""
    whole = report(path, {"MEMTRACE_CACHE": ""}, "--all-frames")
    names = {"maximum": "peak_bytes", "cumulative": "total_bytes", "allocations": "allocations",
             "temporary": "temporary"}
    want = {}
    for context in whole["contexts"]:
        for place in {(frame["file"], frame["line"]) for frame in context["frames"] if frame["file"]}:
            sums = want.setdefault(place, dict.fromkeys([*names, "paths"], 0))
            sums["paths"] += 1
            for name, field in names.items():
                sums[name] += context[field]
    for row in server.rows("/r/1/files", all_frames="1", limit=10000):
        data = server.data("/r/1/files/%d" % row["number"])
        equal(data["file"], row["file"], "number", row["number"])
        for line in data["lines"]:
            equal({name: line[name] for name in [*names, "paths"]}, want.pop((row["file"], line["line"]), None),
                  row["file"], line["line"])
    equal({place for place in want if place[1] != 0}, set(), "lines that no file has")


def once(path):
    """A function that calls itself is one."""
    return tuple(name for place, name in enumerate(path) if place == 0 or name != path[place - 1])


def differences(server):
    """Both sides of each call are those of its own tree, and the other way round they change places."""
    sides = {}
    for source, base in ((2, 1), (1, 2)):
        for direction in ("down", "up"):
            data = server.data("/r/%d/tree" % source, base=base, metric="cumulative", direction=direction)
            nodes = data["nodes"]
            found = {}
            for (names, main, _, _), before in zip(calls(data), nodes["base"][1:]):
                sums = found.setdefault(names, [0, 0])
                sums[0] += main
                sums[1] += before
            sides[source, direction] = found
            equal((data["total"], data["base_total"]), (nodes["main"][0], nodes["base"][0]), "totals")
            alone = {}
            for names, main, _, _ in calls(server.data("/r/%d/tree" % source, metric="cumulative",
                                                       direction=direction)):
                alone[names] = alone.get(names, 0) + main
            equal({names: pair[0] for names, pair in found.items() if pair[0]}, alone, "one side", source, direction)
    for direction in ("down", "up"):
        equal(sides[1, direction], {names: pair[::-1] for names, pair in sides[2, direction].items()},
              "the other way round", direction)
    for table_of, key in (("functions", "function"), ("paths", "hash")):
        deltas = [{}, {}]
        for place, (source, base) in enumerate(((2, 1), (1, 2))):
            for row in server.rows("/r/%d/%s" % (source, table_of), base=base, metric="allocations", limit=10000):
                name = row[key] if key == "function" else once(row["path"])
                deltas[place][name] = deltas[place].get(name, 0) + row["delta"]
        equal(deltas[0], {name: -delta for name, delta in deltas[1].items()}, table_of, "the other way round")
    same = server.rows("/r/1/paths", base=1, metric="maximum")
    equal(same, [], "the difference from itself")
    window = server.data("/r/1/tree", base=1, base_to="50%", metric="leaked")
    half = server.data("/r/1/tree", to="50%", metric="leaked")
    equal(window["base_total"], half["total"], "another window of the same file")


def changes_first(server):
    """What did not change comes last, whichever way is up, also where everything else shrank."""
    largest_ns = server.data("/r/1")["totals"]["peak_ns"]
    signs = set()
    for percent in range(50, 100, 5):  # of the time to the maximum; who was held up when, nobody knows
        window = {"to": "%dns" % (largest_ns * percent // 100), "base_to": "%dns" % (largest_ns + 1)}
        for order, sign in (("desc", 1), ("asc", -1)):
            found = [row["delta"] for row in server.rows("/r/1/functions", base=1, metric="maximum", sort="delta",
                                                         order=order, limit=10000, **window)]
            changed = sorted((delta for delta in found if delta), key=lambda delta: -sign * delta)
            equal(found, changed + [0] * (len(found) - len(changed)), "sorted by change", percent, order)
            signs.add((any(delta < 0 for delta in changed), 0 in found))
    equal((True, True) in signs, True, "some shrank, some did not change")


def slices(server):
    """What is snapped is the exact answer of the window that it says it is of."""
    for window in ({"from": "13%", "to": "71%"}, {"to": "33%"}, {"from": "55%"}):
        status, snapped = server.ask("/r/1/tree", metric="maximum", snap="1", **window)
        equal(status, 200, window)
        edges = {}
        if snapped["window"]["from_ns"]:
            edges["from"] = "%dns" % snapped["window"]["from_ns"]
        if snapped["window"]["to_ns"] is not None:
            edges["to"] = "%dns" % snapped["window"]["to_ns"]
        exact = server.data("/r/1/tree", metric="maximum", **edges)
        equal(calls(snapped["data"]), calls(exact), "snapped", window, edges)


def refused(server):
    for path, parameters, status in (
            ("tree", {"direction": "sideways"}, 400), ("tree", {"min_share": "2"}, 400),
            ("tree", {"min_share": "x"}, 400), ("tree", {"depth": "0"}, 400), ("tree", {"metric": "money"}, 400),
            ("search", {"regex": "("}, 400), ("search", {}, 400), ("search", {"regex": EXPLOSIVE}, 400),
            ("tree", {"function": EXPLOSIVE}, 400), ("search", {"regex": r"(.*)(.*)(.*)\1\2\3x"}, 400), ("callers", {}, 400),
            ("functions", {"sort": "beauty"}, 400), ("functions", {"limit": "-1"}, 400),
            ("paths/0123456789abcdef", {}, 404), ("paths/x", {}, 404), ("files/99999", {}, 404),
            ("files/-1", {}, 404), ("files/..", {}, 400), ("tree", {"base": "77"}, 400),
            ("tree", {"nonsense": "1"}, 400)):
        got, answer = server.ask("/r/1/" + path, **parameters)
        if got != status or "\n" in answer["detail"] or not answer["detail"]:
            fail(path, parameters, got, answer)


def unnamed_functions(program, folder):
    """Of a stripped program: each place has a row of its own, matched with itself."""
    stripped = os.path.join(folder, "stripped")
    equal(subprocess.run(["strip", "-o", stripped, program], check=False).returncode, 0, "strip")
    own = os.path.join(folder, "unnamed")
    os.mkdir(own)
    equal(record([stripped, "1", "1", "6000"], own, "--precise").returncode, 0, "the stripped program")
    server = Server(only_recording(own, "stripped"))
    sides = [{row["function"]: row["total"] for row in server.rows("/r/1/functions", metric="allocations", limit=10000, **window)}
             for window in ({"to": "50%"}, {})]
    found = {row["function"]: (row["base_total"], row["total"])
             for row in server.rows("/r/1/functions", base=1, base_to="50%", metric="allocations", limit=10000)}
    equal(sum("+0x" in name for name in found) > 2, True, "unnamed", found)
    equal(found, {name: (sides[0].get(name, 0), sides[1].get(name, 0)) for name in {**sides[0], **sides[1]}},
          "both sides of each function")
    server.close()


def main():
    folder = scratch()
    program = build(BUSY)
    recordings = []
    for seed in ("1", "2"):
        own = os.path.join(folder, seed)
        os.mkdir(own)
        equal(record([program, seed, "1", "6000"], own, "--precise").returncode, 0, "the program")
        recordings.append(only_recording(own, "busy"))
    server = Server(*recordings)
    trees(server, recordings[0], 1)
    parts_of_trees(server)
    binary(server)
    functions(server, recordings[0])
    callers(server, recordings[0])
    paths(server, recordings[0])
    one_path(server, recordings[0])
    searches(server, recordings[0])
    lines(server, recordings[0])
    differences(server)
    refused(server)
    server.close()
    unnamed_functions(program, folder)
    own = os.path.join(folder, "news")
    os.mkdir(own)
    equal(record([build(NEWSDESK, optimize="-O2")], own).returncode, 0, "newsdesk")
    news = Server(only_recording(own, "newsdesk"))
    slices(news)
    changes_first(news)
    news.close()


main()
finish()
