/* SPDX-License-Identifier: MIT */
/* heaptracktext.c: see heaptracktext.h. */
#include "analyze/export/heaptracktext.h"

#include "analyze/export/commandline.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    VERSION = 0x10400, /* the heaptrack whose readers are meant */
    FILE_VERSION = 3,
    PAGE_SIZE = 4096,
    DIGITS = 16,
    INFOS_MOST = 1 << 20, /* remembered at a time */
};
#define NS_PER_MS UINT64_C(1000000)

/* ---- Lines ---- */

static void put_number(FILE *out, uint64_t number) {
    char digits[DIGITS];
    size_t count = 0;
    do {
        digits[DIGITS - ++count] = "0123456789abcdef"[number & 15];
        number >>= 4;
    } while (number != 0);
    putc_unlocked(' ', out);
    for (; count != 0; count--) {
        putc_unlocked(digits[DIGITS - count], out);
    }
}

static void put_line(FILE *out, char kind, const uint64_t *numbers, size_t count) {
    putc_unlocked(kind, out);
    for (size_t i = 0; i < count; i++) {
        put_number(out, numbers[i]);
    }
    putc_unlocked('\n', out);
}

/* Lines end at line ends, whatever the length before a text says. */
static void put_bytes(FILE *out, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        putc_unlocked(bytes[i] == '\n' || bytes[i] == '\r' ? '?' : bytes[i], out);
    }
}

/* ---- What is told once ---- */

/* NULL and "": 0. */
static uint64_t text_number(struct heaptracktext *text, const char *bytes) {
    size_t size = bytes != NULL ? strlen(bytes) : 0;
    uint64_t number;
    bool is_new;
    if (size == 0) {
        return 0;
    }
    number = numbering_of(&text->texts, numbering_key(bytes), &is_new);
    if (is_new) {
        fputs("s", text->out);
        put_number(text->out, size);
        putc_unlocked(' ', text->out);
        put_bytes(text->out, bytes, size);
        putc_unlocked('\n', text->out);
    }
    return number;
}

/* Function, file and line, three numbers each; innermost function first. */
static size_t frame_numbers(struct heaptracktext *text, const struct names_frame *frames,
                            size_t count, uint64_t **numbers) {
    *numbers = calloc(count * 3 + 2, sizeof **numbers);
    if (*numbers == NULL) {
        text->out_of_memory = true;
        return 0;
    }
    if (count == 1 && frames->function == NULL && frames->file == NULL) {
        return 2; /* the readers show module and address */
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t *frame = *numbers + 2 + i * 3;
        frame[0] = text_number(text, frames[i].function);
        frame[1] = text_number(text, frames[i].file);
        frame[2] = frames[i].line;
    }
    return 2 + count * 3;
}

/* Readers look a place up as it is written, so it is that of the call, not behind it. */
static uint64_t place_number(struct heaptracktext *text, uint64_t frame) {
    struct model_place place = model_place(text->model, frame);
    const struct names_frame *frames;
    uint64_t *numbers;
    uint64_t number;
    size_t count;
    bool is_new;
    number = numbering_of(&text->places, frame, &is_new);
    if (!is_new) {
        return number;
    }
    frames = names_frames(text->names, frame, &count);
    count = frame_numbers(text, frames, count, &numbers);
    if (count != 0) {
        numbers[0] = place.address - (place.exact || place.address == 0 ? 0 : 1);
        numbers[1] = text_number(text, frames->module);
        put_line(text->out, 'i', numbers, count);
    }
    free(numbers);
    return number;
}

/* The place of blocks whose call path was not taken. */
static uint64_t unknown_place(struct heaptracktext *text) {
    uint64_t numbers[] = {0, 0, text_number(text, "(unknown)"), 0, 0};
    put_line(text->out, 'i', numbers, sizeof numbers / sizeof numbers[0]);
    return ++text->places.count;
}

static void put_trace(struct heaptracktext *text, uint32_t node, uint32_t parent) {
    uint64_t place =
        node != 0 ? place_number(text, text->model->nodes[node].frame) : unknown_place(text);
    uint64_t numbers[] = {place, node != 0 && parent != 0 ? text->traces[parent] : 0};
    put_line(text->out, 't', numbers, 2);
    text->traces[node] = ++text->trace_count;
}

/* Outermost first, as each names the one before. */
static uint64_t trace_number(struct heaptracktext *text, uint32_t context) {
    const struct model_node *nodes = text->model->nodes;
    uint32_t node = nodes[context].frame < MEMTRACE_FRAME_CLASSES ? nodes[context].parent : context;
    size_t depth = 0;
    uint32_t *path;
    if (text->traces[node] != 0) {
        return text->traces[node];
    }
    for (uint32_t at = node; at != 0 && text->traces[at] == 0; at = nodes[at].parent) {
        depth++;
    }
    path = malloc((depth + 1) * sizeof *path);
    if (path == NULL) {
        text->out_of_memory = true;
        return 0;
    }
    path[0] = node; /* 0: no call path */
    for (size_t i = 1; i < depth; i++) {
        path[i] = nodes[path[i - 1]].parent;
    }
    for (size_t i = depth != 0 ? depth : 1; i > 0; i--) {
        put_trace(text, path[i - 1], nodes[path[i - 1]].parent);
    }
    free(path);
    return text->traces[node];
}

/* Which pair of size and call path. The table is emptied now and then, because there may be as many
 * sizes as events: a pair that comes again then has a second number, which readers do not mind. */
static uint64_t info_number(struct heaptracktext *text, uint32_t context, uint64_t size) {
    uint64_t trace = trace_number(text, context);
    uint64_t pair[] = {size, trace};
    const uint64_t none[] = {0, trace};
    uint64_t number;
    bool is_new;
    if (text->infos.numbers.used >= INFOS_MOST) {
        numbermap_free(&text->infos.numbers);
    }
    if (text->infos.count == 0) {
        put_line(text->out, 'a', none, 2); /* number 0 */
    }
    number = numbering_of(&text->infos, XXH3_64bits(pair, sizeof pair), &is_new);
    if (is_new) {
        put_line(text->out, 'a', pair, 2);
    }
    return number;
}

/* ---- Events ---- */

void heaptracktext_time(struct heaptracktext *text, uint64_t time_ns) {
    const struct model *model = text->model;
    uint64_t time_ms = time_ns / NS_PER_MS;
    for (; text->point < model->timeline_count && model->timeline[text->point].time_ns <= time_ns;
         text->point++) {
        uint64_t pages = model->timeline[text->point].resident_bytes / PAGE_SIZE;
        if (pages != 0) {
            put_line(text->out, 'R', &pages, 1);
        }
    }
    if (time_ms > text->time_ms) {
        text->time_ms = time_ms;
        put_line(text->out, 'c', &time_ms, 1);
    }
}

void heaptracktext_alloc(struct heaptracktext *text, uint32_t context, uint64_t size) {
    uint64_t info = info_number(text, context, size);
    put_line(text->out, '+', &info, 1);
    text->last = info;
}

void heaptracktext_free(struct heaptracktext *text, uint32_t context, uint64_t size,
                        bool temporary) {
    static const uint64_t nothing = 0;
    uint64_t info = info_number(text, context, size);
    bool is_last = text->last == info;
    if (!temporary && is_last) {
        put_line(text->out, '-', &nothing, 1);
    }
    put_line(text->out, '-', &info, 1);
    if (temporary && !is_last) {
        put_line(text->out, '-', &nothing, 1);
    }
    text->last = 0;
}

/* ---- The whole ---- */

int heaptracktext_start(struct heaptracktext *text, FILE *out, const struct export *export) {
    static const uint64_t versions[] = {VERSION, FILE_VERSION};
    static const uint64_t system[] = {PAGE_SIZE, 0}; /* how much memory there was is not known */
    *text = (struct heaptracktext){.out = out, .model = export->model, .names = export->names};
    text->traces = calloc(export->model->node_count + 1, sizeof *text->traces);
    if (text->traces == NULL) {
        return -1;
    }
    put_line(out, 'v', versions, 2);
    putc_unlocked('X', out);
    commandline_put(out, &export->model->header);
    putc_unlocked('\n', out);
    put_line(out, 'I', system, 2);
    return 0;
}

void heaptracktext_end(struct heaptracktext *text) {
    numbering_free(&text->texts);
    numbering_free(&text->places);
    numbering_free(&text->infos);
    free(text->traces);
}
