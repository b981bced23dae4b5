#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mixed.py CASE: programs that start programs of another kind (mixed.c) under `memtrace run`: with glibc, with musl,
statically linked, for AArch64. All of them end as they do alone and say no more than alone. CASE is

    beside      with all libraries in the installation: each program is counted, whoever starts it, in whichever way
    lacking     with the library for glibc alone: one line says how many were not
    emulated    AArch64, by an emulator, and back"""

import os
import shutil
import subprocess
import sys

from foreign import BUILD, HERE, Machine, fail, report, run

WAYS = ("exec", "fork", "spawn", "bare", "system", "popen")
TAKEN = 100
LINE = "memtrace: programs that it started ran without being profiled: "
LIBC = "%d linked with another C library, for which no library of MemTrace's is there"
STATIC = "%d linked statically, without MemTrace in it"
MACHINE = "%d for another machine, for which no library of MemTrace's is there"


class Mixed:
    def __init__(self, case):
        self.folder = os.path.join(BUILD, "tests", "platforms", "mixed." + case)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.path("here", "bin"))
        os.makedirs(self.path("here", "lib"))
        self.memtrace = self.path("here", "bin", "memtrace")
        shutil.copy(os.path.join(BUILD, "bin", "memtrace"), self.memtrace)
        self.add_library("libmemtrace.so")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMTRACE")}

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def add_library(self, name, built=BUILD, folder=""):
        os.makedirs(self.path("here", "lib", folder), exist_ok=True)
        shutil.copy(os.path.join(built, "lib", name), self.path("here", "lib", folder, name))

    def compile(self, name, compiler, *flags):
        run([compiler, "-g", "-O1", os.path.join(HERE, "mixed.c"), *flags, "-o", self.path(name)])
        return self.path(name)

    def compile_static(self, name, built=BUILD, compiler="gcc"):
        """With MemTrace in it."""
        runtime = os.path.join(built, "lib", "memtrace", "static")
        return self.compile(name, compiler, "-static", runtime + ".o", "@" + runtime + ".options")

    def execute(self, words):
        done = subprocess.run(words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr

    def counted(self, words, said="", alone=True):
        """By program: how often it allocated, in all its processes."""
        entry = self.path("run.mtp")
        status, out, err = self.execute([self.memtrace, "run", "--no-summary", "--keep-small", "--output", entry, "--",
                                         *words])
        if alone and (status, out) != self.execute(words)[:2]:
            fail(words, "ended with", status, "and said", out, err)
        if err != said:
            fail(words, "should say", repr(said), "and says", repr(err))
        files = [os.path.join(place, name) for place, _, names in os.walk(entry) for name in names
                 if name.endswith(".mtp")] if os.path.isdir(entry) else [entry] if os.path.exists(entry) else []
        found = {}
        for file in files:
            data = report(file)
            name = os.path.basename(data["program"])
            found[name] = found.get(name, 0) + sum(context["allocations"] for context in data["contexts"] if "take" in
                                                   [frame["function"] for frame in context["frames"]])
        shutil.rmtree(entry, ignore_errors=True)
        if os.path.exists(entry):
            os.unlink(entry)
        return {name: count for name, count in found.items() if count}

    def expect(self, words, names, said="", **more):
        found = self.counted(words, said, **more)
        wanted = {name: TAKEN * names.count(name) for name in names}
        if found != wanted:
            fail(words, "has", found, "and should have", wanted)


def make_script(mixed, name, *lines):
    with open(mixed.path(name), "w", encoding="utf-8") as file:
        file.write("\n".join(("#!/bin/sh",) + lines) + "\n")
    os.chmod(mixed.path(name), 0o755)
    return mixed.path(name)


def beside(mixed):
    mixed.add_library("libmemtrace-musl.so")
    glibc, musl = mixed.compile("glibc", "gcc"), mixed.compile("musl", "musl-gcc")
    static, ours = mixed.compile("static", "gcc", "-static"), mixed.compile_static("ours")
    for way in WAYS:
        mixed.expect([glibc, way, musl], ["glibc", "musl"])
        mixed.expect([musl, way, glibc], ["glibc", "musl"])
        mixed.expect([ours, way, musl], ["ours", "musl"])
    mixed.expect([glibc, "fork", musl, "system", glibc, "exec", musl], ["glibc", "musl", "glibc", "musl"])
    mixed.expect([musl, "spawn", ours, "exec", glibc, "exec", ours, "fork", musl], ["musl", "ours", "glibc", "ours", "musl"])
    # What a static program starts that knows nothing of us runs, whichever C library it has.
    for last in (glibc, musl):
        mixed.expect([glibc, "fork", static, "exec", last], ["glibc"], LINE + STATIC % 1 + "\n")
    script = make_script(mixed, "script", musl + " || true", "env -i %s || true" % musl, "env -i %s exec %s" % (musl, glibc))
    mixed.expect([script], ["musl", "musl", "musl", "glibc"])
    mixed.expect([glibc, "system", script], ["glibc", "musl", "musl", "musl", "glibc"])
    # No program sees that it is followed.
    for words in ([glibc, "spawn", musl, "env"], [musl, "fork", glibc, "env"], [glibc, "exec", ours, "exec", musl, "env"],
                  [musl, "bare", glibc, "env"]):
        mixed.counted(words)
    print("mixed: glibc, musl and static programs follow each other in", len(WAYS), "ways")


def lacking(mixed):
    glibc, musl = mixed.compile("glibc", "gcc"), mixed.compile("musl", "musl-gcc")
    for way in WAYS:
        mixed.expect([glibc, way, musl], ["glibc"], LINE + LIBC % 1 + "\n")
    script = make_script(mixed, "script", "for i in 1 2 3; do %s; done" % musl, "exec " + glibc)
    mixed.expect([script], ["glibc"], LINE + LIBC % 3 + "\n")
    mixed.expect([glibc, "fork", musl, "system", glibc], ["glibc"], LINE + LIBC % 1 + "\n")
    print("mixed: programs that cannot be followed run, and a line says how many")


def emulated(mixed):
    machine = Machine("aarch64")
    qemu = [shutil.which("qemu-aarch64"), "-cpu", "max", "-L", machine.root]
    foreign_gcc = machine.compiler.replace("g++", "gcc")
    glibc, foreign = mixed.compile("glibc", "gcc"), mixed.compile("foreign", foreign_gcc)
    static = mixed.compile("static", foreign_gcc, "-static")
    ours = mixed.compile_static("ours", machine.built, foreign_gcc)
    mixed.expect([glibc, "fork", *qemu, foreign], ["glibc"], LINE + MACHINE % 1 + "\n")
    mixed.add_library("libmemtrace.so", machine.built, machine.triplet)
    told = "memtrace: %s emulates %s, a program for AArch64: that is profiled, with %s\n" % (
        qemu[0], foreign, mixed.path("here", "lib", machine.triplet, "libmemtrace.so"))
    for way in WAYS:
        mixed.expect([glibc, way, *qemu, foreign], ["glibc", "foreign"])
    for way in ("exec", "fork", "bare"):
        mixed.expect([*qemu, foreign, way, glibc], ["foreign", "glibc"], told)
    mixed.expect([glibc, "exec", *qemu, foreign, "fork", *qemu, ours, "exec", glibc, "exec", *qemu, foreign],
                 ["glibc", "foreign", "ours", "glibc", "foreign"])
    mixed.expect([glibc, "fork", *qemu, static], ["glibc"], LINE + STATIC % 1 + "\n")
    for words in ([glibc, "spawn", *qemu, foreign, "env"], [glibc, "exec", *qemu, foreign, "exec", glibc, "env"]):
        mixed.counted(words)
    mixed.environment["QEMU_SET_ENV"] = "FIRST=1,SECOND=2"
    mixed.counted([glibc, "spawn", *qemu, foreign, "env"])
    print("mixed: programs and emulated programs follow each other")


def main():
    case = sys.argv[1]
    if case != "emulated":
        Machine("musl")
    {"beside": beside, "lacking": lacking, "emulated": emulated}[case](Mixed(case))


if __name__ == "__main__":
    main()
