/* SPDX-License-Identifier: MIT */
/*
 * recorder.h: writes events down as words, in chunks that the collector drains (memtrace/events.h).
 *
 * Called by entry/event.c. A stream is what one thread records. Its thread is inside the runtime
 * while it appends: a handler that interrupts it records nothing.
 *
 * A kill at any moment leaves whole events only, at most the one in flight is missing, since
 *   append  writes the words first, chunk.used (release) last
 *   claim   makes the old chunk FULL after its last `used`; the new one is the thread's once its
 *           bit is cleared, and the collector's to read once it is OPEN (release), which is last
 *   grow    publishes the segment first, sets the bits of its chunks last
 * A handler may also leave the event by longjmp: see recorder_abandon(). It cannot leave a claim,
 * in which signals are blocked.
 */
#ifndef RUNTIME_RECORD_RECORDER_H
#define RUNTIME_RECORD_RECORDER_H

#include "memtrace/events.h"
#include "runtime/base/compiler.h"
#include "runtime/base/space.h"
#include "runtime/record/sampling.h"

enum {
    RECORDER_DUE_WORDS = 3, /* what may be due before an event, a word each: */
    RECORDER_DUE_LOST = 1,
    RECORDER_DUE_TIME = 2,
    RECORDER_DUE_NUMBERS = 4,
    RECORDER_DUE_PRECISE = 8, /* a time before each event */
    RECORDER_TEXT_MOST = 4096,
    RECORDER_WRAPS = 4096,
};

/* The numbers of a thread outgrew another 2^32. A block keeps only the low half of its number, and
 * the tick of its birth, which tells the high half: number and tick grow together. */
struct recorder_wrap {
    uint32_t thread;
    uint32_t high;
    uint32_t tick;
    uint32_t previous; /* of the same thread: place + 1; 0: none */
};

struct recorder {
    struct space *space;
    struct memtrace_recording *recording; /* in the region's header; NULL: nothing is recorded */
    struct memtrace_chunk *segment[MEMTRACE_CHUNK_SEGMENTS];
    /* Odd: threads have streams. Changes when it is switched on or off in the middle of a run; what
     * streams of another one hold are not theirs any more. */
    uint32_t generation;
    uint32_t is_midway;   /* numbers from RECORDER_BASE on name blocks that were there before */
    uint32_t is_settling; /* these are being named: numbers change by locked instructions */
    uint32_t segments;
    uint32_t most_segments; /* fewer than MEMTRACE_CHUNK_SEGMENTS where one was refused */
    uint32_t impatient;     /* somebody waited in vain: nobody does until a chunk comes free */
    uint32_t left_then;     /* chunks that were free when that was too few; 0: there were enough */
    uint64_t others;        /* numbers given out to streams of MEMTRACE_THREAD_OTHERS */
    struct trylock growing; /* of segment[], and of wrap[] */
    uint32_t wraps;
    uint16_t newest_wrap[1 << MEMTRACE_THREAD_BITS]; /* place + 1; 0: none */
    /* By thread id: the number with which another thread of this id goes on; 0: it is the first. */
    uint64_t next_number[1 << MEMTRACE_THREAD_BITS];
    uint32_t ended; /* whether any was noted */
    struct recorder_wrap wrap[RECORDER_WRAPS];
};

/* used <= most == CHUNK_WORDS - DUE_WORDS, or chunk == NULL and used == most == 0 */
struct recorder_stream {
    struct recorder *recorder;
    struct memtrace_chunk *chunk; /* NULL: none yet, or none could be had */
    uint32_t used;                /* words in it */
    uint32_t most;                /* room for events ends there */
    uint32_t due;                 /* RECORDER_DUE_* */
    uint32_t thread;
    uint64_t number; /* of the next allocation */
    uint64_t numbers_end;
    uint64_t now_ns; /* the clock when last looked at, since the start */
    uint32_t tick;   /* the thread's, by which births are noted */
    uint32_t id;     /* 0: not begun */
    uint32_t generation;
    uint32_t sequence;
    uint32_t lost_allocs, lost_frees; /* not told yet */
    struct sampling sampling;
};

/* What is written of an allocation. */
struct recorder_alloc {
    uint64_t address, size;
    uint64_t replaces; /* name of the block that realloc ended; 0: none */
    uint64_t weight;   /* sampled: bytes it stands for; else 0 */
    uint32_t context;
    uint32_t slack; /* usable size minus size */
    uint32_t flags; /* MEMTRACE_ALLOC_* */
    uint32_t alignment;
};

/* What is written of a mapping. */
struct recorder_map {
    enum memtrace_map_operation operation;
    uint32_t context;
    uint32_t protection, flags;
    uint64_t address, size, old_address, old_size;
};

/* Where a recording begins in the middle of a run, the blocks that are there are named by numbers
 * of MEMTRACE_THREAD_OTHERS from here on, of which no thread has any below 2^32. */
#define RECORDER_BASE (UINT64_C(1) << 31)

/* The space's header says what is wanted; also in a forked child, whose space is new. */
void recorder_init(struct recorder *recorder, struct space *space);

/* Begins and ends it in the middle of a run: nobody has a stream of an earlier one. Threads have
 * streams from then on as soon as each has seen that the generation is another. */
void recorder_prepare(struct recorder *recorder, struct space *space);
void recorder_begin(struct recorder *recorder);
void recorder_end(struct recorder *recorder);
/* The stream in which blocks are that were there before. */
void recorder_join_base(struct recorder *recorder, struct recorder_stream *stream);
/* In a forked child, which is not recorded by this. */
void recorder_fork(struct recorder *recorder);

INLINE int recorder_is_on(const struct recorder *recorder) {
    return (LOAD_RELAXED(&recorder->generation) & 1) != 0;
}

/* A stream of this thread, all zeros before. Claims nothing yet. */
void recorder_join(struct recorder *recorder, struct recorder_stream *stream, uint32_t thread);
/* The thread goes: its chunk is left to the collector. */
void recorder_leave(struct recorder_stream *stream);
/* The thread's event was left by a longjmp: goes on in a new chunk, behind what was published. */
void recorder_abandon(struct recorder_stream *stream);

/* What the thread knows of the time: since the start, and the tick by which births are noted. */
void recorder_set_time(struct recorder_stream *stream, uint64_t now_ns, uint32_t tick);
/* The next event has the time that it is now, and so have those up to the thread's next look. */
void recorder_set_exact_time(struct recorder_stream *stream);

/* A block's name in a word: owner and number, without the kind. */
INLINE uint64_t recorder_name(uint32_t thread, uint64_t number) {
    return (uint64_t)thread << 4 | number << 16;
}

INLINE uint32_t recorder_low_number(uint64_t name) {
    return (uint32_t)(name >> 16);
}

/* The number of a block, of which the low half is known. */
uint64_t recorder_number_slow(const struct recorder *recorder, uint32_t thread, uint32_t low,
                              uint32_t birth_tick);
INLINE uint64_t recorder_number(const struct recorder *recorder, uint32_t thread, uint32_t low,
                                uint32_t birth_tick) {
    return LIKELY(LOAD_ACQUIRE(&recorder->wraps) == 0)
               ? low
               : recorder_number_slow(recorder, thread, low, birth_tick);
}

/* The name of a block: of a thread's, or one that was there before. */
INLINE uint64_t recorder_block_name(const struct recorder *recorder, uint32_t thread, uint32_t low,
                                    uint32_t birth_tick) {
    uint64_t number = recorder_number(recorder, thread, low, birth_tick);
    int is_base = UNLIKELY(recorder->is_midway != 0) && number - RECORDER_BASE < RECORDER_BASE;
    return recorder_name(is_base ? MEMTRACE_THREAD_OTHERS : thread, number);
}

/* The rare halves of what follows. 1, or 0: nothing can be had now. */
int recorder_claim(struct recorder_stream *stream);
/* Whether `words` words can be had without waiting. */
int recorder_has_room(struct recorder_stream *stream, uint32_t words);
int recorder_renumber(struct recorder_stream *stream);
uint64_t *recorder_write_due(struct recorder_stream *stream, uint64_t *at);

/* Where `words` words may be written, behind what was due before them; NULL: no chunk is free. */
INLINE uint64_t *recorder_room(struct recorder_stream *stream, uint32_t words) {
    uint64_t *at;
    if (UNLIKELY(stream->used + words > stream->most) && !recorder_claim(stream)) {
        return NULL;
    }
    at = stream->chunk->word + stream->used;
    return LIKELY(stream->due == 0) ? at : recorder_write_due(stream, at);
}

INLINE void recorder_publish(struct recorder_stream *stream, const uint64_t *end) {
    stream->used = (uint32_t)(end - stream->chunk->word);
    STORE_RELEASE(&stream->chunk->used, stream->used);
}

/* Each appends an event and returns 1 (an allocation: its number, whose low half is not 0), or 0
 * where there is no room: the caller may recorder_wait() and try again, or reports the loss. */
INLINE uint64_t recorder_alloc(struct recorder_stream *stream, const struct recorder_alloc *alloc) {
    uint64_t extra = (uint64_t)alloc->alignment << 4 | alloc->size >> 36 << 10;
    uint32_t words = 2 + (alloc->weight != 0) + (extra != 0) + (alloc->replaces != 0);
    uint64_t number;
    uint64_t *at;
    if (UNLIKELY(stream->number == stream->numbers_end) && !recorder_renumber(stream)) {
        return 0;
    }
    at = recorder_room(stream, words);
    if (UNLIKELY(at == NULL)) {
        return 0;
    }
    if (UNLIKELY(alloc->weight != 0)) {
        *at++ = MEMTRACE_WORD_WEIGHT | alloc->weight << 4;
    }
    if (UNLIKELY(extra != 0)) {
        *at++ = MEMTRACE_WORD_EXTRA | extra;
    }
    if (alloc->replaces != 0) {
        *at++ = MEMTRACE_WORD_REALLOC | alloc->replaces;
    }
    *at++ = MEMTRACE_WORD_ALLOC | (uint64_t)alloc->context << 4 | alloc->size << 28;
    *at++ = alloc->address |
            (uint64_t)(alloc->slack < MEMTRACE_SLACK_MOST ? alloc->slack : MEMTRACE_SLACK_MOST)
                << 48 |
            (uint64_t)alloc->flags << 60;
    number = stream->number++;
    recorder_publish(stream, at);
    return number;
}

/* context: where it was freed; 0: not known. */
INLINE int recorder_free(struct recorder_stream *stream, uint64_t name, uint32_t context) {
    uint64_t *at = recorder_room(stream, 2);
    if (UNLIKELY(at == NULL)) {
        return 0;
    }
    if (context == 0) {
        *at++ = MEMTRACE_WORD_FREE | name;
    } else {
        *at++ = MEMTRACE_WORD_FREE_AT | name;
        *at++ = context;
    }
    recorder_publish(stream, at);
    return 1;
}

int recorder_map(struct recorder_stream *stream, const struct recorder_map *map);
/* The heap from before an attach: so many bytes are there, or were freed. context: whose. */
int recorder_before(struct recorder_stream *stream, enum memtrace_mark what, uint32_t context,
                    uint64_t bytes);
/* The text is cut behind RECORDER_TEXT_MOST bytes. */
int recorder_mark(struct recorder_stream *stream, enum memtrace_mark what, uint64_t id,
                  const char *text, size_t size);

/* Whether the collector writes down what is recorded: it has said so a moment ago, or may be about
 * to begin. */
int recorder_has_pulse(const struct recorder *recorder);
/* Whether it makes sense to wait for room: the policy says so and the collector's heart beats. The
 * caller knows whether it is in a signal handler, where nobody should. */
int recorder_may_wait(const struct recorder *recorder);
/* Waits until there is a chunk, for about a second at most. 1, or 0. */
int recorder_wait(struct recorder_stream *stream);

/* Counts events that are not in the recording. */
void recorder_lost(struct recorder_stream *stream, uint32_t allocs, uint32_t frees);

#endif
