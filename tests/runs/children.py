# SPDX-License-Identifier: MIT
"""Light children of a profile: what the report says of them, and their call paths in the sum of all.
The oracle is arithmetic over what the test itself wrote."""

import json
import os
import random
import struct

from runfolder import (ENDED, EXECED, GROWN, RUNNING, append, child, command, describe, equal, finish,
                       folder, make, nodes, path_item, process, record, segment, told)

PROCESSES, PATHS = 10, 11
UNKNOWN = 2
PATHS_HEAD = 0x4441454853485450


def head(number, count):
    """In a segment of several children's paths: the next `count` items are this child's."""
    return path_item(number, (0,) * 4, PATHS_HEAD, count)


def shared(*parts):
    return segment(PATHS, 0, 0, 48, [item for part in parts for item in part], 2)


def check_shared():
    """The paths of with_children() in one segment, with what killed children and a failed exec left."""
    apart, context = with_children("apart.mtp")
    path = record(os.path.join(folder, "shared.mtp"), "parent", 1000, 2000)
    frame, parent = nodes(path)[context]
    with open(apart, "rb") as file:
        records = [part for part in file.read().split(b"SEMG")[1:] if part[:2] == bytes([PROCESSES, 0])]
    new = 1 << 20
    append(path, *[(b"SEMG" + part).ljust(4096, b"\0")[:4096] for part in records],
           shared([path_item(context, (9, 9, 9, 9))], [head(0, 1), path_item(new, (8, 8, 8, 8), frame, context)],
                  [head(2, 2), path_item(new, (2, 200, 0, 0), frame, context),
                   path_item(new + 1, (3, 300, 0, 0), frame, new)],
                  [head(4, 1), path_item(context, (1, 5, 1, 5))], [path_item(0, (0,) * 4)] * 3,
                  [head(1, 1), path_item(context, (10, 1000, 4, 400))], [path_item(context, (7, 7, 7, 7))],
                  [head(2, 1), path_item(context, (1, 100, 0, 0))],
                  [head(3, 1), path_item(context, (1, 11, 0, 0))]))
    equal(told(path)["forked_children"], told(apart)["forked_children"])
    equal(depths(told(path, "--all-processes")), depths(told(apart, "--all-processes")), "shared paths")


def with_children(name):
    """A profile whose program had five children: one used its parent's call paths, one made its own
    below them, one was killed, one was exec'd away, one grew."""
    path = record(os.path.join(folder, name), "parent", 1000, 2000)
    context = told(path)["contexts"][0]["id"]
    tree = nodes(path)
    frame, parent = tree[context]
    records = [child(31, ENDED, 1, (10, 1000, 4, 400), maximum=700, lost=2),
               child(32, ENDED, 3, (6, 600, 0, 0), maximum=600, name=b"worker\x1b"),
               child(33, RUNNING, 0, (7, 70, 3, 30), maximum=50),
               child(34, EXECED, 1, (1, 5, 1, 5), maximum=5),
               child(35, GROWN, 0, (5000, 500000, 0, 0), maximum=400000)]
    second = segment(PROCESSES, 0, 1, 112, [child(36, ENDED, 1, (1, 11, 0, 0), maximum=11)], 1)
    new = 1 << 20  # ids of its own
    append(path, segment(PROCESSES, 0, 0, 112, records, 1), second,
           segment(PATHS, 1, 0, 48, [path_item(context, (10, 1000, 4, 400))], 2),
           segment(PATHS, 2, 0, 48, [path_item(new, (2, 200, 0, 0), frame, context),
                                     path_item(new + 1, (3, 300, 0, 0), frame, new)], 2),
           segment(PATHS, 2, 1, 48, [path_item(context, (1, 100, 0, 0))], 2),
           segment(PATHS, 4, 0, 48, [path_item(context, (1, 5, 1, 5))], 2),
           # A second leaf of records has numbers behind the first one's: 2 places a leaf here.
           segment(PATHS, 3, 0, 48, [path_item(context, (1, 11, 0, 0))], 2))
    return path, context


def depths(data):
    """{functions of the path up to main: (allocations, bytes, live)}"""
    found = {}
    for context in data["contexts"]:
        path = tuple(frame["function"] for frame in context["frames"])
        found[path[:path.index("main") + 1] if path else ()] = (
            context["allocations"], context["total_bytes"], context["live_bytes"])
    return found


def check_single():
    path, context = with_children("family.mtp")
    data = told(path)
    equal((data["allocations"], data["total_bytes"]), (2, 3000), "the parent's own")
    line = [line for line in command("report", path)[0].splitlines() if "forked children" in line]
    # 31 to 34; those of the second leaf are numbered from 1 * 2 on: 3, which 33 has already.
    equal(len(line), 1, "a line about them")
    equal(line[0].split(None, 2)[2],
          "4, 24 allocations (1.6 KiB), most held at once by one: 700 B, lost 2")
    equal(data["forked_children"], {"count": 4, "allocations": 24, "total_bytes": 1675,
                                    "live_bytes": 600 + 600 + 40, "peak_bytes": 700, "lost": 2})
    text = command("report", "--show-processes", path)[0]
    equal([line.split()[0] for line in text.splitlines()[3:]],
          [str(data["process"]["pid"]), "31", "32", "33", "34"], text)
    equal("\x1b" in text, False, "control characters")
    everything = told(path, "--all-processes")
    equal((everything["allocations"], everything["total_bytes"], everything["frees"]),
          (2 + 24, 3000 + 1675, 1 + 8), "with their children")
    equal((everything["live_bytes"], everything["lost"]), (1000 + 1240, 2))
    equal(everything["peak_bytes"], data["peak_bytes"], "the parent's alone")
    allocate, main = "allocate", "main"
    equal(depths(everything), {
        (allocate, main): (2 + 10 + 1 + 1, 3000 + 1000 + 100 + 5, 1000 + 600 + 100),
        (allocate, allocate, main): (2, 200, 200),
        (allocate, allocate, allocate, main): (3, 300, 300),
        (): (7, 70, 40)}, "call paths")


def check_merged():
    """memtrace merge keeps them apart; so does a second merge."""
    one, context = with_children("one.mtp")
    two = record(folder + "/two.mtp", "parent", 50)
    command("merge", "-o", folder + "/both.mtp", one, two)
    command("merge", "-o", folder + "/again.mtp", folder + "/both.mtp", two)
    apart, both, again = told(one), told(folder + "/both.mtp"), told(folder + "/again.mtp")
    equal(both["forked_children"], apart["forked_children"])
    equal(again["forked_children"], apart["forked_children"])
    equal(both["total_bytes"], 3050)
    equal(depths(told(folder + "/again.mtp", "--all-processes"))[("allocate",) * 3 + ("main",)],
          (3, 300, 300), "their own call paths")
    run = make("run")
    os.rename(one, run + "/parent.1.mtp")
    os.rename(two, run + "/parent.2.mtp")
    describe(run, [process(1, 0, "parent", 0, 9, 3000, file="parent.1.mtp"),
                   process(2, 1, "parent", 1, 9, 50, file="parent.2.mtp"),
                   process(31, 1, "sh", 2, 3, 700, file="parent.1.mtp", light=True, arguments=[])])
    equal(told(run, "--all-processes")["total_bytes"], 3000 + 1675 + 50, "a run")
    equal("31" in command("report", run)[0], True)


def check_many():
    """300 children of 30 allocations each."""
    path = record(folder + "/many.mtp", "parent", 100)
    context = told(path)["contexts"][0]["id"]
    records = [child(1000 + i, ENDED, 1, (30, 4000 + i, 30, 4000 + i), maximum=64 << 10)
               for i in range(300)]
    append(path, segment(PROCESSES, 0, 0, 112, records, 1),
           *(segment(PATHS, i + 1, 0, 48, [path_item(context, (30, 4000 + i, 30, 4000 + i))], 2)
             for i in range(300)))
    text = command("report", path)[0]
    equal("300, 9,000 allocations (1.2 MiB), most held at once by one: 64.0 KiB" in text, True, text)
    total = 100 + sum(4000 + i for i in range(300))
    equal(told(path, "--all-processes")["total_bytes"], total)


def check_without_children():
    path = record(folder + "/alone.mtp", "parent", 100)
    equal("forked_children" in told(path), False)
    equal("forked children" in command("report", path)[0], False)
    equal(told(path, "--all-processes")["total_bytes"], 100)


def check_damaged():
    """Ids that are not there, counts beyond the segment, loops, the same number twice, random bytes."""
    path = record(folder + "/bad.mtp", "parent", 1000)
    context = told(path)["contexts"][0]["id"]
    frame = nodes(path)[context][0]
    with open(path, "rb") as file:
        whole = file.read()
    most = (1 << 64) - 1
    records = [child(1, ENDED, 9, (3, 30, 0, 0)), child(2, ENDED, (1 << 32) - 1, (most,) * 4, most),
               child(3, 77, 1, (1, 1, 9, 9))]
    items = [path_item(1 << 31, (1, 10, 5, 50)), path_item(7 << 20, (1, 10, 0, 0), frame, 7 << 20),
             path_item(8 << 20, (1, 10, 0, 0), frame, 9 << 20), path_item(9 << 20, (0,) * 4, frame, 8 << 20),
             path_item(0, (0,) * 4), path_item(1, (most,) * 4)]
    hostile = [[segment(PROCESSES, 0, 0, 112, records, 1), segment(PROCESSES, 0, 0, 112, records, 1),
                segment(PATHS, 1, 0, 48, items, 2), segment(PATHS, 2, 0, 48, items * 100, 2),
                segment(PATHS, 4000000000, 0, 48, items, 2)],
               [segment(PROCESSES, 0, 4294967295, 112, records, 1)],
               [segment(PATHS, 1, 0, 48, items, 2)],
               [segment(PROCESSES, 0, 0, 112, records, 1),
                shared([head(1, 3)], items[:3], [head(1, 9), head(2, (1 << 32) - 1)], items, [head(77, 1)])]]
    chance = random.Random(1)
    for _ in range(8):
        noise = bytearray(b"".join(chance.choice((hostile[0], hostile[3]))))
        for _ in range(30):
            noise[chance.randrange(len(noise))] = chance.randrange(256)
        hostile.append([bytes(noise)])
    for segments in hostile:
        with open(path, "wb") as file:
            file.write(whole)
        append(path, *segments)
        for options in ((), ("--all-processes",), ("--show-processes", "--csv")):
            command("report", *options, path)
        command("merge", "-o", folder + "/out.mtp", path, path)
        json.loads(command("report", "--json", folder + "/out.mtp")[0])


check_single()
check_shared()
check_merged()
check_many()
check_without_children()
check_damaged()
finish()
