# SPDX-License-Identifier: MIT
"""sampled.py CASE: profiles that count one allocation in so many bytes. What they estimate is judged
by what the program says that it did; what is freed is gone, whatever the mode was in between."""

import math
import os
import struct
import subprocess
import sys

from harness import (BUILD, MEMTRACE, build, clean_environment, equal, execute, fail, finish, heap,
                     only_profile, report, scratch, traced)

RUNS = 48
NAMES = ("total_bytes", "allocations", "live_bytes")


def run(name, settings, mode="preload"):
    folder = scratch()
    linked = "frame-pointer" if mode != "preload" else "preload"
    under = traced([build("sampled.c", "gcc", "-O1", linked), name], mode, folder, settings)
    equal((under.stdout, under.returncode), (b"done\n", 0), name, "output and status", under.stderr)
    return only_profile(folder, name), under.stderr.decode()


def test_estimates():
    """Over many runs, each with another seed, no estimate is off to one side, 95 % of the intervals
    hold the truth, and the errors that are told are those that are made. The bounds are passed by
    chance once in 100,000 runs."""
    off = {name: [] for name in NAMES}
    for _ in range(RUNS):
        data, said = run("mixed", {"MEMTRACE_SAMPLE": "16K"})
        truth = dict(zip(NAMES, map(int, said.split("truth ")[1].split()[:3])))
        errors = data["sampling"]["standard_errors"]
        equal((data["sampling"]["sample_bytes"], data["lost"]), (16384, 0), "mean and lost")
        for name in NAMES:
            off[name].append((data[name] - truth[name]) / errors[name])
        if errors["total_bytes"] > truth["total_bytes"] / 20:
            fail("an estimate that says little:", errors, truth)
    for name, values in off.items():
        mean = sum(values) / RUNS
        spread = math.sqrt(sum(value * value for value in values) / RUNS)
        inside = sum(abs(value) < 1.96 for value in values)
        print(name, "mean", mean, "spread", spread, "inside", inside)
        if abs(mean) > 4.5 / math.sqrt(RUNS):
            fail(name, "is off to one side by", mean, "standard errors")
        if not 0.6 < spread < 1.5 or inside < RUNS * 0.78:
            fail(name, "errors that are not those told:", spread, inside, "of", RUNS)


def test_sums():
    """Threads, call paths and totals are the same sums; few blocks stand for many."""
    data, _ = run("mixed", {"MEMTRACE_SAMPLE": "32K"})
    for total, part in (("total_bytes", "total_bytes"), ("allocations", "allocations"),
                        ("frees", "frees")):
        equal(sum(context[part] for context in heap(data)), data[total], "contexts", part)
        equal(sum(thread[part] for thread in data["threads"]), data[total], "threads", part)
    squares = sum(context["total_bytes_error"] ** 2 for context in heap(data))
    told = data["sampling"]["standard_errors"]["total_bytes"]
    errors = data["sampling"]["standard_errors"]  # it holds most, or nearly, at its end
    equal(0.8 < errors["peak_bytes"] / errors["live_bytes"] < 1.5, True, "error of the maximum", errors)
    if abs(math.sqrt(squares) - told) > told / 1000:
        fail("errors of call paths and of the total:", math.sqrt(squares), told)


def test_kinds():
    """Every function that allocates is sampled at the same rate, and what it gave is freed: 20,000
    blocks of 1,000 bytes each, half of them freed at once. The error of each sum is told."""
    each, size = 20000, 1000
    data, _ = run("kinds", {"MEMTRACE_SAMPLE": "2K", "MEMTRACE_UNWIND": "fp"}, "frame-pointer")
    seen = {}
    for context in heap(data):
        for frame in context["frames"]:
            if frame["function"].startswith("by_") and context["total_bytes"] > each * size / 20:
                seen[frame["function"]] = context
    equal(sorted(seen), ["by_" + kind for kind in
                         ("calloc", "malloc", "memalign", "new", "realloc", "resize")], "kinds")
    for kind, context in seen.items():
        error = context["total_bytes_error"]
        equal(error < each * size / 20, True, kind, "error", error)
        for told, truth in ((context["total_bytes"], each * size), (context["live_bytes"], each * size / 2)):
            if abs(told - truth) > 5 * error:
                fail(kind, "is", told, "where", truth, "is true, error", error)


def test_large():
    """Points that lie farther off than a thread allocates before it looks up come no sooner for it."""
    truth = 40000 * 100000
    data, _ = run("large", {"MEMTRACE_SAMPLE": "1M", "MEMTRACE_UNWIND": "fp"})
    told, error = data["total_bytes"], data["sampling"]["standard_errors"]["total_bytes"]
    if error > truth / 40 or abs(told - truth) > 5 * error:
        fail("large: is", told, "where", truth, "is true, error", error)


def test_missed():
    """A block that is picked where another lies tells that the other was freed."""
    data, _ = run("missed", {"MEMTRACE_SAMPLE": "1", "MEMTRACE_UNWIND": "fp"}, "frame-pointer")
    own = [context for context in heap(data)
           if any(frame["function"] == "by_missed" for frame in context["frames"])]
    equal([(context["allocations"], context["live_blocks"]) for context in own], [(2000, 1)], "missed")


def test_freed():
    """Four threads free each other's blocks while one of them changes the mode all the time."""
    for settings in ({"MEMTRACE_SAMPLE": "4K"}, {}, {"MEMTRACE_SAMPLE": "1"}):
        data, _ = run("freed", settings, "frame-pointer")
        equal(data["lost"], 0, "freed", settings)
        of_others = [sum(thread[name] for thread in data["threads"])
                     for name in ("freed_for_others_bytes", "freed_for_others")]
        own = [sum(thread[name] for thread in data["threads"]) for name in ("freed_bytes", "frees")]
        ratio = of_others[0] / of_others[1] / (own[0] / own[1])  # the blocks are of one kind
        equal(0.5 < ratio < 2, True, "freed: blocks of other threads", of_others, own)
        own = [context for context in heap(data)
               if any(frame["function"] == "exchange" for frame in context["frames"])]
        equal(len(own) > 0, True, "freed: contexts")
        for context in own:
            equal((context["live_bytes"], context["live_blocks"]), (0, 0), "freed", context)


def big(data):
    """(allocations, frees) of blocks of 64 MiB and some bytes, of which only their sum tells."""
    base = 64 << 20
    found = [context for context in heap(data) if context["total_bytes"] > base]
    return (sum(context["allocations"] for context in found), sum(context["frees"] for context in found),
            sum(context["total_bytes"] for context in found) - base * sum(
                context["allocations"] for context in found))


def test_switching():
    """Three blocks in each mode: exact ones have 1 byte more, sampled 2; what came while off is out."""
    for name, settings in (("switching", {}), ("signals", {
            "MEMTRACE_SIGNALS": "exact:USR1,sample:USR2,off:HUP"})):
        data, _ = run(name, settings, "frame-pointer")
        equal(big(data), (6, 6, 9), name, "allocations, frees, bytes above")
        equal(data["live_bytes"] < 1 << 20, True, name, "leaked", data["live_bytes"])


def control(pid, *words):
    under = execute([MEMTRACE, "control", str(pid), *words], timeout=60)
    equal(under.returncode, 0, "control", words, under.stderr)
    return under.stdout.decode()


def test_control():
    """From outside, without a signal: the program follows at its next allocations."""
    folder = scratch()

    def start(**settings):
        environment = clean_environment(MEMTRACE_OUTPUT=os.path.join(folder, "out.mtp"), **settings)
        program = build("sampled.c", "gcc", "-O1", "frame-pointer")
        server = subprocess.Popen([program, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=environment)
        server.stdout.readline()
        return server

    def step(number):
        server.stdin.write(b"%d\n" % number)
        server.stdin.flush()
        server.stdout.readline()

    server = start(MEMTRACE_START="off")  # nothing was ever counted whose free would be looked at
    control(server.pid, "on")
    step(4)
    step(1)
    server.communicate(timeout=60)
    allocations, _, above = big(report(os.path.join(folder, "out.mtp")))
    equal((allocations, above) in ((1, 1), (2, 5)), True, "on from the start", allocations, above)
    server = start()
    equal("exact" in control(server.pid), True, "mode at the start")
    step(1)
    for words, number, told in ((("sample", "512K"), 2, "one allocation in 512.0 KiB"),
                                (("off",), 4, "off"), (("on",), 2, "sampled"),
                                (("exact",), 1, "exact"), (("sample", "1M"), 2, "in 1.0 MiB")):
        control(server.pid, *words)
        step(4)  # it may be counted in either mode
        step(number)
        equal(told in control(server.pid), True, "control", words, control(server.pid))
    server.communicate(timeout=60)
    data = report(os.path.join(folder, "out.mtp"))
    allocations, frees, above = big(data)
    equal((allocations, allocations - frees), (allocations, 0), "all freed")
    # 1 + 2 + 2 + 1 + 2, and at most five steps of 4 that were counted
    equal((above - 8) % 4 == 0 and 5 <= allocations <= 10, True, "control", allocations, above)


def test_two_controls():
    """Of two commands at once the last one counts, and the other says so."""
    folder = scratch()
    environment = clean_environment(MEMTRACE_OUTPUT=os.path.join(folder, "out.mtp"))
    program = build("sampled.c", "gcc", "-O1", "frame-pointer")
    server = subprocess.Popen([program, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment)
    server.stdout.readline()
    server.stdin.write(b"4\n")
    server.stdin.flush()
    server.stdout.readline()  # from here on it only waits: all buffers are there
    for _ in range(20):  # on a busy machine the first may have given up before the second begins
        both = [subprocess.Popen([MEMTRACE, "control", str(server.pid), *words], stdout=subprocess.PIPE)
                for words in (("off",), ("sample", "1M"))]
        said = [process.communicate(timeout=60)[0].decode() for process in both]
        if any("another 'memtrace control' came after this one" in text for text in said):
            break
    equal(sum("another" in text for text in said), 1, "two controls", said)
    equal(sum("it follows when it allocates next" in text for text in said), 1, "two controls", said)
    server.communicate(b"4\n", timeout=60)
    equal(server.returncode, 0, "status")


def test_readers():
    """An older reader refuses what it would take for exact counts; one without samples stays as is."""
    folder = scratch()
    for settings, version, flag in (({}, 3, 0), ({"MEMTRACE_SAMPLE": "64K"}, 3, 128)):
        under = traced([build("sampled.c", "gcc", "-O1", "preload"), "mixed"], "preload", folder, settings)
        equal(under.returncode, 0, "status")
        path = [name for name in os.listdir(folder) if name.endswith(".mtp")][0]
        with open(os.path.join(folder, path), "rb") as file:
            header = file.read(64)
        os.remove(os.path.join(folder, path))
        equal((struct.unpack_from("<I", header, 8)[0], struct.unpack_from("<I", header, 36)[0] & 128),
              (version, flag), "version and flag", settings)


def test_tools():
    """Who reads the numbers is told that they are estimates, and how good they are."""
    folder = scratch()
    path = os.path.join(folder, "out.mtp")
    for sample, name in (("64K", "out.mtp"), ("0", "exact.mtp")):
        under = traced([build("sampled.c", "gcc", "-O1", "preload"), "mixed"], "preload", folder,
                       {"MEMTRACE_SAMPLE": sample, "MEMTRACE_SUMMARY": "1", "MEMTRACE_OUTPUT": os.path.join(folder, name)})
        equal((b"estimates" in under.stderr), sample != "0", "summary", sample)

    def says(words, *command, status=0):
        under = execute([MEMTRACE, *command], timeout=60)
        text = (under.stdout + under.stderr).decode()
        equal(under.returncode, status, command, text)
        for word in words:
            equal(word in text, True, command, word, text[:3000])
        return text

    says(("every 64.0 KiB on average: estimates",), "report", path)
    says(("(sampled: estimates)",), "diff", os.path.join(folder, "exact.mtp"), path)
    says(("(an estimate, +- ",), "check", path, "--max-total", "1K", status=1)
    text = says((), "query", path, "--format", "csv", "SELECT sample_bytes, total_bytes_error > 0 FROM summary")
    equal(text.split()[-1], "65536,1", "query")
    merged = os.path.join(folder, "merged.mtp")
    says((), "merge", "--output", merged, path, path)
    one, both = report(path), report(merged)
    equal(both["total_bytes"], 2 * one["total_bytes"], "merged")
    error = both["sampling"]["standard_errors"]["total_bytes"]
    expected = math.sqrt(2) * one["sampling"]["standard_errors"]["total_bytes"]
    equal(abs(error - expected) < expected / 1000, True, "errors of two", error, expected)
    part = report(path, None, "--function", "^mixed$")
    if not part["sampling"]["standard_errors"]["total_bytes"] > 0:
        fail("a part without an error:", part["sampling"])


CASES = {name[5:]: test for name, test in list(globals().items()) if name.startswith("test_")}
CASES[sys.argv[1]]()
finish()
