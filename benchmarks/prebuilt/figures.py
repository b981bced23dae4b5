# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run prebuilt`: programs that were not built for a profiler, under each
way of unwinding and under the peers. Each function takes a Prebuilt and yields Rows. A figure is
the median over rounds of the difference to (or ratio with) the bare run of the same round, with the
quartiles."""

import collections
import os

from figures import REFERENCE_GHZ, core_speed, differences, instructions, ratios
from harness import RunFailed, heaptrack_library, median, spread
from prebuilt import subjects
from table import Row, check

TITLES = {"bare": "bare", "verify": "verify", "patch": "patch", "fp": "frame pointers",
          "heaptrack": "heaptrack", "backtrace": "unw_backtrace alone",
          "libunwind": "by libunwind"}
FAST = ("bare", "verify", "patch", "fp", "heaptrack", "backtrace")
# Half a millisecond for a stack of 1,000 frames: fewer pairs do.
SLOW = {"libunwind": ["--batch", 20, "--batches", 5], "backtrace": ["--batch", 200]}
PAIR_LIMIT_NS = {10: 60, 100: 120, 1000: 250}
VERIFY_LIMIT_NS, CHANGE_LIMIT_NS, FIRST_LIMIT_NS = 1.5, 150, 60
TREE_LIMITS, RULE_LIMIT_BYTES, FRAME_LIMIT_BYTES = (5, 4), 32, 64
FIRST_LIMIT_COUNT = 100
# Of all functions in sight, at most so many rules for one allocation.
LAZY_SHARE = 0.01
LIBRARIES = ("libstdc++.so.6", "libpython3.11.so.1.0", "libLLVM-14.so.1")

# bench runs the small subjects, programs the real ones.
Prebuilt = collections.namedtuple("Prebuilt", "bench programs")


def left_out(bench):
    """A line for each column that cannot be here."""
    if not heaptrack_library():
        yield "heaptrack: not installed"
    if not os.path.exists(bench.backtrace):
        yield "unw_backtrace alone: no libunwind to build with"


def compared_row(name, runs, value, compare, bare_form, form, checks=()):
    """The bare value itself, and what `compare` makes of the others: the median and quartiles."""
    cells = {"bare": bare_form.format(median([value(run) for run in runs["bare"]]))}
    for variant in runs:
        found = compare(runs, variant, value)
        if variant != "bare" and found:
            cells[variant] = form.format(*spread(found))
    return Row(name, cells, list(checks))


def added_row(name, runs, value, checks=()):
    return compared_row(name, runs, value, differences, "{:.1f}", "{:+.1f} ({:.0f}–{:.0f})", checks)


def ratio_row(name, runs, value, form, checks=()):
    return compared_row(name, runs, value, ratios, form, "{:.2f}x ({:.2f}–{:.2f})", checks)


def against_patch_row(runs, value):
    """How many times as much as with guards."""
    ours = differences(runs, "patch", value)
    against = {variant: [other / mine for other, mine in zip(differences(runs, variant, value),
                                                             ours) if mine > 0]
               for variant in runs if variant not in ("bare", "patch")}
    return Row("the same: times what patch adds",
               {variant: f"{median(found):.1f}x" for variant, found in against.items() if found},
               [])


def added_at_reference(runs, variant, value, ghz):
    found = differences(runs, variant, value)
    return median(found) * ghz / REFERENCE_GHZ if found else None


def limit_checks(runs, value, ghz, limit, variants=("patch",)):
    for variant in variants:
        cost = added_at_reference(runs, variant, value, ghz)
        if cost is not None:
            yield check(f"{TITLES[variant]} {cost:.0f} of {limit} ns at {REFERENCE_GHZ} GHz",
                        cost <= limit)


def pairs(prebuilt):
    """One malloc and free, the same stack each time."""
    bench, pair = prebuilt.bench, lambda run: run["pair_ns"]
    at = {}
    for depth, limit in PAIR_LIMIT_NS.items():
        runs = bench.rounds("pair", ["--depth", depth, "--batch", 5000, "--batches", 25],
                            FAST + ("libunwind",), 3 if bench.quick else 7, SLOW)
        ghz = core_speed(bench)  # each time: it changes
        at[depth] = added_at_reference(runs, "verify", pair, ghz)
        checks = list(limit_checks(runs, pair, ghz, limit))
        if depth == 1000 and at[10] is not None and at[depth] is not None:
            each = (at[depth] - at[10]) / (depth - 10)
            checks.append(check(f"verify {each:.2f} of {VERIFY_LIMIT_NS} ns a frame at "
                                f"{REFERENCE_GHZ} GHz", each <= VERIFY_LIMIT_NS))
        yield added_row(f"malloc+free pair, {depth} frames, same stack: added ns", runs, pair,
                        checks)
        yield against_patch_row(runs, pair)


def changes(prebuilt):
    """Some frames left and entered again by another way between two pairs."""
    bench, cost = prebuilt.bench, lambda run: run["pair_ns"] - run["walk_ns"]
    for change in (3, 4, 5):
        runs = bench.rounds("pair", ["--depth", 100, "--change", change, "--paths", 2,
                                     "--batch", 5000, "--batches", 25],
                            FAST + ("libunwind",), 3 if bench.quick else 7, SLOW)
        yield added_row(f"pair, 100 frames, {change} of them entered anew by another way: added "
                        "ns, calls counted apart", runs, cost,
                        limit_checks(runs, cost, core_speed(bench), CHANGE_LIMIT_NS))
        yield against_patch_row(runs, cost)


def first_sight(prebuilt):
    """Stacks never seen before, of return addresses that were."""
    bench = prebuilt.bench
    cost = lambda run: (run["path_ns"] - run["walk_ns"]) / run["frames"]
    for levels, name in ((16, "all combinations of 16 calls"), (64, "chosen from 2^64")):
        paths = min(2 ** levels, 10000 if bench.quick else 65536)
        runs = bench.rounds("first", ["--levels", levels, "--paths", paths], FAST + ("libunwind",),
                            3 if bench.quick else 7, {"libunwind": ["--paths", 1000]})
        yield added_row(f"{paths:,} new stacks, {name}: added ns a frame", runs, cost,
                        limit_checks(runs, cost, core_speed(bench), FIRST_LIMIT_NS,
                                     ("verify", "patch")))


def first_instructions(bench):
    """The same, counted: twice as many paths, of which the second half was never seen."""
    for levels, name, paths in ((16, "all combinations of 16 calls", 32768),
                                (64, "chosen from 2^64", 4000)):
        counts = bench.more_instructions("first", ("bare", "verify", "patch", "fp"),
                                         ["--levels", levels, "--paths", paths],
                                         ["--levels", levels, "--paths", 2 * paths])
        frames = paths * (levels + 3)  # as first.c counts them
        more = {variant: (count - counts.get("bare", 0)) / frames
                for variant, count in counts.items() if variant != "bare"}
        cells = {variant: f"{count:+.0f}" for variant, count in more.items()}
        yield Row(f"new stacks, {name}: added instructions a frame (callgrind)", cells,
                  [check(f"patch {more['patch']:.0f} of {FIRST_LIMIT_COUNT}",
                         round(more["patch"]) <= FIRST_LIMIT_COUNT)] if "patch" in more else [])


def lazy(prebuilt):
    """What large libraries cost a program that hardly uses them."""
    bench = prebuilt.bench
    libraries = [library for library in LIBRARIES if opens(bench, library)]
    shown = [variant for variant in ("bare", "verify", "patch", "heaptrack") if bench.has(variant)]
    for number, names in enumerate(([], libraries)):
        times = {variant: [] for variant in shown}
        for _ in range(10 if bench.quick else 30):
            for variant in shown:
                if variant != "heaptrack" or len(times[variant]) < 5:
                    times[variant].append({"ms": bench.spawn_ms("start", variant, *names)})
        with_what = ", ".join(names) if number else "no further library"
        yield added_row(f"one allocation, {with_what}: added ms from start to end", times,
                        lambda run: run["ms"])
    size = bench.micro("resident_bench", *libraries)
    share = size["rules_first"] / size["functions"]
    yield Row(f"the same: rules made, of {size['functions']:,.0f} functions",
              {"verify": f"{size['rules_first']:.0f}"},
              [check(f"{share:.3%} of {LAZY_SHARE:.0%}", share <= LAZY_SHARE)])
    yield Row(f"a rule, made for the first time ({size['rules']:,.0f} of them): ns",
              {"verify": f"{size['rule_ns']:.0f}"}, [])


def opens(bench, library):
    """Whether it is installed."""
    try:
        bench.run("start", "bare", library)
    except RunFailed:
        return False
    return True


def resident(prebuilt):
    """Private memory, as the kernel counts it."""
    bench = prebuilt.bench
    libraries = [library for library in LIBRARIES if opens(bench, library)]
    size = bench.micro("resident_bench", *libraries)
    yield Row(f"{size['rules']:,.0f} rules: resident bytes each, at the end and at the worst moment",
              {"verify": f"{size['rule_bytes']:.1f} ({size['rule_bytes_worst']:.1f})"},
              [check(f"{size['rule_bytes_worst']:.1f} under {RULE_LIMIT_BYTES}",
                     size["rule_bytes_worst"] < RULE_LIMIT_BYTES)])
    for depth in (1000, 10000):
        each = size[f"frame_bytes_{depth}"]
        yield Row(f"{depth:,} remembered frames: resident bytes each", {"verify": f"{each:.1f}"},
                  [check(f"{each:.1f} under {FRAME_LIMIT_BYTES}", each < FRAME_LIMIT_BYTES)])


def tree(prebuilt):
    """A context of its own for each block."""
    bench = prebuilt.bench
    nodes = 500000 if bench.quick else 2500000
    cost = lambda run: run["node_ns"]
    runs = bench.rounds("tree", ["--nodes", nodes], FAST, 3 if bench.quick else 7)
    few = bench.rounds("tree", ["--nodes", 100000], ("bare", "libunwind"), 1)
    found = ratios(runs, "patch", cost)
    row = ratio_row(f"binary tree of {nodes:,} nodes: time a node", runs, cost, "{:.1f} ns",
                    [check(f"patch {median(found):.2f}x of {limit}x", median(found) <= limit)
                     for limit in TREE_LIMITS if found])
    add_slow(row, ratios(few, "libunwind", cost))
    yield row


def add_slow(row, found):
    """One short run must do."""
    if found:
        row.cells["libunwind"] = f"{median(found):.1f}x (short)"


def programs(prebuilt):
    """Whole programs, processor time from start to end."""
    real = prebuilt.programs
    for subject in subjects.whole_programs(real.work):
        runs = by_column(real.rounds(subject, cases_of(real, subject)))
        if "bare" not in runs:
            continue
        row = ratio_row(f"{subject.title}: time", runs, float, "{:.2f} s",
                        program_checks(subject, runs))
        few = by_column(real.rounds(subject, [("gcc-bare", "alone"), ("gcc-bare", "libunwind")],
                                    lambda *case: real.run(*case, "short")[0], 1))
        add_slow(row, ratios(few, "libunwind", float) if "bare" in few else [])
        yield row


def cases_of(real, subject):
    cases = [("gcc-bare", state) for state in ("alone", "verify", "patch")]
    if "gcc-frame-pointer" in real.built(subject) and not os.path.isabs(subject.binary):
        cases.append(("gcc-frame-pointer", "fp"))
    return cases + [("gcc-bare", peer) for peer, library in real.peers.items()
                    if library and os.path.exists(library)]


def by_column(found):
    return {"bare" if state == "alone" else state: values
            for (_, state), values in found.items()}


def program_checks(subject, runs):
    """Against the limit, or against how much the bare runs differ."""
    found = ratios(runs, "patch", float)
    if not found or subject.limit == 0:
        return []
    cost = spread(found)
    if subject.limit is not subjects.NOISE:
        return [check(f"patch {cost.median:.2f}x of {subject.limit}x",
                      cost.median <= subject.limit)]
    bare = spread([value / median(runs["bare"]) for value in runs["bare"]])
    return [check(f"patch from {cost.low:.2f}x, bare up to {bare.high:.2f}x of its median",
                  cost.low <= bare.high)]


def counts(prebuilt):
    """Instructions, by callgrind: figures without noise. Under valgrind heaptrack does nothing, so
    peers are left out."""
    yield from instructions(prebuilt.bench, None, ("verify", "patch", "fp"))
    real = prebuilt.programs
    if prebuilt.bench.quick or not prebuilt.bench.valgrind:
        return
    yield from first_instructions(prebuilt.bench)
    for subject in subjects.whole_programs(real.work):
        found = by_column(real.instructions(subject, [case for case in cases_of(real, subject)
                                                      if case[1] not in real.peers]))
        if "bare" in found:
            yield Row(f"{subject.title}, short: instructions (callgrind)",
                      {column: f"{count / 1e6:,.0f} M" if column == "bare"
                       else f"{count / found['bare'] - 1:+.1%}"
                       for column, count in found.items()}, [])


GROUPS = {"pairs": pairs, "changes": changes, "first": first_sight, "lazy": lazy,
          "resident": resident, "tree": tree, "programs": programs, "instructions": counts}
