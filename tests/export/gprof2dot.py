#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gprof2dot reads our JSON, its graph says what the report says, and dot draws it."""

import os
import re
import subprocess
import sys

from exported import COSTS, equal, export, fail, finish, install, recorded, report, scratch
from harness import have

VERSION = "2024.6.6"


def graph(folder, text, *options):
    """What gprof2dot makes of our JSON, in dot's language."""
    result = subprocess.run(
        [sys.executable, os.path.join(folder, "gprof2dot.py"), "--format=json", *options],
        input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if result.returncode != 0 or result.stderr:
        fail("gprof2dot:", result.stderr.decode())
        finish()
    return result.stdout


def share(dot, name):
    """(with its callees, alone) in percent, of a function in the graph."""
    found = re.search(r'label="[^"]*\\n%s\\n([\d.]+)%%\\n\(([\d.]+)%%\)' % name, dot.decode())
    if not found:
        fail("the graph has no", name)
        finish()
    return [float(number) for number in found.groups()]


def main():
    have("dot")
    folder = install([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                      "--disable-pip-version-check", "--target", "FOLDER", "gprof2dot==" + VERSION],
                     "gprof2dot")
    recording, _ = recorded(scratch())
    data = report(recording)
    for cost, (total, part) in COSTS.items():
        drawn = []
        dot = graph(folder, export(recording, "--format", "gprof2dot", "--cost", cost), "-n0", "-e0")
        for name in ("leak", "recurse", "temporaries"):
            own = sum(c[part] for c in data["contexts"] if c["frames"][0]["function"].split("(")[0] == name)
            if own:
                drawn.append(name.encode())
                equal(abs(share(dot, name)[1] - 100 * own / data[total]) <= 0.0051, True, cost, name,
                      share(dot, name), 100 * own / data[total])
        picture = subprocess.run(["dot", "-Tsvg"], input=dot, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=60)
        equal((picture.returncode, all(name in picture.stdout for name in drawn), bool(drawn)),
              (0, True, True), cost, "the picture", picture.stderr)
    finish()


main()
