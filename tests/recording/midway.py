# SPDX-License-Identifier: MIT
"""midway.py CASE: a program that is only profiled is recorded from the middle of its run, and for a part
of it: `memtrace control PID record` and `record off`. What the recording holds at its beginning and at its end
is what the program itself says that it holds, and its profile is what it would be without."""

import json
import os
import random
import signal
import subprocess
import sys
import time

from recorded import HERE, wait_until
from harness import (MEMTRACE, PRELOAD, build, clean_environment, equal, execute, fail, finish, profiles, report,
                     scratch)
from disk import full_disk


class Subject:
    """A preloaded program that is asked by its standard input."""

    def __init__(self, source, *flags, under=()):
        self.folder, self.regions = scratch(), scratch(where="/dev/shm")
        self.settings = clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT=os.path.join(self.folder, "%e.%p.mtp"),
                                          MEMTRACE_REGION_DIR=self.regions)
        environment = self.settings if under else dict(self.settings, LD_PRELOAD=PRELOAD)
        program = build(source, "gcc", "-O1", "preload", flags=flags)
        self.process = subprocess.Popen([*under, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment, cwd=self.folder)
        self.pid = self.process.pid
        if under:
            wait_until(self.find_child, "the program")

    def find_child(self):
        names = os.listdir(self.regions)
        if names:
            self.pid = int(names[0].split(".")[0])
        return names

    def tell(self, line):
        """(blocks, bytes) after it."""
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))

    def control(self, *words):
        return execute([MEMTRACE, "control", str(self.pid), *words], self.settings, cwd=self.folder)

    def busily(self, *words):
        """The same while the program allocates now and then, so that it follows."""
        asking = subprocess.Popen([MEMTRACE, "control", str(self.pid), *words], env=self.settings,
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while asking.poll() is None:
            self.tell("w 5")
            self.tell("t 4000")  # where it samples it looks up after 128 KiB
        told = asking.communicate()
        equal(asking.returncode, 0, words, told)
        return told[0].decode()

    def report(self, name):
        told = execute([MEMTRACE, "report", "--json", name], self.settings, cwd=self.folder)
        equal(told.returncode, 0, "report of", name, told.stderr)
        return json.loads(told.stdout) if told.returncode == 0 else None

    def query(self, name, sql):
        told = execute([MEMTRACE, "query", "--format", "json", name, sql], self.settings, cwd=self.folder)
        equal(told.returncode, 0, "query of", name, told.stderr)
        return json.loads(told.stdout)

    def held(self, name):
        return sums(self.report(name))

    def check_end(self, name, after):
        """Where the program allocates meanwhile, the end may come between an allocation of the moment, which is in
        the recording, and its free."""
        if self.held(name) not in (after, (after[0] + 1, after[1] + 40)):
            fail("held at the end of", name, self.held(name), "expected", after, "or that and a block of 40 bytes")

    def inherited(self, name, kind="heap"):
        row = self.query(name, "SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM allocations WHERE "
                               "inherited = 1 AND class = '%s'" % kind)[0]
        return row["n"], row["bytes"]

    def check_before(self, name, before):
        """The beginning, too, may come between an allocation of the moment and its free."""
        if self.inherited(name) not in (before, (before[0] + 1, before[1] + 40)):
            fail("held at the beginning of", name, self.inherited(name), "expected", before, "or that and a block of 40 bytes")

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(60), 0, "exit status", self.process.stderr.read())


def sums(data):
    return data["live_blocks"], data["live_bytes"]


def test_steps():
    """One thread: the recording begins with exactly what is held, and has each event from there on; three times,
    with pauses between which are in none of them."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    for turn in range(3):
        before = subject.tell("a 1000")
        subject.busily("record", "-o", f"{turn}.mtr")
        subject.tell("a 500")
        subject.tell("f 700")
        subject.tell("t 50")
        after = subject.tell("a 1")
        said = subject.busily("record", "off")
        if "lost 0)" not in said or f"{turn}.mtr" not in said:
            fail("what record off says:", said)
        subject.check_before(f"{turn}.mtr", before)
        subject.check_end(f"{turn}.mtr", after)
        rows = subject.query(f"{turn}.mtr", "SELECT function, sum(inherited) AS before, sum(1 - inherited) AS new, "
                                            "sum(freed IS NOT NULL) AS freed FROM allocations JOIN contexts "
                                            "ON contexts.id = context WHERE function = 'get' GROUP BY 1")
        equal([(row["before"], row["new"], row["freed"]) for row in rows], [(before[0], 501, 700)], "events of get()")
        if subject.report(f"{turn}.mtr")["recording"]["closed"] is not True:
            fail("the recording is not closed")
        subject.tell("f 801")
    subject.tell("a 7")
    subject.end()
    data = report(profiles(subject.folder)[0])
    equal(sums(data), (7, sum(16 + place % 100 * 24 for place in range(7))), "the profile")
    equal(os.listdir(subject.regions), [], "regions that are left")


def test_own():
    """Blocks of the program's own allocator, which live through several recordings: each begins with them, and has their
    end."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 5")
    before = subject.tell("h 90")
    for turn in range(3):
        subject.busily("record", "-o", f"{turn}.mtr")
        subject.tell("h 10")
        after = subject.tell("u 20")
        said = subject.busily("record", "off")
        if "lost 0)" not in said:
            fail("what record off says:", said)
        subject.check_before(f"{turn}.mtr", before)
        equal(subject.inherited(f"{turn}.mtr", "pool"), (90 - 10 * turn, (90 - 10 * turn) * 47), "the pool's, turn", turn)
        subject.check_end(f"{turn}.mtr", after)
        rows = subject.query(f"{turn}.mtr", "SELECT class, sum(inherited) AS before, sum(1 - inherited) AS new, "
                                            "sum(freed IS NOT NULL) AS freed FROM allocations "
                                            "WHERE size IN (47, 48) GROUP BY 1 ORDER BY 1")
        equal([(row["class"], row["before"], row["new"], row["freed"]) for row in rows],
              [(kind, 90 - 10 * turn, 10, 20) for kind in ("heap", "pool")], "events, turn", turn)
        before = after
    subject.end()


def test_threads(cycles=6):
    """Many threads at once: what is held in the end is in each recording, to the byte."""
    subject = Subject(os.path.join(HERE, "midway_threads.c"), "-pthread")
    chance = random.Random(cycles)
    for turn in range(cycles):
        time.sleep(chance.uniform(0, 0.1))
        wait_until(lambda: "let go" not in subject.control("record", "-o", f"{turn}.mtr").stderr.decode(),
                   "the last recording is let go")
        time.sleep(chance.uniform(0, 0.2))
        subject.tell("p")
        told = subject.control("record", "off")
        equal(told.returncode, 0, "record off", told.stderr)
        if b"lost 0)" not in told.stdout:
            fail("something was lost:", told.stdout)
        equal(subject.held(f"{turn}.mtr"), subject.held(str(subject.pid)), "held at the end, turn", turn)
        subject.tell("g")
    subject.end()


def test_children():
    """Forked children are not recorded, and their parent goes on to be; what they free is its own still."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 1000")
    subject.busily("record", "-o", "one.mtr")
    subject.tell("k")
    subject.tell("a 10")
    after = subject.tell("k")
    subject.busily("record", "off")
    subject.check_end("one.mtr", after)
    subject.end()


def test_under_run():
    """Of a program that `memtrace run` started it is that which writes the recording, at its end too."""
    subject = Subject(os.path.join(HERE, "midway.c"), under=(MEMTRACE, "run", "--"))
    before = subject.tell("a 300")
    subject.busily("record", "-o", "one.mtr")
    after = subject.tell("a 20")
    subject.end()
    subject.check_before("one.mtr", before)
    equal(subject.held("one.mtr"), after, "the recording's end")
    found = profiles(subject.folder)
    equal(len(found), 1, "profiles", os.listdir(subject.folder))
    equal(sums(report(found[0])), after, "the profile")


def test_killed():
    """A program that is killed meanwhile leaves a whole recording, and its profile."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 100")
    subject.busily("record", "-o", "one.mtr")
    after = subject.tell("a 50")
    os.kill(subject.pid, signal.SIGKILL)
    subject.process.wait(60)
    wait_until(lambda: profiles(subject.folder) and not os.listdir(subject.regions), "the profile")
    equal(subject.held("one.mtr"), after, "the recording's end")
    equal(sums(report(profiles(subject.folder)[0])), after, "the profile")


def collector_of(subject):
    with open(os.path.join(subject.regions, os.listdir(subject.regions)[0]), "rb") as region:
        told = execute([MEMTRACE, "list", "--json"], subject.settings, cwd=subject.folder)
        equal(told.returncode, 0, "list", told.stderr)
        name = region.name
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                if words.read().split(b"\0")[1:3] == [b"companion", name.encode()]:
                    return int(pid)
        except OSError:
            pass
    return None


def test_collector_killed():
    """Who writes the recording is killed: the program goes on, and the next command goes on with the file."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 100")
    subject.busily("record", "-o", "one.mtr")
    subject.tell("a 100")
    os.kill(collector_of(subject), signal.SIGKILL)
    wait_until(lambda: collector_of(subject) is None, "its end")
    after = subject.tell("a 100")
    said = subject.busily("record", "off")
    if "lost 0)" not in said:
        fail("record off after that:", said)
    subject.check_end("one.mtr", after)
    subject.end()


def test_exec():
    """The recording ends where the program becomes another one, and is whole."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 100")
    subject.busily("record", "-o", "one.mtr")
    after = subject.tell("a 11")
    subject.process.stdin.write(b"x\n")
    subject.end()
    wait_until(lambda: subject.report("one.mtr")["recording"]["closed"], "the recording's end")
    equal(subject.held("one.mtr"), after, "held at the exec")


def test_refused():
    """Each refusal is one line, and nothing begins."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 1")
    cases = ((("record", "off"), "is not recorded"), (("record", "-o", "nowhere/x.mtr"), "cannot write"),
             (("record", "on"), "after the process id"), (("exact", "-o", "x"), "--output belongs to record"))
    for words, why in cases:
        told = subject.control(*words)
        if told.returncode == 0 or why not in told.stderr.decode() or told.stderr.count(b"\n") > 2:
            fail(words, told)
    with open(os.path.join(subject.folder, "text"), "w", encoding="ascii") as text:
        text.write("hello")
    if b"is not a recording" not in subject.control("record", "-o", "text").stderr:
        fail("a text is overwritten")
    for mode, why in (("off", b"counts nothing"), ("sample", b"counts a sample")):
        subject.busily(mode)
        if why not in subject.control("record").stderr:
            fail("mode", mode, "is not refused")
    subject.busily("exact")
    subject.busily("record", "-o", "one.mtr")
    if b"is recorded already" not in subject.control("record").stderr:
        fail("a second recording is not refused")
    subject.busily("record", "off")
    equal([name for name in os.listdir(subject.folder) if name.endswith(".mtr")], ["one.mtr"], "recordings")
    subject.end()


# What a program of somebody else can do to its own region: refuse each recording, and name a file as its place.
REFUSE = """
import mmap, os, struct, sys
region = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 16384)
print(flush=True)
while True:
    region[712:1728] = sys.argv[2].encode().ljust(1016, sys.argv[3].encode() or b"\\0")
    if struct.unpack_from("<I", region, 320)[0] == 3:  # MEMTRACE_RECORD_ASKED
        struct.pack_into("<I", region, 320, 7)  # MEMTRACE_RECORD_REFUSED
"""


def test_hostile():
    """Who asks for a recording removes no other file than its own, and reads no text past its end."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    subject.tell("a 1")
    region, victim = (os.path.join(folder, name) for folder, name in
                      ((subject.regions, os.listdir(subject.regions)[0]), (subject.folder, "victim")))
    for fill in ("", "A"):
        with open(victim, "w", encoding="ascii") as text:
            text.write("hello")
        refusing = subprocess.Popen([sys.executable, "-c", REFUSE, region, victim, fill], stdout=subprocess.PIPE)
        refusing.stdout.readline()
        for _ in range(100):  # until the refusal comes while it is waited for
            told = subject.control("record", "-o", "one.mtr")
            if told.returncode != 0:
                break
            time.sleep(0.05)
        refusing.kill()
        refusing.communicate()
        equal(told.returncode, 1, "a refusal", told)
        equal(os.path.exists(victim), True, "another file than the recording's is there", told.stderr)
    subject.process.kill()
    subject.process.communicate()


def test_asleep():
    """A program that sleeps begins when it goes on; and what is asked to end before that never was."""
    subject = Subject(os.path.join(HERE, "midway.c"))
    before = subject.tell("a 10")
    if b"begins when it allocates next" not in subject.control("record", "-o", "one.mtr").stdout:
        fail("nothing says that it begins later")
    wait_until(lambda: subject.tell("w 20") and b"exact, every allocation is recorded" in subject.control().stdout,
               "its beginning")
    told = subject.control("record", "off")
    if b"recorded" not in told.stdout:
        fail("a program that sleeps keeps its recording open:", told)
    equal(subject.inherited("one.mtr"), before, "what was there before")
    equal(subject.held("one.mtr"), before, "held at the end")
    wait_until(lambda: subject.tell("w 20") and b"let go" not in subject.control("record", "-o", "two.mtr").stderr,
               "the first one is let go")
    if b"had not begun" not in subject.control("record", "off").stdout:
        fail("nothing says that it had not begun")
    subject.tell("w 300")
    if os.path.exists(os.path.join(subject.folder, "two.mtr")):
        fail("a recording that never began left a file")
    subject.end()


def test_disk():
    """The disk is full in the middle: the program goes on, and so does its profile. (What compresses well does
    not fill one: the addresses are a walk at random.)"""
    subject = Subject(os.path.join(HERE, "midway.c"))
    place = scratch()
    full_disk(place, "128K")
    try:
        subject.tell("a 100")
        subject.busily("record", "-o", os.path.join(place, "one.mtr"))
        for _ in range(40):
            subject.tell("t 100000")
        after = subject.tell("a 5")
        said = subject.busily("record", "off")
        if "all since it stopped" not in said:
            fail("record off on a full disk says", said)
        subject.end()
        equal(sums(report(profiles(subject.folder)[0])), after, "the profile")
        equal(subject.report(os.path.join(place, "one.mtr"))["recording"]["closed"], True, "the recording is closed")
    finally:
        execute(["umount", "-l", place])


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]](*map(int, sys.argv[2:]))
    finish()
