/* SPDX-License-Identifier: MIT */
/*
 * packedin.h: the lines or the bytes of a file that may be packed by gzip or zstd, whatever its
 * name is.
 *
 * Called by analyze/import and by export/replayfile. Memory: one line.
 */
#ifndef ANALYZE_READ_PACKEDIN_H
#define ANALYZE_READ_PACKEDIN_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packedin;

/* Whether a file that begins with these bytes is packed. */
bool packedin_is_packed(const void *bytes, size_t size);

/* A comment in a heaptrack data file that was exported from something damaged. */
#define PACKEDIN_INCOMPLETE "# memtrace: made of files of which not all could be read"

/* NULL: it cannot be opened, or no memory. */
struct packedin *packedin_open(const char *path, struct error *error);
void packedin_close(struct packedin *in); /* NULL is allowed */

/* The next line without its end, ended by NUL instead; *size is without that. NULL: that was the
 * last one. A last line without an end is none: the file is cut off there. */
char *packedin_line(struct packedin *in, size_t *size);

/* The next bytes, *size of them, until the next call. NULL: those were the last ones. For files
 * that have no lines: one or the other. */
const void *packedin_bytes(struct packedin *in, size_t *size);

/* After the last line or byte: NULL, or why there are no more, though the file should go on. */
const char *packedin_break(const struct packedin *in);

/* How much of the file was read, and how large it is: for progress. */
uint64_t packedin_done(const struct packedin *in);
uint64_t packedin_size(const struct packedin *in);

#endif
