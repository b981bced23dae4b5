/* SPDX-License-Identifier: MIT */
/* shared.c: see shared.h. */
#include "analyze/export/shared.h"

#include "analyze/base/array.h"
#include "analyze/rows/safetext.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
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
        numbering->out_of_memory |= numbermap_put(&numbering->numbers, key, (void *)number) != 0;
    }
    return number;
}

size_t numbering_add(struct numbering *numbering, uint64_t key, const void *item) {
    bool is_new;
    size_t number = numbering_of(numbering, key, &is_new);
    if (is_new && array_grow(&numbering->items, &numbering->room, number - 1,
                             sizeof *numbering->items) == 0) {
        numbering->items[number - 1] = item;
    } else if (is_new) {
        numbering->count = number - 1; /* of items that are there */
        numbering->out_of_memory = true;
    }
    return number;
}

uint64_t numbering_key(const char *text) {
    return XXH3_64bits(text, strlen(text));
}

void numbering_free(struct numbering *numbering) {
    numbermap_free(&numbering->numbers);
    free(numbering->items);
    *numbering = (struct numbering){0};
}

/* ---- Text inside of XML and HTML ---- */

/* The two characters of three bytes that XML has not: U+FFFE and U+FFFF. */
static int is_no_character(const char *text) {
    return memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0;
}

static const char *entity(unsigned char byte) {
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
static const char *put_character(FILE *out, const char *text) {
    size_t length = utf8_length(text);
    bool is_safe;
    const char *instead = length == 1 ? entity((unsigned char)*text) : NULL;
    safetext_step(text, &is_safe);
    if (!is_safe && instead == NULL) {
        instead = "?";
    }
    if (length == 0 || (length == 3 && is_no_character(text))) {
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
        text = put_character(out, text);
    }
}

static size_t count_characters(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; count++) {
        size_t length = utf8_length(text);
        text += length != 0 ? length : 1;
    }
    return count;
}

void markup_text_cut(FILE *out, const char *text, size_t most) {
    size_t count = count_characters(text);
    size_t kept = count <= most ? count : most >= 2 ? most - 2 : 0;
    for (size_t i = 0; i < kept; i++) {
        text = put_character(out, text);
    }
    if (kept < count) {
        fputs_unlocked("..", out);
    }
}

/* ---- What ran ---- */

static void put_argument(FILE *out, const char *text, size_t length) {
    putc_unlocked(' ', out);
    put_safe_bytes(out, text, length);
}

void commandline_put(FILE *out, const struct memtrace_header *header) {
    struct arguments left = arguments_of(header);
    const char *argument;
    if (left.size == 0) {
        put_argument(out, header->executable,
                     strnlen(header->executable, sizeof header->executable));
    }
    while ((argument = arguments_next(&left)) != NULL) {
        put_argument(out, argument, strlen(argument));
    }
}

/* ---- Single blocks ---- */

bool lifepass_possible(const struct export *export) {
    return export->parts.count != 0 &&
           (export->selection == NULL || !selection_asks_ends(export->selection));
}

int lifepass_visit(const struct export *export, const struct lives_visitor *visitor,
                   struct error *error) {
    return export->selection == NULL
               ? lives_visit(export->parts, export->whole, visitor, export->progress, error)
               : selection_visit(export->selection, export->whole, export->parts, export->names,
                                 visitor, export->progress, error);
}

bool lifepass_is_heap(const struct model *model, uint32_t context) {
    uint64_t frame = model->nodes[context].frame;
    return frame == 0 || frame == MEMTRACE_FRAME_UNKNOWN || frame >= MEMTRACE_FRAME_CLASSES;
}
