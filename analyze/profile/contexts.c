/* SPDX-License-Identifier: MIT */
/* contexts.c: the sums of a profile or a recording become the contexts of a model. See model.h. */
#include "analyze/profile/load.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more context's buckets; grown by doubling. */
static int reserve_buckets(struct model *model) {
    const size_t size = MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes;
    size_t count = model->lifetime_count;
    uint64_t *grown;
    if ((count & (count - 1)) != 0) {
        return 0;
    }
    grown = realloc(model->lifetimes, (count != 0 ? count * 2 : 1) * size);
    if (grown == NULL) {
        return -1;
    }
    model->lifetimes = grown;
    return 0;
}

uint64_t *contexts_buckets(struct model *model, struct sum *sum) {
    if (sum->lifetimes == 0) {
        if (reserve_buckets(model) != 0) {
            return NULL;
        }
        memset(&model->lifetimes[model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS], 0,
               MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes);
        sum->lifetimes = (uint32_t)++model->lifetime_count;
    }
    return contexts_buckets_of(model, sum);
}

uint32_t contexts_bucket(uint32_t ticks) {
    uint32_t bits = ticks == 0 ? 0 : 32u - (uint32_t)__builtin_clz(ticks);
    uint32_t bucket = (bits + 1) / 2;
    return bucket < MEMTRACE_LIFETIME_BUCKETS ? bucket : MEMTRACE_LIFETIME_BUCKETS - 1;
}

enum model_class contexts_class(uint64_t frame) {
    if (frame == 0 || frame >= MEMTRACE_FRAME_CLASSES || frame == MEMTRACE_FRAME_UNKNOWN) {
        return MODEL_HEAP;
    }
    return frame >= MEMTRACE_FRAME_POOL ? MODEL_POOL : MODEL_MAPPING; /* or of a later writer */
}

static void classify(const struct model *model, struct model_context *context) {
    uint64_t frame = context->frame;
    context->class = contexts_class(frame);
    context->path = frame != 0 ? context->id : 0;
    if (frame != 0 && frame < MEMTRACE_FRAME_CLASSES) {
        context->path = model->nodes[context->id].parent;
        context->pool = context->class == MODEL_POOL ? (uint32_t)(frame - MEMTRACE_FRAME_POOL) : 0;
    }
}

static uint64_t at_most(uint64_t value, uint64_t most) {
    return value < most ? value : most;
}

/* Of all that happened, frees <= allocations holds in every whole profile; cells that the writer
 * was killed in the middle of, and damage, may break it. */
static struct model_context context_from(const struct model *model, uint32_t id,
                                         const struct sum *sum) {
    uint64_t bytes = sum->base_bytes + sum->alloc_bytes;
    uint64_t count = sum->base_count + sum->alloc_count;
    struct model_context context = {
        .id = id,
        .parent = model->nodes[id].parent,
        .frame = model->nodes[id].frame,
        .peak_bytes = sum->peak_bytes <= INT64_MAX ? sum->peak_bytes : 0,
        .total_bytes = sum->alloc_bytes,
        .allocations = sum->alloc_count,
        .freed_bytes = at_most(sum->free_bytes, bytes),
        .frees = at_most(sum->free_count, count),
        .temporary = sum->temporary,
        .lifetimes = sum->lifetimes != 0
                         ? (uint64_t)(sum->lifetimes - 1) * MEMTRACE_LIFETIME_BUCKETS
                         : MODEL_NO_LIFETIMES,
        .total_error_bytes = sum->total_variance,
        .live_error_bytes = sum->live_variance,
        .allocations_error = sum->count_variance,
    };
    context.live_bytes = bytes - context.freed_bytes;
    context.live_blocks = count - context.frees;
    classify(model, &context);
    return context;
}

static bool is_used(const struct sum *sum) {
    return (sum->alloc_count | sum->free_count | sum->alloc_bytes | sum->base_count) != 0;
}

int contexts_make(struct model *model, const struct sum *sums) {
    size_t count = 0;
    for (size_t id = 1; id < model->node_count; id++) {
        count += is_used(&sums[id]);
    }
    model->contexts = calloc(count + 1, sizeof *model->contexts);
    if (model->contexts == NULL) {
        return -1;
    }
    for (size_t id = 1; id < model->node_count; id++) {
        const struct sum *sum = &sums[id];
        if (!is_used(sum)) {
            continue;
        }
        if (sum->free_count > sum->base_count + sum->alloc_count &&
            model->header.state == MEMTRACE_STATE_ENDED) {
            model_damage(model, "context %zu frees more than it allocated", id);
        }
        model->contexts[model->context_count++] = context_from(model, (uint32_t)id, sum);
    }
    return 0;
}
