/* SPDX-License-Identifier: MIT */
/*
 * cursor.h: reading DWARF's numbers, bounds checked in one place: past the end every read gives 0
 * and says so once, so that readers stay linear. For cfi.c and expression.c.
 */
#ifndef RUNTIME_STACK_CURSOR_H
#define RUNTIME_STACK_CURSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    int failed; /* read past the end, or something unknown: every later read gives 0 */
};

/* 1 to 8 bytes, in the machine's order. */
static inline uint64_t cursor_take(struct cursor *cursor, size_t size) {
    uint64_t value = 0;
    if ((size_t)(cursor->end - cursor->at) < size) {
        cursor->failed = 1;
        cursor->at = cursor->end;
        return 0;
    }
    memcpy(&value, cursor->at, size);
    cursor->at += size;
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value >> (64 - 8 * size) : value;
}

static inline uint64_t cursor_uleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)cursor_take(cursor, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            break;
        }
    }
    return value;
}

static inline int64_t cursor_sleb(struct cursor *cursor) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)cursor_take(cursor, 1);
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        shift += 7;
    } while ((byte & 0x80) != 0 && !cursor->failed);
    if ((byte & 0x40) != 0 && shift < 64) {
        value |= ~UINT64_C(0) << shift;
    }
    return (int64_t)value;
}

#endif
