#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kernel.py MACHINE [--only REGEX] [STACKS]: the whole memtrace command (scripts/cross) on a real kernel of MACHINE, in
qemu's system emulation, as system.py has the stacks and the command for devices:

    run, record     profiles and recordings of stacks.cpp
    reads           what it says of a profile there is what this machine's command says
    top             one screen of a running program
    libc            each way to end, forked children, exec: libc.c, as libcs.py has it
    attach          tests/attach: what is counted, by arithmetic; sleeping calls; words; cycles

Each of KERNELS is booted with an initramfs of the programs and of Debian's packages. --only: those tests whose names match.

Not part of scripts/test: it downloads Debian packages of that architecture (some 200 MB, kept in the build folder), which
are unpacked, never installed. `scripts/test-platforms aarch64 --kernel` is the way to run it."""

import argparse
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "scripts"))

import libcs  # pylint: disable=wrong-import-position
from foreign import BUILDS, Machine, check_counts, fail, report, run  # pylint: disable=wrong-import-position
from guest import Guest  # pylint: disable=wrong-import-position
from sysroot import MACHINES, Packages  # pylint: disable=wrong-import-position

# Release; the package that depends on its newest kernel; the size of its pages.
KERNELS = {"aarch64": [("bookworm", "linux-image-arm64", 4096), ("trixie", "linux-image-arm64-16k", 16384)]}
# What runs there besides ours; readelf for exact.py, sleep as a program that is not ours.
PACKAGES = """busybox-static binutils coreutils python3 libc6 libstdc++6 libdw1 libedit2 libelf1 liblzma5 libmicrohttpd12
    libncursesw6 libprotobuf-c1 libsqlite3-0 libssl3 libunwind8 libyajl2 libzstd1 zlib1g""".split()
INSTALLED = "opt/memtrace"
ATTACH = {"counts": "attach_test.py", "before": "attach_test.py", "threads": "attach_test.py", "sleeping": "attach_test.py",
          "calls": "attach_test.py", "raw_calls": "attach_test.py", "to_the_end": "attach_test.py",
          "record": "attach_test.py", "kill": "attach_test.py", "again": "attach_test.py",
          "again_threads": "attach_test.py", "again_child": "attach_test.py", "cxx": "attach_test.py", "words": "exact.py"}
CYCLES = 4
# gcc there: what the cross compiler has made of that source before.
COMPILER = """#!/bin/busybox sh
for word; do
    [ "$last" != -o ] || out=$word
    case $word in
    *.c | *.cpp) name=${word##*/} ;;
    -DPLUGIN) kind=.plugin ;;
    esac
    last=$word
done
cp /built/${name%.*}$kind "$out"
"""


class Kernel:
    def __init__(self, machine, stacks):
        self.machine, self.stacks = machine, stacks
        self.folder = os.path.join(machine.folder, "kernel")
        self.root = os.path.join(self.folder, "guest")
        self.command = os.path.join(SOURCE, "build-" + machine.name)
        os.makedirs(self.folder, exist_ok=True)
        self.guest = Guest(machine.name, self.folder)

    def add(self, path, source):
        self.guest.files[path] = source

    def add_system(self):
        """Of the first release, whatever the kernel is."""
        release = KERNELS[self.machine.name][0][0]
        Packages(os.path.join(self.folder, "packages"), MACHINES[self.machine.name][0], release).unpack(self.root, PACKAGES)
        self.guest.add_folder(self.root)
        for name in ("known", "before", "asleep", "cycled", "throwing"):
            self.compile(os.path.join(SOURCE, "tests", "attach", name), "built/" + name)
        self.compile(os.path.join(SOURCE, "tests", "attach", "cycled"), "built/cycled.plugin", "-DPLUGIN", "-shared", "-fPIC")
        self.add("bin/gcc", COMPILER)
        self.add("bin/g++", COMPILER)
        for folder in ("attach", "programs", "platforms"):
            for name in os.listdir(os.path.join(SOURCE, "tests", folder)):
                if name.endswith((".py", ".c", ".cpp")):
                    self.add("src/tests/%s/%s" % (folder, name), os.path.join(SOURCE, "tests", folder, name))

    def compile(self, source, to, *flags):
        """As tests/programs/harness.py does."""
        path = os.path.join(self.folder, os.path.basename(to))
        compiler = self.machine.triplet + ("-gcc" if os.path.exists(source + ".c") else "-g++")
        source += ".c" if os.path.exists(source + ".c") else ".cpp"
        run([compiler, "-g", "-O1", "-fno-builtin", "-w", "-pthread", "-D_GNU_SOURCE", "-Wl,-z,lazy", *flags, source, "-o",
             path, "-ldl", "-lm"])
        self.add(to, path)

    def add_command(self):
        run([os.path.join(SOURCE, "scripts", "cross"), self.machine.name])
        self.add(INSTALLED + "/bin/memtrace", os.path.join(self.command, "bin", "memtrace"))
        for name in ("libmemtrace.so", "libmemtrace.so.0"):
            self.add(INSTALLED + "/lib/" + name, os.path.realpath(os.path.join(self.command, "lib", name)))

    def add_stacks(self):
        for build in ("O2", "signed"):
            program = os.path.join(self.folder, "stacks." + build)
            self.machine.compile("stacks.cpp", BUILDS[build][0], program)
            self.add("bin/stacks." + build, program)
        for kind in ("run", "record"):
            self.guest.add_test(kind, "/%s/bin/memtrace %s --no-summary --output profile -- stacks.signed 1 %d" %
                                (INSTALLED, kind, self.stacks), leaves=True)

    def add_others(self):
        memtrace = "/%s/bin/memtrace" % INSTALLED
        self.guest.add_test("reads", "{0} run --no-summary --output profile -- stacks.O2 1 50; {0} report --json --depth 0 "
                            "profile > json 2> said; {0} query --format csv profile 'SELECT sum(total_bytes) FROM contexts' "
                            "> csv; {0} export --format folded --cost allocated profile > folded".format(memtrace), leaves=True)
        self.guest.add_test("top", "stacks.O2 1 100000 > /dev/null & pid=$!; sleep 5; {0} top --once $pid; kill $pid".format(memtrace))
        program = os.path.join(self.folder, "libc.bare")
        run([self.machine.triplet + "-gcc", "-g", "-O1", "-pthread", os.path.join(HERE, "libc.c"), "-o", program])
        self.add("bin/libc.bare", program)
        for way in libcs.USES:
            words = " ".join(libcs.words("/bin/libc.bare", way))
            self.guest.add_test("libc." + way, "%s run --no-summary -- %s; [ $? = 3 ]" % (memtrace, words), leaves=True)
        settings = "export TEST_BUILD=/%s TEST_CACHE=/tmp/cache MEMTRACE=%s PYTHONDONTWRITEBYTECODE=1;" % (INSTALLED, memtrace)
        for case, script in ATTACH.items():
            self.guest.add_test("attach." + case, "%s python3 /src/tests/attach/%s %s" % (settings, script, case))
        self.guest.add_test("attach.cycles", "%s python3 /src/tests/attach/cycles.py --cycles %d" % (settings, CYCLES))

    def place(self, name, files):
        """What a test has left, in a folder here."""
        folder = os.path.join(self.folder, "left", name)
        shutil.rmtree(folder, ignore_errors=True)
        for path, data in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "wb") as file:
                file.write(data)
        return folder

    def roots(self, build):
        copies = os.path.join(self.folder, "copies")
        shutil.rmtree(copies, ignore_errors=True)
        os.makedirs(copies)
        shutil.copy(os.path.join(self.folder, build), copies)
        return ["--root", copies + ":" + self.root]

    def check_stacks(self, name, said, files):
        """As foreign.py has it. How many paths."""
        told = re.search(r"(\d+) stacks, (\d+) paths, (\d+) blocks, (\d+) bytes", said)
        if not told or int(told[1]) != 2 * self.stacks or told[2] != told[3] or "profile" not in files:
            fail(name, "said", said, "and left", sorted(files))
        profile = os.path.join(self.place(name, files), "profile")
        found = report(profile, *self.roots("stacks.signed"))
        return check_counts(name, found, told)

    def check_reads(self, files):
        """Paths, sums and names there, with the program at its own place, are those that are found here."""
        here = report(os.path.join(self.place("reads", files), "profile"), *self.roots("stacks.O2"))
        there = json.loads(files["json"])

        def paths(data):
            return {context["hash"]: (context["allocations"], context["total_bytes"], context["live_bytes"],
                                      [(frame["function"], frame["line"]) for frame in context["frames"]
                                       if os.path.basename(frame["module"] or "") == "stacks.O2"])
                    for context in data["contexts"]}
        total = sum(context["total_bytes"] for context in here["contexts"])
        folded = sum(int(line.rsplit(b" ", 1)[1]) for line in files["folded"].splitlines())
        if paths(there) != paths(here) or int(files["csv"].split()[1]) != total or folded != total:
            fail("there it is read otherwise:", files["csv"], folded, total, files["said"])
        return len(here["contexts"])

    def check_libc(self, way, files):
        folder = self.place("libc." + way, files)
        libcs.check(libcs.profiles(folder), way, True, *self.roots("libc.bare"))

    def check(self, results):
        """Sums, for a line."""
        sums = {"programs": 0, "paths": 0, "attach": 0}
        for name, (said, status, files) in results.items():
            if status != 0:
                fail(name, "ended with", status, "\n" + said)
            if "profile" in files and name != "reads":
                sums["paths"] += self.check_stacks(name, said, files)
                sums["programs"] += 1
            elif name == "reads":
                self.check_reads(files)
            elif name.startswith("libc."):
                self.check_libc(name[5:], files)
            elif name == "top" and not re.search(r"FUNCTION\n(.*\n)*.*check", said):
                fail("memtrace top says", said)
            elif name.startswith("attach."):
                sums["attach"] += 1
        return sums


def cycles_of(results):
    return results["attach.cycles"][0].strip().splitlines()[-1] if "attach.cycles" in results else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("machine")
    parser.add_argument("--only", default="")
    parser.add_argument("stacks", type=int, nargs="?", default=500)
    options = parser.parse_intermixed_args()
    machine = Machine(options.machine)
    kernel = Kernel(machine, options.stacks)
    machine.build()
    kernel.add_system()
    kernel.add_command()
    kernel.add_stacks()
    kernel.add_others()
    kernel.guest.tests = {name: test for name, test in kernel.guest.tests.items() if re.search(options.only, name)}
    for release, package, page in KERNELS[machine.name]:
        packages = Packages(os.path.join(kernel.folder, "packages"), MACHINES[machine.name][0], release)
        version, results = kernel.guest.boot(packages.kernel(package))
        shutil.move(os.path.join(kernel.folder, "console"), os.path.join(kernel.folder, "console.%d" % page))
        sums = kernel.check(results)
        print("%s, Linux %s, pages of %d: %d programs, %d paths as the unwinder has them, lost 0; %d tests of attach; %s" %
              (machine.name, version, page, sums["programs"], sums["paths"], sums["attach"], cycles_of(results)), flush=True)


if __name__ == "__main__":
    main()
