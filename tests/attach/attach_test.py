# SPDX-License-Identifier: MIT
"""attach_test.py CASE: `memtrace attach` and `detach` on programs that run already: what is counted,
by arithmetic; that the programs notice nothing; each refusal; and a command that is killed."""

import ctypes
import errno
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (LIBRARY, MEMTRACE, SUBJECTS, build, clean_environment, equal, execute, fail, finish,  # noqa: E402
                     report, scratch, skip, wait_until)

FOLDER = scratch()
REGIONS = scratch(where="/dev/shm")
SETTINGS = {"MEMTRACE_REGION_DIR": REGIONS}


def memtrace(*arguments, **more):
    return execute([MEMTRACE, *map(str, arguments)], clean_environment(**SETTINGS), FOLDER, **more)


def source(name):
    return os.path.join(HERE, name)


class Subject:
    """A program that is started without MemTrace, and says "ready"."""

    def __init__(self, *command, ready=True, environment=None):
        self.process = subprocess.Popen(list(map(str, command)), cwd=FOLDER, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment or clean_environment())
        self.pid = self.process.pid
        if ready:
            equal(self.process.stdout.readline(), b"ready\n", command)

    def say(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def hear(self, line, *what):
        equal(self.process.stdout.readline(), line, "what the program says", *what)

    def rounds(self, count=1):
        """It does its work so often (known.c, filtered.c)."""
        for _ in range(count):
            self.say()
            self.hear(b"done\n")

    def close(self, out, status):
        """It has nothing more to read, and ends."""
        self.process.stdin.close()
        self.process.stdin = None
        self.end(out, status)

    def end(self, out, status):
        """It ends by itself, having said just that, and nothing on stderr."""
        try:
            got = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            fail("process", self.pid, "hangs")
            self.process.kill()
            return
        equal((*got, self.process.returncode), (out, b"", status), "the program's end")


# System calls by which a program waits, as /proc/PID/syscall tells them.
CALLS = {"x86_64": {"read": 0, "poll": 7, "recv": 45, "wait": 61, "join": 202, "nanosleep": 230, "epoll": 232, "select": 270,
                    "sigsuspend": 130, "sigwait": 128, "sigwaitinfo": 128, "sigtimed": 128, "flock": 73, "lock": 72,
                    "msgrcv": 70, "semop": 65, "semtimed": 220, "write": 1, "send": 44, "fifo": 257, "inotify": 0, "handler": 0},
         "aarch64": {"read": 63, "poll": 73, "recv": 207, "wait": 260, "join": 98, "nanosleep": 115, "epoll": 22,
                     "select": 72, "sigsuspend": 133, "sigwait": 137, "sigwaitinfo": 137, "sigtimed": 137, "flock": 32,
                     "lock": 25, "msgrcv": 188, "semop": 193, "semtimed": 192, "write": 64, "send": 206, "fifo": 56,
                     "inotify": 63, "handler": 63}}[os.uname().machine]
# The C library may make semop of semtimedop.
ALSO = {"semop": str(CALLS["semtimed"])}


def asleep(subject, call):
    """Waits until the main thread sleeps in the call."""
    def is_there():
        with open("/proc/%d/syscall" % subject.pid, encoding="ascii") as file:
            return file.read().split()[0] in (str(CALLS[call]), ALSO.get(call))
    wait_until(is_there, "process %d sleeps in %s" % (subject.pid, call))
    return subject


def sleeper():
    """The shell's sleep, which does so by now."""
    return asleep(Subject("sleep", 600, ready=False), "nanosleep")


def wait_status(subject, name, value):
    """Waits for this line of /proc/PID/status."""
    def is_so():
        with open("/proc/%d/status" % subject.pid, encoding="utf-8") as file:
            return re.search(r"^%s:\s+%s" % (name, value), file.read(), re.MULTILINE)
    wait_until(is_so, "process %d: %s %s" % (subject.pid, name, value))


def need_ptrace():
    """Where containers forbid it there is nothing to test."""
    subject = Subject(build(source("known.c")), "counts")
    done = memtrace("attach", "--dry-run", subject.pid)
    subject.process.kill()
    subject.process.wait()
    if done.returncode != 0:
        skip(done.stderr.decode().strip())


def attach(pid, *options):
    done = memtrace("attach", pid, *options)
    equal((done.returncode, done.stderr), (0, b""), "attach", options)
    return done.stdout.decode()


def detach(pid):
    """The profile's path."""
    done = memtrace("detach", pid)
    equal((done.returncode, done.stderr), (0, b""), "detach")
    return done.stdout.decode().strip().rpartition("profile ")[2]


def held(data, size):
    """Allocations and frees of blocks of this size."""
    found = [context for context in data["contexts"] if context["allocations"] != 0 and
             context["total_bytes"] == size * context["allocations"]]
    return (sum(context["allocations"] for context in found), sum(context["frees"] for context in found))


def test_counts():
    subject = Subject(build(source("known.c")), "counts")
    attach(subject.pid)
    subject.rounds()
    equal(held(report(str(subject.pid), SETTINGS), 1001), (1000, 400), "while attached")
    profile = detach(subject.pid)
    data = report(profile)
    equal(held(data, 1001), (1000, 400), "after it")
    equal(held(data, 5009), (0, 0), "blocks from before")
    text = memtrace("report", profile).stdout.decode()
    for words, is_there in (("detached from after", True), ("live then", True), ("Live: held when the program was detached", True),
                            ("eaked", False), ("never freed", False)):
        equal(words in text, is_there, words, text)
    equal(data["process"]["end"], "detached", "JSON")
    equal([context["frames"][0]["function"] for context in data["contexts"]
           if context["total_bytes"] == 1001000], ["take"], "the path")
    subject.say()
    subject.end(b"end\n", 3)


def test_folder_gone():
    """A profile that cannot be written where it belongs: refused before, elsewhere after; and not taken for the next."""
    subject = Subject(build(source("known.c")), "rounds")
    folder, elsewhere = os.path.join(FOLDER, "gone"), scratch()
    done = memtrace("attach", subject.pid, "-o", os.path.join(folder, "x.mtp"))
    equal((done.returncode, b"No such file or directory" in done.stderr), (2, True), "no folder", done.stderr)
    os.mkdir(folder)
    attach(subject.pid, "-o", os.path.join(folder, "x.mtp"))
    subject.rounds()
    os.rmdir(folder)
    done = execute([MEMTRACE, "detach", str(subject.pid)], clean_environment(**SETTINGS, TMPDIR=elsewhere), FOLDER)
    profile = os.path.join(elsewhere, "x.mtp")
    equal((done.returncode, done.stderr.count(b"\n"), b"No such file or directory" in done.stderr,
           done.stdout.decode().strip().rpartition("profile ")[2]), (0, 1, True, profile), "the folder is gone", done.stderr)
    equal((held(report(profile), 1001), os.listdir(REGIONS)), ((1000, 400), []), "elsewhere")
    attach(subject.pid, "-o", "next.mtp")
    subject.rounds()
    data = report(str(subject.pid), SETTINGS)
    equal((data["process"]["end"], held(data, 1001)), ("running", (1000, 400)), "attached to again")
    equal(detach(subject.pid), os.path.join(FOLDER, "next.mtp"), "the next")
    equal(held(report(os.path.join(FOLDER, "next.mtp")), 1001), (1000, 400), "the next")
    subject.close(b"end\n", 3)


def numbers(subject):
    """What the program says after a step: blocks and bytes gone, given out now, allocated since."""
    subject.say()
    return map(int, subject.process.stdout.readline().split())


def near(got, right, what):
    """Within 2 per cent."""
    if abs(got - right) > 0.02 * right:
        fail(what, got, "for", right)


def left_of(data):
    """Bytes, freed bytes and frees of what was there before; by its own entry and by the call path."""
    path = [context for context in data["contexts"] if context["frames"] and
            context["frames"][0]["function"] == "[before attach]"]
    equal([(context["live_bytes"], context["frees"], context["allocations"]) for context in path],
          [(data["before_bytes"], data["before_frees"], 0)], "the call path")
    return data["before_bytes"], data["before_freed_bytes"], data["before_frees"]


# What lies in the caches of threads counts as given out there.
PLAIN = {**clean_environment(), "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def test_before():
    """What is left of the heap that was there: its bytes as the C library counts them, and each block
    that goes, by free and by realloc, in several arenas."""
    for threads in (1, 4):
        subject = Subject(build(source("before.c"), flags=["-pthread"]), threads, environment=PLAIN)
        attach(subject.pid)
        at_first = sum(left_of(report(str(subject.pid), SETTINGS))[:2])
        for step in range(5):  # the fourth ends nothing, the fifth neither
            gone, gone_bytes, now, new_bytes = numbers(subject)
            data = report(str(subject.pid), SETTINGS)
            left, freed_bytes, frees = left_of(data)
            equal((frees, freed_bytes, left + freed_bytes), (gone, gone_bytes, at_first), "step", step)
            equal(frees, 500 * threads * min(step + 1, 3), "step", step)
            near(data["live_bytes"], now, "live")
            equal((data["live_bytes"], data["live_blocks"]), (left + new_bytes, data["allocations"]),
                  "old and new", step)
        near(at_first, now + gone_bytes - new_bytes, "at first")
        if data["peak_bytes"] < at_first:
            fail("held at most", data["peak_bytes"], "but", at_first, "from the start")
        if max(point["live_bytes"] for point in data["timeline"]) < at_first:
            fail("over time", data["timeline"], "but", at_first, "from the start")
        profile = detach(subject.pid)
        equal(left_of(report(profile)), (left, freed_bytes, frees), "in the profile")
        rows = memtrace("query", profile, "SELECT live_bytes, frees FROM contexts WHERE function = '[before attach]'",
                        "--format", "csv")
        equal(rows.stdout.decode().split()[1:], ["%d,%d" % (left, frees)], "SQL")
        exported = memtrace("export", "--format", "folded", "--cost", "leaked", profile)
        equal([line.split()[-1] for line in exported.stdout.decode().splitlines()
               if line.startswith("[before attach] ")], [str(left)], "exported")
        ended(subject)


def test_before_again():
    """Attached to anew it is what is there then, what the last time had counted among it. Once the mode
    was changed it is not followed any more, and says so; and of a sample it is not told at all."""
    subject = Subject(build(source("before.c"), flags=["-pthread"]), 1, environment=PLAIN)
    attach(subject.pid)
    _, _, now, _ = numbers(subject)
    detach(subject.pid)
    attach(subject.pid)
    left, *gone = left_of(report(str(subject.pid), SETTINGS))
    near(left, now, "anew")
    equal(gone, [0, 0], "anew")
    seen = []
    for mode in ("off", "on"):  # which it follows when it allocates next, in the first of these two steps
        equal(memtrace("control", subject.pid, mode).returncode, 0, mode)
        list(numbers(subject))
        data = report(str(subject.pid), SETTINGS)
        equal(data["before_followed"], False, mode)
        seen.append(left_of(data))
    equal((seen[0][2], seen[1]), (1, seen[0]), "after a change of mode")
    detach(subject.pid)
    attach(subject.pid, "--sample", "64K")
    equal("before_bytes" in report(str(subject.pid), SETTINGS), False, "of a sample")
    ended(subject)


def test_threads():
    """Each of the threads was there before."""
    subject = Subject(build(source("known.c")), "threads", 8)
    attach(subject.pid)
    subject.rounds()
    data = report(detach(subject.pid))
    equal(held(data, 2003), (80000, 80000), "what eight threads did")
    subject.say()
    subject.end(b"end\n", 3)


def test_sleeping():
    """The shell's sleep, which allocates nothing, sleeps on."""
    subject = sleeper()
    attach(subject.pid)
    detach(subject.pid)
    equal(subject.process.poll(), None, "it sleeps on")
    subject.process.terminate()
    subject.end(b"", -signal.SIGTERM)


def test_calls():
    """A call that is slept in returns what it would have, and not early; also where the frame of a signal that was
    handled before is on the stack yet."""
    results = {"wait": "7 0", "read": "1 0", "recv": "1 0", "sigsuspend": "-1 %d" % errno.EINTR,
               "sigwait": "%d 0" % signal.SIGUSR2, "sigwaitinfo": "%d 0" % signal.SIGUSR2, "sigtimed": "-1 %d" % errno.EAGAIN,
               "msgrcv": "1 0", "semtimed": "-1 %d" % errno.EAGAIN, "write": "4096 0", "send": "4096 0", "inotify": "1 0",
               "handler": "-1 %d" % errno.EINTR}
    timed = ("nanosleep", "poll", "select", "epoll", "sigtimed", "semtimed")
    program = build(source("asleep.c"))
    for call in CALLS:
        subject = asleep(Subject(program, call), call)
        begun = time.monotonic()
        attach(subject.pid)
        if time.monotonic() - begun > 5:
            fail(call, "took", time.monotonic() - begun, "seconds")
        detach(subject.pid)
        if call not in timed:
            subject.say()
        subject.hear(("%s good\n" % results.get(call, "0 0")).encode(), call)
        subject.say()
        subject.end(b"", 0)


def test_in_heap():
    """A thread that sleeps where a function of the C library's heap has called it, which may have a lock, is not led
    from there, but as soon as it is out of it."""
    subject = Subject(build(source("asleep.c")), "heap")
    wait_status(subject, "State", "S")
    command = subprocess.Popen([MEMTRACE, "attach", str(subject.pid)], cwd=FOLDER, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=clean_environment(**SETTINGS))
    try:
        fail("in malloc_info:", *command.communicate(timeout=1))
    except subprocess.TimeoutExpired:
        pass
    subject.say()
    subject.hear(b"0 0 good\n")
    _, err = command.communicate(timeout=60)
    equal((command.returncode, err), (0, b""), "attach")
    detach(subject.pid)
    subject.say()
    subject.end(b"", 0)


VFORKS = """#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main() {
    int status = 0;
    for (int i = 0; i < 60; i++) {
        pid_t child = vfork();
        if (child == 0) {
            sleep(1);
            _exit(7);
        }
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) {
            return 1;
        }
        free(malloc(100));
    }
}"""


def test_vfork():
    """A program that does nothing but wait for vfork, where it hears nothing: it is waited for, and led from where it
    comes out of it. That thread is not said to have been held meanwhile."""
    subject = Subject(compiled(VFORKS, "-O1"), ready=False)
    for _ in range(2):
        held_ms = float(re.search(r"held for ([0-9.]+) ms", attach(subject.pid))[1])
        detach(subject.pid)
        if held_ms > 500:
            fail("held for", held_ms)
    equal(subject.process.poll(), None, "it goes on")
    ended(subject)


def test_raw_calls():
    """Who has come to sleep in syscall(), which is ours while it is attached to, is let go there, too."""
    subject = Subject(build(source("cycled.c")), "asleep", "nanosleep")
    for _ in range(3):
        attach(subject.pid)
        time.sleep(0.1)  # it has made that call anew, five times
        detach(subject.pid)
    subject.say()
    subject.end(b"end\n", 3)


def test_python():
    """A large program that computes: the output is as without us."""
    program = "print('ready', flush=True)\n" \
              "import hashlib, select, sys\n" \
              "while True:\n" \
              "    text = ','.join(str(i * i) for i in range(3000))\n" \
              "    if select.select([sys.stdin], [], [], 0)[0]:\n" \
              "        break\n" \
              "print(hashlib.sha256(text.encode()).hexdigest())\n"
    bare = subprocess.run([sys.executable, "-c", program], input=b"\n", stdout=subprocess.PIPE, check=True)
    subject = Subject(sys.executable, "-c", program)
    attach(subject.pid)
    wait_until(lambda: report(str(subject.pid), SETTINGS)["allocations"] >= 100, "allocations are counted")
    data = report(detach(subject.pid))
    if data["allocations"] < 100:
        fail("python allocated", data["allocations"])
    subject.say()
    subject.end(bare.stdout.partition(b"\n")[2], 0)


def test_cxx():
    """Threads in a loop of malloc, exceptions through guards, again and again."""
    program = build(source("throwing.cpp"), optimize="-O1")
    for _ in range(10):
        subject = Subject(program, 4)
        attach(subject.pid)
        time.sleep(0.1)
        detach(subject.pid)
        subject.say()
        subject.end(b"good\n", 0)


def test_to_the_end():
    """The program ends while attached: the profile is there, and nothing else is to be seen."""
    subject = Subject(build(source("known.c")), "counts")
    attach(subject.pid, "--output", "own.%p.mtp")
    subject.rounds()
    subject.say()
    subject.end(b"end\n", 3)
    data = report(os.path.join(FOLDER, "own.%d.mtp" % subject.pid))
    equal(held(data, 1001), (1000, 400), "at the end")
    equal(os.listdir(REGIONS), [], "regions")


def test_for_a_time():
    subject = Subject(build(source("known.c")), "busy", 2)
    out = attach(subject.pid, "--for", "300ms")
    profile = out.strip().rpartition("profile ")[2]
    allocations = report(profile)["allocations"]
    if allocations < 1000:
        fail("only", allocations, "allocations in 300 ms")
    subject.rounds()
    subject.say()
    subject.end(b"end\n", 3)


def scheduling(pid):
    """Where it may run, and how it is chosen to."""
    return (os.sched_getaffinity(pid), os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid))


def test_beside():
    """The command runs beside the thread that it holds, and first, while it does that alone. The program
    is chosen to run as ever."""
    subject = Subject(build(source("known.c")), "busy", 4)
    before = scheduling(subject.pid)
    command = subprocess.Popen([MEMTRACE, "attach", str(subject.pid), "--for", "100s"], cwd=FOLDER,
                               env=clean_environment(**SETTINGS), stdout=subprocess.PIPE)
    if not re.match(rb"attached to process \d+, a thread was held for \d+\.\d\d ms", command.stdout.readline()):
        fail("not attached")
    equal(scheduling(command.pid), scheduling(0), "the command")
    equal(scheduling(subject.pid), before, "the program")
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=60)
    equal(command.returncode, 0, "the command's end")
    subject.rounds()
    subject.say()
    subject.end(b"end\n", 3)


def test_sample():
    subject = Subject(build(source("known.c")), "counts")
    attach(subject.pid, "--sample", "1K")
    subject.rounds()
    allocations = report(detach(subject.pid))["allocations"]
    if not 500 < allocations < 1600:  # of 1,000, of which each is seen with a chance of 0.62
        fail("estimated", allocations)
    subject.say()
    subject.end(b"end\n", 3)


def test_mode():
    """--mode: who may read a profile and a recording, less the program's umask; nobody else unless it says so."""
    subject = Subject("sh", "-c", 'umask 002; exec "$0" rounds', build(source("known.c")))
    for options, wanted in (([], 0o600), (["--mode", "0646"], 0o644), (["-r"], 0o600), (["-r", "--mode", "0646"], 0o644)):
        attach(subject.pid, *options)
        subject.rounds()
        path = re.search(r"(?:profile|recording) (.*)", memtrace("detach", subject.pid).stdout.decode()).group(1)
        equal(stat.S_IMODE(os.stat(os.path.join(FOLDER, path)).st_mode), wanted, options, "who may read", path)
    subject.close(b"end\n", 3)


def test_kill():
    """The command is killed at any moment: the program goes on, and gives what it would have."""
    chance = random.Random(7)
    program = build(source("known.c"))
    for turn in range(40):
        subject = Subject(program, "busy", 1 + turn % 3)
        command = subprocess.Popen([MEMTRACE, "attach", str(subject.pid)], cwd=FOLDER,
                                   env=clean_environment(**SETTINGS), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, 0.06))
        command.kill()
        command.wait()
        subject.rounds()
        subject.say()
        subject.end(b"end\n", 3)


def test_record():
    """A recording of what is done while attached, twice, then a profile; the last to the end."""
    subject = Subject(build(source("known.c")), "rounds")
    for turn, options in enumerate((("--record",), ("--record", "-o", "own.%p.mtr"), ())):
        attach(subject.pid, *options)
        subject.rounds()
        done = memtrace("detach", subject.pid)
        equal((done.returncode, done.stderr), (0, b""), "detach")
        kind, path = re.search(r"(profile|recording) (.*)", done.stdout.decode()).groups()
        equal((kind, path.endswith(".mtr")), ("recording", True) if options else ("profile", False), path)
        equal(held(report(path), 1001), (1000, 400), "turn", turn)
        equal(os.listdir(REGIONS), [], "regions")
    equal(os.path.exists(os.path.join(FOLDER, "own.%d.mtr" % subject.pid)), True, "-o")
    attach(subject.pid, "--record", "-o", "end.mtr")
    subject.rounds()
    subject.close(b"end\n", 3)
    end = time.monotonic() + 60
    while os.listdir(REGIONS) and time.monotonic() < end:
        time.sleep(0.05)
    equal(held(report(os.path.join(FOLDER, "end.mtr")), 1001), (1000, 400), "to the end")


STEPS = ("stub", "stopped", "frame", "registers", "led", "waiting", "answer")


def killed_at(step, command, pid):
    """The command, killed there. False: it did not come by, which `waiting` may not."""
    done = execute([MEMTRACE, command, str(pid)], clean_environment(**SETTINGS, MEMTRACE_ATTACH_FAULT=step), FOLDER)
    if step != "waiting" or done.returncode != 0:
        equal((done.returncode, done.stdout, done.stderr), (-signal.SIGKILL, b"", b""), command, "killed at", step)


def until(command, pid, cure):
    """Repeats the command until it is done. Each refusal says why."""
    end = time.monotonic() + 60
    while True:
        done = memtrace(command, pid)
        if done.returncode == 0:
            return done.stdout.decode()
        if not re.search(cure, done.stderr.decode()) or time.monotonic() > end:
            fail(command, "refused:", done.stderr.decode())
            return ""
        time.sleep(0.05)


def test_faults():
    """The command is killed at each of its steps: the program goes on, can be attached to, detached
    from and attached to again, and gives what it would have."""
    for mode in (("rounds",), ("busy", 2)):
        subject = Subject(build(source("known.c")), *mode)
        for step in STEPS:
            killed_at(step, "attach", subject.pid)
            if mode[0] == "rounds":
                subject.rounds()
            if step in STEPS[3:]:  # what was begun is carried through
                until("detach", subject.pid, "is not profiled|another command")
            until("attach", subject.pid, "another command")
            killed_at(step, "detach", subject.pid)
            if mode[0] == "rounds":
                subject.rounds()
            if step in STEPS[:3]:
                detach(subject.pid)
            until("attach", subject.pid, "another command|has MemTrace in it already")
            detach(subject.pid)
        if mode[0] == "busy":
            subject.rounds()
            subject.say()
        else:
            subject.process.stdin.close()
            subject.process.stdin = None
        subject.end(b"end\n", 3)


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) << 10


def mapped(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return len(maps.readlines())


def test_again():
    """Attached to and detached from over and over: each time the counts are those of that time alone,
    and what it costs in memory is given back."""
    subject = Subject(build(source("known.c")), "rounds")
    attach(subject.pid, "--sample", "1")  # which touches a table of the library's for the first time
    detach(subject.pid)
    sizes = []
    for turn in range(8):
        subject.rounds()  # unseen
        attach(subject.pid)
        subject.rounds()
        equal(held(report(detach(subject.pid)), 1001), (1000, 400), "turn", turn)
        sizes.append((mapped(subject.pid), resident(subject.pid)))
    # The C library keeps the stack of a thread that has ended, and of two where one ended late.
    if sizes[-1][0] > sizes[0][0] + 4 or sizes[-1][1] > sizes[0][1] + (128 << 10):
        fail("grows", sizes)
    subject.close(b"end\n", 3)


def test_again_threads():
    """The same of threads in the midst of allocating, each of which was known the last time."""
    subject = Subject(build(source("known.c")), "busy", 4)
    for _ in range(6):
        attach(subject.pid)
        wait_until(lambda: report(str(subject.pid), SETTINGS)["allocations"] >= 100, "something is counted")
        if report(detach(subject.pid))["allocations"] < 100:
            fail("nothing was counted")
    subject.rounds()
    subject.say()
    subject.end(b"end\n", 3)


def test_again_child():
    """What an attached program forked can be attached to itself."""
    program = "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n" \
              "child = os.fork()\nos.write(1, b'%d\\n' % child)\n" \
              "sys.stdin.readline() if child == 0 else os.waitpid(child, 0)\n"
    # Python 3.12 and newer warn of a fork beside threads: attach has one for a moment.
    subject = Subject(sys.executable, "-u", "-W", "ignore", "-c", program)
    attach(subject.pid)
    subject.say()
    said = {subject.process.stdout.readline().strip() for _ in range(2)} - {b"0"}
    child = int(said.pop())
    for pid in (child, child, subject.pid):
        if pid == child:
            attach(pid)
        detach(pid)
    subject.say()
    subject.end(b"", 0)


def words_of(pid):
    """The words of relocated data of all objects but ours: RELRO and the GOT behind it."""
    found = {}
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        mappings = [line.split() for line in maps]
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for mapping in mappings:
            path = mapping[5] if len(mapping) > 5 else ""
            if not path.startswith("/") or "libmemtrace" in path or mapping[1][0] != "r" or "x" in mapping[1] \
                    or mapping[2] == "00000000":
                continue
            start, end = (int(part, 16) for part in mapping[0].split("-"))
            memory.seek(start)
            data = memory.read(end - start)
            found.update({start + at: data[at:at + 8] for at in range(0, len(data), 8)})
    return found


def leads(words, low, high):
    return {at for at, word in words.items() if low <= int.from_bytes(word, "little") < high}


def words_that_lead_to_us(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        code = [line.split()[0].split("-") for line in maps if "libmemtrace" in line and " r-xp " in line]
    low, high = (int(end, 16) for end in code[0])
    changed = leads(words_of(pid), low, high)
    if len(changed) < 6:
        fail("only", len(changed), "words lead to us")
    return changed


def test_words():
    """While attached words lead to the library; after detach none does, and those are what they were:
    the first time and again."""
    for environment in (None, {**clean_environment(), "LD_BIND_NOW": "1"}):
        subject = Subject(build(source("known.c"), flags=["-Wl,-z,lazy"]), "counts", environment=environment)
        before = words_of(subject.pid)
        for _ in range(2):
            attach(subject.pid)
            changed = words_that_lead_to_us(subject.pid)
            detach(subject.pid)
            after = words_of(subject.pid)
            equal({at: after[at] for at in changed}, {at: before[at] for at in changed}, "the words")
        subject.rounds()
        subject.say()
        subject.end(b"end\n", 3)


def refused(pid, *words, command="attach", run=memtrace):
    done = run(command, pid)
    equal((done.returncode, done.stdout, done.stderr.count(b"\n")), (1, b"", 1), command, words)
    for word in words:
        if word not in done.stderr.decode():
            fail("no", word, "in", done.stderr.decode())


def compiled(text, *flags):
    program = os.path.join(scratch(), "program")
    done = subprocess.run(["gcc", "-x", "c", "-w", "-", "-o", program, *flags], input=text.encode(),
                          stderr=subprocess.PIPE, check=False)
    return program if done.returncode == 0 else None


def ended(subject):
    subject.process.kill()
    subject.process.wait()


def test_refusals():
    """Each has its line, with the cure; the program is as it was."""
    subject = sleeper()
    refused(subject.pid, "is not profiled: nothing to detach from", command="detach")
    subject.process.send_signal(signal.SIGSTOP)
    wait_status(subject, "State", "T")
    refused(subject.pid, "is stopped: first kill -CONT %d" % subject.pid)
    subject.process.send_signal(signal.SIGCONT)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    equal(libc.ptrace(0x4206, subject.pid, None, None), 0, "PTRACE_SEIZE")
    refused(subject.pid, "is traced by process %d" % os.getpid(), "end that first")
    ended(subject)
    refused(subject.pid, "there is no process")
    zombie = Subject("true", ready=False)
    wait_status(zombie, "State", "Z")
    refused(zombie.pid, "has ended")
    zombie.process.wait()
    sleeps = "#include <unistd.h>\nint main() { sleep(600); }"
    static = compiled(sleeps, "-static")
    if static:
        subject = asleep(Subject(static, ready=False), "nanosleep")
        refused(subject.pid, "is statically linked", "memtrace_instrument")
        ended(subject)
    other = compiled(sleeps, "-m32")
    if other:
        subject = Subject(other, ready=False)
        refused(subject.pid, "is a 32-bit program")
        ended(subject)
    subject = Subject(MEMTRACE, "run", "--", build(source("known.c")), "counts")
    with open("/proc/%d/task/%d/children" % (subject.pid, subject.pid), encoding="utf-8") as children:
        child = int(children.read().split()[0])
    refused(child, "has MemTrace in it already")
    refused(child, "has had MemTrace from its start", command="detach")
    ended(subject)
    subject = Subject(build(source("known.c")), "counts")
    attach(subject.pid)
    refused(subject.pid, "has MemTrace in it already")
    detach(subject.pid)
    refused(subject.pid, "is not profiled: it was detached from", command="detach")
    ended(subject)
    test_other_user()


def test_other_user():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return
    folder = scratch(where="/tmp")
    os.chmod(folder, 0o755)
    os.makedirs(os.path.join(folder, "bin"))
    os.makedirs(os.path.join(folder, "lib"))
    shutil.copy(MEMTRACE, os.path.join(folder, "bin"))
    shutil.copy(LIBRARY, os.path.join(folder, "lib"))
    for place, _, files in os.walk(folder):
        for file in (".", *files):
            os.chmod(os.path.join(place, file), 0o755)
    subject = sleeper()
    refused(subject.pid, "is another user's", run=lambda command, pid: execute(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
         os.path.join(folder, "bin", "memtrace"), command, str(pid)], clean_environment(), "/"))
    ended(subject)


def test_usage():
    for arguments, words in (((), "a process id is needed"), (("x",), "'x' is not a process id"),
                             (("1", "x"), "'x' is not a process id"), (("1", "--mode", "9"), "--mode")):
        for command in ("attach", "detach"):
            done = memtrace(command, *arguments)
            equal(done.returncode, 2, command, arguments)
            if words not in done.stderr.decode():
                fail("no", words, "in", done.stderr.decode())
    out = memtrace("attach", "--dry-run", os.getpid())
    equal((out.returncode, re.sub(r"\d+", "N", out.stdout.decode())),
          (0, "process N can be attached to\n"), "dry run")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        equal("libmemtrace" in maps.read(), False, "after a dry run")


def test_first_use():
    """Led, a thread that a constructor waits for calls anything for the first time, as in tests/loader."""
    loader = os.path.join(os.path.dirname(HERE), "loader")
    program = build(os.path.join(loader, "first_use.c"), "gcc", "-O2", flags=["-I" + SUBJECTS, "-rdynamic"])
    library = build(os.path.join(loader, "still.c"), "gcc", "-O2", shared=True)
    subject = asleep(Subject(program, library, "waits", ready=False), "read")
    attach(subject.pid)
    subject.say()
    subject.end(b"done\n", 3)


def test_lowest():
    """Nothing that is opened on account of attaching takes a number of the program's, for a moment either."""
    subject = Subject(build(source("lowest.c")))
    for verb in ("attach", "detach") * 3:
        done = memtrace(verb, subject.pid)
        equal(done.returncode, 0, verb, done.stderr)
    subject.process.terminate()
    subject.end(b"0 wrong\n", 3)


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]]()
    finish()
