/* SPDX-License-Identifier: MIT */
/*
 * nodecode.h: the bytes of a block of context tree nodes (memtrace/recording.h): columns, as with
 * events. docs/format.md tells them.
 *
 * Called by collect (pack) and analyze/read (unpack).
 */
#ifndef ANALYZE_READ_NODECODE_H
#define ANALYZE_READ_NODECODE_H

#include "analyze/read/varint.h"
#include "memtrace/recording.h"

enum { NODECODE_COLUMNS = 4 };

/* Appends the payload of a block with these nodes. 0, or -1: out of memory. */
int nodecode_pack(const struct memtrace_recording_node *nodes, size_t count,
                  struct varint_writer *payload);

/* The nodes of a payload, as many as its block has items; the caller frees *nodes. 0, or -1:
 * damaged, or out of memory. */
int nodecode_unpack(const void *payload, size_t size, size_t count,
                    struct memtrace_recording_node **nodes);

#endif
