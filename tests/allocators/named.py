# SPDX-License-Identifier: MIT
"""named.py CASE: functions that allocate are named by --alloc, in programs that know nothing of it
(named.cpp). What is counted is known from the program's text; the program gives what it gives alone."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
import lightreader  # noqa: E402
import poolsums  # noqa: E402
from harness import (MEMTRACE, bare, build, clean_environment, equal, execute, finish,  # noqa: E402
                     only_profile, profiles, report, scratch)

ALLOC, FREE = "own_alloc(size=1)=alloc:own", "own_free(ptr=2)=free"
KINDS = [ALLOC, FREE, "own_zalloc(size=2*3)=zalloc:own", "own_place(ptr=1,align=2,size=3)=alloc:placed",
         "own_resize(old=1,size=2)=realloc:own"]


def program(optimize="-O2", compiler="gcc"):
    return build(os.path.join(HERE, "named.cpp"), compiler, optimize)


def named(command, *specifications, record=False, settings=None):
    """The program alone and with its functions named: the same to whoever runs it. What it said,
    and the folder of its profiles."""
    folder = scratch()
    options = [word for one in specifications for word in ("--alloc", one)]
    under = execute([MEMTRACE, "record" if record else "run", "--no-summary", *options, "--", *command],
                    clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm"), **(settings or {})), folder)
    alone = bare(command)
    equal((under.stdout, under.returncode), (alone.stdout, alone.returncode), *command, under.stderr.decode())
    return under.stderr.decode(), folder


def pools(data):
    """{pool: (allocations, bytes, frees, live blocks)}"""
    return {name: (*row, row[0] - row[2]) for name, row in poolsums.pools(data).items()}


def check_pools(what, said, folder, expected):
    equal(said, "", what, "lines on stderr")
    data = only_profile(folder, what)
    equal(pools(data), expected, what)
    equal(data["lost"], 0, what, "lost")
    return data


def kinds():
    first = sum(range(100, 200))
    expected = {"own": (100 + 1 + 2, first + 990 + 700 + 300, 50 + 2, 51), "placed": (1, 5000, 0, 1)}
    for optimize, compiler in (("-O0", "gcc"), ("-O2", "gcc"), ("-O2", "clang")):
        said, folder = named([program(optimize, compiler), "kinds"], *KINDS)
        data = check_pools(compiler + " " + optimize, said, folder, expected)
        for context in data["pools"]:
            names = [frame["function"] for frame in context["frames"]]
            equal(names[:1], ["kinds()"], "the caller comes first", names)
            equal("main" in names, True, "the path leads to main", names)


def reset():
    said, folder = named([program(), "reset"], ALLOC, "own_reset=reset:own")
    check_pools("reset", said, folder, {"own": (71, 70 * 40 + 41, 70, 1)})


def registers():
    said, folder = named([program(), "registers"], "own_two(size=1)=alloc:two", "own_double(size=1)=alloc:double")
    data = only_profile(folder, "registers")
    equal(pools(data)["two"][:2], (1000, 500500), "two results")


def all_registers():
    """Those that calls may change, too, whole: an oracle is the processor, which saves them by itself (registers.c)."""
    command = [build(os.path.join(HERE, "registers.c"), "gcc", "-O2"), "4000"]
    if bare(command).returncode == 77:
        sys.exit(77)
    kinds = ["state_alloc(size=2)=alloc:own", "state_resize(old=1,size=2)=realloc:own", "state_give(ptr=1)=free:own",
             "state_reset=reset:own"]
    heap = ["state_alloc(size=2)=alloc:heap", "state_resize(old=1,size=2)=realloc:heap", "state_give(ptr=1)=free:heap"]
    # A sample is drawn by calculations of floating-point numbers, which set flags of MXCSR.
    for specifications, record, settings in ((kinds, False, {}), (kinds, True, {}), (heap, False, {}),
                                             (kinds, True, {"MEMTRACE_SAMPLE": "1K"})):
        said, folder = named(command, *specifications, record=record, settings=settings)
        equal(said, "", "lines on stderr")
        if not record:
            equal(only_profile(folder, "registers")["lost"], 0, "lost")


def code_of(library):
    """{function: its instructions}"""
    code = {}
    for line in execute(["objdump", "-d", "--no-show-raw-insn", library], clean_environment()).stdout.decode().splitlines():
        start = re.match(r"[0-9a-f]+ <(\S+)>:$", line)
        if start:
            lines = code[start[1]] = []
        elif re.match(r" +[0-9a-f]+:\t", line):
            lines.append(line.split("\t", 1)[1])
    return code


def general_registers():
    """What runs at each call changes no register but general ones, and calls nothing of which that is not known: what
    may is called where vector registers are saved. Those of the x87 are changed nowhere."""
    code = code_of(os.path.join(os.environ["TEST_BUILD"], "lib", "libmemtrace.so"))
    entries = ["allocator_enter", "allocator_resize", "allocator_leave"]
    allowed = {"*(%r11)", "<machine_call_apart>"}
    todo = list(entries)
    seen = set()
    equal([name for name in entries if name not in code], [], "there are the entries")
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in code[name]:
            equal(re.search(r"%[xyz]mm|%k[0-7]|mxcsr|xrstor|vzero", line), None, name, line)
            to = re.match(r"(?:\w+ )*?(?:call|j\w+) +(\S.*)", line)
            if to and to[1].startswith("*"):
                equal((name in entries, [one for one in allowed if one in to[1]] != []), (True, True), name, line)
            elif to:
                todo.append(re.search(r"<([^>+]+)", to[1])[1])
    for name in seen:
        equal(name in code and "@" not in name, True, "code that is known", name)
    equal({"allocator_returned_fast", "allocator_resizes_fast", "allocator_leaves_fast"} <= seen, True, "all are looked at", seen)
    # What looks like some among the guards is data: a distance in each.
    x87 = [(name, line) for name, lines in code.items() if name != "memtrace_guard" for line in lines
           if re.search(r"%st|%mm[0-7]|^f(ld|st|ild|ist|add|sub|mul|div|n?init|n?save|xrstor|rstor)|^emms", line)]
    equal(x87, [], "the x87")


def throws():
    said, folder = named([program(), "throws"], "own_throwing(size=1)=alloc:own", "own_jumping(size=1)=alloc:own")
    check_pools("throws", said, folder, {"own": (50 + 25, 50 * 50 + 25 * 60, 0, 75)})


def looks():
    said, folder = named([program(), "looks"], "own_looking(size=1)=alloc:own")
    check_pools("looks", said, folder, {"own": (2, 20, 0, 2)})


def threads():
    said, folder = named([program(), "threads"], ALLOC, FREE)
    check_pools("threads", said, folder, {"own": (80000, 80000 * 24, 80000 - 800, 800)})


def forks():
    """A child that does little is a record in its parent's profile."""
    said, folder = named([program(), "forks"], ALLOC)
    check_pools("forks", said, folder, {"own": (1, 500, 0, 1)})
    profile = lightreader.Profile(profiles(folder)[0])
    child, = profile.children()
    counted = [path[2:] for path in profile.paths(child).values() if any(path[2:])]
    equal(((6000, 10, 0, 0) in counted, child.lost), (True, 0), "of the child", counted)


def opens():
    plugin = build(os.path.join(HERE, "plugin.c"), "gcc", "-O1", shared=True)
    os.environ["PLUGIN"] = plugin
    said, folder = named([program(), "opens"], ALLOC, "plugin!plugin_alloc(size=1)=alloc:plugin")
    data = only_profile(folder, "opens")
    equal(pools(data)["plugin"][:2], (300, 300 * 20), "of a library that is opened three times", said)
    equal(pools(data)["own"][0] > 0, True, "and of the program")


def signals():
    said, folder = named([program(), "signals"], ALLOC, FREE)
    data = only_profile(folder, "signals")
    own = pools(data)["own"]
    equal(own[0] >= 400, True, "calls in handlers, too", own)
    equal(own[3] + data["lost"] <= 3 + data["lost"], True, "nothing stays alive", own)


def recorded():
    said, folder = named([program(), "kinds"], *KINDS, record=True)
    recording = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".mtr")]
    equal(len(recording), 1, "a recording")
    rows = execute([MEMTRACE, "query", recording[0],
                    "SELECT count(*), sum(size) FROM allocations WHERE pool = 'own'"], clean_environment())
    equal(b"103" in rows.stdout, True, "allocations of the pool in SQL", rows.stdout, rows.stderr)


def heap_blocks():
    """Of an allocator that stands in for malloc: part of the heap's totals."""
    said, folder = named([program(), "threads"], "own_alloc(size=1)=alloc:heap", "own_free(ptr=2)=free:heap")
    data = only_profile(folder, "heap")
    own = [context for context in data["contexts"] if any(frame["function"] == "worker(void*)"
                                                          for frame in context["frames"])]
    equal((sum(context["allocations"] for context in own), sum(context["frees"] for context in own)),
          (80000, 79200), "blocks of the heap")
    equal(data["pools"], [], "and of no pool")


def repeated():
    """Many calls of each kind, from where calls came before and from elsewhere: what the program has counted itself."""
    own = build(os.path.join(HERE, "repeated.c"), "gcc", "-O2")
    blocks, size, ended, live, live_bytes, most = map(int, bare([own]).stdout.split())
    kinds = ["own_take(size=1)=alloc", "own_clear(size=1*2)=zalloc", "own_place(ptr=1,size=2)=alloc",
             "own_resize(old=1,size=2)=realloc", "own_give(ptr=1)=free"]
    said, folder = named([own], *(kind + ":own" for kind in kinds))
    check_pools("repeated", said, folder, {"own": (blocks, size, ended, live)})
    _, alone = named([own])
    _, folder = named([own], *(kind + ":heap" for kind in kinds))
    data, before = only_profile(folder, "heap"), only_profile(alone, "alone")
    for key, expected in (("allocations", blocks), ("total_bytes", size), ("frees", ended),
                          ("live_blocks", live), ("live_bytes", live_bytes), ("temporary", 0), ("lost", 0)):
        equal(data[key] - before[key], expected, key)
    # What is left is its thread's, although the other one has given blocks back, too.
    left = [{thread["name"]: thread["live_bytes"] for thread in one["threads"]}["main"] for one in (before, data)]
    equal(left[1] - left[0], live_bytes, "bytes of the first thread", data["threads"])
    equal(data["peak_bytes"], most, "the most there ever was, when nothing else was there", before["peak_bytes"])


def nested():
    """Functions of a set that lead to each other: a block counts once, whichever of them the program calls."""
    own = build(os.path.join(HERE, "nested.c"), "gcc", "-O2")
    blocks, size, live = map(int, bare([own]).stdout.split())
    for set_of in ("mimalloc", "auto"):
        said, folder = named([own], set_of)
        data = only_profile(folder, set_of)
        equal((data["allocations"], data["total_bytes"], data["live_blocks"]), (blocks, size, live), set_of)
        equal((said, data["lost"]), ("", 0), set_of)


def told_once():
    """A script that starts programs: what is nowhere is told once, and in how many processes functions are followed."""
    folder, regions = scratch(), scratch(where="/dev/shm")
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nfor i in 1 2 3; do ls / >/dev/null; %s kinds >/dev/null; done\n" % program())
    os.chmod(script, 0o755)
    under = execute([MEMTRACE, "run", "--alloc", ALLOC, "--alloc", "own_nothing(size=1)=alloc", "--", script],
                    clean_environment(MEMTRACE_REGION_DIR=regions), folder)
    lines = under.stderr.decode().splitlines()
    equal(sum('own_nothing(size=1)=alloc": no function is called own_nothing' in line for line in lines), 1, "told", lines)
    equal(sum('own_alloc(size=1)=alloc:own": no function is called' in line for line in lines), 1, "of the shell", lines)
    equal(sum(line == "memtrace: --alloc: no function is followed" for line in lines), 1, "none", lines)
    equal([line.split()[1:] for line in lines if " followed in " in line], ["--alloc followed in 3 of 7 processes".split()],
          "the end", lines)
    equal(os.listdir(regions), [], "what is left behind")


def copied():
    """Calls that the compiler has led to a copy are not seen, and a line says so."""
    for option, calls in (("-fno-ipa-cp-clone", 25), ("-fipa-cp-clone", 5)):
        said, folder = named([build(os.path.join(HERE, "copied.c"), "gcc", "-O2", flags=[option])], "copied_take(size=2)=alloc:own")
        equal(pools(only_profile(folder, option))["own"][0], calls, option)
        equal("for some of its calls the compiler has made copied_take.constprop.0" in said, calls == 5, said)


CASES = {function.__name__: function for function in
         (kinds, reset, registers, all_registers, general_registers, throws, looks, threads, forks, opens, signals, recorded,
          heap_blocks, repeated, nested, told_once, copied)}
CASES[sys.argv[1]]()
finish()
