# SPDX-License-Identifier: MIT
"""poolroom.py CASE: what pools hold of the heap and of mappings (poolroom.c), as the program itself knows it: named by
--alloc, and told by the interface."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (MEMTRACE, SOURCE, build, clean_environment, equal, execute, finish, profiles,  # noqa: E402
                     report, scratch)

NAMES = ["pool", "live_blocks", "live_bytes", "heap_blocks", "heap_bytes", "mappings", "mapping_bytes", "pool_blocks",
         "pool_bytes", "outside_blocks", "outside_bytes"]
SPECIFICATIONS = ["take_a(size=2)=alloc:a", "take_b(size=2)=alloc:b", "give_a=free:a", "give_b=free:b"]


def program():
    return build(os.path.join(HERE, "poolroom.c"), "gcc", "-O2", flags=["-I" + os.path.join(SOURCE, "include")])


def run(case, tells, is_followed=True):
    """What it says, sorted, and its profiles."""
    folder = scratch()
    options = [] if tells or not is_followed else [word for one in SPECIFICATIONS for word in ("--alloc", one)]
    under = execute([MEMTRACE, "run", "--no-summary", *options, "--", program(), case] + (["tells"] if tells else []),
                    clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")), folder)
    equal((under.stderr.decode(), under.returncode), ("", 0), case, "lines and status")
    said = sorted([row[0], *map(int, row[1:])] for row in map(str.split, under.stdout.decode().splitlines()))
    return said, profiles(folder)


def rows(profile):
    return sorted([row[name] for name in NAMES] for row in report(profile)["by_pool"])


def query(profile, statement):
    told = subprocess.run([MEMTRACE, "query", "--format", "json", profile, statement], env=clean_environment(),
                          capture_output=True, text=True, check=True).stdout
    return json.loads(told)


def check_sums(case, profile):
    """What is said twice is the same."""
    data = report(profile)
    for row in data["by_pool"]:
        held = row["heap_bytes"] + row["mapping_bytes"] + row["pool_bytes"]
        equal((row["held_bytes"], row["held_back_bytes"]), (held, held - row["live_bytes"] + row["outside_bytes"]), case, row)
    equal(query(profile, "SELECT * FROM pools"), data["by_pool"], case, "pools of a query")
    own = query(profile, "SELECT own_resident_bytes FROM summary")[0]["own_resident_bytes"]
    equal(own < 24 << 20, True, case, "pages that nobody wrote are not looked at", own)
    text = execute([MEMTRACE, "report", "--show-pools", profile], clean_environment()).stdout.decode()
    for row in data["by_pool"]:
        equal(any(line.split()[:1] == [row["pool"]] for line in text.splitlines()), True, case, "in the table", text)


def single(case):
    for tells in (False, True):
        said, found = run(case, tells)
        equal(len(found), 1, case, "profiles")
        equal(rows(found[0]), said, case, "told" if tells else "named")
        check_sums(case, found[0])
        data, alone = report(found[0]), report(run(case, False, is_followed=False)[1][0])
        for name in ("allocations", "total_bytes", "frees", "live_bytes", "live_blocks", "peak_bytes"):
            equal(data[name], alone[name], case, name, "of the heap, as without pools")


def forks():
    """Of the child what it allocated itself."""
    for tells in (False, True):
        said, found = run("forks", tells)
        got = sorted(row for profile in found for row in rows(profile) if row[3] is not None)
        equal(len(found), 2, "profiles")
        for row in said:
            equal(row in got, True, "forks", tells, row, got)


def asked(*words):
    """Standard output, status."""
    done = execute([MEMTRACE, *words], clean_environment())
    return done.stdout.decode(), done.returncode


def verbs():
    """Each command that takes a filter takes a pool, and then it is the pool that it is about."""
    said, (first,) = run("wrapped", False)
    (_, (second,)) = run("chunks", False)
    blocks, size = said[0][1:3]
    equal(asked("check", first, "--pool", "a", "--max-leaked", str(size))[1], 0, "a budget that is kept")
    for budget in (["--max-leaked", str(size - 1)], ["--max-allocations", str(blocks - 1)], ["--max-peak", str(size - 1)]):
        equal(asked("check", first, "--pool", "a", *budget)[1], 1, "a budget that is not", budget)
    rows = [[row for row in report(one)["by_pool"] if row["pool"] == "a"][0] for one in (first, second)]
    told = json.loads(asked("diff", first, second, "--pool", "a", "--json")[0])
    for name, key in (("live_bytes", "live_bytes"), ("total_bytes", "total_bytes"), ("allocations", "allocations")):
        equal([told["totals"][name][side] for side in ("before", "after")], [row[key] for row in rows], "diff", name)
    for form, number in (("folded", sum), ("csv", None)):
        text = asked("export", "--format", form, "--cost", "allocated", "--pool", "a", "--output", "-", first)[0] \
            if form == "folded" else asked("report", first, "--pool", "a", "--format", "csv")[0]
        values = [int(line.split(" ")[-1]) for line in text.splitlines()] if number else \
            [int(line.split(",")[6]) for line in text.splitlines()[1:]]
        equal(sum(values), size, form, text[:500])
    equal(asked("export", "--format", "massif", "--pool", "a", "--output", "-", first), ("", 1), "the heap alone")
    equal(query(first, "SELECT sum(total_bytes) AS sum FROM contexts WHERE pool = 'a'"), [{"sum": size}], "query")
    equal("there is no pool 'c'" in execute([MEMTRACE, "report", "--pool", "c", first], clean_environment()).stderr.decode(),
          True, "no such pool")


if sys.argv[1] == "forks":
    forks()
elif sys.argv[1] == "verbs":
    verbs()
else:
    single(sys.argv[1])
finish()
