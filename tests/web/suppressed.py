# SPDX-License-Identifier: MIT
"""suppressed.py: what was freed at shutdown or never, and what was never freed, without call paths that suppressions
name: trees from both sides, functions, call paths and text of the server are what arithmetic says of suppressed.c, and
what the command line writes; /suppressed says how much is left out."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import Server, equal, execute, fail, finish, scratch  # noqa: E402
from recorded import only_recording, record  # noqa: E402
from harness import MEMTRACE, build, clean_environment  # noqa: E402

# What suppressed.c allocates: (bytes, blocks) of each function, at shutdown and leaked. keep_cache is suppressed.
# The last block that clean_up_early frees is the last one that is allocated.
SHUTDOWN = {"clean_up_late": (4 * 300, 4), "forget": (3 * 200, 3), "clean_up_early": (50, 1)}
LEAKED = {"forget": (3 * 200, 3)}
LEFT_OUT = {"shutdown": (5 * 1000, 5), "leaked": (3 * 1000, 3)}
CACHE = "keep_cache"


def written(*arguments):
    result = execute([MEMTRACE, *arguments], clean_environment(MEMTRACE_CACHE=""))
    if result.returncode != 0:
        fail(arguments, result.stderr)
        finish()
    return result.stdout


def told(path, metric, *options):
    """{innermost function: (bytes, blocks)} of the command line's paths."""
    parts = json.loads(written("report", path, "--show-" + metric, "--paths", "--json", *options))["reports"]
    rows = next(part["rows"] for part in parts if part["name"] == metric)
    return {innermost(row["path"]): (row["cost"], row["blocks"]) for row in rows}


def innermost(path):
    return next(frame["function"] for frame in path if frame["function"] not in ("malloc", None))


def leaves(tree):
    """{function: (bytes, blocks)} of the calls that allocated themselves."""
    nodes, names = tree["nodes"], [frame["function"] for frame in tree["frames"]]
    return {names[frame]: (main, side) for frame, main, side, own in
            zip(nodes["frame"], nodes["main"], nodes["side"], nodes["self"]) if frame >= 0 and own > 0}


def check_metric(server, path, metric, want):
    total = sum(size for size, _ in want.values())
    ask = {"metric": metric}
    down, up = (server.data("/r/1/tree", direction=direction, **ask) for direction in ("down", "up"))
    equal(leaves(down), want, metric, "tree")
    equal(down["total"], total, metric, "its total")
    roots = {up["frames"][frame]["function"]: (main, side) for parent, frame, main, side in
             zip(*(up["nodes"][name] for name in ("parent", "frame", "main", "side"))) if parent == 0 and frame >= 0}
    equal(roots, want, metric, "bottom-up")
    functions = {row["function"]: row for row in server.rows("/r/1/functions", **ask)}
    equal({name: functions[name]["self"] for name in want}, {name: size for name, (size, _) in want.items()},
          metric, "functions")
    equal(functions["main"]["total"], total, metric, "main")
    equal(CACHE in functions, False, metric, "functions that are suppressed")
    paths = server.rows("/r/1/paths", **ask)
    equal([row["path"][0] for row in paths if CACHE in row["path"]], [], metric, "paths that are suppressed")
    equal(len(paths), len(want), metric, "paths")
    equal(told(path, metric), want, metric, "the command")
    _, _, text = server.raw("/r/1/suppressed", **ask)
    rows = server.rows("/r/1/suppressed", **ask)
    equal([(row["bytes"], row["blocks"], row["paths"], row["pattern"]) for row in rows],
          [(*LEFT_OUT[metric], 1, CACHE)], metric, "left out", text)
    return total


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "suppressed.c"))
    equal(record([program], folder).returncode, 0, "the program")
    path = only_recording(folder, "suppressed")
    server = Server(path)
    check_metric(server, path, "shutdown", SHUTDOWN)
    check_metric(server, path, "leaked", LEAKED)
    # Without the program's own list all of it is there.
    every = told(path, "shutdown", "--no-embedded-suppressions")
    equal(every, {**SHUTDOWN, CACHE: LEFT_OUT["shutdown"]}, "nothing suppressed")
    # The same as text, which tells behind it what is left out.
    connection = server.connect()
    connection.request("GET", "/api/v1/r/1/tree?metric=shutdown",
                       headers={"Authorization": "Bearer " + server.token, "Accept": "text/plain"})
    answer = connection.getresponse().read()
    equal(answer, written("report", "--show-shutdown", path), "as text")
    equal(CACHE.encode() in answer, True, "text says what is left out", answer)
    # The summary counts it.
    data = server.data("/r/1")
    totals = data["totals"]
    equal((data["has"]["threads"], data["has"]["marks"]), (True, False), "what a program of one thread has")
    equal(totals["live_bytes"], LEAKED["forget"][0] + LEFT_OUT["leaked"][0], "leaked, all of it")
    server.close()


main()
finish()
