# SPDX-License-Identifier: MIT
"""several_test.py CASE: several programs in one `memtrace attach` or `detach`, `detach --all`, and
`attach --record --to`: the recording of a program that ran already, on another machine."""

import os
import re
import subprocess
import sys

from attach_test import (HERE, SETTINGS, Subject, attach, build, clean_environment, equal, finish, held,
                         memtrace, need_ptrace, report)
from harness import MEMTRACE, scratch, wait_until


def known(mode="rounds"):
    return Subject(build(os.path.join(HERE, "known.c")), mode)


def files_of(output):
    return re.findall(r"(?:profile|recording) (/.*)", output)


def test_pids():
    """Each is attached to, also behind one that is not there; all are left after the time."""
    first, second = known(), known()
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = memtrace("attach", first.pid, gone.pid, second.pid)
    equal((done.returncode, done.stdout.count(b"attached to"), done.stderr.count(b"\n")), (1, 2, 1), "three")
    for subject in (first, second):
        subject.rounds()
    done = memtrace("detach", first.pid, second.pid)
    equal((done.returncode, done.stderr), (0, b""), "both")
    profiles = files_of(done.stdout.decode())
    equal([held(report(path), 1001) for path in profiles], [(1000, 400)] * 2, "each")
    out = memtrace("attach", first.pid, second.pid, "--for", "200ms", "-o", "for.%p.mtp").stdout.decode()
    equal(len(files_of(out)), 2, "--for")
    for subject in (first, second):
        subject.close(b"end\n", 3)


def test_all():
    """Those that were attached to, not those that had MemTrace from their start. Programs of others that are
    attached to meanwhile would be left, too: so this is asked in processes of our own alone."""
    alone = ("unshare", "-p", "-f", "--mount-proc", "--kill-child", "--", sys.executable, os.path.abspath(__file__), "alone")
    if subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], check=False).returncode:
        print("skipped: unshare is not permitted here")
        sys.exit(77)
    done = subprocess.run(alone, stdout=subprocess.PIPE, text=True, check=False)
    equal((done.returncode, done.stdout), (0, "ok\n"), "in a namespace")


def test_alone():
    first, second = known(), known()
    third = Subject(MEMTRACE, "run", "--", build(os.path.join(HERE, "known.c")), "rounds")
    done = memtrace("detach", "--all")
    equal((done.returncode, done.stdout), (0, b"no process is attached to\n"), "none")
    attach(first.pid)
    attach(second.pid)
    for subject in (first, second):
        subject.rounds()
    done = memtrace("detach", "--all")
    equal((done.returncode, done.stderr, len(files_of(done.stdout.decode()))), (0, b"", 2), "--all")
    equal([held(report(path), 1001) for path in files_of(done.stdout.decode())], [(1000, 400)] * 2, "each")
    equal(memtrace("detach", "--all", first.pid).returncode, 2, "--all and a number")
    for subject in (first, second):
        subject.close(b"end\n", 3)
    third.process.kill()
    third.process.wait()


def test_to():
    """The recording is sent while it grows, and what arrives is what lies here."""
    received = scratch()
    receiver = subprocess.Popen([MEMTRACE, "gather", "--listen", "127.0.0.1:0", received], stderr=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=clean_environment(**SETTINGS), text=True)
    port = re.search(r"127\.0\.0\.1:(\d+)", receiver.stderr.readline())[1]
    subject = known()
    done = memtrace("attach", subject.pid, "--to", "127.0.0.1:" + port)
    equal((done.returncode, b"needs --record" in done.stderr), (2, True), "without --record")
    attach(subject.pid, "--record", "--to", "127.0.0.1:" + port)
    subject.rounds()
    done = memtrace("detach", subject.pid)
    equal((done.returncode, done.stderr), (0, b""), "detach")
    recording = files_of(done.stdout.decode())[0]
    equal(held(report(recording), 1001), (1000, 400), "here")

    def arrived():
        found = [os.path.join(place, name) for place, _, names in os.walk(received) for name in names
                 if name.endswith(".mtr")]
        return [path for path in found if same(path, recording)]
    wait_until(arrived, "the recording is there, byte for byte")
    equal(held(report(arrived()[0]), 1001), (1000, 400), "there")
    receiver.terminate()
    receiver.wait()
    subject.close(b"end\n", 3)


def same(path, other):
    with open(path, "rb") as one, open(other, "rb") as two:
        return one.read() == two.read()


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]]()
    finish()
