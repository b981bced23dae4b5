/* SPDX-License-Identifier: MIT */
/*
 * json.c: everything a profile says, as one JSON object with stable names (docs/report.md lists
 * them). Streamed: the output may be larger than memory.
 */
#include "analyze/base/job.h"
#include "analyze/report/reports.h"
#include "analyze/rows/facts.h"
#include "analyze/rows/jsonwriter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Contexts ---- */

static void json_put_frame(struct jsonwriter *json, const struct names_frame *frame) {
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "function", frame->function);
    jsonwriter_string(json, "file", frame->file);
    jsonwriter_number(json, "line", frame->line);
    jsonwriter_number(json, "column", frame->column);
    jsonwriter_string(json, "module", frame->module);
    jsonwriter_number(json, "offset", frame->offset);
    jsonwriter_bool(json, "inlined", frame->inlined);
    jsonwriter_end_map(json);
}

/* Those of one node. Returns how many are left of `most`. */
static size_t put_node_frames(struct jsonwriter *json, const struct report *report, uint32_t node,
                              size_t most) {
    uint64_t recorded = report->model->nodes[node].frame;
    size_t count;
    const struct names_frame *frames = names_frames(report->names, recorded, &count);
    for (size_t i = 0; recorded >= MEMTRACE_FRAME_CLASSES && i < count && most > 0; i++) {
        json_put_frame(json, &frames[i]);
        most--;
    }
    return most;
}

static void json_put_frames(struct jsonwriter *json, const struct report *report, uint32_t node) {
    size_t most = report->options.depth != 0 ? report->options.depth : SIZE_MAX;
    jsonwriter_array(json, "frames");
    while (node != 0 && most > 0) {
        most = put_node_frames(json, report, node, most);
        node = report->model->nodes[node].parent;
    }
    jsonwriter_end_array(json);
}

/* The nodes of all call paths, callers before what they call. */
static void json_put_nodes(struct jsonwriter *json, const struct report *report) {
    const struct model *model = report->model;
    bool *is_needed = job_array(model->node_count + 1, sizeof *is_needed);
    for (size_t i = 0; i < model->context_count; i++) {
        for (uint32_t node = model->contexts[i].path; node != 0 && !is_needed[node];
             node = model->nodes[node].parent) {
            is_needed[node] = true;
        }
    }
    jsonwriter_array(json, "nodes");
    for (uint32_t node = 1; node < model->node_count; node++) {
        if (is_needed[node]) {
            jsonwriter_map(json, NULL);
            jsonwriter_number(json, "id", node);
            jsonwriter_number(json, "parent", model->nodes[node].parent);
            jsonwriter_array(json, "frames");
            put_node_frames(json, report, node, SIZE_MAX);
            jsonwriter_end_array(json);
            jsonwriter_end_map(json);
        }
    }
    jsonwriter_end_array(json);
    job_release(is_needed);
}

static void json_put_lifetimes(struct jsonwriter *json, const struct model *model,
                               const struct model_context *context) {
    jsonwriter_array(json, "lifetimes");
    for (size_t i = 0; context->lifetimes != MODEL_NO_LIFETIMES && i < MEMTRACE_LIFETIME_BUCKETS;
         i++) {
        jsonwriter_number(json, NULL, model->lifetimes[context->lifetimes + i]);
    }
    jsonwriter_end_array(json);
}

static void json_put_context(struct jsonwriter *json, const struct report *report,
                             const struct model_context *context) {
    static const unsigned char which[] = {CONTEXT_ID, CONTEXT_HASH};
    static const unsigned char sums[] = {
        CONTEXT_LIVE_BYTES,  CONTEXT_LIVE_BLOCKS, CONTEXT_PEAK_BYTES,
        CONTEXT_TOTAL_BYTES, CONTEXT_ALLOCATIONS, CONTEXT_FREES,
        CONTEXT_TEMPORARY,   CONTEXT_TOTAL_ERROR, CONTEXT_LIVE_ERROR, /* of a sample */
    };
    const struct rows_of of = rows_of_report(report);
    jsonwriter_map(json, NULL);
    rows_members(json, &rows_contexts, &of, context, which, sizeof which);
    if (context->class == MODEL_MAPPING) {
        jsonwriter_string(json, "class", "mapping");
    } else if (context->class == MODEL_POOL) {
        jsonwriter_string(json, "class", "pool");
        jsonwriter_string(json, "pool", model_class_name(report->model, context));
    }
    rows_members(json, &rows_contexts, &of, context, sums,
                 report->model->recording.sampled ? sizeof sums : sizeof sums - 2);
    json_put_lifetimes(json, report->model, context);
    if (report->options.nodes) {
        jsonwriter_number(json, "node", context->path);
    }
    if (!report->options.no_frames) {
        json_put_frames(json, report, context->path);
    }
    jsonwriter_end_map(json);
}

static void put_contexts(struct jsonwriter *json, const struct report *report, const char *name,
                         enum model_class class) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < report->model->context_count; i++) {
        const struct model_context *context = &report->model->contexts[i];
        if (context->class == class) {
            json_put_context(json, report, context);
        }
    }
    jsonwriter_end_array(json);
}

/* ---- The rest ---- */

static void json_put_arguments(struct jsonwriter *json, const char *name, struct arguments left) {
    const char *at;
    jsonwriter_array(json, name);
    while ((at = arguments_next(&left)) != NULL) {
        jsonwriter_string(json, NULL, at);
    }
    jsonwriter_end_array(json);
}

static void json_put_process(struct jsonwriter *json, const struct report *report) {
    static const unsigned char facts[] = {
        FACT_PID,     FACT_PARENT_PID, FACT_MERGED,        FACT_END,
        FACT_STARTED, FACT_DURATION,   FACT_PEAK_RESIDENT, FACT_OWN_RESIDENT,
    };
    static const char *const stacks[] = {"none", "short", "full"};
    const struct memtrace_header *header = &report->model->header;
    jsonwriter_map(json, "process");
    facts_put(json, report->model, facts, sizeof facts);
    jsonwriter_string(json, "stacks", header->stacks <= 2 ? stacks[header->stacks] : "unknown");
    jsonwriter_bool(json, "instrumented", (header->flags & MEMTRACE_FLAG_INSTRUMENTED) != 0);
    jsonwriter_bool(json, "preloaded", (header->flags & MEMTRACE_FLAG_PRELOADED) != 0);
    jsonwriter_bool(json, "forked", (header->flags & MEMTRACE_FLAG_FORKED) != 0);
    jsonwriter_number(json, "inherited_blocks", header->inherited_blocks);
    jsonwriter_number(json, "inherited_bytes", header->inherited_bytes);
    json_put_arguments(json, "command", arguments_of(header));
    jsonwriter_end_map(json);
}

static void json_put_lost(struct jsonwriter *json, const struct report *report) {
    static const unsigned char sum[] = {FACT_LOST};
    const struct model *model = report->model;
    static const char *const kinds[MEMTRACE_LOSS_KINDS] = {"events",  "contexts", "frames",
                                                           "threads", "modules",  "blocks",
                                                           "guards",  "records",  "frees"};
    facts_put(json, model, sum, sizeof sum);
    jsonwriter_bool(json, "all_counted", names_uncounted(report->names)[0] == '\0');
    jsonwriter_map(json, "lost_by_kind");
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        jsonwriter_number(json, kinds[kind], *memtrace_lost(&model->header, kind));
    }
    jsonwriter_end_map(json);
}

static void json_put_totals(struct jsonwriter *json, const struct report *report) {
    static const unsigned char held[] = {FACT_PEAK_BYTES, FACT_PEAK_ERROR_BYTES, FACT_LIVE_BYTES,
                                         FACT_LIVE_BLOCKS};
    static const unsigned char before[] = {FACT_BEFORE_BYTES, FACT_BEFORE_FREED_BYTES,
                                           FACT_BEFORE_FREES};
    static const unsigned char counts[] = {FACT_TOTAL_BYTES, FACT_ALLOCATIONS, FACT_FREES,
                                           FACT_TEMPORARY};
    const struct model *counted = report->counted != NULL ? report->counted : report->model;
    uint64_t leaked_bytes = counted->totals.live_bytes;
    uint64_t leaked_blocks = counted->totals.live_blocks;
    if (report->counted == NULL) {
        report_leaked(report, &leaked_bytes, &leaked_blocks);
    }
    facts_put(json, counted, held, sizeof held);
    jsonwriter_number(json, "suppressed_bytes", counted->totals.live_bytes - leaked_bytes);
    jsonwriter_number(json, "suppressed_blocks", counted->totals.live_blocks - leaked_blocks);
    if (counted->totals.before_bytes != 0 || counted->totals.before_frees != 0) {
        facts_put(json, counted, before, sizeof before);
        jsonwriter_bool(json, "before_followed",
                        (report->model->header.flags & MEMTRACE_FLAG_BEFORE_UNSURE) == 0);
    }
    facts_put(json, counted, counts, sizeof counts);
    json_put_lost(json, report);
}

/* Forked children that stayed light, summed up: their call paths are not among the contexts. */
static void json_put_children(struct jsonwriter *json, const struct model *model) {
    static const unsigned char sums[] = {PROCESS_ALLOCATIONS, PROCESS_TOTAL_BYTES,
                                         PROCESS_LIVE_BYTES, PROCESS_PEAK, PROCESS_LOST};
    struct model_children sum = model_sum_children(model);
    const struct run_process all = {.is_counted = true,
                                    .allocations = sum.allocations,
                                    .total_bytes = sum.total_bytes,
                                    .leaked_bytes = sum.live_bytes,
                                    .peak_bytes = sum.maximum_bytes,
                                    .lost = sum.lost};
    if (model->child_count == 0) {
        return;
    }
    jsonwriter_map(json, "forked_children");
    jsonwriter_number(json, "count", model->child_count);
    rows_members(json, &rows_processes, NULL, &all, sums, sizeof sums);
    jsonwriter_end_map(json);
}

void report_json_gaps(struct jsonwriter *json, bool are_thinned, const struct model_gap *gaps,
                      size_t count) {
    jsonwriter_array(json, are_thinned ? "thinned" : "gaps");
    for (size_t i = 0; i < count; i++) {
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "from_ns", gaps[i].from_ns);
        jsonwriter_number(json, "to_ns", gaps[i].to_ns);
        if (are_thinned) {
            jsonwriter_number(json, "sample_bytes", gaps[i].distance);
        } else {
            jsonwriter_number(json, "allocations", gaps[i].allocs);
            jsonwriter_number(json, "frees", gaps[i].frees);
        }
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void json_put_recording(struct jsonwriter *json, const struct model *model) {
    const struct model_recording *recording = &model->recording;
    if (!recording->present) {
        return;
    }
    jsonwriter_map(json, "recording");
    jsonwriter_bool(json, "closed", recording->closed);
    jsonwriter_bool(json, "stopped", recording->stopped);
    jsonwriter_number(json, "part", recording->part);
    jsonwriter_number(json, "parts", recording->parts);
    jsonwriter_bool(json, "precise", recording->precise);
    jsonwriter_number(json, "bytes", recording->bytes);
    jsonwriter_number(json, "blocks", recording->blocks);
    jsonwriter_number(json, "events", recording->events);
    jsonwriter_number(json, "lost_allocs", recording->lost_allocs);
    jsonwriter_number(json, "lost_frees", recording->lost_frees);
    jsonwriter_number(json, "foreign_frees", recording->foreign_frees);
    jsonwriter_number(json, "sample_bytes", recording->sample_bytes);
    jsonwriter_number(json, "size_least", recording->size_least);
    jsonwriter_number(json, "size_most", recording->size_most);
    jsonwriter_bool(json, "some_modules", recording->some_modules);
    jsonwriter_bool(json, "sampled", recording->sampled);
    jsonwriter_bool(json, "totals_counted", recording->is_counted);
    report_json_gaps(json, false, model->gaps, model->gap_count);
    report_json_gaps(json, true, model->thinned, model->thinned_count);
    facts_put_errors(json, model);
    jsonwriter_end_map(json);
}

/* Of a profile that is, or was at times, a sample. */
static void json_put_sampling(struct jsonwriter *json, const struct model *model) {
    const struct model_recording *recording = &model->recording;
    if (recording->present || !recording->sampled) {
        return;
    }
    jsonwriter_map(json, "sampling");
    jsonwriter_number(json, "sample_bytes", recording->sample_bytes);
    facts_put_errors(json, model);
    jsonwriter_end_map(json);
}

/* The first of the model's foreign frees by this thread or a later one. */
static size_t find_freer(const struct model *model, uint32_t freer) {
    size_t low = 0;
    size_t high = model->foreign_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->foreign[middle].freer < freer) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void put_freed_of(struct jsonwriter *json, const struct model *model, uint32_t freer) {
    jsonwriter_array(json, "freed_of");
    for (size_t i = find_freer(model, freer);
         i < model->foreign_count && model->foreign[i].freer == freer; i++) {
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "thread", model->foreign[i].owner);
        jsonwriter_number(json, "blocks", model->foreign[i].blocks);
        jsonwriter_number(json, "bytes", model->foreign[i].bytes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void put_threads(struct jsonwriter *json, const struct report *report) {
    const struct model *model = report->model;
    jsonwriter_array(json, "threads");
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "id", thread->id);
        jsonwriter_string(json, "name", thread->name);
        jsonwriter_number(json, "tid", thread->tid);
        jsonwriter_number(json, "earlier", thread->earlier);
        jsonwriter_bool(json, "alive", thread->alive);
        jsonwriter_number(json, "start_ns", thread->start_ns);
        jsonwriter_number(json, "end_ns", thread->end_ns);
        jsonwriter_number(json, "allocations", thread->allocations);
        jsonwriter_number(json, "frees", thread->frees);
        jsonwriter_number(json, "total_bytes", thread->total_bytes);
        jsonwriter_number(json, "freed_bytes", thread->freed_bytes);
        jsonwriter_integer(json, "live_bytes", thread->live_bytes);
        jsonwriter_number(json, "freed_for_others", thread->foreign_frees);
        jsonwriter_number(json, "freed_for_others_bytes", thread->foreign_freed_bytes);
        rows_put_members(json, report, &rows_threads, TABLE_DOCUMENT, thread);
        put_freed_of(json, model, thread->id);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void put_modules(struct jsonwriter *json, const struct model *model) {
    jsonwriter_array(json, "modules");
    for (size_t i = 0; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        if (module->path[0] == '\0') {
            continue;
        }
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "id", module->id);
        jsonwriter_string(json, "path", module->path);
        jsonwriter_hex(json, "build_id", module->build_id, module->build_id_size);
        jsonwriter_number(json, "start", module->start);
        jsonwriter_number(json, "end", module->end);
        jsonwriter_number(json, "bias", module->bias);
        jsonwriter_number(json, "load_ns", module->load_ns);
        jsonwriter_number(json, "unload_ns", module->unload_ns);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void json_put_timeline(struct jsonwriter *json, const struct report *report) {
    struct report all = *report;
    struct rows_view view = rows_view(&all, &rows_timeline, NULL, 0);
    struct table table;
    all.options.limit = 0;
    table = table_begin_member(&all, json, "timeline", NULL, view.columns, view.count);
    rows_put_all(&table, &view);
    table_end_member(&table);
}

/* The upper ends of the buckets of contexts[].lifetimes; the last has none. */
static void put_lifetime_ends(struct jsonwriter *json) {
    jsonwriter_array(json, "lifetime_ends_ns");
    for (unsigned i = 0; i + 1 < MEMTRACE_LIFETIME_BUCKETS; i++) {
        jsonwriter_number(json, NULL, UINT64_C(1) << (2 * i + MEMTRACE_TICK_SHIFT));
    }
    jsonwriter_end_array(json);
}

/* ---- The run that it is a part of ---- */

static void put_run_process(struct jsonwriter *json, const struct run_process *process) {
    static const unsigned char who[] = {PROCESS_PID, PROCESS_PARENT, PROCESS_IMAGE,
                                        PROCESS_PROGRAM};
    static const unsigned char what[] = {PROCESS_STARTED, PROCESS_ENDED,      PROCESS_END,
                                         PROCESS_PEAK,    PROCESS_LIVE_BYTES, PROCESS_LOST};
    static const unsigned char counts[] = {PROCESS_LIVE_BLOCKS, PROCESS_ALLOCATIONS,
                                           PROCESS_TOTAL_BYTES, PROCESS_FREES};
    static const unsigned char file[] = {PROCESS_FILE};
    jsonwriter_map(json, NULL);
    rows_members(json, &rows_processes, NULL, process, who, sizeof who);
    json_put_arguments(json, "arguments", process->command);
    rows_members(json, &rows_processes, NULL, process, what, sizeof what);
    if (process->is_counted) {
        rows_members(json, &rows_processes, NULL, process, counts, sizeof counts);
    }
    rows_members(json, &rows_processes, NULL, process, file, sizeof file);
    jsonwriter_bool(json, "light", process->light);
    jsonwriter_end_map(json);
}

static void put_chosen(struct jsonwriter *json, const struct report_run *run) {
    if (run->process == RUN_NONE) {
        jsonwriter_string(json, "chosen", NULL); /* the sum of all */
        return;
    }
    jsonwriter_map(json, "chosen");
    jsonwriter_number(json, "pid", run->run->processes[run->process].pid);
    jsonwriter_number(json, "image", run->run->processes[run->process].image);
    jsonwriter_end_map(json);
}

static void json_put_run(struct jsonwriter *json, const struct report *report) {
    const struct run *run = report->run->run;
    jsonwriter_map(json, "run");
    jsonwriter_string(json, "folder", run->path);
    json_put_arguments(json, "command", run->command);
    jsonwriter_bool(json, "has_summary", run->has_summary);
    jsonwriter_number(json, "duration_ns", run->duration_ns);
    if (run->has_exit) {
        jsonwriter_integer(json, run->was_signalled ? "exit_signal" : "exit_status",
                           run->exit_status);
    }
    jsonwriter_number(json, "peak_bytes", run->peak.seen_bytes);
    jsonwriter_number(json, "peak_ns", run->peak.at_ns);
    jsonwriter_number(json, "peak_bound_bytes", run->peak.bound_bytes);
    put_chosen(json, report->run);
    jsonwriter_array(json, "processes");
    for (size_t i = 0; i < run->process_count; i++) {
        put_run_process(json, &run->processes[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "timeline");
    for (size_t i = 0; i < run->timeline_count; i++) {
        const struct run_point *point = &run->timeline[i];
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "time_ns", point->time_ns);
        jsonwriter_number(json, "live_bytes", point->live_bytes);
        jsonwriter_number(json, "resident_bytes", point->resident_bytes);
        jsonwriter_number(json, "processes", point->processes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

void report_json(const struct report *report) {
    static const unsigned char program[] = {FACT_PROGRAM};
    struct jsonwriter *json = jsonwriter_begin(report->out, JSONWRITER_INDENTED);
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    facts_put(json, report->model, program, sizeof program);
    json_put_process(json, report);
    json_put_totals(json, report);
    json_put_recording(json, report->model);
    json_put_sampling(json, report->model);
    tabledata_json_warnings(json, report);
    put_threads(json, report);
    put_modules(json, report->model);
    json_put_timeline(json, report);
    put_lifetime_ends(json);
    if (report->options.nodes) {
        json_put_nodes(json, report);
    }
    put_contexts(json, report, "contexts", MODEL_HEAP);
    put_contexts(json, report, "mappings", MODEL_MAPPING);
    put_contexts(json, report, "pools", MODEL_POOL);
    report_json_pools(json, report);
    json_put_children(json, report->model);
    if (report->run != NULL) {
        json_put_run(json, report);
    }
    jsonwriter_end_map(json);
}
