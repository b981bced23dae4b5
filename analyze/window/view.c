/* SPDX-License-Identifier: MIT */
/* view.c: the slices of a window. See view.h. */
#include "analyze/window/view.h"

#include "analyze/profile/timepoints.h"
#include "analyze/window/part.h"
#include "analyze/window/recordingtables.h"
#include "analyze/window/submodel.h"
#include "analyze/window/sums.h"

struct view {
    const struct model *whole;
    struct timeorder_parts parts;
    struct sums sums;
    uint64_t from_ns;
    uint64_t to_ns;
};

/* A slice's events lie in [from, to). */
struct span {
    uint64_t from_ns;
    uint64_t to_ns;
};

static struct span span_of(const struct slice *slice) {
    return (struct span){(uint64_t)slice->first_tick << MEMTRACE_TICK_SHIFT,
                         ((uint64_t)slice->last_tick + 1) << MEMTRACE_TICK_SHIFT};
}

/* ---- Slices ---- */

/* What happened of the part in [from, to) goes to the sums, as of before the view or not. */
static int add_part(struct view *view, const struct part *part, uint64_t from_ns, uint64_t to_ns,
                    bool is_before) {
    struct slice slice;
    int result;
    if (from_ns >= to_ns) {
        return 0;
    }
    result = part_sum(part, from_ns, to_ns, &slice);
    if (result == 0) {
        slice.error_bytes = part->entry->slice.error_bytes; /* not less than a part's */
        result = is_before ? sums_add_before(&view->sums, &slice) : sums_add(&view->sums, &slice);
    }
    slice_free(&slice);
    return result;
}

/* A slice that the view cuts. */
static int add_cut(struct view *view, size_t at, struct span span) {
    struct part part;
    int result = part_open(&part, view->whole, view->parts, at);
    if (result == 0 && span.from_ns < view->from_ns) {
        result = add_part(view, &part, 0, view->from_ns, true);
    }
    if (result == 0 && span.to_ns > view->from_ns) {
        result = add_part(view, &part, view->from_ns, view->to_ns, false);
    }
    part_close(&part);
    return result;
}

static int add_slice(struct view *view, size_t at) {
    const struct slice *slice = &view->whole->index->entries[at].slice;
    struct span span = span_of(slice);
    if (slice->first_tick > slice->last_tick || span.from_ns >= view->to_ns) {
        return 0;
    }
    if (span.to_ns <= view->from_ns) {
        return sums_add_before(&view->sums, slice);
    }
    if (span.from_ns >= view->from_ns && (span.to_ns <= view->to_ns)) {
        return sums_add(&view->sums, slice);
    }
    return add_cut(view, at, span);
}

/* What a recording left out belongs to the time when that was written down. */
static int add_culled(struct view *view) {
    struct slice slice;
    int result = recorded_culled(view->sums.model, view->parts, view->from_ns, view->to_ns, &slice);
    if (result == 0) {
        result = sums_add(&view->sums, &slice);
    }
    slice_free(&slice);
    return result;
}

static int add_all(struct view *view) {
    for (size_t at = 0; at < view->whole->index->count; at++) {
        if (add_slice(view, at) != 0) {
            return -1;
        }
    }
    return add_culled(view);
}

/* ---- The model ---- */

static void fill_threads(struct model *model, const struct sums *sums) {
    for (size_t i = 0; i < model->thread_count; i++) {
        struct model_thread *thread = &model->threads[i];
        struct sums_thread counts = sums_thread(sums, thread->id);
        thread->allocations = counts.alloc_units;
        thread->total_bytes = counts.alloc_bytes;
        thread->frees = counts.free_units;
        thread->freed_bytes = counts.free_bytes;
        thread->foreign_frees = counts.foreign_units;
        thread->foreign_freed_bytes = counts.foreign_bytes;
        thread->live_bytes = (int64_t)counts.held_bytes;
    }
}

static int fill(struct view *view) {
    struct sums *sums = &view->sums;
    struct model *model = sums->model;
    if (sums_finish(sums) != 0) {
        return -1;
    }
    fill_threads(model, sums);
    model->header.peak_error_bytes = sums->all.error_bytes;
    model->totals.lost = 0; /* model_finish() adds it */
    model->totals.maximum_ns = sums->all.highest > 0 ? sums->all.maximum_ns : view->from_ns;
    model_finish(model);
    model->now_ns = view->whole->now_ns;
    if (timepoints_complete(model, view->from_ns, view->to_ns,
                            sums->base > 0 ? (uint64_t)sums->base : 0) != 0) {
        return -1;
    }
    model_narrow(model, view->from_ns, view->to_ns);
    return 0;
}

struct model *model_view(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
                         uint64_t to_ns, const struct replay_options *options,
                         struct error *error) {
    struct view view = {.whole = whole, .parts = parts, .from_ns = from_ns, .to_ns = to_ns};
    struct model *model;
    (void)options; /* a few slices are read: nobody waits for long */
    if (whole->index == NULL || parts.count == 0) {
        error_set(error, "a profile does not record when things happened; make a recording with "
                         "`memtrace record`");
        return NULL;
    }
    model = model_derive(whole);
    if (model == NULL || sums_start(&view.sums, model) != 0 || add_all(&view) != 0 ||
        fill(&view) != 0) {
        error_set(error, "out of memory while reading %s", parts.items[0]->path);
        model_free(model);
        model = NULL;
    }
    sums_end(&view.sums);
    return model;
}
