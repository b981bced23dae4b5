/* SPDX-License-Identifier: MIT */
/* suppressions.c: reading suppressions, and what their patterns mean. See suppressions.h. */
#include "analyze/filter/suppressions.h"

#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/profile/load.h"
#include "analyze/symbol/programfile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 16 << 20 };

/* ---- Patterns ---- */

/* The last piece of a pattern; `tied`: it begins where the text does, `closed`: and ends there. */
static bool suppressions_match_last(const char *text, const char *piece, size_t size, bool tied,
                                    bool closed) {
    size_t length = strlen(text);
    if (tied) {
        return strncmp(text, piece, size) == 0 && (!closed || length == size);
    }
    return closed ? length >= size && memcmp(text + length - size, piece, size) == 0
                  : memmem(text, length, piece, size) != NULL;
}

bool suppressions_match(const char *pattern, const char *text) {
    bool tied = pattern[0] == '^';
    size_t length = strlen(pattern);
    bool closed = length > tied && pattern[length - 1] == '$';
    const char *end = pattern + length - closed;
    const char *at = pattern + tied;
    for (const char *star; (star = memchr(at, '*', (size_t)(end - at))) != NULL; at = star + 1) {
        size_t size = (size_t)(star - at);
        const char *found = tied ? (strncmp(text, at, size) == 0 ? text : NULL)
                                 : memmem(text, strlen(text), at, size);
        if (found == NULL) {
            return false;
        }
        text = found + size;
        tied = false;
    }
    return suppressions_match_last(text, at, (size_t)(end - at), tied, closed);
}

/* ---- Lists ---- */

static struct suppression *suppressions_add(struct suppressions *list, const char *pattern,
                                            size_t size, const char *origin, unsigned line) {
    struct suppression *item;
    job_grow(&list->items, &list->room, list->count, sizeof *list->items);
    item = &list->items[list->count++];
    *item = (struct suppression){
        .pattern = job_text("%.*s", (int)size, pattern), .origin = origin, .line = line};
    return item;
}

/* ---- Lines ---- */

static int suppressions_add_line(struct suppressions *list, const char *line, size_t size,
                                 const char *origin, unsigned number, struct error *error) {
    const char *colon;
    while (size != 0 && isspace((unsigned char)line[0])) {
        line++;
        size--;
    }
    while (size != 0 && isspace((unsigned char)line[size - 1])) {
        size--;
    }
    if (size == 0 || line[0] == '#') {
        return 0;
    }
    colon = memchr(line, ':', size);
    if (colon == NULL || colon == line) {
        return error_set(error, "%s:%u: '%.*s' is not a suppression (leak:PATTERN)", origin, number,
                         size < 80 ? (int)size : 80, line);
    }
    if (colon - line != 4 || memcmp(line, "leak", 4) != 0) {
        list->ignored++;
        return 0;
    }
    if (colon + 1 == line + size) {
        return error_set(error, "%s:%u: a pattern is missing after leak:", origin, number);
    }
    suppressions_add(list, colon + 1, size - 5, origin, number);
    return 0;
}

int suppressions_add_text(struct suppressions *suppressions, const char *text, const char *origin,
                          struct error *error) {
    const char *kept = job_string(origin);
    unsigned number = 1;
    for (const char *at = text; *at != '\0'; number++) {
        size_t size = strcspn(at, "\n");
        if (suppressions_add_line(suppressions, at, size, kept, number, error) != 0) {
            return -1;
        }
        at += size + (at[size] == '\n');
    }
    return 0;
}

int suppressions_add_file(struct suppressions *suppressions, const char *path,
                          struct error *error) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    bool is_bad;
    if (file == NULL) {
        return error_set(error, "cannot read %s: %m", path);
    }
    size = getdelim(&text, &room, '\0', file);
    is_bad = size < 0 && ferror(file);
    if (is_bad) {
        error_set(error, "cannot read %s: %m", path);
    }
    fclose(file);
    job_take(text); /* even of an empty file there is one */
    if (is_bad) {
        return -1;
    }
    if (size > FILE_MOST || (size > 0 && text[size - 1] == '\0')) {
        return error_set(error, "%s is not a suppression file", path);
    }
    return suppressions_add_text(suppressions, size > 0 ? text : "", path, error);
}

/* ---- The other sources ---- */

/*
 * What common libraries keep until the process ends, on purpose. Each entry allocates a bounded
 * amount, once or once for each thing the library manages, so that it can hide no leak that grows.
 */
static const struct {
    const char *pattern;
    const char *caller; /* NULL: any */
    const char *owner;
    const char *library;
} built_in[] = {
    /* glibc keeps stacks of ended threads, with the vectors of their thread-local storage. */
    {"^_dl_allocate_tls", NULL, "the C library's", "/ld"},
    {"^allocate_dtv$", NULL, "the C library's", "/ld"},
    /* Buffers of stdout, stderr and others that are open at the end. */
    {"^_IO_file_doallocate$", NULL, "the C library's", "/libc"},
    /* Loaded locales, time zones and converters stay, one for each that was ever used. */
    {"^setlocale$", NULL, "the C library's", "/libc"},
    {"^_nl_", NULL, "the C library's", "/libc"},
    {"^tzset", NULL, "the C library's", "/libc"},
    {"^localtime", NULL, "the C library's", "/libc"},
    {"^__gconv_", NULL, "the C library's", "/libc"},
    /* The loader's own description of each library it has loaded. */
    {"^_dl_new_object$", NULL, "the C library's", "/ld"},
    {"^_dl_check_map_versions$", NULL, "the C library's", "/ld"},
    /* libstdc++ reserves memory for exceptions that are thrown when memory is out. It does so when
     * the loader initializes it, in a function that has no name in stripped libraries. */
    {"/libstdc++.so", "/ld-linux", "the C++ library's", "/libstdc++"},
    {"/libstdc++.so", "/ld.so.", "the C++ library's", "/libstdc++"}, /* the loader's name on MIPS */
    {"/libstdc++.so", "/ld-musl", "the C++ library's", "/libstdc++"},
    {"^__gnu_cxx::__freeres", NULL, "the C++ library's", "/libstdc++"},
    /* GLib registers types and interns strings for good. */
    {"^g_type_register_", NULL, "GLib's", "/libgobject"},
    {"^g_type_add_interface_", NULL, "GLib's", "/libgobject"},
    {"^g_intern_", NULL, "GLib's", "/libglib"},
    {"^g_quark_from_", NULL, "GLib's", "/libglib"},
    /* fontconfig's configuration and caches, freed only by FcFini(). */
    {"^FcInit", NULL, "fontconfig's", "/libfontconfig"},
    {"^FcConfigParseAndLoad", NULL, "fontconfig's", "/libfontconfig"},
};

void suppressions_add_builtin(struct suppressions *suppressions) {
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        const char *pattern = built_in[i].pattern;
        struct suppression *item =
            suppressions_add(suppressions, pattern, strlen(pattern), "built in", 0);
        item->caller = built_in[i].caller;
        item->owner = built_in[i].owner;
        item->library = built_in[i].library;
    }
}

int suppressions_add_embedded(struct suppressions *suppressions, const struct model *model,
                              const char *debug_folders, struct error *error) {
    const struct model_module *program = NULL;
    char *text;
    for (size_t i = 0; program == NULL && i < model->module_count; i++) {
        if (model->modules[i].path[0] != '\0' &&
            strcmp(model->modules[i].path, model->header.executable) == 0) {
            program = &model->modules[i];
        }
    }
    if (program == NULL) {
        return 0;
    }
    text =
        programfile_suppressions(&(struct symbol_module){.path = program->path,
                                                         .build_id = program->build_id,
                                                         .build_id_size = program->build_id_size},
                                 debug_folders);
    if (text == NULL) {
        return 0;
    }
    return suppressions_add_text(suppressions, job_take(text), "embedded", error);
}

/* ---- Which contexts they take out of a model ---- */

enum { NO_MATCH = 0 }; /* else the place in the list + 1 */

struct matching {
    struct suppressions *list;
    const struct model *model;
    const struct names *names;
    uint32_t *node_match;      /* by node: of its path */
    unsigned char *node_asked; /* by node: whether something hangs below it */
    struct numbermap frames;   /* by frame (and its caller's where that counts): its match + 1 */
    bool is_static;            /* no C library of its own was loaded: the program has all in it */
};

static bool suppressions_matches_frame(const char *pattern, const struct names_frame *frame) {
    return (frame->function != NULL && suppressions_match(pattern, frame->function)) ||
           (frame->file != NULL && suppressions_match(pattern, frame->file)) ||
           (frame->module[0] != '\0' && suppressions_match(pattern, frame->module));
}

static bool suppressions_matches_any(const struct matching *matching, const char *pattern,
                                     uint64_t recorded) {
    size_t count;
    const struct names_frame *frames;
    if (recorded < MEMTRACE_FRAME_CLASSES) {
        return false;
    }
    frames = names_frames(matching->names, recorded, &count);
    for (size_t i = 0; i < count; i++) {
        if (suppressions_matches_frame(pattern, &frames[i])) {
            return true;
        }
    }
    return false;
}

/* No names are needed of modules that an entry of the built-in list does not speak of. */
static bool suppressions_may_match(const struct matching *matching, const struct suppression *item,
                                   uint64_t frame) {
    const struct model *model = matching->model;
    return item->library == NULL || matching->is_static ||
           strstr(model->modules[model_place(model, frame).module].path, item->library) != NULL;
}

static bool suppressions_has_libc(const struct model *model) {
    for (size_t i = 1; i < model->module_count; i++) {
        const char *path = model->modules[i].path;
        if (strstr(path, "/libc.") != NULL || strstr(path, "/libc-") != NULL ||
            strstr(path, "/ld-musl") != NULL) {
            return true;
        }
    }
    return false;
}

static uint32_t suppressions_look_up(const struct matching *matching, uint64_t frame,
                                     uint64_t caller) {
    const struct suppressions *list = matching->list;
    for (size_t i = 0; i < list->count; i++) {
        const struct suppression *item = &list->items[i];
        if (suppressions_may_match(matching, item, frame) &&
            suppressions_matches_any(matching, item->pattern, frame) &&
            (item->caller == NULL || suppressions_matches_any(matching, item->caller, caller))) {
            return (uint32_t)i + 1;
        }
    }
    return NO_MATCH;
}

/* Frames come again and again, with a few callers each. */
static uint32_t suppressions_match_of(struct matching *matching, uint64_t frame, uint64_t caller) {
    uint64_t key = frame * UINT64_C(0x9e3779b97f4a7c15) ^ caller;
    uintptr_t known = (uintptr_t)numbermap_get(&matching->frames, key);
    if (known == 0) {
        known = (uintptr_t)suppressions_look_up(matching, frame, caller) + 1;
        numbermap_set(&matching->frames, key, (void *)known);
    }
    return (uint32_t)(known - 1);
}

static bool suppressions_may_leak(const struct model_context *context) {
    return context->class == MODEL_HEAP && (context->live_bytes | context->live_blocks) != 0;
}

/* Only paths of leaks are looked at: names are found when they are asked for. */
static void suppressions_mark_asked(struct matching *matching) {
    const struct model *model = matching->model;
    for (size_t i = 0; i < model->context_count; i++) {
        if (suppressions_may_leak(&model->contexts[i])) {
            matching->node_asked[model->contexts[i].path] = 1;
        }
    }
    for (size_t id = model->node_count; id-- > 1;) {
        matching->node_asked[model->nodes[id].parent] |= matching->node_asked[id];
    }
}

/* The innermost frame that matches counts. Parents come first, so each node is one step. */
static void suppressions_match_nodes(struct matching *matching) {
    const struct model_node *nodes = matching->model->nodes;
    for (size_t id = 1; id < matching->model->node_count; id++) {
        uint32_t parent = nodes[id].parent;
        uint32_t own;
        if (!matching->node_asked[id]) {
            continue;
        }
        own =
            suppressions_match_of(matching, nodes[id].frame, parent != 0 ? nodes[parent].frame : 0);
        matching->node_match[id] = own != NO_MATCH ? own : matching->node_match[parent];
    }
}

static void suppressions_take_out(struct matching *matching, struct model *applied) {
    struct suppressions *list = matching->list;
    for (size_t i = 0; i < applied->context_count; i++) {
        struct model_context *context = &applied->contexts[i];
        uint32_t match =
            suppressions_may_leak(context) ? matching->node_match[context->path] : NO_MATCH;
        struct suppression *item = match != NO_MATCH ? &list->items[match - 1] : NULL;
        if (item == NULL) {
            continue;
        }
        item->bytes = model_add(item->bytes, context->live_bytes);
        item->blocks = model_add(item->blocks, context->live_blocks);
        item->contexts++;
        list->bytes = model_add(list->bytes, context->live_bytes);
        list->blocks = model_add(list->blocks, context->live_blocks);
        applied->totals.live_bytes -= context->live_bytes;
        applied->totals.live_blocks -= context->live_blocks;
        context->live_bytes = 0;
        context->live_blocks = 0;
    }
}

const struct model *suppressions_leave(struct suppressions *suppressions, const struct model *model,
                                       const struct names *names) {
    struct matching matching = {.list = suppressions,
                                .model = model,
                                .names = names,
                                .is_static = !suppressions_has_libc(model),
                                .node_match = job_array(model->node_count, sizeof(uint32_t)),
                                .node_asked = job_array(model->node_count, 1)};
    struct model *applied = job_alloc(sizeof *applied);
    suppressions->bytes = 0;
    suppressions->blocks = 0;
    for (size_t i = 0; i < suppressions->count; i++) {
        suppressions->items[i].bytes = 0;
        suppressions->items[i].blocks = 0;
        suppressions->items[i].contexts = 0;
    }
    *applied = *model;
    applied->contexts = job_array(model->context_count, sizeof *applied->contexts);
    if (model->context_count != 0) {
        memcpy(applied->contexts, model->contexts,
               model->context_count * sizeof *applied->contexts);
    }
    suppressions_mark_asked(&matching);
    suppressions_match_nodes(&matching);
    suppressions_take_out(&matching, applied);
    job_release(matching.node_match);
    job_release(matching.node_asked);
    job_release(matching.frames.entries);
    return applied;
}

static void suppressions_close_names(void *names) {
    names_close(names);
}

void suppressions_apply_usual(struct suppressions *suppressions, const struct model *model) {
    struct error error;
    struct names *names;
    if (!model_has_leaks(model) || model->totals.live_blocks == 0) {
        return;
    }
    names = names_open(model, NULL, &error);
    if (names == NULL) {
        job_fail_as(&error);
    }
    job_undo(suppressions_close_names, names);
    job_check(suppressions_add_embedded(suppressions, model, NULL, &error), &error);
    suppressions_add_builtin(suppressions);
    suppressions_leave(suppressions, model, names);
}
