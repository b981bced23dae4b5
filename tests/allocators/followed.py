#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""followed.py CASE: programs whose own allocators are followed by name, compared with their own arithmetic; and what
cannot be followed: one line each, and the program runs on."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ["TEST_BUILD"]
MEMTRACE = os.path.join(BUILD, "bin", "memtrace")
SKIP = 77
failures = []


def equal(got, expected, what):
    if got != expected:
        failures.append("%s: got %r, expected %r" % (what, got, expected))
        print("FAIL:", failures[-1])


def build(folder, sources, *options):
    program = os.path.join(folder, "subject")
    paths = [os.path.join(HERE, source) for source in sources]
    done = subprocess.run(["gcc", "-g", "-O2", *paths, "-o", program, *options], stderr=subprocess.PIPE, text=True)
    return program if done.returncode == 0 else None


def run(folder, program, *specifications):
    """What the program printed, the lines about --alloc, and the profile as JSON."""
    profile = os.path.join(folder, "profile.mtp")
    options = [word for one in specifications for word in ("--alloc", one)]
    done = subprocess.run([MEMTRACE, "run", "--output", profile, *options, "--", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    equal(done.returncode, 0, "status of %s" % (specifications,))
    lines = [line for line in done.stderr.splitlines() if "--alloc" in line]
    told = subprocess.run([MEMTRACE, "report", "--json", profile], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=120)
    return done.stdout, lines, json.loads(told.stdout)


def test_pool(folder):
    """A pool's numbers are those that the program counts, and the heap's stay what they are."""
    program = build(folder, ["subject.c", "other.c"])
    printed, lines, bare = run(folder, program)
    size, count, freed = map(int, printed.split())
    for specifications in (["pool_alloc(size=2*3)=alloc:heap", "pool_free=free:heap"],
                           ["pool_al*(size=3*2)=alloc:heap", "subject!pool_fr?e(ptr=1)=free:heap"]):
        printed, lines, with_pool = run(folder, program, *specifications)
        equal(printed, "%d %d %d\n" % (size, count, freed), "what the program prints")
        equal(lines, [], "lines")
        for key, expected in (("allocations", count), ("total_bytes", size), ("frees", freed)):
            equal(with_pool[key] - bare[key], expected, "%s of %s" % (key, specifications))


def test_mimalloc(folder):
    """A library's allocator, called by names of its own and, as malloc, by MemTrace: each block counts once."""
    program = build(folder, ["mimalloc.c"], "-I/usr/include/mimalloc-2.0", "-lmimalloc")
    if not program:
        sys.exit(SKIP)
    printed, lines, profile = run(folder, program, "mimalloc")
    count, size, freed = map(int, printed.split())
    equal(lines, [], "lines")
    equal((profile["allocations"], profile["total_bytes"], profile["frees"]), (count, size, freed), "mimalloc")


def test_jemalloc(folder):
    """A malloc that is linked into the program, by a set and found by itself."""
    program = build(folder, ["jemalloc.c"], "-l:libjemalloc.a", "-lm", "-lpthread", "-lstdc++", "-ldl")
    if not program:
        sys.exit(SKIP)
    for word in ("jemalloc", "auto"):
        printed, lines, profile = run(folder, program, word)
        count, size, freed = map(int, printed.split())
        equal(lines, [], "lines")
        equal((profile["allocations"], profile["total_bytes"], profile["frees"]), (count, size, freed), word)


def test_hidden(folder):
    """An operator new that only its library sees, by the library's own symbols and by those of its debug file."""
    library, symbols = os.path.join(folder, "libhidden.so"), os.path.join(folder, "libhidden.debug")
    seen = os.path.join(folder, "seen")
    with open(seen, "w", encoding="ascii") as file:
        file.write("{ global: hidden_work; local: *; };")
    subprocess.run(["g++", "-g", "-O1", "-fno-inline", "-shared", "-fPIC", "-nostdlib", "-Wl,--version-script," + seen,
                    "-o", library, os.path.join(HERE, "hidden.cpp")], check=True)
    program = build(folder, ["hidden.c"], "-L" + folder, "-lhidden", "-Wl,-rpath," + folder)
    for commands, expected in (
            ([], (300, 300 * 40, 100)),
            ([["objcopy", "--only-keep-debug", library, symbols], ["strip", "--strip-all", library]], (0, 0, 0)),
            ([["objcopy", "--add-gnu-debuglink=" + symbols, library]], (300, 300 * 40, 100))):
        for command in commands:
            subprocess.run(command, check=True)
        _, lines, profile = run(folder, program, "auto")
        equal((profile["allocations"], profile["total_bytes"], profile["frees"]), expected, commands)
        equal(lines != [], expected[0] == 0, "lines: %s" % lines)


def test_everything(folder):
    """Interpreters of which each function that can be followed is, as if it allocated, reallocated or freed: they print
    what they print alone. What is counted so means nothing."""
    for program, work in (("perl", "work.pl"), ("bash", "work.sh"), ("python3", "work.py")):
        path = shutil.which(program)
        if not path:
            continue
        command = [os.path.realpath(path), os.path.join(HERE, "work", work)]
        alone = subprocess.run(command, stdout=subprocess.PIPE, timeout=120).stdout
        for what in ("(size=1)=alloc:x", "(old=1,size=2)=realloc:x", "=free:x"):
            specification = "%s!*%s" % (os.path.basename(command[0]), what)
            done = subprocess.run([MEMTRACE, "run", "--children", "none", "--output", os.path.join(folder, "profile.mtp"),
                                   "--alloc", specification, "--", *command], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=120)
            equal((done.returncode, done.stdout), (0, alone), specification)


def test_words(folder):
    """What is wrong is told in one line that names the function, and why; the rest of it is followed."""
    program = build(folder, ["subject.c", "other.c"])
    stripped = program + ".stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    cases = [
        (program, "is_nowhere(size=1)=alloc", "no function is called is_nowhere in subject or its libraries"),
        (program, "libnone!f(size=1)=alloc", "no object called libnone is loaded"),
        (program, "there_twice(size=1)=alloc", "2 functions are called there_twice"),
        (program, "pool_alloc(size=1)=alloc", "size=1: its argument 1 (why) is a pointer"),
        (program, "pool_alloc(size=4)=alloc", "size=4: it has 3 arguments"),
        (program, "with_seven(size=1)=alloc", "with_seven cannot be followed: it may have arguments on the stack"),
        (program, "too_short(size=1)=alloc", "too_short cannot be followed: it is too short"),
        (program, "jumps_to_start(size=1)=alloc", "jumps_to_start cannot be followed: it jumps into its own first bytes"),
        (stripped, "pool_alloc(size=2*3)=alloc", "no function is called pool_alloc, as far as can be seen: subject.stripped is stripped"),
    ]
    for path, specification, expected in cases:
        printed, lines, _ = run(folder, path, specification, "main(ptr=1)=free:nothing")
        equal(len(printed.split()), 3, "what the program prints")
        wanted = [line for line in lines if expected in line]
        others = [line for line in lines if expected not in line and "main" not in line and "no function is" not in line]
        equal((len(wanted), others), (1, []), "lines of %s: %s" % (specification, lines))


def test_usage(folder):
    """Before anything runs: what is wrong in a specification."""
    for arguments, expected in (
            (["run", "--alloc", "f(siz=1)=alloc", "--", "true"], '--alloc "f(siz=1)=alloc": "siz=1"'),
            (["run", "--alloc", "f(size=1)", "--", "true"], "=alloc, =zalloc, =realloc, =free or =reset"),
            (["record", "--alloc", "@" + folder + "/none", "--", "true"], folder + "/none"),
            (["run", "--alloc", "obstack", "--", "true"], "obstack_alloc"),
            (["run", *["--alloc", "f%s(size=1)=alloc" % ("x" * 200)] * 30, "--", "true"], "may have at most 4095"),
            (["allocators", "/bin/true", "f=alloc"], "the size is missing"),
            (["allocators"], "which program")):
        done = subprocess.run([MEMTRACE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal((done.returncode, done.stdout), (2, ""), "status of %s" % arguments)
        equal((len(done.stderr.splitlines()), expected in done.stderr), (1, True), done.stderr)
    done = subprocess.run([MEMTRACE, "allocators", folder + "/none"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    equal((done.returncode, len(done.stderr.splitlines())), (1, 1), "a file that is not there: " + done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        globals()["test_" + sys.argv[1]](folder)
    sys.exit(1 if failures else 0)


main()
