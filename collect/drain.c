/* SPDX-License-Identifier: MIT */
/* drain.c: chunks of a region, and the events in their words. See drain.h. */
#include "collect/drain.h"

#include "analyze/read/filemap.h"

#include <stdlib.h>
#include <string.h>

enum {
    STREAM_LIMIT = 1 << 24,
    BITS = 64,
    KIND_BITS = 4, /* of a word that begins an event */
    MAP_WORDS = 5,
    SEGMENT_BYTES = MEMTRACE_CHUNKS_PER_SEGMENT * MEMTRACE_CHUNK_BYTES,
};

static uint32_t drain_load(const uint32_t *field) {
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

int drain_note_written(struct drain *drain, uint32_t stream, struct drain_place end) {
    struct drain_place *known;
    if (stream == 0 || stream >= STREAM_LIMIT) {
        return 0;
    }
    if (grow_streams(drain, stream) != 0) {
        return -1;
    }
    known = &drain->streams[stream];
    if (known->sequence != end.sequence ? known->sequence < end.sequence : known->word < end.word) {
        *known = end;
    }
    return 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

static void drain_give_back(struct drain *drain, struct memtrace_chunk *chunk, uint32_t number) {
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
static int drain_look_at(struct drain *drain, struct memtrace_chunk *chunk, uint32_t number) {
    uint32_t state = drain_load(&chunk->state);
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
            drain_give_back(drain, chunk, number);
        }
    } else if (state == MEMTRACE_CHUNK_FULL || drain_load(&chunk->used) > drained(drain, &found)) {
        drain->found[drain->found_count++] = found;
    }
    return 0;
}

static int drain_compare(const void *left, const void *right) {
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
                result = drain_look_at(drain, segment + place, number);
            }
        }
    }
    qsort(drain->found, drain->found_count, sizeof *drain->found, drain_compare);
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
    uint32_t used = drain_load(&found->chunk->used);
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
    span->full += drain_load(&drain->found[first + span->full].chunk->state) == MEMTRACE_CHUNK_FULL;
    span->next = ended ? first + span->count : end;
    return true;
}

/* --- words to events -------------------------------------------------------------------------- */

static uint64_t word_bits(uint64_t word, unsigned first, unsigned count) {
    return (word >> first) & ((UINT64_C(1) << count) - 1);
}

static struct event_block word_block(uint64_t word) {
    return (struct event_block){.number = word >> 16, .thread = (uint32_t)word_bits(word, 4, 12)};
}

/* Each of the following reads the event whose first word is at *at, with `left` words from there to
 * the end, and returns its words; 0: damaged. */

static uint32_t words_alloc(struct drain_words *read, const uint64_t *at, uint32_t left,
                            struct event *event) {
    if (left < 2) {
        return 0;
    }
    event->kind = EVENT_ALLOC;
    event->context = (uint32_t)word_bits(at[0], 4, 24);
    event->size |= at[0] >> 28; /* a prefix may have said what lies above */
    event->address = word_bits(at[1], 0, 48);
    event->slack = (uint32_t)word_bits(at[1], 48, 12);
    event->flags = (uint8_t)word_bits(at[1], 60, 4);
    event->block = (struct event_block){.number = read->number++, .thread = read->thread};
    return 2;
}

/* An allocation with what stands before it. */
static uint32_t words_prefixed(struct drain_words *read, const uint64_t *at, uint32_t left,
                               struct event *event) {
    for (uint32_t count = 0; count < left; count++) {
        uint32_t length;
        switch (word_bits(at[count], 0, KIND_BITS)) {
        case MEMTRACE_WORD_REALLOC:
            event->old = word_block(at[count]);
            break;
        case MEMTRACE_WORD_EXTRA:
            event->alignment = (uint8_t)word_bits(at[count], 4, 6);
            event->size = word_bits(at[count], 10, 12) << 36;
            break;
        case MEMTRACE_WORD_WEIGHT:
            event->weight = at[count] >> KIND_BITS;
            break;
        case MEMTRACE_WORD_ALLOC:
            length = words_alloc(read, at + count, left - count, event);
            return length != 0 ? count + length : 0;
        default:
            return 0;
        }
    }
    return 0;
}

static uint32_t words_free(const uint64_t *at, uint32_t left, struct event *event) {
    uint32_t length = word_bits(at[0], 0, KIND_BITS) == MEMTRACE_WORD_FREE_AT ? 2 : 1;
    if (left < length) {
        return 0;
    }
    event->kind = EVENT_FREE;
    event->block = word_block(at[0]);
    event->context = length == 2 ? (uint32_t)word_bits(at[1], 0, MEMTRACE_CONTEXT_BITS) : 0;
    return length;
}

static uint32_t words_map(const uint64_t *at, uint32_t left, struct event *event) {
    if (left < MAP_WORDS) {
        return 0;
    }
    event->kind = EVENT_MAP;
    event->operation = (uint8_t)word_bits(at[0], 4, 4);
    event->protection = (uint8_t)word_bits(at[0], 8, 8);
    event->flags = (uint8_t)word_bits(at[0], 16, 8);
    event->context = (uint32_t)word_bits(at[0], 24, 24);
    event->address = at[1];
    event->size = at[2];
    event->old_address = at[3];
    event->old_size = at[4];
    return MAP_WORDS;
}

static uint32_t words_mark(const uint64_t *at, uint32_t left, struct event *event) {
    uint32_t bytes = (uint32_t)word_bits(at[0], 8, 16);
    uint32_t length = 1 + (bytes + 7) / 8;
    if (left < length) {
        return 0;
    }
    event->kind = EVENT_MARK;
    event->operation = (uint8_t)word_bits(at[0], 4, 4);
    event->id = word_bits(at[0], 24, 40);
    event->text = (const char *)(at + 1);
    event->text_size = bytes;
    return length;
}

static uint32_t words_before(const uint64_t *at, uint32_t left, struct event *event) {
    if (left < 2) {
        return 0;
    }
    event->kind = EVENT_MARK;
    event->operation = (uint8_t)word_bits(at[0], 4, 4);
    event->context = (uint32_t)word_bits(at[0], 8, MEMTRACE_CONTEXT_BITS);
    event->id = at[1];
    event->text = "";
    event->text_size = 0;
    return 2;
}

static uint32_t words_event(struct drain_words *read, const uint64_t *at, uint32_t left,
                            struct event *event) {
    switch (word_bits(at[0], 0, KIND_BITS)) {
    case MEMTRACE_WORD_ALLOC:
        return words_alloc(read, at, left, event);
    case MEMTRACE_WORD_FREE:
    case MEMTRACE_WORD_FREE_AT:
        return words_free(at, left, event);
    case MEMTRACE_WORD_REALLOC:
    case MEMTRACE_WORD_EXTRA:
    case MEMTRACE_WORD_WEIGHT:
        return words_prefixed(read, at, left, event);
    case MEMTRACE_WORD_MAP:
        return words_map(at, left, event);
    case MEMTRACE_WORD_MARK:
        return words_mark(at, left, event);
    case MEMTRACE_WORD_BEFORE:
        return words_before(at, left, event);
    case MEMTRACE_WORD_LOST:
        event->kind = EVENT_LOST;
        event->lost_allocs = word_bits(at[0], 4, 30);
        event->lost_frees = word_bits(at[0], 34, 30);
        return 1;
    default:
        return 0;
    }
}

/* Whether the word only says something about all that follows, and takes it in. */
static bool words_setting(struct drain_words *read, uint64_t word) {
    switch (word_bits(word, 0, KIND_BITS)) {
    case MEMTRACE_WORD_TIME:
        read->time_ns = word >> KIND_BITS;
        return true;
    case MEMTRACE_WORD_NUMBERS:
        read->number = word >> KIND_BITS;
        return true;
    default:
        return false;
    }
}

/* Field by field: compilers make a slow string instruction of a struct of zeros. */
static void event_clear(struct event *event, uint64_t time_ns) {
    event->kind = 0;
    event->context = 0;
    event->time_ns = time_ns;
    event->block.number = event->old.number = 0;
    event->block.thread = event->old.thread = 0;
    event->address = event->size = 0;
    event->weight = 0;
    event->slack = 0;
    event->flags = event->alignment = 0;
    event->operation = event->protection = 0;
}

/* Fills *event and steps behind it; its text points into the chunk. Words that are no event (times,
 * numbers) are stepped over. 1; 0: at the end; -1: what stands at read->at is damaged. */
static int drain_words_next(struct drain_words *read, struct event *event) {
    uint32_t length;
    while (read->at < read->end && words_setting(read, read->word[read->at])) {
        read->at++;
    }
    if (read->at == read->end) {
        return 0;
    }
    event_clear(event, read->time_ns);
    length = words_event(read, read->word + read->at, read->end - read->at, event);
    read->at += length;
    return length != 0 ? 1 : -1;
}

/* Steps over the events before `place`. 0, or -1: damaged. */
static int drain_words_skip(struct drain_words *read, uint32_t place) {
    struct event event;
    uint32_t end = read->end;
    int result = 1;
    read->end = place < end ? place : end;
    while (result == 1) {
        result = drain_words_next(read, &event);
    }
    read->end = end;
    return result;
}

/* --- events ----------------------------------------------------------------------------------- */

/* A chunk that has a successor is full, whatever was seen when it was found: its thread left it
 * before it took the next one. */
static void drain_open_chunk(struct drain_cursor *cursor) {
    const struct drain *drain = cursor->drain;
    const struct drain_chunk *found = &drain->found[cursor->span->first + cursor->at];
    uint32_t state =
        drain_load(&found->chunk->state); /* before the words: those of a full one are all */
    uint32_t used = drain_load(&found->chunk->used);
    cursor->is_last = state != MEMTRACE_CHUNK_FULL && cursor->at + 1 == cursor->span->count;
    cursor->words =
        (struct drain_words){.word = found->chunk->word,
                             .end = used < MEMTRACE_CHUNK_WORDS ? used : MEMTRACE_CHUNK_WORDS,
                             .thread = found->chunk->thread,
                             .number = found->chunk->first_number,
                             .time_ns = found->chunk->start_ns};
    if (drain_words_skip(&cursor->words, drained(drain, found)) != 0) {
        cursor->words.at = cursor->words.end;
    }
    cursor->place = (struct drain_place){found->sequence, cursor->words.at};
}

void drain_start(struct drain *drain, const struct drain_span *span, struct drain_cursor *cursor) {
    *cursor = (struct drain_cursor){.drain = drain, .span = span};
    drain_open_chunk(cursor);
}

static void next_chunk(struct drain_cursor *cursor) {
    cursor->place = (struct drain_place){cursor->place.sequence + 1, 0};
    if (++cursor->at < cursor->span->count) {
        drain_open_chunk(cursor);
    }
}

int drain_next(struct drain_cursor *cursor, struct event *event) {
    while (cursor->at < cursor->span->count) {
        int result = drain_words_next(&cursor->words, event);
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
        if (drain_load(&done->chunk->state) == MEMTRACE_CHUNK_FULL) {
            drain_give_back(drain, done->chunk, done->number);
        }
    }
    if (cursor->at < cursor->span->count) {
        found[cursor->at].chunk->drained = cursor->place.word;
    }
}
