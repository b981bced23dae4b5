# SPDX-License-Identifier: MIT
"""Rows of `benchmarks/run overhead`: the other ways of getting a block and giving it back, and what
a pair costs while the runtime is there but does not count. Each function takes a Bench and the
core's speed and yields Rows."""

from figures import INSTRUMENTED, OURS, REFERENCE_GHZ, added, added_cells, instructions_row
from harness import RESTING, median
from table import Row, check

# The numbers are those of kinds.cpp.
KINDS = {0: "malloc and free", 1: "calloc and free", 2: "realloc that stays where it is",
         3: "operator new and delete", 4: "malloc, and free by another thread"}
RESTING_LIMIT_NS = 3
RESTING_NAMES = {"off": "the runtime there but off", "stopped": "the runtime there but stopped"}


def kinds(bench, _):
    """Instructions, by callgrind, of each kind, in one loop."""
    if bench.quick or not bench.valgrind:
        return
    small = 1000
    for kind, name in KINDS.items():
        # A run makes two batches: one to warm up, one timed.
        once, twice = (["--kind", kind, "--batches", 1, "--batch", batch]
                       for batch in (small, 2 * small))
        counts = bench.more_instructions("kinds", ("bare",) + OURS, once, twice)
        yield instructions_row(f"{name}: added instructions (callgrind)", 2 * small, counts,
                               INSTRUMENTED if kind == 0 else ())


def resting(bench, ghz):
    """A pair while nothing is counted."""
    value = lambda run: run["pair_ns"]
    for state in RESTING:
        variants = [f"{variant}+{state}" for variant in OURS]
        runs = bench.rounds("pair", ["--batch", 20000, "--batches", 25], ["bare"] + variants,
                            3 if bench.quick else 9)
        checks = []
        for variant in variants:
            more = added(runs, variant, value)
            if more is not None:
                more *= ghz / REFERENCE_GHZ
                checks.append(check(f"{variant.partition('+')[0]} {more:.1f} of {RESTING_LIMIT_NS} "
                                    f"ns at {REFERENCE_GHZ} GHz", more <= RESTING_LIMIT_NS))
        cells = added_cells(runs, value)
        yield Row(f"malloc+free pair, {RESTING_NAMES[state]}: added ns",
                  {variant.partition("+")[0]: cell for variant, cell in cells.items()}, checks)
    if not bench.quick and bench.valgrind:
        yield from resting_instructions(bench)


def resting_instructions(bench):
    for state in RESTING:
        once, twice = (["--batches", 1, "--batch", batch] for batch in (1000, 2000))
        counts = bench.more_instructions("pair", ["bare"] + [f"{one}+{state}" for one in OURS],
                                         once, twice)
        yield instructions_row(
            f"malloc+free pair, {RESTING_NAMES[state]}: added instructions (callgrind)", 2000,
            {variant.partition("+")[0]: count for variant, count in counts.items()})


NAMED = "preload+named"
NAMED_LIMIT_NS = 30


def named(bench, ghz):
    """What a call of a function costs that is followed by its name, over what the function takes itself."""
    runs = bench.rounds("pool", [], ["bare", NAMED], 3 if bench.quick else 15)
    if not runs.get("bare") or not runs.get(NAMED):
        return
    call = median([(one["pair_ns"] - alone["pair_ns"]) / 2
                   for one, alone in zip(runs[NAMED], runs["bare"])]) * ghz / REFERENCE_GHZ
    cells = added_cells(runs, lambda run: run["pair_ns"])
    yield Row("a pool's functions, followed by name (--alloc), a call of each: added ns",
              {variant.partition("+")[0]: cell for variant, cell in cells.items()},
              [check(f"a call {call:.1f} of {NAMED_LIMIT_NS} ns at {REFERENCE_GHZ} GHz",
                     call <= NAMED_LIMIT_NS)])
