/* SPDX-License-Identifier: MIT */
/*
 * heaptrackfile.c: one line after the other: a letter that tells what it is, then numbers in hex
 * and texts. See heaptrackfile.h.
 */
#include "analyze/import/heaptrackfile.h"

#include "analyze/base/arena.h"
#include "analyze/base/array.h"
#include "analyze/read/packedin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION_INFOS = 1, /* sizes and call paths have numbers, in interpreted files */
    VERSION_SIZED = 3, /* texts have their length before them */
    VERSION_MOST = 3,
    VERSION_ODD = 0x10200, /* a heaptrack that wrote no file version: 1 */
    PROGRESS_LINES = 1 << 16
};
#define NS_PER_MS UINT64_C(1000000)
#define BAD       INT32_MIN /* a line that does not add up */

/* A size and a call path, as blocks are named in interpreted files. */
struct info {
    uint64_t size;
    uint64_t path;
};

struct reading {
    const struct heaptrackfile_visitor *visitor;
    char *at; /* in the line */
    char *line_end;
    uint64_t version;
    bool has_begun; /* the line with the version was there */
    uint64_t page_size;
    struct arena memory; /* of the texts */
    const char **texts;
    size_t text_count;
    size_t text_room;
    struct info *infos;
    size_t info_count;
    size_t info_room;
    uint64_t place_count;
    uint64_t path_count;
    bool out_of_memory;
};

/* ---- What lines are made of ---- */

static bool heaptrack_number(struct reading *reading, uint64_t *number) {
    const char *begin = reading->at;
    uint64_t value = 0;
    for (; reading->at < reading->line_end && *reading->at != ' '; reading->at++) {
        char digit = *reading->at;
        if (digit >= '0' && digit <= '9') {
            value = value << 4 | (uint64_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            value = value << 4 | (uint64_t)(digit - 'a' + 10);
        } else {
            return false;
        }
    }
    if (reading->at == begin) {
        return false;
    }
    if (reading->at < reading->line_end) {
        reading->at++; /* the space */
    }
    *number = value;
    return true;
}

/* A word, or with its length before it. It is ended by NUL; NULL: there is none. */
static char *get_text(struct reading *reading) {
    char *text;
    uint64_t size;
    if (reading->version >= VERSION_SIZED) {
        if (!heaptrack_number(reading, &size) ||
            size > (uint64_t)(reading->line_end - reading->at)) {
            return NULL;
        }
        text = reading->at;
    } else {
        text = reading->at;
        size = strcspn(text, " ");
    }
    reading->at = text + size < reading->line_end ? text + size + 1 : reading->line_end;
    text[size] = '\0'; /* over the space, or the line's own end */
    return text;
}

static const char *heaptrack_text(const struct reading *reading, uint64_t number) {
    return number != 0 && number <= reading->text_count ? reading->texts[number - 1] : "";
}

/* ---- Lines ---- */

static int heaptrack_take_version(struct reading *reading) {
    uint64_t heaptrack;
    if (!heaptrack_number(reading, &heaptrack)) {
        return BAD;
    }
    if (!heaptrack_number(reading, &reading->version)) {
        reading->version = heaptrack == VERSION_ODD ? VERSION_INFOS : 0;
    }
    reading->has_begun = true;
    return 0;
}

/* Of older files the rest of the line, spaces and all. */
static int heaptrack_take_text(struct reading *reading) {
    const char *text = reading->version >= VERSION_SIZED ? get_text(reading) : reading->at;
    char *copy = arena_string(&reading->memory, text != NULL ? text : ""); /* it keeps its number */
    if (copy == NULL || array_grow(&reading->texts, &reading->text_room, reading->text_count,
                                   sizeof *reading->texts) != 0) {
        reading->out_of_memory = true;
        return -1;
    }
    reading->texts[reading->text_count++] = copy;
    return 0;
}

static bool get_frame(struct reading *reading, struct heaptrackfile_frame *frame) {
    uint64_t function = 0;
    uint64_t file = 0;
    uint64_t line = 0;
    if (!heaptrack_number(reading, &function)) {
        return false;
    }
    /* A file and its line may be missing. */
    if (heaptrack_number(reading, &file)) {
        heaptrack_number(reading, &line);
    }
    *frame = (struct heaptrackfile_frame){heaptrack_text(reading, function),
                                          heaptrack_text(reading, file), (uint32_t)line};
    return true;
}

static int heaptrack_take_place(struct reading *reading) {
    struct heaptrackfile_frame frames[HEAPTRACKFILE_FRAMES];
    uint64_t address;
    uint64_t module = 0;
    size_t count = 0;
    if (!heaptrack_number(reading, &address)) {
        return BAD;
    }
    heaptrack_number(reading, &module);
    while (count < HEAPTRACKFILE_FRAMES && get_frame(reading, &frames[count])) {
        count++;
    }
    reading->place_count++;
    return reading->visitor->place(reading->visitor->context, address,
                                   heaptrack_text(reading, module), frames, count);
}

static int heaptrack_take_path(struct reading *reading, bool is_raw) {
    uint64_t place;
    uint64_t parent;
    if (!heaptrack_number(reading, &place) || !heaptrack_number(reading, &parent)) {
        return BAD;
    }
    if ((!is_raw && place > reading->place_count) || parent > reading->path_count) {
        place = is_raw ? place : 0; /* it keeps its number */
        parent = 0;
    }
    reading->path_count++;
    return reading->visitor->path(reading->visitor->context, is_raw, place, parent);
}

static int heaptrack_take_info(struct reading *reading) {
    struct info info;
    if (!heaptrack_number(reading, &info.size) || !heaptrack_number(reading, &info.path)) {
        return BAD;
    }
    if (array_grow(&reading->infos, &reading->info_room, reading->info_count,
                   sizeof *reading->infos) != 0) {
        reading->out_of_memory = true;
        return -1;
    }
    reading->infos[reading->info_count++] = info;
    return 0;
}

/* "+ number", or "+ size path address" in raw and very old files. */
static int heaptrack_take_begin(struct reading *reading) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    uint64_t first;
    uint64_t path;
    uint64_t address;
    if (!heaptrack_number(reading, &first)) {
        return BAD;
    }
    if (heaptrack_number(reading, &path)) {
        if (!heaptrack_number(reading, &address) || path > reading->path_count) {
            return BAD;
        }
        return visitor->begin(visitor->context, HEAPTRACKFILE_ADDRESS, address, first, path);
    }
    if (first >= reading->info_count || reading->infos[first].path > reading->path_count) {
        return BAD;
    }
    return visitor->begin(visitor->context, HEAPTRACKFILE_NUMBER, first, reading->infos[first].size,
                          reading->infos[first].path);
}

static int heaptrack_take_end(struct reading *reading, bool is_raw) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    bool by_address = is_raw || reading->version < VERSION_INFOS;
    uint64_t key;
    if (!heaptrack_number(reading, &key) || (!by_address && key >= reading->info_count)) {
        return BAD;
    }
    return visitor->end(visitor->context, by_address ? HEAPTRACKFILE_ADDRESS : HEAPTRACKFILE_NUMBER,
                        key);
}

/* "m path base (address size)...", or "m -". */
static int heaptrack_take_module(struct reading *reading) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    struct heaptrackfile_module module = {.path = get_text(reading), .start = UINT64_MAX};
    uint64_t address;
    uint64_t size;
    if (module.path == NULL) {
        return BAD;
    }
    if (strcmp(module.path, "-") == 0) {
        return visitor->modules_gone(visitor->context);
    }
    if (!heaptrack_number(reading, &module.base)) {
        return BAD;
    }
    while (heaptrack_number(reading, &address) && heaptrack_number(reading, &size)) {
        uint64_t start = module.base + address;
        module.start = start < module.start ? start : module.start;
        module.end = start + size > module.end ? start + size : module.end;
    }
    return module.start < module.end ? visitor->module(visitor->context, &module) : BAD;
}

static int heaptrack_take_number(struct reading *reading, uint64_t unit,
                                 int (*told)(void *context, uint64_t number)) {
    uint64_t number;
    if (!heaptrack_number(reading, &number) || __builtin_mul_overflow(number, unit, &number)) {
        return BAD;
    }
    return told(reading->visitor->context, number);
}

static int heaptrack_take_line(struct reading *reading, char kind, bool *is_raw) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    uint64_t number;
    const char *text;
    switch (kind) {
    case 'v':
        return heaptrack_take_version(reading);
    case 'X':
        return visitor->command(visitor->context, reading->at);
    case 'x':
        *is_raw = true;
        text = get_text(reading);
        return text != NULL ? visitor->program(visitor->context, text) : BAD;
    case 'm':
        *is_raw = true;
        return heaptrack_take_module(reading);
    case 'I':
        if (!heaptrack_number(reading, &number) || number == 0) {
            return BAD;
        }
        reading->page_size = number;
        return 0;
    case 's':
        return heaptrack_take_text(reading);
    case 'i':
        return heaptrack_take_place(reading);
    case 't':
        return heaptrack_take_path(reading, *is_raw);
    case 'a':
        return heaptrack_take_info(reading);
    case '+':
        return heaptrack_take_begin(reading);
    case '-':
        return heaptrack_take_end(reading, *is_raw);
    case 'c':
        return heaptrack_take_number(reading, NS_PER_MS, visitor->time);
    case 'R':
        return heaptrack_take_number(reading, reading->page_size, visitor->resident);
    case '#': /* comment */
    case 'A': /* heaptrack came to a program that ran */
    case 'S': /* of leak checkers: what to leave out */
        return 0;
    default:
        return BAD;
    }
}

/* ---- The file ---- */

static int heaptrack_read_lines(struct reading *reading, struct packedin *in,
                                struct heaptrackfile_result *result) {
    bool is_raw = false;
    int status = 0;
    size_t size;
    char *line;
    while (status == 0 && (line = packedin_line(in, &size)) != NULL) {
        result->lines++;
        if (size == 0) {
            continue;
        }
        reading->at = line + (size < 2 ? size : 2);
        reading->line_end = line + size;
        result->is_incomplete |= strcmp(line, PACKEDIN_INCOMPLETE) == 0;
        status = heaptrack_take_line(reading, line[0], &is_raw);
        if (status == BAD) {
            result->bad_lines++;
            status = 0;
        }
        if (!reading->has_begun || reading->version > VERSION_MOST) {
            break;
        }
        if (reading->visitor->progress != NULL && result->lines % PROGRESS_LINES == 0) {
            reading->visitor->progress(reading->visitor->context, packedin_done(in),
                                       packedin_size(in));
        }
    }
    return status;
}

int heaptrackfile_read(const char *path, const struct heaptrackfile_visitor *visitor,
                       struct heaptrackfile_result *result, struct error *error) {
    struct packedin *in = packedin_open(path, error);
    struct reading reading = {.visitor = visitor, .page_size = 4096};
    int status;
    *result = (struct heaptrackfile_result){0};
    if (in == NULL) {
        return -1;
    }
    status = heaptrack_read_lines(&reading, in, result);
    if (packedin_break(in) != NULL) {
        snprintf(result->damage, sizeof result->damage, "%s after line %llu", packedin_break(in),
                 (unsigned long long)result->lines);
    }
    if (reading.out_of_memory) {
        status = error_set(error, "out of memory");
    } else if (!reading.has_begun) {
        status = error_set(error, "%s is not a heaptrack data file", path);
    } else if (reading.version > VERSION_MOST) {
        status = error_set(error,
                           "%s has version %llu of heaptrack's format; versions up to %d are known",
                           path, (unsigned long long)reading.version, VERSION_MOST);
    }
    arena_free(&reading.memory);
    free((void *)reading.texts);
    free(reading.infos);
    packedin_close(in);
    return status;
}
