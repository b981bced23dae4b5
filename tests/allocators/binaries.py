#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""binaries.py [COUNT] [--seed N] [--functions N] [PROGRAM...]: in COUNT programs of this system (200), taken at random from
/usr/bin, up to N functions (50) are named as if they were allocators, at random too, of those that `memtrace allocators
--all` says can be followed. Each program is asked for its version or its help: what it writes and its status are what they are
without MemTrace. Prints a line for what is not, and in the end how many functions were followed and called.

    tests/allocators/binaries.py 200 --seed 7

A program that is not the same twice without MemTrace is not asked. Needs a build folder: TEST_BUILD, else build."""

import argparse
import json
import os
import random
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
MEMTRACE = os.path.join(os.environ.get("TEST_BUILD", os.path.join(SOURCE, "build")), "bin", "memtrace")
KINDS = ("alloc", "zalloc", "realloc", "free")
ITEMS = {"alloc": "(size=1)", "zalloc": "(size=2*3)", "realloc": "(old=1,size=2)", "free": "(ptr=1)"}
WAIT_S = 60
# They ask for a terminal, change the machine, or wait for something.
NOT_THESE = ("reboot", "shutdown", "halt", "poweroff", "init", "telinit", "login", "su", "sulogin", "wall", "chvt", "openvt", "gdb")


def is_program(path):
    try:
        status = os.stat(path)
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return False
    return (stat.S_ISREG(status.st_mode) and status.st_mode & 0o111 and not status.st_mode & 0o6000 and
            not os.path.islink(path) and head[:5] == b"\x7fELF\x02" and head[18:20] == b"\x3e\x00" and
            os.path.basename(path) not in NOT_THESE and
            not os.path.basename(path).startswith("qemu-"))  # of an emulator `memtrace run` tells what it does


def environment(folder, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMTRACE", "LD_"))}
    return {**kept, "HOME": folder, "TMPDIR": folder, "LC_ALL": "C", "TERM": "dumb", **more}


def run(command, folder, **more):
    """What it wrote and how it ended; None: not in time."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, cwd=folder,
                              env=environment(folder, **more), check=False, start_new_session=True)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout, done.stderr, done.returncode


def question(program, folder):
    """How it is asked, and what it answers, if that is the same each time."""
    for option in ("--version", "--help"):
        command = [program, option]
        answers = [run(command, folder) for _ in range(2)]
        if answers[0] is not None and answers[0] == answers[1] and answers[0][2] in (0, 1, 2):
            return command, answers[0]
    return None, None


def choose(program, folder, chance, most):
    """Specifications of functions of the program."""
    told = run([MEMTRACE, "allocators", "--all", "--json", program], folder)
    if told is None or told[2] != 0:
        return None
    functions = [row for row in json.loads(told[0])["functions"] if row["bytes"]]
    chosen = chance.sample(functions, min(most, len(functions)))
    specifications = []
    for row in chosen:
        kind = chance.choice(KINDS)
        specifications.append("%s%s=%s:p%d" % (row["address"], ITEMS[kind], kind, chance.randrange(4)))
    return specifications


def calls(profile, folder):
    told = run([MEMTRACE, "report", "--json", profile], folder)
    data = json.loads(told[0]) if told is not None and told[2] == 0 else {"pools": []}
    return sum(context["allocations"] + context["frees"] for context in data["pools"])


def check(program, folder, chance, most):
    """(functions, calls), with a word of what was wrong; None: it is not asked."""
    command, expected = question(program, folder)
    specifications = choose(program, folder, chance, most) if command is not None else None
    if not specifications:
        return None
    names, profile = os.path.join(folder, "names"), os.path.join(folder, "out.mtp")
    with open(names, "w", encoding="ascii") as file:
        file.write("\n".join(specifications) + "\n")
    got = run([MEMTRACE, "run", "--no-summary", "-o", profile, "--alloc", "@" + names, "--", *command], folder,
              MEMTRACE_CHILDREN="none")
    wrong = ""
    if got is None:
        wrong = "did not end"
    elif got[2] != expected[2]:
        wrong = "ended with %d, alone with %d: %s" % (got[2], expected[2], got[1].decode(errors="replace")[-300:])
    elif (got[0], got[1]) != (expected[0], expected[1]):
        wrong = "wrote something else: " + (got[1].decode(errors="replace")[-300:] or "on stdout")
    if wrong:
        print("%s: %s\n    %s" % (" ".join(command), wrong, " ".join(specifications)), flush=True)
    return len(specifications), calls(profile, folder), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", type=int, default=50)
    parser.add_argument("program", nargs="*")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    programs = options.program or sorted(path for path in (os.path.join("/usr/bin", name) for name in os.listdir("/usr/bin"))
                                         if is_program(path))
    if not options.program:
        chance.shuffle(programs)
    asked, functions, called, bad = 0, 0, 0, 0
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="memtrace-test-") as folder:
            result = check(program, folder, chance, options.functions)
        if result is not None:
            asked += 1
            functions += result[0]
            called += result[1]
            bad += bool(result[2])
        if asked == options.count:
            break
    print("%d programs, %d functions followed, %d calls counted; %d programs bad (seed %d)" %
          (asked, functions, called, bad, options.seed))
    if asked == 0:
        print("skipped: no program here can be asked")
        sys.exit(77)
    sys.exit(1 if bad or called == 0 else 0)


main()
