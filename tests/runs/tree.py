# SPDX-License-Identifier: MIT
"""`memtrace report RUN`: the tree of processes, the peak of all, with run.json and without."""

import os
import shutil
import struct
import sys

from runfolder import (EXECED, MS, command, describe, equal, fail, finish, folder, make, patch, process,
                       record, told)


def lines(text, *words):
    return [line for line in text.splitlines() if all(word in line for word in words)]


def one(text, *words):
    found = lines(text, *words)
    equal(len(found), 1, "lines with", words, "in", text[:3000])
    return found[0] if found else ""


def write_run(name):
    """make starts two shells, which become compilers by exec, and 50 small processes."""
    run = make(name)
    record(run + "/make.100.mtp", "make", 5000)
    record(run + "/cc1.102.mtp", "cc1", 300000, 7)
    record(run + "/ld.103.mtp", "ld", 70000)
    chain = [process(102, 100, "sh", 10, 20, 4000, end="execed"),
             process(102, 100, "cc1", 20, 90, 300000, image=2, file="cc1.102.mtp", lost=3,
                     arguments=["cc1", "-O2", "big.c"])]
    small = [process(200 + i, 102, "true", 30 + i, 31 + i, 100 + i, allocations=7) for i in range(50)]
    describe(run, [process(100, 1, "make", 0, 100, 5000, file="make.100.mtp")] + chain + small +
             [process(103, 100, "ld", 91, 99, 70000, file="ld.103.mtp")],
             timeline=[[i * 10 * MS, (i % 5) * 100000, 1 << 20, 3] for i in range(10)],
             peak={"seen_bytes": 400000, "at_ns": 40 * MS, "bound_bytes": 450000})
    return run


def check_small(run):
    """Where all were small, the image that held most is named, and that others.mtp has more than it."""
    record(run + "/others.mtp", "ls", 3000, 50)
    describe(run, [process(100, 1, "sh", 0, 10, 50, end="execed", file="others.mtp"),
                   process(100, 1, "ls", 10, 20, 3000, image=2, file="others.mtp")])
    text = command("report", run)[0]
    one(text, "Process 100 (ls), which held the most memory. What follows is the sum of all small processes:")


def check_text(run):
    text = command("report", "--processes", "3", run)[0]
    one(text, "MemTrace run of make -j2")
    one(text, "processes", "53 in 100.0 ms, exit status 0")
    one(text, "combined peak", "400,000 bytes, seen after 40.0 ms", "the true peak is at most 439.5 KiB")
    head = text[:text.index("  pid  ")]
    equal(len(one(head, "  over time ").strip()) > 40, True, "a bar for each share of the time")
    equal(one(text, " 100 ").split()[-2:], ["make", "x.c"])
    equal(one(text, "sh -> cc1 -O2 big.c").split(),
          ["102", "293.0", "KiB", "10", "B", "80.0", "ms", "3", "sh", "->", "cc1", "-O2", "big.c"])
    shown = [text.index(word) for word in ("make x.c", "sh -> cc1", "ld x.c")]
    equal(sorted(shown), shown, "children below their parents, in the order of their starts")
    indent = {word: one(text, word).index(word) for word in ("make x.c", "sh -> cc1", "ld x.c")}
    equal(indent["sh -> cc1"] - indent["make x.c"], 2, "children are indented")
    equal(indent["sh -> cc1"], indent["ld x.c"])
    one(text, "50 smaller processes: 350 allocations, peak at most 149 B each")
    one(text, "Process 102 (cc1), which held the most memory:")
    one(text, "  profile", run + "/cc1.102.mtp")
    everything = command("report", "--processes", "0", run)[0]
    equal(len(lines(everything, "true x.c")), 50, "all processes")
    equal(lines(everything, "smaller"), [])


def check_forms(run):
    data = told(run)["run"]
    equal((data["peak_bytes"], data["peak_ns"], data["peak_bound_bytes"]), (400000, 40 * MS, 450000))
    equal((len(data["processes"]), len(data["timeline"]), data["exit_status"]), (54, 10, 0))
    equal(data["chosen"], {"pid": 102, "image": 2})
    equal(data["command"], ["make", "-j2"])
    rows = command("report", "--show-processes", "--csv", run)[0].splitlines()
    equal((len(rows), rows[0].split(",")[:3]), (55, ["pid", "parent_pid", "image"]))
    text = command("report", "--format", "markdown", run)[0]
    one(text, "sh -> cc1 -O2 big.c")
    equal(len(lines(text, "```")) % 2, 0, "fences of Markdown")


def write_timeline(path, points):
    """In place of what a program had time to see: of each its ms, live bytes, resident bytes, blocks, peak."""
    with open(path, "r+b") as file:
        data = file.read()
        for offset in range(16384, len(data), 4096):
            if data[offset:offset + 8] == b"SEMG\x07\0\x40\0":
                file.seek(offset + 64)
                file.write(struct.pack("<IIQQ", len(points), 0, 0, 0) + b"".join(
                    struct.pack("<5Q", p[0] * MS, *p[1:]) for p in points))


def check_without(run):
    """No run.json: it goes on still, or was killed."""
    os.remove(run + "/run.json")
    base = 10**18
    part = 100 * MS
    patch(run + "/make.100.mtp", pid=100, parent_pid=1, start_realtime_ns=base, start_ns=0,
          end_ns=100 * part, start_ticks=5)
    patch(run + "/cc1.102.mtp", pid=102, parent_pid=100, start_realtime_ns=base + 20 * part, start_ns=0,
          end_ns=70 * part, start_ticks=6)
    patch(run + "/ld.103.mtp", pid=103, parent_pid=100, start_realtime_ns=base + 91 * part, start_ns=0,
          end_ns=8 * part, start_ticks=7)
    record(run + "/sh.102.mtp", "sh", 4000)
    patch(run + "/sh.102.mtp", pid=102, parent_pid=100, start_realtime_ns=base + 10 * part, start_ns=0,
          end_ns=9 * part, start_ticks=6, state=EXECED)
    for name in ("make.100", "cc1.102", "ld.103", "sh.102"):
        write_timeline(run + "/%s.mtp" % name, [])
    text = command("report", run)[0]
    one(text, "no usable run.json")
    one(text, "sh -> cc1 300000 7")
    one(text, "Process 102 (cc1), which held the most memory:")
    data = told(run)["run"]
    equal([(p["pid"], p["image"], p["start_ns"], p["end_ns"], p["peak_bytes"], p["end"])
           for p in data["processes"]],
          [(100, 1, 0, 100 * part, 5000, "ended"), (102, 1, 10 * part, 19 * part, 4000, "execed"),
           (102, 2, 20 * part, 90 * part, 300007, "ended"), (103, 1, 91 * part, 99 * part, 70000, "ended")])
    equal(data["peak_bytes"], 300007, "the highest peak of one")
    equal(data["peak_bound_bytes"], 305007, "make and cc1 were there together, make and ld for less")
    equal([(p["time_ns"], p["processes"]) for p in data["timeline"] if p["processes"] == 0],
          [(100 * part, 0)])


def check_timelines():
    """Timelines of two processes that held memory at different times add up by the clock."""
    run = make("timelines")
    for pid, size in ((11, 1000000), (12, 2000000)):
        path = record(run + "/p.%d.mtp" % pid, "p%d" % pid, size)
        write_timeline(path, [(5, size // 2, 4096, 1, size), (50, size, 8192, 1, size)])
        patch(path, pid=pid, start_realtime_ns=10**18 + (pid - 11) * 20 * MS, start_ns=0,
              end_ns=60 * MS, start_ticks=pid)
    data = told(run)["run"]
    equal([(p["time_ns"] // MS, p["live_bytes"], p["processes"]) for p in data["timeline"]],
          [(0, 0, 1), (5, 500000, 1), (20, 500000, 2), (25, 1500000, 2), (50, 2000000, 2),
           (60, 1000000, 1), (70, 2000000, 1), (80, 0, 0)])
    equal((data["peak_bytes"], data["peak_bound_bytes"]), (2000000, 3000000))


def processor_seconds():
    """Of all commands up to now: a busy machine makes them late, not long."""
    used = os.times()
    return used.children_user + used.children_system


def check_thousand():
    """Which of 1,000 compilers held most: no profile but that one's is read."""
    run = make("thousand")
    template = record(run + "/cc1.5000.mtp", "cc1", 250000)
    everyone = [process(99, 1, "make", 0, 60000, 900)]
    for i in range(1000):
        name = "cc1.%d.mtp" % (5000 + i)
        if i != 0:
            os.link(template, run + "/" + name)
        everyone.append(process(5000 + i, 99, "cc1", 10 + i, 1000 + i, 1000 + i * 7 % 1000, file=name))
    everyone[678]["peak_bytes"] = 5 << 20
    describe(run, everyone)
    begun = processor_seconds()
    text = command("report", run)[0]
    if processor_seconds() - begun > 10:  # it is 0.1 s
        fail("1,000 processes took", processor_seconds() - begun, "s")
    one(text, "Process 5677 (cc1), which held the most memory:")
    one(text, "990 smaller processes: 99,000 allocations")
    os.remove(run + "/run.json")
    begun = processor_seconds()
    command("report", run)
    if processor_seconds() - begun > 20:
        fail("the headers of 1,000 profiles took", processor_seconds() - begun, "s")


def check_newest():
    """Without a name: the newest entry, file or folder."""
    for name in os.listdir(folder):
        if name.endswith(".mtp"):
            shutil.rmtree(folder + "/" + name)
    record(folder + "/old.mtp", "old", 10)
    os.utime(folder + "/old.mtp", (10**9, 10**9))
    os.rename(write_run("newer"), folder + "/newer.mtp")
    one(command("report")[0], "MemTrace run of make -j2")
    os.utime(folder + "/newer.mtp", (10**8, 10**8))
    one(command("report")[0], "MemTrace report of old")


def check_odd():
    """Nobody's parent, its own parent, a pid that comes again, two images of one number, a killed one
    and one that runs still, names that would move the cursor."""
    run = make("odd")
    record(run + "/a.7.mtp", "a", 100)
    describe(run, [process(7, 7, "a", 0, 50, 100, file="a.7.mtp"),
                   process(8, 9999, "b", 0, 5, 90), process(8, 7, "c", 10, 20, 80),
                   process(8, 7, "d", 30, 40, 70), process(9, 8, "e", 35, 38, 60, end="killed"),
                   process(10, 8, "evil\x1b[2J\nname\x7f", 36, 38, 50, end="running", arguments=[]),
                   process(11, 7, "f", 36, 37, 40, image=5), process(11, 7, "g", 36, 39, 30, image=5)])
    text = command("report", run)[0]
    one(text, "e x.c (killed)")
    one(text, "evil?[2J?name? (running)")
    equal(one(text, "d x.c").index("d x.c") + 2, one(text, "e x.c").index("e x.c"),
          "the last one with a pid is the parent")
    equal(one(text, "a x.c").index("a x.c"), one(text, "b x.c").index("b x.c"))
    for form in ("--json", "--csv"):
        command("report", run, form)
    command("report", run, "--show-processes")


run = write_run("run")
check_small(make("small.mtp"))
check_text(run)
check_forms(run)
check_without(run)
check_timelines()
check_thousand()
check_newest()
check_odd()
# A peak between two looks is at its own moment, not at the start of its process.
late = folder + "/late.mtp"
command("run", "-o", late, "--", "sh", "-c",
        "true; %s -c 'import time; time.sleep(0.15); bytearray(30000000); time.sleep(0.01)'; true" % sys.executable)
peak = told(late)["run"]["peak_ns"]
equal(peak >= 150000000, True, "the moment of the peak", peak)
finish()
