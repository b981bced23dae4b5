# SPDX-License-Identifier: MIT
"""runfolder.py: runs made by hand: real profiles of small programs in a folder, a run.json that tells
of them, and light children appended to a profile (include/memtrace/format.h)."""

import json
import os
import shutil
import struct
import sys

SOURCE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(SOURCE, "..", "programs"))

from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, finish, leaves_nothing, report,
                     scratch, skip)  # noqa: E402, F401

HEADER = 16384
PAGE = 4096
ENDED, EXECED, GROWN, RUNNING = 2, 3, 4, 1
MS = 1000000

folder = scratch()
program = build(os.path.join(SOURCE, "subject.c"))


def command(name, *options, status=0, env=None):
    """What `memtrace NAME ...` prints: (stdout, stderr)."""
    done = execute([MEMTRACE, name, *options], clean_environment(TMPDIR=folder, **(env or {})),
                   cwd=folder)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    equal(done.returncode, status, "status of", name, options, out[-2000:], err)
    return out, err


def told(path, *options):
    return report(path, {"TMPDIR": folder}, *options)


def record(path, name, *sizes, how="run"):
    """A profile, uncompressed (how: record: a recording) of the subject, which is called `name`."""
    subject = os.path.join(folder, name)
    if not os.path.exists(subject):
        shutil.copy(program, subject)
    options = ["--no-summary"] + (["--embed", "none"] if how == "record" else [])
    done = execute([MEMTRACE, how, *options, "-o", path, "--", subject, *map(str, sizes)],
                   clean_environment(), cwd=folder)
    equal((done.returncode, done.stderr), (0, b""), how, path)
    if how == "run":  # uncompressed: tests change single bytes
        done = execute([MEMTRACE, "repack", "--raw", "-o", path, path])
        equal((done.returncode, done.stderr.count(b"\n")), (0, 1), "repack --raw", path)
    return path


def make(name):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    return path


def process(pid, parent, program, start_ms, end_ms, peak, **more):
    return {"pid": pid, "parent_pid": parent, "image": 1, "program": "/usr/bin/" + program,
            "arguments": [program, "x.c"], "start_ns": start_ms * MS, "end_ns": end_ms * MS,
            "end": "ended", "allocations": 100, "total_bytes": 2 * peak, "frees": 90,
            "leaked_bytes": 10, "leaked_blocks": 10, "peak_bytes": peak, "lost": 0, **more}


def describe(run, processes, **more):
    """Writes run.json."""
    text = {"format": "memtrace run", "version": 1, "command": ["make", "-j2"], "folder": "/src",
            "pid": processes[0]["pid"] if processes else 1, "start_realtime_ns": 10**18,
            "duration_ns": max([p["end_ns"] for p in processes] + [0]), "exit": {"status": 0},
            "processes": processes, "timeline": [],
            "peak": {"seen_bytes": 0, "at_ns": 0, "bound_bytes": 0}, **more}
    with open(os.path.join(run, "run.json"), "w", encoding="utf-8") as file:
        json.dump(text, file)
    return text


def patch(path, **fields):
    """Fields of a profile's header."""
    places = {"end": (24, "Q"), "state": (32, "I"), "pid": (44, "I"), "parent_pid": (48, "I"),
              "start_ticks": (88, "Q"), "start_realtime_ns": (96, "Q"), "start_ns": (104, "Q"),
              "end_ns": (112, "Q")}
    with open(path, "r+b") as file:
        for name, value in fields.items():
            file.seek(places[name][0])
            file.write(struct.pack(places[name][1], value))


def segment(kind, owner, index, item_size, items, hidden):
    """A segment; `hidden` places lie under its header."""
    count = hidden + len(items)
    size = (count * item_size + PAGE - 1) // PAGE * PAGE
    head = struct.pack("<IHHIIQII32x", 0x474d4553, kind, 64, owner, index, size, item_size, count)
    body = head.ljust(hidden * item_size, b"\0") + b"".join(items)
    return body.ljust(size, b"\0")


def child(pid, state, paths, totals, maximum=0, name=b"sh", lost=0, start=1, end=2, parent=1):
    """A light child's record: totals are allocations, bytes, frees and freed bytes."""
    return struct.pack("<IIIIQQQQQQQQ32s", pid, parent, state, paths, start, end, totals[0], totals[1],
                       totals[2], totals[3], maximum, lost, name)


def path_item(context, totals, frame=0, parent=0):
    return struct.pack("<QIIQQQQ", frame, context, parent, totals[1], totals[0], totals[3], totals[2])


def append(path, *segments):
    """Puts segments behind those of a profile."""
    with open(path, "r+b") as file:
        data = file.read()
        end = (struct.unpack_from("<Q", data, 24)[0] + PAGE - 1) // PAGE * PAGE
        file.seek(end)
        file.write(b"".join(segments))
        file.truncate()
        size = file.tell()
    patch(path, end=size)


def nodes(path):
    """{id: (frame, parent)} of a profile's tree."""
    found = {}
    with open(path, "rb") as file:
        data = file.read()
    offset = HEADER
    packed, areas = {}, {0: 0}
    while offset + 64 <= len(data):
        magic, kind, _, _, index, size, item, count = struct.unpack_from("<IHHIIQII", data, offset)
        for place in range(64 // item, min(count, (len(data) - offset) // item)) if magic == 0x474d4553 else ():
            if kind == 1:
                frame, parent = struct.unpack_from("<QI", data, offset + place * item)
                if frame:
                    found[index * 1024 + place] = (frame, parent)
            elif kind in (14, 15):
                value, = struct.unpack_from("<Q", data, offset + place * item)
                (packed if kind == 14 else areas)[index * count + place] = value
        offset += size if magic == 0x474d4553 else PAGE
    for context, node in packed.items():
        if node:
            found[context] = (areas[node >> 48] | node & 0xffffff, node >> 24 & 0xffffff)
    return found
