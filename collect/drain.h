/* SPDX-License-Identifier: MIT */
/*
 * drain.h: takes events out of the chunks of a region (memtrace/events.h) and gives chunks back.
 *
 * Called by collect/record, from one thread. What a drain needs to know lies in the region (a
 * chunk's `drained`) and in the blocks of the recording, so another drain can go on where one ended
 * in the middle: drain_note_written() tells it what the file holds already.
 *
 * The region belongs to a program that may be damaged, so everything in it is checked; what makes
 * no sense is stepped over and counted.
 */
#ifndef COLLECT_DRAIN_H
#define COLLECT_DRAIN_H

#include "analyze/read/event.h"
#include "analyze/read/profile.h"

#include <stdbool.h>

/* Before it everything of a stream is in the file. */
struct drain_place {
    uint32_t sequence;
    uint32_t word;
};

struct drain_chunk {
    struct memtrace_chunk *chunk;
    uint32_t number; /* of the chunk in the region */
    uint32_t stream;
    uint32_t sequence;
};

struct drain {
    struct memtrace_recording *recording;                     /* in the region */
    struct memtrace_chunk *segments[MEMTRACE_CHUNK_SEGMENTS]; /* mapped; NULL: there is none yet */
    struct drain_place *streams;                              /* by stream */
    uint32_t stream_capacity;
    struct drain_chunk *found; /* of the last look, by stream and sequence */
    size_t found_count;
    uint64_t damaged; /* chunks with something in them that is no event */
};

/* 0, or -1: out of memory. */
int drain_open(struct drain *drain, struct memtrace_recording *recording);
void drain_close(struct drain *drain);

/* Maps the segments of the region that were added since. */
void drain_map(struct drain *drain, const struct profile *profile, int fd);

/* The file holds all of the stream before this place. 0, or -1: out of memory. */
int drain_note_written(struct drain *drain, uint32_t stream, struct drain_place end);

/* Looks at all chunks. 0, or -1: out of memory. */
int drain_look(struct drain *drain);

/* Buffers that are free, and those that can still be made, as far as is known. */
void drain_count_free(const struct drain *drain, unsigned *spare, unsigned *to_come);

/* Whether threads may soon find no free chunk: less than half of those that there can be are left,
 * or none of those that there are. */
bool drain_is_tight(const struct drain *drain);

/*
 * What one stream has in its chunks, without a gap: found[first .. first + count). Steps from span
 * to span: start from {0}. ended: nobody writes any more, so that gaps are what was lost; else what
 * lies behind a gap waits for the next look. false: there are no more.
 */
struct drain_span {
    size_t first;
    size_t count;
    size_t full; /* how many of them their thread has left */
    size_t next; /* drain_next_span's */
    uint32_t stream;
    uint32_t thread;
    uint32_t words; /* not written yet, when looked at */
};
bool drain_next_span(const struct drain *drain, bool ended, struct drain_span *span);

/* The words of a chunk (memtrace/events.h). They may be damaged: nothing past `end` is read,
 * whatever they say. */
struct drain_words {
    const uint64_t *word;
    uint32_t at;  /* of the next event */
    uint32_t end; /* behind the last published word */
    uint32_t thread;
    uint64_t number; /* of the next allocation */
    uint64_t time_ns;
};

/* Reads a span's events. */
struct drain_cursor {
    struct drain *drain;
    const struct drain_span *span;
    size_t at;                /* the chunk, from 0 on */
    size_t returned;          /* chunks given back */
    bool is_last;             /* its thread may still append to it */
    struct drain_words words; /* of this chunk */
    struct drain_place place; /* behind what was read */
};
void drain_start(struct drain *drain, const struct drain_span *span, struct drain_cursor *cursor);
/* 1, or 0: at the end, for now. */
int drain_next(struct drain_cursor *cursor, struct event *event);
/* The number that the next allocation has. */
static inline uint64_t drain_number(const struct drain_cursor *cursor) {
    return cursor->words.number;
}

/* Behind what was read: the next chunk's start where one is read to its end. */
struct drain_place drain_here(struct drain_cursor *cursor);
/* What lies before the cursor is in the file, or will never be: notes it and gives chunks back. */
void drain_commit(struct drain_cursor *cursor);

#endif
