# SPDX-License-Identifier: MIT
"""exec_test.py CASE [COUNT]: `memtrace attach` on programs that replace themselves by exec meanwhile: nothing is
written to the new program, no thread of it is led anywhere, and the command says in one line what happened.

CASE: steps: the exec comes at each step of the command. census: the same of --census.
random: at any moment, COUNT times (default: 40): wrappers that exec once, programs that do all the time, at addresses
that are random or not, from the first thread or another one. In a line at the end: how many ended as without MemTrace,
how many were attached to, and how many could not be since they replaced themselves. For the table of docs/attach.md:

    TEST_BUILD=build python3 tests/attach/exec_test.py random 2000
"""

import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys

from attach_test import (FOLDER, SETTINGS, Subject, build, clean_environment, equal, fail, finish, memtrace, need_ptrace,
                         source, wait_status)
from harness import MEMTRACE

MEANWHILE = "memtrace: process N replaced itself by exec meanwhile: try again\n"


def programs(pie):
    """Two, whose code lies elsewhere and is another one."""
    flags = ["-pthread"] + (["-fPIE", "-pie"] if pie else ["-fno-pie", "-no-pie"])
    first = build(source("replaced.c"), flags=flags)
    return [first, build(source("replaced.c"), flags=[*flags, "-Wl,-z,separate-code", "-falign-functions=512"])]


def stopped_at(step, pid, *options):
    """The command, which stands there."""
    command = subprocess.Popen([MEMTRACE, "attach", str(pid), *options], cwd=FOLDER, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=clean_environment(**SETTINGS, MEMTRACE_ATTACH_STOP=step))
    wait_status(command, "State", "T")
    return command


def replaced_at(step, files, mode, *options):
    subject = Subject(files[0], 1, 0, mode, files[1], files[0])
    command = stopped_at(step, subject.pid, *options)
    subject.say()
    subject.hear(b"ready\n", step)
    command.send_signal(signal.SIGCONT)
    out, err = command.communicate(timeout=60)
    equal((command.returncode, out, re.sub("[0-9]+", "N", err.decode())), (1, b"", MEANWHILE), step, mode, options)
    subject.say()
    subject.end(b"whole\n", 7)


def test_steps():
    for pie in (False, True):
        files = programs(pie)
        for step in ("opened", "stub", "looked", "waiting"):
            replaced_at(step, files, "main")
    replaced_at("looked", files, "thread")


def test_census():
    for step in ("opened", "stub", "looked"):
        replaced_at(step, programs(False), "main", "--census")


def said(done):
    """What the command has said, without what differs from one time to the next."""
    line = (done.stdout + done.stderr).decode()
    for what, pattern in (("attached", "attached to process [^\n]*\n"), ("census", "Heap of process .*"),
                          ("replaced", re.escape(MEANWHILE).replace("N", "[0-9]+")),
                          ("ended", "memtrace: (there is no process|process) [0-9]+( has ended;[^\n]*| ended meanwhile)?\n")):
        if re.fullmatch(pattern, line, re.DOTALL):
            return what
    return line


def test_random(count=40):
    chance = random.Random(7)
    files = {pie: programs(pie) for pie in (False, True)}
    wrapper = "sleep 0.0%d; exec %s 0 %d main x"
    seen = collections.Counter()
    whole = 0
    fixed = ["setarch", "-R"] if shutil.which("setarch") and not subprocess.call(["setarch", "-R", "true"]) else []
    for turn in range(int(count)):
        pair = files[turn % 2 == 0]
        mode = "thread" if turn % 5 == 4 else "main"
        command = (["sh", "-c", wrapper % (chance.randrange(9), pair[0], chance.randrange(100000, 200000))],
                   [pair[0], 1, chance.randrange(1, 60000), mode, pair[1], pair[0]],
                   [*fixed, pair[0], 20, chance.randrange(1, 6000), mode, *pair[::-1]])[turn // 2 % 3]
        subject = Subject(*command, ready=False)
        if chance.randrange(2):
            wait_status(subject, "State", "[SRZ]")
        seen[said(memtrace("attach", subject.pid, *(["--census"] if turn % 7 == 6 else [])))] += 1
        got = (*subject.process.communicate(timeout=60), subject.process.returncode)
        whole += got == (b"whole\n", b"", 7)
        if got != (b"whole\n", b"", 7):
            fail("turn", turn, command, "ended with", got)
    for line in set(seen) - {"attached", "census", "replaced", "ended"}:
        fail("the command said", line)
    print("%d of %d ended as without MemTrace; %s" %
          (whole, int(count), ", ".join("%d %s" % (many, what) for what, many in seen.most_common())))
    if fixed and not seen["replaced"]:
        fail("no program replaced itself just then")


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]](*sys.argv[2:])
    finish()
