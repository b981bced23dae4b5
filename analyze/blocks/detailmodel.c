/* SPDX-License-Identifier: MIT */
/* detailmodel.c: what single blocks told becomes the costs of a model. See detail.h. */
#include "analyze/blocks/detail.h"
#include "analyze/profile/load.h"

#include <stdlib.h>
#include <string.h>

static void put(struct model_context *context, const struct detail_context *told,
                enum detail_part part) {
    if (part == DETAIL_SHUTDOWN) {
        context->live_bytes = told != NULL ? told->shutdown_bytes : 0;
        context->live_blocks = told != NULL ? told->shutdown_blocks : 0;
    } else {
        context->temporary = told != NULL ? told->short_blocks : 0;
    }
}

int detail_derive(const struct detail *detail, enum detail_part part, const struct model *model,
                  struct model *derived) {
    struct model_context *contexts = calloc(model->context_count + 1, sizeof *contexts);
    struct model_totals *totals = &derived->totals;
    if (contexts == NULL) {
        return -1;
    }
    memcpy(contexts, model->contexts, model->context_count * sizeof *contexts);
    *derived = *model;
    derived->contexts = contexts;
    totals->live_bytes = part == DETAIL_SHUTDOWN ? 0 : totals->live_bytes;
    totals->live_blocks = part == DETAIL_SHUTDOWN ? 0 : totals->live_blocks;
    totals->temporary = part == DETAIL_SHORT ? 0 : totals->temporary;
    for (size_t i = 0; i < derived->context_count; i++) {
        struct model_context *context = &contexts[i];
        if (context->class != MODEL_HEAP) {
            continue;
        }
        put(context, detail_find(detail, context->id), part);
        if (part == DETAIL_SHUTDOWN) {
            totals->live_bytes = model_add(totals->live_bytes, context->live_bytes);
            totals->live_blocks = model_add(totals->live_blocks, context->live_blocks);
        } else {
            totals->temporary = model_add(totals->temporary, context->temporary);
        }
    }
    return 0;
}

void detail_derived_free(struct model *derived) {
    free(derived->contexts);
    *derived = (struct model){0};
}
