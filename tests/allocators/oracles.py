# SPDX-License-Identifier: MIT
"""oracles.py CASE: allocators of other people's programs, named by --alloc. How often each of their functions was called
is what gdb's breakpoints count in the same program without MemTrace; of jemalloc also what it says itself."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (CACHE, MEMTRACE, build, clean_environment, equal, execute, finish, have, heap,  # noqa: E402
                     only_profile, scratch, skip)


def named(command, *specifications, **settings):
    """Its profile, and what it wrote."""
    folder = scratch()
    options = [word for one in specifications for word in ("--alloc", one)]
    under = execute([MEMTRACE, "run", "--no-summary", *options, "--", *command],
                    clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm"), **settings), folder)
    equal(under.stderr, b"", *command)
    return only_profile(folder, command[0]), under


def addresses(program, symbols):
    """Where they are in the process as gdb starts it, by binutils: gdb puts a program that may lie anywhere there."""
    told = subprocess.run(["readelf", "-hW", program], capture_output=True, text=True, check=True).stdout
    base = 0x555555554000 if re.search(r"Type: +DYN", told) else 0
    table = subprocess.run(["nm", "-D", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    known = {words[2].split("@")[0]: int(words[0], 16) for words in map(str.split, table.splitlines()) if len(words) == 3}
    return [base + known[symbol] for symbol in symbols]


def breakpoints(command, symbols):
    """How often the program's threads come to each."""
    have("gdb", "nm", "readelf")
    script = ["set pagination off", "set print thread-events off", "starti"]
    for i, address in enumerate(addresses(command[0], symbols)):
        script += ["set $n%d = 0" % i, "break *%#x if ++$n%d == -1" % (address, i)]
    script += ["continue"] + ['printf "COUNT %%d\\n", $n%d' % i for i in range(len(symbols))]
    words = [word for line in script for word in ("-ex", line)]
    told = subprocess.run(["gdb", "-q", "-batch", "-nx", *words, "--args", *command], capture_output=True, text=True,
                          timeout=1200, check=False).stdout
    counts = [int(count) for count in re.findall(r"^COUNT (\d+)$", told, re.MULTILINE)]
    equal(len(counts), len(symbols), "breakpoints", told[-2000:])
    return counts


def sums(contexts):
    return {key: sum(context[key] for context in contexts) for key in ("allocations", "frees", "total_bytes")}


def cc1():
    """GCC's garbage-collected memory, in the compiler as Debian has it."""
    found = glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1")
    if not found:
        skip("no cc1")
    folder = scratch()
    source = os.path.join(folder, "small.c")
    with open(source, "w", encoding="ascii") as file:
        file.write("int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; return s; }\n")
    outputs = [os.path.join(folder, name) for name in ("alone.s", "named.s")]
    commands = [[found[0], "-quiet", "-O2", source, "-o", output] for output in outputs]
    expected = breakpoints(commands[0], ("_Z18ggc_internal_allocmPFvPvEmm", "_Z9rtx_alloc8rtx_code"))
    data, _ = named(commands[1], "ggc_internal_alloc(size=1)=alloc:ggc", "rtx_alloc(size=inner)=alloc:rtx")
    got = [sums([context for context in data["pools"] if context["pool"] == pool]) for pool in ("ggc", "rtx")]
    equal([row["allocations"] for row in got], expected, "calls, as gdb counts them")
    equal(expected[0] > 1000 and expected[1] > 10, True, "there are some")
    equal(data["lost"], 0, "lost")
    mapped = sum(context["live_bytes"] for context in data["mappings"])
    held = {row["pool"]: row["mapping_bytes"] for row in data["by_pool"]}
    live = {row["pool"]: row["live_bytes"] for row in data["by_pool"]}
    equal(live["ggc"] <= held["ggc"] <= mapped and live["rtx"] <= held["rtx"] <= held["ggc"], True, "pages", held, live, mapped)
    equal(open(outputs[1], "rb").read(), open(outputs[0], "rb").read(), "what the compiler makes")
    first = [frame["function"] for frame in data["pools"][0]["frames"]]
    equal(("main" in first, first[-1]), (True, "_start"), "whole paths", first)


def jemalloc():
    library = "/usr/lib/x86_64-linux-gnu/libjemalloc.a"
    if not os.path.exists(library):
        skip("no libjemalloc.a (Debian: apt-get install libjemalloc-dev)")
    program = build(os.path.join(HERE, "jemalloc_counts.c"), "gcc", "-O1", libraries=[library, "-lm", "-static-libgcc",
                                                                              "-l:libstdc++.a"])
    for set_of in ("jemalloc", "auto"):
        data, under = named([program], set_of)
        requests, there = map(int, under.stdout.split())
        equal(under.returncode, 3, "its status")
        counted = sums([context for context in heap(data)
                        if any(frame["function"] == "work" for frame in context["frames"])])
        equal(counted["allocations"], requests, set_of, "allocations, as jemalloc counts them")
        equal(counted["allocations"] - counted["frees"], there, set_of, "blocks that are there")
        equal((data["lost"], data["all_counted"]), (0, True), set_of)


def crates():
    """A folder with a Rust program of ours whose crates are there, mimalloc among them, and where their sources are."""
    have("cargo")
    folder = os.path.join(CACHE, "mimalloc_rust")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "Cargo.toml"), "w", encoding="ascii") as file:
        file.write('[package]\nname = "mimalloc_rust"\nversion = "1.0.0"\nedition = "2021"\n'
                   '[[bin]]\nname = "mimalloc_rust"\npath = "%s"\n[profile.release]\ndebug = 1\n'
                   '[dependencies]\nmimalloc = "=0.1.52"\nlibmimalloc-sys = "=0.1.49"\n[workspace]\n'
                   % os.path.join(HERE, "mimalloc_rust.rs"))
    for how in (["--offline"], []):
        fetch = subprocess.run(["cargo", "fetch", *how], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        if fetch.returncode == 0:
            break
    else:
        skip("the crate mimalloc cannot be had: " + (fetch.stderr.strip().splitlines() or ["?"])[-1].strip())
    told = subprocess.run(["cargo", "metadata", "--format-version", "1", "--offline"], cwd=folder, capture_output=True,
                          text=True, check=True).stdout
    found = [os.path.dirname(package["manifest_path"]) for package in json.loads(told)["packages"]
             if package["name"] == "libmimalloc-sys"]
    return folder, os.path.join(found[0], "c_src", "mimalloc")


def mimalloc():
    """Each of its functions, in two versions that two compilers have made: what one has put into its caller is a call
    in the other."""
    _, sources = crates()
    for version, compiler in (("v2", "gcc"), ("v3", "clang")):
        folder = os.path.join(sources, version)
        program = build([os.path.join(HERE, "mimalloc_counts.c"), os.path.join(folder, "src", "static.c")], compiler, "-O2",
                        flags=["-DNDEBUG", "-DMI_BUILD_RELEASE", "-DMI_STAT=2", "-fPIC", "-ftls-model=initial-exec",
                               "-I" + os.path.join(folder, "include"), "-I" + os.path.join(folder, "src")],
                        libraries=["-lpthread"])
        for set_of in ("mimalloc", "auto"):
            data, under = named([program], set_of)
            equal(under.returncode, 3, "its status")
            for line, function in zip(under.stdout.decode().splitlines(), ("work", "aligned")):
                made, asked, there = map(int, line.split())
                counted = sums([context for context in heap(data)
                                if any(frame["function"] == function for frame in context["frames"])])
                equal((counted["allocations"], counted["frees"]), (made, made - there),
                      version, set_of, function, "blocks, as mimalloc counts them")
                if function == "work":
                    equal(counted["total_bytes"], asked, version, set_of, "bytes, as mimalloc counts them")
            equal((data["lost"], data["all_counted"]), (0, True), version, set_of)


def mimalloc_library():
    """Each function of mimalloc's shared library: which of them lead to others is told from the library's code."""
    if not os.path.exists("/usr/lib/x86_64-linux-gnu/libmimalloc.so"):
        skip("no libmimalloc.so (Debian: apt-get install libmimalloc-dev)")
    program = build(os.path.join(HERE, "mimalloc_library.c"), "gcc", "-O1", flags=["-I/usr/include/mimalloc-2.0"],
                    libraries=["-lmimalloc"])
    data, under = named([program], "mimalloc")
    equal(under.returncode, 3, "its status")
    for line, function in zip(under.stdout.decode().splitlines(), ("work", "aligned")):
        counted = sums([context for context in heap(data)
                        if any(frame["function"] == function for frame in context["frames"])])
        equal([counted["allocations"], counted["frees"]], list(map(int, line.split())), function, "blocks and frees")
    equal((data["lost"], data["all_counted"]), (0, True))


def rust():
    """A Rust program whose allocator is mimalloc, with threads."""
    folder, _ = crates()
    made = subprocess.run(["cargo", "build", "--release", "--offline", "--quiet"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "CFLAGS": "-DMI_STAT=2", "CARGO_TARGET_DIR": os.path.join(folder, "target")},
                          check=False)
    equal(made.returncode, 0, "cargo build", made.stderr[-2000:])
    program = os.path.join(folder, "target", "release", "mimalloc_rust")

    def counted(data):
        return sums([context for context in heap(data)
                     if any(frame["function"] in ("mimalloc_rust::work", "start_thread") for frame in context["frames"])])
    others = counted(named([program])[0])  # what the C library takes from malloc, for threads
    data, under = named([program], "auto")
    equal(under.returncode, 3, "its status")
    before, after = map(json.loads, under.stdout.decode().splitlines())
    made, asked = [sum(after[name]["total"] if isinstance(after[name], dict) else after[name] for name in names) -
                   sum(before[name]["total"] if isinstance(before[name], dict) else before[name] for name in names)
                   for names in (("malloc_normal_count", "malloc_huge_count"), ("malloc_requested",))]
    got = counted(data)
    equal(got["allocations"] - others["allocations"], made, "blocks, as mimalloc counts them")
    # It asks itself for more where it aligns a block.
    equal(asked - 1024 <= got["total_bytes"] - others["total_bytes"] <= asked, True, "bytes", got, others, asked)
    equal(made > 4000, True, "there are some", made)
    equal((data["lost"], data["all_counted"]), (0, True))


def defines_malloc(program):
    names = subprocess.run(["nm", "-D", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    return re.search(r" [TW] malloc$", names, re.MULTILINE) is not None


def rustc():
    """rustc's allocator is jemalloc, which is linked into it and tells no counts."""
    if shutil.which("rustc") is None:
        skip("no rustc")
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    folder = scratch()
    source = os.path.join(folder, "small.rs")
    with open(source, "w", encoding="ascii") as file:
        file.write("pub fn sum(n: u64) -> u64 { (0..n).map(|i| i * 3).sum() }\n")
    command = [os.path.join(root, "bin", "rustc"), "--crate-type", "lib", "--emit", "metadata", "--out-dir", folder, source]
    if not defines_malloc(command[0]):
        skip("this rustc has no allocator of its own")
    data, _ = named(command, "auto")
    functions = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign", "free")
    counts = dict(zip(functions, breakpoints(command, functions)))
    # rustc itself allocates a few times more or less each time. Constructors of libraries call it before that of
    # MemTrace runs: the first call is that by which MemTrace starts.
    called = sum(counts[name] for name in functions[:6])
    equal(called > 5000 and len(data["threads"]) > 1, True, "much of it is seen", counts)
    equal(abs(sums(heap(data))["allocations"] - called) <= 5, True, "allocations", counts, sums(heap(data)))


CASES = {"cc1": cc1, "jemalloc": jemalloc, "mimalloc": mimalloc, "mimalloc_library": mimalloc_library, "rust": rust, "rustc": rustc}
CASES[sys.argv[1]]()
finish()
