#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""byteorder.py: a profile written on a big-endian machine, read here. stacks.cpp, with paths that its own compiler's
unwinder confirms, runs on MIPS64 big-endian and on MIPS64 little-endian, each by qemu's emulation of user space: what
they did is the same, so what is reported is. Skipped, with a line, where a cross compiler is missing."""

import collections
import json
import os
import subprocess

from foreign import BUILD, Machine, fail, report

MEMTRACE = os.path.join(BUILD, "bin", "memtrace")
STACKS = "40"


def profiled(name):
    machine = Machine(name)
    folder = os.path.join(machine.folder, "byteorder")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    program = os.path.join(folder, "stacks")
    machine.compile("stacks.cpp", ["-O0"], program)
    _, profile = machine.emulate(program, ["1", STACKS], {}, folder)
    return profile


def paths(data):
    """Of the program's own blocks: what each path of functions and lines did."""
    found = collections.Counter()
    for context in data["contexts"]:
        frames = tuple((frame["function"], frame["line"]) for frame in context["frames"] if frame["line"])
        if frames and "check" in frames[0][0]:
            for what in ("allocations", "frees", "total_bytes", "live_bytes", "temporary"):
                found[frames, what] += context[what]
    return found


def totals(data):
    """(What the machines' loaders allocate differs, and the program does not free it.)"""
    return {name: data[name] for name in ("frees", "temporary", "lost")}


def refuses_nothing(profile, size):
    """The first `size` bytes of it: they are read up to where they break."""
    cut = profile + ".cut"
    with open(profile, "rb") as whole, open(cut, "wb") as part:
        part.write(whole.read(size))
    done = subprocess.run([MEMTRACE, "report", "--json", cut], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=300)
    if done.returncode != 0 or "cut off" not in done.stdout + done.stderr:
        fail("of", size, "bytes it says", done.returncode, done.stdout[-300:], done.stderr[-300:])
    json.loads(done.stdout)


def main():
    big, little = profiled("mips64"), profiled("mips64el")
    with open(big, "rb") as file:
        head = file.read(24)
    if head[16:20] != bytes([1, 2, 3, 4]):
        fail("the order of bytes is told as", head[16:20].hex())
    there, here = report(big), report(little)
    if paths(there) != paths(here):
        only = paths(there) - paths(here) or paths(here) - paths(there)
        fail("paths differ, such as", *list(only.items())[:2])
    if totals(there) != totals(here) or len(there["threads"]) != len(here["threads"]):
        fail(totals(there), "and not", totals(here))
    for size in (16384, os.path.getsize(big) // 2, os.path.getsize(big) - 4096):
        refuses_nothing(big, size)
    print("big-endian:", len(paths(here)) // 5, "paths,", sum(paths(here).values()), "as little-endian")


if __name__ == "__main__":
    main()
