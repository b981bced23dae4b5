/* SPDX-License-Identifier: MIT */
/*
 * json.c: everything a profile says, as one JSON object with stable names (docs/report.md lists
 * them). Streamed: the output may be larger than memory.
 */
#include "analyze/report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

/* ---- Pieces ---- */

static void put(void *context, const char *text, size_t size) {
    fwrite(text, 1, size, context);
}

/* Length of the whole UTF-8 character at text, 0: none. */
static size_t utf8_length(const unsigned char *text) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = text[0];
    size_t length = code < 0x80 ? 1 : code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
    if (code >= 0xf8 || (code & 0xc0) == 0x80) {
        return 0;
    }
    code &= length == 1 ? 0x7fu : 0xffu >> (length + 1);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3f);
    }
    return code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? length
                                                                                         : 0;
}

static bool is_utf8(const unsigned char *text) {
    size_t step = 1;
    for (; *text != '\0' && step != 0; text += step) {
        step = utf8_length(text);
    }
    return step != 0;
}

/* The text with U+FFFD for each byte that is no UTF-8; the caller frees it. NULL: no memory. */
static char *repair(const unsigned char *from) {
    char *copy = malloc(strlen((const char *)from) * 3 + 1);
    char *to = copy;
    while (copy != NULL && *from != '\0') {
        size_t step = utf8_length(from);
        to = mempcpy(to, step != 0 ? (const char *)from : "\xef\xbf\xbd", step != 0 ? step : 3);
        from += step != 0 ? step : 1;
    }
    if (copy != NULL) {
        *to = '\0';
    }
    return copy;
}

/* File names may be any bytes; JSON is UTF-8. */
static void string(yajl_gen json, const char *text) {
    const unsigned char *bytes = (const unsigned char *)text;
    char *copy = NULL;
    if (!is_utf8(bytes)) {
        copy = repair(bytes);
        bytes = (const unsigned char *)(copy != NULL ? copy : "");
    }
    yajl_gen_string(json, bytes, strlen((const char *)bytes));
    free(copy);
}

static void key(yajl_gen json, const char *name) {
    yajl_gen_string(json, (const unsigned char *)name, strlen(name));
}

/* Beyond 2^63 too, which yajl's own integers are not. */
static void number(yajl_gen json, uint64_t value) {
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64, value);
    yajl_gen_number(json, text, (size_t)size);
}

static void key_number(yajl_gen json, const char *name, uint64_t value) {
    key(json, name);
    number(json, value);
}

static void key_string(yajl_gen json, const char *name, const char *value) {
    key(json, name);
    if (value != NULL) {
        string(json, value);
    } else {
        yajl_gen_null(json);
    }
}

static void key_hex(yajl_gen json, const char *name, const uint8_t *bytes, size_t size) {
    char text[80] = "";
    for (size_t i = 0; i < size && i < 32; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    key_string(json, name, text);
}

static void key_bool(yajl_gen json, const char *name, bool value) {
    key(json, name);
    yajl_gen_bool(json, value);
}

static void key_double(yajl_gen json, const char *name, double value) {
    char text[40];
    int size = snprintf(text, sizeof text, "%.6g", value);
    key(json, name);
    yajl_gen_number(json, text, (size_t)size);
}

/* ---- Contexts ---- */

static void put_frame(yajl_gen json, const struct names_frame *frame) {
    yajl_gen_map_open(json);
    key_string(json, "function", frame->function);
    key_string(json, "file", frame->file);
    key_number(json, "line", frame->line);
    key_number(json, "column", frame->column);
    key_string(json, "module", frame->module);
    key_number(json, "offset", frame->offset);
    key_bool(json, "inlined", frame->inlined);
    yajl_gen_map_close(json);
}

static void put_frames(yajl_gen json, const struct report *report, uint32_t node) {
    key(json, "frames");
    yajl_gen_array_open(json);
    while (node != 0) {
        uint64_t recorded = report->model->nodes[node].frame;
        size_t count;
        const struct names_frame *frames = names_frames(report->names, recorded, &count);
        for (size_t i = 0; recorded >= MEMTRACE_FRAME_CLASSES && i < count; i++) {
            put_frame(json, &frames[i]);
        }
        node = report->model->nodes[node].parent;
    }
    yajl_gen_array_close(json);
}

static void put_lifetimes(yajl_gen json, const struct model *model,
                          const struct model_context *context) {
    key(json, "lifetimes");
    yajl_gen_array_open(json);
    for (size_t i = 0; context->lifetimes != MODEL_NO_LIFETIMES && i < MEMTRACE_LIFETIME_BUCKETS;
         i++) {
        number(json, model->lifetimes[context->lifetimes + i]);
    }
    yajl_gen_array_close(json);
}

static void put_context(yajl_gen json, const struct report *report,
                        const struct model_context *context) {
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, model_hash(report->model, context->id));
    yajl_gen_map_open(json);
    key_number(json, "id", context->id);
    key_string(json, "hash", hash);
    if (context->class == MODEL_MAPPING) {
        key_string(json, "class", "mapping");
    } else if (context->class == MODEL_POOL) {
        key_string(json, "class", "pool");
        key_string(json, "pool", model_class_name(report->model, context));
    }
    key_number(json, "live_bytes", context->live_bytes);
    key_number(json, "live_blocks", context->live_blocks);
    key_number(json, "peak_bytes", context->peak_bytes);
    key_number(json, "total_bytes", context->total_bytes);
    key_number(json, "allocations", context->allocations);
    key_number(json, "frees", context->frees);
    key_number(json, "temporary", context->temporary);
    if (report->model->recording.sampled) {
        key_double(json, "total_bytes_error", context->total_error_bytes);
        key_double(json, "live_bytes_error", context->live_error_bytes);
    }
    put_lifetimes(json, report->model, context);
    put_frames(json, report, context->path);
    yajl_gen_map_close(json);
}

static void put_contexts(yajl_gen json, const struct report *report, const char *name,
                         enum model_class class) {
    key(json, name);
    yajl_gen_array_open(json);
    for (size_t i = 0; i < report->model->context_count; i++) {
        const struct model_context *context = &report->model->contexts[i];
        if (context->class == class) {
            put_context(json, report, context);
        }
    }
    yajl_gen_array_close(json);
}

/* ---- The rest ---- */

static void put_process(yajl_gen json, const struct report *report) {
    const struct memtrace_header *header = &report->model->header;
    static const char *const stacks[] = {"none", "short", "full"};
    const char *state = header->state == MEMTRACE_STATE_ENDED    ? "ended"
                        : header->state == MEMTRACE_STATE_EXECED ? "execed"
                        : header->state == MEMTRACE_STATE_COPIED ? "copied"
                        : report->model->live                    ? "running"
                                                                 : "killed";
    key(json, "process");
    yajl_gen_map_open(json);
    key_number(json, "pid", header->pid);
    key_number(json, "parent_pid", header->parent_pid);
    key_string(json, "state", state);
    key_number(json, "start_realtime_ns", header->start_realtime_ns);
    key_number(json, "duration_ns", report->model->now_ns);
    key_string(json, "stacks", header->stacks <= 2 ? stacks[header->stacks] : "unknown");
    key_bool(json, "instrumented", (header->flags & MEMTRACE_FLAG_INSTRUMENTED) != 0);
    key_bool(json, "preloaded", (header->flags & MEMTRACE_FLAG_PRELOADED) != 0);
    key_bool(json, "forked", (header->flags & MEMTRACE_FLAG_FORKED) != 0);
    key_number(json, "inherited_blocks", header->inherited_blocks);
    key_number(json, "inherited_bytes", header->inherited_bytes);
    key(json, "command");
    yajl_gen_array_open(json);
    for (const char *at = header->command;
         at < header->command + sizeof header->command && *at != '\0'; at += strlen(at) + 1) {
        string(json, at);
    }
    yajl_gen_array_close(json);
    yajl_gen_map_close(json);
}

static void put_lost(yajl_gen json, const struct model *model) {
    static const char *const kinds[] = {"events",  "contexts", "frames", "threads",
                                        "modules", "blocks",   "guards", "records"};
    key_number(json, "lost", model->totals.lost);
    key(json, "lost_by_kind");
    yajl_gen_map_open(json);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        key_number(json, kinds[i], model->header.lost[i]);
    }
    yajl_gen_map_close(json);
}

static void put_totals(yajl_gen json, const struct model *model) {
    const struct model_totals *totals = &model->totals;
    key_number(json, "maximum_bytes", totals->maximum_bytes);
    key_number(json, "peak_error_bytes", totals->maximum_error_bytes);
    key_number(json, "leaked_bytes", totals->live_bytes);
    key_number(json, "leaked_blocks", totals->live_blocks);
    key_number(json, "total_bytes", totals->total_bytes);
    key_number(json, "total_allocations", totals->allocations);
    key_number(json, "total_frees", totals->frees);
    key_number(json, "total_temporary", totals->temporary);
    put_lost(json, model);
}

static void put_errors(yajl_gen json, const struct model_errors *errors) {
    key(json, "standard_errors");
    yajl_gen_map_open(json);
    key_double(json, "maximum_bytes", errors->maximum_bytes);
    key_double(json, "leaked_bytes", errors->live_bytes);
    key_double(json, "total_bytes", errors->total_bytes);
    key_double(json, "total_allocations", errors->allocations);
    yajl_gen_map_close(json);
}

static void put_recording(yajl_gen json, const struct model *model) {
    const struct model_recording *recording = &model->recording;
    if (!recording->present) {
        return;
    }
    key(json, "recording");
    yajl_gen_map_open(json);
    key_bool(json, "closed", recording->closed);
    key_bool(json, "stopped", recording->stopped);
    key_number(json, "part", recording->part);
    key_number(json, "parts", recording->parts);
    key_bool(json, "precise", recording->precise);
    key_number(json, "bytes", recording->bytes);
    key_number(json, "blocks", recording->blocks);
    key_number(json, "events", recording->events);
    key_number(json, "lost_allocs", recording->lost_allocs);
    key_number(json, "lost_frees", recording->lost_frees);
    key_number(json, "foreign_frees", recording->foreign_frees);
    key_number(json, "sample_bytes", recording->sample_bytes);
    key_number(json, "size_least", recording->size_least);
    key_number(json, "size_most", recording->size_most);
    key_bool(json, "some_modules", recording->some_modules);
    key_bool(json, "sampled", recording->sampled);
    put_errors(json, &recording->errors);
    yajl_gen_map_close(json);
}

static void put_freed_of(yajl_gen json, const struct model *model, uint32_t freer) {
    key(json, "freed_of");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < model->foreign_count; i++) {
        if (model->foreign[i].freer == freer) {
            yajl_gen_map_open(json);
            key_number(json, "thread", model->foreign[i].owner);
            key_number(json, "blocks", model->foreign[i].blocks);
            key_number(json, "bytes", model->foreign[i].bytes);
            yajl_gen_map_close(json);
        }
    }
    yajl_gen_array_close(json);
}

static void put_threads(yajl_gen json, const struct model *model) {
    key(json, "threads");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        yajl_gen_map_open(json);
        key_number(json, "id", thread->id);
        key_string(json, "name", thread->name);
        key_number(json, "tid", thread->tid);
        key_bool(json, "alive", thread->alive);
        key_number(json, "start_ns", thread->start_ns);
        key_number(json, "end_ns", thread->end_ns);
        key_number(json, "allocations", thread->allocations);
        key_number(json, "frees", thread->frees);
        key_number(json, "total_bytes", thread->total_bytes);
        key_number(json, "freed_bytes", thread->freed_bytes);
        key(json, "live_bytes");
        yajl_gen_integer(json, thread->live_bytes);
        key_number(json, "freed_for_others", thread->foreign_frees);
        key_number(json, "freed_for_others_bytes", thread->foreign_freed_bytes);
        put_freed_of(json, model, thread->id);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_modules(yajl_gen json, const struct model *model) {
    key(json, "modules");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        if (module->path[0] == '\0') {
            continue;
        }
        yajl_gen_map_open(json);
        key_number(json, "id", module->id);
        key_string(json, "path", module->path);
        key_hex(json, "build_id", module->build_id, module->build_id_size);
        key_number(json, "start", module->start);
        key_number(json, "end", module->end);
        key_number(json, "bias", module->bias);
        key_number(json, "load_ns", module->load_ns);
        key_number(json, "unload_ns", module->unload_ns);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_timeline(yajl_gen json, const struct model *model) {
    key(json, "timeline");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < model->timeline_count; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        yajl_gen_map_open(json);
        key_number(json, "time_ns", point->time_ns);
        key_number(json, "live_bytes", point->live_bytes);
        key_number(json, "resident_bytes", point->resident_bytes);
        key_number(json, "allocations", point->alloc_count);
        key_number(json, "total_bytes", point->alloc_bytes);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

/* The upper ends of the buckets of contexts[].lifetimes; the last has none. */
static void put_lifetime_ends(yajl_gen json) {
    key(json, "lifetime_ends_ns");
    yajl_gen_array_open(json);
    for (unsigned i = 0; i + 1 < MEMTRACE_LIFETIME_BUCKETS; i++) {
        number(json, UINT64_C(1) << (2 * i + MEMTRACE_TICK_SHIFT));
    }
    yajl_gen_array_close(json);
}

static void put_warnings(yajl_gen json, const struct report *report) {
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    key(json, "warnings");
    yajl_gen_array_open(json);
    if (report->model->damage[0] != '\0') {
        string(json, report->model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        string(json, lines[i]);
    }
    yajl_gen_array_close(json);
}

int report_json(const struct report *report) {
    yajl_gen json = yajl_gen_alloc(NULL);
    if (json == NULL) {
        return -1;
    }
    yajl_gen_config(json, yajl_gen_print_callback, put, report->out);
    yajl_gen_config(json, yajl_gen_beautify, 1);
    yajl_gen_config(json, yajl_gen_indent_string, " ");
    yajl_gen_map_open(json);
    key_number(json, "version", 1);
    key_string(json, "executable", report->model->header.executable);
    put_process(json, report);
    put_totals(json, report->model);
    put_recording(json, report->model);
    put_warnings(json, report);
    put_threads(json, report->model);
    put_modules(json, report->model);
    put_timeline(json, report->model);
    put_lifetime_ends(json);
    put_contexts(json, report, "contexts", MODEL_HEAP);
    put_contexts(json, report, "mappings", MODEL_MAPPING);
    put_contexts(json, report, "pools", MODEL_POOL);
    yajl_gen_map_close(json);
    yajl_gen_free(json);
    return 0;
}
