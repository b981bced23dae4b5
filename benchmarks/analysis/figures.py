# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run analysis`: how long a report of a recording takes, the first time
and again, of all of it and of a window, with how much memory, beside heaptrack_print on heaptrack's
recording of the same run; what the slices cost that make the first one quick; reports of a recording
that grows, of a large file; and what a profile of many call paths takes on disk. Each function takes
a Bench and yields Rows."""

import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from harness import RunFailed, median
from recording.figures import recorded, remove_recordings
from table import Row, check

TITLES = {"first": "first report", "unsliced": "first, no slices", "second": "second report",
          "window": "a window", "heaptrack": "heaptrack_print", "with": "with", "without": "without"}
FIRST_LIMIT_S, UNSLICED_LIMIT_S, SECOND_LIMIT_S, MEMORY_LIMIT_MIB = 0.5, 3, 0.3, 200
SLICES_LIMIT, SLICES_BYTES, SLOWER_LIMIT = 0.02, 16384, 1.05
PACKED_LIMIT, WRITE_LIMIT_S = 1 / 5, 1
NODES = 2.5e6
TARGET_EVENTS = 100e6
BLOCK, SLICES = struct.Struct("<IHHII"), 14
# Time grows with the number of events, and is told for the target's.
MILLIONS, LARGE_MIB = 30, 3072
# Name, subject, what makes about a million events.
SUBJECTS = (("malloc and free in a loop", "pair", lambda millions: ["--batch", 500000, "--batches",
                                                                    millions]),
            ("four threads that free each other's blocks", "crowd",
             lambda millions: ["--threads", 4, "--pairs", 125000 * millions, "--places", 1024]),
            ("C++ containers", "containers", lambda millions: [60 * millions]))


class Cost:
    """Of one command: wall and processor time in seconds, and MiB that were resident at most."""

    def __init__(self, command, environment):
        began = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.perf_counter() - began
            self.processor_s = usage.ru_utime + usage.ru_stime
            output.seek(0)
            self.text = output.read().decode(errors="replace")
        if process.returncode != 0:
            raise RunFailed(f"{' '.join(command)}: status {process.returncode}")
        self.mib = usage.ru_maxrss / 1024


class Reports:
    """Reports of one recording, with a cache of their own."""

    def __init__(self, bench, path):
        self.bench, self.path = bench, path
        self.cache = os.path.join(bench.scratch, "cache")
        self.environment = dict(os.environ, MEMTRACE_CACHE=self.cache)

    def ask(self, *options):
        return Cost([self.bench.command, "report", *options, self.path], self.environment)

    def first(self):
        shutil.rmtree(self.cache, ignore_errors=True)
        return self.ask()

    def window(self):
        """A tenth of the run, from its middle on, which nobody asked for before."""
        seconds = json.loads(self.ask("--json", "--depth", "1").text)["process"]["duration_ns"] / 1e9
        return self.ask("--from", f"{seconds * 0.45:.3f}s", "--to", f"{seconds * 0.55:.3f}s")

    def close(self):
        shutil.rmtree(self.cache, ignore_errors=True)


def events_of(text):
    return int(re.search(r"^  events +([\d,]+)", text, re.M).group(1).replace(",", ""))


def paths_of(bench):
    """How many call paths the profile has that the last run left."""
    report = subprocess.run([bench.command, "report", "--limit", "1", bench.profile], check=True,
                            capture_output=True, text=True).stdout
    return int(re.search(r"^  call paths +([\d,]+)", report, re.M).group(1).replace(",", ""))


def mebibytes(size):
    """Three digits that count: sizes lie between some KiB and some GiB."""
    return f"{float(f'{size / 2**20:.3g}'):,g} MiB"


def cell(costs):
    return f"{median([cost.seconds for cost in costs]):.2f} s, " \
           f"{max(cost.mib for cost in costs):.0f} MiB"


def heaptrack_prints(bench, subject, options):
    """heaptrack_print on a recording of its own; None: it cannot be had."""
    if not bench.has("heaptrack"):
        return None
    bench.run(subject, "heaptrack", *options)
    files = [path for path in glob.glob(os.path.join(bench.scratch, "heaptrack*"))
             if not path.endswith(".data")]
    return files[0] if len(files) == 1 else None


def first_and_second(bench):
    """Reports of the same runs by both tools, in turns."""
    millions = 10 if bench.quick else MILLIONS
    for name, subject, options_for in SUBJECTS:
        options = options_for(millions)
        bench.progress(f"{name}: recording")
        bench.run(subject, "no-slices", *options)
        unsliced = os.path.join(bench.scratch, "unsliced.mtr")
        os.rename(bench.recording, unsliced)
        bench.run(subject, "record", *options)
        peer = heaptrack_prints(bench, subject, options)
        reports, others = Reports(bench, bench.recording), Reports(bench, unsliced)
        costs = {"first": [], "unsliced": [], "second": [], "window": [], "heaptrack": []}
        for number in range(1 if bench.quick else 3):
            bench.progress(f"{name}: round {number + 1}")
            costs["unsliced"].append(others.first())
            costs["first"].append(reports.first())
            costs["second"].append(reports.ask())
            costs["window"].append(reports.window())
            if peer:
                costs["heaptrack"].append(Cost(["heaptrack_print", peer], dict(os.environ)))
        events = events_of(costs["first"][0].text)
        scale = TARGET_EVENTS / events
        first = median([cost.seconds for cost in costs["first"]]) * scale
        slow = median([cost.seconds for cost in costs["unsliced"]]) * scale
        second = median([cost.seconds for cost in costs["second"]])
        memory = max(cost.mib for cost in costs["first"] + costs["unsliced"])
        reports.close()
        os.unlink(unsliced)
        remove_recordings(bench)
        yield Row(f"{name}: {events / 1e6:.0f} million events",
                  {column: cell(found) for column, found in costs.items() if found},
                  [check(f"first report {first:.2f} of {FIRST_LIMIT_S} s for 100 million",
                         first <= FIRST_LIMIT_S),
                   check(f"without slices {slow:.2f} of {UNSLICED_LIMIT_S} s",
                         slow <= UNSLICED_LIMIT_S),
                   check(f"second {second:.2f} of {SECOND_LIMIT_S} s", second <= SECOND_LIMIT_S),
                   check(f"{memory:.0f} of {MEMORY_LIMIT_MIB} MiB", memory <= MEMORY_LIMIT_MIB)])


def slices_in(path):
    """Bytes of the block of slices."""
    with open(path, "rb") as file:
        at = 64
        while len(head := os.pread(file.fileno(), BLOCK.size, at)) == BLOCK.size:
            magic, kind, header_size, stored, _ = BLOCK.unpack(head)
            if magic != 0x4b4c424d:
                break
            if kind == SLICES:
                return header_size + stored
            at += (header_size + stored + 7) // 8 * 8
    return 0


def slices(bench):
    """What it costs to write them: the program's time, the whole command's, the file."""
    millions = 10 if bench.quick else MILLIONS
    for name, subject, options_for in SUBJECTS:
        options = options_for(millions)
        own, whole = {"record": [], "no-slices": []}, {"record": [], "no-slices": []}
        share = size = lost = 0
        for number in range(1 if bench.quick else 7):
            bench.progress(f"{name}: slices, round {number + 1}")
            # Each round begins with the other one: who comes second finds another machine.
            for variant in sorted(whole, reverse=number % 2 == 0):
                began = time.perf_counter()
                result = bench.run(subject, variant, *options)
                whole[variant].append(time.perf_counter() - began)
                own[variant].append(next(iter(result.values())))
                if variant == "record":
                    size = slices_in(bench.recording)
                    share = size / os.path.getsize(bench.recording)
                if number == 0:
                    lost += recorded(bench)[1]
                remove_recordings(bench)
        slower = median([with_slices / without for with_slices, without
                         in zip(own["record"], own["no-slices"])])
        cells = {column: f"{median(whole[variant]):.2f} s"
                 for column, variant in (("with", "record"), ("without", "no-slices"))}
        yield Row(f"{name}: recording {millions} million events, with slices and without", cells,
                  [check(f"program's time {slower:.2f} of {SLOWER_LIMIT} times", slower <= SLOWER_LIMIT),
                   check(f"{lost} lost", lost == 0),
                   check(f"slices {size / 1024:.0f} KiB, {share * 100:.2f} of "
                         f"{SLICES_LIMIT * 100:.0f} % of the file (or 16 KiB)",
                         0 < share <= SLICES_LIMIT or 0 < size <= SLICES_BYTES)])


def growing(bench):
    """Two looks at a recording while it is written, the second for what was added."""
    bench.progress("a recording that grows")
    command = bench.command_line("containers", "record", [20000])
    program = subprocess.Popen(command, env=bench._environment("record"), cwd=bench.scratch,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        reports = Reports(bench, bench.recording)
        time.sleep(3 if bench.quick else 10)
        first = reports.first()
        time.sleep(1)
        second = reports.ask()
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    reports.close()
    remove_recordings(bench)
    before, after = events_of(first.text), events_of(second.text)
    # A look goes through what was added, and through the last second or two once more.
    share = second.processor_s / first.processor_s
    limit = 0.1 + 3 * (after - before) / before
    yield Row(f"a growing file: {before / 1e6:.0f}, then {(after - before) / 1e6:.0f} million events more",
              {"first": f"{first.processor_s:.2f} s", "second": f"{second.processor_s:.2f} s"},
              [check(f"further look {share:.2f} of {limit:.2f} times the first one's", share <= limit)])


def profile(bench):
    """Of 2.5 million call paths: the file of `memtrace run` beside the one that the program writes
    alone, and what comes at the end. The paths are a full binary tree of one allocation each, of
    which packing leaves next to nothing: each file is read, too, to see that it has all of them."""
    sizes, paths, ends = {}, [], {}
    for number in range(1 if bench.quick else 3):
        for variant in ("bare", "preload", "run"):
            bench.progress(f"a profile of many call paths: {variant}, round {number + 1}")
            began = time.perf_counter()
            result = bench.run("tree", variant)
            seconds = time.perf_counter() - began
            ends.setdefault(variant, []).append(seconds - result["node_ns"] * NODES / 1e9)
            if variant != "bare":
                sizes[variant] = os.path.getsize(bench.profile)
                if number == 0:
                    paths.append(paths_of(bench))
            remove_recordings(bench)
    share = sizes["run"] / sizes["preload"]
    written = median(ends["run"]) - median(ends["bare"])
    yield Row("a profile of 2.5 million call paths",
              {"with": mebibytes(sizes["run"]), "without": mebibytes(sizes["preload"])},
              [check(f"{min(paths) / 1e6:.1f} of {NODES / 1e6:.1f} million paths in each file",
                     min(paths) >= NODES),
               check(f"{share:.3g} of {PACKED_LIMIT:.2f} times the raw one's size", share <= PACKED_LIMIT),
               check(f"{written:.2f} of {WRITE_LIMIT_S} s to write it", written <= WRITE_LIMIT_S)])


def large(bench):
    """A large file: made by a command, read, removed."""
    mib = 200 if bench.quick else LARGE_MIB
    folder = tempfile.mkdtemp(prefix="memtrace-large-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    path = os.path.join(folder, "large.mtr")
    try:
        if shutil.disk_usage(folder).free < (mib + 1024) << 20:
            bench.failures.append(f"a file of {mib} MiB: {folder} has no room for it")
            return
        bench.progress(f"a file of {mib} MiB: writing")
        made = subprocess.run([os.path.join(bench.programs, "largefile"), "--mib", str(mib), path],
                              check=True, capture_output=True, text=True).stdout
        events = float(re.search(r"^RESULT events (\S+)$", made, re.M).group(1))
        reports = Reports(bench, path)
        bench.progress(f"a file of {mib} MiB: reading")
        costs = {"first": [reports.first()], "second": [reports.ask()],
                 "window": [reports.window()]}
        reports.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    memory = max(cost.mib for found in costs.values() for cost in found)
    yield Row(f"a file of {mib / 1024:.1f} GiB, {events / 1e6:.0f} million events",
              {column: cell(found) for column, found in costs.items()},
              [check(f"{memory:.0f} of {MEMORY_LIMIT_MIB} MiB", memory <= MEMORY_LIMIT_MIB)])


GROUPS = {"reports": first_and_second, "slices": slices, "growing": growing, "profile": profile,
          "large": large}
