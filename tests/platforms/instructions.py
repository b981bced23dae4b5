#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""instructions.py [--keep] [COMPILER]: the functions that programs on x86-64 run at each allocation, free and
hook have no more instructions than instructions.txt says. What compilers make of the same source differs, so
the figures are those of one compiler (its first line); with another, or with other options, nothing is compared.

    --keep      writes the figures down anew: where a change is worth it, or has made them fewer
    COMPILER    CMake's words for what built it: id, version, machine, type and flags"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, "instructions.txt")
LIBRARY = os.path.join(os.environ.get("TEST_BUILD", "build"), "lib", "libmemtrace.so")

# What is called at each event, or at most of them in some kind of program. What the compiler has moved
# out of these functions as unlikely (NAME.cold) is not counted.
HOT = """malloc malloc_slow malloc_count_slow malloc_raise_peak_slow malloc_count_aligned_slow malloc_for_new
    calloc calloc_slow calloc_count_slow realloc realloc_slow aligned_alloc memalign
    _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnwmSt11align_val_t
    free free_older free_slow free_from_peak_slow
    malloc_sampled free_sampled malloc_stopped free_stopped
    event_take event_count_taken event_end_alloc event_end_free event_record_alloc event_record_free
    walk_context_slow recall walk keep_trail path_go_out path_come_back path_add rule_cache_fill
    context_find context_add_path peak_grow_slow peak_shrink_slow
    allocator_enter allocator_leave allocator_resize
    allocator_returned_fast allocator_leaves_fast allocator_resizes_fast
    __cyg_profile_func_enter __cyg_profile_func_exit""".split()

SYMBOL = re.compile(r"^([0-9a-f]+) <\S+>:$")
CODE = re.compile(r"^ +[0-9a-f]+:\s+(\S.*)$")
# What fills the space to where the next part begins is not run.
FILLING = re.compile(r"^(nop|data16|cs nop|xchg +%ax,%ax|int3)")


def tool(*command):
    return subprocess.run([*command, LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def counts():
    """Of each function: how many instructions."""
    found = {}
    place = 0
    for line in tool("objdump", "-d", "--no-show-raw-insn"):
        start, code = SYMBOL.match(line), CODE.match(line)
        if start:
            place = int(start[1], 16)
            found[place] = 0
        elif code and not FILLING.match(code[1]):
            found[place] += 1
    names = [line.split() for line in tool("nm", "--defined-only")]
    return {name: found[int(at, 16)] for at, kind, name in names if kind in "tT" and int(at, 16) in found}


def read_kept():
    with open(KEPT, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    return lines[0], {name: int(count) for name, count in (line.split() for line in lines[1:])}


def keep(compiler, found):
    with open(KEPT, "w", encoding="utf-8") as file:
        file.write("# Instructions of functions: see instructions.py, which has written this (--keep).\n%s\n" % compiler)
        file.writelines("%s %d\n" % (name, found[name]) for name in HOT)


def main():
    is_keeping = "--keep" in sys.argv[1:]
    words = [word for word in sys.argv[1:] if word != "--keep"]
    kept_for, kept = read_kept()
    compiler = words[0].strip() if words else kept_for
    if compiler != kept_for:
        print("not compared: this is of", repr(compiler), "and kept are figures of", repr(kept_for))
        return 77
    found = counts()
    missing = [name for name in HOT if name not in found]
    if missing:
        print("no such function any more, say in instructions.py which is in its place:", *missing)
        return 1
    if is_keeping:
        keep(compiler, found)
        return 0
    more = {name: (kept.get(name, 0), found[name]) for name in HOT if found[name] > kept.get(name, 0)}
    fewer = {name: (kept[name], found[name]) for name in HOT if found[name] < kept.get(name, 0)}
    for name, (before, after) in {**more, **fewer}.items():
        print("%-28s %5d before, %5d now" % (name, before, after))
    print("in all", sum(found[name] for name in HOT), "instructions;", sum(kept.values()), "are kept")
    if more:
        print("functions of the hot path have grown: if it must be, keep these (instructions.py --keep)")
    elif fewer:
        print("some are shorter now: keep these figures (instructions.py --keep)")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
