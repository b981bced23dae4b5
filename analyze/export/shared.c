/* SPDX-License-Identifier: MIT */
/* shared.c: see shared.h. */
#include "analyze/export/shared.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/rows/safetext.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

/* ---- Numbers ---- */

size_t numbering_of(struct numbering *numbering, uint64_t key, bool *is_new) {
    uintptr_t number = (uintptr_t)numbermap_get(&numbering->numbers, key);
    if (is_new != NULL) {
        *is_new = number == 0;
    }
    if (number == 0) {
        number = ++numbering->count;
        numbermap_set(&numbering->numbers, key, (void *)number);
    }
    return number;
}

size_t numbering_add(struct numbering *numbering, uint64_t key, const void *item) {
    bool is_new;
    size_t number = numbering_of(numbering, key, &is_new);
    if (is_new) {
        job_grow(&numbering->items, &numbering->room, number - 1, sizeof *numbering->items);
        numbering->items[number - 1] = item;
    }
    return number;
}

uint64_t numbering_key(const char *text) {
    return XXH3_64bits(text, strlen(text));
}

void numbering_forget(struct numbering *numbering) {
    job_release(numbering->numbers.entries);
    numbering->numbers = (struct numbermap){0};
}

/* ---- Text inside of XML and HTML ---- */

/* The two characters of three bytes that XML has not: U+FFFE and U+FFFF. */
static int markup_is_no_character(const char *text) {
    return memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0;
}

static const char *markup_entity(unsigned char byte) {
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Writes one character and returns what follows it. */
static const char *markup_put_character(FILE *out, const char *text) {
    size_t length = utf8_length(text);
    bool is_safe;
    const char *instead = length == 1 ? markup_entity((unsigned char)*text) : NULL;
    safetext_step(text, &is_safe);
    if (!is_safe && instead == NULL) {
        instead = "?";
    }
    if (length == 0 || (length == 3 && markup_is_no_character(text))) {
        instead = UTF8_BAD;
    }
    if (instead != NULL) {
        fputs_unlocked(instead, out);
    } else {
        fwrite_unlocked(text, 1, length, out);
    }
    return text + (length != 0 ? length : 1);
}

void markup_text(FILE *out, const char *text) {
    while (*text != '\0') {
        text = markup_put_character(out, text);
    }
}

void markup_text_cut(FILE *out, const char *text, size_t most) {
    size_t count = 0;
    size_t kept;
    for (const char *at = text; *at != '\0'; count++) {
        size_t length = utf8_length(at);
        at += length != 0 ? length : 1;
    }
    kept = count <= most ? count : most >= 2 ? most - 2 : 0;
    for (size_t i = 0; i < kept; i++) {
        text = markup_put_character(out, text);
    }
    if (kept < count) {
        fputs_unlocked("..", out);
    }
}

/* ---- What ran ---- */

void commandline_put(FILE *out, const struct memtrace_header *header) {
    struct arguments left = arguments_of(header);
    const char *argument;
    if (left.size == 0) {
        putc_unlocked(' ', out);
        put_safe_bytes(out, header->executable,
                       strnlen(header->executable, sizeof header->executable));
    }
    while ((argument = arguments_next(&left)) != NULL) {
        putc_unlocked(' ', out);
        put_safe_bytes(out, argument, strlen(argument));
    }
}

/* ---- Functions ---- */

const char *export_name(const struct export *export, const struct names_frame *frame,
                        char *buffer) {
    return shortname_of(frame, export->full_names, buffer, 4096);
}

const char *export_label(const struct export *export, const struct names_frame *frame,
                         char *buffer) {
    const char *file = frame->file;
    export_name(export, frame, buffer);
    if (export->by_line && file != NULL) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, EXPORT_LABEL - used, frame->line != 0 ? " %s:%u" : " %s",
                 pathname_base(file), frame->line);
    }
    return buffer;
}

void export_prepare_names(const struct export *export) {
    if (names_prepare_all(export->names) != 0) {
        job_fail_memory();
    }
}

/* ---- The tree of functions ---- */

/* What is below a call of that depth is added to the call. */
static void mergedtree_cut(struct calltree *tree, size_t depth) {
    size_t *depths = job_array(tree->count, sizeof *depths);
    for (size_t i = 1; i < tree->count; i++) {
        struct call *call = &tree->calls[i];
        depths[i] = depths[call->parent] + 1;
        if (depths[i] == depth) {
            call->self = call->cost;
            call->first_child = 0;
        }
    }
    job_release(depths);
}

struct calltree mergedtree_open(const struct export *export, enum metric metric) {
    const struct report report = {
        .model = export->model,
        .names = export->names,
        .options = {.by_line = export->by_line, .all_frames = export->all_frames}};
    struct calltree tree = calltree_top_down(&report, metric);
    if (export->depth != 0) {
        mergedtree_cut(&tree, export->depth);
    }
    return tree;
}

uint32_t mergedtree_skip(const struct calltree *tree, uint32_t at, size_t *depth) {
    while (at != 0 && tree->calls[at].next == 0) {
        at = tree->calls[at].parent;
        --*depth;
    }
    return at != 0 ? tree->calls[at].next : 0;
}

uint32_t mergedtree_next(const struct calltree *tree, uint32_t at, size_t *depth) {
    if (tree->calls[at].first_child != 0) {
        ++*depth;
        return tree->calls[at].first_child;
    }
    return mergedtree_skip(tree, at, depth);
}

/* ---- Single blocks ---- */

bool lifepass_possible(const struct export *export) {
    return export->parts.count != 0 &&
           (export->selection == NULL || !selection_asks_ends(export->selection));
}

struct lifepass {
    const struct model *model;
    const struct lives_visitor *visitor;
};

static bool lifepass_is_heap(const struct lifepass *pass, const struct life *life) {
    uint64_t frame = pass->model->nodes[life->context].frame;
    return frame == 0 || frame == MEMTRACE_FRAME_UNKNOWN || frame >= MEMTRACE_FRAME_CLASSES;
}

static int lifepass_begin(void *context, const struct life *life) {
    const struct lifepass *pass = context;
    return lifepass_is_heap(pass, life) ? pass->visitor->begin(pass->visitor->context, life) : 0;
}

static int lifepass_end(void *context, const struct life *life) {
    const struct lifepass *pass = context;
    return life->death_order != LIFE_ALIVE && lifepass_is_heap(pass, life)
               ? pass->visitor->end(pass->visitor->context, life)
               : 0;
}

static int lifepass_other(void *context, const struct timeorder_event *event) {
    const struct lifepass *pass = context;
    return pass->visitor->other(pass->visitor->context, event);
}

void lifepass_visit(const struct export *export, const struct lives_visitor *visitor) {
    struct lifepass pass = {export->whole, visitor};
    const struct lives_visitor heap = {.begin = lifepass_begin,
                                       .end = lifepass_end,
                                       .other = visitor->other != NULL ? lifepass_other : NULL,
                                       .context = &pass};
    struct error error;
    job_check(export->selection == NULL
                  ? lives_visit(export->parts, export->whole, &heap, export->progress, &error)
                  : selection_visit(export->selection, export->whole, export->parts, export->names,
                                    &heap, export->progress, &error),
              &error);
}
