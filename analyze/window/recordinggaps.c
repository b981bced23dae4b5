/* SPDX-License-Identifier: MIT */
/* recordinggaps.c: see recordinggaps.h. */
#include "analyze/window/recordinggaps.h"

#include "analyze/base/array.h"
#include "analyze/replay/accounts.h"
#include "analyze/window/index.h"

#include <stdlib.h>
#include <string.h>

/* ---- Gaps ---- */

struct gaps {
    struct model_gap *items;
    size_t count, room;
};

static int take_gap(struct gaps *gaps, struct model_gap gap) {
    if (gap.from_ns > gap.to_ns) {
        return 0;
    }
    if (array_grow(&gaps->items, &gaps->room, gaps->count, sizeof *gaps->items) != 0) {
        return -1;
    }
    gaps->items[gaps->count++] = gap;
    return 0;
}

static struct model_gap lost(const unsigned char *bytes) {
    struct memtrace_gap from;
    memcpy(&from, bytes, sizeof from);
    return (struct model_gap){
        .from_ns = from.from_ns, .to_ns = from.to_ns, .allocs = from.allocs, .frees = from.frees};
}

static struct model_gap thinned(const unsigned char *bytes) {
    struct memtrace_thinned from;
    memcpy(&from, bytes, sizeof from);
    return (struct model_gap){
        .from_ns = from.from_ns, .to_ns = from.to_ns, .distance = from.distance};
}

static int take_block(struct gaps *gaps, const struct recording *recording, size_t block,
                      struct recording_buffer *buffer) {
    enum { SIZE = sizeof(struct memtrace_gap) };
    MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_thinned) == SIZE, "both are as large");
    bool are_lost = recording->blocks[block].block.kind == MEMTRACE_BLOCK_GAP;
    int result = 0;
    if (recording_payload(recording, block, buffer, NULL) != 0) {
        return 0;
    }
    for (size_t at = 0; result == 0 && at + SIZE <= buffer->size; at += SIZE) {
        result = take_gap(gaps, are_lost ? lost(buffer->bytes + at) : thinned(buffer->bytes + at));
    }
    return result;
}

static int by_start(const void *left, const void *right) {
    const struct model_gap *a = left;
    const struct model_gap *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* A long one is written down in pieces. */
static size_t join(struct model_gap *gaps, size_t count) {
    size_t kept = 0;
    for (size_t i = 1; i < count; i++) {
        struct model_gap *last = &gaps[kept];
        if (gaps[i].from_ns > last->to_ns) {
            gaps[++kept] = gaps[i];
            continue;
        }
        last->to_ns = gaps[i].to_ns > last->to_ns ? gaps[i].to_ns : last->to_ns;
        last->allocs = model_add(last->allocs, gaps[i].allocs);
        last->frees = model_add(last->frees, gaps[i].frees);
        last->distance = gaps[i].distance > last->distance ? gaps[i].distance : last->distance;
    }
    return count != 0 ? kept + 1 : 0;
}

int recordinggaps_read(struct timeorder_parts parts, enum memtrace_block_kind kind,
                       struct model_gap **gaps, size_t *count) {
    struct gaps all = {0};
    struct recording_buffer buffer = {0};
    int result = 0;
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; result == 0 && i < recording->block_count; i++) {
            if (recording->blocks[i].block.kind == kind) {
                result = take_block(&all, recording, i, &buffer);
            }
        }
    }
    recording_buffer_free(&buffer);
    if (all.count != 0) {
        qsort(all.items, all.count, sizeof *all.items, by_start);
    }
    *gaps = all.items;
    *count = join(all.items, all.count);
    return result;
}

/* ---- Totals ---- */

/* The last block behind which there are no events; SIZE_MAX: there is none. */
static size_t find_totals(const struct recording *last) {
    for (size_t i = last->block_count; i-- > 0;) {
        if (last->blocks[i].block.kind == MEMTRACE_BLOCK_TOTALS) {
            return i;
        }
        if (last->blocks[i].block.kind == MEMTRACE_BLOCK_EVENTS) {
            break;
        }
    }
    return SIZE_MAX;
}

int recordinggaps_totals(struct timeorder_parts parts, struct slice *totals) {
    const struct recording *last = parts.items[parts.count - 1];
    struct recording_buffer buffer = {0};
    bool failed = false;
    struct varint_reader reader = {.failed = &failed};
    size_t block = parts.items[0]->header.part == 0 ? find_totals(last) : SIZE_MAX;
    int result = 0;
    *totals = (struct slice){0};
    if (block == SIZE_MAX) {
        return 0;
    }
    if (recording_payload(last, block, &buffer, NULL) == 0 && buffer.size != 0) {
        reader.next = buffer.bytes;
        reader.end = buffer.bytes + buffer.size;
        result = index_get_slice(&reader, totals) == 0 && !failed;
        if (result == 0) {
            slice_free(totals);
            *totals = (struct slice){0};
        }
    }
    recording_buffer_free(&buffer);
    return result;
}

static void put_context(struct slice_writer *writer, const struct model *model,
                        const struct model_context *from) {
    struct slice_context context = {.id = from->id,
                                    .alloc_bytes = from->total_bytes,
                                    .alloc_units = from->allocations * ACCOUNTS_ONE,
                                    .free_bytes = from->freed_bytes,
                                    .free_units = from->frees * ACCOUNTS_ONE,
                                    .temporary = from->temporary * ACCOUNTS_ONE,
                                    .peak = from->peak_bytes};
    if (from->frame == MEMTRACE_FRAME_BEFORE) { /* as events tell it (accounts_before()) */
        context.alloc_bytes = from->live_bytes + from->freed_bytes;
        context.alloc_units = (1 + from->frees) * ACCOUNTS_ONE;
    }
    for (size_t i = 0; from->lifetimes != MODEL_NO_LIFETIMES && i < MEMTRACE_LIFETIME_BUCKETS;
         i++) {
        context.lifetimes[i] = model->lifetimes[from->lifetimes + i] * ACCOUNTS_ONE;
    }
    slice_put_context(writer, &context);
}

static int copy_foreign(const struct model *model, struct foreign *foreign) {
    for (size_t i = 0; i < model->foreign_count; i++) {
        struct model_foreign pair = model->foreign[i];
        pair.blocks *= ACCOUNTS_ONE;
        if (foreign_add(foreign, pair) != 0) {
            return -1;
        }
    }
    foreign_sort(foreign);
    return 0;
}

int recordinggaps_pack(const struct model *model, struct slice *totals) {
    struct slice_writer writer = {.slice = totals};
    struct foreign foreign = {0};
    size_t next = 0;
    int result = copy_foreign(model, &foreign);
    *totals = (struct slice){.first_tick = 1,
                             .change = (int64_t)model->totals.live_bytes,
                             .highest = (int64_t)model->totals.maximum_bytes,
                             .maximum_ns = model->totals.maximum_ns,
                             .error_bytes = model->totals.maximum_error_bytes};
    for (size_t i = 0; i < model->context_count; i++) {
        put_context(&writer, model, &model->contexts[i]);
    }
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        slice_put_thread_of(&writer,
                            (struct slice_thread){.id = thread->id,
                                                  .alloc_units = thread->allocations * ACCOUNTS_ONE,
                                                  .alloc_bytes = thread->total_bytes,
                                                  .free_units = thread->frees * ACCOUNTS_ONE,
                                                  .free_bytes = thread->freed_bytes},
                            &foreign, &next);
    }
    foreign_free(&foreign);
    return slice_finish(&writer) != 0 ? -1 : result;
}
