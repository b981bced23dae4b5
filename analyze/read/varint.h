/* SPDX-License-Identifier: MIT */
/*
 * varint.h: growing byte strings, and numbers in them as varints: seven bits a byte, the lowest
 * first, bit 7 set in all but the last. Signed ones are zigzag: 0, -1, 1, -2, ... as 0, 1, 2, 3.
 * Several strings, the columns of a table, make a payload.
 *
 * Called by analyze/read. Writers and readers remember that they failed, so that a row of calls is
 * checked once, at its end.
 */
#ifndef ANALYZE_READ_VARINT_H
#define ANALYZE_READ_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VARINT_MOST = 10 }; /* bytes of a number */

/* Start from {0}; who made it frees `bytes`. Or from {.of_job = true}. */
struct varint_writer {
    unsigned char *bytes;
    size_t size;
    size_t capacity;
    bool failed; /* out of memory */
    bool of_job; /* its bytes are a job's, and there is always room */
};

struct varint_reader {
    const unsigned char *next;
    const unsigned char *end;
    bool *failed; /* set by a read beyond the end or a number of more than 64 bits, which give 0 */
};

/* Makes room for `more` bytes. 0, or -1 and failed. */
int varint_reserve(struct varint_writer *writer, size_t more);

/* Its bytes, no more than there are, become the present job's, and the writer is empty. */
unsigned char *varint_keep(struct varint_writer *writer);

/* The number's bytes after the first. */
uint64_t varint_get_rest(struct varint_reader *reader, uint64_t low);

/* varint_take() of a number of more than eight bytes. */
uint64_t varint_take_long(const unsigned char **at, bool *failed);

static inline bool varint_room(struct varint_writer *writer, size_t more) {
    return writer->capacity - writer->size >= more || varint_reserve(writer, more) == 0;
}

static inline void varint_put_byte(struct varint_writer *writer, unsigned char byte) {
    if (varint_room(writer, 1)) {
        writer->bytes[writer->size++] = byte;
    }
}

static inline void varint_put(struct varint_writer *writer, uint64_t value) {
    if (varint_room(writer, VARINT_MOST)) {
        while (value >= 0x80) {
            writer->bytes[writer->size++] = (unsigned char)(value | 0x80);
            value >>= 7;
        }
        writer->bytes[writer->size++] = (unsigned char)value;
    }
}

static inline void varint_put_bytes(struct varint_writer *writer, const void *bytes, size_t size) {
    if (size != 0 && varint_room(writer, size)) {
        memcpy(writer->bytes + writer->size, bytes, size);
        writer->size += size;
    }
}

static inline uint64_t varint_zigzag(uint64_t difference) {
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t varint_unzigzag(uint64_t value) {
    return value >> 1 ^ (0 - (value & 1));
}

static inline void varint_put_signed(struct varint_writer *writer, int64_t value) {
    varint_put(writer, varint_zigzag((uint64_t)value));
}

static inline unsigned char varint_get_byte(struct varint_reader *reader) {
    if (reader->next == reader->end) {
        *reader->failed = true;
        return 0;
    }
    return *reader->next++;
}

static inline uint64_t varint_get(struct varint_reader *reader) {
    uint64_t low = varint_get_byte(reader);
    return low < 0x80 ? low : varint_get_rest(reader, low & 0x7f);
}

/* As varint_get(), of a place that the caller keeps, for who reads many numbers and knows that
 * VARINT_MOST bytes are there: the end is not asked for. Numbers of up to 56 bits take the same few
 * steps, however many bytes they have. */
static inline uint64_t varint_take(const unsigned char **at, bool *failed) {
    uint64_t word;
    uint64_t last; /* bit 7 of the bytes that end a number */
    if (**at < 0x80) {
        return *(*at)++;
    }
    memcpy(&word, *at, sizeof word);
    last = ~word & UINT64_C(0x8080808080808080);
    if (last == 0) {
        return varint_take_long(at, failed);
    }
    *at += (unsigned)__builtin_ctzll(last) / 8 + 1;
    word &= last ^ (last - 1);
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

static inline int64_t varint_get_signed(struct varint_reader *reader) {
    return (int64_t)varint_unzigzag(varint_get(reader));
}

/* `size` bytes; NULL and failed if there are not so many. */
static inline const void *varint_get_bytes(struct varint_reader *reader, uint64_t size) {
    const unsigned char *bytes = reader->next;
    if (size > (uint64_t)(reader->end - reader->next)) {
        *reader->failed = true;
        return NULL;
    }
    reader->next += size;
    return bytes;
}

/* Columns: the sizes of all of them, 4 bytes each, then their bytes. */
void varint_join(const struct varint_writer *columns, size_t count, struct varint_writer *payload);

/* Readers of the columns of a payload, which all set *failed. 0, or -1: their sizes do not add up.
 */
int varint_split(const void *payload, size_t size, struct varint_reader *columns, size_t count,
                 bool *failed);

#endif
