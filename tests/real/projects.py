#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""projects.py [--all] [--compiler gcc|clang]... PROJECT...: other people's projects, built with
MemTrace in the ways of docs/cmake.md and docs/flags.md, pass their own tests, and these are profiled.

cjson, leveldb, fmtlib: CMake, the plain signature of target_link_libraries().
nlohmann-json3:         CMake, the signature with keywords.
hiredis:                a Makefile.
The sources come by `apt-get source` (debian.py). Under ctest a part of each project is built. --all
builds all of it and runs its whole test suite, with MEMTRACE=off and without (half an hour or more).
"""

import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

import debian  # noqa: E402
from harness import (BUILD, COMPILERS, clean_environment, consistent, equal,  # noqa: E402
                     execute, fail, finish, have, profiles, report, scratch, skip)

CACHE = os.path.join(BUILD, "tests", "real", "sources")
LIMIT_S = 3000

# arguments: for CMake. short: the targets of the short test, which are the names of its tests, too.
# calls: a line of the project's, and the target that is instrumented before it; a target that is
# instrumented at the end. function: one that must be in the profiles.
PROJECTS = {
    "cjson": {"arguments": [], "short": ["all"], "function": r"^cJSON_",
              "calls": ('    target_link_libraries("${CJSON_LIB}" m)\n', "cjson", "cJSON_test")},
    # gmock needs C++17; Ubuntu 24.04's tcmalloc frees a block of its own without a call that can be counted.
    "leveldb": {"arguments": ["-DLEVELDB_BUILD_BENCHMARKS=OFF", "-DCMAKE_CXX_STANDARD=17", "-DHAVE_TCMALLOC=OFF"],
                "short": ["c_test"],
                "function": r"^leveldb::",
                "calls": ("target_link_libraries(leveldb Threads::Threads)\n", "leveldb",
                          "c_test")},
    "fmtlib": {"arguments": ["-DFMT_DOC=OFF"], "short": ["args-test"], "function": r"fmt::v\d+::",
               "calls": ("add_subdirectory(test)\n", "fmt", "args-test")},
    "nlohmann-json3": {"arguments": ["-DJSON_TestStandards=11",
                                     "-DJSON_TestDataDirectory=/nowhere"],
                       "short": ["test-hash_cpp11"], "function": r"nlohmann::", "calls": None},
}


def succeed(command, **more):
    """What it printed; ends the test if it fails."""
    result = execute(command, timeout=LIMIT_S, **more)
    if result.returncode != 0:
        fail(" ".join(command), "status", result.returncode, result.stdout.decode()[-3000:],
             result.stderr.decode()[-3000:])
        finish()
    return result.stdout.decode()


def install():
    """Where MemTrace is installed, and its command."""
    prefix = scratch()
    succeed(["cmake", "--install", BUILD, "--prefix", prefix])
    return prefix, os.path.join(prefix, "bin", "memtrace")


def sources(package):
    try:
        return debian.patched(package, CACHE)
    except debian.Unavailable as problem:
        return skip(str(problem))


def check_profiles(folder, what, function):
    """Each is exact; in some of them is the project's own code."""
    names = set()
    allocations = 0
    for path in profiles(folder):
        data = report(path, None, "--depth", "200")  # newer cJSON's tests nest 10,000 deep, along 11,000 paths
        consistent(data, what)
        equal(data["lost"], 0, what, path, "lost")
        allocations += data["allocations"]
        names.update(frame["function"] for context in data["contexts"]
                     for frame in context["frames"])
    count = len(profiles(folder))
    print("%s: %d processes, %d allocations" % (what, count, allocations), flush=True)
    if not any(re.search(function, name) for name in names):
        fail(what, "no function of the project is in the profiles:", sorted(names)[:50])
    return count


def profiled(folder):
    """An environment: the profiles of instrumented programs go there."""
    return clean_environment(MEMTRACE_OUTPUT=os.path.join(folder, "%e.%p.mtp"), MEMTRACE_SUMMARY="0")


def run_tests(build, pattern, environment):
    """{test: passed} of the project's own tests."""
    result = execute(["ctest", "--test-dir", build, "-R", pattern, "-FA", ".", "--timeout", "900"],
                     environment, timeout=LIMIT_S)
    found = re.findall(r"Test +#\d+: (\S+) \.+ *(?:\**)(\w+)", result.stdout.decode())
    if not found:
        fail("no tests:", result.stdout.decode()[-2000:])
    return {name: outcome == "Passed" for name, outcome in found}


def check_tests(project, build, what, is_short):
    """The project's tests pass (with --all: those that do with MEMTRACE=off) and are profiled."""
    targets = project["short"]
    pattern = "^(%s)$" % "|".join(targets) if is_short and targets != ["all"] else "."
    alone = {} if is_short else run_tests(build, pattern, clean_environment(MEMTRACE="off"))
    folder = scratch()
    under = run_tests(build, pattern, profiled(folder))
    expected = {name: alone.get(name, True) for name in under}
    print("%s: %d tests, %d pass" % (what, len(under), sum(under.values())), flush=True)
    equal({name: passed for name, passed in under.items() if passed != expected[name]}, {}, what,
          "own tests that pass with MemTrace and not without, or the other way round")
    count = check_profiles(folder, what, project["function"])
    if is_short and count < len(under):
        fail(what, "%d tests left %d profiles" % (len(under), count))


def build(source, compiler, arguments, targets):
    cc, cxx = COMPILERS[compiler]
    folder = os.path.join(scratch(), "build")
    said = succeed(["cmake", "-S", source, "-B", folder, "-DCMAKE_C_FLAGS=-g1 -w",
                    "-DCMAKE_CXX_FLAGS=-g1 -w", *arguments],
                   environment=clean_environment(CC=cc, CXX=cxx))
    succeed(["cmake", "--build", folder, "-j2", *(word for target in targets
                                                  for word in ("--target", target))])
    return folder, said


def with_calls(source, line, first, last):
    """A copy of the project that instruments `first` before that line, `last` at its end."""
    copy = os.path.join(scratch(), "source")
    shutil.copytree(source, copy, symlinks=True)
    path = os.path.join(copy, "CMakeLists.txt")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    equal(text.count(line), 1, path, line)
    text = text.replace(line, "find_package(MemTrace REQUIRED)\nmemtrace_instrument(%s)\n%s" %
                        (first, line))
    if last:
        text += "\nmemtrace_instrument(%s)\n" % last
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return copy


def cmake_project(name, compilers, is_short):
    project = PROJECTS[name]
    source = sources(name)
    prefix, memtrace = install()
    line = "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=" + succeed([memtrace, "flags", "--cmake"]).strip()
    targets = project["short"] if is_short else ["all"]
    for compiler in compilers:
        what = "%s %s" % (name, compiler)
        # Once with each compiler, once by each way.
        if compiler == "clang" or not project["calls"]:
            folder, said = build(source, compiler, [line, *project["arguments"]], targets)
            equal(len(re.findall(r"MemTrace: mode .*: \d+ targets: ", said)), 1, what, said)
            check_tests(project, folder, what + ", unchanged", is_short)
        else:
            copy = with_calls(source, *project["calls"])
            folder, _ = build(copy, compiler, ["-DCMAKE_PREFIX_PATH=" + prefix,
                                               *project["arguments"]], targets)
            check_tests(project, folder, what + ", instrumented by name", is_short)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def redis_server():
    """The port and the socket of a redis-server that runs meanwhile."""
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")  # one program
    if not program:
        skip("no redis-server or redis-check-rdb")
    folder = scratch()
    port, path = str(free_port()), os.path.join(folder, "socket")
    with subprocess.Popen(["redis-server", "--port", port, "--bind", "127.0.0.1", "--unixsocket",
                           path, "--save", ""], executable=program, cwd=folder,
                          env=clean_environment(), stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                if os.path.exists(path) or server.poll() is not None:
                    break
                time.sleep(0.1)
            yield port, path
        finally:
            server.terminate()


def hiredis(compilers):
    """The Makefile as it is; the tests of `make check` talk to a redis-server."""
    have("make")
    source = sources("hiredis")
    _, memtrace = install()
    for compiler in compilers:
        what = "hiredis " + compiler
        copy, folder = os.path.join(scratch(), "source"), scratch()
        shutil.copytree(source, copy)
        flags = succeed([memtrace, "flags", "--compiler", compiler, "--cflags", "--libs"]).strip()
        succeed(["make", "-j2", "CC=%s %s" % (compiler, flags)], cwd=copy,
                environment=clean_environment(MEMTRACE="off"))
        with redis_server() as (port, path):
            said = succeed([os.path.join(copy, "hiredis-test"), "-h", "127.0.0.1", "-p", port,
                            "-s", path], cwd=copy, environment=profiled(folder))
        if "ALL TESTS PASS" not in said:
            fail(what, "its tests:", said[-2000:])
        equal(check_profiles(folder, what, r"^redis"), 1, what, "profiles")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--compiler", action="append", choices=COMPILERS)
    parser.add_argument("project", nargs="+", choices=[*PROJECTS, "hiredis"])
    options = parser.parse_args()
    have("cmake", "ctest", "dpkg-source", *(options.compiler or COMPILERS))
    for name in options.project:
        if name == "hiredis":
            hiredis(options.compiler or COMPILERS)
        else:
            cmake_project(name, options.compiler or COMPILERS, not options.all)


main()
finish()
