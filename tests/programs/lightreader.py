# SPDX-License-Identifier: MIT
"""lightreader.py FILE: an independent reader of what light children left in a profile, written from
docs/format.md alone: their records and, by call path, what they did."""

import bisect
import collections
import struct
import subprocess
import sys

from harness import raw_profile

PAGE, LEAF = 4096, 1024
LEDGER, MODULES, POOLS, PROCESSES, PATHS, NODES, AREAS = 2, 5, 6, 10, 11, 14, 15
RUNNING, ENDED, EXECED, GROWN = 1, 2, 3, 4
SEGMENT = struct.Struct("<IHHIIQII")
PROCESS = struct.Struct("<IIIIQQQQQQQQ16sQQ")
PATH = struct.Struct("<QIIQQQQ")
FRAME_CLASSES = 4096
PATHS_HEAD = 0x4441454853485450

Segment = collections.namedtuple("Segment", "offset kind owner index size item_size item_count")
Process = collections.namedtuple(
    "Process", "number pid parent_pid state path_count start_ns end_ns alloc_count alloc_bytes"
               " free_count free_bytes maximum_bytes lost name")


class Profile:
    def __init__(self, path):
        self.data = raw_profile(path)
        assert self.data[:8] == b"MEMTRACE", path
        self.end = min(struct.unpack_from("<Q", self.data, 24)[0], len(self.data))
        self.live_bytes, self.maximum_bytes = struct.unpack_from("<qq", self.data, 128)
        self.segments = list(self._segments())
        self.nodes = {}
        self.modules = {}
        areas = {0: 0}
        for segment in self.segments:
            if segment.kind == AREAS:
                for place in range(8, segment.item_count):
                    areas[segment.index * 512 + place], = struct.unpack_from("<Q", self.data, segment.offset + 8 * place)
        for segment in self.segments:
            if segment.kind == NODES:
                for place in range(8, LEAF):
                    node, = struct.unpack_from("<Q", self.data, segment.offset + 8 * place)
                    if node:
                        frame = areas[node >> 48] | node & 0xffffff
                        self.nodes[segment.index * LEAF + place] = (frame, node >> 24 & 0xffffff)
            if segment.kind == MODULES:
                for place in range(1, segment.item_count):
                    at = segment.offset + 1024 * place
                    number, = struct.unpack_from("<I", self.data, at)
                    bias, = struct.unpack_from("<Q", self.data, at + 24)
                    name = self.data[at + 80:at + 1024].split(b"\0")[0].decode()
                    if number:
                        self.modules[number] = (name, bias)
        self.symbols = {}

    def _segments(self):
        at = 16384
        while at + SEGMENT.size <= self.end:
            magic, kind, _, owner, index, size, item_size, item_count = SEGMENT.unpack_from(self.data, at)
            if magic != 0x474D4553:
                at += PAGE
                continue
            yield Segment(at, kind, owner, index, size, item_size, item_count)
            at += size

    def children(self):
        """The records, by number; without frees of what they were born with."""
        found = []
        for segment in self.segments:
            if segment.kind == PROCESSES:
                assert segment.item_size == PROCESS.size, segment
                for place in range(1, segment.item_count):
                    fields = PROCESS.unpack_from(self.data, segment.offset + PROCESS.size * place)
                    if fields[2]:
                        name = fields[-3].split(b"\0")[0].decode()
                        child = Process(segment.index * segment.item_count + place, *fields[:-3], name)
                        child = child._replace(free_count=child.free_count - fields[-2],
                                               free_bytes=child.free_bytes - fields[-1])
                        live = child.alloc_bytes - child.free_bytes
                        found.append(child._replace(maximum_bytes=max(child.maximum_bytes, live)))
        return found

    def _items(self, child):
        """The child's items of paths, from a segment of its own or a shared one."""
        for segment in self.segments:
            if segment.kind != PATHS or not child.path_count:
                continue
            items = [PATH.unpack_from(self.data, segment.offset + PATH.size * place)
                     for place in range(segment.item_count)]
            if segment.owner == child.number:
                yield from items[2:2 + child.path_count]
            place = 2
            while segment.owner == 0 and place < len(items):
                frame, number, count = items[place][:3]
                place += 1
                if frame == PATHS_HEAD and number:
                    assert place + count <= len(items), "a head counts too many"
                    if number == child.number:
                        assert count == child.path_count, "a head's number of paths"
                        yield from items[place:place + count]
                    place += count

    def paths(self, child):
        """{context: (frame, parent, alloc_bytes, alloc_count, free_bytes, free_count)}"""
        found = {}
        for frame, number, parent, *counts in self._items(child):
            assert number not in found, "a context comes twice"
            assert not frame or parent == 0 or parent in found or parent in self.nodes, \
                "a parent comes late"
            assert frame or number in self.nodes, "a context of the tree that is not there"
            found[number] = (frame, parent, *counts)
        return found

    def frames(self, paths, context):
        """Of a child's context, innermost first; class frames too."""
        frames = []
        while context:
            frame, parent = paths[context][:2] if context in paths and paths[context][0] \
                else self.nodes[context]
            frames.append(frame)
            context = parent
        return frames

    def functions(self, paths, context):
        """The names of the frames that the programs' symbol tables know, innermost first."""
        return [name for name in map(self.function, self.frames(paths, context)) if name]

    def function(self, frame):
        if frame < FRAME_CLASSES:
            return {1: "[mapping]", 2: "[unknown]"}.get(frame, "[pool]")
        module, bias = self.modules.get(frame >> 48 & 0x7FFF, ("", 0))
        if module not in self.symbols:
            table = subprocess.run(["nm", "--defined-only", module], capture_output=True, text=True)
            self.symbols[module] = sorted(
                (int(line.split()[0], 16), line.split()[2]) for line in table.stdout.splitlines()
                if len(line.split()) == 3 and line.split()[1] in "tTwW")
        at = bisect.bisect(self.symbols[module], ((frame & (1 << 48) - 1) - 1 - bias, "\U0010ffff"))
        return self.symbols[module][at - 1][1] if at else None


def main():
    profile = Profile(sys.argv[1])
    for child in profile.children():
        print(child)
        paths = profile.paths(child)
        for context, path in paths.items():
            if path[3] or path[5]:
                print("   ", path[2:], profile.functions(paths, context))


if __name__ == "__main__":
    main()
