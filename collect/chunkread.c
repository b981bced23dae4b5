/* SPDX-License-Identifier: MIT */
/* chunkread.c: the words of a chunk. See chunkread.h. */
#include "collect/chunkread.h"

#include <stdbool.h>
#include <stddef.h>

enum { KIND_BITS = 4, MAP_WORDS = 5 };

static uint64_t bits(uint64_t word, unsigned first, unsigned count) {
    return (word >> first) & ((UINT64_C(1) << count) - 1);
}

static struct event_block block(uint64_t word) {
    return (struct event_block){.number = word >> 16, .thread = (uint32_t)bits(word, 4, 12)};
}

void chunkread_start(struct chunkread *read, const struct memtrace_chunk *chunk, uint32_t used) {
    *read = (struct chunkread){.word = chunk->word,
                               .end = used < MEMTRACE_CHUNK_WORDS ? used : MEMTRACE_CHUNK_WORDS,
                               .thread = chunk->thread,
                               .number = chunk->first_number,
                               .time_ns = chunk->start_ns};
}

/* Each of the following reads the event whose first word is at *at, with `left` words from there to
 * the end, and returns its words; 0: damaged. */

static uint32_t read_alloc(struct chunkread *read, const uint64_t *at, uint32_t left,
                           struct event *event) {
    if (left < 2) {
        return 0;
    }
    event->kind = EVENT_ALLOC;
    event->context = (uint32_t)bits(at[0], 4, 24);
    event->size |= at[0] >> 28; /* a prefix may have said what lies above */
    event->address = bits(at[1], 0, 48);
    event->slack = (uint32_t)bits(at[1], 48, 12);
    event->flags = (uint8_t)bits(at[1], 60, 4);
    event->block = (struct event_block){.number = read->number++, .thread = read->thread};
    return 2;
}

/* An allocation with what stands before it. */
static uint32_t read_prefixed(struct chunkread *read, const uint64_t *at, uint32_t left,
                              struct event *event) {
    for (uint32_t count = 0; count < left; count++) {
        uint32_t length;
        switch (bits(at[count], 0, KIND_BITS)) {
        case MEMTRACE_WORD_REALLOC:
            event->old = block(at[count]);
            break;
        case MEMTRACE_WORD_EXTRA:
            event->alignment = (uint8_t)bits(at[count], 4, 6);
            event->size = bits(at[count], 10, 12) << 36;
            break;
        case MEMTRACE_WORD_WEIGHT:
            event->weight = at[count] >> KIND_BITS;
            break;
        case MEMTRACE_WORD_ALLOC:
            length = read_alloc(read, at + count, left - count, event);
            return length != 0 ? count + length : 0;
        default:
            return 0;
        }
    }
    return 0;
}

static uint32_t read_free(const uint64_t *at, uint32_t left, struct event *event) {
    uint32_t length = bits(at[0], 0, KIND_BITS) == MEMTRACE_WORD_FREE_AT ? 2 : 1;
    if (left < length) {
        return 0;
    }
    event->kind = EVENT_FREE;
    event->block = block(at[0]);
    event->context = length == 2 ? (uint32_t)bits(at[1], 0, MEMTRACE_CONTEXT_BITS) : 0;
    return length;
}

static uint32_t read_map(const uint64_t *at, uint32_t left, struct event *event) {
    if (left < MAP_WORDS) {
        return 0;
    }
    event->kind = EVENT_MAP;
    event->operation = (uint8_t)bits(at[0], 4, 4);
    event->protection = (uint8_t)bits(at[0], 8, 8);
    event->flags = (uint8_t)bits(at[0], 16, 8);
    event->context = (uint32_t)bits(at[0], 24, 24);
    event->address = at[1];
    event->size = at[2];
    event->old_address = at[3];
    event->old_size = at[4];
    return MAP_WORDS;
}

static uint32_t read_mark(const uint64_t *at, uint32_t left, struct event *event) {
    uint32_t bytes = (uint32_t)bits(at[0], 8, 16);
    uint32_t length = 1 + (bytes + 7) / 8;
    if (left < length) {
        return 0;
    }
    event->kind = EVENT_MARK;
    event->operation = (uint8_t)bits(at[0], 4, 4);
    event->id = bits(at[0], 24, 40);
    event->text = (const char *)(at + 1);
    event->text_size = bytes;
    return length;
}

static uint32_t read_before(const uint64_t *at, uint32_t left, struct event *event) {
    if (left < 2) {
        return 0;
    }
    event->kind = EVENT_MARK;
    event->operation = (uint8_t)bits(at[0], 4, 4);
    event->context = (uint32_t)bits(at[0], 8, MEMTRACE_CONTEXT_BITS);
    event->id = at[1];
    event->text = "";
    event->text_size = 0;
    return 2;
}

static uint32_t read_lost(const uint64_t *at, struct event *event) {
    event->kind = EVENT_LOST;
    event->lost_allocs = bits(at[0], 4, 30);
    event->lost_frees = bits(at[0], 34, 30);
    return 1;
}

static uint32_t read_event(struct chunkread *read, const uint64_t *at, uint32_t left,
                           struct event *event) {
    switch (bits(at[0], 0, KIND_BITS)) {
    case MEMTRACE_WORD_ALLOC:
        return read_alloc(read, at, left, event);
    case MEMTRACE_WORD_FREE:
    case MEMTRACE_WORD_FREE_AT:
        return read_free(at, left, event);
    case MEMTRACE_WORD_REALLOC:
    case MEMTRACE_WORD_EXTRA:
    case MEMTRACE_WORD_WEIGHT:
        return read_prefixed(read, at, left, event);
    case MEMTRACE_WORD_MAP:
        return read_map(at, left, event);
    case MEMTRACE_WORD_MARK:
        return read_mark(at, left, event);
    case MEMTRACE_WORD_BEFORE:
        return read_before(at, left, event);
    case MEMTRACE_WORD_LOST:
        return read_lost(at, event);
    default:
        return 0;
    }
}

/* Whether the word only says something about all that follows, and takes it in. */
static bool take_setting(struct chunkread *read, uint64_t word) {
    switch (bits(word, 0, KIND_BITS)) {
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
static void start_event(struct event *event, uint64_t time_ns) {
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

int chunkread_next(struct chunkread *read, struct event *event) {
    uint32_t length;
    while (read->at < read->end && take_setting(read, read->word[read->at])) {
        read->at++;
    }
    if (read->at == read->end) {
        return 0;
    }
    start_event(event, read->time_ns);
    length = read_event(read, read->word + read->at, read->end - read->at, event);
    read->at += length;
    return length != 0 ? 1 : -1;
}

int chunkread_skip(struct chunkread *read, uint32_t place) {
    struct event event;
    uint32_t end = read->end;
    int result = 1;
    read->end = place < end ? place : end;
    while (result == 1) {
        result = chunkread_next(read, &event);
    }
    read->end = end;
    return result;
}
