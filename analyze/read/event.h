/* SPDX-License-Identifier: MIT */
/*
 * event.h: one event of a recording as the tools see it, whatever bytes said it.
 *
 * Called by analyze/read, analyze/model and collect. A value.
 */
#ifndef ANALYZE_READ_EVENT_H
#define ANALYZE_READ_EVENT_H

#include "memtrace/events.h"
#include "memtrace/recording.h"

#include <stdbool.h>
#include <stdint.h>

/* A recorded block's name: see "numbers" in events.h. number 0: no block. */
struct event_block {
    uint64_t number;
    uint32_t thread;
};

enum event_kind {
    EVENT_ALLOC = 1, /* with old.number != 0: a realloc that also ended `old` */
    EVENT_FREE = 2,
    EVENT_MAP = 3,
    EVENT_MARK = 4,
    EVENT_LOST = 5,
};

/* A hundred million of them go from one thread to another: what only some kinds have shares its
 * place, and means nothing in the others. */
struct event {
    enum event_kind kind;
    uint32_t context;         /* of the allocation, mapping or (0: not known) free */
    uint64_t time_ns;         /* since the program's start, as finely as it was recorded */
    struct event_block block; /* ALLOC: the new block; FREE: the one that ends */
    uint64_t address;         /* ALLOC (0: the file has none; below 2^48), MAP */
    uint64_t size;            /* ALLOC, MAP */
    uint32_t slack;           /* ALLOC: usable size minus size, at most MEMTRACE_SLACK_MOST */
    uint8_t flags;            /* ALLOC: MEMTRACE_ALLOC_*; MAP: MAP_* that were kept */
    uint8_t alignment;        /* ALLOC: log2 of what was asked for; 0: nothing special */
    uint8_t operation;        /* MAP: enum memtrace_map_operation; MARK: enum memtrace_mark */
    uint8_t protection;       /* MAP */
    union {
        struct event_block old; /* ALLOC */
        struct {                /* MAP */
            uint64_t old_address;
            uint64_t old_size;
        };
        struct { /* LOST */
            uint64_t lost_allocs;
            uint64_t lost_frees;
        };
        struct {              /* MARK */
            const char *text; /* not terminated; owned by who made the event */
            uint32_t text_size;
        };
    };
    union {
        uint64_t weight; /* ALLOC: bytes it stands for where the recording is sampled; else 0 */
        uint64_t id;     /* MARK: the scope; of the heap from before: bytes */
    };
};

/* Whether it is no mark of the program's, but tells of the heap that it had when it was attached
 * to: so much is there, or a block of that is freed. */
static inline bool event_is_of_before(const struct event *event) {
    return event->kind == EVENT_MARK && (event->operation == MEMTRACE_MARK_BEFORE ||
                                         event->operation == MEMTRACE_MARK_BEFORE_FREED);
}
static inline bool event_is_before_freed(const struct event *event) {
    return event->kind == EVENT_MARK && event->operation == MEMTRACE_MARK_BEFORE_FREED;
}

#endif
