#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent_build.py [--update docs/stream.md]: builds MemTrace with -DMEMTRACE_TOOLS=agent, installs and packs it, and
compares sizes and libraries with the table in docs/stream.md, or writes it anew."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import SOURCE, clean_environment, equal, execute, fail, finish, scratch  # noqa: E402

# Of libraries that it must do without.
FORBIDDEN = re.compile(r"/(dwarf|elfutils/\w+|lzma|sqlite3|curses|ncurses\w*/\w+|histedit|microhttpd|protobuf-c/\S+|"
                       r"libiberty/\w+)\.h\b")
TOLERANCE = 0.1  # compilers differ


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        fail(*command, "status", done.returncode, done.stdout[-3000:])
        finish()
    return done.stdout


def wrong_choice(folder):
    done = execute(["cmake", "-S", SOURCE, "-B", folder, "-DMEMTRACE_TOOLS=slim"])
    equal((done.returncode != 0, b"MEMTRACE_TOOLS=slim: it is all (or ON), agent, or OFF" in done.stderr), (True, True),
          "another word", done.stderr[-500:])


def made(folder):
    """The build, and where it was installed."""
    there = os.path.join(folder, "installed")
    run("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-DMEMTRACE_TOOLS=agent", "-DCMAKE_INSTALL_LIBDIR=lib")
    run("cmake", "--build", folder)
    run("cmake", "--install", folder, "--strip", "--prefix", there)
    run("cpack", "--config", os.path.join(folder, "CPackConfig.cmake"), cwd=folder)
    return there


def needed(path):
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", path))
    return ", ".join("`%s`" % name for name in sorted(names) if not re.match(r"lib[cm]\.so|ld-linux", name))


def kilobytes(path):
    return "%d KB" % round(os.path.getsize(path) / 1000)


def table(folder, there):
    command, library = os.path.join(there, "bin/memtrace"), os.path.join(there, "lib/libmemtrace.so")
    packages = os.path.join(folder, "packages")
    named = sorted((name.rpartition("_")[0] if name.endswith(".deb") else name, name) for name in os.listdir(packages)
                   if name.endswith((".deb", ".tar.gz")))
    return {"`memtrace`, stripped": kilobytes(command), "`libmemtrace.so`, stripped": kilobytes(library),
            "packages": ", ".join("`%s` %s" % (name, kilobytes(os.path.join(packages, name))) for _, name in named),
            "libraries of the command": needed(command),
            "libraries of `libmemtrace.so`, which goes into the program": needed(library) or "libc alone"}


def close(stated, found):
    """The same words, and each number within the tolerance."""
    number = r"\b\d+(?= KB)"
    if re.sub(number, "", stated) != re.sub(number, "", found):
        return False
    return all(abs(int(a) - int(b)) <= TOLERANCE * int(b)
               for a, b in zip(re.findall(number, stated), re.findall(number, found)))


def includes_nothing_else(folder):
    """What the compiler read, as it told ninja."""
    told = run("ninja", "-C", folder, "-t", "deps")
    equal("collect/collector.h" in told, True, "dependencies are told")
    found = sorted({line.strip() for line in told.splitlines() if FORBIDDEN.search(line)})
    equal(found, [], "headers that it must do without")


def works(there):
    """What was installed can be used; the manual page tells of its commands."""
    folder = scratch()
    done = execute([os.path.join(there, "bin/memtrace"), "run", "-o", "true.mtp", "--", "/bin/true"],
                   clean_environment(MEMTRACE_KEEP_SMALL="1"), folder)
    equal((done.returncode, os.listdir(folder)), (0, ["true.mtp"]), "run", done.stderr)
    with open(os.path.join(there, "share/man/man1/memtrace.1"), encoding="utf-8") as file:
        text = file.read()
    equal(("detach" in text, "symbolize" in text), (True, False), "the manual page")
    equal(os.path.exists(os.path.join(there, "share/bash-completion/completions/memtrace")), True, "completion")
    equal(sorted(os.listdir(there)), ["bin", "lib", "share"], "what is installed")
    equal([name for name in os.listdir(os.path.join(there, "lib")) if not name.startswith("libmemtrace.so")], [], "for the device alone")


def main():
    folder = scratch()
    wrong_choice(os.path.join(folder, "wrong"))
    build = os.path.join(folder, "build")
    there = made(build)
    includes_nothing_else(build)
    works(there)
    path = os.path.join(SOURCE, "docs", "stream.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    for name, value in table(build, there).items():
        row = re.search(r"^\| %s \| ?(.*?) ?\|$" % re.escape(name), page, re.MULTILINE)
        if "--update" in sys.argv:
            page = page[:row.start()] + "| %s | %s |" % (name, value) + page[row.end():]
        elif not close(row.group(1), value):
            fail(name, ": docs/stream.md says", row.group(1), "this is", value)
    if "--update" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    finish()


if __name__ == "__main__":
    main()
