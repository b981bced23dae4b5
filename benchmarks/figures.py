# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run overhead`: what is run, how a figure comes out of it, its target.
Each function takes a Bench and yields Rows. A figure is the median over rounds of the difference
to (or ratio with) the bare run of the same round."""

import os

from harness import BUILDS, RunFailed, VARIANTS, median
import profile
from table import Row, check

OURS = ("pass", "hooks", "frame-pointer", "preload")
REFERENCE_GHZ = 2.5  # the targets in nanoseconds are for such a core
# What is instrumented and reads no real stack; what it may cost, and what is aimed for.
INSTRUMENTED = ("pass", "hooks")
PAIR_LIMIT, PAIR_AIM, PAIR_LIMIT_NS, PAIR_AIM_NS = 125, 100, 11, 9
TREE_LIMITS = {"pass": 4, "hooks": 4, "frame-pointer": 5, "preload": 5}
CONTEXT_LIMIT_BYTES = 64
# heaptrack takes a microsecond for what others do in some nanoseconds.
SLOW_PEER = {"heaptrack": ["--batch", 2000]}


def differences(runs, variant, value):
    """value(result) under `variant` less the bare one of the same round; [] if it was not run."""
    return [value(ours) - value(bare) for ours, bare in zip(runs.get(variant, []), runs["bare"])]


def ratios(runs, variant, value):
    return [value(ours) / value(bare) for ours, bare in zip(runs.get(variant, []), runs["bare"])]


def added_cells(runs, value, form="{:+.1f}"):
    """The bare value itself, and what each variant adds to it."""
    cells = {"bare": form.replace("+", "").format(median([value(run) for run in runs["bare"]]))}
    for variant in runs:
        added = differences(runs, variant, value)
        if variant != "bare" and added:
            cells[variant] = form.format(median(added))
    return cells


def ratio_cells(runs, value, form):
    cells = {"bare": form.format(median([value(run) for run in runs["bare"]]))}
    for variant in runs:
        found = ratios(runs, variant, value)
        if variant != "bare" and found:
            cells[variant] = "{:.2f}x".format(median(found))
    return cells


def added(runs, variant, value):
    found = differences(runs, variant, value)
    return median(found) if found else None


def core_speed(bench):
    """GHz the core ran at, several times for the median."""
    return median([bench.run("clock", "bare")["ghz"] for _ in range(5)])


def pairs(bench, ghz):
    """One malloc and free at three depths, then with frames that change in between."""
    scale = ghz / REFERENCE_GHZ
    count = 3 if bench.quick else 7
    batches = ["--batches", 15 if bench.quick else 25, "--batch", 10000]
    pair = lambda run: run["pair_ns"]
    at = {}
    for depth in (10, 100, 1000):
        runs = bench.rounds("pair", ["--depth", depth] + batches, VARIANTS, count, SLOW_PEER)
        at[depth] = {variant: added(runs, variant, pair) for variant in runs}
        yield Row(f"malloc+free pair, {depth} frames, same stack: added ns",
                  added_cells(runs, pair), pair_checks(depth, at, scale))
    for change, paths in ((3, 1), (5, 1), (3, 2), (5, 2)):
        options = ["--depth", 100, "--change", change, "--paths", paths]
        runs = bench.rounds("pair", options + batches, VARIANTS, count, SLOW_PEER)
        way = "the same way" if paths == 1 else "another way"
        yield Row(f"pair, 100 frames, {change} of them left and entered again {way}: added ns, "
                  "calls counted apart",
                  added_cells(runs, lambda run: run["pair_ns"] - run["walk_ns"]), [])


def pair_time_check(title, value):
    return check(f"{title} {value:.1f} of {PAIR_LIMIT_NS} ns at {REFERENCE_GHZ} GHz "
                 f"(aim {PAIR_AIM_NS})", value <= PAIR_LIMIT_NS)


def pair_count_check(title, count):
    return check(f"{title} {count:.0f} of {PAIR_LIMIT} instructions (aim {PAIR_AIM})",
                 round(count) <= PAIR_LIMIT)


def pair_checks(depth, at, scale):
    checks = []
    now = at[depth]
    for variant in INSTRUMENTED:
        if now.get(variant) is None:
            continue
        value = now[variant] * scale
        checks.append(pair_time_check(variant, value))
        first = at[10].get(variant)
        if depth != 10 and first:
            change = now[variant] / first - 1
            checks.append(check(f"{variant} {change:+.0%} of ±20 % against 10 frames",
                                abs(change) <= 0.2))
    if now.get("frame-pointer") is not None:
        value = now["frame-pointer"] * scale
        if depth == 10:
            checks.append(check(f"frame pointers {value:.1f} of 65 ns at 2.5 GHz", value <= 65))
        elif at[10].get("frame-pointer") is not None:
            further = (now["frame-pointer"] - at[10]["frame-pointer"]) * scale / (depth - 10)
            checks.append(check(f"frame pointers {further:.2f} of 2.5 ns a further frame",
                                further <= 2.5))
    if depth == 10 and now.get("preload") and now.get("heaptrack"):
        cheaper = now["heaptrack"] / now["preload"]
        checks.append(check(f"preload {cheaper:.1f} of 3 times cheaper than heaptrack",
                            cheaper >= 3))
    return checks


def instructions(bench, _, variants=OURS):
    """Instructions a pair, by callgrind: a number without noise."""
    if bench.quick or not bench.valgrind:
        return
    small = 1000
    for depth in (10, 100, 1000):
        # A run makes two batches: one to warm up, one timed.
        once, twice = (["--depth", depth, "--batches", 1, "--batch", batch]
                       for batch in (small, 2 * small))
        yield instructions_row(f"pair, {depth} frames: added instructions (callgrind)", 2 * small,
                               bench.more_instructions("pair", ("bare",) + variants, once, twice),
                               INSTRUMENTED)


def instructions_row(name, items, counts, judged=()):
    """Instructions of so many items: what each variant adds to the bare ones of an item."""
    if "bare" not in counts:
        return Row(name, {}, [])
    more = {variant: (count - counts["bare"]) / items for variant, count in counts.items()}
    cells = {variant: f"{value:+.0f}" for variant, value in more.items()}
    cells["bare"] = f"{counts['bare'] / items:.0f}"
    return Row(name, cells, [pair_count_check(variant, more[variant])
                             for variant in judged if variant in more])


def calls(bench, _):
    """What the instrumentation itself costs where nothing is allocated."""
    runs = bench.rounds("calls", [], BUILDS, 3 if bench.quick else 7)
    yield Row("a call of an empty function: added ns", added_cells(runs, lambda r: r["call_ns"]),
              [])


def threads(bench, _):
    """Four threads that free each other's blocks, against one thread."""
    count = 3 if bench.quick else 7
    lists = ["--batches", 400 if bench.quick else 1000]
    one = bench.rounds("threads", ["--threads", 1] + lists, VARIANTS, count)
    four = bench.rounds("threads", ["--threads", 4] + lists, VARIANTS, count)
    for name, key in (("wall", "pair_wall_ns"), ("processor", "pair_cpu_ns")):
        value = lambda run: run[key]
        yield Row(f"pair, 1 thread: {name} time against bare", ratio_cells(one, value, "{:.1f} ns"),
                  [])
        checks = []
        for variant in OURS:
            alone, company = ratios(one, variant, value), ratios(four, variant, value)
            if alone and company:
                checks.append(check(f"{variant}: {median(company):.2f}x of {median(alone):.2f}x",
                                    median(company) <= median(alone)))
        yield Row(f"pair freed by another thread, 4 threads: {name} time against bare",
                  ratio_cells(four, value, "{:.1f} ns"), checks)


def memory(bench, _):
    """Peak resident memory with many live blocks; shared mappings included."""
    divide = 5 if bench.quick else 1
    variants = ("bare",) + OURS if bench.quick else VARIANTS
    peak = lambda run: run["peak_kib"]
    for size, blocks, limit in ((32, 2500000, 1.27), (24, 2500000, None), (1024, 250000, 1.3),
                                (65536, 8192, 1.02)):
        blocks //= divide
        contexts = 100000 if size < 65536 and not bench.quick else 10000
        runs = bench.rounds(
            "memory", ["--size", size, "--blocks", blocks, "--contexts", contexts], variants, 1)
        checks = []
        for variant in OURS:
            found = ratios(runs, variant, peak)
            if limit and found:
                checks.append(check(f"{variant} {median(found):.3f}x of {limit}x",
                                    median(found) <= limit))
        yield Row(f"peak resident, {blocks:,} live blocks of {size:,} bytes from "
                  f"{min(contexts, blocks):,} contexts", ratio_cells(runs, peak, "{:,.0f} KiB"),
                  checks)


def tree(bench, _):
    """A context of its own for each block: what one costs in time and in bytes."""
    nodes = 500000 if bench.quick else 2500000
    cost = lambda run: run["node_ns"] - run["walk_ns"]
    runs, sizes = {}, {}
    for variant in VARIANTS:
        found = bench.rounds("tree", ["--nodes", nodes], (variant,), 1 if bench.quick else 3)
        runs.update(found)
        if variant in OURS and found.get(variant) and os.path.exists(bench.profile):
            sizes[variant] = profile.read(bench.profile)
    checks = []
    for variant in OURS:
        value = added(runs, variant, cost)
        if value is not None:
            checks.append(check(f"{variant} {value:.0f} of 200 ns", value <= 200))
    yield Row(f"binary tree of {nodes:,} nodes, each a context: added ns a node, "
              "calls counted apart", added_cells(runs, cost), checks)
    value = lambda run: run["node_ns"]
    against = {variant: median(found) for variant in TREE_LIMITS
               if (found := ratios(runs, variant, value))}
    yield Row(f"binary tree of {nodes:,} nodes: time against bare",
              ratio_cells(runs, value, "{:.1f} ns"),
              [check(f"{variant} {cost:.2f}x of {TREE_LIMITS[variant]}x",
                     cost <= TREE_LIMITS[variant]) for variant, cost in against.items()])
    yield Row(f"binary tree of {nodes:,} nodes: peak resident",
              ratio_cells(runs, lambda run: run["peak_kib"], "{:,.0f} KiB"), [])
    checks = [check(f"{variant} {size.context_bytes / max(size.allocating, 1):.1f} of "
                    f"{CONTEXT_LIMIT_BYTES}",
                    size.context_bytes <= CONTEXT_LIMIT_BYTES * size.allocating)
              for variant, size in sizes.items()]
    cells = {variant: f"{size.context_bytes / max(size.allocating, 1):.1f} "
                      f"({size.contexts:,} tree nodes, {size.lost:,} lost)"
             for variant, size in sizes.items()}
    yield Row("the same: bytes a distinct allocating context, path nodes and ledger included",
              cells, checks)


def fixed(bench, _):
    """What a program pays that does nothing."""
    variants = ("bare",) + OURS + ("run", "heaptrack")
    runs = bench.rounds("trivial", [], variants, 3 if bench.quick else 7)
    value = lambda run: run["peak_kib"]
    checks = [check(f"{variant} {added(runs, variant, value):,.0f} of 4,096 KiB",
                    added(runs, variant, value) < 4096) for variant in OURS if runs.get(variant)]
    yield Row("trivial program: added resident KiB", added_cells(runs, value, "{:+,.0f}"), checks)

    chosen = [variant for variant in variants if runs.get(variant)]
    times = {variant: [] for variant in chosen}
    for number in range(20 if bench.quick else 50):
        bench.progress(f"trivial: start and end: {number}")
        for variant in chosen:
            if variant != "heaptrack" or number < 10:
                times[variant].append(bench.spawn_ms("trivial", variant))
    cells = {"bare": f"{median(times['bare']):.2f}"}
    checks = []
    for variant in chosen[1:]:
        value = median([a - b for a, b in zip(times[variant], times["bare"])])
        cells[variant] = f"{value:+.2f}"
        if variant in OURS + ("run",):
            checks.append(check(f"{variant} {value:.2f} of 10 ms", value <= 10))
    if "run" in cells:
        cells["preload"] = f"{cells.get('preload', '')} (`memtrace run`: {cells.pop('run')})"
    yield Row("trivial program: added ms from start to end", cells, checks)


def bound(bench, _):
    """Threads times contexts: must not be a product."""
    threads_count, contexts = (200, 10000) if bench.quick else (1000, 100000)
    # One of them tells: the counters are the same.
    runs = bench.rounds("bound", ["--threads", threads_count, "--contexts", contexts],
                        ("bare", "pass" if bench.has("pass") else "hooks"), 1)
    yield Row(f"{threads_count:,} threads each in {contexts:,} contexts: added resident MiB",
              added_cells(runs, lambda run: run["peak_kib"] / 1024, "{:+,.0f}"), [])
    yield Row("the same: added ns of processor time a pair",
              added_cells(runs, lambda run: run["pair_cpu_ns"]), [])
