# SPDX-License-Identifier: MIT
"""split.py: debug information in .dwo files (-gsplit-dwarf), the same in one .dwp (llvm-dwp), and neither:
names, lines and inlined functions of two units, as the source has them; what is missing is said in one line."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from harness import COMPILERS, MEMTRACE, equal, execute, finish, report, scratch, skip  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "split.cpp")
RANGES = os.path.join(os.path.dirname(SOURCE), "ranges.cpp")
WANTED = {1001: [("inlined_leaf", 16, True), ("outer", 20, False), ("main", 29, False)],
          2002: [("inlined_other", 16, True), ("other", 20, False),
                 ("main", 29, False)]}


def run(*command, folder):
    result = execute(list(command), cwd=folder)
    equal(result.returncode, 0, command, result.stderr)


def seen(folder):
    data = report(os.path.join(folder, "p.mtp"))
    frames = {context["total_bytes"]: [(frame["function"].split("(")[0], frame["line"], frame["inlined"])
                                       for frame in context["frames"] if frame["file"] == SOURCE]
              for context in data["contexts"] if context["total_bytes"] in WANTED}
    return frames, [line for line in data["warnings"] if ".dwo" in line]


def every_address(packer):
    """The same of each address of a function, inlined in pieces, from .dwo files, which libdw reads, and a .dwp."""
    for compiler, version in (("clang", "5"), ("clang", "4"), ("gcc", "5"), ("gcc", "4")):
        folder = scratch()
        cxx = COMPILERS[compiler][1]
        run(cxx, "-gdwarf-" + version, "-O2", "-gsplit-dwarf", "-c", RANGES, "-o", "one.o", folder=folder)
        run(cxx, "one.o", "-o", "app", folder=folder)
        symbols = execute(["nm", "app"], cwd=folder).stdout.decode().splitlines()
        start = [int(line.split()[0], 16) for line in symbols if line.endswith(" T outer")][0]
        with open(os.path.join(folder, "asked"), "w") as file:
            file.writelines("%s/app+0x%x\n" % (folder, start + i) for i in range(100))
        wanted = execute([MEMTRACE, "symbolize", "asked"], cwd=folder).stdout
        equal(b"leaf" in wanted and b"(inlined)" in wanted, True, compiler, version, "something is inlined")
        run(packer, "-e", "app", "-o", "app.dwp", folder=folder)
        os.unlink(os.path.join(folder, "one.dwo"))
        equal(execute([MEMTRACE, "symbolize", "asked"], cwd=folder).stdout, wanted, compiler, version, "each address")


def main():
    packers = [name for name in ("llvm-dwp", "llvm-dwp-14", "llvm-dwp-16", "dwp") if shutil.which(name)]
    if not packers:
        skip("no llvm-dwp")
    every_address(packers[0])
    for compiler, version in (("clang", "5"), ("clang", "4"), ("gcc", "5")):
        folder = scratch()
        cxx = COMPILERS[compiler][1]
        for name, flags in (("one", ()), ("two", ("-DOTHER",))):
            run(cxx, "-g", "-gdwarf-" + version, "-O1", "-gsplit-dwarf", "-c", SOURCE, "-o", name + ".o", *flags,
                folder=folder)
        run(cxx, "one.o", "two.o", "-o", "app", folder=folder)
        run(MEMTRACE, "run", "--no-summary", "--output", "p.mtp", "--", "./app", folder=folder)
        equal(seen(folder), (WANTED, []), compiler, version, "with .dwo files")
        run(packers[0], "-e", "app", "-o", "app.dwp", folder=folder)
        for name in ("one.dwo", "two.dwo"):
            os.unlink(os.path.join(folder, name))
        equal(seen(folder), (WANTED, []), compiler, version, "with a .dwp")
        os.truncate(os.path.join(folder, "app.dwp"), 900)  # a damaged one is none
        frames, told = seen(folder)
        equal(len(told), 1, compiler, version, "lines about a damaged .dwp", told)
        os.unlink(os.path.join(folder, "app.dwp"))
        frames, told = seen(folder)
        equal([frame[0] for frame in frames[1001]], ["outer", "main"], compiler, version, "functions without")
        equal((len(told), "one.dwo" in "".join(told)), (1, True), compiler, version, "lines about what is missing", told)


main()
finish()
