/* SPDX-License-Identifier: MIT */
/* recorder_fixture.h: a recorder in a region of its own, and a collector as simple as can be. */
#ifndef TESTS_UNIT_RECORDER_FIXTURE_H
#define TESTS_UNIT_RECORDER_FIXTURE_H

#include "runtime/record/recorder.h"

#include "runtime/record/region.h"
#include "tests/unit/space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

enum { EVENT_WORDS = 2, EVENTS_IN_CHUNK = (MEMTRACE_CHUNK_WORDS - 3) / EVENT_WORDS };

static struct recorder recorder;
static struct memtrace_recording *recording;

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int open_recorder(void **state) {
    struct space *space = space_fixture_open();
    space->header->start_monotonic_ns = now_ns();
    recording = region_recording(space->header);
    recording->state = MEMTRACE_RECORD_WANTED;
    memset(&recorder, 0, sizeof recorder);
    recorder_init(&recorder, space);
    *state = space;
    return 0;
}

static inline int close_recorder(void **state) {
    struct space *space = *state;
    munmap(space->base, space->room.reserved);
    space_fixture_close(space);
    return 0;
}

static inline uint64_t alloc(struct recorder_stream *stream, uint64_t address, uint64_t size) {
    struct recorder_alloc event = {.address = address, .size = size, .context = 7};
    return recorder_alloc(stream, &event);
}

/* --- a collector, as simple as can be --------------------------------------------------------- */

static inline struct memtrace_chunk *chunk_at(uint32_t number) {
    return &recorder.segment[number / MEMTRACE_CHUNKS_PER_SEGMENT]
                            [number % MEMTRACE_CHUNKS_PER_SEGMENT];
}

static inline void give_back(uint32_t number) {
    STORE_RELEASE(&chunk_at(number)->state, (uint32_t)MEMTRACE_CHUNK_FREE);
    __atomic_fetch_or(&recording->free_chunks[number / 64], UINT64_C(1) << number % 64,
                      __ATOMIC_RELEASE);
}

static inline uint32_t chunk_count(void) {
    return LOAD_ACQUIRE(&recorder.segments) * MEMTRACE_CHUNKS_PER_SEGMENT;
}

static inline int is_chunk(uint32_t number) {
    return number % MEMTRACE_CHUNKS_PER_SEGMENT != 0;
}

/* The chunk that is this one of the stream; NULL: there is none. */
static inline struct memtrace_chunk *find_chunk(uint32_t stream, uint32_t sequence) {
    for (uint32_t i = 0; i < chunk_count(); i++) {
        struct memtrace_chunk *chunk = chunk_at(i);
        if (is_chunk(i) && LOAD_ACQUIRE(&chunk->state) != MEMTRACE_CHUNK_FREE &&
            chunk->stream == stream && chunk->sequence == sequence) {
            return chunk;
        }
    }
    return NULL;
}

static inline uint32_t length_of(const uint64_t *word) {
    switch (*word & 15) {
    case MEMTRACE_WORD_ALLOC:
    case MEMTRACE_WORD_FREE_AT:
        return 2;
    case MEMTRACE_WORD_MAP:
        return 5;
    case MEMTRACE_WORD_MARK:
        return 1 + (uint32_t)((*word >> 8 & 0xffff) + 7) / 8;
    default:
        assert_true((*word & 15) >= MEMTRACE_WORD_ALLOC && (*word & 15) <= MEMTRACE_WORD_WEIGHT);
        return 1;
    }
}

typedef void read_word(void *argument, const struct memtrace_chunk *chunk, const uint64_t *word,
                       uint64_t number);

/* Steps over what is published; `number` is that of the next allocation. */
static inline void read_chunk(const struct memtrace_chunk *chunk, read_word *read, void *argument) {
    uint32_t used = LOAD_ACQUIRE(&chunk->used);
    uint64_t number = chunk->first_number;
    uint32_t at = 0;
    while (at < used) {
        const uint64_t *word = &chunk->word[at];
        uint64_t kind = *word & 15;
        if (kind == MEMTRACE_WORD_NUMBERS) {
            number = *word >> 4;
        }
        read(argument, chunk, word, number);
        number += kind == MEMTRACE_WORD_ALLOC;
        at += length_of(word);
    }
    assert_int_equal(at, used);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_recorder, close_recorder)

#endif
