/* SPDX-License-Identifier: MIT */
/* recordevents.c: buffers into blocks. See recordevents.h. */
#include "collect/recordevents.h"

#include "analyze/window/recordingtables.h"
#include "collect/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BLOCK_EVENTS = 1 << 17,
    BLOCK_BYTES = 16 << 20, /* of marks' texts, in the end */
    BLOCK_NODES = 1 << 18,
};

void recordevents_beat(struct recordevents *events) {
    uint64_t most = events->recording->queue_bytes;
    __atomic_store_n(&events->recording->heartbeat_ns, clock_now_ns(), __ATOMIC_RELEASE);
    if (events->thin.recording != NULL) {
        recordthin_look(&events->thin, &events->drain, most != 0 ? recordevents_queued(events) : 0,
                        most, claim_time_ns(events->claim));
    }
}

uint64_t recordevents_queued(const struct recordevents *events) {
    enum { UNIT = 512 }; /* of st_blocks */
    const struct recordfile *file = &events->parts.file;
    uint64_t ahead = file->reserved > file->size ? file->reserved - file->size : 0;
    struct stat status;
    uint64_t taken = fstat(file->fd, &status) == 0 ? (uint64_t)status.st_blocks * UNIT : 0;
    return taken > ahead ? taken - ahead : 0; /* what is kept for the end is not to be sent yet */
}

bool recordevents_have_room(const struct recordevents *events) {
    uint64_t most = events->recording->queue_bytes;
    return most == 0 || events->is_ending || recordevents_queued(events) < most;
}

int recordevents_refresh(struct recordevents *events) {
    uint64_t end = claim_load_u64(&events->claim->header->end);
    events->refreshed_ns = clock_now_ns();
    if (end == events->seen_end) {
        return 0;
    }
    if (events->profile->live && profile_refresh(events->profile, events->error) != 0) {
        return -1;
    }
    drain_map(&events->drain, events->profile, events->claim->fd);
    recordtables_refresh(&events->tables);
    events->seen_end = profile_reaches(events->profile, end) ? end : 0;
    return 0;
}

/* The context and its ancestors come before the event. One that is nowhere to be found is damage
 * that a reader has to live with. */
static int note_context(struct recordevents *events, uint32_t context) {
    int result = recordtables_note(&events->tables, context);
    if (result > 0 && recordevents_refresh(events) == 0) {
        result = recordtables_note(&events->tables, context);
    }
    return result < 0 ? error_set(events->error, "out of memory while recording") : 0;
}

static int add_event(struct recordevents *events, const struct event *event) {
    if (!recordtables_has(&events->tables, event->context) &&
        note_context(events, event->context) != 0) {
        return -1;
    }
    if (events->tables.node_count >= BLOCK_NODES && recordparts_write_nodes(&events->parts) != 0) {
        return -1;
    }
    if (event_encoder_add(events->encoder, event) != 0) {
        return error_set(events->error, "out of memory while recording");
    }
    return 0;
}

/* The bytes are asked for now and then: no text of a mark is longer than 64 KiB. */
static bool is_full(const struct event_encoder *encoder) {
    size_t count = event_encoder_count(encoder);
    return count >= BLOCK_EVENTS ||
           (count % 256 == 0 && event_encoder_bytes(encoder) >= BLOCK_BYTES);
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* The next event that is to be written now: 1, 0: there is none, or -1. What is left out lies
 * behind the cursor then, too. */
static int next_event(struct recordevents *events, struct drain_cursor *cursor, uint64_t until_ns,
                      struct event *event) {
    struct drain_cursor before;
    int result;
    do {
        before = *cursor;
        if (drain_next(cursor, event) == 0) {
            return 0;
        }
        if (event->time_ns > until_ns) {
            *cursor = before;
            return 0;
        }
        result = cull_decide(&events->cull, event);
    } while (result == 0);
    return result > 0 ? 1 : error_set(events->error, "out of memory while recording");
}

/* The same, without those after the recording's duration: threads hear of its end when their buffer
 * is full. */
static int recordevents_take_event(struct recordevents *events, struct drain_cursor *cursor,
                                   uint64_t until_ns, struct event *event) {
    int result;
    do {
        result = events->cull.below_ns == 0 ? drain_next(cursor, event)
                                            : next_event(events, cursor, until_ns, event);
    } while (result > 0 && event->time_ns > events->end_ns);
    return result;
}

/* Encodes what follows the cursor. 0 or -1. */
static int encode(struct recordevents *events, struct drain_cursor *cursor, uint64_t until_ns) {
    struct event event;
    int found = recordevents_take_event(events, cursor, until_ns, &event);
    event_encoder_start(events->encoder, cursor->span->thread,
                        found > 0 && event.kind == EVENT_ALLOC ? event.block.number
                                                               : drain_number(cursor));
    while (found > 0) {
        if (add_event(events, &event) != 0) {
            return -1;
        }
        found = is_full(events->encoder)
                    ? 0
                    : recordevents_take_event(events, cursor, until_ns, &event);
    }
    return found;
}

/* Contexts first, then events, then what of them was left out. */
static int recordevents_append(struct recordevents *events, struct memtrace_block_header *block,
                               const void *payload, size_t size) {
    for (size_t i = 0; i < events->cull.totals.count; i++) {
        uint32_t context = events->cull.totals.items[i].context;
        if (!recordtables_has(&events->tables, context) && note_context(events, context) != 0) {
            return -1;
        }
    }
    if (recordparts_write_nodes(&events->parts) != 0 ||
        recordfile_append(&events->parts.file, block, payload, size, events->error) != 0) {
        return -1;
    }
    return cull_write(&events->cull, &events->parts.file, claim_time_ns(events->claim),
                      events->error);
}

/* One block of what follows the cursor; also one without events, where all were left out or a whole
 * buffer had none, so that the blocks of a stream join. 1; 0: there is nothing more for now; -1: it
 * failed. */
static int recordevents_write_block(struct recordevents *events, struct drain_cursor *cursor,
                                    uint64_t until_ns) {
    struct drain_place first = drain_here(cursor);
    struct drain_place end;
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS};
    size_t size;
    const void *payload;
    if (encode(events, cursor, until_ns) != 0) {
        return -1;
    }
    end = drain_here(cursor);
    if (event_encoder_count(events->encoder) == 0 && events->cull.totals.count == 0 &&
        end.sequence == first.sequence) {
        return 0;
    }
    payload = event_encoder_finish(events->encoder, &size, &block);
    if (payload == NULL) {
        return error_set(events->error, "out of memory while recording");
    }
    block.stream = cursor->span->stream;
    block.thread = cursor->span->thread;
    block.first_sequence = first.sequence;
    block.first_word = (uint16_t)first.word;
    block.end_sequence = end.sequence;
    block.end_word = (uint16_t)end.word;
    if (recordevents_append(events, &block, payload, size) != 0) {
        return -1;
    }
    events->count += block.items;
    drain_commit(cursor);
    return 1;
}

int recordevents_write(struct recordevents *events, const struct drain_span *span,
                       uint64_t until_ns) {
    struct drain_cursor cursor;
    int result;
    drain_start(&events->drain, span, &cursor);
    do {
        recordevents_beat(events);
        result = recordevents_write_block(events, &cursor, until_ns);
    } while (result > 0 && recordevents_have_room(events));
    return result < 0 ? -1 : 0;
}

int recordevents_note(struct recordevents *events, bool ended) {
    struct drain_span span = {0};
    cull_begin(&events->cull);
    while (drain_next_span(&events->drain, ended, &span)) {
        struct drain_cursor cursor;
        struct event event;
        recordevents_beat(events);
        drain_start(&events->drain, &span, &cursor);
        while (drain_next(&cursor, &event) > 0) {
            if (cull_note(&events->cull, &event) != 0) {
                return error_set(events->error, "out of memory while recording");
            }
        }
    }
    cull_judge(&events->cull);
    return 0;
}

int recordevents_drop(struct recordevents *events) {
    struct drain_span span = {0};
    uint64_t allocs = 0;
    uint64_t frees = 0;
    if (drain_look(&events->drain) != 0) {
        return error_set(events->error, "out of memory while recording");
    }
    while (drain_next_span(&events->drain, true, &span)) {
        struct drain_cursor cursor;
        struct event event;
        drain_start(&events->drain, &span, &cursor);
        while (drain_next(&cursor, &event) > 0) {
            allocs += event.kind == EVENT_ALLOC;
            frees += event.kind == EVENT_FREE || event_is_before_freed(&event) ||
                     (event.kind == EVENT_ALLOC && event.old.number != 0);
        }
        drain_commit(&cursor);
    }
    __atomic_fetch_add(&events->recording->lost_allocs, allocs, __ATOMIC_RELAXED);
    __atomic_fetch_add(&events->recording->lost_frees, frees, __ATOMIC_RELAXED);
    return 0;
}

/* The places in its stream are counted as those of buffers are, so that its blocks join. */
int recordevents_mark(struct recordevents *events, uint64_t time_ns, const char *text) {
    const struct event event = {.kind = EVENT_MARK,
                                .operation = MEMTRACE_MARK_POINT,
                                .time_ns = time_ns,
                                .text = text,
                                .text_size = (uint32_t)strlen(text)};
    struct drain_place *end = &events->marks_end;
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS,
                                          .stream = 0,
                                          .first_sequence = end->sequence,
                                          .first_word = (uint16_t)end->word,
                                          .end_sequence = end->sequence,
                                          .end_word = (uint16_t)(end->word + 1)};
    size_t size;
    const void *payload;
    event_encoder_start(events->encoder, MEMTRACE_THREAD_OTHERS, 0);
    if (event_encoder_add(events->encoder, &event) != 0 ||
        (payload = event_encoder_finish(events->encoder, &size, &block)) == NULL) {
        return error_set(events->error, "out of memory while recording");
    }
    if (recordfile_append(&events->parts.file, &block, payload, size, events->error) != 0) {
        return -1;
    }
    events->count++;
    end->word++;
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Opens the file and takes in what it holds that somebody else wrote. */
static int recordevents_open_file(struct recordevents *events) {
    uint64_t written_ns = 0;
    int result = recordparts_open(&events->parts, events->claim, &events->tables, events->error);
    for (size_t i = 0; i < events->parts.file.index_count && result == 0; i++) {
        const struct memtrace_block_header *block = &events->parts.file.index[i].block;
        struct drain_place end = {block->end_sequence, block->end_word};
        if (block->kind == MEMTRACE_BLOCK_EVENTS) {
            if (block->stream == 0) {
                events->marks_end = end;
            }
            result = drain_note_written(&events->drain, block->stream, end);
            events->count += block->items;
        }
        if ((block->kind == MEMTRACE_BLOCK_EVENTS || block->kind == MEMTRACE_BLOCK_THINNED) &&
            block->last_ns > written_ns) {
            written_ns = block->last_ns;
        }
    }
    recordthin_open(&events->thin, events->recording, written_ns);
    return result;
}

/* The limit for measured lives, so that what lived as long as the user said is never left out: both
 * its ends may be a timer interrupt early (runtime/base/clock.h). */
static uint64_t surely_below(const struct memtrace_recording *recording) {
    enum { CLOCK_ERROR_NS = 10 * 1000 * 1000 };
    uint64_t half = recording->cull_ns / 2;
    uint64_t error = half < CLOCK_ERROR_NS ? half : CLOCK_ERROR_NS;
    bool is_precise = (recording->flags & MEMTRACE_RECORDING_PRECISE) != 0;
    return is_precise ? recording->cull_ns : recording->cull_ns - error;
}

int recordevents_open(struct recordevents *events, const struct claim *claim, struct error *error) {
    *events = (struct recordevents){.claim = claim,
                                    .recording = claim_recording(claim),
                                    .parts.file = RECORDFILE_NONE,
                                    .error = error};
    events->profile = claim_profile(claim, error);
    if (events->profile == NULL) {
        return -1;
    }
    events->encoder = event_encoder_new(events->recording->flags);
    if (events->encoder == NULL || drain_open(&events->drain, events->recording) != 0 ||
        recordtables_open(&events->tables, events->profile) != 0) {
        return error_set(error, "out of memory while recording");
    }
    cull_open(&events->cull, surely_below(events->recording));
    events->end_ns = events->recording->duration_ns;
    events->end_ns = events->end_ns != 0 ? events->end_ns : UINT64_MAX;
    drain_map(&events->drain, events->profile, claim->fd);
    return recordevents_open_file(events);
}

void recordevents_close(struct recordevents *events) {
    recordfile_release(&events->parts.file);
    recordtables_close(&events->tables);
    drain_close(&events->drain);
    cull_close(&events->cull);
    event_encoder_free(events->encoder);
    profile_close(events->profile);
}

/* ---- Gaps ---- */

enum {
    OVER_MS = 1000,  /* a gap in which nothing was lost for so long is over */
    LONG_MS = 10000, /* a longer one is written in pieces */
};

static bool recordgap_is_open(const struct recordgap *gap) {
    return gap->open.to_ns != 0;
}

static void count_lost(struct recordgap *gap, const struct recordevents *events) {
    gap->allocs = claim_load_u64(&events->recording->lost_allocs);
    gap->frees = claim_load_u64(&events->recording->lost_frees);
}

/* Another collector may have died with a gap that it had not written yet: it came behind the last
 * block. */
void recordgap_open(struct recordgap *gap, const struct recordevents *events) {
    const struct recordfile *file = &events->parts.file;
    const struct memtrace_block_header *last = NULL;
    *gap = (struct recordgap){0};
    for (size_t i = 0; i < file->index_count; i++) {
        const struct memtrace_block_header *block = &file->index[i].block;
        if (block->kind == MEMTRACE_BLOCK_GAP) {
            last = block;
            gap->any = true;
        }
        if (block->kind == MEMTRACE_BLOCK_EVENTS && block->last_ns > gap->looked_ns) {
            gap->looked_ns = block->last_ns;
        }
    }
    if (last != NULL) {
        gap->told_allocs = gap->allocs = last->allocs;
        gap->told_frees = gap->frees = last->frees;
    } else if (events->parts.header.part != 0) { /* earlier parts have told */
        count_lost(gap, events);
        gap->told_allocs = gap->allocs;
        gap->told_frees = gap->frees;
    }
    if (claim_load_u32(&events->recording->state) == MEMTRACE_RECORD_STOPPED &&
        events->recording->duration_ns == 0) {
        gap->stopped_ns = gap->looked_ns;
    }
}

void recordgap_look(struct recordgap *gap, const struct recordevents *events, uint64_t time_ns) {
    uint64_t before = gap->allocs + gap->frees;
    count_lost(gap, events);
    if (gap->allocs + gap->frees > before) {
        gap->open.from_ns = recordgap_is_open(gap) ? gap->open.from_ns : gap->looked_ns;
        gap->open.to_ns = time_ns > gap->open.from_ns ? time_ns : gap->open.from_ns + 1;
        gap->any = true;
    }
    gap->looked_ns = time_ns;
}

void recordgap_stop(struct recordgap *gap, uint64_t time_ns) {
    gap->stopped_ns = gap->stopped_ns != 0 ? gap->stopped_ns : time_ns;
}

static int recordgap_append(struct recordgap *gap, struct recordevents *events,
                            const struct memtrace_gap *what) {
    struct memtrace_block_header block = {
        .kind = MEMTRACE_BLOCK_GAP,
        .first_ns = what->from_ns,
        .last_ns = what->to_ns,
        .items = 1,
        .allocs = gap->told_allocs < UINT32_MAX ? (uint32_t)gap->told_allocs : UINT32_MAX,
        .frees = gap->told_frees < UINT32_MAX ? (uint32_t)gap->told_frees : UINT32_MAX};
    return recordfile_append(&events->parts.file, &block, what, sizeof *what, events->error);
}

int recordgap_write(struct recordgap *gap, struct recordevents *events, bool ended) {
    bool is_due =
        recordgap_is_open(gap) && (ended || gap->looked_ns - gap->open.to_ns >= OVER_MS * MS ||
                                   gap->open.to_ns - gap->open.from_ns >= LONG_MS * MS);
    if (is_due) {
        struct memtrace_gap whole = gap->open;
        whole.allocs = gap->allocs - gap->told_allocs;
        whole.frees = gap->frees - gap->told_frees;
        gap->told_allocs = gap->allocs;
        gap->told_frees = gap->frees;
        gap->open = (struct memtrace_gap){0};
        if (recordgap_append(gap, events, &whole) != 0) {
            return -1;
        }
    }
    if (ended && gap->stopped_ns != 0) { /* of the time in which it was stopped nobody counts */
        struct memtrace_gap rest = {gap->stopped_ns, gap->looked_ns, 0, 0};
        gap->any = true;
        return rest.to_ns > rest.from_ns ? recordgap_append(gap, events, &rest) : 0;
    }
    return 0;
}

/* ---- Totals ---- */

/* 0 or -1. */
static int append_totals(struct recordevents *events, const struct model *model) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_TOTALS,
                                          .items = (uint32_t)model->context_count};
    struct varint_writer bytes = {0};
    int result;
    for (size_t i = 0; i < model->context_count; i++) {
        if (!recordtables_has(&events->tables, model->contexts[i].id) &&
            recordtables_note(&events->tables, model->contexts[i].id) < 0) {
            return error_set(events->error, "out of memory while recording");
        }
    }
    if (recordparts_write_nodes(&events->parts) != 0) {
        return -1;
    }
    block.first_ns = block.last_ns = claim_time_ns(events->claim);
    result = recorded_pack_totals(model, &bytes) != 0
                 ? error_set(events->error, "out of memory while recording")
             : bytes.size > MEMTRACE_BLOCK_MOST
                 ? 0
                 : recordfile_append(&events->parts.file, &block, bytes.bytes, bytes.size,
                                     events->error);
    free(bytes.bytes);
    return result;
}

int recordgap_write_totals(struct recordgap *gap, struct recordevents *events) {
    const struct memtrace_recording *recording = events->recording;
    uint32_t partly = MEMTRACE_RECORDING_MIDWAY | MEMTRACE_RECORDING_MODULES;
    /* The program counts what was to be recorded, all of it and nothing else. */
    bool counts_the_same = (recording->flags & partly) == 0 &&
                           (events->claim->header->flags & MEMTRACE_FLAG_SAMPLED) == 0 &&
                           recording->size_least == 0 && recording->size_most == 0 &&
                           recording->duration_ns == 0;
    struct model *model;
    int result;
    if ((!gap->any && (recording->flags & MEMTRACE_RECORDING_THINNED) == 0) || !counts_the_same) {
        return 0;
    }
    model = model_load(events->profile, events->error);
    if (model == NULL) {
        return -1;
    }
    result = model->context_count != 0 ? append_totals(events, model) : 0;
    model_free(model);
    return result;
}
