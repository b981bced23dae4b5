#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""foreign.py MACHINE CASE [STACKS]: the runtime, cross-compiled for MACHINE (aarch64, mips64el, mips64, riscv64, arm) and run by qemu's emulation
of user space, with its profiles read by the memtrace command of this machine. The machine "here" is this one, for
the same stacks without an emulator; "static", "musl" and "musl-static" are this one, too, with the program linked
statically, with musl, and both; "aarch64-static", "aarch64-musl" and "aarch64-musl-static" are so on AArch64. CASE is

    build       cross-compiles the runtime, by CMake; all others need it
    list        names the others
    BUILD       stacks.cpp in one of the ways of BUILDS: each of its paths is what the compiler's unwinder says;
                what it counted itself is in the profile, and nothing is lost. With a pass, framewords.c, too: its
                words are found
                With patched return addresses some stand in frames of the program's functions, none of functions that
                sign them
    tables      of 32-bit ARM: code without unwind tables, the program's and glibc's
    guards      of AArch64: what patched return addresses lead to, by itself (guards.cpp)
    deep        of AArch64: with them an allocation costs no more on a deep stack (deep.c)

What emulation cannot show is in docs/platforms.md. Skipped, with a line that says why, where the cross compiler
or qemu is missing."""

import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("TEST_BUILD", "build"))
PATIENCE = 600
# A child that the program forks while qemu is in GLib's allocator of slices, whose locks fork() does not know, waits for
# ever. (GLib has none from 2.76 on.)
os.environ["G_SLICE"] = "always-malloc"

MACHINES = {
    "aarch64": {"triplet": "aarch64-linux-gnu", "emulator": ["qemu-aarch64", "-cpu", "max"], "name": "AArch64",
                "packages": "qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu"},
    "mips64el": {"triplet": "mips64el-linux-gnuabi64", "emulator": ["qemu-mips64el"], "name": "MIPS64",
                 "elf": "MIPS R3000",
                 "packages": "qemu-user gcc-mips64el-linux-gnuabi64 g++-mips64el-linux-gnuabi64",
                 "flags": ["-fasynchronous-unwind-tables"], "lacks_tables": True,
                 "builds": ["O2", "own", "O0", "omit-frame-pointer", "hooks"]},
    "riscv64": {"triplet": "riscv64-linux-gnu", "emulator": ["qemu-riscv64"], "name": "RISC-V",
                "packages": "qemu-user gcc-riscv64-linux-gnu g++-riscv64-linux-gnu",
                "flags": ["-fasynchronous-unwind-tables"], "lacks_tables": True,
                "builds": ["O2", "own", "O0", "omit-frame-pointer", "fp", "pass", "pass-O0", "pass-omit", "hooks"]},
    "mips64": {"triplet": "mips64-linux-gnuabi64", "emulator": ["qemu-mips64"], "elf": "MIPS R3000",
               "packages": "qemu-user gcc-mips64-linux-gnuabi64 g++-mips64-linux-gnuabi64",
               "flags": ["-fasynchronous-unwind-tables"], "lacks_tables": True,
               "builds": ["O2", "own", "O0", "omit-frame-pointer", "hooks"]},
    "aarch64-static": {"triplet": "aarch64-linux-gnu", "emulator": ["qemu-aarch64", "-cpu", "max"],
                       "packages": "qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu", "static": "static",
                       "name": "AArch64"},
    "aarch64-musl": {"triplet": "aarch64-linux-gnu", "emulator": ["qemu-aarch64", "-cpu", "max"],
                     "packages": "qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu",
                     "library": "libmemtrace-musl.so", "name": "AArch64"},
    "aarch64-musl-static": {"triplet": "aarch64-linux-gnu", "emulator": ["qemu-aarch64", "-cpu", "max"],
                            "packages": "qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu",
                            "static": "static-musl", "name": "AArch64"},
    "arm": {"triplet": "arm-linux-gnueabihf", "emulator": ["qemu-arm", "-cpu", "max"], "name": "ARM",
            "packages": "qemu-user gcc-arm-linux-gnueabihf g++-arm-linux-gnueabihf", "flags": ["-funwind-tables"],
            "lacks_tables": True,
            "builds": ["O2", "own", "O0", "omit-frame-pointer", "hooks", "arm-O2", "arm-O0", "arm-omit", "exceptions",
                       "tables"]},
    "here": {"triplet": "", "emulator": ["env"], "packages": "g++"},
    "static": {"triplet": "", "emulator": ["env"], "packages": "g++", "static": "static"},
    "musl": {"triplet": "", "emulator": ["env"], "packages": "g++ musl-tools", "library": "libmemtrace-musl.so"},
    "musl-static": {"triplet": "", "emulator": ["env"], "packages": "g++ musl-tools", "static": "static-musl"},
}

# Flags; arguments of the program; settings. In those that are named so the emulator tells of larger pages, or has another
# processor, whose instructions that sign return addresses do nothing.
PAGES = {"pages-16K": 16384, "pages-64K": 65536}
PROCESSORS = {"patch-no-pac": "cortex-a72"}
NO_CLANG = "no clang++ with a plugin here (Debian: apt-get install clang-14 llvm-14-dev, then build anew)"
PASS = "-fplugin="
CLANG = "-fpass-plugin=" # by each version that there is a plugin for
BUILDS = {
    "O2": (["-O2"], [], {"MEMTRACE_UNWIND": "verify"}),
    "own": (["-O2"], ["own"], {}),
    "O0": (["-O0"], [], {"MEMTRACE_UNWIND": "verify"}),
    "omit-frame-pointer": (["-O2", "-fomit-frame-pointer"], [], {"MEMTRACE_UNWIND": "verify"}),
    "signed": (["-O2", "-mbranch-protection=standard"], [], {"MEMTRACE_UNWIND": "verify"}),
    "patch": (["-O2"], ["patched"], {"MEMTRACE_UNWIND": "patch"}),
    "patch-O0": (["-O0"], ["patched"], {"MEMTRACE_UNWIND": "patch"}),
    "patch-omit": (["-O2", "-fomit-frame-pointer"], ["patched"], {}),
    "patch-signed": (["-O2", "-mbranch-protection=standard"], ["patched"], {"MEMTRACE_UNWIND": "patch"}),
    "patch-no-pac": (["-O2", "-mbranch-protection=standard"], ["patched"], {}),
    "fp": (["-O2", "-fno-omit-frame-pointer"], ["own"], {"MEMTRACE_UNWIND": "fp"}),
    "pass": (["-O2", "-fno-omit-frame-pointer", PASS], [], {}),
    "pass-O0": (["-O0", PASS], [], {}),
    "pass-omit": (["-O2", "-fomit-frame-pointer", PASS], [], {"MEMTRACE_UNWIND": "verify"}),
    "pass-signed": (["-O2", "-mbranch-protection=standard", PASS], [], {}),
    "clang-pass": (["-O2", "-fno-omit-frame-pointer", CLANG], [], {}),
    "clang-pass-O0": (["-O0", CLANG], [], {}),
    "clang-pass-omit": (["-O2", "-fomit-frame-pointer", CLANG], [], {"MEMTRACE_UNWIND": "verify"}),
    "clang-pass-signed": (["-O2", "-mbranch-protection=standard", CLANG], [], {}),
    "clang-pass-protected": (["-O2", "-fstack-protector-strong", CLANG], [], {}),
    "hooks": (["-O2", "-finstrument-functions", "-fno-omit-frame-pointer"], [], {}),
    "tagged": (["-O2"], ["tagged"], {"GLIBC_TUNABLES": "glibc.mem.tagging=3"}),
    "libunwind": (["-O2"], [], {"MEMTRACE_UNWIND": "libunwind"}),
    "static-pie": (["-O2", "-fPIE", "-static-pie"], [], {}),
    "pages-16K": (["-O2"], [], {}),
    "pages-64K": (["-O2"], [], {}),
}

# Only of 32-bit ARM, whose programs are Thumb code otherwise. The last as compilers have it: functions that cannot
# throw have no tables.
ARM_BUILDS = {
    "arm-O2": (["-O2", "-marm"], [], {}),
    "arm-O0": (["-O0", "-marm"], [], {}),
    "arm-omit": (["-O2", "-marm", "-fomit-frame-pointer"], [], {}),
    "exceptions": (["-O2", "-fno-unwind-tables"], ["own"], {}),
}
EVERY = {**BUILDS, **ARM_BUILDS}


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def fail(*why):
    print("FAILED:", *why)
    sys.exit(1)


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                          check=False, **more)
    if done.returncode != 0:
        fail(" ".join(command), "ended with", done.returncode, "\n" + done.stdout[-4000:])
    return done.stdout


def checked_of(found):
    """Contexts of what stacks.cpp has compared, and their blocks and bytes."""
    checked = [context for context in found["contexts"]
               if context["frames"] and "check" in (context["frames"][0]["function"] or "")]
    return checked, tuple(sum(context[what] for context in checked) for what in ("allocations", "total_bytes"))


def check_guards(name, text):
    """What stacks.cpp says of patched return addresses, if it was asked."""
    told = re.search(r"(\d+) guards of the program, (\d+) of others", text)
    if name.startswith("patch") and (not told or (int(told[1]) == 0) != name.endswith("signed")):
        fail(name, "met", told and told[0])
    return ", " + told[0] if told else ""


def check_counts(name, found, told):
    """The profile has what the program says that it counted: "(stacks), (paths), (blocks), (bytes)". How many paths."""
    counted = checked_of(found)[1]
    if counted != (int(told[3]), int(told[4])) or found["lost"] != 0:
        fail(name, "has", counted, "lost", found["lost"], "but the program says", told[0])
    return int(told[2])


def musl_root(processor):
    """Of another machine: where muslroot.py unpacks it."""
    return os.path.join(BUILD, "tests", "platforms", processor + "-musl", "root")


class Machine:
    def __init__(self, name):
        self.name = name
        self.called = MACHINES[name].get("name")
        self.triplet = MACHINES[name]["triplet"]
        self.emulator = MACHINES[name]["emulator"]
        self.folder = os.path.join(BUILD, "tests", "platforms", name)
        self.is_here = not self.triplet
        self.processor = name.split("-")[0]
        self.is_musl = "musl" in name
        self.root = "/usr/" + self.triplet
        self.musl_gcc = "musl-gcc"
        self.built = BUILD if self.is_here else os.path.join(BUILD, "tests", "platforms", self.processor)
        if self.is_musl and not self.is_here:
            self.root = musl_root(self.processor)
            self.musl_gcc = os.path.join(self.root, "musl-gcc")
            self.built = os.path.join(os.path.dirname(self.root), "build")
        self.library = os.path.join(self.built, "lib", MACHINES[name].get("library", "libmemtrace.so"))
        self.static = MACHINES[name].get("static")
        # The C library's functions have no unwind tables, or not all of them.
        self.lacks_tables = self.is_musl or MACHINES[name].get("lacks_tables", False)
        self.flags = MACHINES[name].get("flags", [])
        self.builds = MACHINES[name].get("builds", BUILDS)
        self.toolchain = os.path.join(HERE, self.processor + ".cmake")
        self.compiler = self.triplet + "-g++" if self.triplet else "g++"
        if self.is_musl and not self.is_here and not os.path.exists(self.musl_gcc):
            skip("no musl for %s here (scripts/test-platforms %s)" % (self.processor, name))
        if self.is_musl and self.is_here and not os.path.exists(os.path.join(BUILD, "lib", "libmemtrace-musl.so")):
            skip("no library for musl here (Debian: apt-get install musl-tools, then build anew, with gcc)")
        for tool in (self.emulator[0], self.compiler, self.compiler.replace("g++", "gcc")):
            if shutil.which(tool) is None:
                skip("no %s here (Debian: apt-get install %s)" % (tool, MACHINES[name]["packages"]))

    def build(self):
        if self.is_here:
            return
        run(["cmake", "-S", SOURCE, "-B", self.built, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_TOOLCHAIN_FILE=" + self.toolchain,
             *(["-DMEMTRACE_MUSL_GCC=" + self.musl_gcc] if self.is_musl else [])])
        run(["cmake", "--build", self.built])
        described = run(["readelf", "-h", self.library])
        if not re.search(r"Machine:\s+" + MACHINES[self.name].get("elf", self.called), described):
            fail("the library is for another machine:\n" + described)

    def arguments(self, build):
        """Of stacks.cpp."""
        if build == "fp" and self.lacks_tables: # nor does it keep frame pointers
            return ["fp"]
        return EVERY[build][1] or (["musl"] if self.is_musl else [])

    def can_build(self, build):
        """(Debian's C library for x86-64 keeps no frame pointers: that chain ends in it. musl's specs know no
        static-pie; its loader uses the end of a program's last page, of which the emulator has mapped 4 KiB. Frame pointers are compared
        up to the C library, which is in no file of its own where it is linked statically.)"""
        if build == "static-pie":
            return self.static == "static"
        if (build == "libunwind" or build.startswith("patch")) and (self.static or self.is_musl):
            return False
        if self.is_musl and (build in PAGES and not self.static or build == "fp" and self.static):
            return False
        if build == "tagged" and (self.static or self.is_musl or self.is_here):
            return False
        if build.startswith("clang") and (self.is_musl or not self.ways(build)):
            return False
        return not self.is_here or not (build in PAGES or build in PROCESSORS or build == "fp" or
                                     build.endswith("signed"))

    def lacks_pages(self, size):
        skip("%s emulates no pages of %d bytes (qemu until version 8 does)" % (self.emulator[0], size))

    def pages(self, size):
        """The emulator's options for pages of that size. Newer ones have no such option, and 4 KiB."""
        if size == 4096:
            return []
        if not re.search(r"^-p\s", run([self.emulator[0], "-h"]), re.MULTILINE):
            self.lacks_pages(size)
        return ["-p", str(size)]

    def plugin(self):
        """Of the cross compiler, or of this one: built where its plugin headers are installed."""
        version = run([self.compiler, "-dumpversion"]).split(".")[0].strip()
        found = os.path.join(BUILD, "lib", "memtrace", self.compiler.replace("g++", "gcc") + "-" + version, "memtrace.so")
        if not os.path.exists(found):
            skip("no plugin for %s (Debian: apt-get install gcc-%s-plugin-dev%s, then build anew)" %
                 (self.compiler, version, "-" + self.triplet if self.triplet else ""))
        return found

    @functools.lru_cache(maxsize=None)
    def tables(self, module):
        """The addresses, from and to, that have unwind tables in this file; and its first code, which nobody calls."""
        files = [file for file in (self.root + module, module) if os.path.isfile(file)]
        readelf = self.triplet + "-readelf" if self.triplet else "readelf"
        said = run([readelf, "-h", "--debug-dump=frames", files[0]]) if files else ""
        entries = [int(entry, 16) for entry in re.findall(r"Entry point address:\s+0x([0-9a-f]+)", said)]
        return [(int(start, 16), int(end, 16)) for start, end in
                re.findall(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", said)] + [(entry, entry + 64) for entry in entries]

    def is_cut(self, frames):
        """It ends in a function of which no table tells the caller, and not where threads and fibers begin."""
        names = {re.sub(r".*::|\(.*", "", frame["function"] or "") for frame in frames}
        if not frames or {"main", "run", "run_fiber"} & names:
            return False
        return not any(start <= frames[-1]["offset"] < end for start, end in self.tables(frames[-1]["module"] or ""))

    def libunwind(self, folder):
        """Of the other machine, with what it needs, copied to a folder by themselves."""
        root = os.path.join(SOURCE, "build-" + self.name, "root")
        places = [os.path.join(root, place, self.triplet) for place in ("usr/lib", "lib")]
        for name in ("libunwind.so.8", "liblzma.so.5"):
            found = [place for place in places if os.path.exists(os.path.join(place, name))]
            if not found:
                skip("no libunwind for %s here (scripts/cross %s)" % (self.name, self.name))
            shutil.copy(os.path.join(found[0], name), folder)

    def clangs(self):
        """The commands for C++, with their plugins."""
        plugins = glob.glob(os.path.join(BUILD, "lib", "memtrace", "clang-*", "memtrace.so"))
        found = []
        for plugin in sorted(plugins):
            command = shutil.which("clang++-" + plugin.split("-")[-1].split("/")[0])
            if command is not None:
                target = ["--target=" + self.triplet] if self.triplet else []
                found.append(([command, *target, "-Wno-unknown-attributes"], plugin))
        return found

    def ways(self, build):
        """Names, compilers, flags: one, or one for each Clang, of which there may be none."""
        flags = EVERY[build][0] if build in EVERY else []
        if CLANG not in flags:
            return [(build, [self.compiler], flags)]
        return [(build.replace("clang", os.path.basename(os.path.dirname(plugin))), compiler,
                 [flag + plugin if flag == CLANG else flag for flag in flags])
                for compiler, plugin in self.clangs()]

    def linked(self, program, cxx, static="-static"):
        """What the program is linked with: the library, or the object file with its options."""
        if not self.static:
            name = os.path.basename(self.library)[3:-3]
            return ["-o", program, "-L" + os.path.dirname(self.library), "-l" + name, "-Wl,--eh-frame-hdr"]
        runtime = os.path.join(self.built, "lib", "memtrace", self.static)
        options = runtime + ("-c++.options" if cxx else ".options")
        return ["-o", program, static, runtime + ".o", "@" + options]

    def compile(self, source, flags, program, compiler=None):
        flags = ["-g", "-pthread", "-I" + os.path.join(SOURCE, "include"), "-I" + os.path.join(self.built, "include"),
                 *self.flags, *[flag + self.plugin() if flag == PASS else flag for flag in flags]]
        source = os.path.join(HERE, source)
        if not self.is_musl:
            static = "-static-pie" if "-static-pie" in flags else "-static"
            run([*(compiler or [self.compiler]), *flags, source, *self.linked(program, True, static)])
            return
        # Debian has no C++ for musl: its headers are glibc's, its unwinder is told of objects by musl.c. A thread's
        # stack is as large as the program's, which musl takes from its headers.
        gcc = [self.compiler.replace("g++", "gcc"), "-specs=" + self.musl_specs()]
        told = run([self.compiler, "-E", "-v", "-x", "c++", "/dev/null"])
        headers = [word for place in re.findall(r"^ (\S*/c\+\+/\S*)$", told, re.MULTILINE) for word in ("-isystem", place)]
        run([*gcc, "-nostdinc++", *headers, "-D__GLIBC_PREREQ(a,b)=0", "-x", "c++", *flags, "-c", source, "-o",
             program + ".o"])
        run([*gcc, "-O2", "-c", os.path.join(HERE, "musl.c"), "-o", program + "-musl.o"])
        run([*gcc, program + ".o", program + "-musl.o", *self.linked(program, False),
             "-Wl,-z,stack-size=0x800000,--start-group", run([self.compiler, "-print-file-name=libsupc++.a"]).strip(),
             "-lgcc_eh", "-lc", "-Wl,--end-group"])

    def musl_specs(self):
        with open(shutil.which(self.musl_gcc), encoding="utf-8") as wrapper:
            return re.search(r'-specs "?([^" ]+)', wrapper.read())[1].strip()

    def start(self, *options):
        """The words before a program's own."""
        return [*self.emulator, *options, "-L", self.root] if self.triplet else []

    def emulate(self, program, arguments, settings, folder, *options):
        """What it wrote, and the profile that it left."""
        profile = os.path.join(folder, "profile.mtp")
        if os.path.exists(profile):
            os.unlink(profile)
        settings = {"LD_LIBRARY_PATH": os.path.dirname(self.library) + ":" + folder, "MEMTRACE_OUTPUT": profile,
                    "MEMTRACE_REGION_DIR": folder, "MEMTRACE_SUMMARY": "0", **settings}
        command = self.start(*options) or ["env"]
        return run([*command, *self.given(settings), program, *arguments]), profile

    def given(self, settings):
        """Of the program's environment: words for the emulator, or for env."""
        return [word for name, value in settings.items()
                for word in (["-E"] if self.triplet else []) + ["%s=%s" % (name, value)]]


def report(profile, *options):
    """What it says of libraries that are not here goes elsewhere."""
    return json.loads(subprocess.run([os.path.join(BUILD, "bin", "memtrace"), "report", "--json", "--depth", "0",
                                      *options, profile], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                     timeout=PATIENCE, check=True).stdout)


def test_stacks(machine, build, stacks):
    if not machine.ways(build):
        skip(NO_CLANG)
    for name, compiler, flags in machine.ways(build):
        test_way(machine, build, name, stacks, compiler, flags, EVERY[build][2])


def needs_tags(machine, folder, settings):
    """With glibc 2.43 and qemu 11.1 a program is ended by a wrong tag without us, too."""
    program = os.path.join(folder, "tags")
    run([machine.compiler, os.path.join(HERE, "tags.c"), "-o", program])
    ended = subprocess.run([*machine.start(), *machine.given(settings), program], stderr=subprocess.DEVNULL,
                           timeout=PATIENCE, check=False)
    if ended.returncode != 0:
        skip("%s and this C library run no program with memory tags" % machine.emulator[0])


def test_way(machine, build, name, stacks, compiler, flags, settings):
    arguments = machine.arguments(build)
    folder = os.path.join(machine.folder, "stacks." + name)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if machine.name == "aarch64" and "pass" in build:
        test_frame_words(machine, folder, flags, settings, compiler)
    program = os.path.join(folder, "stacks")
    machine.compile("stacks.cpp", flags, program, compiler)
    if build == "libunwind" and machine.triplet:
        machine.libunwind(folder)
    if build == "tagged":
        needs_tags(machine, folder, settings)
    options = machine.pages(PAGES.get(build, 4096)) + (["-cpu", PROCESSORS[build]] if build in PROCESSORS else [])
    text, profile = machine.emulate(program, ["1", str(stacks), *arguments], settings, folder, *options)
    said = re.search(r"(\d+) stacks, (\d+) paths, (\d+) blocks, (\d+) bytes$", text.strip())
    if not said or int(said[1]) != 2 * stacks or said[2] != said[3]:
        fail("the program says", text)
    guards = check_guards(build, text)
    data = report(profile)
    if build in PAGES and "pages of %d bytes\n" % PAGES[build] not in text:
        machine.lacks_pages(PAGES[build])
    checked, counted = checked_of(data)
    # A path through a function of the C library that has no unwind tables (musl's raise, and what calls constructors)
    # ends there, and that is told: of musl once for many that end at one place; with "own" it is the constructors alone.
    cut = [context for context in data["contexts"] if machine.lacks_tables and machine.is_cut(context["frames"])]
    # (What the loader allocates when an exception is thrown on a fiber, whose stack just ends, is not counted so.)
    may_be_on_fiber = machine.is_musl or machine.name == "arm"
    least = min(1, len(cut)) if may_be_on_fiber and arguments != ["own"] else len(cut)
    # (With pages of 64 KiB it is told more often, at the same places.)
    is_told_once = machine.is_musl and build != "pages-64K"
    most = len(cut) if is_told_once else sum(context["allocations"] for context in cut)
    if build == "fp": # what is not found by frame pointers is not known to be missing
        least = most = 0
    is_told = least <= data["lost"] <= most
    if counted != (int(said[3]), int(said[4])) or not is_told:
        fail("the profile has", counted, "lost", data["lost"], "in", len(cut), "paths, but the program says", said[0])
    print(machine.name, name + ":", said[0], "in", len(checked), "call paths, lost", str(data["lost"]) + guards)


def test_frame_words(machine, folder, flags, settings, compiler):
    """The runtime finds the words, and notes contexts there: without, paths would be right, too, but dear."""
    program = os.path.join(folder, "framewords")
    machine.compile("framewords.c", ["-x", "c", *flags], program, compiler)
    # Without a frame pointer Clang saves x29 apart from x30 in a large frame, for which there is no plain rule.
    left_out = ["large", "bare"] if "clang" in compiler[0] and "-fomit-frame-pointer" in flags else []
    print(machine.emulate(program, left_out, settings, folder)[0].strip())


def test_tables(machine):
    """Paths through functions that have no unwind tables: the program's own, found by its debug information, and glibc's,
    by their code."""
    folder = os.path.join(machine.folder, "tables")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    program = os.path.join(folder, "tables")
    compiler = machine.compiler.replace("g++", "gcc")
    for flags in (["-O2", "-g"], ["-O2", "-g", "-marm"], ["-O0", "-g"], ["-O2", *machine.flags]):
        run([compiler, *flags, os.path.join(HERE, "tables.c"), *machine.linked(program, False)])
        data = report(machine.emulate(program, [os.path.join(HERE, "tables.c")], {}, folder)[1])
        paths = {}
        for context in data["contexts"]:
            names = [frame["function"] for frame in context["frames"]]
            own = tuple(name for name in names if name in ("leaf", "middle", "outer", "read_line", "main"))
            known = paths.setdefault(own, [0, 0])
            known[0] += context["allocations"]
            known[1] += context["total_bytes"]
        # A file, its buffer and the line.
        if (data["lost"] != 0 or set(paths) != {("leaf", "middle", "outer", "main"), ("outer", "main"), ("read_line", "main")}
                or paths[("leaf", "middle", "outer", "main")] != [100, 1000] or paths[("outer", "main")] != [100, 600]
                or paths[("read_line", "main")][0] != 3):
            fail(*flags, "gives", paths, "lost", data["lost"])
    print(machine.name, "tables: each path leads to main, lost 0")


def test_guards(machine):
    """With signed return addresses and landing pads, and without."""
    folder = os.path.join(machine.folder, "guards")
    os.makedirs(folder, exist_ok=True)
    program, guard = os.path.join(folder, "guards"), os.path.join(folder, "guard.o")
    parts = os.path.join(SOURCE, "runtime", "machine", machine.name + "_guards.S")
    # Of the file only what guards are: the rest needs the whole walk.
    run([machine.compiler.replace("g++", "gcc"), "-O2", "-ffunction-sections", "-D_GNU_SOURCE=", "-I" + SOURCE,
         "-I" + os.path.join(SOURCE, "include"), "-I" + os.path.join(machine.built, "include"),
         "-c", os.path.join(SOURCE, "runtime", "stack", "remembered.c"), "-o", guard])
    run([machine.compiler, "-O2", "-g", "-I" + SOURCE, os.path.join(HERE, "guards.cpp"), guard, parts,
         "-Wl,--gc-sections", "-o", program])
    for processor, signed, pads in (("max", True, True), ("cortex-a72", False, False)):
        said = run([machine.emulator[0], "-cpu", processor, "-L", machine.root, program]).strip()
        if ("signed ones, too" in said) != signed or ("landing pads" in said) != pads:
            fail(processor, "says", said)
        print(machine.name, processor + ":", said)


def executed(machine, program, folder, mode, *arguments):
    """How many pieces of code without a jump the emulator has executed."""
    settings = {"LD_LIBRARY_PATH": os.path.dirname(machine.library), "MEMTRACE_OUTPUT": os.path.join(folder, "profile.mtp"),
                "MEMTRACE_REGION_DIR": folder, "MEMTRACE_SUMMARY": "0", "MEMTRACE_UNWIND": mode}
    command = machine.start("-d", "exec,nochain")
    for name, value in settings.items():
        command += ["-E", "%s=%s" % (name, value)]
    with subprocess.Popen([*command, program, *map(str, arguments)], stderr=subprocess.PIPE) as process:
        pieces = sum(line.startswith(b"Trace") for line in process.stderr)
    if process.returncode != 0:
        fail(mode, *arguments, "ended with", process.returncode)
    return pieces


def test_deep(machine):
    """What 380 more frames cost in each round of a program."""
    folder = os.path.join(machine.folder, "deep")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    program, rounds, more = os.path.join(folder, "deep"), 400, {}
    run([machine.compiler.replace("g++", "gcc"), "-O2", os.path.join(HERE, "deep.c"), *machine.linked(program, False)])
    for mode in ("verify", "patch"):
        few, many = (executed(machine, program, folder, mode, depth, rounds) for depth in (20, 400))
        more[mode] = (many - few) / rounds
    # Three allocations a round, three pieces of code at least to compare a frame. (What a process costs by itself differs by
    # some 25,000 pieces from one to the next, at any depth: hence so many rounds.)
    if more["verify"] < 380 * 3 * 3 or more["patch"] > more["verify"] / 20:
        fail("380 more frames cost so much a round:", more)
    print(machine.name, "deep: for 380 frames more, %.0f pieces of code a round, and with patched return addresses %.0f" %
          (more["verify"], more["patch"]))


def main():
    machine, case = Machine(sys.argv[1]), sys.argv[2]
    if case == "build":
        machine.build()
    elif case == "list":
        print(*[build for build in machine.builds if machine.can_build(build)])
    elif case == "tables":
        test_tables(machine)
    elif case == "guards":
        test_guards(machine)
    elif case == "deep":
        test_deep(machine)
    else:
        test_stacks(machine, case, int(sys.argv[3]) if len(sys.argv) > 3 else 150)


if __name__ == "__main__":
    main()
