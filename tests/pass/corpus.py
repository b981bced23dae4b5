#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""corpus.py lua|sqlite COMPILER FLAGS... : a real program, built with FLAGS (a plugin among them),
keeps every promise of check_contract.py and works: Lua's script through the whole language and
SQLite's speedtest1 --verify print what they print when built without the plugin's flags.
The sources come by `apt-get source`."""
import fcntl
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "programs"), os.path.join(TESTS, "real")]

import debian
from harness import BUILD, equal, finish, skip

CACHE = os.path.join(BUILD, "tests", "pass", "sources")
# Words that there must be at least.
LEAST = {"lua": 300, "sqlite": 700}


def lua():
    source = os.path.join(debian.source("lua5.4", CACHE), "src")
    files = [f for f in glob.glob(os.path.join(source, "*.c")) if os.path.basename(f) != "luac.c"]
    return files, ["-DLUA_USE_POSIX", "-DLUA_USE_DLOPEN"], [os.path.join(TESTS, "real", "selfcheck.lua")]


def sqlite():
    source = debian.source("sqlite3", CACHE)
    debian.amalgamation(source)
    return ([os.path.join(source, "sqlite3.c"), os.path.join(source, "test", "speedtest1.c")],
            ["-I" + source], ["--size", "2", "--verify", ":memory:"])


def build(folder, compiler, files, flags):
    """Compiles two files at a time; returns the program."""
    os.makedirs(folder)
    objects = [os.path.join(folder, os.path.basename(f) + ".o") for f in files]
    pending = [[compiler, *flags, "-c", "-o", o, f] for f, o in zip(files, objects)]
    running = []
    while pending or running:
        while pending and len(running) < 2:
            running.append(subprocess.Popen(pending.pop(), stderr=subprocess.PIPE, text=True))
        process = running.pop(0)
        said = process.communicate()[1]
        equal(process.returncode, 0, " ".join(process.args), said[-2000:])
        equal(re.findall(r".*(?:plugin|internal compiler error).*", said), [], "compiler's words")
    program = os.path.join(folder, "program")
    done = subprocess.run([compiler, *flags, "-o", program, *objects, "-lm", "-ldl", "-lpthread"],
                          stderr=subprocess.PIPE, text=True, check=False)
    equal(done.returncode, 0, "link", done.stderr[-2000:])
    return program


def shown(program, arguments, folder):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          cwd=folder, text=True, check=False, timeout=300)
    text = re.sub(r"\d+\.\d+s|0x[0-9a-f]+", "", done.stdout.replace(program, ""))
    return done.returncode, re.sub(r"(?m)^.*(seconds|TOTAL|elapsed).*$", "", text)


def main():
    subject, compiler, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(CACHE, exist_ok=True)
    try:
        with open(os.path.join(CACHE, subject + ".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests of other levels want the same sources
            files, own, arguments = globals()[subject]()
    except debian.Unavailable as problem:
        skip(str(problem))
    with tempfile.TemporaryDirectory() as folder:
        bare = build(os.path.join(folder, "bare"), compiler, files, ["-O0", "-w", *own])
        built = build(os.path.join(folder, "built"), compiler, files, [*own, *flags])
        equal(shown(built, arguments, folder), shown(bare, arguments, folder), "output")
        done = subprocess.run([sys.executable, os.path.join(HERE, "check_contract.py"), "--least",
                               str(LEAST[subject]), built], stdout=subprocess.PIPE, text=True,
                              check=False)
        print(done.stdout)
        equal(done.returncode, 0, "promises", done.stdout[-3000:])
    finish()


if __name__ == "__main__":
    main()
