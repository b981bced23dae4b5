/* SPDX-License-Identifier: MIT */
/*
 * fields.h: what stands in a string of bytes (varint.h), described once for who writes it and who
 * reads it: each function takes the place of a value, which it writes from or reads to. While it
 * writes nothing but `out` changes.
 *
 * Called by analyze/window, for what is kept of recordings. In a job, whose memory is what is read.
 */
#ifndef ANALYZE_WINDOW_FIELDS_H
#define ANALYZE_WINDOW_FIELDS_H

#include "analyze/base/job.h"
#include "analyze/read/varint.h"

#include <math.h>

/* One of the two is NULL. */
struct fields {
    struct varint_writer *out;
    struct varint_reader *in;
};

/* Of what is read: it is damaged where this does not hold. */
static inline void fields_require(const struct fields *fields, bool holds) {
    if (fields->in != NULL) {
        *fields->in->failed |= !holds;
    }
}
static inline bool fields_failed(const struct fields *fields) {
    return fields->in != NULL && *fields->in->failed;
}

static inline void fields_u64(const struct fields *fields, uint64_t *value) {
    if (fields->out != NULL) {
        varint_put(fields->out, *value);
    } else {
        *value = varint_get(fields->in);
    }
}
static inline void fields_u32(const struct fields *fields, uint32_t *value) {
    uint64_t wide = *value;
    fields_u64(fields, &wide);
    if (fields->in != NULL) {
        *value = (uint32_t)wide;
    }
}
static inline void fields_size(const struct fields *fields, size_t *value) {
    uint64_t wide = *value;
    fields_u64(fields, &wide);
    if (fields->in != NULL) {
        *value = (size_t)wide;
    }
}
static inline void fields_bool(const struct fields *fields, bool *value) {
    uint64_t wide = *value;
    fields_u64(fields, &wide);
    if (fields->in != NULL) {
        *value = wide != 0;
    }
}
static inline void fields_signed(const struct fields *fields, int64_t *value) {
    if (fields->out != NULL) {
        varint_put_signed(fields->out, *value);
    } else {
        *value = varint_get_signed(fields->in);
    }
}
/* Bytes as they are. */
static inline void fields_raw(const struct fields *fields, void *bytes, size_t size) {
    if (fields->out != NULL) {
        varint_put_bytes(fields->out, bytes, size);
    } else {
        const void *at = varint_get_bytes(fields->in, size);
        if (at != NULL) {
            memcpy(bytes, at, size);
        }
    }
}
static inline void fields_double(const struct fields *fields, double *value) {
    fields_raw(fields, value, sizeof *value);
    fields_require(fields, isfinite(*value));
}

/* How many items follow, each of at least so many bytes: no more than there is room for. */
static inline void fields_count(const struct fields *fields, size_t *count, size_t least_bytes,
                                size_t most) {
    fields_size(fields, count);
    if (fields->in != NULL &&
        (*count > most || *count > (size_t)(fields->in->end - fields->in->next) / least_bytes)) {
        *fields->in->failed = true;
        *count = 0;
    }
}

/* A string of bytes, its size before it. */
static inline void fields_bytes(const struct fields *fields, struct varint_writer *bytes) {
    size_t size = bytes->size;
    fields_size(fields, &size);
    if (fields->out != NULL) {
        varint_put_bytes(fields->out, bytes->bytes, size);
    } else {
        const void *at = varint_get_bytes(fields->in, size);
        *bytes = (struct varint_writer){.of_job = true};
        if (at != NULL && size != 0) {
            bytes->bytes = job_copy(at, size, 1);
            bytes->size = bytes->capacity = size;
        }
    }
}

#endif
