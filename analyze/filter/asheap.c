/* SPDX-License-Identifier: MIT */
/* asheap.c: see asheap.h. */
#include "analyze/filter/asheap.h"

#include "analyze/profile/load.h"

#include <stdlib.h>

int asheap_make(const struct model *model, uint32_t classes, struct model *heap) {
    *heap = *model;
    heap->contexts = calloc(model->context_count + 1, sizeof *heap->contexts);
    heap->context_count = 0;
    heap->totals = (struct model_totals){.maximum_error_bytes = model->totals.maximum_error_bytes,
                                         .lost = model->totals.lost};
    if (heap->contexts == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        struct model_context *context = &heap->contexts[heap->context_count];
        if ((classes & 1u << model->contexts[i].class) != 0) {
            *context = model->contexts[i];
            context->class = MODEL_HEAP;
            model_add_context(&heap->totals, context);
            heap->context_count++;
        }
    }
    return 0;
}

void asheap_free(struct model *heap) {
    free(heap->contexts);
    *heap = (struct model){0};
}
