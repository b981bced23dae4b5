/* SPDX-License-Identifier: MIT */
/* model.c: look-ups, and the end of a model. See model.h. */
#include "analyze/model/model.h"

#include "analyze/base/array.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void model_free(struct model *model) {
    if (model == NULL) {
        return;
    }
    free(model->nodes);
    free(model->contexts);
    free(model->lifetimes);
    free(model->threads);
    free(model->foreign);
    free(model->modules);
    free(model->strings);
    free(model->long_strings);
    free(model->pools);
    free(model->pool_rooms);
    free(model->timeline);
    free(model->marks);
    free(model->gaps);
    free(model->thinned);
    free(model->children);
    free(model->child_paths);
    free(model->mark_names);
    if (model->index != NULL) {
        model->free_index(model->index);
    }
    free(model);
}

bool model_is_left(const struct model *model) {
    return (model->header.flags & MEMTRACE_FLAG_LEFT) != 0;
}

bool model_is_unfinished(const struct model *model) {
    return model->recording.present && !model->recording.closed && !model->live;
}

const char *model_end_word(const struct model *model) {
    switch (model->header.state) {
    case MEMTRACE_STATE_ENDED:
        return model_is_left(model) ? "detached" : "ended";
    case MEMTRACE_STATE_EXECED:
        return "execed";
    case MEMTRACE_STATE_COPIED:
        return "copied";
    default:
        return model->live ? "running" : "killed";
    }
}

bool model_has_leaks(const struct model *model) {
    return !model->live && !model_is_left(model) && model->to_ns == UINT64_MAX;
}

const struct model_context *model_find(const struct model *model, uint32_t id) {
    size_t low = 0;
    size_t high = model != NULL ? model->context_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->contexts[middle].id == id) {
            return &model->contexts[middle];
        }
        if (model->contexts[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

struct model_place model_place(const struct model *model, uint64_t frame) {
    struct model_place place = {0};
    uint32_t module = (uint32_t)(frame >> MEMTRACE_FRAME_MODULE_SHIFT) & MEMTRACE_FRAME_MODULE_MASK;
    place.address = frame & MEMTRACE_FRAME_ADDRESS_MASK;
    place.exact = (frame & MEMTRACE_FRAME_EXACT) != 0;
    place.offset = place.address - (place.exact || place.address == 0 ? 0 : 1);
    if (module < model->module_count && model->modules[module].path[0] != '\0') {
        place.module = module;
        place.offset -= model->modules[module].bias;
    }
    return place;
}

const char *model_class_name(const struct model *model, const struct model_context *context) {
    switch (context->class) {
    case MODEL_MAPPING:
        return "mapping";
    case MODEL_POOL:
        return context->pool < model->pool_count && model->pools[context->pool][0] != '\0'
                   ? model->pools[context->pool]
                   : "unnamed pool";
    default:
        return "heap";
    }
}

/* ---- A name for a call path that outlives the run ---- */

/* What one frame adds: which file (by build-id, so that a copy elsewhere is the same; else by
 * path), and where in it. */
static uint64_t add_frame(const struct model *model, uint64_t hash, uint64_t frame) {
    struct model_place place = model_place(model, frame);
    if (frame < MEMTRACE_FRAME_CLASSES) {
        if (frame >= MEMTRACE_FRAME_POOL && frame - MEMTRACE_FRAME_POOL < model->pool_count) {
            const char *name = model->pools[frame - MEMTRACE_FRAME_POOL];
            return XXH3_64bits_withSeed(name, strlen(name), hash);
        }
        return XXH3_64bits_withSeed(&frame, sizeof frame, hash);
    }
    if (place.module != 0) {
        const struct model_module *module = &model->modules[place.module];
        hash = module->build_id_size != 0
                   ? XXH3_64bits_withSeed(module->build_id, module->build_id_size, hash)
                   : XXH3_64bits_withSeed(module->path, strlen(module->path), hash);
    }
    return XXH3_64bits_withSeed(&place.offset, sizeof place.offset, hash);
}

/* From the innermost frame out. Ids fall on the way, so this ends. */
uint64_t model_hash(const struct model *model, uint32_t id) {
    uint64_t hash = 0;
    while (id != 0 && id < model->node_count) {
        hash = add_frame(model, hash, model->nodes[id].frame);
        id = model->nodes[id].parent;
    }
    return hash;
}

/* ---- What threads freed of each other ---- */

void foreign_free(struct foreign *foreign) {
    free(foreign->pairs);
    numbermap_free(&foreign->places);
    *foreign = (struct foreign){0};
}

static uint64_t key_of(const struct model_foreign *pair) {
    return (uint64_t)pair->freer << 32 | pair->owner;
}

static int put_place(struct foreign *foreign, size_t index) {
    return numbermap_put(&foreign->places, key_of(&foreign->pairs[index]),
                         (void *)(uintptr_t)(index + 1));
}

/* After sorting the places are no longer known. */
static int find_places_again(struct foreign *foreign) {
    for (size_t i = 0; i < foreign->count; i++) {
        if (put_place(foreign, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static struct model_foreign *append(struct foreign *foreign, uint32_t freer, uint32_t owner) {
    if (array_grow(&foreign->pairs, &foreign->room, foreign->count, sizeof *foreign->pairs) != 0) {
        return NULL;
    }
    foreign->pairs[foreign->count] = (struct model_foreign){.freer = freer, .owner = owner};
    if (put_place(foreign, foreign->count) != 0) {
        return NULL;
    }
    return &foreign->pairs[foreign->count++];
}

int foreign_add(struct foreign *foreign, struct model_foreign more) {
    struct model_foreign *pair;
    uintptr_t place;
    if (foreign->places.used != foreign->count && find_places_again(foreign) != 0) {
        return -1;
    }
    place = (uintptr_t)numbermap_get(&foreign->places, key_of(&more));
    pair = place != 0 ? &foreign->pairs[place - 1] : append(foreign, more.freer, more.owner);
    if (pair == NULL) {
        return -1;
    }
    pair->blocks += more.blocks;
    pair->bytes += more.bytes;
    return 0;
}

static int compare(const void *left, const void *right) {
    uint64_t a = key_of(left);
    uint64_t b = key_of(right);
    return (a > b) - (a < b);
}

void foreign_sort(struct foreign *foreign) {
    if (foreign->count != 0) {
        qsort(foreign->pairs, foreign->count, sizeof *foreign->pairs, compare);
        numbermap_free(&foreign->places);
    }
}

void foreign_clear(struct foreign *foreign) {
    foreign->count = 0;
    numbermap_free(&foreign->places);
}
