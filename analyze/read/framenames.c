/* SPDX-License-Identifier: MIT */
/* framenames.c: blocks of names into one sorted array. See framenames.h. */
#include "analyze/read/framenames.h"

#include "analyze/base/array.h"
#include "analyze/base/search.h"

#include <string.h>

/* While it is read: which block an item is from, and its place there. */
struct found {
    struct framename name;
    size_t block;
    size_t place;
};

struct reading {
    struct framenames *names;
    const struct recording *const *parts;
    size_t part_count;
    struct recording_buffer buffer;
    struct found *found;
    size_t count;
    size_t room;
    size_t block;
};

static const char *framenames_text(const char *texts, size_t size, uint32_t offset) {
    return offset < size && texts[offset] != '\0' ? texts + offset : NULL;
}

static void framenames_take_block(struct reading *reading, size_t items) {
    const struct recording_buffer *buffer = &reading->buffer;
    size_t array = items * sizeof(struct memtrace_frame_name);
    size_t text_size;
    char *texts;
    if (array > buffer->size) {
        return; /* does not add up */
    }
    text_size = buffer->size - array;
    texts = job_array(text_size + 1, 1); /* it ends in NUL, whatever the file says */
    if (text_size != 0) {
        memcpy(texts, buffer->bytes + array, text_size);
    }
    job_reserve(&reading->found, &reading->room, reading->count + items, sizeof *reading->found);
    reading->block++;
    for (size_t i = 0; i < items; i++) {
        struct memtrace_frame_name item;
        memcpy(&item, buffer->bytes + i * sizeof item, sizeof item);
        reading->found[reading->count++] =
            (struct found){{item.frame, framenames_text(texts, text_size, item.function),
                            framenames_text(texts, text_size, item.file), item.line, item.column},
                           reading->block,
                           i};
    }
}

static int framenames_compare(const void *left, const void *right) {
    const struct found *a = left;
    const struct found *b = right;
    if (a->name.frame != b->name.frame) {
        return a->name.frame < b->name.frame ? -1 : 1;
    }
    if (a->block != b->block) {
        return a->block < b->block ? -1 : 1;
    }
    return (a->place > b->place) - (a->place < b->place);
}

/* Sorted, and of each frame only what its first block says. */
static void framenames_keep_first(struct reading *reading) {
    struct framenames *names = reading->names;
    size_t block = 0;
    array_sort(reading->found, reading->count, sizeof *reading->found, framenames_compare);
    names->items = job_array(reading->count, sizeof *names->items);
    for (size_t i = 0; i < reading->count; i++) {
        const struct found *found = &reading->found[i];
        if (i == 0 || found->name.frame != reading->found[i - 1].name.frame) {
            block = found->block;
        }
        if (found->block == block) {
            names->items[names->count++] = found->name;
        }
    }
}

static void read_names(void *what) {
    struct reading *reading = what;
    for (size_t i = 0; i < reading->part_count; i++) {
        const struct recording *part = reading->parts[i];
        size_t next = 0;
        while (recording_next(part, MEMTRACE_BLOCK_NAMES, &next, &reading->buffer)) {
            framenames_take_block(reading, part->blocks[next - 1].block.items);
        }
    }
    framenames_keep_first(reading);
    job_release(reading->found);
}

int framenames_read(struct framenames *names, const struct recording *const *parts, size_t count,
                    struct error *error) {
    struct reading reading = {.names = names, .parts = parts, .part_count = count};
    int result;
    *names = (struct framenames){0};
    result = job_run(read_names, &reading, &names->memory, error);
    recording_buffer_free(&reading.buffer);
    if (result != 0) {
        *names = (struct framenames){0};
    }
    return result;
}

void framenames_free(struct framenames *names) {
    job_free(&names->memory);
    *names = (struct framenames){0};
}

const struct framename *framenames_find(const struct framenames *names, uint64_t frame,
                                        size_t *count) {
    size_t first = search_below(names->items, names->count, sizeof *names->items,
                                offsetof(struct framename, frame), frame);
    size_t end;
    for (end = first; end < names->count && names->items[end].frame == frame; end++) {
    }
    *count = end - first;
    return *count != 0 ? &names->items[first] : NULL;
}
