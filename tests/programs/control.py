# SPDX-License-Identifier: MIT
"""control.py CASE: switching by signal and API, starting off, the program's own handlers, children
that are followed, memory that is zero, limits, the log, and variables that do not exist."""

import os
import re
import subprocess
import sys
import time

import lightreader
from harness import (BUILD, MEMTRACE, PRELOAD, bare, build, clean_environment, equal, execute, fail,
                     files, finish, heap, only_profile, profiles, report, scratch, skip, traced)


def run(name, settings, mode="preload", status=3, output=b"done\n"):
    folder = scratch()
    settings = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), **settings}
    linked = "hooks" if mode == "hooks" else "frame-pointer" if name.endswith("api") else "preload"
    under = traced([build("control.c", "gcc", "-O1", linked), name], mode, folder, settings)
    equal((under.stdout, under.returncode), (output, status), name, mode, "output and status",
          under.stderr.decode())
    return folder, under.stderr.decode()


def counted(data):
    """{size: (allocations, frees)} of the blocks that the cases take."""
    return {context["total_bytes"] // context["allocations"]:
            (context["allocations"], context["frees"]) for context in heap(data)
            if context["total_bytes"] // context["allocations"] > 70000}


SWITCHED = {70003: (1, 1), 70005: (1, 1), 70011: (1, 0)}


def test_toggles():
    """Blocks of the pauses stay out for good; frees of those from before are counted."""
    signals = {"MEMTRACE_SIGNALS": "USR1"}
    for name, settings in (("off_signal", {"MEMTRACE_START": "off", **signals}),
                           ("off_api", {"MEMTRACE_START": "off"}), ("on_signal", signals)):
        for mode in ("preload", "hooks") if name.endswith("signal") else ("hooks",):
            folder, _ = run(name, settings, mode)
            equal(counted(only_profile(folder, name)), SWITCHED, name, mode)


def test_threads():
    """Signals that come while others allocate: nothing is counted by halves."""
    folder, _ = run("threads", {"MEMTRACE_SIGNALS": "SIGUSR1"})
    for size, (allocations, frees) in counted(only_profile(folder, "threads")).items():
        if frees > allocations or allocations - frees > 4 * 200:
            fail("threads:", size, allocations, frees)


def test_idle():
    folder, _ = run("idle", {"MEMTRACE_SIGNALS": "USR1"})
    equal(counted(only_profile(folder, "idle")), {70041: (8, 0), 70045: (8, 0)}, "idle threads")


def test_handlers():
    """The program sees and gets what it set; a signal that was named switches as well."""
    for name in ("handlers", "handlers_of_children"):
        equal(bare([build("control.c", "gcc", "-O1", "preload"), name]).stdout, b"done\n", name)
        run(name, {"MEMTRACE_SIGNALS": "USR1"})
        run(name, {"MEMTRACE_RECORD": "1", "MEMTRACE_FOLLOW": "1"})
    for signals, switched in (("toggle:10,on:SIGUSR2", 5), ("off:USR1,snapshot:USR2", 4),
                              ("none", 0), (None, 0)):
        _, lines = run("handlers", {"MEMTRACE_SIGNALS": signals, "MEMTRACE_LOG_LEVEL": "info"})
        equal(lines.count("memtrace: a signal: counting is "), switched, signals, lines)


def test_signals_by_default():
    """No signal is ours that nobody named: SIGUSR1 ends the program."""
    run("on_signal", {}, status=-10, output=b"")
    equal(record("on_signal", {}, status=-10, signals=None)[1], [], "recorded")


OFF, ON = "6", "5"  # enum memtrace_mark


def record(name, settings, status=3, options=(), signals="USR1,USR2"):
    """The case under `memtrace record`: the report, and the marks in their order."""
    recording = os.path.join(scratch(), "out.mtr")
    if signals is not None:
        settings = {"MEMTRACE_SIGNALS": signals, **settings}
    result = execute([MEMTRACE, "record", "--no-summary", "-o", recording, *options, "--",
                      build("control.c", "gcc", "-O1", "preload"), name],
                     clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm"), **settings))
    equal((result.returncode, result.stderr), (status, b""), name, settings)
    listed = execute([os.path.join(BUILD, "tests", "recording", "list_events"), recording])
    equal(listed.stderr, b"", name, settings)
    return report(recording), [line.split()[2] for line in listed.stdout.decode().splitlines()
                               if line.startswith("mark")]


def test_recorded():
    """A recording tells of each switch."""
    for name, settings, switches in (("on_signal", {}, [OFF, ON, OFF, ON]),
                                     ("off_signal", {"MEMTRACE_START": "off"}, [ON, OFF, ON])):
        data, marks = record(name, settings, options=("--toggle-signal", "USR1,USR2"), signals=None)
        equal(marks, switches, name, settings)
        equal(counted(data), SWITCHED, name, settings)
    equal(record("handlers", {}, signals=None)[1], [], "the program's own handlers")
    equal(record("on_signal", {"MEMTRACE_SIGNALS": "USR2"}, status=-10)[1], [], "a signal of its own")


def test_sizes():
    """Only what is so large is recorded, and the frees and resizes of that."""
    for sizes, expected in (("70042-", {70045: (8, 0)}), ("1-70041", {70041: (8, 0)}), ("-100", {}),
                            ("70000-70045", {70041: (8, 0), 70045: (8, 0)})):
        data, _ = record("idle", {}, options=("--sizes", sizes))
        equal(counted(data), expected, sizes)
        equal(data["recording"]["foreign_frees"], 0, sizes)
    data, _ = record("on_signal", {}, options=("--sizes", "70004-70010"))
    equal(counted(data), {70005: (1, 1)}, "resized while off")
    data, _ = record("resize", {}, options=("--sizes", "70050-70060"))
    equal(counted(data), {70051: (1, 1), 70053: (1, 1)}, "resized into the range and out of it")


def test_modules():
    """Only what the code of some modules allocates is recorded."""
    marked, _ = record("idle", {})
    for modules, expected in (("control,libm", counted(marked)), ("!control", {}), ("libc,contro", {}),
                              ("!libc,libm", counted(marked))):
        data, _ = record("idle", {}, options=("--modules", modules))
        equal(counted(data), expected, modules)
        equal((data["recording"]["some_modules"], data["recording"]["foreign_frees"]), (True, 0), modules)


def test_interrupted():
    """Switches in the middle of whatever is being counted: each is told, nothing is lost."""
    data, marks = record("timer", {"MEMTRACE_SIGNALS": "ALRM"})
    if marks.count(OFF) < 10 or not 0 <= marks.count(OFF) - marks.count(ON) <= 1:
        fail("marks:", "".join(marks))
    told = data["recording"]
    equal((data["lost"], told["lost_allocs"], told["lost_frees"]), (0, 0, 0), "lost")
    for size, (allocations, frees) in counted(data).items():
        equal(frees, allocations, size, "each block is counted whole or not at all")


def test_children():
    """Each process of a run has a profile or a recording: forks, and whatever is started by exec, spawn
    or a shell. A recorded forked child has its parent's blocks, too, a light one stands in its parent's profile. Without `memtrace run` only programs that
    find our library in their environment are followed."""
    again = os.path.join(scratch(), "again")
    os.link(build("control.c", "gcc", "-O1", "preload"), again)
    light, forks = [[72003], [72005]], [[72003], [72003, 72005]]
    for mode, settings, expected in (("preload", {}, [[72001]] * 5 + light),
                                     ("run", {}, [[72001]] * 5 + light),
                                     ("run", {"MEMTRACE_RECORD": "1"}, [[72001]] * 5 + forks),
                                     ("run", {"MEMTRACE_CHILDREN": "exec"}, [[72001], [72003]]),
                                     ("run", {"MEMTRACE_CHILDREN": "none"}, [[72003]])):
        folder, _ = run("children", {"AGAIN": again, "MEMTRACE_KEEP_SMALL": "1", **settings}, mode,
                        output=b"")
        found = [sorted(size for size in counted(report(path)) if size < 73000)
                 for path in files(folder, ".mtp") + files(folder, ".mtr")]
        for path in files(folder, ".mtp"):
            profile = lightreader.Profile(path)
            found += [list({held // count for _, _, held, count, _, _ in profile.paths(child).values()
                            if count and 72000 < held // count < 73000})
                      for child in profile.children()]
        equal(sorted(sizes for sizes in found if sizes), expected, mode, settings)


def test_child_names():
    """All processes of a run go to one entry, wherever they run."""
    program, folder = build("control.c", "gcc", "-O1", "preload"), os.path.join(scratch(), "100%p")
    os.mkdir(folder)
    execute([MEMTRACE, "run", "--keep-small", "--no-summary", "-o", "out.mtp", "--", "sh", "-c",
             "'%s' child; cd /; '%s' child; true" % (program, program)],
            clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")), cwd=folder)
    equal(os.listdir(folder), ["out.mtp"], "one entry")
    names = sorted(re.sub(r"\d+", "N", name) for name in os.listdir(os.path.join(folder, "out.mtp"))
                   if not name.startswith("."))
    equal(names, ["control.N.mtp"] * 2 + ["run.json", "sh.N.mtp"], "names")


def test_limit():
    """At its limit the program's report comes at once, its profile is copied, it is ended: each action
    does what the one before does, too."""
    program = build("control.c", "gcc", "-O1", "preload")
    for mode, action in (("run", "report"), ("preload", "dump"), ("run", "abort")):
        folder, goal = scratch(), os.path.join(scratch(), "seen")
        settings = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "MEMTRACE_LIMIT": "40M",
                    "MEMTRACE_ON_LIMIT": action, "FILE": goal, "MEMTRACE_LOG": os.path.join(folder, "log"),
                    "MEMTRACE_OUTPUT": os.path.join(folder, "out.mtp"), "MEMTRACE_SUMMARY": "0",
                    "LD_PRELOAD": PRELOAD if mode == "preload" else None}
        process = subprocess.Popen(([MEMTRACE, "run", "--"] if mode == "run" else []) + [program, "grow"],
                                   env=clean_environment(**settings), stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
        lines = []
        while action != "abort" and "in memory and swap" not in "".join(lines):
            lines.append(process.stderr.readline().decode())
        while action == "dump" and "as it is now" not in "".join(lines):
            lines.append(process.stderr.readline().decode())
        if action == "dump":
            data = report(os.path.join(folder, "out.limit.mtp"))
            equal((data["process"]["end"], data["live_bytes"] >= 24 << 20), ("copied", True), action)
        if action != "abort":
            open(goal, "w").close()
        lines.append(process.stderr.read().decode())
        equal(process.wait(), -6 if action == "abort" else 3, action, lines)
        equal("".join(lines).count("in memory and swap, its limit is 40.0 MiB"), 1, action, "once", lines)
        with open(os.path.join(folder, "log")) as log:
            equal(log.read().count("memtrace: snapshot 1, "), 1, action, "reports")
        equal(sorted(os.listdir(folder)),
              ["log"] + ["out.limit.mtp"] * (action != "report") + ["out.mtp"], action, "files")
        if report(os.path.join(folder, "out.mtp"))["live_bytes"] < 24 << 20:
            fail(action, "the profile at the end")


def control_group(megabytes):
    """A group of this test's with so much memory; where none can be made the test is skipped."""
    for mount, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = "%s/memtrace-test-%d" % (mount, os.getpid())
        try:
            os.mkdir(group)
            with open(os.path.join(group, limit), "w") as file:
                file.write("%dM" % megabytes)
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    skip("no control group with a memory limit can be made")


def remove_group(group):
    for _ in range(100):  # the kernel may still be counting its last process
        try:
            return os.rmdir(group)
        except OSError:
            time.sleep(0.02)


def test_group():
    """A part of what the program's control group may use; ended long before the OOM killer comes."""
    group, folder = control_group(80), scratch()
    settings = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "FILE": os.path.join(folder, "absent")}
    try:
        under = execute(["sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$@"', group, MEMTRACE, "run",
                         "--limit", "50%", "--on-limit", "abort", "--no-summary", "-o", "out.mtp", "--",
                         build("control.c", "gcc", "-O1", "preload"), "grow"],
                        clean_environment(**settings), cwd=folder)
    finally:
        remove_group(group)
    equal(under.returncode, -6, "group", under.stderr.decode())
    said = re.search(r"the control group .*/%s uses (\d+)\.\d MiB of the 80\.0 MiB" % os.path.basename(group),
                     under.stderr.decode())
    if said is None or not 40 <= int(said.group(1)) < 80:
        fail("group:", under.stderr.decode())
    equal(sorted(os.listdir(folder)), ["out.limit.mtp", "out.mtp"], "group: files")


def test_log():
    """The log is begun anew before it outgrows its size; what it held before is kept, once."""
    log = os.path.join(scratch(), "log")
    for _ in range(20):  # on a busy machine a run may have too few reports
        if not os.path.exists(log + ".1"):
            if os.path.exists(log):
                os.unlink(log)
            run("timer", {"MEMTRACE_SIGNALS": "snapshot:ALRM", "MEMTRACE_EVERY": "10ms",
                          "MEMTRACE_LOG": log, "MEMTRACE_LOG_SIZE": "2K"}, "run")
    sizes = [os.path.getsize(path) for path in (log, log + ".1")]
    if not all(0 < size <= 2048 for size in sizes):
        fail("log: bytes", sizes)
    equal(sorted(os.listdir(os.path.dirname(log))), ["log", "log.1"], "log: files")
    with open(log + ".1") as before, open(log) as now:
        numbers = [int(number) for number in
                   re.findall(r"^memtrace: snapshot (\d+),", before.read() + now.read(), re.MULTILINE)]
    equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "log: reports")
    # without a collector the program prints them itself
    _, lines = run("timer", {"MEMTRACE_SIGNALS": "snapshot:ALRM", "MEMTRACE_LOG": log + "2",
                             "MEMTRACE_LOG_SIZE": "2K"})
    sizes = [os.path.getsize(path) for path in (log + "2", log + "2.1")]
    if not all(0 < size < 2 * 2048 for size in sizes):
        fail("log of the program's own: bytes", sizes, lines)


def test_owner():
    """The files of a program that root runs go to somebody else."""
    if os.geteuid() != 0:
        skip("needs root")
    for mode in ("preload", "run"):
        folder, _ = run("child", {"MEMTRACE_OWNER": "1234:2345"}, mode, output=b"")
        status = os.stat(profiles(folder)[0])
        equal((status.st_uid, status.st_gid), (1234, 2345), mode, "owner")
    folder, _ = run("child", {"MEMTRACE_OWNER": "1234:2345", "MEMTRACE_RECORD": "1"}, "run", output=b"")
    equal([os.stat(os.path.join(folder, name)).st_uid for name in os.listdir(folder)], [1234], "record")


def test_zero():
    run("zero", {"MEMTRACE_ZERO": "1"})
    run("zero", {"MEMTRACE_ZERO": "1"}, "hooks")


def test_names():
    """A wrong name, and the nearest right one; a wrong value; and which lines are wanted at all."""
    wrong = {"MEMTRACE_SIGNAL": ("x", "MEMTRACE_SIGNALS"), "MEMTRACE_LIMITS": ("x", "MEMTRACE_LIMIT"),
             "MEMTRACE_FOLOW": ("1", "MEMTRACE_FOLLOW"), "MEMTRACE_RECORD_OUT": ("1", "MEMTRACE_RECORD_OUTPUT"),
             "MEMTRACE_STRAT": ("off", "MEMTRACE_START")}
    for name, (value, nearest) in wrong.items():
        _, lines = run("child", {name: value}, output=b"")
        equal(lines, "memtrace: no such environment variable: %s; the nearest is %s\n" % (name, nearest))
        _, lines = run("child", {name: value, "MEMTRACE_LOG_LEVEL": "error"}, output=b"")
        equal(lines, "", name, "with LOG_LEVEL=error")
    for entry in ("SIGNALS=USR3", "SIGNALS=USR1:toggle", "SIGNALS=9", "SIGNALS=", "SIGNALS=USR1,",
                  "LIMIT=0%", "LIMIT=101%", "LIMIT=2X", "ON_LIMIT=kill", "START=no", "ZERO=2",
                  "OWNER=root", "OWNER=1", "FOLLOW=yes", "LOG_LEVEL=all", "PRECISE=2", "EMBED=some",
                  "ON_LAG=", "SAMPLE=-1", "DURATION=1d", "LOG_SIZE=18446744073709551615", "RECORD_SIZES=5", "RECORD_SIZES=9-5", "RECORD_SIZES=-0",
                  "RECORD_SIZES=1K-2X"):
        name, value = ("MEMTRACE_" + entry).split("=")
        _, lines = run("child", {name: value}, output=b"")
        equal(lines, "memtrace: bad value, the default is used: %s=%s\n" % (name, value))


globals()["test_" + sys.argv[1]]()
finish()
