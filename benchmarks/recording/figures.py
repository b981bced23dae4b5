# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run recording`: what it costs to write every event down, beside the
profile alone and heaptrack. Each function takes a Bench and yields Rows."""

import glob
import os
import re
import resource
import struct
import subprocess
import time

from figures import REFERENCE_GHZ, core_speed
from harness import median, spread
from table import Row, check

TITLES = {"bare": "bare", "run": "profile", "record": "recording", "precise": "precise",
          "no-addresses": "no addresses", "sample": "sampled, 512 KiB", "heaptrack": "heaptrack"}
ADDED_LIMIT_NS, RATE_LIMIT, BUFFER_LIMIT_MIB, READ_LIMIT = 25, 10e6, 64, 40e6
SIZE_LIMITS = {"no-addresses": 1, "record": 2.5}  # times heaptrack's file
SUBJECTS = {"a tree of 2.5 million nodes": ("tree", []),
            "four threads that free each other's blocks":
                ("crowd", ["--threads", 4, "--pairs", 1000000, "--places", 1024]),
            "loops below 100 frames": ("pair", ["--depth", 100, "--change", 5, "--paths", 2]),
            "C++ containers": ("containers", [200])}
EVENTS_SEGMENT, SEGMENT = 9, struct.Struct("<IHHIIQII")


def remove_recordings(bench):
    for pattern in ("recording*", "heaptrack*", "*.mtp"):
        for path in glob.glob(os.path.join(bench.scratch, pattern)):
            os.unlink(path)


def recorded(bench):
    """How many events the recording has that the last run left, and how many it lacks."""
    report = subprocess.run([bench.command, "report", "--limit", "1", bench.recording], check=True,
                            capture_output=True, text=True).stdout
    return [int(re.search(rf"^  {word} +([\d,]+)", report, re.M).group(1).replace(",", ""))
            for word in ("events", "lost")]


def added(bench):
    """What an event costs the program's own threads, while its buffers have room."""
    # Three words a pair, and two a node, of the buffers' 8 million: they never fill.
    for name, subject, options, value in (
            ("malloc or free", "pair", ["--batch", 20000, "--batches", 15],
             lambda result: result["pair_ns"] / 2),
            ("a malloc on a path of its own", "tree", [],
             lambda result: result["node_ns"] - result["walk_ns"])):
        runs = {variant: [] for variant in ("bare", "run", "record", "precise", "sample")}
        speeds = []
        for number in range(3 if bench.quick else 7):
            bench.progress(f"{name}: round {number + 1}")
            speeds.append(core_speed(bench))
            for variant, found in runs.items():
                found.append(value(bench.run(subject, variant, *options)))
                remove_recordings(bench)
        cells = {variant: f"{median(runs[variant]):.1f}" for variant in ("bare", "run")}
        for variant in ("record", "precise", "sample"):
            more = [own - profile for own, profile in zip(runs[variant], runs["run"])]
            cells[variant] = "{:+.1f} ({:+.1f}–{:+.1f})".format(*spread(more))
            if variant == "record":
                cost = median(more) * median(speeds) / REFERENCE_GHZ
        yield Row(f"{name}: ns, and what recording adds to the profile", cells,
                  [check(f"recording {cost:.1f} of {ADDED_LIMIT_NS} ns at {REFERENCE_GHZ} GHz",
                         cost <= ADDED_LIMIT_NS)])


def rate(bench):
    """Events a second from start to end, the file written, far more of them than buffers hold."""
    for name, subject, options in (
            ("malloc and free in a loop", "pair", ["--batch", 100000, "--batches", 100]),
            ("four threads that free each other's blocks", "threads",
             ["--threads", 4, "--batches", 8000])):
        rates = {variant: [] for variant in ("record", "heaptrack") if bench.has(variant)}
        missing = 0
        for number in range(1 if bench.quick else 3):
            for variant, found in rates.items():
                bench.progress(f"{name}: {variant}, round {number + 1}")
                start = time.perf_counter()
                bench.run(subject, variant, *options)
                seconds = time.perf_counter() - start
                if variant == "record":
                    events, lost = recorded(bench)
                    missing += lost
                found.append(events / seconds)
                remove_recordings(bench)
        value = median(rates["record"])
        cells = {variant: f"{median(found) / 1e6:.1f}" for variant, found in rates.items()}
        yield Row(f"{name}: million events a second", cells,
                  [check(f"{value / 1e6:.1f} of {RATE_LIMIT / 1e6:.0f} million",
                         value >= RATE_LIMIT), check(f"{missing} lost", missing == 0)])


def segments(bench, kind):
    """Bytes of the segments of one kind of the last profile, which `memtrace record` compressed."""
    total = 0
    raw = bench.profile + ".raw"
    subprocess.run([bench.command, "repack", "--raw", "-o", raw, bench.profile], check=True,
                   stderr=subprocess.DEVNULL)
    with open(raw, "rb") as file:
        file.seek(24)
        end = struct.unpack("<Q", file.read(8))[0]
        at = 16384
        while at < end:
            file.seek(at)
            magic, found, _, _, _, size, _, _ = SEGMENT.unpack(file.read(SEGMENT.size))
            if magic != 0x474d4553:
                at += 4096
                continue
            total += size if found == kind else 0
            at += size
    os.unlink(raw)
    return total


def memory(bench):
    """Buffers at any rate, with few threads and a thousand."""
    for threads in (1, 64, 1000):
        bench.progress(f"buffers of {threads} threads")
        bench.run("crowd", "profile-too", "--threads", threads, "--pairs",
                  2000000 // threads)
        size = segments(bench, EVENTS_SEGMENT) / 2**20
        missing = recorded(bench)[1]
        remove_recordings(bench)
        yield Row(f"buffers, {threads} threads at once: MiB at most", {"record": f"{size:.0f}"},
                  [check(f"{size:.0f} of {BUFFER_LIMIT_MIB} MiB", size <= BUFFER_LIMIT_MIB),
                   check(f"{missing} lost", missing == 0)])


def heaptrack_reads(bench, events):
    """Events that heaptrack's own reader reads in a second of processor time; None: it failed."""
    files = glob.glob(os.path.join(bench.scratch, "heaptrack*"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        subprocess.run(["heaptrack_print"] + files, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=120)
    except (OSError, subprocess.SubprocessError) as failure:
        bench.failures.append(f"heaptrack_print: {failure}")
        return None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return events / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def bytes_of(bench, pattern):
    return sum(os.path.getsize(path)
               for path in glob.glob(os.path.join(bench.scratch, pattern)))


def file_of(bench, subject, options):
    """Of one subject: bytes on disk for each event without the program's symbols, and events read
    in a second of processor time, the file in the page cache; each by variant."""
    sizes, speeds, events = {}, {}, 0
    for variant in ("record", "no-addresses", "heaptrack"):
        if not bench.has(variant):
            continue
        bench.run(subject, variant, *options)
        if variant == "record":
            result = bench.micro("reading_bench", bench.recording)
            events = result["events"]
            speeds[variant] = 1e9 / result["read_ns"]
        if variant == "heaptrack":
            speeds[variant] = heaptrack_reads(bench, events)
        pattern = "heaptrack*" if variant == "heaptrack" else "recording*"
        sizes[variant] = bytes_of(bench, pattern) / events
        remove_recordings(bench)
    return sizes, speeds


def files(bench):
    """What recordings take on disk, and how fast they are read."""
    reading = []
    for name, (subject, options) in SUBJECTS.items():
        bench.progress(f"{name}: size and reading")
        sizes, speeds = file_of(bench, subject, options)
        yield Row(f"{name}: bytes an event on disk",
                  {variant: f"{value:.2f}" for variant, value in sizes.items()},
                  [check(f"{TITLES[variant]} {sizes[variant] / sizes['heaptrack']:.2f} of "
                         f"{limit} times heaptrack's",
                         sizes[variant] <= limit * sizes["heaptrack"])
                   for variant, limit in SIZE_LIMITS.items() if "heaptrack" in sizes])
        own = speeds["record"] / 1e6
        reading.append(Row(f"{name}: million events read a second",
                           {variant: f"{speed / 1e6:.0f}"
                            for variant, speed in speeds.items() if speed},
                           [check(f"{own:.0f} of {READ_LIMIT / 1e6:.0f} million",
                                  own * 1e6 >= READ_LIMIT)]))
    yield from reading


GROUPS = {"added": added, "rate": rate, "memory": memory, "files": files}
