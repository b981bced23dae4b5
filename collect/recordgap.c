/* SPDX-License-Identifier: MIT */
/* recordgap.c: see recordgap.h. */
#include "collect/recordgap.h"

#include "analyze/window/recordingtables.h"
#include "collect/clock.h"

#include <stdlib.h>

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

/* ---- Gaps ---- */

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
