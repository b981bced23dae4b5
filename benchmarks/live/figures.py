# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run live`: programs that MemTrace comes into while they run. Each
function of GROUPS takes a Live and yields Rows."""

import os
import re
import subprocess
import tempfile

from harness import RunFailed, median, spread
from live import cycles
from live.topfigures import top
from table import Row, check

TITLES = {"cycles": "cycles", "held": "a thread held, ms: median, p99, longest",
          "gap": "longest gap of the threads at work, ms: beside a dry run, beside attach",
          "counting": "counting after ms: median, longest", "verdict": "output and status",
          "bare": "bare", "preload": "preloaded", "attached": "attached", "detached": "detached",
          "heaptrack": "heaptrack -p", "top": "top"}
ANSWER_LIMIT_S = 120
# What is measured of a program that is attached to must be this near to what it is in one that was
# preloaded, and after detach to what it is bare.
ATTACHED_LIMIT, DETACHED_LIMIT = 1.05, 1.05


class Running:
    """A subject that measures each time it is asked (--asked of pair.c); wait: it says when it is ready."""

    def __init__(self, command, environment, folder, wait=True):
        self.name = os.path.basename(command[0])
        self.process = subprocess.Popen(command, env=environment, cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        if wait:
            self.wait()

    def wait(self):
        """Up to the next "ready". What it has said before that, its results, as a dict."""
        results = {}
        for line in self.process.stdout:
            if line == "ready\n":
                return results
            results.update({name: float(value) for name, value in
                            re.findall(r"^RESULT (\S+) (\S+)$", line)})
        raise RunFailed(f"{self.name}: ended with status {self.process.wait()}")

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.wait()

    def end(self):
        self.process.kill()
        self.process.communicate()


class Live:
    """Where things are; and the programs that run."""

    def __init__(self, bench):
        self.bench = bench
        self.quick = bench.quick
        self.regions = tempfile.mkdtemp(prefix="memtrace-bench-", dir="/dev/shm")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
        self.environment["MEMTRACE_REGION_DIR"] = self.regions
        self.programs = []

    def close(self):
        for program in self.programs:
            program.end()
        subprocess.run(["rm", "-rf", self.regions], check=False)

    def memtrace(self, *arguments):
        """What the command says."""
        done = subprocess.run([self.bench.command, *map(str, arguments)], text=True,
                              env=self.environment, cwd=self.bench.scratch, capture_output=True,
                              timeout=ANSWER_LIMIT_S, check=False)
        if done.returncode != 0:
            raise RunFailed(f"memtrace {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def start(self, variant, subject, *options, wait=True):
        """The subject, brought into this variant while it runs."""
        environment = dict(self.environment)
        if variant == "preload":
            environment.update(LD_PRELOAD=self.bench.library, MEMTRACE_SUMMARY="0",
                               MEMTRACE_OUTPUT=self.bench.profile)
        program = Running([os.path.join(self.bench.programs, f"{subject}.bare"),
                           *map(str, options)], environment, self.bench.scratch, wait)
        self.programs.append(program)
        if variant in ("attached", "detached"):
            self.memtrace("attach", program.pid)
        if variant == "detached":
            program.ask()
            self.memtrace("detach", program.pid)
        return program

    def end(self, programs):
        for program in programs:
            program.end()
            self.programs.remove(program)


def speed(live):
    """Pairs of malloc and free, in one process of each variant; all are asked in turn. Then in new
    processes: where the kernel puts a process's parts costs it up to a tenth for its whole life
    (measured, with nothing preloaded at all), and must not be taken for the variant's cost."""
    lives, rounds = (2, 3) if live.quick else (15, 5)
    variants = ("bare", "preload", "attached", "detached")
    for title, options in (("10 frames, same stack", ("--depth", 10)),
                           ("100 frames, 3 of them left and entered again, calls included",
                            ("--depth", 100, "--change", 3))):
        found = {variant: [] for variant in variants}
        for number in range(lives):
            live.bench.progress(f"pairs, {title}: processes {number + 1} of {lives}")
            programs = {variant: live.start(variant, "pair", *options, "--asked", 1000,
                                            "--batches", 5, "--batch", 20000)
                        for variant in variants}
            for program in programs.values():
                program.ask()  # warm
            rows = [[program.ask()["pair_ns"] for program in programs.values()]
                    for _ in range(rounds)]
            live.end(programs.values())
            for variant, values in zip(variants, zip(*rows)):
                found[variant].append(median(values))
        yield speed_row(f"malloc+free pair, {title}: ns", found)


def speed_row(name, found):
    def against(variant, base):
        return spread([own / other for own, other in zip(found[variant], found[base])])
    attached, detached = against("attached", "preload"), against("detached", "bare")
    cells = {variant: f"{median(values):.1f}" for variant, values in found.items()}
    cells["attached"] += " ({:.2f}x of preloaded, {:.2f}–{:.2f})".format(*attached)
    cells["detached"] += " ({:.2f}x of bare, {:.2f}–{:.2f})".format(*detached)
    return Row(name, cells, [
        check(f"attached {attached.median:.3f}x of {ATTACHED_LIMIT}x of preloaded",
              attached.median <= ATTACHED_LIMIT),
        check(f"detached {detached.median:.3f}x of {DETACHED_LIMIT}x of bare",
              detached.median <= DETACHED_LIMIT)])


GROUPS = {"speed": speed, "cycles": cycles.cycles, "stall": cycles.stall, "top": top}
