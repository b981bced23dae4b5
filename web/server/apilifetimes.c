/* SPDX-License-Identifier: MIT */
/*
 * apilifetimes.c: how long blocks lived, over the run and by call path, and how large they were.
 *
 * Lifetimes over time are in the slices of a recording's index: unless filters of single blocks
 * are given they need no pass. A recording so small that it has few slices is gone through, which
 * takes no time: the slices would be one or two columns of the map.
 */
#include "web/server/apicache.h"
#include "web/server/apidetail.h"
#include "web/server/apireport.h"

#include "analyze/replay/accounts.h"
#include "analyze/report/reports.h"
#include "analyze/window/index.h"

/* ---- From slices ---- */

/* Slices of a view, those that follow each other taken together until few rows are left. */
struct overtime {
    uint64_t from_ns[APIDETAIL_BINS + 1];                       /* the last one: the end */
    uint64_t counts[APIDETAIL_BINS][MEMTRACE_LIFETIME_BUCKETS]; /* units */
    size_t count;
};

/* Of the slices [first, end) that lie in the view, in whole or in part. */
struct run_of_slices {
    size_t first, end;
};

static uint64_t end_of(const struct index *index, size_t at, uint64_t last_ns) {
    return at + 1 < index->count ? index->entries[at + 1].start_ns : last_ns;
}

static struct run_of_slices find_slices(const struct index *index, struct selection_times window) {
    struct run_of_slices run = {0, index->count};
    while (run.first + 1 < run.end && index->entries[run.first + 1].start_ns <= window.from_ns) {
        run.first++;
    }
    while (run.end > run.first + 1 && index->entries[run.end - 1].start_ns >= window.to_ns) {
        run.end--;
    }
    return run;
}

/* Those of the contexts that are selected: they alone are in the view's model. */
static void add_slice(uint64_t *counts, const struct slice *slice, const struct model *model) {
    struct slice_reader reader;
    struct slice_context context;
    slice_read(&reader, slice);
    while (slice_next_context(&reader, &context)) {
        const struct model_context *found = model_find(model, context.id);
        for (size_t i = 0;
             found != NULL && found->class == MODEL_HEAP && i < MEMTRACE_LIFETIME_BUCKETS; i++) {
            counts[i] += context.lifetimes[i];
        }
    }
    if (reader.failed) {
        job_fail("the recording's index is damaged");
    }
}

static void *make_overtime(const void *asked, const struct replay_options *replay) {
    const struct answer *view = asked;
    const struct index *index = view->whole->index;
    struct selection_times window = apidetail_window(view);
    struct run_of_slices run = find_slices(index, window);
    struct overtime *made = job_alloc(sizeof *made);
    size_t each = (run.end - run.first + APIDETAIL_BINS - 1) / APIDETAIL_BINS;
    for (size_t at = run.first; at < run.end; at++) {
        size_t row = (at - run.first) / each;
        if (replay_is_cancelled(replay)) {
            job_fail("cancelled");
        }
        add_slice(made->counts[row], &index->entries[at].slice, view->model);
        if ((at - run.first) % each == 0) {
            made->from_ns[row] = index->entries[at].start_ns;
        }
        made->count = row + 1;
        made->from_ns[row + 1] = end_of(index, at, window.to_ns);
    }
    return made;
}

static size_t overtime_bytes(const void *value) {
    (void)value;
    return sizeof(struct overtime);
}

static const struct apicache_kind overtime_kind = {.make = make_overtime, .bytes = overtime_bytes};

/* ---- What is written ---- */

static void write_counts(struct jsonwriter *json, const uint64_t *units, size_t rows,
                         size_t columns) {
    jsonwriter_array(json, "counts");
    for (size_t row = 0; row < rows; row++) {
        jsonwriter_array(json, NULL);
        for (size_t i = 0; i < columns; i++) {
            jsonwriter_number(json, NULL, slice_whole_count(units[row * columns + i]));
        }
        jsonwriter_end_array(json);
    }
    jsonwriter_end_array(json);
}

static void write_overtime(struct api_call *call) {
    struct selection_times window = apidetail_window(call->view);
    const struct overtime *overtime =
        apicache_get(call, call->view, "lifetimes", &overtime_kind, call->view);
    jsonwriter_array(call->json, "time");
    for (size_t row = 0; row < overtime->count; row++) {
        jsonwriter_map(call->json, NULL);
        jsonwriter_number(call->json, "from_ns", overtime->from_ns[row]);
        jsonwriter_number(call->json, "to_ns", overtime->from_ns[row + 1]);
        jsonwriter_end_map(call->json);
    }
    jsonwriter_end_array(call->json);
    write_counts(call->json, overtime->counts[0], overtime->count, MEMTRACE_LIFETIME_BUCKETS);
    call->told.via = API_VIA_SLICES;
    if (overtime->count != 0 && (overtime->from_ns[0] < window.from_ns ||
                                 overtime->from_ns[overtime->count] > window.to_ns)) {
        call->told.exact = API_SNAPPED;
    }
}

enum { FEW_SLICES = 10 };

static bool needs_pass(const struct answer *view) {
    return selection_needs_lives(view->selection) || view->whole->index->count < FEW_SLICES;
}

/* The parameter has one word. */
static bool apilifetimes_is_asked(struct api_call *call, const char *name, const char *word) {
    return api_word(call, name, word, 0) == 0 && api_param(call, name) != NULL;
}

static void *make_percentiles(const void *asked, const struct replay_options *replay) {
    struct apireport *made = job_alloc(sizeof *made);
    (void)replay;
    *made = apireport_take(asked, report_lifetimes);
    return made;
}

static size_t percentiles_bytes(const void *value) {
    const struct apireport *made = value;
    size_t bytes = sizeof *made;
    for (size_t i = 0; i < made->count; i++) {
        bytes += made->tables[i].room * (made->tables[i].count + 1) * sizeof *made->tables->cells;
    }
    return bytes;
}

/* Of thousands of call paths: that is not made for each who asks again. */
static const struct apicache_kind percentiles_kind = {.make = make_percentiles,
                                                      .bytes = percentiles_bytes};

/* The tables of a report that also a profile has. */
static void write_percentiles(struct api_call *call) {
    struct report report = call->report;
    const struct apireport *taken;
    if (call->view->source->parts.count != 0) {
        report = apidetail_report(call, apidetail_get(call, false));
        jsonwriter_number(call->json, "finest_ns", report_finest_lifetime(report.model));
    }
    taken = apicache_get(call, call->view, "percentiles", &percentiles_kind, &report);
    apireport_write(call, "all", apireport_find(taken, "lifetimes-all"));
    apireport_write(call, "percentiles", apireport_find(taken, "lifetimes"));
}

void api_lifetimes(struct api_call *call) {
    bool is_over = apilifetimes_is_asked(call, "over", "time");
    bool is_per = apilifetimes_is_asked(call, "per", "path");
    if (is_over) {
        apidetail_check(call, "over=time");
    }
    api_command(call, "report --show-lifetimes");
    jsonwriter_map(call->json, NULL);
    apidetail_write_buckets(call->json, "buckets", NULL);
    if (is_over && needs_pass(call->view)) {
        const struct apidetail *detail = apidetail_get(call, false);
        apidetail_write_bins(call, detail);
        write_counts(call->json, detail->lifetimes[0], APIDETAIL_BINS, MEMTRACE_LIFETIME_BUCKETS);
    } else if (is_over) {
        write_overtime(call);
    }
    if (is_per || !is_over) {
        write_percentiles(call);
    }
    jsonwriter_end_map(call->json);
}

/* ---- Sizes ---- */

static void write_classes(struct jsonwriter *json, const struct detail *detail) {
    jsonwriter_array(json, "classes");
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        const struct detail_sizes *sizes = &detail->sizes[i];
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "from", i != 0 ? UINT64_C(1) << (i - 1) : 0);
        if (i < DETAIL_SIZE_BUCKETS - 1) {
            jsonwriter_number(json, "to", (UINT64_C(1) << i) - 1);
        } else {
            jsonwriter_string(json, "to", NULL);
        }
        jsonwriter_number(json, "allocations", sizes->allocations);
        jsonwriter_number(json, "total_bytes", sizes->total_bytes);
        jsonwriter_number(json, "live_blocks", sizes->live_blocks);
        jsonwriter_number(json, "live_bytes", sizes->live_bytes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

void api_sizes(struct api_call *call) {
    const struct apidetail *detail;
    bool is_over = apilifetimes_is_asked(call, "over", "time");
    bool is_per = apilifetimes_is_asked(call, "per", "path");
    apidetail_check(call, "sizes");
    detail = apidetail_get(call, false);
    api_command(call, "report --show-sizes");
    jsonwriter_map(call->json, NULL);
    write_classes(call->json, detail->detail);
    if (is_over) {
        apidetail_write_bins(call, detail);
        write_counts(call->json, detail->sizes[0], APIDETAIL_BINS, DETAIL_SIZE_BUCKETS);
    }
    if (is_per) {
        const struct report report = apidetail_report(call, detail);
        const struct apireport taken = apireport_take(&report, report_sizes);
        apireport_write(call, "paths", apireport_find(&taken, "sizes-by-path"));
    }
    jsonwriter_end_map(call->json);
}
