/* SPDX-License-Identifier: MIT */
/* htmldata.c: see htmldata.h. */
#include "analyze/export/htmldata.h"

#include "analyze/export/htmlcalls.h"
#include "analyze/rows/jsonwriter.h"
#include "memtrace/version.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 2000, MOST_MARKS = 500, MOST_THREADS = 1000 };

static void put_costs(struct jsonwriter *json, const struct export *export) {
    static const char *const names[EXPORT_COSTS] = {"peak", "live", "total", "allocations",
                                                    "temporary"};
    jsonwriter_number(json, "cost", export->cost);
    jsonwriter_array(json, "costs");
    for (enum metric metric = 0; metric < EXPORT_COSTS; metric++) {
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", names[metric]);
        jsonwriter_string(json, "title", metric_title(metric, export->model));
        jsonwriter_string(json, "unit", metric_main_heading(metric));
        jsonwriter_number(json, "total", metric_total(metric, export->model).main);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void put_summary(struct jsonwriter *json, const struct export *export) {
    const struct model *model = export->model;
    const struct memtrace_header *header = &model->header;
    jsonwriter_string(json, "source", export->source);
    jsonwriter_string(json, "selected", export->selected);
    jsonwriter_string(json, "executable", header->executable);
    jsonwriter_array(json, "command");
    for (const char *at = header->command;
         at < header->command + sizeof header->command && *at != '\0'; at += strlen(at) + 1) {
        jsonwriter_string(json, NULL, at);
    }
    jsonwriter_end_array(json);
    jsonwriter_number(json, "pid", header->pid);
    jsonwriter_bool(json, "live", model->live);
    jsonwriter_bool(json, "ended", header->state == MEMTRACE_STATE_ENDED);
    jsonwriter_number(json, "duration_ns", model->now_ns);
    jsonwriter_number(json, "live_blocks", model->totals.live_blocks);
    jsonwriter_number(json, "frees", model->totals.frees);
    jsonwriter_number(json, "peak_error_bytes", model->totals.maximum_error_bytes);
    jsonwriter_number(json, "lost", model->totals.lost);
    jsonwriter_number(json, "contexts", model->totals.context_count);
    jsonwriter_number(json, "events", model->recording.events);
    jsonwriter_bool(json, "sampled", model->recording.sampled);
}

static void put_warnings(struct jsonwriter *json, const struct export *export) {
    const char *const *lines;
    size_t count = names_warnings(export->names, &lines);
    jsonwriter_array(json, "warnings");
    if (export->model->damage[0] != '\0') {
        jsonwriter_string(json, NULL, export->model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        jsonwriter_string(json, NULL, lines[i]);
    }
    jsonwriter_end_array(json);
}

static void put_threads(struct jsonwriter *json, const struct model *model) {
    jsonwriter_number(json, "thread_count", model->thread_count);
    jsonwriter_array(json, "threads");
    for (size_t i = 0; i < model->thread_count && i < MOST_THREADS; i++) {
        const struct model_thread *thread = &model->threads[i];
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "id", thread->id);
        jsonwriter_string(json, "name", thread->name);
        jsonwriter_number(json, "tid", thread->tid);
        jsonwriter_number(json, "allocations", thread->allocations);
        jsonwriter_number(json, "total_bytes", thread->total_bytes);
        jsonwriter_number(json, "frees", thread->frees);
        jsonwriter_integer(json, "live_bytes", thread->live_bytes);
        jsonwriter_number(json, "freed_for_others", thread->foreign_frees);
        jsonwriter_number(json, "freed_for_others_bytes", thread->foreign_freed_bytes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

/* Of points that would be too many each group's with the most live bytes, so that peaks stay. */
static void put_timeline(struct jsonwriter *json, const struct model *model) {
    size_t step = model->timeline_count / MOST_POINTS + 1;
    jsonwriter_array(json, "timeline"); /* [time, live, resident, allocations so far], ... */
    for (size_t i = 0; i < model->timeline_count; i += step) {
        const struct memtrace_point *best = &model->timeline[i];
        for (size_t j = i; j < i + step && j < model->timeline_count; j++) {
            best = model->timeline[j].live_bytes > best->live_bytes ? &model->timeline[j] : best;
        }
        jsonwriter_array(json, NULL);
        jsonwriter_number(json, NULL, best->time_ns);
        jsonwriter_number(json, NULL, best->live_bytes);
        jsonwriter_number(json, NULL, best->resident_bytes);
        jsonwriter_number(json, NULL, best->alloc_count);
        jsonwriter_end_array(json);
    }
    jsonwriter_end_array(json);
}

static void put_marks(struct jsonwriter *json, const struct model *model) {
    size_t put = 0;
    jsonwriter_array(json, "marks"); /* [time, name], ... */
    for (size_t i = 0; i < model->mark_count && put < MOST_MARKS; i++) {
        if (model->marks[i].what == MEMTRACE_MARK_POINT) {
            jsonwriter_array(json, NULL);
            jsonwriter_number(json, NULL, model->marks[i].time_ns);
            jsonwriter_string(json, NULL, model->marks[i].name);
            jsonwriter_end_array(json);
            put++;
        }
    }
    jsonwriter_end_array(json);
}

static void put_class(struct jsonwriter *json, const struct model_context *sum, const char *name) {
    if (sum->allocations == 0 && sum->live_blocks == 0) {
        return;
    }
    jsonwriter_array(json, NULL);
    jsonwriter_string(json, NULL, name);
    jsonwriter_number(json, NULL, sum->live_bytes);
    jsonwriter_number(json, NULL, sum->live_blocks);
    jsonwriter_number(json, NULL, sum->total_bytes);
    jsonwriter_number(json, NULL, sum->allocations);
    jsonwriter_end_array(json);
}

/* Mappings and pools are in no total of the heap: what they bear, by name. */
static int put_other(struct jsonwriter *json, const struct model *model) {
    struct model_context *sums = calloc(model->pool_count + 1, sizeof *sums); /* mappings first */
    for (size_t i = 0; sums != NULL && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct model_context *sum = sums;
        if (context->class == MODEL_POOL && context->pool < model->pool_count) {
            sum = &sums[1 + context->pool];
        } else if (context->class != MODEL_MAPPING) {
            continue;
        }
        sum->live_bytes += context->live_bytes;
        sum->live_blocks += context->live_blocks;
        sum->total_bytes += context->total_bytes;
        sum->allocations += context->allocations;
    }
    jsonwriter_array(json, "other"); /* [name, live bytes, blocks, total bytes, allocations], ... */
    for (size_t i = 0; sums != NULL && i <= model->pool_count; i++) {
        put_class(json, &sums[i], i == 0 ? "mappings" : model->pools[i - 1]);
    }
    jsonwriter_end_array(json);
    if (sums == NULL) {
        return -1;
    }
    free(sums);
    return 0;
}

int htmldata_write(const struct export *export, const struct callforest *forest, FILE *out) {
    struct jsonwriter *json = jsonwriter_open(out, JSONWRITER_IN_HTML);
    int result;
    if (json == NULL) {
        return -1;
    }
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    jsonwriter_string(json, "generator", "MemTrace " MEMTRACE_VERSION);
    put_summary(json, export);
    put_costs(json, export);
    put_warnings(json, export);
    put_threads(json, export->model);
    put_timeline(json, export->model);
    put_marks(json, export->model);
    result = put_other(json, export->model);
    if (result == 0) {
        result = htmlcalls_write(json, export, forest);
    }
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    return result;
}
