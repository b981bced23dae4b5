/* SPDX-License-Identifier: MIT */
/* framenames.c: blocks of names into one sorted array. See framenames.h. */
#include "analyze/read/framenames.h"

#include "analyze/base/array.h"
#include "analyze/base/search.h"

#include <stdlib.h>
#include <string.h>

/* While it is read: which block an item is from, and its place there. */
struct found {
    struct framename name;
    size_t block;
    size_t place;
};

struct reading {
    struct framenames *names;
    struct found *found;
    size_t count;
    size_t room;
    size_t block;
};

static const char *framenames_text(const char *texts, size_t size, uint32_t offset) {
    return offset < size && texts[offset] != '\0' ? texts + offset : NULL;
}

static int framenames_take_block(struct reading *reading, const struct memtrace_block_header *block,
                                 const struct recording_buffer *buffer) {
    size_t array = (size_t)block->items * sizeof(struct memtrace_frame_name);
    size_t text_size;
    char *texts;
    if (array > buffer->size) {
        return 0; /* does not add up */
    }
    text_size = buffer->size - array;
    texts = arena_alloc(&reading->names->texts, text_size + 1);
    if (texts == NULL ||
        array_reserve(&reading->found, &reading->room, reading->count + block->items,
                      sizeof *reading->found) != 0) {
        return -1;
    }
    if (text_size != 0) {
        memcpy(texts, buffer->bytes + array, text_size);
    }
    texts[text_size] = '\0'; /* whatever the file says */
    reading->block++;
    for (size_t i = 0; i < block->items; i++) {
        struct memtrace_frame_name item;
        memcpy(&item, buffer->bytes + i * sizeof item, sizeof item);
        reading->found[reading->count++] =
            (struct found){{item.frame, framenames_text(texts, text_size, item.function),
                            framenames_text(texts, text_size, item.file), item.line, item.column},
                           reading->block,
                           i};
    }
    return 0;
}

static int take_part(struct reading *reading, const struct recording *recording) {
    struct recording_buffer buffer = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        if (block->kind == MEMTRACE_BLOCK_NAMES &&
            recording_payload(recording, i, &buffer, NULL) == 0) {
            result = framenames_take_block(reading, block, &buffer);
        }
    }
    recording_buffer_free(&buffer);
    return result;
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
static int keep_first(struct reading *reading) {
    struct framenames *names = reading->names;
    size_t block = 0;
    if (reading->count == 0) {
        return 0;
    }
    qsort(reading->found, reading->count, sizeof *reading->found, framenames_compare);
    names->items = malloc(reading->count * sizeof *names->items);
    if (names->items == NULL) {
        return -1;
    }
    for (size_t i = 0; i < reading->count; i++) {
        const struct found *found = &reading->found[i];
        if (i == 0 || found->name.frame != reading->found[i - 1].name.frame) {
            block = found->block;
        }
        if (found->block == block) {
            names->items[names->count++] = found->name;
        }
    }
    return 0;
}

int framenames_read(struct framenames *names, const struct recording *const *parts, size_t count,
                    struct error *error) {
    struct reading reading = {.names = names};
    int result = 0;
    *names = (struct framenames){0};
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = take_part(&reading, parts[i]);
    }
    if (result == 0) {
        result = keep_first(&reading);
    }
    free(reading.found);
    if (result != 0) {
        framenames_free(names);
        return error_set(error, "out of memory while reading names");
    }
    return 0;
}

void framenames_free(struct framenames *names) {
    arena_free(&names->texts);
    free(names->items);
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
