# SPDX-License-Identifier: MIT
"""What heaptrack_print says of a file, and the same from a report."""

import collections
import os
import re
import subprocess

from exported import fail, finish

PARTS = {"allocations": "allocations", "temporary": "temporary", "leaked": "live_bytes",
         "peak": "peak_bytes"}


def printed(path, folder, cost):
    """What heaptrack_print says of a file: its lines, and bytes or counts by innermost function."""
    stacks = os.path.join(folder, "stacks.txt")
    result = subprocess.run(
        ["heaptrack_print", "--disable-builtin-suppressions", "--shorten-templates", "0", "-p", "0", "-a", "0",
         "-T", "0", "-F", stacks, "--flamegraph-cost-type", cost, path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if result.returncode != 0 or result.stderr:
        fail("heaptrack_print", path, result.stderr.decode()[-500:])
        finish()
    found = collections.Counter()
    with open(stacks, encoding="utf-8", errors="replace") as file:
        for line in file:
            stack, number = line.rstrip("\n").rsplit(" ", 1)
            found[stack.rstrip(";").rsplit(";", 1)[-1]] += int(number)
    return result.stdout.decode(), found


def by_function(data, part):
    """The same from a report. Of inlined functions heaptrack_print's stacks end with that which they
    are in; it adds the file's name, shows addresses of what has none and lets a ';' be."""
    found = collections.Counter()
    for context in data["contexts"]:
        frame = next(frame for frame in context["frames"] if not frame["inlined"])
        if frame["function"]:
            name = frame["function"]
            name += " (%s)" % os.path.basename(frame["file"]) if frame["file"] else ""
        else:
            name = "unknown"
        found[name.rsplit(";", 1)[-1]] += context[part]
    return {name: number for name, number in found.items() if number}


def known(found):
    """Addresses and the like are all of what has no name."""
    named = collections.Counter()
    for name, number in found.items():
        named["unknown" if re.match(r"0x[0-9a-f]+|\(unknown\)|\?\?", name) else name] += number
    return {name: number for name, number in named.items() if number}
