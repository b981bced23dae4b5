/* SPDX-License-Identifier: MIT */
/* words.c: the words of a chunk. See words.h. */
#include "collect/words.h"

enum { KIND_BITS = 4, MAP_WORDS = 5 };

/* What stands before an allocation. */
struct prefix {
    uint64_t weight;
    uint64_t size_high;
    struct event_block old;
    uint8_t alignment;
    bool any;
};

static uint64_t bits(uint64_t word, unsigned first, unsigned count) {
    return (word >> first) & ((UINT64_C(1) << count) - 1);
}

static struct event_block block(uint64_t word) {
    return (struct event_block){.number = word >> 16, .thread = (uint32_t)bits(word, 4, 12)};
}

void words_start(struct words *words, const struct memtrace_chunk *chunk, uint32_t used) {
    *words = (struct words){.word = chunk->word,
                            .end = used < MEMTRACE_CHUNK_WORDS ? used : MEMTRACE_CHUNK_WORDS,
                            .thread = chunk->thread,
                            .number = chunk->first_number,
                            .time_ns = chunk->start_ns};
}

/* Each of the following reads the event whose first word is at *at, with `left` words from there to
 * the end, and returns its words; 0: damaged. */

static uint32_t read_alloc(struct words *words, const uint64_t *at, uint32_t left,
                           const struct prefix *prefix, struct event *event) {
    if (left < 2) {
        return 0;
    }
    event->kind = EVENT_ALLOC;
    event->context = (uint32_t)bits(at[0], 4, 24);
    event->size = at[0] >> 28 | prefix->size_high << 36;
    event->address = bits(at[1], 0, 48);
    event->slack = (uint32_t)bits(at[1], 48, 12);
    event->flags = (uint8_t)bits(at[1], 60, 4);
    event->alignment = prefix->alignment;
    event->weight = prefix->weight;
    event->old = prefix->old;
    event->block = (struct event_block){.number = words->number++, .thread = words->thread};
    return 2;
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

static uint32_t read_lost(const uint64_t *at, struct event *event) {
    event->kind = EVENT_LOST;
    event->lost_allocs = bits(at[0], 4, 30);
    event->lost_frees = bits(at[0], 34, 30);
    return 1;
}

/* Whether the word at *at only says something about what follows, and takes it in. */
static bool take_prefix(struct words *words, uint64_t word, struct prefix *prefix) {
    switch (bits(word, 0, KIND_BITS)) {
    case MEMTRACE_WORD_REALLOC:
        prefix->old = block(word);
        prefix->any = true;
        return true;
    case MEMTRACE_WORD_EXTRA:
        prefix->alignment = (uint8_t)bits(word, 4, 6);
        prefix->size_high = bits(word, 10, 12);
        prefix->any = true;
        return true;
    case MEMTRACE_WORD_WEIGHT:
        prefix->weight = word >> KIND_BITS;
        prefix->any = true;
        return true;
    case MEMTRACE_WORD_TIME:
        words->time_ns = word >> KIND_BITS;
        return true;
    case MEMTRACE_WORD_NUMBERS:
        words->number = word >> KIND_BITS;
        return true;
    default:
        return false;
    }
}

static uint32_t read_event(struct words *words, const uint64_t *at, uint32_t left,
                           const struct prefix *prefix, struct event *event) {
    uint64_t kind = bits(at[0], 0, KIND_BITS);
    if (kind == MEMTRACE_WORD_ALLOC) {
        return read_alloc(words, at, left, prefix, event);
    }
    if (prefix->any) {
        return 0;
    }
    switch (kind) {
    case MEMTRACE_WORD_FREE:
    case MEMTRACE_WORD_FREE_AT:
        return read_free(at, left, event);
    case MEMTRACE_WORD_MAP:
        return read_map(at, left, event);
    case MEMTRACE_WORD_MARK:
        return read_mark(at, left, event);
    case MEMTRACE_WORD_LOST:
        return read_lost(at, event);
    default:
        return 0;
    }
}

int words_next(struct words *words, struct event *event) {
    struct prefix prefix = {0};
    uint32_t at = words->at;
    uint32_t length;
    while (at < words->end && take_prefix(words, words->word[at], &prefix)) {
        at++;
    }
    if (at == words->end) {
        words->at = at;
        return prefix.any ? -1 : 0;
    }
    *event = (struct event){.time_ns = words->time_ns};
    length = read_event(words, words->word + at, words->end - at, &prefix, event);
    if (length == 0) {
        return -1;
    }
    words->at = at + length;
    return 1;
}

int words_skip(struct words *words, uint32_t place) {
    struct event event;
    uint32_t end = words->end;
    int result = 1;
    words->end = place < end ? place : end;
    while (result == 1) {
        result = words_next(words, &event);
    }
    words->end = end;
    return result;
}
