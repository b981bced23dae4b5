/* SPDX-License-Identifier: MIT */
/* htmldata.c: see htmldata.h. */
#include "analyze/export/htmldata.h"

#include "analyze/export/functiontable.h"
#include "analyze/export/mergedtree.h"
#include "analyze/export/stringtable.h"
#include "analyze/report/jsonwriter.h"
#include "memtrace/version.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 300, MOST_POINTS = 2000, MOST_MARKS = 500, MOST_THREADS = 1000 };

struct writer {
    const struct export *export;
    const struct callforest *forest;
    struct jsonwriter *json;
    struct functiontable functions; /* of the calls that are kept */
    struct stringtable strings;     /* files and modules */
    uint64_t (*rest)[EXPORT_COSTS]; /* by number of a call: what its callees left out bear */
    uint32_t *rest_count;           /* how many they are */
};

/* ---- Calls ---- */

/* Gives each call that is not kept, but whose caller is, to the caller. */
static int gather_rest(struct writer *writer) {
    const struct callforest *forest = writer->forest;
    writer->rest = calloc(forest->kept, sizeof *writer->rest);
    writer->rest_count = calloc(forest->kept, sizeof *writer->rest_count);
    if (writer->rest == NULL || writer->rest_count == NULL) {
        return -1;
    }
    for (size_t i = 1; i < forest->count; i++) {
        const struct callforest_call *call = &forest->calls[i];
        uint32_t parent = forest->calls[call->parent].number;
        if (call->number != CALLFOREST_OUT || parent == CALLFOREST_OUT) {
            continue;
        }
        writer->rest_count[parent]++;
        for (size_t metric = 0; metric < EXPORT_COSTS; metric++) {
            writer->rest[parent][metric] += call->cost[metric];
        }
    }
    return 0;
}

static int gather_functions(struct writer *writer) {
    int result = 0;
    for (size_t i = 1; result == 0 && i < writer->forest->count; i++) {
        const struct callforest_call *call = &writer->forest->calls[i];
        if (call->number != CALLFOREST_OUT) {
            result = functiontable_add_frame(&writer->functions, call->frame);
        }
    }
    return result;
}

/* A column of the calls: what `value` says of each one that is kept, then of the rests. */
static void put_column(struct writer *writer, const char *name,
                       uint64_t (*value)(const struct writer *writer,
                                         const struct callforest_call *call, size_t which),
                       uint64_t (*of_rest)(const struct writer *writer, uint32_t parent,
                                           size_t which),
                       size_t which) {
    const struct callforest *forest = writer->forest;
    jsonwriter_array(writer->json, name);
    for (size_t i = 0; i < forest->count; i++) {
        if (forest->calls[i].number != CALLFOREST_OUT) {
            jsonwriter_number(writer->json, NULL, value(writer, &forest->calls[i], which));
        }
    }
    for (uint32_t i = 0; i < forest->kept; i++) {
        if (writer->rest_count[i] != 0) {
            jsonwriter_number(writer->json, NULL, of_rest(writer, i, which));
        }
    }
    jsonwriter_end_array(writer->json);
}

static uint64_t parent_of(const struct writer *writer, const struct callforest_call *call,
                          size_t which) {
    (void)which;
    return writer->forest->calls[call->parent].number;
}
static uint64_t parent_of_rest(const struct writer *writer, uint32_t parent, size_t which) {
    (void)writer;
    (void)which;
    return parent;
}

/* functions[count] is "left out" */
static uint64_t function_of(const struct writer *writer, const struct callforest_call *call,
                            size_t which) {
    (void)which;
    return call->frame != NULL ? functiontable_number(&writer->functions, call->frame)
                               : writer->functions.count;
}
static uint64_t function_of_rest(const struct writer *writer, uint32_t parent, size_t which) {
    (void)parent;
    (void)which;
    return writer->functions.count;
}

/* Of a call: 1 inlined, 2 recursive. Of a rest: how many calls it stands for. */
static uint64_t note_of(const struct writer *writer, const struct callforest_call *call,
                        size_t which) {
    (void)writer;
    (void)which;
    return (call->frame != NULL && call->frame->inlined ? 1u : 0u) | (call->recursive ? 2u : 0u);
}
static uint64_t note_of_rest(const struct writer *writer, uint32_t parent, size_t which) {
    (void)which;
    return writer->rest_count[parent];
}

static uint64_t self_of(const struct writer *writer, const struct callforest_call *call,
                        size_t metric) {
    (void)writer;
    return call->self[metric];
}
static uint64_t self_of_rest(const struct writer *writer, uint32_t parent, size_t metric) {
    return writer->rest[parent][metric];
}

static void put_calls(struct writer *writer) {
    jsonwriter_map(writer->json, "calls");
    jsonwriter_number(writer->json, "of", writer->forest->count);
    jsonwriter_number(writer->json, "kept", writer->forest->kept);
    jsonwriter_double(writer->json, "least_share", writer->forest->least_share);
    put_column(writer, "parent", parent_of, parent_of_rest, 0);
    put_column(writer, "function", function_of, function_of_rest, 0);
    put_column(writer, "note", note_of, note_of_rest, 0);
    jsonwriter_array(writer->json, "self");
    for (size_t metric = 0; metric < EXPORT_COSTS; metric++) {
        put_column(writer, NULL, self_of, self_of_rest, metric);
    }
    jsonwriter_end_array(writer->json);
    jsonwriter_end_map(writer->json);
}

static void put_name(struct writer *writer, const struct names_frame *frame) {
    char label[MERGEDTREE_LABEL];
    mergedtree_label(writer->export, frame, label);
    if (strlen(label) > LONGEST_NAME) {
        strcpy(label + LONGEST_NAME - 3, "...");
    }
    jsonwriter_string(writer->json, NULL, label);
}

static int put_string_numbers(struct writer *writer, const char *name, bool modules) {
    jsonwriter_array(writer->json, name);
    for (size_t i = 0; i < writer->functions.count; i++) {
        const struct names_frame *frame = writer->functions.frames[i];
        const char *file = frame->file != NULL ? frame->file : "";
        size_t number = stringtable_number(&writer->strings, modules ? frame->module : file);
        if (number == SIZE_MAX) {
            return -1;
        }
        jsonwriter_number(writer->json, NULL, number);
    }
    jsonwriter_end_array(writer->json);
    return 0;
}

/* Columns, as of the calls. */
static int put_functions(struct writer *writer) {
    jsonwriter_map(writer->json, "functions");
    jsonwriter_array(writer->json, "name");
    for (size_t i = 0; i < writer->functions.count; i++) {
        put_name(writer, writer->functions.frames[i]);
    }
    jsonwriter_end_array(writer->json);
    if (put_string_numbers(writer, "file", false) != 0 ||
        put_string_numbers(writer, "module", true) != 0) {
        return -1;
    }
    jsonwriter_end_map(writer->json);
    jsonwriter_array(writer->json, "strings");
    for (size_t i = 0; i < writer->strings.count; i++) {
        jsonwriter_string(writer->json, NULL, writer->strings.items[i]);
    }
    jsonwriter_end_array(writer->json);
    return 0;
}

/* ---- The rest ---- */

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

static int put_all(struct writer *writer) {
    struct jsonwriter *json = writer->json;
    int result;
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    jsonwriter_string(json, "generator", "MemTrace " MEMTRACE_VERSION);
    put_summary(json, writer->export);
    put_costs(json, writer->export);
    put_warnings(json, writer->export);
    put_threads(json, writer->export->model);
    put_timeline(json, writer->export->model);
    put_marks(json, writer->export->model);
    put_calls(writer);
    result = put_other(json, writer->export->model) == 0 ? put_functions(writer) : -1;
    jsonwriter_end_map(json);
    return result;
}

int htmldata_write(const struct export *export, const struct callforest *forest, FILE *out) {
    struct writer writer = {.export = export,
                            .forest = forest,
                            .json = jsonwriter_open(out, JSONWRITER_IN_HTML),
                            .functions = {.by_line = export->by_line}};
    int result = -1;
    if (writer.json != NULL && gather_rest(&writer) == 0 && gather_functions(&writer) == 0) {
        result = put_all(&writer);
    }
    free(writer.rest);
    free(writer.rest_count);
    functiontable_free(&writer.functions);
    stringtable_free(&writer.strings);
    jsonwriter_close(writer.json);
    return result;
}
