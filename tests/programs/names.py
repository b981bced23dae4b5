# SPDX-License-Identifier: MIT
"""names.py CASE: the names of frames where the program's file is not simply the one at its path: it was
started by its loader, it is gone at the end, in a mount namespace of its own, below a long path.
What is right the sources say."""

import glob
import os
import re
import sys

from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, report, scratch, skip

LEAK = ("leak", "leaks.c"), ("main", "leaks.c")


def run(command, *options, how="run", cwd=None, told=b""):
    """Its profile or recording."""
    path = os.path.join(scratch(), "it.mt")
    result = execute([MEMTRACE, how, "--no-summary", "-o", path, *options, "--", *command],
                     clean_environment(), cwd)
    equal((result.returncode, re.fullmatch(told, result.stderr) is not None), (0, True), how, command,
          "status and stderr", result.stderr)
    return path


def kept_by(path, *options):
    """(function, base name of the file) of the frames that keep the 100 blocks, innermost first."""
    data = report(path, None, *options)
    found = [context for context in data["contexts"]
             if (context["allocations"], context["total_bytes"]) == (100, 100300)]
    if len(found) != 1:
        fail(path, "contexts of 100 blocks:", len(found))
        finish()
    frames = [(frame["function"], os.path.basename(frame["file"])) for frame in found[0]["frames"]]
    return tuple(frame for frame in frames if frame[1] in ("leaks.c", "") and not frame[0].startswith("__libc_start"))


def interpreter():
    """The loader of programs here."""
    found = glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*")
    if not found:
        skip("no loader of glibc")
    return found[0]


def loader():
    """ld.so PROGRAM: the program's file is the one that lies in memory, not /proc/self/exe."""
    for how in ("run", "record"):
        for flags in (["-pie", "-fPIE"], ["-no-pie", "-fno-pie"], ["-Wl,--build-id=none"]):
            program = build("leaks.c", optimize="-O1", flags=flags)
            what = "started by its loader, %s %s:" % (how, flags)
            path = run([interpreter(), program], how=how)
            equal(kept_by(path)[:2], LEAK, what, "frames")
            equal(report(path)["program"], os.path.realpath(program), what, "executable")
    archive = execute(["gcc", "-print-file-name=libjemalloc_pic.a"]).stdout.decode().strip()
    if os.path.isabs(archive):  # its functions are the program's, not those of the loader
        program = build("leaks.c", optimize="-O1", libraries=[archive, "-lstdc++"])
        path = run([interpreter(), program], "--alloc", "auto", told=rb"(memtrace: --alloc: .* cannot be followed: .*\n)*")
        equal(kept_by(path)[:2], LEAK, "started by its loader, --alloc auto: frames")


def main():
    {"loader": loader}[sys.argv[1]]()


main()
finish()
