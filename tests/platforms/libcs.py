#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libcs.py KIND: libc.c with another C library, on another machine, or linked statically: static, musl, musl-static,
aarch64, aarch64-static. Each function that allocates is counted once, whichever the C library calls by its name; and
whichever way the process ends, by itself and under `memtrace run` and `record`, what it did is in the profile."""

import os
import shutil
import subprocess
import sys
import tempfile

from foreign import BUILD, HERE, Machine, fail, report, run

MEMTRACE = os.path.join(BUILD, "bin", "memtrace")
# Blocks and bytes of use_each(). Destructors run by exit() and return alone, handlers of exit by these and quick_exit.
EACH, BYTES = 7, 294
USES = {"return": 1117, "exit": 1117, "quick": 1113, "_exit": 1110, "exec": 1110}


def compiled(machine, folder, name, *flags):
    program = os.path.join(folder, name)
    compiler = machine.musl_gcc if machine.is_musl else machine.compiler.replace("g++", "gcc")
    run([compiler, "-g", "-O1", "-pthread", os.path.join(HERE, "libc.c"), *flags, "-o", program])
    return program


def counted(profile, *options):
    """Of use_each() alone: in glibc other functions allocate, too."""
    data = report(profile, *options)
    contexts = [context for context in data["contexts"]
                if context["frames"] and context["frames"][0]["function"] == "use_each"]
    for context in contexts:
        names = [frame["function"] for frame in context["frames"]]
        if names[1] != "use" or not {"main", "on_thread", "handle", "at_exit", "destroy"} & set(names[2:3]):
            fail("a path is", names)
    children = data.get("forked_children", {})
    return (*(sum(context[key] for context in contexts) for key in ("allocations", "total_bytes", "live_bytes")),
            *(children.get(key) for key in ("allocations", "total_bytes")))


def execute(command, folder, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMTRACE")}
    done = subprocess.run(command, cwd=folder, env={**environment, **settings}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300, check=False)
    if done.returncode != 3:
        fail(" ".join(command), "ended with", done.returncode, done.stderr.decode())
    return done.stderr.decode()


def check(profiles, way, is_run, *options):
    """Of the process with its forked child, which is in its profile, and of what it became (which without `memtrace
    run` takes the place of the first, as of every process of this number)."""
    expected = [(USES[way] * EACH, USES[way] * BYTES, 0, 20 * EACH, 20 * BYTES)] if way != "exec" or is_run else []
    expected += [(1004 * EACH, 1004 * BYTES, 0, None, None)] if way == "exec" else []
    found = sorted((counted(profile, *options) for profile in profiles), reverse=True)
    if found != expected:
        fail(way, "left", found, "not", expected)


def fresh(folder):
    return tempfile.mkdtemp(dir=folder)


def profiles(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
            if name.endswith((".mtp", ".mtr"))]


def words(program, way, start=()):
    """That start it, behind an emulator's: with "exec" followed by those that it executes, itself again."""
    again = [shutil.which(start[0]), *start[1:]] if start else []
    return [*start, program, way, *([*again, program, "again"] if way == "exec" else [])]


def main():
    machine = Machine(sys.argv[1])
    folder = os.path.join(machine.folder, "libc")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700)
    plain = compiled(machine, folder, "plain", *(["-static"] if machine.static else []))
    linked = compiled(machine, folder, "linked", *machine.linked(os.path.join(folder, "linked"), False),
                      "-Wl,-rpath," + os.path.dirname(machine.library))
    start = machine.start()
    for way in USES:
        at = fresh(folder)
        execute(words(linked, way, start), at, MEMTRACE_SUMMARY="0")
        check(profiles(at), way, False)
    followed = linked if machine.static else plain
    library = [] if machine.is_here else ["--library", machine.library]
    emulates = "" if machine.is_here else "memtrace: %s emulates %s, a program for AArch64: that is profiled, with %s\n" % (
        machine.emulator[0], followed, os.path.realpath(machine.library))
    for way in ("return", "exec") if machine.is_here else ("return",):
        at = fresh(folder)
        said = execute([MEMTRACE, "run", "--no-summary", *library, "--", *words(followed, way, start)], at)
        check(profiles(at), way, True)
        if said != emulates:
            fail("memtrace run says", said)
    at = fresh(folder)
    execute([MEMTRACE, "record", "--no-summary", "--children", "none", *library, "--", *words(followed, "return", start)], at)
    recordings = profiles(at)
    if len(recordings) != 1 or counted(recordings[0])[:3] != (USES["return"] * EACH, USES["return"] * BYTES, 0):
        fail("recorded are", [(name, counted(name)) for name in recordings])
    if machine.static:
        said = execute([MEMTRACE, "run", *library, "--", *words(plain, "return", start)], folder)
        if not said.endswith("%s is statically linked: nothing will be recorded\n" % plain) or said.count("\n") != 1:
            fail("of a program without MemTrace it says", said)
    print(machine.name + ": each function counted once,", len(USES), "ways to end")


if __name__ == "__main__":
    main()
