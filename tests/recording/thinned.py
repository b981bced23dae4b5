#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""thinned.py [--runs N]: recordings whose distance changes all the time while they are made, as --on-lag thin does: what
they estimate is as near to what arithmetic says as their error bars tell, over runs and call paths; and weights of a wrong
distance would be noticed."""

import argparse
import collections
import math
import mmap
import os
import random
import struct
import subprocess
import sys

from recorded import HERE, events, only_recording, settings_for
from harness import MEMTRACE, build, clean_environment, equal, fail, finish, report, scratch, wait_until

FLAGS = 320 + 8  # in the header: recording.flags
THIN_SHIFT = 24
SHIFTS = (0, 11, 12, 13, 14, 15)  # log2 of distances; 0: each allocation
STEPS, ROUNDS = 25, 6
SIGMAS = 5  # one of a million is further off


class Region:
    """The header of the program's region, where the distance stands."""

    def __init__(self, folder):
        wait_until(lambda: [name for name in os.listdir(folder) if name.endswith(".mtp")], "a region")
        path = os.path.join(folder, [name for name in os.listdir(folder) if name.endswith(".mtp")][0])
        wait_until(lambda: os.path.getsize(path) >= 16384, "its header")
        with open(path, "r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), 16384)

    def thin(self, shift):
        flags, = struct.unpack_from("<I", self.bytes, FLAGS)
        struct.pack_into("<I", self.bytes, FLAGS, flags & (1 << THIN_SHIFT) - 1 | shift << THIN_SHIFT)


def run(program, seed):
    """The recording, and what arithmetic says: {depth: (allocations, bytes, live bytes)}."""
    folder, regions, chance = scratch(), scratch(where="/dev/shm"), random.Random(seed)
    process = subprocess.Popen([MEMTRACE, "record", "--", program, str(ROUNDS)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=clean_environment(**settings_for(folder, regions=regions)))
    region = Region(regions)
    for _ in range(STEPS):
        region.thin(chance.choice(SHIFTS))
        process.stdin.write(b"\n")
        process.stdin.flush()
        region.thin(chance.choice(SHIFTS))  # somewhere in the middle, or before it
        equal(process.stdout.readline(), b".\n", "a step is done")
    region.thin(0)
    told = process.communicate()[0].decode()
    equal(process.returncode, 0, "the recorder")
    rows = [list(map(int, line.split())) for line in told.splitlines()]
    return only_recording(folder, "thinned"), {depth: tuple(rest) for depth, *rest in rows}


# ---- Weights ----

def distance_of(size, weight):
    """It was taken with the probability 1 - exp(-size / distance) = size / weight."""
    return -size / math.log(1 - size / weight) if weight > size else 0


def weight_of(size, distance):
    return size / -math.expm1(-size / distance) if distance > 0 else size


WEIGHTS = {
    "as recorded": lambda size, weight: weight,
    # What somebody might do instead, each of which is to be noticed:
    "none": lambda size, weight: size,
    "of half the distance": lambda size, weight: weight_of(size, distance_of(size, weight) / 2),
    "of the largest distance": lambda size, weight: weight_of(size, 1 << max(SHIFTS)),
    "the distance itself": lambda size, weight: max(size, distance_of(size, weight)),
}
NAMES = ("allocations", "bytes", "live")


class Sums:
    """Of single events: estimates and their variances, as in NAMES, by context."""

    def __init__(self, weigh):
        self.weigh, self.blocks = weigh, {}
        self.estimates = collections.defaultdict(lambda: [0.0] * 3)
        self.variances = collections.defaultdict(lambda: [0.0] * 3)

    def add(self, context, amounts, variances):
        for place in range(3):
            self.estimates[context][place] += amounts[place]
            self.variances[context][place] += variances[place]

    def alloc(self, name, size, context, weight):
        weight = self.weigh(size, weight) if weight else size
        variance = weight * (weight - size)
        self.blocks[name] = context, weight, variance
        self.add(context, (weight / size, weight, weight), (variance / size ** 2, variance, variance))

    def free(self, name):
        context, weight, variance = self.blocks.pop(name)
        self.add(context, (0, 0, -weight), (0, 0, -variance))


def read(path):
    """The Sums of each kind of weights, and which distances there are."""
    sums, distances = {name: Sums(weigh) for name, weigh in WEIGHTS.items()}, collections.Counter()
    for kind, *rest in events(path):
        if kind == "alloc":
            name, size, context, weight = tuple(rest[:2]), int(rest[2]), int(rest[4]), int(rest[5]) if len(rest) > 5 else 0
            if size < 100:  # of which weights tell the distance well
                distances[round(math.log2(distance_of(size, weight))) if weight else 0] += 1
            for of in sums.values():
                of.alloc(name, size, context, weight)
        elif kind == "free":
            for of in sums.values():
                of.free(tuple(rest[1:]))
    return sums, distances


# ---- The check ----

class Check:
    """Collects by how many errors sums are off, over all runs."""

    def __init__(self):
        self.totals, self.squares = collections.defaultdict(list), []

    def add(self, sums, depths, truth):
        """depths: of contexts"""
        for place, name in enumerate(NAMES):
            off, spread = dict.fromkeys(truth, 0.0), dict.fromkeys(truth, 0.0)
            for context, depth in depths.items():
                off[depth] += sums.estimates[context][place]
                spread[depth] += sums.variances[context][place]
            off = [off[depth] - truth[depth][place] for depth in truth]
            self.totals[name].append(sum(off) / math.sqrt(sum(spread.values()) or 1))
            if name == "bytes":  # of single paths: the others' errors are not known as well
                self.squares += [error ** 2 / (variance or 1) for error, variance in zip(off, spread.values())]

    def faults(self):
        found = []
        for name, of in self.totals.items():
            score = sum(of) / math.sqrt(len(of))  # a standard normal number
            if abs(score) > SIGMAS:
                found.append("%s: %.1f standard errors off in %d runs" % (name, score, len(of)))
        mean = sum(self.squares) / len(self.squares)
        if not 0.5 < mean < 1.6:
            found.append("paths are off by %.2f times their error bars, squared" % mean)
        return found


def depths_of(data):
    found = {}
    for context in data["contexts"]:
        frames = [frame["function"] for frame in context["frames"]]
        if "descend" in frames:
            found[context["id"]] = frames.count("descend") - 1
    return found


def same_as_report(data, sums, depths):
    """The report adds up the same events by itself."""
    for context in data["contexts"]:
        if context["id"] in depths:
            got = (context["allocations"], context["total_bytes"], context["live_bytes"], context["total_bytes_error"] ** 2,
                   context["live_bytes_error"] ** 2)
            own = (*sums.estimates[context["id"]], *sums.variances[context["id"]][1:])
            for a, b in zip(got, own):
                if abs(a - b) > 2 + 0.001 * abs(b):
                    fail("the report says", got, "but the events", own)
                    return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    program = build(os.path.join(HERE, "thinned.c"), "gcc", "-O2")
    checks, distances = {name: Check() for name in WEIGHTS}, collections.Counter()
    for seed in range(chosen.runs):
        path, truth = run(program, seed)
        data = report(path)
        equal((data["recording"]["sampled"], data["recording"]["totals_counted"], data["lost"],
               data["recording"]["foreign_frees"]), (True, False, 0, 0), "a sample, nothing lost")
        sums, seen = read(path)
        distances += seen
        depths = depths_of(data)
        equal(sorted(set(depths.values())), sorted(truth), "paths")
        same_as_report(data, sums["as recorded"], depths)
        for name, check in checks.items():
            check.add(sums[name], depths, truth)
    if not set(SHIFTS) <= set(distances):
        fail("distances that were met:", distances)
    for name, check in checks.items():
        faults = check.faults()
        print("weights", name + ":", "; ".join(faults) or "right", file=sys.stderr)
        if (not faults) != (name == "as recorded"):
            fail("weights", name, "are found", "wrong: " + "; ".join(faults) if faults else "right", dict(check.totals))
    finish()


if __name__ == "__main__":
    main()
