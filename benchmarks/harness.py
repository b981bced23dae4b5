# SPDX-License-Identifier: MIT
"""Runs the subjects of the overhead benchmarks: which variants there are, one run, interleaved
rounds, instruction counts. Used by figures.py; prints progress to stderr only."""

import collections
import concurrent.futures
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

from sampling import samplers

# Column order of the table. "bare" is what everything is compared with.
BUILDS = ("bare", "pass", "hooks", "frame-pointer")
VARIANTS = BUILDS + ("preload", "heaptrack")
# The bare build under the runtime with this MEMTRACE_UNWIND; fp: the build with frame pointers.
UNWINDS = ("verify", "patch", "fp", "libunwind")
# The bare build under the command itself: what follows its name.
RECORD = ["record", "--embed", "none"]
COMMANDS = {"run": ["run"], "record": RECORD, "precise": RECORD + ["--precise"],
            "no-slices": RECORD + ["--no-slices"],
            "no-addresses": RECORD + ["--no-addresses"], "sample": RECORD + ["--sample", "512K"],
            "profile-too": RECORD + ["--profile"]}
# After a plus sign: the runtime is there, but does not count.
RESTING = {"off": {"MEMTRACE": "off"}, "stopped": {"MEMTRACE_START": "off"}}
NAMED = {"named": {"MEMTRACE_ALLOC": "pool_take(size=1)=alloc:pool\npool_give(ptr=1)=free:pool"}}
# What is measured for comparison only: in so many rounds at most.
PEER_ROUNDS = {"heaptrack": 5, "backtrace": 5, "libunwind": 5, "exact": 5, "jemalloc": 7,
               "jemalloc-prof": 7, "tcmalloc": 7, "tcmalloc-sample": 7}
RUN_LIMIT_S = 300

# A median over the rounds, and the quartiles beside it.
Spread = collections.namedtuple("Spread", "median low high")


class RunFailed(Exception):
    """A subject failed or took too long; its message says which and why."""


def say(text):
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def takes_part(variant, number):
    """Whether it is run in this round: 0 is the first."""
    return number < PEER_ROUNDS.get(variant, number + 1)


def collect(groups, chosen, failures, *arguments):
    """The rows of the chosen groups, or of all. A group that fails is told and left out."""
    rows = []
    for name in chosen or groups:
        start = time.monotonic()
        try:
            rows.extend(groups[name](*arguments))
        except RunFailed as failure:
            failures.append(f"{name}: {failure}")
        except Exception as failure:  # whatever it is: the other groups can be run
            traceback.print_exc()
            failures.append(f"{name}: {failure!r}")
        say(f"{name}: {time.monotonic() - start:.0f} s")
    return rows


def median(values):
    return statistics.median(values)


def spread(values):
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return Spread(median(values), low, high)


def status_mib(pid, name):
    """VmRSS, VmHWM or another size of the process, by its status file."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
    raise RunFailed(f"/proc/{pid}/status has no {name}")


def heaptrack_library():
    """What heaptrack preloads, or None."""
    command = shutil.which("heaptrack")
    if command is None:
        return None
    library = os.path.join(os.path.dirname(command), "../lib/heaptrack/libheaptrack_preload.so")
    return os.path.realpath(library) if os.path.exists(library) else None


def backtrace_library(build_dir):
    """What takes a backtrace by libunwind for each allocation, and nothing else."""
    return os.path.join(build_dir, "benchmarks", "libbench_backtrace.so")


class Bench:
    """Where things are, how thorough to be, and the runs themselves."""

    def __init__(self, build_dir, quick):
        self.programs = os.path.join(build_dir, "benchmarks")
        self.library = os.path.join(build_dir, "lib", "libmemtrace.so")
        self.command = os.path.join(build_dir, "bin", "memtrace")
        self.backtrace = backtrace_library(build_dir)
        self.quick = quick
        self.heaptrack = shutil.which("heaptrack")
        self.valgrind = shutil.which("valgrind")
        self.scratch = tempfile.mkdtemp(prefix="memtrace-bench-")
        self.profile = os.path.join(self.scratch, "profile.mtp")
        self.recording = os.path.join(self.scratch, "recording.mtr")
        self.failures = []

    def close(self):
        self.progress_done()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def has(self, variant):
        """Whether this variant can be run here."""
        variant = variant.partition("+")[0]
        if variant == "heaptrack":
            return self.heaptrack is not None
        if variant == "preload" or variant in UNWINDS:
            return os.path.exists(self.library)
        if variant == "backtrace":
            return os.path.exists(self.backtrace)
        if variant in samplers.SAMPLERS:
            return samplers.is_here(variant)
        if variant in COMMANDS:
            return os.path.exists(self.command) and os.path.exists(self.library)
        return os.path.exists(self._program("trivial", variant))

    def _program(self, subject, variant):
        variant = variant.partition("+")[0]
        build = "frame-pointer" if variant == "fp" else variant if variant in BUILDS else "bare"
        return os.path.join(self.programs, f"{subject}.{build}")

    def _environment(self, variant):
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith("MEMTRACE") and k != "LD_PRELOAD"}
        environment["MEMTRACE_OUTPUT"] = self.profile
        environment["MEMTRACE_RECORD_OUTPUT"] = self.recording
        environment["MEMTRACE_SUMMARY"] = "0"
        variant, _, resting = variant.partition("+")
        environment.update({**RESTING, **NAMED}.get(resting, {}))
        if variant == "preload" or variant in UNWINDS:
            environment["LD_PRELOAD"] = self.library
        if variant in UNWINDS:
            environment["MEMTRACE_UNWIND"] = variant
        if variant == "backtrace":
            environment["LD_PRELOAD"] = self.backtrace
        if variant in samplers.SAMPLERS:
            environment.update(samplers.environment(variant, self.library))
        return environment

    def command_line(self, subject, variant, options):
        command = [self._program(subject, variant)] + [str(option) for option in options]
        if variant == "heaptrack":
            command = [self.heaptrack, "-o", os.path.join(self.scratch, "heaptrack")] + command
        if variant in COMMANDS:
            command = [self.command, *COMMANDS[variant], "--"] + command
        return command

    def run(self, subject, variant, *options):
        """One run. The subject's RESULT lines as a dict of floats."""
        return self._results(subject, variant, self.command_line(subject, variant, options))

    def micro(self, program, *options):
        """The same of a program of benchmarks/micro."""
        command = [os.path.join(self.programs, program)] + [str(option) for option in options]
        return self._results(program, "bare", command)

    def _results(self, subject, variant, command):
        process = subprocess.Popen(command, env=self._environment(variant), cwd=self.scratch,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output, errors = process.communicate(timeout=RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise RunFailed(f"{subject} ({variant}): stopped after {RUN_LIMIT_S} s")
        results = {name: float(value)
                   for name, value in re.findall(r"^RESULT (\S+) (\S+)$", output, re.M)}
        if process.returncode != 0 or not results:
            last = (errors.strip().splitlines() or ["no message"])[-1]
            raise RunFailed(f"{subject} ({variant}): status {process.returncode}: {last}")
        return results

    def rounds(self, subject, options, variants, count, own=None):
        """`count` rounds, each running every variant once, one after the other, so that a slow
        minute of the machine hits all alike. {variant: [results of each round]}, without the
        variants that are not here or failed. `own`: options that single variants have besides."""
        chosen = [variant for variant in variants if self.has(variant)]
        runs = {variant: [] for variant in chosen}
        for number in range(count):
            self.progress(f"{subject} {' '.join(map(str, options))}: round {number + 1} of {count}")
            for variant in [one for one in runs if takes_part(one, number)]:
                try:
                    more = (own or {}).get(variant, [])
                    runs[variant].append(self.run(subject, variant, *more, *options))
                except RunFailed as failure:
                    self.failures.append(str(failure))
                    del runs[variant]
        return runs

    def instructions(self, subject, variant, options):
        """Instructions that callgrind counts in one run; deterministic to a few hundred."""
        command = self.command_line(subject, variant, options)
        environment = self._environment(variant)
        environment["MEMTRACE_OUTPUT"] = os.path.join(self.scratch, "callgrind.%p.mtp")
        preload = environment.pop("LD_PRELOAD", None)
        environment.setdefault("MEMTRACE_UNWIND", "patch")  # as auto does outside of valgrind
        if preload:
            command = ["env", f"LD_PRELOAD={preload}"] + command
        result = subprocess.run(
            [self.valgrind, "--tool=callgrind", "--trace-children=yes",
             "--callgrind-out-file=/dev/null"] + command,
            env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL, timeout=RUN_LIMIT_S,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        found = re.findall(r"Collected *: (\d+)", result.stderr)
        if result.returncode != 0 or not found:
            raise RunFailed(f"{subject} ({variant}): callgrind failed")
        return int(found[-1])

    def more_instructions(self, subject, variants, options, more):
        """{variant: instructions that the options `more` make instead of `options`}, counted on all
        cores at once; without the variants that are not here or failed."""
        def count(variant):
            return (self.instructions(subject, variant, more) -
                    self.instructions(subject, variant, options))

        self.progress(f"callgrind: {subject} {' '.join(map(str, more))}")
        found = {}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            running = {variant: pool.submit(count, variant)
                       for variant in variants if self.has(variant)}
            for variant, result in running.items():
                try:
                    found[variant] = result.result()
                except (RunFailed, subprocess.SubprocessError) as failure:
                    self.failures.append(f"callgrind: {failure}")
        return found

    def spawn_ms(self, subject, variant, *options):
        """Milliseconds from starting the program to its end."""
        command = self.command_line(subject, variant, options)
        environment = self._environment(variant)
        with open(os.devnull, "w", encoding="ascii") as nothing:
            actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1),
                       (os.POSIX_SPAWN_DUP2, nothing.fileno(), 2)]
            start = time.perf_counter()
            pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
            status = os.waitpid(pid, 0)[1]
            elapsed = time.perf_counter() - start
        if status != 0:
            raise RunFailed(f"{subject} ({variant}): wait status {status}")
        return elapsed * 1000

    def progress(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def progress_done(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def machine():
    """One line about this machine."""
    model = "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
            model = re.search(r"model name\s*:\s*(.*)", cpuinfo.read()).group(1)
    except (OSError, AttributeError):
        pass
    system = "Linux"
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", system)
    except (OSError, AttributeError):
        pass
    return (f"{model} ({platform.machine()}), {len(os.sched_getaffinity(0))} cores, {system}, "
            f"Linux {platform.release()}")


def first_line(*command):
    """What a command says first, or None."""
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        return (output.stdout or output.stderr).splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None
