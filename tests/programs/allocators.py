# SPDX-License-Identifier: MIT
"""allocators.py NAME: programs that come with an allocator of their own keep it, and are counted."""

import sys

from harness import (bare, build, consistent, equal, execute, fail, finish, heap, only_profile,
                     same_behaviour, scratch, skip, traced)

LIBRARIES = {"jemalloc": "-ljemalloc", "tcmalloc": "-ltcmalloc", "tcmalloc_minimal": "-ltcmalloc_minimal",
             "mimalloc": "-lmimalloc"}


def installed(library):
    return execute(["sh", "-c", "echo 'int main(void){return 0;}' | "
                    "gcc -x c - -o /dev/null " + library]).returncode == 0


def main():
    name = sys.argv[1]
    if not installed(LIBRARIES[name]):
        skip("no " + LIBRARIES[name])
    for mode in ("preload", "run", "hooks", "frame-pointer"):
        what = "%s %s:" % (name, mode)
        libraries = ["-Wl,--no-as-needed", LIBRARIES[name]]
        program = build("allocator.c", "gcc", "-O1", mode, libraries=libraries)
        folder = scratch()
        alone = bare([build("allocator.c", "gcc", "-O1", "bare", libraries=libraries)])
        equal(alone.returncode, 3, what, "bare exit status")
        equal(alone.stdout.endswith(b"own\n"), True, what, "bare:", alone.stdout)
        same_behaviour(alone, traced([program], mode, folder), what)
        data = only_profile(folder, what)
        equal(data["lost"], 0, what, "lost")
        consistent(data, what)
        contexts = {context["total_bytes"]: context for context in heap(data)}
        if 90101 not in contexts:
            fail(what, "the block of 90101 bytes is missing")
        tiny = [context for context in heap(data) if context["allocations"] == 5000
                and any(frame["function"] == "tiny" for frame in context["frames"])]
        equal([(context["frees"], context["live_bytes"]) for context in tiny],
              [(2500, 12500)], what, "tiny blocks")


main()
finish()
