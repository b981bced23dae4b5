# SPDX-License-Identifier: MIT
"""real.py lua|sqlite: Debian's source package, built as an outside project with
memtrace_instrument(); its self-checks pass with the same output and exit status as bare, and the
profile's sums agree.

lua: a script through the whole language. sqlite: its own speedtest1 --verify and fuzzcheck.
The sources come by `apt-get source` (debian.py).
"""

import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

import debian
from harness import (BUILD, bare, consistent, equal, execute, fail, finish, have, only_profile,
                     same_behaviour, scratch, skip, traced)

CACHE = os.path.join(BUILD, "tests", "real", "sources")
PACKAGES = {"lua": "lua5.4", "sqlite": "sqlite3"}


def fetch(package):
    try:
        return debian.source(package, CACHE)
    except debian.Unavailable as problem:
        skip(str(problem))


def build_project(name, source, modes):
    """The programs of project.cmake.txt against an installed MemTrace."""
    have("cmake")
    prefix, project = scratch(), scratch()
    installed = execute(["cmake", "--install", BUILD, "--prefix", prefix])
    equal(installed.returncode, 0, "cmake --install", installed.stderr.decode())
    shutil.copy(os.path.join(HERE, "project.cmake.txt"), os.path.join(project, "CMakeLists.txt"))
    out = os.path.join(project, "build")
    for command in (["cmake", "-S", project, "-B", out, "-DCMAKE_PREFIX_PATH=" + prefix,
                     "-D%s=%s" % (name.upper(), source), "-DMODES=" + ";".join(modes)],
                    ["cmake", "--build", out, "-j2"]):
        result = execute(command, timeout=300)
        if result.returncode != 0:
            fail(" ".join(command), result.stdout.decode()[-3000:], result.stderr.decode()[-3000:])
            finish()
    return out


def without_times(output):
    """speedtest1 and fuzzcheck print how long they took."""
    output = re.sub(rb"\d+\.\d+s", b"", output)
    return re.sub(rb"(?m)^.*(seconds|TOTAL|elapsed).*$", b"", output)


def check(folder, program, modes, arguments, status=0):
    work = scratch()
    alone = bare([os.path.join(folder, program + "-bare"), *arguments], cwd=work)
    equal(alone.returncode, status, program, "bare exit status", alone.stdout[-500:], alone.stderr[-500:])
    alone.stdout, alone.stderr = without_times(alone.stdout), without_times(alone.stderr)
    for mode in modes:
        out, work = scratch(), scratch()
        what = "%s %s:" % (program, mode)
        binary = os.path.join(folder, program + "-" + ("bare" if mode == "preload" else mode))
        under = traced([binary, *arguments], mode, out, cwd=work)
        under.stdout, under.stderr = without_times(under.stdout), without_times(under.stderr)
        for text in (under, alone):
            text.stdout = text.stdout.replace(binary.encode(), b"").replace(
                os.path.join(folder, program + "-bare").encode(), b"")
        same_behaviour(alone, under, what)
        data = only_profile(out, what)
        consistent(data, what)
        equal(data["lost"], 0, what, "lost")
        print(what, data["allocations"], "allocations,", len(data["contexts"]), "contexts,",
              data["peak_bytes"], "bytes at most")
        if data["allocations"] < 100:
            fail(what, "hardly anything was counted")


def lua():
    source = fetch(PACKAGES["lua"])
    folder = build_project("lua", source, ["bare", "hooks", "frame-pointer"])
    check(folder, "lua", ["hooks", "frame-pointer", "preload"], [os.path.join(HERE, "selfcheck.lua")], 3)


def sqlite():
    source = fetch(PACKAGES["sqlite"])
    have("tclsh", "make")
    try:
        debian.amalgamation(source)
    except debian.Unavailable as problem:
        skip(str(problem))
    folder = build_project("sqlite", source, ["bare", "hooks"])
    check(folder, "speedtest1", ["hooks", "preload"], ["--size", "10", "--verify", "speed.db"])
    check(folder, "fuzzcheck", ["hooks"], [os.path.join(source, "test", "fuzzdata6.db"), "--limit-mem",
                                           "200000000", "-q"])


{"lua": lua, "sqlite": sqlite}[sys.argv[1]]()
finish()
