/* SPDX-License-Identifier: MIT */
/* htmldata.c: see htmldata.h. */
#include "analyze/export/htmldata.h"

#include "analyze/export/mergedtree.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/jsonwriter.h"
#include "memtrace/version.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 2000, MOST_MARKS = 500, MOST_THREADS = 1000, LONGEST_NAME = 300 };

/* ---- Calls and functions ---- */

struct writer {
    const struct export *export;
    const struct callforest *forest;
    struct jsonwriter *json;
    struct numbering functions; /* of the calls that are kept */
    struct numbering strings;   /* files and modules */
    struct row *rows;
    size_t row_count;
};

/* The columns of a call that is kept; behind these, by number, of all callees of a call that are
 * not, so that sums are the totals. Parents stand before their callees. */
struct row {
    uint64_t parent;
    uint64_t function; /* of callees left out: the number of functions */
    uint64_t note;     /* of a call: 1 inlined, 2 recursive; else how many calls it stands for */
    uint64_t line;
    uint64_t self[EXPORT_COSTS];
    uint64_t side[EXPORT_COSTS]; /* what reports show beside it */
};

static struct row row_of(struct writer *writer, const struct callforest_call *call) {
    struct row row = {.parent = writer->forest->calls[call->parent].number,
                      .note = call->recursive ? 2u : 0u};
    if (call->frame != NULL) {
        row.function = mergedtree_number(&writer->functions, writer->export, call->frame) - 1;
        row.note |= call->frame->inlined ? 1u : 0u;
        row.line = call->frame->line;
    }
    memcpy(row.self, call->self, sizeof row.self);
    memcpy(row.side, call->self_side, sizeof row.side);
    return row;
}

/* 0, or -1: out of memory. */
static int make_rows(struct writer *writer) {
    const struct callforest *forest = writer->forest;
    struct row *rests;
    writer->rows = calloc(2 * forest->kept, sizeof *writer->rows);
    if (writer->rows == NULL) {
        return -1;
    }
    rests = writer->rows + forest->kept;
    for (size_t i = 0; i < forest->count; i++) {
        const struct callforest_call *call = &forest->calls[i];
        uint32_t parent = forest->calls[call->parent].number;
        if (call->number != CALLFOREST_OUT) {
            writer->rows[call->number] = row_of(writer, call);
        } else if (parent != CALLFOREST_OUT) {
            rests[parent].parent = parent;
            rests[parent].note++;
            for (size_t metric = 0; metric < EXPORT_COSTS; metric++) {
                rests[parent].self[metric] += call->cost[metric];
                rests[parent].side[metric] += call->cost_side[metric];
            }
        }
    }
    writer->row_count = forest->kept;
    for (size_t i = 0; i < forest->kept; i++) {
        if (rests[i].note != 0) {
            rests[i].function = writer->functions.count;
            writer->rows[writer->row_count++] = rests[i];
        }
    }
    writer->rows[0].function = writer->functions.count; /* the root has none, either */
    return writer->functions.out_of_memory ? -1 : 0;
}

/* One number of each row; `offset`: where it is in struct row. */
static void put_column(struct writer *writer, const char *name, size_t offset) {
    jsonwriter_array(writer->json, name);
    for (size_t i = 0; i < writer->row_count; i++) {
        uint64_t number;
        memcpy(&number, (const char *)&writer->rows[i] + offset, sizeof number);
        jsonwriter_number(writer->json, NULL, number);
    }
    jsonwriter_end_array(writer->json);
}

/* One column a cost. */
static void put_costs_of(struct writer *writer, const char *name, size_t offset) {
    jsonwriter_array(writer->json, name);
    for (size_t metric = 0; metric < EXPORT_COSTS; metric++) {
        put_column(writer, NULL, offset + metric * sizeof(uint64_t));
    }
    jsonwriter_end_array(writer->json);
}

static void put_calls(struct writer *writer) {
    jsonwriter_map(writer->json, "calls");
    jsonwriter_number(writer->json, "of", writer->forest->count);
    jsonwriter_number(writer->json, "kept", writer->forest->kept);
    jsonwriter_double(writer->json, "least_share", writer->forest->least_share);
    put_column(writer, "parent", offsetof(struct row, parent));
    put_column(writer, "function", offsetof(struct row, function));
    put_column(writer, "note", offsetof(struct row, note));
    put_column(writer, "line", offsetof(struct row, line));
    put_costs_of(writer, "self", offsetof(struct row, self));
    put_costs_of(writer, "side", offsetof(struct row, side));
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

static void put_string_numbers(struct writer *writer, const char *name, bool modules) {
    jsonwriter_array(writer->json, name);
    for (size_t i = 0; i < writer->functions.count; i++) {
        const struct names_frame *frame = writer->functions.items[i];
        const char *file = frame->file != NULL ? frame->file : "";
        const char *text = modules ? frame->module : file;
        jsonwriter_number(writer->json, NULL,
                          numbering_add(&writer->strings, numbering_key(text), text) - 1);
    }
    jsonwriter_end_array(writer->json);
}

/* Whose code each is: enum framekind. */
static void put_kinds(struct writer *writer) {
    jsonwriter_array(writer->json, "kind");
    for (size_t i = 0; i < writer->functions.count; i++) {
        jsonwriter_number(
            writer->json, NULL,
            framekind_of(writer->functions.items[i], writer->export->model->header.executable));
    }
    jsonwriter_end_array(writer->json);
}

/* Columns, as of the calls. */
static int put_functions(struct writer *writer) {
    jsonwriter_map(writer->json, "functions");
    jsonwriter_array(writer->json, "name");
    for (size_t i = 0; i < writer->functions.count; i++) {
        put_name(writer, writer->functions.items[i]);
    }
    jsonwriter_end_array(writer->json);
    put_string_numbers(writer, "file", false);
    put_string_numbers(writer, "module", true);
    put_kinds(writer);
    jsonwriter_end_map(writer->json);
    jsonwriter_array(writer->json, "strings");
    for (size_t i = 0; i < writer->strings.count; i++) {
        jsonwriter_string(writer->json, NULL, writer->strings.items[i]);
    }
    jsonwriter_end_array(writer->json);
    return writer->strings.out_of_memory ? -1 : 0;
}

static int put_forest(struct jsonwriter *json, const struct export *export,
                      const struct callforest *forest) {
    struct writer writer = {.export = export, .forest = forest, .json = json};
    int result = -1;
    if (make_rows(&writer) == 0) {
        put_calls(&writer);
        result = put_functions(&writer);
    }
    free(writer.rows);
    numbering_free(&writer.functions);
    numbering_free(&writer.strings);
    return result;
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
        result = put_forest(json, export, forest);
    }
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    return result;
}
