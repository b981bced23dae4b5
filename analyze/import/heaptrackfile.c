/* SPDX-License-Identifier: MIT */
/*
 * heaptrackfile.c: one line after the other: a letter that tells what it is, then numbers in hex
 * and texts. See heaptrackfile.h.
 */
#include "analyze/import/heaptrackfile.h"

#include "analyze/base/job.h"
#include "analyze/read/packedin.h"

#include <stdio.h>
#include <string.h>

enum {
    VERSION_INFOS = 1, /* sizes and call paths have numbers, in interpreted files */
    VERSION_SIZED = 3, /* texts have their length before them */
    VERSION_MOST = 3,
    VERSION_ODD = 0x10200, /* a heaptrack that wrote no file version: 1 */
    PROGRESS_LINES = 1 << 16
};
#define NS_PER_MS UINT64_C(1000000)

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
    char **texts;
    size_t text_count;
    size_t text_room;
    struct info *infos;
    size_t info_count;
    size_t info_room;
    uint64_t place_count;
    uint64_t path_count;
    bool is_raw; /* lines were there that only raw files have */
};

/* ---- What lines are made of ---- */

static bool reading_number(struct reading *reading, uint64_t *number) {
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
static char *reading_text(struct reading *reading) {
    char *text;
    uint64_t size;
    if (reading->version >= VERSION_SIZED) {
        if (!reading_number(reading, &size) || size > (uint64_t)(reading->line_end - reading->at)) {
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

static const char *reading_known_text(const struct reading *reading, uint64_t number) {
    return number != 0 && number <= reading->text_count ? reading->texts[number - 1] : "";
}

/* ---- Lines: whether they add up ---- */

static bool reading_version(struct reading *reading) {
    uint64_t heaptrack;
    if (!reading_number(reading, &heaptrack)) {
        return false;
    }
    if (!reading_number(reading, &reading->version)) {
        reading->version = heaptrack == VERSION_ODD ? VERSION_INFOS : 0;
    }
    reading->has_begun = true;
    return true;
}

/* Of older files the rest of the line, spaces and all. */
static bool reading_new_text(struct reading *reading) {
    const char *text = reading->version >= VERSION_SIZED ? reading_text(reading) : reading->at;
    job_grow(&reading->texts, &reading->text_room, reading->text_count, sizeof *reading->texts);
    reading->texts[reading->text_count++] =
        job_string(text != NULL ? text : ""); /* it keeps its number */
    return true;
}

static bool reading_frame(struct reading *reading, struct heaptrackfile_frame *frame) {
    uint64_t function = 0;
    uint64_t file = 0;
    uint64_t line = 0;
    if (!reading_number(reading, &function)) {
        return false;
    }
    /* A file and its line may be missing. */
    if (reading_number(reading, &file)) {
        reading_number(reading, &line);
    }
    *frame = (struct heaptrackfile_frame){reading_known_text(reading, function),
                                          reading_known_text(reading, file), (uint32_t)line};
    return true;
}

static bool reading_place(struct reading *reading) {
    struct heaptrackfile_frame frames[HEAPTRACKFILE_FRAMES];
    uint64_t address;
    uint64_t module = 0;
    size_t count = 0;
    if (!reading_number(reading, &address)) {
        return false;
    }
    reading_number(reading, &module);
    while (count < HEAPTRACKFILE_FRAMES && reading_frame(reading, &frames[count])) {
        count++;
    }
    reading->place_count++;
    reading->visitor->place(reading->visitor->context, address, reading_known_text(reading, module),
                            frames, count);
    return true;
}

static bool reading_path(struct reading *reading) {
    uint64_t place;
    uint64_t parent;
    if (!reading_number(reading, &place) || !reading_number(reading, &parent)) {
        return false;
    }
    if ((!reading->is_raw && place > reading->place_count) || parent > reading->path_count) {
        place = reading->is_raw ? place : 0; /* it keeps its number */
        parent = 0;
    }
    reading->path_count++;
    reading->visitor->path(reading->visitor->context, reading->is_raw, place, parent);
    return true;
}

static bool reading_info(struct reading *reading) {
    struct info info;
    if (!reading_number(reading, &info.size) || !reading_number(reading, &info.path)) {
        return false;
    }
    job_grow(&reading->infos, &reading->info_room, reading->info_count, sizeof *reading->infos);
    reading->infos[reading->info_count++] = info;
    return true;
}

/* "+ number", or "+ size path address" in raw and very old files. */
static bool reading_begin(struct reading *reading) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    uint64_t first;
    uint64_t path;
    uint64_t address;
    if (!reading_number(reading, &first)) {
        return false;
    }
    if (reading_number(reading, &path)) {
        if (!reading_number(reading, &address) || path > reading->path_count) {
            return false;
        }
        visitor->begin(visitor->context, HEAPTRACKFILE_ADDRESS, address, first, path);
        return true;
    }
    if (first >= reading->info_count || reading->infos[first].path > reading->path_count) {
        return false;
    }
    visitor->begin(visitor->context, HEAPTRACKFILE_NUMBER, first, reading->infos[first].size,
                   reading->infos[first].path);
    return true;
}

static bool reading_end(struct reading *reading) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    bool by_address = reading->is_raw || reading->version < VERSION_INFOS;
    uint64_t key;
    if (!reading_number(reading, &key) || (!by_address && key >= reading->info_count)) {
        return false;
    }
    visitor->end(visitor->context, by_address ? HEAPTRACKFILE_ADDRESS : HEAPTRACKFILE_NUMBER, key);
    return true;
}

/* "m path base (address size)...", or "m -". */
static bool reading_module(struct reading *reading) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    struct heaptrackfile_module module = {.path = reading_text(reading), .start = UINT64_MAX};
    uint64_t address;
    uint64_t size;
    if (module.path == NULL) {
        return false;
    }
    if (strcmp(module.path, "-") == 0) {
        visitor->modules_gone(visitor->context);
        return true;
    }
    if (!reading_number(reading, &module.base)) {
        return false;
    }
    while (reading_number(reading, &address) && reading_number(reading, &size)) {
        uint64_t start = module.base + address;
        module.start = start < module.start ? start : module.start;
        module.end = start + size > module.end ? start + size : module.end;
    }
    if (module.start >= module.end) {
        return false;
    }
    visitor->module(visitor->context, &module);
    return true;
}

static bool reading_told(struct reading *reading, uint64_t unit,
                         void (*told)(void *context, uint64_t number)) {
    uint64_t number;
    if (!reading_number(reading, &number) || __builtin_mul_overflow(number, unit, &number)) {
        return false;
    }
    told(reading->visitor->context, number);
    return true;
}

static bool reading_system(struct reading *reading) {
    uint64_t size;
    if (!reading_number(reading, &size) || size == 0) {
        return false;
    }
    reading->page_size = size;
    return true;
}

static bool reading_program(struct reading *reading) {
    const char *path = reading_text(reading);
    if (path != NULL) {
        reading->visitor->program(reading->visitor->context, path);
    }
    return path != NULL;
}

static bool reading_line(struct reading *reading, char kind) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    reading->is_raw |= kind == 'x' || kind == 'm';
    switch (kind) {
    case 'v':
        return reading_version(reading);
    case 'X':
        visitor->command(visitor->context, reading->at);
        return true;
    case 'x':
        return reading_program(reading);
    case 'm':
        return reading_module(reading);
    case 'I':
        return reading_system(reading);
    case 's':
        return reading_new_text(reading);
    case 'i':
        return reading_place(reading);
    case 't':
        return reading_path(reading);
    case 'a':
        return reading_info(reading);
    case '+':
        return reading_begin(reading);
    case '-':
        return reading_end(reading);
    case 'c':
        return reading_told(reading, NS_PER_MS, visitor->time);
    case 'R':
        return reading_told(reading, reading->page_size, visitor->resident);
    case '#': /* comment */
    case 'A': /* heaptrack came to a program that ran */
    case 'S': /* of leak checkers: what to leave out */
        return true;
    default:
        return false;
    }
}

/* ---- The file ---- */

static void reading_lines(struct reading *reading, struct packedin *in,
                          struct heaptrackfile_result *result) {
    const struct heaptrackfile_visitor *visitor = reading->visitor;
    size_t size;
    char *line;
    while ((line = packedin_line(in, &size)) != NULL) {
        result->lines++;
        if (size == 0) {
            continue;
        }
        reading->at = line + (size < 2 ? size : 2);
        reading->line_end = line + size;
        result->is_incomplete |= strcmp(line, PACKEDIN_INCOMPLETE) == 0;
        result->bad_lines += !reading_line(reading, line[0]);
        if (!reading->has_begun || reading->version > VERSION_MOST) {
            break;
        }
        if (visitor->progress != NULL && result->lines % PROGRESS_LINES == 0) {
            visitor->progress(visitor->context, packedin_done(in), packedin_size(in));
        }
    }
}

static void reading_close(void *what) {
    packedin_close(what);
}

void heaptrackfile_read(const char *path, const struct heaptrackfile_visitor *visitor,
                        struct heaptrackfile_result *result) {
    struct error error;
    struct packedin *in = packedin_open(path, &error);
    struct reading reading = {.visitor = visitor, .page_size = 4096};
    *result = (struct heaptrackfile_result){0};
    job_check(in != NULL ? 0 : -1, &error);
    job_undo(reading_close, in);
    reading_lines(&reading, in, result);
    if (packedin_break(in) != NULL) {
        snprintf(result->damage, sizeof result->damage, "%s after line %llu", packedin_break(in),
                 (unsigned long long)result->lines);
    }
    if (!reading.has_begun) {
        job_fail("%s is not a heaptrack data file", path);
    }
    if (reading.version > VERSION_MOST) {
        job_fail("%s has version %llu of heaptrack's format; versions up to %d are known", path,
                 (unsigned long long)reading.version, VERSION_MOST);
    }
}
