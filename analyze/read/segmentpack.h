/* SPDX-License-Identifier: MIT */
/*
 * segmentpack.h: segments of a profile as columns and back ("Packed profiles" in docs/format.md). A
 * pack takes pieces, each some pages of a profile, that are alike: arrays whose items have the same
 * fields. A field is a number of 1 to 8 bytes. What is no such array has no fields and is kept as
 * it is, without its pages of zeros.
 *
 * Called by collect (pack) and analyze/read/profile (unpack). Any thread.
 */
#ifndef ANALYZE_READ_SEGMENTPACK_H
#define ANALYZE_READ_SEGMENTPACK_H

#include "analyze/base/numbermap.h"
#include "analyze/read/varint.h"
#include "memtrace/format.h"
#include "memtrace/recording.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SEGMENTPACK_FIELDS = 16,
    SEGMENTPACK_COLUMNS = SEGMENTPACK_FIELDS + 3, /* of every payload */
};

struct segmentpack_form {
    unsigned char width[SEGMENTPACK_FIELDS]; /* bytes; they add up to an item */
    unsigned count;                          /* 0: kept as it is */
    bool numbered; /* the first field repeats itself: as numbers of its values */
};

/* Start from {.form = ...}; segmentpack_free() ends it. */
struct segmentpack {
    struct segmentpack_form form;
    uint64_t pages; /* of all pieces that it ever had */
    uint64_t end;   /* page behind the last piece; 0: it is empty */
    uint64_t before[SEGMENTPACK_FIELDS];
    struct varint_writer columns[SEGMENTPACK_COLUMNS];
    struct numbermap numbers;
};

/* How segments of this kind are packed. */
struct segmentpack_form segmentpack_form(uint32_t kind, uint32_t item_size);

bool segmentpack_same(const struct segmentpack_form *one, const struct segmentpack_form *other);

/* Adds pages of the profile, from `page` on, which is not below the end of the piece before.
 * Whether there was memory is known at the end. */
void segmentpack_add(struct segmentpack *pack, const unsigned char *bytes, uint64_t page,
                     size_t pages);

/* Appends the payload of a block with all pieces, and the pack is empty again. 0 or -1: out of
 * memory. */
int segmentpack_end(struct segmentpack *pack, struct varint_writer *payload);

void segmentpack_free(struct segmentpack *pack);

/* Puts the pieces of a payload to their places in the `size` bytes of a profile, which were zeros,
 * and takes their pages from the budget; 0 is left where that is passed.
 * 0 or -1: damaged, out of memory, or too much. */
int segmentpack_unpack(const void *payload, size_t payload_size, unsigned char *bytes,
                       uint64_t size, uint64_t *budget);

#endif
