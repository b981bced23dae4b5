#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""callgrind_annotate reads our callgrind files: its totals, each function's own costs and its costs with
all it calls are those that the report's call paths add up to, also where functions call themselves
and each other."""

import collections
import os
import re
import subprocess

from exported import COSTS, equal, export, fail, finish, recorded, report, scratch, spelled
from harness import have

EVENTS = {"Peak": "peak", "Live": "live", "Total": "total", "Allocations": "allocations",
          "Temporary": "temporary"}


def annotated(path, inclusive):
    """(events, totals, numbers by "file:function") of a file."""
    result = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no",
         "--inclusive=" + ("yes" if inclusive else "no"), path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, cwd="/")
    if result.returncode != 0 or result.stderr:
        fail("callgrind_annotate:", result.stderr.decode())
        finish()
    text = result.stdout.decode(errors="replace")
    events = re.search(r"Events recorded:\s+(.*)", text).group(1).split()
    found = {}
    for line in text.splitlines():
        words = re.match(r"\s*((?:[\d,.]+ +){%d})(\S.*)" % len(events), line)
        if words:
            numbers = [int(number.replace(",", "").replace(".", "0")) for number in words.group(1).split()]
            found[re.sub(r" \[[^]]*\]$", "", words.group(2).strip())] = numbers
    return events, found.pop("PROGRAM TOTALS"), found


def name_of(frame):
    return "%s:%s" % (frame["file"] or "???", spelled(frame))


def expected(data, events, inclusive):
    found = collections.defaultdict(lambda: [0] * len(events))
    for context in data["contexts"]:
        costs = [context[COSTS[EVENTS[event]][1]] for event in events]
        frames = context["frames"] if inclusive else context["frames"][:1]
        for name in {name_of(frame) for frame in frames}:
            found[name] = [one + other for one, other in zip(found[name], costs)]
    return found


def check(source, folder, cost, what):
    data = report(source)
    path = os.path.join(folder, "out.callgrind")
    export(source, "--cost", cost, "--full-names", "--output", path)
    for inclusive in (False, True):
        events, totals, found = annotated(path, inclusive)
        equal(EVENTS[events[0]], cost, what, "the first event")
        equal(totals, [data[COSTS[EVENTS[event]][0]] for event in events], what, "totals")
        wanted = expected(data, events, inclusive)
        for name, numbers in wanted.items():
            equal(found.get(name, [0] * len(events)), numbers, what, "inclusive" if inclusive else "own",
                  name)
        equal({name for name, numbers in found.items() if any(numbers)} - set(wanted), set(), what,
              "functions that the report has not")


def main():
    have("callgrind_annotate")
    folder = scratch()
    recording, profile = recorded(folder)
    for cost in COSTS:
        check(recording, folder, cost, "recording, " + cost)
    check(profile, folder, "live", "profile")
    # Short names: what reads the same is one function.
    data = report(recording)
    path = os.path.join(folder, "short.callgrind")
    export(recording, "--output", path)
    events, totals, found = annotated(path, True)
    main_costs = next(numbers for name, numbers in found.items() if name.endswith("subject.cpp:main"))
    wanted = [sum(context[COSTS[EVENTS[event]][1]] for context in data["contexts"]
                  if any(frame["function"] == "main" for frame in context["frames"])) for event in events]
    equal(main_costs, wanted, "short names: main")
    finish()


main()
