/* SPDX-License-Identifier: MIT */
/* recorder.c: chunks, numbers, waiting. See recorder.h. */
#define _GNU_SOURCE
#include "runtime/record/recorder.h"

#include "runtime/base/sys.h"
#include "runtime/record/region.h"

#include <string.h>

enum {
    OTHERS_RUN = 64,                     /* numbers that a stream of "others" takes at a time */
    FIRST_STEP_NS = 100 * 1000,          /* waits: */
    LONGEST_STEP_NS = 5 * 1000 * 1000,   /* of one step, */
    LONGEST_WAIT_NS = 1000 * 1000 * 1000 /* and in all */
};
#define HEART_NS (INT64_C(2) * 1000 * 1000 * 1000) /* a collector this long silent is gone */
#define START_NS                                                                                   \
    (INT64_C(3) * 1000 * 1000 * 1000) /* and one that was just started comes by then               \
                                       */
#define LOW_HALF (UINT64_C(1) << 32)
#define HIGHEST  (UINT64_C(1) << 48)

static void reset(struct recorder *recorder, struct space *space) {
    recorder->space = space;
    recorder->segments = 0;
    recorder->most_segments = MEMTRACE_CHUNK_SEGMENTS;
    recorder->impatient = 0;
    recorder->left_then = 0;
    recorder->others = 0;
    recorder->growing.held = 0;
    if (recorder->wraps != 0) {
        memset(recorder->newest_wrap, 0, sizeof recorder->newest_wrap);
        recorder->wraps = 0;
    }
    if (recorder->ended != 0) {
        memset(recorder->next_number, 0, sizeof recorder->next_number);
        recorder->ended = 0;
    }
    recorder->is_midway = recorder->is_settling = 0;
    recorder->recording = region_recording(space->header);
}

void recorder_init(struct recorder *recorder, struct space *space) {
    reset(recorder, space);
    STORE_RELAXED(&recorder->generation, recorder->generation | 1);
}

/* --- in the middle of a run ------------------------------------------------------------------- */

void recorder_begin(struct recorder *recorder) {
    recorder->is_midway = recorder->is_settling = 1;
    STORE_RELEASE(&recorder->generation, recorder->generation + 1);
}

void recorder_end(struct recorder *recorder) {
    STORE_RELAXED(&recorder->is_settling, 0u);
    STORE_RELEASE(&recorder->generation, recorder->generation + 1);
}

void recorder_fork(struct recorder *recorder) {
    if (recorder->recording != NULL ||
        (recorder->generation & 1) != 0) { /* else nothing is copied */
        recorder->recording = NULL;
        recorder->is_midway = recorder->is_settling = 0;
        recorder->generation += recorder->generation & 1;
    }
}

void recorder_join_base(struct recorder *recorder, struct recorder_stream *stream) {
    recorder_join(recorder, stream, MEMTRACE_THREAD_OTHERS);
    stream->number = RECORDER_BASE;
    stream->numbers_end = LOW_HALF;
}

/* --- streams ---------------------------------------------------------------------------------- */

void recorder_join(struct recorder *recorder, struct recorder_stream *stream, uint32_t thread) {
    *stream = (struct recorder_stream){
        .recorder = recorder, .thread = thread, .generation = LOAD_RELAXED(&recorder->generation)};
    sampling_seed(&stream->sampling, sys_clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)thread << 48);
    if ((recorder->recording->flags & MEMTRACE_RECORDING_PRECISE) != 0) {
        stream->due = RECORDER_DUE_PRECISE;
    }
    if (thread != MEMTRACE_THREAD_OTHERS) { /* others take theirs in runs */
        uint64_t next = recorder->next_number[thread];
        stream->number = next != 0 ? next : 1;
        stream->numbers_end = (stream->number + LOW_HALF - 1) & ~(LOW_HALF - 1);
        if (recorder->is_midway && stream->number <= RECORDER_BASE) {
            stream->numbers_end = RECORDER_BASE;
        }
    }
}

/* The next event finds no room, and claims another. */
static void drop_chunk(struct recorder_stream *stream) {
    struct memtrace_chunk *chunk = stream->chunk;
    stream->used = 0;
    stream->most = 0;
    stream->chunk = NULL;
    if (chunk != NULL) {
        STORE_RELEASE(&chunk->state, (uint32_t)MEMTRACE_CHUNK_FULL);
    }
}

void recorder_leave(struct recorder_stream *stream) {
    if (stream->generation != LOAD_ACQUIRE(&stream->recorder->generation)) {
        return; /* that recording is over, and the chunk another's */
    }
    drop_chunk(stream);
    if (stream->thread != MEMTRACE_THREAD_OTHERS) {
        stream->recorder->next_number[stream->thread] = stream->number;
        STORE_RELAXED(&stream->recorder->ended, 1u);
    }
}

void recorder_abandon(struct recorder_stream *stream) {
    struct sys_signals mask = sys_block_signals();
    if (stream->generation != LOAD_ACQUIRE(&stream->recorder->generation)) {
        stream->chunk = NULL; /* another's by now */
    }
    drop_chunk(stream);
    if (stream->number != stream->numbers_end) {
        stream->number++; /* the event may have been published and not counted */
    }
    sys_restore_signals(mask);
}

/* --- chunks ----------------------------------------------------------------------------------- */

static struct memtrace_chunk *recorder_take_free(struct recorder *recorder) {
    uint64_t *words = recorder->recording->free_chunks;
    uint32_t chunks = LOAD_ACQUIRE(&recorder->segments) * MEMTRACE_CHUNKS_PER_SEGMENT;
    for (uint32_t i = 0; i * 64 < chunks; i++) {
        uint64_t free;
        while ((free = LOAD_RELAXED(&words[i])) != 0) { /* the lowest: its lines are in the cache */
            uint64_t bit = free & -free;
            if ((__atomic_fetch_and(&words[i], ~bit, __ATOMIC_ACQUIRE) & bit) != 0) {
                uint32_t number = i * 64 + (uint32_t)__builtin_ctzll(bit);
                return &recorder->segment[number / MEMTRACE_CHUNKS_PER_SEGMENT]
                                         [number % MEMTRACE_CHUNKS_PER_SEGMENT];
            }
        }
    }
    return NULL;
}

/* All its chunks can be taken. */
static void recorder_offer_segment(struct recorder *recorder, uint32_t index) {
    uint64_t bits = ~UINT64_C(1) & UINT32_MAX; /* the first place lies under the header */
    __atomic_fetch_or(&recorder->recording->free_chunks[index / 2], bits << (index % 2 * 32),
                      __ATOMIC_RELEASE);
}

static struct memtrace_chunk *recorder_add_segment(struct recorder *recorder) {
    uint32_t index = recorder->segments;
    struct memtrace_chunk *segment;
    if (index == recorder->most_segments) {
        return NULL;
    }
    segment = space_segment(recorder->space, MEMTRACE_SEGMENT_EVENTS, 0, index,
                            MEMTRACE_CHUNK_BYTES, MEMTRACE_CHUNKS_PER_SEGMENT);
    if (segment == NULL) {
        STORE_RELAXED(&recorder->most_segments, index);
        return NULL;
    }
    space_publish(segment);
    recorder->segment[index] = segment;
    STORE_RELEASE(&recorder->segments, index + 1);
    recorder_offer_segment(recorder, index);
    return recorder_take_free(recorder);
}

/* The collector of the last recording has taken all that was in them. */
static void recorder_free_segment(struct recorder *recorder, uint32_t index) {
    for (uint32_t i = 1; i < MEMTRACE_CHUNKS_PER_SEGMENT; i++) {
        STORE_RELAXED(&recorder->segment[index][i].state, (uint32_t)MEMTRACE_CHUNK_FREE);
    }
    recorder_offer_segment(recorder, index);
}

void recorder_prepare(struct recorder *recorder, struct space *space) {
    uint32_t segments = recorder->recording != NULL && recorder->space == space
                            ? LOAD_RELAXED(&recorder->segments)
                            : 0;
    recorder->ended = 1; /* numbers begin anew */
    reset(recorder, space);
    for (uint32_t i = 0; i < segments; i++) {
        recorder_free_segment(recorder, i);
    }
    recorder->segments = segments;
    if (segments == 0 &&
        recorder_add_segment(recorder) != NULL) { /* for many threads that come at once */
        recorder_free_segment(recorder, 0);
    }
    recorder->recording->lost_allocs = recorder->recording->lost_frees = 0;
    recorder->recording->begun_ns =
        sys_clock_ns(CLOCK_MONOTONIC) - space->header->start_monotonic_ns;
}

static struct memtrace_chunk *take_chunk(struct recorder *recorder) {
    struct memtrace_chunk *chunk = recorder_take_free(recorder);
    if (chunk == NULL &&
        LOAD_RELAXED(&recorder->segments) < LOAD_RELAXED(&recorder->most_segments) &&
        sys_take(&recorder->growing)) {
        chunk = recorder_take_free(recorder); /* another thread may have grown it */
        if (chunk == NULL) {
            chunk = recorder_add_segment(recorder);
        }
        trylock_release(&recorder->growing);
    }
    return chunk;
}

static void look_at_clock(struct recorder_stream *stream) {
    stream->now_ns =
        sys_clock_ns(CLOCK_MONOTONIC) - stream->recorder->space->header->start_monotonic_ns;
}

static void open_chunk(struct recorder_stream *stream, struct memtrace_chunk *chunk) {
    if (stream->id == 0) {
        stream->id =
            __atomic_add_fetch(&stream->recorder->recording->stream_count, 1, __ATOMIC_RELAXED);
    }
    look_at_clock(stream);
    stream->due &= ~(uint32_t)(RECORDER_DUE_TIME | RECORDER_DUE_NUMBERS);
    chunk->stream = stream->id;
    chunk->thread = stream->thread;
    chunk->sequence = stream->sequence++;
    chunk->first_number = stream->number;
    chunk->start_ns = stream->now_ns;
    chunk->used = 0;
    chunk->drained = 0;
    stream->used = 0;
    stream->most = MEMTRACE_CHUNK_WORDS - RECORDER_DUE_WORDS;
    stream->chunk = chunk;
    STORE_RELEASE(&chunk->state, (uint32_t)MEMTRACE_CHUNK_OPEN);
}

/* Where it ends midway it is wanted as long as threads have streams. */
static int recorder_is_wanted(const struct recorder *recorder) {
    uint32_t state = LOAD_RELAXED(&recorder->recording->state);
    return state == MEMTRACE_RECORD_WANTED || state == MEMTRACE_RECORD_ENDING;
}

/* Whether it is worth a try, for threads that ask at each event. */
static int may_have_room(const struct recorder *recorder) {
    uint64_t any = 0;
    for (size_t i = 0; i < MEMTRACE_CHUNK_LIMIT / 64; i++) {
        any |= LOAD_RELAXED(&recorder->recording->free_chunks[i]);
    }
    return recorder_is_wanted(recorder) &&
           (any != 0 || LOAD_RELAXED(&recorder->segments) < LOAD_RELAXED(&recorder->most_segments));
}

/* Called with each buffer that is taken, so that no thread can outrun it. Two at once make two
 * steps of one, at most. */
static void thin_if_short(struct recorder *recorder) {
    uint32_t segments = LOAD_RELAXED(&recorder->most_segments);
    uint32_t whole = segments * (MEMTRACE_CHUNKS_PER_SEGMENT - 1);
    uint32_t left =
        (segments - LOAD_RELAXED(&recorder->segments)) * (MEMTRACE_CHUNKS_PER_SEGMENT - 1);
    uint32_t then = LOAD_RELAXED(&recorder->left_then);
    for (size_t i = 0; i < MEMTRACE_CHUNK_LIMIT / 64; i++) {
        left += (uint32_t)__builtin_popcountll(LOAD_RELAXED(&recorder->recording->free_chunks[i]));
    }
    if (left >= whole / 2) {
        STORE_RELAXED(&recorder->left_then, 0u);
    } else if (then == 0 || left < then - then / MEMTRACE_THIN_PART) {
        STORE_RELAXED(&recorder->left_then, left);
        memtrace_thin(recorder->recording, 1);
    } else if (left > then) { /* some came back: from there on */
        STORE_RELAXED(&recorder->left_then, left);
    }
}

int recorder_claim(struct recorder_stream *stream) {
    struct recorder *recorder = stream->recorder;
    struct memtrace_chunk *chunk = NULL;
    struct sys_signals mask;
    if (stream->chunk == NULL && !may_have_room(recorder)) {
        return 0;
    }
    mask = sys_block_signals();
    drop_chunk(stream);
    if (recorder_is_wanted(recorder)) {
        chunk = take_chunk(recorder);
    }
    if (chunk != NULL) {
        open_chunk(stream, chunk);
        if (recorder->recording->on_lag == MEMTRACE_LAG_THIN) {
            thin_if_short(recorder);
        }
        if (UNLIKELY(LOAD_RELAXED(&recorder->impatient) != 0)) {
            STORE_RELAXED(&recorder->impatient, 0u);
        }
    }
    sys_restore_signals(mask);
    return chunk != NULL;
}

int recorder_has_room(struct recorder_stream *stream, uint32_t words) {
    return stream->used + words <= stream->most || recorder_claim(stream);
}

/* --- what is due before an event -------------------------------------------------------------- */

void recorder_set_time(struct recorder_stream *stream, uint64_t now_ns, uint32_t tick) {
    stream->now_ns = now_ns;
    stream->tick = tick;
    stream->due |= RECORDER_DUE_TIME;
}

void recorder_set_exact_time(struct recorder_stream *stream) {
    look_at_clock(stream);
    stream->due |= RECORDER_DUE_TIME;
}

/* A word holds 30 bits of each. */
static uint64_t recorder_take_lost(uint32_t *lost) {
    uint32_t most = (1u << 30) - 1;
    uint32_t told = *lost < most ? *lost : most;
    *lost -= told;
    return told;
}

uint64_t *recorder_write_due(struct recorder_stream *stream, uint64_t *at) {
    uint32_t due = stream->due;
    stream->due = due & RECORDER_DUE_PRECISE;
    if ((due & RECORDER_DUE_LOST) != 0) {
        *at++ = MEMTRACE_WORD_LOST | recorder_take_lost(&stream->lost_allocs) << 4 |
                recorder_take_lost(&stream->lost_frees) << 34;
        stream->due |= stream->lost_allocs + stream->lost_frees != 0 ? RECORDER_DUE_LOST : 0;
    }
    if ((due & RECORDER_DUE_PRECISE) != 0) {
        look_at_clock(stream);
    }
    if ((due & (RECORDER_DUE_TIME | RECORDER_DUE_PRECISE)) != 0) {
        *at++ = MEMTRACE_WORD_TIME | stream->now_ns << 4;
    }
    if ((due & RECORDER_DUE_NUMBERS) != 0) {
        *at++ = MEMTRACE_WORD_NUMBERS | stream->number << 4;
    }
    return at;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static int take_run(struct recorder_stream *stream) {
    uint64_t first =
        1 + __atomic_fetch_add(&stream->recorder->others, OTHERS_RUN, __ATOMIC_RELAXED);
    if (first + OTHERS_RUN >
        (stream->recorder->is_midway
             ? RECORDER_BASE
             : LOW_HALF)) { /* of many threads, a tick would not tell the high half */
        return 0;
    }
    stream->number = first;
    stream->numbers_end = first + OTHERS_RUN;
    return 1;
}

/* The place of a wrap, published by newest_wrap; 0: none is left. */
static uint32_t note_wrap(struct recorder *recorder, uint32_t thread, uint32_t high,
                          uint32_t tick) {
    uint32_t place = 0;
    if (sys_take(&recorder->growing)) {
        if (recorder->wraps < RECORDER_WRAPS) {
            recorder->wrap[recorder->wraps] =
                (struct recorder_wrap){thread, high, tick, recorder->newest_wrap[thread]};
            place = recorder->wraps + 1;
            STORE_RELEASE(&recorder->newest_wrap[thread], (uint16_t)place);
            STORE_RELEASE(&recorder->wraps, place);
        }
        trylock_release(&recorder->growing);
    }
    return place;
}

/* No number has a low half of 0, which stands for blocks that are not recorded. */
int recorder_renumber(struct recorder_stream *stream) {
    struct sys_signals mask = sys_block_signals();
    int done;
    if (stream->thread == MEMTRACE_THREAD_OTHERS) {
        done = take_run(stream);
    } else {
        uint64_t at = stream->number == RECORDER_BASE ? LOW_HALF : stream->number;
        done = at < HIGHEST &&
               note_wrap(stream->recorder, stream->thread, (uint32_t)(at >> 32), stream->tick) != 0;
        if (done) {
            stream->numbers_end = at + LOW_HALF;
            stream->number = at + 1;
        }
    }
    stream->due |= done ? (uint32_t)RECORDER_DUE_NUMBERS : 0;
    sys_restore_signals(mask);
    return done;
}

/* Within one tick of a thread fewer than 2^31 blocks are born: of those born in the tick of a wrap
 * the low half tells on which side they are. */
uint64_t recorder_number_slow(const struct recorder *recorder, uint32_t thread, uint32_t low,
                              uint32_t birth_tick) {
    uint32_t place = LOAD_ACQUIRE(&recorder->newest_wrap[thread]);
    while (place != 0) {
        const struct recorder_wrap *wrap = &recorder->wrap[place - 1];
        if (birth_tick > wrap->tick || (birth_tick == wrap->tick && low < LOW_HALF / 2)) {
            return (uint64_t)wrap->high << 32 | low;
        }
        place = wrap->previous;
    }
    return low;
}

/* --- rare events ------------------------------------------------------------------------------ */

int recorder_map(struct recorder_stream *stream, const struct recorder_map *map) {
    uint64_t *at = recorder_room(stream, 5);
    if (at == NULL) {
        return 0;
    }
    *at++ = MEMTRACE_WORD_MAP | (uint64_t)map->operation << 4 |
            (uint64_t)(map->protection & 255) << 8 | (uint64_t)(map->flags & 255) << 16 |
            (uint64_t)map->context << 24;
    *at++ = map->address;
    *at++ = map->size;
    *at++ = map->old_address;
    *at++ = map->old_size;
    recorder_publish(stream, at);
    return 1;
}

int recorder_before(struct recorder_stream *stream, enum memtrace_mark what, uint32_t context,
                    uint64_t bytes) {
    uint64_t *at = recorder_room(stream, 2);
    if (at == NULL) {
        return 0;
    }
    *at++ = MEMTRACE_WORD_BEFORE | (uint64_t)what << 4 | (uint64_t)context << 8;
    *at++ = bytes;
    recorder_publish(stream, at);
    return 1;
}

int recorder_mark(struct recorder_stream *stream, enum memtrace_mark what, uint64_t id,
                  const char *text, size_t size) {
    size_t kept = size < RECORDER_TEXT_MOST ? size : RECORDER_TEXT_MOST;
    uint32_t words = (uint32_t)((kept + 7) / 8);
    uint64_t *at = recorder_room(stream, 1 + words);
    if (at == NULL) {
        return 0;
    }
    *at++ = MEMTRACE_WORD_MARK | (uint64_t)what << 4 | (uint64_t)kept << 8 | id << 24;
    if (words != 0) {
        at[words - 1] = 0;
        memcpy(at, text, kept);
    }
    recorder_publish(stream, at + words);
    return 1;
}

/* --- a collector that lags -------------------------------------------------------------------- */

int recorder_has_pulse(const struct recorder *recorder) {
    uint64_t beat = LOAD_RELAXED(&recorder->recording->heartbeat_ns);
    uint64_t now = sys_clock_ns(CLOCK_MONOTONIC);
    return beat != 0 ? (int64_t)(now - beat) < HEART_NS
                     : (int64_t)(now - recorder->space->header->start_monotonic_ns) < START_NS;
}

int recorder_may_wait(const struct recorder *recorder) {
    return recorder_is_wanted(recorder) && recorder->recording->on_lag != MEMTRACE_LAG_DROP &&
           (recorder->space->header->flags & MEMTRACE_FLAG_FORKED) == 0 &&
           LOAD_RELAXED(&recorder->segments) != 0 && LOAD_RELAXED(&recorder->impatient) == 0 &&
           recorder_has_pulse(recorder);
}

int recorder_wait(struct recorder_stream *stream) {
    uint64_t step = FIRST_STEP_NS;
    uint64_t waited = 0;
    while (waited < LONGEST_WAIT_NS && recorder_may_wait(stream->recorder)) {
        sys_sleep_ns(step);
        if (recorder_claim(stream)) {
            return 1;
        }
        waited += step;
        step = step * 2 < LONGEST_STEP_NS ? step * 2 : LONGEST_STEP_NS;
    }
    STORE_RELAXED(&stream->recorder->impatient, 1u);
    return 0;
}

void recorder_lost(struct recorder_stream *stream, uint32_t allocs, uint32_t frees) {
    struct memtrace_recording *recording = stream->recorder->recording;
    if (!recorder_is_wanted(stream->recorder)) { /* it has ended for good */
        return;
    }
    stream->lost_allocs += allocs;
    stream->lost_frees += frees;
    stream->due |= RECORDER_DUE_LOST;
    __atomic_fetch_add(&recording->lost_allocs, allocs, __ATOMIC_RELAXED);
    __atomic_fetch_add(&recording->lost_frees, frees, __ATOMIC_RELAXED);
    space_lost(stream->recorder->space, MEMTRACE_LOST_RECORDS, allocs + frees);
}
