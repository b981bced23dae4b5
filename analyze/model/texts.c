/* SPDX-License-Identifier: MIT */
/* texts.c: a hash table over one large piece of memory. See texts.h. */
#include "analyze/model/texts.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

void texts_free(struct texts *texts) {
    free(texts->bytes);
    free(texts->places);
    *texts = (struct texts){0};
}

static size_t hash_of(const char *text, size_t size) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    return (size_t)(hash ^ hash >> 32);
}

/* The place of this text, or the empty one where it belongs. */
static uint32_t *find(const struct texts *texts, const char *text, size_t size) {
    size_t at = hash_of(text, size) & (texts->capacity - 1);
    while (texts->places[at] != 0) {
        const char *kept = texts->bytes + texts->places[at] - 1;
        if (strncmp(kept, text, size) == 0 && kept[size] == '\0') {
            break;
        }
        at = (at + 1) & (texts->capacity - 1);
    }
    return &texts->places[at];
}

static int grow(struct texts *texts) {
    struct texts larger = *texts;
    larger.capacity = texts->capacity != 0 ? texts->capacity * 2 : FIRST_CAPACITY;
    larger.places = calloc(larger.capacity, sizeof *larger.places);
    if (larger.places == NULL) {
        return -1;
    }
    for (size_t i = 0; i < texts->capacity; i++) {
        if (texts->places[i] != 0) {
            const char *kept = texts->bytes + texts->places[i] - 1;
            *find(&larger, kept, strlen(kept)) = texts->places[i];
        }
    }
    free(texts->places);
    *texts = larger;
    return 0;
}

static const char *add(struct texts *texts, uint32_t *place, const char *text, size_t size) {
    char *kept;
    if (texts->bytes == NULL) {
        texts->bytes = malloc(TEXTS_BYTES);
    }
    if (texts->bytes == NULL || size >= TEXTS_BYTES - texts->used) {
        return "";
    }
    kept = texts->bytes + texts->used;
    memcpy(kept, text, size);
    kept[size] = '\0';
    *place = (uint32_t)texts->used + 1;
    texts->used += size + 1;
    texts->count++;
    return kept;
}

const char *texts_keep(struct texts *texts, const char *text, size_t size) {
    uint32_t *place;
    size = text != NULL ? strnlen(text, size) : 0;
    if (size == 0 || (texts->count * 2 >= texts->capacity && grow(texts) != 0)) {
        return "";
    }
    place = find(texts, text, size);
    return *place != 0 ? texts->bytes + *place - 1 : add(texts, place, text, size);
}
