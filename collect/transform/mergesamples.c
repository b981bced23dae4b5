/* SPDX-License-Identifier: MIT */
/* mergesamples.c: samples of several processes. See mergesamples.h. */
#include "collect/transform/mergesamples.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_SAMPLES = 1 << 16 };

/* A sample of one process; of its last one a second one follows, all zero: it has ended. */
struct moment {
    struct memtrace_sample sample;
    uint32_t process;
};

struct moments {
    struct moment *items;
    size_t count;
    size_t capacity;
};

static int add(struct moments *moments, const struct memtrace_sample *sample, uint32_t process) {
    if (moments->count == moments->capacity) {
        size_t capacity = moments->capacity != 0 ? moments->capacity * 2 : 1024;
        struct moment *grown = reallocarray(moments->items, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        moments->items = grown;
        moments->capacity = capacity;
    }
    moments->items[moments->count++] = (struct moment){*sample, process};
    return 0;
}

static int add_block(struct moments *moments, const struct mergeprocess *process,
                     const struct recording_buffer *buffer) {
    for (size_t at = 0; at + sizeof(struct memtrace_sample) <= buffer->size;
         at += sizeof(struct memtrace_sample)) {
        struct memtrace_sample sample;
        memcpy(&sample, buffer->bytes + at, sizeof sample);
        sample.time_ns += process->source.shift_ns;
        if (add(moments, &sample, process->number) != 0) {
            return -1;
        }
    }
    return 0;
}

static int add_process(struct moments *moments, const struct mergeprocess *process) {
    struct recording_buffer buffer = {0};
    struct memtrace_sample ended = {.time_ns = process->end_ns};
    size_t before = moments->count;
    int result = 0;
    for (size_t part = 0; part < process->parts.count; part++) {
        const struct recording *recording = process->parts.items[part];
        for (size_t i = 0; i < recording->block_count && result == 0; i++) {
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_SAMPLES &&
                recording_payload(recording, i, &buffer, NULL) == 0) {
                result = add_block(moments, process, &buffer);
            }
        }
    }
    recording_buffer_free(&buffer);
    for (size_t i = before; i < moments->count; i++) {
        uint64_t time_ns = moments->items[i].sample.time_ns;
        ended.time_ns = time_ns >= ended.time_ns ? time_ns + 1 : ended.time_ns;
    }
    return result == 0 && moments->count != before ? add(moments, &ended, process->number) : result;
}

static int compare(const void *left, const void *right) {
    const struct moment *a = left;
    const struct moment *b = right;
    if (a->sample.time_ns != b->sample.time_ns) {
        return a->sample.time_ns < b->sample.time_ns ? -1 : 1;
    }
    return (a->process > b->process) - (a->process < b->process);
}

static struct memtrace_sample sum_of(const struct memtrace_sample *latest, size_t count) {
    struct memtrace_sample sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.resident_bytes += latest[i].resident_bytes;
        sum.swap_bytes += latest[i].swap_bytes;
        sum.virtual_bytes += latest[i].virtual_bytes;
        sum.live_bytes += latest[i].live_bytes;
        sum.cgroup_bytes =
            latest[i].cgroup_bytes > sum.cgroup_bytes ? latest[i].cgroup_bytes : sum.cgroup_bytes;
    }
    return sum;
}

/* The sums at each moment, in the place of the moments' own samples. The caller frees them; NULL:
 * out of memory. */
static struct memtrace_sample *sum_up(const struct moments *moments, size_t processes) {
    struct memtrace_sample *latest = calloc(processes, sizeof *latest);
    struct memtrace_sample *sums = calloc(moments->count + 1, sizeof *sums);
    for (size_t i = 0; i < moments->count && latest != NULL && sums != NULL; i++) {
        latest[moments->items[i].process] = moments->items[i].sample;
        sums[i] = sum_of(latest, processes);
        sums[i].time_ns = moments->items[i].sample.time_ns;
    }
    if (latest == NULL) {
        free(sums);
        sums = NULL;
    }
    free(latest);
    return sums;
}

static int write_sums(struct recordfile *file, const struct memtrace_sample *sums, size_t count,
                      struct error *error) {
    int result = 0;
    for (size_t at = 0; at < count && result == 0; at += BLOCK_SAMPLES) {
        size_t items = count - at < BLOCK_SAMPLES ? count - at : BLOCK_SAMPLES;
        struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_SAMPLES,
                                              .first_ns = sums[at].time_ns,
                                              .last_ns = sums[at + items - 1].time_ns,
                                              .items = (uint32_t)items};
        result = recordfile_append(file, &block, sums + at, items * sizeof *sums, error);
    }
    return result;
}

int mergesamples_write(const struct mergewrite *all, struct recordfile *file, struct error *error) {
    struct moments moments = {0};
    struct memtrace_sample *sums = NULL;
    int result = 0;
    for (size_t i = 0; i < all->count && result == 0; i++) {
        result = add_process(&moments, &all->processes[i]);
    }
    if (result == 0 && moments.count != 0) {
        qsort(moments.items, moments.count, sizeof *moments.items, compare);
        sums = sum_up(&moments, all->count);
    }
    if (result != 0 || (moments.count != 0 && sums == NULL)) {
        result = error_set(error, "out of memory while merging");
    } else {
        result = write_sums(file, sums, moments.count, error);
    }
    free(sums);
    free(moments.items);
    return result;
}
