# SPDX-License-Identifier: MIT
"""counts.py SUBJECT CASE: one allocation function with its edge values. Counts and bytes must equal
the subject's own arithmetic and valgrind's, in every mode, compiler and optimization; the paths
must end in the case's function."""

import sys

from harness import (bare, build, consistent, equal, fail, finish, heap, only_profile,
                     same_behaviour, scratch, totals, traced, valgrind, wanted)

# valgrind counts a failed realloc, has no pvalloc, and no memory for 10 GiB.
NO_VALGRIND = {"realloc_fails", "pvalloc", "malloc_huge"}


def compare_totals(got, want, name, what):
    """A thread's table of thread-local modules has one entry of 16 bytes more: the runtime's."""
    if name == "other_thread":
        extra = got["bytes"] - want["bytes"]
        want = {**want, "bytes": want["bytes"] + 16, "live": want["live"] + 16} if extra == 16 else want
    equal(got, want, what)


def check_paths(data, name, what):
    """Every block of the case's own was asked for in its function or below it."""
    own = [context for context in heap(data)
           if any(frame["function"].startswith("main") for frame in context["frames"])]
    if not own and data["allocations"] > 1:
        fail(what, "no path leads through main:", data["contexts"][:2])
    for context in own:
        names = [frame["function"].split("(")[0] for frame in context["frames"]]
        if "case_" + name not in names:
            fail(what, "a path without case_%s: %s" % (name, names))
        if name == "barely_aligned" and names[0] != "case_" + name:
            fail(what, "asked for by", names[0], "instead of the program itself")


def main():
    subject, name = sys.argv[1:3]
    cplusplus = subject.endswith(".cpp")
    program = build(subject, "gcc", "-O2")
    alone = bare([program, name])
    equal(alone.returncode, 3, "bare exit status")
    want = wanted(alone.stdout, cplusplus)
    balanced = b"want balanced" in alone.stdout
    if name not in NO_VALGRIND and not balanced:
        oracle = valgrind([program, name])
        if want is None:
            want = oracle
        else:
            equal(want, oracle, "arithmetic against valgrind")
    variants = [("gcc", "-O2", "run")] + [
        (compiler, optimize, mode) for compiler in ("gcc", "clang") for optimize in ("-O0", "-O2")
        for mode in ("preload", "hooks", "frame-pointer")]
    for compiler, optimize, mode in variants:
        what = "%s %s %s %s %s:" % (subject, name, compiler, optimize, mode)
        folder = scratch()
        command = [build(subject, compiler, optimize, mode), name]
        same_behaviour(alone, traced(command, mode, folder), what)
        data = only_profile(folder, what)
        if balanced:
            # operator new's failures throw objects: all of them are gone again
            equal(data["allocations"] - data["frees"], 1, what, "blocks left")
        else:
            compare_totals(totals(data), want, name, what)
        equal(data["lost"], 0, what, "lost")
        consistent(data, what)
        check_paths(data, name, what)
        if subject == "mappings.c":
            check_mappings(data, name, what)


def check_mappings(data, name, what):
    """Mappings are there, apart from the heap, under the path that made them."""
    found = [context for context in data["mappings"]
             if any(frame["function"] == "case_" + name for frame in context["frames"])]
    if not found:
        fail(what, "no mapping was seen")
    if name == "munmap_fails":
        told = [(context["total_bytes"] / 4096, context["live_bytes"] / 4096, context["allocations"], context["frees"])
                for context in found]
        equal(sorted(told), [(61, 60, 1, 0), (67, 0, 1, 1)], what, "pages mapped, left; mappings, unmappings")
    live = {"mremap_over": [2], "mremap_keeps": [3, 71], "shared": [73]}
    if name in live:  # pages, by path
        pages = sorted(context["live_bytes"] / 4096 for context in found)  # also a piece that is less than one
        equal([number for number in pages if number], live[name], what, "live pages")
        equal(sum(context["total_bytes"] - context["live_bytes"] for context in found if name == "shared"),
              73 * 4096 if name == "shared" else 0, what, "detached")
    sizes = {"mmap": 37, "mmap64": 43, "mremap": 53}
    if name in sizes and not any(context["live_bytes"] == sizes[name] * 4096 for context in found):
        fail(what, "no mapping of", sizes[name], "pages is left:",
             [(context["live_bytes"], context["total_bytes"]) for context in found])


main()
finish()
