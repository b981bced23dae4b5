#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memtrace diff over rebuilds: a program whose lines moved, whose functions were inlined, which lies
at other addresses: only what was planted shows. And for any two files: in every --by the changes of
all rows add up to the change of the totals that the two reports give."""

import csv
import io
import json
import os
import random

from gates import HERE, command, compiled, profile
from harness import build, equal, execute, fail, finish, report, scratch, MEMTRACE

PLANTED = 7
METRICS = ("peak_bytes", "live_bytes", "total_bytes", "allocations", "temporary")
TOTALS = ("peak_bytes", "live_bytes", "total_bytes", "allocations", "temporary")
SUBJECT = os.path.join(HERE, "subject.c")


def run_diff(before, after, *options, status=0):
    return command("diff", *options, before, after, status=status)[0]


def difference(before, after, *options):
    return json.loads(run_diff(before, after, "--json", *options))


def changes(rows, metric):
    return {row["name"]: row[metric]["change"] for row in rows if row[metric]["change"] != 0}


def adds_up(before, after, what):
    """Against the totals of the two reports, which know nothing of differences."""
    reports = [report(before), report(after)]
    for by in ("path", "function", "file", "module"):
        data = difference(before, after, "--by", by)
        for metric, total in zip(METRICS, TOTALS):
            told = data["totals"][metric]
            equal([told["before"], told["after"]], [one[total] for one in reports], what, by, metric,
                  "totals")
            equal(sum(row[metric]["change"] for row in data["rows"]),
                  reports[1][total] - reports[0][total], what, by, metric, "sum of changes")
        if by != "path":
            continue
        rows = list(csv.reader(io.StringIO(run_diff(before, after, "--csv", "--by", by))))
        equal(len(rows) - 1, len(data["rows"]), what, by, "rows of CSV")
        place = rows[0].index("total_bytes_change")
        equal([int(row[place]) for row in rows[1:]],
              [row["total_bytes"]["change"] for row in data["rows"]], what, by, "CSV")


def only_planted(before, after, what):
    """Of all that was moved and inlined only the planted blocks are a change of what is leaked."""
    rows = difference(before, after, "--metric", "leaked")["rows"]
    grown = [row for row in rows if row["live_bytes"]["change"] != 0]
    if equal([row["live_bytes"]["change"] for row in grown], [512 * PLANTED], what, "leaked"):
        names = [frame["function"] for frame in grown[0]["frames"]]
        jumps = what == "jumped"  # serve() ends by a jump to cache_fill()
        equal(names, ["cache_fill", "main"] if jumps else ["cache_fill", "serve", "main"], what, "path")
        equal(grown[0]["state"], "changed", what, "state")
    equal(changes(rows, "allocations"), {"cache_fill": PLANTED, "retired": -1}, what, "allocations")
    gone = [row["name"] for row in rows if row["state"] == "gone"]
    equal(gone, ["retired"], what, "gone")
    equal([row["name"] for row in rows if row["state"] == "new"], [], what, "new")


def shifted(folder):
    """The subject with lines put in, more of them as it goes on, under the same base name."""
    path = os.path.join(folder, "subject.c")
    with open(SUBJECT, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as file:
        pieces = source.read().split("/* lines */")
        file.write(pieces[0])
        for number, piece in enumerate(pieces[1:], 1):
            file.write("\n" * (3 * number) + piece)
    return path


def check_rebuilds(folder):
    moved = shifted(folder)
    before = profile(build([SUBJECT], optimize="-O1"), folder, "before.mtp")[0]
    flags = ["-DAFTER", "-DPLANTED=%d" % PLANTED]
    builds = {"elsewhere": (flags + ["-no-pie", "-Wl,-Ttext-segment=0x900000"], "-O1"),
              "inlined": (flags + ["-fno-optimize-sibling-calls"], "-O2"),
              "jumped": (flags, "-O2"),
              "moved": (flags, "-O1")}
    for what, (more, optimize) in builds.items():
        program = compiled(moved, folder, what, optimize, *more)
        after = profile(program, folder, what + ".mtp")[0]
        only_planted(before, after, what)
        adds_up(before, after, what)
    same = profile(build([SUBJECT], optimize="-O1"), folder, "again.mtp")[0]
    equal(difference(before, same)["rows"], [], "the same program twice")
    recorded = profile(os.path.join(folder, "moved"), folder, "moved.mtr",
                       recorded=True)[0]
    only_planted(before, recorded, "a profile and a recording")
    return before, after


def check_tolerance(folder, before, after):
    """Exact lines: what moved is gone here and new there, and the sums stay."""
    rows = difference(before, after, "--line-tolerance", "0")["rows"]
    index = [row for row in rows if row["name"] == "index_block"]
    equal(sorted(row["state"] for row in index), ["gone"] * 3 + ["new"] * 3, "no tolerance", "states")
    near = difference(before, after, "--line-tolerance", "100")["rows"]
    equal([row["name"] for row in near if row["live_bytes"]["change"] != 0], ["cache_fill"],
          "a tolerance that is wide enough")
    equal(sum(row["live_bytes"]["change"] for row in rows), 512 * PLANTED, "no tolerance", "sum")


def check_random(folder):
    """Programs of random calls: the sums hold, whatever matches what."""
    random.seed(5)
    paths = []
    for version in range(2):
        source = os.path.join(folder, "random.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <stdlib.h>\nvoid *volatile kept;\n")
            for number in range(12):
                file.write("\n" * random.randrange(4))
                file.write("__attribute__((noinline)) void f%d(void) {\n" % number)
                for _ in range(random.randrange(1, 5)):
                    size = random.randrange(1, 5000)
                    callee = random.randrange(12)
                    file.write("\n" * random.randrange(2))
                    file.write(random.choice(["    kept = malloc(%d);\n" % size,
                                              "    free(malloc(%d));\n" % size]))
                    if callee < number:
                        file.write("    f%d();\n" % callee)
                file.write("}\n")
            file.write("int main(void) { f11(); f10(); f9(); f5(); }\n")
        paths.append(profile(compiled(source, folder, "random", "-O0"), folder, "random.%d.mtp" % version)[0])
    adds_up(*paths, "random")
    adds_up(*reversed(paths), "random, backwards")


def check_filters(before, after):
    """Filters hold for both sides: parts add up to the whole."""
    whole = difference(before, after)["totals"]
    parts = [difference(before, after, option, "^serve$") for option in ("--function", "--not-function")]
    for metric in METRICS:
        for side in ("before", "after", "change"):
            equal(sum(part["totals"][metric][side] for part in parts), whole[metric][side], "filters",
                  metric, side)
        for part in parts:
            equal(sum(row[metric]["change"] for row in part["rows"]), part["totals"][metric]["change"],
                  "filters", metric, "sum of changes")
    if "cache_fill" in [row["name"] for row in parts[1]["rows"]]:
        fail("--not-function serve shows what serve() calls")


def check_forms(before, after):
    text = run_diff(before, after, "--metric", "leaked")
    for part in ("MemTrace difference of moved", "+3.5 KiB", "cache_fill at subject.c:"):
        if part not in text:
            fail("text lacks", part, "in", text)
    table = run_diff(before, after, "--metric", "leaked", "--markdown", "--by", "function")
    if "| +3.5 KiB | 5.0 KiB | 8.5 KiB |  | cache\\_fill |" not in table:
        fail("Markdown:", table)
    equal(text, run_diff(before, after, "--metric", "leaked"), "the same input, the same output")
    small = run_diff(before, after, "--metric", "leaked", "--min", "4K")
    if "cache_fill" in small or "(1 smaller: +3.5 KiB, 0 B)" not in small:
        fail("--min:", small)
    for arguments in (["--by", "colour"], ["--metric", "x"], ["--line-tolerance", "-1"], ["--min", "y"]):
        run_diff(before, after, *arguments, status=2)
    run_diff(before, before + ".absent.mtp", status=1)
    equal(execute([MEMTRACE, "diff", before]).returncode, 2, "one file", "status")


def check_damaged(folder, before, after):
    """Cut off anywhere: it is shown up to the break, and never crashes."""
    with open(after, "rb") as file:
        data = file.read()
    cut = os.path.join(folder, "cut.mtp")
    for size in (0, 100, 4096, 5000, len(data) // 3, len(data) // 2, len(data) - 1):
        with open(cut, "wb") as file:
            file.write(data[:size])
        for form in ("--json", "--csv"):
            status = execute([MEMTRACE, "diff", form, before, cut]).returncode
            if status not in (0, 1):
                fail("cut at", size, form, "status", status)


def main():
    folder = scratch()
    before, after = check_rebuilds(folder)
    check_tolerance(folder, before, after)
    check_random(folder)
    check_filters(before, after)
    check_forms(before, after)
    check_damaged(folder, before, after)
    finish()


main()
