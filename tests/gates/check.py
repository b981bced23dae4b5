#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memtrace check: budgets that a program just keeps and just breaks, against the numbers of its report
and what it counted itself; the formats, each read by a reader of its own; what is no budget."""

import json
import os
import re
import shutil
import xml.etree.ElementTree as xml

from gates import HERE, MEMTRACE, command, compiled, profile
from harness import SOURCE, build, equal, execute, fail, finish, report, scratch

SUBJECT = os.path.join(HERE, "subject.c")
TOTALS = {"maximum": "peak_bytes", "leaked": "live_bytes", "cumulative": "total_bytes",
          "allocations": "allocations", "temporary": "temporary"}
OPTIONS = {"maximum": "--max-peak", "leaked": "--max-leaked", "cumulative": "--max-cumulative",
           "allocations": "--max-allocations", "temporary": "--max-temporary"}


def check(*arguments, status=0, cwd=None):
    return command("check", *arguments, status=status, cwd=cwd)[0]


def of_function(data, name, field):
    return sum(context[field] for context in data["contexts"]
               if any(frame["function"] == name for frame in context["frames"]))


def check_edges(path, data):
    """Each total is a budget that is met, and one less is broken."""
    for metric, total in TOTALS.items():
        value = data[total]
        if value == 0:
            fail("the subject has no", metric)
        check("%s <= %d" % (metric, value), path)
        check("%s<=%d" % (metric, value - 1), path, status=1)
        check(OPTIONS[metric], str(value), path)
        check(OPTIONS[metric], str(value - 1), path, status=1)
    inside = of_function(data, "serve", "live_bytes")
    check("leaked <= %d in function ^serve$" % inside, path)
    check("leaked <= %d in function ^serve$" % (inside - 1), path, status=1)
    outside = data["live_bytes"] - inside
    check("leaked <= %d not in function ^serve$" % outside, path)
    check("leaked <= %d not in function ^serve$" % (outside - 1), path, status=1)
    check("leaked <= %d" % inside, "--function", "^serve$", path)
    check("leaked <= %d" % (inside - 1), "--function", "^serve$", path, status=1)
    check("--tolerance", "10", "leaked <= %d" % (data["live_bytes"] * 10 // 11 + 1), path)
    check("--tolerance", "10", "leaked <= %d" % (data["live_bytes"] * 10 // 11 - 1), path, status=1)


def check_growth(before, after, folder):
    """Over a baseline, by percent and by size; the baseline's name begins at the budgets' folder."""
    old, new = report(before)["peak_bytes"], report(after)["peak_bytes"]
    grown = new - old
    just = 100 * grown / old
    for limit, status in (("%d" % grown, 0), ("%d" % (grown - 1), 1), ("%.3f%%" % (just + 0.1), 0),
                          ("%.3f%%" % (just - 0.1), 1)):
        check("growth <= %s of maximum over %s" % (limit, before), after, status=status)
        check("--baseline", before, "--max-growth", limit, after, status=status)
    check("--max-growth", "leaked=512000", "--baseline", before, after)
    check("--max-growth", "leaked=100", "--baseline", before, after, status=1)
    check("growth <= 0 of maximum over %s" % after, before)
    budgets = os.path.join(folder, "growth.budgets")
    with open(budgets, "w", encoding="utf-8") as file:
        file.write("growth <= 0% of leaked over before.mtp # as it was\n")
    line = check("--budgets", budgets, after, status=1)
    if not re.match(r".*subject\.c:\d+: error: leaked is .* and was .*: \+3\.5 KiB in cache_fill \[", line):
        fail("growth:", line)


def budgets_file(folder, data):
    path = os.path.join(folder, "all.budgets")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# what the subject may\n\n"
                   "leaked <= 0                 # broken by cache_fill\n"
                   "maximum <= 64M\n"
                   'allocations <= 3 in function "^parse$" in file subject\n'
                   "temporary <= %d\n" % data["temporary"])
    return path


def check_gcc(path, budgets):
    lines = check("--budgets", budgets, path, status=1).splitlines()
    equal(len(lines), 2, "lines of two broken budgets")
    with open(SUBJECT, encoding="utf-8") as file:
        source = file.read().splitlines()
    for line, code, budget in zip(lines, ("malloc(512)", "malloc(80)"), (3, 5)):
        match = re.match(r"(.+?):(\d+): error: .* \[.*, (.+):(\d+)\]$", line)
        if not match or code not in source[int(match.group(2)) - 1]:
            fail("where it broke:", line)
        else:
            equal(os.path.basename(match.group(1)), "subject.c", "file")
            equal((match.group(3), int(match.group(4))), (budgets, budget), "the budget's place")
    below = check("--budgets", budgets, path, status=1, cwd=SOURCE).splitlines()[0]
    if not below.startswith("tests/gates/subject.c:"):
        fail("files are named from the working folder:", below)
    equal(check("maximum <= 64M", path), path + ": 1 budget met\n", "all are met")


def check_github(path, budgets):
    lines = check("--format", "github", "--budgets", budgets, path, status=1, cwd=SOURCE).splitlines()
    equal(len(lines), 2, "annotations")
    for line, title in zip(lines, ("leaked <= 0", "allocations <= 3 in function ^parse$ in file subject")):
        match = re.match(r"::error file=([^,:]+),line=(\d+),title=([^:]*)::(.+)$", line)
        if not match:
            fail("no workflow command:", line)
        else:
            equal(match.group(1), "tests/gates/subject.c", "file")
            equal(match.group(3).replace("%3C", "<"), title, "title")
    named = check("--format", "junit", 'leaked <= 0 not in function "größe\\x01"', path, status=1)
    equal(xml.fromstring(named).find("testsuite/testcase").get("name"),
          "leaked <= 0 not in function größe\\x01", "UTF-8 in XML")
    awkward = check("--format", "github", 'leaked <= 0 not in function "a,b:c%d"', path, status=1)
    if "a%2Cb%3Ac%25d" not in awkward:
        fail("properties are not escaped:", awkward)


def check_junit(path, budgets):
    text = check("--format", "junit", "--budgets", budgets, 'leaked <= 0 not in function "<&\'>"', path,
                 status=1)
    root = xml.fromstring(text)
    suite = root.find("testsuite")
    cases = {case.get("name"): case for case in suite}
    equal((suite.get("tests"), suite.get("failures")), ("5", "3"), "JUnit counts")
    equal([name for name, case in cases.items() if case.find("failure") is not None],
          ["leaked <= 0", "allocations <= 3 in function ^parse$ in file subject",
           "leaked <= 0 not in function <&'>"], "JUnit failures")
    failure = cases["leaked <= 0"].find("failure")
    if "cache_fill at " not in failure.text or "(14,704 bytes)" not in failure.get("message"):
        fail("JUnit failure:", failure.text, failure.get("message"))
    if shutil.which("xmllint") is None:
        fail("xmllint is not there (libxml2-utils; scripts/test installs it)")
        return
    file = os.path.join(scratch(), "junit.xml")
    check("--format", "junit", "--output", file, "--budgets", budgets, path, status=1)
    done = execute(["xmllint", "--noout", "--schema", os.path.join(HERE, "junit.xsd"), file])
    equal(done.returncode, 0, "the schema:", done.stderr.decode())


def check_json(path, budgets, data):
    told = json.loads(check("--format", "json", "--budgets", budgets, path, status=1))
    equal((told["met"], [budget["met"] for budget in told["budgets"]]), (False, [False, True, False, True]),
          "JSON: met")
    leaked = told["budgets"][0]
    worst = max(data["contexts"], key=lambda context: context["live_bytes"])
    equal((leaked["value"], leaked["most"], leaked["worst"]["function"], leaked["worst"]["share"]),
          (data["live_bytes"], 0, worst["frames"][0]["function"], worst["live_bytes"]),
          "JSON: leaked")


def check_scopes(folder):
    """What each instance of a scope allocated, by the program's own count."""
    program = build([os.path.join(HERE, "scopes.c")], mode="bare")
    path, printed = profile(program, folder, "scopes.mtr", recorded=True)
    instances, most, total, most_bytes, total_bytes = map(int, printed.split()[1:])
    for metric, option, value, together in (
            ("allocations", "--max-allocations-per-scope", most, total),
            ("cumulative", "--max-bytes-per-scope", most_bytes, total_bytes)):
        told = json.loads(check("--format", "json", "%s <= %d per scope request" % (metric, value), path))
        budget = told["budgets"][0]
        equal((budget["value"], budget["instances"], budget["sum"]), (value, instances, together),
              "scopes", metric)
        check(option, "request=%d" % (value - 1), path, status=1)
    line = check("--max-allocations-per-scope", "request=3", path, status=1)
    if not re.search(r"scopes\.c:\d+: error: allocations are %d in one of %d scopes request, more than 3: "
                     r"[\d,]+ in allocate \[" % (most, instances), line):
        fail("whose fault:", line)
    check("allocations <= 0 per scope nowhere", path)
    profiled, _ = profile(program, folder, "scopes.mtp")
    _, said = command("check", "allocations <= 1 per scope request", profiled, status=2)
    if "memtrace record" not in said:
        fail("scopes of a profile:", said)
    command("check", "allocations <= 1 per scope request", "--leaked", path, status=2)


def check_suppressions(folder):
    """What the C library keeps of a stream is no leak, nor is what a file of suppressions names."""
    source = os.path.join(folder, "printing.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\nvoid *volatile kept;\n"
                   "__attribute__((noinline)) void on_purpose(size_t size) { kept = malloc(size); }\n"
                   "int main(int count, char **argv) { puts(*argv);\n"
                   "  if (count > 1) on_purpose(1234); if (count > 2) on_purpose(4321); return 0; }\n")
    program = compiled(source, folder, "printing", "-O0")
    clean, _ = profile(program, folder, "clean.mtp")
    check("--max-leaked", "0", clean)
    check("--max-leaked", "0", "--no-builtin-suppressions", clean, status=1)
    leaking, _ = profile(program, folder, "leaking.mtp", "1")
    more, _ = profile(program, folder, "more.mtp", "1", "2")
    list_of = os.path.join(folder, "suppressions")
    with open(list_of, "w", encoding="utf-8") as file:
        file.write("leak:^on_purpose$\n")
    check("--max-leaked", "1234", leaking)
    check("--max-leaked", "1233", leaking, status=1)
    check("--max-leaked", "0", "--suppressions", list_of, leaking)
    check("--max-growth", "leaked=4321", "--baseline", leaking, more)
    check("--max-growth", "leaked=4320", "--baseline", leaking, more, status=1)
    check("--max-growth", "leaked=0", "--baseline", leaking, "--suppressions", list_of, more)
    told = json.loads(command("diff", "--json", "--suppressions", list_of, leaking, more)[0])
    equal((told["totals"]["live_bytes"]["change"],
           sum(row["live_bytes"]["change"] for row in told["rows"])), (0, 0), "diff: suppressed")
    equal(told["after"]["suppressed_bytes"] - told["before"]["suppressed_bytes"], 4321,
          "diff: suppressed bytes")


def check_wrong(path, folder):
    """What is no budget: status 2, one line that says where."""
    wrong = ["leaked", "leaked <=", "leaked <= x", "heat <= 3", "leaked <= 0 in", "leaked <= 0 in town x",
             "leaked <= 0 in function", "leaked <= 0 in function [", "maximum <= 1 per scope x",
             "allocations <= 5% ", "growth <= 5%", "growth <= 5% of heat over x", "leaked <= 0 per x",
             'leaked <= 0 in function "x', "leaked <= 0 what", "allocations <= 64M", "<= 3",
             "growth <= 1 of leaked over", "leaked <= 0 not in scope x", "leaked <= 0 " + "in file x " * 40]
    for number, line in enumerate(wrong):
        budgets = os.path.join(folder, "wrong.budgets")
        with open(budgets, "w", encoding="utf-8") as file:
            file.write("# fine\nleaked <= 1G\n" + line + "\n")
        _, said = command("check", "--budgets", budgets, path, status=2)
        if "wrong.budgets:3: " not in said:
            fail("where it is wrong:", line, said)
    for arguments in ([], ["--max-leaked", "x"], ["--max-growth", "5%"], ["--baseline", path],
                      ["--format", "x", "--max-leaked", "0"], ["--max-allocations-per-scope", "x"],
                      ["--budgets", path + ".budgets"], ["leaked <= 0", path]):
        command("check", *arguments, path, status=2)
    absent = os.path.join(folder, "absent.mtp")
    command("check", "leaked <= 0", absent, status=2)
    command("check", "growth <= 1 of leaked over " + absent, path, status=2)


def check_damaged(path, folder):
    """A file that is cut off keeps no budget."""
    cut = os.path.join(folder, "cut.mtp")
    with open(path, "rb") as file:
        whole = file.read()
    with open(cut, "wb") as file:
        file.write(whole[:len(whole) // 2])
    _, said = command("check", "leaked <= 1G", cut, status=2)
    if "damaged" not in said and "cut" not in said:
        fail("cut off:", said)


def check_threads(folder):
    """A peak is known within a bound where there are threads: said where a budget is met by less."""
    path = os.path.join(folder, "threads.mtp")
    execute([MEMTRACE, "run", "--no-summary", "--output", path, "--", build("threads.c", optimize="-O1"), "little", "60000"])
    data = report(path)
    bound = data["peak_error_bytes"]
    if bound == 0:
        fail("check: the peak of threads is said to be exact")
    for more, is_told in ((0, True), (bound - 1, True), (bound, False), (-1, False)):
        _, said = command("check", "maximum <= %d" % (data["peak_bytes"] + more), path, status=more < 0)
        equal("the true peak may be up to" in said, is_told, "check: a peak that is met by", more, "of", bound)


def main():
    folder = scratch()
    before, _ = profile(build([SUBJECT], optimize="-O1"), folder, "before.mtp")
    after, _ = profile(build([SUBJECT], optimize="-O1", flags=["-DAFTER", "-DPLANTED=7"]), folder,
                       "after.mtp")
    data = report(after)
    budgets = budgets_file(folder, data)
    check_edges(after, data)
    check_growth(before, after, folder)
    check_gcc(after, budgets)
    check_github(after, budgets)
    check_junit(after, budgets)
    check_json(after, budgets, data)
    check_scopes(folder)
    check_suppressions(folder)
    check_wrong(after, folder)
    check_damaged(after, folder)
    check_threads(folder)
    finish()


main()
