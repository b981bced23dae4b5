/* SPDX-License-Identifier: MIT */
/* nameblocks.c: blocks of names. See nameblocks.h. */
#include "collect/transform/nameblocks.h"

#include "analyze/base/numbermap.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    BLOCK_ITEMS = 1 << 16,
    BLOCK_TEXT_BYTES = 8 << 20, /* one frame's names may come on top */
};

/* The block that is being filled. text[0] is the empty text. */
struct nameblocks {
    struct recordfile *file;
    struct memtrace_frame_name *items;
    size_t count;
    size_t capacity;
    char *text;
    size_t text_size;
    size_t text_capacity;
    struct numbermap places; /* hash of a text -> its place */
};

struct nameblocks *nameblocks_new(struct recordfile *file) {
    struct nameblocks *blocks = calloc(1, sizeof *blocks);
    if (blocks != NULL) {
        blocks->file = file;
        blocks->text = calloc(1, 1);
        blocks->text_size = blocks->text_capacity = 1;
    }
    if (blocks != NULL && blocks->text == NULL) {
        free(blocks);
        return NULL;
    }
    return blocks;
}

static int no_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* The place of the text, which is added if it is new. 0 or -1 (out of memory). */
static int place_of(struct nameblocks *blocks, const char *text, uint32_t *place) {
    size_t size = text != NULL ? strlen(text) + 1 : 1;
    uint64_t hash;
    uintptr_t known;
    *place = 0;
    if (size == 1) {
        return 0;
    }
    hash = XXH3_64bits(text, size);
    while ((known = (uintptr_t)numbermap_get(&blocks->places, hash)) != 0) {
        if (strcmp(blocks->text + known, text) == 0) {
            *place = (uint32_t)known;
            return 0;
        }
        hash++;
    }
    if (blocks->text_capacity - blocks->text_size < size) {
        size_t capacity = (blocks->text_capacity + size) * 2;
        char *grown = realloc(blocks->text, capacity);
        if (grown == NULL) {
            return -1;
        }
        blocks->text = grown;
        blocks->text_capacity = capacity;
    }
    *place = (uint32_t)blocks->text_size;
    memcpy(blocks->text + blocks->text_size, text, size);
    blocks->text_size += size;
    return numbermap_put(&blocks->places, hash, (void *)(uintptr_t)*place);
}

/* Writes the block and begins the next one. 0 or -1. */
static int flush(struct nameblocks *blocks, struct error *error) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_NAMES,
                                          .items = (uint32_t)blocks->count};
    size_t items_size = blocks->count * sizeof *blocks->items;
    unsigned char *payload;
    int result;
    if (blocks->count == 0) {
        return 0;
    }
    payload = malloc(items_size + blocks->text_size);
    if (payload == NULL) {
        return no_memory(error);
    }
    memcpy(payload, blocks->items, items_size);
    memcpy(payload + items_size, blocks->text, blocks->text_size);
    result =
        recordfile_append(blocks->file, &block, payload, items_size + blocks->text_size, error);
    free(payload);
    blocks->count = 0;
    blocks->text_size = 1;
    numbermap_free(&blocks->places);
    return result;
}

static int make_room(struct nameblocks *blocks, size_t count) {
    size_t capacity = (blocks->count + count) * 2;
    struct memtrace_frame_name *grown;
    if (blocks->capacity - blocks->count >= count) {
        return 0;
    }
    grown = reallocarray(blocks->items, capacity, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    blocks->items = grown;
    blocks->capacity = capacity;
    return 0;
}

int nameblocks_add(struct nameblocks *blocks, const struct framename *names, size_t count,
                   struct error *error) {
    if ((blocks->count + count > BLOCK_ITEMS || blocks->text_size > BLOCK_TEXT_BYTES) &&
        flush(blocks, error) != 0) {
        return -1;
    }
    if (make_room(blocks, count) != 0) {
        return no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        struct memtrace_frame_name *item = &blocks->items[blocks->count + i];
        *item = (struct memtrace_frame_name){
            .frame = names[i].frame, .line = names[i].line, .column = names[i].column};
        if (place_of(blocks, names[i].function, &item->function) != 0 ||
            place_of(blocks, names[i].file, &item->file) != 0) {
            return no_memory(error);
        }
    }
    blocks->count += count;
    return 0;
}

int nameblocks_close(struct nameblocks *blocks, bool finish, struct error *error) {
    int result = finish ? flush(blocks, error) : 0;
    numbermap_free(&blocks->places);
    free(blocks->items);
    free(blocks->text);
    free(blocks);
    return result;
}
