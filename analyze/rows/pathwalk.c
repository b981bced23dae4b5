/* SPDX-License-Identifier: MIT */
/* pathwalk.c: see pathwalk.h. */
#include "analyze/rows/pathwalk.h"

#include "analyze/model/names.h"
#include "analyze/model/roles.h"

#include <string.h>

/* ---- Which functions ---- */

bool pathwalk_is_startup(const struct names_frame *frame) {
    return (frame->roles & ROLES_STARTUP) != 0;
}

bool pathwalk_is_unnamed_libc(const struct names_frame *frame) {
    const char *slash = strrchr(frame->module, '/');
    return frame->function == NULL &&
           strcmp(slash != NULL ? slash + 1 : frame->module, "libc.so.6") == 0;
}

bool pathwalk_is_library(const struct names_frame *frame) {
    return (frame->roles & ROLES_LIBRARY) != 0;
}

bool pathwalk_is_main(const struct names_frame *frame) {
    return (frame->roles & ROLES_MAIN) != 0;
}

/* ---- Walking one path ---- */

static const struct model_node *pathwalk_node_of(const struct pathwalk *walk) {
    return &walk->report->model->nodes[walk->node];
}

/* Whether the walk stands on the start of the program or a thread: nothing but it is further out.
 */
static bool is_at_startup(const struct pathwalk *walk) {
    uint32_t node = walk->node;
    if (!pathwalk_is_unnamed_libc(walk->frame)) {
        return pathwalk_is_startup(walk->frame);
    }
    while (node != 0) {
        const struct model_node *at = &walk->report->model->nodes[node];
        size_t count;
        const struct names_frame *frames = names_frames(walk->report->names, at->frame, &count);
        for (size_t i = 0; at->frame >= MEMTRACE_FRAME_CLASSES && i < count; i++) {
            if (!pathwalk_is_unnamed_libc(&frames[i])) {
                return pathwalk_is_startup(&frames[i]);
            }
        }
        node = at->parent;
    }
    return true;
}

/* The frame the walk stands on; past the end: NULL. */
static void pathwalk_settle(struct pathwalk *walk) {
    size_t count;
    const struct names_frame *frames;
    walk->frame = NULL;
    while (walk->node != 0) {
        uint64_t recorded = pathwalk_node_of(walk)->frame;
        frames = names_frames(walk->report->names, recorded, &count);
        if (recorded >= MEMTRACE_FRAME_CLASSES && walk->index < count) {
            walk->frame = &frames[walk->index];
            break;
        }
        walk->node = pathwalk_node_of(walk)->parent;
        walk->index = 0;
    }
    if (walk->frame != NULL && walk->steps > 0 && !walk->report->options.all_frames &&
        is_at_startup(walk)) {
        walk->frame = NULL;
        walk->node = 0;
    }
}

static void pathwalk_step(struct pathwalk *walk) {
    bool over = walk->frame == NULL || (pathwalk_is_main(walk->frame) && !walk->frame->inlined &&
                                        !walk->report->options.all_frames);
    if (over) {
        walk->node = 0;
    }
    walk->index++;
    pathwalk_settle(walk);
}

/* On to the outermost of a run of library frames. */
static void pathwalk_fold(struct pathwalk *walk) {
    walk->folded = 0;
    while (walk->folds && walk->frame != NULL && pathwalk_is_library(walk->frame)) {
        struct pathwalk next = *walk;
        pathwalk_step(&next);
        if (next.frame == NULL || !pathwalk_is_library(next.frame)) {
            return;
        }
        next.folded = walk->folded + 1;
        *walk = next;
    }
}

struct pathwalk pathwalk(const struct report *report, uint32_t id) {
    struct pathwalk walk = {.report = report, .node = id};
    pathwalk_settle(&walk);
    return walk;
}

struct pathwalk pathwalk_folded(const struct report *report, uint32_t id) {
    struct pathwalk walk = pathwalk(report, id);
    walk.folds = !report->options.all_frames;
    pathwalk_fold(&walk);
    return walk;
}

void pathwalk_next(struct pathwalk *walk) {
    walk->steps++;
    pathwalk_step(walk);
    pathwalk_fold(walk);
}
