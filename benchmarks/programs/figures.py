# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run programs`: what instrumentation costs real programs, without and
with recording. Each function yields Rows. A ratio is that of two runs of the same round, with the
variant's bare build; its median over the rounds is shown with the quartiles."""

from figures import REFERENCE_GHZ, pair_count_check, pair_time_check
from harness import median, spread
from programs import subjects
from programs.builds import VARIANTS
from programs.measure import BASES
from table import Row, check

TITLES = {variant.name: variant.title for variant in VARIANTS}
PASSES = ("gcc-pass", "clang-pass")
TIME_LIMIT, INSTRUCTION_LIMIT, TEXT_LIMIT = 1.05, 1.10, 1.10
RECURSION_LIMIT = 1.5
RECORDING_LIMITS = {"lua": (1.2, 1.15), "sqlite": (1.15,)}
# The targets of time and instructions are for these two; the others show what else may happen.
TIMED = ("lua", "sqlite")


def alone(programs, subject):
    return [(variant, "alone") for variant in programs.built(subject)]


def ratios(found, state):
    """{variant: ratio of each round}, of the runs in this state to the bare build's, alone."""
    return {variant: [ours / base for ours, base in zip(values, found[BASES[variant], "alone"])]
            for (variant, of), values in found.items()
            if of == state and (BASES[variant], "alone") in found}


def ratio_row(name, found, state, form, limits=()):
    """The bare builds' own values, and the ratios of the others."""
    cells = {}
    checks = []
    for variant, values in ratios(found, state).items():
        if state == "alone" and BASES[variant] == variant:
            cells[variant] = form.format(median(found[variant, "alone"]))
            continue
        cost = spread(values)
        cells[variant] = f"{cost.median:.3f}x ({cost.low:.2f}–{cost.high:.2f})"
        if variant in PASSES:
            checks.extend(check(f"{TITLES[variant]} {cost.median:.3f}x of {limit}x",
                                cost.median <= limit) for limit in limits)
    return Row(name, cells, checks)


def count_row(name, counts, form, limit=None, scale=1):
    """Counts have no spread: the bare builds' own ones, and by how much the others are larger."""
    cells = {}
    checks = []
    for variant, count in counts.items():
        base = counts.get(BASES[variant])
        if base == count and BASES[variant] == variant:
            cells[variant] = form.format(count / scale)
        elif base:
            cells[variant] = f"{count / base - 1:+.1%}"
            if limit and variant in PASSES:
                checks.append(check(f"{TITLES[variant]} {count / base - 1:+.1%} of "
                                    f"{limit - 1:+.0%}", count / base <= limit))
    return Row(name, cells, checks)


def times(programs, real):
    """Processor time without recording."""
    for name, subject in real.items():
        found = programs.rounds(subject, alone(programs, subject))
        yield ratio_row(f"{subject.title}: time", found, "alone", "{:.2f} s",
                        (TIME_LIMIT,) if name in TIMED else ())
        cost = ratios(found, "alone")
        if "gcc-hooks" in cost and "gcc-pass" in cost:
            factor = median([a / b for a, b in zip(cost["gcc-hooks"], cost["gcc-pass"])])
            yield Row(f"{subject.title}: time of hooks against pass",
                      {"gcc-hooks": f"{factor:.2f}x"}, [])


def instructions(programs, real):
    """Instructions without recording, by callgrind: a figure without noise."""
    for name, subject in real.items():
        found = programs.instructions(subject, alone(programs, subject))
        yield count_row(f"{subject.title}: instructions (callgrind)",
                        {variant: count for (variant, _), count in found.items()}, "{:,.0f} M",
                        INSTRUCTION_LIMIT if name in TIMED else None, 1e6)


def text(programs, real):
    """Size of the code."""
    for subject in real.values():
        sizes = {variant: programs.text_bytes(subject, variant)
                 for variant in programs.built(subject)}
        yield count_row(f"{subject.title}: .text", sizes, "{:,.0f} KiB", TEXT_LIMIT, 1024)


def recursion(programs, _):
    """Hardly anything but calls."""
    subject = subjects.RECURSION
    found = programs.rounds(subject, alone(programs, subject), programs.result)
    yield ratio_row(f"{subject.title}: time a call", found, "alone", "{:.2f} ns",
                    (RECURSION_LIMIT,))
    counts = programs.instructions(subject, alone(programs, subject))
    yield count_row(f"{subject.title}: instructions (callgrind)",
                    {variant: count for (variant, _), count in counts.items()}, "{:,.0f} M",
                    None, 1e6)


def recording(programs, _):
    """Programs that allocate much, with the runtime there but off, and with the profile on."""
    for short, subject in subjects.ALLOCATING.items():
        built = programs.built(subject)
        bare = [variant for variant in built if BASES[variant] == variant]
        cases = [(variant, "alone") for variant in bare] + [(variant, "on") for variant in built]
        off = [(variant, "off") for variant in built if variant in (*bare, *PASSES)]
        found = programs.rounds(subject, cases + off)
        yield ratio_row(f"{subject.title}: time, the runtime there but off", found, "off",
                        "{:.2f} s")
        yield ratio_row(f"{subject.title}: time, profile on", found, "on", "{:.2f} s",
                        RECORDING_LIMITS[short])
        counts = programs.instructions(subject, cases)
        yield recording_counts(f"{subject.title}: instructions, profile on (callgrind)", counts)


def recording_counts(name, counts):
    cells = {variant: f"{count / counts[BASES[variant], 'alone'] - 1:+.1%}"
             for (variant, state), count in counts.items()
             if state == "on" and (BASES[variant], "alone") in counts}
    return Row(name, cells, [])


def pairs(programs, _):
    """One malloc and free with everything on, at three depths."""
    for depth in (10, 100, 1000):
        subject = subjects.pair(depth, 1, 1000)
        cases = [(variant, state) for variant in programs.built(subject)
                 for state in ("alone", "on") if state == "on" or BASES[variant] == variant]
        found = programs.rounds(subject, cases, programs.result)
        yield pair_row(f"{subject.title}: added ns", found, programs.ghz / REFERENCE_GHZ)
        yield pair_instructions(programs, depth, cases)


def added(found):
    """{variant: what the profile adds in each round} for runs with the profile on."""
    return {variant: [ours - base for ours, base in zip(values, found[BASES[variant], "alone"])]
            for (variant, state), values in found.items()
            if state == "on" and (BASES[variant], "alone") in found}


def pair_row(name, found, scale):
    cells = {}
    checks = []
    for variant, values in added(found).items():
        cost = spread(values)
        cells[variant] = f"{cost.median:+.1f} ({cost.low:.0f}–{cost.high:.0f})"
        if variant in PASSES:
            checks.append(pair_time_check(TITLES[variant], cost.median * scale))
    return Row(name, cells, checks)


def pair_instructions(programs, depth, cases):
    """Each runs a batch to warm up and one that counts; a batch twice as long tells a pair."""
    once, twice = (programs.instructions(subjects.pair(depth, 1, batch), cases)
                   for batch in (1000, 2000))
    found = {case: [(twice[case] - once[case]) / 2000] for case in once if case in twice}
    return Row(f"malloc+free pair, {depth} frames: added instructions (callgrind)",
               {variant: f"{cost[0]:+.0f}" for variant, cost in added(found).items()},
               [pair_count_check(TITLES[variant], cost[0])
                for variant, cost in added(found).items() if variant in PASSES])


GROUPS = {"times": times, "instructions": instructions, "text": text, "recursion": recursion,
          "recording": recording, "pairs": pairs}
