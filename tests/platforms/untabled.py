#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""untabled.py MACHINE: what differs on a machine whose compilers write no unwind tables by themselves (mips64el, mips64), and
where words of the GOT have no relocations. By arithmetic, under qemu's emulation of user space."""

import collections
import os
import shutil
import subprocess
import sys

from foreign import HERE, PATIENCE, Machine, fail, report, run

TABLES = ["-fasynchronous-unwind-tables"]


class Case:
    def __init__(self, machine):
        self.machine = machine
        self.folder = os.path.join(machine.folder, "untabled")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder, mode=0o700)

    def compiled(self, source, name, *flags):
        program = os.path.join(self.folder, name)
        run([self.machine.compiler.replace("g++", "gcc"), "-g", "-O1", "-pthread", *flags, os.path.join(HERE, source), "-o",
             program, "-ldl"])
        return program

    def preloaded(self, *command, status=0, **settings):
        """The report of what it left, and what it said."""
        profile = os.path.join(self.folder, "profile.mtp")
        settings = {"LD_PRELOAD": self.machine.library, "MEMTRACE_OUTPUT": profile, "MEMTRACE_SUMMARY": "0",
                    "MEMTRACE_REGION_DIR": self.folder, **settings}
        words = [word for name, value in settings.items() for word in ("-E", name + "=" + value)]
        done = subprocess.run([*self.machine.emulator, "-L", "/usr/" + self.machine.triplet, *words, *command],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        if done.returncode != status:
            fail(command, "ended with", done.returncode, done.stderr)
        return report(profile), done.stderr


def blocks(data, key="contexts"):
    """By the program's own functions, from the innermost out: allocations and bytes."""
    found = collections.Counter()
    for context in data[key]:
        names = tuple(frame["function"] for frame in context["frames"] if frame["line"])
        found[names, "allocations"] += context["allocations"]
        found[names, "bytes"] += context["total_bytes"]
    return found


def expect(found, names, allocations, size):
    told = (found[names, "allocations"], found[names, "bytes"])
    if told != (allocations, size):
        fail(" < ".join(names), "has", told, "and not", (allocations, size), "of", dict(found))


def check_words(case):
    """A library whose words lead to the C library; mremap, which has any number of arguments."""
    library = case.compiled("words.c", "words.so", *TABLES, "-DLIBRARY", "-shared", "-fPIC")
    data, _ = case.preloaded(case.compiled("words.c", "words", *TABLES), library, MEMTRACE_INJECT="1")
    found = blocks(data)
    expect(found, ("by_got", "main"), 100, 3300)
    expect(found, ("by_data", "main"), 70, 2380)
    mapped = blocks(data, "mappings")
    expect(mapped, ("calls_are_right", "main"), 2, (1 << 20) + (3 << 20))


def check_debug_frame(case):
    """No tables but those of debug information, in a section of a type of its own."""
    program = case.compiled("libc.c", "libc")
    if ".debug_frame" not in run([case.machine.triplet + "-readelf", "-SW", program]):
        fail("the compiler wrote no .debug_frame")
    data, _ = case.preloaded(program, "again", status=3)
    found = blocks(data)
    for names, times in ((("use_each", "use", "main"), 1000), (("use_each", "use", "destroy"), 4)):
        expect(found, names, 7 * times, 294 * times)
    data, said = case.preloaded(program, "again", status=3, MEMTRACE_UNWIND="fp")
    if "frame pointers make no chain" not in said or blocks(data) != found:
        fail("with MEMTRACE_UNWIND=fp it says", said)


PROJECT = """cmake_minimum_required(VERSION 3.20)
project(untabled C)
find_package(MemTrace REQUIRED)
find_package(Threads REQUIRED)
add_executable(app %s)
target_link_libraries(app PRIVATE Threads::Threads)
memtrace_instrument(app %s)
"""


def configure(case, mode):
    """Its exit status, and its words."""
    source = os.path.join(case.folder, "project")
    build = os.path.join(case.folder, "built")
    shutil.rmtree(build, ignore_errors=True)
    os.makedirs(source, exist_ok=True)
    with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(PROJECT % (os.path.join(HERE, "libc.c"), mode))
    done = subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                           "-DCMAKE_TOOLCHAIN_FILE=" + case.machine.toolchain,
                           "-DCMAKE_PREFIX_PATH=" + os.path.join(case.folder, "prefix")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
    return done.returncode, " ".join(done.stdout.split()), build


def check_project(case):
    """memtrace_instrument() asks the compiler for tables, without debug information, too."""
    run(["cmake", "--install", case.machine.folder, "--prefix", os.path.join(case.folder, "prefix")])
    for mode, said in (("", "app: mode unwind-tables (auto"), ("MODE hooks", "app: mode hooks (as asked)")):
        status, text, build = configure(case, mode)
        if status != 0 or said not in text:
            fail("the project configures with", status, text)
        run(["cmake", "--build", build])
        data, _ = case.preloaded(os.path.join(build, "app"), "again", status=3)
        found = sum(context["allocations"] for context in data["contexts"]
                    if [frame["function"] for frame in context["frames"]][:3] == ["use_each", "use", "main"])
        if found != 7000:
            fail(mode, "has", found, "of 7000 allocations below main")
    status, text, _ = configure(case, "MODE frame-pointer")
    if status == 0 or "on MIPS frame pointers make no chain" not in text:
        fail("MODE frame-pointer configures with", status, text)


def main():
    case = Case(Machine(sys.argv[1]))
    check_words(case)
    check_debug_frame(case)
    check_project(case)
    print(case.machine.name + ": words of the GOT, mappings, .debug_frame, memtrace_instrument(): as counted")


if __name__ == "__main__":
    main()
