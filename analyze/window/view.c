/* SPDX-License-Identifier: MIT */
/* view.c: the slices of a window. See view.h. */
#include "analyze/window/view.h"

#include "analyze/base/array.h"
#include "analyze/base/search.h"
#include "analyze/profile/timepoints.h"
#include "analyze/window/fineindex.h"
#include "analyze/window/index.h"
#include "analyze/window/recordingtables.h"
#include "analyze/window/submodel.h"
#include "analyze/window/sums.h"
#include "analyze/window/wholemodel.h"

#include <stdlib.h>

struct view {
    const struct model *whole;
    struct timeorder_parts parts;
    struct replay_options limits; /* when to stop; a few slices are read: no progress is shown */
    const struct fineindex *fine; /* NULL: none */
    bool is_fine_damaged;
    bool is_moving; /* all of the slice or piece was added before the view: see start_moving() */
    struct sums sums;
    uint64_t from_ns;
    uint64_t to_ns;
};

/*
 * A slice that the window cuts, so that its events are read once more. Frees of blocks that began
 * before it are paired by looking for these blocks, by their numbers, in the headers of the
 * recording's blocks.
 */
struct cut {
    const struct model *whole;
    struct timeorder_parts parts;
    const struct index_entry *entry;
    struct index_entry piece;       /* where it is a piece of a slice */
    struct replay_options limits;   /* when to stop */
    uint64_t stop_ns;               /* where the next slice begins */
    struct fineindex_block *before; /* by thread and number */
    size_t before_count, before_room;
};

/* ---- What ends in the slice and began before ---- */

static int add_before(struct cut *cut, struct event_block name) {
    if (array_grow(&cut->before, &cut->before_room, cut->before_count, sizeof *cut->before) != 0) {
        return -1;
    }
    cut->before[cut->before_count++] = (struct fineindex_block){.name = name};
    return 0;
}

static int survey_event(struct cut *cut, struct pairing *pairing, const struct event *event) {
    const struct pairing_block any = {0};
    struct event_block ends = {0};
    struct pairing_block block;
    struct pairing_end end;
    if (event->kind == EVENT_FREE || event->kind == EVENT_ALLOC) {
        ends = event->kind == EVENT_FREE ? event->block : event->old;
    }
    if (ends.number != 0 && !pairing_take(pairing, ends, &block) && add_before(cut, ends) != 0) {
        return -1;
    }
    return event->kind == EVENT_ALLOC && pairing_add(pairing, event->block, &any, &end) < 0 ? -1
                                                                                            : 0;
}

static int survey(struct cut *cut, struct timeorder *order) {
    enum { EVENTS = 256 };
    struct timeorder_event *events = calloc(EVENTS, sizeof *events);
    struct pairing *pairing = pairing_new();
    int result = events != NULL && pairing != NULL ? 0 : -1;
    size_t count;
    while (result == 0 && !replay_is_cancelled(&cut->limits) &&
           (count = timeorder_read(order, events, EVENTS)) != 0) {
        for (size_t i = 0; i < count && result == 0; i++) {
            result = survey_event(cut, pairing, &events[i].event);
        }
    }
    pairing_free(pairing);
    free(events);
    return result;
}

/* The first one that is not before this name. */
static size_t first_from(const struct cut *cut, struct event_block name) {
    size_t low = 0;
    size_t high = cut->before_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fineindex_compare(cut->before[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- Where they began ---- */

static void take_beginning(struct cut *cut, const struct event *event) {
    size_t at = first_from(cut, event->block);
    if (at < cut->before_count && fineindex_compare(cut->before[at].name, event->block) == 0) {
        cut->before[at].is_known = true;
        cut->before[at].born_ns = event->time_ns;
        cut->before[at].block =
            (struct pairing_block){.size = event->size,
                                   .weight = event->weight,
                                   .context = event->context,
                                   .tick = (uint32_t)(event->time_ns >> MEMTRACE_TICK_SHIFT)};
    }
}

/* The block's first `most` events. A damaged one has as many as the replay found in it. */
static void read_beginnings(struct cut *cut, struct timeorder_block place, uint32_t most,
                            struct recording_buffer *buffer) {
    const struct recording *recording = cut->parts.items[place.part];
    struct event_decoder decoder = {0};
    struct event event;
    if (recording_payload(recording, place.block, buffer, NULL) == 0 &&
        event_decoder_start(&decoder, &recording->blocks[place.block].block, buffer->bytes,
                            buffer->size) == 0) {
        for (uint32_t i = 0; i < most && event_decoder_next(&decoder, &event) == 1; i++) {
            if (event.kind == EVENT_ALLOC) {
                take_beginning(cut, &event);
            }
        }
    }
    event_decoder_end(&decoder);
}

static const struct memtrace_block_header *header_of(const struct cut *cut,
                                                     struct timeorder_block place) {
    return &cut->parts.items[place.part]->blocks[place.block].block;
}

/* Whether some block that is looked for has a number of this one's events. */
static bool is_wanted(const struct cut *cut, const struct timeorder *order, size_t at, size_t end) {
    const struct memtrace_block_header *block = header_of(cut, order->blocks[at]);
    uint64_t next = at + 1 < end ? header_of(cut, order->blocks[at + 1])->first_number : 0;
    struct event_block first = {.thread = block->thread, .number = block->first_number};
    size_t found = first_from(cut, first);
    return block->allocs != 0 && found < cut->before_count &&
           cut->before[found].name.thread == block->thread &&
           (next == 0 || cut->before[found].name.number < next);
}

static void find_beginnings(struct cut *cut, const struct timeorder *order) {
    struct recording_buffer buffer = {0};
    for (size_t i = 0; i < order->stream_count; i++) {
        struct timeorder_before before = timeorder_before(order, i);
        for (size_t at = before.first_block; at <= before.last_block && at < before.end_block;
             at++) {
            if (replay_is_cancelled(&cut->limits)) {
                break;
            }
            uint32_t most = at < before.last_block ? UINT32_MAX : before.events;
            if (most != 0 && is_wanted(cut, order, at, before.end_block)) {
                read_beginnings(cut, order->blocks[at], most, &buffer);
            }
        }
    }
    recording_buffer_free(&buffer);
}

/* ---- The slice once more ---- */

/* Entry `at` of the model's index. 0, or -1: out of memory, or a damaged index. close_cut() in any
 * case. */
static int open_cut(struct cut *cut, const struct view *view, size_t at) {
    const struct index *index = view->whole->index;
    struct timeorder order;
    int result;
    *cut = (struct cut){.whole = view->whole,
                        .parts = view->parts,
                        .limits = view->limits,
                        .entry = &index->entries[at]};
    cut->stop_ns = at + 1 < index->count ? index->entries[at + 1].start_ns : UINT64_MAX;
    if (timeorder_start(&order, view->parts) != 0) {
        return -1;
    }
    order.skips_addresses = true;
    result = timeorder_seek(&order, cut->entry->place.bytes, cut->entry->place.size, cut->stop_ns);
    if (result == 0 && at != 0) {
        result = survey(cut, &order);
        if (cut->before_count != 0) {
            qsort(cut->before, cut->before_count, sizeof *cut->before, fineindex_by_name);
        }
        find_beginnings(cut, &order);
    }
    timeorder_end(&order);
    return result;
}

/* What is not known of a block is when it began, within a tick; and only an edge of the view in
 * that tick asks for it. */
static bool is_told_apart(const struct view *view, const struct fineindex_block *block) {
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    const uint64_t edges[] = {view->from_ns, view->to_ns};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        if (edges[i] % tick != 0 && edges[i] / tick == block->block.tick) {
            return false;
        }
    }
    return true;
}

/* Looks for those that are not known. 0 or -1. */
static int find_unknown(struct cut *cut, struct view *view) {
    struct cut unknown = *cut;
    struct timeorder order;
    int result = 0;
    unknown.before = NULL;
    unknown.before_count = unknown.before_room = 0;
    for (size_t i = 0; i < cut->before_count && result == 0; i++) {
        cut->before[i].is_known |= is_told_apart(view, &cut->before[i]);
        result = cut->before[i].is_known ? 0 : add_before(&unknown, cut->before[i].name);
    }
    if (result == 0 && unknown.before_count != 0 && timeorder_start(&order, cut->parts) == 0) {
        result =
            timeorder_seek(&order, cut->entry->place.bytes, cut->entry->place.size, cut->stop_ns);
        find_beginnings(&unknown, &order);
        timeorder_end(&order);
    }
    for (size_t i = 0; i < unknown.before_count && result == 0; i++) {
        cut->before[first_from(cut, unknown.before[i].name)] = unknown.before[i];
    }
    free(unknown.before);
    return result;
}

/* A piece of entry `at`. As open_cut(). */
static int open_piece(struct cut *cut, struct view *view, size_t at,
                      const struct fineindex_piece *piece, uint64_t stop_ns) {
    *cut = (struct cut){.whole = view->whole,
                        .parts = view->parts,
                        .limits = view->limits,
                        .entry = &cut->piece,
                        .stop_ns = stop_ns};
    if (fineindex_begin(view->fine, piece, &cut->piece, &cut->before, &cut->before_count) != 0) {
        view->is_fine_damaged = true;
        return -1;
    }
    cut->piece.slice.error_bytes = view->whole->index->entries[at].slice.error_bytes;
    return find_unknown(cut, view);
}

static void close_cut(struct cut *cut) {
    index_free_entry(&cut->piece);
    free(cut->before);
    *cut = (struct cut){0};
}

static int restore(const struct cut *cut, struct pass *pass) {
    int result = index_restore(cut->entry, pass);
    for (size_t i = 0; i < cut->before_count && result == 0; i++) {
        struct fineindex_block before = cut->before[i];
        before.block.context = pass_context(pass, before.block.context);
        if (before.is_known) {
            result = pass_know_block(pass, before.name, before.block, before.born_ns);
        }
    }
    return result;
}

/* What of it happened in [from, to). 0 or -1. */
static int sum_cut(const struct cut *cut, uint64_t from_ns, uint64_t to_ns, struct slice *slice) {
    const struct pass_visitor nobody = {0};
    struct timeorder order;
    struct pass pass = {0};
    int result = -1;
    *slice = (struct slice){0};
    if (timeorder_start(&order, cut->parts) != 0) {
        return -1;
    }
    order.skips_addresses = true;
    if (pass_start(&pass, cut->whole, order.stream_count, from_ns, to_ns) == 0 &&
        restore(cut, &pass) == 0 &&
        timeorder_seek(&order, cut->entry->place.bytes, cut->entry->place.size, cut->stop_ns) ==
            0 &&
        pass_run(&pass, &order, &nobody, &cut->limits, 0) == 0) {
        result = pass_cut(&pass, slice);
    }
    pass_free(&pass);
    timeorder_end(&order);
    return result;
}

/* ---- The window ---- */

/* A slice's events lie in [from, to). */
struct span {
    uint64_t from_ns;
    uint64_t to_ns;
};

/* first_tick > last_tick: nothing happened, it is of no length. */
static struct span span_of(uint32_t first_tick, uint32_t last_tick) {
    return first_tick > last_tick ? (struct span){0}
                                  : (struct span){(uint64_t)first_tick << MEMTRACE_TICK_SHIFT,
                                                  ((uint64_t)last_tick + 1) << MEMTRACE_TICK_SHIFT};
}

/* ---- Slices ---- */

/* What lies in the view goes to the sums. */
static int add_inside(struct view *view, const struct slice *slice) {
    return view->is_moving ? sums_move(&view->sums, slice) : sums_add(&view->sums, slice);
}

/* Where the view begins inside a slice and does not end there, all of the slice is added as before
 * the view, and the part inside is moved. So the part before needs no look at its events. */
static bool may_move(const struct view *view, struct span span) {
    return !view->is_moving && span.from_ns < view->from_ns && span.to_ns <= view->to_ns &&
           !view->whole->index->facts.is_sampled;
}

static int start_moving(struct view *view, const struct slice *all) {
    view->is_moving = true;
    return sums_add_before(&view->sums, all);
}

/* What happened of the slice in [from, to) goes to the sums, as of before the view or not. */
static int add_part(struct view *view, const struct cut *cut, uint64_t from_ns, uint64_t to_ns,
                    bool is_before) {
    struct slice slice;
    int result;
    if (from_ns >= to_ns) {
        return 0;
    }
    result = sum_cut(cut, from_ns, to_ns, &slice);
    if (result == 0) {
        slice.error_bytes = cut->entry->slice.error_bytes; /* not less than of all of it */
        result = is_before ? sums_add_before(&view->sums, &slice) : add_inside(view, &slice);
    }
    slice_free(&slice);
    return result;
}

/* A slice or piece that the view cuts. */
static int add_cut(struct view *view, const struct cut *cut, struct span span) {
    int result = 0;
    if (span.from_ns < view->from_ns && !view->is_moving) {
        result = add_part(view, cut, 0, view->from_ns, true);
    }
    if (result == 0 && span.to_ns > view->from_ns) {
        result = add_part(view, cut, view->from_ns, view->to_ns, false);
    }
    return result;
}

/* What is to be done with a slice of that span. */
enum place { OUTSIDE, BEFORE, INSIDE, CUT };

static enum place place_of(const struct view *view, struct span span) {
    return span.from_ns >= span.to_ns || span.from_ns >= view->to_ns    ? OUTSIDE
           : span.to_ns <= view->from_ns                                ? BEFORE
           : span.from_ns >= view->from_ns && span.to_ns <= view->to_ns ? INSIDE
                                                                        : CUT;
}

/* The sums of one: it lies before the view or in it, or its inside is to be moved. */
static int add_whole_piece(struct view *view, size_t at, const struct fineindex_piece *piece,
                           enum place place) {
    struct slice slice;
    int result;
    if (place == BEFORE && view->is_moving) {
        return 0; /* they are there */
    }
    result = fineindex_slice(view->fine, piece, &slice);
    view->is_fine_damaged |= result != 0;
    slice.error_bytes = view->whole->index->entries[at].slice.error_bytes;
    if (result == 0) {
        result = place == BEFORE   ? sums_add_before(&view->sums, &slice)
                 : place == INSIDE ? add_inside(view, &slice)
                                   : start_moving(view, &slice);
    }
    slice_free(&slice);
    return result;
}

static int add_piece(struct view *view, size_t at, const struct fineindex_piece *piece,
                     uint64_t stop_ns) {
    struct span span = span_of(piece->first_tick, piece->last_tick);
    enum place place = place_of(view, span);
    bool was_moving = view->is_moving;
    struct cut cut;
    int result = 0;
    if (place == OUTSIDE) {
        return 0;
    }
    if (piece->sums.whole != 0 && (place != CUT || may_move(view, span))) {
        result = add_whole_piece(view, at, piece, place);
    }
    if (result != 0 || (place != CUT && piece->sums.whole != 0)) {
        return result;
    }
    result = open_piece(&cut, view, at, piece, stop_ns);
    if (result == 0) {
        result = add_cut(view, &cut, span);
    }
    close_cut(&cut);
    view->is_moving = was_moving;
    return result;
}

static uint64_t stop_of(const struct index *index, size_t at) {
    return at + 1 < index->count ? index->entries[at + 1].start_ns : UINT64_MAX;
}

/* A slice that the view cuts, of these pieces. */
static int add_pieces(struct view *view, size_t at, const struct fineindex_piece *pieces,
                      size_t count) {
    const struct index *index = view->whole->index;
    uint64_t error_bytes = index->entries[at].slice.error_bytes;
    for (size_t i = 0; i < count; i++) {
        uint64_t stop_ns = i + 1 < count ? pieces[i + 1].start_ns : stop_of(index, at);
        if (replay_is_cancelled(&view->limits) || add_piece(view, at, &pieces[i], stop_ns) != 0) {
            return -1;
        }
    }
    if (view->sums.all.error_bytes < error_bytes) { /* as if the slice had been cut */
        view->sums.all.error_bytes = error_bytes;
    }
    return 0;
}

static int add_cut_slice(struct view *view, size_t at, struct span span) {
    const struct fineindex_piece *pieces;
    size_t count = fineindex_pieces(view->fine, at, &pieces);
    struct cut cut;
    int result = 0;
    if (may_move(view, span)) {
        result = start_moving(view, &view->whole->index->entries[at].slice);
    }
    if (result == 0 && count != 0) {
        result = add_pieces(view, at, pieces, count);
    } else if (result == 0) {
        result = open_cut(&cut, view, at);
        if (result == 0) {
            result = add_cut(view, &cut, span);
        }
        close_cut(&cut);
    }
    view->is_moving = false;
    return result;
}

static int add_slice(struct view *view, size_t at) {
    const struct slice *slice = &view->whole->index->entries[at].slice;
    struct span span = span_of(slice->first_tick, slice->last_tick);
    switch (place_of(view, span)) {
    case OUTSIDE:
        return 0;
    case BEFORE:
        return sums_add_before(&view->sums, slice);
    case INSIDE:
        return sums_add(&view->sums, slice);
    default:
        return add_cut_slice(view, at, span);
    }
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

/* The largest group of slices that begins there and lies before the view or in it. How many there
 * are in it; 0: there is none. *result: of adding it. */
static size_t add_group(struct view *view, size_t at, int *result) {
    size_t most = view->whole->index->count;
    size_t width;
    const struct slice *sum;
    while ((sum = index_group_at(view->whole->index, at, most, &width)) != NULL) {
        enum place place = place_of(view, span_of(sum->first_tick, sum->last_tick));
        if (place == BEFORE || place == INSIDE) {
            *result =
                place == BEFORE ? sums_add_before(&view->sums, sum) : sums_add(&view->sums, sum);
            return width;
        }
        most = width - 1;
    }
    return 0;
}

static int add_all(struct view *view) {
    size_t at = 0;
    int result = 0;
    while (at < view->whole->index->count && result == 0) {
        size_t width = add_group(view, at, &result);
        if (width == 0) {
            result = add_slice(view, at);
        }
        at += width != 0 ? width : 1;
        result = replay_is_cancelled(&view->limits) ? -1 : result;
    }
    return result == 0 ? add_culled(view) : -1;
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
    submodel_narrow(model, view->from_ns, view->to_ns);
    return 0;
}

/* NULL: failed. */
static struct model *make(struct view *view) {
    struct model *model = submodel_new(view->whole);
    if (model == NULL || sums_start(&view->sums, model) != 0 || add_all(view) != 0 ||
        fill(view) != 0) {
        model_free(model);
        model = NULL;
    }
    sums_end(&view->sums);
    return model;
}

struct model *model_view(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
                         uint64_t to_ns, const struct replay_options *options,
                         struct error *error) {
    struct view view = {.whole = whole, .parts = parts, .from_ns = from_ns, .to_ns = to_ns};
    struct model *model;
    view.limits.cancel = options != NULL ? options->cancel : NULL;
    if (whole->index == NULL || parts.count == 0) {
        error_set(error, "a profile does not record when things happened; make a recording with "
                         "`memtrace record`");
        return NULL;
    }
    view.fine = fineindex_of(whole, parts);
    model = make(&view);
    if (view.is_fine_damaged) {
        view.fine = NULL;
        model = make(&view);
    }
    if (model == NULL) {
        wholemodel_explain(parts, &view.limits, error);
    }
    return model;
}

/* ---- Windows of whole slices ---- */

uint64_t *model_view_edges(const struct model *whole, size_t *count) {
    const struct index *index = whole->index;
    uint64_t *edges = calloc(index->count + 2, sizeof *edges);
    uint64_t *starts = calloc(index->count + 1, sizeof *starts); /* of all from this one on */
    uint64_t end = 0;
    *count = 0;
    if (edges == NULL || starts == NULL) {
        free(edges);
        free(starts);
        return NULL;
    }
    starts[index->count] = UINT64_MAX;
    for (size_t i = index->count; i-- > 0;) {
        const struct slice *slice = &index->entries[i].slice;
        uint64_t start = slice->first_tick <= slice->last_tick
                             ? span_of(slice->first_tick, slice->last_tick).from_ns
                             : UINT64_MAX;
        starts[i] = start < starts[i + 1] ? start : starts[i + 1];
    }
    edges[(*count)++] = 0;
    for (size_t i = 0; i + 1 < index->count; i++) {
        const struct slice *slice = &index->entries[i].slice;
        if (slice->first_tick <= slice->last_tick &&
            span_of(slice->first_tick, slice->last_tick).to_ns > end) {
            end = span_of(slice->first_tick, slice->last_tick).to_ns;
        }
        if (end <= starts[i + 1] && end > edges[*count - 1]) {
            edges[(*count)++] = end;
        }
    }
    edges[(*count)++] = UINT64_MAX;
    free(starts);
    return edges;
}

/* The edges around a moment: *below <= time_ns < the one behind it. */
static size_t edge_below(const uint64_t *edges, size_t count, uint64_t time_ns) {
    size_t place = search_to(edges, count - 1, sizeof *edges, 0, time_ns);
    return place != 0 ? place - 1 : 0;
}

/* latest_ns: where the recording ends, which is as far as the last edge. */
static uint64_t nearest(const uint64_t *edges, size_t below, uint64_t time_ns, uint64_t latest_ns) {
    uint64_t above = edges[below + 1] < latest_ns ? edges[below + 1] : latest_ns;
    if (time_ns >= above) {
        return edges[below + 1];
    }
    return time_ns - edges[below] <= above - time_ns ? edges[below] : edges[below + 1];
}

bool model_view_snap(const struct model *whole, uint64_t *from_ns, uint64_t *to_ns) {
    size_t count = 0;
    uint64_t *edges = whole->index != NULL ? model_view_edges(whole, &count) : NULL;
    size_t first;
    size_t last;
    if (edges == NULL) {
        return false;
    }
    first = edge_below(edges, count, *from_ns);
    last = edge_below(edges, count, *to_ns);
    *from_ns = nearest(edges, first, *from_ns, whole->now_ns);
    *to_ns = nearest(edges, last, *to_ns, whole->now_ns);
    if (*from_ns >= *to_ns) {
        *from_ns = edges[first];
        *to_ns = edges[last + 1];
    }
    free(edges);
    return true;
}
