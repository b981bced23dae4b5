# SPDX-License-Identifier: MIT
"""damaged.py [SEED]: recordings that are cut off or have wrong bytes. The report shows what can be read
and says what is damaged, or refuses with one line; it never crashes and never shows more than there
was."""

import json
import os
import random
import subprocess
import sys

from recorded import only_recording, record
from harness import MEMTRACE, build, consistent, equal, execute, fail, finish, report, scratch

FILES = 25


def damage(whole, generator):
    """A damaged copy and what was done to it."""
    if generator.random() < 0.5:
        length = generator.randrange(len(whole))
        return whole[:length], "cut off at byte %d of %d:" % (length, len(whole))
    copy, places = bytearray(whole), []
    for _ in range(generator.randrange(1, 5)):
        places.append(generator.randrange(len(whole)))
        copy[places[-1]] ^= 1 << generator.randrange(8)
    return bytes(copy), "wrong bits at %s:" % places


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    folder = scratch()
    record([build("allocations.c", "gcc", "-O2"), "realloc"], folder, "--embed", "none")
    path = only_recording(folder, "sample")
    sample = report(path)
    with open(path, "rb") as file:
        whole = file.read()
    shown = 0
    for _ in range(FILES):
        bad, what = damage(whole, generator)
        with open(path, "wb") as file:
            file.write(bad)
        try:
            result = execute([MEMTRACE, "report", "--json", path], timeout=30)
        except subprocess.TimeoutExpired:
            fail(what, "hangs")
            continue
        error = result.stderr.decode(errors="replace")
        if result.returncode not in (0, 1):
            fail(what, "status", result.returncode, error[-300:])
        elif result.returncode == 1:
            equal(error.count("\n"), 1, what, "lines of the refusal", error)
        else:
            data = json.loads(result.stdout)
            consistent(data, what)
            if data["recording"]["events"] > sample["recording"]["events"]:
                fail(what, "more events than there were")
            shown += 1
    if shown < FILES // 2:
        fail("most of a damaged file can be read, but only", shown, "of", FILES, "were shown")


main()
finish()
