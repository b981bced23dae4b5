/* SPDX-License-Identifier: MIT */
/*
 * byteorder.h: profiles from machines with the other byte order, made this machine's.
 *
 * Called by analyze/read/profile, which does this before it looks at anything: nothing above knows
 * of other orders. Any thread. What the file says of sizes is not trusted.
 */
#ifndef ANALYZE_READ_BYTEORDER_H
#define ANALYZE_READ_BYTEORDER_H

#include "memtrace/format.h"

#include <stdbool.h>
#include <stddef.h>

static inline bool byteorder_is_other(const struct memtrace_header *header) {
    return header->byte_order == __builtin_bswap32(MEMTRACE_BYTE_ORDER);
}

/* Either way. */
void byteorder_turn_header(struct memtrace_header *header);

/* A whole file, MEMTRACE_HEADER_SIZE bytes or more, aligned as a header, of the other order: it is
 * of this machine's then. Segments that only a running program's collector reads get no kind. */
void byteorder_turn_file(unsigned char *bytes, size_t size);

#endif
