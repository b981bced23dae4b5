# SPDX-License-Identifier: MIT
"""backtraces.py SUBJECT CASE: the paths in the profile are the stacks that gdb shows for the very
same binary at the very same allocations: functions, lines, inlined frames, modules.

Allocations are matched by their sizes, each of which the subject asks for in one place.
"""

import functools
import json
import os
import re
import sys

from harness import (HERE, bare, build, clean_environment, equal, execute, fail, finish, have, heap,
                     only_profile, same_behaviour, scratch, traced)

LOW, HIGH = 70000, 200000
# Cases that gdb cannot walk in reasonable time, or that need another check.
ARITHMETIC = {"deep"}
# GCC's own debug information puts an optimized coroutine into the function that calls it.
MISLEADING = {("coroutines", "gcc", "-O2")}
# Functions that the runtime may stand in for itself: their frame is there or not.
COVERED = {"strdup", "strndup"}
VARIANTS = [(compiler, optimize, mode) for mode in ("preload", "hooks", "frame-pointer")
            for compiler in ("gcc", "clang") for optimize in ("-O0", "-O2")]


def gdb_stacks(program, arguments, settings):
    """{size: [stack, ...]} as gdb sees them in the program without MemTrace's counting."""
    have("gdb")
    folder = scratch()
    out = os.path.join(folder, "frames")
    environment = clean_environment(FRAMES_LOW=str(LOW), FRAMES_HIGH=str(HIGH), FRAMES_OUT=out,
                                    MEMTRACE="off", **settings)
    result = execute(["gdb", "-nx", "-batch", "-x", os.path.join(HERE, "gdb_frames.py"), "--args",
                      program, *arguments], environment)
    stacks = {}
    if os.path.exists(out):
        for line in open(out):
            stack = json.loads(line)
            stacks.setdefault(stack["size"], []).append(stack["frames"])
    if not stacks:
        fail("gdb saw no allocation:", result.stdout.decode(), result.stderr.decode())
        finish()
    return stacks


@functools.lru_cache(maxsize=None)
def plain_name(name):
    """Without parameters, template arguments, return type, clone suffix: what must be equal."""
    name = re.sub(r"\[(clone|abi:)[^]]*\]", "", name)
    name = name.replace("(anonymous namespace)", "{anonymous}")
    name = re.sub(r"operator(<<|>>|<=>|<=|>=|<|>|->\*?|\(\))",
                  lambda match: "operator_" + match.group(1).encode().hex(), name)
    lambdas = re.sub(r"\{lambda\([^{}]*\)(#\d+)?\}", "{lambda}", name)
    name = re.sub(r"<lambda\([^<>]*\)>", "{lambda}", lambdas)
    previous = None
    while previous != name:
        previous = name
        name = re.sub(r"<[^<>]*>", "", name)
    previous = None
    while previous != name:
        previous = name
        name = re.sub(r"\([^()]*\)", "", name)
    name = re.sub(r"( const| volatile| \[clone[^]]*\])+$", "", name.strip())
    name = re.sub(r"\.(isra|constprop|part|cold|lto_priv|resume|destroy|cleanup|actor|llvm)[.\d]*", "", name)
    name = name.split("@")[0]
    name = name if name.startswith("operator ") else name.split(" ")[-1]
    return re.sub(r"^(__GI_)?_*", "", name)  # aliases of the C library


def from_gdb(frames, program):
    out = []
    for frame in frames:
        out.append({
            "names": {plain_name(frame["function"]), plain_name(demangle(frame["linkage"]))} - {""},
            "line": frame["line"], "lines": frame["lines"], "inlined": frame["inlined"], "dwarf": frame["dwarf"],
            "signal": frame["function"] == "<signal>", "guessed": 0,
            "module": os.path.basename(os.path.realpath(frame["module"] or program))})
    # Nobody called what a fiber's first function returns to, but gdb goes on, to wherever that leads.
    for index, frame in enumerate(out):
        if "fiber_main" in frame["names"]:
            del out[index + 2:]
            break
    # Above a stack's first function gdb guesses: frames without a name.
    while out and not out[-1]["names"]:
        out.pop()
    if out:
        out[-1]["guessed"] = len(frames) - len(out)
    return out


demangled = {}


def demangle(name):
    if name.startswith("_Z") and name not in demangled:
        demangled[name] = execute(["c++filt", name]).stdout.decode().strip()
    return demangled.get(name, name)


def frame_differs(ours, true):
    """What is wrong with our frame, or None."""
    if true["signal"]:
        wanted = ("__restore_rt", "<signal handler called>", "")
        return None if ours["function"] in wanted else "no signal frame"
    if os.path.basename(os.path.realpath(ours["module"])) != true["module"]:
        return "module"
    if not true["dwarf"]:
        return None  # gdb has only a symbol table here: names differ between aliases
    name = plain_name(ours["function"])
    if not any(name == one or name.endswith("::" + one) or one.endswith("::" + name)
               for one in true["names"]):  # gdb leaves out what a lambda is in
        return "function"
    if true["line"] and ours["line"] not in (true["line"], *true["lines"]):
        return "line"
    if bool(ours["inlined"]) != true["inlined"]:
        return "inlined"
    return None


def stack_differs(ours, true):
    ours = [frame for index, frame in enumerate(ours)
            if index > 0 or plain_name(frame["function"]) not in COVERED]
    true = [frame for index, frame in enumerate(true)
            if index > 0 or not frame["names"] & COVERED]
    for index, (mine, theirs) in enumerate(zip(ours, true)):
        wrong = frame_differs(mine, theirs)
        if wrong:
            return "frame %d: %s differs" % (index, wrong)
    guessed = true[-1]["guessed"] if true else 0
    if not len(true) <= len(ours) <= len(true) + guessed:
        return "%d frames, gdb has %d" % (len(ours), len(true))
    return None


def show(frames):
    text = []
    for frame in frames[:40]:
        name = frame.get("function") or "|".join(sorted(frame.get("names", ()))) or "?"
        text.append("      %s:%s%s %s" % (name, frame["line"], " (inlined)" if frame["inlined"] else "",
                                          os.path.basename(frame["module"] or "")))
    return "\n".join(text)


def shape(frames):
    """The same for the stacks that compare() tells apart: not by other calls in the same line, nor by
    what gdb guessed."""
    return tuple((*sorted(frame["names"]), frame["line"], frame["module"], frame["inlined"], frame["signal"],
                  frame["dwarf"]) for frame in frames)


def compare(data, stacks, program, what, part=lambda frames: frames):
    """Contexts know no sizes, only sums: all of gdb's allocations on one stack must be what our
    contexts with that stack hold together. `part` of a path leaves out what is not to be compared."""
    contexts = [{**context, "frames": part(context["frames"])} for context in heap(data)]
    groups = {}
    for size, found in stacks.items():
        for frames in found:
            true = part(from_gdb(frames, program))
            group = groups.setdefault(shape(true), [true, 0, 0])
            for known, frame in zip(group[0], true):
                known["lines"] = sorted({*known["lines"], *frame["lines"]})
                known["guessed"] = max(known["guessed"], frame["guessed"])
            group[1] += 1
            group[2] += size
    for true, count, size in groups.values():
        if not true:
            continue
        same = [context for context in contexts if stack_differs(context["frames"], true) is None]
        got = (sum(context["allocations"] for context in same),
               sum(context["total_bytes"] for context in same))
        if got != (count, size):
            near = sorted(contexts, key=lambda context: abs(context["total_bytes"] - size))[:2]
            fail(what, "gdb saw (allocations, bytes)", (count, size), "the profile has", got, "there",
                 "\n    gdb:\n" + show(true) + "\n    nearest in the profile:\n" + "\n    or:\n".join(
                     "      (%d, %d) %s\n" % (context["allocations"], context["total_bytes"],
                                              stack_differs(context["frames"], true))
                     + show(context["frames"]) for context in near))


def check_deep(data, what):
    """100,000 frames: too many for gdb, simple enough for arithmetic."""
    for size, depth in ((70031, 100001), (70033, 11)):
        found = [context for context in heap(data) if context["total_bytes"] == size]
        if len(found) != 1:
            fail(what, "size", size, "has", len(found), "contexts")
            continue
        names = [frame["function"] for frame in found[0]["frames"]]
        equal(names.count("deep"), depth, what, "frames of deep() at size", size)
        equal(names[:depth], ["deep"] * depth, what, "the innermost frames at size", size)
        equal("main" in names[depth:depth + 3], True, what, "main comes soon", names[depth:])


def main():
    subject, name = sys.argv[1:3]
    only = sys.argv[3:]  # by hand: mode, compiler, optimization
    settings = {"SUBJECT_CONSTRUCTOR": "1"} if name == "exits" else {}
    for compiler, optimize, mode in VARIANTS:
        if any(word not in (compiler, optimize, mode) for word in only):
            continue
        what = "%s %s %s %s %s:" % (subject, name, compiler, optimize, mode)
        program = build(subject, compiler, optimize, mode)
        folder = scratch()
        alone = execute([program, name], clean_environment(MEMTRACE="off", **settings))
        same_behaviour(alone, traced([program, name], mode, folder, settings), what)
        equal(alone.returncode, 3, what, "exit status")
        data = only_profile(folder, what)
        equal(data["lost"], 0, what, "lost")
        if name in ARITHMETIC:
            check_deep(data, what)
        elif (name, compiler, optimize) not in MISLEADING:
            compare(data, gdb_stacks(program, [name], settings), program, what)


if __name__ == "__main__":
    main()
    finish()
