#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""named.py MACHINE: functions that allocate are named when a program is built for another machine, or is linked
statically, by each compiler that there is a plugin for: tests/allocators/built.cpp, whose text says what is counted."""

import os
import sys
import tempfile

import foreign

sys.path[1:1] = [os.path.join(foreign.SOURCE, "tests", folder) for folder in ("allocators", "programs")]
import built  # noqa: E402
from poolsums import pools  # noqa: E402

PATH = {"deep": "take_deep", "inlined": "take_inlined"}


def plugin_flags(plugin, is_gcc):
    if is_gcc:
        return ["-fplugin=" + plugin, *("-fplugin-arg-memtrace-allocators=" + one for one in built.NAMED)]
    return ["-fpass-plugin=" + plugin, "-fplugin=" + plugin,
            *(word for one in built.NAMED for word in ("-mllvm", "-memtrace-allocators=" + one))]


def check(machine, what, program, folder):
    for case, expected in built.EXPECTED.items():
        _, profile = machine.emulate(program, [case], {}, folder)
        found = foreign.report(profile)
        if pools(found) != expected or (found["lost"] != 0 and not machine.lacks_tables):
            foreign.fail(what, case, "has", pools(found), "lost", found["lost"], "and not", expected)
        names = [[frame["function"] or "?" for frame in context["frames"]] for context in found["pools"]]
        # What compilers merge of inlined functions is nobody's any more for debuggers.
        wrong = [path for path in names if case in PATH and what.endswith("-O0") and
                 not (path[0].startswith(PATH[case]) and "main" in path)]
        if wrong:
            foreign.fail(what, case, "has another path:", wrong[0])


def main():
    machine = foreign.Machine(sys.argv[1])
    compilers = [([machine.compiler, "-std=c++20"], machine.plugin(), True)]
    if "clang-pass" in machine.builds:
        compilers += [([*command, "-std=c++20", "-Wno-deprecated"], plugin, False) for command, plugin in machine.clangs()]
    source = os.path.join(foreign.SOURCE, "tests", "allocators")
    with tempfile.TemporaryDirectory() as folder:
        for command, plugin, is_gcc in compilers:
            for level in ("-O0", "-O2") if is_gcc else ("-O2",):
                program = os.path.join(folder, "program")
                machine.compile(os.path.join(source, "built.cpp"),
                                [level, "-fasynchronous-unwind-tables", os.path.join(source, "builtother.c"),
                                 *plugin_flags(plugin, is_gcc)], program, command)
                check(machine, " ".join([command[0], level]), program, folder)
    print("ok:", machine.name, len(compilers), "compilers")


main()
