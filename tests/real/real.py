# SPDX-License-Identifier: MIT
"""real.py lua|sqlite: Debian's source package, built as an outside project with
memtrace_instrument(); its self-checks pass with the same output and exit status as bare, and the
profile's sums agree.

lua: a script through the whole language. sqlite: its own speedtest1 --verify and fuzzcheck.
The sources come by `apt-get source` with a configuration of their own: the system's stays as it is.
"""

import glob
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (BUILD, bare, clean_environment, consistent, equal, execute, fail, finish, have,
                     only_profile, report, same_behaviour, scratch, skip, traced)

CACHE = os.path.join(BUILD, "tests", "real", "sources")
PACKAGES = {"lua": "lua5.4", "sqlite": "sqlite3"}


def run_or_skip(command, why, **more):
    result = execute(command, timeout=200, **more)
    if result.returncode != 0:
        print(result.stdout.decode(errors="replace")[-2000:], result.stderr.decode(errors="replace")[-2000:])
        skip(why)
    return result


def source_lists(folder):
    """The system's own package sources, asked for source packages."""
    os.makedirs(os.path.join(folder, "parts"), exist_ok=True)
    for path in glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*"):
        text = open(path).read()
        if path.endswith(".sources"):
            text = re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)
        elif path.endswith(".list"):
            text = re.sub(r"(?m)^\s*deb\s", "deb-src ", text)
        else:
            continue
        with open(os.path.join(folder, "parts", os.path.basename(path)), "w") as file:
            file.write(text)


def fetch(package):
    """The unpacked upstream sources of a Debian source package; downloaded once a build folder."""
    have("apt-get", "tar")
    folder = os.path.join(CACHE, package)
    found = glob.glob(os.path.join(folder, "*.orig.tar.*"))
    if not found:
        shutil.rmtree(folder, ignore_errors=True)
        for sub in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(folder, sub))
        source_lists(folder)
        configuration = os.path.join(folder, "apt.conf")
        with open(configuration, "w") as file:
            file.write('Dir::State::Lists "%s/lists";\nDir::Etc::SourceList "/dev/null";\n'
                       'Dir::Etc::SourceParts "%s/parts";\nDir::Cache "%s/cache";\n'
                       'APT::Sandbox::User "root";\n' % (folder, folder, folder))
        environment = clean_environment(APT_CONFIG=configuration)
        run_or_skip(["apt-get", "update"], "no package lists", environment=environment)
        run_or_skip(["apt-get", "source", "--download-only", package], "no source package " + package,
                    environment=environment, cwd=folder)
        found = glob.glob(os.path.join(folder, "*.orig.tar.*"))
    out = os.path.join(folder, "unpacked")
    if not os.path.isdir(out):
        os.mkdir(out + ".new")
        run_or_skip(["tar", "xf", found[0], "-C", out + ".new", "--strip-components=1"], "cannot unpack")
        os.rename(out + ".new", out)
    return out


def amalgamation(source):
    """SQLite's one-file form, made by its own build (which needs tclsh)."""
    have("tclsh", "make")
    if not os.path.exists(os.path.join(source, "sqlite3.c")):
        run_or_skip(["sh", "./configure", "--disable-tcl", "--disable-readline"], "configure", cwd=source)
        run_or_skip(["make", "sqlite3.c"], "the amalgamation", cwd=source)


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
        print(what, data["total_allocations"], "allocations,", len(data["contexts"]), "contexts,",
              data["maximum_bytes"], "bytes at most")
        if data["total_allocations"] < 100:
            fail(what, "hardly anything was counted")


def lua():
    source = fetch(PACKAGES["lua"])
    folder = build_project("lua", source, ["bare", "hooks", "frame-pointer"])
    check(folder, "lua", ["hooks", "frame-pointer", "preload"], [os.path.join(HERE, "selfcheck.lua")], 3)


def sqlite():
    source = fetch(PACKAGES["sqlite"])
    amalgamation(source)
    folder = build_project("sqlite", source, ["bare", "hooks"])
    check(folder, "speedtest1", ["hooks", "preload"], ["--size", "10", "--verify", ":memory:"])
    check(folder, "fuzzcheck", ["hooks"], [os.path.join(source, "test", "fuzzdata6.db"), "--limit-mem",
                                           "200000000", "-q"])


{"lua": lua, "sqlite": sqlite}[sys.argv[1]]()
finish()
