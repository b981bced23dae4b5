/* SPDX-License-Identifier: MIT */
/* suppressed.c: which contexts suppressions take out of a model. See suppressions.h. */
#include "analyze/base/numbermap.h"
#include "analyze/filter/suppressions.h"
#include "analyze/profile/load.h"

#include <stdlib.h>
#include <string.h>

enum { NO_MATCH = 0 }; /* else the place in the list + 1 */

struct matching {
    struct suppressions *list;
    const struct model *model;
    const struct names *names;
    uint32_t *node_match;      /* by node: of its path */
    unsigned char *node_asked; /* by node: whether something hangs below it */
    struct numbermap frames;   /* by frame (and its caller's where that counts): its match + 1 */
    bool out_of_memory;
};

/* ---- One frame ---- */

static bool matches_frame(const char *pattern, const struct names_frame *frame) {
    return (frame->function != NULL && suppressions_match(pattern, frame->function)) ||
           (frame->file != NULL && suppressions_match(pattern, frame->file)) ||
           (frame->module[0] != '\0' && suppressions_match(pattern, frame->module));
}

static bool matches_any(const struct matching *matching, const char *pattern, uint64_t recorded) {
    size_t count;
    const struct names_frame *frames;
    if (recorded < MEMTRACE_FRAME_CLASSES) {
        return false;
    }
    frames = names_frames(matching->names, recorded, &count);
    for (size_t i = 0; i < count; i++) {
        if (matches_frame(pattern, &frames[i])) {
            return true;
        }
    }
    return false;
}

static uint32_t look_up(const struct matching *matching, uint64_t frame, uint64_t caller) {
    const struct suppressions *list = matching->list;
    for (size_t i = 0; i < list->count; i++) {
        const struct suppression *item = &list->items[i];
        if (matches_any(matching, item->pattern, frame) &&
            (item->caller == NULL || matches_any(matching, item->caller, caller))) {
            return (uint32_t)i + 1;
        }
    }
    return NO_MATCH;
}

/* Frames come again and again, with a few callers each. */
static uint32_t match_of(struct matching *matching, uint64_t frame, uint64_t caller) {
    uint64_t key = frame * UINT64_C(0x9e3779b97f4a7c15) ^ caller;
    uintptr_t known = (uintptr_t)numbermap_get(&matching->frames, key);
    if (known == 0) {
        known = (uintptr_t)look_up(matching, frame, caller) + 1;
        matching->out_of_memory |= numbermap_put(&matching->frames, key, (void *)known) != 0;
    }
    return (uint32_t)(known - 1);
}

/* ---- All paths ---- */

static bool may_leak(const struct model_context *context) {
    return context->class == MODEL_HEAP && (context->live_bytes | context->live_blocks) != 0;
}

/* Only paths of leaks are looked at: names are found when they are asked for. */
static void mark_asked(struct matching *matching) {
    const struct model *model = matching->model;
    for (size_t i = 0; i < model->context_count; i++) {
        if (may_leak(&model->contexts[i])) {
            matching->node_asked[model->contexts[i].path] = 1;
        }
    }
    for (size_t id = model->node_count; id-- > 1;) {
        matching->node_asked[model->nodes[id].parent] |= matching->node_asked[id];
    }
}

/* The innermost frame that matches counts. Parents come first, so each node is one step. */
static void match_nodes(struct matching *matching) {
    const struct model_node *nodes = matching->model->nodes;
    for (size_t id = 1; id < matching->model->node_count && !matching->out_of_memory; id++) {
        uint32_t parent = nodes[id].parent;
        uint32_t own;
        if (!matching->node_asked[id]) {
            continue;
        }
        own = match_of(matching, nodes[id].frame, parent != 0 ? nodes[parent].frame : 0);
        matching->node_match[id] = own != NO_MATCH ? own : matching->node_match[parent];
    }
}

static void suppress(struct matching *matching, struct model *applied) {
    struct suppressions *list = matching->list;
    for (size_t i = 0; i < applied->context_count; i++) {
        struct model_context *context = &applied->contexts[i];
        uint32_t match = may_leak(context) ? matching->node_match[context->path] : NO_MATCH;
        struct suppression *item = match != NO_MATCH ? &list->items[match - 1] : NULL;
        if (item == NULL) {
            continue;
        }
        item->bytes = model_add(item->bytes, context->live_bytes);
        item->blocks = model_add(item->blocks, context->live_blocks);
        item->contexts++;
        list->bytes = model_add(list->bytes, context->live_bytes);
        list->blocks = model_add(list->blocks, context->live_blocks);
        applied->totals.live_bytes -= context->live_bytes;
        applied->totals.live_blocks -= context->live_blocks;
        context->live_bytes = 0;
        context->live_blocks = 0;
    }
}

static void forget_counts(struct suppressions *list) {
    list->bytes = 0;
    list->blocks = 0;
    for (size_t i = 0; i < list->count; i++) {
        list->items[i].bytes = 0;
        list->items[i].blocks = 0;
        list->items[i].contexts = 0;
    }
}

int suppressions_apply(struct suppressions *suppressions, const struct model *model,
                       const struct names *names, struct model *applied, struct error *error) {
    struct matching matching = {.list = suppressions,
                                .model = model,
                                .names = names,
                                .node_match = calloc(model->node_count, sizeof(uint32_t)),
                                .node_asked = calloc(model->node_count, 1)};
    struct model_context *contexts = calloc(model->context_count + 1, sizeof *contexts);
    bool is_good = contexts != NULL && matching.node_match != NULL && matching.node_asked != NULL;
    forget_counts(suppressions);
    *applied = *model;
    applied->contexts = contexts;
    if (is_good) {
        memcpy(contexts, model->contexts, model->context_count * sizeof *contexts);
        mark_asked(&matching);
        match_nodes(&matching);
        is_good = !matching.out_of_memory;
    }
    if (is_good) {
        suppress(&matching, applied);
    } else {
        suppressions_applied_free(applied);
    }
    free(matching.node_match);
    free(matching.node_asked);
    numbermap_free(&matching.frames);
    return is_good ? 0 : error_set(error, "out of memory while looking for suppressed leaks");
}

void suppressions_applied_free(struct model *applied) {
    free(applied->contexts);
    *applied = (struct model){0};
}
