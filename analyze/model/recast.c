/* SPDX-License-Identifier: MIT */
/* recast.c: see recast.h. */
#include "analyze/model/recast.h"

#include "analyze/model/load.h"

#include <stdlib.h>

static void add_up(struct model_totals *totals, const struct model_context *context) {
    totals->maximum_bytes = model_add(totals->maximum_bytes, context->peak_bytes);
    totals->live_bytes = model_add(totals->live_bytes, context->live_bytes);
    totals->live_blocks = model_add(totals->live_blocks, context->live_blocks);
    totals->total_bytes = model_add(totals->total_bytes, context->total_bytes);
    totals->allocations = model_add(totals->allocations, context->allocations);
    totals->freed_bytes = model_add(totals->freed_bytes, context->freed_bytes);
    totals->frees = model_add(totals->frees, context->frees);
    totals->temporary = model_add(totals->temporary, context->temporary);
    totals->context_count += context->allocations != 0;
}

int recast_make(const struct model *model, uint32_t classes, struct model *recast) {
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
            add_up(&recast->totals, context);
            recast->context_count++;
        }
    }
    return 0;
}

void recast_free(struct model *recast) {
    free(recast->contexts);
    *recast = (struct model){0};
}
