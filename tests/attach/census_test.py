# SPDX-License-Identifier: MIT
"""census_test.py CASE: `memtrace attach PID --census` against heaps whose blocks are known by arithmetic, and
against what the C library says of them; and that the program notices nothing."""

import json
import os
import signal
import sys
import time

from attach_test import (FOLDER, SETTINGS, Subject, attach, build, clean_environment, detach, equal, execute, fail, finish,
                         memtrace, need_ptrace, near, refused, source)
from exact import PROGRAMS, redis
from harness import MEMTRACE

# Of an arena that is not the main one: struct malloc_state and struct _heap_info, which lie in its heap. And of a
# block that has a mapping of its own.
ARENA_BYTES, MAPPED_BYTES = (2160, 24) if os.confstr("CS_GNU_LIBC_VERSION") >= "glibc 2.43" else (2256, 16)


def census(pid):
    done = memtrace("attach", pid, "--census", "--json")
    equal((done.returncode, done.stderr), (0, b""), "census")
    return json.loads(done.stdout)


def adds_up(data):
    """Its sums are those of the C library, to the byte: which counts what lies in caches as given out."""
    used, cached, mapped = data["used"], data["free_cached"], data["mapped"]
    arenas = used["bytes"] - mapped["bytes"] + 8 * (used["blocks"] - mapped["blocks"]) + \
        cached["bytes"] + 8 * cached["blocks"] + ARENA_BYTES * (data["arenas"] - 1)
    equal((arenas, mapped["blocks"], mapped["bytes"] + MAPPED_BYTES * mapped["blocks"]),
          (data["mallinfo_arena_bytes"], data["mallinfo_mapped_blocks"], data["mallinfo_mapped_bytes"]),
          "as mallinfo2 has it")
    for name in ("sizes", "classes"):
        total = sum(item["bytes"] for item in data[name])
        if total > used["bytes"] or (name == "sizes" and total != used["bytes"]):
            fail("the sum of", name, total, "of", used["bytes"])


def test_counts():
    """Each size and each class, in one arena and in several; profiled or not."""
    program = build(source("census.cpp"), flags=["-pthread"])
    for threads in (1, 4):
        subject = Subject(program, threads)
        known = json.loads(subject.process.stdout.readline())
        for turn in range(3):
            data = census(subject.pid)
            adds_up(data)
            blocks = known["blocks"] + 1000  # and 1,000 animals
            if not blocks <= data["used"]["blocks"] <= blocks + 30:
                fail(data["used"]["blocks"], "blocks, of which", blocks, "are known")
            near(data["used"]["bytes"], known["bytes"] + sum(item["bytes"] for item in data["classes"]), "bytes")
            animals = {248: 750, 504: 250}
            for size, count in enumerate(known["sizes"]):
                most = (32 << size) - 8
                found = sum(item["blocks"] for item in data["sizes"] if item["most_bytes"] == most)
                if not count <= found <= count + animals.get(most, 0) + 15:
                    fail(found, "blocks up to", most, "of which", count, "are known")
            equal({item["name"]: item["blocks"] for item in data["classes"] if item["name"].startswith("zoo::")},
                  {"zoo::Dog": 500, "zoo::Box<int>": 250, "zoo::Box<double>": 250}, "classes")
            equal([item["bytes"] for item in data["classes"] if item["name"] == "zoo::Dog"], [known["dog_bytes"]],
                  "bytes of a class")
            if data["free"]["blocks"] < 500 or data["free_cached"]["blocks"] < 50:
                fail("free blocks are", data["free"], data["free_cached"])
            if turn == 0:
                text = memtrace("attach", subject.pid, "--census").stdout.decode()
                if "zoo::Dog" not in text or "By size" not in text:
                    fail("the text:", text)
                attach(subject.pid)
            elif turn == 1:
                detach(subject.pid)
        subject.say()
        subject.end(b"4\n", 3)


def test_programs():
    """Other people's; of redis-server, which has jemalloc, it says so."""
    for name, start in PROGRAMS.items():
        process = start()
        if process is None:
            continue
        if start is redis:
            refused(process.pid, "another allocator than glibc's",
                    run=lambda command, pid: memtrace(command, pid, "--census"))
        else:
            adds_up(census(process.pid))
        process.kill()
        process.communicate()


def test_busy():
    """Threads that allocate all the time: what is caught in the midst of a call is looked at again."""
    subject = Subject(build(source("known.c"), flags=["-pthread"]), "busy", 3)
    for _ in range(8):
        data = census(subject.pid)
        if not 1 <= data["used"]["blocks"] <= 200:
            fail(data["used"], "of three threads with a block each")
    subject.say()
    subject.hear(b"done\n")
    subject.say()
    subject.end(b"end\n", 3)


UNSEEN = """
import os, signal, sys
signals = []
signal.signal(signal.SIGCHLD, lambda *_: signals.append(1))
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.close(writer)
    os.read(reader, 1)
    os._exit(7)
print("ready", flush=True)
sys.stdin.readline()
os.close(writer)  # the child sees it only if nobody else holds it
print(os.wait() == (child, 7 << 8), len(signals), flush=True)
try:
    os.wait()
except ChildProcessError:
    print("no other", flush=True)
"""


def test_unseen():
    """The copy is no child that the program waits for or hears of, and holds nothing of its."""
    subject = Subject(sys.executable, "-c", UNSEEN)
    adds_up(census(subject.pid))
    with open("/proc/%d/task/%d/children" % (subject.pid, subject.pid), encoding="ascii") as children:
        equal(len(children.read().split()), 1, "children")
    subject.say()
    subject.end(b"True 1\nno other\n", 0)


def test_killed():
    """A command that is killed while its copy is there, looked at or not yet, keeps nobody out."""
    subject = Subject(build(source("known.c")), "rounds")
    for step in ("copy", "copied"):
        done = execute([MEMTRACE, "attach", str(subject.pid), "--census"],
                       clean_environment(**SETTINGS, MEMTRACE_ATTACH_FAULT=step), FOLDER)
        equal((done.returncode, done.stderr), (-signal.SIGKILL, b""), "killed at", step)
        begun = time.monotonic()
        attach(subject.pid)
        if time.monotonic() - begun > 20:  # instead of 60
            fail("after", step, "it took", time.monotonic() - begun, "seconds")
        detach(subject.pid)
        adds_up(census(subject.pid))
    subject.close(b"end\n", 3)


def test_usage():
    done = memtrace("attach", os.getpid(), "--json")
    equal((done.returncode, b"--json goes with --census" in done.stderr), (2, True), "--json alone")


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]]()
    finish()
