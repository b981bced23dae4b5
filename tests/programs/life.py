# SPDX-License-Identifier: MIT
"""life.py CASE: how processes begin, multiply and end under MemTrace. Output and exit status are
the program's own; every process leaves one whole profile that holds what it allocated."""

import os
import stat
import sys

import lightreader
from harness import (MEMTRACE, bare, build, by_size, clean_environment, consistent, equal, execute,
                     fail, finish, profiles, report, same_behaviour, scratch, skip, traced)

# case: list of processes, each {size: (allocations, frees)}; use(n) frees half of its blocks
WANT = {
    "fork": [{80001: (10, 5), 80003: (1, 0), 80021: (30, 15)}, {80011: (20, 10)}],
    "fork_threads": [{80111: (10, 5)}] + [{80101: (10, 5)}] * 20,
    "fork_of_fork": [{80201: (2, 1)}, {80203: (4, 2)}, {80205: (6, 3)}],
    "raw_fork": [{80301: (2, 1), 80307: (2, 1)}, {80303: (4, 2)}, {80305: (4, 2)}],
    "vfork": [{80401: (2, 1), 80403: (20, 10)}],
    "spawn": [{80501: (2, 1), 80503: (2, 1)}],
    "exec": [{80601: (4, 2)}],
    "failing_exec": [{80611: (4, 2), 80613: (4, 2)}],
    "exit": [{80701: (4, 2)}], "underscore_exit": [{80701: (4, 2)}], "Exit": [{80701: (4, 2)}],
    "quick_exit": [{80701: (4, 2), 80703: (4, 2)}],
    "abort": [{80701: (4, 2)}], "segv": [{80701: (4, 2)}], "sigkill": [{80701: (4, 2)}],
    "sigterm": [{80701: (4, 2)}],
    "exit_in_thread": [{80701: (4, 2), 80705: (4, 2)}],
    "main_leaves_first": [{80701: (4, 2), 80707: (4, 2)}],
    "daemon": [{80801: (10, 5)}], "closefrom": [{80811: (10, 5), 80813: (10, 5)}],
    "chroot": [{80901: (10, 5), 80903: (10, 5)}], "setuid": [{80911: (10, 5), 80913: (10, 5)}],
    "many_threads": [{1101: (4000, 4000)}],
    "thousand_alive": [{1103: (2000, 1000), 80951: (10, 5)}],
    "foreign_frees": [{81001: (100, 100)}],
    "late": [{81101: (10, 5)}],
    "signals_in_malloc": [{81201: (10, 5)}],
}
KILLED = {"abort", "segv", "sigkill", "sigterm"}  # nobody in the process can finish the profile
ROOT = {"chroot", "setuid"}


def light_children(path):
    """by_size() of each forked child that stayed light: its part of its ancestor's profile."""
    profile = lightreader.Profile(path)
    found = []
    for child in profile.children():
        if child.state not in (lightreader.ENDED, lightreader.EXECED):
            continue
        sizes = {}
        for _, _, alloc_bytes, allocations, _, frees in profile.paths(child).values():
            if allocations and alloc_bytes % allocations == 0:
                before = sizes.get(alloc_bytes // allocations, (0, 0))
                sizes[alloc_bytes // allocations] = (before[0] + allocations, before[1] + frees)
        found.append(sizes)
    return found


def check_processes(name, found, what):
    """Each expected process has a profile of its own, or its part of its ancestor's."""
    left = list(found)
    for process in WANT[name]:
        match = next((sizes for sizes in left
                      if all(sizes.get(size) == counts for size, counts in process.items())), None)
        if match is None:
            marked = [{size: counts for size, counts in sizes.items() if size > 80000 or size in process}
                      for sizes in left]
            fail(what, "no profile holds", process, "of", marked)
        else:
            left.remove(match)


def main():
    name = sys.argv[1]
    if name in ROOT and os.geteuid() != 0:
        skip("needs root")
    for compiler, mode in (("gcc", "preload"), ("gcc", "run"), ("gcc", "hooks"),
                           ("clang", "frame-pointer")):
        what = "%s %s:" % (name, mode)
        program = build("life.c", compiler, "-O2", mode)
        folder, regions = scratch(), scratch(where="/dev/shm")
        if name == "setuid":
            os.chmod(folder, stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        settings = {"MEMTRACE_REGION_DIR": regions}
        alone = bare([program, name])
        if alone.returncode == 77:
            skip("the machine refuses what this case needs")
        under = traced([program, name], mode, folder, settings)
        if name in ROOT and under.stderr.count(b"\n") == 1 and under.stderr.startswith(b"memtrace: "):
            under.stderr = b""  # where the profile cannot be written any more, one line says so
        same_behaviour(alone, under, what)
        if (name in KILLED and mode != "run") or name in ("chroot", "setuid", "fork_threads"):
            # any later command that meets the region of a killed program moves it to its place
            listed = execute([MEMTRACE, "list"], clean_environment(**settings))
            equal(listed.returncode, 0, what, "memtrace list", listed.stderr.decode())
        found = profiles(folder)
        if name == "chroot" and not found:
            found = [os.path.join(regions, left) for left in os.listdir(regions)]
        else:
            equal(os.listdir(regions), [], what, "regions left behind")
        reports, light = [], []
        for path in found:
            light += light_children(path)
            data = report(path, settings)
            if name not in ("late", "main_leaves_first", "exit_in_thread", "fork_threads"):
                consistent(data, what + " " + os.path.basename(path), slack=4)
            reports.append(data)
        check_processes(name, [by_size(data) for data in reports] + light, what)
        if name == "foreign_frees" and reports:
            check_foreign(reports[0], what)
    finish()


def check_foreign(data, what):
    """Two threads freed 50 blocks each that a third had allocated."""
    foreign = 0
    for thread in data["threads"]:
        given = thread["freed_for_others"]
        if isinstance(given, dict):
            foreign += given.get("blocks", given.get("frees", 0))
        elif isinstance(given, list):
            foreign += sum(item.get("blocks", item.get("frees", 0)) for item in given)
        else:
            foreign += given
    if foreign not in (100, 100 * 81001):
        fail(what, "freed for others:", [thread["freed_for_others"] for thread in data["threads"]])


main()
