# SPDX-License-Identifier: MIT
"""commands.py [SEED [COUNT]]: damaged and cut-off files through every command that reads files. Each
ends by itself with a status of its own, and says what it could not do; none crashes, hangs or writes
without end. Recordings are also damaged behind their checksums (damage_blocks.c)."""

import gzip
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))

from recorded import record, recordings  # noqa: E402
from harness import (BUILD, MEMTRACE, SUBJECTS, build, execute, fail, finish, profiles,  # noqa: E402
                     scratch)

OUTPUT = "OUTPUT"  # replaced by a file
DAMAGE_BLOCKS = os.path.join(BUILD, "tests", "fuzz", "damage_blocks")
MOST_BYTES = 200 << 20  # of the output: the files have a few hundred events
COMMANDS = [
    ["report"], ["report", "--json"], ["report", "--format", "markdown", "--show-groups"],
    ["report", "--show-blocks", "--show-sizes", "--show-fragmentation", "--show-lifetimes"],
    ["report", "--show-timeline", "--show-mappings", "--show-marks", "--show-threads"],
    ["report", "--from", "10%", "--to", "90%", "--show-maximum", "--bottom-up"],
    ["report", "--size", "1..100", "--lifetime", "1us..", "--show-leaked", "--paths"],
    ["report", "--all-processes"], ["report", "--show-processes"], ["replay"],
    ["check", "leaked <= 0"], ["info"], ["info", "--json"],
    ["query", "SELECT count(*), sum(size) FROM allocations"],
    ["query", "SELECT * FROM contexts JOIN frames ON frames.context = contexts.id"],
    ["extract", "--list"], ["repack", "--output", OUTPUT], ["strip", "--output", OUTPUT],
    ["anonymize", "--output", OUTPUT], ["merge", "--output", OUTPUT], ["import", "--output", OUTPUT],
] + [["export", "--format", name, "--output", OUTPUT]
     for name in ("folded", "flamegraph", "gprof2dot", "pprof", "speedscope", "massif", "callgrind",
                  "heaptrack", "json", "csv", "sqlite", "html")]


def damage(data, dice):
    """Cut off, hit in some places, or both."""
    data = bytearray(data)
    if dice.random() < 0.4:
        del data[dice.randrange(1, len(data)):]
    if dice.random() < 0.8:
        for _ in range(dice.randrange(1, 20)):
            data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)


def run(command, path, folder):
    output = os.path.join(folder, "output")
    words = [output if word == OUTPUT else word for word in command]
    words = words[:1] + [path] + words[1:] if words[0] != "check" else words + [path]
    done = execute([MEMTRACE, *words], timeout=60)
    if done.returncode not in (0, 1, 2):
        fail("status", done.returncode, *words, done.stderr[-2000:])
    elif done.returncode != 0 and not done.stderr and not done.stdout:
        fail("status", done.returncode, "and not a word:", *words)
    if os.path.exists(output):
        if os.path.getsize(output) > MOST_BYTES:
            fail("wrote", os.path.getsize(output), "bytes:", *words)
        os.unlink(output)


def run_all(path, folder):
    for command in COMMANDS:
        run(command, path, folder)


def main():
    seed, count = (int(word) for word in (sys.argv[1:] + ["1", "4"])[:2])
    dice = random.Random(seed)
    folder = scratch()
    record([build(os.path.join(SUBJECTS, "allocations.c"), "gcc", "-O1"), "realloc"], folder)
    recording, profile = recordings(folder)[0], profiles(folder)[0]
    packed, raw = os.path.join(folder, "packed.mtp"), os.path.join(folder, "raw")
    execute([MEMTRACE, "repack", "--output", packed, profile])
    execute([MEMTRACE, "repack", "--raw", "--output", raw, profile])
    replay = os.path.join(folder, "whole.replay")
    execute([MEMTRACE, "export", "--format", "replay", "--output", replay, recording])
    whole = [open(path, "rb").read() for path in (recording, packed, raw)]
    replays = [open(replay, "rb").read()]
    replays.append(gzip.compress(replays[0]))
    for number in range(count):
        for data, ending in zip(whole, ("mtr", "mtp", "raw.mtp")):
            path = os.path.join(folder, "damaged.%d.%s" % (number, ending))
            with open(path, "wb") as file:
                file.write(damage(data, dice))
            run_all(path, folder)
        for data in replays:
            path = os.path.join(folder, "damaged.%d.replay" % number)
            with open(path, "wb") as file:
                file.write(damage(data, dice))
            run(["replay"], path, folder)
        for source in (recording, packed):
            path = os.path.join(folder, "damaged.%d.blocks%s" % (number, source[-4:]))
            made = execute([DAMAGE_BLOCKS, source, path, str(seed * 1000 + number)])
            if made.returncode != 0:
                fail("damage_blocks", made.returncode, made.stderr)
            run_all(path, folder)
    finish()


if __name__ == "__main__":
    main()
