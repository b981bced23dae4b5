# SPDX-License-Identifier: MIT
"""A recursion 5,000 deep has 12 million frames in its call paths: JSON and CSV of all of them are refused
with that number, in little time and without a file; --depth and --nodes write what they say."""

import json
import os
import re

from exported import HERE, MEMTRACE, build, equal, execute, fail, finish, record, recordings, scratch

DEPTH = 5000


def run(*words):
    done = execute([MEMTRACE, *words], timeout=60)
    return done.returncode, done.stdout, done.stderr.decode()


def refused(*words):
    status, out, err = run(*words)
    equal((status, out, err.count("\n")), (1, b"", 1), words, err[:300])
    found = re.search(r" (\d+) frames .*--depth N.*--json", err)
    least = DEPTH * DEPTH // 2
    if not found or not least < int(found[1]) < least * 1.02:
        fail(words, err)


def expand(data):
    """Each context's frames out of the table of nodes."""
    nodes = {node["id"]: node for node in data["nodes"]}
    seen = {0}
    for node in data["nodes"]:
        equal(node["parent"] in seen, True, "parent of", node["id"])
        seen.add(node["id"])
    for kind in ("contexts", "mappings", "pools"):
        for context in data[kind]:
            at, frames = context.pop("node"), []
            while at != 0:
                frames += nodes[at]["frames"]
                at = nodes[at]["parent"]
            context["frames"] = frames
    del data["nodes"]
    return data


def made(depth):
    folder = scratch()
    result = record([build(os.path.join(HERE, "deep.c"), optimize="-O1"), str(depth)], folder)
    equal(result.returncode, 0, result.stderr)
    return recordings(folder)[0]


def main():
    deep, small = made(DEPTH), made(50)
    refused("report", "--csv", deep)
    output = os.path.join(scratch(), "out")
    for form in ("json", "csv"):
        refused("export", "--format", form, deep)
        refused("export", "--format", form, "--output", output, deep)
    equal(os.listdir(os.path.dirname(output)), [], "files")

    whole = json.loads(run("report", "--json", "--depth", "0", small)[1])
    both = json.loads(run("report", "--json", small)[1])
    equal([context.pop("frames") for context in both["contexts"]],
          [context["frames"] for context in whole["contexts"]], "frames beside nodes")
    for kind in ("mappings", "pools"):
        for context in both[kind]:
            del context["frames"]
    equal(expand(both), whole, "nodes of the usual form")
    equal(expand(json.loads(run("report", "--json", "--nodes", small)[1])), whole, "by nodes")
    cut = json.loads(run("report", "--json", "--depth", "3", small)[1])
    for left, right in zip(cut["contexts"], whole["contexts"]):
        equal(left["frames"], right["frames"][:3], "three frames")
    rows = [line.split(b",", 10)[10] for line in run("report", "--csv", "--depth", "2", small)[1].split(b"\r\n")[1:-1]]
    equal({row.count(b"; ") for row in rows} <= {0, 1}, True, "two frames", rows[-1])

    status, out, err = run("report", "--json", "--nodes", deep)
    equal((status, len(out) < 20 << 20), (0, True), "nodes of", len(out), err)
    status, usual, err = run("report", "--json", deep)
    equal((status, usual == out, err.count("\n"), "--depth 0" in err), (0, True, 1, True), "the usual form of", err)
    paths = [context for context in expand(json.loads(out))["contexts"] if context["total_bytes"] == 16]
    depths = sorted(sum(frame["function"] == "descend" for frame in path["frames"]) for path in paths)
    equal(depths[-DEPTH - 1:], list(range(1, DEPTH + 2)), "levels")
    equal(run("report", "--json", "--depth", "2", deep)[0], 0, "two of each")
    for words in (("--nodes",), ("--nodes", "--csv"), ("--nodes", "--json", "--show-threads")):
        equal(run("report", *words, small)[0], 2, words)
    finish()


main()
