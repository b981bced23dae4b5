/* SPDX-License-Identifier: MIT */
/* detail.c: the pass over lives, and what each of them adds. See detail.h. */
#include "analyze/blocks/detail.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/sort.h"
#include "analyze/blocks/blockrank.h"
#include "analyze/profile/load.h"
#include "analyze/replay/accounts.h"

#include <stdlib.h>
#include <string.h>

enum { WAITING = 16 }; /* about as long as memory takes */

struct gathering {
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
    bool out_of_memory;
};

static bool wants(const struct gathering *gathering, enum detail_part part) {
    return (gathering->detail->wish.parts & part) != 0;
}

static bool is_heap(const struct gathering *gathering, const struct life *life) {
    return contexts_class(gathering->whole->nodes[life->context].frame) == MODEL_HEAP;
}

static bool is_wanted(const struct gathering *gathering, const struct life *life) {
    uint32_t classes = gathering->detail->wish.classes;
    uint32_t class = contexts_class(gathering->whole->nodes[life->context].frame);
    return ((classes != 0 ? classes : 1u << MODEL_HEAP) & 1u << class) != 0;
}

/* ---- Places ---- */

/* NULL: out of memory. */
static struct detail_context *context_of(struct gathering *gathering, uint32_t id) {
    struct detail *detail = gathering->detail;
    if (gathering->context_of[id] != 0) {
        return &detail->contexts[gathering->context_of[id] - 1];
    }
    if (array_grow(&detail->contexts, &gathering->context_room, detail->context_count,
                   sizeof *detail->contexts) != 0) {
        return NULL;
    }
    detail->contexts[detail->context_count] =
        (struct detail_context){.id = id, .first_ns = UINT64_MAX};
    gathering->context_of[id] = (uint32_t)++detail->context_count;
    return &detail->contexts[detail->context_count - 1];
}

static int note_live(struct gathering *gathering, const struct life *life) {
    struct detail *detail = gathering->detail;
    if (life->address == 0) {
        detail->live_without_address++;
        return 0;
    }
    if (array_grow(&detail->live, &gathering->live_room, detail->live_count,
                   sizeof *detail->live) != 0) {
        return -1;
    }
    detail->live[detail->live_count++] =
        (struct detail_live){life->address, life->size, life->slack, life->context};
    return 0;
}

/* ---- What a life adds ---- */

static size_t size_bucket(uint64_t size) {
    return size != 0 ? 64 - (size_t)__builtin_clzll(size) : 0;
}

static int add_birth(struct gathering *gathering, struct detail_context *context,
                     const struct life *life) {
    struct detail_sizes *sizes = &gathering->detail->sizes[size_bucket(life->size)];
    context->allocations += life_units(life);
    context->first_ns = life->birth_ns < context->first_ns ? life->birth_ns : context->first_ns;
    context->last_ns = life->birth_ns > context->last_ns ? life->birth_ns : context->last_ns;
    sizes->allocations += life_units(life);
    sizes->total_bytes += life_bytes(life);
    return wants(gathering, DETAIL_SIZES | DETAIL_GROUPS)
               ? sketch_add(&context->sizes, life->size, life_units(life))
               : 0;
}

static int add_death(struct gathering *gathering, struct detail_context *context,
                     const struct life *life) {
    uint64_t lifetime_ns = life->death_ns - life->birth_ns;
    uint64_t units = life_units(life);
    context->lifetime_sum_ns += (double)lifetime_ns * (double)units;
    if (lifetime_ns <= gathering->detail->wish.short_ns && life->birth_ns >= gathering->from_ns) {
        context->short_blocks += units;
    }
    if (!wants(gathering, DETAIL_LIFETIMES | DETAIL_GROUPS)) {
        return 0;
    }
    return sketch_add(&context->lifetimes, lifetime_ns, units) |
           sketch_add(&gathering->detail->lifetimes, lifetime_ns, units);
}

static int add_living(struct gathering *gathering, struct detail_context *context,
                      const struct life *life) {
    struct detail_sizes *sizes = &gathering->detail->sizes[size_bucket(life->size)];
    sizes->live_blocks += life_units(life);
    sizes->live_bytes += life_bytes(life);
    context->slack_bytes += life->slack;
    return wants(gathering, DETAIL_HEAP) ? note_live(gathering, life) : 0;
}

/* A reallocation ends a block at its successor's birth: that is never after the last one. */
static bool is_late(const struct gathering *gathering, const struct life *life) {
    uint64_t from_ns = gathering->detail->wish.shutdown_ns;
    return from_ns != UINT64_MAX ? life->death_ns >= from_ns && !life->is_reallocated
                                 : life->death_order > gathering->last_birth;
}

static void add_late(const struct gathering *gathering, struct detail_context *context,
                     const struct life *life) {
    if (context->epoch != gathering->epoch) {
        context->epoch = gathering->epoch;
        context->late_bytes = 0;
        context->late_blocks = 0;
    }
    context->late_bytes += life_bytes(life);
    context->late_blocks += life_units(life);
}

static void add_shutdown(const struct gathering *gathering, struct detail_context *context,
                         const struct life *life) {
    if (gathering->sees_all && life->death_ns != LIFE_ALIVE) {
        add_late(gathering, context, life);
    } else if (life->death_ns == LIFE_ALIVE || is_late(gathering, life)) {
        context->shutdown_bytes += life_bytes(life);
        context->shutdown_blocks += life_units(life);
    }
}

static int add_life(struct gathering *gathering, const struct life *life) {
    struct detail_context *context = context_of(gathering, life->context);
    int result = context != NULL ? 0 : -1;
    if (result == 0 && life->birth_ns >= gathering->from_ns) {
        result = add_birth(gathering, context, life);
    }
    if (result == 0) {
        result = life->death_ns == LIFE_ALIVE ? add_living(gathering, context, life)
                                              : add_death(gathering, context, life);
    }
    if (result == 0 && wants(gathering, DETAIL_SHUTDOWN)) {
        add_shutdown(gathering, context, life);
    }
    if (result == 0 && wants(gathering, DETAIL_BLOCKS)) {
        gathering->detail->block_total++;
        blockrank_add(&gathering->ranked, life);
    }
    return result;
}

/* ---- Lives that wait ----
 *
 * Where there are many call paths, what a life is added to is in no cache. So it waits while some
 * more end: first its context is fetched, then, halfway, the context's sketches. */

static void prefetch_context(const struct detail_context *context) {
    enum { LINE = 64 };
    for (size_t at = 0; at < sizeof *context; at += LINE) {
        __builtin_prefetch((const char *)context + at);
    }
}

static int add_oldest(struct gathering *gathering) {
    return add_life(gathering, &gathering->waiting[gathering->added++ % WAITING]);
}

static int add_waiting(struct gathering *gathering) {
    int result = 0;
    while (gathering->added != gathering->met) {
        result |= add_oldest(gathering);
    }
    return result;
}

static int wait_and_add(struct gathering *gathering, const struct life *life) {
    const struct detail_context *context = context_of(gathering, life->context);
    int result = context != NULL ? 0 : -1;
    if (result == 0 && gathering->met - gathering->added == WAITING) {
        result = add_oldest(gathering);
    }
    if (result == 0) {
        prefetch_context(context);
        gathering->waiting[gathering->met++ % WAITING] = *life;
    }
    if (result == 0 && gathering->met - gathering->added > WAITING / 2) {
        size_t half = (gathering->met - 1 - WAITING / 2) % WAITING;
        context = context_of(gathering, gathering->waiting[half].context);
        sketch_prefetch(&context->lifetimes);
        sketch_prefetch(&context->sizes);
    }
    return result;
}

static int visit_end(void *context, const struct life *life) {
    struct gathering *gathering = context;
    const struct lives_visitor *also = gathering->detail->wish.also;
    int result;
    if (!is_wanted(gathering, life)) {
        return 0;
    }
    /* What is late depends on when it is looked at. */
    result = wants(gathering, DETAIL_SHUTDOWN) ? add_life(gathering, life)
                                               : wait_and_add(gathering, life);
    if (result != 0) {
        gathering->out_of_memory = true;
        return 1;
    }
    return also != NULL ? also->end(also->context, life) : 0;
}

/* ---- The passes ---- */

static int count_birth(void *context, const struct life *life) {
    struct gathering *gathering = context;
    gathering->epoch += is_heap(gathering, life);
    return 0;
}

static int note_birth(void *context, const struct life *life) {
    struct gathering *gathering = context;
    if (is_heap(gathering, life) && life->birth_ns < gathering->to_ns) {
        gathering->last_birth = life->birth_order;
    }
    return 0;
}

static bool is_view(const struct selection *selection) {
    struct selection all = *selection;
    all.view = selection_all().view;
    return selection_is_all(&all);
}

/* Who allocates last need not be selected: then another pass looks at all blocks. */
static int find_last_birth(struct gathering *gathering, const struct selection *selection,
                           struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error) {
    const struct lives_visitor visitor = {.begin = note_birth, .context = gathering};
    bool is_asked =
        wants(gathering, DETAIL_SHUTDOWN) && gathering->detail->wish.shutdown_ns == UINT64_MAX;
    gathering->sees_all = is_asked && is_view(selection);
    return is_asked && !gathering->sees_all
               ? lives_visit(parts, gathering->whole, &visitor, options, error)
               : 0;
}

static uint64_t whole_count(uint64_t units) {
    return (units + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE;
}

static int by_id(const void *left, const void *right) {
    const struct detail_context *a = left;
    const struct detail_context *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static int sort_live(struct detail *detail, const atomic_bool *cancel, struct error *error) {
    size_t count = detail->live_count;
    struct sort_key *keys = malloc((count + 1) * sizeof *keys);
    struct detail_live *sorted = malloc((count + 1) * sizeof *sorted);
    enum sort_status status = SORT_NO_MEMORY;
    if (keys != NULL && sorted != NULL) {
        for (size_t i = 0; i < count; i++) {
            keys[i] = (struct sort_key){detail->live[i].address, i};
        }
        status = sort_keys(keys, count, cancel);
    }
    for (size_t i = 0; status == SORT_DONE && i < count; i++) {
        sorted[i] = detail->live[keys[i].place];
    }
    free(keys);
    if (status != SORT_DONE) {
        free(sorted);
        return error_set(error, status == SORT_CANCELLED ? "cancelled" : "out of memory");
    }
    free(detail->live);
    detail->live = sorted;
    return 0;
}

static int finish(struct gathering *gathering, const atomic_bool *cancel, struct error *error) {
    struct detail *detail = gathering->detail;
    for (size_t i = 0; i < detail->context_count; i++) {
        struct detail_context *context = &detail->contexts[i];
        if (gathering->sees_all && context->epoch == gathering->epoch) {
            context->shutdown_bytes += context->late_bytes;
            context->shutdown_blocks += context->late_blocks;
        }
        context->allocations = whole_count(context->allocations);
        context->shutdown_blocks = whole_count(context->shutdown_blocks);
        context->short_blocks = whole_count(context->short_blocks);
        context->lifetime_sum_ns /= (double)ACCOUNTS_ONE;
    }
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        detail->sizes[i].allocations = whole_count(detail->sizes[i].allocations);
        detail->sizes[i].live_blocks = whole_count(detail->sizes[i].live_blocks);
    }
    if (detail->context_count != 0) {
        qsort(detail->contexts, detail->context_count, sizeof *detail->contexts, by_id);
    }
    detail->blocks = blockrank_take(&gathering->ranked, &detail->block_count);
    return detail->live_count != 0 ? sort_live(detail, cancel, error) : 0;
}

static int gather(struct gathering *gathering, const struct selection *selection,
                  struct timeorder_parts parts, const struct names *names,
                  const struct replay_options *options, struct error *error) {
    const struct detail_wish *wish = &gathering->detail->wish;
    struct lives_visitor visitor = {.end = visit_end, .context = gathering};
    int result;
    gathering->context_of = calloc(gathering->whole->node_count, sizeof *gathering->context_of);
    if (gathering->context_of == NULL ||
        blockrank_start(&gathering->ranked, wish->order,
                        wants(gathering, DETAIL_BLOCKS) ? wish->limit : 0,
                        gathering->detail->end_ns) != 0) {
        return error_set(error, "out of memory");
    }
    result = find_last_birth(gathering, selection, parts, options, error);
    visitor.begin = gathering->sees_all ? count_birth : NULL;
    visitor.scopes = wish->also != NULL ? wish->also->scopes : NULL;
    if (result == 0) {
        result =
            selection_visit(selection, gathering->whole, parts, names, &visitor, options, error);
    }
    gathering->out_of_memory |= add_waiting(gathering) != 0;
    if (gathering->out_of_memory) {
        result = error_set(error, "out of memory while looking at single blocks");
    }
    return result == 0 ? finish(gathering, options != NULL ? options->cancel : NULL, error)
                       : result;
}

struct detail *detail_gather(const struct detail_wish *wish, const struct selection *selection,
                             const struct model *whole, struct timeorder_parts parts,
                             const struct names *names, const struct replay_options *options,
                             struct error *error) {
    uint64_t to_ns = selection->view.to_ns;
    struct gathering gathering = {.detail = calloc(1, sizeof *gathering.detail),
                                  .whole = whole,
                                  .from_ns = selection->view.from_ns,
                                  .to_ns = to_ns};
    int result = -1;
    if (gathering.detail == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    gathering.detail->wish = *wish;
    gathering.detail->end_ns = to_ns < whole->now_ns ? to_ns : whole->now_ns;
    result = gather(&gathering, selection, parts, names, options, error);
    gathering.detail->wish.also = NULL;
    free(gathering.context_of);
    blockrank_end(&gathering.ranked);
    if (result != 0) {
        detail_free(gathering.detail);
        return NULL;
    }
    return gathering.detail;
}

void detail_free(struct detail *detail) {
    if (detail == NULL) {
        return;
    }
    for (size_t i = 0; i < detail->context_count; i++) {
        sketch_free(&detail->contexts[i].lifetimes);
        sketch_free(&detail->contexts[i].sizes);
    }
    sketch_free(&detail->lifetimes);
    free(detail->contexts);
    free(detail->live);
    free(detail->blocks);
    free(detail);
}

const struct detail_context *detail_find(const struct detail *detail, uint32_t id) {
    const struct detail_context key = {.id = id};
    return detail->context_count != 0
               ? bsearch(&key, detail->contexts, detail->context_count, sizeof key, by_id)
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
