/* SPDX-License-Identifier: MIT */
/* varint.c: the rare halves of varint.h. */
#include "analyze/read/varint.h"

#include "analyze/base/job.h"

#include <stdlib.h>

int varint_reserve(struct varint_writer *writer, size_t more) {
    size_t capacity = writer->capacity != 0 ? writer->capacity * 2 : 4096;
    unsigned char *grown;
    if (writer->of_job) {
        job_reserve(&writer->bytes, &writer->capacity, writer->size + more, 1);
        return 0;
    }
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

unsigned char *varint_keep(struct varint_writer *writer) {
    unsigned char *kept = NULL;
    if (!writer->failed) {
        kept = job_array(writer->size + 1, 1);
        if (writer->size != 0) {
            memcpy(kept, writer->bytes, writer->size);
        }
    }
    if (writer->of_job) {
        job_release(writer->bytes);
    } else {
        free(writer->bytes);
    }
    if (kept == NULL) {
        job_fail_memory();
    }
    *writer = (struct varint_writer){.of_job = writer->of_job};
    return kept;
}

uint64_t varint_get_rest(struct varint_reader *reader, uint64_t low) {
    for (unsigned shift = 7; shift < 64 && reader->next != reader->end; shift += 7) {
        uint64_t byte = *reader->next++;
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

uint64_t varint_take_long(const unsigned char **at, bool *failed) {
    struct varint_reader reader = {.next = *at, .end = *at + VARINT_MOST, .failed = failed};
    uint64_t value = varint_get(&reader);
    *at = reader.next;
    return value;
}

void varint_join(const struct varint_writer *columns, size_t count, struct varint_writer *payload) {
    for (size_t i = 0; i < count; i++) {
        uint32_t size = (uint32_t)columns[i].size;
        payload->failed |= columns[i].failed || columns[i].size > UINT32_MAX;
        varint_put_bytes(payload, &size, sizeof size);
    }
    for (size_t i = 0; i < count; i++) {
        varint_put_bytes(payload, columns[i].bytes, columns[i].size);
    }
}

int varint_split(const void *payload, size_t size, struct varint_reader *columns, size_t count,
                 bool *failed) {
    const unsigned char *bytes = payload;
    size_t offset = count * sizeof(uint32_t);
    if (size < offset) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t length;
        memcpy(&length, bytes + i * sizeof length, sizeof length);
        if (length > size - offset) {
            return -1;
        }
        columns[i] = (struct varint_reader){
            .next = bytes + offset, .end = bytes + offset + length, .failed = failed};
        offset += length;
    }
    return offset == size ? 0 : -1;
}
