/* SPDX-License-Identifier: MIT */
/* model.c: see model.h. */
#include "analyze/model/model.h"

#include "analyze/base/job.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- One of them ---- */

struct model_making {
    void (*make)(struct model *model, void *what);
    void *what;
    struct model *model;
};

static void model_make_in_job(void *what) {
    struct model_making *making = what;
    making->model = job_alloc(sizeof *making->model);
    making->make(making->model, making->what);
}

struct model *model_make(void (*make)(struct model *model, void *what), void *what,
                         struct error *error) {
    struct model_making making = {.make = make, .what = what};
    struct job_memory *memory = NULL;
    if (job_run(model_make_in_job, &making, &memory, error) != 0) {
        return NULL;
    }
    making.model->memory = memory;
    return making.model;
}

void model_free(struct model *model) {
    struct job_memory *memory = model != NULL ? model->memory : NULL;
    job_free(&memory);
}

static void model_undo(void *model) {
    model_free(model);
}

void model_goes_with_job(struct model *model) {
    job_undo(model_undo, model);
}

/* ---- Look-ups ---- */

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
    place.called =
        place.address - ((frame & MEMTRACE_FRAME_EXACT) != 0 || place.address == 0 ? 0 : 1);
    place.offset = place.called;
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
static uint64_t model_hash_frame(const struct model *model, uint64_t hash, uint64_t frame) {
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
        hash = model_hash_frame(model, hash, model->nodes[id].frame);
        id = model->nodes[id].parent;
    }
    return hash;
}

/* ---- What threads freed of each other ---- */

static void foreign_forget_places(struct foreign *foreign) {
    job_release(foreign->places.entries);
    foreign->places = (struct numbermap){0};
}

void foreign_free(struct foreign *foreign) {
    foreign_forget_places(foreign);
    job_release(foreign->pairs);
    *foreign = (struct foreign){0};
}

static uint64_t foreign_key(const struct model_foreign *pair) {
    return (uint64_t)pair->freer << 32 | pair->owner;
}

static void foreign_put_place(struct foreign *foreign, size_t index) {
    numbermap_set(&foreign->places, foreign_key(&foreign->pairs[index]),
                  (void *)(uintptr_t)(index + 1));
}

void foreign_add(struct foreign *foreign, struct model_foreign more) {
    uintptr_t place;
    if (foreign->places.used != foreign->count) { /* since they were sorted */
        for (size_t i = 0; i < foreign->count; i++) {
            foreign_put_place(foreign, i);
        }
    }
    place = (uintptr_t)numbermap_get(&foreign->places, foreign_key(&more));
    if (place != 0) {
        foreign->pairs[place - 1].blocks += more.blocks;
        foreign->pairs[place - 1].bytes += more.bytes;
        return;
    }
    job_grow(&foreign->pairs, &foreign->room, foreign->count, sizeof *foreign->pairs);
    foreign->pairs[foreign->count] = more;
    foreign_put_place(foreign, foreign->count++);
}

static int foreign_compare(const void *left, const void *right) {
    uint64_t a = foreign_key(left);
    uint64_t b = foreign_key(right);
    return (a > b) - (a < b);
}

void foreign_sort(struct foreign *foreign) {
    if (foreign->count != 0) {
        qsort(foreign->pairs, foreign->count, sizeof *foreign->pairs, foreign_compare);
        foreign_forget_places(foreign);
    }
}

void foreign_give(struct foreign *foreign, struct model *model) {
    foreign_sort(foreign);
    model->foreign = job_copy(foreign->pairs, foreign->count, sizeof *model->foreign);
    model->foreign_count = foreign->count;
}

void foreign_clear(struct foreign *foreign) {
    foreign->count = 0;
    foreign_forget_places(foreign);
}
