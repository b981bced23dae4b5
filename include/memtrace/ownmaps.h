/* SPDX-License-Identifier: MIT */
/*
 * ownmaps.h: what MemTrace itself has mapped in the program, and how much of that is resident. The
 * list lies in the program's memory; header.own_maps says where. Included by runtime/ and collect/.
 */
#ifndef MEMTRACE_OWNMAPS_H
#define MEMTRACE_OWNMAPS_H

#include <stddef.h>
#include <stdint.h>

enum {
    MEMTRACE_OWN_BEING_WRITTEN = 1,
    MEMTRACE_OWN_MAPS = 4096, /* a leaf of the shadow heap each 32 MiB of heap, and some tens */
};
#define MEMTRACE_OWN_MOST (UINT64_C(1) << 34) /* no more is looked at: a damaged list ends, too */

struct memtrace_own_map {
    uint64_t start; /* 0: the place is free */
    uint64_t size;
};

/* Written by any thread without a lock. A reader may meet a mapping that has just gone. */
struct memtrace_own_maps {
    uint32_t count; /* places that were ever used, from the first on; what finds none is left out */
    uint32_t reserved;
    uint64_t region; /* where the file is mapped: header.end bytes of it are in use */
    struct memtrace_own_map map[MEMTRACE_OWN_MAPS];
};

/* How many bytes of [start, start + size) lie in resident pages; `from` is the caller's. */
typedef uint64_t (*memtrace_count_resident)(const void *from, uint64_t start, uint64_t size);

/* Bytes of MemTrace's own that are resident; `used` of the file are in use (header.end). Its other
 * mappings are anonymous, and of these the process has `anonymous` bytes at all: pages that were
 * only read, where all pages of zeros are one, are counted, but are not resident. 0: not known. */
static inline uint64_t memtrace_own_resident(memtrace_count_resident count_resident,
                                             const void *from, const struct memtrace_own_maps *maps,
                                             uint64_t used, uint64_t anonymous) {
    uint64_t left = used < MEMTRACE_OWN_MOST ? MEMTRACE_OWN_MOST - used : 0;
    uint64_t count = __atomic_load_n(&maps->count, __ATOMIC_ACQUIRE);
    uint64_t region_bytes = count_resident(from, maps->region, MEMTRACE_OWN_MOST - left);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count && i < MEMTRACE_OWN_MAPS; i++) {
        uint64_t start = __atomic_load_n(&maps->map[i].start, __ATOMIC_ACQUIRE);
        if (start > MEMTRACE_OWN_BEING_WRITTEN) {
            uint64_t size = maps->map[i].size < left ? maps->map[i].size : left;
            bytes += count_resident(from, start, size);
            left -= size;
        }
    }
    return region_bytes + (anonymous != 0 && anonymous < bytes ? anonymous : bytes);
}

#endif
