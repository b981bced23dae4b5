#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exact.py CASE [NUMBER]: after `memtrace detach` a program is what it was before `memtrace attach`, as
seen from outside:

    words           every word that its objects' relocations name, in redis-server, Python and others
    instructions    how many instructions a pair of malloc and free takes, counted by single steps
    flat NUMBER     its memory, after so many times (200)"""

import ctypes
import os
import re
import shutil
import subprocess
import sys

from attach_test import (CALLS, FOLDER, SETTINGS, Subject, attach, build, clean_environment, detach, ended, equal, fail,
                         finish, held, mapped, need_ptrace, report, resident, source, wait_until)

# --- words ----------------------------------------------------------------------------------------

RELOCATION = re.compile(r"^([0-9a-f]{16})\s+\S+\s+R_(?:X86_64_(?:GLOB_DAT|JUMP_SLO\w*|64)|AARCH64_(?:GLOB_DA\w*|JUMP_SL\w*|"
                        r"ABS64))\s+\S+\s+([^\s@]+)", re.MULTILINE)
SYMBOL = re.compile(r"^\s+\d+: ([0-9a-f]{16}) .* (\S+?)(?:@\S+)?(?: .*)?$", re.MULTILINE)
LOAD = re.compile(r"^\s+LOAD\s+0x\S+\s+0x(\S+)", re.MULTILINE)


def readelf(what, path):
    return subprocess.run(["readelf", "-W", what, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout


def objects_of(pid):
    """Paths of all objects but ours, and what their addresses count from."""
    found = {}
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        for line in maps:
            field = line.split()
            if len(field) < 6 or field[2] != "00000000" or field[5][0] != "/" or "libmemtrace" in field[5]:
                continue
            with open(field[5], "rb") as file:
                if file.read(4) == b"\x7fELF":
                    found[field[5]] = int(field[0].split("-")[0], 16) - int(LOAD.search(readelf("-l", field[5]))[1], 16)
    return found


def words_of(pid):
    """(object, address, name): the word, of all relocations that name a symbol."""
    found = {}
    with open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for path, base in objects_of(pid).items():
            for at, name in RELOCATION.findall(readelf("-r", path)):
                memory.seek(base + int(at, 16))
                found[(path, int(at, 16), name)] = int.from_bytes(memory.read(8), "little")
    return found


def is_bound_since(pid, at, before, after):
    """The loader has bound the word at a first call, of the thread that loads the library for one: it led
    to the object's own stub, and leads to the function that has its name (AArch64's C library binds its own
    malloc and free so)."""
    objects = objects_of(pid)
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        own = [line.split()[0].split("-") for line in maps if line.split()[-1] == at[0]]
    if not any(int(start, 16) <= before < int(end, 16) for start, end in own):
        return False
    return any(name == at[2] and base + int(value, 16) == after for path, base in objects.items()
               for value, name in SYMBOL.findall(readelf("--dyn-syms", path)))


def ours(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        ends = [line.split()[0].split("-") for line in maps if "libmemtrace" in line and " r-xp " in line]
    return [int(end, 16) for end in ends[0]]


def redis():
    """As Debian has it, with jemalloc. One program under two names."""
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if program is None:
        return None
    process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", ""],
                               executable=program, cwd=FOLDER, env=clean_environment(), stdout=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(os.path.join(FOLDER, "redis.sock")), "redis-server listens")
    return process


def reading(name, *command):
    """A program that reads its standard input, as soon as it does."""
    program = shutil.which(name)
    if program is None:
        return None
    process = subprocess.Popen([os.path.realpath(program), *command], cwd=FOLDER, stdin=subprocess.PIPE,
                               env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def reads():
        with open("/proc/%d/syscall" % process.pid, encoding="ascii") as file:
            return file.read().split()[:2] == [str(CALLS["read"]), "0x0"]
    wait_until(reads, name + " reads")
    return process


def lazy():
    """What is bound at the first call only, most of which comes after."""
    return Subject(build(source("known.c"), flags=["-Wl,-z,lazy"]), "counts").process


PROGRAMS = {
    "redis-server": redis,
    "python3": lambda: reading(sys.executable, "-c", "import json, hashlib, ssl, sys; sys.stdin.readline()"),
    "perl": lambda: reading("perl", "-e", "use POSIX; <STDIN>"),
    "bash": lambda: reading("bash", "-c", "read line"),
    "sqlite3": lambda: reading("sqlite3"),
    "lazily bound": lazy,
}


def test_words():
    for name, start in PROGRAMS.items():
        process = start()
        if process is None:
            continue
        before = words_of(process.pid)
        for turn in range(2):
            attach(process.pid)
            low, high = ours(process.pid)
            while_attached = words_of(process.pid)
            led = [at for at, word in while_attached.items() if low <= word < high]
            if len(led) < 6 or not any("/libc.so" in at[0] for at in led):
                fail(name, "only these words lead to us:", led)
            detach(process.pid)
            after = words_of(process.pid)
            # An object that was loaded meanwhile, for a name of its user's, was not there before.
            equal({at: (before[at], after.get(at)) for at in before if after.get(at) != before[at] and
                   not is_bound_since(process.pid, at, before[at], after.get(at))}, {}, name, turn)
            equal([at for at, word in after.items() if low <= word < high], [], name, "words that lead to us")
        print(name, len(before), "words,", len(led), "of them led")
        process.kill()
        process.communicate()


# --- instructions ---------------------------------------------------------------------------------

SEIZE, INTERRUPT, SINGLESTEP, PEEKUSER, DETACH = 0x4206, 0x4207, 9, 3, 17
RIP, WALL = 16 * 8, 0x40000000
PAIRS = 40


class Steps:
    """A thread that is run instruction by instruction."""

    def __init__(self, tid):
        self.tid = tid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long
        self.ask(SEIZE)
        self.ask(INTERRUPT)
        os.waitpid(tid, WALL)

    def ask(self, what, at=None):
        result = self.libc.ptrace(what, self.tid, at, None)
        if result == -1 and what != PEEKUSER:
            raise OSError(ctypes.get_errno(), "ptrace")
        return result

    def step(self):
        """Where it goes on."""
        self.ask(SINGLESTEP)
        os.waitpid(self.tid, WALL)
        return self.ask(PEEKUSER, RIP)

    def end(self):
        self.ask(DETACH)


def function(program, name, pid):
    """Where it lies in the process."""
    for line in subprocess.run(["nm", program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        if line.split()[-1] == name:
            with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
                return int(next(maps).split("-")[0], 16) + int(line.split()[0], 16)
    return fail("no", name)


def instructions(pid, place):
    """Of a pair: from one call of the function to the next, of the thread in the loop. Those that are not as
    the others look at the clock, or were interrupted."""
    steps = Steps(next(int(tid) for tid in os.listdir("/proc/%d/task" % pid) if int(tid) != pid))
    counts = []
    for _ in range(PAIRS + 1):
        count = 1
        while steps.step() != place:
            count += 1
        counts.append(count)
    steps.end()
    return sorted(counts[1:])


def test_instructions():
    program = build(source("known.c"), flags=["-pthread"])
    subject = Subject(program, "busy", 1)
    place = function(program, "take", subject.pid)
    bare = instructions(subject.pid, place)
    for _ in range(2):
        attach(subject.pid)
        attached = instructions(subject.pid, place)
        detach(subject.pid)
        after = instructions(subject.pid, place)
        print("a pair:", bare[PAIRS // 2], "instructions bare,", attached[PAIRS // 2], "attached,",
              after[PAIRS // 2], "after")
        equal(after, bare, "instructions of each pair")
        if attached[PAIRS // 2] < bare[PAIRS // 2] + 50:
            fail("attached they are", attached, "but", bare, "bare")
    subject.say()
    subject.hear(b"done\n")
    subject.say()
    subject.end(b"end\n", 3)


# --- memory ---------------------------------------------------------------------------------------

def test_flat(turns=200):
    """Counted each time, and memory is what it was after the first few."""
    subject = Subject(build(source("known.c")), "rounds")
    sizes = []
    for turn in range(int(turns)):
        attach(subject.pid)
        subject.say()
        subject.hear(b"done\n")
        equal(held(report(str(subject.pid), SETTINGS), 1001), (1000, 400), "turn", turn)
        os.unlink(detach(subject.pid))
        sizes.append((mapped(subject.pid), resident(subject.pid)))
    print("mappings and resident bytes after 10 times", sizes[9], "and after", turns, sizes[-1])
    if sizes[-1][0] > sizes[9][0] + 4 or sizes[-1][1] > sizes[9][1] + (128 << 10):
        fail("grows", sizes)
    ended(subject)


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]](*sys.argv[2:])
    finish()
