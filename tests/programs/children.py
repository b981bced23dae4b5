# SPDX-License-Identifier: MIT
"""children.py CASE: what forked children leave. A light one leaves its record and, by call path, what
it did in the profile of its nearest ancestor that has one; one that has grown leaves a profile of its
own that holds all it did since the fork. Every number is known by arithmetic."""

import os
import sys
import time

from harness import (build, consistent, equal, fail, finish,
                     report, scratch, traced)
import lightreader
from lightreader import ENDED, EXECED, GROWN, RUNNING

# What a case's first process is born with: the blocks 1000 to 1007 of have_blocks().
BLOCKS = [1000 + i for i in range(8)]
TAKE, FRESH = ("take", "known"), ("fresh_inner", "fresh")
PATHS_MOST = 16 << 20


def profile_files(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
                  if name.endswith(".mtp"))


def run(case, mode, what):
    """{pid: profile} of all that was left, and the pid of the first process."""
    program = build("children.c", "gcc", "-O1", mode, flags=["-fno-optimize-sibling-calls"])
    folder, regions = scratch(), scratch(where="/dev/shm")
    under = traced([program, case], mode, folder,
                   {"MEMTRACE_REGION_DIR": regions, "MEMTRACE_OUTPUT": os.path.join(folder, "all.mtp")})
    equal((under.returncode, under.stdout, under.stderr), (3, b"", b""), what)
    for _ in range(500):
        if not os.listdir(regions):
            break
        time.sleep(0.01)  # an orphan is not waited for
    equal(os.listdir(regions), [], what, "regions left behind")
    found = {}
    for path in profile_files(folder):
        data = report(path)
        if case != "bound":
            consistent(data, what)
        equal(data["lost"], 0, what, "lost")
        found[data["process"]["pid"]] = (lightreader.Profile(path), data)
    # What a child becomes by exec is one of the run, too.
    first = [pid for pid, (_, data) in found.items()
             if not data["process"]["forked"] and data["program"] == os.path.realpath(program)]
    equal(len(first), 1, what, "first processes")
    return found, first[0]


def light_paths(profile, child):
    """{names of the innermost functions up to main: counts} of what a light child did."""
    paths = profile.paths(child)
    found = {}
    for context, path in paths.items():
        names = profile.functions(paths, context)
        if any(path[2:]):
            names = tuple(names[:names.index("main")]) if "main" in names else ("?", *names)
            before = found.get(names, (0, 0, 0, 0))
            found[names] = tuple(map(sum, zip(before, path[2:])))
    return found


def expect_light(profile, child, paths, what, state=ENDED, maximum=None, case=None):
    """The record and the paths; paths: {path: (bytes, allocations, freed bytes, frees)}."""
    heap = [counts for path, counts in paths.items() if path[0] not in ("[mapping]", "[pool]")]
    sums = [sum(counts[i] for counts in heap) for i in range(4)]
    equal(child.state, state, what, "state")
    equal([child.alloc_bytes, child.alloc_count, child.free_bytes, child.free_count], sums, what,
          "totals")
    equal(child.lost, 0, what, "lost")
    if maximum is not None:
        equal(child.maximum_bytes, maximum, what, "maximum")
    if state != RUNNING:
        equal(light_paths(profile, child), paths, what, "paths")
        if not 0 < child.start_ns < child.end_ns:
            fail(what, "times", child)


def expect_grown(found, child, inherited, live, peak, allocations, frees, what):
    """The profile of a child that has grown. allocations, frees: without those of `inherited`."""
    equal(child.state, GROWN, what, "state")
    if child.pid not in found:
        fail(what, "no profile of", child.pid)
        return
    profile, data = found[child.pid]
    process = data["process"]
    equal((profile.live_bytes, profile.maximum_bytes), (live, peak), what, "the header's live and maximum")
    equal((process["inherited_blocks"], process["inherited_bytes"]),
          (len(inherited), sum(inherited)), what, "inherited")
    equal((data["allocations"], data["frees"]), (allocations + len(inherited), frees),
          what, "allocations and frees")
    equal((data["live_bytes"], data["peak_bytes"]), (live, peak), what, "live and maximum")


class Heap:
    """The oracle: sizes by name, and how high it got."""

    def __init__(self, *sizes):
        self.live = self.peak = sum(sizes)
        self.allocations = self.frees = 0

    def add(self, size):
        self.allocations += 1
        self.live += size
        self.peak = max(self.peak, self.live)

    def drop(self, size):
        self.frees += 1
        self.live -= size

    def both(self, size):
        self.add(size)
        self.drop(size)


def few(count, *callers):
    """What do_few() does."""
    paths = {FRESH + ("do_few",) + callers: (602, 1, 0, 0)}
    if count:
        paths[TAKE + ("do_few",) + callers] = (601 * count, count, 601 * count, count)
    return paths


def check_paths(found, first, what):
    profile, _ = found[first]
    child, = profile.children()
    callers = ("do_paths", "in_child", "case_paths")
    # Two allocations of 502 and 501 are two paths: two calls of one function, of one name.
    expect_light(profile, child, {
        TAKE + callers: (501 + 502, 2, 502, 1),
        FRESH + callers: (503 + 504, 2, 503, 1),
        callers: (505, 1, 505, 1),
        ("[mapping]",) + callers: (3 * 4096, 1, 4096, 0)}, what, maximum=501 + 504 + 505)


def check_pools(found, first, what):
    profile, _ = found[first]
    light, grown = profile.children()
    expect_light(profile, light, {("[pool]", "case_pools"): (12, 1, 0, 0)}, what)
    expect_grown(found, grown, [], 0, 506, 1, 1, what)
    if grown.pid in found:
        pools = {pool["pool"]: (pool["total_bytes"], pool["allocations"], pool["frees"])
                 for pool in found[grown.pid][1]["pools"]}
        equal(pools, {"known": (11, 1, 1), "new": (13, 1, 0)}, what, "pools")


def check_heap(found, first, what):
    child, = found[first][0].children()
    born = [2002, 2003, 2004]
    expect_grown(found, child, born, 2004 + 507, sum(born) + 507, 1, 2, what)


def check_many(found, first, what):
    equal(len(found), 1, what, "profiles of 1,000 light children and their parent")
    profile, _ = found[first]
    children = profile.children()
    equal(len(children), 1000, what, "records")
    equal(len({child.pid for child in children}), 1000, what, "pids")
    size = sum(segment.size for segment in profile.segments if segment.kind == lightreader.PATHS)
    if size > 1000 * 1024:
        fail(what, size, "bytes of paths: children share pages")
    if any(segment.kind == lightreader.POOLS for segment in profile.segments):
        fail(what, "a table of pools that nobody named")
    for i, child in enumerate(sorted(children, key=lambda child: child.start_ns)):
        expect_light(profile, child, few(i % 3, "in_child", "case_many"), what, maximum=602)


def check_killed(found, first, what):
    profile, _ = found[first]
    child, = profile.children()
    expect_light(profile, child, {TAKE: (603 + 604, 2, 603, 1)}, what, RUNNING, 604)


def check_grandchild(found, first, what):
    equal(len(found), 1, what, "profiles")
    profile, _ = found[first]
    child, grandchild = profile.children()
    callers = ("do_grandchild", "in_child", "case_grandchild")
    expect_light(profile, child, {FRESH + callers: (605, 1, 0, 0), TAKE + callers: (606, 1, 0, 0)},
                 what, maximum=605 + 606)
    expect_light(profile, grandchild, few(2, "in_child", *callers), what, maximum=602)
    equal((child.parent_pid, grandchild.parent_pid), (first, child.pid), what, "parents")


def check_leaving(found, first, what):
    profile, _ = found[first]
    child, *grandchild = profile.children()
    callers = ("do_leaving", "in_child", "case_leaving")
    expect_light(profile, child, {FRESH + callers: (605, 1, 0, 0), TAKE + callers: (606, 1, 0, 0)},
                 what, maximum=605 + 606)
    equal([one.alloc_count for one in grandchild], [], what, "what a grandchild did that did nothing")


def check_exec(found, first, what):
    profile, _ = found[first]
    child, = profile.children()
    callers = ("do_exec", "in_child", "case_exec")
    expect_light(profile, child, {FRESH + callers: (607, 1, 0, 0), TAKE + callers: (3 * 608, 3, 0, 0)},
                 what, EXECED, 607 + 3 * 608)


def check_exec_many(found, first, what):
    profile, _ = found[first]
    for child, state in zip(profile.children(), (ENDED, EXECED), strict=True):
        callers = ("do_exec_many", "in_child", "case_exec_many")
        expect_light(profile, child, {
            ("fresh_inner",) + 11 * ("branch",) + callers: (1024 * 609, 1024, 1024 * 609, 1024),
            TAKE + callers: (3 * 608, 3, 0, 0)}, what, state, 3 * 608)


def check_closed(found, first, what):
    profile, _ = found[first]
    child, = profile.children()
    expect_light(profile, child, few(1, "do_closed", "in_child", "case_closed"), what)


def check_no_files(found, first, what):
    profile, _ = found[first]
    whole, limited, large = profile.children()
    expect_light(profile, whole, few(1, "in_child", "case_no_files"), what)
    expect_light(profile, limited, few(1, "do_no_files", "in_child", "case_no_files"), what)
    equal((large.alloc_count, large.alloc_bytes, large.free_count, large.path_count, large.lost),
          (512, 512 * 609, 512, 0, 1), what, "a child that may write no file")


def check_bound(found, first, what):
    profile, _ = found[first]
    size = sum(segment.size for segment in profile.segments if segment.kind == lightreader.PATHS)
    if not PATHS_MOST * 9 // 10 < size <= PATHS_MOST:
        fail(what, size, "bytes of paths")
    children = profile.children()
    equal({(child.alloc_count, child.free_count, child.maximum_bytes) for child in children},
          {(4096, 4096, 609)}, what, "totals")
    equal({(bool(child.path_count), child.lost) for child in children}, {(True, 0), (False, 1)}, what,
          "children with and without paths")


def check_events(found, first, what):
    profile, _ = found[first]
    heap = Heap(*BLOCKS)
    heap.drop(1003)
    for i in range(80000):
        heap.add(701)
        if i % 2 == 0:
            heap.drop(701)
        if i == 100:
            heap.drop(1004)
    heap.drop(1005)
    child, = profile.children()
    expect_grown(found, child, BLOCKS, heap.live, heap.peak, heap.allocations, heap.frees, what)
    equal(child.alloc_count < 80000, True, what, "it grew before its end")


def hills(found, first, steps, what):
    blocks = BLOCKS[:7] + [200000]
    heap = Heap(*blocks)
    for size in steps:
        if size > 0:
            heap.add(size)
        else:
            heap.drop(-size)
    child, = found[first][0].children()
    expect_grown(found, child, blocks, heap.live, heap.peak, heap.allocations, heap.frees, what)


def check_hill(found, first, what):
    hills(found, first, [100000] * 9 + [-100000] * 9 + [-1006, -200000, 16777216, -1000], what)


def check_valley(found, first, what):
    hills(found, first, [5000, -200000, -5000, 150000, -150000, 205000, -1006] + [16, -16] * 60000 +
          [-205000], what)


def check_thread(found, first, what):
    child, = found[first][0].children()
    equal(child.state, GROWN, what, "state")
    data = found[child.pid][1]
    sizes = {context["total_bytes"]: (context["allocations"], context["frees"])
             for context in data["contexts"]}
    equal({size: sizes.get(size) for size in (sum(BLOCKS), 702, 703, 704)},
          {sum(BLOCKS): (8, 1), 702: (1, 0), 703: (1, 0), 704: (1, 0)}, what, "contexts")


def check_report(found, first, what):
    child, = found[first][0].children()
    total = sum(BLOCKS) + 705 + 706
    expect_grown(found, child, BLOCKS, total, total, 2, 0, what)


def check_asked(found, first, what):
    """However a report interrupted it, nothing that the child counted is lost, nor counted twice."""
    children = found[first][0].children()
    equal(len(children), 25, what, "children")
    grown = 0
    for child in children:
        if child.state == GROWN:
            grown += 1
            expect_grown(found, child, [], 16, 32, 20001, 20000, what)
        else:
            equal((child.alloc_count, child.free_count, child.maximum_bytes), (20001, 20000, 32), what, "still light")
    if grown < 5:
        fail(what, "only", grown, "children have grown")


def check_grown_parent(found, first, what):
    child, = found[first][0].children()
    total = sum(BLOCKS) + 16800000
    expect_grown(found, child, BLOCKS, total, total, 1, 0, what)
    grandchild, = found[child.pid][0].children()
    expect_light(found[child.pid][0], grandchild,
                 few(2, "in_child", "do_grown_parent", "in_child", "case_grown_parent"), what)


def check_orphan(found, first, what):
    """Its parent's profile was written before: what it did stands in its own."""
    child, = found[first][0].children()
    equal((child.state, child.alloc_bytes, child.free_count), (RUNNING, 801, 0), what, "so far")
    expect_grown(found, child._replace(state=GROWN), BLOCKS, sum(BLOCKS) + 801 - 1000,
                 sum(BLOCKS) + 801, 1, 1, what)


def main():
    case = sys.argv[1]
    modes = ("preload",) if case in ("bound", "many", "pools", "heap", "report") else ("preload", "hooks")
    for mode in modes:
        what = "%s %s:" % (case, mode)
        found, first = run(case, mode, what)
        globals()["check_" + case](found, first, what)
    finish()


main()
