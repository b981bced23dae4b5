# SPDX-License-Identifier: MIT
"""merging.py: a recording or profile of several processes adds up to them: totals, each call path, each
thread, in whatever order the files are named; parts of one process become one file, wherever they
lie."""

import collections
import os
import shutil

from recorded import HERE, is_closed, record, recordings, wait_until
from harness import MEMTRACE, build, equal, execute, fail, finish, profiles, report, scratch

import reader

SUMS = ("live_bytes", "live_blocks", "total_bytes", "allocations", "frees",
        "temporary", "lost")
COSTS = ("total_bytes", "allocations", "frees", "live_bytes", "live_blocks", "temporary")


def merge(paths, output, *more):
    done = execute([MEMTRACE, "merge", *paths, "--output", output, *more])
    if done.returncode != 0:
        fail("memtrace merge", *paths, done.stderr)
    return report(output)


def by_path(*reports):
    """What each call path cost, by the names of its frames."""
    found = collections.defaultdict(collections.Counter)
    for data in reports:
        for context in data["contexts"]:
            path = tuple((frame["module"], frame["offset"]) for frame in context["frames"])
            found[path].update({name: context[name] for name in COSTS})
            found[path]["lifetimes"] += sum(context["lifetimes"])
    return {path: +costs for path, costs in found.items()}


def threads_of(*reports, born_with=False):
    """born_with: what a forked child was born with counts as its first thread's, too."""
    found = []
    for data in reports:
        born = [data["process"]["inherited_" + what] if born_with else 0
                for what in ("blocks", "bytes")]
        for thread in data["threads"]:
            found.append((thread["name"], thread["allocations"] + born[0],
                          thread["total_bytes"] + born[1], thread["frees"],
                          thread["freed_bytes"], thread["freed_for_others"]))
            born = [0, 0]
    return sorted(found)


def marks(path):
    return sorted(event.text for event in reader.Recording(path).events()
                  if isinstance(event, reader.Mark))


def held_most(paths):
    """Live heap bytes of all processes together at their maximum, times since the first start."""
    steps = []
    starts = [report(path)["process"]["start_realtime_ns"] for path in paths]
    for path, start in zip(paths, starts):
        recording = reader.Recording(path)
        sizes = {}
        for event in recording.events():
            ended = event.old if isinstance(event, reader.Alloc) else \
                event.block if isinstance(event, reader.Free) else None
            time = getattr(event, "time", 0) + start - min(starts)
            if ended in sizes:
                steps.append((time, -sizes.pop(ended)))
            if isinstance(event, reader.Alloc) and recording.is_heap(event.context):
                sizes[event.block] = event.size
                steps.append((time, event.size))
    return steps


def adds_up(paths, merged, what, born_with=True):
    one = [report(path) for path in paths]
    for name in SUMS:
        equal(merged[name], sum(data[name] for data in one), what, name)
    ours, theirs = by_path(merged), by_path(*one)
    for path in sorted(set(ours) | set(theirs)):
        equal(ours.get(path), theirs.get(path), what, "call path", path)
    equal(threads_of(merged), threads_of(*one, born_with=born_with), what, "threads")
    equal(len({thread["id"] for thread in merged["threads"]}),
          sum(len(data["threads"]) for data in one), what, "thread ids")
    equal(merged["warnings"], [], what, "warnings")
    # Times are known to 4 ms: what happened in one moment may be added up in another order.
    least = max(data["peak_bytes"] for data in one)
    most = sum(data["peak_bytes"] for data in one)
    equal(least <= merged["peak_bytes"] <= most, True, what, "maximum",
          merged["peak_bytes"], least, most)


def processes(folder):
    """A program and its child, each with its own pools, marks and libraries."""
    program = build(os.path.join(HERE, "children.c"), "gcc", "-O2")
    record([program, "fork"], folder, settings={"MEMTRACE_FOLLOW": "1"})
    wait_until(lambda: len(recordings(folder)) == 2 and all(map(is_closed, recordings(folder))), "two recordings")
    secrets = build(os.path.join(HERE, "secrets.c"), "gcc", "-O1", "preload")
    for argument in ("one", "two"):
        record([secrets, argument], folder)
    return recordings(folder)


def one_after_the_other(paths, new):
    """Runs that did not overlap: the maximum of all is what the first ones left and the largest of
    the last one, or an earlier one's own; computed here event by event."""
    live = most = 0
    for _, change in sorted(held_most(paths), key=lambda step: step[0]):
        live += change
        most = max(most, live)
    equal(report(new)["peak_bytes"], most, "maximum of runs one after the other")


def several(folder):
    paths = processes(folder)
    new = os.path.join(folder, "all.merged")
    merged = merge(paths, new)
    adds_up(paths, merged, "four processes")
    equal(marks(new), sorted(mark for path in paths for mark in marks(path)), "marks")
    equal(sorted(filter(None, reader.Recording(new).pools.values())), ["secret-pool"], "pools")
    again = merge([new], os.path.join(folder, "again.merged"))
    equal(by_path(again), by_path(merged), "merged again")
    with open(new, "rb") as first:
        merge(paths[::-1], os.path.join(folder, "turned.merged"))
        with open(os.path.join(folder, "turned.merged"), "rb") as second:
            equal(first.read() == second.read(), True, "in reverse: the same bytes")
    twin = [path for path in paths if "secrets" in os.path.basename(path)]
    both = os.path.join(folder, "both.merged")
    adds_up(twin, merge(twin, both), "two runs")
    one_after_the_other(twin, both)
    return paths


def told_of_damage(path, other, folder):
    """A block of a file that its writer did not finish is hit: what it held is left out, and told."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = 64
    for block, payload in reader.Recording(path).blocks:
        if block.kind == reader.INDEX:
            break
        if block.kind == reader.EVENTS:
            data[at + 80 + len(payload) // 2] ^= 0xff
        at += 80 + (len(payload) + 7) // 8 * 8
    hit = os.path.join(folder, "hit.unfinished")
    with open(hit, "wb") as file:
        file.write(data[:at])
    count = sum(block.kind == reader.EVENTS for block, _ in reader.Recording(path).blocks)
    done = execute([MEMTRACE, "merge", hit, other, "--output", os.path.join(folder, "rest.merged")])
    equal(done.returncode, 0, "merging what is damaged", done.stderr)
    equal(b"damaged blocks are left out: %d\n" % count in done.stderr, True, "damage is told", done.stderr)


def freed_for_others(*reports):
    return sorted((thread["name"], sorted((freed["blocks"], freed["bytes"])
                                          for freed in thread["freed_of"]))
                  for data in reports for thread in data["threads"])


def summed(folder):
    """Profiles: also their maxima are sums; the last point of the timeline is what is left."""
    exchange = build(os.path.join(HERE, "exchange.c"), "gcc", "-O2", libraries=("-lpthread",))
    record([exchange, "50"], folder)
    paths = sorted(profiles(folder))
    if len(paths) < 5:
        fail("too few profiles:", paths)
    new = os.path.join(folder, "all.sums")
    one = [report(path) for path in paths]
    merged = merge(paths, new)
    adds_up(paths, merged, "profiles", born_with=False)
    equal(merged["peak_bytes"], sum(data["peak_bytes"] for data in one), "profiles: maximum")
    equal(merged["peak_error_bytes"], sum(data["peak_error_bytes"] for data in one),
          "profiles: bound of the maximum's error")
    peaks = collections.Counter()
    for data in one:
        for context in data["contexts"]:
            peaks[tuple((frame["module"], frame["offset"]) for frame in context["frames"])] += \
                context["peak_bytes"]
    equal({tuple((frame["module"], frame["offset"]) for frame in context["frames"]):
           context["peak_bytes"] for context in merged["contexts"]}, dict(peaks),
          "profiles: each path's share of the maximum")
    equal(freed_for_others(merged), freed_for_others(*one), "profiles: freed for others")
    if not any(blocks for _, blocks in freed_for_others(merged)):
        fail("nobody freed another's blocks")
    with open(new, "rb") as first:
        merge(paths[::-1], os.path.join(folder, "turned.sums"))
        with open(os.path.join(folder, "turned.sums"), "rb") as second:
            equal(first.read() == second.read(), True, "profiles in reverse: the same bytes")
    again = merge([new, paths[0]], os.path.join(folder, "again.sums"))
    equal(by_path(again), by_path(merged, one[0]), "profiles: merged again with one")
    cut = os.path.join(folder, "cut.mtp.part")
    done = execute([MEMTRACE, "repack", "--raw", "-o", cut, paths[0]])
    equal(done.returncode, 0, "repack --raw", done.stderr)
    os.truncate(cut, os.path.getsize(cut) // 2)
    half = merge([cut, paths[1]], os.path.join(folder, "half.sums"))
    equal(half["total_bytes"], report(cut)["total_bytes"] + one[1]["total_bytes"],
          "a profile that is cut off")
    equal(any("not all could be read" in line for line in half["warnings"]), True, "and it is told of the sum", half["warnings"])
    once_more = merge([os.path.join(folder, "half.sums"), paths[2]], os.path.join(folder, "more.sums"))
    equal(once_more["warnings"][:1], half["warnings"][:1], "and of the sum's sum")
    packed = os.path.join(folder, "packed.sums")
    done = execute([MEMTRACE, "repack", "-o", packed, os.path.join(folder, "half.sums")])
    equal((done.returncode, report(packed)["warnings"][:1]), (0, half["warnings"][:1]), "and of it packed anew", done.stderr)
    equal(merged["warnings"], [], "nothing is missing in the others")


def rotated(folder):
    """Parts under other names in other folders, the last one named first, and one of them twice."""
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    record([program, os.path.join(folder, "counts"), "2", "600000"], folder, "--rotate", "8K")
    parts = sorted(recordings(folder), key=lambda path: (len(path), path))
    if len(parts) < 2:
        fail("too few parts:", parts)
    before = report(parts[0])
    moved = []
    for number, path in enumerate(parts):
        inside = os.path.join(folder, "part%d" % number)
        os.mkdir(inside)
        moved.append(shutil.move(path, os.path.join(inside, "x%d.mtr" % (len(parts) - number))))
    after = merge(moved[::-1] + moved[:1], os.path.join(folder, "whole.merged"))
    equal(by_path(after), by_path(before), "parts: call paths")
    for name in SUMS + ("peak_bytes",):
        equal(after[name], before[name], "parts:", name)
    equal(after["recording"]["events"], before["recording"]["events"], "parts: events")
    equal(after["warnings"], [], "parts: warnings")


def refused(paths, folder):
    sampled = os.path.join(folder, "sampled")
    os.mkdir(sampled)
    record(["true"], sampled, "--sample", "64K")
    new = os.path.join(folder, "never.mtr")
    for arguments in (("--output", new), (paths[0],), (paths[0], "/etc/passwd", "--output", new),
                      (paths[0], *recordings(sampled), "--output", new),
                      (paths[0], profiles(folder)[0], "--output", new),
                      (*paths, "--output", os.path.join(folder, "no", "folder.mtr"))):
        done = execute([MEMTRACE, "merge", *arguments])
        if done.returncode == 0 or done.stderr.count(b"\n") != 1 or os.path.exists(new):
            fail("memtrace merge", *arguments, "status", done.returncode, done.stderr)


def main():
    folder = scratch()
    paths = several(folder)
    told_of_damage(paths[0], paths[1], folder)
    refused(paths, folder)
    summed(folder)
    rotated(scratch())
    finish()


if __name__ == "__main__":
    main()
