/* SPDX-License-Identifier: MIT */
/*
 * packedin.h: the lines of a text file that may be packed by gzip or zstd, whatever its name is.
 *
 * Called by analyze/import. Memory: one line.
 */
#ifndef ANALYZE_IMPORT_PACKEDIN_H
#define ANALYZE_IMPORT_PACKEDIN_H

#include "analyze/read/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packedin;

/* NULL: it cannot be opened, or no memory. */
struct packedin *packedin_open(const char *path, struct error *error);
void packedin_close(struct packedin *in); /* NULL is allowed */

/* The next line without its end, ended by NUL instead; *size is without that. NULL: that was the
 * last one. A last line without an end is none: the file is cut off there. */
char *packedin_line(struct packedin *in, size_t *size);

/* After the last line: NULL, or why there are no more, though the file should go on. */
const char *packedin_break(const struct packedin *in);

/* How much of the file was read, and how large it is: for progress. */
uint64_t packedin_done(const struct packedin *in);
uint64_t packedin_size(const struct packedin *in);

#endif
