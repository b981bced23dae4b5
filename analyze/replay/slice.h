/* SPDX-License-Identifier: MIT */
/*
 * slice.h: what happened in a slice of a recording: a run of events in the order of the replay,
 * added up by context and by thread. Slices that follow each other add up to a longer one, and all
 * of them to the whole; so a window of a recording is known without its events.
 *
 * Called by analyze/model: the accounts makes slices, sums adds them up, index keeps them, packed:
 * what did not change takes no room. Counts are in units of 1 / ACCOUNTS_ONE. A slice is a value,
 * whose bytes belong to the job that made it. Readers of a slice never read outside it, whatever it
 * holds.
 *
 *   highest: how far the heap's live bytes rose above where the slice began, >= 0; that moment is
 *   its maximum. Each context's `peak` is by how much it had changed there.
 */
#ifndef ANALYZE_REPLAY_SLICE_H
#define ANALYZE_REPLAY_SLICE_H

#include "analyze/model/model.h"
#include "analyze/model/wrap.h"
#include "analyze/read/varint.h"
#include "memtrace/format.h"

#define ACCOUNTS_ONE UINT64_C(65536)

/* Of units of 1 / ACCOUNTS_ONE, rounded. */
static inline uint64_t slice_whole_count(uint64_t units) {
    return (units + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE;
}

struct slice_variance {
    double total, allocations, live, maximum; /* live: the change; maximum: that at the maximum */
};

struct slice {
    uint32_t first_tick; /* of the events in it; none: first_tick > last_tick */
    uint32_t last_tick;
    uint64_t events;
    int64_t change; /* of the heap's live bytes */
    int64_t highest;
    uint64_t maximum_ns;  /* when it was reached; 0: where the slice began */
    bool at_maximum;      /* it ends at its maximum */
    uint64_t error_bytes; /* how far the maximum of a window may be off, with several threads */
    struct slice_variance variance;
    uint64_t contexts; /* how many there are in it */
    uint64_t threads;
    unsigned char *bytes;
    size_t size;
};

struct slice_context {
    uint32_t id;
    uint64_t alloc_bytes, alloc_units;
    uint64_t free_bytes, free_units;
    uint64_t temporary;
    uint64_t peak; /* wraps below 0 */
    double total_variance;
    double live_variance; /* the change */
    uint64_t lifetimes[MEMTRACE_LIFETIME_BUCKETS];
};

struct slice_thread {
    uint32_t id;
    uint64_t alloc_units, alloc_bytes;
    uint64_t free_units, free_bytes;
    uint64_t foreign; /* so many struct slice_foreign follow */
};

/* What a thread freed of another's. */
struct slice_foreign {
    uint32_t owner;
    uint64_t units, bytes;
};

/* Frees it early. */
void slice_free(struct slice *slice);

/* Writing: contexts by id, then threads by id, each with its foreign ones by owner. */
struct slice_writer {
    struct slice *slice;
    struct varint_writer bytes;
    uint32_t last_id;
};
void slice_put_context(struct slice_writer *writer, const struct slice_context *context);
/* A thread, and what it freed of others', from *next on in the sorted list, which moves
 * behind it. false: nothing was put, since the thread did nothing. */
bool slice_put_thread_of(struct slice_writer *writer, struct slice_thread thread,
                         const struct foreign *foreign, size_t *next);
/* The bytes become the slice's. */
void slice_finish(struct slice_writer *writer);

/* Reading: first all contexts, then all threads. */
struct slice_reader {
    struct varint_reader bytes;
    bool failed; /* damaged */
    uint64_t contexts, threads;
    uint32_t last_id;
};
void slice_read(struct slice_reader *reader, const struct slice *slice);
bool slice_next_context(struct slice_reader *reader, struct slice_context *context);
bool slice_next_thread(struct slice_reader *reader, struct slice_thread *thread);
void slice_next_foreign(struct slice_reader *reader, struct slice_foreign *foreign);

/* What `left`, then `right`, add up to, in *left; *right is freed. */
void slice_join(struct slice *left, struct slice *right);
/* The same of what stands beside the bytes alone, but for ticks and events. Whether the maximum of
 * both is in the right one. */
bool slice_add_totals(struct slice *left, const struct slice *right);

#endif
