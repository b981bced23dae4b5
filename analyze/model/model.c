/* SPDX-License-Identifier: MIT */
/* model.c: look-ups, and the end of a model. See model.h. */
#include "analyze/model/model.h"

#include <stdlib.h>

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
    free(model->pools);
    free(model->timeline);
    free(model->marks);
    free(model->children);
    free(model->child_paths);
    free(model->mark_names);
    if (model->index != NULL) {
        model->free_index(model->index);
    }
    free(model);
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
