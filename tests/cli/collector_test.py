# SPDX-License-Identifier: MIT
"""collector_test.py CASE: periodic reports, the timeline, the companion, and the profiles of programs
that were killed or replaced themselves, with `memtrace list`."""

import json
import os
import re
import subprocess
import time

from outside import (MEMTRACE, PATIENCE, PRELOAD, TOTALS, allocations, build, case, check, ended_after, equal, execute,
                     folder, no_leftovers, profiles, raw_profile, regions, run, start, wait_line, wait_until)


def numbered(snapshots, text):
    """One every 200 ms of some 2000, none left out or early; on a busy machine they come late."""
    equal([number for number, _ in snapshots], [b"%d" % (place + 1) for place in range(len(snapshots))], text)
    check(len(snapshots) >= 2, snapshots, text)
    early = [number for number, seconds in snapshots if float(seconds) < int(number) * 0.2 - 0.1]
    equal(early, [], "early snapshots", text)


def test_periodic_by_time():
    program = build()
    done = run("--every", "200ms", "--top", "2", "--", program, "sleep2000")
    snapshots = re.findall(rb"^memtrace: snapshot (\d+), pid \d+, at ([\d.]+) s, churn \S+ \S+, live "
                           rb"\S+ \S+, (?:mapped \S+ \S+, )?RSS \S+ \S+, (\d+) of \d+ live call paths, "
                           rb"largest last$", done.err, re.M)
    numbered([snapshot[:2] for snapshot in snapshots], done.err)
    first = done.err.split(b"memtrace: snapshot 2")[0]
    check(re.search(rb"^#1 live 12\.1 KiB in 1 block; interval \+12\.1 KiB \(1\) -0 B \(0\); total "
                    rb"\+12\.1 KiB \(1\) -0 B \(0\); path [0-9a-f]{16}$", first, re.M), first)
    check(re.search(rb"^      keep at .*subject\.c:\d+", first, re.M), first)
    check(re.search(rb"^      main at .*subject\.c:\d+", first, re.M), first)
    last = done.err.split(b"memtrace: snapshot 2")[1]
    check(b"interval +0 B (0) -0 B (0); total +12.1 KiB (1)" in last, last)
    paths = set(re.findall(rb"^#1 .*path (\S+)$", done.err, re.M))
    again = run("--every", "200ms", "--top", "2", "--", program, "sleep1000")
    equal(paths, set(re.findall(rb"^#1 .*path (\S+)$", again.err, re.M)), "the path's hash")


def test_periodic_by_churn():
    program = build()
    done = run("--churn", "10M", "--top", "0", "--log", "log", "--no-summary", "--", program, "churn1000")
    equal(done.err, b"")
    text = open(folder + "/log", "rb").read()
    snapshots = re.findall(rb"churn ([\d.]+) MiB / 10\.0 MiB", text)
    check(3 <= len(snapshots) <= 20, len(snapshots), text)
    check(all(float(churn) >= 10 for churn in snapshots), snapshots)
    check(re.search(rb"^#1 live ", text, re.M), text)


def test_snapshot_on_request():
    program = build()
    done = run("--no-summary", "--", program, "snapshot", "sleep400", "snapshot")
    equal(re.findall(rb"^memtrace: snapshot (\d+)", done.err, re.M), [b"1", b"2"], done.err)


def test_unwritable_log():
    program = build()
    done = run("--no-summary", "--every", "100ms", "--", program, "sleep900",
               env={"MEMTRACE_LOG": "absent/log"})
    equal(done.returncode, 0)
    equal(done.err.count(b"cannot write the log"), 1, done.err)
    check(b"memtrace: snapshot 2" in done.err, done.err)


def test_timeline():
    program = build()
    run("-o", "out.mtp", "--no-summary", "--", program, "sleep650")
    data = raw_profile(folder + "/out.mtp")
    points = 0
    for offset in range(16384, len(data), 4096):
        if data[offset:offset + 4] == b"SEMG" and data[offset + 4] == 7:
            points = int.from_bytes(data[offset + 64:offset + 68], "little")
    check(2 <= points <= 20, points, "points")


def test_exec():
    """What a program was before it replaced itself is kept, and the status is that of the last."""
    program = build()
    done = run("--", program, "sleep200", "exec", "/bin/sh", "-c", "sleep 0.3; exit 8")
    equal(done.returncode, 8, done.err)
    equal(len(profiles()), 1, profiles())
    told = json.load(open("%s/%s/run.json" % (folder, profiles()[0])))
    equal([(os.path.basename(one["program"]), one["image"], one["end"]) for one in told["processes"]
           if one["pid"] == told["pid"]],
          [("subject", 1, "execed"), (os.path.basename(os.path.realpath("/bin/sh")), 2, "ended")])
    equal(told["exit"], {"status": 8})
    check(b"memtrace: processes          2," in done.err, done.err)
    done = run("-o", "failed.mtp", "--", program, "exec", "./nowhere", "exit9")
    equal(done.returncode, 9, done.err)
    equal(len(TOTALS.findall(done.err)), 1, done.err)
    check("failed.mtp" in profiles())
    no_leftovers()


def test_killed_child():
    """A forked child that is killed is part of the run, and of its one entry."""
    program = build()
    done = run("-o", "out.mtp", "--", program, "fork")
    equal(done.returncode, 0)
    equal(profiles(), ["out.mtp"])
    if os.path.isdir(folder + "/out.mtp"):
        told = json.load(open(folder + "/out.mtp/run.json"))["processes"]
        equal(sorted(one["end"] for one in told), ["ended", "killed"], told)
    no_leftovers()


def preload(program, *arguments, **settings):
    extra = {"LD_PRELOAD": PRELOAD, **settings.pop("env", {})}
    return start([program, *arguments], env=extra, **settings)


def kill_one(program, output="out.mtp"):
    process = preload(program, "ready", "pause", env={"MEMTRACE_OUTPUT": output})
    wait_line(process, b"ready\n")
    process.kill()
    process.communicate()
    return process.pid


def test_list():
    program = build()
    done = execute(MEMTRACE, "list")
    equal((done.returncode, done.out, done.err), (0, b"No program of yours is profiled now.\n", b""))
    process = preload(program, "ready", "pause")
    wait_line(process, b"ready\n")
    done = execute(MEMTRACE, "list")
    row = re.search(rb"^ +%d  subject +(\S+ KiB) +(\S+ KiB) +([\d,]+) +\d+" % process.pid, done.out, re.M)
    check(row, done.out)
    data = json.loads(execute(MEMTRACE, "list", "--json").out)
    one = [row for row in data["running"] if row["pid"] == process.pid]
    equal(len(one), 1, data)
    check(one[0]["live_bytes"] >= 12345 and one[0]["peak_bytes"] >= one[0]["live_bytes"], one)
    equal((one[0]["program"], data["killed"]), (program, []))
    process.kill()
    process.communicate()
    data = json.loads(execute(MEMTRACE, "list", "--json").out)
    equal([(row["pid"], row["program"]) for row in data["killed"]], [(process.pid, program)])
    check(os.path.exists(data["killed"][0]["profile"]), data)
    no_leftovers()
    done = execute(MEMTRACE, "list", "surplus")
    equal((done.returncode, done.err.count(b"\n")), (2, 1), done.err)


def test_light_child():
    """Asked about a forked child that has hardly done anything, one line names where it is counted."""
    process = preload("/bin/sh", "-c", "( word=$(echo one); echo $word; sleep 60; : ) & echo $!; wait")
    lines = {process.stdout.readline().strip() for _ in range(2)}
    child, = lines - {b"one"}
    done = execute(MEMTRACE, "report", child.decode())
    equal((done.returncode, done.out), (1, b""), done.err)
    equal(done.err, b"memtrace: process %s is a forked child that has allocated little so far; it is "
          b"counted in the profile of process %d\n" % (child, process.pid))
    subprocess.run(["pkill", "-P", child.decode()], check=True)
    process.communicate(timeout=PATIENCE)


def test_killed_profiles_do_not_collide():
    program = build()
    pids = [kill_one(program) for _ in range(3)]
    done = execute(MEMTRACE, "list")
    equal(done.out.count(b"is now at"), 3, done.out)
    equal(profiles(), sorted(["out.mtp", "out.mtp.%d" % pids[1], "out.mtp.%d" % pids[2]]))
    kill_one(program, "by-run.mtp")
    done = run("--no-summary", "-o", "own.mtp", "--", "true")
    equal((done.err, len(os.listdir(regions))), (b"", 1), "others' regions are not run's to move")
    done = execute(MEMTRACE, "report", "own.mtp")
    equal((done.err, len(os.listdir(regions))), (b"", 1), "nor report's")
    done = execute(MEMTRACE, "list")
    check(b"is now at " + folder.encode() + b"/by-run.mtp" in done.out, done.out)
    no_leftovers()


def test_concurrent_lists():
    program = build()
    for number in range(12):
        kill_one(program, "%d.mtp" % number)
    lists = [start([MEMTRACE, "list", "--json"]) for _ in range(4)]
    moved = []
    for process in lists:
        out, err = process.communicate(timeout=60)
        equal((process.returncode, err), (0, b""))
        moved += [row["profile"] for row in json.loads(out)["killed"]]
    equal(sorted(moved), sorted("%s/%d.mtp" % (folder, number) for number in range(12)))
    equal(len(profiles()), 12)
    no_leftovers()


def fields_of(process):
    """Of /proc/PID/stat, behind the program's name."""
    return open("/proc/%d/stat" % process.pid).read().rsplit(")", 1)[1].split()


def state_of(process):
    return fields_of(process)[0]


def test_first_thread_ended():
    """A process whose first thread has ended looks like a zombie but is none."""
    program = build()
    process = preload(program, "leave", stdin=subprocess.PIPE)
    wait_line(process, b"left\n")
    wait_until(lambda: state_of(process) == "Z", "the end of the first thread")
    done = execute(MEMTRACE, "list")
    check(b"killed" not in done.out, done.out)
    equal(len(os.listdir(regions)), 1)
    _, err = process.communicate(timeout=PATIENCE)  # which closes its input
    check(allocations(err) >= 3, err)
    no_leftovers()


def companions():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                command = open("/proc/%s/cmdline" % name, "rb").read().split(b"\0")
            except OSError:
                continue
            if b"companion" in command and any(regions.encode() in part for part in command):
                found.append(int(name))
    return found


def test_companion():
    """Periodic reports without `memtrace run`: nobody notices, and nothing stays."""
    program = build()
    process = preload(program, "sleep2000", "exit3",
                      env={"MEMTRACE_EVERY": "200ms", "MEMTRACE_COMMAND": MEMTRACE,
                           "MEMTRACE_OUTPUT": "out.mtp"})
    wait_until(companions, "the companion")
    other = companions()[0]
    links = {name: os.readlink("/proc/%d/fd/%s" % (other, name)) for name in "01"}
    equal(links, {"0": "/dev/null", "1": "/dev/null"})
    check(os.getsid(other) != os.getsid(process.pid), "in the program's session")
    out, err = process.communicate(timeout=PATIENCE)
    equal((process.returncode, out), (3, b""))
    numbered(re.findall(rb"^memtrace: snapshot (\d+), pid \d+, at ([\d.]+) s", err, re.M), err)
    equal(len(TOTALS.findall(err)), 1, err)
    wait_until(lambda: not companions(), "the companion's end")
    equal(profiles(), ["out.mtp"])
    no_leftovers()


def test_companion_finishes_killed():
    program = build()
    process = preload(program, "ready", "pause",
                      env={"MEMTRACE_EVERY": "1h", "MEMTRACE_COMMAND": MEMTRACE,
                           "MEMTRACE_OUTPUT": "out.mtp"})
    wait_line(process, b"ready\n")
    wait_until(companions, "the companion")
    time.sleep(0.3)
    process.kill()
    _, err = process.communicate(timeout=PATIENCE)
    check(allocations(err) >= 1, err)
    wait_until(lambda: not companions(), "the companion's end")
    equal(profiles(), ["out.mtp"])
    no_leftovers()


def test_companion_log_level():
    """What the companion has to say minds the program's level."""
    program = build()
    for level, is_told in ((None, True), ("warning", True), ("error", False), ("none", False)):
        settings = {"MEMTRACE_LOG_LEVEL": level} if level else {}
        process = preload(program, "churn10", "ready", "pause",
                          env=dict(settings, MEMTRACE_LIMIT="4K", MEMTRACE_COMMAND=MEMTRACE,
                                   MEMTRACE_EVERY="1h", MEMTRACE_OUTPUT="out.mtp"))
        err = ended_after(process, b"memtrace: snapshot 1,")  # comes with the limit, at any level
        wait_until(lambda: not companions(), "the companion's end")
        equal(b"memtrace: limit: the process has" in err, is_told, level, err)
        check(allocations(err) >= 1, level, err)
        equal(profiles(), ["out.mtp"])
    no_leftovers()


def ticks_of(process):
    fields = fields_of(process)
    return int(fields[11]) + int(fields[12])


def ticks_in_a_while(process):
    before = ticks_of(process)
    time.sleep(1.5)
    return ticks_of(process) - before


def test_sleeping_collector_costs_nothing():
    """Once it has begun, which takes its time on a busy machine."""
    program = build()
    process = start([MEMTRACE, "run", "--no-summary", "--", program, "ready", "pause"])
    wait_line(process, b"ready\n")
    wait_until(lambda: ticks_in_a_while(process) <= 3, "a second and a half with at most 3 ticks of CPU time")
    process.terminate()
    process.communicate(timeout=PATIENCE)


case(globals())
