# SPDX-License-Identifier: MIT
"""seccomp_test.py CASE: programs under seccomp filters of their own (filtered.c): attached to where the
filters let pass what that takes, refused with the call's name where one would end the program."""

import os
import subprocess
import sys
import zlib

from attach_test import (FOLDER, HERE, MEMTRACE, SETTINGS, Subject, attach, build, clean_environment, detach, ended,
                         equal, execute, finish, held, killed_at, memtrace, need_ptrace, refused, report, skip,
                         until)
from harness import SOURCE

# Of the C library and the kernel on x86-64, as <asm/unistd_64.h> numbers them.
NUMBERS = {"close": 3, "mmap": 9, "mprotect": 10, "rt_sigprocmask": 14, "mincore": 27, "madvise": 28, "nanosleep": 35, "getpid": 39, "kill": 62,
           "fchown": 93, "ptrace": 101, "prctl": 157, "sched_getaffinity": 204, "openat": 257, "fallocate": 285,
           "clone3": 435}


def filtered(*arguments):
    with open(os.path.join(SOURCE, "collect", "attach", "filtercalls.h"), "rb") as calls:
        flags = ["-I" + SOURCE, "-DCALLS=%d" % zlib.crc32(calls.read())]  # built anew where that has changed
    program = build(os.path.join(HERE, "filtered.c"), flags=flags)
    return Subject(program, *arguments)


def attach_and_leave(*arguments, times=2):
    """Counts what a round does, twice, and goes on after it."""
    subject = filtered(*arguments)
    for _ in range(times):
        attach(subject.pid)
        subject.rounds()
        equal(held(report(detach(subject.pid)), 1009), (500, 500), arguments)
    subject.rounds()
    subject.close(b"", 3)


def test_allowed():
    """The filter lets everything pass, or all but what MemTrace does without."""
    attach_and_leave("all")
    attach_and_leave("many")
    attach_and_leave("kill", NUMBERS["ptrace"])
    attach_and_leave("errno", NUMBERS["mincore"])
    attach_and_leave("errno", NUMBERS["clone3"])


def test_asked():
    """What the runtime asks its filter for, it knows by the command alone: these end the program
    otherwise."""
    attach_and_leave("kill", NUMBERS["kill"])
    attach_and_leave("trap", NUMBERS["fchown"])


def test_given():
    """The command is killed when it has given the program the filters: it is attached to, and left."""
    for times in (1, 2):
        subject = filtered("all")
        for _ in range(times):
            killed_at("given", "attach", subject.pid)
            until("detach", subject.pid, "is not profiled|another command")
            subject.rounds()
        attach(subject.pid)
        subject.rounds()
        equal(held(report(detach(subject.pid)), 1009), (500, 500), "attached to again")
        subject.close(b"", 3)


def test_needed():
    """Only the calls of the list are allowed; any other ends the program. To attach again takes more:
    whether no thread is in the library any more is asked of /proc."""
    attach_and_leave("needed", times=1)


def test_refused():
    """Each of these would end the program or the attempt. It is named, and the program goes on."""
    for how, name in (("kill", "mprotect"), ("trap", "openat"), ("errno", "prctl"), ("kill", "madvise"),
                      ("kill", "clone3"), ("errno", "fallocate"), ("thread", "openat"), ("first", "openat")):
        subject = filtered(how, NUMBERS[name])
        refused(subject.pid, "has a seccomp filter that blocks %s" % name, "memtrace run")
        done = memtrace("attach", "--dry-run", subject.pid)
        equal((done.returncode, b"blocks %s" % name.encode() in done.stderr), (1, True), "dry run")
        if how in ("thread", "first"):
            ended(subject)
        elif (how, name) in (("errno", "prctl"), ("errno", "fallocate")):
            subject.rounds()
            subject.close(b"", 3)
        else:
            with open("/proc/%d/status" % subject.pid, encoding="utf-8") as status:
                equal("State:\tZ" in status.read(), False, how, name, "ended by the refusal")
            ended(subject)
    subject = filtered("strict")
    refused(subject.pid, "has a thread in seccomp's strict mode")
    ended(subject)


def test_late():
    """A filter that comes while attached: seen by the runtime, and by the command before it leaves."""
    subject = filtered("late", NUMBERS["kill"])
    attach(subject.pid)
    subject.rounds(2)
    equal(held(report(detach(subject.pid)), 1009), (1000, 1000), "two rounds")
    subject.close(b"", 3)
    subject = filtered("late", NUMBERS["nanosleep"])
    attach(subject.pid)
    subject.rounds()
    refused(subject.pid, "blocks nanosleep, which is needed to detach from it", command="detach")
    subject.rounds()
    subject.close(b"", 3)


def test_unread():
    """Who may not read the filters is told so; --force goes on all the same."""
    bounded = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"]
    if subprocess.run([*bounded, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        skip("no setpriv")

    def without(command, pid, *more):
        return execute([*bounded, MEMTRACE, command, *more, str(pid)], clean_environment(**SETTINGS), FOLDER)
    subject = filtered("all")
    refused(subject.pid, "has a seccomp filter that only root may read", "--force", run=without)
    done = without("attach", subject.pid, "--force")
    equal((done.returncode, done.stderr), (0, b""), "attach --force")
    subject.rounds()
    refused(subject.pid, "only root may read", command="detach", run=without)
    done = without("detach", subject.pid, "--force")
    equal((done.returncode, done.stderr), (0, b""), "detach --force")
    equal(held(report(done.stdout.decode().strip().rpartition("profile ")[2]), 1009), (500, 500), "by force")
    subject.close(b"", 3)


if __name__ == "__main__":
    need_ptrace()
    if os.geteuid() != 0:
        skip("only root may read filters")
    globals()["test_" + sys.argv[1]]()
    finish()
