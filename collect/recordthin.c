/* SPDX-License-Identifier: MIT */
/* recordthin.c: see recordthin.h. */
#include "collect/recordthin.h"

#include "collect/clock.h"

enum {
    WHOLE = RECORDTHIN_WHOLE,
    HALF = WHOLE / 2,
    MUCH = WHOLE / 4 * 3,
    NEARLY_ALL = WHOLE / 16 * 15,
    LOOK_MS = 2,
    ASK_MS = 100, /* what was asked for shows when some of what waits was sent and freed */
    RELAX_MS = 250,
    SOON_MS = 50,    /* where next to nothing is taken */
    DRY_MS = 20,     /* no buffer was free for so long: it is not that one is just being made */
    PIECE_MS = 1000, /* a stretch is written in pieces */
    CLOCK_MS = 10,   /* times of events are so much too early at most */
};

void recordthin_open(struct recordthin *thin, struct memtrace_recording *recording,
                     uint64_t written_ns) {
    *thin = (struct recordthin){.seen_ns = written_ns};
    if (recording->on_lag == MEMTRACE_LAG_THIN) {
        thin->recording = recording;
        thin->queue.left_then = WHOLE;
    }
}

/* ---- How much room there is ---- */

static uint32_t recordthin_share(uint64_t left, uint64_t whole) {
    return left < whole ? (uint32_t)((double)left / (double)whole * WHOLE) : WHOLE;
}

/* Where no more buffers can be had than there are, all of them may be taken though others could
 * still be made as it seems. */
static void look_at_buffers(struct recordthin *thin, const struct drain *drain, uint64_t now_ns) {
    unsigned spare;
    unsigned to_come;
    drain_count_free(drain, &spare, &to_come);
    thin->dry_ns = spare != 0 ? 0 : thin->dry_ns != 0 ? thin->dry_ns : now_ns;
    thin->buffers_left =
        spare == 0 && now_ns - thin->dry_ns >= DRY_MS * MS
            ? 0
            : recordthin_share(spare + to_come, MEMTRACE_CHUNK_LIMIT - MEMTRACE_CHUNK_SEGMENTS);
}

bool recordthin_asks(struct recordthin_room *room, uint32_t left) {
    bool asks = left < HALF && left < room->left_then - room->left_then / MEMTRACE_THIN_PART;
    room->left = left;
    if (left >= HALF) {
        room->left_then = WHOLE;
    } else if (asks || left > room->left_then) { /* some came back: from there on */
        room->left_then = left;
    }
    return asks;
}

/* ---- How far it is thinned ---- */

/* That it is thinned, since the last look or since it was asked for. */
static void recordthin_note(struct recordthin *thin, uint64_t now_ns, uint64_t time_ns) {
    unsigned shift =
        __atomic_load_n(&thin->recording->flags, __ATOMIC_RELAXED) >> MEMTRACE_RECORDING_THIN_SHIFT;
    uint64_t distance = shift != 0 ? memtrace_distance(thin->recording) : 0;
    if (distance != 0 && thin->open.distance == 0) {
        thin->open.from_ns = thin->seen_ns > CLOCK_MS * MS ? thin->seen_ns - CLOCK_MS * MS : 0;
    }
    if (distance > thin->open.distance) {
        thin->open.distance = distance;
    }
    if (shift != thin->shift) {
        thin->shift = shift;
        thin->changed_ns = now_ns;
    }
    thin->seen_ns = time_ns;
}

void recordthin_look(struct recordthin *thin, const struct drain *drain, uint64_t queued,
                     uint64_t most, uint64_t time_ns) {
    uint64_t now_ns = clock_now_ns();
    uint32_t left = most == 0 ? WHOLE : queued < most ? recordthin_share(most - queued, most) : 0;
    bool is_pause = now_ns - thin->asked_ns < ASK_MS * MS;
    bool is_needed = false;
    if (thin->recording == NULL || thin->ended_ns != 0 || now_ns - thin->looked_ns < LOOK_MS * MS) {
        return;
    }
    thin->looked_ns = now_ns;
    look_at_buffers(thin, drain, now_ns);
    /* Whether a full queue is thinned enough shows in the buffers; and whether that is enough where
     * none is left shows in nothing: threads that find none wait. */
    if (left == 0) {
        thin->queue.left = 0;
    } else if (!is_pause) {
        is_needed = recordthin_asks(&thin->queue, left);
    }
    is_needed |= !is_pause && thin->buffers_left == 0;
    left = thin->buffers_left < thin->queue.left ? thin->buffers_left : thin->queue.left;
    if (is_needed) {
        memtrace_thin(thin->recording, 1);
        thin->asked_ns = now_ns;
    } else if (left >= MUCH && thin->shift != 0 &&
               now_ns - thin->changed_ns >= (left >= NEARLY_ALL ? SOON_MS : RELAX_MS) * MS) {
        memtrace_thin(thin->recording, 0);
    }
    recordthin_note(thin, now_ns, time_ns);
}

void recordthin_end(struct recordthin *thin, uint64_t time_ns) {
    if (thin->recording != NULL && thin->ended_ns == 0) {
        recordthin_note(thin, clock_now_ns(), time_ns);
        thin->ended_ns = time_ns;
    }
}

/* ---- Telling of it ---- */

int recordthin_write(struct recordthin *thin, struct recordfile *file, uint64_t time_ns,
                     struct error *error) {
    struct memtrace_thinned *open = &thin->open;
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_THINNED, .items = 1};
    bool is_over;
    if (thin->recording == NULL || open->distance == 0) {
        return 0;
    }
    is_over = thin->shift == 0 || thin->ended_ns != 0;
    if (!is_over && time_ns - open->from_ns < PIECE_MS * MS) {
        return 0;
    }
    time_ns = thin->ended_ns != 0 ? thin->ended_ns : time_ns;
    open->to_ns = time_ns > open->from_ns ? time_ns : open->from_ns + 1;
    block.first_ns = open->from_ns;
    block.last_ns = open->to_ns;
    if (recordfile_append(file, &block, open, sizeof *open, error) != 0) {
        return -1;
    }
    *open = is_over ? (struct memtrace_thinned){0}
                    : (struct memtrace_thinned){.from_ns = open->to_ns,
                                                .distance = memtrace_distance(thin->recording)};
    return 0;
}
