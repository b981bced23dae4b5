/* SPDX-License-Identifier: MIT */
/* contextfilter.c: patterns, depth, class, group: what holds for a whole call path. Parents stand
 * before their children, so that each node is looked at once. See contextfilter.h. */
#include "analyze/filter/contextfilter.h"

#include <stdlib.h>
#include <string.h>

/* ---- Patterns ---- */

static bool found_in(const struct selection_pattern *pattern, const char *text) {
    return text != NULL && regexec(&pattern->regex, text, 0, NULL, 0) == 0;
}

/* A function without a name goes by what reports show in its place. */
static bool found_in_function(const struct selection_pattern *pattern,
                              const struct names_frame *frame) {
    char buffer[512];
    return found_in(pattern, frame->function != NULL ? frame->function
                                                     : names_spell(frame, buffer, sizeof buffer));
}

static bool found_in_module(const struct selection_pattern *pattern, const struct model *model,
                            uint64_t frame) {
    return found_in(pattern, model->modules[model_place(model, frame).module].path);
}

static bool found_in_frame(const struct selection_pattern *pattern, const struct model *model,
                           const struct names *names, uint64_t frame) {
    size_t count;
    const struct names_frame *frames;
    bool found = false;
    if (pattern->part == SELECTION_MODULE) {
        return found_in_module(pattern, model, frame);
    }
    frames = names_frames(names, frame, &count);
    for (size_t i = 0; !found && i < count; i++) {
        found = pattern->part == SELECTION_FUNCTION ? found_in_function(pattern, &frames[i])
                                                    : found_in(pattern, frames[i].file);
    }
    return found;
}

/* A frame that stands at many nodes is matched once. */
struct verdict {
    uint64_t frame;
    bool found;
};

static int by_frame(const void *left, const void *right) {
    const struct verdict *a = left;
    const struct verdict *b = right;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* The different frames of the model, sorted, each with what the pattern says. */
static size_t judge_frames(struct verdict *verdicts, const struct selection_pattern *pattern,
                           const struct model *model, const struct names *names) {
    size_t count = 0;
    for (size_t id = 1; id < model->node_count; id++) {
        verdicts[id - 1].frame = model->nodes[id].frame;
    }
    qsort(verdicts, model->node_count - 1, sizeof *verdicts, by_frame);
    for (size_t i = 0; i + 1 < model->node_count; i++) {
        uint64_t frame = verdicts[i].frame;
        if (count != 0 && verdicts[count - 1].frame == frame) {
            continue;
        }
        verdicts[count].frame = frame;
        verdicts[count++].found =
            frame >= MEMTRACE_FRAME_CLASSES && found_in_frame(pattern, model, names, frame);
    }
    return count;
}

/* rejected[id] is set where the pattern does not hold for the path that ends in node `id`. */
static int reject_by_pattern(bool *rejected, const struct selection_pattern *pattern,
                             const struct model *model, const struct names *names) {
    struct verdict *verdicts = calloc(model->node_count, sizeof *verdicts);
    bool *found = calloc(model->node_count, sizeof *found);
    bool can = verdicts != NULL && found != NULL &&
               (pattern->part == SELECTION_MODULE || names_prepare_all(names) == 0);
    if (can) {
        size_t count = judge_frames(verdicts, pattern, model, names);
        for (size_t id = 1; id < model->node_count; id++) {
            struct verdict key = {.frame = model->nodes[id].frame};
            found[id] = found[model->nodes[id].parent];
            if (!found[id]) {
                const struct verdict *verdict =
                    bsearch(&key, verdicts, count, sizeof *verdicts, by_frame);
                found[id] = verdict != NULL && verdict->found;
            }
            rejected[id] |= found[id] == pattern->negative;
        }
    }
    free(verdicts);
    free(found);
    return can ? 0 : -1;
}

/* ---- Depth ---- */

/* Frames that tell a class are no code and do not count. */
static int reject_by_depth(bool *rejected, struct selection_range range,
                           const struct model *model) {
    uint32_t *depths = calloc(model->node_count, sizeof *depths);
    if (depths == NULL) {
        return -1;
    }
    for (size_t id = 1; id < model->node_count; id++) {
        uint64_t frame = model->nodes[id].frame;
        bool is_frame = frame >= MEMTRACE_FRAME_CLASSES || frame == MEMTRACE_FRAME_UNKNOWN;
        depths[id] = depths[model->nodes[id].parent] + is_frame;
        rejected[id] |= depths[id] < range.least || depths[id] > range.most;
    }
    free(depths);
    return 0;
}

/* ---- One context ---- */

static bool is_within(uint64_t value, struct selection_range range) {
    return range.least <= value && value <= range.most;
}

static bool holds_for_group(const struct selection *selection,
                            const struct model_context *context) {
    return is_within(context->allocations, selection->group_allocations) &&
           is_within(context->total_bytes, selection->group_bytes) &&
           is_within(context->live_blocks, selection->group_live_blocks) &&
           is_within(context->live_bytes, selection->group_live_bytes);
}

static bool is_of_pool(const struct model *model, const struct model_context *context,
                       const char *pool) {
    return context->class == MODEL_POOL && strcmp(model_class_name(model, context), pool) == 0;
}

static bool holds(const struct selection *selection, const struct model *model,
                  const struct model_context *context) {
    return (selection->classes == 0 || (selection->classes >> context->class & 1) != 0) &&
           (selection->pool == NULL || is_of_pool(model, context, selection->pool)) &&
           holds_for_group(selection, context) &&
           (selection->path == 0 || model_hash(model, context->id) == selection->path);
}

static int reject(bool *rejected, const struct selection *selection, const struct model *model,
                  const struct names *names) {
    struct selection_range depth = selection->depth;
    if (model->node_count < 2) {
        return 0;
    }
    for (size_t i = 0; i < selection->pattern_count; i++) {
        if (reject_by_pattern(rejected, &selection->patterns[i], model, names) != 0) {
            return -1;
        }
    }
    return depth.least != 0 || depth.most != UINT64_MAX ? reject_by_depth(rejected, depth, model)
                                                        : 0;
}

uint32_t *contextfilter_choose(const struct selection *selection, const struct model *whole,
                               const struct names *names) {
    uint32_t *places = calloc(whole->node_count + 1, sizeof *places);
    bool *rejected = calloc(whole->node_count + 1, sizeof *rejected);
    if (places == NULL || rejected == NULL || reject(rejected, selection, whole, names) != 0) {
        free(places);
        free(rejected);
        return NULL;
    }
    for (size_t i = 0; i < whole->context_count; i++) {
        const struct model_context *context = &whole->contexts[i];
        if (!rejected[context->id] && holds(selection, whole, context)) {
            places[context->id] = (uint32_t)i + 1;
        }
    }
    free(rejected);
    return places;
}
