# SPDX-License-Identifier: MIT
"""modules.py CASE: code that comes and goes (dlopen), and code without unwind rules."""

import os
import sys

from harness import (bare, build, equal, fail, finish, heap, only_profile, same_behaviour, scratch,
                     traced)


def plugin(mode, number, *flags):
    name = "plugin_%s_inner" % "abc"[number]
    return build("plugin.c", "gcc", "-O2", "bare" if mode == "preload" else mode, shared=True,
                 flags=["-DPLUGIN_INNER=" + name, "-DSIZE=%d" % (70301 + number), *flags])


def dlopen():
    """Three libraries at one address, one after the other: each block names the right one."""
    for mode in ("preload", "hooks", "frame-pointer"):
        what = "plugins.c %s:" % mode
        program, folder = build("plugins.c", "gcc", "-O2", mode), scratch()
        libraries = [plugin(mode, number) for number in range(3)]
        arguments = libraries + ["deepbind:" + libraries[0]]
        alone = bare([program, *arguments])
        equal(alone.returncode, 3, what, "bare exit status", alone.stdout)
        # What a namespace of its own counts (dlmopen) is left as a region, for the next command to find.
        settings = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm")}
        same_behaviour(alone, traced([program, *arguments], mode, folder, settings), what)
        data = only_profile(folder, what)
        for number, library in enumerate(libraries):
            check_plugin(data, number, library, what)
        if not any(context["total_bytes"] == 70399 for context in heap(data)):
            fail(what, "the program's own block is missing")


def many_loads():
    """More loads than the table of modules has places, with a build-id and without: what lies where it
    lay has the record that it had."""
    times = 1500
    for build_id in ("sha1", "none"):
        what = "%d loads, build-id %s:" % (3 * times, build_id)
        program, folder = build("plugins.c", "gcc", "-O2"), scratch()
        libraries = [plugin("preload", number, "-Wl,--build-id=" + build_id) for number in range(3)]
        settings = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "SUBJECT_TIMES": str(times)}
        under = traced([program, *libraries], "preload", folder, settings)
        equal(under.returncode, 3, what, "exit status", under.stderr)
        data = only_profile(folder, what)
        equal(data["lost"], 0, what, "lost", data["lost_by_kind"])
        if build_id != "none":
            equal(len(data["modules"]) < 100, True, what, "records of modules", len(data["modules"]))
        for number, library in enumerate(libraries):
            check_plugin(data, number, library, what, times)


def check_plugin(data, number, library, what, times=1):
    found = [context for context in heap(data)
             if context["allocations"] and context["total_bytes"] == (70301 + number) * context["allocations"]]
    equal(sum(context["allocations"] for context in found) >= times, True, what, "blocks of plug-in", number)
    for context in found:
        frames = context["frames"]
        equal([frame["function"] for frame in frames[:2]],
              ["plugin_%s_inner" % "abc"[number], "plugin_run"], what, "plug-in", number)
        equal(os.path.realpath(frames[0]["module"]), os.path.realpath(library), what, "its module")
        names = [frame["function"] for frame in frames]
        equal("load" in names or "main" in names, True, what, "the host below it", names)


def no_unwind_rules():
    """No .eh_frame in the program: paths may end early, but nothing breaks and all is counted."""
    for compiler in ("gcc", "clang"):
        for optimize in ("-O0", "-O2"):
            for mode in ("preload", "hooks", "frame-pointer"):
                for name in ("plain", "recursion", "qsort", "siglongjmp", "threads", "fibers"):
                    what = "stacks.c %s without rules %s %s %s:" % (name, compiler, optimize, mode)
                    program = build("stacks.c", compiler, optimize, mode, flags=[
                        "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"])
                    folder = scratch()
                    same_behaviour(bare([program, name]), traced([program, name], mode, folder), what)
                    data = only_profile(folder, what)
                    if name == "plain":
                        check_plain(data, what)


def check_plain(data, what):
    """Whatever is known of the paths, the innermost function is right and all blocks are there."""
    found = [context for context in heap(data) if context["frames"]
             and context["frames"][0]["function"] in ("take", "plain_inner", "case_plain")]
    sizes = [70005, 70001, 70003, 70007, 70009, 70011, 70001, 70003]
    equal((sum(context["allocations"] for context in found),
           sum(context["total_bytes"] for context in found)), (len(sizes), sum(sizes)), what, "blocks")


{"dlopen": dlopen, "many_loads": many_loads, "no_unwind_rules": no_unwind_rules}[sys.argv[1]]()
finish()
