#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums of each format are the totals of the report, for each cost, of a recording and of a profile;
folded stacks are also compared line by line with what the report's call paths add up to."""

import collections
import csv
import io
import os
import random
import stat

from exported import (COSTS, MEMTRACE, clean_environment, equal, execute, export, export_json, fail,
                      finish, recorded, report, scratch, spelled)


def folded_lines(text, what):
    found = {}
    for line in text.decode().splitlines():
        stack, _, number = line.rpartition(" ")
        if stack in found or not number.isdigit() or number == "0":
            fail(what, "a line of its own, with a number:", line)
        found[stack] = int(number)
    return found


def stacks_of(data, part):
    """Folded stacks with all frames, as the report's call paths say."""
    found = collections.Counter()
    for context in data["contexts"]:
        names = [spelled(frame).replace(";", ":") for frame in reversed(context["frames"])]
        found[";".join(names)] += context[part]
    return {stack: number for stack, number in found.items() if number}


def check_folded(source, data, cost, what):
    total, part = COSTS[cost]
    whole = ("--format", "folded", "--cost", cost, "--all-frames", "--full-names")
    equal(folded_lines(export(source, *whole), what), stacks_of(data, part), what, "stacks")
    brief = folded_lines(export(source, "--format", "folded", "--cost", cost), what)
    equal(sum(brief.values()), data[total], what, "the sum of folded stacks")
    if cost == "total":
        equal(["main;recurse;leak" in brief, any("main;recurse;recurse" in stack for stack in brief),
               any("ping;pong;ping" in stack for stack in brief)], [True, False, True], what, "recursion")
        equal(any("table<>::add" in stack for stack in brief), True, what, "short names")
    lines = folded_lines(export(source, "--format", "folded", "--cost", cost, "--by", "line"), what)
    equal(sum(lines.values()), data[total], what, "the sum of folded stacks by line")


def check_gprof2dot(source, data, cost, what):
    found = export_json(source, "--format", "gprof2dot", "--cost", cost)
    equal(sum(event["cost"][0] for event in found["events"]), data[COSTS[cost][0]], what, "gprof2dot")
    used = {number for event in found["events"] for number in event["callchain"]}
    equal(used <= set(range(len(found["functions"]))), True, what, "numbers of functions")


def check_speedscope(source, data, what):
    found = export_json(source, "--format", "speedscope", "--cost", "live")
    equal(found["activeProfileIndex"], list(COSTS).index("live"), what, "the open profile")
    for cost, profile in zip(COSTS, found["profiles"]):
        total, part = COSTS[cost]
        equal(profile["endValue"], data[total], what, cost, "speedscope")
        stack, at = [], 0
        own = collections.Counter()
        for event in profile["events"]:
            own[stack[-1] if stack else None] += event["at"] - at
            at = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            elif not stack or stack.pop() != event["frame"]:
                fail(what, cost, "a call closes that is not the innermost:", event)
        equal((stack, at, own[None]), ([], data[total], 0), what, cost, "all calls close at the total")
        expected = collections.Counter()
        for context in data["contexts"]:
            frame = context["frames"][0]
            expected[(frame["function"] or spelled(frame)).split("(")[0]] += context[part]
        for number, cost_of in own.items():
            name = found["shared"]["frames"][number]["name"] if number is not None else None
            if name in ("leak", "recurse", "temporaries", "main") and expected[name] != cost_of:
                fail(what, cost, "own cost of", name, cost_of, "expected", expected[name])


def check_same_as_report(source, data, what):
    got = export_json(source, "--format", "json")
    equal(got["contexts"], [dict(c, frames=got["contexts"][i]["frames"])
                            for i, c in enumerate(data["contexts"])], what, "JSON")
    rows = list(csv.DictReader(io.StringIO(export(source, "--format", "csv").decode(), newline="")))
    for total, part in COSTS.values():
        equal(sum(int(row[part]) for row in rows if row["class"] == "heap"), data[total], what, "CSV", part)


def check_filtered(recording, data):
    """What a filter takes and what it leaves are the whole, in each format."""
    for cost, (total, _) in COSTS.items():
        sums = []
        for words in (["--size", "..100"], ["--size", "101.."]):
            folded = folded_lines(export(recording, "--format", "folded", "--cost", cost, *words), cost)
            found = export_json(recording, "--format", "gprof2dot", "--cost", cost, *words)
            sums.append(sum(folded.values()))
            equal(sum(event["cost"][0] for event in found["events"]), sums[-1], cost, *words)
        equal((sum(sums), all(sums) or cost == "temporary"), (data[total], True), cost, "both parts", sums)


def check_cut(recording, folder):
    """A file that breaks off: what is whole is exported, and a line says so."""
    cut = os.path.join(folder, "cut.mtr")
    with open(recording, "rb") as file:
        whole = file.read()
    for size in (len(whole) * 2 // 3, len(whole) - 20):
        with open(cut, "wb") as file:
            file.write(whole[:size])
        data = report(cut)
        folded = folded_lines(export(cut, "--format", "folded", "--cost", "total"), "cut")
        equal((sum(folded.values()), len(data["warnings"]) > 0), (data["total_bytes"], True), "cut at", size)
        for name in ("flamegraph", "html", "gprof2dot", "speedscope", "json", "csv"):
            result = execute([MEMTRACE, "export", "--format", name, cut], clean_environment())
            equal((result.returncode, result.stderr.count(b"\n"), len(result.stdout) > 0),
                  (0, len(data["warnings"]), True), "cut at", size, name, result.stderr)


def check_damaged(source, folder):
    """Bytes that are wrong anywhere: whatever can be read is exported, or one line says why not."""
    names = [line.split()[0] for line in execute([MEMTRACE, "export", "--list"]).stdout.decode().splitlines()]
    chance = random.Random(4)
    with open(source, "rb") as file:
        whole = file.read()
    for turn in range(40):
        bad = bytearray(whole)
        for _ in range(chance.choice((1, 10, 200))):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        path = os.path.join(folder, "bad" + os.path.splitext(source)[1])
        with open(path, "wb") as file:
            file.write(bad)
        out = os.path.join(folder, "bad.out")
        result = execute([MEMTRACE, "export", "--format", names[turn % len(names)], "--output", out, path],
                         clean_environment())
        # without it there is no file
        equal((result.returncode in (0, 1), result.returncode == 0), (True, os.path.exists(out)),
              "damaged", turn, names[turn % len(names)], result.returncode, result.stderr)
        if os.path.exists(out):
            os.unlink(out)


def check_same_again(recording):
    """The same input gives the same bytes."""
    for name in ("folded", "flamegraph", "html", "gprof2dot", "speedscope"):
        equal(export(recording, "--format", name), export(recording, "--format", name), name, "again")


def check_output(recording, folder):
    """Files: the ending picks the format, only the owner reads them, nothing unfinished stays."""
    path, absent = os.path.join(folder, "out.folded"), os.path.join(folder, "nowhere/x")
    equal(export(recording, "--output", path), b"", "nothing on stdout")
    with open(path, "rb") as file:
        equal(file.read(), export(recording, "--format", "folded"), "a file and stdout")
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode of the file")
    equal(sorted(name for name in os.listdir(folder) if "out" in name), ["out.folded"], "files")
    for words, status, told in (
            (["--format", "nothing"], 2, "there is no format 'nothing'"),
            ([], 2, "which format?"),
            (["--output", "out.bin"], 2, "which format?"),
            (["--format", "folded", "--cost", "much"], 2, "not 'much'"),
            (["--format", "json", "--cost", "live"], 2, "--cost has no effect"),
            (["--format", "folded", "--output", recording], 1, "name another --output"),
            (["--format", "folded", "--output", absent], 1, "cannot write " + absent)):
        result = execute([MEMTRACE, "export", *words, recording], clean_environment())
        equal((result.returncode, told in result.stderr.decode(), result.stderr.count(b"\n")),
              (status, True, 1), *words, result.stderr)


def main():
    folder = scratch()
    recording, profile = recorded(folder)
    for source, what in ((recording, "recording"), (profile, "profile")):
        data = report(source)
        for cost in COSTS:
            check_folded(source, data, cost, what + " " + cost)
            check_gprof2dot(source, data, cost, what + " " + cost)
        check_speedscope(source, data, what)
        check_same_as_report(source, data, what)
    check_filtered(recording, report(recording))
    check_cut(recording, folder)
    check_damaged(recording, folder)
    check_damaged(profile, folder)
    check_same_again(recording)
    check_output(recording, folder)
    finish()


main()
