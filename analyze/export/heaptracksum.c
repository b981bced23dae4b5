/* SPDX-License-Identifier: MIT */
/*
 * heaptracksum.c: a profile has sums and no events, heaptrack's format events and no sums: so
 * events are made up that have these sums. See heaptrack.h.
 *
 * Four phases, each over all contexts:
 *   brief    what neither the maximum nor the end needs begins and ends at once
 *   rise     what was held at the maximum begins: what is kept to the end, then the rest
 *   fall     that rest ends
 *   late     what is held at the end and was not at the maximum begins
 * So the highest sum is that at the end of the second phase, and it is the maximum.
 */
#include "analyze/export/heaptrack.h"

enum { EVENTS_MOST = 200 * 1000 * 1000 };

/* How one context's allocations are shared out. Blocks times bytes: equal ones, as far as may be.
 */
struct share {
    uint64_t blocks;
    uint64_t bytes;
};
struct plan {
    struct share kept;  /* begins in the rise, lives to the end */
    struct share freed; /* begins in the rise, ends in the fall */
    struct share late;
    struct share brief;
    uint64_t temporary;       /* of the brief ones */
    uint64_t temporary_freed; /* of those that the maximum needs */
};

static uint64_t at_most(uint64_t value, uint64_t most) {
    return value < most ? value : most;
}

/* A context that held `peak` bytes at the maximum and holds `live` ones in `blocks` at the end.
 * Where both are the same or one is none, no block more is needed than there were. */
static void plan_living(struct plan *plan, uint64_t peak, uint64_t live, uint64_t blocks) {
    uint64_t early;
    blocks += blocks == 0 && live != 0; /* estimates are rounded */
    if (live == 0 || peak >= live) {
        plan->kept = (struct share){blocks, live};
        plan->freed = (struct share){peak > live, peak - live};
    } else if (peak == 0) {
        plan->late = (struct share){blocks, live};
    } else if (blocks < 2) {
        plan->freed = (struct share){1, peak};
        plan->late = (struct share){blocks, live};
    } else {
        early = (uint64_t)((double)blocks * ((double)peak / (double)live));
        early = early == 0 ? 1 : at_most(early, blocks - 1);
        plan->kept = (struct share){early, peak};
        plan->late = (struct share){blocks - early, live - peak};
    }
}

static struct plan make_plan(const struct model_context *context) {
    struct plan plan = {0};
    struct share used;
    plan_living(&plan, context->peak_bytes, context->live_bytes, context->live_blocks);
    used.blocks = plan.kept.blocks + plan.freed.blocks + plan.late.blocks;
    used.bytes = plan.kept.bytes + plan.freed.bytes + plan.late.bytes;
    plan.brief.blocks = context->allocations > used.blocks ? context->allocations - used.blocks : 0;
    plan.brief.bytes = plan.brief.blocks != 0 && context->total_bytes > used.bytes
                           ? context->total_bytes - used.bytes
                           : 0;
    plan.temporary = at_most(context->temporary, plan.brief.blocks);
    plan.temporary_freed = at_most(context->temporary - plan.temporary, plan.freed.blocks);
    return plan;
}

/* The size of block `i` of a share: the first ones are a byte larger where it does not come out. */
static uint64_t size_of(struct share share, uint64_t i) {
    return share.bytes / share.blocks + (i < share.bytes % share.blocks);
}

static void put_allocs(struct heaptracktext *text, uint32_t context, struct share share) {
    for (uint64_t i = 0; i < share.blocks; i++) {
        heaptracktext_alloc(text, context, size_of(share, i));
    }
}

static void put_frees(struct heaptracktext *text, uint32_t context, struct share share,
                      uint64_t temporary) {
    for (uint64_t i = 0; i < share.blocks; i++) {
        heaptracktext_free(text, context, size_of(share, i), i < temporary);
    }
}

void heaptrack_put_brief(struct heaptracktext *text, uint32_t context, uint64_t count,
                         uint64_t bytes, uint64_t temporary) {
    const struct share share = {count, bytes};
    for (uint64_t i = 0; i < count; i++) {
        heaptracktext_alloc(text, context, size_of(share, i));
        heaptracktext_free(text, context, size_of(share, i), i < temporary);
    }
}

enum phase { PHASE_BRIEF, PHASE_RISE, PHASE_FALL, PHASE_LATE, PHASES };

static void put_phase(struct heaptracktext *text, enum phase phase,
                      const struct model_context *context) {
    struct plan plan = make_plan(context);
    switch (phase) {
    case PHASE_BRIEF:
        heaptrack_put_brief(text, context->id, plan.brief.blocks, plan.brief.bytes, plan.temporary);
        break;
    case PHASE_RISE:
        put_allocs(text, context->id, plan.kept);
        put_allocs(text, context->id, plan.freed);
        break;
    case PHASE_FALL:
        put_frees(text, context->id, plan.freed, plan.temporary_freed);
        break;
    default:
        put_allocs(text, context->id, plan.late);
        break;
    }
}

bool heaptrack_is_too_much(uint64_t blocks) {
    return blocks > EVENTS_MOST;
}

int heaptrack_put_sums(struct heaptracktext *text, struct error *error) {
    const struct model *model = text->model;
    if (heaptrack_is_too_much(model->totals.allocations)) {
        return error_set(error,
                         "heaptrack's format is made of events, which this file does not have, and "
                         "it counts too many to make them up: make a recording with "
                         "`memtrace record`");
    }
    fputs("# made of sums: their order, times and single sizes are not known\n", text->out);
    for (int phase = 0; phase < PHASES; phase++) {
        for (size_t i = 0; i < model->context_count && !text->out_of_memory; i++) {
            if (model->contexts[i].class == MODEL_HEAP) {
                put_phase(text, phase, &model->contexts[i]);
            }
        }
    }
    return 0;
}
