/* SPDX-License-Identifier: MIT */
/*
 * view.c: the slices of a window. See view.h.
 *
 * A recording is a tree of slices: groups of eight neighbours and of eight such groups (index.h),
 * the slices of its index, and their pieces, which are loaded when they are asked for
 * (fineindex.h). Of what lies in the window or before it the sums are added; where the window cuts
 * one, its children are looked at; what has none is read once more.
 */
#include "analyze/window/view.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
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
    bool is_moving; /* all of the slice or piece was added before the view: see may_move() */
    struct timeorder order; /* of what is read at present */
    struct sums sums;
    uint64_t from_ns;
    uint64_t to_ns;
};

/* One of the tree. */
struct view_node {
    size_t at;                           /* in the index: its first slice */
    size_t width;                        /* how many it has; more than one: a group */
    const struct fineindex_piece *piece; /* of that slice; NULL: all of it */
    uint64_t stop_ns;                    /* where the next slice or piece begins */
};

/*
 * A slice or piece that the window cuts, so that its events are read once more. Frees of blocks
 * that began before it are paired by looking for these blocks, by their numbers, in the headers of
 * the recording's blocks.
 */
struct cut {
    struct view *view;
    const struct index_entry *entry;
    struct index_entry piece; /* where it is a piece of a slice */
    uint64_t stop_ns;
    struct fineindex_block *before; /* by thread and number */
    size_t before_count, before_room;
};

/* From where the slice begins on. */
static struct timeorder *cut_read(const struct cut *cut) {
    struct timeorder *order = &cut->view->order;
    const struct varint_writer *place = &cut->entry->place;
    timeorder_end(order);
    timeorder_begin(order, cut->view->parts);
    order->skips_addresses = true;
    if (timeorder_seek(order, place->bytes, place->size, cut->stop_ns) != 0) {
        job_fail("an index is damaged");
    }
    return order;
}

/* ---- What ends in the slice and began before ---- */

static void cut_add_before(struct cut *cut, struct event_block name) {
    job_grow(&cut->before, &cut->before_room, cut->before_count, sizeof *cut->before);
    cut->before[cut->before_count++] = (struct fineindex_block){.name = name};
}

static void cut_survey(struct cut *cut, struct timeorder *order) {
    enum { EVENTS = 256 };
    struct timeorder_event *events = job_array(EVENTS, sizeof *events);
    struct pairing *pairing = pairing_new();
    const struct pairing_block any = {0};
    struct pairing_block block;
    struct pairing_end end;
    size_t count;
    while (!replay_is_cancelled(&cut->view->limits) &&
           (count = timeorder_read(order, events, EVENTS)) != 0) {
        for (size_t i = 0; i < count; i++) {
            const struct event *event = &events[i].event;
            struct event_block ends = event->kind == EVENT_FREE    ? event->block
                                      : event->kind == EVENT_ALLOC ? event->old
                                                                   : (struct event_block){0};
            if (ends.number != 0 && !pairing_take(pairing, ends, &block)) {
                cut_add_before(cut, ends);
            }
            if (event->kind == EVENT_ALLOC) {
                pairing_add(pairing, event->block, &any, &end);
            }
        }
    }
    pairing_free(pairing);
    job_release(events);
    if (order->no_memory) {
        job_fail_memory();
    }
}

/* The first one that is not before this name. */
static size_t cut_first_from(const struct cut *cut, struct event_block name) {
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

static void cut_take_beginning(struct cut *cut, const struct event *event) {
    size_t at = cut_first_from(cut, event->block);
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
static void cut_read_beginnings(struct cut *cut, struct timeorder_block place, uint32_t most,
                                struct recording_buffer *buffer) {
    const struct recording *recording = cut->view->parts.items[place.part];
    struct event_decoder decoder = {0};
    struct event event;
    if (recording_take(recording, place.block, buffer) &&
        event_decoder_start(&decoder, &recording->blocks[place.block].block, buffer->bytes,
                            buffer->size) == 0) {
        for (uint32_t i = 0; i < most && event_decoder_next(&decoder, &event) == 1; i++) {
            if (event.kind == EVENT_ALLOC) {
                cut_take_beginning(cut, &event);
            }
        }
    }
    event_decoder_end(&decoder);
    if (decoder.no_memory) {
        job_fail_memory();
    }
}

/* Whether some block that is looked for has a number of this one's events. */
static bool cut_is_wanted(const struct cut *cut, const struct timeorder *order, size_t at,
                          size_t end) {
    const struct memtrace_block_header *block = timeorder_header(order, order->blocks[at]);
    uint64_t next = at + 1 < end ? timeorder_header(order, order->blocks[at + 1])->first_number : 0;
    struct event_block first = {.thread = block->thread, .number = block->first_number};
    size_t found = cut_first_from(cut, first);
    return block->allocs != 0 && found < cut->before_count &&
           cut->before[found].name.thread == block->thread &&
           (next == 0 || cut->before[found].name.number < next);
}

static void cut_find_beginnings(struct cut *cut, const struct timeorder *order) {
    struct recording_buffer *buffer = recording_buffer_new();
    for (size_t i = 0; i < order->stream_count; i++) {
        struct timeorder_before before = timeorder_before(order, i);
        for (size_t at = before.first_block; at <= before.last_block && at < before.end_block;
             at++) {
            if (replay_is_cancelled(&cut->view->limits)) {
                break;
            }
            uint32_t most = at < before.last_block ? UINT32_MAX : before.events;
            if (most != 0 && cut_is_wanted(cut, order, at, before.end_block)) {
                cut_read_beginnings(cut, order->blocks[at], most, buffer);
            }
        }
    }
    job_undo_now(buffer);
}

/* ---- The slice once more ---- */

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

static void cut_open_piece(struct cut *cut, const struct view_node *node) {
    struct view *view = cut->view;
    struct cut unknown = {.view = view, .entry = &cut->piece, .stop_ns = cut->stop_ns};
    if (!fineindex_begin(view->fine, node->piece, &cut->piece, &cut->before, &cut->before_count)) {
        view->is_fine_damaged = true;
        job_fail("a fine index is damaged");
    }
    cut->entry = &cut->piece;
    for (size_t i = 0; i < cut->before_count; i++) {
        cut->before[i].is_known |= is_told_apart(view, &cut->before[i]);
        if (!cut->before[i].is_known) {
            cut_add_before(&unknown, cut->before[i].name);
        }
    }
    if (unknown.before_count != 0) {
        cut_find_beginnings(&unknown, cut_read(&unknown));
    }
    for (size_t i = 0; i < unknown.before_count; i++) {
        cut->before[cut_first_from(cut, unknown.before[i].name)] = unknown.before[i];
    }
    job_release(unknown.before);
}

/* What of it happened in [from, to). */
static void cut_sum(const struct cut *cut, uint64_t from_ns, uint64_t to_ns, struct slice *slice) {
    const struct pass_visitor nobody = {0};
    struct timeorder *order = cut_read(cut);
    struct pass pass;
    pass_start(&pass, cut->view->whole, order->stream_count, from_ns, to_ns);
    index_restore(cut->entry, &pass);
    for (size_t i = 0; i < cut->before_count; i++) {
        struct fineindex_block before = cut->before[i];
        before.block.context = pass_context(&pass, before.block.context);
        if (before.is_known) {
            pass_know_block(&pass, before.name, before.block, before.born_ns);
        }
    }
    if (pass_run(&pass, order, &nobody, &cut->view->limits, 0) != 0) {
        job_fail("cancelled");
    }
    pass_cut(&pass, slice);
    pass_free(&pass);
}

/* ---- The tree ---- */

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

/* What is to be done with a slice of that span. */
enum place { OUTSIDE, BEFORE, INSIDE, CUT };

static enum place place_of(const struct view *view, struct span span) {
    return span.from_ns >= span.to_ns || span.from_ns >= view->to_ns    ? OUTSIDE
           : span.to_ns <= view->from_ns                                ? BEFORE
           : span.from_ns >= view->from_ns && span.to_ns <= view->to_ns ? INSIDE
                                                                        : CUT;
}

/* What lies in the view goes to the sums. */
static void add_inside(struct view *view, const struct slice *slice) {
    if (view->is_moving) {
        sums_move(&view->sums, slice);
    } else {
        sums_add(&view->sums, slice);
    }
}

/* Where the view begins inside a slice and does not end there, all of the slice is added as before
 * the view, and the part inside is moved. So the part before needs no look at its events. */
static bool may_move(const struct view *view, struct span span) {
    return !view->is_moving && span.from_ns < view->from_ns && span.to_ns <= view->to_ns &&
           !view->whole->index->facts.is_sampled;
}

/* What happened of the slice in [from, to) goes to the sums, as of before the view or not. */
static void add_part(struct view *view, const struct cut *cut, const struct view_node *node,
                     uint64_t from_ns, uint64_t to_ns, bool is_before) {
    struct slice slice;
    if (from_ns >= to_ns) {
        return;
    }
    cut_sum(cut, from_ns, to_ns, &slice);
    /* Not less than of all of it. */
    slice.error_bytes = view->whole->index->entries[node->at].slice.error_bytes;
    if (is_before) {
        sums_add_before(&view->sums, &slice);
    } else {
        add_inside(view, &slice);
    }
    slice_free(&slice);
}

/* One that the view cuts, and that has no children. */
static void add_cut(struct view *view, const struct view_node *node, struct span span) {
    struct cut cut = {
        .view = view, .entry = &view->whole->index->entries[node->at], .stop_ns = node->stop_ns};
    if (node->piece != NULL) {
        cut_open_piece(&cut, node);
    } else if (node->at != 0) {
        struct timeorder *order = cut_read(&cut);
        cut_survey(&cut, order);
        array_sort(cut.before, cut.before_count, sizeof *cut.before, fineindex_by_name);
        cut_find_beginnings(&cut, order);
    }
    if (span.from_ns < view->from_ns && !view->is_moving) {
        add_part(view, &cut, node, 0, view->from_ns, true);
    }
    if (span.to_ns > view->from_ns) {
        add_part(view, &cut, node, view->from_ns, view->to_ns, false);
    }
    index_free_entry(&cut.piece);
    job_release(cut.before);
}

static void add_node(struct view *view, const struct view_node *node);

/* Slices [at, end) in groups of at most `most`. */
static void add_groups(struct view *view, size_t at, size_t end, size_t most) {
    const struct index *index = view->whole->index;
    size_t width;
    for (; at < end; at += width) {
        if (index_group_at(index, at, most, &width) == NULL) {
            width = 1;
        }
        add_node(view, &(struct view_node){.at = at,
                                           .width = width,
                                           .stop_ns = at + width < index->count
                                                          ? index->entries[at + width].start_ns
                                                          : UINT64_MAX});
    }
}

/* false: it has none. */
static bool add_children(struct view *view, const struct view_node *node) {
    const struct fineindex_piece *pieces;
    uint64_t error_bytes = view->whole->index->entries[node->at].slice.error_bytes;
    size_t count;
    if (node->width > 1) {
        add_groups(view, node->at, node->at + node->width, node->width - 1);
        return true;
    }
    count = node->piece == NULL ? fineindex_pieces(view->fine, node->at, &pieces) : 0;
    for (size_t i = 0; i < count; i++) {
        add_node(view, &(struct view_node){.at = node->at,
                                           .width = 1,
                                           .piece = &pieces[i],
                                           .stop_ns = i + 1 < count ? pieces[i + 1].start_ns
                                                                    : node->stop_ns});
    }
    if (count != 0 && view->sums.all.error_bytes < error_bytes) { /* as if it had been cut */
        view->sums.all.error_bytes = error_bytes;
    }
    return count != 0;
}

/* What happened in all of it. *loaded: room for what is not there yet, to be freed. */
static const struct slice *node_sum(struct view *view, const struct view_node *node,
                                    struct slice *loaded) {
    const struct index *index = view->whole->index;
    size_t width;
    *loaded = (struct slice){0};
    if (node->width > 1) {
        return index_group_at(index, node->at, node->width, &width);
    }
    if (node->piece == NULL || node->piece->sums.whole == 0) {
        return &index->entries[node->at].slice;
    }
    if (!fineindex_slice(view->fine, node->piece, loaded)) {
        view->is_fine_damaged = true;
        job_fail("a fine index is damaged");
    }
    loaded->error_bytes = index->entries[node->at].slice.error_bytes;
    return loaded;
}

static void add_node(struct view *view, const struct view_node *node) {
    const struct fineindex_piece *piece = node->piece;
    bool was_moving = view->is_moving;
    struct slice loaded = {0};
    const struct slice *sum = piece == NULL ? node_sum(view, node, &loaded) : NULL;
    struct span span = piece == NULL ? span_of(sum->first_tick, sum->last_tick)
                                     : span_of(piece->first_tick, piece->last_tick);
    enum place place = place_of(view, span);
    if (replay_is_cancelled(&view->limits)) {
        job_fail("cancelled");
    }
    if (place == CUT && node->width == 1 && may_move(view, span)) {
        sums_add_before(&view->sums, node_sum(view, node, &loaded));
        view->is_moving = true;
    } else if (place == BEFORE && !view->is_moving) { /* else it is there */
        sums_add_before(&view->sums, node_sum(view, node, &loaded));
    } else if (place == INSIDE) {
        add_inside(view, node_sum(view, node, &loaded));
    }
    slice_free(&loaded);
    if (place == CUT && !add_children(view, node)) {
        add_cut(view, node, span);
    }
    view->is_moving = was_moving;
}

/* ---- The model ---- */

static void view_make(struct model *model, void *what) {
    struct view *view = what;
    struct sums *sums = &view->sums;
    struct slice culled;
    view->is_moving = false;
    submodel_start(model, view->whole);
    sums_start(sums, model);
    add_groups(view, 0, view->whole->index->count, view->whole->index->count);
    /* What a recording left out belongs to the time when that was written down. */
    recorded_culled(model, view->parts, view->from_ns, view->to_ns, &culled);
    sums_add(sums, &culled);
    slice_free(&culled);
    sums_finish(sums);
    for (size_t i = 0; i < model->thread_count; i++) {
        sums_fill_thread(&model->threads[i], &sums->threads[model->threads[i].id]);
    }
    model->header.peak_error_bytes = sums->all.error_bytes;
    model->totals.lost = 0; /* model_finish() adds it */
    model->totals.maximum_ns = sums->all.highest > 0 ? sums->all.maximum_ns : view->from_ns;
    model_finish(model);
    model->now_ns = view->whole->now_ns;
    timepoints_complete(model, view->from_ns, view->to_ns,
                        sums->base > 0 ? (uint64_t)sums->base : 0);
    submodel_narrow(model, view->from_ns, view->to_ns);
    sums_end(sums);
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
    model = model_make(view_make, &view, error);
    if (view.is_fine_damaged) {
        view.fine = NULL;
        model = model_make(view_make, &view, error);
    }
    timeorder_end(&view.order);
    return model;
}

/* ---- Windows of whole slices ---- */

uint64_t *model_view_edges(const struct model *whole, size_t *count) {
    const struct index *index = whole->index;
    uint64_t *edges = job_array(index->count + 2, sizeof *edges);
    uint64_t *starts = job_array(index->count + 1, sizeof *starts); /* of all from this one on */
    uint64_t end = 0;
    *count = 0;
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
    job_release(starts);
    return edges;
}

/* The edge that is nearest to a moment; *below: the last one that is not behind it. latest_ns:
 * where the recording ends, which is as far as the last edge. */
static uint64_t nearest(const uint64_t *edges, size_t count, uint64_t time_ns, uint64_t latest_ns,
                        size_t *below) {
    size_t place = search_to(edges, count - 1, sizeof *edges, 0, time_ns);
    uint64_t above;
    *below = place != 0 ? place - 1 : 0;
    above = edges[*below + 1] < latest_ns ? edges[*below + 1] : latest_ns;
    return time_ns < above && time_ns - edges[*below] <= above - time_ns ? edges[*below]
                                                                         : edges[*below + 1];
}

bool model_view_snap(const struct model *whole, uint64_t *from_ns, uint64_t *to_ns) {
    size_t count = 0;
    uint64_t *edges = whole->index != NULL ? model_view_edges(whole, &count) : NULL;
    size_t first;
    size_t last;
    if (edges == NULL) {
        return false;
    }
    *from_ns = nearest(edges, count, *from_ns, whole->now_ns, &first);
    *to_ns = nearest(edges, count, *to_ns, whole->now_ns, &last);
    if (*from_ns >= *to_ns) {
        *from_ns = edges[first];
        *to_ns = edges[last + 1];
    }
    job_release(edges);
    return true;
}
