# SPDX-License-Identifier: MIT
"""Reads from a profile (docs/format.md) how many contexts it holds and what they take: the few
fields the memory figures need. Used by figures.py."""

import collections
import struct

HEADER_SIZE = 16384
PAGE = 4096
CONTEXT_COUNT_OFFSET = 72
LOST_OFFSET = 168
SEGMENT_MAGIC = 0x474D4553
TREE, LEDGER, LIFETIMES, NODES, AREAS = 1, 2, 3, 14, 15
LEAF_ITEMS = 1024

Sizes = collections.namedtuple("Sizes", "contexts allocating context_bytes file_bytes lost")


def read(path):
    """Sizes of a profile: contexts = tree nodes made; allocating = contexts that something was
    allocated in; context_bytes = tree, ledger and lifetimes segments; file_bytes = all of it."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"MEMTRACE":
        raise ValueError(f"{path} is no profile")
    end = min(struct.unpack_from("<Q", data, 24)[0], len(data))
    context_count = struct.unpack_from("<Q", data, CONTEXT_COUNT_OFFSET)[0]
    lost = sum(struct.unpack_from("<8Q", data, LOST_OFFSET))
    bytes_by_kind = collections.Counter()
    allocating = set()
    place = HEADER_SIZE
    while place + 64 <= end:
        magic, kind, _, _, index, size, item_size = struct.unpack_from("<IHHIIQI", data, place)
        if magic != SEGMENT_MAGIC or size == 0:
            place += PAGE
            continue
        bytes_by_kind[kind] += size
        if kind == LEDGER:
            words = memoryview(data)[place:place + LEAF_ITEMS * item_size].cast("Q")
            counts = words[1::item_size // 8].tolist()  # alloc_count of each cell
            counts[0] = 0  # under the segment header
            allocating.update(index * LEAF_ITEMS + item for item, count in enumerate(counts)
                              if count)
        place += size
    in_contexts = sum(bytes_by_kind[kind] for kind in (TREE, NODES, AREAS, LEDGER, LIFETIMES))
    return Sizes(context_count, len(allocating), in_contexts, end, lost)
