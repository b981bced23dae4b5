# SPDX-License-Identifier: MIT
"""wordpaths.py: programs built with a compiler's pass. Each path has exactly the blocks that the
program itself counted, whose sizes say which path it is, and shows the lines it was taken by."""

import glob
import os

from harness import (BUILD, bare, build, equal, execute, fail, finish, heap, only_profile, scratch,
                     skip, traced)

BASE = 10000
FLAGS = {"gcc": "-fplugin=", "clang": "-fpass-plugin="}


def plugins():
    """{compiler: the flag} of those that there is a plugin for."""
    found = {}
    folder = os.path.join(BUILD, "lib", "memtrace")
    for compiler, flag in FLAGS.items():
        for path in glob.glob(os.path.join(folder, compiler + "-*", "memtrace.so")):
            try:
                version = execute([compiler, "-dumpversion"]).stdout.decode().split(".")[0]
            except OSError:
                continue
            if path.split(os.sep)[-2] == "%s-%s" % (compiler, version):
                found[compiler] = flag + path
    return found


def lines_of(path, lines):
    """Innermost first: the lowest bit is the newest step's."""
    return [lines[path >> bit & 1] for bit in range(path.bit_length() - 1)]


def check(data, told, what):
    lines = [int(line) for line in told[0].split()[1:]]
    wanted = {int(path): int(count) for _, path, count in (line.split() for line in told[1:])}
    found = {}
    for context in heap(data):
        frames = [frame for frame in context["frames"] if frame["function"] == "step"]
        if not frames:
            continue
        count = context["allocations"]
        path = context["total_bytes"] // count - BASE
        if (BASE + path) * count != context["total_bytes"] or path in found:
            fail(what, "blocks of several paths in one, or one in several:", context)
            continue
        found[path] = count
        equal([frame["line"] for frame in frames[1:]], lines_of(path, lines), what, "path", path)
    equal(found, wanted, what, "blocks by path")
    equal(data["lost"], 0, what, "lost")


def main():
    flags = plugins()
    if not flags:
        skip("no plugin for a compiler that is here")
    for compiler, flag in flags.items():
        program = build("wordpaths.c", compiler, "-O1", flags=[flag])
        told = bare([program]).stdout.decode().splitlines()
        folder = scratch()
        traced([program], "preload", folder)
        check(only_profile(folder, compiler), told, compiler)
    finish()


main()
