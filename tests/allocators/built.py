#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""built.py COMPILER CASE: functions that allocate are named when a program is built (ALLOCATORS), and report by
themselves. What is counted is known from the program's text (built.cpp, named.cpp)."""

import fcntl
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "programs"))
import lightreader  # noqa: E402
from harness import (BUILD, LIBRARY, MEMTRACE, bare, clean_environment, equal, execute, finish,  # noqa: E402
                     only_profile, profiles, scratch, skip)
from poolsums import pools  # noqa: E402

COMPILER = sys.argv[1] if len(sys.argv) > 1 else "gcc"
PLAIN = ("-O0", "-O2")
LIBS = ["-L" + os.path.dirname(LIBRARY), "-Wl,--push-state,--no-as-needed", "-lmemtrace", "-Wl,--pop-state",
        "-Wl,-rpath," + os.path.dirname(LIBRARY)]


def command_of(language):
    name = {"gcc": "g++", "clang": "clang++"}[COMPILER] if language == "c++" else COMPILER
    if shutil.which(name) is None:
        skip("no " + name)
    return name


def plugin():
    macro = {"gcc": "__GNUC__", "clang": "__clang_major__"}[COMPILER]
    major = execute(["sh", "-c", "echo %s | %s -E -P -x c -" % (macro, command_of("c"))]).stdout.decode().strip()
    path = os.path.join(BUILD, "lib", "memtrace", COMPILER + "-" + major, "memtrace.so")
    if not os.path.exists(path):
        skip("no plugin for " + COMPILER + " " + major)
    return path


def pass_flags(specifications):
    file = plugin()
    if COMPILER == "gcc":
        return ["-fplugin=" + file, *("-fplugin-arg-memtrace-allocators=" + one for one in specifications)]
    return ["-fpass-plugin=" + file, "-fplugin=" + file,
            *(word for one in specifications for word in ("-mllvm", "-memtrace-allocators=" + one))]


def compile_unit(folder, source, specifications, flags):
    """What the compiler did, and the object."""
    language = "c++" if source.endswith(".cpp") else "c"
    unit = os.path.join(folder, os.path.basename(source) + ".o")
    standard = ["-std=c++20"] if language == "c++" else ["-std=gnu17", "-D_GNU_SOURCE"]
    done = execute([command_of(language), "-g", "-Wall", "-Wno-attributes", *standard, *flags,
                    *pass_flags(specifications), "-c", os.path.join(HERE, source), "-o", unit])
    return done, unit


def built(sources, specifications, *flags, libraries=LIBS, linked_with=()):
    folder = scratch()
    units = []
    for source in sources:
        done, unit = compile_unit(folder, source, specifications, flags)
        equal((done.returncode, done.stderr), (0, b""), "compiled without a word", source, *flags)
        units.append(unit)
    program = os.path.join(folder, "program")
    link = pass_flags(specifications) if COMPILER == "gcc" else []
    done = execute([command_of("c++"), "-g", *flags, *linked_with, *link, *units, *libraries, "-ldl", "-pthread", "-o",
                    program])
    equal((done.returncode, done.stderr), (0, b""), "linked without a word", *flags)
    return program


def counted(command, settings=None):
    """What the program says of itself, and its profile's folder."""
    folder = scratch()
    alone = bare(command)
    done = execute(command, clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT=os.path.join(folder, "%e.%p.mtp"),
                                              **(settings or {})))
    equal((done.returncode, done.stdout, done.stderr), (alone.returncode, alone.stdout, b""), *command)
    return folder


def check_pools(program, case, expected, *what):
    data = only_profile(counted([program, case]), case)
    equal(pools(data), expected, case, *what)
    equal(data["lost"], 0, case, *what, "lost")
    return data


def check_paths(data, *functions):
    for context in data["pools"]:
        names = [re.sub(r"\(.*", "", frame["function"]) for frame in context["frames"]]
        equal(any(name in names[0] for name in functions), True, "the function itself comes first", names)
        equal("main" in names, True, "the path leads to main", names)


BUILT = ["built.cpp", "builtother.c"]
NAMED = ["take_inlined(size=1)=alloc", "take_changing(size=2*3)=alloc", "pool<*>::take(size=2)=alloc:typed",
         "pool<int>::give(ptr=2)=free:typed", "arena_source::get(size=2)=alloc:virtual",
         "source::get(unsigned long, double)(size=2)=alloc:scaled", "take_or_throw(size=1)=alloc:throw",
         "resize_or_throw(old=1,size=2)=realloc:resized", "give(ptr=1)=free", "place_or_throw(ptr=1,size=2)=alloc:placed",
         "take_deep(size=1)=alloc:deep", "other_take(size=1)=alloc:other", "other_outer(size=inner)=alloc:outer",
         "other_give(ptr=1)=free:other", "other_clear=reset:other"]
ONE_TO_20, ONE_TO_30 = 210, 465
EXPECTED = {
    "inlined": {"take_inlined": (101, 5057, 0)},
    "changing": {"take_changing": (49, sum(40 * i * (i % 3 + 1) for i in range(1, 50)), 0)},
    "methods": {"typed": (40, 2 * ONE_TO_20, 10), "scaled": (20, ONE_TO_20, 0),
                # A block that the outer one returns is no longer the inner one's.
                "virtual": (40, ONE_TO_20 + sum(int(i * 2.5) for i in range(1, 21)), 20)},
    "leaving": {"throw": (100, 100 * 40, 0), "resized": (100, 100 * 50, 100), "placed": (134, 134 * 60, 0)},
    "deep": {"deep": (20, sum(range(10, 30)), 19)},
    "other": {"other": (61, 2 * ONE_TO_30 + 1000, 60), "outer": (30, ONE_TO_30, 0)},
}


def check_all(*flags, has_paths=True, linked_with=()):
    program = built(BUILT, NAMED, *flags, linked_with=linked_with)
    for case, expected in EXPECTED.items():
        data = check_pools(program, case, expected, COMPILER, *flags)
        if has_paths and case in ("inlined", "other"):
            check_paths(data, "take_inlined", "other_take", "other_outer")
    return program


def ways():
    """All ways in which a function can be taken apart, and left."""
    for level in ("-O0", "-O2", "-O3"):
        check_all(level)


def others():
    check_all("-O2", "-fPIC", "-fvisibility=hidden", "-fno-semantic-interposition")
    check_all("-O2", "-fno-pie", linked_with=["-no-pie"])
    check_all("-O2", "-ffunction-sections", "-fdata-sections", linked_with=["-Wl,--gc-sections"])


def link_time():
    """Once in each call, though the code is made when the program is linked."""
    if COMPILER == "clang":
        lld = "ld.lld-" + os.path.basename(os.path.dirname(plugin())).split("-")[1]
        if not shutil.which(lld):
            skip("no " + lld)
    for kind in ["-flto"] if COMPILER == "gcc" else ["-flto=full", "-flto=thin"]:
        # Its debug information leaves inlined functions out.
        check_all("-O2", kind, has_paths=False, linked_with=[] if COMPILER == "gcc" else
                  ["--ld-path=" + shutil.which(lld)])


def both_units():
    """Functions of one name in two units, inlined in both."""
    for level in PLAIN:
        program = built(BUILT, ["take_small(size=1)=alloc:small"], level)
        check_pools(program, "inlined", {"small": (101, 5050 + 9, 0)}, level)
        check_pools(program, "other", {"small": (61 + 30, 2 * ONE_TO_30 + 1000 + 61 * 16 + ONE_TO_30, 0)}, level)


def named():
    """The program of those that are followed by --alloc, with the same counts."""
    first = sum(range(100, 200))
    for level in PLAIN:
        program = built(["named.cpp"], [
            "own_alloc(size=1)=alloc:own", "own_free(ptr=2)=free:own", "own_zalloc(size=2*3)=zalloc:own",
            "own_place(ptr=1,align=2,size=3)=alloc:placed", "own_resize(old=1,size=2)=realloc:own",
            "own_reset=reset:own", "own_throwing(size=1)=alloc:thrown", "own_jumping(size=1)=alloc:jumped"], level)
        check_pools(program, "kinds", {"own": (103, first + 990 + 700 + 300, 52), "placed": (1, 5000, 0)}, level)
        check_pools(program, "reset", {"own": (71, 70 * 40 + 41, 70)}, level)
        check_pools(program, "throws", {"thrown": (50, 2500, 0), "jumped": (25, 1500, 0)}, level)
        check_pools(program, "threads", {"own": (80000, 80000 * 24, 79200)}, level)
        profile = lightreader.Profile(profiles(counted([program, "forks"]))[0])
        child, = profile.children()
        rows = [path[2:] for path in profile.paths(child).values() if path[2] in (600, 6000)]
        equal((sum(row[0] for row in rows), sum(row[1] for row in rows), child.lost), (6000, 10, 0), "of a child", rows)


def heap_blocks():
    program = built(["named.cpp"], ["own_alloc(size=1)=alloc:heap", "own_free(ptr=2)=free:heap"], "-O2")
    data = only_profile(counted([program, "threads"]), "heap")
    own = [context for context in data["contexts"]
           if any(frame["function"] == "worker(void*)" for frame in context["frames"])]
    equal((sum(context["allocations"] for context in own), sum(context["frees"] for context in own)),
          (80000, 79200), "blocks of the heap")
    equal(data["pools"], [], "and of no pool")


def recorded():
    folder = scratch()
    program = built(["named.cpp"], ["own_alloc(size=1)=alloc:own", "own_zalloc(size=2*3)=zalloc:own",
                                    "own_resize(old=1,size=2)=realloc:own"], "-O2")
    execute([MEMTRACE, "record", "--no-summary", "-o", os.path.join(folder, "it.mtr"), "--", program, "kinds"],
            clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")), folder)
    rows = execute([MEMTRACE, "query", os.path.join(folder, "it.mtr"),
                    "SELECT count(*), sum(size) FROM allocations WHERE pool = 'own'"], clean_environment())
    equal(re.findall(rb"\d+", rows.stdout)[-2:], [b"103", b"%d" % (sum(range(100, 200)) + 990 + 700 + 300)],
          "in a recording", rows.stderr)


def without():
    """The program links and runs without the library, and does what it does."""
    program = built(BUILT, NAMED, "-O2", libraries=[])
    for case in EXPECTED:
        done = execute([program, case])
        equal((done.returncode, b"done" in done.stdout), (0, True), case, done.stderr)


def twice():
    """Named once more when it is run: counted once, and where it was inlined, too."""
    program = built(BUILT, NAMED, "-O2")
    words = [word for one in NAMED if "inner" not in one and "pool" not in one for word in ("--alloc", one)]
    for case in ("inlined", "leaving", "deep", "other"):
        folder = scratch()
        done = execute([MEMTRACE, "run", "--no-summary", *words, "--", program, case],
                       clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")), folder)
        equal(done.returncode, 0, case, done.stderr)
        equal(pools(only_profile(folder, case)), EXPECTED[case], "named twice:", case)


def contract():
    """What the pass promises of frame words holds with the reports as well."""
    for level in PLAIN:
        program = built(BUILT, NAMED, level)
        done = execute([sys.executable, os.path.join(TESTS, "pass", "check_contract.py"), "--least", "8", program])
        equal(done.returncode, 0, "promises", done.stdout.decode()[-2000:], done.stderr.decode()[-1000:])


def line_of(text):
    with open(os.path.join(HERE, "built.cpp"), encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if text in line][0]


def misfits():
    """What is wrong is told by the compiler, with the function's place, and nothing is guessed."""
    for one, function, why in (
            ("take_or_throw(size=3)=alloc", "void *take_or_throw", "size=3: it has 2 arguments"),
            ("take_changing(size=1)=alloc", "void *take_changing",
             "size=1: its argument 1 is a pointer, not a number"),
            ("place_or_throw(size=2)=zalloc", "", ""),  # its result could be an address
            ("place_or_throw(ptr=2,size=2)=alloc", "int place_or_throw",
             "ptr=2: its argument 2 is no pointer to where a block's address could be written"),
            ("take_or_throw(ptr=1,size=2)=alloc", "void *take_or_throw", "ptr=1: its argument 1 is no pointer"),
            ("leaving(size=1)=alloc", "void leaving", "size=1: it has 0 arguments"),
            ("leaving=reset", "", "")):
        done, _ = compile_unit(scratch(), "built.cpp", [one], ["-O1"])
        said = done.stderr.decode()
        said = re.sub(r"(its argument \d) \(\w+\)", r"\1", said)  # Clang forgets its name
        equal((done.returncode != 0, why in said), (why != "", True), one, said)
        if why:
            equal("built.cpp:%d" % line_of(function) in said, True, one, "place", said)
    done, _ = compile_unit(scratch(), "built.cpp", ["take_*(size=1)=alloc:some"], ["-O1"])
    equal((done.returncode, b"take_changing" in done.stderr, b"take_small" in done.stderr), (0, True, False),
          "a pattern that fits by chance", done.stderr)
    for one, why in (("take_small", "what a function does is missing"), ("take_small(size=x)=alloc", "named by its number"),
                     ("libx!take_small(size=1)=alloc", "leave"), ("0x12(size=1)=alloc", "no address"),
                     ("@%s/at/all" % scratch(), "No such file"), ("jemalloc", "ready-made sets")):
        done, _ = compile_unit(scratch(), "built.cpp", [one], [])
        equal((done.returncode != 0, why in done.stderr.decode()), (True, True), one, done.stderr)


def lists():
    """From a file, with comments."""
    folder = scratch()
    with open(os.path.join(folder, "named.txt"), "w", encoding="utf-8") as file:
        file.write("# ours\n%s # too\n\n" % "\n".join(NAMED))
    program = built(BUILT, ["@" + os.path.join(folder, "named.txt")], "-O2")
    check_pools(program, "leaving", EXPECTED["leaving"])


PROPOSED = ["proposed.cpp", "builtother.c"]
# Function: where it gets its memory, by which callee, what its attributes come to.
ATTRIBUTES = {"own_take": ("own", "-", "own_take(size=1)=alloc"),
              "own_pool::take": ("own", "-", "own_pool::take(size=2*3)=alloc"),
              "own_pages": ("own", "-", "own_pages(size=1)=alloc"),
              "of_malloc": ("malloc", "malloc", "of_malloc(size=1)=alloc"),
              "of_somewhere": ("unknown", "somewhere", "of_somewhere(size=1)=alloc"),
              "of_pointer": ("unknown", "an indirect call", "of_pointer(size=1)=alloc"),
              "no_size": ("own", "-", "-"), "older": ("own", "-", "-")}


def automatic():
    """Those alone whose attributes tell a size, and that reach neither malloc nor what is not known."""
    for flags in ([["-O0"], ["-O2"], ["-O2", "-flto"]] if COMPILER == "gcc" else [["-O0"], ["-O2"]]):
        program = built(PROPOSED, ["auto"], *flags)
        folder = counted([program, "-"])
        equal(pools(only_profile(folder, "auto")),
              {"own_take": (20, 2 * 55, 0), "own_pool::take": (10, 3 * 55, 0), "own_pages": (10, 4096 * 55, 0)}, *flags)


def listed_rows(done, title):
    """{function: the other cells} of a table."""
    parts = done.stdout.decode().split("\n" + title + "\n")
    equal(len(parts), 2, title, done.stdout, done.stderr)
    rows = [re.split(r"  +", line.strip()) for line in parts[-1].split("\n\n")[0].splitlines()[1:]]
    return rows


def recorded_functions():
    """What `memtrace flags --list-allocators` says of programs, libraries and objects; of what nobody named, too."""
    for specifications in ([], ["auto", "of_malloc(size=1)=alloc:mine", "nobody(size=1)=alloc", "none_*(ptr=1)=free"]):
        program = built(PROPOSED, specifications, "-O1")
        execute(["strip", "-s", program])
        done = execute([MEMTRACE, "flags", "--list-allocators", program])
        rows = listed_rows(done, "Functions whose attributes say that they allocate")
        expected = {name: cells for name, cells in ATTRIBUTES.items() if not specifications or name != "of_malloc"}
        equal({row[0].split("(")[0]: tuple(row[1:4]) for row in rows}, expected, "attributes")
        equal({os.path.basename(row[4]).split(":")[0] for row in rows}, {"proposed.cpp"}, "places")
        equal(done.returncode != 0, bool(specifications), "exit status")
        said = [line for line in done.stderr.decode().splitlines() if "no function in" in line]
        equal([re.search(r'"([^"]*)"', line).group(1) for line in said], specifications[2:], "named, and not there")
        if specifications:
            rows = listed_rows(done, "Functions that report what they allocate")
            equal({row[1].split("(")[0]: row[0] for row in rows},
                  {"own_take": "auto", "own_pool::take": "auto", "own_pages": "auto",
                   "of_malloc": "of_malloc(size=1)=alloc:mine"}, "they report")
    folder = scratch()
    units = [compile_unit(folder, source, ["take_small(size=1)=alloc"], ["-O1"])[1] for source in BUILT]
    archive = os.path.join(folder, "lib.a")
    execute(["ar", "rcs", archive, *units])
    for files in (units, [archive]):
        done = execute([MEMTRACE, "flags", "--list-allocators", *files])
        rows = listed_rows(done, "Functions that report what they allocate")
        equal((len(rows), done.returncode, done.stderr), (2, 0, b""), "in both units")
    for file in ("/bin/true", os.path.join(HERE, "built.py"), os.path.join(folder, "none")):
        done = execute([MEMTRACE, "flags", "--list-allocators", file])
        equal((done.returncode, done.stdout, done.stderr.count(b"\n")), (1, b"", 1), file, done.stderr)


# What the last line says is what Lua itself counts; nothing is allocated behind it: numbers are written as they are.
LUA = """
local things = {}
for i = 1, 20000 do
    things[i] = {name = "thing " .. i, at = {i, i + 1}}
    if i % 3 == 0 then things[i - 1] = nil end
    if i % 5000 == 0 then collectgarbage() end
end
table.concat(setmetatable({}, {__index = things}), "", 0, -1)
collectgarbage("stop")
io.write("", 1, "\\n")
io.write(collectgarbage("count") * 1024, "\\n")
os.exit(0, false)
"""


def lua():
    """Debian's Lua, whose one function for memory is called by a pointer: by Lua's own statistics."""
    sys.path[:0] = [os.path.join(TESTS, "pass"), os.path.join(TESTS, "real")]
    import corpus
    import debian
    os.makedirs(corpus.CACHE, exist_ok=True)
    try:
        with open(os.path.join(corpus.CACHE, "lua.lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # other tests want the same sources
            sources, flags, _ = corpus.lua()
    except debian.Unavailable as problem:
        skip(str(problem))
    for level in PLAIN:
        folder = scratch()
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LUA)
        program = corpus.build(os.path.join(folder, "lua"), command_of("c"), sources, [
            level, "-g", "-w", *flags, *pass_flags(["l_alloc(old=2,size=4)=realloc:lua"]), *LIBS])
        done = execute([program, script], clean_environment(MEMTRACE_SUMMARY="0",
                                                            MEMTRACE_OUTPUT=os.path.join(folder, "%e.%p.mtp")))
        equal(done.returncode, 0, "lua", done.stderr)
        data = only_profile(folder, "lua")
        allocations, _, frees = pools(data)["lua"]
        live = sum(context["live_bytes"] for context in data["pools"])
        equal((live, data["lost"]), (int(float(done.stdout.split()[-1])), 0), level, "bytes that Lua has")
        equal(allocations > 60000 and frees > 30000, True, level, allocations, frees)


CASES = {function.__name__: function for function in
         (ways, others, link_time, both_units, named, heap_blocks, recorded, without, twice, contract, misfits, lists,
          automatic, recorded_functions, lua)}
if __name__ == "__main__":
    CASES[sys.argv[2]]()
    finish()
