/* SPDX-License-Identifier: MIT */
/* jsonwriter.c: streamed JSON by yajl. See jsonwriter.h. */
#include "analyze/rows/jsonwriter.h"

#include "analyze/base/job.h"
#include "analyze/rows/safetext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

struct jsonwriter {
    yajl_gen gen;
};

/* So many bytes from text on stand in JSON as they are, whatever a terminal does with text. */
static size_t jsonwriter_plain_length(const char *text, size_t size) {
    size_t length = 0;
    while (length < size && (unsigned char)text[length] < 0x7f) {
        length++;
    }
    return length;
}

/* What terminals obey stands in strings only, where an escape says the same. */
static void jsonwriter_put(void *context, const char *text, size_t size) {
    FILE *out = context;
    if (size == 1 && jsonwriter_plain_length(text, 1) == 1) { /* between values */
        putc_unlocked(text[0], out);
        return;
    }
    while (size != 0) {
        size_t step = jsonwriter_plain_length(text, size);
        bool is_safe = true;
        char character[5] = "";
        if (step == 0) {
            memcpy(character, text, size < 4 ? size : 4);
            step = safetext_step(character, &is_safe);
        }
        if (is_safe) {
            fwrite_unlocked(text, 1, step, out);
        } else {
            fprintf(out, "\\u%04x", (unsigned)safetext_code(character, step));
        }
        text += step;
        size -= step;
    }
}

struct jsonwriter *jsonwriter_open(FILE *out, enum jsonwriter_style style) {
    struct jsonwriter *json = calloc(1, sizeof *json);
    yajl_gen gen = yajl_gen_alloc(NULL);
    if (json == NULL || gen == NULL) {
        free(json);
        if (gen != NULL) {
            yajl_gen_free(gen);
        }
        return NULL;
    }
    json->gen = gen;
    yajl_gen_config(gen, yajl_gen_print_callback, jsonwriter_put, out);
    if (style != JSONWRITER_COMPACT) {
        yajl_gen_config(gen, yajl_gen_beautify, 1);
        yajl_gen_config(gen, yajl_gen_indent_string, style == JSONWRITER_WIDE ? "    " : " ");
    }
    return json;
}

void jsonwriter_close(struct jsonwriter *json) {
    if (json != NULL) {
        yajl_gen_free(json->gen);
        free(json);
    }
}

static void jsonwriter_end(void *json) {
    jsonwriter_close(json);
}

struct jsonwriter *jsonwriter_begin(FILE *out, enum jsonwriter_style style) {
    struct jsonwriter *json = jsonwriter_open(out, style);
    if (json == NULL) {
        job_fail_memory();
    }
    job_undo(jsonwriter_end, json);
    return json;
}

/* ---- Text ---- */

/* File names may be any bytes; JSON is UTF-8. */
static void put_string(yajl_gen gen, const char *text) {
    char *copy = NULL;
    if (!utf8_is_valid(text)) {
        copy = utf8_repair(text);
        text = copy != NULL ? copy : "";
    }
    yajl_gen_string(gen, (const unsigned char *)text, strlen(text));
    free(copy);
}

/* ---- Values ---- */

static yajl_gen jsonwriter_named(struct jsonwriter *json, const char *name) {
    if (name != NULL) {
        yajl_gen_string(json->gen, (const unsigned char *)name, strlen(name));
    }
    return json->gen;
}

void jsonwriter_name(struct jsonwriter *json, const char *name) {
    jsonwriter_named(json, name);
}

void jsonwriter_map(struct jsonwriter *json, const char *name) {
    yajl_gen_map_open(jsonwriter_named(json, name));
}

void jsonwriter_end_map(struct jsonwriter *json) {
    yajl_gen_map_close(json->gen);
}

void jsonwriter_array(struct jsonwriter *json, const char *name) {
    yajl_gen_array_open(jsonwriter_named(json, name));
}

void jsonwriter_end_array(struct jsonwriter *json) {
    yajl_gen_array_close(json->gen);
}

void jsonwriter_string(struct jsonwriter *json, const char *name, const char *value) {
    yajl_gen gen = jsonwriter_named(json, name);
    if (value != NULL) {
        put_string(gen, value);
    } else {
        yajl_gen_null(gen);
    }
}

/* Large answers are numbers for the most part: without printf, which yajl's own integers go
 * through. These reach beyond 2^63, too. */
static void put_digits(struct jsonwriter *json, const char *name, bool is_negative,
                       uint64_t value) {
    char text[24];
    char *at = text + sizeof text;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    if (is_negative) {
        *--at = '-';
    }
    yajl_gen_number(jsonwriter_named(json, name), at, (size_t)(text + sizeof text - at));
}

void jsonwriter_number(struct jsonwriter *json, const char *name, uint64_t value) {
    put_digits(json, name, false, value);
}

void jsonwriter_integer(struct jsonwriter *json, const char *name, int64_t value) {
    put_digits(json, name, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void jsonwriter_double(struct jsonwriter *json, const char *name, double value) {
    char text[40];
    int size = snprintf(text, sizeof text, "%.6g", value);
    if (isfinite(value)) {
        yajl_gen_number(jsonwriter_named(json, name), text, (size_t)size);
    } else {
        yajl_gen_null(jsonwriter_named(json, name));
    }
}

void jsonwriter_bool(struct jsonwriter *json, const char *name, bool value) {
    yajl_gen_bool(jsonwriter_named(json, name), value);
}

void jsonwriter_hex(struct jsonwriter *json, const char *name, const uint8_t *bytes, size_t size) {
    char text[80] = "";
    for (size_t i = 0; i < size && i < 32; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    jsonwriter_string(json, name, text);
}
