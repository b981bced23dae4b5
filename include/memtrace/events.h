/* SPDX-License-Identifier: MIT */
/*
 * events.h: how a recorded program hands its events to the collector: buffers in the profile region
 * (format.h), written by the program's threads and drained by one collector. docs/format.md says
 * the same in words. What the collector makes of them, the file, is recording.h.
 *
 * A thread appends 64-bit words to a chunk of its own. A full chunk is left to the collector, and a
 * free one is taken: both by one atomic operation, so a thread that is killed leaves nothing in
 * between. Who drains knows a chunk by its stream and sequence; whatever `used` covers is whole.
 */
#ifndef MEMTRACE_EVENTS_H
#define MEMTRACE_EVENTS_H

#include "memtrace/format.h"

enum {
    MEMTRACE_CHUNK_BYTES = 32768,
    MEMTRACE_CHUNK_WORDS = (MEMTRACE_CHUNK_BYTES - 64) / 8,
    MEMTRACE_CHUNKS_PER_SEGMENT = 32, /* place 0 lies under the segment's header and is no chunk */
    MEMTRACE_CHUNK_SEGMENTS = 64,     /* so all buffers are 64 MiB at most */
    MEMTRACE_CHUNK_LIMIT = MEMTRACE_CHUNK_SEGMENTS * MEMTRACE_CHUNKS_PER_SEGMENT
};

enum memtrace_record_state {
    MEMTRACE_RECORD_NONE = 0,    /* no recording was asked for */
    MEMTRACE_RECORD_WANTED = 1,  /* events are buffered; the collector writes them down */
    MEMTRACE_RECORD_STOPPED = 2, /* for good: the disk is full, a limit was reached */
    /* One that begins and ends in the middle of a run (MEMTRACE_RECORDING_MIDWAY): after NONE */
    MEMTRACE_RECORD_ASKED = 3,   /* a command wants one: the collector is to open its file */
    MEMTRACE_RECORD_OPENED = 4,  /* it has: the program begins, and says WANTED */
    MEMTRACE_RECORD_ENDING = 5,  /* a command wants no more: the program lets go, and says LEFT */
    MEMTRACE_RECORD_LEFT = 6,    /* no thread writes events: the collector closes its file: NONE */
    MEMTRACE_RECORD_REFUSED = 7, /* it cannot be: recording.path says why; as NONE */
};

/* What a thread does that finds no free chunk. */
enum memtrace_lag {
    MEMTRACE_LAG_WAIT = 0, /* waits in bounded steps while the collector's heart beats */
    MEMTRACE_LAG_DROP = 1, /* counts the event as lost */
    MEMTRACE_LAG_THIN = 2, /* waits; and what comes is thinned before that is needed */
};

/*
 * In the header of the region (MEMTRACE_RECORDING_OFFSET). Chunk c is place c % 32 of the segment
 * of kind MEMTRACE_SEGMENT_EVENTS with index c / 32.
 */
struct memtrace_recording {
    uint32_t state;        /* live: enum memtrace_record_state */
    uint32_t on_lag;       /* enum memtrace_lag */
    uint32_t flags;        /* MEMTRACE_RECORDING_*; live: _THINNED and _THIN */
    uint32_t stream_count; /* live: streams begun */
    uint64_t heartbeat_ns; /* live: CLOCK_MONOTONIC of the collector's last round; 0: none yet */
    uint64_t sample_bytes; /* 0: every allocation; else the mean distance of sampled bytes */
    uint64_t rotate_bytes; /* 0: one file; else a new one is begun at this size */
    uint64_t duration_ns;  /* 0: to the end; else recording stops so long after the start */
    uint64_t lost_allocs;  /* live: in the profile but not in the recording */
    uint64_t lost_frees;   /* live: of recorded blocks */
    uint64_t cull_ns; /* 0: nothing; else what lives shorter is left out of the file, both ends */
    uint32_t embed;   /* enum memtrace_embed */
    uint32_t begun;   /* live: how often one was begun in the middle of the run */
    uint64_t size_least;   /* only heap blocks of these sizes are recorded */
    uint64_t size_most;    /* 0: of any size */
    uint64_t cull_pending; /* blocks that may wait in the buffers for that; 0: what these hold */
    uint64_t queue_bytes;  /* 0: any; else what of a file is on the disk, the rest being sent */
    uint64_t begun_ns;     /* live: when it began, since the program's start; 0: with it */
    uint64_t file_events;  /* live: of the last that was ended in the middle of the run */
    uint64_t file_bytes;
    /* live: bit c % 64 of word c / 64: chunk c is free. A thread takes one by clearing its bit, the
     * collector gives it back by setting it. */
    uint64_t free_chunks[MEMTRACE_CHUNK_LIMIT / 64];
    char path[1008]; /* absolute path of the recording, patterns expanded */
    /* live: header.module_count when the collector had looked at the files of all modules below it:
     * a program that ends earlier waits a little for that where nobody would find them later */
    uint32_t modules_seen;
    uint32_t reserved;
};
#define MEMTRACE_RECORDING_OFFSET 320
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_recording) == 1408, "recording size");
MEMTRACE_STATIC_ASSERT(MEMTRACE_RECORDING_OFFSET + sizeof(struct memtrace_recording) <= 2048,
                       "recording lies in the header's reserve");

/* Whether events are written down, or were until it could not go on. */
static inline int memtrace_is_recorded(const struct memtrace_recording *recording) {
    uint32_t state = __atomic_load_n(&recording->state, __ATOMIC_ACQUIRE);
    return state == MEMTRACE_RECORD_WANTED || state == MEMTRACE_RECORD_STOPPED;
}

/* recording.flags */
enum {
    MEMTRACE_RECORDING_PRECISE = 1u << 0,      /* a time before each event */
    MEMTRACE_RECORDING_FREE_STACKS = 1u << 1,  /* frees carry their own context */
    MEMTRACE_RECORDING_NO_ADDRESSES = 1u << 2, /* the file is to hold no addresses */
    MEMTRACE_RECORDING_PROFILE = 1u << 3,      /* a profile is written at the end, too */
    MEMTRACE_RECORDING_MODULES = 1u << 4,      /* only what some modules allocate is recorded */
    MEMTRACE_RECORDING_NO_SLICES = 1u << 5,    /* the file is to hold no sums of its events */
    MEMTRACE_RECORDING_MIDWAY = 1u << 6,       /* it began in the middle of the run */
    MEMTRACE_RECORDING_CUT = 1u << 7,          /* and could not be written to its end */
    MEMTRACE_RECORDING_THINNED = 1u << 8,      /* live: it was thinned at times */
    /* Upper 8 bits, in the region alone: log2 of the mean distance of sampled bytes, if that is
     * larger than sample_bytes, where more comes than can be taken; 0: nothing is thinned. Who sees
     * that it is needed writes it (threads: too few buffers are free; the collector: too much waits
     * to be sent); the collector alone takes it back. Threads mind it from their next event on. */
    MEMTRACE_RECORDING_THIN_SHIFT = 24,
};
#define MEMTRACE_RECORDING_THIN (UINT32_C(255) << MEMTRACE_RECORDING_THIN_SHIFT)

enum {
    MEMTRACE_THIN_FIRST = 8, /* 256 bytes: less leaves out next to nothing */
    MEMTRACE_THIN_LAST = 26, /* 64 MiB: hardly anything is left to thin */
    /* Half of the room is taken: doubled, and then with each eighth of what is left. */
    MEMTRACE_THIN_PART = 8,
};

/* The mean distance of sampled bytes at this moment: what was chosen, or what is needed. */
static inline uint64_t memtrace_distance(const struct memtrace_recording *recording) {
    uint64_t chosen = __atomic_load_n(&recording->sample_bytes, __ATOMIC_RELAXED);
    uint32_t flags = __atomic_load_n(&recording->flags, __ATOMIC_RELAXED);
    uint32_t shift = flags >> MEMTRACE_RECORDING_THIN_SHIFT;
    uint64_t needed = shift != 0 ? UINT64_C(1) << (shift & 63) : 0;
    return chosen > needed ? chosen : needed;
}

/* One step further, or back to where nothing is thinned that was not chosen. */
static inline void memtrace_thin(struct memtrace_recording *recording, int more) {
    uint64_t chosen = __atomic_load_n(&recording->sample_bytes, __ATOMIC_RELAXED);
    uint32_t seen = __atomic_load_n(&recording->flags, __ATOMIC_RELAXED);
    uint32_t first = MEMTRACE_THIN_FIRST;
    uint32_t shift;
    uint32_t after;
    while (first < MEMTRACE_THIN_LAST && UINT64_C(1) << first <= chosen) {
        first++;
    }
    do {
        shift = seen >> MEMTRACE_RECORDING_THIN_SHIFT;
        shift = !more ? shift > first ? shift - 1 : 0 : shift < first ? first : shift + 1;
        shift = shift < MEMTRACE_THIN_LAST ? shift : MEMTRACE_THIN_LAST;
        after = (seen & ~MEMTRACE_RECORDING_THIN) | MEMTRACE_RECORDING_THINNED |
                shift << MEMTRACE_RECORDING_THIN_SHIFT;
    } while (!__atomic_compare_exchange_n(&recording->flags, &seen, after, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

/* What of the program's files goes into the recording. */
enum memtrace_embed {
    MEMTRACE_EMBED_SYMBOLS = 0, /* what names functions and lines */
    MEMTRACE_EMBED_NONE = 1,
    MEMTRACE_EMBED_ALL = 2,
};

enum memtrace_chunk_state {
    MEMTRACE_CHUNK_FREE = 0,
    MEMTRACE_CHUNK_OPEN = 1, /* its stream's thread appends to it */
    MEMTRACE_CHUNK_FULL = 2, /* left to the collector */
};

/*
 * One chunk. A stream is what one thread recorded: its chunks by sequence, without gaps. The words
 * [0, used) are whole events (a prefix word and what it belongs to are published together);
 * `used` is stored with release after them. The collector alone writes `drained`.
 */
struct memtrace_chunk {
    uint32_t state;        /* enum memtrace_chunk_state */
    uint32_t stream;       /* from 1 on; unique within the process */
    uint32_t thread;       /* id in the thread table; streams of MEMTRACE_THREAD_OTHERS share it */
    uint32_t sequence;     /* within the stream, from 0 */
    uint64_t first_number; /* of the first allocation in it (see "numbers" below) */
    uint64_t start_ns;     /* time of its events before the first MEMTRACE_WORD_TIME */
    uint32_t used;         /* live: words */
    uint32_t drained;      /* live: words that are in the file */
    uint64_t reserved[3];
    uint64_t word[MEMTRACE_CHUNK_WORDS];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_chunk) == MEMTRACE_CHUNK_BYTES, "chunk size");

/*
 * Marks that somebody else than the program asks for (`memtrace control PID mark`): in the segment
 * of index 0, in the place that is no chunk. The n-th mark (n from 1 on) is text[(n - 1) %
 * MEMTRACE_ASKED_MARKS]; of those that ask, one at a time writes it, and then `asked`. The
 * collector writes it down, and then `taken`:
 *
 *     taken <= asked <= taken + MEMTRACE_ASKED_MARKS
 */
enum { MEMTRACE_ASKED_MARKS = 4, MEMTRACE_ASKED_MARK_BYTES = 256 };
struct memtrace_asked_marks {
    uint64_t asked;                                             /* live */
    uint64_t taken;                                             /* live */
    char text[MEMTRACE_ASKED_MARKS][MEMTRACE_ASKED_MARK_BYTES]; /* each ends with a zero */
};
#define MEMTRACE_ASKED_MARKS_OFFSET 64 /* in the segment, behind its header */
MEMTRACE_STATIC_ASSERT(MEMTRACE_ASKED_MARKS_OFFSET + sizeof(struct memtrace_asked_marks) <= 4096,
                       "asked marks lie in the first page");

static inline struct memtrace_asked_marks *memtrace_asked_marks_in(void *segment) {
    return (struct memtrace_asked_marks *)(void *)((char *)segment + MEMTRACE_ASKED_MARKS_OFFSET);
}

/*
 * Words. The low four bits of an event's first word tell its kind, and so its length.
 *
 * Numbers. A block is named by the thread id that allocated it and a number: the allocations of a
 * thread id are numbered from 1 on, in the order of its stream, so an allocation's number is not
 * written: it is chunk.first_number plus the allocations before it in the chunk
 * (MEMTRACE_WORD_NUMBERS sets it anew). A free names the block: its owner's thread id and number
 * are read from the block's own record, which nobody else writes while the block lives. So a free
 * finds its allocation whatever thread it comes from, in whatever order chunks are read, and
 * however often the address was reused.
 */
enum memtrace_word {
    /* kind 4 | context 24 | size 36, then address 48 | slack 12 | flags 4. slack: usable size minus
     * size, MEMTRACE_SLACK_MOST: that or more. A custom pool's allocation is one, too: its context
     * ends in the pool's class frame. */
    MEMTRACE_WORD_ALLOC = 1,
    /* kind 4 | owner's thread id 12 | number, low 32 bits | number, next 16 bits */
    MEMTRACE_WORD_FREE = 2,
    /* the same, then the context (24) in which it was freed */
    MEMTRACE_WORD_FREE_AT = 3,
    /* prefix of an ALLOC: as FREE, the block that realloc moved or resized */
    MEMTRACE_WORD_REALLOC = 4,
    /* prefix of an ALLOC, before a REALLOC prefix: kind 4 | log2 of the alignment asked for 6, 0:
     * none | size, bits from 36 on 12 | zero 42 */
    MEMTRACE_WORD_EXTRA = 5,
    /* kind 4 | nanoseconds since the start 60: the time of all that follows */
    MEMTRACE_WORD_TIME = 6,
    /* kind 4 | operation 4 (enum memtrace_map_operation) | protection 8 | flags 8 | context 24 |
     * zero 16, then address, length, old address (mremap; else 0), old length */
    MEMTRACE_WORD_MAP = 7,
    /* kind 4 | what 4 (enum memtrace_mark) | bytes of text 16 | id 40, then the text, padded with
     * zeros to whole words */
    MEMTRACE_WORD_MARK = 8,
    /* kind 4 | allocations lost 30 | frees lost 30, of this stream, before this place */
    MEMTRACE_WORD_LOST = 9,
    /* kind 4 | number 60: of the next allocation */
    MEMTRACE_WORD_NUMBERS = 10,
    /* prefix of an ALLOC, first of all: kind 4 | weight 60: a sampled allocation stands for so many
     * bytes (sample_bytes != 0) */
    MEMTRACE_WORD_WEIGHT = 11,
    /* kind 4 | what 4 (MEMTRACE_MARK_BEFORE or _BEFORE_FREED) | context 24 (of
     * MEMTRACE_FRAME_BEFORE) | zero 32, then bytes */
    MEMTRACE_WORD_BEFORE = 12,
};

/* flags of an ALLOC */
enum {
    MEMTRACE_ALLOC_ZEROED = 1u << 0, /* by calloc */
    MEMTRACE_ALLOC_MAPPED = 1u << 1, /* glibc gave it a mapping of its own */
    MEMTRACE_ALLOC_ARENA = 1u << 2,  /* glibc: not from the main arena */
    MEMTRACE_ALLOC_BEFORE = 1u << 3, /* it was there when the recording began */
};
#define MEMTRACE_SLACK_MOST 4095u

enum memtrace_map_operation {
    MEMTRACE_MAP_MAP = 1,
    MEMTRACE_MAP_UNMAP = 2,
    MEMTRACE_MAP_REMAP = 3,
    MEMTRACE_MAP_BREAK = 4, /* brk, sbrk: [address, length) is new, or [old, old length) is gone */
};

enum memtrace_mark {
    MEMTRACE_MARK_POINT = 1,       /* memtrace_mark() */
    MEMTRACE_MARK_SCOPE_BEGIN = 2, /* memtrace_scope_begin(); id: the scope */
    MEMTRACE_MARK_SCOPE_END = 3,   /* memtrace_scope_end() */
    MEMTRACE_MARK_SNAPSHOT = 4,    /* memtrace_snapshot() */
    MEMTRACE_MARK_ON = 5,          /* recording was switched on */
    MEMTRACE_MARK_OFF = 6,
    MEMTRACE_MARK_SAMPLE = 7,  /* memtrace_sample(); id: the mean distance from here on, 0: exact */
    MEMTRACE_MARK_MALLOPT = 8, /* mallopt(); text: "M_ARENA_MAX=1" */
    /* No marks, but written as such, so that older readers pass over them. The heap that was there
     * before the program was attached to (MEMTRACE_FRAME_BEFORE); id: bytes. */
    MEMTRACE_MARK_BEFORE = 9,        /* so much more was there */
    MEMTRACE_MARK_BEFORE_FREED = 10, /* an old block was freed */
};

#endif
