# SPDX-License-Identifier: MIT
"""record_test.py CASE: `memtrace record` and `memtrace extract` as a user sees them. What is in
recordings is the business of tests/recording."""

import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

from outside import (MEMTRACE, PRELOAD, allocations, build, case, check, child_of, equal, execute,
                     folder, is_gone, no_leftovers, profiles, regions, start, wait_until)

OUTPUT = folder + "/out.mtr"


def record(*arguments, **settings):
    return execute(MEMTRACE, "record", *arguments, **settings)


def report(path=OUTPUT, *options):
    done = execute(MEMTRACE, "report", "--json", *options, path)
    equal(done.returncode, 0, done.err)
    return json.loads(done.out)


def is_closed():
    """Of a recording that has only just been made nothing can be read yet."""
    done = execute(MEMTRACE, "report", "--json", OUTPUT)
    return done.returncode == 0 and json.loads(done.out)["recording"]["closed"]


def collector(pid):
    """The collector that the region of this process names."""
    found = glob.glob("%s/%d.*.mtp" % (regions, pid))
    with open(found[0], "rb") as file:
        return struct.unpack_from("=I", file.read(64), 56)[0]


def functions(data):
    return {(frame["function"], os.path.basename(frame["file"] or ""))
            for context in data["contexts"] for frame in context["frames"]}


def test_record_summary():
    program = build()
    done = record("-o", OUTPUT, "--", program, "churn10")
    equal(done.returncode, 0)
    found = re.search(rb"^memtrace: recording          (.+) \(([\d,]+) events in \S+ \S+, lost 0\)\n"
                      rb"memtrace: read it with       memtrace report (.+)\n", done.err, re.M)
    check(found, done.err)
    equal((found.group(1), found.group(3)), (OUTPUT.encode(), OUTPUT.encode()))
    data = report()
    equal(data["allocations"], allocations(done.err))
    equal(data["recording"]["events"], int(found.group(2).replace(b",", b"")))
    equal(data["recording"]["closed"], True)
    equal(profiles(), [], "a profile nobody asked for")
    no_leftovers()


def test_record_with_profile():
    program = build()
    done = record("--profile", "--no-summary", "-o", "%e.mtr", "--", program, "churn10", cwd=folder)
    equal((done.returncode, done.err), (0, b""))
    equal(len(profiles()), 1)
    here = report(folder + "/subject.mtr")
    there = report(folder + "/" + profiles()[0])
    for name in ("allocations", "total_bytes", "frees", "live_bytes", "peak_bytes"):
        equal(here[name], there[name], name)


def test_record_options():
    program = build()
    for options in (["--precise"], ["--free-stacks"], ["--no-addresses"], ["--on-lag", "drop"],
                    ["--embed", "none"], ["--stacks", "short"], ["--precise", "--free-stacks"]):
        done = record(*options, "-o", OUTPUT, "--", program, "churn10")
        equal((done.returncode, report()["allocations"]), (0, allocations(done.err)), options)
    for options in (["--on-lag", "never"], ["--embed", "some"], ["--cull-below", "10"[:0]],
                    ["--rotate", "much"], ["--duration", "soon"], ["--precise=1"]):
        done = record(*options, "--", program)
        equal((done.returncode, done.err.count(b"\n")), (2, 1), options, done.err)


def test_record_companion():
    program = build()
    done = execute(program, "churn10", env={"LD_PRELOAD": PRELOAD, "MEMTRACE_RECORD": "1",
                                            "MEMTRACE_RECORD_OUTPUT": OUTPUT,
                                            "MEMTRACE_COMMAND": MEMTRACE})
    equal(done.returncode, 0)
    wait_until(is_closed, "the companion")
    check(report()["allocations"] > 0)
    no_leftovers()


def test_record_orphan():
    """The collector dies; the next command finds another one for the program, which still runs."""
    program = build()
    process = start([MEMTRACE, "record", "--profile", "--no-summary", "-o", OUTPUT, "--", program,
                     "catch%d" % signal.SIGUSR1, *["churn10", "sleep100"] * 40, "pause", *["churn10"] * 10])
    wait_until(lambda: os.path.exists(OUTPUT) and os.path.getsize(OUTPUT) > 0, "the recording")
    child = child_of(process)
    process.kill()
    process.wait()
    time.sleep(3.5)
    equal(execute(MEMTRACE, "list").returncode, 0)
    wait_until(lambda: os.path.exists("/proc/%d" % child) and collector(child) != process.pid, "another")
    equal(execute(MEMTRACE, "list").returncode, 0)  # no second one
    os.kill(child, signal.SIGUSR1)
    wait_until(lambda: is_gone(child), "the program's end")
    wait_until(lambda: not os.listdir(regions), "the companion's end")
    data = report()
    there = report(folder + "/" + profiles()[0])
    equal((data["recording"]["closed"], data["recording"]["lost_allocs"]), (True, 0))
    equal(data["allocations"], there["allocations"])


def test_record_cull():
    program = build()
    done = record("--cull-below", "10s", "-o", OUTPUT, "--", program, "churn10")
    data = report()
    equal(data["allocations"], allocations(done.err))
    check(data["recording"]["events"] < data["allocations"] / 2, data["recording"])


def test_record_rotate():
    program = build()
    done = record("--embed", "none", "--rotate", "1500", "--precise", "-o", OUTPUT, "--", program,
                  *["churn100", "sleep50"] * 12)
    parts = glob.glob(folder + "/out*.mtr")
    check(len(parts) > 1, parts, done.err)
    check(b" and %d parts, lost 0)" % len(parts) in done.err, parts, done.err)
    whole = report()
    equal((whole["recording"]["parts"], whole["allocations"]),
          (len(parts), allocations(done.err)))
    alone = []
    for number, part in enumerate(parts):  # under names that do not belong together
        os.rename(part, "%s/alone.%d.x.mtr" % (folder, number))
        alone.append(report("%s/alone.%d.x.mtr" % (folder, number)))
    equal(sorted(data["recording"]["part"] for data in alone), list(range(len(parts))))
    equal(sum(data["allocations"] for data in alone), allocations(done.err))


def test_record_duration():
    program = build()
    done = record("--duration", "300ms", "-o", OUTPUT, "--", program, *["churn10", "sleep100"] * 10)
    equal(done.returncode, 0)
    check(0 < report()["allocations"] < allocations(done.err), done.err)


def test_extract():
    """A recording of a program that is gone, with the symbols that came along."""
    program = build()
    for what in ("none", "symbols", "all"):
        done = record("--embed", what, "-o", "%s.mtr" % what, "--", program, "churn10", cwd=folder)
        equal(done.returncode, 0, done.err)
    wanted = {("main", "subject.c"), ("churn", "subject.c"), ("keep", "subject.c")}
    check(wanted <= functions(report(folder + "/symbols.mtr")))
    shutil.move(program, folder + "/moved")
    check(not wanted & functions(report(folder + "/none.mtr")))
    for what in ("symbols", "all"):
        path = "%s/%s.mtr" % (folder, what)
        listed = execute(MEMTRACE, "extract", "--list", path)
        check(re.search(rb"^ *[\d.]+ \S+  %s +[0-9a-f]{40}  .*/subject$" %
                        (b"whole" if what == "all" else b"symbols"), listed.out, re.M), listed.out)
        files = path + ".files"
        done = execute(MEMTRACE, "extract", path)
        equal((done.returncode, done.err), (0, b""), done.out)
        equal(done.out, b"%d files in %s\n" % (listed.out.count(b"\n"), files.encode()))
        found = functions(report(path, "--debug-folders", files))
        check(wanted <= found, what, found)
    whole = folder + "/all.mtr.files" + program
    with open(whole, "rb") as here, open(folder + "/moved", "rb") as there:
        equal(here.read() == there.read(), True, "the whole program")
    subset = glob.glob(folder + "/symbols.mtr.files/.build-id/*/*.debug")
    for path in subset:
        checked = subprocess.run(["readelf", "-SW", path], capture_output=True)
        equal((checked.returncode, checked.stderr), (0, b""), path)
        check(re.search(rb"\.text +NOBITS", checked.stdout), path)
    done = execute(MEMTRACE, "extract", "--list", folder + "/none.mtr")
    equal((done.returncode, done.out), (0, b""))


case(globals())
