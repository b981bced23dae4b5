# SPDX-License-Identifier: MIT
"""alloc_test.py CASE: `memtrace attach --alloc`: functions of a program that runs, which allocate. What
is counted is known from pooled.c, from the moment of attaching on; after `detach` each byte of code
is what it was; the program gives what it gives alone, wherever the command is killed."""

import glob
import os
import re
import signal
import subprocess
import sys
import time

from attach_test import (FOLDER, HERE, SETTINGS, Subject, attach, detach, ended, execute, mapped, memtrace, need_ptrace,
                         resident, source)
from harness import (MEMTRACE, build, clean_environment, equal, fail, finish, heap, report, scratch, skip,
                     wait_until)

TAKE, GIVE, CHANGE = "pool_take(size=2)=alloc:own", "pool_give(ptr=2)=free:own", "pool_change(old=2,size=3)=realloc:own"
FUNCTIONS = ("pool_take", "pool_give", "pool_change")
ALL = [word for one in (TAKE, GIVE, CHANGE) for word in ("--alloc", one)]


def program(optimize="-O2", compiler="gcc"):
    return build(source("pooled.c"), compiler, optimize, flags=["-pthread"], libraries=["-ldl"])


def code_of(pid):
    """All executable memory that comes from files but ours, by its address: what the program has of it now."""
    found = {}
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            field = line.split()
            if len(field) > 5 and field[1] == "r-xp" and field[5].startswith("/") and "libmemtrace" not in field[5]:
                start, end = (int(part, 16) for part in field[0].split("-"))
                memory.seek(start)
                found[start] = memory.read(end - start)
    return found


def differences(before, after):
    """Addresses of bytes that are not the same, but for those behind the end of an object's code, where
    attaching leaves some (attach.md)."""
    found = []
    for start, code in before.items():
        now = after.get(start, b"")
        end = len(code.rstrip(b"\0"))
        found += [start + at for at in range(end) if now[at:at + 1] != code[at:at + 1]] if now[:end] != code[:end] else []
    return found


def functions_at(path, pid, names=FUNCTIONS):
    """Where they lie in the process."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        base = int(next(line for line in maps if line.rstrip().endswith(path)).split("-")[0], 16)
    lines = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {line.split()[-1]: base + int(line.split()[0], 16) for line in lines if line.split()[-1] in names}


def own(data, pool="own"):
    """Allocations, bytes, frees of a pool."""
    found = [context for context in data["pools"] if context["pool"] == pool]
    return tuple(sum(context[key] for context in found) for key in ("allocations", "total_bytes", "frees"))


FIRST = sum(range(100, 1100))
ROUND = (1000 + 10, FIRST + 10 * 5000, 400 + 10)


def rounds(count):
    """After so many rounds; a block of an older round whose address comes again ends then."""
    return count * ROUND[0], count * ROUND[1]


def test_counts():
    """By arithmetic, from the moment of attaching on: what was before and what comes after is not seen."""
    for optimize, compiler in (("-O0", "gcc"), ("-O2", "gcc"), ("-O2", "clang")):
        path = program(optimize, compiler)
        subject = Subject(path, "rounds")
        subject.rounds(2)
        before = code_of(subject.pid)
        attach(subject.pid, *ALL)
        changed = differences(before, code_of(subject.pid))
        if not changed or any(all(not 0 <= at - place < 16 for place in functions_at(path, subject.pid).values())
                              for at in changed):
            fail(compiler, optimize, "while attached, changed bytes at", [hex(at) for at in changed])
        subject.rounds()
        data = report(str(subject.pid), SETTINGS)
        equal(own(data), ROUND, compiler, optimize, "while attached")
        equal(data["lost"], 0, "lost")
        for context in data["pools"]:
            names = [frame["function"] for frame in context["frames"]]
            equal((names[0], "main" in names), ("rounds", True), "the path", names)
        subject.rounds(2)
        profile = detach(subject.pid)
        equal(own(report(profile))[:2], rounds(3), compiler, optimize, "at the end")
        equal(differences(before, code_of(subject.pid)), [], compiler, optimize, "code after detach")
        subject.rounds()
        subject.close(b"end\n", 3)


def test_older():
    """Blocks from before attaching: a free of one is no loss, and none is counted."""
    subject = Subject(program(), "busy", 2)
    attach(subject.pid, "--alloc", GIVE)
    subject.rounds()
    data = report(detach(subject.pid))
    equal((own(data), data["lost"]), ((0, 0, 0), 0), "frees of older blocks alone")
    subject.close(b"end\n", 3)


def test_again():
    """Attached to and detached from, over and over, also with other functions and with none: what was
    mapped is used again."""
    path = program()
    subject = Subject(path, "rounds")
    before = code_of(subject.pid)
    sizes = []
    for turn in range(12):
        names, right = ((ALL, ROUND), (["--alloc", TAKE], (1000, FIRST)), ([], (0, 0)))[turn % 3]
        attach(subject.pid, *names)
        subject.rounds()
        data = report(detach(subject.pid))
        equal(own(data)[:2], right[:2], "turn", turn)
        equal(differences(before, code_of(subject.pid)), [], "code after turn", turn)
        sizes.append((mapped(subject.pid), resident(subject.pid)))
    if sizes[-1][0] > sizes[2][0] + 4 or sizes[-1][1] > sizes[2][1] + (192 << 10):
        fail("grows", sizes)
    subject.close(b"end\n", 3)


def test_busy():
    """All threads are in these functions all the time, also in their first bytes: there are instructions that
    begin within these (without optimisation)."""
    path = program("-O0")
    equal([within_first_bytes(path, name) != [] for name in FUNCTIONS], [True] * 3, "instructions in first bytes")
    for mode, turns in (("busy", 6), ("spawns", 3)):
        subject = Subject(path, mode, 6)
        before = code_of(subject.pid)
        for turn in range(turns):
            said = attach(subject.pid, *ALL)
            subject.rounds()
            wait_until(lambda: own(report(str(subject.pid), SETTINGS))[0] >= 100, "calls without end; " + said)
            data = report(detach(subject.pid))
            if own(data)[0] < 100:
                fail(mode, "turn", turn, "only", own(data), "of calls without end;", said)
            equal(differences(before, code_of(subject.pid)), [], mode, "code after turn", turn)
        subject.rounds()
        subject.close(b"end\n", 3)


def within_first_bytes(path, name):
    """Numbers of the instructions of a function behind which its jump is not over, by objdump."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=" + name, path], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    places = [(int(place, 16), word) for place, word in re.findall(r"^\s+([0-9a-f]+):\s+(\S+)", text, re.MULTILINE)]
    start = places[1 if places[0][1] == "endbr64" else 0][0]
    return [number for number, (place, _) in enumerate(places) if start < place < start + 5]


def test_inside():
    """A thread whose signal handler has interrupted the function in its first bytes: they stay until it is
    out of there, and if it does not come out, that function is left alone, and the others are not."""
    path = program("-O0")
    within = within_first_bytes(path, "pool_take")
    for comes_out in (True, False):
        subject = Subject(path, "inside", within[0])
        at = functions_at(path, subject.pid)["pool_take"]
        subject.say()
        subject.hear(b"inside\n")
        before = code_of(subject.pid)
        command = subprocess.Popen([MEMTRACE, "attach", str(subject.pid), *ALL], cwd=FOLDER,
                                   env=clean_environment(**SETTINGS), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: differences(before, code_of(subject.pid)), "the other functions lead elsewhere")
        changed = differences(before, code_of(subject.pid))
        equal([hex(place) for place in changed if at <= place < at + 16], [], "bytes with a thread in them")
        if comes_out:
            subject.say()
            subject.hear(b"done\n")
        said = command.communicate()
        equal(command.returncode, 0, "attach")
        equal(said[1], b"" if comes_out else
              b"memtrace: --alloc: pool_take cannot be followed: a thread stays in its first bytes\n", "what it says")
        if not comes_out:
            subject.say()
            subject.hear(b"done\n")
        subject.hear(b"ready\n")
        subject.rounds()
        data = report(detach(subject.pid))
        taken = 1000 if comes_out else 0
        equal(own(data)[0], taken + 10, "calls that are counted, out of there:", comes_out)
        equal(differences(before, code_of(subject.pid)), [], "code after detach")
        subject.close(b"end\n", 3)


def test_in_call():
    """A thread in a system call that is the last of a function's first bytes goes on behind them; but the kernel may
    have it make that call once more, from within them: so it is in there."""
    path = program("-O0")
    subject = Subject(path, "waits")
    before = code_of(subject.pid)
    at = functions_at(path, subject.pid, ["pool_wait"])["pool_wait"]
    done = memtrace("attach", subject.pid, *ALL, "--alloc", "pool_wait(size=3)=alloc:own")
    equal((done.returncode, done.stderr),
          (0, b"memtrace: --alloc: pool_wait cannot be followed: a thread stays in its first bytes\n"), "attach")
    changed = differences(before, code_of(subject.pid))
    equal(([place for place in changed if at <= place < at + 8], bool(changed)), ([], True), "bytes with a thread in them")
    subject.rounds(2)
    detach(subject.pid)
    equal(differences(before, code_of(subject.pid)), [], "code after detach")
    subject.close(b"end\n", 3)


def library_is_as_its_file(pid, path):
    """Its code; behind its end there is nothing of ours, since that is elsewhere."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        field = next(line.split() for line in maps if line.rstrip().endswith(path) and " r-xp " in line)
    start, end = (int(part, 16) for part in field[0].split("-"))
    with open("/proc/%d/mem" % pid, "rb", 0) as memory, open(path, "rb") as file:
        memory.seek(start)
        file.seek(int(field[2], 16))
        return memory.read(end - start) == file.read(end - start)


def test_opens():
    """A library that is opened while attached; and closed, and opened again."""
    library = build(os.path.join(HERE, "..", "allocators", "plugin.c"), "gcc", "-O1", shared=True)
    subject = Subject(program(), "opens", library)
    subject.rounds()
    before = code_of(subject.pid)
    done = memtrace("attach", subject.pid, *ALL, "--alloc", "plugin!plugin_alloc(size=1)=alloc:plugin")
    equal((done.returncode, done.stderr.count(b"\n"), b"is looked at then" in done.stderr), (0, 1, True), done.stderr)
    subject.rounds(3)
    data = report(detach(subject.pid))
    equal(own(data, "plugin")[:2], (300, 300 * 20), "of a library that is opened three times")
    equal(differences(before, code_of(subject.pid)), [], "code")
    subject.rounds()
    subject.close(b"end\n", 3)
    subject = Subject(program(), "keeps", library)
    memtrace("attach", subject.pid, "--alloc", TAKE, "--alloc", "plugin!plugin_alloc(size=1)=alloc:plugin")
    subject.rounds()
    equal(library_is_as_its_file(subject.pid, library), False, "code of the library, while it leads to us")
    equal(own(report(detach(subject.pid)), "plugin")[:2], (100, 100 * 20), "of a library that stays open")
    equal(library_is_as_its_file(subject.pid, library), True, "code of the library after detach")
    subject.rounds()
    subject.close(b"end\n", 3)


def killed_at(step, *words):
    done = execute([MEMTRACE, *map(str, words)], clean_environment(**SETTINGS, MEMTRACE_ATTACH_FAULT=step), FOLDER)
    equal(done.returncode, -signal.SIGKILL, words, "killed at", step, done.stderr)


def led(path, pid, before):
    """Names of the functions that begin otherwise than they did: with a jump, and all else as before."""
    now = code_of(pid)
    found = []
    for name, at in functions_at(path, pid).items():
        base = max(start for start in before if start <= at)
        old, new = (code[base][at - base:at - base + 16] for code in (before, now))
        start = 4 if old[:4] == b"\xf3\x0f\x1e\xfa" else 0
        if old != new:
            equal((new[start:start + 1], new[:start], new[start + 5:]), (b"\xe9", old[:start], old[start + 5:]), name)
            found.append(name)
    return sorted(found)


# What frees is led first, and left last.
LED = {"planned": ([], None), "ready": ([], None), "held": ([], sorted(FUNCTIONS)),
       "jump": (["pool_give"], ["pool_change", "pool_give"]), "jumps": (sorted(FUNCTIONS), [])}


def test_faults():
    """The command is killed at each of its steps, at the first jump too: each function has its old bytes or
    its jump, the program goes on, and the next detach leaves no byte."""
    for mode in (("rounds",), ("busy", 3)):
        path = program()
        subject = Subject(path, *mode)
        before = code_of(subject.pid)
        for step, (when_coming, when_leaving) in LED.items():
            killed_at(step, "attach", subject.pid, *ALL)
            equal(led(path, subject.pid, before), when_coming, "what leads to us, attach killed at", step)
            subject.rounds()
            if when_leaving is not None:
                detach(subject.pid)
                attach(subject.pid, *ALL)
                killed_at(step, "detach", subject.pid)
                equal(led(path, subject.pid, before), when_leaving, "what leads to us, detach killed at", step)
                subject.rounds()
            detach(subject.pid)
            equal(differences(before, code_of(subject.pid)), [], "code after detach, killed at", step)
            attach(subject.pid, *ALL)
            subject.rounds()
            data = report(detach(subject.pid))
            if mode[0] == "rounds":
                equal(own(data), ROUND, "after a command was killed at", step)
        subject.close(b"end\n", 3)


def test_kill():
    """The program is killed while it is attached to, and the command at any moment."""
    path = program()
    for turn in range(12):
        subject = Subject(path, "busy", 1 + turn % 4)
        command = subprocess.Popen([MEMTRACE, "attach", str(subject.pid), *ALL], cwd=FOLDER,
                                   env=clean_environment(**SETTINGS), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.02 * turn)
        (command if turn % 2 == 0 else subject.process).kill()
        command.wait()
        if turn % 2 == 0:
            subject.rounds()
            subject.close(b"end\n", 3)
        else:
            subject.process.wait()


def test_child():
    """What an attached program forked has its jumps; attached to itself, it loses them or counts by them."""
    text = "import ctypes, os, sys\npool = ctypes.CDLL(sys.argv[1])\nprint('ready', flush=True)\n" \
           "sys.stdin.readline()\nchild = os.fork()\nos.write(1, b'%d\\n' % child)\n" \
           "while sys.stdin.readline():\n    for i in range(50): pool.plugin_alloc(20)\n    os.write(1, b'done\\n')\n" \
           "child and os.waitpid(child, 0)\n"
    library = build(os.path.join(HERE, "..", "allocators", "plugin.c"), "gcc", "-O1", shared=True)
    named = ["--alloc", "plugin!plugin_alloc(size=1)=alloc:plugin"]
    # Python 3.12 and newer warn of a fork beside threads: attach has one for a moment.
    subject = Subject(sys.executable, "-u", "-W", "ignore", "-c", text, library)
    before = code_of(subject.pid)
    attach(subject.pid, *named)
    subject.say()
    said = {subject.process.stdout.readline().strip() for _ in range(2)} - {b"0"}
    child = int(said.pop())
    equal(bool(differences(before, code_of(child))), True, "the child's jumps")
    attach(child)
    equal(differences(before, code_of(child)), [], "the child's code, attached to without functions")
    detach(child)
    attach(child, *named)
    equal(bool(differences(before, code_of(child))), True, "the child's jumps, attached to with functions")
    for pid in (child, subject.pid):
        detach(pid)
        equal(differences(before, code_of(pid)), [], "code after detach")
    subject.process.stdin.close()
    subject.process.stdin = None
    subject.end(b"", 0)


def test_jemalloc():
    """A program with jemalloc linked into it: what jemalloc says of the work that was done while attached."""
    library = "/usr/lib/x86_64-linux-gnu/libjemalloc.a"
    if not os.path.exists(library):
        skip("no libjemalloc.a (Debian: apt-get install libjemalloc-dev)")
    path = build(os.path.join(HERE, "..", "allocators", "jemalloc_counts.c"), "gcc", "-O1",
                 libraries=[library, "-lm", "-static-libgcc", "-l:libstdc++.a"])
    for set_of in ("jemalloc", "auto"):
        subject = Subject(path, "again")
        before = code_of(subject.pid)

        def work():
            subject.say()
            return [int(word) for word in subject.process.stdout.readline().split()]
        work()
        attach(subject.pid, "--alloc", set_of)
        requests, there = work()
        data = report(detach(subject.pid))
        equal(differences(before, code_of(subject.pid)), [], "code after detach")
        work()
        subject.close(b"", 3)
        done = [context for context in heap(data) if any(frame["function"] == "work" for frame in context["frames"])]
        counted = [sum(context[key] for context in done) for key in ("allocations", "frees")]
        equal((counted[0], counted[0] - counted[1]), (requests, there), set_of, "allocations and what is there")
        equal(data["lost"], 0, set_of, "lost")


def ggc(data):
    return sum(context["allocations"] for context in data["pools"] if context["pool"] == "ggc")


def test_cc1():
    """GCC's compiler as Debian has it. While it waits for its source the same compiler under `memtrace run`
    has made a number of allocations, and all others are seen by who attaches then. Attached to and detached
    from in the midst of a longer source it makes what it makes alone."""
    found = glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1")
    if not found:
        skip("no cc1")
    named = ["--alloc", "ggc_internal_alloc(size=1)=alloc:ggc"]
    text = "".join("int f%d(int n) { int s = %d; for (int i = 0; i < n; i++) s += i * s ^ n; return s; }\n" % (i, i)
                   for i in range(200)).encode()
    folder = scratch()
    outputs = [os.path.join(folder, name) for name in ("run.s", "attached.s", "alone.s", "often.s")]
    command = [found[0], "-quiet", "-O2", "-", "-o"]

    def waiting(*words):
        process = subprocess.Popen([*words, *command, outputs[0 if words else 1]], cwd=folder, stdin=subprocess.PIPE,
                                   env=clean_environment(**SETTINGS), stderr=subprocess.PIPE)
        pids = [process.pid]

        def reads():
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as children:
                pids[0] = int((children.read().split() or [process.pid])[0])
            with open("/proc/%d/syscall" % pids[0], encoding="ascii") as file:
                return file.read().split()[:2] == ["0", "0x0"]
        wait_until(reads, "cc1 reads its source")
        return process, pids[0]

    profile = os.path.join(folder, "run.mtp")
    process, pid = waiting(MEMTRACE, "run", "--no-summary", "-o", profile, *named, "--")
    early = ggc(report(str(pid), SETTINGS))
    equal((process.communicate(text)[1], process.returncode), (b"", 0), "under memtrace run")
    process, pid = waiting()
    attach(pid, *named, "-o", os.path.join(folder, "attached.mtp"))
    equal((process.communicate(text)[1], process.returncode), (b"", 0), "attached")
    counted = ggc(report(os.path.join(folder, "attached.mtp")))
    equal(counted, ggc(report(profile)) - early, "allocations behind the first", early)
    equal(counted > 10000, True, counted)

    source_file = os.path.join(folder, "long.c")
    with open(source_file, "wb") as file:
        file.write(text + text.replace(b"int f", b"int g") + text.replace(b"int f", b"int h"))
    subprocess.run([found[0], "-quiet", "-O2", source_file, "-o", outputs[2]], check=True)
    process = subprocess.Popen([found[0], "-quiet", "-O2", source_file, "-o", outputs[3]], stderr=subprocess.PIPE)
    seen = []
    while process.poll() is None:
        if memtrace("attach", process.pid, *named).returncode == 0:
            done = memtrace("detach", process.pid)
            if done.returncode == 0:
                seen.append(ggc(report(done.stdout.decode().strip().rpartition("profile ")[2])))
    equal((process.stderr.read(), process.returncode), (b"", 0), "attached to often")
    process.stderr.close()
    equal(any(seen), True, "in the midst of it", seen)
    made = [open(path, "rb").read() for path in outputs]
    equal((made[0] == made[1], made[2].count(b"\n") > 10000, made[2] == made[3]), (True, True, True), "what it makes")


def test_filtered():
    """Under a seccomp filter that refuses to make memory executable: one line, and the heap is profiled."""
    subject = Subject(program(), "filtered")
    before = code_of(subject.pid)
    done = memtrace("attach", subject.pid, *ALL)
    if b"may not read" in done.stderr or b"SYS_ADMIN" in done.stderr:
        ended(subject)
        skip(done.stderr.decode().strip())
    equal((done.returncode, done.stderr.count(b"\n"), b"seccomp" in done.stderr and b"--alloc" in done.stderr),
          (0, 1, True), "attach", done.stderr)
    equal(differences(before, code_of(subject.pid)), [], "code")
    subject.rounds()
    data = report(detach(subject.pid))
    equal((own(data), data["lost"]), ((0, 0, 0), 0), "what is counted")
    subject.close(b"end\n", 3)


def test_usage():
    """Each is one line, and the program is as it was."""
    subject = Subject(program(), "rounds")
    before = code_of(subject.pid)
    for specification, status, words in (
            ("pool_take(size=2", 2, "--alloc"), ("pool_take(size=9)=alloc", 2, "--alloc"),
            ("nowhere(size=1)=alloc", 1, "nowhere"), ("main(size=1)=allocate", 2, "--alloc"),
            ("@%s/no/such/file" % scratch(), 2, "/no/such/file")):
        done = memtrace("attach", subject.pid, "--alloc", specification)
        equal((done.returncode, done.stdout), (status, b""), specification, done.stderr)
        if words not in done.stderr.decode():
            fail(specification, "no", words, "in", done.stderr)
        with open("/proc/%d/maps" % subject.pid, encoding="utf-8") as maps:
            equal("libmemtrace" in maps.read(), False, specification, "the library")
    equal(differences(before, code_of(subject.pid)), [], "code")
    done = memtrace("attach", subject.pid, "--dry-run", "--alloc", "nowhere(size=1)=alloc")
    equal(done.returncode, 1, "a dry run", done.stdout)
    # One that is there and one that is not: a line, and the one that is is followed.
    done = memtrace("attach", subject.pid, *ALL, "--alloc", "nowhere(size=1)=alloc")
    equal((done.returncode, b"nowhere" in done.stderr, done.stderr.count(b"\n")), (0, True, 1), "one of four", done.stderr)
    subject.rounds()
    equal(own(report(detach(subject.pid))), ROUND, "the others")
    subject.close(b"end\n", 3)


if __name__ == "__main__":
    need_ptrace()
    globals()["test_" + sys.argv[1]]()
    finish()
