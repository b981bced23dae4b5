# SPDX-License-Identifier: MIT
"""slices.py: a recording carries the sums of its events. A report that is made of them says what it
says without; so do reports of windows. Sums that are damaged or not there make no difference, and
events that are damaged are told. They take at most a fiftieth of the file."""

import json
import os
import shutil
import struct

from recorded import HERE, only_recording, record, recordings
from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, scratch

ROUNDS = r"""
#include <stdlib.h>
static void *volatile block;
__attribute__((noinline)) static void left(int depth, unsigned way);
__attribute__((noinline)) static void right(int depth, unsigned way);
static void go(int depth, unsigned way) {
    if (depth == 0) {
        block = malloc(way + 1);
        free(block);
    } else if (way >> (depth - 1) & 1) {
        left(depth - 1, way);
    } else {
        right(depth - 1, way);
    }
}
static void left(int depth, unsigned way) { go(depth, way); __asm__ volatile(""); }
static void right(int depth, unsigned way) { go(depth, way); __asm__ volatile(""); }
int main(void) {
    for (unsigned i = 0; i < 1600 * 512; i++) {
        go(9, i % 512);
    }
    return 0;
}
"""

HEADER, BLOCK = 64, struct.Struct("<IHHIIQ")
EVENTS, SLICES, INDEX = 3, 14, 10
THREADS, PAIRS = 2, 150000


def blocks(path):
    """(kind, offset, header's size, stored size) of each block."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = HEADER, []
    while at + BLOCK.size < len(data):
        magic, kind, header_size, stored, _, _ = BLOCK.unpack_from(data, at)
        if magic != 0x4b4c424d:
            break
        found.append((kind, at, header_size, stored))
        at += (header_size + stored + 7) // 8 * 8
    return found


def kinds(path):
    return [kind for kind, _, _, _ in blocks(path)]


def damage(path, kind):
    """Flips a byte in the middle of each block of this kind."""
    count = 0
    with open(path, "r+b") as file:
        for found, at, header_size, stored in blocks(path):
            if found == kind and stored:
                place = at + header_size + stored // 2
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ 0x55]))
                count += 1
    return count


def told(path, *options):
    """What a report says, nothing kept from one to the next."""
    result = execute([MEMTRACE, "report", "--json", *options, path],
                     clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, "report", *options, result.stderr)
    data = json.loads(result.stdout)
    data.pop("source", None)
    return data


def copy(path, name):
    return shutil.copy(path, os.path.join(scratch(), name))


def same(left, right, what):
    for key in left:
        if left[key] != right.get(key):
            fail(what, key, "differs:", str(left[key])[:300], "and", str(right.get(key))[:300])


def check_whole(path):
    found = kinds(path)
    equal(found.count(SLICES), 1, "blocks of slices")
    equal(found[-2:], [SLICES, INDEX], "last blocks")
    size = sum(header + stored for kind, _, header, stored in blocks(path) if kind == SLICES)
    if size > max(os.path.getsize(path) / 50, 16384):
        fail("slices take", size, "of", os.path.getsize(path), "bytes")
    quick = told(path)

    hit = copy(path, "recording.mtr")
    if damage(hit, EVENTS) == 0:
        fail("no events")
    data = told(hit)
    if data["recording"]["events"] >= quick["recording"]["events"] or not data["warnings"]:
        fail("damaged events are not told:", data["recording"]["events"], data["warnings"])

    slow = copy(path, "recording.mtr")
    equal(damage(slow, SLICES), 1, "damaged slices")
    again = told(slow)
    again["warnings"] = [line for line in again["warnings"] if "damaged" not in line]
    same(quick, again, "without slices:")
    end = quick["process"]["duration_ns"]
    for part in (0.2, 0.55):
        window = ["--from", f"{int(end * part)}ns", "--to", f"{int(end * (part + 0.3))}ns"]
        other = told(slow, *window)
        other["warnings"] = [line for line in other["warnings"] if "damaged" not in line]
        same(told(path, *window), other, f"window at {part}:")


def check_many_paths():
    """Each slice has hundreds of call paths, the events repeat themselves: slices are joined until they
    take no more than they may, as they would not by themselves."""
    folder = scratch()
    source = os.path.join(folder, "rounds.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(ROUNDS)
    under = record([build(source, "gcc", "-O1")], folder)
    equal(under.returncode, 0, "exit status", under.stderr)
    path = only_recording(folder, "many paths")
    if len(told(path)["contexts"]) < 512:
        fail("not enough call paths:", len(told(path)["contexts"]))
    check_whole(path)


def main():
    check_many_paths()
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder = scratch()
    counts = os.path.join(folder, "counts")
    command = [program, counts, str(THREADS), str(PAIRS)]
    under = record(command, folder)
    equal(under.returncode, 0, "exit status", under.stderr)
    path = only_recording(folder, "slices")
    check_whole(path)

    without = scratch()
    record(command, without, "--no-slices")
    equal(kinds(only_recording(without, "--no-slices")).count(SLICES), 0, "--no-slices: blocks")

    long = scratch()  # enough of it that most is summed up while it runs, where a processor is free
    record([program, counts, str(THREADS), "3000000"], long)
    check_whole(only_recording(long, "a long one"))

    small = scratch()
    record([program, counts, "1", "100"], small)
    equal(kinds(only_recording(small, "a short one")).count(SLICES), 0, "a short recording: blocks")

    repacked = os.path.join(scratch(), "repacked.mtr")
    equal(execute([MEMTRACE, "repack", "-o", repacked, path]).returncode, 0, "repack")
    equal(kinds(repacked).count(SLICES), 0, "repacked: blocks")

    rotated = scratch()
    record(command, rotated, "--rotate", "100K")
    parts = sorted(recordings(rotated), key=lambda name: (len(name), name))
    equal([kinds(part).count(SLICES) for part in parts], [0] * (len(parts) - 1) + [1], "of parts")
    quick = told(parts[0])
    equal(damage(parts[-1], SLICES), 1, "slices of parts")
    again = told(parts[0])
    again["warnings"] = [line for line in again["warnings"] if "damaged" not in line]
    same(quick, again, "parts:")
    equal(quick["recording"]["parts"], len(parts), "parts")
    finish()


if __name__ == "__main__":
    main()
