/* SPDX-License-Identifier: MIT */
/* byteorder.c: see byteorder.h. The layouts are those of include/memtrace/format.h. */
#include "analyze/read/byteorder.h"

#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <stdint.h>
#include <string.h>

/* So many fields of this width, one behind the other; 1: bytes, which stay. */
struct run {
    unsigned char width;
    unsigned short count;
};

static const struct run header_runs[] = {
    {1, 8},                             /* magic */
    {4, 4},                             /* version, header_size, byte_order, machine */
    {8, 1},                             /* end */
    {4, 10},                            /* state to pool_count */
    {8, 6},                             /* context_count to end_monotonic_ns */
    {4, 2},                             /* peak_epoch, peak_threads */
    {8, 5},                             /* live_bytes to inherited_bytes */
    {8, MEMTRACE_LOSS_FIRST_KINDS},     /* lost */
    {8, 5},                             /* churn_bytes to churn_limit_bytes */
    {4, 2},                             /* top, summary */
    {8, 3},                             /* snapshot_request, clock_ns, log_size_bytes */
    {8, 1},                             /* limit: bytes, */
    {4, 2},                             /* percent, action */
    {4, 4},                             /* recording: state to stream_count, */
    {8, 7},                             /* heartbeat_ns to cull_ns, */
    {4, 2},                             /* embed, begun, */
    {8, 7},                             /* size_least to file_bytes, */
    {8, MEMTRACE_CHUNK_LIMIT / 64},     /* free_chunks, */
    {1, 1016},                          /* path */
    {4, 3},                             /* owner */
    {1, MEMTRACE_NOT_FOLLOWED_KINDS},   /* not_followed */
    {8, 2},                             /* run: id, pid_namespace, */
    {4, 2},                             /* children, not_reached */
    {8, 4},                             /* peak_resident_bytes to path_bytes */
    {4, 2},                             /* merged, mode */
    {8, 1},                             /* birth_zero_ns */
    {8, MEMTRACE_LOSS_MORE_KINDS},      /* more_lost */
    {8, 11},                            /* sample_bytes to command_bytes */
    {1, 40},                            /* name */
    {8, 1},                             /* foreign_heap */
    {4, 1},                             /* malloc_by: place, */
    {1, 60 + 2048 + 4096 + 4096 + 4096} /* name; the strings */
};

static const struct run segment_runs[] = {{4, 1}, {2, 2}, {4, 2}, {8, 1}, {4, 4}, {1, 24}};

enum { MOST_RUNS = 4 };

/* Of one item. */
static const struct layout {
    unsigned kind;
    struct run runs[MOST_RUNS];
} layouts[] = {
    {MEMTRACE_SEGMENT_TREE, {{8, 1}, {4, 2}}},
    {MEMTRACE_SEGMENT_NODES, {{8, 1}}},
    {MEMTRACE_SEGMENT_AREAS, {{8, 1}}},
    {MEMTRACE_SEGMENT_LEDGER, {{8, 6}, {4, 2}}},
    {MEMTRACE_SEGMENT_CELLS, {{8, 6}, {4, 2}}},
    {MEMTRACE_SEGMENT_LIFETIMES, {{4, MEMTRACE_LIFETIME_BUCKETS}}},
    {MEMTRACE_SEGMENT_THREADS, {{4, 4}, {8, 8}, {4, 4}, {1, 32}}},
    {MEMTRACE_SEGMENT_MODULES, {{4, 2}, {8, 5}, {1, 32 + 1024 - 80}}},
    {MEMTRACE_SEGMENT_POOLS, {{1, 64}}},
    {MEMTRACE_SEGMENT_POOL_ROOM, {{8, 10}}},
    {MEMTRACE_SEGMENT_FREES, {{8, 2}}},
    {MEMTRACE_SEGMENT_PROCESSES, {{4, 4}, {8, 8}, {1, 16}, {8, 2}}},
    {MEMTRACE_SEGMENT_PATHS, {{8, 1}, {4, 2}, {8, 4}}},
    {MEMTRACE_SEGMENT_ESTIMATES, {{8, 4}}},
};

static void turn_field(unsigned char *field, unsigned width) {
    for (unsigned i = 0; i < width / 2; i++) {
        unsigned char first = field[i];
        field[i] = field[width - 1 - i];
        field[width - 1 - i] = first;
    }
}

/* Of one struct of so many runs; its size. */
static size_t byteorder_turn(unsigned char *bytes, const struct run *runs, size_t count) {
    unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; runs[i].width > 1 && k < runs[i].count; k++) {
            turn_field(at + (size_t)k * runs[i].width, runs[i].width);
        }
        at += (size_t)runs[i].width * runs[i].count;
    }
    return (size_t)(at - bytes);
}

void byteorder_turn_header(struct memtrace_header *header) {
    byteorder_turn((unsigned char *)header, header_runs, sizeof header_runs / sizeof *header_runs);
}

static const struct layout *find_layout(unsigned kind) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i].kind == kind) {
            return &layouts[i];
        }
    }
    return NULL;
}

static size_t item_size(const struct layout *layout) {
    size_t size = 0;
    for (int i = 0; i < MOST_RUNS; i++) {
        size += (size_t)layout->runs[i].width * layout->runs[i].count;
    }
    return size;
}

/* The items of a segment whose header was turned, of which `room` bytes are there. */
static void turn_items(struct memtrace_segment *segment, size_t room) {
    const struct layout *layout = find_layout(segment->kind);
    unsigned char *bytes = (unsigned char *)segment;
    size_t size;
    if (layout == NULL || segment->item_size != item_size(layout)) {
        segment->kind = 0;
        return;
    }
    size = segment->item_size;
    room = segment->size < room ? segment->size : room;
    for (size_t at = (sizeof *segment + size - 1) / size * size; at + size <= room; at += size) {
        byteorder_turn(bytes + at, layout->runs, MOST_RUNS);
    }
}

/* Bytes to the next one: of a segment that is published, or was to be. */
static size_t segment_step(const struct memtrace_segment *segment, size_t room) {
    bool is_whole = segment->size >= MEMTRACE_PAGE_SIZE && segment->size % MEMTRACE_PAGE_SIZE == 0;
    bool is_segment = segment->magic == MEMTRACE_SEGMENT_MAGIC ||
                      (segment->magic == 0 && segment->header_size == sizeof *segment &&
                       find_layout(segment->kind) != NULL && segment->size <= room);
    return !is_whole || !is_segment ? MEMTRACE_PAGE_SIZE
           : segment->size < room   ? segment->size
                                    : room;
}

void byteorder_turn_file(unsigned char *bytes, size_t size) {
    size_t at = MEMTRACE_HEADER_SIZE;
    byteorder_turn_header((struct memtrace_header *)bytes);
    while (at + sizeof(struct memtrace_segment) <= size) {
        struct memtrace_segment *segment = (struct memtrace_segment *)(bytes + at);
        size_t room = size - at;
        size_t step;
        byteorder_turn((unsigned char *)segment, segment_runs,
                       sizeof segment_runs / sizeof *segment_runs);
        step = segment_step(segment, room);
        if (segment->magic == MEMTRACE_SEGMENT_MAGIC) {
            turn_items(segment, room);
        }
        at += step;
    }
}
