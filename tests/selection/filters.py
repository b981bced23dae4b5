# SPDX-License-Identifier: MIT
"""filters.py THREADS coarse|precise SEED: a program that does all sorts of things is recorded; then
`memtrace report` with every filter alone, and with random ones together, equals what counting the
blocks that an independent reader finds gives."""

import bisect
import itertools
import json
import os
import random
import re
import sys

import lives
from recorded import only_recording, record
from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, report, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("total_bytes", "allocations", "frees", "temporary", "live_bytes", "live_blocks")


class Sums:
    """Of (time, size): how many are before a time, and the sum of their sizes."""

    def __init__(self, pairs):
        pairs = sorted(pairs)
        self.times = [time for time, _ in pairs]
        self.sums = [0, *itertools.accumulate(size for _, size in pairs)]

    def before(self, time):
        count = bisect.bisect_left(self.times, time)
        return count, self.sums[count]


class Held:
    """Of (from, to, size): the sum of the sizes at a time; those of which `to` is not later are never there."""

    def __init__(self, spans):
        spans = [span for span in spans if span[0] < span[1]]
        self.come = Sums((first, size) for first, _, size in spans)
        self.gone = Sums((end, size) for _, end, size in spans)

    def at(self, time):
        return self.come.before(time + 1)[1] - self.gone.before(time + 1)[1]


class Asker:
    """Asks memtrace and counts."""

    def __init__(self, path, exact):
        self.path = path
        self.exact = exact  # one thread: the order of everything is known
        self.story = lives.Story(path)
        self.cache = {"MEMTRACE_CACHE": scratch()}
        self.all = report(path, self.cache)
        self.end = self.all["process"]["duration_ns"]
        self.contexts = {context["id"]: context for part in ("contexts", "pools", "mappings")
                         for context in self.all[part]}
        self.places = {}
        self.freers = None

    def told(self, *options):
        return report(self.path, self.cache, *options)

    def maximum_place(self, start, end):
        if (start, end) not in self.places:
            self.places[start, end] = lives.moment_of_maximum(self.story.lives, start, end)
        return self.places[start, end]

    def check(self, options, holds, start=0, end=lives.NEVER):
        """The answer to these options is that of the lives for which `holds` is true."""
        chosen = [life for life in self.story.lives if holds(life)]
        want = lives.add_up(chosen, start, end)
        data = self.told(*options)
        got = {context["id"]: context for part in ("contexts", "pools") for context in data[part]}
        for number in sorted(set(want) | set(got)):
            mine = {name: want[number][name] for name in NAMES}
            theirs = {name: got.get(number, {}).get(name, 0) for name in NAMES}
            if mine != theirs:
                fail(options, "context", number, ": got", theirs, "expected", mine)
                return
        self.check_lifetimes(options, got, chosen, start, end)
        self.check_threads(options, data, chosen, start, end)
        if self.exact:
            peak = lives.held_at(chosen, self.maximum_place(start, end), start, end)
            equal({context["id"]: context["peak_bytes"] for context in data["contexts"]
                   if context["peak_bytes"] != 0},
                  {number: size for number, size in peak.items() if size != 0}, options, "peaks")
        self.check_totals(options, data)
        views = {"--from", "--to", "--at", "--between"}
        if any(word.startswith("--") and word not in views for word in options):
            self.check_timeline(options, data, chosen, start, end)

    def check_lifetimes(self, options, got, chosen, start, end):
        died = [life for life in chosen if start <= life.death < end]
        ends = self.all["lifetime_ends_ns"]
        want = {}
        for life in died:
            ticks = lives.bucket(life) * lives.TICK
            place = next((i for i, limit in enumerate(ends) if ticks < limit), len(ends))
            want.setdefault(life.context, [0] * (len(ends) + 1))[place] += 1
        for number, buckets in want.items():
            told = got[number]["lifetimes"]
            if told + [0] * (len(buckets) - len(told)) != buckets[:max(len(told), len(buckets))]:
                fail(options, "lifetimes of", number, ": got", told, "expected", buckets)
                return

    def check_threads(self, options, data, chosen, start, end):
        heap = [life for life in chosen if life.heap]
        equal(sum(thread["allocations"] for thread in data["threads"]),
              sum(context["allocations"] for context in data["contexts"]), options, "allocations of all threads")
        for thread in data["threads"]:
            number = thread["id"]
            born = [life for life in heap if life.thread == number and start <= life.birth < end]
            died = [life for life in heap if life.freer == number and start <= life.death < end]
            equal((thread["allocations"], thread["total_bytes"], thread["frees"],
                   thread["freed_for_others"]),
                  (len(born), sum(life.size for life in born), len(died),
                   sum(life.thread != number for life in died)), options, "thread", number)

    def check_timeline(self, options, data, chosen, start, end):
        """At each point what had happened up to then, if blocks were looked at one by one. Of what
        happens at one and the same time (threads: within a tick of the clock) a point may have a part:
        the moment of the maximum."""
        heap = [life for life in chosen if life.heap]
        whole = {point["time_ns"] for point in self.all["timeline"] if start <= point["time_ns"] < end}
        points = {point["time_ns"]: point for point in data["timeline"]}
        if not whole <= set(points) or not all(start <= time < end for time in points):
            fail(options, "timeline: points", sorted(points), "of", sorted(whole))
        # The view's ends are points of their own, and the moment of its maximum, of which only the live bytes
        # are counted: what was allocated by then lies between the points around it.
        times = sorted(points)
        own = set(times[1:-1]) - {point["time_ns"] for point in self.all["timeline"]}
        if len(own) > 1:
            fail(options, "timeline: points of its own", sorted(own))
        slack = lives.TICK if len(self.all["threads"]) > 1 else 0
        born = Sums((life.birth, life.size) for life in heap if life.birth >= start)
        maybe = Held((life.birth - slack, life.death + slack + 1, life.size) for life in heap if life.death >= start)
        sure = Held((life.birth + slack + 1, life.death - slack, life.size) for life in heap if life.death >= start)
        for place, time in enumerate(times):
            point = points[time]
            first, last = (times[place - 1], times[place + 1]) if time in own else (time, time)
            least, most = sure.at(time), maybe.at(time)
            fewest, small = born.before(first - slack)
            many, large = born.before(last + slack + 1)
            if (not least <= point["live_bytes"] <= most or not fewest <= point["allocations"] <= many
                    or not small <= point["total_bytes"] <= large):
                fail(options, "timeline:", point, "live", least, most, "allocated", fewest, many, small, large)

    @staticmethod
    def check_totals(options, data):
        part_of = "pools" if {"pool", "--pool"} & set(options) else "contexts"
        for total, part in (("total_bytes", "total_bytes"), ("allocations", "allocations"),
                            ("frees", "frees"), ("live_bytes", "live_bytes"),
                            ("live_blocks", "live_blocks"), ("peak_bytes", "peak_bytes"),
                            ("temporary", "temporary")):
            equal(sum(context[part] for context in data[part_of]), data[total], options, "the sum of", part)


# ---- Filters of blocks: each gives options and what holds for a life ----

def bounds(dice, values, unit=1):
    """A random range that some of the values are in, as text without units and as numbers."""
    low, high = sorted(dice.choice(values) // unit for _ in range(2))
    form = dice.randrange(4)
    if form == 0:
        low = max(low, 1)  # from 0 on is no filter
        return "%d.." % low, low * unit, None
    if form == 1:
        return "..%d" % high, 0, high * unit
    if form == 2 and unit == 1:
        return "%d" % low, low, low
    return "%d..%d" % (low, high), low * unit, high * unit


def spelled(text, suffix):
    return re.sub(r"\d+", lambda match: match.group() + suffix, text)


def ranged(option, value, suffix="", unit=1):
    def make(dice, asker):
        values = [value(life, asker) for life in asker.story.lives]
        text, low, high = bounds(dice, values, unit)
        high = lives.NEVER if high is None else high
        return (["--" + option, spelled(text, suffix)],
                lambda life: low <= value(life, asker) <= high)
    return make


def some_time(dice, asker):
    """A time in the run, as text and as a number."""
    kind = dice.randrange(4)
    if kind == 0 and asker.story.marks:
        name = dice.choice(("early", "late"))
        number = dice.randrange(1, 1 + sum(mark == name for _, mark in asker.story.marks))
        return "mark:%s#%d" % (name, number), asker.story.mark_time(name, number)
    if kind in (1, 2):
        life = dice.choice(asker.story.lives)
        at = life.birth if kind == 1 or life.death == lives.NEVER else life.death
        return "%dns" % at, at
    at = dice.randrange(1, asker.end // 1000)
    return "%dus" % at, at * 1000


def span(option, time_of):
    def make(dice, asker):
        (first, low), (last, high) = sorted((some_time(dice, asker) for _ in range(2)),
                                            key=lambda pair: pair[1])
        return (["--" + option, "%s..%s" % (first, last)],
                lambda life: time_of(life) != lives.NEVER and low <= time_of(life) < high)
    return make


def moments(dice, asker):
    times = [some_time(dice, asker) for _ in range(dice.randrange(1, 3))]
    return (["--live-at", ",".join(text for text, _ in times)],
            lambda life: all(life.birth < at <= life.death for _, at in times))


def address(dice, asker):
    """From just before, at or behind a block's last byte to another's first one or the one before."""
    first, last = sorted((dice.choice(asker.story.lives) for _ in range(2)),
                         key=lambda life: life.address)
    at = sorted((first.address + max(first.size, 1) - dice.randrange(3), last.address - dice.randrange(2)))
    return (["--address", "0x%x..%x" % tuple(at)],
            lambda life: life.address <= at[1] and life.address + max(life.size, 1) > at[0])


def by_thread(option, thread_of):
    def make(dice, asker):
        chosen = dice.choice(asker.all["threads"])
        numbers = [thread["id"] for thread in asker.all["threads"] if thread["name"] == chosen["name"]]
        if dice.randrange(2):
            return ["--" + option, chosen["name"]], lambda life: thread_of(life) in numbers
        other = dice.choice(asker.all["threads"])
        return (["--" + option, str(chosen["id"]), "--" + option, str(other["tid"])],
                lambda life: thread_of(life) in (chosen["id"], other["id"]))
    return make


def freed_path(dice, asker):
    """The hashes of paths that free are SQL's."""
    if asker.freers is None:
        told = execute([MEMTRACE, "query", "--format", "json", asker.path, "SELECT DISTINCT freed_context,"
                        " path_hash(freed_context) AS hash FROM allocations WHERE freed_context IS NOT NULL"],
                       clean_environment(MEMTRACE_CACHE=""))
        asker.freers = {row["freed_context"]: row["hash"] for row in json.loads(told.stdout)}
        if len(asker.freers) < 2:
            fail("paths that free:", asker.freers)
    chosen = dice.choice(sorted(asker.freers.values()))
    return (["--freed-path", chosen],
            lambda life: life.death != lives.NEVER and asker.freers.get(life.freed_context) == chosen)


def arena(dice, asker):
    if dice.randrange(2):
        return ["--arena", "main"], lambda life: not life.mapped and not life.other_arena
    return ["--arena", "other"], lambda life: life.other_arena


def scope(dice, asker):
    name = dice.choice(("load", "parse", "render", "load", "nowhere"))
    return ["--scope", name], lambda life: name in life.scopes


def where(dice, asker):
    """An expression of SQL, and the same in Python. NULL is not true."""
    some = dice.choice(asker.story.lives)
    part, rest = dice.randrange(2, 9), dice.randrange(2)
    same_size = {life.context for life in asker.story.lives if life.size == some.size}
    return dice.choice((
        (["--where", "size %% %d = %d" % (part, rest)], lambda life: life.size % part == rest),
        (["--where", "size > %d OR thread = %d -- or" % (some.size, some.thread)],
         lambda life: life.size > some.size or life.thread == some.thread),
        (["--where", "freed IS NULL AND size >= 10 * length('four')"],
         lambda life: life.death == lives.NEVER and life.size >= 40),
        (["--where", "born <= %d AND lifetime %% 2 = 0" % some.birth],
         lambda life: life.birth <= some.birth and life.death != lives.NEVER and (life.death - life.birth) % 2 == 0),
        (["--where", "context IN (SELECT context FROM allocations WHERE size = %d)" % some.size],
         lambda life: life.context in same_size),
    ))


def flag(option, holds):
    return lambda dice, asker: (["--" + option], holds)


BLOCKS = {
    "size": ranged("size", lambda life, _: life.size),
    "first-size": ranged("first-size", lambda life, _: life.chain[0].size),
    "last-size": ranged("last-size", lambda life, _: life.chain[-1].size),
    "chain-length": ranged("chain-length", lambda life, _: len(life.chain)),
    "chain-lifetime": ranged("chain-lifetime", lambda life, asker: max(0, (
        asker.end if life.chain[-1].death == lives.NEVER else life.chain[-1].death)
        - life.chain[0].birth), "us", 1000),
    "lifetime": ranged("lifetime", lambda life, asker: life.lifetime(asker.end), "us", 1000),
    "allocated": span("allocated", lambda life: life.birth),
    "freed": span("freed", lambda life: life.death),
    "live-at": moments,
    "address": address,
    "thread": by_thread("thread", lambda life: life.thread),
    "freed-by": by_thread("freed-by", lambda life: life.freer),
    "scope": scope,
    "where": where,
    "freed-path": freed_path,
    "arena": arena,
    "mapped": flag("mapped", lambda life: life.mapped),
    "chain-position": ranged("chain-position", lambda life, _: life.position),
    "chain-leaked": flag("chain-leaked", lambda life: life.chain[-1].death == lives.NEVER),
    "leaked": flag("leaked", lambda life: life.death == lives.NEVER),
    "temporary": flag("temporary", lambda life: life.temporary),
    "freed-by-others": flag("freed-by-others",
                            lambda life: life.death != lives.NEVER and life.freer != life.thread),
}


# ---- Filters of contexts ----

def frames_of(asker, life):
    return asker.contexts[life.context]["frames"]


def pattern(option, part, texts):
    def make(dice, asker):
        text = dice.choice(texts)
        negative = dice.randrange(2)
        return (["--%s%s" % ("not-" if negative else "", option), text],
                lambda life: any(re.search(text, frame[part]) for frame in frames_of(asker, life))
                != bool(negative))
    return make


def group(option, name):
    def make(dice, asker):
        text, low, high = bounds(dice, [context[name] for context in asker.contexts.values()])
        high = lives.NEVER if high is None else high
        return (["--" + option, spelled(text, "")],
                lambda life: low <= asker.contexts[life.context][name] <= high)
    return make


def depth_of(asker, context):
    return sum(not frame.startswith(("pool ", "mapping", "heap"))
               for frame in asker.story.recording.path(context))


def live_share(dice, asker):
    """In percent of the blocks that the group allocated."""
    shares = {number: 100 * context["live_blocks"] / context["allocations"]
              for number, context in asker.contexts.items() if context["allocations"]}
    low, high = sorted(round(dice.choice(list(shares.values()))) for _ in range(2))
    low, high = max(low, 1), max(high, 1)
    text, high = dice.choice((("%d%%..", 100), ("%d%%..%d%%", high)))
    text = text % ((low, high) if text.count("d") == 2 else low)
    return (["--group-live-blocks", text],
            lambda life: low <= shares.get(life.context, -1) <= high)


def by_group(asker):
    groups = {}
    for life in asker.story.lives:
        groups.setdefault(life.context, []).append(life)
    return groups


def group_interval(dice, asker):
    """From a group's first allocation to its last one."""
    spans = {number: max(life.birth for life in group) - min(life.birth for life in group)
             for number, group in by_group(asker).items()}
    text, low, high = bounds(dice, list(spans.values()), 1000)
    high = lives.NEVER if high is None else high
    return (["--group-interval", spelled(text, "us")], lambda life: low <= spans[life.context] <= high)


def first_maximum(group):
    """When the blocks of one thread first held the most that they ever held."""
    steps = [(life.place, 1, life.size, life.birth) for life in group]
    steps += [(life.death_place, 0, -life.size, life.death) for life in group if life.death != lives.NEVER]
    held, most, at = 0, 0, min(steps)[3]
    for _, _, size, time in sorted(steps):
        held += size
        if held > most:
            most, at = held, time
    return at


def group_maximum(dice, asker):
    moments = {number: first_maximum(group) for number, group in by_group(asker).items()}
    if not asker.exact:  # between threads nobody knows the order: all of them (0s..end is no filter), or none
        later = asker.end + 10**9
        text, is_all = dice.choice((("0s..%dns" % later, True), ("%dns.." % later, False)))
        return ["--group-maximum-at", text], lambda life: is_all
    low, high = sorted(dice.choice(list(moments.values())) for _ in range(2))
    return (["--group-maximum-at", "%dns..%dns" % (low, high)], lambda life: low <= moments[life.context] < high)


def depth(dice, asker):
    text, low, high = bounds(dice, [depth_of(asker, number) for number in asker.contexts])
    high = lives.NEVER if high is None else high
    return (["--path-depth", spelled(text, "")],
            lambda life: low <= depth_of(asker, life.context) <= high)


def path(dice, asker):
    chosen = dice.choice(sorted(context["hash"] for context in asker.contexts.values()))
    return ["--path", chosen], lambda life: asker.contexts[life.context]["hash"] == chosen


def of_class(dice, _):
    heap = dice.randrange(2)
    return ["--class", "heap" if heap else "pool"], lambda life: life.heap == bool(heap)


CONTEXTS = {
    "function": pattern("function", "function", ("^alpha$", "^gamma_", "a$", "start|grow", "no such")),
    "file": pattern("file", "file", (r"busy\.c$", "c/busy", "nowhere")),
    "module": pattern("module", "module", ("/busy$", r"libc\.so", "^/", "nowhere")),
    "group-allocations": group("group-allocations", "allocations"),
    "group-bytes": group("group-bytes", "total_bytes"),
    "group-live-blocks": group("group-live-blocks", "live_blocks"),
    "group-live-share": live_share,
    "group-live-bytes": group("group-live-bytes", "live_bytes"),
    "group-interval": group_interval,
    "group-maximum-at": group_maximum,
    "path-depth": depth,
    "path": path,
    "class": of_class,
    "pool": lambda dice, asker: (["--pool", "arena"], lambda life: not life.heap),
}


# ---- Views ----

def view(dice, asker):
    """Options, and from when to when."""
    form = dice.randrange(5)
    (first, low), (last, high) = sorted((some_time(dice, asker) for _ in range(2)),
                                        key=lambda pair: pair[1])
    if form == 0 or low == high:
        return ["--at", last], 0, high
    if form == 1:
        return ["--from", first], low, lives.NEVER
    if form == 2:
        low = asker.story.mark_time("early")
        after = [time for time, name in sorted(asker.story.marks) if name == "late" and time > low]
        return ["--between", "early,late"], low, after[0]
    return ["--from", first, "--to", last], low, high


def all_of(parts):
    return lambda life: all(holds(life) for holds in parts)


def mappings_of(data):
    return {context["id"]: [context[name] for name in NAMES + ("peak_bytes",)]
            for context in data["mappings"]}


def each_alone(asker, dice):
    for table in (BLOCKS, CONTEXTS):
        for make in table.values():
            for _ in range(4):
                asker.check(*make(dice, asker))
    for _ in range(6):
        options, start, end = view(dice, asker)
        asker.check(options, lambda life: True, start, end)


def several(asker, dice, rounds):
    for _ in range(rounds):
        chosen = [dice.choice(list(BLOCKS.values())) for _ in range(dice.randrange(3))]
        chosen += [dice.choice(list(CONTEXTS.values())) for _ in range(dice.randrange(3))]
        made = {options[0].replace("not-", ""): (options, holds) for options, holds in
                (make(dice, asker) for make in chosen)}
        options = [word for words, _ in made.values() for word in words]
        holds = all_of([holds for _, holds in made.values()])
        more, start, end = view(dice, asker) if dice.randrange(2) else ([], 0, lives.NEVER)
        asker.check(options + more, holds, start, end)


def complements(asker):
    """Two halves are the whole, the maximum included, however many threads there are."""
    for one, other in ((["--size", "0..99"], ["--size", "100.."]),
                       (["--function", "^alpha$"], ["--not-function", "^alpha$"]),
                       (["--leaked"], ["--freed", "0s.."]),
                       (["--chain-length", "1"], ["--chain-length", "2.."]),
                       (["--lifetime", "..1ms"], ["--lifetime", "1000001ns.."])):
        halves = [asker.told(*one), asker.told(*other)]
        for name in ("peak_bytes", "live_bytes", "total_bytes", "allocations",
                     "frees", "temporary"):
            equal(sum(half[name] for half in halves), asker.all[name], one, other, name)


def trivial(asker):
    """What a filter gives that lets every block through is what no filter gives."""
    data = asker.told("--size", "0..1000G")
    names = NAMES + ("peak_bytes", "lifetimes", "hash")
    for part in ("contexts", "pools"):
        equal([[context[name] for name in names] for context in data[part]],
              [[context[name] for name in names] for context in asker.all[part]], "trivial", part)
    equal(data["threads"], asker.all["threads"], "trivial: threads")
    equal(data["mappings"], [], "mappings are no blocks")
    for options in (["--function", "", "--path-depth", "0.."], ["--group-maximum-at", "0s..end"]):
        data = asker.told(*options)
        for part in ("contexts", "pools", "mappings", "threads"):
            equal(data[part], asker.all[part], options, part)
    equal(mappings_of(asker.told("--class", "mapping")), mappings_of(asker.all), "only mappings")


def main():
    threads, clock, seed = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    folder = scratch()
    options = ["--free-stacks", *(["--precise"] if clock == "precise" else [])]
    program = build(os.path.join(HERE, "busy.c"))
    under = record([program, seed, str(threads), str(6000 // threads)], folder, *options)
    equal(under.returncode, 0, "the program", under.stderr)
    asker = Asker(only_recording(folder, "busy"), exact=threads == 1)
    dice = random.Random(int(seed))
    trivial(asker)
    complements(asker)
    each_alone(asker, dice)
    several(asker, dice, 25)


main()
finish()
