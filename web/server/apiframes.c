/* SPDX-License-Identifier: MIT */
/* apiframes.c: see apiframes.h. */
#include "web/server/apiframes.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/read/run.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/pathwalk.h"

#include <string.h>

struct apiframes apiframes_start(const struct report *report) {
    return (struct apiframes){.report = report};
}

static uint32_t apiframes_number(struct apiframes *frames, const struct names_frame *frame,
                                 uint64_t key) {
    uintptr_t place = (uintptr_t)numbermap_get(&frames->places, key);
    if (place != 0) {
        return (uint32_t)(place - 1);
    }
    job_grow(&frames->items, &frames->room, frames->count, sizeof *frames->items);
    numbermap_set(&frames->places, key, (void *)(frames->count + 1));
    frames->items[frames->count] = frame;
    return (uint32_t)frames->count++;
}

uint32_t apiframes_add(struct apiframes *frames, const struct names_frame *frame) {
    return apiframes_number(frames, frame, frame->place_key);
}

uint32_t apiframes_add_function(struct apiframes *frames, const struct names_frame *frame) {
    return apiframes_number(frames, frame, frame->function_key);
}

/* ---- Whose code ---- */

/* Of the sum of a run each process's program is own code. */
static bool apiframes_is_of_run(const struct report_run *run, const char *module) {
    if (run == NULL || run->process != RUN_NONE || strstr(pathname_base(module), ".so") != NULL) {
        return false;
    }
    for (size_t i = 0; i < run->run->process_count; i++) {
        if (strcmp(run->run->processes[i].program, module) == 0) {
            return true;
        }
    }
    return false;
}

const char *apiframes_kind(const struct report *report, const struct names_frame *frame,
                           bool is_file) {
    enum framekind (*const of)(const struct names_frame *, const char *) =
        is_file ? framekind_of_file : framekind_of;
    enum framekind kind = of(frame, report->model->header.executable);
    if (kind == FRAMEKIND_SYSTEM && apiframes_is_of_run(report->run, frame->module)) {
        kind = of(frame, frame->module);
    }
    return framekind_name(kind);
}

/* ---- Writing ---- */

void apiframes_write_one(const struct report *report, struct jsonwriter *json, const char *name,
                         const struct names_frame *frame) {
    char function[8192];
    jsonwriter_map(json, name);
    jsonwriter_string(json, "function",
                      shortname_of(frame, report->options.full_names, function, sizeof function));
    if (frame->file != NULL) {
        jsonwriter_string(json, "file", frame->file);
    }
    if (frame->line != 0) {
        jsonwriter_number(json, "line", frame->line);
    }
    jsonwriter_string(json, "module", frame->module);
    jsonwriter_string(json, "kind", apiframes_kind(report, frame, false));
    if (frame->inlined) {
        jsonwriter_bool(json, "inlined", true);
    }
    jsonwriter_end_map(json);
}

void apiframes_write(const struct apiframes *frames, struct jsonwriter *json, const char *name) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < frames->count; i++) {
        apiframes_write_one(frames->report, json, NULL, frames->items[i]);
    }
    jsonwriter_end_array(json);
}

void apiframes_write_path(const struct report *report, struct jsonwriter *json, const char *name,
                          uint32_t node) {
    struct pathwalk walk = pathwalk(report, node);
    jsonwriter_array(json, name);
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        apiframes_write_one(report, json, NULL, walk.frame);
    }
    jsonwriter_end_array(json);
}
