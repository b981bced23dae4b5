/* SPDX-License-Identifier: MIT */
/* hash.c: a name for a call path that outlives the run: model_hash. See model.h. */
#include "analyze/model/model.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

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
