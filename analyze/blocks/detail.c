/* SPDX-License-Identifier: MIT */
/* detail.c: the pass over lives, and what each of them adds. See detail.h. */
#include "analyze/blocks/detail.h"

#include "analyze/base/job.h"
#include "analyze/base/sort.h"
#include "analyze/profile/load.h"
#include "analyze/replay/accounts.h"

#include <stdlib.h>
#include <string.h>

/* ---- The few blocks that come first: a heap with the last one of them on top ---- */

/* What is ranked by, the greater the sooner. */
static uint64_t blockrank_key_of(const struct blockrank *rank, const struct life *life) {
    uint64_t until = life->death_ns != LIFE_ALIVE ? life->death_ns : rank->end_ns;
    switch (rank->order) {
    case DETAIL_LARGEST:
        return life->size;
    case DETAIL_OLDEST:
        return until > life->birth_ns ? until - life->birth_ns : 0;
    default: /* by time, not by place: streams come one after another in a window (timeorder.h) */
        return UINT64_MAX - life->birth_ns;
    }
}

static bool blockrank_is_before(const struct blockrank *rank, const struct life *left,
                                const struct life *right) {
    uint64_t a = blockrank_key_of(rank, left);
    uint64_t b = blockrank_key_of(rank, right);
    return a != b ? a > b : left->birth_order < right->birth_order;
}

static void blockrank_swap(struct life *left, struct life *right) {
    struct life kept = *left;
    *left = *right;
    *right = kept;
}

/* Downwards from the top as long as a child comes later. */
static void blockrank_sink(struct blockrank *rank, size_t count) {
    size_t at = 0;
    for (;;) {
        size_t last = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (blockrank_is_before(rank, &rank->lives[last], &rank->lives[child])) {
                last = child;
            }
        }
        if (last == at) {
            return;
        }
        blockrank_swap(&rank->lives[at], &rank->lives[last]);
        at = last;
    }
}

static void blockrank_rise(struct blockrank *rank, size_t at) {
    while (at != 0 && blockrank_is_before(rank, &rank->lives[(at - 1) / 2], &rank->lives[at])) {
        blockrank_swap(&rank->lives[(at - 1) / 2], &rank->lives[at]);
        at = (at - 1) / 2;
    }
}

void blockrank_start(struct blockrank *rank, enum detail_order order, size_t limit,
                     uint64_t end_ns) {
    *rank = (struct blockrank){.limit = limit, .order = order, .end_ns = end_ns};
    rank->lives = job_array(limit, sizeof *rank->lives);
}

void blockrank_add(struct blockrank *rank, const struct life *life) {
    if (rank->count < rank->limit) {
        rank->lives[rank->count] = *life;
        blockrank_rise(rank, rank->count++);
    } else if (rank->limit != 0 && blockrank_is_before(rank, life, &rank->lives[0])) {
        rank->lives[0] = *life;
        blockrank_sink(rank, rank->count);
    }
}

struct life *blockrank_take(struct blockrank *rank, size_t *count) {
    struct life *lives = rank->lives;
    for (size_t left = rank->count; left > 1; left--) {
        blockrank_swap(&rank->lives[0], &rank->lives[left - 1]);
        blockrank_sink(rank, left - 1);
    }
    *count = rank->count;
    rank->lives = NULL;
    rank->count = 0;
    return lives;
}

enum { WAITING = 16 }; /* about as long as memory takes */

struct gathering {
    const struct detail_wish *wish;
    struct detail *detail;
    const struct model *whole;
    uint64_t from_ns;
    uint64_t to_ns;
    bool sees_all; /* every birth of the view is seen: `epoch` counts them */
    uint64_t epoch;
    uint64_t last_birth;  /* else: place of the last one in the order of the replay */
    uint32_t *context_of; /* by node: its place in detail->contexts + 1; 0: none yet */
    size_t context_room;
    size_t live_room;
    struct blockrank ranked;
    struct life waiting[WAITING]; /* ended; what they are added to is on its way from memory */
    size_t met;                   /* lives that were put there */
    size_t added;                 /* of them */
    const struct selection *selection;
    struct timeorder_parts parts;
    const struct names *names;
    const struct replay_options *options;
};

static bool detail_wants(const struct gathering *gathering, enum detail_part part) {
    return (gathering->detail->wish.parts & part) != 0;
}

static bool detail_is_heap(const struct gathering *gathering, const struct life *life) {
    return contexts_class(gathering->whole->nodes[life->context].frame) == MODEL_HEAP;
}

static bool detail_is_wanted(const struct gathering *gathering, const struct life *life) {
    uint32_t classes = gathering->detail->wish.classes;
    uint32_t class = contexts_class(gathering->whole->nodes[life->context].frame);
    return ((classes != 0 ? classes : 1u << MODEL_HEAP) & 1u << class) != 0;
}

/* ---- Places ---- */

static struct detail_context *detail_context_of(struct gathering *gathering, uint32_t id) {
    struct detail *detail = gathering->detail;
    if (gathering->context_of[id] == 0) {
        job_grow(&detail->contexts, &gathering->context_room, detail->context_count,
                 sizeof *detail->contexts);
        detail->contexts[detail->context_count] =
            (struct detail_context){.id = id, .first_ns = UINT64_MAX};
        gathering->context_of[id] = (uint32_t)++detail->context_count;
    }
    return &detail->contexts[gathering->context_of[id] - 1];
}

static void detail_note_live(struct gathering *gathering, const struct life *life) {
    struct detail *detail = gathering->detail;
    if (life->address == 0) {
        detail->live_without_address++;
        return;
    }
    job_grow(&detail->live, &gathering->live_room, detail->live_count, sizeof *detail->live);
    detail->live[detail->live_count++] =
        (struct detail_live){life->address, life->size, life->slack, life->context};
}

static void detail_add_to_sketch(struct sketch *sketch, uint64_t value, uint64_t count) {
    if (sketch_add(sketch, value, count) != 0) {
        job_fail_memory();
    }
}

/* ---- What a life adds ---- */

static size_t detail_size_bucket(uint64_t size) {
    return size != 0 ? 64 - (size_t)__builtin_clzll(size) : 0;
}

static void detail_add_birth(struct gathering *gathering, struct detail_context *context,
                             const struct life *life) {
    struct detail_sizes *sizes = &gathering->detail->sizes[detail_size_bucket(life->size)];
    context->allocations += life_units(life);
    context->first_ns = life->birth_ns < context->first_ns ? life->birth_ns : context->first_ns;
    context->last_ns = life->birth_ns > context->last_ns ? life->birth_ns : context->last_ns;
    sizes->allocations += life_units(life);
    sizes->total_bytes += life_bytes(life);
    if (detail_wants(gathering, DETAIL_SIZES | DETAIL_GROUPS)) {
        detail_add_to_sketch(&context->sizes, life->size, life_units(life));
    }
}

static void detail_add_death(struct gathering *gathering, struct detail_context *context,
                             const struct life *life) {
    uint64_t lifetime_ns = life->death_ns - life->birth_ns;
    uint64_t units = life_units(life);
    context->lifetime_sum_ns += (double)lifetime_ns * (double)units;
    if (lifetime_ns <= gathering->detail->wish.short_ns && life->birth_ns >= gathering->from_ns) {
        context->short_blocks += units;
    }
    if (detail_wants(gathering, DETAIL_LIFETIMES | DETAIL_GROUPS)) {
        detail_add_to_sketch(&context->lifetimes, lifetime_ns, units);
        detail_add_to_sketch(&gathering->detail->lifetimes, lifetime_ns, units);
    }
}

static void detail_add_living(struct gathering *gathering, struct detail_context *context,
                              const struct life *life) {
    struct detail_sizes *sizes = &gathering->detail->sizes[detail_size_bucket(life->size)];
    sizes->live_blocks += life_units(life);
    sizes->live_bytes += life_bytes(life);
    context->slack_bytes += life->slack;
    if (detail_wants(gathering, DETAIL_HEAP)) {
        detail_note_live(gathering, life);
    }
}

/* A reallocation ends a block at its successor's birth: that is never after the last one. */
static bool detail_is_late(const struct gathering *gathering, const struct life *life) {
    uint64_t from_ns = gathering->detail->wish.shutdown_ns;
    return from_ns != UINT64_MAX ? life->death_ns >= from_ns && !life->is_reallocated
                                 : life->death_order > gathering->last_birth;
}

static void detail_add_late(const struct gathering *gathering, struct detail_context *context,
                            const struct life *life) {
    if (context->epoch != gathering->epoch) {
        context->epoch = gathering->epoch;
        context->late_bytes = 0;
        context->late_blocks = 0;
    }
    context->late_bytes += life_bytes(life);
    context->late_blocks += life_units(life);
}

static void detail_add_shutdown(const struct gathering *gathering, struct detail_context *context,
                                const struct life *life) {
    if (gathering->sees_all && life->death_ns != LIFE_ALIVE) {
        detail_add_late(gathering, context, life);
    } else if (life->death_ns == LIFE_ALIVE || detail_is_late(gathering, life)) {
        context->shutdown_bytes += life_bytes(life);
        context->shutdown_blocks += life_units(life);
    }
}

static void detail_add_life(struct gathering *gathering, const struct life *life) {
    struct detail_context *context = detail_context_of(gathering, life->context);
    if (life->birth_ns >= gathering->from_ns) {
        detail_add_birth(gathering, context, life);
    }
    (life->death_ns == LIFE_ALIVE ? detail_add_living : detail_add_death)(gathering, context, life);
    if (detail_wants(gathering, DETAIL_SHUTDOWN)) {
        detail_add_shutdown(gathering, context, life);
    }
    if (detail_wants(gathering, DETAIL_BLOCKS)) {
        gathering->detail->block_total++;
        blockrank_add(&gathering->ranked, life);
    }
}

/* ---- Lives that wait ----
 *
 * Where there are many call paths, what a life is added to is in no cache. So it waits while some
 * more end: first its context is fetched, then, halfway, the context's sketches. */

static void detail_prefetch_context(const struct detail_context *context) {
    enum { LINE = 64 };
    for (size_t at = 0; at < sizeof *context; at += LINE) {
        __builtin_prefetch((const char *)context + at);
    }
}

static void detail_add_oldest(struct gathering *gathering) {
    detail_add_life(gathering, &gathering->waiting[gathering->added++ % WAITING]);
}

static void detail_wait_and_add(struct gathering *gathering, const struct life *life) {
    const struct detail_context *context = detail_context_of(gathering, life->context);
    if (gathering->met - gathering->added == WAITING) {
        detail_add_oldest(gathering);
    }
    detail_prefetch_context(context);
    gathering->waiting[gathering->met++ % WAITING] = *life;
    if (gathering->met - gathering->added > WAITING / 2) {
        size_t half = (gathering->met - 1 - WAITING / 2) % WAITING;
        context = detail_context_of(gathering, gathering->waiting[half].context);
        sketch_prefetch(&context->lifetimes);
        sketch_prefetch(&context->sizes);
    }
}

static int detail_visit_end(void *context, const struct life *life) {
    struct gathering *gathering = context;
    const struct lives_visitor *also = gathering->detail->wish.also;
    if (!detail_is_wanted(gathering, life)) {
        return 0;
    }
    /* What is late depends on when it is looked at. */
    (detail_wants(gathering, DETAIL_SHUTDOWN) ? detail_add_life : detail_wait_and_add)(gathering,
                                                                                       life);
    return also != NULL ? also->end(also->context, life) : 0;
}

/* ---- The passes ---- */

static int detail_count_birth(void *context, const struct life *life) {
    struct gathering *gathering = context;
    gathering->epoch += detail_is_heap(gathering, life);
    return 0;
}

static int detail_note_birth(void *context, const struct life *life) {
    struct gathering *gathering = context;
    if (detail_is_heap(gathering, life) && life->birth_ns < gathering->to_ns) {
        gathering->last_birth = life->birth_order;
    }
    return 0;
}

static bool detail_is_view(const struct selection *selection) {
    struct selection all = *selection;
    all.view = selection_all().view;
    return selection_is_all(&all);
}

static int detail_by_id(const void *left, const void *right) {
    const struct detail_context *a = left;
    const struct detail_context *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static void detail_sort_live(struct detail *detail, const atomic_bool *cancel) {
    size_t count = detail->live_count;
    struct sort_key *keys = job_array(count, sizeof *keys);
    struct detail_live *sorted = job_array(count, sizeof *sorted);
    enum sort_status status;
    for (size_t i = 0; i < count; i++) {
        keys[i] = (struct sort_key){detail->live[i].address, i};
    }
    status = sort_keys(keys, count, cancel);
    if (status != SORT_DONE) {
        job_fail(status == SORT_CANCELLED ? "cancelled" : "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = detail->live[keys[i].place];
    }
    job_release(keys);
    job_release(detail->live);
    detail->live = sorted;
}

static void detail_finish(struct gathering *gathering) {
    struct detail *detail = gathering->detail;
    for (size_t i = 0; i < detail->context_count; i++) {
        struct detail_context *context = &detail->contexts[i];
        if (gathering->sees_all && context->epoch == gathering->epoch) {
            context->shutdown_bytes += context->late_bytes;
            context->shutdown_blocks += context->late_blocks;
        }
        context->allocations = slice_whole_count(context->allocations);
        context->shutdown_blocks = slice_whole_count(context->shutdown_blocks);
        context->short_blocks = slice_whole_count(context->short_blocks);
        context->lifetime_sum_ns /= (double)ACCOUNTS_ONE;
    }
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        detail->sizes[i].allocations = slice_whole_count(detail->sizes[i].allocations);
        detail->sizes[i].live_blocks = slice_whole_count(detail->sizes[i].live_blocks);
    }
    if (detail->context_count != 0) {
        qsort(detail->contexts, detail->context_count, sizeof *detail->contexts, detail_by_id);
    }
    detail->blocks = blockrank_take(&gathering->ranked, &detail->block_count);
    if (detail->live_count != 0) {
        detail_sort_live(detail, gathering->options != NULL ? gathering->options->cancel : NULL);
    }
}

static void detail_end_sketches(void *what) {
    struct detail *detail = what;
    for (size_t i = 0; i < detail->context_count; i++) {
        sketch_free(&detail->contexts[i].lifetimes);
        sketch_free(&detail->contexts[i].sizes);
    }
    sketch_free(&detail->lifetimes);
}

static void detail_look(void *what) {
    struct gathering *gathering = what;
    const struct detail_wish *wish = gathering->wish;
    struct detail *detail = job_alloc(sizeof *detail);
    const struct lives_visitor birth_visitor = {.begin = detail_note_birth, .context = gathering};
    struct lives_visitor visitor = {.end = detail_visit_end, .context = gathering};
    bool asks_last = (wish->parts & DETAIL_SHUTDOWN) != 0 && wish->shutdown_ns == UINT64_MAX;
    struct error error = {""};
    gathering->detail = detail;
    detail->wish = *wish;
    detail->end_ns =
        gathering->to_ns < gathering->whole->now_ns ? gathering->to_ns : gathering->whole->now_ns;
    job_reserve(&detail->contexts, &gathering->context_room, 1, sizeof *detail->contexts);
    job_reserve(&detail->live, &gathering->live_room, 1, sizeof *detail->live);
    job_undo(detail_end_sketches, detail);
    gathering->context_of = job_array(gathering->whole->node_count, sizeof *gathering->context_of);
    blockrank_start(&gathering->ranked, wish->order,
                    detail_wants(gathering, DETAIL_BLOCKS) ? wish->limit : 0, detail->end_ns);
    gathering->sees_all = asks_last && detail_is_view(gathering->selection);
    if (asks_last && !gathering->sees_all) {
        /* Who allocates last need not be selected: then another pass looks at all blocks. */
        job_check(lives_visit(gathering->parts, gathering->whole, &birth_visitor,
                              gathering->options, &error),
                  &error);
    }
    visitor.begin = gathering->sees_all ? detail_count_birth : NULL;
    visitor.scopes = wish->also != NULL ? wish->also->scopes : NULL;
    job_check(selection_visit(gathering->selection, gathering->whole, gathering->parts,
                              gathering->names, &visitor, gathering->options, &error),
              &error);
    while (gathering->added != gathering->met) {
        detail_add_oldest(gathering);
    }
    detail_finish(gathering);
    detail->wish.also = NULL;
    job_release(gathering->context_of);
}

struct detail *detail_gather(const struct detail_wish *wish, const struct selection *selection,
                             const struct model *whole, struct timeorder_parts parts,
                             const struct names *names, const struct replay_options *options,
                             struct error *error) {
    struct gathering gathering = {.wish = wish,
                                  .whole = whole,
                                  .from_ns = selection->view.from_ns,
                                  .to_ns = selection->view.to_ns,
                                  .selection = selection,
                                  .parts = parts,
                                  .names = names,
                                  .options = options};
    struct job_memory *memory = NULL;
    if (job_run(detail_look, &gathering, &memory, error) != 0) {
        return NULL;
    }
    gathering.detail->memory = memory;
    return gathering.detail;
}

void detail_free(struct detail *detail) {
    struct job_memory *memory = detail != NULL ? detail->memory : NULL;
    job_free(&memory);
}

static void detail_undo(void *detail) {
    detail_free(detail);
}

void detail_goes_with_job(struct detail *detail) {
    job_undo(detail_undo, detail);
}

const struct detail_context *detail_find(const struct detail *detail, uint32_t id) {
    const struct detail_context key = {.id = id};
    return detail->context_count != 0
               ? bsearch(&key, detail->contexts, detail->context_count, sizeof key, detail_by_id)
               : NULL;
}

/* ---- The costs of a model ---- */

const struct model *detail_submodel(const struct detail *detail, enum detail_part part,
                                    const struct model *model) {
    struct model *submodel = job_alloc(sizeof *submodel);
    struct model_totals *totals = &submodel->totals;
    *submodel = *model;
    submodel->contexts = job_array(model->context_count, sizeof *submodel->contexts);
    memcpy(submodel->contexts, model->contexts, model->context_count * sizeof *model->contexts);
    totals->live_bytes = part == DETAIL_SHUTDOWN ? 0 : totals->live_bytes;
    totals->live_blocks = part == DETAIL_SHUTDOWN ? 0 : totals->live_blocks;
    totals->temporary = part == DETAIL_SHORT ? 0 : totals->temporary;
    for (size_t i = 0; i < submodel->context_count; i++) {
        struct model_context *context = &submodel->contexts[i];
        const struct detail_context *told;
        if (context->class != MODEL_HEAP) {
            continue;
        }
        told = detail_find(detail, context->id);
        if (part == DETAIL_SHUTDOWN) {
            context->live_bytes = told != NULL ? told->shutdown_bytes : 0;
            context->live_blocks = told != NULL ? told->shutdown_blocks : 0;
            totals->live_bytes = model_add(totals->live_bytes, context->live_bytes);
            totals->live_blocks = model_add(totals->live_blocks, context->live_blocks);
        } else {
            context->temporary = told != NULL ? told->short_blocks : 0;
            totals->temporary = model_add(totals->temporary, context->temporary);
        }
    }
    return submodel;
}
