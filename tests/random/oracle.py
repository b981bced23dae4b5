# SPDX-License-Identifier: MIT
"""The stacks that MemTrace recorded against the real ones, allocation by allocation.

The same binary runs twice: with real_stack.c preloaded, which asks libgcc's unwinder at every
allocation, and with MemTrace. Both answers are {stack: (allocations, bytes)}, a stack being
((module, offset), ...) from the allocating function outwards; they must be equal.
"""

import array
import collections
import functools
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (BUILD, LIBRARY, MEMTRACE, PRELOAD, clean_environment, execute,
                     preloadable)  # noqa: E402

OBSERVER = os.path.join(BUILD, "tests", "random", "real_stack.so")
MODULE_SHIFT = 48


class Trouble(Exception):
    """No stacks to compare: the text says what went wrong."""


def make_observer():
    source = os.path.join(HERE, "real_stack.c")
    if os.path.exists(OBSERVER) and os.path.getmtime(OBSERVER) > os.path.getmtime(source):
        return
    os.makedirs(os.path.dirname(OBSERVER), exist_ok=True)
    made = "%s.%d" % (OBSERVER, os.getpid())
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", source, "-o", made], check=True)
    os.rename(made, OBSERVER)


@functools.lru_cache(maxsize=None)
def real_path(path):
    return os.path.realpath(path)


def real_stacks(command, folder, low=0, high=(1 << 64) - 1, **more):
    """What the program's run shows to the observer: (stacks, the run itself)."""
    out = os.path.join(folder, "real_stacks")
    result = execute(command, clean_environment(LD_PRELOAD=preloadable(OBSERVER), REAL_STACK_OUT=out,
                                                REAL_STACK_LOW=str(low), REAL_STACK_HIGH=str(high)),
                     **more)
    words = array.array("Q")
    with open(out, "rb") as file:
        words.frombytes(file.read())
    os.unlink(out)
    sums, modules, at = collections.Counter(), {}, 0
    counts = collections.Counter()
    while at < len(words):
        if words[at] == 0:
            end = at + 3 + words[at + 2] // 8
            modules[words[at + 1]] = words[at + 3:end].tobytes().rstrip(b"\0").decode()
        else:
            end = at + 2 + words[at]
            key = words[at + 2:end].tobytes()
            counts[key] += 1
            sums[key] += words[at + 1]
        at = end
    mask = (1 << MODULE_SHIFT) - 1
    stacks = {}
    for key, count in counts.items():
        frames = array.array("Q", key)
        stack = tuple((real_path(modules[frame >> MODULE_SHIFT]), frame & mask) for frame in frames)
        stacks[stack] = (count, sums[key])
    return stacks, result


def recorded_stacks(command, folder, preload=True, **more):
    """What MemTrace records of the program's run: (stacks, the run itself)."""
    profile = os.path.join(folder, "recorded.mtp")
    result = execute(command, clean_environment(
        LD_PRELOAD=PRELOAD if preload else None, MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT=profile), **more)
    told = execute([MEMTRACE, "report", "--json", "--debug-folders", os.path.join(folder, "absent"), profile])
    if told.returncode != 0:
        raise Trouble("memtrace report: " + told.stderr.decode(errors="replace"))
    os.unlink(profile)
    data = json.loads(told.stdout)
    if data["lost"] != 0:
        raise Trouble("lost: %s" % data["lost_by_kind"])
    stacks = {}
    own = real_path(LIBRARY)
    for context in data["contexts"]:
        if context["allocations"] == 0:
            continue
        stack = tuple((real_path(frame["module"] or ""), frame["offset"])
                      for frame in context["frames"] if not frame["inlined"])
        stack = tuple(frame for frame in stack if frame[0] != own)  # pthread_create's
        count, size = stacks.get(stack, (0, 0))
        stacks[stack] = (count + context["allocations"], size + context["total_bytes"])
    return stacks, result


def cut_beyond(recorded, real):
    """The recorded stacks without what follows the last frame that the unwinder can be sure of: a
    fiber's first function, for example, was called by nobody."""
    stacks = {}
    for stack, (count, size) in recorded.items():
        if stack not in real:
            stack = next((stack[:end] for end in range(len(stack) - 1, 0, -1) if stack[:end] in real),
                         stack)
        before = stacks.get(stack, (0, 0))
        stacks[stack] = (before[0] + count, before[1] + size)
    return stacks


def names_of(frames):
    """[function name or address] of frames, for people."""
    names = []
    for module, offset in frames:
        text = os.path.basename(module) + "+0x%x" % offset
        found = subprocess.run(["addr2line", "-f", "-C", "-e", module or "/dev/null", "0x%x" % offset],
                               capture_output=True, text=True).stdout.split("\n")[0]
        names.append("%-28s %s" % (text, re.sub(r"\(.*", "", found)))
    return names


def show(title, stack, numbers, other=()):
    lines = ["  %s: %d allocations, %d bytes" % (title, *numbers)]
    same = set(other)
    lines += ["    %s %s" % (" " if frame in same else "*", name)
              for frame, name in zip(stack[:60], names_of(stack[:60]))]
    return lines


def nearest(stack, numbers, candidates):
    """The stack most like this one: same numbers first, then the most frames in common."""
    def likeness(item):
        return (item[1] == numbers, item[0][:1] == stack[:1],
                sum(1 for a, b in zip(reversed(item[0]), reversed(stack)) if a == b))
    return max(candidates.items(), key=likeness, default=((), (0, 0)))


def difference(real, recorded, exactly=True):
    """None if equal, or lines that tell the first difference. Not exactly: only the stacks of `real`
    are compared."""
    missing = {stack: numbers for stack, numbers in real.items() if recorded.get(stack) != numbers}
    extra = {stack: numbers for stack, numbers in recorded.items() if real.get(stack) != numbers}
    if not missing and not (exactly and extra):
        return None
    lines = ["%d of %d real stacks are not recorded so, %d recorded ones are not real" % (
        len(missing), len(real), len(extra) if exactly else 0)]
    if missing:
        stack, numbers = min(missing.items(), key=lambda item: len(item[0]))
        other = nearest(stack, numbers, extra)
        return lines + show("real", stack, numbers, other[0]) + show("recorded", *other, stack)
    stack, numbers = min(extra.items(), key=lambda item: len(item[0]))
    return lines + show("recorded, not real", stack, numbers)
