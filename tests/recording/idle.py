# SPDX-License-Identifier: MIT
"""idle.py CASE: a program that rests now and then says itself when each of its blocks was made and
freed (idle.c). Recordings and profiles must say the same, whatever the program did before: with a
collector, without one, with a clock of the program's own, and under valgrind."""

import collections
import json
import os
import struct
import sys

from recorded import HERE, only_recording, record
from harness import (MEMTRACE, SKIP, build, equal, execute, fail, finish, have,
                     profiles, report, scratch, skip, traced)
from reader import PROGRAM, Recording

EARLY_NS = 600 * 1000  # a thread that looked at the clock so lately does not note the time anew
TICK_NS = 1 << 22
START_MONOTONIC, CHURN_BYTES = 104, 232  # offsets in the program's header

Span = collections.namedtuple("Span", "start end")
Life = collections.namedtuple("Life", "function born freed")


def lives_in(output):
    """{size: what the program says of its block}."""
    found = {}
    for line in output.decode().splitlines():
        function, size, *times = line.split()
        times = list(map(int, times))
        found[int(size)] = Life(function, Span(*times[:2]), Span(*times[2:]))
    return found


def within(time_ns, span):
    return span.start - EARLY_NS <= time_ns <= span.end


def start_of(path):
    """When the program began, on the clock that it tells times by."""
    _, header = next(iter(Recording(path).of_kind(PROGRAM)))
    return struct.unpack_from("<Q", header, START_MONOTONIC)[0]


def rows(path, sql):
    return json.loads(execute([MEMTRACE, "query", "--format", "json", path, sql]).stdout)


def check_recording(path, lives, what):
    start = start_of(path)
    found = {}
    for table in ("allocations", "mappings"):
        found.update({row["size"]: row for row in rows(path, "SELECT * FROM %s ORDER BY born" % table)
                      if row["size"] in lives})
    equal(sorted(found), sorted(lives), what, "blocks")
    for size, life in lives.items():
        born, freed = found[size]["born"], found[size]["freed"]
        if not within(born + start, life.born):
            fail(what, size, "born at", born + start, "but it was", life.born)
        if freed is None or life.freed.end < 0:
            equal((freed, life.freed.end), (None, -1), what, size, "freed")
        elif not within(freed + start, life.freed):
            fail(what, size, "freed at", freed + start, "but it was", life.freed)
        elif freed < born:
            fail(what, size, "freed before it was born")
    return start


def live_at(path, time_ns, size):
    data = report(path, None, "--at", "%dns" % time_ns, "--size", str(size))
    return data["live_blocks"]


def check_moments(path, lives, start, size, what):
    """A block is held in its time, not before and not after."""
    life = lives[size]
    middle = (life.born.end + life.freed.start) // 2
    for time_ns, held in ((life.born.start - 50000000, 0), (middle, 1), (life.freed.end + 50000000, 0)):
        equal(live_at(path, time_ns - start, size), held, what, size, "at", time_ns - start)


def ticks(span_ns):
    return max(0, span_ns) // TICK_NS


def bucket(count):
    """By docs/format.md: under one tick, then at least 4^(b-1) and under 4^b."""
    number = 0
    while number < 15 and count >= 4 ** number:
        number += 1
    return number


def taken_by(function, data):
    """Its call paths, by way of take() or without."""
    return [context for context in data["contexts"] if next(
        frame["function"] for frame in context["frames"] if frame["function"] != "take") == function]


def check_profile(data, lives, what):
    """Lifetimes of each function's blocks lie between the shortest and the longest that the clock allows."""
    own_lives = collections.defaultdict(list)
    for life in lives.values():
        if life.freed.end >= 0 and life.function != "mapped":
            own_lives[life.function].append(life)
    for function, own in own_lives.items():
        counts = [sum(bucket) for bucket in zip(*(context["lifetimes"] for context in taken_by(
            function, data) if context["frees"]))]
        equal(sum(counts), len(own), what, function, "lifetimes")
        shortest = min(ticks(life.freed.start - life.born.end - EARLY_NS - TICK_NS) for life in own)
        longest = max(ticks(life.freed.end - life.born.start + EARLY_NS) + 1 for life in own)
        for number, count in enumerate(counts):
            if count and not bucket(shortest) <= number <= bucket(longest):
                fail(what, function, count, "lifetimes in bucket", number, "of", bucket(shortest), "to",
                     bucket(longest))


# --- the cases -------------------------------------------------------------------------------------

def program(*flags):
    return build(os.path.join(HERE, "idle.c"), "gcc", "-O1", flags=["-rdynamic", *flags])


def with_collector(case, *flags, **settings):
    """The lives, the recording, the profile of the same run."""
    folder = scratch()
    under = record([program(*flags), case], folder, settings=settings)
    equal((under.returncode, under.stderr), (0, b""), case, "exit status and stderr")
    lives = lives_in(under.stdout)
    return lives, only_recording(folder, case), report(profiles(folder)[0])


def check_alone(what, *flags):
    lives, path, data = with_collector("alone", *flags)
    start = check_recording(path, lives, what)
    check_moments(path, lives, start, 50001, what)
    check_profile(data, lives, what)
    check_profile(report(path), lives, what + " recording:")


def check_together(what, *flags):
    lives, path, data = with_collector("together", *flags)
    check_recording(path, lives, what)
    order = [row["size"] for row in rows(path, "SELECT size FROM allocations WHERE size >= 52000 AND "
                                               "size < 52010 ORDER BY born")]
    equal(order, list(range(52000, 52010)), what, "order of two threads")
    check_profile(data, lives, what)
    check_profile(report(path), lives, what + " recording:")


def alone():
    check_alone("alone:")


def together():
    check_together("together:")


def own_clock():
    """Whatever the program has for clock_gettime, times are the kernel's."""
    check_alone("alone, own clock:", "-DOWN_CLOCK")
    check_together("together, own clock:", "-DOWN_CLOCK")


def no_collector():
    for case in ("alone", "together"):
        folder = scratch()
        under = traced([program(), case], "preload", folder)
        equal((under.returncode, under.stderr), (0, b""), case, "exit status and stderr")
        check_profile(report(profiles(folder)[0]), lives_in(under.stdout), case + ", no collector:")


def profile_of(function, folder):
    """The only one with frees of this function's blocks."""
    found = [data for data in map(report, profiles(folder))
             if any(context["frees"] for context in taken_by(function, data))]
    if not equal(len(found), 1, "profiles in which", function, "has frees"):
        finish()
    return found[0]


# libunwind 1.8 asks whether a page of the stack is there by giving it to write(); memcheck takes that for an error, as it
# does in any program that calls libunwind.
ASKS_BY_WRITE = """{
   libunwind
   Memcheck:Param
   write(buf)
   fun:syscall
   obj:*/libunwind.so.8*
}
"""


def under_valgrind():
    have("valgrind")
    folder = scratch()
    under = traced(["valgrind", "-q", "--tool=none", program(), "alone"], "preload", folder)
    equal((under.returncode, under.stderr), (0, b""), "valgrind: exit status and stderr")
    check_profile(profile_of("rested", folder), lives_in(under.stdout), "valgrind:")
    suppressed = os.path.join(folder, "suppressed")
    with open(suppressed, "w", encoding="utf-8") as file:
        file.write(ASKS_BY_WRITE)
    under = traced(["valgrind", "-q", "--tool=memcheck", "--undef-value-errors=no", "--suppressions=" + suppressed,
                    program(), "alone"], "preload", scratch(), {"MEMTRACE_UNWIND": "libunwind"})
    equal((under.returncode, under.stderr), (0, b""), "memcheck: exit status and stderr")


def forked():
    """A block that the parent made is as old as it is when the child frees it."""
    folder = scratch()
    under = traced([program(), "forked"], "preload", folder)
    equal((under.returncode, under.stderr), (0, b""), "forked: exit status and stderr")
    check_profile(profile_of("forked", folder), lives_in(under.stdout), "forked:")


def in_namespace():
    """The child is in a time namespace of its own, where its parent's word stands still."""
    folder = scratch()
    under = traced([program(), "in_namespace"], "preload", folder)
    if under.returncode == SKIP:
        skip("no time namespaces here")
    equal((under.returncode, under.stderr), (0, b""), "time namespace: exit status and stderr")
    check_profile(profile_of("rested", folder), lives_in(under.stdout), "time namespace:")


def short_threads():
    """What threads churned that looked at the clock once is in the sum."""
    folder = scratch()
    under = traced([program(), "short_threads"], "preload", folder)
    equal((under.returncode, under.stderr), (0, b""), "short threads: exit status and stderr")
    data = report(profiles(folder)[0])
    churned = 2 * data["total_bytes"] - data["live_bytes"]
    with open(profiles(folder)[0], "rb") as file:
        told = struct.unpack_from("<Q", file.read(), CHURN_BYTES)[0]
    if not churned - 101 * 4096 <= told <= churned:
        fail("churn", told, "expected", churned)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    finish()
