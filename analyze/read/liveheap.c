/* SPDX-License-Identifier: MIT */
/*
 * liveheap.c: reads a running program's shadow heap with process_vm_readv. See liveheap.h.
 *
 * Small blocks start at most 1 KiB below the address: a look at a few records. Large ones may start
 * far below: their records are searched backwards, a leaf at a time, absent leaves skipped.
 */
#include "analyze/read/liveheap.h"
#include "memtrace/blocks.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    FINE_LIMIT = 1 << MEMTRACE_COARSE_SHIFT, /* blocks in the fine table are smaller */
    FINE_RECORDS = FINE_LIMIT / 8 + 1,       /* of the finest granule that one search meets */
    BACK_LEAVES = 4096,                      /* a block larger than 128 GiB is not found inside */
    ROOT_BATCH = 512,
    COARSE_BATCH = 4096,
    SAMPLED_BATCH = 512, /* a divisor of every level's places */
    COARSE_RECORDS = 1 << (MEMTRACE_SPAN_SHIFT - MEMTRACE_COARSE_SHIFT)
};

static const uint64_t span_bytes = UINT64_C(1) << MEMTRACE_SPAN_SHIFT;

/* One of the program's two shadow heaps. */
struct table {
    pid_t pid;
    uint64_t root; /* address in the program */
    unsigned shift;
    bool pool;
    uint64_t now_tick;
};

/* Copies from the program. 0 or -1 with errno. */
static int read_memory(pid_t pid, uint64_t address, void *buffer, size_t size) {
    while (size > 0) {
        struct iovec local = {buffer, size};
        struct iovec remote = {(void *)(uintptr_t)address, size};
        ssize_t count = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (count <= 0) {
            errno = count == 0 ? EFAULT : errno;
            return -1;
        }
        buffer = (char *)buffer + count;
        address += (uint64_t)count;
        size -= (size_t)count;
    }
    return 0;
}

static uint64_t fine_records(const struct table *table) {
    return span_bytes >> table->shift;
}

static bool block_contains(const struct liveheap_block *block, uint64_t address) {
    return address == block->start ||
           (address > block->start && address - block->start < block->size);
}

static uint64_t record_bits(uint64_t value, unsigned shift, unsigned count) {
    return value >> shift & ((UINT64_C(1) << count) - 1);
}

/* Ticks since birth, where only the low bits of the birth are kept. */
static uint64_t age_ns(const struct table *table, uint64_t birth, unsigned birth_bits) {
    uint64_t ticks = record_bits(table->now_tick - birth, 0, birth_bits);
    /* The program's clock may be a little ahead of ours: the last sixteenth is the near future. */
    if (ticks >> (birth_bits - 4) == 15) {
        ticks = 0;
    }
    return ticks << MEMTRACE_TICK_SHIFT;
}

/* Decodes the record of a granule; false: no block starts there. */
static bool decode_fine(const struct table *table, uint64_t granule_start, uint64_t stored,
                        struct liveheap_block *block) {
    uint64_t record = stored ^ granule_start << MEMTRACE_BLOCK_ADDRESS_SHIFT;
    *block = (struct liveheap_block){
        .start = granule_start + 8 * record_bits(record, MEMTRACE_BLOCK_OFFSET_SHIFT, 2),
        .size = record_bits(record, MEMTRACE_BLOCK_SIZE_SHIFT, 10),
        .context =
            (uint32_t)record_bits(record, MEMTRACE_BLOCK_CONTEXT_SHIFT, MEMTRACE_CONTEXT_BITS),
        .thread = (uint32_t)record_bits(record, MEMTRACE_BLOCK_THREAD_SHIFT, MEMTRACE_THREAD_BITS),
        .pool = table->pool,
    };
    return stored != 0;
}

/* Of a block that decode_fine() told. */
static int set_fine_age(const struct table *table, uint64_t leaf, uint64_t place, uint64_t stored,
                        struct liveheap_block *block) {
    uint64_t granule_start = block->start >> table->shift << table->shift;
    uint64_t record = stored ^ granule_start << MEMTRACE_BLOCK_ADDRESS_SHIFT;
    uint16_t high;
    uint64_t highs = leaf + fine_records(table) * sizeof(uint64_t);
    if (read_memory(table->pid, highs + place * sizeof high, &high, sizeof high) != 0) {
        return -1;
    }
    uint64_t birth = record >> MEMTRACE_BLOCK_BIRTH_SHIFT | (uint64_t)high << 16;
    block->age_ns = age_ns(table, birth, 32);
    return 0;
}

/* Looks at the granules [first, last] of one leaf, last first. 1, 0 or -1. */
static int find_fine_in(const struct table *table, uint64_t first, uint64_t last, uint64_t address,
                        struct liveheap_block *block) {
    uint64_t records[FINE_RECORDS];
    uint64_t leaf;
    uint64_t place = first & (fine_records(table) - 1);
    uint64_t span = first >> (MEMTRACE_SPAN_SHIFT - table->shift);
    if (read_memory(table->pid, table->root + span * sizeof leaf, &leaf, sizeof leaf) != 0) {
        return -1;
    }
    if (leaf == 0) {
        return 0;
    }
    if (read_memory(table->pid, leaf + place * sizeof *records, records,
                    (last - first + 1) * sizeof *records) != 0) {
        return -1;
    }
    for (uint64_t i = last - first + 1; i-- > 0;) {
        if (decode_fine(table, (first + i) << table->shift, records[i], block) &&
            block_contains(block, address)) {
            return set_fine_age(table, leaf, place + i, records[i], block) == 0 ? 1 : -1;
        }
    }
    return 0;
}

static int find_fine(const struct table *table, uint64_t address, struct liveheap_block *block) {
    uint64_t last = address >> table->shift;
    uint64_t first = address < FINE_LIMIT ? 0 : (address - FINE_LIMIT + 1) >> table->shift;
    uint64_t border = last & ~(fine_records(table) - 1); /* first granule of last's leaf */
    int found = find_fine_in(table, first > border ? first : border, last, address, block);
    if (found == 0 && first < border) {
        found = find_fine_in(table, first, border - 1, address, block);
    }
    return found;
}

static bool decode_coarse(const struct table *table, uint64_t granule_start,
                          const struct memtrace_big_block *record, struct liveheap_block *block) {
    if (record->owner == 0) {
        return false;
    }
    *block = (struct liveheap_block){
        .start = granule_start + (record->size_offset >> MEMTRACE_BIG_OFFSET_SHIFT),
        .size = record_bits(record->size_offset, 0, MEMTRACE_BIG_OFFSET_SHIFT),
        .context = (uint32_t)record_bits(record->owner, 0, MEMTRACE_CONTEXT_BITS),
        .thread =
            (uint32_t)record_bits(record->owner, MEMTRACE_BIG_THREAD_SHIFT, MEMTRACE_THREAD_BITS),
        .age_ns = age_ns(table, record->owner >> MEMTRACE_BIG_BIRTH_SHIFT, 28),
        .pool = table->pool,
    };
    return true;
}

/* Searches the coarse records [0, end) of a leaf backwards. 1, 0 or -1. */
static int find_coarse_in(const struct table *table, uint64_t leaf, uint64_t span, uint64_t end,
                          uint64_t address, struct liveheap_block *block) {
    struct memtrace_big_block records[COARSE_BATCH];
    uint64_t start = leaf + fine_records(table) * (sizeof(uint64_t) + sizeof(uint16_t));
    while (end > 0) {
        uint64_t first = end > COARSE_BATCH ? end - COARSE_BATCH : 0;
        if (read_memory(table->pid, start + first * sizeof *records, records,
                        (end - first) * sizeof *records) != 0) {
            return -1;
        }
        for (uint64_t i = end; i-- > first;) {
            uint64_t granule = span * span_bytes + (i << MEMTRACE_COARSE_SHIFT);
            if (decode_coarse(table, granule, &records[i - first], block) &&
                block_contains(block, address)) {
                return 1;
            }
        }
        end = first;
    }
    return 0;
}

/* A block that does not contain the address does not end the search: malloc blocks lie inside
 * mappings that were noted too. */
static int table_find_coarse(const struct table *table, uint64_t address,
                             struct liveheap_block *block) {
    uint64_t leaves[ROOT_BATCH];
    uint64_t end = (address >> MEMTRACE_SPAN_SHIFT) + 1;
    uint64_t lowest = end > BACK_LEAVES ? end - BACK_LEAVES : 0;
    uint64_t records =
        record_bits(address, MEMTRACE_COARSE_SHIFT, MEMTRACE_SPAN_SHIFT - MEMTRACE_COARSE_SHIFT) +
        1;
    int found = 0;
    while (end > lowest && found == 0) {
        uint64_t first = end - lowest > ROOT_BATCH ? end - ROOT_BATCH : lowest;
        if (read_memory(table->pid, table->root + first * sizeof *leaves, leaves,
                        (end - first) * sizeof *leaves) != 0) {
            return -1;
        }
        for (uint64_t i = end; i-- > first && found == 0;) {
            if (leaves[i - first]) {
                found = find_coarse_in(table, leaves[i - first], i, records, address, block);
            }
            records = COARSE_RECORDS;
        }
        end = first;
    }
    return found;
}

/* Keeps in *best the block that starts last. 1, 0 or -1. */
static int find_in_table(const struct table *table, uint64_t address, struct liveheap_block *best) {
    struct liveheap_block large;
    int fine = find_fine(table, address, best);
    int coarse = fine < 0 ? -1 : table_find_coarse(table, address, &large);
    if (fine < 0 || coarse < 0) {
        return -1;
    }
    if (coarse > 0 && (fine == 0 || large.start > best->start)) {
        *best = large;
    }
    return fine > 0 || coarse > 0;
}

/* --- sampled blocks: all of them are looked at -------------------------------------------------
 */

/* 1, 0 or -1. */
static int find_on_level(const struct table *table, uint64_t at, uint64_t address,
                         struct liveheap_block *block) {
    struct memtrace_sampled_level level;
    struct memtrace_sampled_block sampled[SAMPLED_BATCH];
    uint64_t keys[SAMPLED_BATCH];
    if (read_memory(table->pid, at, &level, sizeof level) != 0) {
        return -1;
    }
    for (uint64_t first = 0; first < level.groups * MEMTRACE_SAMPLED_GROUP;
         first += SAMPLED_BATCH) {
        if (read_memory(table->pid, level.keys + first * sizeof keys[0], keys, sizeof keys) != 0 ||
            read_memory(table->pid, level.blocks + first * sizeof sampled[0], sampled,
                        sizeof sampled) != 0) {
            return -1;
        }
        for (size_t i = 0; i < SAMPLED_BATCH; i++) {
            uint32_t age = (uint32_t)table->now_tick - sampled[i].birth_tick;
            *block = (struct liveheap_block){.start = keys[i],
                                             .size = sampled[i].size,
                                             .age_ns = (uint64_t)age << MEMTRACE_TICK_SHIFT,
                                             .context = sampled[i].context,
                                             .thread = sampled[i].thread};
            if (keys[i] > 1 && block_contains(block, address)) {
                return 1;
            }
        }
    }
    return 0;
}

static int find_sampled(const struct table *table, uint64_t address, struct liveheap_block *block) {
    struct memtrace_sampled_heap heap;
    int found = 0;
    if (read_memory(table->pid, table->root, &heap, sizeof heap) != 0) {
        return -1;
    }
    for (size_t i = 0; i < MEMTRACE_SAMPLED_LEVELS && heap.level[i] != 0 && found == 0; i++) {
        found = find_on_level(table, heap.level[i], address, block);
    }
    return found;
}

static int liveheap_explain(pid_t pid, int reason, struct error *error) {
    if (reason == ESRCH) {
        return error_set(error, "process %ld is gone", (long)pid);
    }
    if (reason == EPERM || reason == EACCES) {
        return error_set(error,
                         "the memory of process %ld may not be read: ask as root, or allow it with "
                         "sysctl kernel.yama.ptrace_scope=0",
                         (long)pid);
    }
    return error_set(error, "the records of process %ld cannot be read: %s", (long)pid,
                     strerror(reason));
}

int liveheap_find(pid_t pid, const struct memtrace_header *header, uint64_t address,
                  uint64_t now_ns, struct liveheap_block *block, struct error *error) {
    if (address >> memtrace_address_bits(header->machine) != 0) {
        return 0;
    }
    uint64_t zero_ns =
        header->birth_zero_ns != 0 ? header->birth_zero_ns : header->start_monotonic_ns;
    uint64_t tick = now_ns > zero_ns ? (now_ns - zero_ns) >> MEMTRACE_TICK_SHIFT : 0;
    struct table tables[3] = {
        {pid, header->pool_heap, MEMTRACE_POOL_SHIFT, true, tick},
        {pid, header->foreign_heap, MEMTRACE_POOL_SHIFT, false, tick},
        {pid, header->shadow_heap, MEMTRACE_FINE_SHIFT, false, tick},
    };
    if (memtrace_address_bits(header->machine) <= 32) {
        return error_set(error, "process %ld has pointers of 32 bits: its records are not read",
                         (long)pid);
    }
    if (!header->shadow_heap && !header->pool_heap) {
        return error_set(error, "process %ld keeps no record of its blocks", (long)pid);
    }
    struct table sampled = {pid, header->sampled_heap, 0, false, tick};
    for (int i = 0; i < 3; i++) {
        int found = tables[i].root ? find_in_table(&tables[i], address, block) : 0;
        if (found < 0) {
            return liveheap_explain(pid, errno, error);
        }
        if (found > 0) {
            return 1;
        }
    }
    int found = sampled.root ? find_sampled(&sampled, address, block) : 0;
    return found < 0 ? liveheap_explain(pid, errno, error) : found;
}
