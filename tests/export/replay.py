#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`memtrace export --format replay` and `memtrace replay`: the file has the allocations of the recording,
as a reader of its own finds; a library that counts sees exactly these made again, in one thread and in
as many as there were; other allocators do it; packed files are the same; files that are damaged, packed or
not, are refused with one line."""

import gzip
import os
import re
import struct
import subprocess

from exported import (HERE, MEMTRACE, build, clean_environment, equal, execute, export, fail, finish, record,
                      recordings, scratch)

MALLOC, CALLOC, ALIGNED, REALLOC, FREE = range(1, 6)


def number(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def decode(data):
    """As docs/replay.md describes it: (what the foot says, [(operation, thread, slot, size, alignment)])."""
    equal(data[:8] + data[-8:], b"MTREPLAY" * 2, "head and foot")
    equal(struct.unpack("<II", data[8:16]), (1, 0x01020304), "version, byte order")
    foot = dict(zip(("events", "allocations", "frees", "bytes", "slots", "duration", "checksum"),
                    struct.unpack("<7Q", data[-64:-8])))
    at, thread, events = 16, 0, []
    while data[at] & 7:
        first, at, size, alignment = data[at], at + 1, 0, 0
        if first & 8:
            thread, at = number(data, at)
        if first & 16:
            _, at = number(data, at)
        slot, at = number(data, at)
        if first & 7 != FREE:
            size, at = number(data, at)
        if first & 7 == ALIGNED:
            alignment, at = data[at], at + 1
        events.append((first & 7, thread, slot, size, alignment))
    equal(at, len(data) - 65, "where it ends")
    return foot, events


def sums(recording):
    told = execute([MEMTRACE, "query", "--format", "csv", recording,
                    "SELECT count(*), sum(size), sum(freed IS NOT NULL) FROM allocations WHERE class = 'heap'"],
                   clean_environment())
    equal(told.returncode, 0, "query", told.stderr)
    return tuple(int(value) for value in told.stdout.decode().splitlines()[1].split(","))


def check_file(recording, data):
    foot, events = decode(data)
    count, size, freed = sums(recording)
    equal((foot["allocations"], foot["bytes"], foot["frees"]), (count, size, freed), "as the recording's sums")
    equal((len(events), sum(event[3] for event in events)), (foot["events"], size), "as the foot says")
    slots, most = {}, 0
    for operation, _, slot, size, _ in events:
        if (slot in slots) != (operation in (REALLOC, FREE)):
            fail("slot", slot, "at operation", operation, "of", size)
        if operation == FREE:
            del slots[slot]
        else:
            slots[slot] = size
        most = max(most, len(slots))
    equal((most, len(slots)), (foot["slots"], count - freed), "slots: most at once, left")
    ours = [event for event in events if 70000 <= event[3] < 80000]
    equal([sum(event[0] == kind for event in ours) for kind in (MALLOC, CALLOC, REALLOC, ALIGNED)],
          [100 + 1 + 500, 100, 100, 100], "operations of the program")
    equal({event[4] for event in ours}, {0, 12}, "alignments")
    equal(len({event[1] for event in ours}), 2, "threads")
    return ours


def replay(path, *options, status=0, **environment):
    done = execute([MEMTRACE, "replay", *options, path], clean_environment(**environment))
    equal(done.returncode, status, "replay", *options, done.stderr)
    return done.stdout.decode(), done.stderr.decode()


def check_counts(path, ours, *options):
    """A library that counts what the replay asks it for."""
    library = build(os.path.join(HERE, "replayed.c"), flags=["-DCOUNTS"], shared=True)
    counts = os.path.join(scratch(), "counts")
    with open(counts, "wb") as file:
        file.truncate(4096)
    replay(path, "--allocator", library, *options, COUNTS=counts)
    with open(counts, "rb") as file:
        found = struct.unpack("<8Q", file.read(64))
    wanted = []
    for kind in (MALLOC, CALLOC, REALLOC, ALIGNED):
        sizes = [event[3] for event in ours if event[0] == kind]
        wanted += [len(sizes), sum(sizes)]
    equal(list(found), wanted, "what the allocator was asked for", *options)


def resident(line):
    """Bytes at most and at the end, of a line."""
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    return [float(value.replace(",", "")) * units[unit]
            for value, unit in re.findall(r"([\d.,]+) (B|KiB|MiB|GiB)", line)]


def check_allocators(path, left):
    jemalloc = execute(["gcc", "-print-file-name=libjemalloc.so.2"]).stdout.decode().strip()
    told, _ = replay(path, "--touch", "--times", "2", "--allocator", jemalloc)
    lines = told.splitlines()
    equal([line.split()[0] for line in lines[1:]], ["allocator", "default", "libjemalloc.so.2"], "lines", told)
    for line in lines[2:]:
        if not all(left <= value < 4 * left + (4 << 20) for value in resident(line)):
            fail("resident while", left, "bytes are left:", line)


def check_refused(path):
    with open(path, "rb") as file:
        data = file.read()
    bad = path + ".bad"
    wrong = [b"", b"x", data[:8], data[:100], data[:-1], data + b"\0", b"MTREPLAY" + b"\0" * 200, data[:16] + data[-64:],
             data[:8] + b"\2" + data[9:]]
    for at in (*range(0, 40), len(data) // 2, *range(len(data) - 66, len(data), 3)):
        wrong.append(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
    for content in wrong:
        with open(bad, "wb") as file:
            file.write(content)
        _, said = replay(bad, status=1)
        if said.count("\n") != 1 or "replay.bad" not in said:
            fail("not one line about the file:", said)
    for other in (os.path.dirname(path), path + ".none", __file__):
        _, said = replay(other, status=1)
        equal(said.count("\n"), 1, "lines", said)
    for library, words in (("/none.so", "No such file"), (__file__, "could not be loaded or has no malloc")):
        done = execute([MEMTRACE, "replay", "--allocator", library, path], clean_environment())
        if done.returncode == 0 or words not in done.stderr.decode():
            fail("replay with", library, done.returncode, done.stderr)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def check_packed(path, ours):
    """By what is in the file, whatever its name is. Of a damaged one nothing is repeated."""
    with open(path, "rb") as file:
        data = file.read()
    told = replay(path)[0].splitlines()[0]
    packed = path + ".packed"
    for pack in (gzip.compress, zstd):
        whole = pack(data)
        with open(packed, "wb") as file:
            file.write(whole)
        equal(replay(packed)[0].splitlines()[0], told.replace(path, packed), "what is told of a packed file")
        check_counts(packed, ours, "--threads")
        wrong = [whole[:-1], whole[:len(whole) // 2], whole[:12], whole[:4], whole + b"x", pack(b""), pack(b"x"),
                 pack(data[:-1]), pack(data[:100]), pack(data + b"\0"), pack(b"\0" * (1 << 20)), pack(whole),
                 whole + whole]
        for at in range(4, len(whole), len(whole) // 40):
            wrong.append(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
        accepted = 0
        for content in wrong:
            with open(packed, "wb") as file:
                file.write(content)
            done = execute([MEMTRACE, "replay", packed], clean_environment())
            accepted += done.returncode == 0
            said = done.stderr.decode()
            if done.returncode and (done.returncode != 1 or said.count("\n") != 1 or "replay.packed" not in said):
                fail("not one line about the packed file:", done.returncode, said)
        if accepted > 3:  # a packer's header has bits that mean nothing
            fail(accepted, "damaged files were read")


def check_exports(recording, profile_refused, left):
    done = execute([MEMTRACE, "export", "--format", "replay", profile_refused], clean_environment())
    equal((done.returncode, b"no single allocations" in done.stderr), (1, True), "a profile", done.stderr)
    foot, events = decode(export(recording, "--format", "replay", "--size", "71000..71999"))
    equal((foot["allocations"], foot["frees"]), (100, 50), "a selection")
    equal({event[0] for event in events}, {MALLOC, FREE}, "what was reallocated begins here")
    path = os.path.join(scratch(), "part.replay")
    done = execute([MEMTRACE, "export", "-o", path, "--size", "71000..71999", recording], clean_environment())
    equal(done.returncode, 0, "by its ending", done.stderr)
    ends = [resident(replay(path, *options)[0].splitlines()[2])[1] for options in ((), ("--touch",))]
    if not ends[0] < left / 2 < left <= ends[1]:
        fail("resident without and with --touch:", ends, "of", left)


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "replayed.c"), optimize="-O1", flags=["-fno-builtin"])
    done = record([program], folder)
    equal(done.returncode, 0, done.stderr)
    recording = recordings(folder)[0]
    data = export(recording, "--format", "replay")
    path = os.path.join(folder, "out.replay")
    with open(path, "wb") as file:
        file.write(data)
    ours = check_file(recording, data)
    check_counts(path, ours)
    check_counts(path, ours, "--threads")
    check_allocators(path, 50 * 71050)
    check_refused(path)
    check_packed(path, ours)
    check_exports(recording, [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".mtp")][0],
                  50 * 71050)
    finish()


main()
