/* SPDX-License-Identifier: MIT */
/*
 * jsonwriter.h: writes JSON as it comes, so that the output may be larger than memory.
 *
 * Called by analyze/report, analyze/export, collect/runfolder and cli. One thread at a time. Each
 * function takes the name under which the value stands in an object, or NULL: a value of an array,
 * or the outermost. Whatever text says, the output is UTF-8: each byte that is none becomes U+FFFD.
 * Objects and arrays may lie in each other 100 deep; so trees are written as flat lists. Whether
 * writing worked the caller asks ferror(out).
 */
#ifndef ANALYZE_ROWS_JSONWRITER_H
#define ANALYZE_ROWS_JSONWRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct jsonwriter;

enum jsonwriter_style {
    JSONWRITER_INDENTED, /* for people as well */
    JSONWRITER_WIDE,     /* the same, by four blanks: run.json */
    JSONWRITER_COMPACT
};

/* In a job, to which it belongs: all that it wrote is in the file at once. */
struct jsonwriter *jsonwriter_begin(FILE *out, enum jsonwriter_style style);
/* Outside of jobs. NULL: out of memory. */
struct jsonwriter *jsonwriter_open(FILE *out, enum jsonwriter_style style);
/* NULL is allowed. The output stays open. */
void jsonwriter_close(struct jsonwriter *json);

void jsonwriter_map(struct jsonwriter *json, const char *name);
void jsonwriter_end_map(struct jsonwriter *json);
void jsonwriter_array(struct jsonwriter *json, const char *name);
void jsonwriter_end_array(struct jsonwriter *json);

/* The name of the value that comes next, which is written without one: by somebody who does not
 * know where it stands. */
void jsonwriter_name(struct jsonwriter *json, const char *name);

/* value NULL: null */
void jsonwriter_string(struct jsonwriter *json, const char *name, const char *value);
void jsonwriter_number(struct jsonwriter *json, const char *name, uint64_t value);
void jsonwriter_integer(struct jsonwriter *json, const char *name, int64_t value);
/* Six digits; what is no number becomes null. */
void jsonwriter_double(struct jsonwriter *json, const char *name, double value);
void jsonwriter_bool(struct jsonwriter *json, const char *name, bool value);
/* "0a1b..": at most 32 bytes */
void jsonwriter_hex(struct jsonwriter *json, const char *name, const uint8_t *bytes, size_t size);

#endif
