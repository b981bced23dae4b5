/* SPDX-License-Identifier: MIT */
/* texts.c: one large piece of memory, whose texts are found by their hashes. See texts.h. */
#include "analyze/model/texts.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void texts_free(struct texts *texts) {
    free(texts->bytes);
    numbermap_free(&texts->places);
    *texts = (struct texts){0};
}

const char *texts_keep(struct texts *texts, const char *text, size_t size) {
    uint64_t hash;
    char *kept;
    size = text != NULL ? strnlen(text, size) : 0;
    if (size == 0) {
        return "";
    }
    hash = XXH3_64bits(text, size);
    while ((kept = numbermap_get(&texts->places, hash)) != NULL) {
        if (strncmp(kept, text, size) == 0 && kept[size] == '\0') {
            return kept;
        }
        hash++;
    }
    if (texts->bytes == NULL) {
        texts->bytes = malloc(TEXTS_BYTES);
    }
    kept = texts->bytes + texts->used;
    if (texts->bytes == NULL || size >= TEXTS_BYTES - texts->used ||
        numbermap_put(&texts->places, hash, kept) != 0) {
        return "";
    }
    memcpy(kept, text, size);
    kept[size] = '\0';
    texts->used += size + 1;
    texts->count++;
    return kept;
}
