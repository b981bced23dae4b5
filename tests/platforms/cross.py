#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cross.py MACHINE CASE: projects that are cross-compiled with MemTrace, as their users do it. The plugins come from the
MemTrace of the machine that builds, the runtime from the one that was built for MACHINE. CASE is

    beside    both in one prefix: memtrace_instrument() by each mode, a whole project unchanged, Make
    sysroot   the runtime in a root of the other machine's files, the other one where MEMTRACE_HOST_PATH says
    clang     both in one prefix, and each Clang that there is a plugin for as the cross compiler: one project, a
              whole one, Make; and what is told where its plugin is not there
    lacking   what is not there is told: the runtime, the plugins, plugins of the same version

Programs run in qemu; what is in their profiles is known by arithmetic (tests/consumer/project)."""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "consumer"))

from consumer_test import C_PATH, CXX_PATH, check_profile, environment  # pylint: disable=wrong-import-position
from foreign import BUILD, NO_CLANG, PATIENCE, Machine, fail, run, skip  # pylint: disable=wrong-import-position

CONSUMER = os.path.join(os.path.dirname(HERE), "consumer")
MEMTRACE = os.path.join(BUILD, "bin", "memtrace")
VERSION = r'set\(PACKAGE_VERSION "([0-9.]+)"\)'


class Cross:
    def __init__(self, machine, case):
        self.machine = machine
        self.folder = os.path.join(machine.folder, "cross." + case)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        machine.plugin()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def install(self, prefix, *builds):
        for build in builds:
            run(["cmake", "--install", build, "--prefix", prefix])

    def configure(self, project, build, *arguments, toolchain=None):
        """Its exit status, and what it said."""
        done = subprocess.run(["cmake", "-S", os.path.join(CONSUMER, project), "-B", self.path(build), "-G", "Ninja",
                               "-DCMAKE_TOOLCHAIN_FILE=" + (toolchain or self.machine.toolchain), *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False,
                              env=environment())
        return done.returncode, re.sub(r"\s+", " ", done.stdout)

    def expect(self, project, build, said, *arguments, **more):
        """Configured and built; each of `said` is among its words."""
        status, text = self.configure(project, build, *arguments, **more)
        if status != 0 or not all(re.search(words, text) for words in said):
            fail(build, "configures with", status, "and should say", said, "\n" + text)
        run(["cmake", "--build", self.path(build)], env=environment())

    def refuse(self, project, build, said, *arguments):
        status, text = self.configure(project, build, *arguments)
        if status == 0 or not re.search(said, text):
            fail(build, "configures with", status, "and should refuse with", said, "\n" + text)

    def check(self, program, path, libraries=""):
        """It profiles itself, and all is where it should be."""
        profile = self.path("profile.mtp")
        settings = {"MEMTRACE_OUTPUT": profile, "MEMTRACE_SUMMARY": "0"}
        if libraries:
            settings["LD_LIBRARY_PATH"] = libraries
        command = [*self.machine.emulator, "-L", "/usr/" + self.machine.triplet]
        for name, value in settings.items():
            command += ["-E", name + "=" + value]
        run([*command, self.path(program)], env=environment())
        check_profile(MEMTRACE, profile, [path], may_cut=self.machine.lacks_tables)
        os.unlink(profile)

    def has_words(self, program, mark=r"0x5a17\b"):
        """MODE pass: the instruction by which the runtime finds a frame word; GCC's has FRAME_WORD_MARK."""
        text = run([self.machine.triplet + "-objdump", "-d", self.path(program)])
        return re.search(mark, text) is not None

    def make(self, command, *compilers):
        """By the flags that the command prints."""
        for name in ("main.c", "main.cpp", "store.c", "store.h"):
            shutil.copy(os.path.join(CONSUMER, "project", name), self.folder)
        run(["make", "-B", "-C", self.folder, "-f", os.path.join(CONSUMER, "make", "Makefile"), "MEMTRACE=" + command,
             *compilers], env=environment())


def unchanged(prefix):
    """What instruments a whole project."""
    file = run([os.path.join(prefix, "bin", "memtrace"), "flags", "--cmake"]).strip()
    return "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=" + file


def beside(cross):
    """Both MemTraces in one prefix."""
    prefix = cross.path("prefix")
    cross.install(prefix, BUILD, cross.machine.folder)
    cross.expect("one_language", "auto", [r"mode pass \(auto: plugin for GCC \d+ in " + prefix],
                 "-DLANGUAGE=C", "-DCMAKE_PREFIX_PATH=" + prefix)
    cross.check("auto/one", C_PATH)
    cross.expect("one_language", "native", ["mode pass"], "-DLANGUAGE=C", "-DCMAKE_PREFIX_PATH=" + prefix,
                 toolchain="/dev/null")
    for mode in ("pass", "hooks"):
        cross.expect("whole", mode, ["MemTrace: mode %s .*: 6 targets: store, with_store, static_program" % mode],
                     unchanged(prefix), "-DMEMTRACE_PROJECT_OPTIONS=MODE;" + mode)
        for program, path in (("c/with_store", C_PATH), ("cxx/cxx_program", CXX_PATH), ("later/with_objects", C_PATH),
                              ("c/static_program", C_PATH)):
            cross.check(os.path.join(mode, program), path)
        if cross.has_words(os.path.join(mode, "later/with_objects")) != (mode == "pass"):
            fail(mode, "has frame words, or has none")
    command = os.path.join(prefix, "bin", "memtrace")
    cross.make(command, "CC=%s-gcc" % cross.machine.triplet, "CXX=%s-g++" % cross.machine.triplet)
    for program in ("c_make", "mixed_make"):
        cross.check(program, C_PATH)
        if not cross.has_words(program):
            fail(program, "has no frame words")


TOOLCHAIN = """set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR %s)
foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_TARGET %s)
endforeach()
set(CMAKE_C_COMPILER %s)
set(CMAKE_CXX_COMPILER %s)
"""


def clang(cross):
    """One compiler for all machines, and one plugin."""
    prefix = cross.path("prefix")
    if not cross.machine.clangs():
        skip(NO_CLANG)
    cross.install(prefix, BUILD, cross.machine.folder)
    for compiler, plugin in cross.machine.clangs():
        name = os.path.basename(os.path.dirname(plugin))
        clang_of(cross, prefix, name, compiler[0].replace("++", ""), compiler[0])


def clang_of(cross, prefix, name, c, cxx):
    toolchain = cross.path(name + ".cmake")
    with open(toolchain, "w", encoding="utf-8") as file:
        file.write(TOOLCHAIN % (cross.machine.name, cross.machine.triplet, c, cxx))
    with_prefix = "-DCMAKE_PREFIX_PATH=" + prefix
    cross.expect("one_language", name, [r"mode pass \(auto: plugin for Clang \d+ in " + prefix], "-DLANGUAGE=C",
                 with_prefix, toolchain=toolchain)
    cross.expect("whole", name + "-whole", ["MemTrace: mode pass .*: 6 targets"], unchanged(prefix), toolchain=toolchain)
    target = " --target=" + cross.machine.triplet
    cross.make(os.path.join(prefix, "bin", "memtrace"), "CC=" + c + target, "CXX=" + cxx + target)
    for program, path in ((name + "/one", C_PATH), (name + "-whole/c/with_store", C_PATH),
                          (name + "-whole/cxx/cxx_program", CXX_PATH), (name + "-whole/c/static_program", C_PATH),
                          ("c_make", C_PATH), ("mixed_make", C_PATH)):
        cross.check(program, path)
        if not cross.has_words(program, "plil3keep"):
            fail(name, program, "has no frame words")
    cross.expect("one_language", name + "-no-plugin", [r"mode frame-pointer \(auto: no plugin %s for the machine that "
                 "builds in %s" % (name, cross.path("nowhere"))], "-DLANGUAGE=C", "-DMEMTRACE_HOST_PATH=" + cross.path("nowhere"),
                 "-DMemTrace_DIR=%s/lib/%s/cmake/MemTrace" % (prefix, cross.machine.triplet), toolchain=toolchain)
    cross.check(name + "-no-plugin/one", C_PATH)


def sysroot(cross):
    """The runtime among the other machine's files, where the program finds it without a run path."""
    root, host = cross.path("root"), cross.path("host")
    cross.install(root + "/usr", cross.machine.folder)
    cross.install(host, BUILD)
    toolchain = cross.path("toolchain.cmake")
    with open(toolchain, "w", encoding="utf-8") as file:
        file.write('include("%s")\nset(CMAKE_FIND_ROOT_PATH "%s")\nset(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)\n'
                   "set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)\n" % (cross.machine.toolchain, root))
    cross.expect("one_language", "build", ["mode pass .auto: plugin for GCC [0-9]+ in " + host], "-DLANGUAGE=C",
                 "-DMEMTRACE_HOST_PATH=" + host, "-DCMAKE_SKIP_BUILD_RPATH=ON", toolchain=toolchain)
    dynamic = run(["readelf", "-d", cross.path("build/one")])
    if "libmemtrace.so.0" not in dynamic or "runpath" in dynamic.lower() or "rpath" in dynamic.lower():
        fail("the program should need libmemtrace.so.0, and have no run path:\n" + dynamic)
    cross.check("build/one", C_PATH, "%s/usr/lib/%s" % (root, cross.machine.triplet))


def lacking(cross):
    host, target = cross.path("host"), cross.path("target")
    cross.install(host, BUILD)
    cross.install(target, cross.machine.folder)
    # This machine's alone: its runtime is not linked.
    cross.refuse("one_language", "wrong-machine", r"%s/lib/cmake/MemTrace/MemTraceConfig.cmake, version: [0-9.]+ "
                 r"\(for x86_64, not %s\)" % (host, cross.machine.name), "-DLANGUAGE=C", "-DCMAKE_PREFIX_PATH=" + host)
    command = os.path.join(host, "bin", "memtrace")
    cross.refuse("whole", "unchanged", "MemTrace: no runtime for %s, neither" % cross.machine.name,
                 unchanged(host))
    done = subprocess.run([command, "flags", "--compiler", cross.machine.compiler, "--libs"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 1 or "libmemtrace.so for %s is not in " % cross.machine.triplet not in done.stdout:
        fail("memtrace flags ended with", done.returncode, "and said", done.stdout)
    # Two prefixes, the unsuited one first: found all the same, plugins, too.
    both = "-DCMAKE_PREFIX_PATH=%s;%s" % (host, target)
    cross.expect("one_language", "two", ["mode pass .auto: plugin for GCC [0-9]+ in " + host], "-DLANGUAGE=C", both)
    # No plugins.
    why = "no plugin %s-gcc-[0-9]+ for the machine that builds in %s" % (cross.machine.triplet, cross.path("nowhere"))
    cross.expect("one_language", "no-plugin", [r"mode frame-pointer \(auto: " + why], "-DLANGUAGE=C", both,
                 "-DMEMTRACE_HOST_PATH=" + cross.path("nowhere"))
    cross.check("no-plugin/one", C_PATH)
    asked = [unchanged(host), "-DMEMTRACE_PROJECT_OPTIONS=MODE;pass", both]
    cross.refuse("whole", "asked-for", r"MODE pass\): " + why, *asked, "-DMEMTRACE_HOST_PATH=" + cross.path("nowhere"))
    # Plugins of another version.
    version = os.path.join(host, "lib/cmake/MemTrace/MemTraceVersion.cmake")
    with open(version, encoding="utf-8") as file:
        text = file.read()
    with open(version, "w", encoding="utf-8") as file:
        file.write(re.sub(VERSION, 'set(PACKAGE_VERSION "0.0.7")', text))
    cross.refuse("whole", "other-version", "memtrace.so is of MemTrace 0.0.7, the runtime of [0-9.]+", *asked)


def main():
    machine, case = Machine(sys.argv[1]), sys.argv[2]
    {"beside": beside, "sysroot": sysroot, "clang": clang, "lacking": lacking}[case](Cross(machine, case))
    print(machine.name, "cross-compiled,", case + ": right")


if __name__ == "__main__":
    main()
