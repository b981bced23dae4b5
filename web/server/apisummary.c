/* SPDX-License-Identifier: MIT */
/* apisummary.c: GET /r/{r}: what a source is, its totals, and what was lost. */
#include "analyze/report/reports.h"
#include "analyze/rows/facts.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/window/index.h"
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"
#include "web/server/hub.h"

#include <string.h>

/* The arguments as one line for a shell; the program where there are none. */
static const char *spell_arguments(const struct memtrace_header *header) {
    struct arguments left = arguments_of(header);
    struct job_printing *text = job_print();
    const char *spelled;
    const char *at;
    while ((at = arguments_next(&left)) != NULL) {
        fputs(at != header->command ? " " : "", text->out);
        shellword_put(text->out, at);
    }
    spelled = job_printed(text);
    return spelled[0] != '\0' ? spelled : header->executable;
}

/* ---- Resident memory ---- */

static void put_known(struct jsonwriter *json, const char *name, uint64_t bytes) {
    if (bytes != 0) {
        jsonwriter_number(json, name, bytes);
    } else {
        jsonwriter_string(json, name, NULL);
    }
}

/* As the last sample before says. */
static uint64_t resident_at(const struct model *model, uint64_t time_ns) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < model->timeline_count && model->timeline[i].time_ns <= time_ns; i++) {
        bytes = model->timeline[i].resident_bytes != 0 ? model->timeline[i].resident_bytes : bytes;
    }
    return bytes;
}

static void put_resident(struct jsonwriter *json, const struct model *model) {
    bool is_whole = model->from_ns == 0 && model->to_ns == UINT64_MAX;
    uint64_t peak = is_whole ? model->header.peak_resident_bytes : 0;
    for (size_t i = 0; i < model->timeline_count; i++) {
        uint64_t bytes = model->timeline[i].resident_bytes;
        peak = bytes > peak ? bytes : peak;
    }
    if (peak == 0) {
        jsonwriter_string(json, "resident", NULL);
        return;
    }
    jsonwriter_map(json, "resident");
    put_known(json, "peak_bytes", peak);
    put_known(json, "at_peak_bytes", resident_at(model, model->totals.maximum_ns));
    put_known(json, "end_bytes", resident_at(model, UINT64_MAX));
    put_known(json, "own_bytes", model->header.own_resident_bytes);
    jsonwriter_end_map(json);
}

/* ---- What the numbers are worth ---- */

static void put_sampled(struct jsonwriter *json, const struct model *model) {
    static const unsigned char facts[] = {FACT_SAMPLE_BYTES};
    if (!model_is_estimate(model)) {
        jsonwriter_string(json, "sampling", NULL);
        return;
    }
    jsonwriter_map(json, "sampling");
    facts_put(json, model, facts, sizeof facts);
    facts_put_errors(json, model);
    jsonwriter_end_map(json);
}

/* When events were lost, as sentences: the first few. */
static void put_gaps(struct jsonwriter *json, const struct model *model) {
    enum { SHOWN = 5 };
    char line[200];
    for (size_t i = 0; i < model->gap_count && i < SHOWN; i++) {
        const struct model_gap *gap = &model->gaps[i];
        bool is_known = (gap->allocs | gap->frees) != 0;
        struct number n[2];
        snprintf(line, sizeof line, "events are missing from %.3f s to %.3f s%s%s%s%s%s",
                 (double)gap->from_ns / 1e9, (double)gap->to_ns / 1e9, is_known ? ": " : ", all",
                 is_known ? number_items(&n[0], gap->allocs, "allocation") : "",
                 is_known ? ", " : "", is_known ? number_items(&n[1], gap->frees, "free") : "",
                 model->recording.is_counted ? "; the totals are exact" : "");
        jsonwriter_string(json, NULL, line);
    }
    if (model->gap_count > SHOWN) {
        snprintf(line, sizeof line, "events are missing at %zu more times",
                 model->gap_count - SHOWN);
        jsonwriter_string(json, NULL, line);
    }
}

/* When they were left out, in one sentence. */
static void put_thinned(struct jsonwriter *json, const struct model *model) {
    uint64_t most = 0;
    uint64_t sum_ns = 0;
    struct number number;
    char line[200];
    for (size_t i = 0; i < model->thinned_count; i++) {
        const struct model_gap *thinned = &model->thinned[i];
        most = thinned->distance > most ? thinned->distance : most;
        sum_ns += thinned->to_ns - thinned->from_ns;
    }
    if (model->thinned_count == 0) {
        return;
    }
    snprintf(
        line, sizeof line,
        "more came than could be taken: for %.3f s, from %.3f s on, one allocation in up to %s "
        "is recorded, for the others%s",
        (double)sum_ns / 1e9, (double)model->thinned[0].from_ns / 1e9, number_bytes(&number, most),
        model->recording.is_counted ? "; the totals are exact" : "");
    jsonwriter_string(json, NULL, line);
}

static void put_warnings(struct jsonwriter *json, const struct answer *view) {
    const char *const *lines;
    size_t count = names_warnings(view->names, &lines);
    jsonwriter_array(json, "warnings");
    if (view->model->damage[0] != '\0') {
        jsonwriter_string(json, NULL, view->model->damage);
    }
    put_gaps(json, view->model);
    put_thinned(json, view->model);
    for (size_t i = 0; i < count; i++) {
        jsonwriter_string(json, NULL, lines[i]);
    }
    jsonwriter_end_array(json);
}

static void put_loss(struct jsonwriter *json, const char *what, uint64_t count) {
    if (count != 0) {
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "what", what);
        jsonwriter_number(json, "count", count);
        jsonwriter_end_map(json);
    }
}

static void put_lost(struct jsonwriter *json, const struct model *model) {
    jsonwriter_array(json, "lost");
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        bool is_here = kind != MEMTRACE_LOST_RECORDS || model->recording.present;
        const char *words = report_loss(kind);
        put_loss(json, words, is_here && words != NULL ? *memtrace_lost(&model->header, kind) : 0);
    }
    put_loss(json, "allocations not recorded", model->recording.lost_allocs);
    put_loss(json, "frees not recorded", model->recording.lost_frees);
    jsonwriter_end_array(json);
}

static void put_has(struct jsonwriter *json, const struct answer *view) {
    const struct model *whole = view->whole;
    jsonwriter_map(json, "has");
    jsonwriter_bool(json, "events", view->source->parts.count != 0);
    jsonwriter_bool(json, "slices", whole->index != NULL);
    jsonwriter_bool(json, "marks", whole->mark_count != 0);
    jsonwriter_bool(json, "threads", whole->thread_count != 0);
    jsonwriter_bool(json, "mappings", view->source->parts.count != 0);
    jsonwriter_bool(json, "timeline", whole->timeline_count != 0);
    jsonwriter_bool(json, "processes", view->source->run != NULL || whole->child_count != 0);
    jsonwriter_end_map(json);
}

/* ---- All of it ---- */

void api_summary(struct api_call *call) {
    static const char *const kinds[] = {[HUB_PROFILE] = "profile",
                                        [HUB_RECORDING] = "recording",
                                        [HUB_RUN] = "run",
                                        [HUB_LIVE] = "live"};
    static const unsigned char shown[] = {
        PROCESS_PID,         PROCESS_PARENT,      PROCESS_NAME, PROCESS_STARTED,
        PROCESS_ENDED,       PROCESS_END,         PROCESS_PEAK, PROCESS_LIVE_BYTES,
        PROCESS_ALLOCATIONS, PROCESS_TOTAL_BYTES, PROCESS_FILE};
    static const unsigned char facts[] = {FACT_PROGRAM, FACT_PID, FACT_STARTED, FACT_DURATION,
                                          FACT_END};
    static const unsigned char totals[] = {
        FACT_PEAK_BYTES,         FACT_PEAK_TIME,    FACT_PEAK_ERROR_BYTES,
        FACT_LIVE_BYTES,         FACT_LIVE_BLOCKS,  FACT_BEFORE_BYTES,
        FACT_BEFORE_FREED_BYTES, FACT_BEFORE_FREES, FACT_TOTAL_BYTES,
        FACT_ALLOCATIONS,        FACT_FREES,        FACT_FREED_BYTES,
        FACT_TEMPORARY,          FACT_CONTEXTS,     FACT_LOST};
    const struct apitable_rows processes = {
        .rows = &rows_processes, .shown = shown, .count = sizeof shown};
    const struct model *model = call->view->model;
    /* Where filters ask for pools or mappings, the totals are theirs, as in the report. */
    const struct model *chosen = apimetric_heap(call, call->view);
    struct jsonwriter *json = call->json;
    api_command(call, "report");
    jsonwriter_map(json, NULL);
    facts_put(json, model, facts, sizeof facts);
    jsonwriter_string(json, "command_line", spell_arguments(&model->header));
    jsonwriter_string(json, "kind", kinds[hub_kind_of(call->view->source)]);
    jsonwriter_bool(json, "live", model->live);
    jsonwriter_map(json, "totals");
    facts_put(json, chosen, totals, sizeof totals);
    jsonwriter_end_map(json);
    put_resident(json, model);
    put_sampled(json, model);
    put_warnings(json, call->view);
    put_lost(json, model);
    put_has(json, call->view);
    if (call->view->source->run != NULL || model->child_count != 0) {
        apitable_rows(call, "processes", &processes);
    }
    jsonwriter_number(json, "slices",
                      call->view->whole->index != NULL ? call->view->whole->index->count : 0);
    jsonwriter_end_map(json);
}
