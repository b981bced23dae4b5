/* SPDX-License-Identifier: MIT */
/* drain.c: chunks of a region. See drain.h. */
#include "collect/drain.h"

#include "analyze/read/filemap.h"

#include <stdlib.h>
#include <string.h>

enum {
    STREAM_LIMIT = 1 << 24,
    BITS = 64,
    SEGMENT_BYTES = MEMTRACE_CHUNKS_PER_SEGMENT * MEMTRACE_CHUNK_BYTES,
};

static uint32_t load(const uint32_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

int drain_open(struct drain *drain, struct memtrace_recording *recording) {
    *drain = (struct drain){.recording = recording};
    drain->found = malloc(MEMTRACE_CHUNK_LIMIT * sizeof *drain->found);
    return drain->found != NULL ? 0 : -1;
}

void drain_close(struct drain *drain) {
    for (size_t i = 0; i < MEMTRACE_CHUNK_SEGMENTS; i++) {
        if (drain->segments[i] != NULL) {
            filemap_close(drain->segments[i], SEGMENT_BYTES);
        }
    }
    free(drain->streams);
    free(drain->found);
    *drain = (struct drain){0};
}

void drain_map(struct drain *drain, const struct profile *profile, int fd) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind != MEMTRACE_SEGMENT_EVENTS || segment->index >= MEMTRACE_CHUNK_SEGMENTS ||
            segment->size < SEGMENT_BYTES || drain->segments[segment->index] != NULL) {
            continue;
        }
        drain->segments[segment->index] =
            filemap_open(fd, segment->offset, SEGMENT_BYTES, FILEMAP_WRITES);
    }
}

/* --- streams ---------------------------------------------------------------------------------- */

static int grow_streams(struct drain *drain, uint32_t stream) {
    uint32_t capacity = drain->stream_capacity != 0 ? drain->stream_capacity : 64;
    struct drain_place *grown;
    while (capacity <= stream) {
        capacity *= 2;
    }
    if (capacity == drain->stream_capacity) {
        return 0;
    }
    grown = calloc(capacity, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    if (drain->streams != NULL) {
        memcpy(grown, drain->streams, drain->stream_capacity * sizeof *grown);
    }
    free(drain->streams);
    drain->streams = grown;
    drain->stream_capacity = capacity;
    return 0;
}

static bool is_before(struct drain_place a, struct drain_place b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.word < b.word;
}

int drain_note_written(struct drain *drain, uint32_t stream, struct drain_place end) {
    if (stream == 0 || stream >= STREAM_LIMIT) {
        return 0;
    }
    if (grow_streams(drain, stream) != 0) {
        return -1;
    }
    if (is_before(drain->streams[stream], end)) {
        drain->streams[stream] = end;
    }
    return 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

static void give_back(struct drain *drain, struct memtrace_chunk *chunk, uint32_t number) {
    __atomic_store_n(&chunk->state, MEMTRACE_CHUNK_FREE, __ATOMIC_RELAXED);
    __atomic_fetch_or(&drain->recording->free_chunks[number / BITS], UINT64_C(1) << number % BITS,
                      __ATOMIC_RELEASE);
}

/* The words of a chunk that are in the file. */
static uint32_t drained(const struct drain *drain, const struct drain_chunk *found) {
    struct drain_place written = drain->streams[found->stream];
    uint32_t words = found->chunk->drained;
    return written.sequence == found->sequence && written.word > words ? written.word : words;
}

/* Adds a chunk that has something for us. 0 or -1 (out of memory). */
static int look_at(struct drain *drain, struct memtrace_chunk *chunk, uint32_t number) {
    uint32_t state = load(&chunk->state);
    struct drain_chunk found = {chunk, number, chunk->stream, chunk->sequence};
    if (state != MEMTRACE_CHUNK_OPEN && state != MEMTRACE_CHUNK_FULL) {
        return 0; /* just taken */
    }
    if (found.stream == 0 || found.stream >= STREAM_LIMIT ||
        chunk->thread >= 1u << MEMTRACE_THREAD_BITS) {
        drain->damaged++;
        return 0;
    }
    if (grow_streams(drain, found.stream) != 0) {
        return -1;
    }
    if (found.sequence < drain->streams[found.stream].sequence) {
        if (state == MEMTRACE_CHUNK_FULL) { /* who wrote it down died before he gave it back */
            give_back(drain, chunk, number);
        }
    } else if (state == MEMTRACE_CHUNK_FULL || load(&chunk->used) > drained(drain, &found)) {
        drain->found[drain->found_count++] = found;
    }
    return 0;
}

static int by_stream(const void *left, const void *right) {
    const struct drain_chunk *a = left;
    const struct drain_chunk *b = right;
    if (a->stream != b->stream) {
        return a->stream < b->stream ? -1 : 1;
    }
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

int drain_look(struct drain *drain) {
    int result = 0;
    drain->found_count = 0;
    for (uint32_t word = 0; word < MEMTRACE_CHUNK_LIMIT / BITS && result == 0; word++) {
        uint64_t taken = ~__atomic_load_n(&drain->recording->free_chunks[word], __ATOMIC_ACQUIRE);
        for (; taken != 0 && result == 0; taken &= taken - 1) {
            uint32_t number = word * BITS + (uint32_t)__builtin_ctzll(taken);
            uint32_t place = number % MEMTRACE_CHUNKS_PER_SEGMENT;
            struct memtrace_chunk *segment = drain->segments[number / MEMTRACE_CHUNKS_PER_SEGMENT];
            if (place != 0 && segment != NULL) {
                result = look_at(drain, segment + place, number);
            }
        }
    }
    qsort(drain->found, drain->found_count, sizeof *drain->found, by_stream);
    return result;
}

void drain_count_free(const struct drain *drain, unsigned *spare, unsigned *to_come) {
    *spare = *to_come = 0;
    for (size_t i = 0; i < MEMTRACE_CHUNK_LIMIT / BITS; i++) {
        *spare += (unsigned)__builtin_popcountll(
            __atomic_load_n(&drain->recording->free_chunks[i], __ATOMIC_RELAXED));
    }
    for (size_t i = 0; i < MEMTRACE_CHUNK_SEGMENTS; i++) {
        *to_come += drain->segments[i] == NULL ? MEMTRACE_CHUNKS_PER_SEGMENT - 1 : 0;
    }
}

bool drain_is_tight(const struct drain *drain) {
    unsigned spare;
    unsigned to_come;
    drain_count_free(drain, &spare, &to_come);
    return spare == 0 || spare + to_come < MEMTRACE_CHUNK_LIMIT / 2;
}

/* --- spans ------------------------------------------------------------------------------------ */

static uint32_t pending(const struct drain *drain, const struct drain_chunk *found) {
    uint32_t used = load(&found->chunk->used);
    uint32_t done = drained(drain, found);
    used = used < MEMTRACE_CHUNK_WORDS ? used : MEMTRACE_CHUNK_WORDS;
    return used > done ? used - done : 0;
}

/* The place behind the chunks of one stream. */
static size_t stream_end(const struct drain *drain, size_t i) {
    uint32_t stream = drain->found[i].stream;
    while (i < drain->found_count && drain->found[i].stream == stream) {
        i++;
    }
    return i;
}

bool drain_next_span(const struct drain *drain, bool ended, struct drain_span *span) {
    size_t first = span->next;
    size_t end;
    /* What seems to be missing was taken by the thread after we had looked at its place. */
    while (!ended && first < drain->found_count &&
           drain->found[first].sequence != drain->streams[drain->found[first].stream].sequence) {
        first = stream_end(drain, first);
    }
    if (first >= drain->found_count) {
        return false;
    }
    end = stream_end(drain, first);
    *span = (struct drain_span){.first = first,
                                .stream = drain->found[first].stream,
                                .thread = drain->found[first].chunk->thread};
    do {
        span->words += pending(drain, &drain->found[first + span->count++]);
    } while (first + span->count < end && drain->found[first + span->count].sequence ==
                                              drain->found[first + span->count - 1].sequence + 1);
    span->full = span->count - 1;
    span->full += load(&drain->found[first + span->full].chunk->state) == MEMTRACE_CHUNK_FULL;
    span->next = ended ? first + span->count : end;
    return true;
}

/* --- events ----------------------------------------------------------------------------------- */

/* A chunk that has a successor is full, whatever was seen when it was found: its thread left it
 * before it took the next one. */
static void open_chunk(struct drain_cursor *cursor) {
    const struct drain *drain = cursor->drain;
    const struct drain_chunk *found = &drain->found[cursor->span->first + cursor->at];
    uint32_t state = load(&found->chunk->state); /* before the words: those of a full one are all */
    cursor->is_last = state != MEMTRACE_CHUNK_FULL && cursor->at + 1 == cursor->span->count;
    chunkread_start(&cursor->words, found->chunk, load(&found->chunk->used));
    if (chunkread_skip(&cursor->words, drained(drain, found)) != 0) {
        cursor->words.at = cursor->words.end;
    }
    cursor->place = (struct drain_place){found->sequence, cursor->words.at};
}

void drain_start(struct drain *drain, const struct drain_span *span, struct drain_cursor *cursor) {
    *cursor = (struct drain_cursor){.drain = drain, .span = span};
    open_chunk(cursor);
}

static void next_chunk(struct drain_cursor *cursor) {
    cursor->place = (struct drain_place){cursor->place.sequence + 1, 0};
    if (++cursor->at < cursor->span->count) {
        open_chunk(cursor);
    }
}

int drain_next(struct drain_cursor *cursor, struct event *event) {
    while (cursor->at < cursor->span->count) {
        int result = chunkread_next(&cursor->words, event);
        if (result < 0) {
            cursor->drain->damaged++;
            cursor->words.at = cursor->words.end;
        }
        cursor->place.word = cursor->words.at;
        if (result > 0) {
            return 1;
        }
        if (cursor->is_last) {
            return 0;
        }
        next_chunk(cursor);
    }
    return 0;
}

struct drain_place drain_here(struct drain_cursor *cursor) {
    if (cursor->at < cursor->span->count && !cursor->is_last &&
        cursor->words.at == cursor->words.end) {
        next_chunk(cursor);
    }
    return cursor->place;
}

void drain_commit(struct drain_cursor *cursor) {
    struct drain *drain = cursor->drain;
    const struct drain_chunk *found = &drain->found[cursor->span->first];
    drain->streams[cursor->span->stream] = drain_here(cursor);
    for (; cursor->returned < cursor->at; cursor->returned++) {
        const struct drain_chunk *done = &found[cursor->returned];
        if (load(&done->chunk->state) == MEMTRACE_CHUNK_FULL) {
            give_back(drain, done->chunk, done->number);
        }
    }
    if (cursor->at < cursor->span->count) {
        found[cursor->at].chunk->drained = cursor->place.word;
    }
}
