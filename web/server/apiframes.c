/* SPDX-License-Identifier: MIT */
/* apiframes.c: see apiframes.h. */
#include "web/server/apiframes.h"

#include "analyze/base/array.h"
#include "analyze/model/shortname.h"
#include "analyze/rows/pathwalk.h"

#include <stdlib.h>
#include <string.h>

struct apiframes apiframes_start(const struct report *report) {
    return (struct apiframes){.report = report};
}

void apiframes_free(struct apiframes *frames) {
    numbermap_free(&frames->places);
    free(frames->items);
    *frames = (struct apiframes){0};
}

static int64_t add(struct apiframes *frames, const struct names_frame *frame, uint64_t key) {
    void *place = numbermap_get(&frames->places, key);
    if (place != NULL) {
        return (int64_t)(uintptr_t)place - 1;
    }
    if (array_grow(&frames->items, &frames->room, frames->count, sizeof *frames->items) != 0 ||
        numbermap_put(&frames->places, key, (void *)(uintptr_t)(frames->count + 1)) != 0) {
        return -1;
    }
    frames->items[frames->count] = frame;
    return (int64_t)frames->count++;
}

int64_t apiframes_add(struct apiframes *frames, const struct names_frame *frame) {
    return frame != NULL ? add(frames, frame, frame->place_key) : -1;
}

int64_t apiframes_add_function(struct apiframes *frames, const struct names_frame *frame) {
    return frame != NULL ? add(frames, frame, frame->function_key) : -1;
}

const char *apiframes_spell(const struct report *report, const struct names_frame *frame,
                            char *buffer, size_t size) {
    if (frame->function != NULL && !report->options.full_names) {
        return shortname(frame->function, buffer, size);
    }
    return names_spell(frame, buffer, size);
}

/* ---- Whose code ---- */

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_system_module(const char *path) {
    static const char *const names[] = {"libc.so",      "libc-",   "ld-linux",  "ld-2",
                                        "libpthread",   "libdl.",  "librt.",    "libm.so",
                                        "libgcc_s",     "ld.so",   "[vdso]",    "libmemtrace",
                                        "libresolv.so", "libnss_", "linux-vdso"};
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (begins(base, names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_installed(const char *path) {
    return begins(path, "/usr/") || begins(path, "/lib") || begins(path, "/opt/");
}

enum apiframes_kind apiframes_kind(const struct report *report, const struct names_frame *frame) {
    const char *program = report->model->header.executable;
    if (is_system_module(frame->module) || pathwalk_is_startup(frame)) {
        return APIFRAMES_SYSTEM;
    }
    if (pathwalk_is_library(frame) || (frame->file != NULL && begins(frame->file, "/usr/"))) {
        return APIFRAMES_LIBRARY;
    }
    return strcmp(frame->module, program) != 0 && is_installed(frame->module) ? APIFRAMES_LIBRARY
                                                                              : APIFRAMES_OWN;
}

const char *apiframes_kind_name(enum apiframes_kind kind) {
    return kind == APIFRAMES_OWN ? "own" : kind == APIFRAMES_LIBRARY ? "library" : "system";
}

/* ---- Writing ---- */

void apiframes_write_one(const struct report *report, struct jsonwriter *json, const char *name,
                         const struct names_frame *frame) {
    char function[8192];
    jsonwriter_map(json, name);
    jsonwriter_string(json, "function", apiframes_spell(report, frame, function, sizeof function));
    if (frame->file != NULL) {
        jsonwriter_string(json, "file", frame->file);
    }
    if (frame->line != 0) {
        jsonwriter_number(json, "line", frame->line);
    }
    jsonwriter_string(json, "module", frame->module);
    jsonwriter_string(json, "kind", apiframes_kind_name(apiframes_kind(report, frame)));
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
