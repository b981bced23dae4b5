# SPDX-License-Identifier: MIT
"""terminal_test.py CASE: a program whose names are hostile: those of its file, functions, source files,
threads, marks, scopes and pools. Whatever text a command prints of it, the terminal obeys nothing."""

import os
import re
import subprocess

from outside import BUILD, MEMTRACE, PRELOAD, SOURCE, case, check, environment, equal, execute, folder

# ECMA-48's C0 (but line ends), DEL and C1; separators of lines; marks and overrides of UAX #9.
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
PROGRAM = "e\x1b[31m\u009b\u202evil"
SYMBOL = "evil\x1b[2J\u009b2J\u202ef"
PATHS = {}


def record():
    program = os.path.join(folder, PROGRAM)
    flags = ["cc", "-O1", "-w", "-I", SOURCE + "/../../include", "-I", BUILD + "/include",
             SOURCE + "/terminal.c"]
    subprocess.run(flags + ["-DOTHER", "-c", "-o", folder + "/other.o"], check=True)
    subprocess.run(["objcopy", "--redefine-sym", "other=" + SYMBOL, folder + "/other.o"], check=True)
    subprocess.run(flags + ["-g", "-c", "-o", folder + "/main.o"], check=True)
    subprocess.run(["objcopy", "--redefine-sym", "other=" + SYMBOL, folder + "/main.o"], check=True)
    subprocess.run(["cc", folder + "/main.o", folder + "/other.o", "-o", program, "-pthread"], check=True)
    for ending, arguments in ((".mtp", ("run", "--every", "20ms", "--summary")),
                              (".mtr", ("record", "--embed", "all", "--summary"))):
        PATHS[ending] = folder + "/\x1b[1m\u009b" + ending
        done = execute(MEMTRACE, *arguments, "-o", PATHS[ending], "--", program, "\x1b[2Jargument")
        equal(done.returncode, 0, done.err)
        safe(done.err, arguments)


def safe(out, arguments):
    """No line of it has such a character, and the hostile names are there all the same."""
    text = out.decode()  # and it is UTF-8
    found = UNSAFE.search(text)
    check(found is None, arguments, "prints", repr(text[max(0, found.start() - 60):found.end() + 20])
          if found else "")
    return text


def told(*arguments, status=0):
    done = execute(MEMTRACE, *arguments)
    equal(done.returncode, status, arguments, done.err)
    safe(done.err, arguments)
    return safe(done.out, arguments)


def test_hostile_names():
    record()
    profile, recording = PATHS[".mtp"], PATHS[".mtr"]
    for path in (profile, recording):
        out = told("report", path)
        check("evil" in out and "?" in out, out)
        for options in (("--paths",), ("--flat",), ("--bottom-up", "--by", "line"), ("--show-threads",),
                        ("--show-groups",), ("--show-mappings",), ("--show-caller-callee", "/evil/"),
                        ("--format", "markdown", "--paths"), ("--class", "pool"),
                        ("--class", "pool", "--show-groups")):
            told("report", *options, path)
        told("info", path)
        told("check", "leaked <= 1", path, status=1)
        for form in ("gcc", "github"):
            told("check", "--format", form, "leaked <= 1", path, status=1)
        for form in ("table", "markdown"):
            told("query", "--format", form, path, "SELECT * FROM frames")
        for form in ("folded", "callgrind", "massif"):
            told("export", "--format", form, path)
    for options in (("--show-marks",), ("--show-blocks",), ("--show-timeline",), ("--show-sizes",),
                    ("--show-fragmentation",)):
        told("report", *options, recording)
    told("extract", "--list", recording)
    for form in ((), ("--markdown",), ("--by", "module"), ("--by", "file")):
        told("diff", *form, profile, recording)
    told("merge", "-o", folder + "/\x1b[2J.mtp", profile, profile)
    told("report", folder + "/\x1b[2J.mtp\u202e", status=1)


def test_hostile_names_preloaded():
    """What the runtime itself says at the program's end, where there is no command."""
    record()
    done = execute(os.path.join(folder, PROGRAM),
                   env={"LD_PRELOAD": PRELOAD, "MEMTRACE_SUMMARY": "1",
                        "MEMTRACE_OUTPUT": folder + "/%e.\u009b\x1b[2J.mtp"})
    text = safe(done.err, "preloaded")
    check("profile  " in text and "vil." in text, text)
    done = execute(os.path.join(folder, PROGRAM),
                   env={"LD_PRELOAD": PRELOAD, "MEMTRACE_OUTPUT": folder + "/absent\x1b[2J/%e.mtp"})
    check("absent" in safe(done.err, "no such folder"), done.err)


case(globals())
