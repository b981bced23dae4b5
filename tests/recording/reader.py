#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""reader.py FILE...: an independent reader of recordings, written from docs/format.md alone. Prints as
JSON what a recording adds up to; tests compare it with what `memtrace report` says.

totals(path) gives the same as a dictionary; Recording(path) gives blocks, nodes and events. It is
simple rather than fast: some 100,000 events a second.
"""

import collections
import ctypes
import json
import struct
import sys

HEADER = struct.Struct("<8sIIIIQII24x")
BLOCK = struct.Struct("<IHHIIQQQIIIIIHHQII")
MAGIC = 0x4B4C424D
PROGRAM, NODES, EVENTS, THREADS, MODULES, POOLS, SAMPLES, SMAPS, FILE, INDEX, MARKS, CULLED, NAMES = \
    range(1, 14)
MASK = (1 << 64) - 1
ADDRESS_MASK = (1 << 48) - 1

Block = collections.namedtuple(
    "Block", "magic kind header_size stored_size raw_size checksum first_ns last_ns items stream thread"
             " first_sequence end_sequence first_word end_word first_number allocs frees")
Alloc = collections.namedtuple("Alloc", "time block context size slack flags alignment weight address old")
Free = collections.namedtuple("Free", "time block context")
Map = collections.namedtuple("Map", "time operation protection flags context address size old_address"
                                    " old_size")
Mark = collections.namedtuple("Mark", "time what id text")
Lost = collections.namedtuple("Lost", "time allocs frees")

zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)


class Damaged(Exception):
    pass


class Column:
    """A row of numbers."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def byte(self):
        self.at += 1
        if self.at > len(self.data):
            raise Damaged("a column is too short")
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def signed(self):
        return signed(self.varint())

    def bytes(self, size):
        self.at += size
        if self.at > len(self.data):
            raise Damaged("a column is too short")
        return self.data[self.at - size:self.at]


def signed(value):
    return -(value + 1) // 2 if value % 2 else value // 2


def split(low, high):
    return low.byte() | high.varint() << 8


def columns(payload, count):
    sizes = struct.unpack_from("<%dI" % count, payload)
    if sum(sizes) + 4 * count != len(payload):
        raise Damaged("the columns do not add up")
    found = []
    at = 4 * count
    for size in sizes:
        found.append(Column(payload[at:at + size]))
        at += size
    return found


class Sites:
    """Things in the order of their first use, each with the one that followed it last."""

    def __init__(self):
        self.known = []
        self.follower = []
        self.last = None

    def use(self, index):
        if self.last is not None:
            self.follower[self.last] = index
        self.last = index
        return self.known[index]

    def expected(self):
        return self.use(self.follower[self.last])

    def add(self, site):
        self.known.append(site)
        self.follower.append(len(self.known) - 1)
        return self.use(len(self.known) - 1)

    def context_before(self):
        return self.known[-1][0] if self.known else 0


class Row:
    """The allocations of a file block that are not freed yet, by number: a linked list, 0 its end."""

    def __init__(self, first_number):
        self.end = first_number + (1 << 20) - 1
        self.below, self.above = {0: 0}, {0: 0}
        self.address, self.usable = {}, {}

    def __contains__(self, number):
        return number != 0 and number in self.below

    def add(self, number, address, usable):
        if number < self.end:
            highest = self.below[0]
            self.above[highest] = self.below[0] = number
            self.below[number], self.above[number] = highest, 0
            self.address[number], self.usable[number] = address, usable

    def remove(self, number):
        """Its neighbours."""
        below, above = self.below.pop(number), self.above.pop(number)
        self.above[below], self.below[above] = above, below
        return below, above


class Decoder:
    """The events of one block."""

    def __init__(self, block, payload):
        (self.ops, self.times, self.site_low, self.site_high, self.contexts, self.sizes, self.shapes,
         self.block_low, self.block_high, self.owners, self.addresses, self.places,
         self.rest) = columns(payload, 13)
        self.items = block.items
        self.thread = block.thread
        self.newest = self.last = block.first_number - 1
        self.row = Row(block.first_number)
        self.neighbours = None  # of last, when it was freed
        self.foreign = collections.Counter()
        self.sites, self.freed_at = Sites(), Sites()
        self.frontier = 0
        self.freed = collections.defaultdict(list)  # addresses, by class

    def __iter__(self):
        self.time = self.times.varint() if self.items else 0
        for _ in range(self.items):
            op = self.ops.byte()
            while op == 3 | 3 << 2:
                self.newest += self.rest.varint()
                op = self.ops.byte()
            if op & 128:
                self.time = (self.time + self.times.signed()) & MASK
            kind = op & 3
            yield self.free(op) if kind == 0 else self.else_(op) if kind == 3 else self.alloc(op)

    def end(self, op):
        """Which block ends, and, if it is of this file block, its address and class."""
        how = op >> 2 & 7
        if how == 5:
            owner = self.owners.varint()
            number = self.foreign[owner] + signed(split(self.block_low, self.block_high)) & MASK
            self.foreign[owner] = number
            return (owner, number), None
        if how == 0:
            number = self.row.below[0]
        elif how == 1:
            number = self.neighbours[1] if self.neighbours else self.last + 1
        elif how == 2:
            number = self.neighbours[0] if self.neighbours else self.last - 1
        elif how == 3:
            number = self.newest - split(self.block_low, self.block_high)
        elif how == 4:
            number = self.last + signed(split(self.block_low, self.block_high))
        else:
            raise Damaged("an op that is none")
        number &= MASK
        self.last, self.neighbours, known = number, None, None
        if number in self.row:
            known = self.row.address[number], self.row.usable[number] // 16 % 1024
            self.neighbours = self.row.remove(number)
        return (self.thread, number), known

    def free(self, op):
        block, known = self.end(op)
        if known:
            self.freed[known[1]].append(known[0])
        how = op >> 5 & 3
        if how == 0:
            place = self.freed_at.expected()
        elif how == 1:
            place = self.freed_at.use(self.places.varint())
        elif how == 2:
            place = self.freed_at.add((self.freed_at.context_before() + self.places.signed(),))
        else:
            place = (0,)
        return Free(self.time, block, place[0])

    def site(self, how):
        if how == 0:
            return self.sites.expected()
        if how == 1:
            return self.sites.use(split(self.site_low, self.site_high))
        context = self.sites.context_before() + self.contexts.signed()
        size, shape = self.sizes.varint(), self.shapes.varint()
        chunk = max(32, (size + 8 + 15) // 16 * 16)
        slack = chunk - 8 - size + signed(shape >> 1)
        flags = alignment = weight = 0
        if shape & 1:
            flags, alignment, weight = self.shapes.byte(), self.shapes.byte(), self.shapes.varint()
        return self.sites.add((context, size, slack, flags, alignment, weight))

    def place(self, how, usable, old):
        """The address of an allocation."""
        if how == 0:
            return 0
        if how == 5:
            return old[0]
        if how in (1, 4):
            stack = self.freed[usable // 16 % 1024]
            depth = 1 + (self.addresses.varint() if how == 4 else 0)
            return stack.pop(-depth) if len(stack) >= depth else 0
        address = self.frontier
        if how == 3:
            value = self.addresses.varint()
            address += signed(value >> 1) * (1 if value & 1 else 16)
        address &= ADDRESS_MASK
        self.frontier = (address + usable + 8) & ADDRESS_MASK
        return address

    def alloc(self, op):
        old = known = None
        if op & 3 == 2:
            old, known = self.end(self.ops.byte())
        context, size, slack, flags, alignment, weight = self.site(op >> 2 & 3)
        address = self.place(op >> 4 & 7, size + slack, known)
        if known and known[0] != address:
            self.freed[known[1]].append(known[0])
        self.newest += 1
        self.row.add(self.newest, address, size + slack)
        return Alloc(self.time, (self.thread, self.newest), context, size, slack, flags, alignment,
                     weight, address, old)

    def else_(self, op):
        rest, what = self.rest, op >> 2 & 31
        if what == 0:
            return Map(self.time, rest.byte(), rest.byte(), rest.byte(), *(rest.varint() for _ in range(5)))
        if what == 1:
            return Mark(self.time, rest.byte(), rest.varint(), rest.bytes(rest.varint()))
        if what == 2:
            return Lost(self.time, rest.varint(), rest.varint())
        raise Damaged("an op that is none")


class Recording:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        (magic, version, size, order, self.pid, self.ticks, self.part,
         self.flags) = HEADER.unpack_from(self.data)
        if (magic, version, size, order) != (b"MEMTRREC", 1, 64, 0x01020304):
            raise Damaged(path + " is no recording")
        self.blocks = []  # (Block, payload as stored)
        self.damaged = []  # offsets
        self.closed = False
        self.scan()
        self.nodes = {}  # id: (frame, parent)
        for block, payload in self.of_kind(NODES):
            self.add_nodes(block, payload)
        self.modules = {}  # id: (path, bias)
        for _, payload in self.of_kind(MODULES):
            for at in range(0, len(payload), 1024):
                number, _, _, _, bias = struct.unpack_from("<IIQQQ", payload, at)
                self.modules[number] = text(payload[at + 80:at + 1024]), bias
        self.pools = {}
        for _, payload in self.of_kind(POOLS):
            for at in range(0, len(payload), 72):
                self.pools[struct.unpack_from("<I", payload, at)[0]] = text(payload[at + 8:at + 72])

    def block_at(self, at):
        if at + BLOCK.size > len(self.data):
            return None
        block = Block(*BLOCK.unpack_from(self.data, at))
        payload = self.data[at + 80:at + 80 + block.stored_size]
        if (block.magic, block.header_size, len(payload)) != (MAGIC, 80, block.stored_size):
            return None
        header = self.data[at:at + 16] + bytes(8) + self.data[at + 24:at + 80]
        if xxhash.XXH3_64bits(header + payload, 80 + len(payload)) != block.checksum:
            return None
        return block, payload

    def scan(self):
        """From header to header; where there is none, on to the next whole block."""
        at = 64
        whole = True
        while at < len(self.data):
            found = self.block_at(at)
            if found is None and self.data[at:] == struct.pack("<Q", self.last_at) + b"MEMTRREC":
                self.closed = True
                return
            if found is None:
                if whole:
                    self.damaged.append(at)
                whole = False
                at += 8
                continue
            whole = True
            self.blocks.append(found)
            self.last_at = at
            at += 80 + (found[0].stored_size + 7) // 8 * 8

    last_at = 0

    def of_kind(self, kind):
        for block, payload in self.blocks:
            if block.kind == kind:
                yield block, unpacked(block, payload)

    def add_nodes(self, block, payload):
        ids, parents, which, new = columns(payload, 4)
        frames = []
        number = 0
        for _ in range(block.items):
            before = number
            number = before + ids.signed()
            parent = before + parents.signed()
            index = which.varint()
            if index == len(frames):
                frames.append(((frames[-1] if frames else 0) + new.signed()) & MASK)
            self.nodes[number] = frames[index], parent

    def names(self):
        """By frame: a list of (function, file, line, column), innermost first."""
        found = {}
        for block, payload in self.of_kind(NAMES):
            texts = payload[24 * block.items:]
            mine = collections.defaultdict(list)
            for i in range(block.items):
                frame, function, file, line, column = struct.unpack_from("<QIIII", payload, 24 * i)
                mine[frame].append((text(texts[function:]), text(texts[file:]), line, column))
            found = {**mine, **found}
        return found

    def events(self):
        """Of all blocks, in the order of the file."""
        for block, payload in self.of_kind(EVENTS):
            yield from Decoder(block, payload)

    def is_heap(self, context):
        """Innermost frames below 4096 are classes; 2 is the heap's own."""
        frame = self.nodes.get(context, (2, 0))[0]
        return frame >= 4096 or frame == 2

    def path(self, context):
        """Its frames, innermost first: of code MODULE+OFFSET."""
        found = []
        while context in self.nodes:
            frame, context = self.nodes[context]
            if frame < 4096:
                found.append("pool " + self.pools.get(frame - 16, "?") if frame >= 16 else
                             {1: "mapping", 2: "heap"}.get(frame, "?"))
            else:
                name, bias = self.modules.get(frame >> 48 & 0x7FFF, ("?", 0))
                found.append("%s+0x%x" % (name, (frame & ADDRESS_MASK) - bias))
        return found


def text(raw):
    return raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def unpacked(block, payload):
    if block.stored_size == block.raw_size:
        return payload
    room = ctypes.create_string_buffer(block.raw_size)
    if zstd.ZSTD_decompress(room, block.raw_size, payload, len(payload)) != block.raw_size:
        raise Damaged("a payload cannot be unpacked")
    return room.raw


def pair(recording):
    """[time, allocated or freed context, size, +1 or -1] of every allocation and free, by time; and
    how many frees end no known allocation."""
    births, deaths, unknown = {}, [], 0
    steps = []
    for event in recording.events():
        ended = None
        if isinstance(event, Alloc):
            births[event.block] = event.context, event.size
            ended = event.old
        elif isinstance(event, Free):
            ended = event.block
        if ended:
            deaths.append(ended)
            steps.append((event.time, ended, -1))
        if isinstance(event, Alloc):
            steps.append((event.time, event.block, 1))
    seen = set()
    for block in deaths:
        unknown += block not in births or block in seen
        seen.add(block)
    steps.sort(key=lambda step: step[0])  # stable: within a time, the file's order
    return [(time, *births[block], sign) for time, block, sign in steps if block in births], unknown


def totals(path):
    """What the recording adds up to, heap only."""
    recording = Recording(path)
    contexts = collections.defaultdict(lambda: {"allocations": 0, "total_bytes": 0, "frees": 0,
                                                "live_bytes": 0})
    live = maximum = 0
    steps, unknown = pair(recording)
    for _, context, size, sign in steps:
        cost = contexts[context]
        cost["allocations" if sign > 0 else "frees"] += 1
        cost["total_bytes"] += size if sign > 0 else 0
        cost["live_bytes"] += size * sign
        if recording.is_heap(context):
            live += size * sign
            maximum = max(maximum, live)
    for _, payload in recording.of_kind(CULLED):
        for context, _, count, size in struct.iter_unpack("<IIQQ", payload):
            contexts[context]["allocations"] += count
            contexts[context]["frees"] += count
            contexts[context]["total_bytes"] += size
    heap = [cost for context, cost in contexts.items() if recording.is_heap(context)]
    total = {name: sum(cost[name] for cost in heap) for name in
             ("allocations", "total_bytes", "frees", "live_bytes")}
    total["live_blocks"] = total["allocations"] - total["frees"]
    total["peak_bytes"] = maximum
    lost = [event for event in recording.events() if isinstance(event, Lost)]
    return {"totals": total, "unknown_frees": unknown, "damaged": recording.damaged,
            "closed": recording.closed, "lost_allocs": sum(event.allocs for event in lost),
            "lost_frees": sum(event.frees for event in lost),
            "contexts": [dict(cost, context=context, heap=recording.is_heap(context),
                              frames=recording.path(context))
                         for context, cost in sorted(contexts.items())]}


def line(thread, event):
    """An event as list_events.c prints it."""
    if isinstance(event, Alloc):
        old = [line(thread, Free(event.time, event.old, 0))] if event.old else []
        weight = " %d" % event.weight if event.weight else ""
        return "\n".join(old + ["alloc %d %d %d %x %d%s" % (thread, event.block[1], event.size, event.address,
                                                           event.context, weight)])
    if isinstance(event, Free):
        return "free %d %d %d" % (thread, *event.block)
    if isinstance(event, Map):
        return "map %d %d %x %d %d" % (thread, event.operation, event.address, event.size,
                                       event.context)
    if isinstance(event, Mark):
        return "mark %d %d %s" % (thread, event.what, text(event.text))
    return "lost %d %d %d" % (thread, event.allocs, event.frees)


def lines(recording):
    """All events as list_events.c prints them."""
    for block, payload in recording.of_kind(EVENTS):
        yield "block %d %d" % (block.stream, block.thread)
        for event in Decoder(block, payload):
            yield from line(block.thread, event).split("\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        json.dump(totals(name), sys.stdout, indent=1)
        print()
