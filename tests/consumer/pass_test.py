#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""MODE pass in outside projects: pass_test.py WAY [options], each WAY one ctest test.

WAY: project (LTO, options, promises, the report), fortran, lacking (no plugin, a broken one).
"""
import json
import os
import re
import shutil
import subprocess
import sys

from consumer_test import (C_PATH, CXX_PATH, HERE, check_program, configure_and_build, environment,
                           has_fresh_word, parse_options, run)

sys.path.insert(1, os.path.join(os.path.dirname(HERE), "programs"))
from poolsums import pools  # noqa: E402


def read_report(path):
    """{function: (what, reason, place, stores, calls)}"""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    if lines[0] != "# memtrace pass report 1" or lines.count(lines[0]) != 1:
        sys.exit("%s: wrong first line: %s" % (path, lines[0]))
    found = {}
    for line in lines[1:]:
        parts = re.fullmatch(r"(instrumented|left-out)\t([^\t]+)\t([^\t]+)\t([^\t]+:\d+)\t"
                             r"stores:(\d+) calls:(\d+)", line)
        if not parts:
            sys.exit("%s: wrong line: %r" % (path, line))
        what, reason, function, place, stores, calls = parts.groups()
        if (what == "instrumented") != (int(stores) > 0):
            sys.exit("%s: %r" % (path, line))
        found[function] = (what, reason, place, int(stores), int(calls))
    return found


def check_report(path):
    found = read_report(path)
    for function, what, reason in (("keep_bytes", "instrumented", "malloc"),
                                   ("calls_unknown", "instrumented", "unknown"),
                                   ("calls_by_option", "left-out", ""),
                                   ("calls_by_attribute", "left-out", ""),
                                   ("_ZN2ns14calls_in_scopeEi", "left-out", ""),
                                   ("excluded", "left-out", "excluded by option"),
                                   ("_ZN2ns17excluded_in_scopeEi", "left-out", "excluded by option"),
                                   ("in_excluded_file", "left-out", "excluded by option"),
                                   ("quiet_function", "left-out", "")):
        if function not in found:
            sys.exit("the report has no line for %s: %s" % (function, sorted(found)))
        if found[function][0] != what or reason not in found[function][1]:
            sys.exit("report: %s: %s" % (function, found[function]))
    if not re.search(r"store\.c:\d+$", found["keep_bytes"][2]):
        sys.exit("report: keep_bytes: %s" % (found["keep_bytes"],))


def way_project(options):
    report = options.build + ".report"
    if os.path.exists(report):
        os.remove(report)
    configure_and_build(os.path.join(HERE, "pass"), options.build, options,
                        ["-DCMAKE_PREFIX_PATH=" + options.prefix], MEMTRACE_PASS_REPORT=report)
    check_report(report)
    os.remove(report)
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    work = os.path.join(options.build, "work")
    os.makedirs(work)
    programs = [name for name in os.listdir(options.build)
                if re.match(r"(lto_(c|static|mixed|with_shared)|plain_lto|with_.*|precompiled)$", name)]
    if len(programs) != 12:
        sys.exit("programs: %s" % programs)
    for name in sorted(programs):
        program = os.path.join(options.build, name)
        check_program(memtrace, program, [C_PATH, CXX_PATH] if name == "lto_mixed" else [C_PATH],
                      work)
        holder = program if name != "lto_with_shared" else \
            os.path.join(options.build, "liblto_shared.so")
        if not has_fresh_word(holder):
            sys.exit("%s was not instrumented" % holder)


def pools_of(memtrace, program, work):
    """{pool: (allocations, bytes, frees)} of a run."""
    profile = os.path.join(work, "pools.mtp")
    run([program], env=environment(MEMTRACE_OUTPUT=profile, MEMTRACE_SUMMARY="0"))
    return pools(json.loads(run([memtrace, "report", "--json", "--depth", "0", profile], env=environment())))


def way_allocators(options):
    """A library with an allocator of its own, and programs that use it."""
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    log = configure_and_build(os.path.join(HERE, "allocators"), options.build, options,
                              ["-DCMAKE_PREFIX_PATH=" + options.prefix])
    told = re.findall(r'"([^"]*)": no function in (\S+) is called so', log)
    keep = "pool_keep::{lambda(pool*)#1}::operator()(ptr=2)=free"  # of pool.txt
    expect("what is told of absent functions", sorted((text, os.path.basename(file)) for text, file in told) ==
           [("absent(ptr=1)=free", "both"), (keep, "both"), (keep, "libpool.a")], log)
    pool = (150, 100 * 24 + 50 * 48, 50 + 25)
    for name, expected in (("plain", {"pool": pool}), ("both", {"pool": pool, "arena": (101, 305, 100)})):
        found = pools_of(memtrace, os.path.join(options.build, name), options.build)
        expect("pools of " + name, found == expected, found)
    for name in ("libpool.a", "plain", "both"):
        said = subprocess.run([memtrace, "flags", "--list-allocators", os.path.join(options.build, name)],
                              stdout=subprocess.PIPE, text=True)
        expect("functions of " + name, len(re.findall(r"^pool_", said.stdout, re.MULTILINE)) == 4, said)
    for call, words in (
            ('memtrace_instrument(app MODE hooks ALLOCATORS "f(size=1)=alloc")', "needs MODE pass"),
            ('memtrace_instrument(app ALLOCATORS "f(size=none)=alloc")', "an argument is named by its number"),
            ("memtrace_instrument(app ALLOCATORS jemalloc)", "ready-made sets"),
            ("memtrace_instrument(app ALLOCATORS @nowhere)", "there is no"),
            ("memtrace_instrument(app ALLOCATORS)", "ALLOCATORS needs a value")):
        status, said = status_line(options, options.prefix, call)
        expect(call, status != 0 and words in said, said)


def way_fortran(options):
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    path = (["keep_bytes", "store_fill", "consumer"], 10000, 10)
    for mode in ("pass", "auto", "hooks", "frame-pointer"):
        log = configure_and_build(os.path.join(HERE, "fortran"), options.build, options,
                                  ["-DCMAKE_PREFIX_PATH=" + options.prefix, "-DMODE=" + mode])
        program = os.path.join(options.build, "fortran")
        check_program(memtrace, program, [path], options.build)
        if has_fresh_word(program) != (mode in ("pass", "auto")):
            sys.exit("mode %s: frame words are wrong:\n%s" % (mode, log))


def status_line(options, prefix, call):
    """What CMake says to the call in a project that uses the installation at `prefix`."""
    shutil.rmtree(options.build, ignore_errors=True)
    done = subprocess.run(["cmake", "-S", os.path.join(HERE, "wrong_calls"), "-B", options.build, "-G",
                           options.generator, "-DCMAKE_PREFIX_PATH=" + prefix, "-DCALL=" + call],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment(CC=options.cc))
    return done.returncode, " ".join(done.stdout.split())


def check_flags(memtrace, compiler, mode, status, words):
    done = subprocess.run([memtrace, "flags", "--mode", mode, "--compiler", compiler, "--explain"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect("flags", done.returncode == status and words in done.stdout, done)


def expect(what, condition, output):
    if not condition:
        sys.exit("%s:\n%s" % (what, output))


def way_lacking(options):
    """No plugin for the compiler, and one that it refuses."""
    major = run([options.cc, "-dumpversion"]).strip().split(".")[0]
    kind, name, package = ("clang", "Clang", "llvm-%s-dev" % major) if "clang" in options.cc else \
        ("gcc", "GCC", "gcc-%s-plugin-dev" % major)
    prefix = options.build + ".prefix"
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.copytree(options.prefix, prefix, symlinks=True)
    memtrace = os.path.join(prefix, "bin", "memtrace")
    (folder,) = [os.path.join(where, "memtrace") for where, folders, _ in os.walk(prefix)
                 if "memtrace" in folders and "libmemtrace.so" in os.listdir(where)]
    plugin = os.path.join(folder, "%s-%s" % (kind, major), "memtrace.so")

    status, said = status_line(options, prefix, "memtrace_instrument(app)")
    expect("auto", status == 0 and "app: mode pass (auto: plugin for %s %s in %s)" %
           (name, major, folder) in said, said)

    # 32-bit code is another target.
    check_flags(memtrace, options.cc + " -m32", "pass", 1, "does not take " + plugin)
    check_flags(memtrace, options.cc, "auto", 0, "mode pass (plugin for %s %s)" % (name, major))
    check_flags(memtrace, "false", "pass", 1, "\"false\" is neither GCC nor Clang")

    with open(plugin, "w", encoding="utf-8") as file:
        file.write("not a plugin")
    status, said = status_line(options, prefix, "memtrace_instrument(app)")
    expect("a broken plugin", status == 0 and "app: mode frame-pointer (auto: the compiler refuses " +
           plugin in said, said)
    status, said = status_line(options, prefix, "memtrace_instrument(app MODE pass)")
    expect("a broken plugin", status != 0 and "the compiler refuses " + plugin in said, said)
    check_flags(memtrace, options.cc, "pass", 1, "\"%s\" does not take %s" % (options.cc, plugin))

    shutil.rmtree(folder)
    missing = "no plugin for %s %s in %s: install %s" % (name, major, folder, package)
    status, said = status_line(options, prefix, "memtrace_instrument(app)")
    expect("auto", status == 0 and "app: mode frame-pointer (auto: " + missing in said, said)
    status, said = status_line(options, prefix, "memtrace_instrument(app MODE pass)")
    expect("MODE pass", status != 0 and missing in said, said)
    check_flags(memtrace, options.cc, "pass", 1, missing)
    check_flags(memtrace, options.cc, "auto", 0, "mode frame-pointer (" + missing)

    # No headers help where the plugin is not for so old a compiler.
    old = "Clang 13 is too old for a plugin, Clang 14 and newer have one"
    compiler = options.build + ".clang-13"
    with open(compiler, "w", encoding="utf-8") as file:
        file.write('case $* in -dumpmachine) uname -m ;; *) echo memtrace:13:4 ;; esac\n')
    check_flags(memtrace, "sh " + compiler, "pass", 1, old)
    os.remove(compiler)
    status, said = status_line(options, prefix, "set(CMAKE_C_COMPILER_ID Clang)\n"
                               "set(CMAKE_C_COMPILER_VERSION 13.0.1)\nmemtrace_instrument(app)")
    expect("an old Clang", status == 0 and "app: mode frame-pointer (auto: %s)" % old in said, said)
    shutil.rmtree(prefix)


def main():
    options = parse_options()
    {"allocators": way_allocators, "project": way_project, "fortran": way_fortran,
     "lacking": way_lacking}[options.way](options)
    shutil.rmtree(options.build, ignore_errors=True)


if __name__ == "__main__":
    main()
