/* SPDX-License-Identifier: MIT */
/* apimetric.c: see apimetric.h. */
#include "web/server/apimetric.h"

#include "analyze/base/job.h"
#include "analyze/filter/selection.h"
#include "ask/option.h"
#include "web/server/apicache.h"
#include "web/server/apidetail.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHORT_NS = 10000000 }; /* what is short-lived, where nobody says how short */

size_t apimetric_bytes(const void *value) {
    const struct model *model = value;
    return sizeof *model + model->context_count * sizeof *model->contexts;
}

/* ---- Pools and mappings, where filters ask for them ---- */

static void *make_heap(const void *wish, const struct replay_options *replay) {
    (void)replay;
    return (void *)(uintptr_t)answer_counted(wish);
}

static const struct apicache_kind heap_kind = {.make = make_heap, .bytes = apimetric_bytes};

const struct model *apimetric_heap(struct api_call *call, const struct answer *view) {
    uint32_t classes = selection_classes(view->selection);
    if (classes == 0 || classes == 1u << MODEL_HEAP) {
        return view->model;
    }
    return apicache_get(call, view, "as heap", &heap_kind, view);
}

/* ---- Leaks without those that are suppressed ---- */

struct leaks_wish {
    const struct answer *view;
    const struct model *heap;
};

static void *make_unsuppressed(const void *asked, const struct replay_options *replay) {
    const struct leaks_wish *wish = asked;
    (void)replay;
    return (void *)(uintptr_t)suppressions_leave(
        question_suppressions(wish->view->question, wish->view->model), wish->heap,
        wish->view->names);
}

static const struct apicache_kind unsuppressed_kind = {.make = make_unsuppressed,
                                                       .bytes = apimetric_bytes};

/* `heap`: all of them; `key`: which. */
static const struct model *without_suppressed(struct api_call *call, const struct answer *view,
                                              const struct model *heap, const char *key) {
    const struct leaks_wish wish = {view, heap};
    return model_has_leaks(view->model) ? apicache_get(call, view, key, &unsuppressed_kind, &wish)
                                        : heap;
}

/* ---- What single blocks tell ---- */

struct part_wish {
    const struct answer *view;
    const struct model *heap;
    enum detail_part part;
    uint64_t short_ns;
};

struct part {
    const struct detail *detail;
    const struct model *model;
};

static void *make_part(const void *asked, const struct replay_options *replay) {
    const struct part_wish *wish = asked;
    const struct detail_wish parts = {
        .parts = wish->part, .shutdown_ns = UINT64_MAX, .short_ns = wish->short_ns, .limit = 1};
    struct part *part = job_alloc(sizeof *part);
    part->detail = apidetail_gather(wish->view, &parts, wish->view->selection, replay);
    part->model = detail_submodel(part->detail, wish->part, wish->heap);
    return part;
}

static size_t bytes_of_part(const void *value) {
    const struct part *part = value;
    return sizeof *part + apimetric_bytes(part->model) +
           part->detail->context_count * sizeof *part->detail->contexts;
}

static const struct apicache_kind part_kind = {make_part, bytes_of_part, API_VIA_PASS};

static const struct model *of_single_blocks(struct api_call *call, const struct answer *view,
                                            enum metric metric) {
    struct part_wish wish = {.view = view,
                             .heap = apimetric_heap(call, view),
                             .part = metric == METRIC_SHORT ? DETAIL_SHORT : DETAIL_SHUTDOWN,
                             .short_ns = SHORT_NS};
    const char *within = api_param(call, "within");
    char key[64];
    const struct part *part;
    if (view->source->parts.count == 0) {
        api_refuse(call, 400,
                   "metric %s needs single blocks, which a profile does not have; make a recording "
                   "with `memtrace record`",
                   apimetric_name(metric));
    }
    if (within != NULL && quantity_duration(within, &wish.short_ns) != 0) {
        api_refuse(call, 400, "within is a duration such as 10ms, not '%s'", within);
    }
    snprintf(key, sizeof key, "metric %s %" PRIu64, metric_name(metric), wish.short_ns);
    part = apicache_get(call, view, key, &part_kind, &wish);
    return part->model;
}

const struct model *apimetric_all(struct api_call *call, const struct answer *view,
                                  enum metric metric) {
    return metric == METRIC_SHUTDOWN || metric == METRIC_SHORT
               ? of_single_blocks(call, view, metric)
               : apimetric_heap(call, view);
}

const struct model *apimetric_of(struct api_call *call, const struct answer *view,
                                 enum metric metric) {
    const struct model *all = apimetric_all(call, view, metric);
    switch (metric) {
    case METRIC_LEAKED:
        return without_suppressed(call, view, all, "unsuppressed");
    case METRIC_SHUTDOWN:
        return without_suppressed(call, view, all, "unsuppressed at shutdown");
    default:
        return all;
    }
}

const struct model *apimetric_model(struct api_call *call, const struct answer *view) {
    return apimetric_of(call, view, call->metric);
}

const char *apimetric_name(enum metric metric) {
    return metric == METRIC_SHORT ? "short" : metric_name(metric);
}

const char *apimetric_option(const struct api_call *call) {
    static const char *const options[METRIC_ALL] = {
        [METRIC_MAXIMUM] = "--show-peak",           [METRIC_LEAKED] = "--show-leaked",
        [METRIC_CUMULATIVE] = "--show-allocated",   [METRIC_ALLOCATIONS] = "--show-allocations",
        [METRIC_TEMPORARY] = "--show-temporary",    [METRIC_SHUTDOWN] = "--show-shutdown",
        [METRIC_SHORT] = "--temporary-within 10ms",
    };
    return options[call->metric];
}

void apimetric_sides(const struct api_call *call, struct diff_side sides[2]) {
    const struct answer *views[2] = {call->base, call->view};
    for (size_t side = 0; side < 2; side++) {
        sides[side] = (struct diff_side){.model = views[side]->model,
                                         .names = views[side]->names,
                                         .source = views[side]->source->path};
    }
}

void apimetric_diff_command(struct api_call *call, const char *by) {
    if (call->metric < METRIC_COUNT) {
        api_command(call, "diff --metric %s --by %s", metric_word(call->metric), by);
    } else {
        api_note(call, "No command shows this: memtrace diff compares " METRIC_WORDS ".");
    }
}

/* ---- Sums, where they were left out ---- */

static void *make_sums(const void *wish, const struct replay_options *replay) {
    const struct answer *view = wish;
    struct error error;
    struct model *sums = selection_model(view->selection, view->whole, view->source->parts,
                                         view->names, replay, &error);
    if (sums == NULL) {
        job_fail_as(&error);
    }
    model_goes_with_job(sums);
    return sums;
}

static const struct apicache_kind sums_kind = {.make = make_sums, .bytes = apimetric_bytes};

const struct model *apimetric_sums(struct api_call *call) {
    const struct answer *view = call->view;
    return view->lacks_sums && !selection_is_all(view->selection)
               ? apicache_get(call, view, "sums", &sums_kind, view)
               : view->model;
}
