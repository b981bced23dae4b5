# SPDX-License-Identifier: MIT
"""The blocks of a recording one by one, from tests/recording/reader.py, and what a selection of them
adds up to: plain counting, written from docs/filters.md alone."""

import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recording"))

import reader  # noqa: E402

NEVER = (1 << 64) - 1
TICK = 1 << 22


class Life:
    """One block. death: NEVER where nobody freed it; chain: a list that all lives of a chain share;
    position: its place in it, from 1 on."""

    death = NEVER
    freer = None
    freed_context = 0
    temporary = False
    death_place = NEVER

    def __init__(self, event, thread, scopes, heap, place, chain):
        self.block, self.context, self.size = event.block, event.context, event.size
        self.address, self.birth, self.thread = event.address, event.time, thread
        self.slack, self.old = event.slack, event.old
        self.mapped, self.other_arena = bool(event.flags & 2), bool(event.flags & 4)
        self.scopes, self.heap, self.place = frozenset(scopes.values()), heap, place
        self.chain = chain
        chain.append(self)

    def lifetime(self, end):
        return max(0, (end if self.death == NEVER else self.death) - self.birth)


class Story:
    """All of a recording. Events of one thread are in order; between threads no order is known."""

    def __init__(self, path):
        recording = reader.Recording(path)
        self.recording = recording
        self.lives, self.marks = [], []
        by_name, frees = {}, []
        newest, scopes = {}, collections.defaultdict(dict)
        place = 0
        for block, payload in recording.of_kind(reader.EVENTS):
            for event in reader.Decoder(block, payload):
                place += 1
                stream = block.stream
                if isinstance(event, reader.Mark):
                    self.mark(event, scopes[stream])
                    continue
                old = event.block if isinstance(event, reader.Free) else getattr(event, "old", None)
                if old:
                    temporary = newest.get(stream) == old and old[0] == block.thread
                    context = event.context if isinstance(event, reader.Free) else 0
                    frees.append((old, event.time, block.thread, temporary, place, context))
                if isinstance(event, reader.Alloc):
                    heap = recording.is_heap(event.context)
                    life = Life(event, event.block[0], scopes[stream], heap, place, [])
                    life.old = event.old
                    by_name[event.block] = life
                    self.lives.append(life)
                    if heap:
                        newest[stream] = event.block
        for name, time, thread, temporary, place, context in frees:
            life = by_name.get(name)
            if life:
                life.death, life.freer = max(time, life.birth), thread
                life.temporary, life.death_place = temporary, place
                life.freed_context = context
        self.link(by_name)

    def mark(self, event, scopes):
        name = event.text.split(b"\0", 1)[0].decode()
        if event.what == 1:
            self.marks.append((event.time, name))
        elif event.what == 2:
            scopes[event.id] = name
        elif event.what == 3:
            scopes.pop(event.id, None)

    def link(self, by_name):
        """Chains, oldest first: a reallocation may stand in a thread's block of events before the
        one that made its block."""
        after = {by_name[life.old].block: life for life in self.lives
                 if life.old and life.old in by_name}
        for life in self.lives:
            if life.old and life.old in by_name:
                continue
            chain = []
            while life:
                chain.append(life)
                life.chain, life.position = chain, len(chain)
                life = after.get(life.block)

    def mark_time(self, name, number=1):
        return sorted(time for time, mark in self.marks if mark == name)[number - 1]


def bucket(life):
    return life.death // TICK - life.birth // TICK


def add_up(lives, start=0, end=NEVER):
    """By context what the view [start, end) shows of these lives."""
    found = collections.defaultdict(lambda: collections.Counter())
    for life in lives:
        cost = found[life.context]
        if life.birth >= end or life.death < start:
            continue
        if life.birth >= start:
            cost["total_bytes"] += life.size
            cost["allocations"] += 1
        if life.death < end:
            cost["frees"] += 1
            cost["temporary"] += life.temporary and life.heap
        else:
            cost["live_bytes"] += life.size
            cost["live_blocks"] += 1
    return found


def moment_of_maximum(lives, start=0, end=NEVER):
    """The place behind whose event the heap held most in the view, of one thread's lives; ends come
    before births of the same place."""
    steps = []
    for life in lives:
        if life.heap and start <= life.birth < end:
            steps.append((life.place, 1, life.size))
        if life.heap and start <= life.death < end:
            steps.append((life.death_place, 0, -life.size))
    steps.sort()
    held = most = at = 0
    for place, _, size in steps:
        held += size
        if held > most:
            most, at = held, place
    return at


def held_at(lives, place, start=0, end=NEVER):
    """By context the bytes of the heap that these lives held behind that place."""
    found = collections.Counter()
    for life in lives:
        born = life.birth < start or (life.birth < end and life.place <= place)
        gone = life.death < start or (life.death < end and life.death_place <= place)
        if life.heap and born and not gone:
            found[life.context] += life.size
    return found
