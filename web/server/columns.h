/* SPDX-License-Identifier: MIT */
/*
 * columns.h: an answer as application/vnd.memtrace.columns: "MTC1", the length of the head as 32
 * bits, the head (JSON), and from the next multiple of 8 bytes on the columns, each at a multiple
 * of 8, little-endian. Offsets count from there, lengths are numbers of values.
 *
 * Called by api.c, which adds them, and dispatch.c.
 */
#ifndef WEB_SERVER_COLUMNS_H
#define WEB_SERVER_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#define COLUMNS_TYPE "application/vnd.memtrace.columns"

struct api_columns {
    char *bytes;
    size_t size, room;
    bool is_used;
};

#endif
