# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run analysis`: how long a report of a recording takes, the first time
and again, of all of it and of a window, with how much memory, beside heaptrack_print on heaptrack's
recording of the same run; and of a large file. Each function takes a Bench and yields Rows."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from harness import RunFailed, median
from recording.figures import remove_recordings
from table import Row, check

TITLES = {"first": "first report", "second": "second report", "window": "a window",
          "heaptrack": "heaptrack_print"}
FIRST_LIMIT_S, SECOND_LIMIT_S, MEMORY_LIMIT_MIB = 3, 0.3, 200
TARGET_EVENTS = 100e6
# Time grows with the number of events, and is told for the target's.
MILLIONS, LARGE_MIB = 30, 3072
# Name, subject, what makes about a million events.
SUBJECTS = (("malloc and free in a loop", "pair", lambda millions: ["--batch", 500000, "--batches",
                                                                    millions]),
            ("four threads that free each other's blocks", "crowd",
             lambda millions: ["--threads", 4, "--pairs", 125000 * millions, "--places", 1024]),
            ("C++ containers", "containers", lambda millions: [60 * millions]))


class Cost:
    """Of one command: wall time in seconds, and MiB that were resident at most."""

    def __init__(self, command, environment):
        began = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.perf_counter() - began
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
        bench.run(subject, "record", *options)
        peer = heaptrack_prints(bench, subject, options)
        reports = Reports(bench, bench.recording)
        costs = {"first": [], "second": [], "window": [], "heaptrack": []}
        for number in range(1 if bench.quick else 3):
            bench.progress(f"{name}: round {number + 1}")
            costs["first"].append(reports.first())
            costs["second"].append(reports.ask())
            costs["window"].append(reports.window())
            if peer:
                costs["heaptrack"].append(Cost(["heaptrack_print", peer], dict(os.environ)))
        events = events_of(costs["first"][0].text)
        scale = TARGET_EVENTS / events
        first = median([cost.seconds for cost in costs["first"]]) * scale
        second = median([cost.seconds for cost in costs["second"]])
        memory = max(cost.mib for cost in costs["first"])
        reports.close()
        remove_recordings(bench)
        yield Row(f"{name}: {events / 1e6:.0f} million events",
                  {column: cell(found) for column, found in costs.items() if found},
                  [check(f"first report {first:.2f} of {FIRST_LIMIT_S} s for 100 million",
                         first <= FIRST_LIMIT_S),
                   check(f"second {second:.2f} of {SECOND_LIMIT_S} s", second <= SECOND_LIMIT_S),
                   check(f"{memory:.0f} of {MEMORY_LIMIT_MIB} MiB", memory <= MEMORY_LIMIT_MIB)])


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


GROUPS = {"reports": first_and_second, "large": large}
