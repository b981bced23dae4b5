# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run symbols`: what it takes to name addresses of a program with much
debug information. Each function takes a Bench and yields Rows."""

import os

from harness import median
from symbols import subject
from table import Row, check

TITLES = {"plain": "plain", "packed": "compressed (zlib)"}
ADDRESSES, SECONDS_LIMIT, AGAIN_LIMIT = 10000, 3, 0.3


def programs(bench):
    bench.progress("a program with 500 MB of debug information: some minutes, once")
    program = subject.make(os.path.join(bench.programs, "symbols"))
    return program, {"plain": program, "packed": subject.compressed(program)}


def resolve(bench, path, count, *options):
    """The medians of some cold processes."""
    runs = [bench.micro("resolve_bench", "--addresses", count, *options, path)
            for _ in range(1 if bench.quick else 5)]
    return {name: median([run[name] for run in runs]) for name in runs[0]}


def names(bench):
    program, kinds = programs(bench)
    debug = subject.debug_bytes(program) / 1e6
    results = {kind: resolve(bench, path, ADDRESSES) for kind, path in kinds.items()}
    cells = {kind: f"{result['wall_s']:.2f}" for kind, result in results.items()}
    slowest = max(result["wall_s"] for result in results.values())
    yield Row(f"{ADDRESSES:,} addresses, {debug:.0f} MB of debug information: seconds", cells,
              [check(f"{debug:.0f} of 500 MB", debug >= 500),
               check(f"{slowest:.2f} of {SECONDS_LIMIT} s", slowest <= SECONDS_LIMIT)])
    yield Row("the same: seconds of processor time",
              {kind: f"{result['cpu_s']:.2f}" for kind, result in results.items()}, [])
    yield Row("the same: MiB resident, the files' pages included",
              {kind: f"{result['resident_mib']:.0f}" for kind, result in results.items()}, [])
    same = len({(result["frames"], result["named"]) for result in results.values()}) == 1
    yield Row("the same: functions, inlined ones included",
              {kind: f"{result['frames']:.0f}" for kind, result in results.items()},
              [check("as many from both", same)])


def single(bench):
    """What one name costs."""
    _, kinds = programs(bench)
    results = {kind: resolve(bench, path, 1) for kind, path in kinds.items()}
    yield Row("one address: seconds",
              {kind: f"{result['wall_s']:.2f}" for kind, result in results.items()}, [])


def again(bench):
    """The second question: the names are in the cache."""
    _, kinds = programs(bench)
    results = {}
    for kind, path in kinds.items():
        resolve(bench, path, ADDRESSES, "--cached", 1)
        results[kind] = resolve(bench, path, ADDRESSES, "--cached", 1)
    slowest = max(result["wall_s"] for result in results.values())
    yield Row(f"{ADDRESSES:,} addresses again, in another process: seconds",
              {kind: f"{result['wall_s']:.3f}" for kind, result in results.items()},
              [check(f"{slowest:.3f} of {AGAIN_LIMIT} s", slowest <= AGAIN_LIMIT)])


GROUPS = {"names": names, "single": single, "again": again}
