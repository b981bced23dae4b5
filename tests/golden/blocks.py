# SPDX-License-Identifier: MIT
"""blocks.py THREADS coarse|precise SEED: a program that does all sorts of things is recorded; then every
report of single blocks equals what counting the blocks that an independent reader finds gives:
sizes, lifetimes, what was freed at shutdown or soon, groups, single blocks, fragmentation."""

import collections
import os
import sys

import reports
import lives
from recorded import only_recording, record
from harness import build, equal, fail, finish, report, scratch

PAGE = 4096
STEPS = 16  # of a doubling: what a percentile is kept in
SELECTION = os.path.join(reports.HERE, "..", "selection")


class Asker:
    def __init__(self, path, exact):
        self.path, self.exact = path, exact
        self.story = lives.Story(path)
        self.heap = [life for life in self.story.lives if life.heap]
        self.all = report(path, reports.SETTINGS)
        self.hash = {context["id"]: context["hash"] for context in self.all["contexts"]}
        self.end = self.all["process"]["duration_ns"]

    def ask(self, *options):
        return reports.tables(self.path, *options)


def seconds(ns):
    return "%.9fs" % (ns / 1e9)


def percentile(values, percent):
    """The least value that so many do not exceed."""
    values = sorted(values)
    wanted = len(values) * percent / 100
    return next(value for i, value in enumerate(values, 1) if i >= wanted)


def near(asker, got, values, percent, what):
    """At most a step above the true one; with several threads frees may be known to a tick only."""
    want = percentile(values, percent)
    slack = 0 if asker.exact else lives.TICK
    if not want - slack <= got <= (want + slack) * (1 + 1 / STEPS) + 1:
        fail(what, "p%d" % percent, ": got", got, "expected", want)


def by_context(found):
    grouped = collections.defaultdict(list)
    for life in found:
        grouped[life.context].append(life)
    return grouped


def born(asker, start, end):
    return [life for life in asker.heap if start <= life.birth < end]


def died(asker, start, end):
    return [life for life in asker.heap if life.birth < end and start <= life.death < end]


def living(asker, end):
    return [life for life in asker.heap if life.birth < end <= life.death or
            (life.death == lives.NEVER and life.birth < end)]


def sizes(asker, view, start, end):
    told = asker.ask("--show-sizes", *view)
    want = collections.defaultdict(lambda: [0, 0, 0, 0])
    for life in born(asker, start, end):
        bucket = want[life.size.bit_length()]
        bucket[0] += 1
        bucket[1] += life.size
    for life in living(asker, end):
        bucket = want[life.size.bit_length()]
        bucket[2] += 1
        bucket[3] += life.size
    got = {(row["least_bytes"], row["most_bytes"]): [
        row["allocations"], row["total_bytes"], row["live_blocks"], row["live_bytes"]]
        for row in told["sizes"]}
    equal(got, {(1 << bits >> 1, (1 << bits) - 1): counts for bits, counts in want.items()},
          view, "size histogram")
    grouped = by_context(born(asker, start, end))
    equal(len(told["sizes-by-path"]), len(grouped), view, "paths with sizes")
    for row in told["sizes-by-path"]:
        here = [life.size for context in grouped if asker.hash[context] == row["hash"]
                for life in grouped[context]]
        equal((row["allocations"], row["least_bytes"], row["most_bytes"]),
              (len(here), min(here), max(here)), view, "sizes of", row["hash"])
        for name, percent in (("p50_bytes", 50), ("p90_bytes", 90)):
            want = percentile(here, percent)
            if not want <= row[name] <= want * (1 + 1 / STEPS):
                fail(view, name, "of", row["hash"], ": got", row[name], "expected", want)


def lifetimes(asker, view, start, end):
    told = asker.ask("--show-lifetimes", *view)
    gone = died(asker, start, end)
    whole = told["lifetimes-all"][0]
    equal(whole["freed"], len(gone), view, "blocks freed")
    equal(sum(row["freed"] for row in told["lifetimes"]), len(gone), view, "blocks freed by path")
    grouped = by_context(gone)
    equal(len(told["lifetimes"]), len(grouped), view, "paths with lifetimes")
    for row in [whole] + told["lifetimes"]:
        here = gone if row is whole else [
            life for context in grouped if asker.hash[context] == row["hash"]
            for life in grouped[context]]
        spans = [life.death - life.birth for life in here]
        for name, percent in (("p50_ns", 50), ("p90_ns", 90), ("p99_ns", 99)):
            if here:
                near(asker, row[name], spans, percent, (view, row.get("hash")))
        if here and asker.exact:
            equal(row["longest_ns"], max(spans), view, "longest of", row.get("hash"))


def self_costs(rows):
    return sum(row["self"] for row in rows)


def paths(rows):
    return {row["hash"]: row["cost"] for row in rows}


def summed(found, of):
    """By hash."""
    want = collections.Counter()
    for life in found:
        want[life] += of
    return want


def shutdown(asker):
    """By default after the last allocation, whose order only one thread's events tell."""
    cases = [(["--shutdown-at", seconds(at)], lambda life, at=at: life.death >= at)
             for at in (asker.end // 2 // lives.TICK * lives.TICK, 1 << 62)
             if at < asker.end]
    if asker.exact:
        last = max(life.place for life in asker.heap)
        cases.append((["--show-shutdown"], lambda life: life.death_place > last))
        cases.append((["--show-shutdown", "--size", "0.."], lambda life: life.death_place > last))
        cases.append((["--show-shutdown", "--size", "0..100"],
                      lambda life: life.death_place > last))
    moved = {life.old for life in asker.heap if life.old}
    for options, is_late in cases:
        late = [life for life in asker.heap if ("0..100" not in options or life.size <= 100) and
                (life.death == lives.NEVER or (is_late(life) and life.block not in moved))]
        want = collections.Counter()
        for life in late:
            want[asker.hash[life.context]] += life.size
        got = paths(asker.ask(*options, "--paths", "--no-builtin-suppressions")["shutdown"])
        equal(got, {name: cost for name, cost in want.items() if cost}, options)
        for form in ([], ["--bottom-up"], ["--flat"]):
            rows = asker.ask(*options, *form, "--no-builtin-suppressions")["shutdown"]
            equal(self_costs(rows), sum(want.values()), options, form, "sum")


def short_lived(asker):
    for within in (0, 1000, 50000, 3 * lives.TICK) if asker.exact else ():
        want = collections.Counter()
        for life in asker.heap:
            if life.death != lives.NEVER and life.death - life.birth <= within:
                want[asker.hash[life.context]] += 1
        got = asker.ask("--temporary-within", seconds(within), "--paths")["short-lived"]
        equal(paths(got), dict(want), "freed within", within)


def groups(asker, view, start, end):
    rows = {row["hash"]: row for row in asker.ask("--show-groups", *view)["groups"]}
    grouped = by_context(born(asker, start, end))
    for context, here in grouped.items():
        row = rows[asker.hash[context]]
        equal((row["allocations"], row["total_bytes"], row["first_ns"], row["last_ns"]),
              (len(here), sum(life.size for life in here), min(life.birth for life in here),
               max(life.birth for life in here)), view, "group", row["hash"])
    for context, here in by_context(died(asker, start, end)).items() if asker.exact else ():
        mean = sum(life.death - life.birth for life in here) / len(here)
        got = rows[asker.hash[context]]["average_lifetime_ns"]
        if abs(got - mean) > 1 + mean * 1e-6:
            fail(view, "average lifetime: got", got, "expected", mean)


def single_blocks(asker):
    """The keys are those of the blocks that come first; of equals any order is right."""
    keys = {"largest": lambda life: -life.size, "first": lambda life: life.birth}
    if asker.exact:
        keys["oldest"] = lambda life: -life.lifetime(asker.end)
    for order, key in keys.items():
        rows = asker.ask("--blocks-by", order, "-n", "50")["blocks"]
        want = sorted(key(life) for life in asker.heap)[:50]
        got = [{"largest": -row["size"], "oldest": -row["age_ns"],
                "first": row["birth_ns"]}[order] for row in rows]
        equal(got, want, "blocks by", order)
        known = {(life.address, life.birth, life.size): life for life in asker.heap}
        for row in rows if asker.exact else ():
            life = known.get((int(row["address"], 16), row["birth_ns"], row["size"]))
            want = life and (None if life.death == lives.NEVER else life.death, life.freer,
                             life.thread, life.slack, asker.hash[life.context])
            equal((row["death_ns"], row["freed_by"], row["thread"], row["slack"], row["hash"]), want,
                  "block", row["address"])


def fragmentation(asker, end):
    """Byte by byte: which pages, how full; gaps of neighbours less than 1 MiB apart."""
    told = asker.ask("--show-fragmentation", "--at", seconds(end))
    here = sorted(living(asker, end), key=lambda life: life.address)
    pages, touching = collections.Counter(), collections.defaultdict(collections.Counter)
    for life in here:
        at = life.address
        while at < life.address + life.size:
            until = min(life.address + life.size, (at // PAGE + 1) * PAGE)
            pages[at // PAGE] += until - at
            touching[at // PAGE][life.context] += until - at
            at = until
    empty = [page for page, size in pages.items() if size < PAGE // 10]
    whole = told["fragmentation"][0]
    equal((whole["live_blocks"], whole["live_bytes"], whole["slack_bytes"], whole["pages"],
           whole["nearly_empty_pages"]),
          (len(here), sum(life.size for life in here), sum(life.slack for life in here), len(pages),
           len(empty)), "fragmentation at", end)
    tenths = collections.Counter(min(size * 10 // PAGE, 9) for size in pages.values())
    equal([row["pages"] for row in told["pages"]], [tenths[i] for i in range(10)], "pages by tenth")
    pins = collections.defaultdict(lambda: [0, 0])
    for page in empty:
        for context, size in touching[page].items():
            pins[asker.hash[context]][0] += 1
            pins[asker.hash[context]][1] += size
    equal({row["hash"]: [row["pages"], row["bytes"]] for row in told["pins"]}, dict(pins), "pins")
    slack = collections.Counter()
    for life in here:
        slack[asker.hash[life.context]] += life.slack
    equal({row["hash"]: row["slack_bytes"] for row in told["slack"]},
          {name: size for name, size in slack.items() if size}, "slack")
    equal(sum(row["live_bytes"] for row in told["regions"]), whole["live_bytes"], "regions")
    holes = [(before.address + before.size + before.slack, after.address)
             for before, after in zip(here, here[1:])]
    near_holes = [(a, b) for a, b in holes if 32 <= b - a < 1 << 20]
    if not any(row["name"] for row in told["regions"]):  # where mappings end is not known
        equal((whole["holes"], whole["hole_bytes"]),
              (len(near_holes), sum(b - a for a, b in near_holes)), "holes")
        largest = sorted((b - a for a, b in near_holes), reverse=True)[:16]
        equal([row["bytes"] for row in told["holes"]], largest, "largest holes")


def main():
    threads, clock, seed = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    folder = scratch()
    options = ["--precise"] if clock == "precise" else []
    program = build(os.path.join(SELECTION, "busy.c"))
    under = record([program, seed, str(threads), str(4000 // threads)], folder, *options)
    equal(under.returncode, 0, "the program", under.stderr)
    asker = Asker(only_recording(folder, "busy"), exact=threads == 1)
    middle = asker.end // 3
    views = [([], 0, lives.NEVER)]
    if asker.exact:
        views.append((["--from", seconds(middle), "--to", seconds(2 * middle)], middle, 2 * middle))
    for view in views:
        sizes(asker, *view)
        lifetimes(asker, *view)
        groups(asker, *view)
    shutdown(asker)
    short_lived(asker)
    single_blocks(asker)
    for end in (middle, asker.end) if asker.exact else (asker.end + (1 << 40),):
        fragmentation(asker, end)


main()
finish()
