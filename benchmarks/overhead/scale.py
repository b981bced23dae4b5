# SPDX-License-Identifier: MIT
"""Rows of `benchmarks/run overhead`: what threads, mappings and stacks that are not a thread's own
cost. Each function takes a Bench and the core's speed and yields Rows."""

from figures import OURS, added, added_cells, instructions_row
from harness import spread
from table import Row, check

THREAD_LIMIT_KIB, THREAD_LIMIT_US = 40, 15
STACKS = {1: "a fiber's stack", 2: "the stack of a thread of C11"}
STACK_LIMIT = 1.5
FEW, MANY = 60, 60000


def company(bench, _):
    """Threads: to make one, and to have many."""
    few = ["--threads", 100, "--made", 200] if bench.quick else []
    runs = bench.rounds("company", few, ("bare",) + OURS + ("heaptrack",),
                        3 if bench.quick else 7, {"heaptrack": ["--made", 200]})
    for name, key, limit, unit in (
            ("500 threads with 20 blocks each: added resident KiB a thread", "thread_kib",
             THREAD_LIMIT_KIB, "KiB"),
            ("a thread that makes one block, from its making to its end: added µs", "make_us",
             THREAD_LIMIT_US, "µs")):
        value = lambda run: run[key]
        more = {variant: added(runs, variant, value) for variant in OURS if runs.get(variant)}
        yield Row(name, added_cells(runs, value),
                  [check(f"{variant} {cost:.1f} of {limit} {unit}", cost <= limit)
                   for variant, cost in more.items()])


def stacks(bench, _):
    """The same pairs elsewhere than on the thread's own stack."""
    cost = lambda run: run["pair_ns"] - run.get("walk_ns", 0)
    for name, options in (("same stack", ["--depth", 10]),
                          ("5 of them entered anew by another way",
                           ["--depth", 10, "--change", 5, "--paths", 2])):
        options = [*options, "--batch", 10000]
        count = 3 if bench.quick else 7
        own = bench.rounds("pair", options, ("bare",) + OURS, count)
        for number, stack in STACKS.items():
            there = bench.rounds("pair", ["--stack", number, *options], ("bare",) + OURS, count)
            cells, checks = added_cells(there, cost), []
            for variant in OURS:
                here = added(own, variant, cost)
                if not here or not there.get(variant):
                    continue
                times = added(there, variant, cost) / here
                cells[variant] += f" ({times:.2f}x)"
                checks.append(check(f"{variant} {times:.2f}x of {STACK_LIMIT}x its own stack's",
                                    times <= STACK_LIMIT))
            yield Row(f"pair, 10 frames, {name}, on {stack}: added ns", cells, checks)


def mappings(bench, _):
    """An mmap and its munmap beside few other mappings, and beside many."""
    value = lambda run: run["pair_ns"]
    few = {}
    runs = {number: {"bare": [], "preload": []} for number in (FEW, MANY)}
    for _ in range(3 if bench.quick else 11):
        for number, found in runs.items():
            for variant, results in bench.rounds("mappings", ["--mappings", number], found,
                                                 1).items():
                found[variant].extend(results)
    for number, found in runs.items():
        times = {variant: spread([value(run) for run in results])
                 for variant, results in found.items() if results}
        cells = {variant: "{:,.0f} ({:,.0f}–{:,.0f})".format(*time)
                 for variant, time in times.items()}
        checks = []
        if number == FEW:
            few = times
        elif "preload" in times and "preload" in few:
            low, high = times["preload"].low, few["preload"].high
            checks = [check(f"from {low:,.0f} ns, with {FEW} up to {high:,.0f}", low <= high)]
        yield Row(f"mmap and munmap, {number:,} mappings there: ns", cells, checks)
    if not bench.quick and bench.valgrind:
        yield from mapping_instructions(bench)


def mapping_instructions(bench):
    """The same without noise."""
    found = {}
    for number in (FEW, MANY):
        once, twice = (["--mappings", number, "--batches", 1, "--batch", batch]
                       for batch in (1000, 2000))
        counts = bench.more_instructions("mappings", ("bare", "preload"), once, twice)
        found[number] = instructions_row(f"mmap and munmap, {number:,} mappings there: added "
                                         "instructions (callgrind)", 2000, counts)
    counts = [int(row.cells["preload"]) for row in found.values() if "preload" in row.cells]
    if len(counts) == 2:
        found[MANY].checks.append(check(f"{counts[1]} of 1.05 times {counts[0]}",
                                        counts[1] <= 1.05 * counts[0]))
    yield from found.values()
