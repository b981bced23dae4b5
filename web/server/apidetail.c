/* SPDX-License-Identifier: MIT */
/* apidetail.c: see apidetail.h. */
#include "web/server/apidetail.h"

#include "web/server/apicache.h"

#include "analyze/profile/load.h"
#include "analyze/replay/accounts.h"

#include <stdlib.h>

struct wish {
    const struct answer *view;
    bool all;
};

struct gathering {
    struct apidetail *into;
    bool all;
    bool is_full; /* the store took no more */
};

void apidetail_check(struct api_call *call, const char *what) {
    const struct source *source = call->view->source;
    if (source->parts.count == 0) {
        api_refuse(call, 400,
                   "%s needs single blocks, and %s is a profile: make a recording with "
                   "`memtrace record`",
                   what, source->path);
    }
}

struct selection_times apidetail_window(const struct answer *view) {
    struct selection_times window = view->selection->view;
    if (window.to_ns > view->whole->now_ns) {
        window.to_ns =
            view->whole->now_ns > window.from_ns ? view->whole->now_ns : window.from_ns + 1;
    }
    return window;
}

/* ---- Bins ---- */

uint64_t apidetail_bin_ns(const struct apidetail *detail, size_t bin) {
    double width = (double)(detail->to_ns - detail->from_ns) / APIDETAIL_BINS;
    return bin == APIDETAIL_BINS ? detail->to_ns
                                 : detail->from_ns + (uint64_t)(width * (double)bin);
}

static size_t bin_of(const struct apidetail *detail, uint64_t time_ns) {
    double share;
    if (time_ns <= detail->from_ns || time_ns >= detail->to_ns) {
        return time_ns <= detail->from_ns ? 0 : APIDETAIL_BINS - 1;
    }
    share = (double)(time_ns - detail->from_ns) / (double)(detail->to_ns - detail->from_ns);
    return share * APIDETAIL_BINS < APIDETAIL_BINS ? (size_t)(share * APIDETAIL_BINS)
                                                   : APIDETAIL_BINS - 1;
}

/* As the slices of a recording have them: in ticks of the clock. */
static uint32_t bucket_of(const struct life *life) {
    uint64_t ticks =
        (life->death_ns >> MEMTRACE_TICK_SHIFT) - (life->birth_ns >> MEMTRACE_TICK_SHIFT);
    return contexts_bucket(ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX);
}

void apidetail_write_bins(struct api_call *call, const struct apidetail *detail) {
    jsonwriter_array(call->json, "time");
    for (size_t bin = 0; bin < APIDETAIL_BINS; bin++) {
        jsonwriter_map(call->json, NULL);
        jsonwriter_number(call->json, "from_ns", apidetail_bin_ns(detail, bin));
        jsonwriter_number(call->json, "to_ns", apidetail_bin_ns(detail, bin + 1));
        jsonwriter_end_map(call->json);
    }
    jsonwriter_end_array(call->json);
}

void apidetail_write_buckets(struct jsonwriter *json, const char *name, const uint64_t *counts) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "from_ns",
                          i != 0 ? UINT64_C(1) << (2 * (i - 1) + MEMTRACE_TICK_SHIFT) : 0);
        if (i + 1 < MEMTRACE_LIFETIME_BUCKETS) {
            jsonwriter_number(json, "to_ns", UINT64_C(1) << (2 * i + MEMTRACE_TICK_SHIFT));
        } else {
            jsonwriter_string(json, "to_ns", NULL);
        }
        if (counts != NULL) {
            jsonwriter_number(json, "count", counts[i]);
        }
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

/* ---- The pass ---- */

static int apidetail_take_life(void *context, const struct life *life) {
    struct gathering *gathering = context;
    struct apidetail *into = gathering->into;
    bool is_live = life->death_ns == LIFE_ALIVE;
    if (life->birth_ns >= into->from_ns) {
        size_t size = life->size != 0 ? 64 - (size_t)__builtin_clzll(life->size) : 0;
        into->sizes[bin_of(into, life->birth_ns)][size] += life_units(life);
    }
    if (!is_live) {
        into->lifetimes[bin_of(into, life->death_ns)][bucket_of(life)] += life_units(life);
    }
    if ((is_live || gathering->all) && blockstore_add(&into->blocks, life) != 0) {
        gathering->is_full = true;
        return 1;
    }
    return 0;
}

static void close_detail(void *value) {
    struct apidetail *detail = value;
    detail_free(detail->detail);
    blockstore_free(&detail->blocks);
}

static void *make_detail(const void *asked, const struct replay_options *replay) {
    const struct wish *wish = asked;
    const struct answer *view = wish->view;
    struct selection_times window = apidetail_window(view);
    struct apidetail *made = job_alloc(sizeof *made);
    struct gathering gathering = {.into = made, .all = wish->all};
    struct lives_visitor also = {.end = apidetail_take_life, .context = &gathering};
    const struct detail_wish parts = {
        .parts = DETAIL_LIFETIMES | DETAIL_SIZES | DETAIL_GROUPS | DETAIL_HEAP,
        .classes = selection_classes(view->selection),
        .shutdown_ns = UINT64_MAX,
        .limit = 1,
        .also = &also,
    };
    struct error error;
    blockstore_start(&made->blocks);
    job_undo(close_detail, made);
    made->from_ns = window.from_ns;
    made->to_ns = window.to_ns;
    made->scopes = also.scopes = scopes_new();
    made->detail = detail_gather(&parts, view->selection, view->whole, view->source->parts,
                                 view->names, replay, &error);
    if (gathering.is_full) {
        blockstore_explain(&made->blocks, &error);
    }
    if (made->detail == NULL || gathering.is_full) {
        job_fail_as(&error);
    }
    job_check(blockstore_finish(&made->blocks, &error), &error);
    return made;
}

static size_t detail_bytes(const void *value) {
    const struct apidetail *detail = value;
    size_t bytes = sizeof *detail + blockstore_bytes(&detail->blocks) +
                   detail->detail->live_count * sizeof *detail->detail->live;
    for (size_t i = 0; i < detail->detail->context_count; i++) {
        const struct detail_context *context = &detail->detail->contexts[i];
        bytes +=
            sizeof *context + sketch_bytes(&context->lifetimes) + sketch_bytes(&context->sizes);
    }
    return bytes;
}

static const struct apicache_kind detail_kind = {make_detail, detail_bytes, API_VIA_PASS};

const struct apidetail *apidetail_get(struct api_call *call, bool all) {
    const struct wish wish = {call->view, all};
    return apicache_get(call, call->view, all ? "detail of all" : "detail", &detail_kind, &wish);
}

/* ---- Others ---- */

const struct detail *apidetail_gather(const struct answer *view, const struct detail_wish *wish,
                                      const struct selection *selection,
                                      const struct replay_options *replay) {
    struct error error;
    struct detail *detail = detail_gather(wish, selection, view->whole, view->source->parts,
                                          view->names, replay, &error);
    if (detail == NULL) {
        job_fail_as(&error);
    }
    detail_goes_with_job(detail);
    return detail;
}

struct report apidetail_report(const struct api_call *call, const struct apidetail *detail) {
    struct report report = call->report;
    report.detail = detail->detail;
    report.parts = call->view->source->parts;
    return report;
}
