# SPDX-License-Identifier: MIT
"""recordings.py CASE: what is refused, missing or full while every event is recorded. The program
goes on with its own output and exit status, a line says what is missing, and what there is of the
recording can be read; what is not in it is said to be lost."""

import os
import signal
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from faults import SUBJECT, can_unshare, needs_root, small_tmpfs
from harness import (MEMTRACE, PRELOAD, build, clean_environment, equal, execute, fail, finish, is_gone, report,
                     scratch, skip)

EVENTS = 40000 + 37500  # the subject's allocations and frees, at least
WAYS = ("record", "companion")


def wait_for(folder):
    """A companion may still be at work when the program has ended."""
    end = time.monotonic() + 30
    while os.path.isdir(folder) and os.listdir(folder) and time.monotonic() < end:
        time.sleep(0.01)


class Run:
    """The subject, recorded with something wrong: what it left, and what was said."""

    def __init__(self, what, way, output, wrap=(), command=None, lines=(0, 2), words=(),
                 ended=(3, b"all done\n"), **settings):
        self.what = "%s %s:" % (what, way)
        self.regions = settings.pop("regions", None) or scratch(where="/dev/shm")
        self.spare = scratch()  # where it goes if it may not go where it should
        environment = {"MEMTRACE_SUMMARY": "0", "MEMTRACE_REGION_DIR": self.regions, "TMPDIR": self.spare,
                       "MEMTRACE_RECORD_OUTPUT": output, **settings}
        command = command or [build(SUBJECT, "gcc", "-O1"), "6"]
        if way == "record":
            command = [MEMTRACE, "record", "--", *command]
        else:
            environment.update(MEMTRACE_RECORD="1", MEMTRACE_COMMAND=MEMTRACE)
            command = ["env", "LD_PRELOAD=" + PRELOAD, *command]
        under = execute([*wrap, *command], clean_environment(**environment), cwd=self.spare)
        wait_for(self.regions)
        said = under.stderr.decode(errors="replace").splitlines()
        equal((under.returncode, under.stdout), ended, self.what, "status and output", said)
        if any(not line.startswith("memtrace: ") for line in said) or not lines[0] <= len(said) <= lines[1]:
            fail(self.what, "expected", lines, "lines, all of ours:", said)
        for word in words:
            if not any(word in line for line in said):
                fail(self.what, "nothing says", repr(word), ":", said)

    def recordings(self, *folders):
        return [os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))
                if name.endswith(".mtr")]

    def check(self, path, is_whole=False):
        """It can be read, and tells as much as there was or says what is missing."""
        data = report(path)
        events = data["allocations"] + data["frees"]
        if is_whole:
            equal(data["lost"], 0, self.what, "lost", data["lost_by_kind"])
        told = data["recording"]
        is_told = data["lost"] != 0 or not told["closed"] or told["stopped"]
        if events < EVENTS and (is_whole or not is_told):
            fail(self.what, "events are missing and nothing says so:", events, data["lost"])
        return data


def case_full_disk():
    """Full nearly from the start, and after some blocks."""
    for size, times in (("4k", "1"), ("64k", "10")):
        for way in WAYS:
            where = small_tmpfs(size)
            run = Run("disk of " + size, way, where + "/%p.mtr", words=["No space left"],
                      command=[build(SUBJECT, "gcc", "-O1"), "9", times])
            found = run.recordings(where, run.spare)
            equal(len(found), 1, run.what, "recordings")
            for path in found:
                told = run.check(path)["recording"]
                equal(told["stopped"] or not told["closed"], True, run.what, "it is said to be cut", told)


def case_file_size_limit():
    for blocks in ("0", "8", "200"):
        for way in WAYS:
            folder = scratch()
            run = Run("ulimit -f " + blocks, way, folder + "/%p.mtr", lines=(0, 4),
                      wrap=["bash", "-c", "ulimit -f %s; exec \"$@\"" % blocks, "bash"])
            for path in run.recordings(folder, run.spare):
                run.check(path)


def case_readonly_folder():
    where = small_tmpfs("1m")
    execute(["mount", "-o", "remount,ro", where])
    for way in WAYS:
        run = Run("read-only folder", way, where + "/%p.mtr", lines=(1, 2), words=[where])
        equal(os.listdir(where), [], run.what, "left behind")
        found = run.recordings(run.spare)
        equal(len(found), 1, run.what, "recordings elsewhere")
        for path in found:
            run.check(path, is_whole=True)


def case_no_folder():
    for way in WAYS:
        run = Run("no such folder", way, scratch() + "/no/such/folder/%p.mtr", lines=(1, 2), words=["/no/such/folder"])
        for path in run.recordings(run.spare):
            run.check(path, is_whole=True)


def case_device_output():
    """What is no file is not replaced by one, and nobody waits for a pipe's reader."""
    folder = scratch()
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    for way in WAYS:
        Run("a pipe", way, pipe, lines=(1, 2))
        Run("a folder", way, folder, lines=(1, 2))
        equal(stat.S_ISFIFO(os.lstat(pipe).st_mode), True, way, "the pipe")
        equal(os.listdir(folder), ["pipe"], way, "left behind")


def case_no_shm():
    for way in WAYS:
        folder = scratch()
        run = Run("no region folder", way, folder + "/%p.mtr", lines=(0, 2), regions=folder + "/no/such/folder")
        for path in run.recordings(folder):
            run.check(path)
    needs_root()
    can_unshare()
    for way in WAYS:
        folder = scratch()
        run = Run("no /dev/shm", way, folder + "/%p.mtr", MEMTRACE_REGION_DIR=None,
                  wrap=["unshare", "-m", "sh", "-c", "umount /dev/shm && exec \"$@\"", "sh"])
        for path in run.recordings(folder):
            run.check(path)


def case_full_regions():
    """No room for buffers, or not for all that would be wanted."""
    for size in ("64k", "1m", "4m"):
        for way in WAYS:
            folder = scratch()
            run = Run("region folder of " + size, way, folder + "/%p.mtr", lines=(0, 3),
                      regions=small_tmpfs(size))
            for path in run.recordings(folder):
                run.check(path)


def case_address_space():
    """ulimit -v: from plenty to hardly enough for the program, which has one arena: whether glibc finds 64 MiB
    in a row for a second one, and what it then leaves to others, is luck."""
    for kibibytes in (400000, 120000):
        wrap = ["bash", "-c", "ulimit -v %d; exec \"$@\"" % kibibytes, "bash"]
        if execute(wrap + [build(SUBJECT, "gcc", "-O1")]).returncode == 3:
            for way in WAYS:
                folder = scratch()
                run = Run("ulimit -v %d" % kibibytes, way, folder + "/%p.mtr", wrap=wrap, lines=(0, 4),
                          MALLOC_ARENA_MAX="1")
                for path in run.recordings(folder):
                    run.check(path)


def case_few_descriptors():
    """ulimit -n: the collector cannot open all that it wants to."""
    for most in (8, 12):
        for way in WAYS:
            folder = scratch()
            run = Run("ulimit -n %d" % most, way, folder + "/%p.mtr", lines=(0, 4),
                      wrap=["bash", "-c", "ulimit -n %d; exec \"$@\"" % most, "bash"])
            execute([MEMTRACE, "list"], clean_environment(MEMTRACE_REGION_DIR=run.regions))
            found = run.recordings(folder, run.spare)
            equal(len(found) <= 1, True, run.what, "recordings", found)
            for path in found:
                run.check(path)


def case_closed():
    """A program that closes all descriptors is recorded on, and nothing of ours comes into its files."""
    program = build(os.path.join(HERE, "closing.c"), "gcc", "-O1")
    for way in WAYS:
        folder = scratch()
        run = Run("all closed", way, folder + "/%p.mtr", command=[program, os.path.join(folder, "own")])
        found = run.recordings(folder)
        equal(len(found), 1, run.what, "recordings")
        for path in found:
            data = run.check(path, is_whole=False)
            equal(data["allocations"] + data["lost"] >= 40000, True, run.what, "all events",
                  data["allocations"], data["lost"])


def case_system_calls():
    """A seccomp filter late in life, as in faults.py: all is recorded, or the loss is."""
    program = build(os.path.join(HERE, "filtered.c"), "gcc", "-O1")
    if execute([program, "refuse"]).returncode == 77:
        skip("no filter can be had")
    for action in ("refuse", "allow", "kill"):
        for way in WAYS:
            folder = scratch()
            run = Run("filter " + action, way, folder + "/%p.mtr", command=[program, action], ended=(3, b"all done\n"))
            execute([MEMTRACE, "list"], clean_environment(MEMTRACE_REGION_DIR=run.regions))
            found = run.recordings(folder)
            equal(len(found), 1, run.what, "recordings")
            for path in found:
                data = report(path)
                known = sum(context["allocations"] for context in data["contexts"]
                            if context["total_bytes"] == 80001 * context["allocations"] != 0)
                equal(known + data["lost"] >= 20, True, run.what, "allocations",
                      known, data["lost"])


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def run_while_stopped(lag, times):
    """The collector is stopped while the program fills all its buffers. Returns the recording's report."""
    what, folder = "collector stopped, %s:" % lag, scratch()
    environment = clean_environment(
        MEMTRACE_SUMMARY="0", MEMTRACE_REGION_DIR=small_tmpfs("6m"), MEMTRACE_ON_LAG=lag,
        MEMTRACE_RECORD_OUTPUT=os.path.join(folder, "%p.mtr"))
    command = [MEMTRACE, "record", "--", build(SUBJECT, "gcc", "-O1"), "6", str(times), "wait"]
    recorder = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
    try:
        equal(recorder.stdout.readline(), b"ready\n", what, "a first line")
        program = children(recorder.pid)[0]
        recorder.send_signal(signal.SIGSTOP)
        recorder.stdin.write(b"!")
        recorder.stdin.flush()
        end = time.monotonic() + 60
        while not is_gone(program) and time.monotonic() < end:
            time.sleep(0.01)
        equal(is_gone(program), True, what, "the program goes on")
        recorder.send_signal(signal.SIGCONT)
        output, error = recorder.communicate(timeout=60)
        equal((recorder.returncode, output), (3, b"all done\n"), what, "status and output", error)
    finally:
        recorder.kill()
        recorder.wait()
    found = [os.path.join(folder, name) for name in os.listdir(folder)]
    equal(len(found), 1, what, "recordings")
    return report(found[0])


def case_stopped_collector():
    """Buffers stay full: the program waits for a bounded time at most, and what found no room is told.
    Frees of blocks that are not in the recording are no loss."""
    times = 20
    for lag in ("wait", "drop"):
        data = run_while_stopped(lag, times)
        lost = data["lost_by_kind"]["records"]
        equal((lost > 0, data["recording"]["closed"]), (True, True), lag, "buffers were full", lost)
        known = data["allocations"] + lost
        equal(known >= 40000 * times, True, lag, "allocations and losses", known)
        equal(data["allocations"] <= 40000 * times + 2 * times, True, lag, "allocations", known)
        equal(data["live_blocks"] <= 2500 * times + lost, True, lag, "blocks left", data["live_blocks"])


def main(case):
    globals()["case_" + case]()


if __name__ == "__main__":
    main(sys.argv[1])
    finish()
