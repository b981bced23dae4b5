#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""whole.py MACHINE FOLDER: the whole memtrace command for MACHINE, which scripts/cross has built in FOLDER, under qemu's
emulation of user space. What it says of files, writes of them and answers is what this machine's command does, byte
for byte: of a profile and a recording of MACHINE's own, and of this machine's.

Not part of scripts/test, since it needs Debian's packages of MACHINE: scripts/test-platforms MACHINE --command."""

import os
import shutil
import subprocess
import sys

from files import MEMTRACE, Foreign, make_stacks
from foreign import PATIENCE, Machine, fail, run

VIEWS = ("peak leaked allocated allocations temporary findings groups lifetimes mappings timeline threads processes marks"
         " sizes blocks fragmentation shutdown").split()
FORMS = [["--json"], ["--csv"], ["--flat"], ["--paths"], ["--bottom-up"], ["--by", "line"], ["--full-names"],
         ["--all-frames", "--limit", "0"], ["--json", "--nodes"], ["--color", "always"]]
FORMATS = ("folded flamegraph html gprof2dot speedscope callgrind heaptrack massif pprof replay json csv").split()
QUERIES = [
    "SELECT * FROM contexts ORDER BY total_bytes DESC, hash LIMIT 50",
    "SELECT size, count(*), avg(size) / 3.0, sum(size * 1.1) FROM allocations GROUP BY size ORDER BY size",
    "SELECT * FROM processes",
    "SELECT * FROM threads",
]


class Commands:
    """This machine's and the other one's, which get the same words in the same folder."""

    def __init__(self, machine, folder, place):
        self.here = [MEMTRACE]
        self.there = [*machine.emulator, "-L", os.path.join(folder, "root"), os.path.join(folder, "bin", "memtrace")]
        self.place, self.count, self.bytes = place, 0, 0

    def start(self, command, words):
        done = subprocess.run([*command, *words], cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False, env={**os.environ, "MEMTRACE_CACHE": ""})
        return done.returncode, done.stdout, done.stderr

    def same(self, *words, status=0, writes=None):
        """writes: a file that both make, which is compared, too."""
        results = []
        for command in (self.here, self.there):
            result = self.start(command, words)
            if writes and result[0] == 0:
                path = os.path.join(self.place, writes)
                with open(path, "rb") as file:
                    result += (file.read(),)
                os.unlink(path)
            results.append(result)
        if results[0][0] != status:
            fail(words, "ended with", *results[0])
        if results[0] != results[1]:
            show(results, words)
        self.count += 1
        self.bytes += sum(len(part) for part in results[0][1:])


def show(results, words):
    """Where they are apart."""
    for here, there in zip(*results):
        if here != there:
            if isinstance(here, int):
                fail(words, "ended with", there, "instead of", here, results[1][2])
            at = next((i for i, pair in enumerate(zip(here, there)) if pair[0] != pair[1]), min(len(here), len(there)))
            fail(words, "differs at byte", at, "of", len(here), "\nhere", here[max(at - 200, 0):at + 100], "\nthere",
                 there[max(at - 200, 0):at + 100])


def read_all(commands, file, *options):
    """All that is said of one file."""
    for view in VIEWS:
        # Some ask for a recording.
        status = commands.start(commands.here, ["report", "--show-" + view, *options, file])[0]
        commands.same("report", "--show-" + view, *options, file, status=status)
    for form in FORMS:
        commands.same("report", *form, *options, file)
    for form in FORMATS:
        status = commands.start(commands.here, ["export", "--format", form, "--output", "first", *options, file])[0]
        commands.same("export", "--format", form, "--output", "out", *options, file, status=status,
                      writes="out" if status == 0 else None)
    commands.same("export", "--format", "sqlite", "--output", "out.sqlite", *options, file, writes="out.sqlite")
    for query in QUERIES:
        for form in ("table", "json", "csv"):
            status = commands.start(commands.here, ["query", "--format", form, *options, file, query])[0]
            commands.same("query", "--format", form, *options, file, query, status=status)
    commands.same("info", file)
    commands.same("info", "--json", file)
    commands.same("check", "--max-allocations", "1", "--format", "junit", *options, file, status=1)


def write_all(commands, profile, recording):
    """Files that are made of files."""
    commands.same("repack", "--raw", "--output", "out.mtp", profile, writes="out.mtp")
    commands.same("repack", "--output", "out.mtp", profile, writes="out.mtp")
    commands.same("repack", "--output", "out.mtr", recording, writes="out.mtr")
    commands.same("strip", "--output", "out.mtr", recording, writes="out.mtr")
    commands.same("merge", "--output", "out.mtp", profile, profile, writes="out.mtp")


def make_here(place):
    """A profile and a recording of this machine's own."""
    program = os.path.join(place, "here")
    Machine("here").compile("stacks.cpp", ["-O2"], program)
    files = []
    for kind in ("run", "record"):
        files.append(os.path.join(place, "here." + kind))
        run([MEMTRACE, kind, "--no-summary", "--output", files[-1], "--", program, "1", "40"])
    return files


def main():
    machine, folder = Machine(sys.argv[1]), os.path.abspath(sys.argv[2])
    machine.build()
    foreign = Foreign(machine, "whole")
    program = make_stacks(foreign)
    copies = foreign.path("copies")
    os.makedirs(copies)
    shutil.copy(program, copies)
    commands = Commands(machine, folder, foreign.folder)
    options = ["--root", copies + ":" + foreign.libraries]
    profile, recording = make_here(foreign.folder)
    for file in (foreign.path("run"), foreign.path("record")):
        read_all(commands, file, *options)
    for file in (profile, recording):
        read_all(commands, file)
    commands.same("diff", *options, foreign.path("run"), foreign.path("record"))
    commands.same("diff", "--json", profile, recording)
    commands.same("--help")
    commands.same("report", "nothing.mtp", status=1)
    write_all(commands, profile, recording)
    write_all(commands, foreign.path("run"), foreign.path("record"))
    print("%s: the same in %d commands, %d bytes" % (machine.name, commands.count, commands.bytes))


if __name__ == "__main__":
    main()
