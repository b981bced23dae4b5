# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run sampling`: what it costs to sample one allocation in 512 KiB,
beside the samplers of jemalloc and tcmalloc. A figure is the median over rounds of the difference
to (or ratio with) the run of the same round without the sampler, under the same allocator, with the
quartiles."""

import collections

from figures import REFERENCE_GHZ, core_speed
from harness import median, spread
from prebuilt.subjects import whole_programs
from sampling.samplers import BASES, SAMPLERS
from table import Row, check

PAIR_LIMIT_NS, PROGRAM_LIMIT = 2, 1.01
ALL = ("bare", *SAMPLERS)
PROGRAMS = ("python3", "redis")

# bench runs the small subjects, programs the real ones.
Sampling = collections.namedtuple("Sampling", "bench programs")


def against_base(runs, value, compare):
    """{sampler: what `compare` says of each round and that of its base}"""
    return {sampler: [compare(value(run), value(alone))
                      for run, alone in zip(runs[sampler], runs[base])]
            for sampler, base in BASES.items() if runs.get(sampler) and runs.get(base)}


def pairs(sampling):
    """One malloc and free, the same stack each time."""
    bench = sampling.bench
    for depth in (10, 100, 1000):
        runs = bench.rounds("pair", ["--depth", depth, "--batch", 20000, "--batches", 25], ALL,
                            3 if bench.quick else 15)
        ghz = core_speed(bench)
        found = against_base(runs, lambda run: run["pair_ns"], lambda ours, base: ours - base)
        cells = {"bare": f"{median([run['pair_ns'] for run in runs['bare']]):.1f}"}
        cells.update({sampler: "{:+.1f} ({:.1f}–{:.1f})".format(*spread(values))
                      for sampler, values in found.items()})
        cost = median(found["sampled"]) * ghz / REFERENCE_GHZ
        yield Row(f"malloc+free pair, {depth} frames: added ns", cells,
                  [check(f"{cost:.1f} of {PAIR_LIMIT_NS} ns at {REFERENCE_GHZ} GHz",
                         cost <= PAIR_LIMIT_NS)])


def changes(sampling):
    """Blocks that stay for a while, and stacks that change."""
    bench = sampling.bench
    runs = bench.rounds("pair", ["--depth", 100, "--change", 5, "--paths", 2, "--batch", 20000,
                                 "--batches", 25], ALL, 3 if bench.quick else 15)
    found = against_base(runs, lambda run: run["pair_ns"] - run["walk_ns"],
                         lambda ours, base: ours - base)
    yield Row("pair, 100 frames, 5 of them entered anew: added ns",
              {sampler: "{:+.1f} ({:.1f}–{:.1f})".format(*spread(values))
               for sampler, values in found.items()}, [])


def programs(sampling):
    """Whole programs, processor time from start to end, within noise."""
    real = sampling.programs
    for subject in whole_programs(real.work):
        if not any(name in subject.title for name in PROGRAMS):
            continue
        cases = [("gcc-bare", "alone")] + [("gcc-bare", sampler) for sampler in SAMPLERS]
        found = real.rounds(subject, cases, None, 3 if real.quick else 15)
        runs = {"bare" if state == "alone" else state: values
                for (_, state), values in found.items()}
        if "bare" not in runs:
            continue
        shares = against_base(runs, float, lambda ours, base: ours / base)
        cells = {"bare": f"{median(runs['bare']):.2f} s"}
        cells.update({sampler: "{:.3f}x ({:.3f}–{:.3f})".format(*spread(values))
                      for sampler, values in shares.items()})
        checks = []
        if "sampled" in shares:
            cost = spread(shares["sampled"])
            checks.append(check(f"{cost.median:.3f}x of {PROGRAM_LIMIT}x",
                                cost.median <= PROGRAM_LIMIT))
        yield Row(f"{subject.title}: time", cells, checks)


GROUPS = {"pairs": pairs, "changes": changes, "programs": programs}
