/* SPDX-License-Identifier: MIT */
/* varint.c: the rare halves of varint.h. */
#include "analyze/read/varint.h"

#include <stdlib.h>

int varint_reserve(struct varint_writer *writer, size_t more) {
    size_t capacity = writer->capacity != 0 ? writer->capacity * 2 : 4096;
    unsigned char *grown;
    if (capacity < writer->size + more) {
        capacity = writer->size + more;
    }
    grown = writer->failed ? NULL : realloc(writer->bytes, capacity);
    if (grown == NULL) {
        writer->failed = true;
        return -1;
    }
    writer->bytes = grown;
    writer->capacity = capacity;
    return 0;
}

uint64_t varint_get_rest(struct varint_reader *reader, uint64_t low) {
    for (unsigned shift = 7; shift < 64; shift += 7) {
        uint64_t byte = varint_get_byte(reader);
        if (shift == 63 && byte > 1) {
            break;
        }
        low |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            return low;
        }
    }
    *reader->failed = true;
    return 0;
}
