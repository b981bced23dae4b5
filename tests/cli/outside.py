# SPDX-License-Identifier: MIT
"""outside.py: what run_test.py and collector_test.py share: a folder and a region folder of its own for
each case, and the command started in it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(SOURCE), "programs"))

from harness import BUILD, LIBRARY, MEMTRACE, PATIENCE, PRELOAD, is_gone, raw_profile, shared  # noqa: E402, F401

TOTALS = re.compile(rb"memtrace: allocations        ([0-9,]+) \(")

folder = tempfile.mkdtemp(prefix="memtrace-cli-")
regions = folder + "/regions"
os.mkdir(regions, 0o700)
environment = {name: value for name, value in os.environ.items()
               if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
environment["MEMTRACE_REGION_DIR"] = regions
environment["TMPDIR"] = folder + "/tmp"
os.mkdir(folder + "/tmp")


def build(*flags):
    program = folder + "/subject"
    subprocess.run(["cc", "-g", "-O1", *flags, "-I", SOURCE + "/../../include",
                    "-I", BUILD + "/include", SOURCE + "/subject.c", "-o", program, "-pthread"],
                   check=True)
    return program


def start(arguments, **settings):
    extra = settings.pop("env", {})
    settings.setdefault("stdout", subprocess.PIPE)
    settings.setdefault("stderr", subprocess.PIPE)
    settings.setdefault("cwd", folder)
    return subprocess.Popen(arguments, env={**environment, **extra}, **settings)


def execute(*arguments, **settings):
    process = start(list(arguments), **settings)
    process.out, process.err = process.communicate(timeout=60)
    return process


def run(*arguments, **settings):
    return execute(MEMTRACE, "run", *arguments, **settings)


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def equal(found, wanted, *what):
    check(found == wanted, *what, "found", repr(found), "wanted", repr(wanted))


def profiles():
    return sorted(name for name in os.listdir(folder) if ".mtp" in name)


def no_leftovers():
    equal(os.listdir(regions), [], "regions left:")
    equal([name for name in os.listdir(folder) if name.startswith(".memtrace-")], [], "temporary files:")


def wait_line(process, line):
    found = process.stdout.readline()
    equal(found, line)


def ended_after(process, text):
    """Ends it when it is ready and this was said on stderr. All that was."""
    wait_line(process, b"ready\n")
    found = b""
    while text not in found:
        line = process.stderr.readline()
        check(line, "ended without", text, found)
        found += line
    process.terminate()
    return found + process.communicate(timeout=PATIENCE)[1]


def wait_until(condition, *what):
    """Waits for something that takes its time on a slow machine."""
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, "waited in vain for", *what)
        time.sleep(0.02)


def child_of(process):
    path = "/proc/%d/task/%d/children" % (process.pid, process.pid)
    wait_until(lambda: open(path).read().strip(), "a child")
    return int(open(path).read().split()[0])


def allocations(error):
    found = TOTALS.search(error)
    check(found, "no summary in", error)
    return int(found.group(1).replace(b",", b""))


def case(cases):
    """Runs the case that the command line names."""
    try:
        cases["test_" + sys.argv[1]]()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
