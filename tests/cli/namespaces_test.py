# SPDX-License-Identifier: MIT
"""namespaces_test.py CASE: programs and commands in different PID namespaces that share a folder of
regions, daemons that drop their privileges, and whose dead regions a command touches. Root only."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from outside import (MEMTRACE, PRELOAD, SOURCE, build, case, check, environment, equal, execute,
                     folder, no_leftovers, profiles, regions, run, start, wait_line, wait_until)

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]
ROUNDS, BASE = 700, 2  # churn's blocks, and main's block and stdout's buffer beside them


def needs_root(*command):
    """Skips where this is not allowed; both rights are missing in many containers."""
    if os.geteuid() != 0 or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        print("skipped: needs root, and", " ".join(command))
        sys.exit(77)


def told(path):
    return json.loads(execute(MEMTRACE, "report", "--json", path).out)


def complete(path, rounds=ROUNDS):
    """Nothing that the program did is missing."""
    data = told(path)
    equal((data["total_allocations"], data["total_frees"], data["lost"]), (BASE + rounds, rounds, 0),
          "allocations, frees, lost of", path)


def in_the_way(inside, process):
    """What people ask while a program runs; nothing of it may take the program's region."""
    region, = os.listdir(regions)
    while process.poll() is None:
        listed = execute(*inside, MEMTRACE, "list")
        equal((listed.returncode, listed.err), (0, b""), listed.out)
        check(b"left unfinished" not in listed.out, listed.out)
        if process.poll() is None and os.listdir(regions) == [region]:
            check(re.search(rb"^ +\d+  subject ", listed.out, re.M), "not listed:", listed.out)
        execute(*inside, MEMTRACE, "report")
        execute(*inside, MEMTRACE, "report", region.split(".")[0])
        other = execute(*inside, MEMTRACE, "run", "-o", "other.mtp", "--", folder + "/subject")
        equal(other.returncode, 0, other.err)
        check(b"subject" not in other.err.replace(b"other.mtp", b""), other.err)


def other_namespace(program_inside, preloaded):
    """A program and commands, one of them in a namespace of its own."""
    needs_root(*NAMESPACE)
    program = build()
    command = [program, "ready", "churn%d" % ROUNDS]
    command = command if preloaded else [MEMTRACE, "run", "--no-summary", "--", *command]
    extra = {"LD_PRELOAD": PRELOAD} if preloaded else {}
    settings = ["env", "MEMTRACE_OUTPUT=out.mtp", *("%s=%s" % item for item in extra.items())]
    process = start([*(NAMESPACE if program_inside else []), *settings, *command])
    wait_line(process, b"ready\n")
    in_the_way([] if program_inside else NAMESPACE, process)
    err = process.communicate(timeout=60)[1]
    equal(process.returncode, 0, err)
    complete(folder + "/out.mtp")
    equal([name for name in profiles() if name not in ("out.mtp", "other.mtp")], [], "profiles")
    no_leftovers()


def test_namespace_preloaded_inside():
    other_namespace(True, True)


def test_namespace_run_inside():
    other_namespace(True, False)


def test_namespace_preloaded_outside():
    other_namespace(False, True)


def test_namespace_run_outside():
    other_namespace(False, False)


def test_namespace_vanished():
    """What a killed program left there is adopted by `memtrace list`, once nobody has it open."""
    needs_root(*NAMESPACE)
    program = build()
    process = start([*NAMESPACE, "--kill-child", "env", "LD_PRELOAD=" + PRELOAD, "MEMTRACE_OUTPUT=out.mtp",
                     program, "churn100", "ready", "pause"])
    wait_line(process, b"ready\n")
    name, = os.listdir(regions)
    with open(os.path.join(regions, name), "rb"):
        process.kill()
        process.communicate()
        equal(execute(MEMTRACE, "list").err, b"")
        equal(os.listdir(regions), [name], "a region that somebody has open")
    wait_until(lambda: b"left unfinished" in execute(MEMTRACE, "list").out, "memtrace list", tries=50)
    complete(folder + "/out.mtp", 100)
    no_leftovers()


def killed(program, output):
    process = start([program, "ready", "pause"], env={"LD_PRELOAD": PRELOAD, "MEMTRACE_OUTPUT": output})
    wait_line(process, b"ready\n")
    process.kill()
    process.communicate()
    return process.pid


def test_nobody_elses_files():
    """Only `memtrace list` moves what others left; who is asked about one program, that one's."""
    program = build()
    first, second = killed(program, "first.mtp"), killed(program, "second.mtp")
    left = sorted(os.listdir(regions))
    equal(len(left), 2, left)
    done = run("-o", "mine.mtp", "--", program, "exit0")
    check(b"first" not in done.err and b"second" not in done.err, done.err)
    for command in (["report", "mine.mtp"], ["check", "--max-leaked", "1G", "mine.mtp"], ["top", "mine.mtp"],
                    ["export", "--format", "folded", "mine.mtp"], ["diff", "mine.mtp", "mine.mtp"],
                    ["report", "999999999"], ["record", "-o", "mine.mtr", "--", program]):
        done = execute(MEMTRACE, *command)
        check(b"left unfinished" not in done.err + done.out, command, done.err)
        equal(sorted(os.listdir(regions)), left, "regions after", command)
    done = execute(MEMTRACE, "report", str(first))
    equal((done.returncode, done.err.count(b"left unfinished")), (0, 1), done.err)
    equal([name.split(".")[0] for name in os.listdir(regions)], [str(second)])
    listed = execute(MEMTRACE, "list")
    check(b"(pid %d)" % second in listed.out and b"(pid %d)" % first not in listed.out, listed.out)
    equal([name for name in profiles() if name != "mine.mtp"], ["first.mtp", "second.mtp"])
    no_leftovers()


# ---- Privileges ----

OWN_SHM = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
SHOW = 'shift 0; "$@"; status=$?; find /dev/shm -type f >%s/left; exit $status'


def workers_program(*flags):
    place = tempfile.mkdtemp(prefix="memtrace-workers-", dir="/tmp")  # nobody can reach it
    os.chmod(place, 0o755)
    subprocess.run(["cc", "-g", "-O1", *flags, SOURCE + "/workers.c", "-o", place + "/workers"], check=True)
    return place + "/workers"


def as_stranger(command, settings):
    """The command with a /dev/shm of its own, as a user has it: the folders of regions are the
    default ones. Returns the run, and what was left in them."""
    done = execute(*OWN_SHM, "env", "-u", "MEMTRACE_REGION_DIR", *settings, "sh", "-c", SHOW % folder,
                   "sh", *command)
    with open(folder + "/left", encoding="utf-8") as left:
        return done, left.read().split()


def processes(entry):
    """(allocations, frees, lost) of each process of the run's entry, as the report tells them."""
    data = told(entry)
    rows = data.get("run", data).get("processes") or data.get("processes") or []
    return data, rows


def privileges(command, settings=()):
    """Each worker is counted once, wherever it allocated; what the daemon does is as bare."""
    needs_root(*OWN_SHM)
    daemon = command[-1]
    for early in (0, 500):
        arguments = ["2", "20000", str(early)]
        alone = execute(daemon, *arguments)
        if alone.returncode == 77:
            print("skipped: cannot become nobody here")
            sys.exit(77)
        equal(alone.returncode, 0, alone.err)
        done, left = as_stranger([*command, *arguments], settings)
        equal((done.returncode, done.out), (0, alone.out), done.err)
        equal(left, [], "regions left")
        check(b"killed" not in done.err and b"cannot" not in done.err and b"no place" not in done.err,
              done.err)
        data, rows = processes("out.mtp")
        more = 2 if early else 1  # a table of pointers each time
        workers = [row for row in rows if row["allocations"] > 1000]
        equal([(row["allocations"], row["frees"], row["lost"], row["end"]) for row in workers],
              [(20000 + more, 20000 + more, 0, "ended")] * 2, "workers", early, rows)
        entry = folder + "/out.mtp"
        shutil.rmtree(entry) if os.path.isdir(entry) else os.unlink(entry)


if __name__ == "__main__":
    case(globals())
