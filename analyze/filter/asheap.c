/* SPDX-License-Identifier: MIT */
/* asheap.c: see asheap.h. */
#include "analyze/filter/asheap.h"

#include "analyze/profile/load.h"

#include <stdlib.h>

int asheap_make(const struct model *model, uint32_t classes, struct model *recast) {
    *recast = *model;
    recast->contexts = calloc(model->context_count + 1, sizeof *recast->contexts);
    recast->context_count = 0;
    recast->totals = (struct model_totals){.maximum_error_bytes = model->totals.maximum_error_bytes,
                                           .lost = model->totals.lost};
    if (recast->contexts == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        struct model_context *context = &recast->contexts[recast->context_count];
        if ((classes & 1u << model->contexts[i].class) != 0) {
            *context = model->contexts[i];
            context->class = MODEL_HEAP;
            model_add_context(&recast->totals, context);
            recast->context_count++;
        }
    }
    return 0;
}

void asheap_free(struct model *recast) {
    free(recast->contexts);
    *recast = (struct model){0};
}
