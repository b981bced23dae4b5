# SPDX-License-Identifier: MIT
"""Mappings where threads get each other's addresses at once: which ones are still there, as the
program says itself; and who ended each and when, as the times of events tell."""

import collections
import os

from queried import (HERE, MEMTRACE, ask, build, clean_environment, equal, execute, fail,  # and finds the modules below
                     finish, only_recording, record, scratch, told)
import lives
import reader

THREADS, ROUNDS, SIZE = 4, 3000, 3 * 4096


def changes(path):
    """(time, thread, whether it maps, address) in the order of times; each thread's in its own."""
    story = lives.Story(path)
    found = []
    for block, payload in story.recording.of_kind(reader.EVENTS):
        found += [(event.time, block.thread, event.operation in (1, 3), event.address)
                  for event in reader.Decoder(block, payload) if isinstance(event, reader.Map)]
    return sorted(found, key=lambda change: change[0])


def expected(path):
    """(born, thread, address, freed, freed_by) of each mapping."""
    there, ended = {}, []
    for time, thread, maps, address in changes(path):
        if maps:
            there[address] = (time, thread, address)
        else:
            ended.append((*there.pop(address), time, thread))
    return collections.Counter(ended + [(*mapping, None, None) for mapping in there.values()])


def check(*options):
    folder = scratch()
    program = build(os.path.join(HERE, "remapped.c"))
    result = record([program, str(THREADS), str(ROUNDS)], folder, *options)
    equal(result.returncode, 0, "recording", result.stderr)
    path = only_recording(folder, "remapped")
    rows = [row for row in ask(path, "SELECT * FROM mappings") if row["size"] in (SIZE, 2 * SIZE)]
    equal(sorted(row["address"] for row in rows if row["freed"] is None),
          sorted(map(int, result.stdout.split())), options, "still there")
    found = collections.Counter((row["born"], row["thread"], row["address"], row["freed"],
                                 row["freed_by"]) for row in rows)
    wanted = expected(path)
    if found != wanted:
        fail(options, "not as the times have it:", sum((found - wanted).values()), "of", len(rows),
             next(iter(found - wanted), None))


def check_profile():
    folder = scratch()
    program = build(os.path.join(HERE, "remapped.c"))
    result = execute([MEMTRACE, "run", "--no-summary", "-o", "p.mtp", "--", program, str(THREADS), str(10 * ROUNDS)],
                     clean_environment(), cwd=folder)
    equal(result.returncode, 0, "profile", result.stderr)
    made = [context for context in told(os.path.join(folder, "p.mtp"))["mappings"]
            if any(frame["function"] in ("map_piece", "grow") for frame in context["frames"])]
    equal(sum(context["live_bytes"] for context in made), len(result.stdout.split()) * SIZE, "live at the end")


check_profile()
for mode in ((), ("--precise",)):
    check(*mode)
finish()
