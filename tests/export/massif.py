#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ms_print reads our massif files and shows the report's maximum as the peak; each snapshot of a
recording is what an independent reader adds up to that time; trees are the report's call paths."""

import collections
import os
import re
import subprocess
import sys

from exported import HERE, equal, export, fail, finish, recorded, report, scratch
from harness import have
from recorded import record, recordings

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))
import reader  # noqa: E402

Snapshot = collections.namedtuple("Snapshot", "time bytes kind tree")


def snapshots(text):
    """What a file says. A tree: [bytes, name, children]."""
    found = []
    for part in text.split("#-----------\nsnapshot=")[1:]:
        lines = part.split("\n")
        fields = dict(line.split("=") for line in lines[1:] if re.match(r"\w+=", line))
        rows = [re.match(r"( *)n(\d+): (\d+)(.*)", line).groups() for line in lines if re.match(r" *n\d+: ", line)]
        stack = []
        root = None
        for indent, children, size, rest in rows:
            node = [int(size), re.sub(r"^ 0x[0-9A-F]+: ", "", rest), [], int(children)]
            root = root or node
            if len(indent) > 0:
                stack[len(indent) - 1][2].append(node)
            stack[len(indent):] = [node]
        found.append(Snapshot(fields["time"], int(fields["mem_heap_B"]), fields["heap_tree"], root))
    return found


def check_tree(node, what):
    """Children add up to no more than the node, and are as many as it says."""
    equal(len(node[2]), node[3], what, "children of", node[1])
    if sum(child[0] for child in node[2]) > node[0]:
        fail(what, "children hold more than", node[:2])
    for child in node[2]:
        check_tree(child, what)


def check_peak(snapshot, data, what):
    """Functions that allocated a hundredth of the maximum or more, line by line."""
    expected = collections.Counter()
    for context in data["contexts"]:
        frame = context["frames"][0]
        if frame["function"] and frame["file"]:
            name = "%s (%s:%d)" % (frame["function"], os.path.basename(frame["file"]), frame["line"])
            expected[name.replace("#", ":")] += context["peak_bytes"]
    found = {child[1]: child[0] for child in snapshot.tree[2]}
    for name, size in expected.items():
        if size * 100 >= data["peak_bytes"]:
            equal(found.get(name), size, what, "at the peak", name)


def printed(path):
    result = subprocess.run(["ms_print", "--threshold=0", path], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=60, cwd=os.path.dirname(path))
    if result.returncode != 0 or result.stderr:
        fail("ms_print:", result.stderr.decode())
        finish()
    return result.stdout.decode(errors="replace")


def check(source, folder, what, most):
    data = report(source)
    path = os.path.join(folder, "out.massif")
    export(source, "--full-names", "--output", path)
    with open(path, encoding="utf-8", errors="replace") as file:
        found = snapshots(file.read())
    text = printed(path)
    peak = [place for place, snapshot in enumerate(found) if snapshot.kind == "peak"]
    equal(len(peak), 1, what, "peaks")
    equal("%d (peak)" % peak[0] in text, True, what, "ms_print's peak")
    equal(re.search(r"^ *%d +[\d.,]+ +([\d,]+) " % peak[0], text, re.MULTILINE).group(1).replace(",", ""),
          str(data["peak_bytes"]), what, "the peak's bytes as printed")
    equal(found[peak[0]].bytes, data["peak_bytes"], what, "the peak's bytes")
    equal(found[-1].bytes, data["live_bytes"], what, "the end's bytes")
    equal(max(snapshot.bytes for snapshot in found) <= data["peak_bytes"], True, what, "no other is higher")
    times = [float(snapshot.time) for snapshot in found]
    equal(times, sorted(times), what, "times")
    equal(len(found) <= most, True, what, "number of snapshots", len(found))
    for snapshot in found:
        if snapshot.tree:
            equal(snapshot.tree[0], snapshot.bytes, what, "the root")
            check_tree(snapshot.tree, what)
    check_peak(found[peak[0]], data, what)
    return [snapshot for snapshot in found[:-1] if snapshot.kind != "peak"], data


def check_moments(path, found, data, what):
    """One thread: all its events are in order."""
    recording = reader.Recording(path)
    events = []
    sizes = {}
    for event in recording.events():
        ended = event.old if isinstance(event, reader.Alloc) else getattr(event, "block", None)
        if ended in sizes:
            events.append((event.time, -sizes.pop(ended)))
        if isinstance(event, reader.Alloc) and recording.is_heap(event.context):
            sizes[event.block] = event.size
            events.append((event.time, event.size))
    step = data["process"]["duration_ns"] // 100
    equal(len(found), 100, what, "moments")
    expected = [sum(size for time, size in events if time <= step * moment) for moment in range(100)]
    equal(len(set(expected)) > 10, True, what, "something happens")
    equal([snapshot.bytes for snapshot in found], expected, what, "bytes at each moment")


def main():
    have("ms_print")
    folder = scratch()
    recording, profile = recorded(folder)
    check(recording, folder, "recording", 102)
    check(profile, folder, "profile", 1025)
    python = scratch()
    record(["/usr/bin/python3", "-c",
            "import json; [json.dumps(list(range(i))) for i in range(300)]"], python, "--precise")
    path = recordings(python)[0]
    found, data = check(path, python, "python3", 102)
    check_moments(path, found, data, "python3")
    finish()


main()
