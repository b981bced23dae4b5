# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run processes`: what programs of many processes cost bare, under
`memtrace run`, preloaded without a collector, and under heaptrack's library. Each function takes a
Tree and yields Rows."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from harness import RunFailed, median, spread
from processes import postgres
from table import Row, check

TITLES = {"bare": "bare", "run": "`memtrace run`", "preload": "preloaded", "heaptrack": "heaptrack"}
OURS = ("run", "preload")
CHILDREN, LOOP_LIMIT, CHILD_LIMIT_MS, RATE_LIMIT = 300, 1.5, 1.0, 0.8
RUN_LIMIT_S = 30
# A parent with so many contexts, of a tree of half as many nodes.
CONTEXTS, LARGE_CHILDREN, LARGE_LIMIT_MS = 500000, 20, 10
LOOP = "i=0; while [ $i -lt %d ]; do %s; i=$((i+1)); done"
LOOPS = {"sh, 300 subshells": ("sh", "( : )"),
         "sh, 300 subshells that each substitute a command": ("sh", "( : ; x=$(echo $i) )"),
         "bash, 300 subshells": ("bash", "( : )")}
SOURCES = 24


class Tree:
    """Where things are: copies that any user may run, and a folder for what a run leaves."""

    def __init__(self, bench, heaptrack):
        self.bench = bench
        self.scratch = tempfile.mkdtemp(prefix="memtrace-bench-")
        self.out = os.path.join(self.scratch, "out")
        for name in ("bin", "lib", "out"):
            os.mkdir(os.path.join(self.scratch, name))
        self.command = shutil.copy(bench.command, os.path.join(self.scratch, "bin"))
        self.library = os.path.join(self.scratch, "lib", "libmemtrace.so")
        shutil.copy(bench.library, self.library)
        self.forks = shutil.copy(os.path.join(bench.programs, "forks"), self.scratch)
        self.peer = heaptrack
        for folder, _, _ in os.walk(self.scratch):
            os.chmod(folder, 0o755)
        os.chmod(self.out, 0o777)

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def variants(self):
        return ["bare", *OURS] + (["heaptrack"] if self.peer else [])

    def start(self, variant, command, **more):
        """The command in this variant, in a new session; what earlier runs left is removed."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
        profile = os.path.join(self.out, "profile.mtp")
        for name in os.listdir(self.out):
            path = os.path.join(self.out, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        if variant == "run":
            command = [self.command, "run", "--no-summary", "-o", profile, "--", *command]
        elif variant == "preload":
            environment.update(LD_PRELOAD=self.library, MEMTRACE_SUMMARY="0",
                               MEMTRACE_OUTPUT=profile)
        elif variant == "heaptrack":
            environment.update(LD_PRELOAD=self.peer,
                               DUMP_HEAPTRACK_OUTPUT=os.path.join(self.out, "heaptrack"))
        return subprocess.Popen(command, env=environment, cwd=more.pop("cwd", self.scratch),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, **more)

    def run(self, variant, command, **more):
        """(seconds, output) of one run."""
        start = time.perf_counter()
        process = self.start(variant, command, **more)
        try:
            output, errors = process.communicate(timeout=RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise RunFailed(f"{command[0]} ({variant}): stopped after {RUN_LIMIT_S} s") from None
        if process.returncode != 0:
            last = (errors.strip().splitlines() or ["no message"])[-1]
            raise RunFailed(f"{command[0]} ({variant}): status {process.returncode}: {last}")
        return time.perf_counter() - start, output

    def left(self):
        """Files that the last run left, and their bytes on disk."""
        paths = [os.path.join(folder, name)
                 for folder, _, names in os.walk(self.out) for name in names]
        return len(paths), sum(os.stat(path).st_blocks * 512 for path in paths)

    def rounds(self, name, count, once):
        """Interleaved rounds of once(variant): {variant: [values]}, and what each variant left."""
        values = {variant: [] for variant in self.variants()}
        left = {}
        for number in range(count):
            self.bench.progress(f"{name}: round {number + 1} of {count}")
            for variant in list(values):
                try:
                    values[variant].append(once(variant))
                    left[variant] = self.left()
                except RunFailed as failure:
                    self.bench.failures.append(f"{name}: {failure}")
                    del values[variant]
        if "bare" not in values:
            raise RunFailed(f"{name}: it does not run bare")
        return values, left


def ratios(values):
    """{variant: [its value to bare's of the same round]}."""
    return {variant: [value / bare for value, bare in zip(found, values["bare"])]
            for variant, found in values.items() if variant != "bare"}


def left_row(name, left):
    """Files and bytes that a run left."""
    return Row(f"{name}: files left, KiB on disk",
               {variant: f"{files}, {size // 1024:,} KiB" for variant, (files, size) in left.items()
                if variant != "bare"}, [])


def time_rows(tree, name, command, count, limit=None, **more):
    """Seconds from start to end, against bare."""
    values, left = tree.rounds(name, count, lambda variant: tree.run(variant, command, **more)[0])
    against = ratios(values)
    cells = {variant: "{:.2f}x ({:.2f}–{:.2f})".format(*spread(found))
             for variant, found in against.items()}
    cells["bare"] = f"{median(values['bare']):.3f} s"
    checks = [check(f"{TITLES[variant]} {median(against[variant]):.2f}x of {limit}x",
                    median(against[variant]) <= limit)
              for variant in OURS if limit and variant in against]
    yield Row(f"{name}: seconds", cells, checks)
    yield left_row(name, left)


def shells(tree):
    """Loops of subshells."""
    for name, (shell, body) in LOOPS.items():
        if shutil.which(shell):
            yield from time_rows(tree, name, [shell, "-c", LOOP % (CHILDREN, body)],
                                 2 if tree.bench.quick else 7, LOOP_LIMIT)


def child_rows(tree, name, words, limit):
    """What a forked child adds, from `fork` to `wait`. `words`: what bench_forks gets."""
    command = [tree.forks, *(str(word) for word in words)]
    values, left = tree.rounds(name, 2 if tree.bench.quick else 9,
                               lambda variant: float(tree.run(variant, command)[1]))
    cells = {"bare": f"{median(values['bare']):.2f}"}
    checks = []
    for variant in values:
        if variant != "bare":
            more = [own - bare for own, bare in zip(values[variant], values["bare"])]
            cells[variant] = "{:+.2f} ({:+.2f}–{:+.2f})".format(*spread(more))
            if variant in OURS:
                checks.append(check(f"{TITLES[variant]} {median(more):+.2f} of +{limit} ms",
                                    median(more) <= limit))
    yield Row(f"{name}: ms a child", cells, checks)
    yield left_row(name, left)


def children(tree):
    """Children that allocate once, or a hundred times; and those of a parent that has much."""
    for blocks, words in ((1, "once"), (100, "100 times")):
        yield from child_rows(tree, f"C, {CHILDREN} forked children that allocate {words}",
                              (CHILDREN, blocks), CHILD_LIMIT_MS)
    yield from child_rows(tree, f"C, {LARGE_CHILDREN} forked children of a program with "
                          f"{CONTEXTS:,} contexts", (LARGE_CHILDREN, 1, CONTEXTS // 2),
                          LARGE_LIMIT_MS)


def programs(tree):
    """Children that become another program."""
    yield from time_rows(tree, "sh, 300 times /bin/true",
                         ["sh", "-c", LOOP % (CHILDREN, "/bin/true")], 1 if tree.bench.quick else 5)


def make(tree):
    """A small project: 24 files compiled, and linked."""
    if not shutil.which("make") or not shutil.which("cc"):
        return
    folder = os.path.join(tree.scratch, "project")
    os.mkdir(folder)
    for number in range(SOURCES):
        with open(os.path.join(folder, f"f{number}.c"), "w", encoding="ascii") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
                       f"int f{number}(int n) {{ char *s = malloc(99); sprintf(s, \"%d\", n);\n"
                       "    n = (int)strlen(s); free(s); return n; }\n")
    with open(os.path.join(folder, "main.c"), "w", encoding="ascii") as file:
        file.write("int main(void) { return 0; }\n")
    with open(os.path.join(folder, "Makefile"), "w", encoding="ascii") as file:
        file.write("OBJECTS = main.o " + " ".join(f"f{n}.o" for n in range(SOURCES)) + "\n"
                   "program: $(OBJECTS)\n\tcc -o $@ $(OBJECTS)\n"
                   "%.o: %.c\n\tcc -O2 -c -o $@ $<\n")
    yield from time_rows(tree, "make -B -j2, 25 files", ["make", "-s", "-B", "-j2"],
                         1 if tree.bench.quick else 3, cwd=folder)


def pgbench(tree):
    """PostgreSQL, a new connection (a forked child) for each transaction."""
    try:
        server = postgres.Server(tree)
    except postgres.Unavailable as problem:
        tree.bench.failures.append(f"pgbench: {problem}")
        return
    name = "pgbench -C -S, 4 clients"
    seconds = 1 if tree.bench.quick else 3
    values, left = tree.rounds(name, 1 if tree.bench.quick else 3,
                               lambda variant: server.rate(variant, seconds))
    against = ratios(values)
    cells = {variant: "{:.2f}x ({:.2f}–{:.2f})".format(*spread(found))
             for variant, found in against.items()}
    cells["bare"] = f"{median(values['bare']):.0f}"
    checks = [check(f"{TITLES[variant]} {median(against[variant]):.2f}x of {RATE_LIMIT}x",
                    median(against[variant]) >= RATE_LIMIT)
              for variant in OURS if variant in against]
    yield Row(f"{name}: transactions a second", cells, checks)
    yield left_row(name, left)


GROUPS = {"shells": shells, "children": children, "programs": programs, "make": make,
          "pgbench": pgbench}
