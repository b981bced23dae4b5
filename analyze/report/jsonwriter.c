/* SPDX-License-Identifier: MIT */
/* jsonwriter.c: streamed JSON by yajl. See jsonwriter.h. */
#include "analyze/report/jsonwriter.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

struct jsonwriter {
    yajl_gen gen;
};

static void put(void *context, const char *text, size_t size) {
    fwrite_unlocked(text, 1, size, context);
}

/* '<' stands in strings only, where an escape says the same; "</script>" and "<!--" would end or
 * hide the element around. */
static void put_in_html(void *context, const char *text, size_t size) {
    const char *end = text + size;
    while (text < end) {
        const char *less = memchr(text, '<', (size_t)(end - text));
        size_t plain = (size_t)((less != NULL ? less : end) - text);
        fwrite_unlocked(text, 1, plain, context);
        text += plain;
        if (less != NULL) {
            fputs_unlocked("\\u003c", context);
            text++;
        }
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
    yajl_gen_config(gen, yajl_gen_print_callback, style == JSONWRITER_IN_HTML ? put_in_html : put,
                    out);
    if (style == JSONWRITER_INDENTED) {
        yajl_gen_config(gen, yajl_gen_beautify, 1);
        yajl_gen_config(gen, yajl_gen_indent_string, " ");
    }
    return json;
}

void jsonwriter_close(struct jsonwriter *json) {
    if (json != NULL) {
        yajl_gen_free(json->gen);
        free(json);
    }
}

/* ---- Text ---- */

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
static void put_string(yajl_gen gen, const char *text) {
    const unsigned char *bytes = (const unsigned char *)text;
    char *copy = NULL;
    if (!is_utf8(bytes)) {
        copy = repair(bytes);
        bytes = (const unsigned char *)(copy != NULL ? copy : "");
    }
    yajl_gen_string(gen, bytes, strlen((const char *)bytes));
    free(copy);
}

/* ---- Values ---- */

static yajl_gen named(struct jsonwriter *json, const char *name) {
    if (name != NULL) {
        yajl_gen_string(json->gen, (const unsigned char *)name, strlen(name));
    }
    return json->gen;
}

void jsonwriter_map(struct jsonwriter *json, const char *name) {
    yajl_gen_map_open(named(json, name));
}

void jsonwriter_end_map(struct jsonwriter *json) {
    yajl_gen_map_close(json->gen);
}

void jsonwriter_array(struct jsonwriter *json, const char *name) {
    yajl_gen_array_open(named(json, name));
}

void jsonwriter_end_array(struct jsonwriter *json) {
    yajl_gen_array_close(json->gen);
}

void jsonwriter_string(struct jsonwriter *json, const char *name, const char *value) {
    yajl_gen gen = named(json, name);
    if (value != NULL) {
        put_string(gen, value);
    } else {
        yajl_gen_null(gen);
    }
}

/* Beyond 2^63 too, which yajl's own integers are not. */
void jsonwriter_number(struct jsonwriter *json, const char *name, uint64_t value) {
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64, value);
    yajl_gen_number(named(json, name), text, (size_t)size);
}

void jsonwriter_integer(struct jsonwriter *json, const char *name, int64_t value) {
    yajl_gen_integer(named(json, name), value);
}

void jsonwriter_double(struct jsonwriter *json, const char *name, double value) {
    char text[40];
    int size = snprintf(text, sizeof text, "%.6g", value);
    if (isfinite(value)) {
        yajl_gen_number(named(json, name), text, (size_t)size);
    } else {
        yajl_gen_null(named(json, name));
    }
}

void jsonwriter_bool(struct jsonwriter *json, const char *name, bool value) {
    yajl_gen_bool(named(json, name), value);
}

void jsonwriter_hex(struct jsonwriter *json, const char *name, const uint8_t *bytes, size_t size) {
    char text[80] = "";
    for (size_t i = 0; i < size && i < 32; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    jsonwriter_string(json, name, text);
}
