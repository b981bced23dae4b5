# SPDX-License-Identifier: MIT
"""Runs the real programs: one run, interleaved rounds, instruction counts, sizes of code. Used by
figures.py."""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from harness import (RunFailed, UNWINDS, backtrace_library, heaptrack_library, say,
                     takes_part)
from programs import builds
from sampling import samplers

RUN_LIMIT_S = 300
BASES = {variant.name: variant.base or variant.name for variant in builds.VARIANTS}

# alone: the runtime is not there. off: it is, switched off. on: with the profile; one of UNWINDS:
# with it, and unwinding that way. heaptrack, backtrace: under that library instead.
STATES = ("alone", "off", "on", *UNWINDS, "heaptrack", "backtrace")


class Programs:
    """Where things are, how thorough to be, and the runs themselves."""

    def __init__(self, build_dir, work, variants, quick):
        self.library = os.path.join(build_dir, "lib", "libmemtrace.so")
        self.peers = {"heaptrack": heaptrack_library(), "backtrace": backtrace_library(build_dir)}
        self.work = work
        self.variants = variants
        self.quick = quick
        self.count = 3 if quick else 9
        self.scratch = tempfile.mkdtemp(prefix="memtrace-bench-")
        self.ghz = 0.0  # the speed of the core, set by who knows it
        self.failures = []
        self.client = os.path.join(work, "gcc-bare", "redis-benchmark")

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def binary(self, subject, variant):
        return os.path.join(self.work, variant, subject.binary)

    def built(self, subject):
        """The variants that this program is there in."""
        return [variant for variant in self.variants
                if os.path.exists(self.binary(subject, variant))]

    def _added(self, state, scratch):
        """What a run in this state has in its environment besides."""
        if state == "alone":
            return {}
        if state in samplers.SAMPLERS:
            return {"MEMTRACE_SUMMARY": "0", "MEMTRACE_OUTPUT": os.path.join(scratch, "profile.mtp"),
                    **samplers.environment(state, self.library)}
        if state in self.peers:
            return {"LD_PRELOAD": self.peers[state],
                    "DUMP_HEAPTRACK_OUTPUT": os.path.join(scratch, "heaptrack")}
        added = {"LD_PRELOAD": self.library, "MEMTRACE_SUMMARY": "0",
                 "MEMTRACE_OUTPUT": os.path.join(scratch, "profile.mtp")}
        if state == "off":
            added["MEMTRACE"] = "off"
        if state in UNWINDS:
            added["MEMTRACE_UNWIND"] = state
        return added

    def run(self, subject, variant, state, length="full", tool=()):
        """One run. Its processor time in seconds, what it printed, and what the tool said."""
        command = subject.command(os.path.join(self.work, variant), length)
        scratch = tempfile.mkdtemp(dir=self.scratch)
        added = self._added(state, scratch)
        if tool:
            added.setdefault("MEMTRACE_UNWIND", "patch")  # as auto does outside of valgrind
        with tempfile.TemporaryFile("w+", errors="replace") as output, \
                tempfile.TemporaryFile("w+", errors="replace") as errors:
            process = subprocess.Popen(
                with_tool(tool, command, added), cwd=scratch,
                env=dict(environment(subject), **({} if tool else added)),
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True)
            limit = threading.Timer(RUN_LIMIT_S, os.killpg, (process.pid, signal.SIGKILL))
            limit.start()
            try:
                subject.drive(length, scratch, self.client)
            except (RunFailed, OSError, subprocess.SubprocessError):
                os.killpg(process.pid, signal.SIGKILL)
            status, usage = os.wait4(process.pid, 0)[1:]
            limit.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = []
            for file in (output, errors):
                file.seek(0)
                texts.append(file.read())
        shutil.rmtree(scratch, ignore_errors=True)
        if process.returncode != 0:
            raise RunFailed(f"{subject.title} ({variant}, {state}): status {process.returncode}: "
                            f"{(texts[1] or texts[0])[-200:].strip()}")
        return usage.ru_utime + usage.ru_stime, *texts

    def cpu_s(self, subject, variant, state):
        return self.run(subject, variant, state)[0]

    def result(self, subject, variant, state):
        """The RESULT of a subject that times itself."""
        return float(re.search(r"RESULT \S+ (\S+)", self.run(subject, variant, state)[1]).group(1))

    def rounds(self, subject, cases, value=None, count=None):
        """Runs every case (a variant and a state) once a round, one after the other, so that a slow
        minute of the machine hits all alike; each round starts with another case. Returns {case:
        [value of each round]}, without the cases that failed."""
        value = value or self.cpu_s
        count = count or self.count
        say(f"{subject.title}: {count} rounds of "
                   f"{' '.join(sorted({state for _, state in cases}))}")
        found = {case: [] for case in cases}
        for number in range(count):
            order = list(found)
            start = number % len(order) if order else 0
            for case in order[start:] + order[:start]:
                if not takes_part(case[1], number):
                    continue
                try:
                    found[case].append(value(subject, *case))
                except RunFailed as failure:
                    self.failures.append(str(failure))
                    del found[case]
        return found

    def instructions(self, subject, cases):
        """{case: instructions} of the short run of each, by callgrind."""
        say(f"{subject.title}: callgrind")

        def count(case):
            tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            errors = self.run(subject, *case, length="short", tool=tool)[2]
            return int(re.findall(r"Collected *: (\d+)", errors)[-1])

        found = {}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, running in {case: pool.submit(count, case) for case in cases}.items():
                try:
                    found[case] = running.result()
                except (RunFailed, IndexError) as failure:
                    self.failures.append(f"callgrind: {failure}")
        return found

    def text_bytes(self, subject, variant):
        """Size of the code section."""
        output = subprocess.run(["size", "-A", self.binary(subject, variant)], capture_output=True,
                                text=True, check=True).stdout
        return int(re.search(r"^\.text\s+(\d+)", output, re.M).group(1))


def environment(subject):
    """Ours, without what would reach a runtime, and with what the subject wants."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
    return dict(kept, **subject.environment)


def with_tool(tool, command, added):
    """The command under a tool, which must not be preloaded itself."""
    if not tool:
        return command
    return [*tool, "--trace-children=yes", "env",
            *(f"{name}={value}" for name, value in added.items()), *command]
