/* SPDX-License-Identifier: MIT */
/*
 * eventcolumns.h: the columns of an events block and the bits of an op (docs/format.md).
 *
 * Called by eventencode.c and eventdecode.c.
 */
#ifndef ANALYZE_READ_EVENTCOLUMNS_H
#define ANALYZE_READ_EVENTCOLUMNS_H

/* In their order. Numbers that follow no pattern are split: their low bytes here, what is above
 * there, so that the compressor finds the little order that the high ones have. */
enum column {
    COLUMN_OPS = 0,   /* a byte an event, and one for each numbers gap and old block */
    COLUMN_TIMES = 1, /* the first event's time, then differences, signed */
    COLUMN_SITES = 2, /* indices of known sites, split */
    COLUMN_SITES_HIGH = 3,
    COLUMN_CONTEXTS = 4, /* of new sites: difference to the new site before, signed */
    COLUMN_SIZES = 5,    /* of new sites */
    COLUMN_SHAPES = 6,   /* of new sites: slack, flags, alignment, weight */
    COLUMN_BLOCKS = 7,   /* which block is freed, split */
    COLUMN_BLOCKS_HIGH = 8,
    COLUMN_OWNERS = 9,     /* whose block is freed, if not the thread's own */
    COLUMN_ADDRESSES = 10, /* difference to where it was expected */
    COLUMN_PLACES = 11,    /* contexts of frees: as SITES (not split) and CONTEXTS */
    COLUMN_REST = 12,      /* fields of what is rare */
    COLUMNS = 13
};

/* Bits 0 and 1 of an op. */
enum op_kind {
    OP_FREE = 0,
    OP_ALLOC = 1,
    OP_REALLOC = 2, /* the op of a free follows, without time and place: the old block */
    OP_REST = 3,    /* bits 2..6: enum op_rest */
};

enum op_bits {
    OP_KIND = 3,
    OP_BLOCK_SHIFT = 2,   /* of a free: enum op_block, three bits */
    OP_PLACE_SHIFT = 5,   /* of a free: enum op_site, two bits */
    OP_SITE_SHIFT = 2,    /* of an allocation: enum op_site, two bits */
    OP_ADDRESS_SHIFT = 4, /* of an allocation: enum op_address, three bits */
    OP_TIME = 0x80,       /* a difference of time comes before it */
};

enum op_block {
    BLOCK_NEWEST = 0, /* of those allocated in this block and not freed */
    BLOCK_NEWER = 1,  /* the neighbours of the one freed last */
    BLOCK_OLDER = 2,
    BLOCK_BACK = 3,    /* so many before the last allocation */
    BLOCK_DELTA = 4,   /* so far from the one freed last, signed */
    BLOCK_FOREIGN = 5, /* owner, then so far from its one freed last, signed */
};

enum op_site {
    SITE_EXPECTED = 0, /* that followed last time */
    SITE_KNOWN = 1,
    SITE_NEW = 2,
    SITE_NONE = 3, /* of a free: its context was not recorded */
};

enum op_address {
    ADDRESS_NONE = 0,     /* not recorded */
    ADDRESS_REUSED = 1,   /* of the block of its class that was freed last */
    ADDRESS_FRONTIER = 2, /* behind the last allocation that reused none */
    ADDRESS_DELTA = 3,    /* so far from there, signed */
    ADDRESS_BELOW = 4,    /* of one of its class that was freed before: how many places */
    ADDRESS_SAME = 5,     /* of a realloc: the old block's */
};

enum op_rest {
    REST_MAP = 0,
    REST_MARK = 1,
    REST_LOST = 2,
    REST_NUMBERS = 3, /* no event: so many numbers are left out */
};

#endif
