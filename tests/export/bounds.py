# SPDX-License-Identifier: MIT
"""A recursion 20,000 deep, of one function and of two that call each other: no format grows with call
paths times depth. Formats that write each path whole say how many frames there are and write nothing;
--depth bounds them, with the same sums. The others stay small, and take time that grows with calls alone."""

import base64
import gzip
import json
import os
import re
import resource
import zlib

from exported import HERE, MEMTRACE, build, equal, execute, fail, finish, record, recordings, scratch

DEPTH = 20000
FRAMES = DEPTH * DEPTH // 2
LARGEST = 200 << 20  # of a file, so that a failure does not fill the disk
WHOLE = ("folded", "gprof2dot", "pprof", "sqlite", "json", "csv")
SMALL = {"flamegraph": 5, "html": 5, "callgrind": 1, "speedscope": 10, "massif": 1, "heaptrack": 5}  # MB
SECONDS = 1.2  # of CPU; what is quadratic took 1.6 and more on a machine of 4 GHz


def export(*words, most=LARGEST):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = execute([MEMTRACE, "export", *words], timeout=100,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, done.stdout, done.stderr.decode(), seconds


def made(*arguments):
    folder = scratch()
    result = record([build(os.path.join(HERE, "deep.c"), optimize="-O1"), *arguments], folder)
    equal(result.returncode, 0, result.stderr)
    return recordings(folder)[0]


def refused(source, *words):
    folder = scratch()
    output = os.path.join(folder, "out")
    status, out, err, _ = export("--output", output, *words, source)
    equal((status, out, err.count("\n")), (1, b"", 1), words, err[:300])
    found = re.search(r" (\d+) frames would take about (\d+) MB", err)
    if not found or not FRAMES < int(found[1]) < FRAMES * 1.02 or int(found[2]) < 100:
        fail(words, err[:300])
    equal("--depth N" in err, "sqlite" not in words, words, "what to do")
    equal(os.listdir(folder), [], words, "files")


def small(source, form):
    output = os.path.join(scratch(), "out")
    status, _, err, seconds = export("--output", output, "--all-frames", "--format", form, source)
    equal(status, 0, form, err[:300])
    megabytes = os.path.getsize(output) / 1e6 if status == 0 else 0
    equal(megabytes < SMALL[form], True, form, "%.1f MB" % megabytes)
    equal(seconds < SECONDS, True, form, "%.2f s" % seconds)


def folded(source, *words):
    """{path: cost} of the folded stacks."""
    status, out, err, _ = export("--format", "folded", "--cost", "total", "--all-frames", *words, source)
    equal(status, 0, words, err[:300])
    rows = [line.rsplit(" ", 1) for line in out.decode().splitlines()]
    equal(len({path for path, _ in rows}), len(rows), "different paths")
    return {tuple(path.split(";")): int(cost) for path, cost in rows}


def check_trees(deep, short):
    cut = folded(deep, "--depth", "40")
    equal(max(map(len, cut)), 40, "depth of folded stacks")
    equal(sum(cut.values()), sum(cost for path, cost in folded(deep, "--depth", "1").items()), "sums")
    whole = folded(short)
    equal(folded(short, "--depth", "0"), whole, "--depth 0")
    equal(folded(short, "--depth", "100000"), whole, "--depth 100000")
    expected = {}
    for path, cost in whole.items():
        expected[path[:7]] = expected.get(path[:7], 0) + cost
    equal(folded(short, "--depth", "7"), expected, "--depth 7")
    data = json.loads(export("--format", "gprof2dot", "--cost", "total", "--all-frames", "--depth", "7", short)[1])
    names = [function["name"] for function in data["functions"]]
    events = {tuple(names[number] for number in reversed(event["callchain"])): event["cost"][0]
              for event in data["events"]}
    equal(events, expected, "gprof2dot --depth 7")


def check_hashes():
    """In a saved page each path has its hash, also those deeper than 4,096 frames, if there are not too many."""
    source = made("4300")
    page = os.path.join(scratch(), "page.html")
    equal(export("--output", page, source)[0], 0, "HTML page")
    with open(page, encoding="utf-8") as file:
        packed = re.search(r'id="data">([^<]*)<', file.read()).group(1)
    hashes = json.loads(zlib.decompress(base64.b64decode(packed)))["answers"]["sums"]["data"]["cells"]["hash"]
    told = execute([MEMTRACE, "query", source, "SELECT hash FROM contexts WHERE class = 'heap'"]).stdout.decode().split()
    equal(set(hashes) - set(told), set(), "hashes of a saved page")
    equal(len(set(hashes)) > 4300, True, "paths with a hash", len(set(hashes)))


def fields(data):
    """(number, value) of a protobuf message."""
    at = 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        value = number()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def samples(source, *words):
    """[(how many locations, allocations)] of a pprof file; both lists are packed in each sample."""
    output = os.path.join(scratch(), "out.pb.gz")
    equal(export("--output", output, *words, source)[0], 0, words)
    with gzip.open(output) as file:
        packed = [dict(fields(value)) for number, value in fields(file.read()) if number == 2]
    counts = [sum(byte < 128 for byte in sample[1]) for sample in packed]
    return counts, [sample[2] for sample in packed]


def check_paths(deep, short):
    counts, values = samples(short)
    cut, same = samples(short, "--depth", "3")
    equal(cut, [min(count, 3) for count in counts], "pprof --depth 3")
    equal(same, values, "values")
    equal(samples(short, "--depth", "0"), (counts, values), "pprof --depth 0")
    equal(max(samples(deep, "--depth", "3")[0]), 3, "pprof --depth 3 of the deep one")
    for form in ("json", "csv"):
        expected = execute([MEMTRACE, "report", "--" + form, "--depth", "3", short]).stdout
        equal(export("--format", form, "--depth", "3", short)[1], expected, form, "--depth 3")
        equal(export("--format", form, "--depth", "3", deep)[0], 0, form, "--depth 3 of the deep one")
    for form in set(WHOLE) - {"sqlite"}:  # whatever it takes: here the limit of a file's size ends it
        output = os.path.join(scratch(), "out")
        status, _, err, _ = export("--format", form, "--all-frames", "--depth", "0", "--output", output, deep, most=1)
        equal("--depth" in err, False, form, "--depth 0", status, err[:300])


def main():
    deep, pair, short = made(str(DEPTH)), made(str(DEPTH), "two"), made("50")
    for form in WHOLE:
        refused(deep, "--all-frames", "--format", form)
        refused(pair, "--format", form)
    for form in SMALL:
        small(deep, form)
        small(pair, form)
    check_trees(deep, short)
    check_paths(deep, short)
    check_hashes()
    for words in (("folded", "--depth", "x"), ("folded", "--depth", "-1"), ("folded", "--depth", ""),
                  ("flamegraph", "--depth", "3"), ("callgrind", "--depth", "3"), ("sqlite", "--depth", "3")):
        equal(export("--format", *words, short)[0], 2, words)
    finish()


main()
